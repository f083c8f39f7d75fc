//! What becomes of an item by what is done in Slack: the pure core, by table and by the recorded cases.

use std::path::Path;

use jiff::Timestamp;
use ow_model::{
    Answer, AnswerBy, Binding, Call, Category, InboxName, Item, ItemId, ItemKind, ItemState, Occasion, Person,
    Position, Question, Resolution, Surface,
};
use ow_reply::Phrases;
use ow_slack::{
    About, Alone, Decided, Event, Modal, Parsed, Reader, Way, about, alone, choice, digest, fits, notice, of_message,
    of_press, of_reaction, of_submit, parse,
};
use serde_json::{Value, json};

const BOT: &str = "UBOT";

fn noon() -> Timestamp {
    "2026-03-03T12:00:00Z".parse().expect("an instant")
}

fn item(id: &str, kind: ItemKind) -> Item {
    Item {
        id: id.parse().expect("an id"),
        order: 1,
        task: Some("report".parse().expect("a name")),
        run: None,
        inbox: InboxName::default(),
        also: vec![],
        title: "send the report".into(),
        kind,
        created_at: noon(),
        expires_at: None,
        remind_at: None,
        reminded: 0,
        state: ItemState::Pending,
        holds_back: 0,
    }
}

fn approval(id: &str, text: &str) -> Item {
    let call = Call {
        position: Position(0),
        tool: "http_request".parse().expect("a name"),
        args: json!({ "url": "https://example.org", "body": text }),
    };
    let hash = call.hash();
    item(
        id,
        ItemKind::Approval {
            call,
            hash,
            category: Category::External,
            reason: "no rule covers it".into(),
            binding: Binding::default(),
            rule_offer: None,
            session_offer: ow_model::SessionOffer::default(),
            diff: None,
        },
    )
}

fn question(options: &[&str]) -> Item {
    let options = options.iter().map(|&option| option.to_owned()).collect();
    let questions = vec![Question { header: None, text: "Which?".into(), options, multi: false }];
    item("aaaaaaaaaaaaaaaa", ItemKind::Question { questions })
}

fn resolved(mut item: Item, answer: Answer) -> Item {
    let by = AnswerBy { person: Person("ada".into()), surface: Surface::Mail };
    item.state = ItemState::Resolved(Resolution { answer, by, at: noon() });
    item
}

/// What a message of ada's in the thread of an item's notice does.
fn said(text: &str, item: &Item) -> Decided {
    said_by(text, item, true)
}

fn said_by(text: &str, item: &Item, may: bool) -> Decided {
    let event =
        json!({ "type": "message", "user": "UADA", "channel": "C1", "ts": "2.1", "thread_ts": "1.1", "text": text });
    let payload = json!({ "type": "event_callback", "event_id": "Ev1", "event": event });
    let Parsed::Event { event: Event::Message(written), .. } = parse(&payload, BOT) else { panic!("a message") };
    let phrases = Phrases::default();
    of_message(&written, item, Way::Thread, may, &Reader { bot: BOT, phrases: &phrases, now: noon() })
}

#[test]
fn only_the_whole_text_approves() {
    let item = approval("aaaaaaaaaaaaaaaa", "hi");
    for text in [
        "approve",
        "Approved, thanks.",
        "<@UBOT> approve",
        "approve <@UBOT>",
        "*approve*",
        "yes, go ahead",
        ":+1:",
        ":thumbsup::skin-tone-4:",
        ":white_check_mark: approved",
        "approve [ow:aaaaaaaaaaaaaaaa]",
    ] {
        assert_eq!(said(text, &item), Decided::Answer(Answer::Once), "{text}");
    }
    for text in [
        "approve?",
        "approve, but only for staging",
        "~approve~",
        "&gt; approve",
        "```approve```",
        "approve <@U2>",
        "ask <@U2>: approve",
        "<https://evil.example|approve>",
        "I approve of the idea",
        ":tada:",
        "yes no",
        "👍 ?",
        "approve &amp; deny",
        "",
    ] {
        assert!(matches!(said(text, &item), Decided::Tell(_)), "{text}: {:?}", said(text, &item));
    }
}

