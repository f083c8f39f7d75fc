//! Takes mail from a mail server of this machine (LMTP, RFC 2033, over a Unix socket).
//!
//! A mail is answered 250 once it is handled durably, and 451 if it is to come again.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{Duration, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::desk::Outcome;
use crate::reader::{Extent, Takes};

/// Of a mail larger than this only the head is read: who refuses it sends it back.
const LARGEST: usize = 32 * 1024 * 1024;

/// Of a longer head no more is kept.
const LARGEST_HEAD: usize = 1024 * 1024;

/// A command is no longer than this.
const LONGEST: u64 = 4 * 1024;

/// Connections at a time; further ones wait.
const CONNECTIONS: usize = 8;

/// Recipients of one mail.
const RECIPIENTS: usize = 100;

/// A client that says nothing for so long is gone.
const SILENCE: Duration = Duration::from_mins(5);

/// Who may hand mail over, or why the process at the other end may not.
pub type Admits = dyn Fn(&UnixStream) -> Result<Admitted, String> + Send + Sync;

/// A connection that mail may come over.
pub struct Admitted {
    /// Where that goes.
    pub takes: Arc<dyn Takes>,
    /// Whether it is still the same process that speaks, each time it is asked.
    pub still: Box<dyn Fn() -> bool + Send>,
}

/// A socket to which mail is handed.
pub struct LmtpSocket {
    listener: UnixListener,
}

impl LmtpSocket {
    /// Takes mail on a socket that was bound.
    ///
    /// # Errors
    ///
    /// If it cannot be waited on.
    pub fn new(listener: std::os::unix::net::UnixListener) -> std::io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener: UnixListener::from_std(listener)? })
    }

    /// Takes mail until `stop`; a mail that is in hand is handled first.
    pub async fn serve(self, admits: Arc<Admits>, stop: CancellationToken) {
        let tracker = TaskTracker::new();
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let place = tokio::select! {
                () = stop.cancelled() => break,
                place = Arc::clone(&places).acquire_owned() => place,
            };
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!(%error, "no connection for mail could be taken");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let admitted = match admits(&stream) {
                Ok(admitted) => admitted,
                Err(why) => {
                    warn!(why, "a connection for mail is refused");
                    // Short enough for the room that a socket has.
                    drop(stream.try_write(format!("554 5.7.1 {why}\r\n").as_bytes()));
                    continue;
                }
            };
            let stop = stop.clone();
            tracker.spawn(async move {
                let talk = Talk { stream: BufReader::new(stream), stop, admitted };
                if let Err(error) = talk.run().await {
                    debug!(%error, "a connection for mail broke");
                }
                drop(place);
            });
        }
        tracker.close();
        tracker.wait().await;
    }
}

struct Talk {
    stream: BufReader<UnixStream>,
    stop: CancellationToken,
    admitted: Admitted,
}

