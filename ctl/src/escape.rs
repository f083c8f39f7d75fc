//! Text from outside, made safe for a terminal.

use std::borrow::Cow;

pub(crate) use ow_model::escape::{block, is_deceptive, line};

/// For finished JSON: such characters stand only in its strings, where an escape of four digits means the same.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|letter| letter != '\n' && is_deceptive(letter)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if letter != '\n' && is_deceptive(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                put!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({"a": "x\u{202e}y\u{7f}\u{e0041}ä\n"});
        let text = serde_json::to_string_pretty(&value).expect("a value is written");
        let safe = json(&text);
        assert!(!safe.chars().any(|letter| letter != '\n' && is_deceptive(letter)));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).expect("it is JSON still"), value);
    }
}
