//! Answering items.

use std::path::Path;

use expect_test::expect;
use serde_json::{Value, json};

use crate::fake::{Fake, Reply};
use crate::program::{self, Owctl};

const ID: &str = "7k2m9q4r8t0v3x5z";

fn item(state: &str) -> Value {
    json!({
        "id": ID, "token": format!("[ow:{ID}]"), "kind": "approval", "title": "filing: step 1 `shell` wants to run",
        "task": "filing", "run": "4k7q0000000000aa", "state": state,
        "created_at": "2001-03-08T12:00:00Z", "expires_at": "2001-03-22T12:00:00Z", "reminded": 0, "holds_back": 2,
        "approval": {
            "tool": "shell", "arguments": { "argv": ["mv", "a\u{202e}b", "/srv/x"] }, "reason": "no rule covers it",
            "category": "exec", "call_id": "4k7q0000000000aa/0", "hash": "00", "working_directory": "/srv",
            "bound_files": [{ "path": "/usr/bin/mv", "hash": "11" }], "unbound": "files that mv reads in turn",
            "diff": null, "rule_offer": { "target": "argv", "argv": ["mv", "a b", "/srv/x"], "cwd": "/srv" },
        },
    })
}

fn resolved(state: &str, kind: &str) -> Value {
    let mut item = item(state);
    item["resolution"] = json!({
        "answer": { "kind": kind, "text": null }, "by": "ada", "surface": "socket", "at": "2001-03-08T13:00:00Z",
    });
    item
}

fn inbox(reference: &str) -> Fake {
    let failed = json!({
        "what": "asked", "binding": "ntfy:https://ntfy.example/t\u{1b}", "state": "waiting", "attempts": 2, "done_at": null,
        "created_at": "2001-03-08T12:00:00Z", "due_at": "2001-03-08T13:00:00Z", "error": "connection refused",
    });
    let deliveries = json!({ "rows": [failed], "next": null });
    Fake::start()
        .on(&format!("GET /v1/items/{reference}"), Reply::json(&item("pending")))
        .on(&format!("GET /v1/items/{ID}/deliveries"), Reply::json(&deliveries))
        .on(&format!("POST /v1/items/{reference}/answer"), Reply::json(&resolved("approved", "approve")))
}

/// An editor that does `script` to the file.
fn editor(home: &Path, script: &str) -> std::path::PathBuf {
    let path = home.join("editor");
    program::script(&path, script);
    path
}

