//! Chats on a terminal, end to end: the real owd and owctl, a stub of a model, and a terminal whose screen is read.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ow_stories::with_model;
use ow_test_support::model_server::{Gate, ModelReply, ModelResponse, ModelServer};
use ow_test_support::{Owd, Scratch, Terminal, id, rows, until};
use serde_json::{Value, json};

const CTRL_C: &str = "\u{3}";
const ESCAPE: &str = "\u{1b}";

fn chat(owd: &Owd, scratch: &Scratch, args: &[&str]) -> Terminal {
    chat_of(owd, scratch, args, 100, 40)
}

fn chat_of(owd: &Owd, scratch: &Scratch, args: &[&str], columns: u16, rows: u16) -> Terminal {
    let mut command = owd.owctl.command(&[&["chat"], args].concat());
    command.current_dir(scratch.work()).env_remove("NO_COLOR");
    let terminal = Terminal::start(&mut command, columns, rows);
    terminal.shows("· /help");
    terminal
}

fn messages(model: &ModelServer) -> Vec<Value> {
    model.last().json()["messages"].as_array().expect("messages").clone()
}

fn heard(model: &ModelServer) -> String {
    messages(model).pop().expect("a message")["content"].to_string()
}

#[test]
fn an_answer_streams_in_with_its_markdown() {
    let model = ModelServer::start();
    let gate = Gate::new();
    let text = "# Report\n\nAll is **well**, `ok`.\n\n- one\n- two\n\nThe end.";
    model.push(ModelResponse::from(ModelReply::text(text).in_pieces(5)).wait_after(4000, &gate));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("how is it?\r");
    talk.shows("Report");
    gate.open();
    talk.shows("The end.");
    talk.shows("1 model call · 100 tokens in, 10 out");
    let screen = talk.screen();
    assert!(
        screen.contains("› how is it?") && screen.contains("All is well, ok.") && screen.contains("• two"),
        "{screen}"
    );
    assert!(talk.painted().contains("\u{1b}[1mwell"), "{}", talk.painted());
    talk.press(CTRL_C);
    assert_eq!(talk.ended(), 0);
    talk.shows("Come back: owctl chat --session");
}

