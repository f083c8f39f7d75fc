//! The canonical text of a task: what is exported, shown and hashed.

use std::fmt::Write;
use std::path::Path;

use ow_model::{
    AfterEnd, AgentSpec, BlobHash, Budget, CatchUp, EventDelivery, InboxName, MailFilter, Mode, Need, OnError, Overlap,
    Patience, Step, TaskSpec, Trigger, WatchKind, WhileParked,
};
use serde_json::{Map, Value};

use super::agent::amount;

/// The task as a file that says all of it: read back on any machine with the same home, it is the same task.
#[must_use]
pub fn to_toml(spec: &TaskSpec) -> String {
    let TaskSpec {
        name: _,
        title,
        timezone,
        triggers,
        steps,
        agent,
        mode,
        roots,
        catch_up,
        overlap,
        while_parked,
        events,
        start_deadline,
        jitter,
        timeout,
        call_timeout,
        retry,
        auto_pause_after,
        concurrency,
        needs,
        item_expiry,
        item_reminder,
        http_allow,
        inbox,
    } = spec;
    let mut lines = Lines(String::new());
    if let Some(title) = title {
        lines.put("title", &text(title));
    }
    lines.put("timezone", &text(&timezone.0));
    lines.put("mode", &text(mode_word(*mode)));
    lines.put("roots", &texts(roots.iter().map(|root| path_text(root))));
    lines.put("catch-up", &catch_up_text(*catch_up));
    lines.put("overlap", &overlap_text(*overlap));
    lines.put("while-parked", &text(while_parked_word(*while_parked)));
    lines.put("events", &events_text(*events));
    if let Some(deadline) = start_deadline {
        lines.put("start-deadline", &text(&deadline.to_string()));
    }
    lines.put("jitter", &text(&jitter.to_string()));
    lines.put("timeout", &text(&timeout.to_string()));
    lines.put("call-timeout", &text(&call_timeout.to_string()));
    let backoff = text(&retry.backoff.to_string());
    lines.put("retry", &format!("{{ attempts = {}, backoff = {backoff} }}", retry.attempts));
    lines.put("auto-pause-after", &auto_pause_after.to_string());
    if let Some(group) = concurrency {
        lines.put("concurrency", &text(group));
    }
    lines.put("needs", &texts(needs.iter().map(|need| need_word(*need).to_owned())));
    lines.put("expiry", &text(&item_expiry.to_string()));
    lines.put("reminder", &text(&item_reminder.to_string()));
    lines.put("http-allow", &texts(http_allow.iter().cloned()));
    // Each machine has this one, and it needs no naming.
    if *inbox != InboxName::default() {
        lines.put("inbox", &text(inbox.as_str()));
    }
    if let Some(agent) = agent {
        put_agent(&mut lines, agent);
    }
    for trigger in triggers {
        lines.0.push_str("\n[[trigger]]\n");
        put_trigger(&mut lines, trigger);
    }
    for step in steps {
        lines.0.push('\n');
        lines.0.push_str(&step_text(step).0);
    }
    lines.0
}

/// The canonical text of a step, unrendered, and its hash: what `task allow` shows and binds.
///
/// Equal steps have equal texts, however their file is laid out; any change of a step changes it.
#[must_use]
pub fn step_text(step: &Step) -> (String, BlobHash) {
    let Step { tool, args, save_as, condition, on_error } = step;
    let mut lines = Lines("[[step]]\n".into());
    lines.put("tool", &text(tool.as_str()));
    lines.put("args", &value(args));
    if let Some(name) = save_as {
        lines.put("save-as", &text(name));
    }
    if let Some(condition) = condition {
        lines.put("if", &text(condition));
    }
    if *on_error == OnError::Continue {
        lines.put("on-error", &text("continue"));
    }
    let hash = BlobHash::of(lines.0.as_bytes());
    (lines.0, hash)
}

struct Lines(String);

