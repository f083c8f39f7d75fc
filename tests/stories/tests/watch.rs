//! Watched folders, seen from outside. Cases: ext-18 and ext-19 of `extensions-secrets-watch.json`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ow_test_support::{Owd, Scratch, id, monotonic, until};
use serde_json::Value;

/// A home with a folder `in` and a task `filing` that looks at each new file there.
fn watching(settle: &str) -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    let folder = scratch.work().join("in");
    fs::create_dir(&folder).expect("a folder");
    scratch.task("filing", &definition(settle));
    (scratch, folder)
}

fn definition(settle: &str) -> String {
    format!(
        "events = {{ each = 100 }}\noverlap = \"queue\"\n\
         [[trigger]]\nwatch = {{ path = \"{{work}}/in\", glob = \"*.txt\", settle = \"{settle}\" }}\n\
         [[step]]\ntool = \"shell\"\nargs = {{ argv = [\"pwd\"] }}\n"
    )
}

/// What the runs of a task were given, oldest first, as `change name`.
fn changes(owd: &Owd, task: &str) -> Vec<String> {
    let events = |run: &Value| owd.owctl.json(&["run", "show", &id(run)])["events"].as_array().expect("events").clone();
    let mut runs = owd.runs(task);
    runs.reverse();
    let change = |event: Value| {
        let data = &event["data"];
        format!("{} {}", data["change"].as_str().expect("a change"), data["name"].as_str().expect("a name"))
    };
    runs.iter().flat_map(events).map(change).collect()
}

fn fires(owd: &Owd, expected: &[&str]) {
    until("as many runs have ended as there were changes", || {
        let ended = owd.runs("filing").iter().filter(|run| !run["ended_at"].is_null()).count();
        (ended >= expected.len()).then_some(())
    });
    assert_eq!(changes(owd, "filing"), expected);
}

#[test]
fn a_file_that_comes_right_after_the_start_or_the_task_fires() {
    let (scratch, folder) = watching("50ms");
    let owd = scratch.start();
    fs::write(folder.join("a.txt"), "1").expect("a file");
    fires(&owd, &["create a.txt"]);
    for round in 0..5 {
        let name = format!("added-{round}");
        let file = scratch.path().join(format!("{name}.toml"));
        let own = format!("in-{round}");
        fs::create_dir(scratch.work().join(&own)).expect("a folder");
        let text = definition("50ms").replace("{work}/in", &scratch.work().join(&own).to_string_lossy());
        fs::write(&file, text).expect("a task");
        owd.owctl.ok(&["task", "add", &file.to_string_lossy()]);
        fs::write(scratch.work().join(&own).join("a.txt"), "1").expect("a file");
        owd.run_in(&name, "succeeded");
    }
}

#[test]
fn what_was_there_before_does_not_fire_and_what_came_while_owd_was_down_does() {
    let (scratch, folder) = watching("50ms");
    fs::write(folder.join("old.txt"), "1").expect("a file");
    let written = monotonic();
    // A file counts as news if it came at the very tick in which the task was made.
    until("the file is older than the task", || {
        (monotonic().saturating_sub(written) > Duration::from_millis(50)).then_some(())
    });
    let owd = scratch.start();
    fs::write(folder.join("new.txt"), "1").expect("a file");
    fires(&owd, &["create new.txt"]);
    owd.stop();
    fs::write(folder.join("late.txt"), "1").expect("a file");
    for _ in 0..2 {
        let owd = scratch.start();
        fires(&owd, &["create new.txt", "create late.txt"]);
        owd.kill();
    }
}

/// ext-18
#[test]
fn every_save_by_rename_fires() {
    let (scratch, folder) = watching("200ms");
    let owd = scratch.start();
    // The folder is watched for certain once something in it has fired.
    fs::write(folder.join("first.txt"), "1").expect("a file");
    fires(&owd, &["create first.txt"]);
    let changes = ["create first.txt", "move a.txt", "change a.txt"];
    for saves in 2..=changes.len() {
        fs::write(folder.join("a.txt~"), format!("save {saves}")).expect("a file");
        fs::rename(folder.join("a.txt~"), folder.join("a.txt")).expect("a rename");
        fires(&owd, &changes[..saves]);
    }
}

