//! A call of a tool, shown: what it is in a row, and what came of it.

use ow_protocol::MessageView;
use serde_json::Value;

use super::text::{Line, Style};
use crate::command::printed::Printed;
use crate::time::span;

/// Rows of a result that are shown; the whole is in `owctl session export`.
const RESULT_ROWS: usize = 5;
/// Rows of what is written that are shown, of each side.
const WRITTEN_ROWS: usize = 12;
/// An argument that is longer is told by its length.
const ARGUMENT_LENGTH: usize = 80;

/// What an argument of many tools is called that says what a call is about.
const SUBJECTS: [&str; 9] = ["argv", "command", "path", "from", "pattern", "url", "question", "goal", "title"];

/// A call that runs, or is to run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunningCall {
    pub(super) tool: String,
    pub(super) arguments: Value,
    /// None: it has not begun, or waits for a person.
    pub(super) since: Option<std::time::Duration>,
    pub(super) printed: Printed,
}

/// The call in a few words: the tool is told apart by its caller.
pub(super) fn in_short(arguments: &Value) -> String {
    let Value::Object(map) = arguments else { return short_text(&arguments.to_string()) };
    let subject = SUBJECTS.iter().find(|name| map.contains_key(**name));
    let mut words = vec![];
    if let Some(subject) = subject {
        words.push(match &map[*subject] {
            Value::Array(parts) => command_line(parts),
            Value::String(text) => short_text(text),
            other => other.to_string(),
        });
    }
    for (name, value) in map.iter().filter(|(name, _)| Some(name.as_str()) != subject.copied()) {
        words.push(match value {
            Value::String(text) if text.contains('\n') || text.chars().count() > ARGUMENT_LENGTH => {
                format!("{name}=({} characters)", text.chars().count())
            }
            Value::String(text) => format!("{name}={}", quoted(text)),
            Value::Array(parts) => format!("{name}=[{}]", parts.len()),
            Value::Object(parts) => format!("{name}={{{}}}", parts.len()),
            other => format!("{name}={other}"),
        });
    }
    words.join(" ")
}

fn short_text(text: &str) -> String {
    match text.char_indices().nth(ARGUMENT_LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The words of a command as a shell would be given them.
pub(super) fn command_line(parts: &[Value]) -> String {
    let words = parts.iter().map(|part| part.as_str().map_or_else(|| part.to_string(), quoted));
    words.collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// What came of a call. `call` is none where its beginning was not seen.
pub(super) fn card(entry: &MessageView, call: Option<&RunningCall>, columns: usize) -> Vec<Line> {
    let tool = entry.tool.as_deref().or(call.map(|call| call.tool.as_str())).unwrap_or("call");
    let (sign, style) = if entry.is_error { ("✗", Style::RED) } else { ("✓", Style::GREEN) };
    let mut head = Line::of([(sign, style), (" ", Style::PLAIN), (tool, Style::BOLD), (" ", Style::PLAIN)]);
    if let Some(call) = call {
        head.push(&in_short(&call.arguments), Style::PLAIN);
    }
    let took = entry.took_ms.map_or(String::new(), |took| format!("  {}", span(took)));
    let mut head = head.cut(columns.saturating_sub(took.len()).max(20));
    head.push(&took, Style::DIM);
    let mut rows = vec![head];
    let written = call.filter(|_| !entry.is_error).map(|call| written(&call.tool, &call.arguments)).unwrap_or_default();
    // Of a command that went well and printed nothing only its exit code is left.
    let is_silent = tool == "shell" && !entry.is_error && entry.text.trim() == "0";
    if !written.is_empty() {
        rows.extend(written);
    } else if !is_silent {
        let style = if entry.is_error { Style::RED } else { Style::DIM };
        rows.extend(beginning(&entry.text, RESULT_ROWS, "  ", style));
    }
    rows.into_iter().map(|row| row.cut(columns)).collect()
}

/// What a call wrote, as far as its arguments tell.
fn written(tool: &str, arguments: &Value) -> Vec<Line> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    match tool {
        "edit_file" => {
            let mut rows = beginning(text("old"), WRITTEN_ROWS, "  - ", Style::RED);
            rows.extend(beginning(text("new"), WRITTEN_ROWS, "  + ", Style::GREEN));
            rows
        }
        "write_file" => beginning(text("content"), WRITTEN_ROWS, "  + ", Style::GREEN),
        _ => vec![],
    }
}

fn beginning(text: &str, most: usize, sign: &str, style: Style) -> Vec<Line> {
    let text = text.trim_end();
    let mut rows: Vec<Line> =
        text.lines().take(most).map(|line| Line::styled(&format!("{sign}{line}"), style)).collect();
    let more = text.lines().count().saturating_sub(most);
    if more > 0 {
        rows.push(Line::styled(&format!("  … {more} more {}", if more == 1 { "line" } else { "lines" }), Style::DIM));
    }
    rows
}

/// The rows of a difference.
pub(super) fn diff(text: &str) -> Vec<Line> {
    let rows = text.lines().map(|line| {
        let style = match line.as_bytes().first() {
            Some(b'+') => Style::GREEN,
            Some(b'-') => Style::RED,
            _ => Style::PLAIN,
        };
        Line::styled(line, style)
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_told_in_a_row() {
        let cases = [
            (json!({ "argv": ["git", "commit", "-m", "it's done"] }), r"git commit -m 'it'\''s done'"),
            (json!({ "path": "a.txt", "line": 3 }), "a.txt line=3"),
            (json!({ "path": "a", "content": "x\ny" }), "a content=(3 characters)"),
            (json!({ "other": "a b" }), "other='a b'"),
            (json!("broken"), "\"broken\""),
        ];
        for (arguments, told) in cases {
            assert_eq!(in_short(&arguments), told);
        }
    }

    #[test]
    fn a_card_tells_what_came_of_it() {
        let call = |tool: &str, arguments| RunningCall {
            tool: tool.into(),
            arguments,
            since: None,
            printed: Printed::default(),
        };
        let entry = |text: &str, is_error| MessageView {
            text: text.into(),
            is_error,
            took_ms: Some(1500),
            ..MessageView::default()
        };
        let shown = |entry: &MessageView, call: &RunningCall| {
            card(entry, Some(call), 60).iter().map(Line::text).collect::<Vec<_>>()
        };
        let long = (1..8).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
        let listing = call("list_dir", json!({ "path": "." }));
        assert_eq!(
            shown(&entry(&long, false), &listing),
            ["✓ list_dir .  1.5 s", "  line 1", "  line 2", "  line 3", "  line 4", "  line 5", "  … 2 more lines"]
        );
        let edit = call("edit_file", json!({ "path": "a", "old": "x = 1", "new": "x = 2\ny" }));
        assert_eq!(shown(&entry("ok", false), &edit)[1..], ["  - x = 1", "  + x = 2", "  + y"]);
        assert_eq!(shown(&entry("no such text", true), &edit)[1..], ["  no such text"], "nothing was written");
    }
}
