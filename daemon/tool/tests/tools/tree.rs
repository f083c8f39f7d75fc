//! Nothing that a call starts outlives it.

use std::path::PathBuf;

use ow_model::{CallErrorKind, Span};
use ow_tool::{HelperEnd, Leftover, boot_id, end_leftover, start_ticks};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, call, is_alive, pid_in, until};

/// A process that leaves its parent, session and pipes behind, ignores SIGTERM, and says its pid.
fn escapee(bench: &Bench) -> (PathBuf, String) {
    let path = bench.root().join("escapee.pid");
    let script = format!(
        "setsid sh -c 'trap \"\" TERM HUP INT; exec 0<&- 1>&- 2>&-; (echo $$ > {0}.tmp; mv {0}.tmp {0}; while :; do sleep 1; done)' & ",
        path.display()
    );
    (path, script)
}

fn running(bench: &Bench, after: &str) -> (PathBuf, Value) {
    let (path, script) = escapee(bench);
    let wait = format!("while [ ! -e {} ]; do sleep 0.01; done", path.display());
    (path, json!({ "command": format!("{script}{wait}; {after}") }))
}

#[tokio::test]
async fn a_finished_command_leaves_nothing_behind() {
    let bench = Bench::new();
    let (path, args) = running(&bench, "echo done");
    let output = bench.output("shell", args).await;
    assert_eq!(output["stdout"], "done\n");
    assert!(!is_alive(pid_in(&path).unwrap()), "the answer comes after the last process");
}

#[tokio::test]
async fn a_background_process_that_holds_the_output_does_not_hold_the_call() {
    let bench = Bench::new();
    let output = bench.output("shell", json!({ "command": "sleep 1000 & echo done" })).await;
    assert_eq!(output["stdout"], "done\n");
}

#[tokio::test]
async fn a_stopped_call_takes_its_tree_with_it() {
    let bench = Bench::new();
    let (path, args) = running(&bench, "sleep 1000");
    let stop = CancellationToken::new();
    let asked = async {
        until("the command runs", || pid_in(&path).is_some()).await;
        stop.cancel();
    };
    let call = call("shell", args);
    let (end, ()) = tokio::join!(bench.end(&call, stop.clone(), Span::from_millis(50)), asked);
    assert!(matches!(end, HelperEnd::Stopped), "{end:?}");
    assert!(!is_alive(pid_in(&path).unwrap()));
}

#[tokio::test]
async fn a_stopped_command_may_end_by_itself() {
    let bench = Bench::new();
    let path = bench.root().join("ready");
    let script =
        format!("trap 'echo tidy > tidied; exit 0' TERM; touch {}; while :; do sleep 0.02; done", path.display());
    let stop = CancellationToken::new();
    let asked = async {
        until("the command runs", || path.exists()).await;
        stop.cancel();
    };
    let call = call("shell", json!({ "command": script }));
    let (end, ()) = tokio::join!(bench.end(&call, stop.clone(), Span::from_secs(20)), asked);
    assert!(matches!(end, HelperEnd::Stopped), "{end:?}");
    assert_eq!(bench.text("tidied"), "tidy\n");
}

#[tokio::test]
async fn when_owd_is_gone_the_tree_dies() {
    let bench = Bench::new();
    let (path, args) = running(&bench, "sleep 1000");
    let call = call("shell", args);
    {
        let run = bench.end(&call, CancellationToken::new(), Span::from_secs(60));
        tokio::select! {
            end = run => panic!("{end:?}"),
            () = until("the command runs", || pid_in(&path).is_some()) => {}
        }
        // Dropping the future closes the pipes, as the death of the process would.
    }
    let pid = pid_in(&path).unwrap();
    until("the tree is dead", || !is_alive(pid)).await;
}

#[tokio::test]
async fn a_command_that_kills_its_helper_is_lost_and_dead() {
    let bench = Bench::new();
    let (path, args) = running(&bench, "kill -9 ${OWD_HELPER%:*}; sleep 1000");
    let end = bench.end(&call("shell", args), CancellationToken::new(), Span::from_secs(1)).await;
    assert!(matches!(end, HelperEnd::Lost(_)), "{end:?}");
    assert!(!is_alive(pid_in(&path).unwrap()), "found by its mark");
}

#[tokio::test]
async fn what_multiplies_meets_the_limit_of_processes() {
    // The first is a fork bomb with a fuse: without the limit it would end at some thousand processes.
    for script in [
        "bomb() { [ $1 -gt 0 ] && { bomb $(($1 - 1)) & bomb $(($1 - 1)) & }; sleep 1000; }; bomb 10",
        "i=0; while [ $i -lt 500 ]; do setsid sleep 1000 & i=$((i + 1)); done; wait",
    ] {
        let mut bench = Bench::new();
        bench.limits.processes = 40;
        let result = bench.run("shell", json!({ "command": script, "timeout": "50s" })).await;
        let error = result.error.unwrap();
        assert_eq!(error.kind, CallErrorKind::Limit, "{error}");
        assert!(error.message.contains("40"), "{error}");
    }
}

