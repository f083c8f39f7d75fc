//! Every command of the README is run, or is one of the few that need another system.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use ow_stories::with_model;
use ow_test_support::model_server::{ModelReply, ModelServer};
use ow_test_support::{Owctl, Scratch, Terminal, binary, until};
use serde_json::{Value, json};

/// One fenced block: what stands after the fence, and its text.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = vec![];
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => open = Some((kind.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

#[test]
fn the_readme_tells_what_works() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).expect("a README");
    let scratch = Scratch::new();
    let home = scratch.path();
    let programs = binary("owd").parent().expect("a folder").to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let task = blocks(&readme).into_iter().find(|(kind, _)| kind == "toml").expect("the first task").1;
    fs::write(home.join("reports.toml"), task).expect("the first task is saved");
    let _detached = Detached(&scratch);
    let mut ran = 0;
    for (kind, block) in blocks(&readme) {
        for line in block.lines() {
            match kind.as_str() {
                "sh" => {
                    let line = with_first_item(line, &scratch);
                    // A person is slower than that; a second run while the first is open is refused.
                    if line.starts_with("owctl task run reports") {
                        until("no run of it is open", || {
                            let runs = scratch.owctl().json(&["run", "list", "--task", "reports"]);
                            runs["rows"].as_array()?.iter().all(|run| !run["ended_at"].is_null()).then_some(())
                        });
                    }
                    let output = Command::new("sh")
                        .args(["-c", &line])
                        .current_dir(home)
                        .env("PATH", &path)
                        .env("OWD_HOME", home)
                        .env("HOME", home)
                        .output()
                        .expect("a shell");
                    let told = String::from_utf8_lossy(&output.stderr).into_owned();
                    if line.starts_with("owctl task run --plan") {
                        // In a home that holds nothing yet, as a new person's does.
                        let plan = String::from_utf8_lossy(&output.stdout);
                        assert!(!home.join("reports").exists(), "the home is empty");
                        assert!(plan.contains("step 1 shell  allow"), "{plan}");
                        assert!(plan.contains("step 2 write_file  ask") && plan.contains("1 of 2 steps"), "{plan}");
                    }
                    assert!(output.status.success(), "{line}: {told}{}", String::from_utf8_lossy(&output.stdout));
                    ran += 1;
                }
                // The demo's own story, chats, the tests themselves, the installation and the service have theirs.
                "sh demo" => assert_eq!(line, "cargo build --release --bins && target/release/owd demo"),
                "sh tests" => assert_eq!(line, "tests/run"),
                "sh install" => {
                    // Not run, as it builds everything once more. Cargo takes one `--path` a call.
                    let folder = line.strip_prefix("cargo install --path ").unwrap_or_else(|| panic!("{line}"));
                    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder).join("Cargo.toml");
                    assert!(manifest.is_file(), "{line}: `{folder}` is no package");
                }
                "sh service" => {
                    let dry = scratch.owctl().run(&["service", "install", "--dry-run"]);
                    assert_eq!(dry.code, 0, "{}", dry.stderr);
                }
                _ => {}
            }
        }
    }
    assert!(ran > 15, "only {ran} commands were found");
    for (number, (_, task)) in blocks(&readme).iter().filter(|(kind, _)| kind == "toml").enumerate().skip(1) {
        let file = format!("example-{number}.toml");
        fs::write(home.join(&file), task).expect("the task is saved");
        scratch.owctl().ok(&["task", "add", home.join(&file).to_str().expect("a path of UTF-8")]);
    }
    for (_, settings) in blocks(&readme).iter().filter(|(kind, _)| kind == "toml owd") {
        let file = home.join("owd-example.toml");
        fs::write(&file, settings).expect("the settings are saved");
        scratch.owctl().ok(&["config", "check", file.to_str().expect("a path of UTF-8")]);
    }
    let stop = scratch.command().arg("stop").output().expect("owd");
    assert!(stop.status.success());
}

#[test]
fn the_readme_tells_how_to_chat() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).expect("a README");
    let model = ModelServer::start();
    model.answer(|_| ModelReply::text("As you say.").into());
    let scratch = with_model(&model);
    fs::write(scratch.work().join("notes.txt"), "x = 1").expect("a file");
    let _owd = scratch.start();
    let programs = binary("owd").parent().expect("a folder").to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let lines: Vec<String> = blocks(&readme)
        .into_iter()
        .filter(|(kind, _)| kind == "sh chat")
        .flat_map(|(_, block)| block.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(lines.len() > 6, "{lines:?}");
    for line in lines {
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(scratch.work());
        command.env("PATH", &path).env("OWD_HOME", scratch.path()).env_remove("NO_COLOR");
        let mut terminal = Terminal::start(&mut command, 100, 40);
        if line.starts_with("owctl chat") && !line.contains(" -p ") {
            terminal.shows("/help");
            terminal.press("go on\r");
            terminal.shows("As you say.");
            terminal.shows("model call");
            terminal.press("/quit\r");
        }
        assert_eq!(terminal.ended(), 0, "{line}\n{}", terminal.screen());
    }
}

