//! `owd demo`: owd at work in a scratch folder, narrated.

mod model;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ow_engine::Engine;
use ow_model::{ItemKind, ItemState, Outcome, Rule, RuleId, RuleScope, Run, RunId, RunState};
use ow_store::{ItemFilter, PageRequest, Store, StreamEvent};
use rustix::process::{Signal, getpid, getuid, kill_process};

use crate::args::Places;
use crate::life;
use model::Found;

const TASKS: [(&str, &str); 3] = [
    ("disks", include_str!("demo/disks.toml")),
    ("filing", include_str!("demo/filing.toml")),
    ("broken", include_str!("demo/broken.toml")),
];

/// Made only where there is a model.
const AGENT: &str = include_str!("demo/agent.toml");
const LETTER: &str = "Dear owd,\nplease remind the house that the boiler is looked at on Friday at nine, and that somebody must be \
                      in.\nAda\n";

/// Events read from the stream at once.
const EVENTS: usize = 100;

/// Prepares the scratch folder, runs owd in it and tells what happens.
pub(crate) fn run(
    dir: Option<PathBuf>,
    seconds: Option<u64>,
    model_url: Option<&str>,
    no_model: bool,
) -> anyhow::Result<ExitCode> {
    let dir = dir.unwrap_or_else(|| std::env::temp_dir().join(format!("owd-demo-{}", getuid().as_raw())));
    let model = if no_model { None } else { model::find(model_url, |name| std::env::var(name).ok()) };
    if let (Some(url), None) = (model_url, &model) {
        anyhow::bail!(
            "no model server of this machine answers at {url}; give the base URL of one that speaks OpenAI's format, such as \
             http://127.0.0.1:11434/v1, or --no-model"
        );
    }
    prepare(&dir, model.as_ref()).with_context(|| format!("cannot prepare {}", dir.display()))?;
    let places = Places::below(dir.clone());
    let narrator = Narrator { owctl: owctl_line(&dir), dir, seconds, model, no_model };
    life::run_narrated(&places, narrator)
}

fn prepare(dir: &Path, model: Option<&Found>) -> std::io::Result<()> {
    let tasks = dir.join("config/tasks.d");
    for folder in ["incoming", "filed", "letters", "reports"].map(|name| dir.join(name)).iter().chain([&tasks]) {
        fs::create_dir_all(folder)?;
    }
    // The folder's name goes into TOML text.
    let folder = quoted(&dir.to_string_lossy());
    for (name, text) in TASKS {
        fs::write(tasks.join(format!("{name}.toml")), text.replace("{dir}", &folder))?;
    }
    let mut config = "[log]\ntarget = \"file\"\n".to_owned();
    let agent = tasks.join("agent.toml");
    if let Some(model) = model {
        fs::write(dir.join("letters/ada.txt"), LETTER)?;
        fs::write(agent, AGENT.replace("{dir}", &folder).replace("{model}", &quoted(&model.name)))?;
        if let Some(url) = &model.base_url {
            write!(config, "\n[provider.demo]\nbase-url = \"{}\"\nwire = \"openai\"\n", quoted(url))
                .expect("a String takes all");
        }
    } else if agent.exists() {
        // Of an earlier demo, which had one.
        fs::remove_file(agent)?;
    }
    fs::write(dir.join("config/owd.toml"), config)
}

/// A text as it stands between quotes in TOML.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The words before `inbox approve …` that reach this demo, ready to be typed.
fn owctl_line(dir: &Path) -> String {
    let beside = std::env::current_exe().ok().map(|this| this.with_file_name("owctl")).filter(|path| path.is_file());
    let on_path = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join("owctl").is_file()));
    let program = match beside {
        Some(path) if !on_path => path.to_string_lossy().into_owned(),
        _ => "owctl".into(),
    };
    format!("OWD_HOME={} {program}", dir.display())
}

/// Tells on standard output what owd does.
pub(crate) struct Narrator {
    dir: PathBuf,
    owctl: String,
    seconds: Option<u64>,
    model: Option<Found>,
    no_model: bool,
}

