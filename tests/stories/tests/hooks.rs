//! A person's own programs, asked before a call and told after it. Cases: `extensions-secrets-watch.json`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ow_stories::{ASKING, asking, executions, model_config};
use ow_test_support::model_server::{ModelReply, ModelServer};
use ow_test_support::{Owd, Scratch, binary, id, until};
use serde_json::{Value, json};

/// Puts a program into the folder of hooks.
fn hook(scratch: &Scratch, name: &str, script: &str) {
    let folder = scratch.path().join("config/hooks");
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join(name);
    fs::write(&file, script).expect("a hook");
    for (path, mode) in [(file.as_path(), 0o700), (&folder, 0o755), (&scratch.path().join("config"), 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode is set");
    }
}

fn shipped(scratch: &Scratch, name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/hooks").join(name);
    hook(scratch, name, &fs::read_to_string(file).expect("a hook of the repository"));
}

/// A task whose one step writes a file, which nothing but a hook stops.
fn writes(scratch: &Scratch, task: &str, file: &str) {
    let text = format!(
        "mode = \"edit\"\nroots = [\"{{work}}\"]\n\n[[step]]\ntool = \"write_file\"\n\
         args = {{ path = \"{{work}}/{file}\", content = \"written\" }}\n"
    );
    scratch.task(task, &text);
}

fn case(name: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases/extensions-secrets-watch.json");
    let all: Value = serde_json::from_str(&fs::read_to_string(file).expect("the cases")).expect("JSON");
    let cases = all["cases"].as_array().expect("a list");
    cases.iter().find(|case| case["id"] == name).cloned().unwrap_or_else(|| panic!("no case {name}"))
}

/// What the hooks said in a run, in the journal's words.
fn said(owd: &Owd, run: &Value) -> Vec<String> {
    let shown = owd.owctl.json(&["run", "show", &id(run)]);
    let journal = shown["facts"].as_array().unwrap_or_else(|| panic!("no facts in {shown}"));
    let hooked = journal.iter().filter(|fact| fact["fact"] == "hooked");
    hooked.map(|fact| fact["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_hook_refuses_a_call_that_policy_lets_through_and_says_why() {
    let scratch = Scratch::new();
    shipped(&scratch, "refuse-env-production");
    scratch.config(
        "[[hook]]\nevent = \"pre-tool-use\"\nmatcher = \"write_file|edit_file\"\ncommand = \"./refuse-env-production\"\n",
    );
    writes(&scratch, "settings", "app.env.production");
    writes(&scratch, "notes", "notes.txt");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "notes", "--wait"]);
    assert!(scratch.work().join("notes.txt").exists());
    owd.owctl.ok(&["task", "run", "settings"]);
    let run = owd.run_in("settings", "refused");
    assert!(!scratch.work().join("app.env.production").exists());
    let shown = owd.owctl.ok(&["run", "show", &id(&run)]);
    assert!(shown.contains("settings of production are changed by hand only"), "{shown}");
}

/// ext-26
#[test]
fn a_guard_that_hangs_keeps_the_tool_from_running() {
    let case = case("ext-26");
    let scratch = Scratch::new();
    hook(&scratch, "guard", &format!("#!/bin/sh\n{}\n", case["given"]["hook"].as_str().expect("a command")));
    let timeout = case["given"]["timeout_s"].as_u64().expect("seconds");
    scratch.config(&format!(
        "[[hook]]\nevent = \"pre-tool-use\"\nmatcher = \"write_.*\"\ncommand = \"./guard\"\ntimeout = \"{timeout}s\"\n"
    ));
    writes(&scratch, "notes", "notes.txt");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "notes"]);
    let run = owd.run_in("notes", "refused");
    assert!(!scratch.work().join("notes.txt").exists());
    let said = said(&owd, &run);
    assert!(said.len() == 1 && said[0].contains("it took longer than 5s"), "{said:?}");
}

/// ext-29
#[test]
fn an_observer_that_fails_is_on_record_and_the_run_goes_on() {
    let case = case("ext-29");
    assert_eq!((&case["given"]["kind"], &case["given"]["hook"]), (&json!("after"), &json!("exit 3")));
    let scratch = Scratch::new();
    hook(&scratch, "observer", "#!/bin/sh\nexit 3\n");
    scratch.config("[[hook]]\nevent = \"post-tool-use\"\ncommand = \"./observer\"\n");
    writes(&scratch, "notes", "notes.txt");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "notes"]);
    let run = owd.run_in("notes", "succeeded");
    let said = said(&owd, &run);
    assert!(said.len() == 1 && said[0].contains("exit status 3"), "{said:?}");
    assert!(scratch.stderr().contains("hook gave a warning"), "{}", scratch.stderr());
}

