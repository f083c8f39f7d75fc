use std::collections::{BTreeMap, HashMap};

use ow_model::{
    Answered, Artifact, BlobHash, Call, CallError, CallResult, Fact, Position, Reconciled, RecordedFact, Resolution,
    Run, RunState,
};
use ow_protocol::{ArtifactView, CallView};
use serde_json::Value;

use super::path;
use super::positions::Positions;
use super::transcript::read_arguments;

/// Folds a run's facts into its calls, in their order: those of its steps, or those that its agent and sub-agents made.
pub(crate) fn calls(run: &Run, facts: &[RecordedFact]) -> Vec<CallView> {
    let mut calls = BTreeMap::new();
    let mut own = Positions::default();
    let mut lent: HashMap<Position, Positions> = HashMap::new();
    for RecordedFact { seq: _, at: _, fact } in facts {
        let (asked, sub_agent_of) = match fact {
            Fact::Delegated { position, fact } => {
                (lent.entry(*position).or_insert_with(|| own.of_sub_agent()).take(fact), Some(position.0))
            }
            _ => (vec![], None),
        };
        let asked = own.take(fact).into_iter().chain(asked);
        for (position, call) in asked {
            let view = CallView { sub_agent_of, ..wanted(run, position, &call.name, read_arguments(call)) };
            calls.insert(position, view);
        }
        let fact = fact.bare();
        if let Fact::Rendered { step, call: Call { position, tool, args }, holes: _ } = fact {
            let view = CallView { step: Some(*step), ..wanted(run, *position, tool.as_str(), args.clone()) };
            calls.insert(*position, view);
        } else if let Some(view) = position(fact).and_then(|position| calls.get_mut(&position)) {
            apply(view, fact);
        }
    }
    let mut calls: Vec<_> = calls.into_values().collect();
    if !matches!(run.state, RunState::Running) {
        // Nobody runs it any more, and its end was not journaled.
        for call in calls.iter_mut().filter(|call| call.state == "running") {
            call.state = "unknown".into();
        }
    }
    calls
}

fn wanted(run: &Run, position: Position, tool: &str, arguments: Value) -> CallView {
    CallView {
        id: format!("{}/{position}", run.id),
        position: position.0,
        step: None,
        sub_agent_of: None,
        tool: tool.into(),
        arguments,
        state: "waiting".into(),
        rule: None,
        item: None,
        output: None,
        error: None,
        kept: vec![],
        took_ms: None,
    }
}

const fn position(fact: &Fact) -> Option<Position> {
    match fact {
        Fact::Allowed { position, .. }
        | Fact::Refused { position, .. }
        | Fact::Parked { position, .. }
        | Fact::Answered { position, .. }
        | Fact::Edited { position, .. }
        | Fact::Voided { position, .. }
        | Fact::Intended { position, .. }
        | Fact::Done { position, .. }
        | Fact::Stopped { position }
        | Fact::Admitted { position, .. }
        | Fact::Reconciled { position, .. } => Some(*position),
        _ => None,
    }
}

fn apply(view: &mut CallView, fact: &Fact) {
    match fact {
        Fact::Allowed { position: _, rule, by_rule: _ }
        | Fact::Admitted { position: _, rule, by_rule: _, repeatable: _ } => view.rule = Some(rule.clone()),
        Fact::Refused { position: _, rule } => {
            view.rule = Some(rule.clone());
            view.state = "refused".into();
        }
        Fact::Parked { position: _, item } => {
            view.item = Some(item.to_string());
            view.state = "parked".into();
        }
        Fact::Answered { position: _, item: _, answered } => {
            view.state = match answered {
                Answered::Resolved(Resolution { answer, by: _, at: _ }) if answer.word() == "denied" => "refused",
                Answered::Resolved(_) => "waiting",
                Answered::Expired | Answered::Withdrawn { .. } => "refused",
            }
            .into();
        }
        Fact::Edited { position: _, call: Call { position: _, tool, args } } => {
            view.tool = tool.to_string();
            view.arguments = args.clone();
        }
        Fact::Voided { .. } => view.state = "waiting".into(),
        Fact::Intended { .. } => view.state = "running".into(),
        Fact::Done { position: _, result, took_ms } => {
            view.took_ms = Some(*took_ms);
            apply_result(view, result);
        }
        Fact::Stopped { .. } => view.state = "stopped".into(),
        Fact::Reconciled { position: _, found } => match found {
            Reconciled::Happened { result } => apply_result(view, result),
            Reconciled::DidNotHappen => view.state = "waiting".into(),
            Reconciled::Unknown { why } => {
                view.state = "unknown".into();
                view.error = Some(why.clone());
            }
        },
        _ => {}
    }
}

fn apply_result(view: &mut CallView, result: &CallResult) {
    let CallResult { output, kept, artifacts: _, outside: _, error } = result;
    // A failed call may still have written something; an empty object says nothing.
    view.output = (!output.as_object().is_some_and(serde_json::Map::is_empty)).then(|| Value::clone(output));
    view.kept = kept.iter().map(|(field, hash)| (field.clone(), hash.to_string())).collect();
    match error {
        None => {
            view.state = "done".into();
            view.error = None;
        }
        Some(CallError { kind: _, message }) => {
            view.state = "failed".into();
            view.error = Some(message.clone());
        }
    }
}

/// All that a run made, numbered from 1 in the order in which it was made.
pub(crate) fn artifacts(facts: &[RecordedFact]) -> Vec<ArtifactView> {
    let made = results(facts).flat_map(|result| &result.artifacts);
    made.zip(1..)
        .map(|(artifact, number)| match artifact {
            Artifact::File { path: file, bytes, hash } => ArtifactView {
                number,
                kind: "file".into(),
                name: path(file),
                bytes: Some(*bytes),
                hash: Some(hash.to_string()),
            },
            Artifact::Message { to, id: _ } => {
                ArtifactView { number, kind: "message".into(), name: to.clone(), bytes: None, hash: None }
            }
        })
        .collect()
}

/// Whether the run keeps the whole text of an output under this hash.
pub(crate) fn keeps(facts: &[RecordedFact], hash: BlobHash) -> bool {
    results(facts).any(|result| result.kept.iter().any(|(_, kept)| *kept == hash))
}

fn results(facts: &[RecordedFact]) -> impl Iterator<Item = &CallResult> {
    facts.iter().filter_map(|recorded| match recorded.fact.bare() {
        Fact::Done { result, .. } | Fact::Reconciled { found: Reconciled::Happened { result }, .. } => Some(result),
        _ => None,
    })
}
