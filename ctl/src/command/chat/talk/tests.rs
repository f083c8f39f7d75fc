//! The chat as a machine, driven by keys and events, with the time told.

use std::time::Duration;

use ow_client::SessionEvent;
use ow_protocol::{AnswerRequest, ApprovalView, CallUse, ItemView, MessageView, QuestionView, SessionView, UsageView};
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::exchange::{Ask, Effect, Input, Told};
use super::key::Decoder;
use super::text::Line;
use crate::failure::Failure;

/// A chat whose screen is looked at as a person would.
struct Chat {
    conversation: Conversation,
    now: Duration,
    /// All that was ever put into the scrollback.
    said: Vec<String>,
    effects: Vec<Effect>,
}

fn session(state: &str, items: &[&str]) -> SessionView {
    SessionView {
        id: "s1".into(),
        title: Some("A title".into()),
        state: state.into(),
        message: None,
        items: items.iter().map(|item| (*item).to_owned()).collect(),
        waiting: 0,
        mode: "ask".into(),
        model: Some("stub:small".into()),
        roots: vec!["/w".into()],
        inbox: "default".into(),
        created_at: String::new(),
        active_at: String::new(),
        length: 1,
        usage: None,
        grants: vec![],
        task: None,
    }
}

fn approval(id: &str, tool: &str, arguments: Value) -> ItemView {
    let approval = ApprovalView {
        tool: tool.into(),
        arguments,
        reason: "no rule allows it".into(),
        category: "exec".into(),
        call_id: "s1/0".into(),
        hash: "h".into(),
        working_directory: Some("/w".into()),
        bound_files: vec![],
        unbound: None,
        diff: None,
        rule_offer: None,
        tool_offer: true,
        command_offer: (tool == "shell").then(Vec::new),
    };
    ItemView { approval: Some(approval), ..item(id, "approval") }
}

fn item(id: &str, kind: &str) -> ItemView {
    ItemView {
        id: id.into(),
        token: format!("[ow:{id}]"),
        kind: kind.into(),
        title: "A title".into(),
        task: None,
        run: None,
        state: "pending".into(),
        created_at: String::new(),
        expires_at: None,
        reminded: 0,
        holds_back: 0,
        inbox: "default".into(),
        also: vec![],
        approval: None,
        questions: vec![],
        directory: None,
        text: None,
        resolution: None,
    }
}

fn entry(kind: &str, text: &str) -> MessageView {
    MessageView { kind: kind.into(), text: text.into(), ..MessageView::default() }
}

impl Chat {
    /// A chat that was just opened.
    fn new() -> Self {
        let mut chat = Self::opening();
        chat.state("idle", &[]);
        chat
    }

    fn opening() -> Self {
        let conversation = Conversation::new(session("idle", &[]), vec![], Duration::ZERO);
        Self { conversation, now: Duration::ZERO, said: vec![], effects: vec![] }
    }

    fn input(&mut self, input: Input) {
        let effects = self.conversation.step(input, self.now);
        self.effects.extend(effects);
        self.draw();
    }

    fn draw(&mut self) -> Vec<String> {
        let frame = self.conversation.frame();
        self.said.extend(frame.said.iter().map(Line::text));
        self.conversation.drawn(self.now, self.now);
        frame.live.iter().map(Line::text).collect()
    }

    fn live(&mut self) -> String {
        self.draw().join("\n")
    }

    /// What was said since it was asked last.
    fn newly_said(&mut self) -> String {
        std::mem::take(&mut self.said).join("\n")
    }

    fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        self.input(Input::Tick);
        // What the tick made ready is on the screen before anyone can press a key.
        self.now += Duration::from_millis(1);
    }

    /// Each key by itself, as a person presses them.
    fn press(&mut self, bytes: &str) {
        for key in Decoder::default().feed(bytes.as_bytes()) {
            self.now += Duration::from_millis(1);
            self.input(Input::Keys { keys: vec![key], at: self.now });
        }
    }

    fn press_at_once(&mut self, bytes: &str) {
        let keys = Decoder::default().feed(bytes.as_bytes());
        self.input(Input::Keys { keys, at: self.now });
    }

    fn state(&mut self, state: &str, items: &[&str]) {
        self.input(Input::Event(SessionEvent::State(Box::new(session(state, items)))));
    }

    fn entry(&mut self, entry: MessageView) {
        self.input(Input::Event(SessionEvent::Message(Box::new(entry))));
    }

    fn happens(&mut self, kind: &str, payload: Value) {
        self.input(Input::Event(SessionEvent::Live { kind: kind.into(), payload }));
    }

    fn told(&mut self, told: Told) {
        self.input(Input::Told(told));
    }

    fn effects(&mut self) -> Vec<Effect> {
        let effects = std::mem::take(&mut self.effects);
        effects.into_iter().filter(|effect| *effect != Effect::Bell).collect()
    }

    /// A question of this session stands before the person, who has had time to see it.
    fn asked(&mut self, item: ItemView) {
        self.state("parked", &[&item.id.clone()]);
        assert_eq!(self.effects(), [Effect::Ask(Ask::Item(item.id.clone()))]);
        self.told(Told::Item(Box::new(item)));
    }

    fn asked_and_seen(&mut self, item: ItemView) {
        self.asked(item);
        self.wait(400);
        self.effects.clear();
    }
}

