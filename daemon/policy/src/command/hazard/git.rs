//! What git can start or change beyond what a sub-command's name says.

use super::options::long_option;
use super::{Hazard, all_of, hazard};

pub(super) fn git(arguments: &[String]) -> Vec<Hazard> {
    /// Sub-commands that do no more than their name says; for the rest an entry has to name them.
    const KNOWN: &[&str] = &[
        "add",
        "blame",
        "branch",
        "cat-file",
        "check-ignore",
        "checkout",
        "cherry",
        "cherry-pick",
        "clean",
        "clone",
        "commit",
        "count-objects",
        "describe",
        "diff",
        "diff-files",
        "diff-index",
        "diff-tree",
        "fetch",
        "for-each-ref",
        "fsck",
        "gc",
        "grep",
        "init",
        "log",
        "ls-files",
        "ls-remote",
        "ls-tree",
        "merge",
        "merge-base",
        "mv",
        "name-rev",
        "pull",
        "push",
        "range-diff",
        "rebase",
        "reflog",
        "remote",
        "reset",
        "restore",
        "rev-list",
        "rev-parse",
        "revert",
        "rm",
        "shortlog",
        "show",
        "show-branch",
        "show-ref",
        "stash",
        "status",
        "switch",
        "tag",
        "var",
        "version",
        "whatchanged",
        "worktree",
        "archive",
        "apply",
        "am",
        "format-patch",
        "bundle",
    ];
    const LONG: &[&str] = &[
        "output",
        "output-directory",
        "exec",
        "upload-pack",
        "receive-pack",
        "open-files-in-pager",
        "ext-diff",
        "textconv",
        "filters",
        "edit-description",
        "config",
        "template",
        "extcmd",
        "tool",
        "remote",
        "server-option",
        "separate-git-dir",
        "reference",
        "recurse-submodules",
        "strategy",
        "edit",
        "gpg-sign",
        "sign",
        "local-user",
        "signed",
        "trailer",
        "pathspec-from-file",
        "contents",
    ];
    let mut found = vec![];
    let Some(at) = arguments.iter().position(|argument| !argument.starts_with('-')) else {
        return all_of(arguments, "git", 0)
            .into_iter()
            .filter(|hazard| !matches!(arguments[hazard.at - 1].as_str(), "--version" | "-v" | "--help" | "-h"))
            .collect();
    };
    for (index, argument) in arguments[..at].iter().enumerate() {
        if !matches!(
            argument.as_str(),
            "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" | "--no-replace-objects"
        ) {
            found.push(hazard(index, "git", argument));
        }
    }
    if !found.is_empty() {
        // An option before the sub-command may take the next word, so nothing after it can be told.
        found.extend(all_of(arguments, "git", at));
        return found;
    }
    let sub = arguments[at].as_str();
    if !KNOWN.contains(&sub) {
        found.push(hazard(at, "git", sub));
        found.extend(all_of(arguments, &format!("git {sub}"), at + 1));
        return found;
    }
    let short = match sub {
        "clone" | "init" => "cu",
        "grep" | "diff" | "log" | "show" | "whatchanged" | "diff-tree" | "diff-index" | "diff-files" | "range-diff" => {
            "O"
        }
        "rebase" => "xiS",
        "archive" | "format-patch" => "o",
        "commit" | "merge" | "revert" | "cherry-pick" => "Ss",
        "tag" => "ufdasm",
        "branch" => "dDmMcCfu",
        _ => "",
    };
    let valued = match sub {
        "log" | "show" | "diff" | "whatchanged" => "nSGUlABCem",
        "grep" => "ABCmef",
        "commit" | "tag" | "merge" => "mFCc",
        _ => "",
    };
    for (index, argument) in arguments.iter().enumerate().skip(at + 1) {
        if argument == "--" {
            break;
        }
        if argument.contains("::") && !argument.starts_with('-') {
            found.push(hazard(index, "git", "EXT::…"));
        } else if let Some(given) = argument.strip_prefix("--") {
            if let Some(option) = long_option(given, LONG) {
                found.push(hazard(index, &format!("git {sub}"), &format!("--{option}")));
            }
        } else if let Some(letters) = argument.strip_prefix('-') {
            for letter in letters.chars() {
                if short.contains(letter) {
                    found.push(hazard(index, &format!("git {sub}"), &format!("-{letter}")));
                    break;
                }
                if valued.contains(letter) {
                    break;
                }
            }
        }
    }
    // Words that change rather than show.
    let words: &[&str] = match sub {
        "remote" => {
            &["add", "remove", "rm", "rename", "set-url", "set-head", "set-branches", "prune", "update", "show"]
        }
        "stash" => &["drop", "clear", "pop", "apply", "push", "save", "store", "create", "branch"],
        "reflog" => &["expire", "delete"],
        "worktree" => &["add", "move", "remove", "prune", "repair"],
        "bundle" => &["create", "unbundle"],
        _ => &[],
    };
    if let Some(index) = (at + 1..arguments.len()).find(|index| !arguments[*index].starts_with('-'))
        && words.contains(&arguments[index].as_str())
    {
        found.push(hazard(index, &format!("git {sub}"), &arguments[index]));
    }
    if matches!(sub, "branch" | "tag") {
        let lists = arguments[at + 1..].iter().any(|argument| {
            matches!(
                argument.as_str(),
                "-l" | "--list" | "--contains" | "--merged" | "--no-merged" | "--points-at" | "--sort" | "--format"
            )
        });
        // The name that an option is about is no new one.
        let about = found.iter().any(|hazard| hazard.at > at + 1);
        if !lists
            && !about
            && let Some(index) = (at + 1..arguments.len()).find(|index| !arguments[*index].starts_with('-'))
        {
            found.push(hazard(index, &format!("git {sub}"), "NAME"));
        }
    }
    found
}
