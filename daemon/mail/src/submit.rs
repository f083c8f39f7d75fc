//! Hands a mail over, to a server or to a program, and says whether it may have gone ([`Fault::Lost`]).

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;

use lettre::Message;
use ow_inbox::Fault;
use ow_model::escape;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, Command};
use tokio::time::{Duration, timeout};

use crate::net::Host;
use crate::smtp::{Kept, Server};

/// A mail is handed over within this time, or it is tried again.
pub(crate) const SEND: Duration = Duration::from_mins(1);

/// What a program still says once it has ended is waited for so long.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Letters of what a server or a program said that are kept.
const SAID: usize = 300;

/// How mail leaves this machine.
#[derive(Clone, Eq, PartialEq)]
pub enum Way {
    Server {
        host: Host,
        login: Option<(String, String)>,
    },
    /// A program that takes a mail as `sendmail` does.
    Program(PathBuf),
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server { host, login: _ } => f.debug_struct("Server").field("host", host).finish_non_exhaustive(),
            Self::Program(path) => f.debug_tuple("Program").field(path).finish(),
        }
    }
}

impl Way {
    /// Hands a mail over for all that its head names; `own` is the name that owd gives itself, and a connection may come
    /// from `kept` and go there.
    ///
    /// # Cancel safety
    ///
    /// Whether a mail that was cut off midway has gone is not known.
    pub(crate) async fn send(&self, mail: &Message, own: &str, kept: &Kept) -> Result<(), Fault> {
        match self {
            Self::Server { host, login } => Server { host, login: login.as_ref(), own }.send(mail, kept).await,
            Self::Program(program) => {
                let late = || Fault::lost("the mail program did not take the mail in time");
                timeout(SEND, pipe(mail, program)).await.unwrap_or_else(|_| Err(late()))
            }
        }
    }

    /// Connects and logs in, and says where; sends nothing.
    pub(crate) async fn greet(&self, own: &str) -> Result<String, String> {
        match self {
            Self::Program(program) => {
                let is_there = std::fs::metadata(program).is_ok_and(|found| found.is_file());
                let shown = program.display();
                if is_there { Ok(shown.to_string()) } else { Err(format!("there is no program {shown}")) }
            }
            Self::Server { host, login } => match (Server { host, login: login.as_ref(), own }).greet().await {
                Ok(()) => Ok(format!("{}:{}", host.name, host.port)),
                Err(fault) => Err(fault.into_why()),
            },
        }
    }
}

async fn pipe(mail: &Message, program: &Path) -> Result<(), Fault> {
    /// What `sysexits.h` calls wrong for good: no such user or host, not permitted, bad data.
    const FOR_GOOD: [i32; 5] = [64, 65, 67, 68, 77];
    /// Try later: some keep the mail for that themselves.
    const TEMPFAIL: i32 = 75;
    let envelope = mail.envelope();
    let from = envelope.from().map_or("", AsRef::as_ref);
    let mut child = Command::new(program)
        .args(["-i", "-f", from, "--"])
        .args(envelope.to().iter().map(AsRef::<str>::as_ref))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Fault::later(format!("{} does not start: {error}", program.display())))?;
    let (mut stdin, stderr) = (child.stdin.take().expect("piped just above"), child.stderr.take());
    let text = mail.formatted();
    let (mut written, mut heard) = (None, vec![]);
    let ended = {
        let write = async {
            written = Some(stdin.write_all(&text).await);
            drop(stdin);
        };
        let mut talk = pin!(async { tokio::join!(write, listen(stderr, &mut heard)) });
        tokio::select! {
            ended = child.wait() => {
                // What it started and left behind may hold its ends of the pipes for as long as it likes.
                drop(timeout(LAST_WORDS, talk).await);
                ended
            }
            _ = &mut talk => child.wait().await,
        }
    };
    let ended = ended.map_err(|error| Fault::lost(format!("{}: {error}", program.display())))?;
    let words = said(&String::from_utf8_lossy(&heard));
    let why = |how: &str| format!("{} ended with {how}: {words}", program.display());
    match (ended.code(), written) {
        (Some(0), Some(Ok(()))) => Ok(()),
        (Some(code), _) if FOR_GOOD.contains(&code) => Err(Fault::never(why(&code.to_string()))),
        (Some(code), _) if code != 0 && code != TEMPFAIL => Err(Fault::later(why(&code.to_string()))),
        (Some(code), _) => Err(Fault::lost(why(&code.to_string()))),
        (None, _) => Err(Fault::lost(why("a signal"))),
    }
}

/// Hears a program out; of what it says, no more is kept than can be told.
async fn listen(stderr: Option<ChildStderr>, heard: &mut Vec<u8>) {
    let Some(mut stderr) = stderr else { return };
    let mut part = [0; 1024];
    while let Ok(length @ 1..) = stderr.read(&mut part).await {
        if heard.len() < 16 * SAID {
            heard.extend_from_slice(&part[..length]);
        }
    }
}

/// On one line, and not too long.
pub(crate) fn said(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    escape::line(&line).chars().take(SAID).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What becomes of a mail by a program that does this, and how long it takes.
    async fn sent_by(script: &str) -> (Result<(), Fault>, Duration) {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("sendmail");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("a program");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("may run");
        let (from, to) = ("owd@example.net".parse().expect("from"), "ada@example.org".parse().expect("to"));
        // More than a pipe holds.
        let mail = Message::builder().from(from).to(to).subject("s").body("x\r\n".repeat(100_000)).expect("a mail");
        let began = tokio::time::Instant::now();
        let done = Way::Program(program).send(&mail, "example.net", &Kept::default()).await;
        (done, began.elapsed())
    }

    #[tokio::test]
    async fn a_program_that_leaves_something_behind_has_taken_the_mail_all_the_same() {
        let (done, took) = sent_by("cat > /dev/null; sleep 20 < /dev/null > /dev/null & exit 0").await;
        assert!(done.is_ok(), "{done:?}");
        assert!(took < Duration::from_secs(15), "{took:?}");
        // It read no mail to its end, and its child never will.
        let (done, took) = sent_by("exec 3<&0; sleep 20 > /dev/null 2>&1 & exit 0").await;
        assert!(matches!(done, Err(Fault::Lost { .. })), "{done:?}");
        assert!(took < Duration::from_secs(15), "{took:?}");
    }

    #[tokio::test]
    async fn what_a_program_says_last_is_told() {
        let (done, _) = sent_by("cat > /dev/null; sleep 0.1; echo no such user >&2; exit 67").await;
        assert!(matches!(&done, Err(Fault::Never { why }) if why.contains("no such user")), "{done:?}");
    }
}
