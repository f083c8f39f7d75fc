//! A run in words.

use ow_protocol::{ArtifactView, CallView, RunDetail, RunView};
use serde_json::Value;

use crate::command::follow::step_number;
use crate::command::status::bytes;
use crate::escape;
use crate::output::{Colour, Paint};
use crate::table::pairs;
use crate::time::{Clock, span};

/// An output that is longer than this many lines is cut where a run is shown; `--full` shows all.
const OUTPUT_LINES: usize = 20;

pub(crate) fn one_line(run: &RunView, clock: &Clock, paint: Paint) -> String {
    let mut text = format!("run {} of {}: {}", escape::line(&run.id), escape::line(&run.task), paint.state(&run.state));
    match (&run.ended_at, &run.started_at) {
        (Some(_), _) => put!(text, " after {}", span(run.ran_for_ms)),
        (None, Some(at)) => put!(text, ", started {}", clock.when(at)),
        (None, None) => {}
    }
    if let Some(message) = &run.message {
        put!(text, ": {}", escape::line(&clock.in_sentence(message)));
    }
    text
}

pub(crate) fn whole(detail: &RunDetail, clock: &Clock, paint: Paint) -> String {
    let run = &detail.run;
    let mut state = paint.state(&run.state);
    if let Some(message) = &run.message {
        put!(state, ": {}", escape::line(&clock.in_sentence(message)));
    }
    let mut cause = format!("{}: {}", escape::line(&run.cause.kind), escape::line(&clock.in_sentence(&run.cause.text)));
    if run.cause.text.is_empty() {
        cause.truncate(cause.len() - 2);
    }
    let mut rows = vec![
        ("run", escape::line(&run.id)),
        ("task", format!("{}, revision {}", escape::line(&run.task), run.revision).into()),
        ("state", state.into()),
        ("cause", cause.into()),
        ("planned", clock.when(&run.scheduled_for).into()),
        ("started", clock.when_or(run.started_at.as_deref(), "not yet").into()),
    ];
    if let Some(at) = &run.ended_at {
        rows.push(("ended", clock.when(at).into()));
    }
    rows.push(("ran for", span(run.ran_for_ms).into()));
    if let Some(of) = &run.retry_of {
        rows.push(("attempt", format!("{}, retry of {}", run.attempt, escape::line(of)).into()));
    }
    let mut text = pairs(paint, &rows);
    for item in &run.items {
        put!(text, "\nWaits for you: owctl inbox show {}\n", escape::line(item));
    }
    for one in &detail.calls {
        text.push('\n');
        text.push_str(&call(one, paint));
    }
    if !detail.artifacts.is_empty() {
        put!(text, "\n{}\n", paint.in_colour(Colour::Bold, "It made"));
        for artifact in &detail.artifacts {
            put!(text, "  {}\n", self::artifact(artifact));
        }
    }
    text.push_str(&answer(detail, paint));
    text
}

/// What the run's agent said last, below all that led to it.
pub(crate) fn answer(detail: &RunDetail, paint: Paint) -> String {
    let Some(answer) = &detail.answer else { return String::new() };
    let head = if detail.run.state == "succeeded" { "It answered" } else { "It last said" };
    format!("\n{}\n{}\n", paint.in_colour(Colour::Bold, head), escape::block(answer.trim()))
}

/// What a call is known by: the step that it is, or its number among an agent's calls.
pub(crate) fn name(call: &CallView) -> String {
    match (call.step, call.sub_agent_of) {
        (Some(step), _) => format!("step {}", step_number(step)),
        (None, None) => format!("call {}", call.position),
        (None, Some(of)) => format!("call {} of the sub-agent of call {of}", call.position),
    }
}

fn call(call: &CallView, paint: Paint) -> String {
    let head = format!("{}: {}", name(call), escape::line(&call.tool));
    let mut text = format!("{}  {}", paint.in_colour(Colour::Bold, &head), paint.state(&call.state));
    if let Some(took) = call.took_ms {
        put!(text, ", {}", span(took));
    }
    text.push('\n');
    text.push_str(&arguments(&call.arguments, "  "));
    if let Some(rule) = &call.rule {
        put!(text, "  by {}\n", escape::line(rule));
    }
    if let Some(item) = &call.item {
        put!(text, "  item {}\n", escape::line(item));
    }
    if let Some(error) = &call.error {
        put!(text, "  {} {}\n", paint.in_colour(Colour::Red, "error:"), escape::line(error));
    }
    if let Some(output) = &call.output {
        text.push_str(&self::output(output));
    }
    if !call.kept.is_empty() {
        let names: Vec<_> = call.kept.iter().map(|(name, _)| escape::line(name)).collect();
        put!(text, "  cut: {}; all of it with --full\n", names.join(", "));
    }
    text
}

/// An argument a line; texts of several lines stand below their name.
pub(crate) fn arguments(arguments: &Value, indent: &str) -> String {
    let Value::Object(map) = arguments else { return format!("{indent}{}\n", escape::line(&arguments.to_string())) };
    let mut text = String::new();
    for (name, value) in map {
        let name = escape::line(name);
        match value {
            Value::String(value) if value.contains('\n') => {
                put!(text, "{indent}{name}:\n");
                for line in value.lines() {
                    put!(text, "{indent}  {}\n", escape::line(line));
                }
            }
            Value::String(value) => put!(text, "{indent}{name}: {}\n", escape::line(value)),
            value => put!(text, "{indent}{name}: {}\n", escape::line(&value.to_string())),
        }
    }
    text
}

fn output(output: &Value) -> String {
    let mut text = String::new();
    let whole = arguments(output, "  | ");
    let lines: Vec<&str> = whole.lines().collect();
    for line in lines.iter().take(OUTPUT_LINES) {
        text.push_str(line);
        text.push('\n');
    }
    if lines.len() > OUTPUT_LINES {
        put!(text, "  | … {} more lines; all of it with --full\n", lines.len() - OUTPUT_LINES);
    }
    text
}

pub(crate) fn artifact(artifact: &ArtifactView) -> String {
    let ArtifactView { number, kind, name, bytes: size, hash: _ } = artifact;
    let size = size.map_or(String::new(), |size| format!(" ({})", bytes(size)));
    match kind.as_str() {
        "file" => format!("{number}. {}{size}", escape::line(name)),
        other => format!("{number}. {} to {}", escape::line(other), escape::line(name)),
    }
}
