//! What an agent writes, as rich text: the Markdown that people meet in chats, and everything else as it stands.

use serde_json::{Value, json};

/// Letters in one message; Slack folds what is longer, and refuses far longer ones.
const MESSAGE: usize = 9_000;
/// Letters in one rich-text block.
const BLOCK: usize = 2_900;
/// Letters of a message's plain text, for notifications.
const TEASER: usize = 300;

/// Messages that hold a text, in order; their blocks link and call nobody, and name no item as a notice does.
pub(crate) fn messages(text: &str) -> Vec<(String, Value)> {
    let text = &defused(text);
    let mut messages: Vec<Vec<Value>> = vec![];
    let mut letters = MESSAGE;
    for (more, element) in elements(text) {
        if letters + more > MESSAGE || messages.is_empty() {
            messages.push(vec![]);
            letters = 0;
        }
        letters += more;
        if let Some(message) = messages.last_mut() {
            message.push(json!({ "type": "rich_text", "elements": [element] }));
        }
    }
    messages.into_iter().map(|blocks| (teaser(&blocks), Value::Array(together(blocks)))).collect()
}

/// With what a reader would take for an item's token shown with another bracket: who quotes it answers nothing by it.
fn defused(text: &str) -> String {
    const LOOKED_AT: usize = 40;
    let mut shown = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        let opens = letter == '[' && {
            let after = text[at + 1..].chars().take(LOOKED_AT);
            let word: String =
                after.filter(|letter| letter.is_ascii_alphanumeric() || *letter == ':').take(4).collect();
            let word = word.to_ascii_lowercase();
            word.starts_with("ow:") || word == "ocw:"
        };
        shown.push(if opens { '(' } else { letter });
    }
    shown
}

/// Blocks that stand side by side become one as long as it holds them.
fn together(blocks: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<(usize, Vec<Value>)> = vec![];
    for block in blocks {
        let more = plain(&block).chars().count();
        let elements = block["elements"].as_array().cloned().unwrap_or_default();
        match kept.last_mut() {
            Some((letters, last)) if *letters + more <= BLOCK => {
                *letters += more;
                last.extend(elements);
            }
            _ => kept.push((more, elements)),
        }
    }
    kept.into_iter().map(|(_, elements)| json!({ "type": "rich_text", "elements": elements })).collect()
}

fn teaser(blocks: &[Value]) -> String {
    let text: String = blocks.iter().map(plain).collect::<Vec<_>>().join("\n");
    let text = text.trim();
    let cut: String = text.chars().take(TEASER).collect();
    crate::text::escaped(&if text.chars().count() > TEASER { format!("{cut}…") } else { cut })
}

/// The letters of a block.
fn plain(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let own = map.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
            own + &map.get("elements").map(plain).unwrap_or_default()
        }
        Value::Array(list) => list.iter().map(plain).collect(),
        _ => String::new(),
    }
}

/// Paragraphs, headings, points and code, each with its letters.
fn elements(text: &str) -> Vec<(usize, Value)> {
    let mut found = vec![];
    let mut code: Option<(usize, Vec<&str>)> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let ticks = bare.bytes().take_while(|byte| *byte == b'`').count();
        match &mut code {
            Some((fence, lines)) => {
                if ticks >= *fence && bare.trim_end().len() == ticks {
                    push_code(&mut found, lines);
                    code = None;
                } else {
                    lines.push(line);
                }
            }
            None if ticks >= 3 && !bare[ticks..].contains('`') => code = Some((ticks, vec![])),
            None => push_line(&mut found, line),
        }
    }
    if let Some((_, lines)) = code {
        push_code(&mut found, &lines);
    }
    found
}

fn push_code(found: &mut Vec<(usize, Value)>, lines: &[&str]) {
    let letters: Vec<char> = lines.join("\n").chars().collect();
    for piece in letters.chunks(BLOCK) {
        let text: String = piece.iter().collect();
        let element = json!({ "type": "text", "text": text });
        found.push((piece.len(), json!({ "type": "rich_text_preformatted", "elements": [element] })));
    }
}

fn push_line(found: &mut Vec<(usize, Value)>, line: &str) {
    let bare = line.trim_start();
    let indent = line.len() - bare.len();
    let heading = bare.trim_start_matches('#');
    let level = bare.len() - heading.len();
    let is_heading = (1..=6).contains(&level) && heading.starts_with(' ');
    let point = ["- ", "* ", "+ "].iter().find_map(|mark| bare.strip_prefix(mark));
    let (text, bold) = match point {
        _ if is_heading => (heading.trim().to_owned(), true),
        Some(point) => (format!("{}• {point}", &line[..indent]), false),
        None => (line.to_owned(), false),
    };
    let letters: Vec<char> = text.chars().collect();
    if letters.is_empty() {
        found.push((1, json!({ "type": "rich_text_section", "elements": [{ "type": "text", "text": "\n" }] })));
    }
    for piece in letters.chunks(BLOCK) {
        let text: String = piece.iter().collect();
        let mut elements = spans(&text, bold);
        elements.push(json!({ "type": "text", "text": "\n" }));
        found.push((piece.len() + 1, json!({ "type": "rich_text_section", "elements": elements })));
    }
}

