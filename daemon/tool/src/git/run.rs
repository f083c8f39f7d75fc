//! Runs git so that it only reads: no program, hook, filter, driver, pager or transport that a repository's
//! configuration names is started.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ow_model::{CallError, CallErrorKind, CallResult};
use ow_policy::path::secret_name;
use serde_json::json;

use super::{COMMITS, GitArgs};
use crate::args;
use crate::capture::{Finished, capture};
use crate::helper::tree;
use crate::helper::work::{Judged, Work};
use crate::shell::{End, Ran, allowed, run_command};
use crate::world::{self, failed};
use crate::{HELPER_MARK, Limits};

const TIME: Duration = Duration::from_secs(15);

/// Settings by which reading could start something, write something or reach somewhere.
const SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.quotePath", "false"),
    ("core.bare", "false"),
    ("color.ui", "never"),
    ("column.ui", "never"),
    ("diff.external", ""),
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "all"),
    ("diff.noprefix", "false"),
    ("diff.mnemonicPrefix", "false"),
    ("diff.orderFile", "/dev/null"),
    ("diff.trustExitCode", "false"),
    ("log.showSignature", "false"),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
    ("status.submoduleSummary", "false"),
    ("maintenance.auto", "false"),
    ("gc.auto", "0"),
];

pub(crate) async fn run(work: &Work) -> Result<Finished, CallError> {
    let args: GitArgs = args::read(&work.call.args)?;
    let Judged::Paths { paths, .. } = &work.judged else { return Err(failed("a repository was not judged as one")) };
    let [folder, top, own, shared, ..] = paths.as_slice() else {
        return Err(failed("a repository was not judged as one"));
    };
    let program = world::program("git", Path::new("/"))
        .ok_or_else(|| failed("there is no program `git` on owd's search path; install it to read repositories"))?;
    let repository = Repository { program, folder, top, own, shared };
    let filters = repository.filters(work).await?;
    let action = args.action.to_ascii_lowercase();
    let mut command = repository.command(&filters);
    command.args(words(&action, &args));
    // All of it, since what may hold a secret is taken out by files; what is shown is cut after that.
    let whole = Limits { output_bytes: work.limits.kept_bytes, ..work.limits };
    let Ran { end, status, stdout, stderr } =
        run_command(command, None, TIME.min(work.limits.time.duration()), &whole, work).await?;
    let error = |kind, message: String| Err(CallError { kind, message });
    match end {
        End::ByItself => {}
        End::OutOfTime => {
            return error(CallErrorKind::TimedOut, format!("git was not done within {} s", TIME.as_secs()));
        }
        End::TooMany => return error(CallErrorKind::Limit, "git had too many processes at once".into()),
        End::Stopped => return error(CallErrorKind::Stopped, "stopped by owd".into()),
    }
    if !status.is_some_and(|status| status.success()) {
        let said = stderr.text.trim();
        let said = said.lines().next().unwrap_or("it did not say why").trim_start_matches("fatal: ");
        return error(CallErrorKind::Failed, format!("git {action}: {said}"));
    }
    if stdout.whole.is_some() {
        let most = work.limits.kept_bytes;
        return error(
            CallErrorKind::Limit,
            format!("git {action} gives more than {most} bytes; narrow it by `files` or `commit`"),
        );
    }
    let (text, left_out) = without_secrets(&stdout.text);
    let captured = capture(text.as_bytes(), &work.limits, &work.secrets.redactor());
    let mut output = json!({ "action": action, "repository": top, "text": captured.text });
    if left_out > 0 {
        output["left-out"]["secrets"] = left_out.into();
    }
    let kept: Vec<(String, Vec<u8>)> = captured.whole.map(|whole| ("text".to_owned(), whole)).into_iter().collect();
    if !kept.is_empty() {
        output["cut"] = json!({ "text": captured.total });
    }
    Ok(Finished { result: CallResult::ok(output), kept })
}

fn words(action: &str, args: &GitArgs) -> Vec<String> {
    const DIFF: &[&str] = &["--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"];
    let mut words: Vec<String> = vec![action.to_owned()];
    let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    let changes = if args.summary { "--stat" } else { "--patch" };
    match action {
        "status" => add(&["--short", "--branch", "--ignore-submodules=all"]),
        "branch" => add(&["--list", "--all", "--verbose", "--no-color", "--no-column"]),
        "log" => {
            add(DIFF);
            add(&["--format=%h %ad %an%d%n    %s", "--date=iso-strict", "--no-show-signature"]);
            add(&[&format!("--max-count={}", args.limit.unwrap_or(COMMITS))]);
            if args.summary {
                add(&["--stat"]);
            }
        }
        "show" => {
            add(DIFF);
            add(&["--format=fuller", "--no-show-signature", changes]);
        }
        _ => {
            add(DIFF);
            add(&[changes, "--ignore-submodules=all"]);
            if args.staged {
                add(&["--cached"]);
            }
        }
    }
    if action != "branch" {
        if action != "status" {
            add(&["--end-of-options"]);
            add(&args.commit.as_deref().into_iter().collect::<Vec<_>>());
        }
        add(&["--"]);
        add(&args.files.iter().map(String::as_str).collect::<Vec<_>>());
    }
    words
}