fn answer(item: &str, answer: AnswerRequest) -> Vec<Effect> {
    vec![Effect::Ask(Ask::Answer { item: item.into(), answer })]
}

fn saying(text: &str) -> Effect {
    Effect::Ask(Ask::Say { text: text.into(), attachments: vec![] })
}

fn touch() -> ItemView {
    approval("i1", "shell", json!({ "argv": ["touch", "a"] }))
}

#[test]
fn keys_pressed_before_a_question_can_be_seen_answer_nothing() {
    let mut chat = Chat::new();
    chat.state("running", &[]);
    chat.press("no");
    chat.asked(touch());
    chat.press("o");
    assert_eq!(chat.effects(), [], "right after it came");
    chat.wait(250);
    chat.press("o");
    chat.wait(250);
    chat.press("o");
    assert_eq!(chat.effects(), [], "the keyboard has not rested");
    assert!(!chat.live().contains("[o]nce"));
    chat.wait(300);
    assert!(chat.live().contains("[o]nce"), "{}", chat.live());
    chat.press("o");
    assert_eq!(chat.effects(), answer("i1", AnswerRequest::Approve));
    chat.state("running", &[]);
    chat.entry(MessageView { item: Some("i1".into()), outcome: Some("approve".into()), ..entry("answered", "") });
    assert!(chat.live().contains("› no"), "what was typed before is still there: {}", chat.live());
}

#[test]
fn a_key_that_was_read_before_the_choices_were_drawn_does_not_count() {
    let mut chat = Chat::new();
    chat.asked(touch());
    let before = chat.now;
    chat.wait(400);
    let keys = Decoder::default().feed(b"o");
    chat.input(Input::Keys { keys, at: before + Duration::from_millis(399) });
    assert_eq!(chat.effects(), []);
}

#[test]
fn several_keys_at_once_a_paste_and_enter_are_no_answer() {
    let mut chat = Chat::new();
    for keys in ["oo", "ok\r", "\r", " ", "\u{1b}[200~o\u{1b}[201~", "x", "k"] {
        chat.asked_and_seen(touch());
        chat.press_at_once(keys);
        assert_eq!(chat.effects(), [], "{keys:?}");
        chat.state("idle", &[]);
    }
}

#[test]
fn each_answer_has_its_key() {
    let cases: [(&str, AnswerRequest); 5] = [
        ("o", AnswerRequest::Approve),
        ("t", AnswerRequest::ApproveTool),
        ("c", AnswerRequest::ApproveCommand),
        ("d\r", AnswerRequest::Deny { reason: None }),
        ("dnot on Fridays\r", AnswerRequest::Deny { reason: Some("not on Fridays".into()) }),
    ];
    for (keys, meant) in cases {
        let mut chat = Chat::new();
        chat.asked_and_seen(touch());
        chat.press(keys);
        assert_eq!(chat.effects(), answer("i1", meant), "{keys}");
        chat.press("o");
        assert_eq!(chat.effects(), [], "it is answered once");
    }
}

#[test]
fn a_call_is_shown_whole_and_nothing_in_it_can_deceive() {
    let mut chat = Chat::new();
    let mut item = approval("i1", "write_file", json!({ "path": "a\u{202e}b", "content": "x\u{1b}[2J" }));
    chat.newly_said();
    chat.asked(item.clone());
    let said = chat.newly_said();
    assert!(said.contains("path: a\\u{202e}b") && said.contains("content: x\\u{1b}[2J"), "{said}");
    let approval = item.approval.as_mut().expect("one");
    approval.diff = Some("-old\n+x\u{1b}[2J\n".into());
    chat.state("idle", &[]);
    chat.newly_said();
    chat.asked(item.clone());
    let said = chat.newly_said();
    assert!(said.contains("│ +x\\u{1b}[2J") && !said.contains("content:"), "{said}");
    item.approval.as_mut().expect("one").diff = Some("-old\n[… cut here; 400 lines change in all …]".into());
    chat.state("idle", &[]);
    chat.newly_said();
    chat.asked(item);
    assert!(chat.newly_said().contains("content: x"), "a difference that was cut does not stand for the whole");
}

