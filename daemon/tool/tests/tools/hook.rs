//! Hooks in a helper: bounded in time and output, and nothing of them stays.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use ow_model::Span;
use ow_tool::{HookEnd, HookExit, HookJob};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, until};

fn job(bench: &Bench, script: &str) -> HookJob {
    let program = bench.file("hook", script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    HookJob {
        program,
        arguments: vec![],
        cwd: bench.root(),
        stdin: r#"{"event":"stop"}"#.into(),
        time: Span::from_secs(20),
        stream_bytes: 10 * 1024,
    }
}

async fn run(bench: &Bench, job: HookJob) -> HookEnd {
    bench.helpers.ready().await.unwrap().run_hook(job, &CancellationToken::new()).await
}

#[tokio::test]
async fn a_hook_is_told_on_standard_input_and_answers_by_status_and_output() {
    let bench = Bench::new();
    let end = run(&bench, job(&bench, "#!/bin/sh\ncat; pwd >&2; exit 2\n")).await;
    assert_eq!((end.how, end.stdout.as_str()), (HookExit::Status(2), r#"{"event":"stop"}"#));
    assert_eq!(end.stderr.trim(), bench.root().to_str().unwrap());
}

/// ext-26, in miniature
#[tokio::test]
async fn a_hook_that_hangs_is_ended_with_all_its_children() {
    let bench = Bench::new();
    // The grandchild leads a session of its own and holds the pipe.
    let script =
        "#!/bin/sh\nsetsid sh -c 'echo $$ > pid; exec sleep 600' &\nwhile ! [ -s pid ]; do :; done\nsleep 600\n";
    let began = Instant::now();
    let end = run(&bench, HookJob { time: Span::from_millis(1500), ..job(&bench, script) }).await;
    assert_eq!(end.how, HookExit::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert!(!fs::exists(format!("/proc/{}", bench.text("pid").trim())).unwrap());
}

#[tokio::test]
async fn what_a_hook_left_behind_does_not_delay_its_end() {
    let bench = Bench::new();
    let script = "#!/bin/sh\nsetsid sh -c 'echo $$ > pid; exec sleep 600' &\nwhile ! [ -s pid ]; do :; done\n";
    let began = Instant::now();
    let end = run(&bench, job(&bench, script)).await;
    assert_eq!(end.how, HookExit::Status(0));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(!fs::exists(format!("/proc/{}", bench.text("pid").trim())).unwrap());
}

#[tokio::test]
async fn of_a_flood_only_the_beginning_is_kept_and_the_hook_is_not_held_up() {
    let bench = Bench::new();
    let end = run(&bench, job(&bench, "#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' x; exit 0\n")).await;
    assert_eq!((end.how, end.stdout.len()), (HookExit::Status(0), 10 * 1024));
}

#[tokio::test]
async fn a_hook_need_not_read_what_it_is_told() {
    let bench = Bench::new();
    let stdin = "x".repeat(4_000_000);
    let end = run(&bench, HookJob { stdin, ..job(&bench, "#!/bin/sh\nexit 0\n") }).await;
    assert_eq!(end.how, HookExit::Status(0));
}

#[tokio::test]
async fn one_that_cannot_start_says_so() {
    let bench = Bench::new();
    let missing = HookJob { program: bench.root().join("gone"), ..job(&bench, "") };
    assert!(matches!(run(&bench, missing).await.how, HookExit::NotStarted(_)));
    let end = run(&bench, job(&bench, "no interpreter is named\n")).await;
    assert!(matches!(end.how, HookExit::NotStarted(_)), "{end:?}");
}

#[tokio::test]
async fn owd_may_stop_a_hook() {
    let bench = Bench::new();
    let stop = CancellationToken::new();
    let job = job(&bench, "#!/bin/sh\n: > begun\nsleep 600\n");
    let helper = bench.helpers.ready().await.unwrap();
    let begun = bench.root().join("begun");
    let stopping = async {
        until("the hook has begun", || begun.exists()).await;
        stop.cancel();
    };
    let (end, ()) = tokio::join!(helper.run_hook(job, &stop), stopping);
    assert_eq!(end.how, HookExit::Stopped);
}

#[tokio::test]
async fn keys_of_the_environment_do_not_reach_a_hook() {
    let bench = Bench::new();
    let end = run(&bench, job(&bench, "#!/bin/sh\nenv\n")).await;
    assert!(end.stdout.contains("PATH=") && !end.stdout.contains("CARGO"), "{}", end.stdout);
}
