//! The daemon as a process: starts, stops, locks, modes. Cases: `daemon.json`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ow_test_support::{Answer, Scratch, binary, until};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

const SLEEPY: &str = r#"
[[step]]
tool = "shell"
args = { argv = ["sh", "-c", "echo $$ > {work}/pid; exec sleep 60"] }
"#;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it exists").permissions().mode() & 0o777
}

/// daemon-01
#[test]
fn a_stale_pid_in_the_lock_file_stops_nothing_and_kills_nobody() {
    let scratch = Scratch::new();
    let mut sleeper = Command::new("sleep").arg("60").spawn().expect("sleep starts");
    fs::create_dir_all(scratch.path().join("data")).expect("a folder");
    fs::write(scratch.path().join("data/owd.lock"), format!("{}\n", sleeper.id())).expect("a lock file");
    let owd = scratch.start();
    owd.stop();
    assert!(sleeper.try_wait().expect("it is ours").is_none(), "the sleeper was killed");
    sleeper.kill().expect("it is ours");
    sleeper.wait().expect("it is ours");
}

/// daemon-02
#[test]
fn a_socket_that_a_killed_owd_left_is_replaced() {
    let scratch = Scratch::new();
    scratch.start().kill();
    assert!(scratch.path().join("owd.sock").exists());
    let owd = scratch.start();
    owd.owctl.ok(&["status"]);
    owd.stop();
    assert!(!scratch.path().join("owd.sock").exists(), "a drained owd removes its socket");
}

/// daemon-03
#[test]
fn a_second_owd_names_the_first_and_changes_nothing() {
    let scratch = Scratch::new();
    let owd = scratch.start();
    let second = Answer::of(&scratch.command().stderr(Stdio::piped()).output().expect("owd starts"));
    assert_ne!(second.code, 0);
    assert!(second.stderr.contains(&format!("pid {}", owd.pid())), "{}", second.stderr);
    owd.owctl.ok(&["status"]);
}

/// daemon-06
#[test]
fn sigterm_interrupts_a_long_call_and_the_run_goes_on_after_a_question() {
    let scratch = Scratch::new();
    scratch.config("[policy]\nallow = [\"sh\"]\n[scheduler]\ngrace = \"1s\"\n");
    scratch.task("sleepy", SLEEPY);
    let owd = scratch.start();
    owd.owctl.ok(&["task", "allow", "sleepy", "--yes"]);
    owd.owctl.ok(&["task", "run", "sleepy"]);
    let pid_file = scratch.work().join("pid");
    let child: i32 = until("the call runs", || fs::read_to_string(&pid_file).ok()?.trim().parse().ok());
    owd.stop();
    let child = Pid::from_raw(child).expect("a pid");
    assert!(test_kill_process(child).is_err(), "the call outlived owd");
    let owd = scratch.start();
    let item = owd.item();
    assert_eq!(item["approval"]["category"], "stopped", "{item}");
    owd.owctl.ok(&["inbox", "deny", item["id"].as_str().expect("an id")]);
    owd.run_in("sleepy", "failed");
}

#[test]
fn a_call_dies_with_an_owd_that_is_killed() {
    let scratch = Scratch::new();
    scratch.task("sleepy", SLEEPY);
    let owd = scratch.start();
    owd.owctl.ok(&["task", "allow", "sleepy", "--yes"]);
    owd.owctl.ok(&["task", "run", "sleepy"]);
    let pid_file = scratch.work().join("pid");
    let child: i32 = until("the call runs", || fs::read_to_string(&pid_file).ok()?.trim().parse().ok());
    owd.kill();
    let child = Pid::from_raw(child).expect("a pid");
    until("the call is gone", || test_kill_process(child).is_err().then_some(()));
    let owd = scratch.start();
    let item = owd.item();
    assert_eq!(item["approval"]["category"], "unknown-outcome", "{item}");
    assert_eq!(owd.runs("sleepy").len(), 1, "the run is not started a second time");
}

