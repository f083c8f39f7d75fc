use crate::imap::ImapError;

/// A server's line is no longer than this, nor is all that a mailbox holds found in more.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

/// What stands in a line by its length is no longer than this.
const LONGEST_LITERAL: usize = 64 * 1024 * 1024;

/// One thing that a server said.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Frame {
    /// Its line, with the length in braces where a literal stood.
    line: String,
    literals: Vec<Vec<u8>>,
}

/// What was fetched of a mail.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Fetched {
    pub(crate) uid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Frame {
    /// Reads the frame that `bytes` begin with, and how long it is; none: it is not whole yet.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, ImapError> {
        let mut frame = Self::default();
        let mut at = 0;
        loop {
            let Some(end) = bytes[at..].windows(2).position(|pair| pair == b"\r\n") else {
                return if bytes.len() - at > LONGEST_LINE { Err(nonsense("a line without end")) } else { Ok(None) };
            };
            let line = &bytes[at..at + end];
            frame.line.push_str(&String::from_utf8_lossy(line));
            at += end + 2;
            let Some(length) = literal(line) else { return Ok(Some((frame, at))) };
            if length > LONGEST_LITERAL || frame.line.len() > LONGEST_LINE {
                return Err(nonsense("more than a mail can be"));
            }
            let Some(held) = bytes.get(at..at + length) else { return Ok(None) };
            frame.literals.push(held.to_vec());
            at += length;
        }
    }

    /// What stands behind `* `.
    fn untagged(&self) -> Option<&str> {
        self.line.strip_prefix("* ")
    }

    /// Whether this ends the command of that tag, and how: `OK`, `NO` or `BAD`, and words.
    pub(crate) fn ends(&self, tag: &str) -> Option<(&str, &str)> {
        let rest = self.line.strip_prefix(tag)?.strip_prefix(' ')?;
        Some(rest.split_once(' ').unwrap_or((rest, "")))
    }

    pub(crate) fn continues(&self) -> bool {
        self.line.starts_with('+')
    }

    pub(crate) fn is_bye(&self) -> bool {
        self.untagged().is_some_and(|rest| begins(rest, "BYE"))
    }

    /// For a person.
    pub(crate) fn words(&self) -> String {
        let rest = self.untagged().unwrap_or(&self.line);
        ow_model::escape::line(rest.split_once(' ').map_or(rest, |(_, words)| words)).into_owned()
    }

    pub(crate) fn capabilities(&self) -> Option<Vec<String>> {
        let rest = self.untagged().filter(|rest| begins(rest, "CAPABILITY"))?;
        Some(rest.split_whitespace().skip(1).map(str::to_owned).collect())
    }

    /// The number in a response code, as `* OK [UIDNEXT 7]`.
    pub(crate) fn code(&self, name: &str) -> Option<u32> {
        let (_, code) = self.untagged()?.split_once('[')?;
        let (code, _) = code.split_once(']')?;
        let (found, number) = code.split_once(' ')?;
        number.trim().parse().ok().filter(|_| found.eq_ignore_ascii_case(name))
    }

    pub(crate) fn found(&self) -> Option<Vec<u32>> {
        let rest = self.untagged().filter(|rest| begins(rest, "SEARCH"))?;
        Some(rest.split_whitespace().skip(1).filter_map(|number| number.parse().ok()).collect())
    }

    pub(crate) fn tells_of_mail(&self) -> bool {
        let Some((number, what)) = self.untagged().and_then(|rest| rest.split_once(' ')) else { return false };
        number.bytes().all(|byte| byte.is_ascii_digit()) && begins(what, "EXISTS")
    }

    pub(crate) fn fetched(&self) -> Option<Fetched> {
        let (number, rest) = self.untagged()?.split_once(' ')?;
        if !number.bytes().all(|byte| byte.is_ascii_digit()) || !begins(rest, "FETCH") {
            return None;
        }
        let items = rest.split_once('(')?.1;
        let mut fetched = Fetched::default();
        let mut literals = self.literals.iter();
        let mut rest = items;
        while let Some((name, after)) = atom(rest) {
            let (value, after) = value(after, &mut literals)?;
            match name.to_ascii_uppercase().as_str() {
                "UID" => fetched.uid = value.number(),
                "RFC822.SIZE" => fetched.size = value.number(),
                name if name.starts_with("BODY[") => fetched.body = value.bytes(),
                _ => {}
            }
            rest = after;
        }
        Some(fetched)
    }
}

fn nonsense(what: &str) -> ImapError {
    ImapError::Nonsense(what.into())
}

fn begins(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
}

/// The length that a line ends with in braces.
fn literal(line: &[u8]) -> Option<usize> {
    let inner = line.strip_suffix(b"}")?;
    let open = inner.iter().rposition(|byte| *byte == b'{')?;
    std::str::from_utf8(&inner[open + 1..]).ok()?.parse().ok()
}

/// The name of an item of a fetch, with what stands in its brackets.
fn atom(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(' ');
    let mut depth = 0_usize;
    let end = text.char_indices().find_map(|(at, letter)| {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ' ' | ')' if depth == 0 => return Some(at),
            _ => {}
        }
        None
    })?;
    (end > 0).then(|| text.split_at(end))
}