#[test]
fn a_denial_keeps_its_reason() {
    let item = approval("aaaaaaaaaaaaaaaa", "hi");
    for (text, reason) in [
        ("deny", None),
        (":x:", None),
        ("don’t approve", None),
        ("Deny. The numbers &amp; dates are &lt;wrong&gt;", Some("The numbers & dates are <wrong>")),
        ("no, see <https://example.org/a|example.org/a>", Some("see example.org/a")),
    ] {
        let reason = reason.map(str::to_owned);
        assert_eq!(said(text, &item), Decided::Answer(Answer::Deny { reason }), "{text}");
    }
}

#[test]
fn a_question_is_answered_by_an_option_or_in_words() {
    let item = question(&["red", "blue"]);
    for (text, answer) in [("2", "blue"), ("Red", "red"), ("green &amp; gold", "green & gold")] {
        assert_eq!(said(text, &item), Decided::Answer(Answer::Text { text: answer.into() }), "{text}");
    }
}

/// What a plain message of ada's means where she and the app are alone.
fn alone_said(text: &str, waiting: &[Item], last: Option<&Item>) -> Alone {
    let event =
        json!({ "type": "message", "channel_type": "im", "user": "UADA", "channel": "D1", "ts": "2.1", "text": text });
    let payload = json!({ "type": "event_callback", "event_id": "Ev1", "event": event });
    let Parsed::Event { event: Event::Message(written), .. } = parse(&payload, BOT) else { panic!("a message") };
    let phrases = Phrases::default();
    alone(&written, waiting.to_vec(), last.cloned(), &Reader { bot: BOT, phrases: &phrases, now: noon() })
}

#[test]
fn a_plain_message_means_the_one_item_that_waits_if_it_begins_as_an_answer() {
    let (one, two) = (approval("aaaaaaaaaaaaaaaa", "hi"), approval("bbbbbbbbbbbbbbbb", "ho"));
    let told = item("cccccccccccccccc", ItemKind::Notification { text: "done".into() });
    let is = |meant: &Alone, item: &Item| matches!(meant, Alone::Item(found) if **found == *item);
    for text in ["approve", "Yes!", ":+1:", "deny. Too early", "approve, but only on Monday", "no way", "Approve? Hm."]
    {
        assert!(is(&alone_said(text, std::slice::from_ref(&one), None), &one), "{text}");
        assert!(is(&alone_said(text, &[told.clone(), one.clone()], None), &one), "what only tells waits for nothing");
        let Alone::Doubt(doubt) = alone_said(text, &[one.clone(), two.clone()], None) else { panic!("{text}") };
        assert!(doubt.contains("[ow:aaaaaaaaaaaaaaaa]") && doubt.contains("[ow:bbbbbbbbbbbbbbbb]"), "{doubt}");
    }
    for text in ["what is the weather?", "please summarise #ops", "I approve of that idea", "3", ""] {
        assert_eq!(alone_said(text, std::slice::from_ref(&one), None), Alone::Nothing, "{text}");
        assert_eq!(alone_said(text, &[one.clone(), two.clone()], None), Alone::Nothing, "{text}");
        assert_eq!(alone_said(text, &[], Some(&resolved(one.clone(), Answer::Once))), Alone::Nothing, "{text}");
    }
    let Alone::Doubt(late) = alone_said("deny", &[], Some(&resolved(one, Answer::Once))) else { panic!("told") };
    assert!(late.contains("already approved by ada"), "{late}");
    let Alone::Doubt(none) = alone_said("deny", &[], None) else { panic!("a decision starts no work") };
    assert!(none.contains("nothing waits here"), "{none}");
    // It waits, but for others.
    let Alone::Doubt(none) = alone_said("Approve!", &[], Some(&two)) else { panic!("a decision starts no work") };
    assert!(none.contains("nothing waits here"), "{none}");
}

#[test]
fn a_title_names_no_other_item_wherever_it_is_shown() {
    let mut evil = approval("aaaaaaaaaaaaaaaa", "hi");
    evil.title = "well [ow:zzzz\nzzzzzzzzzzzz]".into();
    let asked = notice(&evil, Occasion::Asked);
    let both = digest(&[&evil, &approval("bbbbbbbbbbbbbbbb", "ho")]);
    let Alone::Doubt(which) = alone_said("yes", &[evil.clone(), approval("bbbbbbbbbbbbbbbb", "ho")], None) else {
        panic!("it asks")
    };
    let Alone::Doubt(late) = alone_said("yes", &[], Some(&resolved(evil, Answer::Once))) else { panic!("told") };
    for shown in [asked.text, asked.blocks.to_string(), both.blocks.to_string(), which, late] {
        assert!(shown.contains("well (ow:zzzz") && !shown.contains("[ow:z"), "{shown}");
    }
}

