//! Tasks as a person has them: files and stored ones, plans, permissions, steps, triggers, pauses.

use std::fs;

use ow_stories::{ASKING, asking, executions};
use ow_test_support::{Answer, Scratch, Terminal, id, rows, until};
use serde_json::{Value, json};

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

/// One who comes when a command has been running for a while sees what was newest by then; and all see what follows.
#[test]
fn what_a_step_prints_is_seen_while_it_runs() {
    let scratch = Scratch::new();
    let script = "echo listening; touch begun\nwait_for() { while [ ! -e $1 ]; do sleep 0.02; done; }\n\
                  wait_for go; echo heard; wait_for over\n";
    fs::write(scratch.work().join("serve.sh"), script).expect("written");
    scratch.task(
        "serve",
        "title = \"Serve\"\nroots = [\"{work}\"]\n[[step]]\ntool = \"shell\"\n\
         args = { argv = [\"sh\", \"serve.sh\"], cwd = \"{work}\" }\n",
    );
    let owd = scratch.start();
    owd.owctl.ok(&["task", "allow", "serve", "--yes"]);
    let run = id(&owd.owctl.json(&["task", "run", "serve"]));
    until("the command runs", || scratch.work().join("begun").exists().then_some(()));
    let mut first = Terminal::start(&mut owd.owctl.command(&["run", "watch", &run]), 100, 40);
    first.shows("| listening");
    let second = Terminal::start(&mut owd.owctl.command(&["run", "watch", &run]), 100, 40);
    second.shows("is about to run");
    fs::write(scratch.work().join("go"), "").expect("written");
    first.shows("| heard");
    second.shows("| heard");
    fs::write(scratch.work().join("over"), "").expect("written");
    first.shows("succeeded");
    assert_eq!(first.ended(), 0);
    assert_eq!(first.screen().matches("| heard").count(), 1, "{}", first.screen());
    let shown = owd.owctl.json(&["run", "show", &run]);
    assert!(shown.to_string().contains("listening\\nheard\\n"), "{shown}");
}

/// The first thing that a new user tries: a report of a folder that is not there yet.
#[test]
fn a_plan_needs_no_folder_that_only_a_run_would_make() {
    let scratch = Scratch::new();
    scratch.task("disks", "roots = [\"{work}/none-yet\"]\n[[step]]\ntool = \"shell\"\nargs = { argv = [\"df\"] }\n");
    let owd = scratch.start();
    let plan = owd.owctl.json(&["task", "run", "--plan", "disks"]);
    assert_eq!(plan["steps"][0]["verdict"], "allow", "{plan}");
    assert!(fs::read_dir(scratch.path().join("data/runs")).expect("the runs").next().is_none(), "nothing stays");
}

/// A time on the wall is the task's own, and one that its clocks leave out is the instant after the gap.
#[test]
fn why_and_forecast_read_times_and_days_as_they_are_meant() {
    let scratch = Scratch::new();
    let step = "[[step]]\ntool = \"notify\"\nargs = { title = \"x\", text = \"y\" }\n";
    scratch.task("gap", &format!("timezone = \"America/New_York\"\n[[trigger]]\nat = \"2037-03-08T02:30:00\"\n{step}"));
    let owd = scratch.start();
    // The day of the task's zone, which has begun elsewhere long before.
    scratch
        .task("early", &format!("timezone = \"Pacific/Auckland\"\n[[trigger]]\nat = \"2037-03-08T00:30:00\"\n{step}"));
    owd.owctl.ok(&["reload"]);
    let day = owd.owctl.ok(&["why", "early", "2037-03-08"]);
    assert!(day.contains("2037-03-08 00:30 is still to come"), "{day}");
    let before = owd.owctl.ok(&["why", "early", "2037-03-07"]);
    assert!(before.contains("No slot is due from"), "{before}");
    for time in ["2037-03-08 02:30", "2037-03-08"] {
        let why = owd.owctl.ok(&["why", "gap", time]);
        assert!(why.contains("2037-03-08 03:00 is still to come"), "{time}: {why}");
    }
    let never = owd.owctl.ok(&["why", "gap", "2036-01-01"]);
    assert!(never.contains("No slot is due from"), "{never}");
    let day = owd.owctl.json(&["forecast", "--from", "2037-03-08", "--until", "2037-03-08"]);
    assert_eq!(rows(&day).len(), 1, "{day}");
    let turned = owd.owctl.run(&["forecast", "--from", "2037-03-08", "--until", "2037-03-01"]);
    assert_eq!(turned.code, 2, "{}", turned.stderr);
    assert!(turned.stderr.contains("is later than --until"), "{}", turned.stderr);
    let day_before = owd.owctl.run(&["forecast", "--from", "2037-03-08", "--until", "2037-03-07"]);
    assert_eq!(day_before.code, 2, "an empty list would say that nothing is due: {}", day_before.stdout);
}

