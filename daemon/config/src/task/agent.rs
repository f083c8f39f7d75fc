use ow_model::{AgentSpec, Budget, LoopLimits, Span, ToolName};

use crate::document::{Found, Place, Section};
use crate::secret::looks_like_secret;
use crate::suggest::nearest;
use crate::template::Template;

use super::ToolChecker;

/// Where a secret belongs instead.
const SECRET_REMEDY: &str =
    "keep it with `owctl secret set NAME` and say its name here; a call is given it as `{ secret = \"NAME\" }`";

const GOAL_LIMIT: usize = 100_000;
const SECOND: Span = Span::from_secs(1);
const TEN_YEARS: Span = Span::from_secs(520 * 7 * 86_400);
/// The keys that mean something only beside a goal.
const OF_AGENTS: [&str; 7] = ["model", "failover", "instructions", "tools", "max-iterations", "budget", "loops"];

/// The agent that a task describes; none: it is made of steps.
pub(super) fn agent(root: &Section<'_, '_>, tools: &dyn ToolChecker) -> Option<AgentSpec> {
    let goal = root.text("goal");
    let model = model_name(root, "model");
    let failover = model_names(root, "failover");
    let instructions = root.text("instructions");
    for found in goal.iter().chain(&instructions) {
        if looks_like_secret(&found.value) {
            root.document().fault_redacted(
                &found.place,
                "holds what looks like a secret, and all of it goes to a model",
                SECRET_REMEDY,
            );
        }
    }
    let instructions = instructions.map(|found| found.value);
    let names = tool_names(root, tools);
    let max_iterations = root.count("max-iterations", 1..=10_000);
    let budget = budget(root);
    let loops = loops(root, tools);
    let document = root.document();
    let Some(Found { value: goal, place }) = goal else {
        if root.value("goal").is_none() {
            for key in OF_AGENTS {
                if root.value(key).is_some() {
                    let place = Place { key: key.into(), span: root.value(key).map_or(0..0, toml::Spanned::span) };
                    document.fault_without_value(
                        &place,
                        "means something only for an agent",
                        "add a `goal`, or remove it",
                    );
                }
            }
        }
        return None;
    };
    if goal.trim().is_empty() || goal.len() > GOAL_LIMIT {
        let message = format!("not a text of 1 to {GOAL_LIMIT} bytes");
        document.fault_without_value(&place, message, "say what the agent is to reach");
    }
    match Template::parse(&goal) {
        Err(error) => document.fault(&place, error.to_string(), error.remedy()),
        Ok(template) => {
            let foreign = |name: &&str| !matches!(name.split('.').next(), Some("task" | "slot" | "run"));
            if let Some(name) = template.names().find(foreign) {
                let message = format!("a goal cannot hold `{name}`");
                let remedy = "use values of `task`, `slot` and `run`; what an event brought is told to the agent by itself, as data";
                document.fault(&place, message, remedy);
            }
        }
    }
    if root.value("step").is_some() {
        let remedy = "keep the goal or the steps; an `after` trigger chains two tasks";
        document.fault_without_value(&place, "a task has a goal or steps, not both", remedy);
    }
    Some(AgentSpec { goal: Some(goal), model, failover, instructions, tools: names, max_iterations, budget, loops })
}

fn loops(root: &Section<'_, '_>, tools: &dyn ToolChecker) -> LoopLimits {
    let limits = crate::config::loop_limits(root, "loops");
    if limits.is_empty() {
        return limits;
    }
    let known = tools.known();
    let Some(section) = root.section("loops") else { return limits };
    for (tool, value) in section.entries() {
        if !limits.0.contains_key(tool)
            || tool == LoopLimits::ALL_TOOLS
            || known.iter().any(|known| known.as_str() == tool)
        {
            continue;
        }
        let place = section.place_of(tool, value);
        let remedy = nearest(tool, known.iter().map(ToolName::as_str))
            .map_or_else(|| "`owctl tool list` shows all".into(), |meant| format!("did you mean `{meant}`?"));
        root.document().fault_without_value(&place, "there is no such tool", remedy);
    }
    limits
}

/// `provider:model`, or a bare model name, for the default provider.
pub(crate) fn model_name(section: &Section<'_, '_>, key: &'static str) -> Option<String> {
    let Found { value, place } = section.text(key)?;
    is_model_name(&value).then_some(value.clone()).or_else(|| {
        section.document().fault(&place, "not a model's name", "write `provider:model`; `owctl model list` shows some");
        None
    })
}

pub(crate) fn model_names(section: &Section<'_, '_>, key: &'static str) -> Vec<String> {
    let mut names = vec![];
    for Found { value, place } in section.texts(key).unwrap_or_default() {
        if is_model_name(&value) {
            names.push(value);
        } else {
            section.document().fault(
                &place,
                "not a model's name",
                "write `provider:model`; `owctl model list` shows some",
            );
        }
    }
    names
}

fn is_model_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 200 && text.chars().all(|letter| !letter.is_whitespace() && !letter.is_control())
}

fn tool_names(root: &Section<'_, '_>, tools: &dyn ToolChecker) -> Option<Vec<ToolName>> {
    let known = tools.known();
    let mut names = vec![];
    for Found { value, place } in root.texts("tools")? {
        if let Some(tool) = known.iter().find(|tool| tool.as_str() == value) {
            names.push(tool.clone());
            continue;
        }
        let remedy = nearest(&value, known.iter().map(ToolName::as_str))
            .map_or_else(|| "`owctl tool list` shows all".into(), |meant| format!("did you mean \"{meant}\"?"));
        root.document().fault(&place, "unknown tool", remedy);
    }
    Some(names)
}

fn budget(root: &Section<'_, '_>) -> Budget {
    let Some(section) = root.section("budget") else { return Budget::default() };
    let cost = section.read("cost", "write an amount of the price table's currency, as `\"0.50\"`", micros);
    let budget = Budget {
        tokens: section.count("tokens", 1..=u32::MAX).map(u64::from),
        cost_micros: cost.map(|found| found.value),
        calls: section.count("calls", 1..=1_000_000),
        time: section.span_in("time", SECOND..=TEN_YEARS),
    };
    section.finish();
    budget
}

/// An amount with up to six decimals, in millionths.
pub(super) fn micros(text: &str) -> Result<u64, &'static str> {
    let wrong = "not an amount of money above 0";
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let digits = |text: &str| text.chars().all(|letter| letter.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
        return Err(wrong);
    }
    let amount = format!("{whole}{part:0<6}").parse().map_err(|_| wrong)?;
    if amount == 0 { Err(wrong) } else { Ok(amount) }
}

/// The amount as it is written.
pub(super) fn amount(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