#[test]
fn the_readme_tells_how_to_take_a_webhook() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).expect("a README");
    let told = |wanted: &str| {
        let found = blocks(&readme).into_iter().find(|(kind, _)| kind == wanted);
        found.unwrap_or_else(|| panic!("no block `{wanted}`")).1
    };
    let scratch = Scratch::new();
    // The port may be taken here; all else is as it is told.
    scratch.config(&told("toml webhook config").replace("127.0.0.1:8787", "127.0.0.1:0"));
    fs::write(scratch.work().join("pushes.toml"), told("toml webhook")).expect("the task is saved");
    let owd = scratch.start();
    let programs = binary("owd").parent().expect("a folder").to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut said = String::new();
    for line in told("sh webhook").lines() {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(scratch.work());
        command.env("PATH", &path).env("OWD_HOME", scratch.path()).env("HOME", scratch.path());
        let output = command.output().expect("a shell");
        said.push_str(&String::from_utf8_lossy(&output.stdout));
        // What the doctor finds wrong with this machine is no fault of the README's.
        assert!(output.status.success() || line == "owctl doctor", "{line}: {output:?}");
    }
    for expected in
        ["ci answered 202", "pushes fired", "ci: 1 accepted for pushes", "https://hooks.example.org/hooks/ci"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    owd.run_in("pushes", "succeeded");
}

/// An owd that the README starts detached; stopped also where a command of it fails.
struct Detached<'s>(&'s Scratch);

impl Drop for Detached<'_> {
    fn drop(&mut self) {
        drop(self.0.command().arg("stop").output());
    }
}

/// Puts the id of the one pending approval where the README says `first`.
fn with_first_item(line: &str, scratch: &Scratch) -> String {
    if !line.ends_with(" first") {
        return line.to_owned();
    }
    let item = until("an item waits", || {
        scratch.owctl().json(&["inbox", "list"])["rows"]
            .as_array()?
            .iter()
            .find_map(|item| (item["kind"] == "approval").then(|| item["id"].as_str().expect("an id").to_owned()))
    });
    line.replace(" first", &format!(" {item}"))
}

#[test]
fn the_demo_reports_asks_and_shows_a_failure_and_finds_its_open_item_again() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("demo");
    let demo = |seconds: &str| {
        let output = Command::new(binary("owd"))
            .args(["demo", "--no-model", "--seconds", seconds, "--dir"])
            .arg(&dir)
            .env_remove("OWD_HOME")
            .output()
            .expect("owd");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let first = demo("17");
    for told in ["disks succeeded", "Asks: File what comes in by date", "inbox approve", "broken FAILED"] {
        assert!(first.contains(told), "{told} is missing:\n{first}");
    }
    assert!(demo("1").contains("Still open from an earlier demo"));
}

/// The agent of the demo asks a model that is found where it is said to be, and a person before it writes.
#[test]
fn the_demo_has_an_agent_where_a_model_is_found() {
    let model = ModelServer::start();
    let scratch = Scratch::new();
    let dir = scratch.path().join("demo");
    let summary = dir.join("reports/summary.md");
    let path = summary.clone();
    model.answer(move |request| match request.json()["messages"].to_string().matches("\"role\":\"tool\"").count() {
        0 => ModelReply::calls([("read_file", json!({ "path": "ada.txt" }))]).into(),
        1 => ModelReply::calls([("write_file", json!({ "path": path, "content": "Be in on Friday.\n" }))]).into(),
        _ => ModelReply::text("I summed it up.").into(),
    });
    let mut demo = Command::new(binary("owd"));
    demo.args(["demo", "--seconds", "40", "--model-url", &model.url(), "--dir"]).arg(&dir).env_remove("OWD_HOME");
    demo.stdout(fs::File::create(scratch.path().join("told")).expect("a file"));
    let mut demo = Demo(demo.spawn().expect("owd"));
    let owctl = Owctl::of(dir.clone());
    let item = until("the agent asks", || {
        let listed = owctl.run(&["inbox", "list", "--json", "--task", "agent"]);
        let page: Value = serde_json::from_str(&listed.stdout).ok()?;
        page["rows"].as_array()?.iter().find_map(|item| item["id"].as_str().map(str::to_owned))
    });
    assert!(!summary.exists(), "nothing is written before the answer");
    owctl.ok(&["inbox", "approve", &item]);
    let told = until("the agent is done", || {
        let told = fs::read_to_string(scratch.path().join("told")).unwrap_or_default();
        told.contains("agent succeeded").then_some(told)
    });
    assert_eq!(fs::read_to_string(summary).expect("written"), "Be in on Friday.\n");
    assert!(told.contains("four tasks") && told.contains("demo:stub"), "{told}");
    demo.stop();

    // Where nobody answers, it says so instead of going on without.
    let output =
        Command::new(binary("owd")).args(["demo", "--model-url", "http://127.0.0.1:9/v1"]).output().expect("owd");
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("--no-model"));
}

/// A demo that is stopped also where its test fails.
struct Demo(Child);

impl Demo {
    fn stop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn the_example_configuration_and_its_tasks_are_in_order() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/owd.toml");
    let scratch = Scratch::new();
    scratch.owctl().ok(&["config", "check", &example.to_string_lossy()]);
}
