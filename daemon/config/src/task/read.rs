use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ow_model::{
    CatchUp, EventDelivery, InboxName, Mode, Need, OnError, Overlap, Retry, Span, Step, TaskName, TaskSpec, ToolName,
    WhileParked,
};
use ow_schedule::check_edited_triggers;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::DeValue;

use super::agent;
use super::args::{self, Names};
use super::trigger::{self, Setting};
use super::{TaskDefaults, ToolChecker, folders, http_hosts, zone};
use crate::FileFault;
use crate::config::unknown_inbox;
use crate::document::{Document, Found, Place, Section};
use crate::suggest::nearest;
use crate::template;

const SECOND: Span = Span::from_secs(1);
const NO_TIME: Span = Span::from_millis(0);
const TEN_YEARS: Span = Span::from_secs(520 * 7 * 86_400);
const TITLE_LIMIT: usize = 200;
const STEPS_LIMIT: usize = 200;
/// Failures in a row after which a task that says nothing pauses itself.
const AUTO_PAUSE_AFTER: u32 = 10;
const BACKOFF: Span = Span::from_secs(60);

/// Reads a task's definition.
///
/// `file` is only named in faults. All faults are found in one pass, and come in the order of the text.
/// Whether tasks follow each other in a circle is not seen here: that takes all of them.
pub fn parse_task(
    name: &TaskName,
    text: &str,
    file: Option<&Path>,
    defaults: &TaskDefaults,
    tools: &dyn ToolChecker,
    now: Timestamp,
) -> Result<TaskSpec, Vec<FileFault>> {
    read(name, text, file, &Surroundings { defaults, tools, now, before: None })
}

/// Reads the definition of a task that exists, as `before`: an `at` that it has already may have passed.
///
/// So a file whose one time has come stays right when it is read again.
pub fn parse_edited_task(
    before: &TaskSpec,
    text: &str,
    file: Option<&Path>,
    defaults: &TaskDefaults,
    tools: &dyn ToolChecker,
    now: Timestamp,
) -> Result<TaskSpec, Vec<FileFault>> {
    read(&before.name, text, file, &Surroundings { defaults, tools, now, before: Some(before) })
}

/// What a definition is read with.
struct Surroundings<'s> {
    defaults: &'s TaskDefaults,
    tools: &'s dyn ToolChecker,
    now: Timestamp,
    before: Option<&'s TaskSpec>,
}

fn read(
    name: &TaskName,
    text: &str,
    file: Option<&Path>,
    surroundings: &Surroundings<'_>,
) -> Result<TaskSpec, Vec<FileFault>> {
    let Surroundings { defaults, tools, now, before } = *surroundings;
    let document = Document::new(file, text);
    let Some(table) = document.parse() else { return Err(document.into_faults()) };
    let root = document.root(&table);
    let timezone = zone(&root).unwrap_or_else(|| defaults.timezone.clone());
    let known = TimeZone::get(&timezone.0).unwrap_or(TimeZone::UTC);
    let setting = Setting {
        task: name,
        home: &defaults.home,
        zone: &known,
        now,
        webhooks: &defaults.webhooks,
        mail_folders: &defaults.mail_folders,
        before,
    };
    let steps = if root.value("goal").is_none() { steps(&root, tools) } else { vec![] };
    let spec = TaskSpec {
        name: name.clone(),
        title: title(&root),
        timezone,
        triggers: trigger::triggers(&root, &setting),
        events: events(&root, &steps),
        steps,
        agent: agent::agent(&root, tools),
        mode: mode(&root),
        roots: folders(&root, "roots", "name the folders that the task works in", &defaults.home),
        catch_up: catch_up(&root),
        overlap: overlap(&root),
        while_parked: while_parked(&root),
        start_deadline: root.span_in("start-deadline", SECOND..=TEN_YEARS),
        jitter: root.span_in("jitter", NO_TIME..=Span::from_secs(86_400)).unwrap_or(NO_TIME),
        timeout: root.span_in("timeout", SECOND..=TEN_YEARS).unwrap_or(defaults.timeout),
        call_timeout: root.span_in("call-timeout", SECOND..=TEN_YEARS).unwrap_or(defaults.call_timeout),
        retry: retry(&root),
        auto_pause_after: root.count("auto-pause-after", 0..=1_000_000).unwrap_or(AUTO_PAUSE_AFTER),
        concurrency: group(&root),
        needs: needs(&root),
        item_expiry: root.span_in("expiry", SECOND..=TEN_YEARS).unwrap_or(defaults.expiry),
        item_reminder: root.span_in("reminder", SECOND..=TEN_YEARS).unwrap_or(defaults.reminder),
        http_allow: http_hosts(&root, "http-allow"),
        inbox: inbox(&root, &defaults.inboxes),
    };
    root.finish();
    if !document.has_faults()
        && let Err(error) = check_edited_triggers(&spec, before, now)
    {
        // What no single trigger shows: how many there are, and what the whole schedule makes of them.
        let text = error.to_string();
        let (message, remedy) = text.split_once("; ").unwrap_or((&text, "correct the triggers"));
        document.fault_without_value(&Place { key: "trigger".into(), span: 0..0 }, message, remedy);
    }
    if document.has_faults() { Err(document.into_faults()) } else { Ok(spec) }
}

