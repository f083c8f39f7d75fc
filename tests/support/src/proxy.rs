//! What stands between owd and a server, and fails as networks do.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Bytes of clients that a proxy keeps.
const SEEN: usize = 256 * 1024;

/// A proxy on loopback, for one server.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    target: String,
    /// The answer to a mail's end is kept from its sender.
    holds: AtomicBool,
    held: AtomicUsize,
    /// What clients said, up to [`SEEN`] bytes.
    seen: Mutex<Vec<u8>>,
    /// Both ends of what is connected.
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// # Panics
    ///
    /// When there is no port.
    #[must_use]
    pub fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            target: target.to_owned(),
            holds: AtomicBool::new(false),
            held: AtomicUsize::new(0),
            seen: Mutex::default(),
            open: Mutex::default(),
        });
        let serves = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A server that is not there closes the connection, as it would without a proxy.
                let Ok(server) = TcpStream::connect(&serves.target) else { continue };
                Shared::join(&serves, client, server);
            }
        });
        Self { address, shared }
    }

    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// From now on a server gets whole mails, and who sent them hears nothing of it.
    pub fn hold_answers(&self, holds: bool) {
        self.shared.holds.store(holds, Ordering::SeqCst);
    }

    /// Mails whose answers were held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.shared.held.load(Ordering::SeqCst)
    }

    /// What clients said in the clear, or what an eavesdropper sees of it.
    #[must_use]
    pub fn seen(&self) -> String {
        String::from_utf8_lossy(&self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Ends all that is connected, midway; says how many connections that were.
    pub fn cut(&self) -> usize {
        let open = std::mem::take(&mut *self.shared.open.lock().unwrap_or_else(PoisonError::into_inner));
        for stream in &open {
            // One that has ended needs no cutting.
            drop(stream.shutdown(Shutdown::Both));
        }
        open.len() / 2
    }
}

impl Shared {
    fn join(this: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let copies = [client.try_clone(), server.try_clone(), client.try_clone(), server.try_clone()];
        let [Ok(from_client), Ok(from_server), Ok(kept_client), Ok(kept_server)] = copies else { return };
        {
            let mut open = this.open.lock().unwrap_or_else(PoisonError::into_inner);
            // What has ended is forgotten.
            open.retain(|stream| stream.take_error().is_ok() && stream.peer_addr().is_ok());
            open.extend([kept_client, kept_server]);
        }
        let is_held = Arc::new(AtomicBool::new(false));
        let (up, hears) = (Arc::clone(this), Arc::clone(&is_held));
        thread::spawn(move || {
            pump(from_client, server, |bytes| {
                let mut seen = up.seen.lock().unwrap_or_else(PoisonError::into_inner);
                let left = SEEN - seen.len();
                seen.extend(&bytes[..bytes.len().min(left)]);
                drop(seen);
                if bytes.ends_with(b"\r\n.\r\n") && up.holds.load(Ordering::SeqCst) {
                    hears.store(true, Ordering::SeqCst);
                    up.held.fetch_add(1, Ordering::SeqCst);
                }
                true
            });
        });
        thread::spawn(move || pump(from_server, client, |_| !is_held.load(Ordering::SeqCst)));
    }
}

/// Passes on what `lets` through, to the end.
fn pump(mut from: TcpStream, mut to: TcpStream, mut lets: impl FnMut(&[u8]) -> bool) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if lets(&bytes[..count]) && to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // Either end takes the other with it.
    drop(to.shutdown(Shutdown::Both));
    drop(from.shutdown(Shutdown::Both));
}
