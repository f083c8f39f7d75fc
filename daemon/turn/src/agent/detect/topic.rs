//! What a call is about.

use ow_model::BlobHash;
use serde_json::Value;

use crate::agent::turn::digest;

/// Words that change while the question stays the same.
const FILLER: [&str; 12] =
    ["latest", "news", "today", "recent", "update", "updates", "current", "now", "new", "breaking", "the", "about"];
/// Topics of which nothing is left are equal to each other.
const NOTHING: &str = "(no topic)";

pub(super) fn url(args: &Value) -> Option<&str> {
    args.get("url").and_then(Value::as_str)
}

/// A URL as it is, else the words of a query without dates and filler, in order. None: the call has neither.
pub(super) fn topic(args: &Value) -> Option<String> {
    if let Some(url) = url(args) {
        return Some(url.to_owned());
    }
    let text = match ["query", "q", "queries", "urls"].iter().find_map(|key| args.get(*key))? {
        Value::String(text) => text.clone(),
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => return None,
    };
    let lower = text.to_lowercase();
    let is_date = |word: &str| {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        let date = digits >= 4 && word.chars().all(|letter| letter.is_ascii_digit() || "-/.:t".contains(letter));
        date || (word.len() == 4 && word.starts_with("20") && digits == 4)
    };
    let mut words: Vec<&str> = lower
        .split_whitespace()
        .map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()))
        .filter(|word| word.len() > 1 && !FILLER.contains(word) && !is_date(word))
        .collect();
    words.sort_unstable();
    words.dedup();
    Some(if words.is_empty() { NOTHING.to_owned() } else { words.join(" ") })
}

/// The set of URLs in a text, without query and fragment.
pub(super) fn urls(text: &str) -> Option<BlobHash> {
    let mut found: Vec<&str> = text
        .match_indices("http")
        .filter_map(|(at, _)| {
            let rest = &text[at..];
            let end = rest.find(|letter: char| letter.is_whitespace() || "\"'<>()[]{}\\?#".contains(letter));
            let url = &rest[..end.unwrap_or(rest.len())];
            (url.starts_with("http://") || url.starts_with("https://")).then_some(url)
        })
        .take(200)
        .collect();
    found.sort_unstable();
    found.dedup();
    (!found.is_empty()).then(|| digest(&found.join("\n")))
}

/// Whether a command line waits: `sleep` as a program, with a number.
pub(super) fn sleeps(command: &str) -> bool {
    let words: Vec<&str> = command
        .split(|letter: char| letter.is_whitespace() || ";&|(){}".contains(letter))
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).any(|pair| {
        pair[0].rsplit('/').next() == Some("sleep") && pair[1].starts_with(|letter: char| letter.is_ascii_digit())
    })
}
