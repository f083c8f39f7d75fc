//! What a workspace brings in its folder `.owd`: it forbids at once, its hooks run once they are trusted, and it never
//! allows anything.

use std::fs;
use std::path::PathBuf;

use ow_stories::{Door, results, with_model};
use ow_test_support::model_server::{ModelReply, ModelServer};
use ow_test_support::{Owd, Scratch, id, rows, until};
use serde_json::{Value, json};

const HOOK: &str = "[[hook]]\nevent = \"pre-tool-use\"\nmatcher = \"write_file\"\ncommand = \"./guard\"\n";

/// Writes what the workspace in `work` brings.
fn brings(scratch: &Scratch, text: &str) -> PathBuf {
    let own = scratch.work().join(".owd");
    fs::create_dir_all(own.join("hooks")).expect("a folder");
    fs::write(own.join("workspace.toml"), text).expect("a file");
    own
}

/// A hook that refuses, and leaves a trace of having run.
fn guard(scratch: &Scratch, why: &str) {
    let trace = scratch.path().join("guarded");
    let script = format!("#!/bin/sh\necho run >> {}\necho '{why}' >&2\nexit 2\n", trace.display());
    fs::write(scratch.work().join(".owd/hooks/guard"), script).expect("a hook");
}

fn was_guarded(scratch: &Scratch) -> bool {
    scratch.path().join("guarded").exists()
}

/// A task whose one step writes a file of the workspace, which nothing but a hook stops.
fn writes(scratch: &Scratch, file: &str) {
    let text = format!(
        "mode = \"edit\"\nroots = [\"{{work}}\"]\n\n[[step]]\ntool = \"write_file\"\n\
         args = {{ path = \"{{work}}/{file}\", content = \"written\" }}\n"
    );
    scratch.task("writes", &text);
}

/// Runs the task to its end, and gives the run.
fn run(owd: &Owd, task: &str) -> Value {
    let run = owd.owctl.run(&["task", "run", task, "--wait", "--json"]);
    let newest = owd.runs(task).into_iter().next();
    newest.unwrap_or_else(|| panic!("no run: {run:?}"))
}

fn notices(owd: &Owd) -> Vec<String> {
    let items = rows(&owd.owctl.json(&["inbox", "list", "--all"]));
    let texts = items.iter().filter_map(|item| item["text"].as_str()).map(str::to_owned);
    texts.filter(|text| text.contains("Hooks that") || text.contains("has no effect")).collect()
}

#[test]
fn a_trusted_workspace_is_told_what_became_of_a_step() {
    let scratch = Scratch::new();
    brings(&scratch, "[[hook]]\nevent = \"post-tool-use\"\nmatcher = \"write_file\"\ncommand = \"./guard\"\n");
    let told = scratch.path().join("told");
    let script = format!("#!/bin/sh\ncat >> {}\n", told.display());
    fs::write(scratch.work().join(".owd/hooks/guard"), script).expect("a hook");
    writes(&scratch, "notes.txt");
    let owd = scratch.start();
    owd.owctl.ok(&["trust", &scratch.work().to_string_lossy(), "--yes"]);
    assert_eq!(run(&owd, "writes")["state"], "succeeded");
    let told = fs::read_to_string(&told).expect("it was told");
    assert!(told.contains("write_file") && told.contains("notes.txt"), "{told}");
}

#[test]
fn a_workspace_forbids_untrusted_and_allows_nothing_even_trusted() {
    let scratch = Scratch::new();
    let grants = "allow = [\"touch\"]\nmode = \"auto\"\n[policy]\nallow = [\"touch\"]\n[tool-risk]\nshell = \"read\"\n";
    brings(&scratch, &format!("deny = [\"echo secret*\"]\n{grants}{HOOK}"));
    guard(&scratch, "no");
    let step =
        |argv: &str| format!("roots = [\"{{work}}\"]\n\n[[step]]\ntool = \"shell\"\nargs = {{ argv = {argv} }}\n");
    scratch.task("forbidden", &step("[\"echo\", \"secret plans\"]"));
    scratch.task("fine", &step("[\"echo\", \"plans\"]"));
    for task in ["touches", "again"] {
        scratch.task(task, &step("[\"touch\", \"{work}/made\"]"));
    }
    let owd = scratch.start();
    assert_eq!(run(&owd, "fine")["state"], "succeeded");
    let refused = run(&owd, "forbidden");
    assert_eq!(refused["state"], "refused", "{refused}");
    assert!(owd.owctl.ok(&["run", "show", &id(&refused)]).contains("echo secret*"));
    owd.owctl.ok(&["task", "run", "touches"]);
    owd.run_in("touches", "parked");
    let said = owd.owctl.ok(&["trust", &scratch.work().to_string_lossy(), "--yes"]);
    assert!(said.starts_with("1 hook of "), "{said}");
    owd.owctl.ok(&["task", "run", "again"]);
    owd.run_in("again", "parked");
    assert!(!scratch.work().join("made").exists());
    let mut notices = notices(&owd);
    notices.sort();
    assert!(
        notices.len() == 2 && notices[0].contains("`allow`, `policy`, `tool-risk`, `mode` has no effect"),
        "{notices:?}"
    );
}

