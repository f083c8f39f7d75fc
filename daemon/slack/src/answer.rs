//! From what a person did in Slack to what becomes of an item: pure, and in doubt nothing.

use jiff::Timestamp;
use ow_inbox::{told, wording};
use ow_model::{Answer, Item, ItemKind, ItemState, Question, Surface};
use ow_reply::{Cause, Context, Explained, Kind, Message, Pending, Phrases, Proof, State, explain};
use serde_json::Value;

use crate::event::{Place, Press, Submit, Written};
use crate::{notice, text};

/// Items that are listed where one is asked for.
const LISTED: usize = 10;

/// How a person's words are read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// The bot's user id.
    pub bot: &'a str,
    pub phrases: &'a Phrases,
    pub now: Timestamp,
}

/// Which item a message may be about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum About {
    /// It holds the token of one.
    Token(String),
    /// It is in the thread of another message, perhaps a notice.
    Thread(Place),
    /// It holds several tokens.
    Several,
    Nothing,
}

/// What is to be done about something that a person did.
#[derive(Clone, Debug, PartialEq)]
pub enum Decided {
    /// They answered the item.
    Answer(Answer),
    /// They want to say more: a modal is to be opened.
    Ask(Modal),
    /// They want to see all of it.
    Show,
    /// Nothing is decided, and they alone are told why.
    Tell(String),
    /// It is no answer and needs none.
    Nothing,
}

/// What a modal is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Modal {
    /// Why it is denied.
    Reason,
    /// Other arguments for the call.
    Edit,
    /// Answers to questions.
    Answer,
}

impl Modal {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Reason => "reason",
            Self::Edit => "edit",
            Self::Answer => "answer",
        }
    }
}

/// How a message came to its item.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// It stands in the thread of its notice, where people may also just talk.
    Thread,
    /// It names the item.
    Token,
    /// It was written to the app alone, where one item waited.
    Alone,
}

/// What a message means that names no item and is in no notice's thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Alone {
    /// An answer, or what was to be one, to this item.
    Item(Box<Item>),
    /// An answer, and nobody can tell to what: nothing is decided, and its writer is told so.
    Doubt(String),
    /// No answer.
    Nothing,
}

/// Says which item a message may be about.
#[must_use]
pub fn about(written: &Written, reader: &Reader<'_>) -> About {
    let typed = text::plain(&written.text, reader.bot);
    let found = explained(&typed, &[], &Kind::Approval, reader);
    match (found.token, found.cause, &written.thread) {
        (Some(token), _, _) => About::Token(token),
        (None, Cause::NoItem, _) => About::Several,
        (None, _, Some(thread)) => About::Thread(Place { channel: written.channel.clone(), ts: thread.clone() }),
        (None, _, None) => About::Nothing,
    }
}

/// Whether a message could be the answer to an item that asks for a yes or a no, or names one.
#[must_use]
pub fn reads(written: &Written, reader: &Reader<'_>) -> bool {
    let found = explained(&text::plain(&written.text, reader.bot), &[], &Kind::Approval, reader);
    found.cause == Cause::Understood || found.token.is_some()
}

/// Says what a message means that was written to the app alone and in no thread. `waiting`: what its writer may answer of
/// what waits in that conversation; `last`: what was told of last there.
///
/// People also begin work there: only what begins as an answer does is one, and any words answer a question only where
/// nothing else waits and the app is not called by its name.
#[must_use]
pub fn alone(written: &Written, mut waiting: Vec<Item>, last: Option<Item>, reader: &Reader<'_>) -> Alone {
    let typed = text::plain(&written.text, reader.bot);
    // What only tells waits for nothing.
    waiting.retain(|item| !matches!(item.kind, ItemKind::Notification { .. }));
    match (waiting.len(), last) {
        (0, last) if decides(&typed, &Kind::Approval, reader) => {
            let closed = last.and_then(|last| Some((told::closed(&last)?, last)));
            Alone::Doubt(match closed {
                Some((error, last)) => format!("{} It was “{}”.", told::refused(&error), wording::title(&last)),
                None => NOTHING_WAITS.into(),
            })
        }
        (0, _) => Alone::Nothing,
        (1, _) => {
            let item = waiting.remove(0);
            let is_meant = match told::answered_as(&item.kind) {
                Kind::Question { options } => !written.mention || chooses(&typed, &options, reader),
                kind => begins_as_answer(&typed, &kind, reader),
            };
            if is_meant { Alone::Item(Box::new(item)) } else { Alone::Nothing }
        }
        (_, _) if may_answer_one(&typed, &waiting, reader) => Alone::Doubt(which(&waiting)),
        (_, _) => Alone::Nothing,
    }
}