impl Narrator {
    /// Narrates until dropped; asks the process to stop when the time is over.
    pub(crate) async fn narrate(self, store: Arc<dyn Store>, engine: Arc<Engine>) {
        let end = self.seconds.map(Duration::from_secs);
        tokio::select! {
            told = self.tell(&store, &engine) => {
                if let Err(error) = told {
                    eprintln!("owd demo: {error:#}");
                }
            }
            () = async { tokio::time::sleep(end.unwrap_or_default()).await }, if end.is_some() => {
                say!("\nThe demo's {} seconds are over; owd stops.", self.seconds.unwrap_or_default());
                if let Err(error) = kill_process(getpid(), Signal::TERM) {
                    eprintln!("owd demo: cannot end by itself: {error}");
                }
            }
        }
    }

    async fn tell(&self, store: &Arc<dyn Store>, engine: &Arc<Engine>) -> anyhow::Result<()> {
        allow_disks(store, engine).await?;
        let count = if self.model.is_some() { "four" } else { "three" };
        say!("owd runs {count} tasks in {}:", self.dir.display());
        say!(
            "  disks   every 5 seconds: a report on this machine's disks; its steps are allowed, as by `owctl task allow disks`"
        );
        say!("  filing  a file that comes into incoming/ is to be filed by date, which asks first");
        say!("  broken  every 15 seconds: reads a file that is not there, to show how failure looks");
        match &self.model {
            Some(Found { name, by, .. }) => {
                say!("  agent   once: sums up a letter with {name}, {by}; it asks before it writes");
            }
            None if self.no_model => {}
            None => say!(
                "\nWith a model there is an agent too: start Ollama, llama.cpp, LM Studio or vLLM, name another server with \
                 --model-url, or export a vendor's key such as OPENAI_API_KEY."
            ),
        }
        say!("");
        say!("Try, in another terminal:\n  {} status\n  {} run list\n", self.owctl, self.owctl);
        self.tell_open_items(store).await?;
        let mut head = store.stream_head();
        let mut after = *head.borrow_and_update();
        let letter = self.dir.join("incoming").join(format!("letter-{after}.txt"));
        fs::write(&letter, "Dear owd,\nplease file me.\n").context("cannot write into incoming/")?;
        say!("A file comes in: {}\n", letter.display());
        let mut told = HashSet::new();
        loop {
            while let Some(events) = store.stream(after, EVENTS).await? {
                let Some(last) = events.last() else { break };
                after = last.position;
                for event in &events {
                    self.tell_event(store, event, &mut told).await?;
                }
            }
            if head.changed().await.is_err() {
                return Ok(());
            }
        }
    }

    async fn tell_open_items(&self, store: &Arc<dyn Store>) -> anyhow::Result<()> {
        let filter = ItemFilter { pending_only: true, ..ItemFilter::default() };
        let page = store.items(&filter, &PageRequest { after: None, limit: EVENTS }).await?;
        let asking: Vec<_> = page.rows.iter().filter(|item| is_question(&item.kind)).collect();
        if !asking.is_empty() {
            say!("Still open from an earlier demo:");
            for item in asking {
                say!("  {}\n    {} inbox approve {}", item.title, self.owctl, item.id);
            }
            say!("");
        }
        Ok(())
    }

    async fn tell_event(
        &self,
        store: &Arc<dyn Store>,
        event: &StreamEvent,
        told: &mut HashSet<RunId>,
    ) -> anyhow::Result<()> {
        match event.kind.as_str() {
            "run.ended" => {
                if let Some(run) = target_run(event)
                    && let Some(run) = store.run(run).await?
                    && told.insert(run.id)
                {
                    self.tell_end(&run);
                }
            }
            "item.created" => {
                let id = event.target.strip_prefix("item:").and_then(|id| id.parse().ok());
                if let Some(id) = id
                    && let Some(item) = store.item(id).await?
                    && item.state == ItemState::Pending
                    && let ItemKind::Approval { call, reason, .. } = &item.kind
                {
                    say!("\n  Asks: {}", item.title);
                    say!("    {} {}", call.tool, call.args);
                    say!("    because {reason}");
                    say!("    Nothing happens until you answer. Type:");
                    say!("      {} inbox approve {}", self.owctl, item.id);
                    say!("      {} inbox deny {}\n", self.owctl, item.id);
                }
            }
            _ => {
                if let Some(line) = in_a_line(event) {
                    say!("  {line}");
                }
            }
        }
        Ok(())
    }

