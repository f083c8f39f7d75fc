//! Whose process speaks: nobody approves himself.
//!
//! A process that owd started, at whatever distance, may answer, grant, edit and read nothing. The kernel says
//! which process connected; its ancestors say whether owd is among them. Helpers are subreapers, so a process
//! that forks twice still stands below one.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;

use std::io;

use tokio::net::unix::UCred;

/// The processes whose descendants get nothing from owd: owd itself.
#[derive(Clone, Debug)]
pub struct Lineage {
    roots: Vec<u32>,
}

impl Lineage {
    /// Descendants of this process.
    #[must_use]
    pub fn own() -> Self {
        Self { roots: vec![std::process::id()] }
    }

    /// Descendants of these processes, each one included.
    #[must_use]
    pub fn of(roots: Vec<u32>) -> Self {
        Self { roots }
    }
}

/// Says whether the process at the other end of a connection is one that owd did not start, at the time of asking.
pub fn is_stranger(credentials: UCred, lineage: &Lineage) -> impl Fn() -> bool + Send + use<> {
    let peer = Peer::of(credentials, lineage);
    move || peer.standing() == Standing::Stranger
}

/// The process at the other end of a Unix connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) uid: u32,
    /// None: it could not be told who connected.
    known: Option<Known>,
}

#[derive(Debug)]
struct Known {
    witness: system::Witness,
    started_by_owd: bool,
}

/// What a peer is to owd at this moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Standing {
    Stranger,
    /// owd started it or one of its ancestors.
    StartedByOwd,
    /// It has ended, or its ancestors cannot be seen; who speaks now is not known.
    Unknown,
}

/// How often the ancestors are looked up again when one of them ends under our eyes.
const LOOKS: usize = 3;

impl Peer {
    /// Looks up who connected. Where the peer stands is found out once: a process cannot join owd's descendants
    /// later, it can only be born there.
    pub(crate) fn of(credentials: UCred, lineage: &Lineage) -> Self {
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
        let known = pid.and_then(|pid| match Known::of(pid, lineage) {
            Ok(known) => Some(known),
            Err(error) => {
                tracing::warn!(pid, %error, "the peer's ancestors cannot be seen");
                None
            }
        });
        Self { uid: credentials.uid(), known }
    }

    /// Where the peer stands now; asked for at each request, since the one that connected may have handed the
    /// connection down to a child and ended.
    pub(crate) fn standing(&self) -> Standing {
        match &self.known {
            Some(known) if known.witness.is_alive() => {
                if known.started_by_owd {
                    Standing::StartedByOwd
                } else {
                    Standing::Stranger
                }
            }
            Some(_) | None => Standing::Unknown,
        }
    }
}

impl Known {
    fn of(pid: u32, lineage: &Lineage) -> io::Result<Self> {
        // The witness comes first: if it still lives after the walk, the walk was about this very process.
        let witness = system::Witness::of(pid)?;
        let started_by_owd = descends(pid, lineage)?;
        if !witness.is_alive() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { witness, started_by_owd })
    }
}

fn descends(pid: u32, lineage: &Lineage) -> io::Result<bool> {
    let mut seen = system::ancestors(pid);
    for _ in 1..LOOKS {
        if seen.is_ok() {
            break;
        }
        seen = system::ancestors(pid);
    }
    Ok(seen?.iter().any(|ancestor| lineage.roots.contains(ancestor)))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_of_a_child_descends_from_us_and_we_do_not_descend_from_it() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let mut output = io::BufReader::new(shell.stdout.take().expect("piped"));
        io::BufRead::read_line(&mut output, &mut line).expect("the shell names its child");
        let grandchild: u32 = line.trim().parse().expect("a pid");

        assert!(descends(grandchild, &Lineage::own()).expect("it lives"));
        assert!(descends(grandchild, &Lineage::of(vec![shell.id()])).expect("it lives"));
        assert!(!descends(std::process::id(), &Lineage::of(vec![shell.id()])).expect("we live"));
        assert!(descends(std::process::id(), &Lineage::own()).expect("we live"), "owd does not ask itself either");

        let witness = system::Witness::of(grandchild).expect("it lives");
        assert!(witness.is_alive());
        Command::new("kill").args(["-9", &grandchild.to_string()]).status().expect("kill runs");
        shell.wait().expect("the shell ends once its child has");
        assert!(!witness.is_alive());
        assert!(system::Witness::of(grandchild).is_err());
    }
}