/// Says what a message means in the thread of a session that asks for these items. `may`: whether its writer may answer one
/// of them.
#[must_use]
pub fn in_session(written: &Written, mut asked: Vec<Item>, may: impl Fn(&Item) -> bool, reader: &Reader<'_>) -> Alone {
    // What only tells waits for nothing: the talk goes on.
    asked.retain(|item| !matches!(item.kind, ItemKind::Notification { .. }));
    if asked.len() < 2 {
        return asked.pop().map_or(Alone::Nothing, |item| Alone::Item(Box::new(item)));
    }
    if !may_answer_one(&text::plain(&written.text, reader.bot), &asked, reader) {
        return Alone::Nothing;
    }
    asked.retain(|item| may(item));
    Alone::Doubt(if asked.is_empty() { told::NOT_ENTITLED.into() } else { which(&asked) })
}

/// Whether a text may be meant as the answer to one of several items.
fn may_answer_one(typed: &str, items: &[Item], reader: &Reader<'_>) -> bool {
    items.iter().any(|item| match told::answered_as(&item.kind) {
        Kind::Question { options } => chooses(typed, &options, reader),
        kind => begins_as_answer(typed, &kind, reader),
    })
}

/// Whether the whole of a text is an answer.
fn decides(typed: &str, kind: &Kind, reader: &Reader<'_>) -> bool {
    matches!(explained(typed, &[], kind, reader).decision, "approve" | "deny")
}

/// Whether a text begins with what would be an answer if it stood alone: its writer meant one, perhaps with a doubt.
fn begins_as_answer(typed: &str, kind: &Kind, reader: &Reader<'_>) -> bool {
    let first = typed.trim().split(['.', ',', ';', ':', '!', '?', '\n', '—']).next().unwrap_or_default();
    let word = first.split_whitespace().next().unwrap_or_default();
    [typed, first, word].iter().any(|text| decides(text, kind, reader))
}

/// Whether a text is one of the options.
fn chooses(typed: &str, options: &[String], reader: &Reader<'_>) -> bool {
    let found = explained(typed, &[], &Kind::Question { options: options.to_vec() }, reader);
    found.answer.is_some_and(|answer| options.contains(&answer))
}

/// Asks which of several items is meant.
fn which(waiting: &[Item]) -> String {
    let ask = format!(
        "Nothing was decided: {} items wait here. Reply in the thread of the one that you mean, or write its token after your \
         answer:",
        waiting.len()
    );
    let listed = waiting.iter().take(LISTED).map(|item| format!("• {} {}", wording::title(item), item.id.token()));
    std::iter::once(ask).chain(listed).collect::<Vec<_>>().join("\n")
}

/// Reads a message that is about this item. `may`: whether its sender may answer it.
#[must_use]
pub fn of_message(written: &Written, item: &Item, way: Way, may: bool, reader: &Reader<'_>) -> Decided {
    let typed = text::plain(&written.text, reader.bot);
    let kind = told::answered_as(&item.kind);
    // Read as if it waited: whether it was meant as an answer does not hang on that.
    let known = Pending { id: item.id.to_string(), kind: kind.clone(), state: State::Pending };
    let found = explained(&typed, &[known], &kind, reader);
    let is_answer = found.cause == Cause::Understood;
    if !may {
        let told = is_answer || way != Way::Thread;
        return if told { Decided::Tell(told::NOT_ENTITLED.into()) } else { Decided::Nothing };
    }
    if let Some(closed) = closed(item) {
        let told = is_answer || way != Way::Thread;
        return if told { Decided::Tell(closed) } else { Decided::Nothing };
    }
    match (found.cause, found.decision, found.answer) {
        (Cause::Understood, "approve", _) if !notice::fits(item) => Decided::Tell(told::too_long(item.id)),
        (Cause::Understood, "approve", _) => Decided::Answer(Answer::Once),
        (Cause::Understood, "deny", _) => Decided::Answer(Answer::Deny { reason: found.comment }),
        (Cause::Understood, "answer", Some(text)) => Decided::Answer(Answer::Text { text }),
        _ => Decided::Tell(told::what_works(&found.why, &kind, Surface::Slack)),
    }
}

/// Reads a reaction to the notice of this item; none: it says nothing.
#[must_use]
pub fn of_reaction(name: &str, item: &Item, may: bool, reader: &Reader<'_>) -> Decided {
    if !matches!(told::answered_as(&item.kind), Kind::Approval) {
        return Decided::Nothing;
    }
    let Some(sign) = text::sign(name) else { return Decided::Nothing };
    let written = Written { text: sign.to_string(), ..Written::default() };
    match of_message(&written, item, Way::Thread, may, reader) {
        Decided::Tell(_) if may && matches!(item.state, ItemState::Pending) && notice::fits(item) => Decided::Nothing,
        decided => decided,
    }
}

/// The item and the choice that a button's value names.
#[must_use]
pub fn choice(value: &str) -> Option<(&str, &str)> {
    value.split_once('/')
}

