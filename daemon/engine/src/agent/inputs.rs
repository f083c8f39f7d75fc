//! What a task says to its agent at the start.

use ow_config::template;
use ow_model::{Input, Source};
use serde_json::Value;

/// Events beyond this many characters are cut in what the agent is told.
const LONGEST_EVENT: usize = 20_000;

/// The goal, rendered, and the events that the run was given. What events hold came from outside and is said apart.
///
/// # Errors
///
/// Why the goal's templates cannot be rendered.
pub(super) fn task_inputs(goal: &str, context: &Value) -> Result<Vec<Input>, String> {
    // A value from an event must not become part of what the person asked for: it is told as data.
    let mut own = context.clone();
    if let Value::Object(fields) = &mut own {
        fields.remove("event");
    }
    let rendered = template::render_args(&serde_json::json!({ "goal": goal }), &own).map_err(|error| {
        format!("the goal cannot be rendered: {error}; what an event brought is told to the agent by itself")
    })?;
    let text = rendered.args.get("goal").and_then(Value::as_str).unwrap_or(goal).to_owned();
    let slot = &context["slot"];
    let mut lines =
        vec![text, String::new(), format!("This run is for {}.", slot["instant"].as_str().unwrap_or("now"))];
    let late = slot["late_seconds"].as_i64().unwrap_or_default();
    if late > 60 {
        lines.push(format!("It runs {late} seconds late."));
    }
    if let Some(count) = slot["missed"]["count"].as_u64().filter(|count| *count > 1) {
        lines.push(format!("It stands for {count} missed occasions; do the work once, for all of them."));
    }
    let mut inputs = vec![Input { text: lines.join("\n"), attachments: vec![], source: Source::Task }];
    for event in context["event"]["batch"].as_array().into_iter().flatten() {
        let kind = event["kind"].as_str().unwrap_or("event").to_owned();
        let mut text = serde_json::to_string_pretty(event).unwrap_or_default();
        if text.len() > LONGEST_EVENT {
            text.truncate(text.floor_char_boundary(LONGEST_EVENT));
            text.push_str("\n[cut here]");
        }
        inputs.push(Input { text, attachments: vec![], source: Source::Event { kind } });
    }
    Ok(inputs)
}