#[tokio::test]
async fn a_leftover_of_an_earlier_owd_is_ended_and_only_that() {
    let bench = Bench::new();
    let (path, args) = running(&bench, "sleep 1000");
    let call = call("shell", args);
    let facts = bench.facts(&call).unwrap();
    let authorized = bench.allowed(&call, &facts).unwrap();
    let helper = bench.helpers.ready().await.unwrap();
    let (pid, start, boot) = (helper.pid(), helper.start_ticks(), helper.boot_id());
    assert_eq!(start, start_ticks(pid));
    let run = helper.run(&authorized, bench.job(facts), CancellationToken::new(), Span::from_secs(1));
    let check = async {
        until("the command runs", || pid_in(&path).is_some()).await;
        let command = pid_in(&path).unwrap();
        assert!(bench.helpers.started(command) && !bench.helpers.started(std::process::id()));
        let other = start.map(|start| start + 1);
        assert_eq!(end_leftover(pid, other, boot.as_deref()), Leftover::Nothing, "the pid of another process");
        assert_eq!(end_leftover(pid, start, Some("another boot")), Leftover::Nothing);
        assert!(is_alive(command) && is_alive(pid));
        let boot = boot_id();
        let ended = tokio::task::spawn_blocking(move || end_leftover(pid, start, boot.as_deref())).await.unwrap();
        assert_eq!(ended, Leftover::Ended);
        assert!(!is_alive(command) && !is_alive(pid));
        assert_eq!(end_leftover(pid, start, boot_id().as_deref()), Leftover::Nothing);
    };
    let (end, ()) = tokio::join!(run, check);
    assert!(matches!(end, HelperEnd::Lost(_)), "{end:?}");
}

#[tokio::test]
async fn a_helper_serves_one_call_after_the_other_and_none_after_one_that_was_cut_off() {
    let bench = Bench::new();
    let script = "umask 0; cd /; echo ${OWD_HELPER%:*}; umask; pwd";
    let first = bench.output("shell", json!({ "command": script })).await;
    let again = bench.output("shell", json!({ "command": "echo ${OWD_HELPER%:*}; umask; pwd" })).await;
    let lines =
        |output: &Value| -> Vec<String> { output["stdout"].as_str().unwrap().lines().map(str::to_owned).collect() };
    let (first, again) = (lines(&first), lines(&again));
    assert_eq!(first[0], again[0], "the same helper");
    assert!(first[1] != again[1] && first[2] != again[2], "a call leaves no mark on the next: {again:?}");
    let late = bench.run("shell", json!({ "command": "sleep 1000", "timeout": "50ms" })).await;
    assert_eq!(late.error.unwrap().kind, CallErrorKind::TimedOut);
    let after = bench.output("shell", json!({ "command": "echo ${OWD_HELPER%:*}" })).await;
    assert_ne!(lines(&after)[0], first[0]);
}

#[tokio::test]
async fn calls_at_once_each_have_a_helper_of_their_own_while_they_run() {
    let bench = Bench::new();
    // Each waits until all of them run.
    let script = format!(
        "touch {0}/$$.here; while [ $(ls {0} | wc -l) -lt 4 ]; do sleep 0.01; done; echo ${{OWD_HELPER%:*}}",
        {
            let folder = bench.root().join("here");
            std::fs::create_dir(&folder).unwrap();
            folder.display().to_string()
        }
    );
    let call = || bench.output("shell", json!({ "command": script }));
    let (a, b, c, d) = tokio::join!(call(), call(), call(), call());
    let pids: std::collections::BTreeSet<String> = [a, b, c, d].iter().map(|out| out["stdout"].to_string()).collect();
    assert_eq!(pids.len(), 4, "{pids:?}");
}

#[tokio::test]
async fn a_spare_helper_waits_while_there_is_work_and_goes_on_close() {
    let bench = Bench::new();
    bench.output("shell", json!({ "argv": ["true"] })).await;
    let before = bench.helpers.ready().await.unwrap();
    assert!(is_alive(before.pid()));
    let pid = before.pid();
    drop(before);
    bench.helpers.close().await;
    until("the helper is gone", || !is_alive(pid)).await;
    let again = bench.helpers.ready().await.unwrap();
    assert_ne!(again.pid(), pid);
}

#[tokio::test]
async fn a_helper_that_cannot_start_is_an_error() {
    let helpers = ow_tool::Helpers::new("/nonexistent/owd".into(), vec![]);
    assert!(helpers.ready().await.is_err());
    let helpers = ow_tool::Helpers::new("/bin/true".into(), vec![]);
    assert!(helpers.ready().await.is_err());
}
