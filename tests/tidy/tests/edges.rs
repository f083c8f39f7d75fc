//! Dependencies point one way; a new edge is a decision and shows here.

use std::collections::BTreeMap;
use std::fs;

use ow_tidy::root;

/// Which crates of ours each crate may know.
const EDGES: &[(&str, &[&str])] = &[
    ("daemon/model", &[]),
    ("daemon/clock", &[]),
    ("daemon/protocol", &[]),
    ("daemon/schedule", &["ow-model"]),
    ("daemon/config", &["ow-model", "ow-reply", "ow-schedule", "ow-webhook"]),
    ("daemon/policy", &["ow-model"]),
    ("daemon/reply", &[]),
    ("daemon/webhook", &[]),
    ("daemon/turn", &["ow-config", "ow-model"]),
    ("daemon/secret", &["ow-model"]),
    ("daemon/store", &["ow-model", "ow-schedule"]),
    ("daemon/tool", &["ow-model", "ow-policy", "ow-secret"]),
    ("daemon/provider", &["ow-clock", "ow-model", "ow-secret"]),
    ("daemon/mail", &["ow-clock", "ow-inbox", "ow-model", "ow-policy", "ow-reply", "ow-store", "ow-tool"]),
    (
        "daemon/slack",
        &[
            "ow-clock",
            "ow-inbox",
            "ow-model",
            "ow-policy",
            "ow-reply",
            "ow-secret",
            "ow-store",
            "ow-tool",
            "ow-webhook",
        ],
    ),
    ("daemon/inbox", &["ow-clock", "ow-model", "ow-policy", "ow-reply", "ow-store", "ow-tool"]),
    (
        "daemon/engine",
        &[
            "ow-clock",
            "ow-config",
            "ow-model",
            "ow-policy",
            "ow-provider",
            "ow-schedule",
            "ow-secret",
            "ow-store",
            "ow-tool",
            "ow-turn",
        ],
    ),
    (
        "daemon/automation",
        &["ow-clock", "ow-config", "ow-engine", "ow-model", "ow-policy", "ow-schedule", "ow-store", "ow-tool"],
    ),
    (
        "daemon/server",
        &["ow-engine", "ow-model", "ow-policy", "ow-protocol", "ow-reply", "ow-schedule", "ow-store", "ow-webhook"],
    ),
    (
        "daemon",
        &[
            "ow-automation",
            "ow-clock",
            "ow-config",
            "ow-engine",
            "ow-inbox",
            "ow-mail",
            "ow-model",
            "ow-policy",
            "ow-provider",
            "ow-reply",
            "ow-secret",
            "ow-server",
            "ow-slack",
            "ow-store",
            "ow-tool",
            "ow-webhook",
        ],
    ),
    ("ctl/client", &["ow-protocol"]),
    ("ctl", &["ow-client", "ow-config", "ow-model", "ow-policy", "ow-protocol", "ow-reply", "ow-schedule"]),
    ("tests/support", &[]),
    ("tests/stories", &["ow-test-support"]),
    ("tests/tidy", &[]),
    ("tests/bench", &["ow-test-support"]),
];

/// Crates that decide and nothing else: no runtime, no socket, no database.
const PURE: &[&str] = &[
    "daemon/model",
    "daemon/protocol",
    "daemon/schedule",
    "daemon/config",
    "daemon/policy",
    "daemon/reply",
    "daemon/webhook",
    "daemon/turn",
];

const WORLD: &[&str] = &["axum", "hyper", "notify", "reqwest", "rusqlite", "rustix", "tokio", "tokio-util", "tracing"];

/// The dependencies of a manifest, those for tests left out.
fn dependencies(manifest: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(manifest).join("Cargo.toml")).expect("a manifest");
    let table: BTreeMap<String, toml::Value> = toml::from_str(&text).expect("TOML");
    let named = table.get("dependencies").and_then(toml::Value::as_table);
    named.map(|named| named.keys().cloned().collect()).unwrap_or_default()
}

#[test]
fn each_crate_knows_only_what_it_may() {
    for (folder, allowed) in EDGES {
        for known in dependencies(folder).iter().filter(|name| name.starts_with("ow-")) {
            assert!(allowed.contains(&known.as_str()), "{folder} must not know {known}; decide it in this table");
        }
    }
}

#[test]
fn the_table_names_every_member() {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace");
    let table: BTreeMap<String, toml::Value> = toml::from_str(&text).expect("TOML");
    let members = table["workspace"]["members"].as_array().expect("members");
    let members: Vec<&str> = members.iter().filter_map(toml::Value::as_str).collect();
    let mut named: Vec<&str> = EDGES.iter().map(|(folder, _)| *folder).collect();
    let mut sorted = members.clone();
    sorted.sort_unstable();
    named.sort_unstable();
    assert_eq!(sorted, named);
}

#[test]
fn pure_crates_have_no_world_in_their_manifests() {
    for folder in PURE {
        for known in dependencies(folder) {
            assert!(!WORLD.contains(&known.as_str()), "{folder} is pure and must not know {known}");
        }
    }
}

#[test]
fn what_was_left_out_on_purpose_stays_out() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("a lock file");
    for name in ["aws-lc-rs", "openssl-sys", "daemonize", "sled", "tokio-cron-scheduler"] {
        assert!(!lock.contains(&format!("name = \"{name}\"")), "{name} came in");
    }
}
