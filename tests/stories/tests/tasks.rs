//! Tasks as a person has them: files and stored ones, plans, permissions, pauses, bad input.

use std::fs;

use ow_test_support::{Scratch, until};

const REPORT: &str = r#"
title = "Morning disk report"
timezone = "Europe/Paris"
roots = ["{work}/reports"]

[[trigger]]
cron = "0 6 * * mon-fri"

[[trigger]]
watch = { path = "{work}/reports/requests", glob = "*.txt", settle = "200ms" }

[[step]]
tool = "shell"
args = { argv = ["df", "-h"] }
save-as = "disks"

[[step]]
tool = "write_file"
args = { path = "{work}/reports/{{ slot.date }}.md", content = "{{ steps.disks.stdout }}" }
"#;

fn reports() -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.work().join("reports/requests")).expect("a folder");
    scratch.task("reports", REPORT);
    scratch
}

#[test]
fn an_allowed_task_runs_without_asking_until_a_step_changes() {
    let scratch = reports();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "allow", "reports", "--yes"]);
    owd.owctl.ok(&["task", "run", "reports", "--wait"]);
    assert!(owd.items().is_empty(), "{:?}", owd.items());
    let run = owd.run_in("reports", "succeeded");
    let shown = owd.owctl.json(&["run", "show", run["id"].as_str().expect("an id")]);
    let report = shown["artifacts"][0]["name"].as_str().expect("a path").to_owned();
    assert!(fs::read_to_string(&report).expect("the report").contains("Filesystem"));
    let opened = owd.owctl.ok(&["run", "open", run["id"].as_str().expect("an id"), "1"]);
    assert_eq!(opened.trim(), report);

    scratch.task("reports", &REPORT.replace("{{ steps.disks.stdout }}", "changed {{ steps.disks.stdout }}"));
    owd.owctl.ok(&["reload"]);
    owd.owctl.ok(&["task", "run", "reports"]);
    assert_eq!(owd.item()["approval"]["tool"], "write_file");
}

#[test]
fn a_file_that_comes_into_a_watched_folder_runs_the_task() {
    let scratch = reports();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "allow", "reports", "--yes"]);
    for name in ["please.txt", "; rm -rf ~.txt", "-o.txt", "two\nlines.txt", "\u{202e}txt.exe.txt"] {
        fs::write(scratch.work().join("reports/requests").join(name), "now").expect("a file");
    }
    let run = owd.run_in("reports", "succeeded");
    assert_eq!(run["cause"]["kind"], "event", "{run}");
    assert!(scratch.work().exists());
}

#[test]
fn a_file_that_came_while_owd_was_down_fires_at_the_start() {
    let scratch = reports();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "allow", "reports", "--yes"]);
    owd.stop();
    fs::write(scratch.work().join("reports/requests/late.txt"), "now").expect("a file");
    let owd = scratch.start();
    assert_eq!(owd.run_in("reports", "succeeded")["cause"]["kind"], "event");
    assert_eq!(owd.runs("reports").len(), 1);
}

#[test]
fn a_plan_shows_what_would_ask_and_has_no_effect() {
    let scratch = reports();
    let owd = scratch.start();
    let plan = owd.owctl.json(&["task", "run", "--plan", "reports"]);
    let verdicts: Vec<_> =
        plan["steps"].as_array().expect("steps").iter().map(|step| step["verdict"].clone()).collect();
    assert_eq!(verdicts, ["allow", "ask"], "{plan}");
    assert!(owd.runs("reports").is_empty());
    assert!(owd.items().is_empty());
}

#[test]
fn a_broken_file_is_named_with_line_and_remedy_and_changes_nothing_else() {
    let scratch = reports();
    let owd = scratch.start();
    scratch.task("reports", &REPORT.replace("0 6 * * mon-fri", "0 66 * * mon-fri"));
    scratch.task("other", "[[step]]\ntool = \"shell\"\nargs = { argv = [\"true\"] }\n");
    until("the new task is there", || (owd.owctl.run(&["task", "show", "other"]).code == 0).then_some(()));
    let status = owd.owctl.json(&["status"])["warnings"].to_string();
    assert!(status.contains("reports.toml:7") && status.contains("hour"), "{status}");
    let shown = owd.owctl.json(&["task", "show", "reports"]);
    assert_eq!(shown["revision"], 1);
    assert!(!shown["next_due"].is_null(), "the old definition goes on");
}

#[test]
fn a_file_that_vanishes_pauses_its_task_and_one_that_returns_resumes_it() {
    let scratch = reports();
    let owd = scratch.start();
    let file = scratch.path().join("config/tasks.d/reports.toml");
    let text = fs::read(&file).expect("the file");
    let state = || owd.owctl.json(&["task", "show", "reports"])["state"].clone();
    fs::remove_file(&file).expect("it goes");
    until("it is paused", || (state() == "paused").then_some(()));
    fs::write(&file, text).expect("it returns");
    until("it is active", || (state() == "active").then_some(()));
}

