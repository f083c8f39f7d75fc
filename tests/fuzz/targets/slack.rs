//! What Slack posts and says on its sockets is read: nothing panics, nobody is let in who does not know the secret, what is
//! stored can be read again, and of what people do only the answers of those who may decide an item, while it waits.
#![no_main]

use std::sync::LazyLock;

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use ow_model::{
    Answer, AnswerBy, Binding, Call, Category, InboxName, Item, ItemKind, ItemState, Person, Position, Question,
    Resolution, Surface,
};
use ow_reply::Phrases;
use ow_secret::SecretValue;
use ow_slack::{
    Decided, Event, Parsed, Posted, Reader, Said, Way, about, choice, of_message, of_press, of_reaction, of_submit,
    parse, payload, said, sign,
};
use serde_json::{Value, json};

const BOT: &str = "UBOT";
/// Words of which each makes of a line that approves one that does not.
const DOUBTS: &[&str] = &["not", "never", "but", "unless", "deny", "denied"];

static PHRASES: LazyLock<Phrases> = LazyLock::new(Phrases::default);
static SECRET: LazyLock<SecretValue> = LazyLock::new(|| SecretValue::new("a secret nobody knows 0123456789".into()));
static ITEMS: LazyLock<Vec<Item>> = LazyLock::new(items);

fn now() -> Timestamp {
    Timestamp::from_second(1_772_526_000).expect("an instant")
}

/// Items that wait, and one that was decided.
fn items() -> Vec<Item> {
    let item = |kind, state| Item {
        id: "aaaaaaaaaaaaaaaa".parse().expect("an id"),
        order: 1,
        task: Some("report".parse().expect("a name")),
        run: None,
        inbox: InboxName::default(),
        also: vec![],
        title: "send the report".into(),
        kind,
        created_at: now(),
        expires_at: None,
        remind_at: None,
        reminded: 0,
        state,
        holds_back: 0,
    };
    let call = Call {
        position: Position(0),
        tool: "http_request".parse().expect("a name"),
        args: json!({ "url": "https://example.org" }),
    };
    let approval = ItemKind::Approval {
        hash: call.hash(),
        call,
        category: Category::External,
        reason: "no rule covers it".into(),
        binding: Binding::default(),
        rule_offer: None,
            session_offer: ow_model::SessionOffer::default(),
        diff: None,
    };
    let question = |text: &str, options: &[&str]| Question {
        header: None,
        text: text.into(),
        options: options.iter().map(|&option| option.to_owned()).collect(),
        multi: false,
    };
    let one = ItemKind::Question { questions: vec![question("Which?", &["red", "approve", "3"])] };
    let two = ItemKind::Question { questions: vec![question("Which?", &["red"]), question("Why?", &[])] };
    let by = AnswerBy { person: Person("ada".into()), surface: Surface::Mail };
    let resolution = Resolution { answer: Answer::Once, by, at: now() };
    vec![
        item(approval.clone(), ItemState::Pending),
        item(one, ItemState::Pending),
        item(two, ItemState::Pending),
        item(ItemKind::Notification { text: "done".into() }, ItemState::Pending),
        item(approval, ItemState::Resolved(resolution)),
    ]
}

