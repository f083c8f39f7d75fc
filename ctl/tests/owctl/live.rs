//! Live views, over a stream of events.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use expect_test::expect;
use serde_json::{Value, json};

use crate::fake::{Fake, Reply};
use crate::program::Owctl;

const RUN: &str = "4k7q0000000000aa";

fn event(id: u64, kind: &str, target: &str) -> String {
    let data = json!({
        "id": id.to_string(), "type": kind, "source": "owd", "target": target, "payload": { "n": id }, "metadata": {},
        "timestamp": 984_052_800_000_i64, "network": "local", "visibility": "private",
    });
    format!("id: {id}\ndata: {data}\n\n")
}

fn run(state: &str, facts: usize) -> Value {
    let ended = ["succeeded", "failed"].contains(&state);
    let all = [("started", "the run began"), ("parked", "waits for an answer"), ("done", "step 1 gave \u{1b}[2J")];
    let facts: Vec<Value> = all[..facts]
        .iter()
        .enumerate()
        .map(|(seq, (fact, text))| json!({ "seq": seq, "at": "2001-03-08T12:00:00Z", "fact": fact, "text": text }))
        .collect();
    json!({
        "id": RUN, "task": "reports", "revision": 1, "cause": { "kind": "manual", "text": "by ada", "count": null },
        "state": state, "message": null, "failure": null,
        "items": if state == "parked" { vec!["7k2m9q4r8t0v3x5z"] } else { vec![] },
        "scheduled_for": "2001-03-08T12:00:00Z", "created_at": "2001-03-08T12:00:00Z",
        "started_at": null, "ended_at": if ended { Some("2001-03-08T12:00:01Z") } else { None },
        "attempt": 1, "retry_of": null, "ran_for_ms": 1234, "calls": [], "artifacts": [
            { "number": 1, "kind": "file", "name": "/srv/re\u{202e}port.md", "bytes": 12, "hash": "00" },
            { "number": 2, "kind": "message", "name": "ada", "bytes": null, "hash": null },
        ], "events": [], "facts": facts,
    })
}

fn going(last: &str) -> Fake {
    let about = format!("run:{RUN}");
    let stream = event(1, "run.parked", &about) + &event(2, "run.ended", "run:other") + &event(3, "run.ended", &about);
    Fake::start()
        .on("GET /v1/stream?target=run", Reply::stream(&stream))
        .on("POST /v1/tasks/reports/run", Reply::json(&run("queued", 0)))
        .on(&format!("GET /v1/runs/{RUN}"), Reply::json(&run("queued", 1)))
        .on(&format!("GET /v1/runs/{RUN}"), Reply::json(&run("parked", 2)))
        .on(&format!("GET /v1/runs/{RUN}"), Reply::json(&run(last, 3)))
}

