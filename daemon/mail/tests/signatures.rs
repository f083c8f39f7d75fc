//! Signatures made by a real signer, with keys from a DNS server on loopback.

use std::net::{SocketAddr, UdpSocket};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mail_auth::common::crypto::Ed25519Key;
use mail_auth::common::headers::HeaderWriter;
use mail_auth::dkim::DkimSigner;
use ow_mail::{Signatures, Signed};
use ow_reply::Received;

/// How the server answers.
#[derive(Clone)]
enum Zone {
    Key(String),
    Missing,
    Failing,
}

/// A DNS server that answers every question in the same way, until the test ends.
fn dns(zone: Zone) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = socket.local_addr().expect("an address");
    thread::spawn(move || {
        let mut packet = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            // A socket that is gone is the asker's matter.
            drop(socket.send_to(&answer(&packet[..length], &zone), from));
        }
    });
    address
}

/// Header and question repeated, and a text record.
fn answer(question: &[u8], zone: &Zone) -> Vec<u8> {
    let name_end = question[12..].iter().position(|byte| *byte == 0).expect("a name") + 13;
    let (code, answers) = match zone {
        Zone::Key(_) => (0, 1),
        Zone::Missing => (3, 0),
        Zone::Failing => (2, 0),
    };
    let mut reply = vec![question[0], question[1], 0x81, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0];
    reply.extend(&question[12..name_end + 4]);
    if let Zone::Key(text) = zone {
        let length = u8::try_from(text.len()).expect("a short text");
        reply.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60, 0, length + 1, length]);
        reply.extend(text.as_bytes());
    }
    reply
}

const HEADERS: [&str; 5] = ["From", "Subject", "Date", "In-Reply-To", "Message-ID"];

const MAIL: &str = "From: Ada <ada@example.org>\r\nTo: owd@example.net\r\nSubject: Re: [ow:3f9c2a71b4de]\r\nDate: Tue, 3 Mar 2026 09:20:11 +0100\r\n\
    In-Reply-To: <n1@example.net>\r\nMessage-ID: <m1@example.org>\r\n\r\napprove\r\n\r\n-- \r\nAda\r\n";

/// The mail, signed for `domain` over `headers`, and the zone that holds the key.
fn signed(mail: &str, domain: &str, headers: &[&'static str], only_begins: bool) -> (String, Zone) {
    let key = Ed25519Key::from_pkcs8_der(&Ed25519Key::generate_pkcs8().expect("a key")).expect("a key");
    let zone = Zone::Key(format!("v=DKIM1; k=ed25519; p={}", STANDARD.encode(key.public_key())));
    let signer = DkimSigner::from_key(key).domain(domain.to_owned()).selector("s").headers(headers.iter().copied());
    let signer = if only_begins { signer.body_length(true) } else { signer };
    let signature = signer.sign(mail.as_bytes()).expect("a signature").to_header();
    (format!("{signature}{mail}"), zone)
}

async fn check(mail: &str, zone: Zone) -> Signed {
    let received = Received::read(mail.as_bytes()).expect("a mail");
    let address = received.sender().expect("a sender").address.clone();
    Signatures::new(Some(dns(zone))).expect("a resolver").check(mail.as_bytes(), &received, &address).await
}

#[tokio::test]
async fn a_signature_of_the_senders_domain_over_what_is_read_proves() {
    let (mail, zone) = signed(MAIL, "example.org", &HEADERS, false);
    assert_eq!(check(&mail, zone.clone()).await, Signed::Proven);
    // As a mail server hands it to a program.
    let handed = format!("From ada@example.org Tue Mar  3 09:20:12 2026\n{}", mail.replace("\r\n", "\n"));
    assert_eq!(check(&handed, zone).await, Signed::Proven);
    let (mail, zone) = signed(&MAIL.replace("ada@example.org", "ada@mail.example.org"), "example.org", &HEADERS, false);
    assert_eq!(check(&mail, zone).await, Signed::Proven, "a parent of the sender's domain");
}

#[tokio::test]
async fn what_is_changed_unsigned_or_anothers_proves_nothing() {
    let (mail, zone) = signed(MAIL, "example.org", &HEADERS, false);
    for changed in [
        mail.replace("approve", "approve it"),
        mail.replace("Re: [ow:3f9c2a71b4de]", "Re: [ow:3f9c2a71b4df]"),
        mail.replace("Ada <ada@", "Ada <eve@"),
        mail.replace("09:20:11", "09:20:12"),
        format!("Subject: another\r\n{mail}"),
        format!("In-Reply-To: <other@example.net>\r\n{mail}"),
        MAIL.to_owned(),
    ] {
        assert!(matches!(check(&changed, zone.clone()).await, Signed::Not(_)), "{changed}");
    }
    for left_out in ["From", "Subject", "Date", "In-Reply-To"] {
        let headers: Vec<&'static str> = HEADERS.into_iter().filter(|name| *name != left_out).collect();
        let (mail, zone) = signed(MAIL, "example.org", &headers, false);
        assert!(matches!(check(&mail, zone).await, Signed::Not(_)), "{left_out}");
    }
    for other in ["bad.example", "org", "ample.org", "mail.example.org"] {
        let (mail, zone) = signed(MAIL, other, &HEADERS, false);
        assert!(matches!(check(&mail, zone).await, Signed::Not(_)), "{other}");
    }
    let (mail, zone) = signed(MAIL, "example.org", &HEADERS, true);
    assert!(matches!(check(&mail, zone.clone()).await, Signed::Not(_)), "only a part of the body");
    assert!(matches!(check(&format!("{mail}more\r\n"), zone).await, Signed::Not(_)), "text behind that part");
}

#[tokio::test]
async fn a_missing_key_is_no_proof_and_a_failing_dns_is_later() {
    let (mail, _) = signed(MAIL, "example.org", &HEADERS, false);
    assert!(matches!(check(&mail, Zone::Missing).await, Signed::Not(_)));
    assert_eq!(check(&mail, Zone::Failing).await, Signed::Later);
    let (_, other_key) = signed(MAIL, "example.org", &HEADERS, false);
    assert!(matches!(check(&mail, other_key).await, Signed::Not(_)));
}
