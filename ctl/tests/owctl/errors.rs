//! Every error has its exit code and says what to do next.

use expect_test::expect;
use serde_json::json;

use crate::fake::{Fake, Reply};
use crate::program::Owctl;

fn refused(status: u16, code: &str, hint: Option<&str>) -> Fake {
    Fake::start().on("GET /v1/runs/7k2", Reply::error(status, code, "it cannot be", hint))
}

#[test]
fn without_owd_it_says_how_to_start_it() {
    let ran = Owctl::new().with("OWD_SOCKET", "/nonexistent/owd.sock").run(["status"]);
    expect![[r#"
        exit 3
        --
        error: owd is not running: nothing answers at /nonexistent/owd.sock: No such file or directory (os error 2)
        next:  start it with `owd start --detach`, or for good, also after a reboot, with `owctl service install`
    "#]]
    .assert_eq(&ran.shown());
    let ran = Owctl::new().with("OWD_SOCKET", "/nonexistent/owd.sock").run(["task", "list", "--json"]);
    expect![[r#"
        exit 3
        {"error":{"code":"not_running","message":"owd is not running: nothing answers at /nonexistent/owd.sock: No such file or directory (os error 2)","hint":"start it with `owd start --detach`, or for good, also after a reboot, with `owctl service install`"}}
    "#]].assert_eq(&ran.shown());
}

#[test]
fn each_refusal_of_owd_has_its_exit_code() {
    let cases = [
        (400, "bad_request", 2),
        (403, "forbidden", 7),
        (404, "not_found", 4),
        (409, "ambiguous", 4),
        (409, "already_answered", 5),
        (409, "expired", 5),
        (409, "withdrawn", 5),
        (409, "conflict", 5),
        (422, "invalid", 2),
        (429, "too_many_requests", 1),
        (503, "unavailable", 1),
        (500, "internal", 1),
    ];
    for (status, code, exit) in cases {
        let ran = Owctl::to(&refused(status, code, None)).run(["run", "show", "7k2", "--json"]);
        assert_eq!(ran.code, exit, "{code}: {ran:?}");
        let answer = ran.json();
        assert_eq!(answer["error"]["code"], code);
        assert_eq!(answer["error"]["message"], "it cannot be");
        assert!(answer["error"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{code}: {ran:?}");
    }
}

#[test]
fn what_owd_advises_is_what_is_told() {
    let fake = refused(409, "ambiguous", Some("`7k2` fits 7k2a and 7k2b"));
    expect![[r#"
        exit 4
        --
        error: it cannot be
        next:  `7k2` fits 7k2a and 7k2b
    "#]]
    .assert_eq(&Owctl::to(&fake).run(["run", "show", "7k2"]).shown());
}

#[test]
fn an_owd_of_another_protocol_must_be_restarted() {
    let fake = Fake::start().on("GET /v1/status", Reply::json(&json!({ "protocol": 2, "version": "9.0.0" })));
    expect![[r#"
        exit 6
        --
        error: owd 9.0.0 is running and speaks protocol 2; this program speaks 1
        next:  restart owd: `owd stop`, then `owd start --detach`
    "#]]
    .assert_eq(&Owctl::to(&fake).run(["status"]).shown());
}

#[test]
fn an_owd_of_another_version_is_told_beside_the_answer() {
    let page =
        Reply::json(&json!({ "rows": [] })).with_header("x-owd-version", "9.0.0").with_header("x-owd-protocol", "1");
    let fake = Fake::start().on("GET /v1/items?limit=50", page);
    expect![[r#"
        exit 0
        Nothing waits for you.
        --
        warning: owd 9.0.0 is running and this is owctl 0.1.0; restart owd: `owd stop`, then `owd start --detach`
    "#]]
    .assert_eq(&Owctl::to(&fake).run(["inbox", "list"]).shown());
    let ran = Owctl::to(&fake).run(["inbox", "list", "--json"]);
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (0, "{\"rows\":[]}\n", ""));
}

#[test]
fn a_wrong_command_line_is_json_too_if_asked_for() {
    expect![[r#"
        exit 2
        {"error":{"code":"usage","message":"unrecognized subcommand 'shwo'","hint":"a similar subcommand exists: 'show'"}}
    "#]].assert_eq(&Owctl::new().run(["task", "shwo", "x", "--json"]).shown());
    expect![[r#"
        exit 2
        {"error":{"code":"usage","message":"the following required arguments were not provided: <ITEM>","hint":"see `owctl help` and `owctl help COMMAND`"}}
    "#]].assert_eq(&Owctl::new().run(["inbox", "approve", "--json"]).shown());
    let ran = Owctl::new().run(["inbox", "approve", "a/b", "--json"]);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.json()["error"]["code"], "usage");
}

#[test]
fn a_time_that_is_none_shows_how_to_write_one() {
    let ran = Owctl::new().run(["why", "reports", "noonish"]);
    expect![[r#"
        exit 2
        --
        error: `noonish` is not a time
        next:  write `2026-03-08T03:00:00Z`, `2026-03-08 03:00`, `03:00`, a day such as `2026-03-08` or `yesterday`, or a span from now such as `2h`
    "#]].assert_eq(&ran.shown());
}

#[test]
fn text_from_outside_cannot_draw_on_the_terminal_or_turn_it_round() {
    let evil = "\u{1b}[2Jx\u{202e}y\u{200b}z\n";
    let fake = Fake::start().on("GET /v1/runs/7k2", Reply::error(404, "not_found", evil, Some(evil)));
    let ran = Owctl::to(&fake).run(["run", "show", "7k2"]);
    assert_eq!(ran.stderr.lines().next(), Some("error: \\u{1b}[2Jx\\u{202e}y\\u{200b}z"));
    let ran = Owctl::to(&fake).run(["run", "show", "7k2", "--json"]);
    assert_eq!(ran.json()["error"]["message"], evil);
    assert!(!ran.stdout.contains('\u{202e}') && !ran.stdout.contains('\u{1b}'), "{ran:?}");
}