/// Payloads as Slack shapes them, with these words in the places that people fill.
fn shaped([a, b, c, d]: &[String; 4]) -> [Value; 6] {
    let event = |event: Value| json!({ "type": "event_callback", "event_id": "Ev1", "event": event });
    [
        event(json!({ "type": "message", "user": a, "channel": b, "ts": c, "text": d })),
        event(json!({ "type": "app_mention", "user": "U1", "channel": "C1", "ts": "2.1", "thread_ts": c, "text": d })),
        event(json!({ "type": "reaction_added", "user": a, "reaction": b,
            "item": { "type": "message", "channel": "C1", "ts": c } })),
        json!({ "type": "block_actions", "user": { "id": a }, "container": { "channel_id": b, "message_ts": c },
            "trigger_id": "1", "actions": [{ "action_id": "x", "action_ts": c, "value": d }] }),
        json!({ "type": "block_actions", "user": { "id": "U1" }, "container": { "channel_id": "C1", "message_ts": "1" },
            "actions": [{ "action_ts": "1", "value": format!("aaaaaaaaaaaaaaaa/{d}") }] }),
        json!({ "type": "view_submission", "user": { "id": a }, "view": { "id": "V1", "hash": c,
            "callback_id": format!("aaaaaaaaaaaaaaaa/{b}"), "private_metadata": "{\"channel\":\"C1\",\"ts\":\"1.1\"}",
            "state": { "values": {
                "option-0": { "x": { "selected_option": { "value": d } } },
                "text-0": { "x": { "value": d } }, "text-1": { "x": { "value": c } },
                "reason": { "x": { "value": d } }, "arguments": { "x": { "value": d } } } } } }),
    ]
}

/// Reads a payload and holds what it means against each item.
fn read(payload: &Value) {
    let Parsed::Event { key, event } = parse(payload, BOT) else { return };
    assert!(matches!(parse(payload, BOT), Parsed::Event { key: again, .. } if again == key), "one event, two keys");
    let stored = serde_json::to_value(&event).expect("it can be stored");
    assert_eq!(serde_json::from_value::<Event>(stored).ok().as_ref(), Some(&event), "it is read again as it was");
    let reader = Reader { bot: BOT, phrases: &PHRASES, now: now() };
    for item in &*ITEMS {
        for may in [false, true] {
            let decided = match &event {
                Event::Message(written) => {
                    assert!(!written.user.is_empty() && written.user != BOT, "a person wrote it");
                    let _ = about(written, &reader);
                    of_message(written, item, Way::Thread, may, &reader)
                }
                Event::Reaction { name, .. } => of_reaction(name, item, may, &reader),
                Event::Press(press) => of_press(press, item, may),
                Event::Submit(submit) => of_submit(submit, item, may),
            };
            let Decided::Answer(answer) = decided else { continue };
            assert!(may, "who may not answer has answered: {event:?}");
            assert_eq!(item.state, ItemState::Pending, "an item is decided again: {event:?}");
            match (&event, &answer) {
                (Event::Message(written), Answer::Once) => {
                    let doubt = DOUBTS.iter().find(|doubt| {
                        written.text.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == **doubt)
                    });
                    // Who is mentioned may be called anything, and so may the device that a mail was sent from.
                    let is_plain = !written.text.chars().any(|letter| letter.is_control() || letter == '<');
                    assert!(doubt.is_none() || !is_plain, "a doubt approves: {:?}", written.text);
                }
                (Event::Reaction { name, .. }, Answer::Once) => assert!(sign(name).is_some(), "{name}"),
                (Event::Press(press), Answer::Once | Answer::ForTask) => {
                    let allows = choice(&press.value).map(|(_, choice)| choice);
                    assert!(matches!(allows, Some("once" | "approve" | "task")), "{press:?}");
                }
                (Event::Submit(_), Answer::Once | Answer::ForTask) => panic!("a modal approves: {event:?}"),
                _ => {}
            }
        }
    }
}

fuzz_target!(|input: (Vec<u8>, Option<String>, Option<String>, [String; 4])| {
    let (body, timestamp, signature, words) = input;
    let posted = Posted { timestamp: timestamp.as_deref(), signature: signature.as_deref(), body: &body };
    assert!(!posted.is_slacks(&SECRET, now()), "{posted:?} is let in");
    if let Some(payload) = payload(&body) {
        read(&payload);
    }
    if let Said::Envelope { id: _, payload } = said(&String::from_utf8_lossy(&body)) {
        read(&payload);
    }
    for payload in shaped(&words) {
        read(&payload);
    }
});
