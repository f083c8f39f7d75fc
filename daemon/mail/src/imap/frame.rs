use imap_proto::{AttributeValue, Capability, MailboxDatum, Response, ResponseCode, Status};
use jiff::Timestamp;
use ow_model::escape;

use crate::imap::ImapError;

/// A server's line is no longer than this, nor is all that a mailbox holds found in more.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

/// What stands in a line by its length is no longer than this.
const LONGEST_LITERAL: usize = 64 * 1024 * 1024;

/// One thing that a server said, as far as it is of use here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Frame {
    /// The command of this tag is done, well or not; with words for a person.
    Done {
        tag: String,
        well: bool,
        words: String,
    },
    /// The server waits for more.
    Continue,
    /// The server ends the connection.
    Bye(String),
    Capabilities(Vec<String>),
    /// By it numbers mean the mails that they meant before.
    Validity(u32),
    /// The number that the next mail will have.
    Next(u32),
    /// So many mails are there: one may be new.
    Exists,
    Found(Vec<u32>),
    Fetched(Fetched),
    /// It tells of mails, and cannot be read: what was asked for is not known by it, and is not absent.
    Unread,
    Other,
}

/// What was fetched of a mail.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Fetched {
    pub(crate) uid: Option<u32>,
    pub(crate) size: Option<u64>,
    /// When the server got it.
    pub(crate) arrived: Option<Timestamp>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Frame {
    /// Reads the frame that `bytes` begin with, and how long it is; none: it is not whole yet.
    ///
    /// The grammar is `imap_proto`'s. Where a frame ends is found here, for a parser that is asked anew at each piece that
    /// comes would read a long mail over and over.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, ImapError> {
        let mut at = 0;
        loop {
            let Some(end) = bytes[at..].windows(2).position(|pair| pair == b"\r\n") else {
                return if bytes.len() - at > LONGEST_LINE { Err(nonsense("a line without end")) } else { Ok(None) };
            };
            let line = &bytes[at..at + end];
            at += end + 2;
            let Some(length) = literal(line) else { return Ok(Some((Self::parsed(&bytes[..at]), at))) };
            if length > LONGEST_LITERAL {
                return Err(nonsense("more than a mail can be"));
            }
            if bytes.len() - at < length {
                return Ok(None);
            }
            at += length;
        }
    }

    fn parsed(bytes: &[u8]) -> Self {
        match Response::parse(bytes) {
            Ok((_, Response::Capabilities(all))) => Self::Capabilities(all.iter().map(named).collect()),
            Ok((_, Response::Continue(_))) => Self::Continue,
            Ok((_, Response::Done { tag, status, .. })) => {
                Self::Done { tag: tag.0, well: status == Status::Ok, words: words(bytes) }
            }
            Ok((_, Response::Data { status: Status::Bye, .. })) => Self::Bye(words(bytes)),
            Ok((_, Response::Data { outcome, .. })) => match outcome.code {
                Some(ResponseCode::UidValidity(validity)) => Self::Validity(validity),
                Some(ResponseCode::UidNext(next)) => Self::Next(next),
                _ => Self::Other,
            },
            Ok((_, Response::Fetch(_, all))) => Self::Fetched(fetched(all, bytes)),
            Ok((_, Response::MailboxData(MailboxDatum::Exists(_)))) => Self::Exists,
            Ok((_, Response::MailboxData(MailboxDatum::Search(found)))) => Self::Found(found),
            Ok(_) => Self::Other,
            Err(_) => Self::unparsed(bytes),
        }
    }

    /// Servers leave out the words behind a result, and say what no grammar knows. The end of a command must not be missed.
    fn unparsed(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut parts = text.trim_end().splitn(3, ' ');
        let (tag, status) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let third = parts.next().unwrap_or_default();
        let is = |word: &str| status.eq_ignore_ascii_case(word);
        match tag {
            "*" if is("BYE") => Self::Bye(words(bytes)),
            "*" if is("SEARCH") || third.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("FETCH")) => {
                Self::Unread
            }
            "*" => Self::Other,
            "+" => Self::Continue,
            tag if is("OK") || is("NO") || is("BAD") => {
                Self::Done { tag: tag.to_owned(), well: is("OK"), words: words(bytes) }
            }
            _ => Self::Other,
        }
    }
}