#[test]
fn edited_arguments_go_with_the_answer_and_unchanged_ones_answer_nothing() {
    let mut chat = Chat::new();
    chat.asked_and_seen(touch());
    chat.press("e");
    let edit = Effect::Edit { item: "i1".into(), arguments: json!({ "argv": ["touch", "a"] }) };
    assert_eq!(chat.effects(), [edit]);
    chat.told(Told::Edited { item: "i1".into(), arguments: None });
    chat.press("o");
    assert_eq!(chat.effects(), [], "it is asked anew, and must be seen anew");
    chat.wait(400);
    chat.press("e");
    chat.effects();
    let why = Failure::failed("editor", "the editor `x` ended with 1; nothing was changed");
    chat.told(Told::NotEdited { item: "i1".into(), why });
    assert!(chat.newly_said().contains("the editor `x` ended"));
    chat.wait(400);
    chat.press("e");
    chat.effects();
    let arguments = json!({ "argv": ["touch", "b"] });
    chat.told(Told::Edited { item: "i1".into(), arguments: Some(arguments.clone()) });
    assert_eq!(chat.effects(), answer("i1", AnswerRequest::Edit { arguments }));
}

#[test]
fn questions_are_asked_one_after_the_other() {
    let question = |text: &str, options: &[&str], multi| QuestionView {
        header: None,
        text: text.into(),
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        multi,
    };
    let mut asking = item("i1", "question");
    asking.questions = vec![
        question("Colour?", &["red", "green"], false),
        question("Days?", &["mon", "tue", "wed"], true),
        question("Name?", &[], false),
    ];
    let mut chat = Chat::new();
    chat.asked_and_seen(asking);
    assert!(chat.live().contains("1 of 3: Colour?"), "{}", chat.live());
    chat.press("2");
    chat.press("1");
    assert_eq!(chat.effects(), [], "the second question has not been seen");
    chat.wait(400);
    assert!(chat.live().contains("2 of 3: Days?"), "{}", chat.live());
    chat.press("1");
    chat.press("3");
    chat.press("\r");
    chat.wait(400);
    chat.press("Ada\r");
    let text = "Colour: green\nDays: mon, wed\nName: Ada".to_owned();
    assert_eq!(chat.effects(), answer("i1", AnswerRequest::Answer { text }));
}

#[test]
fn of_several_questions_each_stands_alone_above_its_keys() {
    let mut chat = Chat::new();
    chat.state("parked", &["i1", "i2"]);
    chat.effects();
    chat.told(Told::Item(Box::new(approval("i1", "shell", json!({ "command": "rm -rf build" })))));
    chat.told(Told::Item(Box::new(approval("i2", "write_file", json!({ "path": "harmless.txt" })))));
    chat.wait(400);
    let said = chat.newly_said();
    assert!(said.contains("rm -rf build") && !said.contains("harmless"), "{said}");
    assert!(said.contains("1 more"), "{said}");
    chat.effects();
    chat.press("o");
    assert_eq!(chat.effects(), answer("i1", AnswerRequest::Approve));
    let answered = MessageView {
        item: Some("i1".into()),
        outcome: Some("approved".into()),
        by: Some("ada".into()),
        ..entry("answered", "")
    };
    chat.entry(answered);
    let said = chat.newly_said();
    assert!(said.contains("shell rm -rf build: approved by ada"), "{said}");
    assert!(said.contains("harmless.txt") && !said.contains("more of what it asks"), "{said}");
    chat.press("o");
    assert_eq!(chat.effects(), [], "its keys were not there yet");
    chat.wait(400);
    chat.press("o");
    assert_eq!(chat.effects(), answer("i2", AnswerRequest::Approve));
}

