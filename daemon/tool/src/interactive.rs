//! Tools that an agent's session performs itself: it asks the person, waits, plans, or hands work on. Here is what
//! a model is told of them; nothing of them runs in this crate.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::ToolSpec;

/// Their specs, by name. All are of risk read: what they lead to is judged where it happens.
#[must_use]
pub fn specs() -> &'static [ToolSpec] {
    static SPECS: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| {
        [
            ("ask_user", ask_user()),
            ("delegate", delegate()),
            ("propose_plan", propose_plan()),
            ("request_directory", request_directory()),
            ("sleep_until", sleep_until()),
            ("todo_write", todo_write()),
            ("wake_on", wake_on()),
        ]
        .into_iter()
        .map(|(name, schema)| ToolSpec::own(name, schema))
        .collect()
    });
    &SPECS
}

fn table(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn text(about: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": about })
}

fn ask_user() -> Value {
    let question = json!({
        "question": text("the question, complete: the person may read it days later and without this conversation"),
        "header": text("a label of one or two words, to tell several questions apart"),
        "options": {
            "type": "array",
            "description": "answers to choose from; left out, the person writes",
            "minItems": 2,
            "maxItems": 10,
            "items": text("one answer, short"),
        },
        "multi": { "type": "boolean", "description": "whether more than one option may be chosen; false if left out" },
    });
    let questions = json!({
        "type": "array",
        "description": "one to four questions, asked together",
        "minItems": 1,
        "maxItems": 4,
        "items": table(&question, &["question"]),
    });
    table(&json!({ "questions": questions }), &["questions"])
}

fn propose_plan() -> Value {
    let plan = text("the plan in Markdown: what will be done in which order, what changes, what could go wrong");
    table(&json!({ "plan": plan }), &["plan"])
}

fn request_directory() -> Value {
    let properties = json!({
        "path": text("the folder: an absolute path, or one below the home folder, as ~/notes"),
        "writable": { "type": "boolean", "description": "whether files in it are to be changed; false if left out" },
        "reason": text("what it is needed for, as the person will read it"),
    });
    table(&properties, &["path", "reason"])
}

fn sleep_until() -> Value {
    let properties = json!({
        "when": text("an instant with its offset, as 2026-05-04T09:00:00+02:00"),
        "for": text("instead of `when`: how long from now, as 10m, 2h or 1d"),
        "note": text("what to do then; it is told to you when you wake"),
    });
    table(&properties, &["note"])
}

fn wake_on() -> Value {
    let properties = json!({
        "job": text("the id of a background job: wake when it ends"),
        "event": text("the type of an event of owd, as run.ended or item.resolved: wake when one comes"),
        "when": text("wake at this instant at the latest"),
        "for": text("wake after so long at the latest, as 15m"),
        "note": text("what to do then; it is told to you when you wake"),
    });
    table(&properties, &["note"])
}

fn todo_write() -> Value {
    let item = json!({
        "text": text("what is to be done, in a few words"),
        "state": { "type": "string", "enum": ["open", "doing", "done"], "description": "how far it is; one at a time is doing" },
    });
    let items = json!({
        "type": "array",
        "description": "the whole list in order; it replaces the one before",
        "maxItems": 100,
        "items": table(&item, &["text", "state"]),
    });
    table(&json!({ "items": items }), &["items"])
}

fn delegate() -> Value {
    let properties = json!({
        "goal": text("what to find out or work out, complete: the other agent sees nothing of this conversation"),
        "context": text("what it needs to know: paths, names, what is known already"),
    });
    table(&properties, &["goal"])
}
