//! The sentences that items and notices carry.

use ow_model::{Call, Category, ItemKind, Outcome, Reconciled, Risk, TaskSpec};
use ow_policy::{Action, Facts};
use ow_turn::Doubt;

/// What an approval is about, in one line.
pub(crate) fn title(spec: &TaskSpec, step: u32, call: &Call, category: Category) -> String {
    format!("{}: step {} `{}` {}", name(spec), step + 1, call.tool, wants(category))
}

/// The same for a call of an agent, with the beginning of what it is about.
pub(crate) fn agent_title(spec: &TaskSpec, call: &Call, category: Category) -> String {
    let about = ["command", "path", "url", "from", "to"].iter().find_map(|key| call.args.get(*key)?.as_str());
    let argv = call
        .args
        .get("argv")
        .and_then(|argv| argv.as_array())
        .map(|argv| argv.iter().filter_map(|part| part.as_str()).collect::<Vec<_>>().join(" "));
    let about = about.map(str::to_owned).or(argv).map_or(String::new(), |about| {
        let short: String = about.chars().take(60).collect();
        let cut = if short.len() < about.len() { "…" } else { "" };
        format!(": {short}{cut}")
    });
    format!("{}: `{}` {}{about}", name(spec), call.tool, wants(category))
}

/// What an agent asks for that is not a call.
pub(crate) fn asking(spec: &TaskSpec, kind: &ItemKind) -> String {
    let what = match kind {
        ItemKind::Question { questions } => {
            questions.first().map_or_else(|| "asks".to_owned(), |first| first.text.clone())
        }
        ItemKind::Plan { .. } => "proposes a plan".into(),
        ItemKind::Directory { path, .. } => format!("asks to work in {}", path.display()),
        ItemKind::Budget { .. } => "has used up its budget".into(),
        ItemKind::Approval { call, .. } => format!("`{}` wants to run", call.tool),
        ItemKind::Notification { .. } => "tells".into(),
    };
    format!("{}: {what}", name(spec))
}

pub(crate) fn sub_agent_failed(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { message, .. } | Outcome::Refused { message } => format!("the sub-agent failed: {message}"),
        other => format!("the sub-agent ended as {}", other.word()),
    }
}

fn name(spec: &TaskSpec) -> &str {
    spec.title.as_deref().unwrap_or(spec.name.as_str())
}

const fn wants(category: Category) -> &'static str {
    match category {
        Category::UnknownOutcome => "may have run already",
        Category::Stopped => "was stopped in the middle",
        Category::WriteLocal | Category::Exec | Category::External | Category::Read => "wants to run",
    }
}

/// Why an unknown outcome is asked about.
pub(crate) fn unknown(why: &str) -> String {
    format!(
        "The end of this call is not on record: {why}. It may or may not have taken effect. \
         Approve to run it again; deny to leave it at that."
    )
}

pub(crate) fn stopped() -> String {
    "owd stopped this call in the middle, so it is incomplete. Approve to run it again from its beginning; deny to \
     leave it at that."
        .into()
}

pub(crate) const fn found(found: &Reconciled) -> &'static str {
    match found {
        Reconciled::Happened { .. } => "happened",
        Reconciled::DidNotHappen => "did not happen",
        Reconciled::Unknown { .. } => "unknown",
    }
}

/// As what, and why, a call is asked about whose outcome nobody can tell.
pub(crate) fn doubt(doubt: Doubt) -> (Category, String) {
    match doubt {
        Doubt::Crashed { why } => (Category::UnknownOutcome, unknown(&why)),
        Doubt::Stopped => (Category::Stopped, stopped()),
    }
}

/// Stands for the facts of a call that cannot be looked at any more: the worst is assumed.
pub(crate) const fn unseen() -> Facts {
    Facts { risk: Risk::External, action: Action::Plain }
}

/// As what a call of this risk is asked about.
pub(crate) const fn category(risk: Risk) -> Category {
    match risk {
        Risk::Read => Category::Read,
        Risk::WriteLocal => Category::WriteLocal,
        Risk::Exec => Category::Exec,
        Risk::External => Category::External,
    }
}
