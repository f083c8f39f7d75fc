//! Each kind of bad input: the error names file, key, value and remedy; nothing is changed.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;

use ow_stories::{ASKING, Door, asking, executions};
use ow_test_support::{Answer, Fault, FaultAction, FaultCall, Owctl, Scratch, binary, id, rows, until};

const STEP: &str = "[[step]]\ntool = \"shell\"\nargs = { argv = [\"pwd\"] }\n";

/// Definitions with a fault: the text, and what is told of the place, the value and the remedy.
fn definitions() -> Vec<(String, &'static [&'static str])> {
    let trigger = |trigger: &str| format!("[[trigger]]\n{trigger}\n\n{STEP}");
    vec![
        (trigger("cron = \"0 66 * * *\""), &["2", "cron", "0 66 * * *", "hour"]),
        (trigger("cron = \"0 0 30 2 *\""), &["2", "cron", "0 0 30 2 *"]),
        (trigger("every = \"0s\""), &["2", "every", "0s"]),
        (trigger("at = \"2020-01-01T00:00:00Z\""), &["2", "at", "2020-01-01", "past"]),
        (trigger("after = \"bad\""), &["after", "follows itself"]),
        (trigger("watch = { path = \"/tmp\", glob = \"[a\" }"), &["2", "glob", "[a"]),
        (format!("timezone = \"Europe/Pariss\"\n{STEP}"), &["1", "timezone", "Europe/Pariss", "Europe/Paris"]),
        (format!("timeout = \"soon\"\n{STEP}"), &["1", "timeout", "soon", "90s"]),
        (format!("tittle = \"x\"\n{STEP}"), &["1", "tittle", "title"]),
        (format!("title = \"x\n{STEP}"), &["1"]),
        ("title = \"no steps\"\n".into(), &["step"]),
        ("[[step]]\ntool = \"shel\"\nargs = {}\n".into(), &["2", "tool", "shel", "shell"]),
        ("[[step]]\ntool = \"shell\"\nargs = { argv = \"pwd\" }\n".into(), &["argv"]),
        ("[[step]]\ntool = \"shell\"\nargs = { argv = [\"{{ steps.ghost.stdout }}\"] }\n".into(), &["argv", "ghost"]),
        ("[[step]]\ntool = \"shell\"\nargs = { argv = [\"{{ slot.date\"] }\n".into(), &["argv", "slot.date"]),
        (format!("{STEP}save-as = \"a\"\n{STEP}save-as = \"a\"\n"), &["save-as", "a"]),
        (format!("mode = \"yolo\"\n{STEP}"), &["1", "mode", "yolo", "ask"]),
        (format!("overlap = {{ allow = 0 }}\n{STEP}"), &["1", "overlap", "0"]),
    ]
}

#[test]
fn a_wrong_definition_is_refused_by_place_value_and_remedy_and_stores_nothing() {
    let scratch = Scratch::new();
    let owd = scratch.start();
    let file = scratch.path().join("bad.toml");
    let path = file.to_string_lossy().into_owned();
    for (text, told) in definitions() {
        fs::write(&file, &text).expect("a file");
        let added = owd.owctl.run(&["task", "add", &path]);
        assert_eq!(added.code, 2, "{text}\n{}", added.stdout);
        for part in told {
            assert!(added.stderr.contains(part), "`{part}` is not told of:\n{text}\n{}", added.stderr);
        }
    }
    assert_eq!(rows(&owd.owctl.json(&["task", "list"])).len(), 0);
}

