/// Letters and digits that an id has at least and at most.
const LENGTH: std::ops::RangeInclusive<usize> = 6..=64;

/// A token that is longer than this with what a client put into it is none.
const SPAN: usize = 400;

/// Returns the ids of the tokens in `text`, in lower case, each once, in the order they come.
///
/// A token is `[ow:ID]`, or `[ocw:ID]` as it was spelled before, in any case, with an id of 6 to 64 letters and digits.
/// Line ends, folds and the quote marks after them may stand anywhere in it, for clients wrap what they quote; what has
/// a blank in it must hold a digit, or `[ow:some words]` would be one.
#[must_use]
pub fn tokens(text: &str) -> Vec<String> {
    let mut found = vec![];
    for (at, _) in text.match_indices('[') {
        if let Some(id) = token_at(&text[at + 1..])
            && !found.contains(&id)
        {
            found.push(id);
        }
    }
    found
}

/// Takes the tokens out of `text`.
pub(crate) fn without_tokens(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let end = token_at(&from[1..]).and_then(|_| from.find(']'));
        if end.is_none() {
            kept.push('[');
        }
        rest = &from[end.map_or(1, |end| end + 1)..];
    }
    kept.push_str(rest);
    kept
}

/// The id of a token whose text, after the opening bracket, is the beginning of `text`.
fn token_at(text: &str) -> Option<String> {
    let mut compact = String::new();
    let mut gap = false;
    let mut line_start = false;
    for (offset, letter) in text.char_indices() {
        if offset > SPAN {
            return None;
        }
        match letter {
            ']' => return id_of(&compact, gap),
            '\n' | '\r' => {
                gap |= !compact.is_empty();
                line_start = true;
            }
            '>' if line_start => {}
            ' ' | '\t' | '\u{a0}' => gap |= !compact.is_empty(),
            // Clients put these in where a line may break.
            '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => {}
            ':' | 'a'..='z' | 'A'..='Z' | '0'..='9' => {
                line_start = false;
                compact.push(letter.to_ascii_lowercase());
            }
            _ => return None,
        }
    }
    None
}

fn id_of(compact: &str, gap: bool) -> Option<String> {
    let id = compact.strip_prefix("ow:").or_else(|| compact.strip_prefix("ocw:"))?;
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let sure = !gap || id.bytes().any(|byte| byte.is_ascii_digit());
    (plain && sure && LENGTH.contains(&id.len())).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_in_any_case_and_across_folds() {
        let one = |text: &str| tokens(text).first().cloned().unwrap_or_default();
        assert_eq!(one("a [ow:3f9c2a71b4de] b"), "3f9c2a71b4de");
        assert_eq!(one("[OW:3F9C2A71B4DE]"), "3f9c2a71b4de");
        assert_eq!(one("[ocw:abcdef]"), "abcdef");
        assert_eq!(one("> [ow:3f9c\n> 2a71b4de]"), "3f9c2a71b4de");
        assert_eq!(one("[ow:3f9c 2a71b4de]"), "3f9c2a71b4de");
        assert_eq!(one("[[ow:3f9c2a71b4de]]"), "3f9c2a71b4de");
        assert_eq!(one(&format!("[ow:{}]", "a".repeat(64))), "a".repeat(64));
    }

    #[test]
    fn what_is_not_a_whole_token_is_none() {
        for text in [
            "[ow:abc12]",
            "[ow:3f9c2a71b4de",
            "ow:3f9c2a71b4de",
            "[ow:3f9c2a-71b4de]",
            "[ow:some words here]",
            "[ow 3f9c2a71b4de]",
            "[how:3f9c2a71b4de]",
            "[ow:3f9c2а71b4de]",
            &format!("[ow:{}]", "a".repeat(65)),
        ] {
            assert_eq!(tokens(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn tokens_are_cut_and_other_brackets_stay() {
        assert_eq!(without_tokens("approve [ow:3f9c2a71b4de] [x]"), "approve  [x]");
    }
}