enum Value<'a> {
    Word(&'a str),
    Quoted(String),
    Literal(&'a [u8]),
    /// A list, or anything else that is not asked for.
    Other,
}

impl Value<'_> {
    fn number<N: std::str::FromStr>(&self) -> Option<N> {
        match self {
            Self::Word(word) => word.parse().ok(),
            Self::Quoted(_) | Self::Literal(_) | Self::Other => None,
        }
    }

    fn bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Quoted(text) => Some(text.into_bytes()),
            Self::Literal(bytes) => Some(bytes.to_vec()),
            Self::Word(_) | Self::Other => None,
        }
    }
}

/// The value at the beginning of `text`, and what comes after it.
fn value<'a>(text: &'a str, literals: &mut std::slice::Iter<'a, Vec<u8>>) -> Option<(Value<'a>, &'a str)> {
    let text = text.trim_start_matches(' ');
    match text.chars().next()? {
        '"' => quoted(&text[1..]).map(|(inner, rest)| (Value::Quoted(inner), rest)),
        '{' => {
            let (_, rest) = text.split_once('}')?;
            Some((Value::Literal(literals.next()?), rest))
        }
        '(' => {
            let mut rest = &text[1..];
            loop {
                rest = rest.trim_start_matches(' ');
                if let Some(after) = rest.strip_prefix(')') {
                    return Some((Value::Other, after));
                }
                rest = value(rest, literals)?.1;
            }
        }
        _ => {
            let end = text.find([' ', ')']).unwrap_or(text.len());
            (end > 0).then(|| (Value::Word(&text[..end]), &text[end..]))
        }
    }
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let mut inner = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((inner, &text[at + 1..])),
            '\\' => inner.push(letters.next()?.1),
            letter => inner.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Frame {
        let (frame, used) = Frame::read(text.as_bytes()).expect("IMAP").expect("whole");
        assert_eq!(used, text.len());
        frame
    }

    #[test]
    fn a_frame_is_read_once_it_is_whole() {
        let text = "* 3 FETCH (UID 9 BODY[] {12}\r\nSubject: a\r\n FLAGS (\\Seen \"x y\"))\r\n";
        for end in 0..text.len() {
            assert_eq!(Frame::read(&text.as_bytes()[..end]).expect("IMAP"), None, "{end}");
        }
        let fetched = whole(text).fetched().expect("a fetch");
        assert_eq!(fetched, Fetched { uid: Some(9), size: None, body: Some(b"Subject: a\r\n".to_vec()) });
        assert!(Frame::read(b"* 3 FETCH (BODY[] {99999999999}\r\n").is_err());
    }

    #[test]
    fn what_servers_say_is_understood_in_any_order_and_case() {
        let fetched = |text: &str| whole(text).fetched();
        let both = Some(Fetched { uid: Some(4), size: Some(70), body: None });
        assert_eq!(fetched("* 1 FETCH (RFC822.SIZE 70 UID 4)\r\n"), both);
        assert_eq!(fetched("* 1 fetch (FLAGS (\\Recent) uid 4 MODSEQ (12) rfc822.size 70)\r\n"), both);
        let body = |text: &str| fetched(text).and_then(|fetched| fetched.body);
        assert_eq!(body("* 1 FETCH (UID 4 BODY[HEADER] \"a: \\\"b\\\"\")\r\n"), Some(b"a: \"b\"".to_vec()));
        assert_eq!(body("* 1 FETCH (UID 4 BODY[HEADER.FIELDS (A B)] {1}\r\nx)\r\n"), Some(b"x".to_vec()));
        assert_eq!(body("* 1 FETCH (UID 4 BODY[] NIL)\r\n"), None);
        assert_eq!(whole("* SEARCH 5 3 9\r\n").found(), Some(vec![5, 3, 9]));
        assert_eq!(whole("* SEARCH\r\n").found(), Some(vec![]));
        assert_eq!(whole("* OK [UIDVALIDITY 1700000000] UIDs valid\r\n").code("UIDVALIDITY"), Some(1_700_000_000));
        assert!(whole("* 12 EXISTS\r\n").tells_of_mail() && !whole("* 12 EXPUNGE\r\n").tells_of_mail());
        assert!(whole("* BYE idle for too long\r\n").is_bye());
        assert_eq!(whole("a1 NO [AUTH] wrong\r\n").ends("a1"), Some(("NO", "[AUTH] wrong")));
        assert_eq!(whole("a10 OK done\r\n").ends("a1"), None);
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_a_server_says_is_a_panic(text in "\\PC*", head in "\\* [0-9]{1,3} FETCH \\(.{0,40}") {
            for text in [format!("{text}\r\n"), format!("{head}\r\n")] {
                if let Ok(Some((frame, _))) = Frame::read(text.as_bytes()) {
                    let _read = (frame.fetched(), frame.found(), frame.code("UIDNEXT"), frame.words(), frame.capabilities());
                }
            }
        }
    }
}
