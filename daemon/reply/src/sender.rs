use crate::sign_off::names_of;

/// Who a mail says it is from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sender {
    /// In lower case.
    pub address: String,
    /// The words of the sender's name, by which a sign-off is known.
    pub names: Vec<String>,
}

/// Reads the one address of the one `From` field: `raw` are the fields as they stand in the mail, `display` the name as
/// it is decoded.
///
/// Only the raw text tells: what is encoded, quoted or in a comment is part of a name and never an address. None if
/// there is not exactly one field with exactly one address.
#[must_use]
pub fn sender(raw: &[&str], display: &str) -> Option<Sender> {
    let [field] = raw else { return None };
    let bare = without_quotes_and_comments(field)?;
    let text = match (bare.find('<'), bare.matches('<').count(), bare.matches('>').count()) {
        (None, 0, 0) => bare.trim(),
        (Some(open), 1, 1) => {
            let (before, after) = bare.split_at(open);
            let (address, rest) = after[1..].split_once('>')?;
            if before.contains('@') || !rest.trim().is_empty() {
                return None;
            }
            address.trim()
        }
        _ => return None,
    };
    let (local, domain) = text.split_once('@')?;
    let plain = |text: &str, marks: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || marks.contains(char::from(byte)))
    };
    if !plain(local, ".!#$%&'*+-/=?^_{|}~") || !plain(domain, ".-") {
        return None;
    }
    let address = text.to_ascii_lowercase();
    let names = names_of(display, &address);
    Some(Sender { address, names })
}

/// None if a quote or a comment does not end.
fn without_quotes_and_comments(field: &str) -> Option<String> {
    let mut bare = String::new();
    let mut comment = 0_usize;
    let mut letters = field.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                letters.next()?;
            }
            '(' => comment += 1,
            ')' if comment > 0 => comment -= 1,
            _ if comment > 0 => {}
            '"' => loop {
                match letters.next()? {
                    '"' => break,
                    '\\' => {
                        letters.next()?;
                    }
                    _ => {}
                }
            },
            '\r' | '\n' => bare.push(' '),
            _ => bare.push(letter),
        }
    }
    (comment == 0).then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_address_is_a_sender() {
        let address = |raw: &str| sender(&[raw], "").map(|sender| sender.address);
        for raw in [
            "Alex Meyer <alex.meyer@example.org>",
            "alex.meyer@example.org",
            "Meyer, Alex <Alex.Meyer@Example.org>",
            "\"evil@bad.example\" <alex.meyer@example.org>",
            "alex.meyer@example.org (Alex <a@b>)",
        ] {
            assert_eq!(address(raw).as_deref(), Some("alex.meyer@example.org"), "{raw}");
        }
        for raw in [
            "alex.meyer@example.org, eve@bad.example",
            "Alex <alex.meyer@example.org>, Eve <eve@bad.example>",
            "alex.meyer@example.org <eve@bad.example>",
            "<alex.meyer@example.org> eve@bad.example",
            "<alex.meyer@example.org@bad.example>",
            "\"alex.meyer@example.org",
            "Group: alex.meyer@example.org;",
            "",
        ] {
            assert_eq!(address(raw), None, "{raw}");
        }
        assert_eq!(address("\"alex.meyer@example.org\" <eve@bad.example>").as_deref(), Some("eve@bad.example"));
        assert_eq!(sender(&["a@b.example", "a@b.example"], ""), None);
    }
}