#[test]
fn a_guard_that_is_missing_or_open_to_others_refuses_unless_it_need_not() {
    let scratch = Scratch::new();
    hook(&scratch, "open", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(scratch.path().join("config/hooks/open"), fs::Permissions::from_mode(0o777)).expect("set");
    let config = |command: &str, rest: &str| {
        scratch.config(&format!("[[hook]]\nevent = \"pre-tool-use\"\ncommand = \"./{command}\"\n{rest}"));
    };
    writes(&scratch, "notes", "notes.txt");
    config("gone", "");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "notes"]);
    assert!(said(&owd, &owd.run_in("notes", "refused"))[0].contains("there is no file"));
    config("open", "");
    owd.owctl.ok(&["reload"]);
    owd.owctl.ok(&["task", "run", "notes"]);
    until("a second refused run", || {
        let runs = owd.runs("notes");
        (runs.len() == 2 && runs.iter().all(|run| run["state"] == "refused")).then_some(())
    });
    assert!(said(&owd, &owd.runs("notes")[0])[0].contains("can be written by others"));
    config("gone", "on-failure = \"warn\"\n");
    owd.owctl.ok(&["reload"]);
    owd.owctl.ok(&["task", "run", "notes", "--wait"]);
    assert!(scratch.work().join("notes.txt").exists());
}

#[test]
fn hooks_hear_of_a_session_once_at_its_beginning_and_once_at_its_end() {
    let scratch = Scratch::new();
    hook(&scratch, "tell", "#!/bin/sh\ncat >> \"${0%/*}/told\"; echo >> \"${0%/*}/told\"\n");
    scratch.config(
        "[[hook]]\nevent = \"session-start\"\ncommand = \"./tell\"\n\n[[hook]]\nevent = \"stop\"\ncommand = \"./tell\"\n\n\
         [[hook]]\nevent = \"pre-tool-use\"\ncommand = \"./tell\"\n\n[[hook]]\nevent = \"post-tool-use\"\ncommand = \"./tell\"\n",
    );
    writes(&scratch, "notes", "notes.txt");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "notes", "--wait"]);
    let run = id(&owd.run_in("notes", "succeeded"));
    let told = fs::read_to_string(scratch.path().join("config/hooks/told")).expect("they were told");
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let events: Vec<&str> = told.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(events, ["session-start", "pre-tool-use", "post-tool-use", "stop"]);
    assert!(told.iter().all(|line| line["session_id"] == run.as_str()), "{told:?}");
    let input = json!({ "path": scratch.work().join("notes.txt"), "content": "written" });
    assert_eq!((&told[1]["tool_name"], &told[1]["tool_input"]), (&json!("write_file"), &input));
    assert!(told[1]["tool_response"].is_null() && told[0]["tool_name"].is_null());
    assert!(told[2]["tool_response"].is_object() && told[2]["tool_response"]["error"].is_null());
}

/// P1, P7: what the agent is to do is durable before a hook hears of it.
#[test]
fn an_agent_goes_on_when_owd_is_killed_while_a_hook_hears_of_its_start() {
    let model = ModelServer::start();
    model.push(ModelReply::text("Done."));
    let scratch = Scratch::new();
    hook(&scratch, "slow", "#!/bin/sh\necho told >> \"${0%/*}/told\"\nexec sleep 60\n");
    let slow = "
[[hook]]
event = \"session-start\"
command = \"./slow\"
timeout = \"60s\"
";
    scratch.config(&model_config(&model, slow));
    scratch.task("agent", "goal = \"Say hello\"\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "agent"]);
    let told = scratch.path().join("config/hooks/told");
    until("the hook runs", || told.exists().then_some(()));
    owd.kill();
    let owd = scratch.start();
    owd.run_in("agent", "succeeded");
    assert!(model.last().json().to_string().contains("Say hello"));
    assert_eq!(fs::read_to_string(told).expect("it was told"), "told\n", "it is told once");
}

#[test]
fn a_hook_cannot_drive_owd_so_that_hooks_never_call_hooks() {
    let scratch = Scratch::new();
    let owctl = binary("owctl");
    hook(
        &scratch,
        "again",
        &format!(
            "#!/bin/sh\necho asked >> \"${{0%/*}}/asked\"\n{} --home {} task run notes >&2\nexit 1\n",
            owctl.display(),
            scratch.path().display()
        ),
    );
    scratch.config("[[hook]]\nevent = \"pre-tool-use\"\ncommand = \"./again\"\n");
    writes(&scratch, "notes", "notes.txt");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "notes", "--wait"]);
    let run = owd.run_in("notes", "succeeded");
    let said = said(&owd, &run);
    assert!(said[0].contains("a process that owd started may answer, grant, edit and read nothing"), "{said:?}");
    assert_eq!(owd.runs("notes").len(), 1);
    let asked = fs::read_to_string(scratch.path().join("config/hooks/asked")).expect("it was asked");
    assert_eq!(asked.lines().count(), 1);
}