impl Talk {
    async fn say(&mut self, line: &str) -> std::io::Result<()> {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).await
    }

    /// A line without its end; none: the client is gone.
    async fn line(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut line = vec![];
        let mut reader = (&mut self.stream).take(LONGEST);
        let read = tokio::select! {
            () = self.stop.cancelled() => return Ok(None),
            read = timeout(SILENCE, reader.read_until(b'\n', &mut line)) => read,
        };
        match read {
            Ok(Ok(0)) | Err(_) => Ok(None),
            Ok(Ok(_)) if !line.ends_with(b"\n") => Err(std::io::Error::other("a command too long")),
            Ok(Ok(_)) => Ok(Some(line.trim_ascii_end().to_vec())),
            Ok(Err(error)) => Err(error),
        }
    }

    async fn run(mut self) -> std::io::Result<()> {
        self.say("220 owd LMTP").await?;
        let mut greeted = false;
        let mut from = false;
        let mut recipients = 0;
        while let Some(line) = self.line().await? {
            let text = String::from_utf8_lossy(&line).to_ascii_uppercase();
            let word = text.split(' ').next().unwrap_or_default();
            match word {
                "LHLO" => {
                    greeted = true;
                    (from, recipients) = (false, 0);
                    self.say("250-owd").await?;
                    self.say("250-8BITMIME").await?;
                    self.say("250-SMTPUTF8").await?;
                    self.say("250-ENHANCEDSTATUSCODES").await?;
                    // Any size is taken.
                    self.say("250 SIZE 0").await?;
                }
                "HELO" | "EHLO" => self.say("500 5.5.1 this is LMTP: say LHLO").await?,
                "MAIL" if !greeted || from => self.say("503 5.5.1 not now").await?,
                "MAIL" => {
                    from = true;
                    self.say("250 2.1.0 ok").await?;
                }
                "RCPT" if !from => self.say("503 5.5.1 MAIL first").await?,
                "RCPT" if recipients >= RECIPIENTS => self.say("452 4.5.3 too many recipients").await?,
                "RCPT" => {
                    recipients += 1;
                    self.say("250 2.1.5 ok").await?;
                }
                "DATA" if recipients == 0 => self.say("503 5.5.1 no recipient").await?,
                "DATA" => {
                    self.say("354 go on").await?;
                    let answer = match self.mail().await? {
                        None => return Ok(()),
                        Some(_) if !(self.admitted.still)() => "451 4.7.1 who is it that speaks?",
                        Some((raw, extent)) => match self.admitted.takes.take(&raw, extent, None).await {
                            Ok(taken) if taken.outcome == Outcome::Later => "451 4.3.0 come again",
                            Ok(_) => "250 2.0.0 handled",
                            Err(error) => {
                                warn!(%error, "a mail could not be handled");
                                "451 4.3.0 come again"
                            }
                        },
                    };
                    // One answer for each recipient.
                    for _ in 0..recipients {
                        self.say(answer).await?;
                    }
                    (from, recipients) = (false, 0);
                }
                "RSET" => {
                    (from, recipients) = (false, 0);
                    self.say("250 2.0.0 ok").await?;
                }
                "NOOP" => self.say("250 2.0.0 ok").await?,
                "VRFY" => self.say("252 2.1.5 perhaps").await?,
                "QUIT" => return self.say("221 2.0.0 bye").await,
                _ => self.say("500 5.5.2 what is that?").await?,
            }
        }
        self.say("421 4.3.2 not now").await
    }

    /// A mail up to the dot that ends it, without the dots that were put before; none: the client is gone.
    async fn mail(&mut self) -> std::io::Result<Option<(Vec<u8>, Extent)>> {
        let (mut raw, mut extent) = (vec![], Extent::Whole);
        let mut head = None;
        loop {
            let mut line = vec![];
            let mut reader = (&mut self.stream).take(LARGEST as u64);
            let read = tokio::select! {
                () = self.stop.cancelled() => return Ok(None),
                read = timeout(SILENCE, reader.read_until(b'\n', &mut line)) => read,
            };
            match read {
                Err(_) | Ok(Ok(0)) => return Ok(None),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(_)) => {}
            }
            if !line.ends_with(b"\n") {
                return Ok(None);
            }
            // A dot between bare line feeds ends no mail: what one server passes on as text would be a command here.
            if line == b".\r\n" {
                return Ok(Some((raw, extent)));
            }
            if extent == Extent::Head {
                continue;
            }
            let line = line.strip_prefix(b".").unwrap_or(&line);
            if raw.len() + line.len() > LARGEST {
                raw.truncate(head.unwrap_or(LARGEST_HEAD).min(LARGEST_HEAD));
                raw.shrink_to_fit();
                extent = Extent::Head;
                continue;
            }
            raw.extend_from_slice(line);
            if head.is_none() && line.trim_ascii().is_empty() {
                head = Some(raw.len());
            }
        }
    }
}
