//! Commands that go on: what they print is read bit by bit, and they end with their session and with owd.

use std::time::Duration;

use jiff::Timestamp;
use ow_model::{CallErrorKind, CallResult, Position, RunId, Span};
use ow_secret::Secrets;
use ow_tool::{CallOf, JobEnded, Runner, register_jobs};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, RUN, call, is_alive, pid_in, until};

fn bench() -> Bench {
    let mut bench = Bench::new();
    register_jobs(&mut bench.toolbox, bench.helpers.background());
    bench
}

/// Starts a job from the call at this place.
async fn start(bench: &Bench, position: u32, args: Value) -> CallResult {
    let mut call = call("shell", args);
    call.args["background"] = true.into();
    call.position = Position(position);
    match bench.end(&call, CancellationToken::new(), Span::from_secs(1)).await {
        ow_tool::HelperEnd::Done(result, _) => result,
        other => panic!("{other:?}"),
    }
}

async fn of_run(bench: &Bench, run: RunId, tool: &str, args: Value) -> CallResult {
    let call = call(tool, args);
    let facts = bench.facts(&call).unwrap();
    let authorized = bench.allowed(&call, &facts).unwrap();
    let Some(Runner::Daemon(runner)) = bench.toolbox.runner(&call.tool) else { panic!("it runs in owd") };
    let of = CallOf {
        task: None,
        inbox: ow_model::InboxName::default(),
        run,
        position: Position(99),
        now: Timestamp::UNIX_EPOCH,
        enclosed: vec![],
    };
    runner.run(&authorized, &of).await
}

async fn ask(bench: &Bench, tool: &str, args: Value) -> CallResult {
    of_run(bench, RUN, tool, args).await
}

/// All that a job prints until it has ended.
async fn to_the_end(bench: &Bench, job: &str) -> (String, Value) {
    let mut text = String::new();
    for _ in 0..1000 {
        let result = ask(bench, "job_output", json!({ "job": job, "wait": "10s" })).await;
        assert_eq!(result.error, None);
        text.push_str(result.output["output"].as_str().unwrap());
        if result.output["state"] == "ended" {
            return (text, result.output);
        }
    }
    panic!("{job} does not end: {text}");
}

#[tokio::test]
async fn a_job_returns_at_once_and_each_read_gives_what_is_new() {
    let bench = bench();
    let go = bench.root().join("go");
    let line = format!("echo one; while [ ! -e '{}' ]; do sleep 0.02; done; echo two >&2; exit 3", go.display());
    let result = start(&bench, 4, json!({ "command": line })).await;
    assert_eq!((&result.output["job"], &result.output["state"]), (&json!("j4"), &json!("running")));
    let first = ask(&bench, "job_output", json!({ "job": "j4", "wait": "10s" })).await.output;
    assert_eq!((&first["output"], &first["state"]), (&json!("one\n"), &json!("running")));
    let again = ask(&bench, "job_output", json!({ "job": "j4" })).await.output;
    assert_eq!(again["output"], "");
    std::fs::write(&go, "").unwrap();
    let (text, last) = to_the_end(&bench, "j4").await;
    assert_eq!((text.as_str(), &last["how"]), ("two\n", &json!("exit status 3")));
    assert!(last["command"].as_str().unwrap().starts_with("echo one"));
}

#[tokio::test]
async fn who_listens_hears_of_the_end() {
    let bench = bench();
    let mut ends = bench.helpers.background().subscribe();
    start(&bench, 0, json!({ "argv": ["true"] })).await;
    let end = timeout(Duration::from_secs(10), ends.recv()).await.unwrap().unwrap();
    assert_eq!(end, JobEnded { run: RUN, job: "j0".into(), how: "exit status 0".into() });
    assert!(!bench.helpers.background().is_running(RUN, "j0"));
}

#[tokio::test]
async fn a_job_is_killed_with_all_that_it_started_even_if_it_will_not_hear() {
    let bench = bench();
    let pid = bench.root().join("pid");
    let line = format!(
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > {}; while :; do sleep 0.05; done' & \
         while :; do sleep 0.05; done",
        pid.display()
    );
    start(&bench, 1, json!({ "command": line })).await;
    until("it runs", || pid_in(&pid).is_some_and(is_alive)).await;
    let killed = ask(&bench, "job_kill", json!({ "job": "j1" })).await;
    assert_eq!((&killed.output["state"], &killed.output["how"]), (&json!("ended"), &json!("killed")));
    assert!(!is_alive(pid_in(&pid).unwrap()));
}

