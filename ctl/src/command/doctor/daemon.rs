use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use ow_client::{Client, ClientError};
use ow_model::BlobHash;
use ow_protocol::{PageQuery, RuleTargetView, RuleView, StatusView, WebhookView};

use super::Check;
use super::machine::Machine;
use crate::command::status::about_what;
use crate::failure::Failure;
use crate::place;
use crate::program;

/// What the running owd says of itself.
pub(super) struct Answer {
    pub(super) status: Result<StatusView, Failure>,
    pub(super) rules: Vec<RuleView>,
    pub(super) webhooks: Vec<WebhookView>,
}

pub(super) async fn ask(owd: &mut Client) -> Answer {
    match whole(owd).await {
        Ok(answer) => answer,
        Err(error) => Answer { status: Err(error.into()), rules: vec![], webhooks: vec![] },
    }
}

async fn whole(owd: &mut Client) -> Result<Answer, ClientError> {
    let status = owd.status().await?;
    let rules = rules(owd).await?;
    Ok(Answer { status: Ok(status), rules, webhooks: owd.webhooks().await?.rows })
}

async fn rules(owd: &mut Client) -> Result<Vec<RuleView>, ClientError> {
    let mut query = PageQuery { limit: Some(500), ..PageQuery::default() };
    let mut rules = vec![];
    loop {
        let page = owd.rules(&query).await?;
        rules.extend(page.rows);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(rules),
        }
    }
}

pub(super) fn reachable(answer: &Answer) -> Check {
    const NAME: &str = "daemon";
    match &answer.status {
        Ok(status) if status.version != env!("CARGO_PKG_VERSION") => Check::warn(
            NAME,
            format!("owd {} is running, and this is owctl {}", status.version, env!("CARGO_PKG_VERSION")),
            format!("restart owd: {}", place::how_to_restart()),
        ),
        Ok(status) => match &status.paused_all {
            Some(by) => Check::warn(NAME, format!("runs, but everything is paused by {by}"), "`owctl resume --all`"),
            None => Check::ok(NAME, format!("owd {} answers (pid {})", status.version, status.pid)),
        },
        Err(failure) => Check::fail(NAME, failure.message.clone(), failure.hint.clone().unwrap_or_default()),
    }
}

pub(super) fn damage(answer: &Answer) -> Check {
    const NAME: &str = "records";
    let Ok(status) = &answer.status else { return Check::ok(NAME, "not looked at: owd does not answer") };
    let damaged: Vec<String> =
        status.warnings.iter().filter(|warning| warning.kind == "damage").map(about_what).collect();
    if damaged.is_empty() {
        return Check::ok(NAME, "none is damaged");
    }
    let message = format!("{} set aside as unreadable: {}", damaged.len(), damaged.join(" | "));
    Check::fail(NAME, message, "check the disk; to go back: `owctl restore` a backup from before")
}

/// Each of the other warnings is a check of its own.
pub(super) fn warnings(answer: &Answer) -> Vec<Check> {
    let Ok(status) = &answer.status else { return vec![] };
    let others = status.warnings.iter().filter(|warning| warning.kind != "damage");
    others
        .map(|warning| {
            let remedy = warning.hint.clone().unwrap_or_else(|| "see `owctl status` and `owctl logs`".into());
            Check::warn("warning", about_what(warning), remedy)
        })
        .collect()
}

/// A rule whose program is gone or changed allows nothing any more.
pub(super) fn programs(machine: &Machine, answer: &Answer) -> Check {
    const NAME: &str = "programs";
    let mut stale = vec![];
    for rule in &answer.rules {
        if let Some(why) = stale_program(&rule.target, &machine.search_path) {
            stale.push(format!("rule {} ({}): {why}", rule.id, rule.task.as_deref().unwrap_or("everywhere")));
        }
    }
    if stale.is_empty() {
        return Check::ok(NAME, format!("those of {} standing rules are as they were allowed", answer.rules.len()));
    }
    let remedy =
        "it asks again until you allow it anew: `owctl task allow TASK`, or take the rule back: `owctl rule rm ID`";
    Check::warn(NAME, stale.join(" | "), remedy)
}

