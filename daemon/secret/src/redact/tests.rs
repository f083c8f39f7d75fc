use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use proptest::prelude::*;

use super::*;
use crate::Secrets;

fn redactor(values: &[&str]) -> Redactor {
    let values: Vec<SecretValue> = values.iter().map(|value| SecretValue::new((*value).into())).collect();
    Redactor::new(&values)
}

#[test]
fn each_form_of_a_value_is_taken_out() {
    let value = "p@ss w\"rd/+é\\9";
    let redactor = redactor(&[value]);
    for text in [
        value.to_owned(),
        "p%40ss%20w%22rd%2F%2B%C3%A9%5C9".into(),
        "p%40ss+w%22rd%2f%2b%c3%a9%5c9".into(),
        serde_json::to_string(value).unwrap(),
        STANDARD.encode(value),
        URL_SAFE.encode(value),
        STANDARD.encode(format!("user:{value}")),
        STANDARD_NO_PAD.encode(format!("me:{value}\n")),
        STANDARD.encode(format!("x{value}y")),
        value.bytes().flat_map(|byte| hex(byte, b"0123456789abcdef")).map(char::from).collect(),
    ] {
        let clean = redactor.redact(&text).into_owned();
        assert!(clean.contains(REDACTED), "{text}: {clean}");
        assert!(clean.len() <= REDACTED.len() + 16, "{text}: {clean}");
    }
}

#[test]
fn the_longest_of_two_values_wins() {
    assert_eq!(
        redactor(&["token", "token-and-more"]).redact("a token-and-more b token c"),
        "a [redacted] b [redacted] c"
    );
}

#[test]
fn a_line_of_a_key_is_taken_out_by_itself() {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\nabcdefghijklmnopqrst\n-----END KEY-----";
    let redactor = redactor(&[key]);
    assert_eq!(redactor.redact("> MIIEvQIBADANBgkqhkiG\n"), "> [redacted]\n");
    assert_eq!(redactor.redact("-----BEGIN KEY-----"), "-----BEGIN KEY-----");
}

#[test]
fn text_without_values_is_left_alone() {
    let redactor = Secrets::default().redactor();
    assert!(redactor.is_empty() && !redactor.holds_secret(b"anything"));
    assert_eq!(redactor.redact("anything"), "anything");
    assert_eq!(redactor.redact_bytes(b"any\xffthing"), b"any\xffthing");
}

proptest! {
    #[test]
    fn borders_between_pieces_change_nothing(
        text in "[abc]{0,60}",
        values in prop::collection::vec("[abc]{4,7}", 0..4),
        cuts in prop::collection::vec(0_usize..60, 0..6),
    ) {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let redactor = redactor(&values);
        let whole = redactor.redact_bytes(text.as_bytes());
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut stream = redactor.stream();
        let mut clean = vec![];
        for pair in cuts.windows(2) {
            clean.extend(stream.push(&text.as_bytes()[pair[0]..pair[1]]));
        }
        clean.extend(stream.finish());
        prop_assert_eq!(&clean, &whole);
    }

    #[test]
    fn no_value_is_left_in_the_text(before in "[ -~]{0,20}", value in "[ -~]{4,20}", after in "[ -~]{0,20}") {
        let redactor = redactor(&[&value]);
        let clean = redactor.redact(&format!("{before}{value}{after}")).into_owned();
        let rest = clean.replace(REDACTED, "\n");
        prop_assert!(!rest.contains(&value));
    }

    #[test]
    fn a_value_is_found_in_base64_wherever_it_stands(before in ".{0,9}", value in "[ -~]{8,30}", after in ".{0,9}") {
        let text = STANDARD.encode(format!("{before}{value}{after}"));
        prop_assert!(redactor(&[&value]).holds_secret(text.as_bytes()));
    }
}