#[test]
fn a_models_table_that_owd_would_not_start_with_is_told() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("config/models.toml"), "[bad").expect("a table");
    let checked = ow_test_support::Owctl::of(scratch.path().to_owned()).run(&["config", "check"]);
    assert_eq!(checked.code, 2, "{}{}", checked.stdout, checked.stderr);
    assert!(checked.stderr.contains("models.toml"), "{}", checked.stderr);
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
    assert_eq!(owd.owctl.json(&["status"])["runs_interrupted"], 1);
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

#[test]
fn a_forecast_goes_on_where_its_page_ended() {
    let scratch = Scratch::new();
    for name in ["one", "two"] {
        scratch
            .task(name, "[[trigger]]\ncron = \"0 6 * * *\"\n\n[[step]]\ntool = \"notify\"\nargs = { text = \"x\" }\n");
    }
    let owd = scratch.start();
    let asked = ["forecast", "--from", "2030-01-01", "--until", "2030-01-04"];
    let all = rows(&owd.owctl.json(&asked));
    assert_eq!(all.len(), 8, "both tasks, on each of the four days: {all:?}");
    let (mut found, mut cursor) = (vec![], None::<String>);
    loop {
        let mut args = [&asked[..], &["--limit", "4"]].concat();
        args.extend(cursor.iter().flat_map(|cursor| ["--after", cursor.as_str()]));
        let page = owd.owctl.json(&args);
        found.extend(rows(&page));
        match page["next"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(found, all);
    let shown = owd.owctl.ok(&["forecast", "--limit", "1"]);
    assert!(shown.contains("more: add --after "), "{shown}");
}

#[test]
fn a_file_that_is_new_or_changed_is_noticed_without_a_word() {
    let scratch = Scratch::new();
    let owd = scratch.start();
    scratch.task("asking", ASKING);
    until("the task is there", || (owd.owctl.run(&["task", "show", "asking"]).code == 0).then_some(()));
    scratch.task("asking", &format!("title = \"Another\"\n{ASKING}"));
    until("it is revised", || {
        let shown = owd.owctl.json(&["task", "show", "asking"]);
        (shown["revision"] == 2 && shown["title"] == "Another").then_some(())
    });
}

#[test]
fn a_stored_task_is_added_edited_taken_out_deleted_and_brought_back() {
    let scratch = Scratch::new();
    let owd = scratch.start();
    let file = scratch.path().join("mine.toml");
    fs::write(&file, "title = \"Mine\"\n[[step]]\ntool = \"shell\"\nargs = { argv = [\"pwd\"] }\n").expect("a file");
    let file = file.to_string_lossy().into_owned();
    owd.owctl.ok(&["task", "add", &file]);
    let again = owd.owctl.run(&["task", "add", &file]);
    assert_ne!(again.code, 0, "a name is taken once");

    let editor = scratch.path().join("editor");
    fs::write(&editor, "#!/bin/sh\nsed -i s/Mine/Ours/ \"$1\"\n").expect("an editor");
    fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    let edited = Answer::within_limit(owd.owctl.command(&["task", "edit", "mine"]).env("EDITOR", &editor));
    assert_eq!(edited.code, 0, "{}", edited.stderr);
    let shown = owd.owctl.json(&["task", "show", "mine"]);
    assert_eq!((&shown["title"], &shown["revision"]), (&json!("Ours"), &json!(2)));

    let folder = scratch.path().join("exported").to_string_lossy().into_owned();
    owd.owctl.ok(&["task", "export", "--all", &folder]);
    owd.owctl.ok(&["task", "rm", "mine", "--yes"]);
    assert_eq!(owd.owctl.run(&["task", "show", "mine"]).code, 4);
    owd.owctl.ok(&["task", "import", &folder]);
    assert_eq!(owd.owctl.json(&["task", "show", "mine"])["title"], "Ours");
    owd.owctl.ok(&["task", "run", "mine", "--wait"]);
}

#[test]
fn a_deleted_task_leaves_its_records() {
    let scratch = Scratch::new();
    let owd = scratch.start();
    let file = scratch.path().join("mine.toml");
    fs::write(&file, "[[step]]\ntool = \"shell\"\nargs = { argv = [\"pwd\"] }\n").expect("a file");
    owd.owctl.ok(&["task", "add", &file.to_string_lossy()]);
    owd.owctl.ok(&["task", "run", "mine", "--wait"]);
    let run = id(&owd.runs("mine")[0]);
    owd.owctl.ok(&["task", "rm", "mine", "--yes"]);
    assert_eq!(owd.owctl.json(&["run", "show", &run])["state"], "succeeded");
}

/// The states of a run's calls, by step.
fn states(shown: &Value) -> Vec<(u64, String)> {
    let calls = shown["calls"].as_array().expect("calls").iter();
    calls
        .map(|call| (call["step"].as_u64().expect("a step"), call["state"].as_str().expect("a state").into()))
        .collect()
}

#[test]
fn steps_read_what_earlier_ones_gave_and_are_left_out_by_their_condition() {
    let scratch = Scratch::new();
    scratch.config("[policy]\nallow = [\"false\", \"touch\"]\n");
    scratch.task(
        "steps",
        r#"
[[step]]
tool = "shell"
args = { argv = ["false"] }
save-as = "broken"
on-error = "continue"

[[step]]
tool = "shell"
if = "steps.broken.error is not none"
args = { argv = ["touch", "{work}/handled"] }

[[step]]
tool = "shell"
if = "steps.broken.error is none"
args = { argv = ["touch", "{work}/not-broken"] }

[[step]]
tool = "shell"
args = { argv = ["false"] }

[[step]]
tool = "shell"
args = { argv = ["touch", "{work}/too-far"] }
"#,
    );
    let owd = scratch.start();
    let waited = owd.owctl.run(&["task", "run", "steps", "--wait"]);
    assert_eq!(waited.code, 1, "a failure is no success\n{}{}", waited.stdout, waited.stderr);
    let run = owd.run_in("steps", "failed");
    assert_eq!(run["failure"], "step", "{run}");
    let shown = owd.owctl.json(&["run", "show", &id(&run)]);
    let expected = [(0, "failed"), (1, "done"), (3, "failed")].map(|(step, state)| (step, state.to_owned()));
    assert_eq!(states(&shown), expected, "{shown}");
    let there = ["handled", "not-broken", "too-far"].map(|name| scratch.work().join(name).exists());
    assert_eq!(there, [true, false, false]);
}

#[test]
fn a_failed_run_is_retried_as_often_as_the_task_says_and_by_hand() {
    let scratch = Scratch::new();
    scratch.task(
        "reading",
        "roots = [\"{work}\"]\nretry = { attempts = 2, backoff = \"1s\" }\n\
         [[step]]\ntool = \"read_file\"\nargs = { path = \"{work}/missing\" }\n",
    );
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "reading"]);
    let runs = until("the first attempt and two more have failed", || {
        let runs = owd.runs("reading");
        (runs.len() == 3 && runs.iter().all(|run| run["state"] == "failed")).then_some(runs)
    });
    for pair in runs.windows(2) {
        assert_eq!(pair[0]["retry_of"], pair[1]["id"], "each hangs off the one before");
    }
    let last = &runs[0];
    fs::write(scratch.work().join("missing"), "found").expect("a file");
    owd.owctl.ok(&["run", "retry", &id(last)]);
    owd.run_in("reading", "succeeded");
}

