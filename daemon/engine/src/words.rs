//! The sentences that items and notices carry.

use ow_model::{Call, Category, Reconciled, Risk, TaskSpec};
use ow_policy::{Action, Facts};
use ow_turn::Doubt;

/// What an approval is about, in one line.
pub(crate) fn title(spec: &TaskSpec, step: u32, call: &Call, category: Category) -> String {
    let what = match category {
        Category::UnknownOutcome => "may have run already",
        Category::Stopped => "was stopped in the middle",
        Category::WriteLocal | Category::Exec | Category::External | Category::Read => "wants to run",
    };
    let task = spec.title.as_deref().unwrap_or(spec.name.as_str());
    format!("{task}: step {} `{}` {what}", step + 1, call.tool)
}

/// Why an unknown outcome is asked about.
pub(crate) fn unknown(why: &str) -> String {
    format!(
        "owd stopped before this call's end was on record, and {why}. It may or may not have taken effect. \
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