/// ext-19, scaled: 8 MB over two seconds, with a quiet time of one.
#[test]
fn a_large_copy_fires_once_and_not_before_it_has_come_to_rest() {
    const QUIET: SignedDuration = SignedDuration::from_secs(1);
    let (scratch, folder) = watching("1s");
    let owd = scratch.start();
    let mut file = File::create(folder.join("large.txt")).expect("a file");
    let block = vec![b'x'; 200_000];
    let began = monotonic();
    for part in 1..=40 {
        file.write_all(&block).expect("room");
        until("it is time for the next part", || {
            (monotonic().saturating_sub(began) > part * Duration::from_millis(50)).then_some(())
        });
    }
    drop(file);
    let written = fs::metadata(folder.join("large.txt")).expect("it is there").modified().expect("a time");
    let written = Timestamp::try_from(written).expect("a time");
    let run = owd.run_in("filing", "succeeded");
    let fired: Timestamp = run["created_at"].as_str().expect("a time").parse().expect("a time");
    assert!(fired.duration_since(written) >= QUIET - SignedDuration::from_millis(20), "{written} {fired}");
    fs::write(folder.join("marker.txt"), "1").expect("a file");
    fires(&owd, &["create large.txt", "create marker.txt"]);
}

const FILING: &str = r#"
roots = ["{work}"]
events = { each = 100 }
overlap = { allow = 20 }
while-parked = "release"

[[trigger]]
watch = { path = "{work}/in", settle = "50ms" }

[[step]]
tool = "move_file"
args = { from = "{{ event.path }}", to = "{work}/filed/{{ slot.date }}/{{ event.name }}" }
"#;

/// Names that would do something in a shell, an option parser, a terminal or a path.
fn names() -> Vec<OsString> {
    let plain = [
        "plain.txt",
        "; rm -rf ~",
        "-o",
        "--help",
        "$(touch x)",
        "two\nlines",
        "\u{202e}txt.exe",
        "{{ task.name }}",
        "a b",
    ];
    let mut names: Vec<OsString> = plain.into_iter().map(OsString::from).collect();
    names.push(OsString::from_vec(vec![b'a', 0xff, 0xfe, b'z']));
    names
}

#[test]
fn files_are_filed_by_date_each_with_consent_whatever_their_name() {
    let scratch = Scratch::new();
    let folder = scratch.work().join("in");
    fs::create_dir(&folder).expect("a folder");
    fs::write(scratch.path().join("precious"), "1").expect("a file");
    scratch.task("filing", FILING);
    let owd = scratch.start();
    let names = names();
    for name in &names {
        fs::write(folder.join(name), "content").expect("a file");
    }
    until("each file asks or has failed", || (owd.runs("filing").len() == names.len()).then_some(()));
    let items = until("each file that can be named in a call asks", || {
        let parked = owd.runs("filing").iter().filter(|run| run["state"] == "parked").count();
        let ended = owd.runs("filing").iter().filter(|run| !run["ended_at"].is_null()).count();
        (parked + ended == names.len()).then(|| owd.items())
    });
    assert!(items.len() >= names.len() - 1, "{items:?}");
    assert_eq!(fs::read_dir(&folder).expect("the folder").count(), names.len(), "nothing moves before an answer");
    let listed = owd.owctl.ok(&["inbox", "list"]);
    assert!(!listed.contains('\u{202e}'), "a name turned the terminal round");
    for item in &items {
        let shown = owd.owctl.ok(&["inbox", "show", &id(item)]);
        assert!(!shown.contains('\u{202e}') && !shown.contains("two\nlines"), "{shown}");
        owd.owctl.ok(&["inbox", "approve", &id(item)]);
    }
    until("all have ended", || owd.runs("filing").iter().all(|run| !run["ended_at"].is_null()).then_some(()));
    let mut filed: Vec<OsString> = vec![];
    for day in fs::read_dir(scratch.work().join("filed")).expect("they were filed") {
        for file in fs::read_dir(day.expect("a day").path()).expect("a folder") {
            filed.push(file.expect("a file").file_name());
        }
    }
    for name in names.iter().filter(|name| name.to_str().is_some()) {
        assert!(filed.contains(name), "{} was not filed: {filed:?}", name.display());
    }
    assert!(scratch.path().join("precious").is_file());
    assert!(!scratch.path().join("x").exists() && !scratch.work().join("x").exists());
    owd.owctl.ok(&["status"]);
}
