//! Text from outside, made safe to show: what could move a cursor, turn the reading order round or hide itself is
//! written out.

use std::borrow::Cow;

/// For a line: line ends and tabs are written out too.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// For a block of text, which may hold line ends and tabs.
#[must_use]
pub fn block(text: &str) -> Cow<'_, str> {
    escape(text, |letter| matches!(letter, '\n' | '\t'))
}

fn escape(text: &str, keeps: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|letter| !keeps(letter) && is_deceptive(letter)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if keeps(letter) || !is_deceptive(letter) {
            safe.push(letter);
        } else {
            safe.extend(letter.escape_default());
        }
    }
    Cow::Owned(safe)
}

/// Controls, bidi marks and overrides, and what has no width or no meaning of its own.
///
/// Source: the Unicode categories Cc, Cf, Zl, Zp and Co, and `Default_Ignorable_Code_Point`.
#[must_use]
pub fn is_deceptive(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{8e2}'
            | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_deceives_the_eye_is_written_out() {
        let cases = [
            ("plain ä 漢字 🙂", "plain ä 漢字 🙂"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("two\nlines\tand\rmore", "two\\nlines\\tand\\rmore"),
            ("evil\u{202e}txt.exe", "evil\\u{202e}txt.exe"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
        ];
        for (text, safe) in cases {
            assert_eq!(line(text), safe);
        }
        assert_eq!(block("two\nlines\tand\rmore"), "two\nlines\tand\\rmore");
    }
}