impl Lines {
    fn put(&mut self, key: &str, value: &str) {
        writeln!(self.0, "{key} = {value}").expect("a string takes all text");
    }
}

fn put_agent(lines: &mut Lines, agent: &AgentSpec) {
    let AgentSpec { goal, model, failover, instructions, tools, max_iterations, budget, loops } = agent;
    if let Some(goal) = goal {
        lines.put("goal", &text(goal));
    }
    if let Some(model) = model {
        lines.put("model", &text(model));
    }
    if !failover.is_empty() {
        lines.put("failover", &texts(failover.iter().cloned()));
    }
    if let Some(instructions) = instructions {
        lines.put("instructions", &text(instructions));
    }
    if let Some(tools) = tools {
        lines.put("tools", &texts(tools.iter().map(ToString::to_string)));
    }
    if let Some(max) = max_iterations {
        lines.put("max-iterations", &max.to_string());
    }
    let Budget { tokens, cost_micros, calls, time } = budget;
    let fields: Vec<String> = [
        tokens.map(|tokens| format!("tokens = {tokens}")),
        cost_micros.map(|cost| format!("cost = {}", text(&amount(cost)))),
        calls.map(|calls| format!("calls = {calls}")),
        time.map(|time| format!("time = {}", text(&time.to_string()))),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !fields.is_empty() {
        lines.put("budget", &format!("{{ {} }}", fields.join(", ")));
    }
    if !loops.is_empty() {
        let tools = loops.0.iter().map(|(tool, set)| {
            let set: Vec<String> =
                set.iter().map(|(detector, patience)| format!("{detector} = {}", patience_text(*patience))).collect();
            format!("{} = {{ {} }}", text(tool), set.join(", "))
        });
        lines.put("loops", &format!("{{ {} }}", tools.collect::<Vec<_>>().join(", ")));
    }
}

fn patience_text(patience: Patience) -> String {
    match patience {
        Patience::Off => text("off"),
        Patience::Until { nudge, stop: None } => format!("[{nudge}]"),
        Patience::Until { nudge, stop: Some(stop) } => format!("[{nudge}, {stop}]"),
    }
}

fn put_trigger(lines: &mut Lines, trigger: &Trigger) {
    match trigger {
        Trigger::Cron(expression) => lines.put("cron", &text(expression)),
        Trigger::Every { period, anchor } => {
            lines.put("every", &text(&period.to_string()));
            if let Some(anchor) = anchor {
                lines.put("anchor", &text(&anchor.to_string()));
            }
        }
        Trigger::At(at) => lines.put("at", &text(&at.to_string())),
        Trigger::Watch { path, glob, settle, on } => {
            let mut fields = format!("path = {}", text(&path_text(path)));
            if let Some(glob) = glob {
                write!(fields, ", glob = {}", text(glob)).expect("a string takes all text");
            }
            let kinds = texts(on.iter().map(|kind| watch_word(*kind).to_owned()));
            write!(fields, ", settle = {}, on = {kinds}", text(&settle.to_string())).expect("a string takes all text");
            lines.put("watch", &format!("{{ {fields} }}"));
        }
        Trigger::After { task, on } => {
            let on = text(after_word(*on));
            lines.put("after", &format!("{{ task = {}, on = {on} }}", text(task.as_str())));
        }
        Trigger::Startup => lines.put("startup", "true"),
        Trigger::Slack { channel, from, when } if from.is_empty() && when.is_none() => {
            lines.put("slack", &text(channel));
        }
        Trigger::Slack { channel, from, when } => {
            let mut fields = format!("channel = {}", text(channel));
            if !from.is_empty() {
                write!(fields, ", from = {}", texts(from.iter().cloned())).expect("a string takes all text");
            }
            if let Some(when) = when {
                write!(fields, ", when = {}", text(when)).expect("a string takes all text");
            }
            lines.put("slack", &format!("{{ {fields} }}"));
        }
        Trigger::Mail(MailFilter { from, subject, list, folder }) => {
            let named =
                |key: &str, value: &Option<String>| value.as_ref().map(|value| format!("{key} = {}", text(value)));
            let senders = (!from.is_empty()).then(|| format!("from = {}", texts(from.iter().cloned())));
            let fields: Vec<String> =
                [senders, named("subject", subject), named("list", list), named("folder", folder)]
                    .into_iter()
                    .flatten()
                    .collect();
            lines.put("mail", &if fields.is_empty() { "{}".into() } else { format!("{{ {} }}", fields.join(", ")) });
        }
        Trigger::Webhook { hook, when: None } => lines.put("webhook", &text(hook.as_str())),
        Trigger::Webhook { hook, when: Some(when) } => {
            lines.put("webhook", &format!("{{ hook = {}, when = {} }}", text(hook.as_str()), text(when)));
        }
    }
}

/// Roots and watched folders were read from UTF-8 text, so nothing is lost.
fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn text(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

fn texts(elements: impl Iterator<Item = String>) -> String {
    let elements: Vec<String> = elements.map(|element| text(&element)).collect();
    format!("[{}]", elements.join(", "))
}

/// On one line, keys in the order of the alphabet. TOML knows no null; arguments read from TOML have none.
fn value(json: &Value) -> String {
    match json {
        Value::Null => "null".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => toml::Value::Float(float).to_string(),
            None => number.to_string(),
        },
        Value::String(string) => text(string),
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(value).collect();
            format!("[{}]", elements.join(", "))
        }
        Value::Object(fields) if fields.is_empty() => "{}".into(),
        Value::Object(fields) => format!("{{ {} }}", pairs(fields)),
    }
}