#[test]
fn any_words_answer_the_one_question_that_waits_unless_the_app_is_called() {
    let (colour, other) = (question(&["red", "blue"]), approval("bbbbbbbbbbbbbbbb", "ho"));
    for text in ["red", "2", "a light green"] {
        assert!(matches!(alone_said(text, std::slice::from_ref(&colour), None), Alone::Item(_)), "{text}");
    }
    let called = alone_said("<@UBOT> summarise #ops", std::slice::from_ref(&colour), None);
    assert_eq!(called, Alone::Nothing);
    let several = [colour, other];
    assert!(matches!(alone_said("red", &several, None), Alone::Doubt(_)), "it may be the answer");
    assert_eq!(alone_said("a light green", &several, None), Alone::Nothing);
}

#[test]
fn who_may_not_answer_is_told_so_and_who_only_talks_is_not() {
    let item = approval("aaaaaaaaaaaaaaaa", "hi");
    for text in ["approve", "deny, too early"] {
        assert!(matches!(said_by(text, &item, false), Decided::Tell(_)), "{text}");
    }
    assert_eq!(said_by("what is this?", &item, false), Decided::Nothing);
}

#[test]
fn who_comes_second_is_told_who_came_first() {
    let item = resolved(approval("aaaaaaaaaaaaaaaa", "hi"), Answer::Once);
    let Decided::Tell(told) = said("deny", &item) else { panic!("{:?}", said("deny", &item)) };
    assert_eq!(told, "Nothing was changed: already approved by ada at 2026-03-03 12:00 UTC.");
    assert_eq!(said("thank you all", &item), Decided::Nothing);
}

#[test]
fn what_a_message_cannot_show_is_not_approved_in_slack() {
    let item = approval("aaaaaaaaaaaaaaaa", &"x".repeat(20_000));
    assert!(!fits(&item));
    let Decided::Tell(told) = said("approve", &item) else { panic!("not approved") };
    assert!(told.contains("owctl inbox show aaaaaaaaaaaaaaaa"), "{told}");
    assert!(matches!(said("deny", &item), Decided::Answer(Answer::Deny { .. })));
    let post = notice(&item, ow_model::Occasion::Asked);
    let text = post.blocks.to_string();
    assert!(!text.contains("/once") && !text.contains("/task") && !text.contains("/edit"), "no button allows it");
    assert!(text.contains("/deny") && text.contains("cut here"), "{text}");
    assert!(matches!(pressed("once", &item, true), Decided::Tell(_)), "an old button neither");
}

fn pressed(choice: &str, item: &Item, may: bool) -> Decided {
    let payload = json!({
        "type": "block_actions", "user": { "id": "UADA" }, "channel": { "id": "C1" }, "trigger_id": "t",
        "container": { "message_ts": "1.1" }, "actions": [{ "action_id": choice, "value": format!("{}/{choice}", item.id) }],
    });
    let Parsed::Event { event: Event::Press(press), .. } = parse(&payload, BOT) else { panic!("a click") };
    of_press(&press, item, may)
}

#[test]
fn each_button_does_what_it_says() {
    let item = approval("aaaaaaaaaaaaaaaa", "hi");
    for (choice, decided) in [
        ("once", Decided::Answer(Answer::Once)),
        ("approve", Decided::Answer(Answer::Once)),
        ("task", Decided::Answer(Answer::ForTask)),
        ("deny", Decided::Answer(Answer::Deny { reason: None })),
        ("reason", Decided::Ask(Modal::Reason)),
        ("edit", Decided::Ask(Modal::Edit)),
        ("show", Decided::Show),
    ] {
        assert_eq!(pressed(choice, &item, true), decided, "{choice}");
        assert!(matches!(pressed(choice, &item, false), Decided::Tell(_)), "{choice}");
    }
    for choice in ["option-0", "answer", "other", ""] {
        assert!(matches!(pressed(choice, &item, true), Decided::Tell(_)), "{choice}");
    }
    let asked = question(&["red", "blue"]);
    assert_eq!(pressed("option-1", &asked, true), Decided::Answer(Answer::Text { text: "blue".into() }));
    assert!(matches!(pressed("option-7", &asked, true), Decided::Tell(_)));
}

