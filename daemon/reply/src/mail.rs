use jiff::Timestamp;
use mail_parser::{HeaderValue, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use crate::html::visible;
use crate::quote::{Line, Split, marked, split};
use crate::sign_off::called;
use crate::token::tokens;
use crate::words::lines;

/// A mail longer than this is not read.
const LARGEST: usize = 32 * 1024 * 1024;

/// Text beyond this, in one part, is not read, and what was not read whole decides nothing.
const LONGEST: usize = 256 * 1024;

/// Parts within parts deeper than this are not read.
const NESTED: usize = 20;

/// A mail, as far as an answer in it is concerned.
#[derive(Debug)]
pub(crate) struct Mail {
    pub(crate) subject: String,
    pub(crate) content_type: String,
    pub(crate) report_type: String,
    /// The `From` fields as they stand there.
    pub(crate) from_raw: Vec<String>,
    /// The name in it, decoded.
    pub(crate) from_display: String,
    /// The words of the names in `To`.
    pub(crate) to_names: Vec<String>,
    pub(crate) date: Option<Timestamp>,
    /// Has a calendar part that answers or asks.
    pub(crate) invites: bool,
    /// What a program for plain text shows.
    pub(crate) plain: Split,
    /// What a program for HTML shows, where that is something else.
    pub(crate) rich: Option<Split>,
    /// There is an alternative that cannot be read, so nobody knows what the person saw.
    pub(crate) unreadable: bool,
    /// Tokens in what a report returns.
    pub(crate) returned: Vec<String>,
    headers: Vec<(String, String)>,
    parts: Vec<String>,
}

impl Mail {
    /// None if it is no mail, or too long.
    pub(crate) fn read(raw: &[u8]) -> Option<Self> {
        let raw = without_envelope(raw);
        if raw.len() > LARGEST {
            return None;
        }
        let message = MessageParser::default().parse(raw)?;
        let root = message.parts.first()?;
        let headers: Vec<(String, String)> = root
            .headers
            .iter()
            .map(|header| {
                let value = raw.get(header.offset_start as usize..header.offset_end as usize).unwrap_or_default();
                (header.name().to_ascii_lowercase(), unfolded(&String::from_utf8_lossy(value)))
            })
            .collect();
        let mut walk =
            Walk { message: &message, seen: vec![], body: vec![], invites: false, unreadable: false, returned: vec![] };
        walk.part(0, NESTED);
        let rendered = |side: fn(&Block) -> Option<&Vec<Line>>| {
            split(walk.body.iter().filter_map(side).flatten().cloned().collect())
        };
        let plain = rendered(|block| block.plain.as_ref().or(block.rich.as_ref()));
        let both = walk.body.iter().any(|block| block.plain.is_some() && block.rich.is_some());
        let rich = both.then(|| rendered(|block| block.rich.as_ref().or(block.plain.as_ref())));
        let content_type = root.content_type();
        Some(Self {
            subject: message.subject().unwrap_or_default().to_owned(),
            content_type: kind_of(root),
            report_type: content_type
                .and_then(|kind| kind.attribute("report-type"))
                .unwrap_or_default()
                .to_ascii_lowercase(),
            from_raw: headers.iter().filter(|(name, _)| name == "from").map(|(_, value)| value.clone()).collect(),
            from_display: message
                .from()
                .and_then(|from| from.first())
                .and_then(|from| from.name())
                .unwrap_or_default()
                .to_owned(),
            to_names: message
                .to()
                .into_iter()
                .flat_map(mail_parser::Address::iter)
                .flat_map(|to| called(to.name().unwrap_or_default(), to.address().unwrap_or_default()))
                .collect(),
            date: message.date().and_then(|date| Timestamp::from_second(date.to_timestamp()).ok()),
            invites: walk.invites,
            // Of two subjects a person sees one, and not everybody the same.
            unreadable: walk.unreadable || message.header_values("Subject").count() > 1,
            returned: walk.returned,
            parts: walk.seen,
            plain,
            rich,
            headers,
        })
    }

    /// The first field of a name, unfolded.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers_named(name).next()
    }

    /// The fields of a name, from the top.
    pub(crate) fn headers_named(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn header_begins(&self, name: &str, value: &str) -> bool {
        self.headers_named(name).any(|found| found.trim().to_ascii_lowercase().starts_with(value))
    }

    pub(crate) fn has_part(&self, kind: &str) -> bool {
        self.parts.iter().any(|part| part == kind)
    }

    pub(crate) fn forwards(&self) -> bool {
        self.plain.forwards || self.rich.as_ref().is_some_and(|rich| rich.forwards)
    }
}

/// One part of the body, in the forms it comes in.
#[derive(Debug, Default)]
struct Block {
    plain: Option<Vec<Line>>,
    rich: Option<Vec<Line>>,
}

struct Walk<'a> {
    message: &'a Message<'a>,
    seen: Vec<String>,
    body: Vec<Block>,
    invites: bool,
    unreadable: bool,
    returned: Vec<String>,
}