fn pairs(fields: &Map<String, Value>) -> String {
    // Sorted here, so that the hash does not hang on how a map keeps its keys.
    let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
    sorted.sort_by_key(|(key, _)| *key);
    let pairs: Vec<String> =
        sorted.into_iter().map(|(name, field)| format!("{} = {}", key(name), value(field))).collect();
    pairs.join(", ")
}

fn key(name: &str) -> String {
    let bare =
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    if bare { name.into() } else { quoted_key(name) }
}

/// Always on one line: a key cannot be a text of several.
fn quoted_key(name: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in name.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            letter if letter.is_control() => {
                write!(quoted, "\\U{:08X}", u32::from(letter)).expect("a string takes all text");
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

const fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "plan",
        Mode::Ask => "ask",
        Mode::Edit => "edit",
        Mode::Auto => "auto",
    }
}

fn catch_up_text(catch_up: CatchUp) -> String {
    match catch_up {
        CatchUp::Once => text("once"),
        CatchUp::None => text("none"),
        CatchUp::All { max } => format!("{{ all = {max} }}"),
    }
}

fn overlap_text(overlap: Overlap) -> String {
    match overlap {
        Overlap::Skip => text("skip"),
        Overlap::Queue => text("queue"),
        Overlap::CancelPrevious => text("cancel-previous"),
        Overlap::Allow { max } => format!("{{ allow = {max} }}"),
    }
}

const fn while_parked_word(while_parked: WhileParked) -> &'static str {
    match while_parked {
        WhileParked::Hold => "hold",
        WhileParked::Release => "release",
        WhileParked::Supersede => "supersede",
    }
}

fn events_text(events: EventDelivery) -> String {
    match events {
        EventDelivery::Batch { max } => format!("{{ batch = {max} }}"),
        EventDelivery::Each { max } => format!("{{ each = {max} }}"),
    }
}

const fn need_word(need: Need) -> &'static str {
    match need {
        Need::Network => "network",
    }
}

const fn watch_word(kind: WatchKind) -> &'static str {
    match kind {
        WatchKind::Create => "create",
        WatchKind::Change => "change",
        WatchKind::Move => "move",
    }
}

const fn after_word(end: AfterEnd) -> &'static str {
    match end {
        AfterEnd::Success => "success",
        AfterEnd::Failure => "failure",
        AfterEnd::Any => "any",
    }
}