#[test]
fn an_item_shows_all_that_an_answer_is_about() {
    let ran = Owctl::to(&inbox("7k2")).run(["inbox", "show", "7k2"]);
    let (shown, _told) = ran.stdout.split_once("\nTold of:").expect("a part of its own");
    let lines: Vec<&str> = shown.lines().filter(|line| !line.contains("ago)")).collect();
    expect![[r#"
        filing: step 1 `shell` wants to run

        item        7k2m9q4r8t0v3x5z  [ow:7k2m9q4r8t0v3x5z]
        kind        approval
        state       pending
        task        filing
        run         4k7q0000000000aa
        holds back  2 scheduled runs so far
        wants       shell (exec)

          argv: ["mv","a\u{202e}b","/srv/x"]
          in /srv

        It asks because: no rule covers it

        Your answer holds for these files as they are now:
          /usr/bin/mv
        Not bound: files that mv reads in turn

        With --for-task it would also be allowed from now on: mv 'a b' /srv/x in /srv

        Answer with one of
          owctl inbox approve 7k2m9q4r8t0v3x5z
          owctl inbox approve 7k2m9q4r8t0v3x5z --for-task
          owctl inbox approve 7k2m9q4r8t0v3x5z --edit
          owctl inbox deny 7k2m9q4r8t0v3x5z --reason 'why not'"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn an_item_shows_where_it_was_told_of_and_what_went_wrong() {
    let ran = Owctl::to(&inbox("7k2")).run(["inbox", "show", "7k2"]);
    let told = ran.stdout.split_once("Told of:\n").expect("a part of its own").1;
    assert!(told.starts_with("  asked      ntfy:https://ntfy.example/t\\u{1b}  tried 2 times, again "), "{told}");
    assert!(told.ends_with(": connection refused\n"), "{told}");
    let shown = Owctl::to(&inbox("7k2")).run(["inbox", "show", "--json", "7k2"]).json();
    assert_eq!((&shown["id"], &shown["deliveries"][0]["what"]), (&json!(ID), &json!("asked")));
}

#[test]
fn a_prefix_an_id_and_a_pasted_token_approve_the_same_item() {
    for (given, asked) in
        [("7K2", "7k2"), (ID, ID), ("[ow:7k2m9q4r8t0v3x5z]", ID), ("Re: [OW:7K2M9Q4R8T0V3X5Z] hi", ID)]
    {
        let fake = inbox(asked);
        let ran = Owctl::to(&fake).run(["inbox", "approve", given, "--json"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(ran.json()["state"], "approved");
        assert_eq!(fake.lines(), [format!("POST /v1/items/{asked}/answer {{\"answer\":\"approve\"}}")]);
        assert_eq!(fake.connections(), 1);
    }
}

#[test]
fn each_way_to_answer_is_its_own_request() {
    let cases: [(&[&str], &str); 7] = [
        (&["approve", ID, "--for-task"], "{\"answer\":\"approve-for-task\"}"),
        (&["approve", ID, "--tool"], "{\"answer\":\"approve-tool\"}"),
        (&["approve", ID, "--command"], "{\"answer\":\"approve-command\"}"),
        (&["approve", ID, "--args", "{\"argv\":[\"ls\"]}"], "{\"answer\":\"edit\",\"arguments\":{\"argv\":[\"ls\"]}}"),
        (&["deny", ID], "{\"answer\":\"deny\",\"reason\":null}"),
        (&["deny", ID, "--reason", "not now"], "{\"answer\":\"deny\",\"reason\":\"not now\"}"),
        (&["answer", ID, "the second"], "{\"answer\":\"answer\",\"text\":\"the second\"}"),
    ];
    for (args, body) in cases {
        let fake = inbox(ID);
        let ran = Owctl::to(&fake).run(["inbox"].iter().chain(args));
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(fake.lines(), [format!("POST /v1/items/{ID}/answer {body}")]);
    }
}

#[test]
fn several_words_answer_one_question_and_several_questions_take_one_each() {
    let question = |header: &str| json!({ "header": header, "text": "?", "options": ["a", "b"], "multi": false });
    for (questions, args, text) in [
        (vec![question("X")], ["the", "second"], "the second"),
        (vec![question("X"), question("Y")], ["2", "none"], "X: b\\nY: none"),
    ] {
        let mut asked = item("pending");
        (asked["kind"], asked["questions"]) = (json!("question"), json!(questions));
        let answered = Reply::json(&resolved("answered", "answer"));
        let fake = Fake::start()
            .on(&format!("GET /v1/items/{ID}"), Reply::json(&asked))
            .on(&format!("POST /v1/items/{ID}/answer"), answered);
        let ran = Owctl::to(&fake).run(["inbox", "answer", ID, args[0], args[1]]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let body = format!("{{\"answer\":\"answer\",\"text\":\"{text}\"}}");
        assert_eq!(fake.lines().last(), Some(&format!("POST /v1/items/{ID}/answer {body}")));
    }
}

#[test]
fn what_was_done_and_by_whom_is_told() {
    let ran = Owctl::to(&inbox("7k2")).run(["inbox", "approve", "7k2"]);
    let text = ran.shown();
    let (kept, _) = text.split_once(" (").unwrap();
    expect![[r#"
        exit 0
        approved: filing: step 1 `shell` wants to run
        approve by ada over socket, 2001-03-08 13:00:00"#]]
    .assert_eq(kept);
}

#[test]
fn edited_arguments_go_to_the_item_that_was_shown() {
    let fake = inbox("7k2").on(&format!("POST /v1/items/{ID}/answer"), Reply::json(&resolved("approved", "edit")));
    let owctl = Owctl::to(&fake);
    let editor = editor(owctl.home(), "echo '{\"argv\":[\"ls\"]}' > \"$1\"");
    let ran = owctl.with("EDITOR", editor).run(["inbox", "approve", "7k2", "--edit"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let answer = format!("POST /v1/items/{ID}/answer {{\"answer\":\"edit\",\"arguments\":{{\"argv\":[\"ls\"]}}}}");
    assert_eq!(fake.lines(), ["GET /v1/items/7k2".to_owned(), answer]);
}

#[test]
fn an_edit_that_changes_nothing_or_is_no_json_answers_nothing() {
    for (script, code) in [("true", "not_edited"), ("echo '[1' > \"$1\"", "usage"), ("exit 3", "editor")] {
        let fake = inbox("7k2");
        let owctl = Owctl::to(&fake);
        let editor = editor(owctl.home(), script);
        let temporary = owctl.home().to_owned();
        let ran =
            owctl.with("TMPDIR", temporary).with("EDITOR", editor).run(["inbox", "approve", "7k2", "--edit", "--json"]);
        assert_eq!(ran.json()["error"]["code"], code, "{ran:?}");
        assert_eq!(fake.lines(), ["GET /v1/items/7k2"]);
    }
}

#[test]
fn a_later_answer_is_told_who_decided() {
    let late = Reply::error(409, "already_answered", "approved by ada over socket at 2001-03-08T13:00:00Z", None);
    let fake = Fake::start().on("POST /v1/items/7k2/answer", late);
    expect![[r#"
        exit 5
        --
        error: approved by ada over socket at 2001-03-08 13:00:00
        next:  see what became of it: `owctl inbox show ID`
    "#]]
    .assert_eq(&Owctl::to(&fake).run(["inbox", "deny", "7k2"]).shown());
}

#[test]
fn the_list_is_of_what_waits_unless_all_is_asked_for() {
    let fake = Fake::start()
        .on("GET /v1/items?limit=50", Reply::json(&json!({ "rows": [item("pending")], "next": "c\u{1b}1" })))
        .on("GET /v1/items?after=c1&limit=5&task=filing&state=all&run=4k7", Reply::json(&json!({ "rows": [] })));
    let ran = Owctl::to(&fake).run(["inbox", "list"]);
    assert!(ran.stdout.contains(ID) && ran.stdout.contains("more: add --after c\\u{1b}1"), "{ran:?}");
    let ran = Owctl::to(&fake)
        .run(["inbox", "list", "--all", "--task", "filing", "--run", "4k7", "-n", "5", "--after", "c1"]);
    assert_eq!(ran.stdout, "No items.\n");
}