/// A repository as it was judged; git looks for none itself.
struct Repository<'a> {
    program: PathBuf,
    folder: &'a Path,
    top: &'a Path,
    own: &'a Path,
    shared: &'a Path,
}

impl Repository<'_> {
    fn command(&self, more: &[(String, String)]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(allowed()).env(HELPER_MARK, tree::mark()).current_dir(self.folder);
        command.env("GIT_DIR", self.own).env("GIT_COMMON_DIR", self.shared).env("GIT_WORK_TREE", self.top);
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_PAGER", "cat"),
            ("GIT_EDITOR", "false"),
            ("GIT_ASKPASS", "false"),
            ("GIT_SSH_COMMAND", "false"),
            ("GIT_ALLOW_PROTOCOL", ""),
            ("LC_ALL", "C.UTF-8"),
        ] {
            command.env(name, value);
        }
        let settings = SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let settings: Vec<(String, String)> = settings.chain(more.iter().cloned()).collect();
        command.env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (index, (name, value)) in settings.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{index}"), name).env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        command.args(["--no-pager", "--literal-pathspecs"]);
        command
    }

    /// Settings that take the repository's own filters out: status and diff would run them over files.
    async fn filters(&self, work: &Work) -> Result<Vec<(String, String)>, CallError> {
        let mut command = self.command(&[]);
        command.args(["config", "--null", "--name-only", "--get-regexp", r"^filter\..*"]);
        let Ran { end, stdout, .. } = run_command(command, None, TIME, &work.limits, work).await?;
        if end != End::ByItself || stdout.whole.is_some() {
            return Err(failed("the repository's settings could not be read"));
        }
        let mut settings = vec![];
        for name in stdout.text.split('\0').filter(|name| !name.is_empty()) {
            let Some((driver, _)) = name.rsplit_once('.') else { continue };
            for (key, value) in [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")] {
                settings.push((format!("{driver}.{key}"), value.to_owned()));
            }
        }
        settings.sort();
        settings.dedup();
        Ok(settings)
    }
}

/// A text of changes without those of files whose names say that they hold secrets, and how many those are.
fn without_secrets(text: &str) -> (String, usize) {
    let mut shown = String::with_capacity(text.len());
    let mut left_out = 0;
    let mut leaves_out = false;
    for line in text.split_inclusive('\n') {
        let header =
            ["diff --git ", "diff --cc ", "diff --combined "].into_iter().find_map(|begin| line.strip_prefix(begin));
        if let Some(names) = header {
            leaves_out = is_secret(names.trim_end());
            if leaves_out {
                left_out += 1;
                shown.push_str(line);
                shown.push_str("[left out: its name says that it may hold a secret]\n");
            }
        } else if line.starts_with("commit ") {
            // The next commit of several.
            leaves_out = false;
        }
        if !leaves_out {
            shown.push_str(line);
        }
    }
    (shown, left_out)
}

/// Whether one of the names in a header (`a/x b/x`, or one alone) is a secret's.
fn is_secret(names: &str) -> bool {
    let names = names.replace('"', "");
    let mut parts: Vec<&str> = names.split(" b/").collect();
    if let Some(first) = parts.first_mut() {
        *first = first.strip_prefix("a/").unwrap_or(first);
    }
    parts.into_iter().any(|name| secret_name(Path::new(name)).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_secret_files_are_left_out_of_a_diff() {
        let text = "commit 1\ndiff --git a/a.txt b/a.txt\n+x\ndiff --git a/.env b/.env\n--- a/.env\n+KEY=1\n\
                    diff --git a/b b/b\n+y\ndiff --git a/old b/.env\n+KEY=2\ncommit 2\n+z\n";
        let (shown, left_out) = without_secrets(text);
        assert_eq!(left_out, 2);
        assert!(!shown.contains("KEY"), "{shown}");
        assert!(shown.contains("+x\n") && shown.contains("+y\n") && shown.contains("+z\n"), "{shown}");
    }
}