#[test]
fn a_run_is_watched_to_its_end_each_fact_once() {
    let fake = going("succeeded");
    expect![[r#"
        exit 0
        2001-03-08 12:00:00  started  the run began
        run 4k7q0000000000aa of reports: queued
        2001-03-08 12:00:00  parked  waits for an answer
        run 4k7q0000000000aa of reports: parked
          waits for you: owctl inbox show 7k2m9q4r8t0v3x5z, owctl inbox approve 7k2m9q4r8t0v3x5z
        2001-03-08 12:00:00  done  step 1 gave \u{1b}[2J
        run 4k7q0000000000aa of reports: succeeded after 1.2 s
        --
        All of it: owctl run show 4k7q0000000000aa
    "#]]
    .assert_eq(&Owctl::to(&fake).run(["task", "run", "reports", "--wait"]).shown());
    // The stream stood before the run began.
    assert_eq!(fake.asked()[0].line, "GET /v1/stream?target=run");
}

#[test]
fn a_run_that_fails_ends_with_one_answer_and_exit_code_1() {
    let ran = Owctl::to(&going("failed")).run(["task", "run", "reports", "--wait", "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(ran.json()["state"], "failed");
    assert_eq!(Owctl::to(&going("failed")).run(["run", "watch", RUN]).code, 1);
}

#[test]
fn events_are_filtered_and_counted_and_go_on_over_a_lost_connection() {
    let fake = Fake::start()
        .on(
            "GET /v1/stream?target=owd",
            Reply::stream(&(event(5, "run.ended", "run:a") + &event(6, "item.created", "item:b"))),
        )
        .on("GET /v1/stream?target=owd", Reply::stream(&event(7, "item.resolved", "item:b")));
    let ran =
        Owctl::to(&fake).run(["events", "--type", "item.", "--target", "owd", "-n", "2", "--after", "4", "--json"]);
    let kinds: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect();
    assert_eq!(kinds, ["item.created", "item.resolved"]);
    let resumed: Vec<_> = fake.asked().iter().map(|asked| asked.header("last-event-id").map(str::to_owned)).collect();
    assert_eq!(resumed, [Some("4".into()), Some("6".into())]);
}

#[test]
fn an_event_is_a_line() {
    let fake = Fake::start().on("GET /v1/stream", Reply::stream(&event(5, "run.ended", "run:a")));
    expect![[r#"
        exit 0
        2001-03-08 12:00:00  run.ended  run:a  {"n":5}
    "#]]
    .assert_eq(&Owctl::to(&fake).run(["events", "-n", "1"]).shown());
}

#[test]
fn the_inbox_is_watched_from_what_waits_on_and_again_after_a_gap() {
    let item = |id: &str, state: &str| {
        json!({
            "id": id, "token": "", "kind": "question", "title": "which one?", "task": null, "run": null, "state": state,
            "created_at": "2001-03-08T12:00:00Z", "expires_at": null, "reminded": 0, "holds_back": 0,
        })
    };
    let fake = Fake::start()
        .on(
            "GET /v1/stream?target=item",
            Reply::stream(&(event(2, "item.created", "item:b2") + &event(9, "gap", "owd"))),
        )
        .on("GET /v1/items?limit=500", Reply::json(&json!({ "rows": [item("a1", "pending")] })))
        .on("GET /v1/items?limit=500", Reply::json(&json!({ "rows": [item("c3", "pending"), item("b2", "pending")] })))
        .on("GET /v1/items/b2", Reply::json(&item("b2", "pending")));
    let mut owctl = Owctl::to(&fake);
    let mut child =
        owctl.command().args(["inbox", "watch"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let seen: Vec<String> = lines.take(4).map(|line| line.unwrap()).collect();
    let line = |id: &str| format!("2001-03-08 12:00:00  {id}  question  pending  which one?");
    assert_eq!(seen, ["a1", "b2", "b2", "c3"].map(line));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_path_of_an_artifact_is_printed_as_it_is() {
    let fake = Fake::start().on("GET /v1/runs/4k7", Reply::json(&run("succeeded", 0)));
    assert_eq!(Owctl::to(&fake).run(["run", "open", "4k7", "1"]).stdout, "/srv/re\u{202e}port.md\n");
    assert_eq!(Owctl::to(&fake).run(["run", "open", "4k7", "2"]).code, 2);
    expect![[r#"
        exit 4
        --
        error: the run made nothing with number 9
          1. /srv/re\u{202e}port.md (12 bytes)
          2. message to ada
        next:  see what it made: owctl run show 4k7q0000000000aa
    "#]]
    .assert_eq(&Owctl::to(&fake).run(["run", "open", "4k7", "9"]).shown());
}

#[test]
fn an_agents_run_is_shown_with_its_calls_and_what_it_said() {
    let mut agents = run("failed", 0);
    let call = |position: u32, of: Value, tool: &str| {
        json!({
            "id": format!("{RUN}/{position}"), "position": position, "step": null, "sub_agent_of": of, "tool": tool,
            "arguments": { "path": "a" }, "state": "done", "rule": "mode auto", "item": null,
            "output": { "text": "hello" }, "error": null, "kept": [], "took_ms": 7,
        })
    };
    agents["message"] = json!("all 3 model calls are used up");
    agents["calls"] = json!([call(0, Value::Null, "read_file"), call(1, json!(0), "grep")]);
    agents["answer"] = json!("So far:\n- one \u{1b}[2J file");
    let fake = Fake::start().on("GET /v1/runs/4k7", Reply::json(&agents));
    let shown = Owctl::to(&fake).run(["run", "show", "4k7"]).stdout;
    let (_, made) = shown.split_once("ran for  1.2 s\n\n").expect("the run itself comes first");
    expect![[r#"
        call 0: read_file  done, 7 ms
          path: a
          by mode auto
          | text: hello

        call 1 of the sub-agent of call 0: grep  done, 7 ms
          path: a
          by mode auto
          | text: hello

        It made
          1. /srv/re\u{202e}port.md (12 bytes)
          2. message to ada

        It last said
        So far:
        - one \u{1b}[2J file
    "#]]
    .assert_eq(made);
}
