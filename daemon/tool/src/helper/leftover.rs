//! What an earlier owd may have left running.

use std::fs;

use rustix::process::Signal;

use super::HELPER_MARK;
use super::process::{self, Stat};
use super::tree::{Tree, kill_below, kill_until_gone, mark_of, send};

/// What was found of an earlier helper.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Leftover {
    /// Nothing lived any more.
    Nothing,
    /// Something lived, and is gone now.
    Ended,
    /// It could not be told: the system does not say who began when.
    Untold,
}

/// Makes sure that nothing lives of the helper `pid` that began at `start` in the boot `boot`.
///
/// A pid that belongs to another process by now is left alone. Blocks for some milliseconds.
#[must_use]
pub fn end_leftover(pid: u32, start: Option<u64>, boot: Option<&str>) -> Leftover {
    let (Some(start), Some(boot), Some(now)) = (start, boot, process::boot_id()) else { return Leftover::Untold };
    if boot != now {
        return Leftover::Nothing;
    }
    let mut found = Leftover::Nothing;
    if is_helper(pid, start) {
        found = Leftover::Ended;
        kill_below(pid, || is_helper(pid, start));
        kill_until_gone(|| if is_helper(pid, start) { Tree::of(vec![pid]) } else { Tree::default() });
    }
    if end_marked(pid, start) { Leftover::Ended } else { found }
}

/// Ends what bears the helper's mark or is of its session, wherever it went. Says whether there was any.
pub(crate) fn end_marked(pid: u32, start: u64) -> bool {
    let mark = mark_of(pid, start);
    let mut any = false;
    kill_until_gone(|| {
        let own = std::process::id();
        let pids: Vec<u32> = process::all()
            .into_iter()
            .filter(|found| *found != own && *found != pid)
            .filter(|found| Stat::of(*found).is_some_and(|stat| !stat.is_zombie && stat.start >= start))
            .filter(|found| bears(*found, &mark))
            .collect();
        any |= !pids.is_empty();
        Tree::of(pids)
    });
    any
}

fn is_helper(pid: u32, start: u64) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.start == start && !stat.is_zombie)
}

/// Whether the process or one above it bears any helper's mark.
pub(crate) fn is_marked(pid: u32) -> bool {
    let begin = format!("{HELPER_MARK}=");
    let mut at = pid;
    while let Some(stat) = Stat::of(at) {
        let environment = fs::read(format!("/proc/{at}/environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(begin.as_bytes())) {
            return true;
        }
        if stat.parent == 0 || stat.parent == at {
            break;
        }
        at = stat.parent;
    }
    false
}

fn bears(pid: u32, mark: &str) -> bool {
    let wanted = format!("{HELPER_MARK}={mark}");
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
}

/// Kills a helper that does not answer, with its session and all that bears its mark.
pub(crate) fn end_helper(pid: u32, start: Option<u64>) {
    let Some(start) = start else { return send(pid, Signal::KILL) };
    kill_below(pid, || is_helper(pid, start));
    if is_helper(pid, start) {
        send(pid, Signal::KILL);
    }
    end_marked(pid, start);
}
