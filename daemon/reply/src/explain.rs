use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::grammar::{Decision, Kind, Reading, read_of};
use crate::mail::{Mail, notices_answered, replies_to, subject_tokens};
use crate::phrase::Phrases;
use crate::quote::{Split, marked, split};
use crate::results::{Dmarc, dmarc};
use crate::sender::{Sender, sender};
use crate::sign_off::{Signer, names_of};
use crate::token::{tokens, without_tokens};
use crate::unasked::{Unasked, is_news, unasked};
use crate::words::lines;

/// What a message says that a reader of answers has to know, or why it says nothing.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Explained {
    /// The item that the message is about.
    pub token: Option<String>,
    pub decision: &'static str,
    pub answer: Option<String>,
    pub comment: Option<String>,
    pub why: String,
    #[serde(skip)]
    pub cause: Cause,
}

/// What kind of reason stands behind what a message decides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// It was read: it decides something.
    Understood,
    /// It was read, and it may mean anything.
    NotUnderstood,
    /// Nobody wrote it as an answer: a machine's mail, a forward.
    Unasked,
    /// It is not from one who may answer, or that is not proven.
    NotEntitled,
    /// Whether it is could not be told just now.
    Later,
    /// It names no item, or several.
    NoItem,
    /// It names an item that there is not.
    Unknown,
    /// Its item was decided, expired or was withdrawn before.
    Closed,
    /// It is no mail.
    Unreadable,
}

/// A message as it came.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// A whole mail.
    Mail(&'a [u8]),
    /// What a person wrote, without a mail around it; nobody knows who, so that no name signs it.
    Text(&'a str),
    /// The same of a person whose name is known.
    TextOf { name: &'a str, text: &'a str },
}

/// An item that waits, or did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pending {
    pub id: String,
    pub kind: Kind,
    pub state: State,
}

/// Whether an item can still be answered; otherwise the word for how it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum State {
    Pending,
    Closed(String),
}

/// How it is proven who sent a mail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Proof<'a> {
    /// The topmost `Authentication-Results` of the relay of that name tells.
    Relay(&'a str),
    /// It is proven already, or is not asked for.
    Given,
}

/// Against what a message is read.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The items there are; none: whatever item the message names is taken to wait, and to be of `kind`.
    pub pending: &'a [Pending],
    pub kind: &'a Kind,
    /// Whose mail counts; empty: everybody's.
    pub approvers: &'a [String],
    pub proof: Proof<'a>,
    pub now: Timestamp,
    pub phrases: &'a Phrases,
}

/// Says which item a message is about and what it decides.
#[must_use]
pub fn explain(message: Message<'_>, context: &Context<'_>) -> Explained {
    match message {
        Message::Mail(raw) => match Received::read(raw) {
            Some(mail) => mail.explain(context),
            None => nothing(Cause::Unreadable, None, "it is no mail that can be read"),
        },
        Message::Text(text) => typed(text, "", context),
        Message::TextOf { name, text } => typed(text, name, context),
    }
}

/// A mail that is read once, before it is known against what.
#[derive(Debug)]
pub struct Received {
    mail: Mail,
    sender: Option<Sender>,
}

impl Received {
    /// None if it is no mail, or too long to be an answer.
    #[must_use]
    pub fn read(raw: &[u8]) -> Option<Self> {
        let mail = Mail::read(raw)?;
        let raw: Vec<&str> = mail.from_raw.iter().map(String::as_str).collect();
        let sender = sender(&raw, &mail.from_display);
        Some(Self { mail, sender })
    }

    /// The id of the one item that it names.
    #[must_use]
    pub fn item(&self) -> Option<String> {
        match item_of(&self.mail) {
            Named::One(token) => Some(token),
            Named::None | Named::Several => None,
        }
    }

    /// Whether it names several items, and does not say which one it means.
    #[must_use]
    pub fn names_several(&self) -> bool {
        matches!(item_of(&self.mail), Named::Several)
    }

