//! The table of scenarios names tests that exist, and names each scenario once.

use std::collections::BTreeSet;
use std::fs;

use ow_tidy::{files, root};

/// The scenarios of the two systems, by letter and number.
const ALL: [(&str, u32, u32); 9] = [
    ("E", 1, 22),
    ("F", 1, 19),
    ("G", 1, 17),
    ("H", 1, 18),
    ("P", 61, 88),
    ("H", 89, 104),
    ("D", 105, 124),
    ("L", 125, 137),
    ("A", 138, 150),
];

/// At most so many may be without a test: fewer than one in twenty.
const MOST_MISSING: usize = 7;

#[test]
fn every_scenario_has_tests_that_exist_or_says_why_it_has_none() {
    let table = fs::read_to_string(root().join("tests/cases/scenarios.md")).expect("the table");
    let sources: Vec<String> = ["daemon", "ctl", "tests"]
        .iter()
        .flat_map(|folder| files(&root().join(folder), ".rs"))
        .map(|path| fs::read_to_string(path).expect("a source"))
        .collect();
    let (mut covered, mut missing) = (vec![], vec![]);
    for line in table.lines().filter_map(|line| line.strip_prefix("- ")) {
        if let Some(rest) = line.strip_prefix("missing: ") {
            let (numbers, why) = rest.split_once(';').unwrap_or_else(|| panic!("no reason in `{line}`"));
            assert!(why.len() > 20, "no reason in `{line}`");
            missing.extend(numbers.split(", ").map(str::to_owned));
            continue;
        }
        covered.push(line.split(' ').next().expect("a number").to_owned());
        let (_, names) = line.split_once(": ").unwrap_or_else(|| panic!("no tests in `{line}`"));
        let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no tests in `{line}`");
        for name in names {
            let function = format!("fn {name}(");
            assert!(sources.iter().any(|source| source.contains(&function)), "no test `{name}`, of `{line}`");
        }
    }
    let named: BTreeSet<&String> = covered.iter().chain(&missing).collect();
    assert_eq!(named.len(), covered.len() + missing.len(), "a scenario stands there twice");
    let all =
        ALL.iter().flat_map(|(letter, first, last)| (*first..=*last).map(move |number| format!("{letter}{number}")));
    let left_out: Vec<String> = all.filter(|name| !named.contains(name)).collect();
    assert!(left_out.is_empty(), "{left_out:?} are not in the table");
    assert!(missing.len() <= MOST_MISSING, "{missing:?}");
    println!("{} scenarios covered, {} without a test", covered.len(), missing.len());
}