fn stale_program(target: &RuleTargetView, search_path: &OsStr) -> Option<String> {
    match target {
        RuleTargetView::Step { program, program_hash, parts, .. } => {
            let own = program.as_ref().zip(program_hash.as_ref());
            let parts = parts.iter().map(|part| (&part.program, &part.hash));
            own.into_iter().chain(parts).find_map(|(program, allowed)| {
                if !program::is_program(Path::new(program)) {
                    return Some(format!("{program} is not there or cannot be run"));
                }
                let now = fs::read(program).ok().map(|bytes| BlobHash::of(&bytes).to_string());
                (now.as_ref() != Some(allowed)).then(|| format!("{program} has changed since"))
            })
        }
        RuleTargetView::Argv { argv, .. } => {
            let name = argv.first()?;
            program::find(name, search_path).is_none().then(|| format!("`{name}` is not on the search path"))
        }
        RuleTargetView::Call { .. } | RuleTargetView::Path { .. } | RuleTargetView::Origin { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use ow_protocol::{ProgramView, WarningView};
    use serde_json::json;

    use super::super::State;
    use super::*;
    use crate::failure::Exit;

    fn status() -> StatusView {
        serde_json::from_value(json!({
            "version": env!("CARGO_PKG_VERSION"), "protocol": 1, "pid": 1, "started_at": "", "now": "",
            "time_zone": "UTC", "state": "running", "config_dir": "", "data_dir": "", "socket": "", "tcp": null,
            "log": "stderr", "paused_all": null, "tasks": 0, "tasks_paused": 0, "runs_running": 0, "runs_queued": 0,
            "runs_parked": 0, "items_pending": 0, "events_waiting": 0, "workers": 8, "next_wake": null,
            "store_bytes": 0, "store_format": 1, "epoch": 1, "warnings": [],
        }))
        .unwrap()
    }

    fn says(status: StatusView) -> Answer {
        Answer { status: Ok(status), rules: vec![], webhooks: vec![] }
    }

    fn warning(kind: &str) -> WarningView {
        WarningView { kind: kind.into(), about: "thing".into(), message: "broken".into(), hint: Some("mend it".into()) }
    }

    fn rule(target: RuleTargetView) -> Answer {
        let rule = RuleView {
            id: "7k2".into(),
            task: Some("reports".into()),
            target,
            text: String::new(),
            covers_outside: false,
            created_at: String::new(),
            created_by: "ada".into(),
            expires_at: None,
            uses_left: None,
            used: 0,
        };
        Answer { status: Ok(status()), rules: vec![rule], webhooks: vec![] }
    }

    #[test]
    fn an_owd_that_does_not_answer_is_named() {
        assert_eq!(reachable(&says(status())).state, State::Ok);
        let failure = Failure::new(Exit::NotRunning, "not_running", "owd is not running").hint("start it");
        let check = reachable(&Answer { status: Err(failure), rules: vec![], webhooks: vec![] });
        assert_eq!((check.state, check.remedy.as_deref()), (State::Fail, Some("start it")));
    }

    #[test]
    fn an_owd_of_another_version_and_the_kill_switch_are_named() {
        let check = reachable(&says(StatusView { version: "9.9.9".into(), ..status() }));
        assert_eq!(check.state, State::Warn);
        assert!(check.remedy.is_some_and(|remedy| remedy.starts_with("restart owd")));
        assert_eq!(reachable(&says(StatusView { paused_all: Some("ada".into()), ..status() })).state, State::Warn);
    }

    #[test]
    fn damaged_records_and_other_warnings_are_named() {
        let answer = says(StatusView { warnings: vec![warning("damage"), warning("watch")], ..status() });
        let check = damage(&answer);
        assert_eq!((check.state, &*check.message), (State::Fail, "1 set aside as unreadable: thing: broken"));
        let others = warnings(&answer);
        assert_eq!(others, [Check::warn("warning", "thing: broken", "mend it")]);
        let file = WarningView { message: "thing:3:1: broken".into(), ..warning("task_file") };
        let once = warnings(&says(StatusView { warnings: vec![file], ..status() }));
        assert_eq!(once, [Check::warn("warning", "thing:3:1: broken", "mend it")]);
        assert_eq!(damage(&says(status())).state, State::Ok);
    }

    #[test]
    fn a_rule_whose_program_is_gone_or_changed_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::sound(folder.path());
        let tool = folder.path().join("bin/tool").display().to_string();
        let hash = BlobHash::of(b"#!/bin/sh\n").to_string();
        let with_part = |part: &str, hash_of_part: &str| RuleTargetView::Step {
            step: 0,
            text_hash: String::new(),
            program: Some(tool.clone()),
            program_hash: Some(hash.clone()),
            parts: vec![ProgramView { program: part.into(), hash: hash_of_part.into() }],
            holes: vec![],
        };
        assert_eq!(programs(&machine, &rule(with_part(&tool, &hash))).state, State::Ok);
        assert!(programs(&machine, &rule(with_part(&tool, "00"))).message.contains("has changed"));
        assert!(programs(&machine, &rule(with_part("/no/such/part", "00"))).message.contains("/no/such/part"));
        let step = |program: &str, hash: &str| RuleTargetView::Step {
            step: 0,
            text_hash: String::new(),
            program: Some(program.into()),
            program_hash: Some(hash.into()),
            parts: vec![],
            holes: vec![],
        };
        assert_eq!(programs(&machine, &rule(step(&tool, &hash))).state, State::Ok);
        let gone = programs(&machine, &rule(step("/no/such/program", &hash)));
        assert_eq!(gone.state, State::Warn);
        assert!(gone.message.contains("/no/such/program"));
        assert!(programs(&machine, &rule(step(&tool, "00"))).message.contains("has changed"));
        let argv = |name: &str| RuleTargetView::Argv { argv: vec![name.into()], cwd: None };
        assert_eq!(programs(&machine, &rule(argv("tool"))).state, State::Ok);
        assert!(programs(&machine, &rule(argv("nothing"))).message.contains("`nothing` is not on the search path"));
    }
}
