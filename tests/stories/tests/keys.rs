//! Secrets as a person keeps them, and models as they are checked: no value is ever shown, nobody is asked.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use ow_test_support::{Owctl, Scratch, id, rows};
use serde_json::Value;

const VALUE: &str = "s3cr3t-0123456789-value";

/// `printf VALUE | owctl secret set NAME`
fn set(owctl: &Owctl, name: &str, value: &str) -> (Option<i32>, String) {
    let mut command = owctl.command(&["secret", "set", name]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("owctl starts");
    child.stdin.take().expect("piped").write_all(value.as_bytes()).expect("it is read");
    let output = child.wait_with_output().expect("owctl ends");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), said)
}

/// A task that prints a secret that it is given, with whether it was the right one.
fn prints(scratch: &Scratch) {
    let script = format!("[ \"$TOKEN\" = {VALUE} ] && echo \"right: $TOKEN\" || echo \"wrong\"");
    fs::write(scratch.work().join("print.sh"), script).expect("a script");
    scratch.task(
        "prints",
        "[[step]]\ntool = \"shell\"\nargs = { argv = [\"sh\", \"{work}/print.sh\"], env = { TOKEN = { secret = \"my-token\" } } }\n",
    );
}

#[test]
fn a_secret_that_is_set_reaches_a_running_owd_and_no_eye() {
    let scratch = Scratch::new();
    prints(&scratch);
    let owd = scratch.start();
    owd.owctl.ok(&["task", "allow", "prints", "--yes"]);
    let (code, said) = set(&owd.owctl, "my-token", VALUE);
    assert!(code == Some(0) && said.contains("owd uses it from now on") && !said.contains(VALUE), "{said}");
    let file = scratch.path().join("config/secrets.toml");
    assert_eq!(file.metadata().expect("kept").permissions().mode() & 0o777, 0o600);
    owd.owctl.ok(&["task", "run", "prints", "--wait"]);
    let shown = owd.owctl.json(&["run", "show", &id(&owd.run_in("prints", "succeeded"))]).to_string();
    assert!(shown.contains("right: [redacted]") && !shown.contains(VALUE), "{shown}");
    let listed = owd.owctl.json(&["secret", "list"]);
    let row = &rows(&listed)[0];
    assert_eq!(row["name"], "my_token");
    assert!(
        row["origin"].as_str().is_some_and(|origin| origin.starts_with("file: "))
            && !listed.to_string().contains(VALUE)
    );
    owd.owctl.ok(&["secret", "rm", "MY-TOKEN"]);
    assert!(rows(&owd.owctl.json(&["secret", "list"])).is_empty());
    assert_eq!(owd.owctl.run(&["secret", "rm", "my-token"]).code, 4);
    let (code, said) = set(&owd.owctl, "my token", "");
    assert!(code == Some(2) && said.contains("`my token` is not a secret's name"), "the name comes first: {said}");
    let (code, said) = set(&owd.owctl, "my-token", "");
    assert!(code == Some(2) && said.contains("the value is empty"), "{said}");
    let (code, said) = set(&owd.owctl, "my token", VALUE);
    assert!(code == Some(2) && said.contains("is not a secret's name") && !said.contains(VALUE), "{said}");
}

#[test]
fn sealed_secrets_need_no_person_and_a_copy_without_the_key_says_nothing() {
    let scratch = Scratch::new();
    prints(&scratch);
    let (sealed, key) = (scratch.path().join("config/secrets.sealed"), scratch.path().join("elsewhere/key"));
    scratch.config(&format!("[secrets]\nsealed = \"{}\"\nseal-key = \"{}\"\n", sealed.display(), key.display()));
    assert_eq!(set(&scratch.owctl(), "my-token", VALUE).0, Some(0), "owd need not run");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "allow", "prints", "--yes"]);
    owd.owctl.ok(&["task", "run", "prints", "--wait"]);
    let shown = owd.owctl.json(&["run", "show", &id(&owd.run_in("prints", "succeeded"))]).to_string();
    assert!(shown.contains("right: [redacted]"), "{shown}");
    let origin = rows(&owd.owctl.json(&["secret", "list"]))[0]["origin"].as_str().expect("an origin").to_owned();
    assert!(origin.starts_with("sealed: "), "{origin}");
    let kept = fs::read(&sealed).expect("kept");
    assert!(!kept.windows(6).any(|part| part == &VALUE.as_bytes()[..6]));
    owd.stop();
    fs::remove_file(&key).expect("gone");
    assert!(scratch.try_start_with(|_| {}).is_none(), "without its key it does not start as if there were no secrets");
    assert!(scratch.stderr().contains("elsewhere/key"), "{}", scratch.stderr());
}

