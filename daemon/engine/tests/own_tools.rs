//! What a model is told of the tools that a turn performs is what the turn reads.

use std::collections::BTreeSet;

use ow_turn::{ToolKind, arguments_of};
use serde_json::Value;

const KINDS: [(&str, ToolKind); 7] = [
    ("ask_user", ToolKind::AskUser),
    ("delegate", ToolKind::SubAgent),
    ("propose_plan", ToolKind::ProposePlan),
    ("request_directory", ToolKind::RequestDirectory),
    ("sleep_until", ToolKind::SleepUntil),
    ("todo_write", ToolKind::Todo),
    ("wake_on", ToolKind::WakeOn),
];

/// Names of properties at every depth, with those that are required and the words that may be chosen.
fn shape(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        found.insert(format!("{path}.{name}"));
        shape(property, &format!("{path}.{name}"), found);
    }
    for word in ["required", "enum"] {
        for value in schema[word].as_array().into_iter().flatten() {
            found.insert(format!("{path} {word} {value}"));
        }
    }
    if schema["items"].is_object() {
        shape(&schema["items"], path, found);
    }
}

#[test]
fn a_model_is_told_what_the_turn_reads() {
    let specs = ow_tool::interactive::specs();
    assert_eq!(specs.len(), KINDS.len());
    for (spec, (name, kind)) in specs.iter().zip(KINDS) {
        assert_eq!(spec.name.as_str(), name);
        let (mut told, mut read) = (BTreeSet::new(), BTreeSet::new());
        shape(&spec.schema, name, &mut told);
        shape(&arguments_of(kind).expect("the turn performs it"), name, &mut read);
        assert_eq!(told, read);
    }
}
