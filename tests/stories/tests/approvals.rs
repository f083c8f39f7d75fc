//! Consent, seen from outside: nothing happens before an answer, and one answer is one execution.
//! Cases: `approvals.json`.

use std::fs;
use std::sync::Barrier;
use std::thread;

use ow_stories::{ASKING, Door, Reply, asking, executions, tcp_door};
use ow_test_support::{Scratch, binary, id, rows, until};

/// appr-01: over two surfaces, as a person at the terminal and one at the web page.
#[test]
fn of_two_answers_in_the_same_instant_one_wins_and_the_other_is_told() {
    // The TCP door admits 30 changing requests in ten seconds, so each home gets fewer.
    const ROUNDS: usize = 25;
    let homes = if std::env::var_os("OW_CRASH").is_some_and(|value| value == "full") { 8 } else { 2 };
    for _ in 0..homes {
        let scratch = asking();
        scratch.config("[server]\ntcp = \"127.0.0.1:0\"\n");
        let owd = scratch.start();
        let doors = [Door::Unix(scratch.path().join("owd.sock")), tcp_door(&scratch, &owd)];
        let mut approvals = 0;
        for round in 0..ROUNDS {
            owd.owctl.ok(&["task", "run", "asking"]);
            let item = id(&owd.item());
            let path = format!("/v1/items/{item}/answer");
            let bodies = [r#"{"answer":"approve"}"#, r#"{"answer":"deny"}"#];
            let gate = Barrier::new(2);
            let replies: Vec<Reply> = thread::scope(|scope| {
                let answers: Vec<_> = [0, 1]
                    .into_iter()
                    .map(|which| {
                        let (door, path, gate) = (&doors[(which + round) % 2], &path, &gate);
                        scope.spawn(move || {
                            gate.wait();
                            door.send("POST", path, &[], bodies[which])
                        })
                    })
                    .collect();
                answers.into_iter().map(|answer| answer.join().expect("an answer")).collect()
            });
            let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
            assert!(statuses == [200, 409] || statuses == [409, 200], "{replies:?}");
            let approved = statuses[0] == 200;
            let told = &replies[usize::from(approved)].json()["error"];
            assert_eq!(told["code"], "already_answered", "{told}");
            let decided = if approved { "already approved by" } else { "already denied by" };
            assert!(told["message"].as_str().is_some_and(|message| message.contains(decided)), "{told}");
            approvals += usize::from(approved);
            owd.run_in("asking", if approved { "succeeded" } else { "refused" });
            assert_eq!(executions(&scratch), approvals);
        }
    }
}

/// appr-02
#[test]
fn an_approved_call_runs_once_and_a_second_approval_is_told_so() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = owd.item();
    assert_eq!(executions(&scratch), 0, "nothing happens before the answer");
    owd.owctl.ok(&["inbox", "approve", &id(&item)]);
    let run = owd.run_in("asking", "succeeded");
    assert_eq!(run["task"], "asking");
    let again = owd.owctl.run(&["inbox", "approve", &id(&item)]);
    assert_eq!(again.code, 5, "{}{}", again.stdout, again.stderr);
    assert!(again.stderr.contains("already approved by"), "{}", again.stderr);
    assert_eq!(executions(&scratch), 1);
}

/// appr-03
#[test]
fn a_parked_run_outlives_kill_9_and_asks_nothing_anew() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = owd.item();
    owd.kill();
    let owd = scratch.start();
    let items = owd.items();
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!(id(&items[0]), id(&item));
    owd.owctl.ok(&["inbox", "approve", &id(&item)]);
    owd.run_in("asking", "succeeded");
    assert_eq!(executions(&scratch), 1);
}

/// appr-08
#[test]
fn a_script_that_changed_since_it_was_shown_is_not_run_but_asked_again() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let first = owd.item();
    fs::write(scratch.work().join("count.sh"), "echo other >> /dev/null\n").expect("a script");
    owd.owctl.ok(&["inbox", "approve", &id(&first)]);
    let second = until("it asks again", || owd.items().into_iter().find(|item| id(item) != id(&first)));
    assert_eq!(second["kind"], "approval");
    assert_eq!(executions(&scratch), 0);
}

#[test]
fn a_denial_ends_the_run_as_refused_with_the_reason() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    owd.owctl.ok(&["inbox", "deny", &id(&owd.item()), "--reason", "not on a Monday"]);
    let run = owd.run_in("asking", "refused");
    assert!(run["message"].as_str().is_some_and(|message| message.contains("not on a Monday")), "{run}");
    let shown = owd.owctl.ok(&["run", "show", &id(&run)]);
    assert!(shown.contains("not on a Monday"), "{shown}");
    assert_eq!(executions(&scratch), 0);
}