#[test]
fn one_key_lets_a_call_run() {
    let model = ModelServer::start();
    model.push(ModelReply::calls([("shell", json!({ "argv": ["touch", "made"] }))]));
    model.push(ModelReply::text("Made."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("make it\r");
    talk.shows("? May it run shell?");
    talk.shows("touch made");
    talk.shows("[o]nce");
    talk.press("o");
    talk.shows("Made.");
    assert!(scratch.work().join("made").exists());
    talk.shows("✓ shell touch made");
}

/// The newest lines stand below the call; a secret is in none of them, in whatever pieces it comes.
#[test]
fn what_a_command_prints_is_seen_while_it_runs() {
    let model = ModelServer::start();
    let scratch = with_model(&model);
    let secrets = scratch.path().join("config/secrets.toml");
    fs::write(&secrets, "key = \"correct-horse-battery\"\n").expect("written");
    fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).expect("set");
    let script = "wait_for() { while [ ! -e $1 ]; do sleep 0.02; done; }\n\
                  echo begun; printf 'a correct-horse'; wait_for first\n\
                  echo '-battery'; printf '\\033[2J\\377\\n'; echo ready; wait_for second\n";
    fs::write(scratch.work().join("build.sh"), script).expect("written");
    model.push(ModelReply::calls([("shell", json!({ "argv": ["sh", "build.sh"] }))]));
    model.push(ModelReply::text("Built."));
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("build it\r");
    talk.shows("[o]nce");
    talk.press("o");
    talk.shows("begun");
    fs::write(scratch.work().join("first"), "").expect("written");
    talk.shows("ready");
    let screen = talk.screen();
    assert!(screen.contains("a [redacted]") && screen.contains("\\u{1b}[2J"), "{screen}");
    fs::write(scratch.work().join("second"), "").expect("written");
    talk.shows("Built.");
    assert!(!talk.painted().contains("correct-horse"), "{}", talk.painted());
}

#[test]
fn a_call_is_edited_or_denied_with_a_reason() {
    let model = ModelServer::start();
    let touch = || ModelReply::calls([("shell", json!({ "argv": ["touch", "made"] }))]);
    model.push(touch());
    model.push(ModelReply::text("The other one, then."));
    model.push(touch());
    model.push(ModelReply::text("As you like."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut command = owd.owctl.command(&["chat"]);
    command.current_dir(scratch.work()).env("EDITOR", "sed -i s/made/other/").env_remove("VISUAL");
    let mut talk = Terminal::start(&mut command, 100, 40);
    talk.shows("· /help");
    talk.press("make it\r");
    talk.shows("[e]dit first");
    talk.press("e");
    talk.shows("The other one, then.");
    assert!(scratch.work().join("other").exists() && !scratch.work().join("made").exists());
    talk.press("again\r");
    talk.shows("[d]eny");
    talk.press("d");
    talk.shows("Why not?");
    talk.press("not on Mondays\r");
    talk.shows("As you like.");
    assert!(heard(&model).contains("not on Mondays"), "the model sees the reason: {}", heard(&model));
    assert!(!scratch.work().join("made").exists());
}

#[test]
fn what_is_typed_as_a_question_comes_is_no_answer() {
    let model = ModelServer::start();
    let gate = Gate::new();
    let reply = ModelReply::calls([("shell", json!({ "argv": ["touch", "made"] }))]);
    model.push(ModelResponse::from(reply).after(&gate));
    model.push(ModelReply::text("Well."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("make it\r");
    until("the model is asked", || (model.seen() == 1).then_some(()));
    talk.press("look, ");
    talk.shows("› look,");
    gate.open();
    talk.shows("? May it run shell?");
    talk.press("ok, o, t, c\r");
    talk.shows("[o]nce");
    assert_eq!(owd.items().len(), 1, "nothing was answered");
    assert!(!scratch.work().join("made").exists());
    talk.press("d");
    talk.shows("Why not?");
    talk.press("\r");
    talk.shows("Well.");
    talk.shows("› look,");
}

#[test]
fn ctrl_c_stops_the_turn_and_keeps_the_chat_and_once_more_leaves() {
    let model = ModelServer::start();
    let gate = Gate::new();
    model.push(ModelResponse::from(ModelReply::text("Never said.")).after(&gate));
    model.push(ModelReply::text("Here I am."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("think\r");
    talk.shows("thinking");
    until("the model is asked", || (model.seen() == 1).then_some(()));
    talk.press(CTRL_C);
    talk.shows("interrupted by");
    talk.hides("Ctrl-C interrupts");
    talk.press("still there?\r");
    talk.shows("Here I am.");
    talk.hides("Ctrl-C interrupts");
    talk.press(CTRL_C);
    assert_eq!(talk.ended(), 0);
    let session = &rows(&owd.owctl.json(&["session", "list"]))[0];
    talk.shows(&format!("Come back: owctl chat --session {}", id(session)));
}

#[test]
fn what_is_typed_during_a_turn_steers_it() {
    let model = ModelServer::start();
    let gate = Gate::new();
    let reply = ModelReply::calls([("list_dir", json!({ "path": "." }))]);
    model.push(ModelResponse::from(reply).after(&gate));
    model.push(ModelReply::text("In short, then."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("tell me all\r");
    until("the model is asked", || (model.seen() == 1).then_some(()));
    talk.press("no, be short\r");
    talk.shows("no, be short  (not heard yet)");
    gate.open();
    talk.shows("In short, then.");
    talk.shows("› no, be short");
    talk.hides("not heard yet");
    assert!(heard(&model).contains("be short"), "{}", heard(&model));
}

#[test]
fn the_chats_own_commands_are_obeyed_and_never_sent() {
    let model = ModelServer::start();
    model.push(ModelReply::text("Hello."));
    model.push(ModelReply::text("Read."));
    let scratch = with_model(&model);
    fs::write(scratch.work().join("notes.txt"), "the secret is 42").expect("a file");
    let owd = scratch.start();
    let mut talk = chat_of(&owd, &scratch, &[], 110, 60);
    talk.press("/help\r");
    talk.shows("/compact");
    talk.press("/nonsense\r");
    talk.shows("there is no command /nonsense; nothing was sent");
    talk.press("/mode edit\r");
    talk.shows("the mode is now edit");
    talk.press("/plan\r");
    talk.shows("the mode is now plan");
    talk.press("/model stub:large\r");
    talk.shows("the model is now stub:large");
    talk.press("/inbox\r");
    talk.shows("Nothing waits for you.");
    talk.press("hi\r");
    talk.shows("Hello.");
    talk.shows("1 model call · 100 tokens in, 10 out");
    assert_eq!(model.seen(), 1);
    talk.press("/cost\r");
    talk.is("tokens are told", |screen| screen.matches("1 model call · 100 tokens in, 10 out").count() == 2);
    talk.press("/attach no\t");
    talk.shows("/attach notes.txt");
    talk.press("\r");
    talk.shows("with it: notes.txt");
    talk.press("read it\r");
    talk.shows("Read.");
    assert!(heard(&model).contains("the secret is 42"), "{}", heard(&model));
    assert_eq!(model.last().json()["model"], "large");
    talk.press("\u{c}/tools\r");
    talk.shows("mode plan: only read");
    assert!(!talk.screen().contains("slack_send"), "no Slack is set up: {}", talk.screen());
    talk.press("/resume\r");
    talk.shows("Go on with one: /resume ID");
    talk.press("/quit\r");
    assert_eq!(talk.ended(), 0);
    assert_eq!(model.seen(), 2);
}

#[test]
fn one_chat_leads_to_another_and_is_summed_up_on_request() {
    let model = ModelServer::start();
    model.push(ModelReply::text("The first answer."));
    model.push(ModelReply::text("The second answer."));
    model.push(ModelReply::text("They spoke of two things."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("first\r");
    talk.shows("The first answer.");
    talk.press("/quit\r");
    assert_eq!(talk.ended(), 0);
    let first = id(&rows(&owd.owctl.json(&["session", "list"]))[0]);
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("/resume nosuch\r");
    talk.shows("nosuch");
    talk.shows("error: ");
    talk.press(&format!("/resume {}\r", &first[..8]));
    talk.shows("The first answer.");
    talk.press("second\r");
    talk.shows("The second answer.");
    talk.shows("1 model call");
    assert_eq!(messages(&model).iter().filter(|message| message["role"] == "user").count(), 2, "it is the first chat");
    talk.press("/compact\r");
    talk.shows("It sums up what was said.");
    until("the model is asked for a summary", || (model.seen() == 3).then_some(()));
    talk.shows("from here on the model is sent a summary");
    assert_eq!(rows(&owd.owctl.json(&["session", "list"])).len(), 1, "the empty one is gone");
}

#[test]
fn whoever_leaves_finds_the_questions_in_the_inbox_and_comes_back_to_them() {
    let model = ModelServer::start();
    model.push(ModelReply::calls([("shell", json!({ "argv": ["touch", "made"] }))]));
    model.push(ModelReply::text("Made."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("make it\r");
    talk.shows("[o]nce");
    talk.press(ESCAPE);
    talk.shows("put aside");
    talk.press("and then this\r");
    talk.shows("It waits for your answer first");
    talk.press("\u{4}");
    assert_eq!(talk.ended(), 0);
    let item = id(&owd.item());
    talk.shows(&format!("its questions are in the Inbox: owctl inbox show {item}"));
    let mut again = chat(&owd, &scratch, &["--continue"]);
    again.shows("It waits for your answer.");
    again.shows("› make it");
    again.shows("[o]nce");
    again.press("o");
    again.shows("› and then this");
    again.shows("Made.");
    assert!(heard(&model).contains("and then this"), "{}", heard(&model));
    assert!(scratch.work().join("made").exists());
}

#[test]
fn several_may_watch_one_chat_and_the_first_answer_counts() {
    let model = ModelServer::start();
    model.push(ModelReply::text("Hello both."));
    model.push(ModelReply::calls([("shell", json!({ "argv": ["touch", "made"] }))]));
    model.push(ModelReply::text("Made."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut one = chat(&owd, &scratch, &[]);
    one.press("hi\r");
    one.shows("Hello both.");
    let mut other = chat(&owd, &scratch, &["--continue"]);
    other.shows("Hello both.");
    other.press("make it\r");
    one.shows("make it");
    one.shows("[o]nce");
    other.shows("[o]nce");
    one.press("o");
    other.shows("approved by");
    other.shows("Made.");
    one.shows("Made.");
    other.hides("[o]nce");
}

#[test]
fn a_question_is_answered_by_a_digit_and_a_plan_by_a_key() {
    let model = ModelServer::start();
    let question = json!({ "question": "Which colour?", "options": ["red", "green"] });
    model.push(ModelReply::calls([("ask_user", json!({ "questions": [question] }))]));
    model.push(ModelReply::calls([("propose_plan", json!({ "plan": "1. **Paint** it\n2. Dry it" }))]));
    model.push(ModelReply::text("On it."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("/plan paint it\r");
    talk.shows("[2] green");
    talk.press("2");
    talk.shows("[y]es, go ahead");
    assert!(heard(&model).contains("green"), "{}", heard(&model));
    assert!(talk.screen().contains("1. Paint it"), "{}", talk.screen());
    talk.press("y");
    talk.shows("On it.");
}

#[test]
fn the_terminal_may_change_its_size_in_the_middle() {
    let model = ModelServer::start();
    let gate = Gate::new();
    let text = "word ".repeat(30) + "\n\n" + &"more ".repeat(30) + "\n\nend.";
    model.push(ModelResponse::from(ModelReply::text(text).in_pieces(5)).wait_after(3000, &gate));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("tell\r");
    talk.shows("word word");
    talk.resize(40, 30);
    talk.press("typed");
    talk.shows("› typed");
    talk.resize(40, 8);
    talk.is("all of the last rows are there", |screen| {
        screen.lines().last().is_some_and(|last| last.starts_with("mode ask"))
    });
    talk.resize(40, 30);
    gate.open();
    talk.shows("end.");
    talk.is("rows are whole words", |screen| {
        screen.lines().filter(|line| line.starts_with("more")).all(|line| line.ends_with("more"))
    });
    until("the cursor is where one types", || talk.row_of_cursor().starts_with("› typed").then_some(()));
}

#[test]
fn what_was_said_can_be_recalled_in_the_next_chat_and_nobody_else_reads_it() {
    use std::os::unix::fs::PermissionsExt;
    let model = ModelServer::start();
    model.push(ModelReply::text("Aye."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("two\\\rlines\r");
    talk.shows("Aye.");
    assert!(heard(&model).contains(r"two\nlines"), "{}", heard(&model));
    talk.press("\u{4}");
    assert_eq!(talk.ended(), 0);
    let mut next = chat(&owd, &scratch, &[]);
    next.press("\u{1b}[A");
    next.shows("› two\n  lines");
    let file = scratch.path().join("data/chat-history");
    assert_eq!(fs::metadata(file).expect("a history").permissions().mode() & 0o777, 0o600);
    next.press("\u{15}\u{7f}\u{15}\u{4}");
    assert_eq!(next.ended(), 0);
    assert_eq!(rows(&owd.owctl.json(&["session", "list"])).len(), 1, "a chat in which nothing was said is not kept");
}

#[test]
fn nothing_said_by_a_model_moves_the_cursor() {
    let model = ModelServer::start();
    model.push(ModelReply::text("a\u{1b}[2J\u{1b}]0;title\u{7}b\u{202e}c"));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("hi\r");
    talk.shows(r"a\u{1b}[2J\u{1b}]0;title\u{7}b\u{202e}c");
    talk.shows("› hi");
}

#[test]
fn without_a_terminal_a_chat_says_what_to_do() {
    let model = ModelServer::start();
    let scratch = with_model(&model);
    let owd = scratch.start();
    let answer = owd.owctl.run(&["chat"]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("there is no terminal") && answer.stderr.contains("owctl chat -p"),
        "{}",
        answer.stderr
    );
}

#[test]
fn a_chat_outlives_its_owd() {
    let model = ModelServer::start();
    model.push(ModelReply::text("Before."));
    model.push(ModelReply::text("After."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat(&owd, &scratch, &[]);
    talk.press("one\r");
    talk.shows("Before.");
    owd.kill();
    talk.shows("owd has gone");
    let _owd = scratch.start();
    talk.shows("owd is back");
    talk.press("two\r");
    talk.shows("After.");
    assert_eq!(talk.screen().matches("Before.").count(), 1, "{}", talk.screen());
}

#[test]
fn where_no_model_is_configured_a_chat_says_what_to_do() {
    let scratch = Scratch::new();
    let owd = scratch.start();
    for args in [&["chat", "-p", "hello"][..], &["chat"][..]] {
        let mut talk = Terminal::start(owd.owctl.command(args).current_dir(scratch.work()), 120, 30);
        assert_eq!(talk.ended(), 1);
        let screen = talk.screen();
        for told in ["no model is configured", "owctl chat --model ", "[agent] model = ", "owd.toml", "owctl reload"] {
            assert!(screen.contains(told), "`{told}` is missing:\n{screen}");
        }
    }
    assert_eq!(rows(&owd.owctl.json(&["session", "list"])).len(), 0, "no chat was begun");
}

#[test]
fn without_colours_all_is_still_told() {
    let model = ModelServer::start();
    model.push(ModelReply::text("# Title\n\nAll **well**."));
    model.push(ModelReply::calls([("shell", json!({ "argv": ["touch", "made"] }))]));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut command = owd.owctl.command(&["chat"]);
    let mut talk = Terminal::start(command.current_dir(scratch.work()).env("NO_COLOR", "1"), 30, 20);
    talk.shows("/help");
    talk.press("hi\r");
    talk.shows("All well.");
    assert!(!talk.painted().contains("[1m") && !talk.painted().contains("[36m"), "{:?}", talk.painted());
    talk.press("make it\r");
    talk.is("all keys are told in 30 columns", |screen| {
        ["[o]nce", "[t]his", "[c]ommand", "[e]dit", "[d]eny"].iter().all(|key| screen.contains(key))
    });
}

/// Whatever the terminal's size, and however the answer is cut into pieces: all of it is there once, in its order.
#[test]
fn a_long_answer_on_a_small_terminal_is_all_in_the_scrollback() {
    let model = ModelServer::start();
    let words = |from: usize, count: usize| (from..from + count).map(|n| format!("w{n}")).collect::<Vec<_>>();
    let items = words(400, 40).iter().map(|word| format!("- {word}")).collect::<Vec<_>>().join("\n");
    let rows = words(500, 12).iter().map(|word| format!("| {word} | x |")).collect::<Vec<_>>().join("\n");
    let code = words(600, 30).join("\n");
    let text = format!(
        "{}\n\n{items}\n\n| a | b |\n|---|---|\n{rows}\n\n```\n{code}\n```\n\n{}",
        words(0, 300).join(" "),
        words(700, 200).join(" ")
    );
    model.push(ModelReply::text(text).in_pieces(7));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut talk = chat_of(&owd, &scratch, &[], 40, 12);
    talk.press("tell all\r");
    talk.shows("1 model call");
    let found: Vec<String> = talk
        .scrollback()
        .iter()
        .flat_map(|row| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter(|word| word.strip_prefix('w').is_some_and(|number| number.parse::<usize>().is_ok()))
        .collect();
    let all = [words(0, 300), words(400, 40), words(500, 12), words(600, 30), words(700, 200)].concat();
    assert_eq!(found, all);
}
