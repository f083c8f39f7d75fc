use std::fs;

use ow_test_support::Scratch;

/// One step that asks, as nothing allows it.
pub const ASKING: &str = r#"
[[step]]
tool = "shell"
args = { argv = ["sh", "{work}/count.sh"] }
"#;

/// A home with a task `asking` that asks before it appends a line to the file `count`.
///
/// # Panics
///
/// When a file cannot be written.
#[must_use]
pub fn asking() -> Scratch {
    let scratch = Scratch::new();
    add_asking(&scratch);
    scratch
}

/// Adds the task of [`asking`] to a home.
///
/// # Panics
///
/// When the script cannot be written.
pub fn add_asking(scratch: &Scratch) {
    let count = scratch.work().join("count");
    fs::write(scratch.work().join("count.sh"), format!("echo ran >> {}\n", count.display())).expect("a script");
    scratch.task("asking", ASKING);
}

/// How often `count.sh` has run.
#[must_use]
pub fn executions(scratch: &Scratch) -> usize {
    fs::read_to_string(scratch.work().join("count")).map_or(0, |text| text.lines().count())
}
