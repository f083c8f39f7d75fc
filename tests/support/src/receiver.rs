use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::until;

/// An HTTP server on loopback that keeps what it is sent; closed when dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    answer: Option<u16>,
    /// All connections, to be ended with the server.
    streams: Vec<TcpStream>,
    requests: Vec<Received>,
    is_over: bool,
}

/// A request, as it was sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Received {
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Received {
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Default for Receiver {
    fn default() -> Self {
        Self::new()
    }
}

impl Receiver {
    /// # Panics
    ///
    /// When loopback has no port left.
    #[must_use]
    pub fn new() -> Self {
        Self::at(0)
    }

    /// At this port, which was free a moment ago; 0: at any.
    ///
    /// # Panics
    ///
    /// When it is not free.
    #[must_use]
    pub fn at(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a port on loopback");
        let address = listener.local_addr().expect("its address");
        let shared =
            Arc::new(Mutex::new(Shared { answer: Some(200), streams: vec![], requests: vec![], is_over: false }));
        let seen = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                {
                    let mut shared = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    if shared.is_over {
                        return;
                    }
                    shared.streams.extend(stream.try_clone());
                }
                // Each for itself: a client may open a connection and keep it for later.
                let seen = Arc::clone(&seen);
                // A request that breaks off is none.
                thread::spawn(move || drop(serve(stream, &seen)));
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    /// A port on which nobody listens.
    ///
    /// # Panics
    ///
    /// When loopback has no port left.
    #[must_use]
    pub fn free_port() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        listener.local_addr().expect("its address").port()
    }

    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers with this status from now on; none: with nothing at all.
    pub fn answer(&self, status: Option<u16>) {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).answer = status;
    }

    /// What has come, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).requests.clone()
    }

    /// Waits until as many requests have come, and gives them.
    #[expect(clippy::must_use_candidate, reason = "often it is only waited for")]
    pub fn wait_for(&self, count: usize) -> Vec<Received> {
        until(&format!("{count} requests"), || Some(self.requests()).filter(|requests| requests.len() >= count))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.is_over = true;
            for stream in shared.streams.drain(..) {
                drop(stream.shutdown(Shutdown::Both));
            }
        }
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Reads requests and answers them, until the other side ends the connection.
fn serve(stream: TcpStream, shared: &Mutex<Shared>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut headers = vec![];
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        let length =
            headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        let answer = {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.requests.push(Received { path, headers, body: String::from_utf8_lossy(&body).into_owned() });
            shared.answer
        };
        // Without an answer the connection stays as it is until the server ends.
        let Some(status) = answer else { return Ok(()) };
        reader.get_mut().write_all(format!("HTTP/1.1 {status} It\r\ncontent-length: 0\r\n\r\n").as_bytes())?;
    }
}
