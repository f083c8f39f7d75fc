//! What a person is told by mail, as MIME: of an item, of several at once, and in answer to their own mail.
//!
//! A notice shows all that is asked or says that it does not, and what would answer it. It holds nothing that a reader
//! would fetch, and no link that decides: those it has open a mail that the person still has to send.

mod choices;
mod render;
mod shown;

use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Body, Mailbox, MultiPart, SinglePart};
use lettre::{Address, Message};
use ow_inbox::wording;
use ow_model::{Item, ItemState, Occasion, escape};
use thiserror::Error;

pub use shown::fits_in_a_mail;

use crate::notice::render::Page;

/// Letters of an item's title that a subject shows.
const TITLE: usize = 100;

/// From whom to whom a mail goes, and in which thread.
#[derive(Clone, Debug)]
pub struct Letter<'a> {
    pub from: &'a Mailbox,
    pub to: &'a Address,
    /// `<…@…>`, fixed before the mail is first sent.
    pub message_id: &'a str,
    /// The Message-IDs of what it follows, oldest first; none: it begins a thread.
    pub thread: &'a [String],
    pub date: Timestamp,
    /// Times are shown in it.
    pub zone: &'a TimeZone,
}

/// Why a notice cannot be written.
#[derive(Debug, Error)]
pub enum LetterError {
    #[error("the mail cannot be put together")]
    Parts(#[from] lettre::error::Error),
    #[error("a digest of no items")]
    Empty,
}

/// The Message-ID of the notice number `number` of an item; replies to it are replies to the item.
#[must_use]
pub fn message_id(item: &Item, number: &str, host: &str) -> String {
    format!("<ow.{}.{number}@{host}>", item.id)
}

/// One item in a mail of its own.
pub fn notice(item: &Item, news: Occasion, letter: &Letter<'_>) -> Result<Message, LetterError> {
    let mut page = Page::default();
    shown::item(&mut page, item, news, letter);
    let begins = news == Occasion::Asked && letter.thread.is_empty();
    let subject = if begins { subject(item) } else { format!("Re: {}", subject(item)) };
    written(&subject, &page, letter, Machine::Generated)
}

/// Several items in one mail; each has links of its own, and a reply to the mail itself names none.
pub fn digest(items: &[(&Item, Occasion)], letter: &Letter<'_>) -> Result<Message, LetterError> {
    let [first, rest @ ..] = items else { return Err(LetterError::Empty) };
    if rest.is_empty() {
        return notice(first.0, first.1, letter);
    }
    let waiting = items.iter().filter(|(item, _)| matches!(item.state, ItemState::Pending)).count();
    let mut page = Page::default();
    page.text(format!(
        "{} items, {waiting} of which wait for an answer. Answer each by its own links, or in a new mail with its token in the \
         subject: a reply to this mail does not say which one it means.",
        items.len()
    ));
    for (item, news) in items {
        page.rule();
        shown::in_digest(&mut page, item, *news, letter);
    }
    written(&format!("{} items in your Inbox", items.len()), &page, letter, Machine::Generated)
}

/// What the sender of a mail is told in its thread, under the subject that they wrote.
pub fn acknowledgement(told: &str, their_subject: &str, letter: &Letter<'_>) -> Result<Message, LetterError> {
    let mut page = Page::default();
    page.text(escape::block(told).into_owned());
    let subject = one_line(their_subject, 2 * TITLE);
    let subject = if is_reply(&subject) { subject } else { format!("Re: {subject}") };
    written(&subject, &page, letter, Machine::Replied)
}

/// The subject of the mail that begins an item's thread.
pub(crate) fn subject(item: &Item) -> String {
    // A bracket of the title's own could make another token.
    let title = one_line(&item.title, TITLE).replace('[', "(").replace(']', ")");
    format!("{}: {title} {}", wording::heading(&item.kind), item.id.token())
}

fn is_reply(subject: &str) -> bool {
    subject.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case("re:"))
}

/// On one line, without what deceives the eye, at most so many letters.
fn one_line(text: &str, most: usize) -> String {
    let plain: String = text.chars().map(|letter| if letter.is_whitespace() { ' ' } else { letter }).collect();
    let safe = escape::line(plain.trim());
    if safe.chars().count() <= most {
        return safe.into_owned();
    }
    let cut: String = safe.chars().take(most - 1).collect();
    format!("{}…", cut.trim_end())
}

/// How far no person wrote a mail (RFC 3834): whoever gets one must not answer it by a program.
#[derive(Clone, Copy, Debug)]
enum Machine {
    Generated,
    Replied,
}

fn written(subject: &str, page: &Page, letter: &Letter<'_>, machine: Machine) -> Result<Message, LetterError> {
    let automatic = match machine {
        Machine::Generated => "auto-generated",
        Machine::Replied => "auto-replied",
    };
    let raw =
        |name: &'static str, value: &str| HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned());
    let mut mail = Message::builder()
        .from(letter.from.clone())
        .to(Mailbox::new(None, letter.to.clone()))
        .subject(subject)
        .date(SystemTime::from(letter.date))
        .message_id(Some(letter.message_id.to_owned()))
        .raw_header(raw("Auto-Submitted", automatic))
        .raw_header(raw("X-Auto-Response-Suppress", "All"));
    if let Some(last) = letter.thread.last() {
        mail = mail.in_reply_to(last.clone()).references(letter.thread.join(" "));
    }
    // Quoted-printable writes each `=` as `=3D`: no content holds this boundary.
    let parts = MultiPart::alternative()
        .boundary("=_owd")
        .singlepart(part(ContentType::TEXT_PLAIN, page.as_text()))
        .singlepart(part(ContentType::TEXT_HTML, page.as_html()));
    Ok(mail.multipart(parts)?)
}

fn part(kind: ContentType, text: String) -> SinglePart {
    let encoding = ContentTransferEncoding::QuotedPrintable;
    // Everything has a form in quoted-printable.
    let body =
        Body::new_with_encoding(text, encoding).unwrap_or_else(|bytes| Body::dangerous_pre_encoded(bytes, encoding));
    SinglePart::builder().header(kind).body(body)
}
