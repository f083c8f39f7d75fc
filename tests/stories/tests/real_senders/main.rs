//! Deliveries signed by the senders' own libraries.
//!
//! Each is skipped, with a line that says so, where its package is not there. They are looked for in the folder that
//! `OW_SENDERS` names, or else in `~/.cache/owd-senders`, and get there by `pip install --target DIR/py stripe` and
//! `npm install --ignore-scripts --prefix DIR @octokit/webhooks`.

use std::path::{Path, PathBuf};
use std::process::Command;

use ow_test_support::{Owd, Scratch, exchange, id, post};
use serde_json::Value;

const SECRET: &str = "whsec_test_0123456789";

fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("OW_SENDERS").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/owd-senders")))
}

/// What a sender's library makes of a delivery: the header that proves it, and the body.
fn signed(program: &str, script: &str, packages: &Path, delivery: &str) -> (String, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_senders").join(script);
    let mut command = Command::new(program);
    command.arg(script).arg(delivery).env("PACKAGES", packages).env("SECRET", SECRET);
    let output = command.output().expect("the library runs");
    let said = String::from_utf8(output.stdout).expect("text");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let (header, body) = said.split_once('\n').unwrap_or_else(|| panic!("{told}"));
    (header.to_owned(), body.trim_end_matches('\n').to_owned())
}

fn home(profile: &str) -> (Scratch, Owd) {
    let scratch = Scratch::new();
    scratch.config(&format!(
        "[listener]\naddress = \"127.0.0.1:0\"\n[webhook.{profile}]\nprofile = \"{profile}\"\nsecret = \"hook\"\n"
    ));
    scratch.task(
        "taker",
        &format!(
            "[[trigger]]\nwebhook = \"{profile}\"\n[[step]]\ntool = \"notify\"\nargs = {{ text = \"{{{{ event.id }}}}\" }}\n"
        ),
    );
    let owd = scratch.start_with(|command| {
        command.env("OWD_SECRET_HOOK", SECRET);
    });
    (scratch, owd)
}

/// Delivers what a library has signed, again, and forged, and gives the event that came of it.
fn delivered(owd: &Owd, path: &str, headers: &[(&str, &str)], body: &str) -> Value {
    let listener = owd.owctl.json(&["status"])["listener"].as_str().expect("a listener").to_owned();
    let send = |body: &str| {
        let mut all = headers.to_vec();
        all.push(("Content-Type", "application/json"));
        exchange(&listener, &post(path, &all, body.as_bytes())).expect("an answer").status
    };
    assert_eq!(send(&format!("{body} ")), 401, "another byte is another body");
    assert_eq!(send(body), 202);
    assert_eq!(send(body), 200);
    let run = owd.run_in("taker", "succeeded");
    assert_eq!(owd.runs("taker").len(), 1);
    owd.owctl.json(&["run", "show", &id(&run)])["events"][0]["data"].clone()
}

#[test]
fn what_stripe_s_own_library_signs_is_accepted() {
    let Some(packages) = folder().map(|folder| folder.join("py")).filter(|py| py.join("stripe").is_dir()) else {
        println!("skipped: the package `stripe` is not installed; the head of this file says how to have it");
        return;
    };
    let (_scratch, owd) = home("stripe");
    let (header, body) = signed("python3", "stripe.py", &packages, "evt_1");
    let event = delivered(&owd, "/hooks/stripe", &[("Stripe-Signature", &header)], &body);
    assert_eq!((&event["id"], &event["name"]), (&"evt_1".into(), &"charge.succeeded".into()));
    assert_eq!((&event["payload"]["name"], &event["body"]), (&"café".into(), &body.into()));
}

#[test]
fn what_github_s_own_library_signs_is_accepted() {
    let Some(packages) = folder().filter(|folder| folder.join("node_modules/@octokit/webhooks").is_dir()) else {
        println!(
            "skipped: the package `@octokit/webhooks` is not installed; the head of this file says how to have it"
        );
        return;
    };
    let (_scratch, owd) = home("github");
    let (header, body) = signed("node", "github.mjs", &packages, "d-1");
    let headers = [("X-Hub-Signature-256", header.as_str()), ("X-GitHub-Delivery", "d-1"), ("X-GitHub-Event", "push")];
    let event = delivered(&owd, "/hooks/github", &headers, &body);
    assert_eq!((&event["id"], &event["name"]), (&"d-1".into(), &"push".into()));
    assert_eq!((&event["payload"]["name"], &event["body"]), (&"café".into(), &body.into()));
}