impl Walk<'_> {
    /// Goes through a part that is shown; attached messages and files are not.
    fn part(&mut self, id: usize, depth: usize) {
        let Some(part) = self.message.parts.get(id) else { return };
        let kind = kind_of(part);
        self.seen.push(kind.clone());
        if depth == 0 {
            self.unreadable = true;
            return;
        }
        let attached = part.attachment_name().is_some()
            || part
                .content_disposition()
                .is_some_and(|disposition| disposition.c_type.eq_ignore_ascii_case("attachment"));
        if kind == "text/calendar" {
            let method = part.content_type().is_some_and(|kind| kind.attribute("method").is_some());
            self.invites |= method || !attached;
            return;
        }
        self.unreadable |= !attached && part.text_contents().is_some_and(|text| text.len() > LONGEST);
        match &part.body {
            PartType::Multipart(children) => {
                let children: Vec<usize> = children.iter().map(|child| *child as usize).collect();
                match kind.as_str() {
                    "multipart/alternative" => self.alternative(&children, depth - 1),
                    "multipart/related" => self.related(&children, depth - 1),
                    "multipart/report" => self.report(&children, depth - 1),
                    _ => children.iter().for_each(|child| self.part(*child, depth - 1)),
                }
            }
            PartType::Text(text) if !attached && (kind == "text/plain" || kind.is_empty()) => {
                self.body.push(Block { plain: Some(plain_lines(part, text)), rich: None });
            }
            PartType::Html(text) if !attached => {
                self.body.push(Block { plain: None, rich: Some(visible(cut(text))) });
            }
            // A text that a person sees, and that is not read here.
            _ => self.unreadable |= !attached && kind.starts_with("text/"),
        }
    }

    /// A text, and the pictures in it.
    fn related(&mut self, children: &[usize], depth: usize) {
        let Some((first, rest)) = children.split_first() else { return };
        self.part(*first, depth);
        let parts = rest.iter().filter_map(|child| self.message.parts.get(*child));
        self.unreadable |=
            parts.into_iter().any(|part| kind_of(part).starts_with("text/") && part.attachment_name().is_none());
    }

    /// Several forms of one text.
    fn alternative(&mut self, children: &[usize], depth: usize) {
        let before = std::mem::take(&mut self.body);
        let mut block = Block::default();
        for child in children {
            let known = self.seen.len();
            self.part(*child, depth);
            let said = self.seen[known..]
                .iter()
                .any(|kind| kind == "text/plain" || kind == "text/html" || kind == "text/calendar");
            self.unreadable |= !said && self.seen[known..].iter().any(|kind| kind.starts_with("text/"));
            for found in std::mem::take(&mut self.body) {
                for (have, found) in [(&mut block.plain, found.plain), (&mut block.rich, found.rich)] {
                    if let Some(found) = found {
                        have.get_or_insert_default().extend(found);
                    }
                }
            }
        }
        self.body = before;
        self.body.push(block);
    }

    /// A text, and what a machine says and sends back.
    fn report(&mut self, children: &[usize], depth: usize) {
        for (number, child) in children.iter().enumerate() {
            if number == 0 {
                self.part(*child, depth);
                continue;
            }
            let Some(part) = self.message.parts.get(*child) else { continue };
            self.seen.push(kind_of(part));
            match &part.body {
                PartType::Message(original) => self.original(original),
                PartType::Text(text) => self.returns(&headers_text(text)),
                PartType::Binary(bytes) | PartType::InlineBinary(bytes) => {
                    self.returns(&headers_text(&String::from_utf8_lossy(bytes)));
                }
                PartType::Html(_) | PartType::Multipart(_) => {}
            }
        }
    }

    fn original(&mut self, original: &Message<'_>) {
        self.returns(original.subject().unwrap_or_default());
        for text in original.text_bodies().filter_map(MessagePart::text_contents) {
            self.returns(cut(text));
        }
    }

    fn returns(&mut self, text: &str) {
        for token in tokens(text) {
            if !self.returned.contains(&token) {
                self.returned.push(token);
            }
        }
    }
}