#[test]
fn runs_side_by_side_each_ask_their_hooks() {
    let scratch = Scratch::new();
    // Each waits until all four are there: none is passed over because another is being asked.
    let script = "#!/bin/sh\ncd \"${0%/*}\" && echo x >> here\nwhile [ \"$(wc -l < here)\" -lt 4 ]; do sleep 0.02; done\nexit 2\n";
    hook(&scratch, "meet", script);
    scratch.config("[[hook]]\nevent = \"pre-tool-use\"\ncommand = \"./meet\"\n");
    let tasks = ["one", "two", "three", "four"];
    for task in tasks {
        writes(&scratch, task, task);
    }
    let owd = scratch.start();
    for task in tasks {
        owd.owctl.ok(&["task", "run", task]);
    }
    for task in tasks {
        owd.run_in(task, "refused");
    }
}

#[test]
fn a_hook_refuses_an_approved_call_too() {
    let scratch = asking();
    hook(&scratch, "guard", "#!/bin/sh\necho 'not on my machine' >&2; exit 2\n");
    scratch.config("[[hook]]\nevent = \"pre-tool-use\"\nmatcher = \"shell\"\ncommand = \"./guard\"\n");
    scratch.task("asking", ASKING);
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    owd.owctl.ok(&["inbox", "approve", &id(&owd.item())]);
    owd.run_in("asking", "refused");
    assert_eq!(executions(&scratch), 0);
}

#[test]
fn a_hook_may_have_a_person_asked_and_the_answer_settles_it() {
    let scratch = Scratch::new();
    hook(&scratch, "unsure", "#!/bin/sh\necho '{\"decision\": \"ask\", \"reason\": \"a strange hour\"}'\n");
    scratch.config("[[hook]]\nevent = \"pre-tool-use\"\ncommand = \"./unsure\"\n");
    writes(&scratch, "notes", "notes.txt");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "notes"]);
    let item = owd.item();
    assert!(item["approval"]["reason"].as_str().is_some_and(|reason| reason.contains("a strange hour")), "{item}");
    assert!(!scratch.work().join("notes.txt").exists());
    owd.owctl.ok(&["inbox", "approve", &id(&item)]);
    owd.run_in("notes", "succeeded");
    assert!(scratch.work().join("notes.txt").exists());
}

#[test]
fn the_dry_run_shows_which_hooks_match_and_what_they_say_without_a_daemon() {
    let scratch = Scratch::new();
    for name in ["refuse-env-production", "refuse-private-names", "log-shell"] {
        shipped(&scratch, name);
    }
    scratch.config(
        "[[hook]]\nevent = \"pre-tool-use\"\nmatcher = \"write_file\"\ncommand = \"./refuse-env-production\"\n\n\
         [[hook]]\nevent = \"pre-tool-use\"\ncommand = \"./refuse-private-names\"\n\n\
         [[hook]]\nevent = \"post-tool-use\"\nmatcher = \"shell\"\ncommand = \"./log-shell\"\n\n\
         [[hook]]\nevent = \"stop\"\ncommand = \"./log-shell\"\n",
    );
    let owctl = scratch.owctl();
    let test = |args: &[&str]| {
        let mut command = owctl.command(args);
        let output = command.arg("--json").env("HOME", scratch.work()).output().expect("owctl runs");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        let hooks = said["hooks"].as_array().expect("hooks").len();
        (output.status.code(), said["verdict"].as_str().expect("a verdict").to_owned(), hooks)
    };
    let of = |code, verdict: &str, hooks| (Some(code), verdict.to_owned(), hooks);
    assert_eq!(test(&["hook", "test", "write_file", r#"{"path": "/srv/.env.production"}"#]), of(1, "deny", 1));
    assert_eq!(
        test(&["hook", "test", "write_file", r#"{"path": "/srv/notes", "content": "secret"}"#]),
        of(0, "pass", 2)
    );
    assert_eq!(test(&["hook", "test", "read_file", r#"{"path": "/srv/Private/x"}"#]), of(1, "deny", 1));
    assert_eq!(test(&["hook", "test", "shell", r#"{"argv": ["cat", "a]", "my-secret"]}"#]), of(1, "deny", 1));
    assert_eq!(test(&["hook", "test", "shell", r#"{"argv": ["df"]}"#, "--event", "post-tool-use"]), of(0, "pass", 1));
    assert_eq!(test(&["hook", "test", "--event", "stop"]), of(0, "pass", 1));
    for (tool, remedy) in [("wriet_file", "did you mean `write_file`?"), ("nosuch", "`owctl tool list`")] {
        let said = owctl.run(&["hook", "test", tool]);
        let names = said.stderr.contains(&format!("there is no tool `{tool}`")) && said.stderr.contains(remedy);
        assert!(said.code == 4 && names, "{said:?}");
    }
    let log = fs::read_to_string(scratch.work().join(".local/state/owd-shell.log")).expect("a log");
    assert!(log.lines().count() == 1 && log.contains(r#""argv":["df"]"#), "{log}");
    let listed = owctl.json(&["hook", "list"]);
    assert!(
        listed["hooks"].as_array().is_some_and(|hooks| hooks.iter().all(|hook| hook["fault"].is_null())),
        "{listed}"
    );
}