#[test]
fn an_answer_from_elsewhere_takes_the_question_away() {
    let mut chat = Chat::new();
    chat.asked_and_seen(touch());
    chat.newly_said();
    let answered = MessageView {
        item: Some("i1".into()),
        outcome: Some("approve".into()),
        by: Some("ada".into()),
        ..entry("answered", "")
    };
    chat.entry(answered);
    assert!(chat.newly_said().contains("approve by ada"));
    chat.press("o");
    assert_eq!(chat.effects(), [], "it is typed by now");
    assert!(chat.live().contains("› o"));
}

#[test]
fn a_question_put_aside_waits_and_messages_wait_behind_it() {
    let mut chat = Chat::new();
    chat.asked_and_seen(touch());
    chat.press_at_once("\u{1b}x");
    chat.input(Input::Keys { keys: vec![super::key::Key::Escape], at: chat.now });
    chat.press("hello\r");
    assert_eq!(chat.effects(), [Effect::Remember("hello".into()), saying("hello")]);
    let sent = ow_protocol::SentMessage { number: 1, new: true, session: session("parked", &["i1"]) };
    chat.told(Told::Said(Box::new(sent)));
    assert!(chat.newly_said().contains("It waits for your answer first"));
    assert!(chat.live().contains("hello  (not heard yet)"), "{}", chat.live());
    chat.press("/inbox\r");
    chat.wait(400);
    assert!(chat.live().contains("[o]nce"), "{}", chat.live());
}

#[test]
fn ctrl_c_stops_the_turn_first_and_then_leaves() {
    let mut chat = Chat::new();
    chat.state("running", &[]);
    chat.press("dra\u{3}");
    assert_eq!(chat.effects(), [Effect::Ask(Ask::Interrupt)]);
    assert!(chat.live().contains("› dra"), "what was typed is kept");
    chat.press("\u{3}");
    assert_eq!(chat.effects(), [Effect::Leave]);
    chat.state("idle", &[]);
    chat.press("\u{3}");
    assert_eq!(chat.effects(), [], "first what is typed goes");
    chat.press("\u{3}");
    assert_eq!(chat.effects(), [Effect::Leave]);
    chat.state("running", &[]);
    chat.press("\u{3}");
    assert_eq!(chat.effects(), [Effect::Ask(Ask::Interrupt)], "a new turn is stopped first");
}

#[test]
fn ctrl_c_stops_the_turn_also_where_it_asks() {
    let mut chat = Chat::new();
    chat.asked(touch());
    chat.press("\u{3}");
    assert_eq!(chat.effects(), [Effect::Ask(Ask::Interrupt)], "it is no answer, and need not wait");
    chat.entry(MessageView { by: Some("me".into()), ..entry("interrupted", "") });
    chat.entry(MessageView { outcome: Some("interrupted".into()), ..entry("turn-ended", "") });
    chat.state("idle", &[]);
    chat.press("o\r");
    assert_eq!(chat.effects().last(), Some(&saying("o")), "there is nothing to answer any more");
}

#[test]
fn a_folder_a_plan_and_a_budget_are_agreed_to_or_denied() {
    for kind in ["directory", "plan", "budget"] {
        let mut asking = item("i1", kind);
        asking.text = Some("1. **Do** it".into());
        if kind == "directory" {
            let path = "/other".into();
            asking.directory = Some(ow_protocol::DirectoryView { path, writable: true, reason: "to write".into() });
        }
        let mut chat = Chat::new();
        chat.newly_said();
        chat.asked_and_seen(asking.clone());
        let said = chat.newly_said();
        let told = if kind == "directory" { "read and write in /other" } else { "Do" };
        assert!(said.contains(told), "{said}");
        chat.press("o");
        assert_eq!(chat.effects(), [], "{kind}: that is the key of a call");
        chat.press("y");
        assert_eq!(chat.effects(), answer("i1", AnswerRequest::Approve), "{kind}");
        chat.state("idle", &[]);
        chat.asked_and_seen(asking);
        chat.press("dno\r");
        assert_eq!(chat.effects(), answer("i1", AnswerRequest::Deny { reason: Some("no".into()) }), "{kind}");
    }
}

#[test]
fn a_line_with_a_slash_is_never_said() {
    let mut chat = Chat::new();
    chat.newly_said();
    chat.press("/nonsense\r");
    assert_eq!(chat.effects(), [Effect::Remember("/nonsense".into())]);
    assert!(chat.newly_said().contains("there is no command /nonsense"));
    chat.press(" /etc is a folder\r");
    assert_eq!(chat.effects(), [saying(" /etc is a folder")], "and what begins with a blank is not kept");
}