fn title(root: &Section<'_, '_>) -> Option<String> {
    let Found { value, place } = root.text("title")?;
    if value.trim().is_empty() || value.chars().any(char::is_control) || value.len() > TITLE_LIMIT {
        let message = format!("not one line of text of at most {TITLE_LIMIT} bytes");
        root.document().fault(&place, message, "write a short line, or leave it out");
        return None;
    }
    Some(value)
}

fn inbox(root: &Section<'_, '_>, known: &BTreeSet<InboxName>) -> InboxName {
    let Some(Found { value, place }) = root.text("inbox") else { return InboxName::default() };
    if let Some(inbox) = known.iter().find(|inbox| inbox.as_str() == value) {
        return inbox.clone();
    }
    root.document().fault(&place, "unknown inbox", unknown_inbox(&value, known));
    InboxName::default()
}

fn mode(root: &Section<'_, '_>) -> Mode {
    let modes = [("plan", Mode::Plan), ("ask", Mode::Ask), ("edit", Mode::Edit), ("auto", Mode::Auto)];
    root.choice("mode", &modes).unwrap_or_default()
}

fn catch_up(root: &Section<'_, '_>) -> CatchUp {
    let all: fn(u32) -> CatchUp = |max| CatchUp::All { max };
    root.choice_or_counted("catch-up", &[("once", CatchUp::Once), ("none", CatchUp::None)], &[("all", all)])
        .unwrap_or_default()
}

fn overlap(root: &Section<'_, '_>) -> Overlap {
    let words = [("skip", Overlap::Skip), ("queue", Overlap::Queue), ("cancel-previous", Overlap::CancelPrevious)];
    let allow: fn(u32) -> Overlap = |max| Overlap::Allow { max };
    root.choice_or_counted("overlap", &words, &[("allow", allow)]).unwrap_or_default()
}

fn while_parked(root: &Section<'_, '_>) -> WhileParked {
    let words = [("hold", WhileParked::Hold), ("release", WhileParked::Release), ("supersede", WhileParked::Supersede)];
    root.choice("while-parked", &words).unwrap_or_default()
}

/// Where nothing is said, steps that read one event get a run for each: in a batch they would see the newest alone.
fn events(root: &Section<'_, '_>, steps: &[Step]) -> EventDelivery {
    let batch: fn(u32) -> EventDelivery = |max| EventDelivery::Batch { max };
    let each: fn(u32) -> EventDelivery = |max| EventDelivery::Each { max };
    let words = [("batch", batch(1000)), ("each", each(1000))];
    let said = root.choice_or_counted("events", &words, &[("batch", batch), ("each", each)]);
    said.unwrap_or_else(|| if read_one_event(steps) { each(1000) } else { EventDelivery::default() })
}

/// Whether steps read of an event what only one of several has, and nothing of the others.
fn read_one_event(steps: &[Step]) -> bool {
    let names: Vec<String> = steps
        .iter()
        .flat_map(|step| {
            let condition = step.condition.as_deref().map(template::names_of_condition);
            template::holes_of(&step.args).into_iter().chain(condition.and_then(Result::ok).unwrap_or_default())
        })
        .filter(|name| name.split('.').next() == Some("event"))
        .collect();
    let of_all = |name: &String| matches!(name.split('.').nth(1), Some("batch" | "count"));
    !names.is_empty() && !names.iter().any(of_all)
}

fn retry(root: &Section<'_, '_>) -> Retry {
    let none = Retry { attempts: 0, backoff: BACKOFF };
    let Some(section) = root.section("retry") else { return none };
    let attempts = section.count("attempts", 0..=100);
    if section.value("attempts").is_none() {
        section.document().fault_without_value(section.place(), "no `attempts`", "say how often to try again");
    }
    let backoff = section.span_in("backoff", SECOND..=TEN_YEARS).unwrap_or(BACKOFF);
    section.finish();
    Retry { attempts: attempts.unwrap_or_default(), backoff }
}

fn group(root: &Section<'_, '_>) -> Option<String> {
    let remedy = "write a short name, as `backups`";
    let group = root.read("concurrency", remedy, |text| text.parse::<TaskName>().map_err(|_| "not a name"))?;
    Some(group.value.to_string())
}

