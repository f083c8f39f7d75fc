//! Systems without `/proc`: `ps` tells, once a connection.

use std::collections::HashMap;
use std::io;
use std::process::Command;

use rustix::process::{Pid, test_kill_process};

/// The pid itself. Weaker than on Linux: a later process with the same pid passes for this one.
#[derive(Debug)]
pub(super) struct Witness(Pid);

impl Witness {
    pub(super) fn of(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        test_kill_process(pid)?;
        Ok(Self(pid))
    }

    pub(super) fn is_alive(&self) -> bool {
        test_kill_process(self.0).is_ok()
    }
}

/// The process and its ancestors, nearest first.
pub(super) fn ancestors(pid: u32) -> io::Result<Vec<u32>> {
    let output = Command::new("/bin/ps").args(["-axo", "pid=,ppid="]).output()?;
    let table = String::from_utf8_lossy(&output.stdout);
    let parents: HashMap<u32, u32> = table
        .lines()
        .filter_map(|line| {
            let (pid, parent) = line.trim().split_once(char::is_whitespace)?;
            Some((pid.parse().ok()?, parent.trim().parse().ok()?))
        })
        .collect();
    let mut line = vec![];
    let mut current = pid;
    while current != 0 {
        // Each process stands once in the table, so a longer line has a ring in it.
        if line.len() > parents.len() {
            return Err(io::Error::other("the table of processes has a ring"));
        }
        line.push(current);
        current = *parents.get(&current).ok_or(io::ErrorKind::NotFound)?;
    }
    Ok(line)
}