#[test]
fn a_wrong_task_file_is_told_by_file_and_line_and_its_old_definition_goes_on() {
    let scratch = asking();
    let owd = scratch.start();
    for (text, told) in definitions() {
        scratch.task("asking", &text.replace("after = \"bad\"", "after = \"asking\""));
        owd.owctl.run(&["reload"]);
        let warnings = owd.owctl.json(&["status"])["warnings"].to_string();
        assert!(warnings.contains("asking.toml"), "{text}\n{warnings}");
        for part in told {
            assert!(warnings.contains(part), "`{part}` is not told of:\n{text}\n{warnings}");
        }
        let check = owd.owctl.run(&["config", "check"]);
        let said = format!("{}{}", check.stdout, check.stderr);
        // A time that has passed is no fault of a task that was saved before then, so it is only warned of.
        let code = if text.contains("at = ") { 0 } else { 2 };
        assert_eq!(check.code, code, "config check finds it too:\n{text}\n{said}");
        for part in told {
            assert!(said.contains(part), "`{part}` is not told of by the check:\n{text}\n{said}");
        }
        assert_eq!(owd.owctl.json(&["task", "show", "asking"])["revision"], 1);
    }
    scratch.task("asking", ASKING);
    owd.owctl.ok(&["reload"]);
    assert_eq!(owd.owctl.json(&["status"])["warnings"], serde_json::json!([]));
}

/// The state of a check of doctor's, with what it says.
fn doctor(owctl: &Owctl, name: &str) -> (String, String) {
    let report: serde_json::Value = serde_json::from_str(&owctl.run(&["doctor", "--json"]).stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name} in {report}"));
    let word = |key: &str| check[key].as_str().expect("a text").to_owned();
    (word("state"), word("message"))
}

#[test]
fn what_owd_would_refuse_of_task_files_is_found_before_it_starts() {
    let scratch = Scratch::new();
    let owctl = scratch.owctl();
    let told = || {
        let check = owctl.run(&["config", "check"]);
        (check.code, format!("{}{}", check.stdout, check.stderr))
    };
    for (text, parts) in definitions().into_iter().filter(|(text, _)| !text.contains("at = ")) {
        scratch.task("asking", &text.replace("after = \"bad\"", "after = \"asking\""));
        let (code, said) = told();
        assert_eq!(code, 2, "{text}\n{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{text}\n{said}");
        assert_eq!(doctor(&owctl, "task files").0, "fail", "{text}");
    }
    // Tools that this configuration does not bring are not offered.
    scratch.task("asking", "[[step]]\ntool = \"teleport\"\n");
    let (code, said) = told();
    assert!(code == 2 && said.contains("`write_file`") && !said.contains("send_mail"), "{said}");

    scratch.task("asking", &format!("[[trigger]]\nafter = \"other\"\n{STEP}"));
    scratch.task("other", &format!("[[trigger]]\nafter = \"asking\"\n{STEP}"));
    let (code, said) = told();
    assert!(code == 2 && said.contains("in a circle: asking after other after asking"), "{said}");
    let (state, said) = doctor(&owctl, "task files");
    assert!(state == "fail" && said.contains("in a circle"), "{said}");

    // What may be right by what owd has is told and refuses nothing.
    scratch.task("other", &format!("[[trigger]]\nat = \"2020-01-01T00:00:00Z\"\n{STEP}"));
    scratch.task("asking", &format!("[[trigger]]\nafter = \"ghost\"\n{STEP}"));
    let (code, said) = told();
    assert!(code == 0 && said.contains("after = \"ghost\"") && said.contains("2020-01-01"), "{said}");
    let (state, said) = doctor(&owctl, "task files");
    assert!(state == "warn" && said.contains("ghost") && !said.contains("2020"), "{said}");
    let owd = scratch.start();
    let file = scratch.path().join("ghost.toml");
    fs::write(&file, STEP).expect("a file");
    owd.owctl.ok(&["task", "add", &file.to_string_lossy()]);
    assert_eq!(doctor(&owd.owctl, "task files").0, "ok");
}

#[test]
fn a_secret_that_owd_would_not_start_with_is_found_before_it_starts() {
    let scratch = Scratch::new();
    let file = scratch.path().join("config/secrets.toml");
    fs::write(&file, "pin = \"123\"\n").expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    assert!(scratch.try_start_with(|_| {}).is_none(), "it could not be kept out of any text");
    let check = scratch.owctl().run(&["config", "check"]);
    assert!(check.code == 2 && check.stderr.contains("`pin`"), "{}{}", check.stdout, check.stderr);
    let (state, said) = doctor(&scratch.owctl(), "secrets");
    assert!(state == "fail" && said.contains("`pin`") && !said.contains("123"), "{said}");
}