fn needs(root: &Section<'_, '_>) -> Vec<Need> {
    let mut needs = vec![];
    for Found { value, place } in root.texts("needs").unwrap_or_default() {
        match value.as_str() {
            "network" if needs.contains(&Need::Network) => {
                root.document().fault(&place, "named twice", "remove one of them");
            }
            "network" => needs.push(Need::Network),
            _ => root.document().fault(&place, "not one of the known values", "write \"network\", or remove it"),
        }
    }
    needs
}

fn steps(root: &Section<'_, '_>, tools: &dyn ToolChecker) -> Vec<Step> {
    let sections = root.sections("step");
    let document = root.document();
    let empty = |step: &Spanned<DeValue<'_>>| step.get_ref().as_array().is_some_and(|steps| steps.is_empty());
    if root.value("step").is_none_or(empty) {
        let remedy = "add a `[[step]]` with `tool` and `args`, or a `goal` for an agent";
        document.fault_without_value(&Place { key: "step".into(), span: 0..0 }, "the task has no step", remedy);
    }
    if sections.len() > STEPS_LIMIT {
        let message = format!("{} steps; at most {STEPS_LIMIT} are allowed", sections.len());
        document.fault_without_value(sections[STEPS_LIMIT].place(), message, "split the task with `after`");
        return vec![];
    }
    let saves: Vec<Option<Found<String>>> = sections.iter().map(save_as).collect();
    let names: Vec<String> =
        saves.iter().map(|save| save.as_ref().map(|found| found.value.clone()).unwrap_or_default()).collect();
    let known = tools.known();
    let mut steps = vec![];
    for (index, section) in sections.iter().enumerate() {
        if let Some(Found { value, place }) = &saves[index]
            && names[..index].contains(value)
        {
            document.fault(place, "an earlier step saves under this name", "choose another name");
        }
        let names = Names { saved: &names[..index], later: &names[index..] };
        let step = step(section, &names, tools, &known);
        section.finish();
        if let Some(mut step) = step {
            step.save_as = saves[index].as_ref().map(|found| found.value.clone());
            steps.push(step);
        }
    }
    steps
}

fn step(section: &Section<'_, '_>, names: &Names<'_>, tools: &dyn ToolChecker, known: &[ToolName]) -> Option<Step> {
    let document = section.document();
    let tool = tool(section, known);
    let args = match section.value("args") {
        None => Some(Value::Object(Map::new())),
        Some(_) => section.section("args").and_then(|_| {
            let value = section.value("args").expect("its table was read just above");
            args::convert(document, &section.path("args"), value, names)
        }),
    };
    let condition = section.text("if");
    if let Some(Found { value, place }) = &condition {
        args::check_condition(document, place, value, names);
    }
    let on_error =
        section.choice("on-error", &[("stop", OnError::Stop), ("continue", OnError::Continue)]).unwrap_or_default();
    let (tool, args) = (tool?, args?);
    if let Err(message) = tools.check(&tool, &args) {
        let remedy = format!("correct the arguments of `{tool}`");
        match section.value("args") {
            Some(args) => document.fault(&section.place_of("args", args), message, remedy),
            None => document.fault_without_value(section.place(), message, remedy),
        }
        return None;
    }
    Some(Step { tool, args, save_as: None, condition: condition.map(|found| found.value), on_error })
}

fn tool(section: &Section<'_, '_>, known: &[ToolName]) -> Option<ToolName> {
    if section.value("tool").is_none() {
        section.document().fault_without_value(section.place(), "no `tool`", "name the tool, as `tool = \"shell\"`");
        return None;
    }
    let Found { value, place } = section.text("tool")?;
    if let Some(tool) = known.iter().find(|tool| tool.as_str() == value) {
        return Some(tool.clone());
    }
    let list = || known.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(", ");
    let remedy = nearest(&value, known.iter().map(ToolName::as_str))
        .map_or_else(|| format!("use one of {}", list()), |meant| format!("did you mean \"{meant}\"?"));
    section.document().fault(&place, "unknown tool", remedy);
    None
}

/// A name that an expression can read: `steps.<name>`.
fn save_as(section: &Section<'_, '_>) -> Option<Found<String>> {
    let found = section.text("save-as")?;
    let name = &found.value;
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    if begins && name.len() <= 64 && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return Some(found);
    }
    let plain: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    let fits = plain.starts_with(|letter: char| letter.is_ascii_alphabetic()) && plain.len() <= 64;
    let remedy =
        if fits { format!("write `{plain}`") } else { "write letters, digits and `_`, beginning with a letter".into() };
    section.document().fault(&found.place, "not a name that a template can read", remedy);
    None
}
