//! What no source may hold.

use std::fs;

use ow_tidy::{files, root};

#[test]
fn no_source_holds_an_unfinished_mark_or_a_test_that_does_not_run() {
    // Written in two parts, so that this file is not its own finding.
    let marks = [("todo", "!("), ("unimplemented", "!("), ("#[ig", "nore"), ("FIX", "ME")];
    for file in files(&root(), ".rs") {
        let text = fs::read_to_string(&file).expect("a source");
        for (first, second) in marks {
            let mark = format!("{first}{second}");
            assert!(!text.contains(&mark), "{} holds `{mark}`", file.display());
        }
    }
}

#[test]
fn what_is_left_to_do_names_its_issue() {
    let mark = concat!("TO", "DO");
    for file in files(&root(), ".rs").into_iter().chain(files(&root(), ".toml")) {
        let text = fs::read_to_string(&file).expect("a source");
        for (number, line) in text.lines().enumerate().filter(|(_, line)| line.contains(mark)) {
            let named = line.split(mark).skip(1).all(|rest| {
                let digits = rest.strip_prefix("(#").and_then(|rest| rest.split_once(')'));
                digits.is_some_and(|(digits, _)| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
            });
            assert!(named, "{}:{}: {line}", file.display(), number + 1);
        }
    }
}

#[test]
fn every_crate_says_what_it_is() {
    for file in files(&root(), "src/lib.rs").into_iter().chain(files(&root(), "src/main.rs")) {
        let text = fs::read_to_string(&file).expect("a source");
        assert!(text.starts_with("//! "), "{} does not begin with what it is for", file.display());
    }
}

#[test]
fn the_example_configuration_and_tasks_are_toml() {
    let examples = files(&root().join("config"), ".toml");
    assert!(examples.len() > 1, "the examples are gone");
    for file in examples {
        let text = fs::read_to_string(&file).expect("an example");
        let parsed: Result<toml::Table, _> = toml::from_str(&text);
        assert!(parsed.is_ok(), "{}: {parsed:?}", file.display());
    }
}

#[test]
fn the_units_run_the_programs_that_there_are() {
    for file in files(&root().join("contrib"), "") {
        let text = fs::read_to_string(&file).expect("a unit");
        assert!(text.contains("owd"), "{} does not speak of owd", file.display());
    }
}
