//! The daemon as a process: starts, stops, locks, modes. Cases: `daemon.json`.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ow_stories::{asking, tcp_door};
use ow_test_support::{Answer, LIMIT, Scratch, binary, monotonic, until};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// A pipe that nobody reads is not waited for.
const NONBLOCK: i32 = OFlags::NONBLOCK.bits().cast_signed();

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
    let second = Answer::within_limit(scratch.command().stderr(Stdio::piped()));
    assert_ne!(second.code, 0);
    assert!(second.stderr.contains(&format!("pid {}", owd.pid())), "{}", second.stderr);
    owd.owctl.ok(&["status"]);
}

/// daemon-06
#[test]
fn sigterm_interrupts_a_long_call_and_the_run_goes_on_after_a_question() {
    let scratch = Scratch::new();
    scratch.config("[scheduler]\ngrace = \"1s\"\n");
    scratch.task("sleepy", SLEEPY);
    let owd = scratch.start();
    owd.owctl.ok(&["task", "allow", "sleepy", "--yes"]);
    owd.owctl.ok(&["task", "run", "sleepy"]);
    let pid_file = scratch.work().join("pid");
    let child: i32 = until("the call runs", || fs::read_to_string(&pid_file).ok()?.trim().parse().ok());
    let asked = monotonic();
    owd.stop();
    assert!(monotonic().saturating_sub(asked) < Duration::from_secs(10), "daemon-06 gives it ten seconds");
    let child = Pid::from_raw(child).expect("a pid");
    assert!(test_kill_process(child).is_err(), "the call outlived owd");
    let owd = scratch.start();
    assert!(scratch.stderr().contains("interrupted=1"), "{}", scratch.stderr());
    assert_eq!(owd.runs("sleepy").len(), 1, "the same run goes on");
    let item = owd.item();
    assert_eq!(item["approval"]["category"], "stopped", "{item}");
    owd.owctl.ok(&["inbox", "deny", item["id"].as_str().expect("an id")]);
    owd.run_in("sleepy", "failed");
}

/// What only reads is simply done again: nobody is asked.
#[test]
fn an_interrupted_call_without_side_effects_runs_again() {
    let scratch = Scratch::new();
    scratch.config("[scheduler]\ngrace = \"100ms\"\n");
    let fifo = scratch.work().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    scratch
        .task("reading", "roots = [\"{work}\"]\n[[step]]\ntool = \"shell\"\nargs = { argv = [\"cat\", \"fifo\"] }\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "reading"]);
    owd.run_in("reading", "running");
    owd.stop();
    let owd = scratch.start();
    owd.run_in("reading", "running");
    let run = until("what is written is read", || {
        // For a moment the call of before may still hold the pipe.
        if let Ok(mut pipe) = OpenOptions::new().write(true).custom_flags(NONBLOCK).open(&fifo) {
            drop(pipe.write_all(b"at last"));
        }
        owd.runs("reading").into_iter().find(|run| run["state"] == "succeeded")
    });
    let shown = owd.owctl.json(&["run", "show", run["id"].as_str().expect("an id")]);
    assert_eq!(shown["calls"][0]["output"]["stdout"], "at last", "{shown}");
}

#[test]
fn a_second_signal_stops_at_once() {
    let scratch = Scratch::new();
    scratch.config("[scheduler]\ngrace = \"10m\"\n");
    scratch.task(
        "stubborn",
        &SLEEPY.replace("echo", "trap '' TERM; echo").replace("exec sleep 60", "while :; do sleep 1; done"),
    );
    let mut owd = scratch.start();
    owd.owctl.ok(&["task", "allow", "stubborn", "--yes"]);
    owd.owctl.ok(&["task", "run", "stubborn"]);
    let pid_file = scratch.work().join("pid");
    let child: i32 = until("the call runs", || fs::read_to_string(&pid_file).ok()?.trim().parse().ok());
    owd.signal(Signal::TERM);
    until("it drains", || scratch.stderr().contains("owd stops: nothing new starts").then_some(()));
    owd.signal(Signal::TERM);
    assert!(!owd.wait().success(), "what was running was not waited for, and the exit code says so");
    let child = Pid::from_raw(child).expect("a pid");
    until("the call is gone", || test_kill_process(child).is_err().then_some(()));
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
    let second = Answer::within_limit(scratch.command().stderr(Stdio::piped()));
    assert_ne!(second.code, 0);
    assert!(second.stderr.contains("owd.db"), "{}", second.stderr);
    assert_eq!(fs::read(&store).expect("it is kept").len(), whole.len() / 2);
}

/// daemon-13
#[test]
fn a_page_of_another_origin_is_refused_and_changes_nothing() {
    let scratch = asking();
    scratch.config("[server]\ntcp = \"127.0.0.1:0\"\n");
    let owd = scratch.start();
    let door = tcp_door(&scratch, &owd);
    let before = owd.owctl.json(&["task", "list"]);
    let foreign = [("Origin", "https://evil.example"), ("Content-Type", "text/plain")];
    for path in ["/api", "/v1/pause", "/v1/tasks/asking/run", "/v1/tasks/asking/pause"] {
        assert_eq!(door.send("POST", path, &foreign, "{}").status, 403, "{path}");
        let foreign_without_key = [foreign[0], foreign[1], ("Authorization", "")];
        assert_eq!(door.send("POST", path, &foreign_without_key, "{}").status, 403, "{path}");
    }
    assert_eq!(door.send("POST", "/v1/pause", &[("Host", "rebound.example")], "{}").status, 403);
    assert_eq!(door.send("POST", "/v1/pause", &[("Authorization", "Bearer wrong")], "{}").status, 401);
    assert_eq!(owd.owctl.json(&["task", "list"]), before);
    assert!(owd.runs("asking").is_empty());
    assert!(owd.owctl.json(&["status"])["paused_all"].is_null());
}

#[test]
fn the_service_manager_is_told_of_start_reload_and_end() {
    let scratch = Scratch::new();
    let notify = scratch.path().join("manager");
    let socket = UnixDatagram::bind(&notify).expect("a notify socket");
    socket.set_read_timeout(Some(LIMIT)).expect("a limit");
    let told = |state: &str| {
        let mut message = [0; 4096];
        let length = socket.recv(&mut message).expect("owd tells its state");
        let said = String::from_utf8_lossy(&message[..length]).into_owned();
        assert!(said.lines().any(|line| line == state), "{said:?} and not {state}");
    };
    let mut child = scratch.command().env("NOTIFY_SOCKET", &notify).stderr(Stdio::null()).spawn().expect("owd starts");
    told("READY=1");
    scratch.owctl().ok(&["status"]);
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::HUP).expect("it runs");
    told("RELOADING=1");
    told("READY=1");
    kill_process(pid, Signal::TERM).expect("it runs");
    told("STOPPING=1");
    assert!(child.wait().expect("it is ours").success());
}

