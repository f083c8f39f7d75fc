use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::imap::ImapError;
use crate::imap::frame::Frame;
use crate::net::Stream;

/// Bytes that are read at once.
const CHUNK: usize = 32 * 1024;

/// Commands and what comes of them.
pub(crate) struct Connection {
    stream: Stream,
    read: Vec<u8>,
    commands: u32,
    /// That of the IDLE that is under way.
    idle: String,
    /// The server told of mail since the last search: it does not tell of it again.
    pub(crate) news: bool,
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, read: vec![], commands: 0, idle: String::new(), news: false }
    }

    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }

    /// The next that the server says.
    ///
    /// # Cancel safety
    ///
    /// Nothing that was read is lost.
    pub(crate) async fn frame(&mut self) -> Result<Frame, ImapError> {
        loop {
            if let Some((frame, used)) = Frame::read(&self.read)? {
                self.read.drain(..used);
                self.news |= frame == Frame::Exists;
                return Ok(frame);
            }
            self.read.reserve(CHUNK);
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(ImapError::Ended(String::new()));
            }
        }
    }

    async fn send(&mut self, line: &str) -> Result<(), ImapError> {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).await?;
        self.stream.flush().await?;
        Ok(())
    }

    async fn begin(&mut self, line: &str) -> Result<String, ImapError> {
        self.commands += 1;
        let tag = format!("a{}", self.commands);
        self.send(&format!("{tag} {line}")).await?;
        Ok(tag)
    }

    /// Sends a command; returns what the server said before it was done.
    pub(crate) async fn ask(&mut self, command: &'static str, line: &str) -> Result<Vec<Frame>, ImapError> {
        let tag = self.begin(line).await?;
        self.end(&tag, command).await
    }

    async fn end(&mut self, tag: &str, command: &'static str) -> Result<Vec<Frame>, ImapError> {
        let mut said = vec![];
        loop {
            let frame = self.frame().await?;
            match frame {
                Frame::Done { tag: of, well: true, .. } if of == tag => return Ok(said),
                Frame::Done { tag: of, words, .. } if of == tag => {
                    return Err(ImapError::Refused { command, said: words });
                }
                Frame::Bye(words) if command != "LOGOUT" => return Err(ImapError::Ended(words)),
                frame => said.push(frame),
            }
        }
    }

    /// Waits until the server asks for more; an error if it ends the command instead.
    async fn asked(&mut self, tag: &str, command: &'static str) -> Result<(), ImapError> {
        loop {
            let frame = self.frame().await?;
            match frame {
                Frame::Continue => return Ok(()),
                Frame::Done { tag: of, words, .. } if of == tag => {
                    return Err(ImapError::Refused { command, said: words });
                }
                Frame::Bye(words) => return Err(ImapError::Ended(words)),
                _ => {}
            }
        }
    }

    pub(crate) async fn authenticate(&mut self, line: &str, secret: &str) -> Result<(), ImapError> {
        let tag = self.begin(line).await?;
        self.asked(&tag, "AUTHENTICATE").await?;
        self.send(secret).await?;
        self.end(&tag, "AUTHENTICATE").await.map(|_| ())
    }

    pub(crate) async fn begin_idle(&mut self) -> Result<(), ImapError> {
        self.idle = self.begin("IDLE").await?;
        let tag = self.idle.clone();
        self.asked(&tag, "IDLE").await
    }

    pub(crate) async fn end_idle(&mut self) -> Result<(), ImapError> {
        self.send("DONE").await?;
        let tag = std::mem::take(&mut self.idle);
        self.end(&tag, "IDLE").await.map(|_| ())
    }
}
