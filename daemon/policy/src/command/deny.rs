//! Configured denies: text patterns tried on the whole line and on each part of it.

use std::path::Path;

use super::script::Script;
use super::unwrap::{base_name, levels, runs_stdin};

/// The entry that denies the script, with the part that it fits.
pub(crate) fn denied<'a>(line: &str, script: &Script, entries: &'a [String], home: &Path) -> Option<(&'a str, String)> {
    if entries.iter().all(|entry| entry.trim().is_empty()) {
        return None;
    }
    let mut texts = vec![squeezed(line), script.plain()];
    collect(script, home, &mut texts, 0);
    entries.iter().find_map(|entry| {
        let pattern = squeezed(entry);
        if pattern.is_empty() {
            return None;
        }
        texts.iter().find(|text| fits(&pattern, text)).map(|text| (entry.as_str(), text.clone()))
    })
}

fn collect(script: &Script, home: &Path, texts: &mut Vec<String>, depth: u32) {
    if depth > 8 {
        return;
    }
    for text in read_as_code(script, home) {
        let inner = Script::read(&text, home, None);
        texts.push(inner.plain());
        collect(&inner, home, texts, depth + 1);
    }
    for part in script.parts() {
        let (commands, scripts) = levels(&part.texts(), home, part.cwd.as_deref());
        for command in commands {
            let Some((program, arguments)) = command.split_first() else { continue };
            texts.push(squeezed(&command.join(" ")));
            let name = base_name(program);
            texts.push(squeezed(&format!("{name} {}", arguments.join(" "))));
            if name == "git" {
                texts.push(squeezed(&format!("git {}", after_global_options(arguments).join(" "))));
            }
        }
        for script in &scripts {
            texts.push(script.plain());
            collect(script, home, texts, depth + 1);
        }
    }
}

/// What a pipeline's `echo`, a here-document or a here-string says to a shell.
fn read_as_code(script: &Script, home: &Path) -> Vec<String> {
    let mut found = vec![];
    for line in &script.lines {
        let mut said: Vec<String> = vec![];
        for part in line.stages.iter().flat_map(|stage| &stage.parts) {
            let (commands, scripts) = levels(&part.texts(), home, part.cwd.as_deref());
            let nested = scripts.iter().flat_map(Script::parts).map(super::script::Part::texts);
            if commands.into_iter().chain(nested).any(|command| runs_stdin(&command)) {
                found.extend(said.iter().chain(&part.fed).cloned());
            }
            let texts = part.texts();
            if texts.first().is_some_and(|program| matches!(base_name(program), "echo" | "printf")) {
                said.push(texts[1..].join(" "));
            }
            said.extend(part.fed.iter().cloned());
        }
    }
    found
}

fn after_global_options(arguments: &[String]) -> &[String] {
    let mut at = 0;
    while let Some(argument) = arguments.get(at).filter(|argument| argument.starts_with('-')) {
        let valued =
            matches!(argument.as_str(), "-c" | "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path");
        at += if valued { 2 } else { 1 };
    }
    arguments.get(at..).unwrap_or_default()
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a pattern fits: whole, or as a beginning that further arguments follow.
fn fits(pattern: &str, text: &str) -> bool {
    matches(pattern, text) || matches(&format!("{pattern} *"), text)
}

/// `*` stands for any text, all else for itself.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    let mut rest = rest;
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
