//! Keys, read from the bytes that a terminal sends.

/// What a person pressed or pasted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Key {
    Char(char),
    Alt(char),
    /// With the letter in lower case.
    Ctrl(char),
    Enter,
    /// Alt-Enter, and Shift-Enter where the terminal tells it apart.
    NewLine,
    Tab,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    WordLeft,
    WordRight,
    Escape,
    /// Brackets of the terminal stood around it.
    Paste(String),
    /// A key without a meaning here.
    Other,
}

/// Makes keys of bytes, which come in whatever pieces.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    held: Vec<u8>,
}

const PASTE: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// What the beginning of the held bytes is.
enum Read {
    Key(Key, usize),
    /// Not whole yet.
    Part,
}

impl Decoder {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.held.extend_from_slice(bytes);
        let mut keys = vec![];
        let mut at = 0;
        while at < self.held.len() {
            match read(&self.held[at..]) {
                Read::Key(key, length) => {
                    keys.push(key);
                    at += length;
                }
                Read::Part => break,
            }
        }
        self.held.drain(..at);
        keys
    }

    /// Whether more bytes may belong to what is held.
    pub(super) fn is_within(&self) -> bool {
        !self.held.is_empty()
    }

    /// Nothing more has come for a while: what is held stands alone. A paste is waited for.
    pub(super) fn settle(&mut self) -> Vec<Key> {
        if self.held.is_empty() || self.held.starts_with(PASTE) {
            return vec![];
        }
        let held = std::mem::take(&mut self.held);
        vec![if held == [0x1b] { Key::Escape } else { Key::Other }]
    }
}

fn read(bytes: &[u8]) -> Read {
    match bytes[0] {
        0x1b => escaped(bytes),
        b'\r' => Read::Key(Key::Enter, 1),
        b'\n' => Read::Key(Key::NewLine, 1),
        b'\t' => Read::Key(Key::Tab, 1),
        0x7f | 0x08 => Read::Key(Key::Backspace, 1),
        byte @ 1..=26 => Read::Key(Key::Ctrl(char::from(byte - 1 + b'a')), 1),
        0..0x20 => Read::Key(Key::Other, 1),
        _ => {
            letter(bytes).map_or(Read::Part, |(letter, length)| Read::Key(letter.map_or(Key::Other, Key::Char), length))
        }
    }
}

/// The first character; none within: no UTF-8. None: it is not whole yet.
fn letter(bytes: &[u8]) -> Option<(Option<char>, usize)> {
    let length = match bytes[0] {
        0..0x80 => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Some((None, 1)),
    };
    match std::str::from_utf8(&bytes[..length.min(bytes.len())]) {
        Ok(text) => Some((text.chars().next(), length)),
        Err(why) if why.error_len().is_none() => None,
        Err(_) => Some((None, 1)),
    }
}

fn escaped(bytes: &[u8]) -> Read {
    match bytes.get(1) {
        None => Read::Part,
        Some(b'[') => csi(bytes),
        Some(b'O') => match bytes.get(2) {
            None => Read::Part,
            Some(end) => Read::Key(plain_end(*end), 3),
        },
        Some(b'\r' | b'\n') => Read::Key(Key::NewLine, 2),
        Some(0x7f | 0x08) => Read::Key(Key::Ctrl('w'), 2),
        Some(0x1b) => Read::Key(Key::Escape, 1),
        Some(0..0x20) => Read::Key(Key::Other, 2),
        Some(_) => letter(&bytes[1..])
            .map_or(Read::Part, |(letter, length)| Read::Key(letter.map_or(Key::Other, Key::Alt), length + 1)),
    }
}

/// A control sequence: `ESC [`, parameters, a final byte.
fn csi(bytes: &[u8]) -> Read {
    let Some(length) = bytes.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte)) else {
        // No sequence of a keyboard is as long.
        return if bytes.len() > 32 { Read::Key(Key::Other, bytes.len()) } else { Read::Part };
    };
    let end = length + 2;
    if bytes.starts_with(PASTE) {
        let Some(pasted) = bytes.windows(PASTE_END.len()).position(|window| window == PASTE_END) else {
            return Read::Part;
        };
        return Read::Key(Key::Paste(pasted_text(&bytes[PASTE.len()..pasted])), pasted + PASTE_END.len());
    }
    let parameters = std::str::from_utf8(&bytes[2..end]).unwrap_or_default();
    let mut numbers = parameters.split(';');
    let first = numbers.next().unwrap_or_default();
    // 2 is Shift, 3 Alt, 5 Control.
    let with = numbers.next().unwrap_or("1");
    let key = match (bytes[end], first) {
        (b'C', _) if with != "1" => Key::WordRight,
        (b'D', _) if with != "1" => Key::WordLeft,
        (b'~', "1" | "7") => Key::Home,
        (b'~', "4" | "8") => Key::End,
        (b'~', "3") => Key::Delete,
        (b'u', "13") if with != "1" => Key::NewLine,
        (b'u', "13") => Key::Enter,
        (b'u', "27") => Key::Escape,
        (end, _) => plain_end(end),
    };
    Read::Key(key, end + 1)
}

fn plain_end(end: u8) -> Key {
    match end {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => Key::Other,
    }
}

/// Line ends of any kind are one; other controls are left out.
fn pasted_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|letter| matches!(letter, '\n' | '\t') || !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_terminals_send_for_them() {
        let cases: &[(&str, &[Key])] = &[
            ("a\u{e4}漢", &[Key::Char('a'), Key::Char('ä'), Key::Char('漢')]),
            ("\r\u{3}\u{7f}\t", &[Key::Enter, Key::Ctrl('c'), Key::Backspace, Key::Tab]),
            ("\u{1b}[A\u{1b}OB\u{1b}[1;5C\u{1b}[1;3D", &[Key::Up, Key::Down, Key::WordRight, Key::WordLeft]),
            ("\u{1b}[3~\u{1b}[H\u{1b}[4~", &[Key::Delete, Key::Home, Key::End]),
            ("\u{1b}\r\u{1b}[13;2u\n", &[Key::NewLine, Key::NewLine, Key::NewLine]),
            ("\u{1b}b\u{1b}\u{7f}", &[Key::Alt('b'), Key::Ctrl('w')]),
            ("\u{1b}[200~two\r\nlines\u{1b}[2Jx\u{1b}[201~!", &[Key::Paste("two\nlines[2Jx".into()), Key::Char('!')]),
            ("\u{1b}[?1;2c", &[Key::Other]),
        ];
        for (bytes, keys) in cases {
            assert_eq!(&Decoder::default().feed(bytes.as_bytes()), keys, "{bytes:?}");
            let mut decoder = Decoder::default();
            let one_by_one: Vec<Key> = bytes.bytes().flat_map(|byte| decoder.feed(&[byte])).collect();
            assert_eq!(&one_by_one, keys, "{bytes:?} in pieces");
            assert!(!decoder.is_within());
        }
    }

    #[test]
    fn a_lone_escape_is_the_key_once_nothing_follows() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"\x1b"), []);
        assert!(decoder.is_within());
        assert_eq!(decoder.settle(), [Key::Escape]);
        assert_eq!(decoder.settle(), []);
    }

    #[test]
    fn no_bytes_make_it_fail() {
        for first in 0..=255_u8 {
            for second in 0..=255_u8 {
                let mut decoder = Decoder::default();
                decoder.feed(&[0x1b, first, second, 0xff, b'[']);
                decoder.settle();
                assert!(!decoder.is_within() || decoder.held.starts_with(PASTE));
            }
        }
    }
}
