//! A mail server on loopback that takes everything and keeps what it was about.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// One mail, by its head.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sunk {
    pub message_id: String,
    pub subject: String,
    pub in_reply_to: String,
}

#[derive(Debug)]
pub struct MailSink {
    address: SocketAddr,
    taken: Arc<Mutex<Vec<Sunk>>>,
}

impl Default for MailSink {
    fn default() -> Self {
        Self::start()
    }
}

impl MailSink {
    /// # Panics
    ///
    /// When there is no port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let taken: Arc<Mutex<Vec<Sunk>>> = Arc::default();
        let takes = Arc::clone(&taken);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let takes = Arc::clone(&takes);
                // A client that goes midway has sent nothing.
                thread::spawn(move || drop(talk(&stream, &takes)));
            }
        });
        Self { address, taken }
    }

    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    #[must_use]
    pub fn taken(&self) -> Vec<Sunk> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn talk(stream: &TcpStream, taken: &Mutex<Vec<Sunk>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let say = |line: &str| (&*stream).write_all(format!("{line}\r\n").as_bytes());
    say("220 sink")?;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Ok(());
        }
        match line.get(..4).unwrap_or_default().to_ascii_uppercase().as_str() {
            "DATA" => {
                say("354 go on")?;
                let Some(mail) = head(&mut lines)? else { return Ok(()) };
                taken.lock().unwrap_or_else(PoisonError::into_inner).push(mail);
                say("250 taken")?;
            }
            "QUIT" => return say("221 bye"),
            _ => say("250 ok")?,
        }
    }
}

/// Reads a mail to its end; none: its sender went before.
fn head(lines: &mut impl BufRead) -> std::io::Result<Option<Sunk>> {
    let mut fields: Vec<String> = vec![];
    let mut is_head = true;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let text = line.trim_end();
        match text {
            "." => break,
            "" => is_head = false,
            folded if is_head && folded.starts_with([' ', '\t']) => {
                if let Some(field) = fields.last_mut() {
                    field.push(' ');
                    field.push_str(folded.trim_start());
                }
            }
            field if is_head => fields.push(field.to_owned()),
            _ => {}
        }
    }
    let field = |name: &str| {
        let found = fields.iter().find_map(|field| field.strip_prefix(name));
        found.unwrap_or_default().trim().to_owned()
    };
    Ok(Some(Sunk { message_id: field("Message-ID:"), subject: field("Subject:"), in_reply_to: field("In-Reply-To:") }))
}