/// Reads a button of this item.
#[must_use]
pub fn of_press(press: &Press, item: &Item, may: bool) -> Decided {
    let Some((_, choice)) = choice(&press.value) else { return Decided::Nothing };
    if !may {
        return Decided::Tell(told::NOT_ENTITLED.into());
    }
    if choice == "show" {
        return Decided::Show;
    }
    if let Some(closed) = closed(item) {
        return Decided::Tell(closed);
    }
    let allows = matches!(choice, "approve" | "once" | "task" | "edit");
    if allows && !notice::fits(item) {
        return Decided::Tell(told::too_long(item.id));
    }
    match (choice, &item.kind) {
        ("approve" | "once", ItemKind::Notification { .. }) | ("seen", _) => Decided::Answer(Answer::Acknowledge),
        ("approve" | "once", _) => Decided::Answer(Answer::Once),
        ("task", _) => Decided::Answer(Answer::ForTask),
        ("deny", _) => Decided::Answer(Answer::Deny { reason: None }),
        ("reason", _) => Decided::Ask(Modal::Reason),
        ("edit", ItemKind::Approval { .. }) => Decided::Ask(Modal::Edit),
        ("answer", ItemKind::Question { .. }) => Decided::Ask(Modal::Answer),
        (option, ItemKind::Question { questions }) => match (option.strip_prefix("option-"), questions.as_slice()) {
            (Some(number), [question]) => {
                let found = number.parse().ok().and_then(|at: usize| question.options.get(at));
                found.map_or(Decided::Tell(UNKNOWN.into()), |text| Decided::Answer(Answer::Text { text: text.clone() }))
            }
            _ => Decided::Tell(UNKNOWN.into()),
        },
        _ => Decided::Tell(UNKNOWN.into()),
    }
}

/// Reads a modal about this item.
#[must_use]
pub fn of_submit(submit: &Submit, item: &Item, may: bool) -> Decided {
    let Some((_, choice)) = choice(&submit.value) else { return Decided::Nothing };
    if !may {
        return Decided::Tell(told::NOT_ENTITLED.into());
    }
    if let Some(closed) = closed(item) {
        return Decided::Tell(closed);
    }
    let field = |name: &str| {
        let text = submit.fields.get(name).and_then(|values| values.first()).map(|text| text.trim().to_owned());
        text.filter(|text| !text.is_empty())
    };
    match (choice, &item.kind) {
        ("reason", _) => Decided::Answer(Answer::Deny { reason: field("reason") }),
        ("edit", ItemKind::Approval { .. }) if !notice::fits(item) => Decided::Tell(told::too_long(item.id)),
        ("edit", ItemKind::Approval { .. }) => {
            match serde_json::from_str::<Value>(&field("arguments").unwrap_or_default()) {
                Ok(args) if args.is_object() => Decided::Answer(Answer::Edited { args }),
                Ok(_) => Decided::Tell("Nothing was decided: the arguments must be a JSON object, `{…}`.".into()),
                Err(error) => Decided::Tell(format!("Nothing was decided: the arguments are no JSON: {error}.")),
            }
        }
        ("answer", ItemKind::Question { questions }) => match answers(questions, submit) {
            Some(text) => Decided::Answer(Answer::Text { text }),
            None => Decided::Tell("Nothing was decided: nothing was chosen or written.".into()),
        },
        _ => Decided::Tell(UNKNOWN.into()),
    }
}

/// One text of the answers to all questions of an item, as `owctl` words it; none: a question has none.
fn answers(questions: &[Question], submit: &Submit) -> Option<String> {
    let mut lines = vec![];
    for (number, question) in questions.iter().enumerate() {
        let written = submit.fields.get(&notice::text_field(number)).and_then(|values| values.first());
        let written = written.map(|text| text.trim()).filter(|text| !text.is_empty());
        let chosen = submit.fields.get(&notice::option_field(number)).into_iter().flatten();
        let chosen = chosen.filter_map(|place| question.options.get(place.parse::<usize>().ok()?));
        // What is written beside a choice is said too.
        let said: Vec<&str> = chosen.map(String::as_str).chain(written).collect();
        if said.is_empty() {
            return None;
        }
        let said = said.join(", ");
        if questions.len() == 1 {
            return Some(said);
        }
        let about = question.header.as_deref().unwrap_or(&question.text);
        lines.push(format!("{}: {said}", about.trim_end_matches([':', '?'])));
    }
    Some(lines.join("\n"))
}

const NOTHING_WAITS: &str =
    "Nothing was decided: nothing waits here for your answer. `owctl inbox list` shows what waits elsewhere.";

const UNKNOWN: &str = "Nothing was decided: this button is of another time. Open the item with owctl.";

/// What is said of an item that takes no answer any more.
fn closed(item: &Item) -> Option<String> {
    told::closed(item).map(|error| told::refused(&error))
}

fn explained(typed: &str, pending: &[Pending], kind: &Kind, reader: &Reader<'_>) -> Explained {
    let context =
        Context { pending, kind, approvers: &[], proof: Proof::Given, now: reader.now, phrases: reader.phrases };
    explain(Message::Text(typed), &context)
}
