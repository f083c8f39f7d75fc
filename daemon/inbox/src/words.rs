//! What a notice says where no answer can be given: pure.

use std::fmt::Write;

use ow_model::{Item, ItemKind, Occasion, Question, escape};
use ow_store::{Content, Delivery, Notice};

use crate::wording;

/// Bytes of an item's own text that are told.
const TEXT_LIMIT: usize = 600;
const TITLE_LIMIT: usize = 120;

/// A message of plain text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Words {
    pub(crate) title: String,
    pub(crate) text: String,
}

pub(crate) fn words(delivery: &Delivery) -> Words {
    match &delivery.content {
        Content::Reply(reply) => {
            Words { title: cut(&escape::line(&reply.subject), TITLE_LIMIT), text: reply.text.clone() }
        }
        Content::Notices(notices) => match notices.as_slice() {
            [only] => of_one(only),
            several => of_several(several),
        },
    }
}

fn of_one(notice: &Notice) -> Words {
    let Notice { item, occasion, thread: _ } = notice;
    let mut text = match occasion {
        Occasion::Settled => format!("{}\n", ended(item)),
        Occasion::HandedOn => format!("{}\n", wording::handed_on(item)),
        Occasion::Asked | Occasion::Reminded | Occasion::Escalated | Occasion::Delegated => asked(item),
    };
    if !matches!(occasion, Occasion::Settled | Occasion::HandedOn) {
        for line in how_to_answer(item) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    Words { title: format!("{}{}", lead(*occasion), title(item)), text }
}

fn of_several(notices: &[Notice]) -> Words {
    let mut text = String::new();
    for Notice { item, occasion, thread: _ } in notices {
        let end = match occasion {
            Occasion::Settled => ended(item),
            Occasion::HandedOn => wording::handed_on(item),
            Occasion::Asked | Occasion::Reminded | Occasion::Escalated | Occasion::Delegated => {
                how_to_answer(item).join("\n  ")
            }
        };
        writeln!(text, "{}{}\n  {end}", lead(*occasion), title(item)).expect("a string takes all text");
    }
    Words { title: format!("owd: {} notices", notices.len()), text }
}

const fn lead(occasion: Occasion) -> &'static str {
    match occasion {
        Occasion::Asked => "",
        Occasion::Reminded => "Reminder: ",
        Occasion::Escalated => "Unanswered so far: ",
        Occasion::Delegated => "Handed on to you: ",
        Occasion::HandedOn => "Handed on: ",
        Occasion::Settled => "Done: ",
    }
}

fn title(item: &Item) -> String {
    let title = cut(&wording::title(item), TITLE_LIMIT);
    match &item.task {
        Some(task) if !item.title.starts_with(task.as_str()) => format!("{task}: {title}"),
        _ => title,
    }
}

/// What is asked, in short: policy's reason names what a command is, and all of a call's arguments are for who answers.
fn asked(item: &Item) -> String {
    let text = match &item.kind {
        ItemKind::Approval { call, reason, .. } => format!("{} asks for approval: {reason}", call.tool),
        ItemKind::Question { questions } => questions.iter().map(question).collect::<Vec<_>>().join("\n"),
        ItemKind::Plan { text } | ItemKind::Budget { text } | ItemKind::Notification { text } => text.clone(),
        ItemKind::Directory { path, writable, reason } => {
            let right = if *writable { "write in" } else { "read in" };
            format!("it asks to {right} {}: {reason}", path.display())
        }
    };
    format!("{}\n", cut(&escape::block(&text), TEXT_LIMIT))
}

fn question(question: &Question) -> String {
    if question.options.is_empty() {
        return question.text.clone();
    }
    format!("{} ({})", question.text, question.options.join(" / "))
}

/// The commands that answer it.
fn how_to_answer(item: &Item) -> Vec<String> {
    let id = item.id;
    match &item.kind {
        ItemKind::Notification { .. } => vec![],
        ItemKind::Question { .. } => vec![format!("owctl inbox answer {id} TEXT")],
        ItemKind::Approval { .. } | ItemKind::Plan { .. } | ItemKind::Directory { .. } | ItemKind::Budget { .. } => {
            vec![
                format!("owctl inbox show {id}"),
                format!("owctl inbox approve {id}"),
                format!("owctl inbox deny {id}"),
            ]
        }
    }
}