/// What stands behind a status, for a person: whatever it is, it is safe to show.
fn words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let words = text.trim_end().splitn(3, ' ').nth(2).unwrap_or_default();
    escape::line(words).into_owned()
}

fn named(capability: &Capability<'_>) -> String {
    match capability {
        Capability::Imap4rev1 => "IMAP4rev1".into(),
        Capability::Auth(how) => format!("AUTH={how}"),
        Capability::Atom(name) => name.to_string(),
    }
}

fn fetched(all: Vec<AttributeValue<'_>>, frame: &[u8]) -> Fetched {
    let mut fetched = Fetched::default();
    for value in all {
        match value {
            AttributeValue::Uid(uid) => fetched.uid = Some(uid),
            AttributeValue::Rfc822Size(size) => fetched.size = Some(size.into()),
            AttributeValue::InternalDate(date) => {
                fetched.arrived = Timestamp::strptime("%d-%b-%Y %H:%M:%S %z", date.trim()).ok();
            }
            AttributeValue::BodySection { data, .. } => fetched.body = data.map(|data| content(&data, frame)),
            _ => {}
        }
    }
    fetched
}

/// What stands in a frame as it is, or within quotes: there the grammar leaves the backslashes in.
fn content(data: &[u8], frame: &[u8]) -> Vec<u8> {
    let before = data.as_ptr().addr().checked_sub(frame.as_ptr().addr() + 1);
    if before.and_then(|before| frame.get(before)) != Some(&b'"') {
        return data.to_vec();
    }
    let mut is_escaped = false;
    let mut plain = vec![];
    for &byte in data {
        is_escaped = byte == b'\\' && !is_escaped;
        if !is_escaped {
            plain.push(byte);
        }
    }
    plain
}

fn nonsense(what: &str) -> ImapError {
    ImapError::Nonsense(what.into())
}