#[test]
fn a_task_follows_another_and_one_runs_at_each_start() {
    let scratch = Scratch::new();
    let step = "[[step]]\ntool = \"shell\"\nargs = { argv = [\"pwd\"] }\n";
    scratch.task("first", &format!("[[trigger]]\nstartup = true\n{step}"));
    scratch.task("second", &format!("[[trigger]]\nafter = {{ task = \"first\", on = \"success\" }}\n{step}"));
    scratch.task("never", &format!("[[trigger]]\nafter = {{ task = \"first\", on = \"failure\" }}\n{step}"));
    for lives in 1..=2 {
        let owd = scratch.start();
        until("both have run", || {
            let ended = |task: &str| owd.runs(task).iter().filter(|run| run["state"] == "succeeded").count();
            (ended("first") == lives && ended("second") == lives).then_some(())
        });
        assert!(owd.runs("never").is_empty());
        owd.stop();
    }
}

#[test]
fn a_slot_that_did_not_run_says_why() {
    let scratch = asking();
    scratch.task("asking", &format!("[[trigger]]\ncron = \"* * * * * *\"\n{ASKING}"));
    let owd = scratch.start();
    owd.item();
    let why = until("a slot is held back", || {
        let why = owd.owctl.json(&["why", "asking"]);
        let records = why["records"].as_array()?.clone();
        records.into_iter().find(|record| record["disposition"] == "skipped")
    });
    assert!(why["why"].as_str().is_some_and(|why| !why.is_empty()), "{why}");
    assert_eq!(executions(&scratch), 0);
}