#[test]
fn a_modal_gives_a_reason_other_arguments_or_answers() {
    let submitted = |choice: &str, item: &Item, fields: &Value| {
        let blocks: serde_json::Map<String, Value> = fields
            .as_object()
            .expect("fields")
            .iter()
            .map(|(name, value)| (name.clone(), json!({ "element": value })))
            .collect();
        let payload = json!({
            "type": "view_submission", "user": { "id": "UADA" },
            "view": { "id": "V1", "callback_id": format!("{}/{choice}", item.id), "state": { "values": blocks } },
        });
        let Parsed::Event { event: Event::Submit(submit), .. } = parse(&payload, BOT) else { panic!("a modal") };
        of_submit(&submit, item, true)
    };
    let item = approval("aaaaaaaaaaaaaaaa", "hi");
    let reason = submitted("reason", &item, &json!({ "reason": { "value": " too early " } }));
    assert_eq!(reason, Decided::Answer(Answer::Deny { reason: Some("too early".into()) }));
    let edited = submitted("edit", &item, &json!({ "arguments": { "value": "{\"url\": \"https://example.com\"}" } }));
    assert_eq!(edited, Decided::Answer(Answer::Edited { args: json!({ "url": "https://example.com" }) }));
    for broken in ["{", "[1]", ""] {
        let told = submitted("edit", &item, &json!({ "arguments": { "value": broken } }));
        assert!(matches!(told, Decided::Tell(_)), "{broken}");
    }
    let mut two = question(&["red", "blue"]);
    let ItemKind::Question { questions } = &mut two.kind else { panic!("a question") };
    questions.push(Question { header: Some("When".into()), text: "When?".into(), options: vec![], multi: false });
    let fields = json!({ "option-0": { "selected_option": { "value": "1" } }, "text-1": { "value": "tomorrow" } });
    let answered = submitted("answer", &two, &fields);
    assert_eq!(answered, Decided::Answer(Answer::Text { text: "Which: blue\nWhen: tomorrow".into() }));
    assert!(matches!(submitted("answer", &two, &json!({ "text-1": { "value": "x" } })), Decided::Tell(_)));
}

#[test]
fn a_reaction_says_yes_or_no_and_never_more() {
    let item = approval("aaaaaaaaaaaaaaaa", "hi");
    let phrases = Phrases::default();
    let reader = Reader { bot: BOT, phrases: &phrases, now: noon() };
    let reacted = |name: &str, item: &Item| of_reaction(name, item, true, &reader);
    assert_eq!(reacted("+1", &item), Decided::Answer(Answer::Once));
    assert_eq!(reacted("thumbsup::skin-tone-2", &item), Decided::Answer(Answer::Once));
    assert_eq!(reacted("x", &item), Decided::Answer(Answer::Deny { reason: None }));
    for name in ["eyes", "tada", "heart", "negative_squared_cross_mark"] {
        assert_eq!(reacted(name, &item), Decided::Nothing, "{name}");
    }
    assert_eq!(reacted("+1", &question(&["👍"])), Decided::Nothing, "a question is answered in words");
    assert!(matches!(of_reaction("+1", &item, false, &reader), Decided::Tell(_)));
}

/// A workspace that is nothing but what the cases tell of it.
#[derive(Default)]
struct World {
    seen: Vec<String>,
    items: Vec<Item>,
    decisions: Vec<&'static str>,
    runs: usize,
    feedback: usize,
}

impl World {
    fn take(&mut self, recorded: &Value) {
        let Parsed::Event { key, event } = parse(&payload(recorded), BOT) else { return };
        if self.seen.contains(&key) {
            return;
        }
        self.seen.push(key);
        let phrases = Phrases::default();
        let reader = Reader { bot: BOT, phrases: &phrases, now: noon() };
        let (id, decided) = match &event {
            Event::Message(written) => {
                let (id, way) = match about(written, &reader) {
                    About::Token(token) => (token, Way::Token),
                    About::Thread(place) if place.ts == "NOTICE_TS" => (self.items[0].id.to_string(), Way::Thread),
                    About::Thread(_) | About::Several | About::Nothing => {
                        self.runs += usize::from(written.mention || written.direct);
                        return;
                    }
                };
                let Some(item) = self.items.iter().find(|item| item.id.to_string() == id) else { return };
                (id, of_message(written, item, way, written.user == "UAPP", &reader))
            }
            Event::Press(press) => {
                let (id, _) = choice(&press.value).expect("a value of ours");
                let Some(item) = self.items.iter().find(|item| item.id.to_string() == id) else { return };
                (id.to_owned(), of_press(press, item, press.user == "UAPP"))
            }
            Event::Reaction { .. } | Event::Submit(_) => return,
        };
        let item = self.items.iter_mut().find(|item| item.id.to_string() == id).expect("found before");
        match decided {
            Decided::Answer(answer) => {
                self.decisions.push(match &answer {
                    Answer::Once => "approve",
                    Answer::Deny { .. } => "deny",
                    _ => "other",
                });
                *item = resolved(item.clone(), answer);
            }
            Decided::Tell(_) => self.feedback += 1,
            Decided::Ask(_) | Decided::Show | Decided::Nothing => {}
        }
    }
}