#[test]
fn a_vendors_variable_is_a_key_and_is_kept_out_of_what_is_shown() {
    let scratch = Scratch::new();
    prints(&scratch);
    let text = fs::read_to_string(scratch.path().join("config/tasks.d/prints.toml")).expect("the task");
    scratch.task("prints", &text.replace("my-token", "OPENAI_API_KEY"));
    let owd = scratch.start_with(|command| {
        command.env("OPENAI_API_KEY", VALUE).env("GROQ_API_KEY", "none");
    });
    owd.owctl.ok(&["task", "allow", "prints", "--yes"]);
    owd.owctl.ok(&["task", "run", "prints", "--wait"]);
    let shown = owd.owctl.json(&["run", "show", &id(&owd.run_in("prints", "succeeded"))]).to_string();
    assert!(shown.contains("right: [redacted]"), "{shown}");
    let listed = rows(&owd.owctl.json(&["secret", "list"]));
    assert_eq!(listed.len(), 1, "a stand-in is no secret: {listed:?}");
    assert_eq!(listed[0]["origin"], "environment: OPENAI_API_KEY");
}

#[test]
fn a_goal_that_holds_a_key_is_refused_and_the_key_is_not_repeated() {
    let scratch = Scratch::new();
    for (field, other) in [("goal", ""), ("instructions", "goal = \"do it\"\n")] {
        let key = "sk-FAKE0123456789FAKE0123456789";
        scratch.task("agent", &format!("{other}{field} = \"use the key {key} for it\"\n"));
        let check = scratch.owctl().run(&["config", "check"]);
        let said = format!("{}{}", check.stdout, check.stderr);
        assert!(check.code == 2 && said.contains("owctl secret set") && !said.contains("FAKE0123"), "{said}");
    }
}

#[test]
fn models_are_listed_and_checked_without_asking_anybody() {
    let scratch = Scratch::new();
    let owctl = scratch.owctl();
    let listed = owctl.json(&["model", "list"]);
    assert!(listed["models"].as_array().is_some_and(|models| models.len() >= 30), "{listed}");
    let mut command = owctl.command(&["model", "check", "openai:gpt-5", "--json"]);
    let checked = command.env_remove("OPENAI_API_KEY").output().expect("owctl runs");
    let said: Value = serde_json::from_slice(&checked.stdout).expect("JSON");
    assert_eq!((checked.status.code(), &said["models"][0]["has_key"]), (Some(1), &Value::Bool(false)));
    assert_eq!(set(&owctl, "OPENAI_API_KEY", VALUE).0, Some(0));
    let said = owctl.ok(&["model", "check", "openai:gpt-5"]);
    assert!(said.contains("OPENAI_API_KEY is there") && !said.contains(VALUE), "{said}");
    fs::write(
        scratch.path().join("config/models.toml"),
        "[[model]]\nname = \"ollama:mine\"\ntitle = \"Mine\"\nwindow = 9000\n",
    )
    .expect("a table");
    let said = owctl.ok(&["model", "check", "ollama:mine"]);
    assert!(said.contains("9000 tokens") && !said.contains("warning"), "{said}");

    scratch.config("[agent]\nmodel = \"opnai:gpt-5\"\nfailover = [\"openai:never-heard-of\"]\n");
    let check = owctl.json(&["config", "check"]);
    let warnings = check["warnings"].to_string();
    assert!(warnings.contains("`opnai` is no known provider") && warnings.contains("never-heard-of"), "{check}");
    let doctor = owctl.json(&["doctor"]);
    let models = doctor["checks"].as_array().expect("checks").iter().find(|check| check["name"] == "models").cloned();
    assert_eq!(models.expect("a check of models")["state"], "warn");
}