#[test]
fn a_paused_task_does_not_fire_until_it_is_resumed() {
    let scratch = Scratch::new();
    scratch
        .task("tick", "[[trigger]]\ncron = \"* * * * * *\"\n[[step]]\ntool = \"shell\"\nargs = { argv = [\"pwd\"] }\n");
    let owd = scratch.start();
    owd.run_in("tick", "succeeded");
    owd.owctl.ok(&["task", "pause", "tick"]);
    assert!(owd.owctl.json(&["task", "show", "tick"])["next_due"].is_null());
    let before = owd.runs("tick").len();
    owd.owctl.ok(&["task", "resume", "tick"]);
    until("it fires again", || (owd.runs("tick").len() > before).then_some(()));
}

/// What a task's file leaves out comes from the configuration as it is, not as it was when owd started.
#[test]
fn a_changed_default_reaches_the_task_files_by_a_reload() {
    let scratch = asking();
    let owd = scratch.start();
    let days = |expected: i64| {
        owd.owctl.ok(&["task", "run", "asking"]);
        let item = owd.item();
        let instant =
            |key: &str| item[key].as_str().expect("an instant").parse::<jiff::Timestamp>().expect("an instant");
        let lasts = instant("expires_at").duration_since(instant("created_at")).as_hours() / 24;
        assert_eq!(lasts, expected, "{item}");
        owd.owctl.ok(&["inbox", "deny", &id(&item)]);
        owd.run_in("asking", "refused");
    };
    days(14);
    scratch.config("[inbox]\nexpiry = \"3d\"\n");
    owd.owctl.ok(&["reload"]);
    days(3);
}

#[test]
fn a_run_that_a_pause_holds_back_names_the_command_that_lets_it_start() {
    let scratch = reports();
    let owd = scratch.start();
    owd.owctl.ok(&["pause", "--all"]);
    let refused = owd.owctl.run(&["task", "run", "reports"]);
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    assert!(refused.stderr.contains("next:  `owctl resume --all`"), "{}", refused.stderr);
    owd.owctl.ok(&["resume", "--all"]);
    // A pause of one task holds back its slots and events, and no person.
    let said = owd.owctl.ok(&["task", "pause", "reports"]);
    assert!(said.contains("owctl task resume reports") && said.contains("owctl task run reports"), "{said}");
    owd.owctl.ok(&["task", "run", "reports"]);
}