/// A line's `code` and **bold** words; other marks are shown as they are.
fn spans(line: &str, bold: bool) -> Vec<Value> {
    let mut found = vec![];
    let mut add = |text: &str, bold: bool, code: bool| {
        if !text.is_empty() {
            let mut style = json!({});
            if bold {
                style["bold"] = json!(true);
            }
            if code {
                style["code"] = json!(true);
            }
            found.push(json!({ "type": "text", "text": text, "style": style }));
        }
    };
    let mut rest = line;
    loop {
        let code = rest.find('`').and_then(|at| Some((at, 1, rest[at + 1..].find('`')?)));
        let strong = rest.find("**").and_then(|at| Some((at, 2, rest[at + 2..].find("**")?)));
        let first = [code, strong].into_iter().flatten().filter(|(_, _, length)| *length > 0).min();
        let Some((at, width, length)) = first else { break };
        add(&rest[..at], bold, false);
        let inner = &rest[at + width..at + width + length];
        add(inner, bold || width == 2, width == 1);
        rest = &rest[at + 2 * width + length..];
    }
    add(rest, bold, false);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_an_agent_writes_is_rich_text() {
        let text = "# Report\nAll **good**, see `x < y`.\n- one\n- two\n\n```sh\nls <!channel>\n```\nend";
        let messages = messages(text);
        let [(teaser, blocks)] = messages.as_slice() else { panic!("{messages:?}") };
        assert!(teaser.starts_with("Report\n"), "{teaser}");
        assert!(teaser.contains("&lt;!channel&gt;"), "{teaser}");
        let elements = blocks[0]["elements"].as_array().expect("elements");
        assert_eq!(elements[0]["elements"][0], json!({ "type": "text", "text": "Report", "style": { "bold": true } }));
        assert_eq!(elements[1]["elements"][1]["style"], json!({ "bold": true }));
        assert_eq!(elements[1]["elements"][3], json!({ "type": "text", "text": "x < y", "style": { "code": true } }));
        assert_eq!(elements[2]["elements"][0]["text"], "• one");
        let code = elements.iter().find(|element| element["type"] == "rich_text_preformatted").expect("code");
        assert_eq!(code["elements"][0]["text"], "ls <!channel>");
    }

    #[test]
    fn what_an_agent_writes_names_no_item() {
        let token = "3f9c2a71b4de5f60";
        for text in [
            format!("ok [ow:{token}]"),
            format!("[**ow**:{token}] [OCW:{token}]"),
            format!("[\u{200b}o`w`: {token}]"),
            format!("```\n[ow:{token}]\n```"),
        ] {
            let messages = messages(&text);
            let [(teaser, blocks)] = messages.as_slice() else { panic!("{messages:?}") };
            for shown in [teaser, &plain(blocks)] {
                assert_eq!(ow_reply::tokens(shown), Vec::<String>::new(), "{text}: {shown}");
                assert!(shown.contains(token), "{shown}");
            }
        }
        assert!(messages("[owls: 3]")[0].0.contains("[owls: 3]"));
    }

    #[test]
    fn a_long_answer_is_several_messages_and_none_is_too_long() {
        let text = format!("{}\n```\n{}\n```", "word ".repeat(5_000), "x = 1\n".repeat(2_000));
        let messages = messages(&text);
        assert!(messages.len() > 3, "{}", messages.len());
        for (_, blocks) in &messages {
            assert!(blocks.as_array().is_some_and(|blocks| blocks.len() <= 50));
            assert!(plain(blocks).chars().count() <= MESSAGE + 100);
        }
        let shown: String = messages.iter().map(|(_, blocks)| plain(blocks)).collect();
        assert_eq!(shown.matches("word").count(), 5_000);
        assert_eq!(shown.matches("x = 1").count(), 2_000);
    }

    proptest! {
        #[test]
        fn every_letter_is_shown(text in "[a-z`*# \n-]{0,200}") {
            let letters = |text: &str| text.chars().filter(char::is_ascii_lowercase).collect::<String>();
            let shown: String = messages(&text).iter().map(|(_, blocks)| plain(blocks)).collect();
            // A fence's language is none of the text.
            if !text.contains("```") {
                prop_assert_eq!(letters(&shown), letters(&text));
            }
        }
    }
}