/// The length that a line ends with in braces.
fn literal(line: &[u8]) -> Option<usize> {
    let inner = line.strip_suffix(b"}")?;
    let open = inner.iter().rposition(|byte| *byte == b'{')?;
    std::str::from_utf8(&inner[open + 1..]).ok()?.parse().ok()
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
        let text = "* 3 FETCH (UID 9 BODY[] {12}\r\nSubject: a\r\n FLAGS (\\Seen \"x\"))\r\n".replace(" \"x\"", "");
        for end in 0..text.len() {
            assert_eq!(Frame::read(&text.as_bytes()[..end]).expect("IMAP"), None, "{end}");
        }
        let fetched = Fetched { uid: Some(9), body: Some(b"Subject: a\r\n".to_vec()), ..Fetched::default() };
        assert_eq!(whole(&text), Frame::Fetched(fetched));
        assert!(Frame::read(b"* 3 FETCH (BODY[] {99999999999}\r\n").is_err());
    }

    #[test]
    fn what_servers_say_is_understood_in_any_order_and_case() {
        let both = Frame::Fetched(Fetched { uid: Some(4), size: Some(70), ..Fetched::default() });
        assert_eq!(whole("* 1 FETCH (RFC822.SIZE 70 UID 4)\r\n"), both);
        assert_eq!(whole("* 1 fetch (FLAGS (\\Recent) uid 4 MODSEQ (12) rfc822.size 70)\r\n"), both);
        assert_eq!(whole("* 1 FETCH (UID 4 SAVEDATE NIL RFC822.SIZE 70)\r\n"), both);
        let body = |text: &str| match whole(text) {
            Frame::Fetched(fetched) => fetched.body,
            other => panic!("{other:?}"),
        };
        assert_eq!(body("* 1 FETCH (UID 4 BODY[HEADER] \"a: \\\"b\\\"\")\r\n"), Some(b"a: \"b\"".to_vec()));
        assert_eq!(body("* 1 FETCH (UID 4 BODY[HEADER.FIELDS (A B)] {1}\r\nx)\r\n"), Some(b"x".to_vec()));
        assert_eq!(body("* 1 FETCH (UID 4 BODY[] NIL)\r\n"), None);
        assert_eq!(body("* 1 FETCH (UID 4 BODY[] {0}\r\n)\r\n"), Some(vec![]));
        let arrived = |text: &str| match whole(text) {
            Frame::Fetched(fetched) => fetched.arrived.map(|at| at.to_string()),
            other => panic!("{other:?}"),
        };
        let at = Some("1996-07-07T09:44:25Z".to_owned());
        assert_eq!(arrived("* 1 FETCH (UID 4 INTERNALDATE \" 7-Jul-1996 02:44:25 -0700\")\r\n"), at);
        assert_eq!(whole("* SEARCH 5 3 9\r\n"), Frame::Found(vec![5, 3, 9]));
        assert_eq!(whole("* SEARCH\r\n"), Frame::Found(vec![]));
        assert_eq!(whole("* OK [UIDVALIDITY 1700000000] UIDs valid\r\n"), Frame::Validity(1_700_000_000));
        assert_eq!(whole("* OK [UIDNEXT 7] Predicted next UID\r\n"), Frame::Next(7));
        assert_eq!((whole("* 12 EXISTS\r\n"), whole("* 12 EXPUNGE\r\n")), (Frame::Exists, Frame::Other));
        assert_eq!(whole("* BYE idle for too long\r\n"), Frame::Bye("idle for too long".into()));
        assert_eq!(whole("+ idling\r\n"), Frame::Continue);
        assert_eq!(whole("+ \r\n"), Frame::Continue);
        let done = |tag: &str, well: bool, words: &str| Frame::Done { tag: tag.into(), well, words: words.into() };
        assert_eq!(whole("a1 NO [AUTH] wrong\r\n"), done("a1", false, "[AUTH] wrong"));
        assert_eq!(whole("a10 OK done\r\n"), done("a10", true, "done"));
        for (text, meant) in [
            ("a2 OK\r\n", done("a2", true, "")),
            ("a3 bad\r\n", done("a3", false, "")),
            ("* BYE\r\n", Frame::Bye(String::new())),
        ] {
            assert_eq!(whole(text), meant, "without words");
        }
        let capabilities = ["IMAP4rev1", "IDLE", "AUTH=PLAIN", "STARTTLS"].map(str::to_owned).to_vec();
        assert_eq!(whole("* CAPABILITY IMAP4rev1 IDLE AUTH=PLAIN STARTTLS\r\n"), Frame::Capabilities(capabilities));
        for text in ["* 3 FETCH (UID 9 BODY[] whatever)\r\n", "* SEARCH 5 three\r\n", "* 3 fetch UID 9\r\n"] {
            assert_eq!(whole(text), Frame::Unread, "a mail is not taken for absent: {text}");
        }
        assert_eq!(whole("* OK [WHATEVER {x] said\r\n"), Frame::Other, "what no grammar knows is passed over");
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_a_server_says_is_a_panic(text in "\\PC*", head in "\\* [0-9]{1,3} FETCH \\(.{0,40}", tagged in "a1 (OK|NO) \\PC{0,20}") {
            for text in [text, head] {
                drop(Frame::read(format!("{text}\r\n").as_bytes()));
            }
            if let Ok(Some((frame, _))) = Frame::read(format!("{tagged}\r\n").as_bytes()) {
                proptest::prop_assert!(matches!(frame, Frame::Done { .. }), "the end of a command is not missed: {:?}", frame);
            }
        }
    }
}