#[test]
fn what_could_not_be_said_comes_back() {
    let mut chat = Chat::new();
    chat.press("hello\r");
    let asked = Ask::Say { text: "hello".into(), attachments: vec![] };
    chat.told(Told::Failed { asked, why: Failure::failed("x", "owd is not running") });
    assert!(chat.newly_said().contains("owd is not running"));
    assert!(chat.live().contains("› hello") && !chat.live().contains("not heard"), "{}", chat.live());
}

#[test]
fn a_reply_is_shown_once_however_it_comes() {
    let mut chat = Chat::new();
    chat.press("hi\r");
    chat.state("running", &[]);
    chat.entry(MessageView { by: Some("me".into()), ..entry("user", "hi") });
    chat.happens("turn-started", json!({}));
    chat.happens("text", json!({ "text": "One.\n\nTw" }));
    assert!(chat.live().contains("Tw"), "{}", chat.live());
    chat.happens("text", json!({ "text": "o." }));
    let usage = UsageView { input: 1200, cached: 0, output: 5, calls: 1 };
    chat.entry(MessageView { usage: Some(usage), ..entry("assistant", "One.\n\nTwo.") });
    chat.wait(2000);
    chat.entry(MessageView { outcome: Some("completed".into()), ..entry("turn-ended", "") });
    chat.state("idle", &[]);
    let said = chat.newly_said();
    assert_eq!(
        (said.matches("One.").count(), said.matches("Two.").count(), said.matches("› hi").count()),
        (1, 1, 1),
        "{said}"
    );
    assert!(said.contains("2.0 s · 1 model call · 1 200 tokens in, 5 out"), "{said}");
    assert!(!chat.live().contains("Two."));
}

#[test]
fn what_is_said_in_the_middle_of_a_reply_does_not_repeat_it() {
    let mut chat = Chat::new();
    chat.state("running", &[]);
    chat.happens("text", json!({ "text": "One.\n\nTw" }));
    chat.press("/mode\r");
    chat.press("/nonsense\r");
    chat.happens("text", json!({ "text": "o.\n\nThree" }));
    chat.entry(entry("assistant", "One.\n\nTwo.\n\nThree."));
    let said = chat.newly_said();
    for word in ["One.", "Two.", "Three.", "mode ask; another", "/nonsense;"] {
        assert_eq!(said.matches(word).count(), 1, "{word}: {said}");
    }
}

#[test]
fn the_end_of_a_turn_is_told_also_when_it_comes_behind_the_state() {
    let mut chat = Chat::new();
    chat.state("running", &[]);
    let usage = UsageView { input: 7, cached: 3, output: 5, calls: 1 };
    chat.entry(MessageView { usage: Some(usage), ..entry("assistant", "Done.") });
    chat.wait(1500);
    chat.state("idle", &[]);
    assert!(!chat.live().contains("thinking"), "{}", chat.live());
    chat.entry(MessageView { outcome: Some("completed".into()), ..entry("turn-ended", "") });
    let said = chat.newly_said();
    assert!(said.contains("1.5 s · 1 model call · 7 tokens in (3 cached), 5 out"), "{said}");
}

#[test]
fn a_reply_that_begins_anew_is_told_so() {
    let mut chat = Chat::new();
    chat.state("running", &[]);
    chat.happens("text", json!({ "text": "Half a" }));
    chat.happens("notice", json!({ "text": "asked again", "restart": true }));
    chat.happens("text", json!({ "text": "Whole." }));
    chat.entry(entry("assistant", "Whole."));
    let said = chat.newly_said();
    assert!(said.contains("asked again") && said.matches("Whole.").count() == 1, "{said}");
}

#[test]
fn calls_are_shown_while_they_run_and_when_they_are_done() {
    let mut chat = Chat::new();
    chat.state("running", &[]);
    let call = CallUse { position: 0, tool: "shell".into(), arguments: json!({ "argv": ["make", "all"] }) };
    chat.entry(MessageView { calls: vec![call], ..entry("assistant", "I build.") });
    chat.happens("tool-started", json!({ "position": 0, "tool": "shell", "arguments": { "argv": ["make", "all"] } }));
    chat.happens("tool-output", json!({ "position": 0, "text": "cc a.c\ncc b.c\n" }));
    chat.wait(3000);
    let live = chat.live();
    assert!(live.contains("shell make all  3 s\n    cc a.c\n    cc b.c"), "{live}");
    let done =
        MessageView { position: Some(0), tool: Some("shell".into()), took_ms: Some(3100), ..entry("call", "built") };
    chat.entry(done);
    let said = chat.newly_said();
    assert!(said.contains("✓ shell make all  3.1 s\n  built"), "{said}");
    assert!(!chat.live().contains("make all"));
}