/// Text that may hold headers, with their encoded words read.
fn headers_text(text: &str) -> String {
    let text = cut(text);
    let decoded =
        MessageParser::default().parse(text.as_bytes()).and_then(|message| message.subject().map(str::to_owned));
    format!("{}\n{text}", decoded.unwrap_or_default())
}

fn kind_of(part: &MessagePart<'_>) -> String {
    let named = |kind: &mail_parser::ContentType<'_>| {
        let subtype = kind.c_subtype.as_deref().unwrap_or_default();
        format!("{}/{subtype}", kind.c_type).to_ascii_lowercase()
    };
    match (part.content_type(), &part.body) {
        (Some(kind), _) => named(kind),
        (None, PartType::Message(_)) => "message/rfc822".into(),
        (None, _) => "text/plain".into(),
    }
}

fn plain_lines(part: &MessagePart<'_>, text: &str) -> Vec<Line> {
    let lines: Vec<Line> = lines(cut(text)).into_iter().map(marked).collect();
    let parameter = |name: &str, value: &str| {
        part.content_type().and_then(|kind| kind.attribute(name)).is_some_and(|found| found.eq_ignore_ascii_case(value))
    };
    if parameter("format", "flowed") { flowed(lines, parameter("delsp", "yes")) } else { lines }
}

/// Joins the lines that a blank at their end lets flow on (RFC 3676).
fn flowed(lines: Vec<Line>, delete_blank: bool) -> Vec<Line> {
    let mut joined: Vec<Line> = vec![];
    let mut flows = false;
    for line in lines {
        // A blank before the text keeps it from being taken for a mark.
        let text = if line.depth == 0 { line.text.strip_prefix(' ').unwrap_or(&line.text) } else { &line.text };
        let signature = text == "-- ";
        match joined.last_mut() {
            Some(last) if flows && last.depth == line.depth && !signature => {
                if delete_blank {
                    last.text.pop();
                }
                last.text.push_str(text);
            }
            _ => joined.push(Line { text: text.to_owned(), ..line }),
        }
        flows = text.ends_with(' ') && !signature;
    }
    joined
}

fn cut(text: &str) -> &str {
    if text.len() <= LONGEST { text } else { &text[..text.floor_char_boundary(LONGEST)] }
}

/// The mail itself, without the `From ` line that mail servers put above what they hand to a program.
#[must_use]
pub fn without_envelope(raw: &[u8]) -> &[u8] {
    match raw
        .strip_prefix(b"From ")
        .and_then(|rest| rest.iter().position(|byte| *byte == b'\n').map(|end| &rest[end + 1..]))
    {
        Some(mail) => mail,
        None => raw,
    }
}

/// A header's value on one line.
fn unfolded(value: &str) -> String {
    value.trim().replace("\r\n", "").replace(['\n', '\r'], "")
}

/// The notices among the `In-Reply-To` of a mail, each with its item's id: a notice's Message-ID is `<ow.ID.…@…>`.
pub(crate) fn notices_answered(mail: &Mail) -> Vec<(String, String)> {
    let mut found = vec![];
    for value in mail.headers_named("in-reply-to") {
        for word in value.split(|letter: char| letter.is_whitespace() || letter == '<' || letter == '>') {
            let Some((name, _)) = word.split_once('@') else { continue };
            let Some((id, _)) = name.strip_prefix("ow.").and_then(|rest| rest.split_once('.')) else { continue };
            // Judged as a token is.
            found.extend(tokens(&format!("[ow:{id}]")).into_iter().map(|id| (id, name.to_owned())));
        }
    }
    found
}

/// The ids of the items whose notices a mail answers.
pub(crate) fn replies_to(mail: &Mail) -> Vec<String> {
    notices_answered(mail).into_iter().map(|(id, _)| id).collect()
}

/// The subject as every program may show it: with the encoded words read, folds taken out.
pub(crate) fn subject_tokens(mail: &Mail) -> Vec<String> {
    let mut found = tokens(&mail.subject);
    for raw in mail.headers_named("subject").skip(1) {
        let decoded =
            MessageParser::default().parse(format!("Subject: {raw}\r\n\r\n").as_bytes()).and_then(|message| {
                match message.header("Subject") {
                    Some(HeaderValue::Text(text)) => Some(text.to_string()),
                    _ => None,
                }
            });
        found.extend(tokens(&decoded.unwrap_or_default()));
    }
    found.dedup();
    found
}