#[test]
fn an_approval_for_the_task_asks_no_second_time_until_the_step_changes() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    owd.owctl.ok(&["inbox", "approve", &id(&owd.item()), "--for-task"]);
    owd.run_in("asking", "succeeded");
    owd.owctl.ok(&["task", "run", "asking", "--wait"]);
    assert_eq!(executions(&scratch), 2);
    scratch.task("asking", &ASKING.replace("count.sh\"", "count.sh\", \"x\""));
    owd.owctl.ok(&["reload"]);
    owd.owctl.ok(&["task", "run", "asking"]);
    owd.item();
    assert_eq!(executions(&scratch), 2);
}

/// appr-06
#[test]
fn an_unanswered_question_expires_into_no() {
    let scratch = asking();
    scratch.task("asking", &format!("expiry = \"1s\"\n{ASKING}"));
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = owd.item();
    owd.run_in("asking", "expired");
    let late = owd.owctl.run(&["inbox", "approve", &id(&item)]);
    assert_eq!(late.code, 5, "{}", late.stderr);
    assert!(late.stderr.contains("expired"), "{}", late.stderr);
    assert_eq!(executions(&scratch), 0);
    owd.owctl.ok(&["task", "run", "asking"]);
    assert_ne!(id(&owd.item()), id(&item), "the place is free again");
}

/// Nobody approves himself: a process that owd started is answered nothing.
#[test]
fn a_step_that_approves_its_own_item_gets_nothing() {
    let scratch = asking();
    let owctl = binary("owctl");
    let script = format!(
        "export OWD_HOME={home}\n{owctl} inbox list --json > {work}/list 2>&1; echo $? >> {work}/codes\n\
         {owctl} inbox approve \"$1\" > {work}/approve 2>&1; echo $? >> {work}/codes\n\
         setsid {owctl} rule list > {work}/rules 2>&1; echo $? >> {work}/codes\n\
         {owctl} status > {work}/status 2>&1; echo $? >> {work}/codes\n",
        home = scratch.path().display(),
        work = scratch.work().display(),
        owctl = owctl.display(),
    );
    fs::write(scratch.work().join("self.sh"), script).expect("a script");
    scratch.task(
        "selfish",
        "[[step]]\ntool = \"shell\"\nargs = { argv = [\"sh\", \"{work}/self.sh\", \"{{ event.item }}\"] }\n",
    );
    scratch.task("asking", &ASKING.replace("\"sh\"", "\"bash\""));
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    owd.owctl.ok(&["task", "run", "selfish", "--payload", &format!("{{\"item\": \"{item}\"}}")]);
    let asks = until("the value from outside asks", || owd.items().into_iter().find(|asked| id(asked) != item));
    owd.owctl.ok(&["inbox", "approve", &id(&asks)]);
    let run = until("the run is over", || owd.runs("selfish").into_iter().find(|run| !run["ended_at"].is_null()));
    assert_eq!(run["state"], "succeeded", "{run}");
    let codes = fs::read_to_string(scratch.work().join("codes")).expect("it ran");
    assert!(codes.lines().all(|code| code != "0"), "{codes}");
    assert_eq!(owd.items().len(), 1, "its item is still open");
    assert_eq!(executions(&scratch), 0);
}

