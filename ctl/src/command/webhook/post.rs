use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ow_protocol::SampleView;

use crate::failure::{Exit, Failure};

const WAIT: Duration = Duration::from_secs(35);
/// More of an answer is of no use.
const ANSWER_LIMIT: u64 = 64 * 1024;

/// Sends a signed delivery to the listener, as a sender does, and gives the status of the answer.
pub(super) fn post(sample: &SampleView) -> Result<u16, Failure> {
    let SampleView { address, path, headers, body, key: _ } = sample;
    let unreadable = || Failure::new(Exit::Failed, "unreadable", "owd's sample cannot be read");
    let body = STANDARD.decode(body).map_err(|_| unreadable())?;
    let to: SocketAddr = address.parse().map_err(|_| unreadable())?;
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        if [name, value].iter().any(|text| text.contains(['\r', '\n'])) {
            return Err(unreadable());
        }
        put!(head, "{name}: {value}\r\n");
    }
    put!(head, "Content-Length: {}\r\n\r\n", body.len());
    exchange(reachable(to), &[head.as_bytes(), &body]).map_err(|why| {
        Failure::io(format!("cannot deliver to {address}"), &why)
            .hint("`owctl status` says where owd listens; after a change of `[listener]` restart owd")
    })
}

/// An address that listens on all of them is reached on this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(at) if at.ip().is_unspecified() => SocketAddr::from(([127, 0, 0, 1], at.port())),
        SocketAddr::V6(at) if at.ip().is_unspecified() => SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, at.port())),
        other => other,
    }
}

fn exchange(to: SocketAddr, parts: &[&[u8]]) -> io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&to, WAIT)?;
    stream.set_read_timeout(Some(WAIT))?;
    stream.set_write_timeout(Some(WAIT))?;
    // A body that is too large is refused before it is sent, and then the rest of it cannot be written.
    let written = parts.iter().try_for_each(|part| stream.write_all(part));
    let mut answer = vec![];
    let read = stream.take(ANSWER_LIMIT).read_to_end(&mut answer);
    if let Some(status) = status(&answer) {
        return Ok(status);
    }
    written?;
    read?;
    Err(io::Error::other("the answer is no HTTP"))
}

fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    line.strip_prefix("HTTP/1.1 ")?.split(' ').next()?.parse().ok()
}
