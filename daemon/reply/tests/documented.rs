//! The page on phrases, `docs/replies.md`, says what is read.

use std::fmt::Write as _;

use expect_test::expect_file;
use ow_reply::{Decision, Kind, LANGUAGES, Phrases, read};

const INTRODUCTION: &str = "\
# How a reply is read

A reply by mail, or to a message in Slack, answers an item by a phrase in one of the languages below. `owctl explain reply`
says of any text how it is read, and why.

**Yes** is the whole new text: a greeting on a line of its own (it names nobody, or whom the mail is for, or an *agent*, *team*,
*everyone* and the like), one yes phrase or several, and a sign-off (thanks, regards, your own name, \"sent from …\", and lines of a signature that are known whole: a phone number, an address, a company such as *Example
GmbH*, a job title). Any other word makes it none. **No** is a no phrase, alone or before a full stop and a reason.
Everything else changes nothing and is answered with what would work. So is a mail in HTML alone whose answer stands in an
element for quotes: who wrote what stands there cannot be told.

Case and the kind of apostrophe do not matter. In the lists, `a|b` is one word or the other, `_` joins words that stand together,
and what is behind `?` may be left out: `?please approve|allow ?it` reads *approve*, *please allow it*, and two more.

More phrases come from the configuration. Each is words without marks, and a phrase that means the opposite already, or that puts off,
greets or thanks, is refused:

```toml
[inbox]
approve-words = [\"make it so\"]
deny-words = [\"not on my watch\"]
```
";

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut list = |title: &str, patterns: &[&str]| {
        write!(page, "\n{title}\n\n").expect("a string takes all text");
        for pattern in patterns {
            writeln!(page, "- `{pattern}`").expect("a string takes all text");
        }
    };
    for language in LANGUAGES {
        list(&format!("## {}\n\nYes:", language.name), language.allow);
        list("No:", language.deny);
    }
    page
}

/// The shortest text that a pattern stands for, and the longest.
fn examples(pattern: &str) -> [String; 2] {
    let word = |slot: &str, last: bool| {
        let mut words = slot.split('|');
        let word = if last { words.next_back() } else { words.next() };
        word.unwrap_or_default().replace('_', " ")
    };
    let slots = || pattern.split(' ');
    let short: Vec<String> = slots().filter(|slot| !slot.starts_with('?')).map(|slot| word(slot, false)).collect();
    let long: Vec<String> = slots().map(|slot| word(slot.trim_start_matches('?'), true)).collect();
    [short.join(" "), long.join(" ")]
}

#[test]
fn the_page_lists_what_is_read() {
    expect_file!["../../../docs/replies.md"].assert_eq(&page());
}

#[test]
fn each_phrase_of_the_page_means_what_it_stands_under() {
    let phrases = Phrases::default();
    for language in LANGUAGES {
        for (patterns, meant) in [(language.allow, Decision::Approve), (language.deny, Decision::Deny)] {
            for text in patterns.iter().flat_map(|pattern| examples(pattern)) {
                let reading = read(&text, &Kind::Approval, &[], &phrases);
                assert_eq!(reading.decision, meant, "{}: {text:?}: {}", language.name, reading.why);
            }
        }
    }
}

#[test]
fn the_configurations_phrases_of_the_page_are_read_beside_the_others() {
    let phrases = Phrases::with(&["make it so".into()], &["not on my watch".into()]).expect("phrases");
    for (text, meant) in [
        ("Make it so.", Decision::Approve),
        ("Not on my watch. Ask Bob.", Decision::Deny),
        ("yes", Decision::Approve),
        ("make it so, but later", Decision::None),
    ] {
        assert_eq!(read(text, &Kind::Approval, &[], &phrases).decision, meant, "{text}");
    }
    assert!(Phrases::with(&["no".into()], &[]).is_err());
}