/// appr-11
#[test]
fn what_is_always_allowed_is_that_and_nothing_else() {
    let scratch = Scratch::new();
    let fetch = scratch.work().join("fetch");
    fs::write(&fetch, "#!/bin/sh\necho \"$1\" >> \"$(dirname \"$0\")/fetched\"\n").expect("a script");
    fs::set_permissions(&fetch, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    let step = |host: &str| {
        format!("[[step]]\ntool = \"shell\"\nargs = {{ argv = [\"{{work}}/fetch\", \"https://{host}.example/\"] }}\n")
    };
    scratch.task("fetching", &format!("{}{}", step("a"), step("b")));
    let owd = scratch.start();
    let program = fetch.to_string_lossy().into_owned();
    owd.owctl.ok(&["rule", "add", "--task", "fetching", "--", &program, "https://a.example/"]);
    owd.owctl.ok(&["task", "run", "fetching"]);
    let item = owd.item();
    assert_eq!(item["approval"]["arguments"]["argv"][1], "https://b.example/", "{item}");
    let fetched = fs::read_to_string(scratch.work().join("fetched")).expect("the first step ran");
    assert_eq!(fetched, "https://a.example/\n");
}

/// appr-13
#[test]
fn a_run_that_waits_holds_no_worker_and_shows_in_inbox_status_and_log() {
    let scratch = asking();
    scratch.config("[scheduler]\nworkers = 1\n");
    scratch.task("asking", &format!("[[trigger]]\ncron = \"* * * * * *\"\n{ASKING}"));
    scratch.task("quick", "[[step]]\ntool = \"shell\"\nargs = { argv = [\"pwd\"] }\n");
    let owd = scratch.start();
    let item = owd.item();
    owd.owctl.ok(&["task", "run", "quick", "--wait"]);
    let status = owd.owctl.json(&["status"]);
    assert_eq!(status["runs_parked"], 1, "{status}");
    assert_eq!(status["items_pending"], 1, "{status}");
    assert!(scratch.stderr().contains(&id(&item)), "{}", scratch.stderr());
    until("the item shows what it holds back", || {
        let held = owd.items()[0]["holds_back"].as_u64()?;
        (held > 0).then_some(())
    });
    assert_eq!(owd.runs("asking").len(), 1, "nothing stacks");
}

/// appr-16
#[test]
fn a_call_that_was_denied_is_not_asked_again_in_the_same_run() {
    let scratch = asking();
    let step = format!("{}on-error = \"continue\"\n", ASKING.trim_start());
    scratch.task("asking", &step.repeat(10));
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    owd.owctl.ok(&["inbox", "deny", &id(&owd.item())]);
    owd.ended_run("asking");
    assert_eq!(owd.all_items("asking").len(), 1);
    assert_eq!(executions(&scratch), 0);
}

/// What asks for the same thing is one item, however often it is tried.
#[test]
fn a_denial_is_not_retried() {
    let scratch = asking();
    scratch.task("asking", &format!("retry = {{ attempts = 10, backoff = \"1s\" }}\n{ASKING}"));
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    owd.owctl.ok(&["inbox", "deny", &id(&owd.item())]);
    owd.run_in("asking", "refused");
    owd.owctl.ok(&["task", "run", "asking"]);
    owd.item();
    assert_eq!(owd.runs("asking").len(), 2, "two by hand and none by itself");
}

/// appr-17, as far as there is a surface for it.
#[test]
fn looking_decides_nothing() {
    let scratch = asking();
    scratch.config("[server]\ntcp = \"127.0.0.1:0\"\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    let door = tcp_door(&scratch, &owd);
    for method in ["GET", "HEAD"] {
        for path in [
            format!("/v1/items/{item}"),
            format!("/v1/items/{item}/answer"),
            format!("/v1/items/{item}/answer?answer=approve"),
        ] {
            let reply = door.send(method, &path, &[], "");
            assert!(matches!(reply.status, 200 | 404 | 405), "{method} {path}: {reply:?}");
        }
    }
    assert_eq!(owd.items().len(), 1);
    assert_eq!(executions(&scratch), 0);
}

#[test]
fn an_edited_approval_runs_the_edited_call_and_no_other() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    let edited = scratch.work().join("edited").to_string_lossy().into_owned();
    let arguments = serde_json::json!({ "argv": ["touch", edited] }).to_string();
    owd.owctl.ok(&["inbox", "approve", &item, "--args", &arguments]);
    let run = owd.run_in("asking", "succeeded");
    assert!(scratch.work().join("edited").is_file());
    assert_eq!(executions(&scratch), 0);
    let shown = owd.owctl.json(&["run", "show", &id(&run)]);
    assert_eq!(shown["calls"][0]["arguments"]["argv"][0], "touch", "{shown}");
}

#[test]
fn an_edit_that_does_not_fit_its_tool_uses_nothing_up() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    for wrong in [r#"{"bogus":1}"#, r#"{"argv":"touch"}"#] {
        let refused = owd.owctl.run(&["inbox", "approve", &item, "--args", wrong]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains("do not fit"), "{}", refused.stderr);
    }
    owd.owctl.ok(&["inbox", "approve", &item]);
    owd.run_in("asking", "succeeded");
    assert_eq!(executions(&scratch), 1);
}

#[test]
fn an_edit_into_what_is_denied_is_refused() {
    let scratch = asking();
    scratch.config("[policy]\ndeny = [\"touch\"]\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    let edited = scratch.work().join("edited").to_string_lossy().into_owned();
    let arguments = serde_json::json!({ "argv": ["touch", edited] }).to_string();
    owd.owctl.run(&["inbox", "approve", &item, "--args", &arguments]);
    let refused = until("it is refused, or still asks", || {
        let run = owd.runs("asking").remove(0);
        (run["state"] == "refused" || run["items"] == serde_json::json!([item])).then_some(run)
    });
    assert!(!scratch.work().join("edited").exists(), "{refused}");
    assert_eq!(executions(&scratch), 0);
}

#[test]
fn a_cancelled_run_takes_its_question_back() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    owd.owctl.ok(&["run", "cancel", &id(&owd.runs("asking")[0])]);
    owd.run_in("asking", "cancelled");
    assert!(owd.items().is_empty());
    let late = owd.owctl.run(&["inbox", "approve", &item]);
    assert_eq!(late.code, 5, "{}", late.stderr);
    assert!(late.stderr.contains("withdrawn"), "{}", late.stderr);
    assert_eq!(executions(&scratch), 0);
}