/// A recorded event in the envelope that Slack sends it in.
fn payload(recorded: &Value) -> Value {
    // Ids of items were shorter when the cases were recorded.
    let recorded: Value = serde_json::from_str(&recorded.to_string().replace("3f9c2a71b4de", ID)).expect("JSON");
    if recorded["type"] == "block_actions" {
        return json!({
            "type": "block_actions", "user": { "id": recorded["user"] }, "channel": { "id": "C1" },
            "container": { "message_ts": recorded["message_ts"] },
            "actions": [{ "value": recorded["action_value"], "action_ts": recorded["action_value"] }],
        });
    }
    json!({ "type": "event_callback", "event_id": recorded["event_id"], "event": recorded })
}

const ID: &str = "aaaaaaaaaaaaaaaa";

#[test]
fn the_recorded_cases_hold() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/slack-events.json");
    let text = std::fs::read_to_string(file).expect("the cases");
    let cases: Value = serde_json::from_str(&text).expect("JSON");
    let mut held = 0;
    for case in cases["cases"].as_array().expect("cases") {
        let events = case["events"].as_array().expect("events");
        // Those about sockets and limits are told by the stories of the running system.
        if events.iter().any(|event| event["type"].is_null()) {
            continue;
        }
        let mut world = World { items: vec![approval(ID, "hi")], ..World::default() };
        for event in events {
            world.take(event);
        }
        let (expect, id) = (&case["expect"], &case["id"]);
        if let Some(runs) = expect["runs"].as_u64() {
            assert_eq!(world.runs as u64, runs, "{id}");
        }
        if let Some(decisions) = expect["decisions"].as_u64() {
            assert_eq!(world.decisions.len() as u64, decisions, "{id}");
        }
        match expect["decision"].as_str() {
            Some("none") => assert!(world.decisions.is_empty(), "{id}"),
            Some(decision) => assert_eq!(world.decisions, [decision], "{id}"),
            None => {}
        }
        if expect["feedback"] == true || !expect["second"].is_null() {
            assert_eq!(world.feedback, 1, "{id}");
        }
        held += 1;
    }
    assert!(held >= 7, "{held} cases");
}

#[test]
fn an_id_of_an_item_is_found_in_a_token() {
    let written = ow_slack::Written { text: format!("ok [ow:{ID}]"), ..ow_slack::Written::default() };
    let phrases = Phrases::default();
    let found = about(&written, &Reader { bot: BOT, phrases: &phrases, now: noon() });
    let About::Token(token) = found else { panic!("{found:?}") };
    assert_eq!(token.parse::<ItemId>().expect("an id").to_string(), ID);
}

#[test]
fn what_a_message_may_tell_beside_others_is_shown_whole_there_or_not_approved_in_slack() {
    let other = approval("bbbbbbbbbbbbbbbb", "short");
    let mut approved = 0;
    for letter in ["x", "<", "\u{7f}", "\u{202e}", "é"] {
        for length in [10, 500, 900, 1_400, 3_000, 11_000] {
            let text = letter.repeat(length);
            let item = approval("aaaaaaaaaaaaaaaa", &text);
            if item.stands_alone() || !fits(&item) {
                continue;
            }
            approved += 1;
            let shown = digest(&[&item, &other]).blocks.to_string();
            assert!(
                !shown.contains("Open it") && shown.contains(&format!("{}/once", item.id)),
                "{length} of {letter:?}"
            );
        }
    }
    assert!(approved >= 5, "{approved}");
    assert!(approval("aaaaaaaaaaaaaaaa", &"x".repeat(1_500)).stands_alone());
}
