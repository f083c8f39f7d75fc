use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// A line of `stat` is shorter, and comes whole with the first reading.
const LINE: usize = 2048;
/// Longer chains of ancestors are not believed.
const DEPTH: usize = 4096;

/// An open file of the process's folder in `/proc`. It reads as long as that very process lives: a later process
/// with the same pid has files of its own.
#[derive(Debug)]
pub(super) struct Witness(File);

impl Witness {
    pub(super) fn of(pid: u32) -> io::Result<Self> {
        Ok(Self(File::open(format!("/proc/{pid}/comm"))?))
    }

    pub(super) fn is_alive(&self) -> bool {
        self.0.read_at(&mut [0; 1], 0).is_ok()
    }
}

/// The process and its ancestors, nearest first.
pub(super) fn ancestors(pid: u32) -> io::Result<Vec<u32>> {
    let mut line = vec![];
    let mut current = pid;
    let mut born = u64::MAX;
    while current != 0 {
        if line.len() == DEPTH {
            return Err(io::Error::other("too many ancestors"));
        }
        let stat = Stat::of(current)?;
        // A parent is older than its child. One that is younger has got the pid of a parent that ended meanwhile.
        if stat.born > born {
            return Err(io::ErrorKind::NotFound.into());
        }
        line.push(current);
        born = stat.born;
        current = stat.parent;
    }
    Ok(line)
}

#[derive(Debug, Eq, PartialEq)]
struct Stat {
    parent: u32,
    /// Clock ticks after boot.
    born: u64,
}

impl Stat {
    fn of(pid: u32) -> io::Result<Self> {
        // Not as text: a process may name itself with any bytes.
        let mut line = [0; LINE];
        let length = File::open(format!("/proc/{pid}/stat"))?.read(&mut line)?;
        Self::parse(&line[..length])
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unreadable /proc stat line"))
    }

    fn parse(line: &[u8]) -> Option<Self> {
        // The process's name stands in parentheses and may itself hold any: only the last one closes it.
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&line[close + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let born = fields.nth(17)?.parse().ok()?;
        Some(Self { parent, born })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_pretend_to_be_other_fields() {
        let tail = "S 7 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        for name in ["sh", "a b", ") S 1 1", "x) S 1 (", "\u{202e}"] {
            let line = format!("42 ({name}) {tail}\n");
            assert_eq!(Stat::parse(line.as_bytes()), Some(Stat { parent: 7, born: 4711 }), "{name}");
        }
        assert_eq!(
            Stat::parse(b"42 (\xff\xfe) S 7 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 4711 0"),
            Some(Stat { parent: 7, born: 4711 })
        );
        for cut in ["", "42 (sh", "42 (sh) S", "42 (sh) S 7 7", "42 (sh) S x 7"] {
            assert_eq!(Stat::parse(cut.as_bytes()), None, "{cut}");
        }
    }
}