#[test]
fn a_task_that_is_deleted_takes_its_questions_back() {
    let scratch = asking();
    let file = scratch.path().join("config/tasks.d/asking.toml");
    fs::rename(&file, scratch.path().join("asking.toml")).expect("a rename");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "add", &scratch.path().join("asking.toml").to_string_lossy()]);
    owd.owctl.ok(&["task", "run", "asking"]);
    owd.item();
    owd.owctl.ok(&["task", "rm", "asking", "--yes"]);
    assert!(owd.items().is_empty());
    assert_eq!(executions(&scratch), 0);
}

/// A build runs whatever the workspace holds, so it asks unless the person trusts that.
#[test]
fn a_build_asks_unless_the_person_trusts_the_workspace() {
    let scratch = Scratch::new();
    scratch
        .task("builds", "roots = [\"{work}\"]\n[[step]]\ntool = \"shell\"\nargs = { argv = [\"cargo\", \"build\"] }\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "builds"]);
    let item = owd.item();
    assert_eq!(item["approval"]["tool"], "shell");
    owd.owctl.ok(&["inbox", "deny", &id(&item)]);
    owd.run_in("builds", "refused");
    scratch.config(&format!("[policy]\ntrusted = [{:?}]\n", scratch.work()));
    owd.owctl.ok(&["reload"]);
    owd.owctl.ok(&["task", "run", "builds"]);
    let built = until("it has run unasked", || owd.runs("builds").into_iter().find(|run| run["state"] == "failed"));
    assert!(
        owd.items().iter().all(|item| item["approval"].is_null()),
        "its failure is told, nothing is asked: {built}"
    );
}

/// A rule would lift nothing of it, and a step would be refused each time it runs.
#[test]
fn what_a_hard_block_refuses_always_can_be_allowed_by_nobody() {
    let scratch = Scratch::new();
    scratch.task(
        "ruin",
        "[[step]]\ntool = \"shell\"\nargs = { argv = [\"df\"] }\n\
         [[step]]\ntool = \"shell\"\nargs = { argv = [\"rm\", \"-rf\", \"/\"] }\n\
         [[step]]\ntool = \"write_file\"\nargs = { path = \"{root}/config/owd.toml\", content = \"x\" }\n"
            .replace("{root}", &scratch.path().to_string_lossy())
            .as_str(),
    );
    let owd = scratch.start();
    let plan = owd.owctl.json(&["task", "run", "--plan", "ruin"]);
    for (step, rule) in [(1, "hard-block: rm of root"), (2, "hard-block: owd's own files")] {
        assert_eq!(plan["steps"][step]["verdict"], "deny", "{plan}");
        assert_eq!(plan["steps"][step]["rule"], rule, "{plan}");
    }
    let shown = owd.owctl.ok(&["task", "run", "--plan", "ruin"]);
    assert!(shown.contains("rm -rf /") && shown.contains("hard-block: rm of root"), "{shown}");

    for step in ["2", "3"] {
        let refused = owd.owctl.run(&["task", "allow", "ruin", step, "--yes"]);
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(refused.code != 0 && said.contains("hard-block"), "{said}");
    }
    let config = scratch.path().join("config/owd.toml").to_string_lossy().into_owned();
    for target in [&["--everywhere", "--", "rm", "-rf", "/"][..], &["--task", "ruin", "--path", &config]] {
        let refused = owd.owctl.run(&[&["rule", "add"], target].concat());
        assert!(refused.code == 2 && refused.stderr.contains("hard-block"), "{}", refused.stderr);
    }
    assert_eq!(rows(&owd.owctl.json(&["rule", "list"])).len(), 0);
    owd.owctl.ok(&["task", "allow", "ruin", "1", "--yes"]);
}

#[test]
fn an_answer_that_does_not_fit_names_the_commands_that_do() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    let refused = owd.owctl.run(&["inbox", "answer", &item, "yes"]);
    assert!(refused.stderr.contains("is an approval"), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("owctl inbox approve {item}")), "{}", refused.stderr);
    let unknown = owd.owctl.run(&["inbox", "show", "first"]);
    assert!(unknown.code == 4 && unknown.stderr.contains("`first`"), "{}", unknown.stderr);
}
