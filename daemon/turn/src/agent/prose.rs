//! Calls that a model wrote as text instead of making them.

use serde_json::Value;

/// Objects of a text that are looked at.
const OBJECTS: usize = 50;
/// Bytes of a text that are looked at.
const LOOKED_AT: usize = 200_000;

const TAGS: [&str; 9] = [
    "<tool_call>",
    "<tool_call ",
    "<|tool_call",
    "<function_call",
    "<function=",
    "<invoke name=",
    "<tool_use>",
    "[tool_calls]",
    "<｜tool▁call",
];

/// Whether a text holds a call to one of these tools. What stands in a code fence or in backticks is an example.
pub(super) fn holds_call(text: &str, tools: &[&str]) -> bool {
    let end = (0..=LOOKED_AT.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    let bare = without_code(&text[..end]);
    let lower = bare.to_lowercase();
    TAGS.iter().any(|tag| lower.contains(tag))
        || objects(&bare).any(|object| is_call(&object, tools))
        || tools.iter().any(|tool| is_told(&lower, tool) || bare.lines().any(|line| is_line(line.trim(), tool)))
}

/// `{"name": "grep", "arguments": {…}}` and its kin, also in a list.
fn is_call(value: &Value, tools: &[&str]) -> bool {
    let function = value.get("function").filter(|function| function.is_object()).unwrap_or(value);
    let text = |key: &str| function.get(key).and_then(Value::as_str);
    let name = ["name", "tool", "tool_name", "function", "action"].iter().find_map(|key| text(key));
    let args = ["arguments", "args", "parameters", "input", "action_input"];
    name.is_some_and(|name| tools.contains(&name)) && args.iter().any(|key| function.get(*key).is_some())
        || value
            .get("tool_calls")
            .and_then(Value::as_array)
            .is_some_and(|calls| calls.iter().any(|call| is_call(call, tools)))
}

/// "I called grep(…)." with a made-up result below.
fn is_told(lower: &str, tool: &str) -> bool {
    lower.contains(&format!("i called {tool}(")) && ["\nresult:", "\nerror:"].iter().any(|word| lower.contains(word))
}

/// `grep({"pattern": "x"})` or `grep{…}` alone on a line.
fn is_line(line: &str, tool: &str) -> bool {
    let Some(rest) = line.strip_prefix(tool) else { return false };
    let rest = rest.trim_start().trim_start_matches('(').trim_end_matches(';').trim_end_matches(')');
    rest.starts_with('{') && serde_json::from_str::<Value>(rest).is_ok_and(|value| value.is_object())
}

/// The JSON objects that begin in a text, in order; nested ones are parts of theirs.
fn objects(text: &str) -> impl Iterator<Item = Value> + '_ {
    let mut rest = text;
    let mut tried = 0;
    std::iter::from_fn(move || {
        while tried < OBJECTS {
            tried += 1;
            let start = rest.find('{')?;
            let mut stream = serde_json::Deserializer::from_str(&rest[start..]).into_iter::<Value>();
            match stream.next() {
                Some(Ok(value)) => {
                    rest = &rest[start + stream.byte_offset()..];
                    return Some(value);
                }
                _ => rest = &rest[start + 1..],
            }
        }
        None
    })
}

fn without_code(text: &str) -> String {
    let mut fence: Option<&str> = None;
    let mut bare = String::with_capacity(text.len());
    for line in text.lines() {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, Some(mark)) => fence = Some(mark),
            (None, None) => {
                // Every second piece between backticks is code.
                let is_closed = line.matches('`').count() % 2 == 0;
                let pieces = line.split('`').enumerate().filter(|(index, _)| index % 2 == 0 || !is_closed);
                pieces.for_each(|(_, piece)| bare.push_str(piece));
                bare.push('\n');
            }
        }
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [&str; 2] = ["grep", "write_file"];

    #[test]
    fn a_call_written_as_text_is_seen() {
        for text in [
            "<tool_call>\n{\"name\": \"grep\", \"arguments\": {}}\n</tool_call>",
            "Let me look.\n<function=grep>\n<parameter=pattern>later</parameter>\n</function>",
            "{\"name\": \"grep\", \"arguments\": {\"pattern\": \"later\"}}",
            "I will do this: {\"function\": {\"name\": \"grep\", \"arguments\": \"{}\"}}",
            "{\"tool_calls\": [{\"function\": {\"name\": \"grep\", \"arguments\": \"{}\"}}]}",
            "grep({\"pattern\": \"later\"})",
            "I called grep(later).\n\nResult: 3 hits",
            "<invoke name=\"grep\">",
        ] {
            assert!(holds_call(text, &TOOLS), "{text}");
        }
    }

    #[test]
    fn an_example_or_plain_json_is_none() {
        for text in [
            "Send this:\n```json\n{\"name\": \"grep\", \"arguments\": {}}\n```\nand it works.",
            "Use `{\"name\": \"grep\", \"arguments\": {}}` for that.",
            "{\"name\": \"Ann\", \"arguments\": {}}",
            "{\"name\": \"grep\", \"version\": 3}",
            "I called grep(1) a fine program.",
            "grep is a tool",
            "{{{{{{",
        ] {
            assert!(!holds_call(text, &TOOLS), "{text}");
        }
    }
}