#[test]
fn a_call_that_is_asked_about_again_does_not_seem_to_run() {
    let mut chat = Chat::new();
    chat.state("running", &[]);
    let started = json!({ "position": 0, "tool": "shell", "arguments": { "argv": ["make", "all"] } });
    chat.happens("tool-started", started.clone());
    assert!(chat.live().contains("make all"));
    chat.input(Input::Event(SessionEvent::Lost));
    assert!(!chat.live().contains("make all"), "{}", chat.live());
    chat.input(Input::Event(SessionEvent::Resumed));
    chat.happens("tool-started", started);
    chat.entry(MessageView {
        position: Some(0),
        ..entry("notice", "call 0: nobody can tell whether it took effect: x")
    });
    chat.entry(MessageView { position: Some(0), item: Some("i1".into()), ..entry("asked", "") });
    chat.state("parked", &["i1"]);
    assert!(!chat.live().contains("make all"), "{}", chat.live());
    assert!(chat.newly_said().contains("nobody can tell whether it took effect"));
}

#[test]
fn while_owd_is_gone_nothing_moves_and_its_return_is_told() {
    let mut chat = Chat::new();
    chat.state("running", &[]);
    assert!(chat.conversation.wakes_at().is_some(), "the working sign turns");
    chat.happens("text", json!({ "text": "Half" }));
    chat.newly_said();
    chat.input(Input::Event(SessionEvent::Lost));
    assert_eq!(chat.conversation.wakes_at(), None);
    assert!(chat.live().contains("owd has gone") && !chat.live().contains("thinking"), "{}", chat.live());
    chat.input(Input::Event(SessionEvent::Resumed));
    chat.entry(entry("assistant", "Another whole."));
    let said = chat.newly_said();
    assert!(said.contains("owd is back\nAnother whole."), "{said}");
}

#[test]
fn whoever_comes_back_sees_where_it_stands() {
    let mut chat = Chat::opening();
    chat.entry(entry("user", "first"));
    chat.entry(entry("assistant", "an old answer"));
    chat.entry(entry("user", "second"));
    chat.entry(entry("assistant", "the last answer"));
    chat.state("parked", &["i1"]);
    let said = chat.newly_said();
    assert!(said.contains("A title") && said.contains("› second") && said.contains("the last answer"), "{said}");
    assert!(!said.contains("an old answer") && said.contains("… 2 entries before"), "{said}");
    assert!(said.contains("It waits for your answer."), "{said}");
    assert_eq!(chat.effects(), [Effect::Ask(Ask::Item("i1".into()))]);
}

#[test]
fn what_is_drawn_fits_a_small_terminal() {
    let mut chat = Chat::new();
    for (columns, rows) in [(20, 4), (30, 8), (200, 50)] {
        chat.input(Input::Resized { columns, rows });
        chat.state("running", &[]);
        chat.happens("text", json!({ "text": "word ".repeat(200) }));
        chat.press_at_once(&"x".repeat(300));
        let frame = chat.conversation.frame();
        assert!(frame.live.len() < rows, "{} rows of {rows}", frame.live.len());
        assert!(frame.live.iter().all(|line| line.width() < columns), "{:?}", frame.live);
        assert!(frame.cursor.0 < frame.live.len() && frame.cursor.1 <= columns);
    }
}

#[test]
fn tab_completes_as_far_as_all_agree() {
    let mut chat = Chat::new();
    chat.press("/mo\t");
    assert!(chat.live().contains("/model  /mode"), "{}", chat.live());
    chat.press("l \t");
    let of = super::exchange::Completed::Models;
    let effects = chat.effects();
    assert_eq!(effects, [Effect::Ask(Ask::Complete { start: 7, word: String::new(), of })]);
    chat.told(Told::Candidates { start: 7, candidates: vec!["stub:large".into(), "stub:long".into()] });
    assert!(chat.live().contains("› /model stub:l"), "{}", chat.live());
}

#[test]
fn a_call_whose_tokens_the_provider_does_not_tell_is_counted() {
    let mut chat = Chat::new();
    chat.happens("turn-started", json!({}));
    chat.entry(entry("assistant", "Done."));
    chat.entry(MessageView { outcome: Some("completed".into()), ..entry("turn-ended", "") });
    let said = chat.newly_said();
    assert!(said.contains("1 model call · tokens not told"), "{said}");
}
