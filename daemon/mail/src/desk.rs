use std::net::SocketAddr;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use ow_inbox::told;
use ow_model::{Answer, AnswerBy, BlobHash, InboxBinding, Item, ItemId, ItemState, Person, Surface, escape};
use ow_reply::{Cause, Context, Explained, Kind, Pending, Phrases, Proof, Received, State};
use ow_store::{NewReply, Reply, ResolveError, Store, StoreError};

use crate::notice::fits_in_a_mail;
use crate::reader::Extent;
use crate::signatures::{Signatures, Signed};

/// Clocks differ by less than this: a signed date counts as later than its item from here on.
const SKEW: SignedDuration = SignedDuration::from_mins(10);

/// Whose mail counts, and how that is proven.
#[derive(Clone, Debug, Default)]
pub struct MailSettings {
    /// The relay whose topmost results are believed.
    pub relay: Option<String>,
    /// Where the keys of signatures are asked for.
    pub dns: Dns,
    pub phrases: Arc<Phrases>,
    /// Everybody, with the addresses they write from, in lower case.
    pub people: Vec<(Person, Vec<String>)>,
}

/// Which DNS server is asked for the keys of signatures.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Dns {
    /// None: signatures prove nothing.
    Off,
    /// Those that this machine asks.
    #[default]
    System,
    At(SocketAddr),
}

/// Where mail is taken.
pub struct Desk<'a> {
    pub settings: &'a MailSettings,
    pub store: &'a dyn Store,
    /// Whether senders are told what became of their mail: owd can send some.
    pub tells: bool,
    /// Whether this person may answer this item.
    pub may_answer: &'a (dyn Fn(&Person, &Item) -> bool + Send + Sync),
}

/// What became of a mail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Taken {
    pub outcome: Outcome,
    /// The item it is about.
    pub item: Option<ItemId>,
    /// `approve`, `deny`, `answer` or `none`: what counted.
    pub decision: &'static str,
    /// For the log and the person whose owd this is; holds no text of the mail.
    pub why: String,
    /// What the sender may be told; none: nothing at all, for a machine sent it, or nobody knows who did.
    pub told: Option<String>,
    /// Where that goes; there whenever something is told.
    pub sender: Option<Correspondent>,
    /// It tells that a notice of the item did not arrive, and why.
    pub bounced: Option<String>,
}

/// A mail as it came, and as it is read.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    pub raw: &'a [u8],
    pub extent: Extent,
    pub mail: &'a Received,
}

/// Who sent a mail, and which.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Correspondent {
    /// In lower case.
    pub address: String,
    pub subject: String,
    pub message_id: Option<String>,
    /// What went before it, oldest first.
    pub references: Vec<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    Done,
    AlreadyDecided,
    Expired,
    Withdrawn,
    NotUnderstood,
    NotEntitled,
    /// It names no item that there is.
    NoItem,
    /// No person wrote it as an answer.
    NoAnswer,
    /// It was none, and tasks run on it.
    Event,
    /// Nothing was decided; it is to be handed in again.
    Later,
}

impl Outcome {
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::AlreadyDecided => "already-decided",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::NotUnderstood => "not-understood",
            Self::NotEntitled => "not-entitled",
            Self::NoItem => "no-item",
            Self::NoAnswer => "no-answer",
            Self::Event => "event",
            Self::Later => "later",
        }
    }
}

