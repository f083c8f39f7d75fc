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

/// A command is no longer than this, and of a mail's lines no more is read at once.
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

    /// A line with its end, or the next part of a longer one; none: the client is gone, or owd is about to stop.
    async fn piece(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut piece = vec![];
        let mut reader = (&mut self.stream).take(LONGEST);
        let read = tokio::select! {
            () = self.stop.cancelled() => return Ok(None),
            read = timeout(SILENCE, reader.read_until(b'\n', &mut piece)) => read,
        };
        match read {
            Err(_) | Ok(Ok(0)) => Ok(None),
            Ok(Err(error)) => Err(error),
            // What ends without an end of its line was cut off.
            Ok(Ok(length)) => Ok((piece.ends_with(b"\n") || length as u64 == LONGEST).then_some(piece)),
        }
    }

    /// A command without its end; none: the client is gone. One that is too long is refused, and the next is read.
    async fn command(&mut self) -> std::io::Result<Option<String>> {
        loop {
            let Some(mut piece) = self.piece().await? else { return Ok(None) };
            if piece.ends_with(b"\n") {
                return Ok(Some(String::from_utf8_lossy(piece.trim_ascii_end()).to_ascii_uppercase()));
            }
            while !piece.ends_with(b"\n") {
                let Some(next) = self.piece().await? else { return Ok(None) };
                piece = next;
            }
            self.say("500 5.5.2 the line is too long").await?;
        }
    }

    async fn run(mut self) -> std::io::Result<()> {
        self.say("220 owd LMTP").await?;
        let mut greeted = false;
        let mut from = false;
        let mut recipients = 0;
        while let Some(text) = self.command().await? {
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
        let mut begins = true;
        while let Some(piece) = self.piece().await? {
            let (begun, ends) = (begins, piece.ends_with(b"\n"));
            begins = ends;
            // A dot between bare line feeds ends no mail: what one server passes on as text would be a command here.
            if begun && piece == b".\r\n" {
                return Ok(Some((raw, extent)));
            }
            if extent == Extent::Head {
                continue;
            }
            let text = if begun { piece.strip_prefix(b".").unwrap_or(&piece) } else { &piece };
            if raw.len() + text.len() > LARGEST {
                raw.truncate(head.unwrap_or(LARGEST_HEAD).min(LARGEST_HEAD));
                raw.shrink_to_fit();
                extent = Extent::Head;
                continue;
            }
            raw.extend_from_slice(text);
            if head.is_none() && begun && ends && text.trim_ascii().is_empty() {
                head = Some(raw.len());
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use ow_store::StoreError;

    use super::*;
    use crate::desk::Taken;

    #[derive(Default)]
    struct Took(Mutex<Vec<(Vec<u8>, Extent)>>);

    #[async_trait]
    impl Takes for Took {
        async fn take(&self, raw: &[u8], extent: Extent, _folder: Option<&str>) -> Result<Taken, StoreError> {
            self.0.lock().expect("whole").push((raw.to_vec(), extent));
            let why = String::new();
            Ok(Taken {
                outcome: Outcome::NoItem,
                item: None,
                decision: "none",
                why,
                told: None,
                sender: None,
                bounced: None,
            })
        }

        async fn give_up(&self, _mailbox: &str, _uid: u32) -> Result<(), StoreError> {
            Ok(())
        }

        fn stands(&self, _mailbox: &str, _fault: Option<&str>) {}
    }

    /// What the server answers to all this, from its greeting on, and the mails that it took.
    async fn talked(parts: &[&[u8]]) -> (String, Vec<(Vec<u8>, Extent)>) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let took = Arc::new(Took::default());
        let admitted = Admitted { takes: took.clone(), still: Box::new(|| true) };
        let talk = Talk { stream: BufReader::new(theirs), stop: CancellationToken::new(), admitted };
        let (mut reads, mut writes) = ours.into_split();
        let mut answers = String::new();
        let client = async {
            for part in parts {
                writes.write_all(part).await.expect("it is read");
            }
            drop(writes);
        };
        let (said, (), heard) = tokio::join!(talk.run(), client, reads.read_to_string(&mut answers));
        said.expect("the connection holds");
        heard.expect("text");
        let took = std::mem::take(&mut *took.0.lock().expect("whole"));
        (answers, took)
    }

    const ENVELOPE: &[u8] = b"LHLO here\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.org>\r\nDATA\r\n";

    #[tokio::test]
    async fn a_line_of_any_length_ends_no_connection() {
        let line = vec![b'x'; LARGEST + 100];
        let (answers, took) = talked(&[ENVELOPE, b"Subject: s\r\n\r\n", &line, b"\r\n.\r\nNOOP\r\nQUIT\r\n"]).await;
        assert!(answers.ends_with("250 2.0.0 handled\r\n250 2.0.0 ok\r\n221 2.0.0 bye\r\n"), "{answers}");
        assert_eq!(took, [(b"Subject: s\r\n\r\n".to_vec(), Extent::Head)]);
        let (answers, took) = talked(&[b"LHLO here\r\nMAIL FROM:<", &line, b">\r\nNOOP\r\nQUIT\r\n"]).await;
        assert!(answers.ends_with("500 5.5.2 the line is too long\r\n250 2.0.0 ok\r\n221 2.0.0 bye\r\n"), "{answers}");
        assert_eq!(took, []);
    }

    #[tokio::test]
    async fn a_long_line_stays_as_it_is() {
        // A dot is one of the mail's own where a line is only read in parts.
        let at = usize::try_from(LONGEST).expect("small");
        for length in [at - 2, at - 1, at, at + 1, 2 * at] {
            let text = format!("{}.\r\n.x\r\n", "x".repeat(length));
            let sent = text.replace("\r\n.", "\r\n..");
            let (answers, took) = talked(&[ENVELOPE, b"Subject: s\r\n\r\n", sent.as_bytes(), b".\r\nQUIT\r\n"]).await;
            assert!(answers.ends_with("250 2.0.0 handled\r\n221 2.0.0 bye\r\n"), "{answers}");
            assert_eq!(took, [(format!("Subject: s\r\n\r\n{text}").into_bytes(), Extent::Whole)], "{length}");
        }
    }
}