#[tokio::test]
async fn jobs_end_with_their_session_and_with_owd() {
    let bench = bench();
    let (one, two) = (bench.root().join("one"), bench.root().join("two"));
    let line =
        |file: &std::path::Path| json!({ "command": format!("echo $$ > '{}'; sleep 1000; true", file.display()) });
    start(&bench, 1, line(&one)).await;
    until("it runs", || pid_in(&one).is_some_and(is_alive)).await;
    bench.helpers.background().end_session(RUN);
    until("it is gone", || !is_alive(pid_in(&one).unwrap())).await;
    let error = ask(&bench, "job_output", json!({ "job": "j1" })).await.error.unwrap();
    assert!(error.kind == CallErrorKind::BadArguments && error.message.contains("`j1`"), "{error}");
    start(&bench, 2, line(&two)).await;
    until("it runs", || pid_in(&two).is_some_and(is_alive)).await;
    timeout(Duration::from_secs(20), bench.helpers.close()).await.unwrap();
    assert!(!is_alive(pid_in(&two).unwrap()));
}

#[tokio::test]
async fn another_session_has_no_part_in_a_job() {
    let bench = bench();
    start(&bench, 1, json!({ "argv": ["sleep", "1000"] })).await;
    let other = RunId::from_bytes([8; 10]);
    for tool in ["job_output", "job_kill"] {
        let error = of_run(&bench, other, tool, json!({ "job": "j1" })).await.error.unwrap();
        assert!(error.message.contains("no background job `j1`"), "{error}");
    }
    assert!(bench.helpers.background().is_running(RUN, "j1"));
    ask(&bench, "job_kill", json!({ "job": "j1" })).await;
}

#[tokio::test]
async fn number_time_and_output_of_jobs_are_bounded() {
    let bench = bench();
    for position in 0..8 {
        assert_eq!(start(&bench, position, json!({ "argv": ["sleep", "1000"] })).await.error, None);
    }
    let error = start(&bench, 8, json!({ "argv": ["sleep", "1000"] })).await.error.unwrap();
    assert!(error.kind == CallErrorKind::Limit && error.message.contains("job_kill"), "{error}");
    bench.helpers.background().end_session(RUN);
    start(&bench, 9, json!({ "argv": ["sleep", "1000"], "timeout": "200ms" })).await;
    let (_, last) = to_the_end(&bench, "j9").await;
    assert!(last["how"].as_str().unwrap().contains("still running after 200ms"), "{last}");
    let mut ends = bench.helpers.background().subscribe();
    start(&bench, 10, json!({ "command": "head -c 200000000 /dev/zero | tr '\\0' x; echo last" })).await;
    timeout(Duration::from_mins(1), ends.recv()).await.unwrap().unwrap();
    let (text, last) = to_the_end(&bench, "j10").await;
    assert!(text.len() == 256 * 1024 && text.ends_with("xlast\n"), "{}", text.len());
    assert!(last["dropped"].as_str().unwrap().starts_with("199737"), "{}", last["dropped"]);
}

#[tokio::test]
async fn secrets_are_taken_out_of_what_a_job_prints_across_pieces() {
    let mut bench = bench();
    bench.secrets = Secrets::from_pairs([("token", "s3cr3t-Value/1")]).unwrap();
    let args = json!({
        "command": "printf 's3cr3t-'; sleep 0.1; printf 'Value/1 '; printf %s \"$TOKEN\"; echo",
        "env": { "TOKEN": { "secret": "token" } },
    });
    start(&bench, 1, args).await;
    let (text, _) = to_the_end(&bench, "j1").await;
    assert_eq!(text, "[redacted] [redacted]\n");
    let error = start(&bench, 2, json!({ "argv": ["true"], "env": { "A": { "secret": "nope" } } })).await.error;
    assert!(error.unwrap().message.contains("no secret `nope`"));
}

#[tokio::test]
async fn a_job_that_cannot_start_ends_with_the_reason() {
    let bench = bench();
    start(&bench, 1, json!({ "argv": ["no-such-program-here"] })).await;
    let (_, last) = to_the_end(&bench, "j1").await;
    assert!(last["how"].as_str().unwrap().contains("no-such-program-here"), "{last}");
    let result = start(&bench, 2, json!({ "command": "curl --version || true" })).await;
    assert_eq!(result.error, None);
    assert!(ask(&bench, "job_output", json!({ "job": "j2", "wait": "10s" })).await.outside);
}
