use ow_model::{
    Answer, AnswerBy, Answered, Call, CallErrorKind, CallResult, EndedRun, Fact, Reconciled, RecordedFact, Resolution,
};
use ow_protocol::FactView;

use super::instant;

pub(crate) fn fact_view(recorded: &RecordedFact) -> FactView {
    let RecordedFact { seq, at, fact } = recorded;
    let (fact, text) = words(fact);
    FactView { seq: *seq, at: instant(*at), fact: fact.into(), text }
}

/// The journal's word for a fact, and the fact in words.
fn words(fact: &Fact) -> (&'static str, String) {
    match fact {
        Fact::Started { cause: _, context: _ } => ("started", "the run began".into()),
        Fact::StepSkipped { step } => ("step-skipped", format!("step {} was passed over: its `if` is false", step + 1)),
        Fact::Rendered { step, call: Call { position, tool, args: _ }, holes: _ } => {
            ("rendered", format!("step {} became call {position}, {tool}", step + 1))
        }
        Fact::RenderFailed { step, message } => {
            ("render-failed", format!("step {} could not be made into a call: {message}", step + 1))
        }
        Fact::Allowed { position, rule, by_rule: _ } => ("allowed", format!("call {position} may run: {rule}")),
        Fact::Refused { position, rule } => ("refused", format!("call {position} may not run: {rule}")),
        Fact::Parked { position, item } => ("parked", format!("call {position} waits for an answer to item {item}")),
        Fact::Answered { position, item, answered } => {
            ("answered", format!("call {position}: item {item} {}", answered_words(answered)))
        }
        Fact::Edited { position, call: Call { position: _, tool, args: _ } } => {
            ("edited", format!("call {position} runs with the arguments of the answer, {tool}"))
        }
        Fact::Voided { position, item, why } => {
            ("voided", format!("call {position}: the answer to item {item} no longer fits: {why}"))
        }
        Fact::Intended { position, hash: _, repeatable: _, intent: _ } => {
            ("intended", format!("call {position} is about to run"))
        }
        Fact::Done {
            position,
            result: CallResult { output: _, kept: _, artifacts: _, outside: _, error },
            took_ms,
        } => {
            let text = match error {
                None => format!("call {position} is done, after {took_ms} ms"),
                Some(error) => format!("call {position} {}, after {took_ms} ms: {}", ended(error.kind), error.message),
            };
            ("done", text)
        }
        Fact::Stopped { position } => ("stopped", format!("call {position} was stopped in the middle")),
        Fact::Reconciled { position, found } => {
            let text = match found {
                Reconciled::Happened { result: _ } => format!("call {position} had taken effect before owd ended"),
                Reconciled::DidNotHappen => format!("call {position} had not taken effect before owd ended"),
                Reconciled::Unknown { why } => format!("call {position} may or may not have taken effect: {why}"),
            };
            ("reconciled", text)
        }
        Fact::Resumed => ("resumed", "the run goes on".into()),
        Fact::Ended { outcome } => {
            let state = ow_model::RunState::Ended(EndedRun { outcome: outcome.clone() });
            ("ended", format!("the run ended: {}", state.word()))
        }
    }
}

const fn ended(kind: CallErrorKind) -> &'static str {
    match kind {
        CallErrorKind::BadArguments => "was given arguments that do not fit",
        CallErrorKind::Failed => "failed",
        CallErrorKind::TimedOut => "took too long",
        CallErrorKind::Limit => "reached a limit",
        CallErrorKind::Refused => "was refused",
        CallErrorKind::Denied => "was denied",
        CallErrorKind::Stopped => "was stopped",
        CallErrorKind::Unreachable => "could not reach its goal",
    }
}

fn answered_words(answered: &Answered) -> String {
    match answered {
        Answered::Resolved(Resolution { answer, by: AnswerBy { person, surface: _ }, at }) => {
            let how = match answer {
                Answer::Once => "approved",
                Answer::ForTask => "approved for the task",
                Answer::Edited { .. } => "approved with other arguments",
                Answer::Deny { .. } => "denied",
                Answer::Text { .. } => "answered",
                Answer::Acknowledge => "acknowledged",
            };
            format!("was {how} by {} at {at}", person.0)
        }
        Answered::Expired => "expired without an answer".into(),
        Answered::Withdrawn { why } => format!("was withdrawn: {why}"),
    }
}
