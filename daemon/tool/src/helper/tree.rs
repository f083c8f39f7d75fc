//! Everything below this process: what lives, and how it is ended.

use std::collections::HashSet;
use std::fs;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};

use super::process;

/// Longer than anything but a process stuck in the kernel needs to die.
const KILL_PASSES: u32 = 5000;
const PASS: Duration = Duration::from_millis(1);
const REAPED_AT_ONCE: usize = 4096;

/// The processes below this one, at one instant.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pids: Vec<u32>,
}

impl Tree {
    /// What lives below this process, as far as `most` and one more.
    pub(crate) fn below_self(most: usize) -> Self {
        Self::walk(std::process::id(), most.saturating_add(1), |_| {})
    }

    pub(crate) fn below(root: u32) -> Self {
        Self::walk(root, usize::MAX, |_| {})
    }

    /// Stops each process before it looks at its children: what is stopped starts no more of them, so one
    /// walk catches up with any that multiply.
    fn stopped_below(root: u32) -> Self {
        Self::walk(root, usize::MAX, |pid| send(pid, Signal::STOP))
    }

    fn walk(root: u32, most: usize, mut meet: impl FnMut(u32)) -> Self {
        let mut pids = vec![];
        let mut seen = HashSet::from([root]);
        let mut ahead = vec![root];
        let mut children = Children::new(root);
        while let Some(pid) = ahead.pop() {
            for child in children.of(pid) {
                if seen.insert(child) {
                    if pids.len() >= most {
                        return Self { pids };
                    }
                    meet(child);
                    pids.push(child);
                    ahead.push(child);
                }
            }
        }
        Self { pids }
    }

    pub(crate) const fn of(pids: Vec<u32>) -> Self {
        Self { pids }
    }

    pub(crate) fn len(&self) -> usize {
        self.pids.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pids.is_empty()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        for pid in &self.pids {
            send(*pid, signal);
        }
    }
}

/// Who is whose child. The kernel's own lists are asked where it has them, else all processes are read once.
enum Children {
    Listed,
    Scanned(Vec<(u32, u32)>),
}

impl Children {
    fn new(root: u32) -> Self {
        if fs::exists(format!("/proc/{root}/task/{root}/children")).unwrap_or(false) {
            return Self::Listed;
        }
        Self::Scanned(pairs())
    }

    fn of(&mut self, pid: u32) -> Vec<u32> {
        match self {
            Self::Listed => {
                // A child belongs to the thread that started it.
                let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return vec![] };
                threads
                    .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok())
                    .flat_map(|text| {
                        text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
                    })
                    .collect()
            }
            Self::Scanned(pairs) => {
                pairs.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| *child).collect()
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn pairs() -> Vec<(u32, u32)> {
    process::all().into_iter().filter_map(|pid| Some((pid, process::Stat::of(pid)?.parent))).collect()
}

/// Where there is no `/proc`, `ps` knows.
#[cfg(not(target_os = "linux"))]
fn pairs() -> Vec<(u32, u32)> {
    let Ok(output) = std::process::Command::new("/bin/ps").args(["-axo", "pid=,ppid="]).output() else {
        return vec![];
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let number = |word: Option<&str>| word.and_then(|word| word.parse().ok());
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            Some((number(words.next())?, number(words.next())?))
        })
        .collect()
}

/// Takes note of the children that have ended. Adopted orphans are among them.
///
/// At most some thousand at once: where processes multiply, more end all the time.
pub(crate) fn reap() -> Vec<(Pid, WaitStatus)> {
    let mut ended = vec![];
    while ended.len() < REAPED_AT_ONCE {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(child)) => ended.push(child),
            Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => break,
        }
    }
    ended
}

/// Whether this process has no child, not even one that has ended.
fn is_childless() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(rustix::process::waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}

/// Ends everything below this process. Blocks until all are gone, and gives up only on what is stuck in
/// the kernel.
///
/// Whoever waits for a child's status must have it before: this reaps.
pub(crate) fn kill_all() {
    let own = std::process::id();
    kill_until_gone(|| {
        drop(reap());
        // It adopts orphans: what lives below it is below a child of its own.
        if is_childless() { Tree::default() } else { Tree::stopped_below(own) }
    });
}

/// Ends everything below another process, which is stopped first and stays so.
pub(crate) fn kill_below(root: u32, is_there: impl Fn() -> bool) {
    kill_until_gone(|| {
        if !is_there() {
            return Tree::default();
        }
        send(root, Signal::STOP);
        let mut tree = Tree::stopped_below(root);
        // Stopped, the root takes no note of those that are dead.
        tree.pids.retain(|pid| process::Stat::of(*pid).is_some_and(|stat| !stat.is_zombie));
        tree
    });
}

/// Kills what `look` finds until it finds nothing that was not killed before, then waits for that to be gone.
pub(crate) fn kill_until_gone(mut look: impl FnMut() -> Tree) {
    let mut known = HashSet::new();
    for _ in 0..KILL_PASSES {
        let tree = look();
        if tree.is_empty() {
            return;
        }
        // One that was just met may have started another before it stopped; only a walk without news is
        // one after which nothing can be missed, since a killed process hides its children from the walk.
        let news = tree.pids.iter().filter(|pid| known.insert(**pid)).count();
        if news > 0 {
            continue;
        }
        tree.signal(Signal::KILL);
        thread::sleep(PASS);
    }
}

pub(crate) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = as_pid(pid) {
        // It may have ended by itself in between.
        let _gone = rustix::process::kill_process(pid, signal);
    }
}

fn as_pid(pid: u32) -> Option<Pid> {
    // 0 and negative numbers would mean groups.
    i32::try_from(pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw)
}

/// `<pid>:<start>` of this helper.
pub(crate) fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let pid = std::process::id();
        mark_of(pid, process::start_ticks(pid).unwrap_or_default())
    })
}

pub(crate) fn mark_of(pid: u32, start: u64) -> String {
    format!("{pid}:{start}")
}

/// A kernel's limit behind the counting of processes, for all that is started from now on.
///
/// The kernel counts all processes of the user and not those of one tree, so the bound is how many
/// threads there are now and room for the call. It does not bind root.
pub(crate) fn limit_processes(processes: u32) {
    const ROOM: u64 = 1024;
    let Ok(load) = fs::read_to_string("/proc/loadavg") else { return };
    let threads = load.split_ascii_whitespace().nth(3).and_then(|word| word.split('/').nth(1)?.parse::<u64>().ok());
    let Some(threads) = threads else { return };
    let wanted = threads + u64::from(processes) + ROOM;
    let now = rustix::process::getrlimit(Resource::Nproc);
    let least = |limit: Option<u64>| Some(limit.map_or(wanted, |limit| limit.min(wanted)));
    let limit = Rlimit { current: least(now.current), maximum: least(now.maximum) };
    // Without it the counting still holds.
    let _unbound = rustix::process::setrlimit(Resource::Nproc, limit);
}
