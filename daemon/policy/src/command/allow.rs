//! Configured allows: argv prefixes, bounded by what the program's further options can do.

use super::hazard::{Hazard, hazards};
use super::unwrap::runs_stdin;
use super::word::{literal, split};

/// An allow entry, read.
struct Entry<'a> {
    text: &'a str,
    tokens: Vec<String>,
}

/// Why no entry covers a command.
pub(crate) enum Uncovered {
    NoEntry,
    /// An entry fits, but the command goes on to what an entry does not stand for.
    Hazard {
        entry: String,
        why: String,
    },
}

/// The entry that covers this argv.
pub(crate) fn covering(argv: &[String], entries: &[String]) -> Result<String, Uncovered> {
    let mut found = hazards(argv);
    if runs_stdin(argv) {
        // Even spelled out: what it would run stands elsewhere.
        found.push(Hazard { at: usize::MAX, why: format!("`{}` runs what comes on its standard input", argv[0]) });
    }
    let mut uncovered = Uncovered::NoEntry;
    for entry in entries.iter().filter_map(|entry| read(entry)) {
        if !argv.starts_with(&entry.tokens) {
            continue;
        }
        // What the entry itself spells out was meant.
        match found.iter().find(|hazard| hazard.at >= entry.tokens.len()) {
            None => return Ok(entry.text.to_owned()),
            Some(hazard) => uncovered = Uncovered::Hazard { entry: entry.text.to_owned(), why: hazard.why.clone() },
        }
    }
    Err(uncovered)
}

fn read(entry: &str) -> Option<Entry<'_>> {
    let text = entry.trim();
    let prefix = text.strip_suffix('*').unwrap_or(text);
    let tokens: Vec<String> = split(prefix)?.iter().map(|raw| literal(raw)).collect::<Option<_>>()?;
    (!tokens.is_empty() && !tokens[0].is_empty()).then_some(Entry { text, tokens })
}