/// How the item ended, by whom and when.
fn ended(item: &Item) -> String {
    wording::outcome(item, &|at| at.to_string()).unwrap_or_else(|| "open".into())
}

fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit { text.into() } else { format!("{}…", &text[..text.floor_char_boundary(limit)]) }
}

#[cfg(test)]
pub(crate) mod tests {
    use jiff::Timestamp;
    use ow_model::{
        Answer, AnswerBy, Binding, Call, Category, InboxBinding, ItemId, ItemState, Person, Position, Resolution,
        Surface,
    };
    use ow_store::DeliveryId;

    use super::*;

    pub(crate) fn item(kind: ItemKind) -> Item {
        Item {
            id: ItemId::random(),
            order: 1,
            task: Some("backup".parse().expect("a name")),
            run: None,
            title: "rm\u{202e} -r old".into(),
            kind,
            created_at: Timestamp::UNIX_EPOCH,
            expires_at: None,
            remind_at: None,
            reminded: 0,
            state: ItemState::Pending,
            holds_back: 0,
            inbox: ow_model::InboxName::default(),
            also: vec![],
        }
    }

    pub(crate) fn approval() -> Item {
        let call = Call {
            position: Position(0),
            tool: "shell".parse().expect("a name"),
            args: serde_json::json!({ "argv": ["rm", "-r", "old"], "env": { "KEY": "hunter2" } }),
        };
        item(ItemKind::Approval {
            hash: call.hash(),
            call,
            category: Category::Exec,
            reason: "mode ask".into(),
            binding: Binding::default(),
            rule_offer: None,
            session_offer: ow_model::SessionOffer::default(),
            diff: None,
        })
    }

    pub(crate) fn delivery(notices: Vec<(Item, Occasion)>) -> Delivery {
        let notices = notices.into_iter().map(|(item, occasion)| Notice { item, occasion, thread: None }).collect();
        Delivery {
            id: DeliveryId(1),
            binding: InboxBinding::desktop(),
            message_id: "ow.x.1".into(),
            created_at: Timestamp::UNIX_EPOCH,
            attempt: 1,
            content: Content::Notices(notices),
        }
    }

    #[test]
    fn a_notice_says_what_is_asked_and_what_answers_it() {
        let asked = approval();
        let id = asked.id;
        let said = words(&delivery(vec![(asked, Occasion::Reminded)]));
        assert_eq!(said.title, r"Reminder: backup: rm\u{202e} -r old");
        assert_eq!(
            said.text,
            format!(
                "shell asks for approval: mode ask\nowctl inbox show {id}\nowctl inbox approve {id}\nowctl inbox deny {id}\n"
            ),
            "and not all arguments"
        );
    }

    #[test]
    fn of_a_settled_item_it_says_who_decided_and_when() {
        let by = AnswerBy { person: Person("ada".into()), surface: Surface::Socket };
        let resolution = Resolution { answer: Answer::Deny { reason: None }, by, at: Timestamp::UNIX_EPOCH };
        let item = Item { state: ItemState::Resolved(resolution), ..approval() };
        let said = words(&delivery(vec![(item, Occasion::Settled)]));
        assert_eq!(said.text, "Denied by ada over owctl at 1970-01-01T00:00:00Z\n");
    }

    #[test]
    fn several_items_are_told_one_by_one() {
        let question = Question { header: None, text: "which?".into(), options: vec![], multi: false };
        let (first, second) = (approval(), item(ItemKind::Question { questions: vec![question] }));
        let ids = [first.id, second.id];
        let said = words(&delivery(vec![(first, Occasion::Asked), (second, Occasion::Asked)]));
        assert_eq!(said.title, "owd: 2 notices");
        for line in [format!("owctl inbox approve {}", ids[0]), format!("owctl inbox answer {} TEXT", ids[1])] {
            assert!(said.text.contains(&line), "{}", said.text);
        }
    }
}