#[test]
fn the_kill_switch_stops_what_runs_and_keeps_what_asks() {
    let scratch = Scratch::new();
    scratch.task("sleepy", "[[step]]\ntool = \"shell\"\nargs = { argv = [\"sleep\", \"60\"] }\n");
    scratch.task("asking", "[[step]]\ntool = \"shell\"\nargs = { argv = [\"touch\", \"{work}/x\"] }\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "allow", "sleepy", "--yes"]);
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = owd.item();
    owd.owctl.ok(&["task", "run", "sleepy"]);
    owd.run_in("sleepy", "running");
    owd.owctl.ok(&["pause", "--all"]);
    owd.run_in("sleepy", "interrupted");
    assert_ne!(owd.owctl.run(&["task", "run", "asking"]).code, 0, "nothing starts");
    assert_eq!(owd.items()[0]["id"], item["id"]);
    owd.owctl.ok(&["resume", "--all"]);
    until("the stopped call is asked about", || {
        owd.items().into_iter().find(|asked| asked["approval"]["category"] == "stopped")
    });
}

#[test]
fn every_due_slot_has_its_record() {
    let scratch = Scratch::new();
    scratch.task("tick", "[[trigger]]\nevery = \"1s\"\n\n[[step]]\ntool = \"shell\"\nargs = { argv = [\"true\"] }\n");
    scratch.config("[policy]\nallow = [\"true\"]\n");
    let owd = scratch.start();
    until("it fires", || (owd.runs("tick").len() >= 2).then_some(()));
    let why = owd.owctl.json(&["why", "tick"]);
    let records = why["records"].as_array().expect("records");
    assert!(records.iter().filter(|record| record["disposition"] == "fired").count() >= 2, "{why}");
    let forecast = owd.owctl.json(&["forecast", "--task", "tick", "--limit", "3"]);
    assert_eq!(forecast["rows"].as_array().map(Vec::len), Some(3), "{forecast}");
}

/// Each kind of bad input: told by name, value and remedy; nothing is stored.
#[test]
fn bad_definitions_are_refused_by_name_value_and_remedy() {
    let step = "[[step]]\ntool = \"shell\"\nargs = { argv = [\"true\"] }\n";
    let scratch = Scratch::new();
    let owd = scratch.start();
    for (text, told) in [
        (format!("[[trigger]]\ncron = \"0 66 * * *\"\n\n{step}"), "hour"),
        (format!("[[trigger]]\ncron = \"0 0 30 2 *\"\n\n{step}"), "cron"),
        (format!("timezone = \"Europe/Pariss\"\n{step}"), "Europe/Pariss"),
        (format!("timeout = \"soon\"\n{step}"), "soon"),
        (format!("tittle = \"x\"\n{step}"), "title"),
        ("[[step]]\ntool = \"shel\"\nargs = {}\n".to_owned(), "shell"),
        ("[[step]]\ntool = \"shell\"\nargs = { argv = \"true\" }\n".to_owned(), "argv"),
        ("[[step]]\ntool = \"shell\"\nargs = { argv = [\"{{ steps.ghost.stdout }}\"] }\n".to_owned(), "ghost"),
        ("[[step]]\ntool = \"shell\"\nargs = { argv = [\"{{ slot.date\"] }\n".to_owned(), "}}"),
        (format!("[[trigger]]\nat = \"2020-01-01T00:00:00Z\"\n\n{step}"), "past"),
        (format!("[[trigger]]\nafter = \"bad\"\n\n{step}"), "follows itself"),
        ("title = \"no steps\"\n".to_owned(), "step"),
    ] {
        let file = scratch.path().join("bad.toml");
        fs::write(&file, &text).expect("a file");
        let added = owd.owctl.run(&["task", "add", file.to_str().expect("a path")]);
        assert_ne!(added.code, 0, "{text}\n{}", added.stdout);
        assert!(added.stderr.contains(told), "{text}\n{}", added.stderr);
    }
    assert_eq!(owd.owctl.json(&["task", "list"])["rows"].as_array().map(Vec::len), Some(0));
}

#[test]
fn backup_and_restore_ask_open_questions_anew() {
    let scratch = Scratch::new();
    scratch.task("asking", "[[step]]\ntool = \"shell\"\nargs = { argv = [\"touch\", \"{work}/x\"] }\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = owd.item();
    let into = scratch.path().join("backup");
    owd.owctl.ok(&["backup", into.to_str().expect("a path")]);
    owd.stop();
    let restored = scratch.command().arg("restore").arg(&into).output().expect("owd");
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let owd = scratch.start();
    let anew = owd.item();
    assert_ne!(anew["id"], item["id"]);
    let old = owd.owctl.run(&["inbox", "approve", item["id"].as_str().expect("an id")]);
    assert_eq!(old.code, 5, "{}", old.stderr);
}