/// daemon-11
#[test]
fn a_log_that_was_moved_away_goes_on_under_its_name_after_sighup() {
    let scratch = Scratch::new();
    scratch.config("[log]\ntarget = \"file\"\n");
    let owd = scratch.start();
    let log = scratch.path().join("log/owd.log");
    until("it logs", || fs::read_to_string(&log).ok().filter(|text| text.contains("owd is ready")));
    fs::rename(&log, scratch.path().join("log/owd.log.old")).expect("a rename");
    owd.signal(Signal::HUP);
    until("the log goes on", || fs::read_to_string(&log).ok().filter(|text| text.contains("read again")));
}

/// daemon-12
#[test]
fn socket_and_store_are_private_whatever_the_umask() {
    let scratch = Scratch::new();
    let open = Command::new("sh")
        .args(["-c", "umask 000; exec \"$0\""])
        .arg(binary("owd"))
        .env("OWD_HOME", scratch.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = open.expect("owd starts");
    until("it answers", || (scratch.owctl().run(&["status"]).code == 0).then_some(()));
    assert_eq!(mode(&scratch.path().join("owd.sock")), 0o600);
    assert_eq!(mode(&scratch.path().join("data")), 0o700);
    for file in ["owd.db", "owd.db-wal", "owd.lock"] {
        assert_eq!(mode(&scratch.path().join("data").join(file)), 0o600, "{file}");
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::TERM).expect("it runs");
    assert!(child.wait().expect("it is ours").success());
}

/// daemon-08
#[test]
fn a_store_that_was_cut_to_half_is_kept_and_named() {
    let scratch = Scratch::new();
    scratch.task("sleepy", SLEEPY);
    scratch.start().stop();
    let store = scratch.path().join("data/owd.db");
    let whole = fs::read(&store).expect("the store");
    fs::write(&store, &whole[..whole.len() / 2]).expect("a cut");
    let second = Answer::of(&scratch.command().stderr(Stdio::piped()).output().expect("owd starts"));
    assert_ne!(second.code, 0);
    assert!(second.stderr.contains("owd.db"), "{}", second.stderr);
    assert_eq!(fs::read(&store).expect("it is kept").len(), whole.len() / 2);
}

#[test]
fn a_detached_owd_says_its_pid_and_its_log_and_stops() {
    let scratch = Scratch::new();
    let start =
        Answer::of(&scratch.command().args(["start", "--detach"]).stdout(Stdio::piped()).output().expect("owd"));
    assert_eq!(start.code, 0, "{}{}", start.stdout, start.stderr);
    assert!(start.stdout.contains("pid") && start.stdout.contains("owd.log"), "{}", start.stdout);
    scratch.owctl().ok(&["status"]);
    let again = Answer::of(&scratch.command().args(["start", "--detach"]).output().expect("owd"));
    assert_ne!(again.code, 0, "a second start says so by its code");
    assert!(again.stderr.contains("in use by owd"), "{}", again.stderr);
    let stop = Answer::of(&scratch.command().arg("stop").output().expect("owd"));
    assert_eq!(stop.code, 0, "{}", stop.stderr);
    assert_eq!(scratch.owctl().run(&["status"]).code, 3);
}

#[test]
fn a_broken_configuration_changes_nothing_and_shows_in_status() {
    let scratch = Scratch::new();
    let owd = scratch.start();
    scratch.config("[scheduler]\nworkerz = 3\n");
    let reload = owd.owctl.run(&["reload"]);
    assert_ne!(reload.code, 0, "{}", reload.stdout);
    let status = owd.owctl.json(&["status"]);
    let warnings = status["warnings"].to_string();
    assert!(warnings.contains("owd.toml") && warnings.contains("workerz"), "{warnings}");
}

#[test]
fn a_broken_configuration_refuses_the_start_with_file_line_and_remedy() {
    let scratch = Scratch::new();
    scratch.config("[scheduler]\nworkerz = 3\n");
    let start = Answer::of(&scratch.command().output().expect("owd"));
    assert_ne!(start.code, 0);
    assert!(start.stderr.contains("owd.toml:2"), "{}", start.stderr);
    assert!(start.stderr.contains("workers"), "{}", start.stderr);
}
