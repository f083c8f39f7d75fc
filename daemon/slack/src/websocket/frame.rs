//! The frames of a WebSocket (RFC 6455, section 5), seen from the client: bytes in, messages out.

/// A message longer than this ends the connection; Slack's are a few kilobytes.
pub(crate) const LONGEST: usize = 4 * 1024 * 1024;
/// A control frame's payload is never longer.
const LONGEST_CONTROL: usize = 125;

/// A whole message, or a control frame.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Message {
    Text(String),
    /// Nothing here speaks binary.
    Binary,
    Ping(Vec<u8>),
    Pong,
    Close,
}

/// How a server broke the protocol; the connection is of no use any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("a frame has reserved bits set")]
    Reserved,
    #[error("a server's frame is masked")]
    Masked,
    #[error("a frame is of an unknown kind")]
    Kind,
    #[error("a control frame is split or too long")]
    Control,
    #[error("a message goes on that never began, or begins within another")]
    Order,
    #[error("a message is longer than {LONGEST} bytes")]
    TooLong,
    #[error("a text is not UTF-8")]
    Text,
}

/// What a client sends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Text,
    Close,
    Ping,
    Pong,
}

/// Makes a client's frame: whole, and masked with these bytes.
pub(crate) fn encode(kind: Kind, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    let code: u8 = match kind {
        Kind::Text => 1,
        Kind::Close => 8,
        Kind::Ping => 9,
        Kind::Pong => 10,
    };
    let mut frame = Vec::with_capacity(payload.len() + 14);
    frame.push(0x80 | code);
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(short), _) if short < 126 => frame.push(0x80 | short),
        (_, Ok(medium)) => {
            frame.push(0x80 | 0x7e);
            frame.extend(medium.to_be_bytes());
        }
        (_, Err(_)) => {
            frame.push(0x80 | 0x7f);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.into_iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

/// Puts a server's messages together from bytes as they come.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    bytes: Vec<u8>,
    /// The message that has begun: whether it is text, and what has come of it.
    begun: Option<(bool, Vec<u8>)>,
}

impl Decoder {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message; none: more bytes are needed.
    pub(crate) fn next(&mut self) -> Result<Option<Message>, Broken> {
        while let Some((head, payload)) = self.frame()? {
            if let Some(message) = self.add(head, payload)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Takes one whole frame off the bytes: its first byte and its payload.
    fn frame(&mut self) -> Result<Option<(u8, Vec<u8>)>, Broken> {
        let [head, length, rest @ ..] = self.bytes.as_slice() else { return Ok(None) };
        if head & 0x70 != 0 {
            return Err(Broken::Reserved);
        }
        if length & 0x80 != 0 {
            return Err(Broken::Masked);
        }
        let (length, wide): (u64, usize) = match length {
            126 => match rest.first_chunk::<2>() {
                Some(bytes) => (u64::from(u16::from_be_bytes(*bytes)), 2),
                None => return Ok(None),
            },
            127 => match rest.first_chunk::<8>() {
                Some(bytes) => (u64::from_be_bytes(*bytes), 8),
                None => return Ok(None),
            },
            short => (u64::from(*short), 0),
        };
        if head & 0x08 != 0 && (head & 0x80 == 0 || length > LONGEST_CONTROL as u64) {
            return Err(Broken::Control);
        }
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= LONGEST) else {
            return Err(Broken::TooLong);
        };
        let Some(payload) = rest.get(wide..wide + length) else { return Ok(None) };
        let taken = (*head, payload.to_vec());
        self.bytes.drain(..2 + wide + length);
        Ok(Some(taken))
    }

    fn add(&mut self, head: u8, payload: Vec<u8>) -> Result<Option<Message>, Broken> {
        let is_last = head & 0x80 != 0;
        let (is_text, whole) = match (head & 0x0f, self.begun.take()) {
            (0, Some((is_text, mut begun))) => {
                begun.extend(payload);
                (is_text, begun)
            }
            (kind @ (1 | 2), None) => (kind == 1, payload),
            (0..=2, _) => return Err(Broken::Order),
            // Control frames may come between the frames of a message.
            (control, begun) => {
                self.begun = begun;
                return match control {
                    8 => Ok(Some(Message::Close)),
                    9 => Ok(Some(Message::Ping(payload))),
                    10 => Ok(Some(Message::Pong)),
                    _ => Err(Broken::Kind),
                };
            }
        };
        if whole.len() > LONGEST {
            return Err(Broken::TooLong);
        }
        if !is_last {
            self.begun = Some((is_text, whole));
            return Ok(None);
        }
        if !is_text {
            return Ok(Some(Message::Binary));
        }
        String::from_utf8(whole).map(|text| Some(Message::Text(text))).map_err(|_| Broken::Text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A server's frame.
    fn server(head: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = encode(Kind::Text, payload, [0; 4]);
        let wide = match frame[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        frame.drain(2 + wide..6 + wide);
        frame[1] &= 0x7f;
        frame[0] = head;
        frame
    }

    fn all(bytes: &[u8]) -> Result<Vec<Message>, Broken> {
        let mut decoder = Decoder::default();
        decoder.push(bytes);
        let mut found = vec![];
        while let Some(message) = decoder.next()? {
            found.push(message);
        }
        Ok(found)
    }

    #[test]
    fn the_examples_of_the_standard_are_read_and_written() {
        assert_eq!(all(&[0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]), Ok(vec![Message::Text("Hello".into())]));
        let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(encode(Kind::Text, b"Hello", [0x37, 0xfa, 0x21, 0x3d]), masked);
        let split = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x89, 0x00, 0x80, 0x02, 0x6c, 0x6f];
        assert_eq!(all(&split), Ok(vec![Message::Ping(vec![]), Message::Text("Hello".into())]));
    }

    #[test]
    fn what_breaks_the_protocol_ends_the_connection() {
        assert_eq!(all(&[0xc1, 0x00]), Err(Broken::Reserved));
        assert_eq!(all(&[0x81, 0x80, 0, 0, 0, 0]), Err(Broken::Masked));
        assert_eq!(all(&[0x83, 0x00]), Err(Broken::Order).or(Err(Broken::Kind)));
        assert_eq!(all(&[0x09, 0x00]), Err(Broken::Control));
        assert_eq!(all(&[0x89, 126, 0, 126]), Err(Broken::Control));
        assert_eq!(all(&[0x80, 0x00]), Err(Broken::Order));
        assert_eq!(all(&[0x01, 0x00, 0x81, 0x00]), Err(Broken::Order));
        assert_eq!(all(&[0x81, 0x01, 0xff]), Err(Broken::Text));
        assert_eq!(all(&[0x81, 127, 0, 0, 0, 1, 0, 0, 0, 0]), Err(Broken::TooLong));
    }

    proptest! {
        #[test]
        fn a_text_comes_whole_however_its_bytes_arrive(text in ".{0,300}", cuts in prop::collection::vec(1_usize..50, 0..20)) {
            let bytes = server(0x81, text.as_bytes());
            let mut decoder = Decoder::default();
            let mut rest = bytes.as_slice();
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                decoder.push(now);
                rest = later;
                if !rest.is_empty() {
                    prop_assert_eq!(decoder.next(), Ok(None));
                }
            }
            decoder.push(rest);
            prop_assert_eq!(decoder.next(), Ok(Some(Message::Text(text))));
            prop_assert_eq!(decoder.next(), Ok(None));
        }

        #[test]
        fn no_bytes_bring_it_down(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(all(&bytes));
        }
    }
}