#[test]
fn a_folder_of_tasks_that_cannot_be_read_is_named() {
    let scratch = Scratch::new();
    let folder = scratch.path().join("config/tasks.d");
    fs::remove_dir_all(&folder).expect("gone");
    fs::write(&folder, "a file").expect("a file");
    let check = scratch.owctl().run(&["config", "check"]);
    assert!(check.code == 2 && check.stderr.contains("tasks.d"), "{}{}", check.stdout, check.stderr);
    assert_eq!(doctor(&scratch.owctl(), "task files").0, "fail");
}

#[test]
fn a_wrong_configuration_refuses_the_start_by_file_line_value_and_remedy() {
    let scratch = Scratch::new();
    for (text, told) in [
        ("[scheduler\n", vec!["owd.toml:1"]),
        ("[scheduler]\nworkerz = 3\n", vec!["owd.toml:2", "workerz", "workers"]),
        ("[scheduler]\nworkers = \"three\"\n", vec!["owd.toml:2", "scheduler.workers", "three"]),
        ("[scheduler]\ngrace = \"soon\"\n", vec!["owd.toml:2", "scheduler.grace", "soon", "90s"]),
        ("timezone = \"Mars/Base\"\n", vec!["owd.toml:1", "timezone", "Mars/Base"]),
        ("[server]\ntcp = \"0.0.0.0:7700\"\n", vec!["owd.toml:2", "server.tcp", "0.0.0.0", "127.0.0.1"]),
        ("[log]\nlevel = \"loud\"\n", vec!["owd.toml:2", "log.level", "loud", "debug"]),
    ] {
        scratch.config(text);
        let start = Answer::within_limit(&mut scratch.command());
        assert_ne!(start.code, 0, "{text}");
        let check = scratch.owctl().run(&["config", "check"]);
        assert_eq!(check.code, 2, "{text}\n{}", check.stdout);
        for part in &told {
            assert!(start.stderr.contains(part), "`{part}` is not told of:\n{text}\n{}", start.stderr);
            let checked = format!("{}{}", check.stdout, check.stderr);
            assert!(checked.contains(part), "`{part}` is not told of by the check:\n{text}\n{checked}");
        }
    }
    assert!(!scratch.path().join("data/owd.db").exists(), "nothing is made");
}

#[test]
fn tasks_that_follow_each_other_in_a_circle_are_refused() {
    let scratch = Scratch::new();
    let owd = scratch.start();
    let add = |name: &str, after: &str| {
        let file = scratch.path().join(format!("{name}.toml"));
        fs::write(&file, format!("[[trigger]]\nafter = \"{after}\"\n{STEP}")).expect("a file");
        owd.owctl.run(&["task", "add", &file.to_string_lossy()])
    };
    let file = scratch.path().join("one.toml");
    fs::write(&file, STEP).expect("a file");
    owd.owctl.ok(&["task", "add", &file.to_string_lossy()]);
    assert_eq!(add("two", "one").code, 0);
    assert_eq!(add("three", "two").code, 0);
    fs::write(&file, format!("[[trigger]]\nafter = \"three\"\n{STEP}")).expect("a file");
    let closed = owd.owctl.run(&["task", "import", "--replace", &file.to_string_lossy()]);
    assert_ne!(closed.code, 0);
    assert!(closed.stderr.contains("three") && closed.stderr.contains("two"), "{}", closed.stderr);
    assert_eq!(owd.owctl.json(&["task", "show", "one"])["revision"], 1);
}

#[test]
fn a_name_is_of_one_task_whether_it_is_a_file_or_stored() {
    let scratch = asking();
    let owd = scratch.start();
    let file = scratch.path().join("asking.toml");
    fs::write(&file, STEP).expect("a file");
    let taken = owd.owctl.run(&["task", "add", &file.to_string_lossy()]);
    assert_ne!(taken.code, 0);
    assert!(taken.stderr.contains("asking"), "{}", taken.stderr);
    fs::rename(&file, scratch.path().join("stored.toml")).expect("a rename");
    owd.owctl.ok(&["task", "add", &scratch.path().join("stored.toml").to_string_lossy()]);
    scratch.task("stored", STEP);
    owd.owctl.run(&["reload"]);
    let warnings = owd.owctl.json(&["status"])["warnings"].to_string();
    assert!(warnings.contains("stored.toml"), "{warnings}");
    assert_eq!(owd.owctl.json(&["task", "show", "stored"])["source"], "store");
}

