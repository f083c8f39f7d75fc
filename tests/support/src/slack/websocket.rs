//! The server's side of a WebSocket (RFC 6455): text and control frames.

use std::io::{self, Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

const LARGEST: u64 = 1024 * 1024;

pub(super) enum Frame {
    Text(String),
    Ping(Vec<u8>),
    Pong,
    Close,
}

/// The answer to a handshake with this key.
pub(super) fn welcome(key: &str) -> String {
    let proof = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let accept = STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, proof.as_bytes()));
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: {accept}\r\n\r\n"
    )
}

/// Reads one whole message; an error where the client breaks the protocol.
pub(super) fn read(reader: &mut impl Read) -> io::Result<Frame> {
    let mut text: Vec<u8> = vec![];
    loop {
        let mut head = [0; 2];
        reader.read_exact(&mut head)?;
        let (is_last, kind) = (head[0] & 0x80 != 0, head[0] & 0x0f);
        if head[0] & 0x70 != 0 {
            return Err(broken("a reserved bit is set"));
        }
        if head[1] & 0x80 == 0 {
            return Err(broken("a client's frame must be masked"));
        }
        let length = match head[1] & 0x7f {
            126 => {
                let mut bytes = [0; 2];
                reader.read_exact(&mut bytes)?;
                u64::from(u16::from_be_bytes(bytes))
            }
            127 => {
                let mut bytes = [0; 8];
                reader.read_exact(&mut bytes)?;
                u64::from_be_bytes(bytes)
            }
            short => u64::from(short),
        };
        if length > LARGEST || (kind >= 8 && (length > 125 || !is_last)) {
            return Err(broken("a frame is too long"));
        }
        let mut mask = [0; 4];
        reader.read_exact(&mut mask)?;
        let mut payload = vec![0; usize::try_from(length).unwrap_or_default()];
        reader.read_exact(&mut payload)?;
        for (byte, key) in payload.iter_mut().zip(mask.into_iter().cycle()) {
            *byte ^= key;
        }
        match kind {
            0 | 1 => {
                text.extend(payload);
                if is_last {
                    return String::from_utf8(text).map(Frame::Text).map_err(|_| broken("text is not UTF-8"));
                }
            }
            8 => return Ok(Frame::Close),
            9 => return Ok(Frame::Ping(payload)),
            10 => return Ok(Frame::Pong),
            _ => return Err(broken("an unknown kind of frame")),
        }
    }
}

pub(super) fn write_text(writer: &mut impl Write, text: &str) -> io::Result<()> {
    write(writer, 1, text.as_bytes())
}

pub(super) fn write_ping(writer: &mut impl Write, what: &str) -> io::Result<()> {
    write(writer, 9, what.as_bytes())
}

pub(super) fn write_pong(writer: &mut impl Write, what: &[u8]) -> io::Result<()> {
    write(writer, 10, what)
}

pub(super) fn write_close(writer: &mut impl Write) -> io::Result<()> {
    write(writer, 8, &1000_u16.to_be_bytes())
}

fn write(writer: &mut impl Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    let mut frame = vec![0x80 | kind];
    match payload.len() {
        short @ 0..=125 => frame.push(u8::try_from(short).unwrap_or_default()),
        medium @ 126..=0xffff => {
            frame.push(126);
            frame.extend(u16::try_from(medium).unwrap_or_default().to_be_bytes());
        }
        long => {
            frame.push(127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend(payload);
    writer.write_all(&frame)
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
