//! Typed text is read: nothing panics, a quote approves nothing, and no approval is left when a doubt is added to it.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use ow_reply::{Decision, Kind, Phrases, read};

static PHRASES: LazyLock<Phrases> = LazyLock::new(Phrases::default);

/// Words of which each makes of a line that approves one that does not.
const DOUBTS: &[&str] =
    &["not", "never", "but", "unless", "deny", "denied", "nicht", "kein", "aber", "pas", "mais", "niet", "nie", "pero"];

fn decides(text: &str) -> Decision {
    read(text, &Kind::Approval, &[], &PHRASES).decision
}

fuzz_target!(|text: &str| {
    let question = Kind::Question { options: vec!["blue".into(), "approve".into(), "3".into()] };
    read(text, &question, &[], &PHRASES);
    read(text, &Kind::Notification, &[], &PHRASES);
    if decides(text) != Decision::Approve {
        return;
    }
    let one_line = !text.chars().any(|letter| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{85}'));
    if one_line {
        let has = |doubt: &&&str| {
            text.split(|letter: char| !letter.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case(doubt))
        };
        assert_eq!(DOUBTS.iter().find(has), None, "it approves in spite of a doubt: {text:?}");
        assert_ne!(decides(&format!("do not {text}")), Decision::Approve, "{text:?}");
    }
    assert_ne!(decides(&format!("Please wait. {text}")), Decision::Approve, "{text:?}");
    assert_ne!(decides(&format!("Do not do it.\n{text}")), Decision::Approve, "{text:?}");
    let quoted: String = text.lines().map(|line| format!("> {line}\n")).collect();
    assert_ne!(decides(&quoted), Decision::Approve, "a quote approves: {quoted:?}");
});