#[test]
fn a_task_edited_into_nonsense_stays_as_it_was() {
    let scratch = Scratch::new();
    let owd = scratch.start();
    let file = scratch.path().join("mine.toml");
    fs::write(&file, STEP).expect("a file");
    owd.owctl.ok(&["task", "add", &file.to_string_lossy()]);
    let editor = scratch.path().join("editor");
    fs::write(&editor, "#!/bin/sh\necho 'nonsense' > \"$1\"\n").expect("an editor");
    fs::set_permissions(&editor, PermissionsExt::from_mode(0o755)).expect("a mode");
    let edited = Answer::within_limit(owd.owctl.command(&["task", "edit", "mine"]).env("EDITOR", &editor));
    assert_ne!(edited.code, 0);
    assert!(edited.stderr.contains("nonsense") || edited.stderr.contains("line 1"), "{}", edited.stderr);
    let shown = owd.owctl.json(&["task", "show", "mine"]);
    assert_eq!(shown["revision"], 1);
    owd.owctl.ok(&["task", "run", "mine", "--wait"]);
}

#[test]
fn an_id_that_fits_nothing_or_two_things_is_refused() {
    let scratch = asking();
    scratch.task("asking", &format!("overlap = {{ allow = 50 }}\nwhile-parked = \"release\"\n{ASKING}"));
    let owd = scratch.start();
    // An id has 32 letters to begin with: of 33 items, two begin alike.
    for _ in 0..33 {
        owd.owctl.ok(&["task", "run", "asking"]);
    }
    let items = until("all of them ask", || {
        let items = owd.items();
        (items.len() == 33).then_some(items)
    });
    let mut letters: Vec<char> = items.iter().filter_map(|item| id(item).chars().next()).collect();
    letters.sort_unstable();
    let twice = letters.windows(2).find(|pair| pair[0] == pair[1]).expect("two begin alike")[0].to_string();
    let refused = owd.owctl.run(&["inbox", "approve", &twice]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    let fitting = items.iter().map(id).filter(|id| id.starts_with(&twice));
    assert!(fitting.filter(|id| refused.stderr.contains(id)).count() >= 2, "{}", refused.stderr);
    let unknown = owd.owctl.run(&["inbox", "approve", "0000000000000000"]);
    assert_eq!(unknown.code, 4, "{}", unknown.stderr);
    assert_eq!(owd.items().len(), 33);
    assert_eq!(executions(&scratch), 0);
}

#[test]
fn a_request_that_is_too_large_is_refused_and_nothing_stops() {
    let scratch = Scratch::new();
    let owd = scratch.start();
    let door = Door::Unix(scratch.path().join("owd.sock"));
    let body = format!("{{\"definition\": \"{}\"}}", "x".repeat(17 * 1024 * 1024));
    let reply = door.send("PUT", "/v1/tasks/large", &[], &body);
    assert_eq!(reply.status, 413, "{}", reply.body);
    assert_eq!(reply.json()["error"]["code"], "too_large");
    assert_eq!(rows(&owd.owctl.json(&["task", "list"])).len(), 0);
}

#[test]
fn a_definition_that_is_too_large_is_named_by_its_file() {
    let scratch = Scratch::new();
    let owd = scratch.start();
    let file = scratch.path().join("large.toml");
    fs::write(&file, format!("title = \"{}\"\n{STEP}", "x".repeat(17 * 1024 * 1024))).expect("a file");
    let refused = owd.owctl.run(&["task", "add", &file.to_string_lossy()]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("large.toml") && refused.stderr.contains("16 MiB"), "{}", refused.stderr);
    assert_eq!(rows(&owd.owctl.json(&["task", "list"])).len(), 0);
}

#[test]
fn a_task_file_whose_name_is_no_task_name_is_told_and_the_others_go_on() {
    let scratch = Scratch::new();
    scratch.task("fine", STEP);
    let names = ["; rm -rf ~.toml", "-o.toml", "two words.toml", "two\nlines.toml", "\u{202e}lmot.toml"];
    for name in names {
        fs::write(scratch.path().join("config/tasks.d").join(name), STEP).expect("a file");
    }
    let owd = scratch.start();
    let refused = owd.owctl.run(&["reload"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    for part in ["; rm -rf ~", "-o", "two words", "rename the file"] {
        assert!(refused.stderr.contains(part), "`{part}` is not told of: {}", refused.stderr);
    }
    let status = owd.owctl.run(&["status"]);
    for told in [&refused.stderr, &status.stdout] {
        assert!(!told.contains('\u{202e}') && !told.contains("two\nlines"), "a name drives the terminal: {told}");
    }
    assert_eq!(owd.owctl.json(&["status"])["warnings"].as_array().map(Vec::len), Some(names.len()));
    assert_eq!(rows(&owd.owctl.json(&["task", "list"])).len(), 1);
    owd.owctl.ok(&["task", "run", "fine", "--wait"]);
}

/// What stands where owd's own files are to be is named and left alone.
#[test]
fn what_is_in_the_way_of_owds_files_is_named_with_a_remedy() {
    for (place, is_folder, told) in [
        ("data", false, ["/data: not a directory", "--data-dir"]),
        ("data/owd.db", true, ["/data/owd.db is damaged", "move it away"]),
        ("owd.sock", true, ["/owd.sock is in the way", "not a socket"]),
    ] {
        let scratch = Scratch::new();
        let path = scratch.path().join(place);
        if is_folder {
            fs::create_dir_all(&path).expect("a folder");
        } else {
            fs::write(&path, "mine").expect("a file");
        }
        let start = Answer::within_limit(&mut scratch.command());
        assert_eq!(start.code, 1, "{place}: {}", start.stderr);
        for part in told {
            assert!(start.stderr.contains(part), "`{part}` is not told of: {}", start.stderr);
        }
        assert_eq!(fs::metadata(&path).expect("it is kept").is_dir(), is_folder);
    }
}

#[test]
fn a_disk_that_is_full_when_owd_starts_is_named_with_a_remedy() {
    let scratch = Scratch::new();
    let fault = Fault {
        call: FaultCall::Write,
        action: FaultAction::NoSpace,
        number: 1,
        until: scratch.path().join("room"),
        count: scratch.path().join("count"),
    };
    let mut command = scratch.command();
    fault.apply(&mut command);
    let start = Answer::within_limit(&mut command);
    assert_eq!(start.code, 1, "{}", start.stderr);
    assert!(start.stderr.contains("/data") && start.stderr.contains("make room"), "{}", start.stderr);
    assert!(!scratch.path().join("data/owd.db").exists(), "no half a store is left");
    scratch.start().stop();
}

#[test]
fn a_full_disk_is_told_and_nothing_is_half_done() {
    let scratch = asking();
    scratch.start().stop();
    let until_file = scratch.path().join("room");
    let fault = Fault {
        call: FaultCall::Write,
        action: FaultAction::NoSpace,
        number: 1,
        until: until_file.clone(),
        count: scratch.path().join("count"),
    };
    // There is room while it starts, and none afterwards.
    fs::write(&until_file, "").expect("a file");
    let owd = scratch.start_with(|command| fault.apply(command));
    fs::remove_file(&until_file).expect("it is there");
    let file = scratch.path().join("mine.toml");
    fs::write(&file, STEP).expect("a file");
    let refused = owd.owctl.run(&["task", "add", &file.to_string_lossy()]);
    assert_eq!(refused.code, 1, "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stderr.contains("full") || refused.stderr.contains("space"), "{}", refused.stderr);
    owd.owctl.ok(&["status"]);
    fs::write(&until_file, "").expect("a file");
    owd.owctl.ok(&["task", "add", &file.to_string_lossy()]);
    owd.owctl.ok(&["task", "run", "mine", "--wait"]);
}

#[test]
fn a_data_directory_that_cannot_be_written_is_named() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    fs::create_dir(&data).expect("a folder");
    fs::set_permissions(&data, PermissionsExt::from_mode(0o500)).expect("a mode");
    fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o755)).expect("a mode");
    let mut command = scratch.command();
    if rustix::process::geteuid().is_root() {
        // Nothing is unwritable for root; the other account may not reach the folder of the build.
        let program = scratch.path().join("owd");
        fs::copy(binary("owd"), &program).expect("a copy");
        command = std::process::Command::new(program);
        command.env("OWD_HOME", scratch.path()).uid(65_534).gid(65_534);
    }
    let start = Answer::within_limit(&mut command);
    assert_ne!(start.code, 0);
    assert!(start.stderr.contains(&*data.to_string_lossy()), "{}", start.stderr);
    assert!(start.stderr.contains("may write"), "{}", start.stderr);
    assert_eq!(fs::read_dir(&data).expect("the folder").count(), 0);
}

fn store(scratch: &Scratch) -> std::path::PathBuf {
    scratch.path().join("data/owd.db")
}

/// A store that a life of owd has left, with its bytes changed.
fn changed_store(scratch: &Scratch, change: impl FnOnce(&Path)) -> Vec<u8> {
    scratch.start().stop();
    change(&store(scratch));
    fs::read(store(scratch)).expect("the store")
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_left_alone() {
    let scratch = asking();
    let bytes = changed_store(&scratch, |path| {
        // The version that SQLite keeps for its user, in its header.
        let file = fs::File::options().write(true).open(path).expect("the store");
        file.write_all_at(&9999_u32.to_be_bytes(), 60).expect("written");
    });
    let start = Answer::within_limit(&mut scratch.command());
    assert_ne!(start.code, 0);
    assert!(start.stderr.contains("owd.db") || start.stderr.contains("data"), "{}", start.stderr);
    assert!(start.stderr.contains("9999") && start.stderr.contains("newer"), "{}", start.stderr);
    assert_eq!(fs::read(store(&scratch)).expect("the store"), bytes);
}

#[test]
fn a_store_that_is_no_store_is_refused_and_left_alone() {
    let scratch = asking();
    let bytes = changed_store(&scratch, |path| fs::write(path, "not a store at all\n".repeat(1000)).expect("written"));
    let start = Answer::within_limit(&mut scratch.command());
    assert_ne!(start.code, 0);
    assert!(start.stderr.contains("owd.db"), "{}", start.stderr);
    assert!(start.stderr.contains("restore"), "it says what to do next: {}", start.stderr);
    assert_eq!(fs::read(store(&scratch)).expect("the store"), bytes);
}

/// Whatever page is damaged: owd starts and tells of it, or refuses and says so; never as if there were no tasks.
#[test]
fn a_store_with_a_damaged_page_never_becomes_an_empty_one() {
    let pages = {
        let scratch = asking();
        scratch.start().stop();
        fs::metadata(store(&scratch)).expect("the store").len() / 4096
    };
    for page in (1..pages).step_by(7) {
        let scratch = asking();
        changed_store(&scratch, |path| {
            let file = fs::File::options().write(true).open(path).expect("the store");
            file.write_all_at(&[0xa5; 4096], page * 4096).expect("written");
        });
        let before = fs::metadata(store(&scratch)).expect("the store").len();
        let Some(owd) = scratch.try_start_with(|_| ()) else {
            assert!(scratch.stderr().contains("owd.db") || scratch.stderr().contains("store"), "{}", scratch.stderr());
            assert_eq!(fs::metadata(store(&scratch)).expect("the store").len(), before);
            continue;
        };
        let status = owd.owctl.json(&["status"]);
        let told = status["warnings"].to_string();
        let tasks = rows(&owd.owctl.json(&["task", "list"]));
        assert!(!tasks.is_empty() || told.contains("damage"), "page {page}: {told}");
    }
}