#[test]
fn a_hook_of_a_workspace_runs_once_it_is_trusted_and_no_longer_when_it_has_changed() {
    let scratch = Scratch::new();
    brings(&scratch, HOOK);
    guard(&scratch, "not in this shop");
    writes(&scratch, "notes.txt");
    let owd = scratch.start();
    assert_eq!(run(&owd, "writes")["state"], "succeeded");
    assert!(!was_guarded(&scratch), "nobody trusts it");
    assert_eq!(run(&owd, "writes")["state"], "succeeded");
    let told = notices(&owd);
    assert!(told.len() == 1 && told[0].contains("are not trusted") && told[0].contains("owctl trust"), "{told:?}");
    // Through a link: it is the same workspace.
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink(scratch.work(), &link).expect("a link");
    let link = link.to_string_lossy();
    let alone = owd.owctl.run(&["trust", &link]);
    assert!(alone.code == 2 && alone.stderr.contains("--yes") && alone.stderr.contains("./guard"), "{alone:?}");
    owd.owctl.ok(&["trust", &link, "--yes"]);
    let refused = run(&owd, "writes");
    assert_eq!(refused["state"], "refused", "{refused}");
    assert!(owd.owctl.ok(&["run", "show", &id(&refused)]).contains("not in this shop"));
    assert!(was_guarded(&scratch));
    // It holds over a restart, and ends with a change of the program.
    owd.stop();
    let owd = scratch.start();
    assert_eq!(run(&owd, "writes")["state"], "refused");
    guard(&scratch, "changed");
    fs::remove_file(scratch.path().join("guarded")).expect("it ran");
    assert_eq!(run(&owd, "writes")["state"], "succeeded");
    assert_eq!(run(&owd, "writes")["state"], "succeeded");
    assert!(!was_guarded(&scratch), "what changed is not run");
    let told = notices(&owd);
    assert!(told.len() == 2 && told[0].contains("are not as they were when you trusted them"), "told once: {told:?}");
    let listed = owd.owctl.json(&["trust", "list"]);
    assert_eq!(rows(&listed)[0]["hooks"][0]["state"], "untrusted", "{listed}");
    owd.owctl.ok(&["trust", "rm", &scratch.work().to_string_lossy()]);
    assert!(rows(&owd.owctl.json(&["trust", "list"])).is_empty());
    assert_eq!(owd.owctl.run(&["trust", "rm", &link]).code, 4);
}

#[test]
fn trust_takes_effect_at_once_in_an_open_session_in_both_directions() {
    let model = ModelServer::start();
    let scratch = with_model(&model);
    brings(&scratch, HOOK);
    guard(&scratch, "not in this shop");
    let file = scratch.work().join("notes.txt");
    model.answer(move |request| {
        let body = request.json();
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        match last["role"].as_str() {
            Some("tool") => ModelReply::text("Done.").into(),
            _ => ModelReply::calls([("write_file", json!({ "path": file, "content": "x" }))]).into(),
        }
    });
    let owd = scratch.start();
    let door = Door::Unix(scratch.path().join("owd.sock"));
    let wanted = json!({ "mode": "edit", "roots": [scratch.work()] }).to_string();
    let chat = id(&door.send("POST", "/v1/sessions", &[], &wanted).json());
    let say = || {
        let path = format!("/v1/sessions/{chat}/messages");
        assert_eq!(door.send("POST", &path, &[], &json!({ "text": "write" }).to_string()).status, 200);
        until("the chat is idle", || {
            let chats = rows(&owd.owctl.json(&["session", "list"]));
            (chats[0]["state"] == "idle" && chats[0]["waiting"] == 0).then_some(())
        });
        results(&model.last().json()).last().cloned().expect("a result")
    };
    assert!(!say().contains("not in this shop"));
    let work = scratch.work().to_string_lossy().into_owned();
    owd.owctl.ok(&["trust", &work, "--yes"]);
    assert!(say().contains("not in this shop"));
    owd.owctl.ok(&["trust", "rm", &work]);
    assert!(!say().contains("not in this shop"));
}

#[test]
fn a_workspace_whose_file_is_faulty_is_only_read_and_its_own_folder_is_out_of_reach() {
    let scratch = Scratch::new();
    let own = brings(&scratch, "denny = [\"git push\"]\n");
    writes(&scratch, "notes.txt");
    let owd = scratch.start();
    let refused = run(&owd, "writes");
    assert_eq!(refused["state"], "refused", "{refused}");
    let shown = owd.owctl.ok(&["run", "show", &id(&refused)]);
    assert!(shown.contains("workspace.toml:1:1: unknown key") && !shown.contains("denny"), "{shown}");
    let faulty = owd.owctl.run(&["trust", &scratch.work().to_string_lossy(), "--yes"]);
    assert!(faulty.code != 0 && faulty.stderr.contains("did you mean `deny`?"), "{faulty:?}");
    fs::write(own.join("workspace.toml"), "deny = [\"git push\"]\n").expect("a file");
    assert_eq!(run(&owd, "writes")["state"], "succeeded");
    // What is forbidden is not for a call to change.
    writes(&scratch, ".owd/workspace.toml");
    until("the task file is read", || {
        owd.owctl.ok(&["task", "show", "writes"]).contains("workspace.toml").then_some(())
    });
    assert_eq!(run(&owd, "writes")["state"], "refused");
    assert!(fs::read_to_string(own.join("workspace.toml")).expect("a file").contains("git push"));
}
