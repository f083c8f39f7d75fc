//! What a model and a person are told of the tools.

use ow_model::Risk;
use ow_policy::{OWN_TOOLS, Performed, RiskOverride};
use ow_tool::{Toolbox, interactive};
use serde_json::Value;

/// Every property that a schema has at any depth must say what it is.
fn without_words(schema: &Value, path: &str, found: &mut Vec<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            let path = format!("{path}.{name}");
            if property.get("description").and_then(Value::as_str).is_none_or(str::is_empty) {
                found.push(path.clone());
            }
            without_words(property, &path, found);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = schema.get(key) {
            without_words(below, &format!("{path}[]"), found);
        }
    }
    for one in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        without_words(one, path, found);
    }
}

#[test]
fn every_property_of_every_tool_says_what_it_is() {
    let mut found = vec![];
    for declared in Toolbox::builtin().declarations(&[]) {
        let schema = &declared.spec.schema;
        assert_eq!(schema["type"], "object", "{}", declared.spec.name);
        assert_eq!(schema["additionalProperties"], false, "{}", declared.spec.name);
        assert!(!declared.spec.summary.is_empty());
        without_words(schema, declared.spec.name.as_str(), &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_toolbox_and_the_list_of_owds_own_tools_agree() {
    let toolbox = Toolbox::builtin();
    let named = |performed| OWN_TOOLS.iter().filter(move |tool| tool.performed == performed).map(|tool| tool.name);
    // Those of other parts are registered there.
    let elsewhere = |name: &str| {
        matches!(name, "notify" | "send_mail" | "job_output" | "job_kill")
            || ["task_", "slack_"].iter().any(|part| name.starts_with(part))
    };
    let mut calls: Vec<&str> = named(Performed::AsCall).filter(|name| !elsewhere(name)).collect();
    calls.sort_unstable();
    assert_eq!(calls, toolbox.specs().map(|spec| spec.name.as_str()).collect::<Vec<_>>());
    let mut by_session: Vec<&str> = named(Performed::BySession).collect();
    by_session.sort_unstable();
    assert_eq!(by_session, interactive::specs().iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>());
}

#[test]
fn a_lowered_class_changes_who_is_asked_but_not_what_may_run_side_by_side() {
    let overrides = [
        RiskOverride { pattern: "shell".into(), risk: Risk::Read },
        RiskOverride { pattern: "read_*".into(), risk: Risk::External },
    ];
    let declared = Toolbox::builtin().declarations(&overrides);
    let of = |name: &str| declared.iter().find(|one| one.spec.name.as_str() == name).expect("it is declared");
    assert_eq!((of("shell").asked_as, of("shell").parallel, of("shell").spec.risk), (Risk::Read, false, Risk::Exec));
    assert_eq!((of("read_file").asked_as, of("read_file").parallel), (Risk::External, false));
    assert_eq!((of("list_dir").asked_as, of("list_dir").parallel), (Risk::Read, true));
}
