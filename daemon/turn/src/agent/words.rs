//! What owd says to a model.

use ow_model::Why;

pub(super) const CONTINUE: &str =
    "Your text was cut by the output limit. Go on exactly where it ends, without repeating anything.";
pub(super) const EMPTY: &str = "Your reply was empty. Say what came of the work, or go on with it.";
pub(super) const AS_TEXT: &str = "You wrote a tool call as text. Nothing was run and there is no result; do not make one up. Make the call through the \
     tool interface, or answer without it.";
pub(super) const GO_ON: &str = "Good. Go on with the task.";
pub(super) const PLAN_MODE: &str =
    "[Mode plan: nothing with side effects runs. Look around, then propose a plan with the tool for it.]";

pub(super) fn checkpoint(left: u32) -> String {
    format!(
        "Pause for a moment and check, in a few words: 1. What is the task? 2. What is done? 3. What is next? 4. Are you still \
         on target? {left} more replies are left. Then go on with the task."
    )
}

pub(super) fn nudge(evidence: &str) -> String {
    format!(
        "You seem to go in circles: {evidence}. The result will not change by repeating. Use what you have, try a \
         fundamentally different way, or say what is missing."
    )
}

pub(super) fn stop(why: &str) -> String {
    format!(
        "{why}. This is your last reply, and no tool can be called. Say what was done, what was found, and what is left to do."
    )
}

pub(super) fn few_left(left: u32) -> String {
    format!("[{left} more replies are left; come to an end.]")
}

pub(super) fn denied(who: &str, reason: Option<&str>) -> String {
    let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
    format!(
        "{who} said no{reason}. The call DID NOT RUN: claim no result of it, and do not get the same by another way. Go on \
         without it, or say why it is needed"
    )
}

pub(super) const UNANSWERED: &str =
    "nobody answered in time. The call DID NOT RUN: claim no result of it. Go on without it";

pub(super) fn refused(rule: &str) -> String {
    format!("{rule}. The call DID NOT RUN: claim no result of it, and do not get the same by another way")
}

pub(super) fn stays_unknown(doubt: &str) -> String {
    format!("{doubt}; whether it took effect is UNKNOWN, and it was not repeated. Find out before you build on it")
}

/// In the words of the journal's own kind.
pub(super) const fn text_of(why: Why) -> &'static str {
    match why {
        Why::Continue => CONTINUE,
        Why::Empty => EMPTY,
        Why::CallAsText => AS_TEXT,
        Why::Checkpoint | Why::Loop | Why::Stop | Why::Hook => GO_ON,
    }
}