#[test]
fn a_socket_that_the_service_manager_made_is_served_and_left() {
    let scratch = Scratch::new();
    let path = scratch.path().join("passed.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let mut child = Command::new("sh")
        .args(["-c", "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$0\""])
        .arg(binary("owd"))
        .env("OWD_HOME", scratch.path())
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("owd starts");
    let socket = path.to_string_lossy().into_owned();
    // Nobody has to wait until it is ready: the socket is there already, and the question waits in it.
    let status = scratch.owctl().json(&["--socket", &socket, "status"]);
    assert_eq!(status["pid"], child.id(), "{status}");
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::TERM).expect("it runs");
    assert!(child.wait().expect("it is ours").success());
    assert!(path.exists(), "it is the service manager's");
}

#[test]
fn a_configuration_that_is_read_again_is_in_effect() {
    let scratch = asking();
    let owd = scratch.start();
    let script = scratch.work().join("count.sh");
    scratch.config(&format!("[policy]\nallow = [\"sh {}\"]\n[log]\nlevel = \"debug\"\n", script.display()));
    owd.signal(Signal::HUP);
    until("it is read again", || scratch.stderr().contains("read again").then_some(()));
    owd.owctl.ok(&["task", "run", "asking", "--wait"]);
    assert!(scratch.stderr().contains("DEBUG"), "{}", scratch.stderr());
}

#[test]
fn a_detached_owd_says_its_pid_and_its_log_and_stops() {
    let scratch = Scratch::new();
    let start = Answer::within_limit(scratch.command().args(["start", "--detach"]).stdout(Stdio::piped()));
    assert_eq!(start.code, 0, "{}{}", start.stdout, start.stderr);
    assert!(start.stdout.contains("pid") && start.stdout.contains("owd.log"), "{}", start.stdout);
    scratch.owctl().ok(&["status"]);
    let again = Answer::within_limit(scratch.command().args(["start", "--detach"]));
    assert_ne!(again.code, 0, "a second start says so by its code");
    assert!(again.stderr.contains("in use by owd"), "{}", again.stderr);
    let stop = Answer::within_limit(scratch.command().arg("stop"));
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
    scratch.config("");
    owd.owctl.ok(&["reload"]);
    assert_eq!(owd.owctl.json(&["status"])["warnings"], serde_json::json!([]));
}

#[test]
fn a_broken_configuration_refuses_the_start_with_file_line_and_remedy() {
    let scratch = Scratch::new();
    scratch.config("[scheduler]\nworkerz = 3\n");
    let start = Answer::within_limit(&mut scratch.command());
    assert_ne!(start.code, 0);
    assert!(start.stderr.contains("owd.toml:2"), "{}", start.stderr);
    assert!(start.stderr.contains("workers"), "{}", start.stderr);
}

/// Whatever holds the store lets go of it at the end: what is written lies in one file, and nothing has to be recovered.
#[test]
fn an_owd_that_stops_closes_its_store() {
    let scratch = Scratch::new();
    let owd = scratch.start();
    owd.owctl.ok(&["status"]);
    owd.stop();
    let data = scratch.path().join("data");
    assert!(data.join("owd.db").is_file());
    // Its room may be kept; without its header it is an empty log.
    let log = fs::read(data.join("owd.db-wal")).unwrap_or_default();
    assert!(log.iter().take(32).all(|byte| *byte == 0), "the log still holds what was written");
}