    /// The notices that it says it answers: each item's id with the notice's Message-ID up to its `@`. Whether there ever
    /// was such a notice is another question.
    #[must_use]
    pub fn answers(&self) -> Vec<(String, String)> {
        notices_answered(&self.mail)
    }

    /// Whether it stands in a thread with what owd told somebody; what a task has sent begins threads of its own.
    #[must_use]
    pub fn is_in_thread_of_a_notice(&self) -> bool {
        let ids = ["in-reply-to", "references"].into_iter().flat_map(|name| self.mail.headers_named(name));
        let mut words = ids.flat_map(|value| value.split(|letter: char| letter.is_whitespace() || letter == '<'));
        words.any(|id| id.starts_with("ow.") || id.starts_with("owd.") && !id.starts_with("owd.sent."))
    }

    /// Whether nobody wrote it as an answer: a machine's mail, a forward.
    #[must_use]
    pub fn is_unasked(&self) -> bool {
        unasked(&self.mail).is_some()
    }

    /// Whether a program sent it because a mail came, or was read, or did not arrive. News that a program writes of its own
    /// accord is something else.
    #[must_use]
    pub fn reacts(&self) -> bool {
        match unasked(&self.mail) {
            Some(Unasked::Bounce | Unasked::Receipt) => true,
            Some(Unasked::AutoReply) => !is_news(&self.mail),
            Some(Unasked::Calendar | Unasked::Forward | Unasked::Reaction) | None => false,
        }
    }

    /// Who it says it is from; whether that is true is another question.
    #[must_use]
    pub fn sender(&self) -> Option<&Sender> {
        self.sender.as_ref()
    }

    /// Decoded.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.mail.subject
    }

    /// The first field of a name, as it stands in its head, unfolded; the name is in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.mail.header(name)
    }

    /// Whether it tells that another mail did not arrive.
    #[must_use]
    pub fn bounces(&self) -> bool {
        unasked(&self.mail) == Some(Unasked::Bounce)
    }

    /// When it says it was written.
    #[must_use]
    pub fn date(&self) -> Option<Timestamp> {
        self.mail.date
    }

    /// How many fields of that name stand in its head; the name is in lower case.
    #[must_use]
    pub fn count(&self, header: &str) -> usize {
        self.mail.headers_named(header).count()
    }

    /// Whether the topmost results, from the relay of that name, prove the sender's domain.
    ///
    /// # Errors
    ///
    /// Says why not; [`Cause::Later`] if the relay could not tell just then.
    pub fn relayed(&self, relay: &str) -> Result<(), (Cause, String)> {
        let domain = self.sender.as_ref().and_then(|from| from.address.rsplit('@').next()).unwrap_or_default();
        relayed(&self.mail, relay, domain)
    }

    /// Says which item it is about and what it decides.
    #[must_use]
    pub fn explain(&self, context: &Context<'_>) -> Explained {
        mailed(&self.mail, self.sender.as_ref(), context)
    }
}

fn nothing(cause: Cause, token: Option<String>, why: impl Into<String>) -> Explained {
    Explained { token, decision: "none", answer: None, comment: None, why: why.into(), cause }
}

fn typed(text: &str, name: &str, context: &Context<'_>) -> Explained {
    let split = split(lines(text).into_iter().map(marked).collect());
    let named = one_of(
        &[tokens(&split.signed)].into_iter().chain(split.quoted.iter().map(|text| tokens(text))).collect::<Vec<_>>(),
    );
    let token = match (named, context.pending) {
        (Named::One(token), _) => Some(token),
        (Named::None, []) => None,
        (Named::None, [only]) => Some(only.id.clone()),
        (Named::None, _) => return nothing(Cause::NoItem, None, "it names no item, and several wait"),
        (Named::Several, _) => return ambiguous(&split),
    };
    let kind = match &token {
        Some(token) => match kind_of(token, context) {
            Ok(kind) => kind,
            Err((cause, why)) => return nothing(cause, Some(token.clone()), why),
        },
        None => context.kind,
    };
    let names = names_of(name, "");
    let signer = Signer { names: &names, ..Signer::default() };
    said(token, read_of(without_tokens(&split.new).as_str(), kind, &signer, context.phrases))
}

