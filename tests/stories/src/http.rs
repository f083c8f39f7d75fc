use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use ow_test_support::{LIMIT, Owd, Scratch};
use serde_json::Value;

/// A way to owd's API that is not `owctl`: whatever a program may send.
#[derive(Clone, Debug)]
pub enum Door {
    Unix(PathBuf),
    Tcp { address: String, key: String },
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub body: String,
}

impl Reply {
    /// # Panics
    ///
    /// When the body is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// The TCP door of an owd whose configuration opens one, with its key.
///
/// # Panics
///
/// When it has none.
#[must_use]
pub fn tcp_door(scratch: &Scratch, owd: &Owd) -> Door {
    let status = owd.owctl.json(&["status"]);
    let address = status["tcp"].as_str().expect("a TCP address").to_owned();
    let key = std::fs::read_to_string(scratch.path().join("data/key")).expect("a key").trim().to_owned();
    Door::Tcp { address, key }
}

impl Door {
    /// Sends one request and reads its answer. `headers` are added to Host, length and key, and replace those that
    /// they name.
    ///
    /// # Panics
    ///
    /// When owd does not answer.
    #[must_use]
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.try_send(method, path, headers, body).expect("owd answers")
    }

    /// The same; none when owd is gone, or goes before it has answered.
    #[must_use]
    pub fn try_send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Option<Reply> {
        let mut own = vec![("Connection", "close".to_owned()), ("Content-Length", body.len().to_string())];
        own.push(("Content-Type", "application/json".to_owned()));
        match self {
            Self::Unix(_) => own.push(("Host", "localhost".to_owned())),
            Self::Tcp { address, key } => {
                own.push(("Host", address.clone()));
                own.push(("Authorization", format!("Bearer {key}")));
            }
        }
        own.retain(|(name, _)| headers.iter().all(|(other, _)| !name.eq_ignore_ascii_case(other)));
        let given = headers.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in own.into_iter().chain(given) {
            write!(request, "{name}: {value}\r\n").expect("a string takes all");
        }
        request.push_str("\r\n");
        request.push_str(body);
        let answer = self.exchange(request.as_bytes()).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Reply { status, body: body.to_owned() })
    }

    fn exchange(&self, request: &[u8]) -> std::io::Result<String> {
        Ok(match self {
            Self::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(LIMIT)).expect("a limit");
                talk(stream, request)
            }
            Self::Tcp { address, .. } => {
                let stream = TcpStream::connect(address)?;
                stream.set_read_timeout(Some(LIMIT)).expect("a limit");
                talk(stream, request)
            }
        })
    }
}

fn talk(mut stream: impl Read + Write, request: &[u8]) -> String {
    // owd may answer, and close, before it has read all of a request that it refuses.
    drop(stream.write_all(request));
    let mut answer = vec![];
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}
