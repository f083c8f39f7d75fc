//! Mail signed by a real signer, with keys from a DNS server on loopback.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mail_auth::common::crypto::Ed25519Key;
use mail_auth::common::headers::HeaderWriter;
use mail_auth::dkim::DkimSigner;

/// A domain that signs its mail.
#[derive(Debug)]
pub struct Domain {
    key: Vec<u8>,
    /// Questions that are still to fail.
    failing: Arc<AtomicU32>,
    /// What it answers instead of its key.
    other: Arc<Mutex<Option<Other>>>,
    address: SocketAddr,
}

/// What a DNS server says that knows no such key.
#[derive(Clone, Debug)]
pub enum Other {
    /// There is no such name.
    Nothing,
    /// Some other text.
    Text(String),
}

impl Default for Domain {
    fn default() -> Self {
        Self::new()
    }
}

impl Domain {
    /// # Panics
    ///
    /// When there is no socket on loopback.
    #[must_use]
    pub fn new() -> Self {
        let key = Ed25519Key::generate_pkcs8().expect("a key");
        let public = Ed25519Key::from_pkcs8_der(&key).expect("a key").public_key();
        let text = format!("v=DKIM1; k=ed25519; p={}", STANDARD.encode(public));
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = socket.local_addr().expect("an address");
        let failing = Arc::new(AtomicU32::new(0));
        let left = Arc::clone(&failing);
        let other: Arc<Mutex<Option<Other>>> = Arc::default();
        let instead = Arc::clone(&other);
        thread::spawn(move || {
            let mut packet = [0; 2048];
            while let Ok((length, from)) = socket.recv_from(&mut packet) {
                let fails = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
                // An asker that is gone needs no answer.
                let other = instead.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let (code, text) = match other {
                    _ if fails => (2, None),
                    Some(Other::Nothing) => (3, None),
                    Some(Other::Text(other)) => (0, Some(other)),
                    None => (0, Some(text.clone())),
                };
                drop(socket.send_to(&answer(&packet[..length], code, text.as_ref()), from));
            }
        });
        Self { key, failing, other, address }
    }

    /// The DNS server that knows its key.
    #[must_use]
    pub const fn dns(&self) -> SocketAddr {
        self.address
    }

    /// The next so many questions get no answer that helps.
    pub fn fail(&self, questions: u32) {
        self.failing.store(questions, Ordering::SeqCst);
    }

    /// From now on it answers that, or its key again.
    pub fn answer(&self, other: Option<Other>) {
        *self.other.lock().unwrap_or_else(PoisonError::into_inner) = other;
    }

    /// A mail from an address of `example.org`, signed; `head` are further headers, each with its line end.
    ///
    /// # Panics
    ///
    /// When it cannot be signed.
    #[must_use]
    pub fn mail(&self, from: &str, subject: &str, date: &str, head: &str, text: &str) -> String {
        let mail = format!(
            "From: {from}\r\nTo: owd@example.net\r\nSubject: {subject}\r\nDate: {date}\r\n{head}MIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset=utf-8\r\n\r\n{}",
            text.replace('\n', "\r\n")
        );
        let key = Ed25519Key::from_pkcs8_der(&self.key).expect("a key");
        let headers = ["From", "Subject", "Date", "In-Reply-To", "Message-ID", "To", "References"];
        let signer = DkimSigner::from_key(key).domain("example.org").selector("s").headers(headers);
        format!("{}{mail}", signer.sign(mail.as_bytes()).expect("a signature").to_header())
    }
}

/// Header and question repeated, and a text record, if there is one.
fn answer(question: &[u8], code: u8, text: Option<&String>) -> Vec<u8> {
    let name_end = question[12..].iter().position(|byte| *byte == 0).expect("a name") + 13;
    let answers = u8::from(text.is_some());
    let mut reply = vec![question[0], question[1], 0x81, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0];
    reply.extend(&question[12..name_end + 4]);
    if let Some(text) = text {
        let length = u8::try_from(text.len()).expect("a short text");
        reply.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60, 0, length + 1, length]);
        reply.extend(text.as_bytes());
    }
    reply
}