fn mailed(mail: &Mail, from: Option<&Sender>, context: &Context<'_>) -> Explained {
    let named = item_of(mail);
    let token = match &named {
        Named::One(token) => Some(token.clone()),
        Named::None | Named::Several => None,
    };
    if let Some(unasked) = unasked(mail) {
        return nothing(Cause::Unasked, token, unasked.words());
    }
    if let Err((cause, why)) = entitled(mail, from, context) {
        return nothing(cause, token, why);
    }
    let token = match named {
        Named::One(token) => token,
        Named::Several => return ambiguous(&mail.plain),
        Named::None => {
            return Explained { comment: comment(&mail.plain), ..nothing(Cause::NoItem, None, "it names no item") };
        }
    };
    let kind = match kind_of(&token, context) {
        Ok(kind) => kind,
        Err((cause, why)) => return Explained { comment: comment(&mail.plain), ..nothing(cause, Some(token), why) },
    };
    let signer = from.map_or(Signer::default(), |from| Signer {
        names: &from.names,
        domain: from.address.rsplit('@').next().unwrap_or_default(),
        writes_to: &mail.to_names,
    });
    let read = |split: &Split| read_of(without_tokens(&split.new).as_str(), kind, &signer, context.phrases);
    // Of HTML alone nobody can tell whether it quotes there; a plain form beside it has marks.
    let alone = |split: &Split| {
        let reading = read(split);
        if split.perhaps { doubted(reading, "what it says stands in an element for quotes") } else { reading }
    };
    let plain = alone(&mail.plain);
    let only_rich = plain.comment.is_none() && plain.decision == Decision::None;
    let reading = match &mail.rich {
        None => plain,
        Some(rich) if only_rich => alone(rich),
        Some(rich) => agreed(plain, &read(rich)),
    };
    said(
        Some(token),
        if mail.unreadable { doubted(reading, "there is more to it than can be read here") } else { reading },
    )
}

/// What both forms of a text say; nothing if they say different things.
fn agreed(plain: Reading, rich: &Reading) -> Reading {
    let same = plain.decision == rich.decision
        && match (&plain.answer, &rich.answer) {
            (Some(plain), Some(rich)) => letters(plain) == letters(rich),
            (one, other) => one.is_none() && other.is_none(),
        };
    if same { plain } else { doubted(plain, "its plain text and its HTML say different things") }
}

/// The letters and digits of a text, without links, for forms of one text differ in blanks and stars.
fn letters(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !word.contains("://"));
    words.flat_map(str::chars).filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn doubted(reading: Reading, why: &str) -> Reading {
    if reading.decision == Decision::None {
        return reading;
    }
    let comment = reading.answer.or(reading.comment);
    Reading { decision: Decision::None, answer: None, comment, why: why.to_owned() }
}

fn said(token: Option<String>, reading: Reading) -> Explained {
    let Reading { decision, answer, comment, why } = reading;
    let cause = if decision == Decision::None { Cause::NotUnderstood } else { Cause::Understood };
    let decision = match decision {
        Decision::Approve => "approve",
        Decision::Deny => "deny",
        Decision::Answer => "answer",
        Decision::None => "none",
    };
    Explained { token, decision, answer, comment, why, cause }
}

fn comment(split: &Split) -> Option<String> {
    Some(without_tokens(&split.new).trim().to_owned()).filter(|text| !text.is_empty())
}

fn ambiguous(split: &Split) -> Explained {
    Explained { comment: comment(split), ..nothing(Cause::NoItem, None, "it names several items: say which one") }
}

