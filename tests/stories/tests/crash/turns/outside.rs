//! The world outside: a service that counts what it is sent, and may strike owd down before it answers.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::world::Strike;

pub(crate) struct Outside {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl Outside {
    /// Each request to `/NAME/LABEL` is one line `NAME LABEL` in the file.
    pub(crate) fn start(effects: PathBuf, strike: Arc<Strike>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let address = listener.local_addr().expect("it is bound");
        let stopped: Arc<AtomicBool> = Arc::default();
        let is_over = Arc::clone(&stopped);
        drop(thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                // One after the other: lines never mix.
                drop(stream.and_then(|stream| serve(&stream, &effects, &strike)));
            }
        }));
        Self { address, stopped }
    }

    pub(crate) fn authority(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
    }
}

fn serve(stream: &TcpStream, effects: &PathBuf, strike: &Strike) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').replace('/', " ");
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    if !path.is_empty() {
        let mut file = fs::File::options().create(true).append(true).open(effects)?;
        file.write_all(format!("{path}\n").as_bytes())?;
        strike.at_effect();
    }
    let mut writer = stream;
    writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")?;
    stream.shutdown(Shutdown::Both)
}
