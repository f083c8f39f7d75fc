//! Programs whose operands are programs in a small language of their own.

use super::options::long_option;
use super::{Hazard, hazard};

pub(super) fn find(arguments: &[String]) -> Vec<Hazard> {
    const ACTIONS: &[&str] =
        &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from"];
    arguments
        .iter()
        .enumerate()
        .filter(|(_, argument)| ACTIONS.contains(&argument.as_str()))
        .map(|(index, argument)| hazard(index, "find", argument))
        .collect()
}

/// A program text of awk that prints columns is plain; one that can start, write or read elsewhere is not.
pub(super) fn awk(arguments: &[String]) -> Vec<Hazard> {
    let harmful = |text: &str| {
        ["system", "getline", "|", ">", "@load", "@include", "close", "ARGV", "ENVIRON", "/inet", "`"]
            .iter()
            .any(|word| text.contains(word))
    };
    let mut found = vec![];
    let mut seen_program = false;
    let mut valued = false;
    for (index, argument) in arguments.iter().enumerate() {
        if std::mem::take(&mut valued) {
            continue;
        }
        match argument.as_str() {
            "-F" | "-v" | "--field-separator" | "--assign" => valued = true,
            option if option.starts_with("-F") || option.starts_with("-v") || option.starts_with("--field") => {}
            option if option.starts_with('-') && option.len() > 1 => found.push(hazard(index, "awk", option)),
            text if !seen_program => {
                seen_program = true;
                if harmful(text) {
                    found.push(hazard(index, "awk", "PROGRAM"));
                }
            }
            _ => {}
        }
    }
    found
}

/// A script of sed that only selects, substitutes and prints is plain.
pub(super) fn sed(arguments: &[String]) -> Vec<Hazard> {
    let mut found = vec![];
    let mut given = false;
    let mut next_is_script = false;
    let explicit = arguments
        .iter()
        .any(|argument| argument == "-e" || argument.starts_with("--expression") || clustered(argument, 'e'));
    for (index, argument) in arguments.iter().enumerate() {
        let script = if std::mem::take(&mut next_is_script) {
            Some(argument.as_str())
        } else if argument == "-e"
            || argument == "--expression"
            || (clustered(argument, 'e') && argument.ends_with('e'))
        {
            next_is_script = true;
            None
        } else if let Some(text) = argument.strip_prefix("--expression=").or_else(|| argument.strip_prefix("-e")) {
            Some(text)
        } else if argument.starts_with('-') && argument.len() > 1 {
            // A cluster that holds `e` with the script behind it is rare enough to ask about.
            if clustered(argument, 'e') {
                found.push(hazard(index, "sed", argument));
            }
            None
        } else if !explicit && !given {
            given = true;
            Some(argument.as_str())
        } else {
            None
        };
        if script.is_some_and(|script| !is_plain_sed(script)) {
            found.push(hazard(index, "sed", "SCRIPT"));
        }
    }
    found
}

fn clustered(argument: &str, letter: char) -> bool {
    argument.starts_with('-') && !argument.starts_with("--") && argument.contains(letter)
}

/// Whether each command of a sed script is one of `p d q = n N D P g G h H x l s y` with plain flags.
fn is_plain_sed(script: &str) -> bool {
    let mut rest = script.trim_start_matches([' ', '\t', ';', '\n', '{', '}']);
    while !rest.is_empty() {
        rest = match after_addresses(rest) {
            Some(rest) => rest,
            None => return false,
        };
        let Some(command) = rest.chars().next() else { return true };
        rest = &rest[command.len_utf8()..];
        match command {
            'p' | 'd' | '=' | 'n' | 'N' | 'D' | 'P' | 'g' | 'G' | 'h' | 'H' | 'x' | 'l' | '{' | '}' => {}
            'q' | 'Q' => rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit()),
            's' | 'y' => {
                let Some(after) = after_substitution(rest) else { return false };
                let flags = after.find([';', '\n', '}', ' ']).unwrap_or(after.len());
                // `e` runs the result and `w` writes it.
                if !after[..flags]
                    .chars()
                    .all(|flag| matches!(flag, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || flag.is_ascii_digit())
                {
                    return false;
                }
                rest = &after[flags..];
            }
            _ => return false,
        }
        let next = rest.trim_start_matches([' ', '\t']);
        if !(next.is_empty() || next.starts_with([';', '\n', '}']) || matches!(command, '{' | '}')) {
            return false;
        }
        rest = next.trim_start_matches([' ', '\t', ';', '\n']);
    }
    true
}

fn after_addresses(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| {
            letter.is_ascii_digit() || matches!(letter, ' ' | '$' | ',' | '~' | '+' | '!')
        });
        let Some(first) = rest.chars().next() else { return Some(rest) };
        if first != '/' {
            return Some(rest);
        }
        let mut letters = rest.char_indices().skip(1);
        let end = loop {
            match letters.next()? {
                (_, '\\') => {
                    letters.next()?;
                }
                (at, '/') => break at,
                _ => {}
            }
        };
        rest = rest[end + 1..].trim_start_matches(['I', 'M']);
    }
}

fn after_substitution(text: &str) -> Option<&str> {
    let delimiter = text.chars().next()?;
    if delimiter == '\\' || delimiter == '\n' {
        return None;
    }
    let mut ends = 0;
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next()?;
        } else if letter == delimiter {
            ends += 1;
            if ends == 2 {
                return Some(&text[at + delimiter.len_utf8()..]);
            }
        }
    }
    None
}

pub(super) fn tar(arguments: &[String]) -> Vec<Hazard> {
    const HARMFUL: &[&str] = &[
        "checkpoint-action",
        "to-command",
        "use-compress-program",
        "info-script",
        "new-volume-script",
        "rsh-command",
        "rmt-command",
        "index-file",
        "extract",
        "get",
        "create",
        "append",
        "update",
        "concatenate",
        "catenate",
        "delete",
        "remove-files",
        "volno-file",
        "listed-incremental",
        "files-from",
        "directory",
        "absolute-names",
        "overwrite",
        "unlink-first",
        "recursive-unlink",
        "backup",
        "transform",
        "xform",
    ];
    let mut found = vec![];
    for (index, argument) in arguments.iter().enumerate() {
        if let Some(given) = argument.strip_prefix("--") {
            if let Some(option) = long_option(given, HARMFUL) {
                found.push(hazard(index, "tar", &format!("--{option}")));
            }
            continue;
        }
        // The first word is a cluster even without a dash.
        let letters = match argument.strip_prefix('-') {
            Some(letters) => letters,
            None if index == 0 => argument.as_str(),
            None => continue,
        };
        for letter in letters.chars() {
            if "xcruAIFCPgGTdUW".contains(letter) {
                found.push(hazard(index, "tar", &format!("-{letter}")));
                break;
            }
            // After the file's name nothing of the cluster is an option.
            if letter == 'f' && argument.starts_with('-') {
                break;
            }
        }
    }
    found
}
