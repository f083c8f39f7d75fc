//! A sender outside: knows a secret, and speaks HTTP as it likes.

use std::io::{Read, Write};
use std::net::TcpStream;

use ring::hmac;

use crate::LIMIT;

/// The HMAC-SHA256 of some text in lower-case hex, as most senders sign.
#[must_use]
pub fn hmac_hex(secret: &str, text: &[u8]) -> String {
    use std::fmt::Write;
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), text);
    tag.as_ref().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

/// A delivery's answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answered {
    pub status: u16,
    /// The whole head, as it came.
    pub head: String,
    pub body: String,
}

/// Sends the bytes of a request, and reads what comes back until the connection is closed; none: nothing came.
///
/// # Panics
///
/// When nobody listens there.
#[must_use]
pub fn exchange(address: &str, request: &[u8]) -> Option<Answered> {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    // What is refused early is not read to its end.
    drop(stream.write_all(request));
    let mut answer = vec![];
    drop(stream.read_to_end(&mut answer));
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answered { status, head: head.to_owned(), body: body.to_owned() })
}

/// A POST with these headers and a length.
#[must_use]
pub fn post(path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    use std::fmt::Write;
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: hooks.example.org\r\nConnection: close\r\n");
    let is_given = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    if !is_given("Content-Length") && !is_given("Transfer-Encoding") {
        write!(head, "Content-Length: {}\r\n", body.len()).expect("a string takes all");
    }
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").expect("a string takes all");
    }
    [head.as_bytes(), b"\r\n", body].concat()
}