impl Desk<'_> {
    /// Reads one mail, and resolves its item if it is an answer to it.
    ///
    /// # Cancel safety
    ///
    /// Resolving is one transaction of the store; a mail handed in again after it is told that it was decided.
    pub async fn take(&self, raw: &[u8], extent: Extent, now: Timestamp) -> Result<Taken, StoreError> {
        let Some(mail) = Received::read(raw) else {
            return Ok(nothing(Outcome::NoAnswer, None, "it is no mail that can be read"));
        };
        let mut taken = self.judge(&Arrived { raw, extent, mail: &mail }, now).await?;
        if taken.told.is_some() {
            taken.sender = correspondent(&mail);
        }
        if taken.item.is_some() && mail.bounces() {
            taken.bounced = reason(raw);
        }
        Ok(taken)
    }

    async fn judge(&self, arrived: &Arrived<'_>, now: Timestamp) -> Result<Taken, StoreError> {
        let Arrived { raw, extent, mail } = *arrived;
        let named = mail.item();
        let item = match named.as_ref().and_then(|id| id.parse().ok()) {
            Some(id) => self.store.item(id).await?,
            None => None,
        };
        let id = item.as_ref().map(|item| item.id);
        if let Some(item) = item.as_ref().filter(|item| matches!(item.state, ItemState::Pending))
            && !self.answers_a_notice_of(mail, item).await?
        {
            return Ok(nothing(Outcome::NoItem, None, "it answers a mail that owd did not send"));
        }
        let entitled: Vec<&(Person, Vec<String>)> = self
            .settings
            .people
            .iter()
            .filter(|(person, _)| item.as_ref().is_none_or(|item| (self.may_answer)(person, item)))
            .collect();
        let approvers: Vec<String> = entitled.iter().flat_map(|(_, addresses)| addresses).cloned().collect();
        if approvers.is_empty() {
            let why = "the configuration names no address that may answer it";
            return Ok(self.not_entitled(arrived, item.as_ref(), why.into()).await);
        }
        let kind = item.as_ref().map_or(Kind::Approval, |item| told::answered_as(&item.kind));
        // An item that there is not would otherwise be taken to wait.
        let known = Pending {
            id: named.filter(|_| item.is_some()).unwrap_or_default(),
            kind: kind.clone(),
            state: item.as_ref().map_or(State::Pending, |item| state_of(&item.state)),
        };
        let explained = mail.explain(&Context {
            pending: &[known],
            kind: &kind,
            approvers: &approvers,
            proof: Proof::Given,
            now,
            phrases: &self.settings.phrases,
        });
        let Explained { decision, answer, comment, why, cause, token: _ } = explained;
        if cause == Cause::NotEntitled {
            return Ok(self.not_entitled(arrived, item.as_ref(), why).await);
        }
        // Nothing is looked up for a machine or a stranger, and nothing is said to one who is not proven.
        if !matches!(cause, Cause::Unasked | Cause::Unreadable)
            && let Err((cause, why)) = self.prove(arrived, item.as_ref()).await
        {
            return Ok(undecided(cause, why, item.as_ref(), &kind));
        }
        if extent == Extent::Head && matches!(cause, Cause::Understood | Cause::NotUnderstood) {
            let told = Some(TOO_LARGE.to_owned());
            return Ok(Taken { told, ..nothing(Outcome::NotUnderstood, id, "it is too large to be read") });
        }
        let answer = match (cause, decision, answer) {
            // Nobody approves by mail what no mail could show.
            (Cause::Understood, "approve", _) if item.as_ref().is_some_and(|item| !fits_in_a_mail(item)) => {
                return Ok(too_long(id));
            }
            (Cause::Understood, "approve", _) => Answer::Once,
            (Cause::Understood, "deny", _) => Answer::Deny { reason: comment },
            (Cause::Understood, "answer", Some(text)) => Answer::Text { text },
            _ => return Ok(undecided(cause, why, item.as_ref(), &kind)),
        };
        let (Some(item), Some(person)) = (item, sender_of(mail, &entitled)) else {
            return Ok(nothing(Outcome::NoItem, id, "it names no item"));
        };
        let by = AnswerBy { person, surface: Surface::Mail };
        let done = Taken {
            outcome: Outcome::Done,
            item: id,
            decision,
            why: format!("{} by {}: {why}", answer.word(), by.person.0),
            told: Some(told::done(&item, &answer)),
            sender: correspondent(mail),
            bounced: None,
        };
        // One fact: a mail that is handled again after a crash finds that its sender is told that it is done.
        let resolved = match acknowledgement(raw, &done).filter(|_| self.tells) {
            Some(reply) => self.store.resolve_and_tell(item.id, &answer, &by, &reply, now).await,
            None => self.store.resolve(item.id, &answer, &by, now).await,
        };
        Ok(match resolved {
            Ok(_) => done,
            Err(ResolveError::Store(error)) => return Err(error),
            Err(error) => refused(&error, item.id),
        })
    }

    /// Whether a mail may be an answer to this item as far as the mail goes that it says it answers: whoever answers another's
    /// mail saw no notice, whatever that mail called itself.
    async fn answers_a_notice_of(&self, mail: &Received, item: &Item) -> Result<bool, StoreError> {
        for (id, name) in mail.answers() {
            if id.parse::<ItemId>().is_ok_and(|id| id == item.id) && self.store.items_told_as(&name).await? != [item.id]
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A person who is known and may not answer this item is told so, and nothing of it; a stranger is told nothing.
    async fn not_entitled(&self, arrived: &Arrived<'_>, item: Option<&Item>, why: String) -> Taken {
        let mail = arrived.mail;
        let sender = mail.sender().map(|sender| sender.address.as_str()).unwrap_or_default();
        let is_known = self.settings.people.iter().any(|(_, addresses)| addresses.iter().any(|known| known == sender));
        let told = is_known && item.is_some() && !mail.is_unasked() && self.prove(arrived, item).await.is_ok();
        Taken {
            told: told.then(|| told::NOT_ENTITLED.to_owned()),
            ..nothing(Outcome::NotEntitled, item.map(|item| item.id), why)
        }
    }

    /// Whether it is proven who sent a mail that is about no item.
    ///
    /// # Errors
    ///
    /// Says why not; [`Cause::Later`] if that could not be told just then.
    pub async fn prove_sender(&self, arrived: &Arrived<'_>) -> Result<(), (Cause, String)> {
        self.prove(arrived, None).await
    }

    /// Whether it is proven who sent a mail: by the relay, or by the sender's own domain.
    async fn prove(&self, arrived: &Arrived<'_>, item: Option<&Item>) -> Result<(), (Cause, String)> {
        let Arrived { raw, extent, mail } = *arrived;
        let by_relay = match self.settings.relay.as_deref() {
            Some(relay) => mail.relayed(relay),
            None => Err((Cause::NotEntitled, "its sender is not proven: `mail.authserv-id` names no relay".into())),
        };
        let Err((cause, why)) = by_relay else { return Ok(()) };
        let server = match self.settings.dns {
            // A signature is over what was not read, too.
            _ if extent == Extent::Head => return Err((cause, why)),
            Dns::Off => return Err((cause, why)),
            Dns::System => None,
            Dns::At(server) => Some(server),
        };
        let address = mail.sender().map(|sender| sender.address.as_str()).unwrap_or_default();
        let signed = match Signatures::new(server) {
            Ok(signatures) => signatures.check(raw, mail, address).await,
            Err(why) => return Err((Cause::Later, format!("this machine's DNS servers cannot be told: {why}"))),
        };
        match signed {
            Signed::Proven => {}
            Signed::Later => return Err((Cause::Later, "the key of its signature could not be had just now".into())),
            Signed::Not(unsigned) => return Err((cause, format!("{why}, and {unsigned}"))),
        }
        match (mail.date(), item) {
            (_, None) => Ok(()),
            (Some(date), Some(item)) if date + SKEW >= item.created_at => Ok(()),
            _ => Err((Cause::NotEntitled, "it was signed before the item was asked".into())),
        }
    }
}

/// What the sender of a mail is told; of one mail once, however often it comes.
#[must_use]
pub fn acknowledgement(raw: &[u8], taken: &Taken) -> Option<NewReply> {
    let (Some(told), Some(sender)) = (&taken.told, &taken.sender) else { return None };
    let Correspondent { address, subject, message_id, references } = sender.clone();
    let key = message_id.clone().unwrap_or_else(|| BlobHash::of(raw).to_string());
    Some(NewReply {
        key: format!("mail:{address}:{key}"),
        binding: InboxBinding::new("mail", &address),
        item: taken.item,
        reply: Reply { subject, text: told.clone(), in_reply_to: message_id, references },
    })
}

fn nothing(outcome: Outcome, item: Option<ItemId>, why: impl Into<String>) -> Taken {
    Taken { outcome, item, decision: "none", why: why.into(), told: None, sender: None, bounced: None }
}

fn too_long(item: Option<ItemId>) -> Taken {
    let why = "the item is too long to be shown whole in a mail";
    Taken { told: item.map(told::too_long), ..nothing(Outcome::NotUnderstood, item, why) }
}

const TOO_LARGE: &str =
    "Nothing was decided: your mail is too large to be read here. Answer with a short one, without its attachments.";

fn no_item(why: &str) -> String {
    format!("Nothing was decided: {why}. Reply to the notice of the item itself, and leave its subject as it is.")
}

fn undecided(cause: Cause, why: String, item: Option<&Item>, kind: &Kind) -> Taken {
    let id = item.map(|item| item.id);
    let (outcome, told) = match cause {
        Cause::Understood | Cause::NotUnderstood => {
            (Outcome::NotUnderstood, Some(told::what_works(&why, kind, Surface::Mail)))
        }
        Cause::Unasked | Cause::Unreadable => (Outcome::NoAnswer, None),
        // Who is not proven is told nothing: the mail would go to someone else.
        Cause::NotEntitled => (Outcome::NotEntitled, None),
        Cause::Later => (Outcome::Later, None),
        Cause::NoItem | Cause::Unknown => (Outcome::NoItem, Some(no_item(&why))),
        Cause::Closed => match item.and_then(|item| told::closed(item).map(|error| (error, item.id))) {
            Some((error, id)) => return refused(&error, id),
            None => (Outcome::NoItem, None),
        },
    };
    Taken { told, ..nothing(outcome, id, why) }
}

/// An answer that came too late, or that the item does not take.
fn refused(error: &ResolveError, item: ItemId) -> Taken {
    let outcome = match error {
        ResolveError::Already { .. } => Outcome::AlreadyDecided,
        ResolveError::Expired { .. } => Outcome::Expired,
        ResolveError::Withdrawn { .. } => Outcome::Withdrawn,
        ResolveError::Unknown { .. } => Outcome::NoItem,
        ResolveError::Misfit { .. }
        | ResolveError::BadEdit { .. }
        | ResolveError::NoRule { .. }
        | ResolveError::Store(_) => Outcome::NotUnderstood,
    };
    let why = error.to_string();
    Taken { told: Some(told::refused(error)), ..nothing(outcome, Some(item), why) }
}

fn correspondent(mail: &Received) -> Option<Correspondent> {
    let ids = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    Some(Correspondent {
        address: mail.sender()?.address.clone(),
        subject: mail.subject().to_owned(),
        message_id: mail.header("message-id").map(|id| id.trim().to_owned()),
        references: ids(mail.header("references").or(mail.header("in-reply-to")).unwrap_or_default()),
    })
}

/// Why another mail did not arrive, as a mail server reports it (RFC 3464); none: it is only late.
fn reason(raw: &[u8]) -> Option<String> {
    const LETTERS: usize = 300;
    let text = String::from_utf8_lossy(raw);
    let field = |name: &str| {
        let line =
            text.lines().find(|line| line.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name)))?;
        Some(line[name.len()..].trim().to_owned())
    };
    if field("action:").is_some_and(|action| !action.eq_ignore_ascii_case("failed")) {
        return None;
    }
    let said = field("diagnostic-code:").or(field("status:")).unwrap_or_else(|| "no reason is given".into());
    Some(escape::line(&said).chars().take(LETTERS).collect())
}

/// The person whose address it came from; proven before.
fn sender_of(mail: &Received, entitled: &[&(Person, Vec<String>)]) -> Option<Person> {
    let sender = mail.sender()?;
    let owner = entitled.iter().find(|(_, addresses)| addresses.contains(&sender.address))?;
    Some(owner.0.clone())
}

fn state_of(state: &ItemState) -> State {
    match state {
        ItemState::Pending => State::Pending,
        ItemState::Resolved(_) | ItemState::Expired { .. } | ItemState::Withdrawn { .. } => {
            State::Closed(state.word().into())
        }
    }
}