    fn tell_end(&self, run: &Run) {
        let RunState::Ended(ended) = &run.state else { return };
        let short: String = run.id.to_string().chars().take(6).collect();
        match &ended.outcome {
            Outcome::Succeeded => say!("  {} succeeded (run {short})", run.task_name),
            Outcome::Failed { message, .. } => {
                say!("  {} FAILED: {}", run.task_name, first_line(message));
                say!("    Why: {} run show {short}", self.owctl);
            }
            Outcome::Refused { message } => say!("  {} was refused: {}", run.task_name, first_line(message)),
            other => say!("  {} ended: {}", run.task_name, other.word()),
        }
    }
}

/// Allows the steps of `disks` as they stand, which is what `owctl task allow disks` does.
async fn allow_disks(store: &Arc<dyn Store>, engine: &Arc<Engine>) -> anyhow::Result<()> {
    let Some(disks) = store.task(&"disks".parse()?).await? else { return Ok(()) };
    for step in engine.allowable(&disks.spec).await? {
        if step.allowed {
            continue;
        }
        let target = step.target.map_err(|why| anyhow::anyhow!("step {} of disks: {why}", step.step + 1))?;
        let rule = Rule {
            id: RuleId::random(),
            scope: RuleScope::Task(disks.spec.name.clone()),
            target,
            covers_outside: false,
            created_at: disks.updated_at,
            created_by: "owd demo".into(),
            expires_at: None,
            uses_left: None,
            used: 0,
        };
        store.add_rule(&rule).await?;
    }
    Ok(())
}

fn is_question(kind: &ItemKind) -> bool {
    matches!(kind, ItemKind::Approval { .. } | ItemKind::Question { .. })
}

/// An event that is told in a line of its own.
fn in_a_line(event: &StreamEvent) -> Option<String> {
    let (_, name) = event.target.split_once(':')?;
    match event.kind.as_str() {
        "item.resolved" => Some(format!("Answered: {name}")),
        "task.paused" if event.payload["reason"]["failures"].is_number() => {
            Some(format!("{name} has failed too often in a row and is paused."))
        }
        "task.paused" => Some(format!("{name} is paused.")),
        _ => None,
    }
}

fn target_run(event: &StreamEvent) -> Option<RunId> {
    event.target.strip_prefix("run:")?.parse().ok()
}

/// One line of a text for the terminal, without what could move its cursor.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use ow_model::PauseReason;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_told_by_the_name_of_what_it_is_about() {
        let told = |kind: &str, target: &str, reason: &PauseReason| {
            let at = "2026-03-03T12:00:00Z".parse().expect("an instant");
            let payload = json!({ "reason": reason });
            in_a_line(&StreamEvent { position: 1, at, kind: kind.into(), target: target.into(), payload })
        };
        let line = told("task.paused", "task:broken", &PauseReason::Failures(3));
        assert_eq!(line.as_deref(), Some("broken has failed too often in a row and is paused."));
        assert_eq!(told("task.paused", "task:disks", &PauseReason::Person).as_deref(), Some("disks is paused."));
        let line = told("item.resolved", "item:7k2m9q4r8t0v3x5z", &PauseReason::Person);
        assert_eq!(line.as_deref(), Some("Answered: 7k2m9q4r8t0v3x5z"));
        assert_eq!(told("run.queued", "run:7k2m9q4r8t0v3x5z", &PauseReason::Person), None);
    }
}