enum Named {
    One(String),
    Several,
    None,
}

/// The item that a mail is about. What the person wrote comes first, then what was answered, the subject, the outermost
/// quote that names one; several on one level name none.
fn item_of(mail: &Mail) -> Named {
    let forms = || std::iter::once(&mail.plain).chain(&mail.rich);
    let mut levels = vec![replies_to(mail), subject_tokens(mail)];
    let written: Vec<String> = distinct(forms().flat_map(|form| tokens(&form.signed)));
    let deepest = forms().map(|form| form.quoted.len()).max().unwrap_or(0);
    for depth in 0..deepest {
        levels.push(distinct(forms().filter_map(|form| form.quoted.get(depth)).flat_map(|text| tokens(text))));
    }
    levels.push(mail.returned.clone());
    let rest = one_of(&levels);
    match (written.as_slice(), rest) {
        ([], rest) => rest,
        // Who writes one item's token under the notice of another leaves in doubt which is meant.
        ([written], Named::One(named)) if *written != named && !levels[..2].iter().all(Vec::is_empty) => Named::Several,
        ([written], _) => Named::One(written.clone()),
        _ => Named::Several,
    }
}

fn distinct(found: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = vec![];
    for token in found {
        if !kept.contains(&token) {
            kept.push(token);
        }
    }
    kept
}

fn one_of(levels: &[Vec<String>]) -> Named {
    match levels.iter().find(|level| !level.is_empty()).map(Vec::as_slice) {
        None => Named::None,
        Some([token]) => Named::One(token.clone()),
        Some(_) => Named::Several,
    }
}

/// Of which kind the item is, if it still waits.
fn kind_of<'a>(token: &str, context: &Context<'a>) -> Result<&'a Kind, (Cause, String)> {
    if context.pending.is_empty() {
        return Ok(context.kind);
    }
    let Some(item) = context.pending.iter().find(|item| item.id.eq_ignore_ascii_case(token)) else {
        return Err((Cause::Unknown, format!("there is no item `{token}`")));
    };
    match &item.state {
        State::Pending => Ok(&item.kind),
        State::Closed(state) => Err((Cause::Closed, format!("the item is {state} already"))),
    }
}

/// Whether the sender may answer, as far as the mail can prove it.
fn entitled(mail: &Mail, from: Option<&Sender>, context: &Context<'_>) -> Result<(), (Cause, String)> {
    /// Clocks differ by less than this.
    const AHEAD: SignedDuration = SignedDuration::from_hours(24);
    if context.approvers.is_empty() && context.proof == Proof::Given {
        return Ok(());
    }
    let refused = |why: String| Err((Cause::NotEntitled, why));
    let Some(from) = from else { return refused("it is not from exactly one address".into()) };
    let known = |approver: &String| approver.trim().eq_ignore_ascii_case(&from.address);
    if !context.approvers.is_empty() && !context.approvers.iter().any(known) {
        return refused(format!("`{}` may not answer this item", from.address));
    }
    if mail.date.is_some_and(|date| date.duration_since(context.now) > AHEAD) {
        return refused("it is dated in the future".into());
    }
    match context.proof {
        Proof::Relay(relay) => relayed(mail, relay, from.address.rsplit('@').next().unwrap_or_default()),
        Proof::Given => Ok(()),
    }
}

fn relayed(mail: &Mail, authserv: &str, domain: &str) -> Result<(), (Cause, String)> {
    let refused = |why: String| Err((Cause::NotEntitled, why));
    let Some(topmost) = mail.header("authentication-results") else {
        return refused(format!("its sender is not proven: there are no results of `{authserv}`"));
    };
    match dmarc(topmost, authserv, domain) {
        Dmarc::Pass => Ok(()),
        Dmarc::Later => Err((Cause::Later, "its sender could not be checked just now; try again".into())),
        Dmarc::Not(why) => refused(format!("its sender is not proven: {why}")),
    }
}
