use std::str::FromStr;

/// Names an item, a run or a rule as a person gives it: an id, a unique beginning of one, or a pasted token.
///
/// `[ow:7k2…]`, also inside a line that was copied whole. Which thing it fits, owd says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Reference(String);

const LETTERS: &str = "0123456789abcdefghjkmnpqrstvwxyz";
const LOOK_ALIKES: &str = "oil";
const LONGEST: usize = 16;

impl Reference {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let inner = token(text)?.unwrap_or(text).trim();
        let id = inner.to_ascii_lowercase();
        // owd reads look-alikes as what they stand for; here they stay, so that an error names what was typed.
        let strange = id.chars().find(|letter| !LETTERS.contains(*letter) && !LOOK_ALIKES.contains(*letter));
        if let Some(letter) = strange {
            return Err(format!("an id is of letters and digits, and {letter:?} is none of its letters"));
        }
        match id.len() {
            0 => Err("an id, or the beginning of one, is missing".into()),
            length if length > LONGEST => Err(format!("an id is {LONGEST} characters long, and this is {length}")),
            _ => Ok(Self(id)),
        }
    }
}

/// What stands in the one token of a text; none if there is no token.
fn token(text: &str) -> Result<Option<&str>, String> {
    let lower = text.to_ascii_lowercase();
    let mut tokens = lower.match_indices("[ow:").map(|(at, mark)| at + mark.len());
    let Some(begin) = tokens.next() else {
        return Ok(lower.trim().starts_with("ow:").then(|| text.trim()[3..].trim_end_matches(']')));
    };
    if tokens.next().is_some() {
        return Err("it holds several tokens; give one".into());
    }
    let rest = &text[begin..];
    let end = rest.find(']').ok_or("the token has no closing `]`: it was not copied whole")?;
    Ok(Some(&rest[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        text.parse::<Reference>().map(|reference| reference.0)
    }

    #[test]
    fn ids_prefixes_and_pasted_tokens_name_the_same() {
        for text in [
            "7k2m9q4r8t0v3x5z",
            "7K2M9Q4R8T0V3X5Z",
            "[ow:7k2m9q4r8t0v3x5z]",
            " ow:7k2m9q4r8t0v3x5z ",
            "Re: [OW:7K2M9Q4R8T0V3X5Z] backup wants to run",
        ] {
            assert_eq!(read(text).as_deref(), Ok("7k2m9q4r8t0v3x5z"), "{text}");
        }
        assert_eq!(read("7k").as_deref(), Ok("7k"));
        assert_eq!(read("First").as_deref(), Ok("first"), "what was typed is what an error names");
    }

    #[test]
    fn what_cannot_be_an_id_is_refused_before_anything_is_asked() {
        for text in ["", "  ", "7k2m9q4r8t0v3x5zz", "a/b", "..", "[ow:7k2", "[ow:7k] [ow:8k]", "ü"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
