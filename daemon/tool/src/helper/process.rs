//! What the kernel tells of processes.

use std::fs::{self, File};
use std::io::Read;
use std::sync::OnceLock;

/// When a process began, in clock ticks after boot; with the pid it names one process until the next boot.
/// None where it is gone or the system does not tell.
#[must_use]
pub fn start_ticks(pid: u32) -> Option<u64> {
    Stat::of(pid).map(|stat| stat.start)
}

/// Names this boot of the machine; none where the system does not tell.
#[must_use]
pub fn boot_id() -> Option<String> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    BOOT.get_or_init(|| {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(text.trim().to_owned())
    })
    .clone()
}

/// Whether `pid` is `ancestor` or descends from it.
#[must_use]
pub fn is_below(pid: u32, ancestor: u32) -> bool {
    let mut at = pid;
    // Deeper than any real chain: the walk must end even if processes come and go under it.
    for _ in 0..4096 {
        if at == ancestor {
            return true;
        }
        match Stat::of(at) {
            Some(stat) if stat.parent != 0 => at = stat.parent,
            _ => return false,
        }
    }
    true
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stat {
    pub(crate) parent: u32,
    pub(crate) session: u32,
    pub(crate) start: u64,
    /// It has ended and waits for its parent to take note.
    pub(crate) is_zombie: bool,
}

impl Stat {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        // The line is shorter, and comes whole with the first reading.
        let mut line = [0; 2048];
        let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
        Self::parse(&line[..length])
    }

    /// The name in brackets may hold anything, brackets and line ends included, so fields count from the last one.
    fn parse(text: &[u8]) -> Option<Self> {
        let after = text.iter().rposition(|byte| *byte == b')')? + 1;
        let fields: Vec<&str> = std::str::from_utf8(&text[after..]).ok()?.split_ascii_whitespace().collect();
        Some(Self {
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }
}

/// All processes that the system shows.
pub(crate) fn all() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return vec![] };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_a_name_with_brackets() {
        let text = b"7 (a) b) (c\n) S 3 7 5 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let expected = Stat { parent: 3, session: 5, start: 4242, is_zombie: false };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse(b"7 (a"), None);
    }

    #[test]
    fn a_process_is_below_itself_and_its_parent() {
        let own = std::process::id();
        assert!(is_below(own, own) && is_below(own, std::os::unix::process::parent_id()));
        assert!(!is_below(std::os::unix::process::parent_id(), own));
        assert!(start_ticks(own).is_some() && start_ticks(u32::MAX).is_none());
        assert!(boot_id().is_some_and(|id| id.len() == 36));
    }
}
