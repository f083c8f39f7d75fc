//! What has to be done next.

use ow_model::{CallHash, CallResult, Fact, Outcome};
use serde_json::json;

use super::batch::{Batch, CallState, OpenCall, Ruling};
use super::effect::AgentEffect;
use super::own;
use super::setup::{Progress, ToolKind};
use super::turn::{AgentTurn, Stage};

/// Characters of a name that is no tool's.
const LONGEST_NAME: usize = 64;

impl AgentTurn {
    /// The one effect that comes next. A model call or a call that the journal does not show as ended is asked for
    /// again: call it only when nothing is under way.
    #[must_use]
    pub fn next(&self, progress: &Progress) -> AgentEffect {
        if self.asked.is_some() && !matches!(self.stage, Stage::Ended) {
            // An earlier life asked, and its answer is lost: what was said since then comes before it is asked again.
            return AgentEffect::Record(vec![Fact::Resumed]);
        }
        match &self.stage {
            Stage::New => AgentEffect::Start,
            Stage::Idle if self.lacks_goal() => AgentEffect::Start,
            Stage::Ended => AgentEffect::End(Outcome::Succeeded),
            Stage::Closing(end) => self.end(end),
            // The person wants the history shortened between two turns, or wanted it and it is under way.
            Stage::Idle if self.compactor.is_wanted() || self.compactor.is_under_way() => {
                self.shorten(progress).unwrap_or(AgentEffect::AwaitInput)
            }
            Stage::Idle => AgentEffect::AwaitInput,
            Stage::Working => match &self.batch {
                Some(batch) => self.next_call(batch),
                None => self.between(progress),
            },
        }
    }

    fn next_call(&self, batch: &Batch) -> AgentEffect {
        // What a reply names is found by position alone from here on.
        let named = batch.open().filter(|open| !open.named).map(named);
        let facts: Vec<Fact> = named.chain(batch.open().filter_map(ruled)).collect();
        if !facts.is_empty() {
            return AgentEffect::Record(facts);
        }
        // What an earlier life left behind comes before anything new.
        for open in batch.open() {
            match (&open.state, &open.call) {
                (CallState::Intended { intent, repeatable, .. }, Some(call)) => {
                    let (call, intent, repeatable) = (call.clone(), intent.clone(), *repeatable);
                    return AgentEffect::Reconcile { call, intent, repeatable };
                }
                (CallState::Uncertain(doubt), Some(call)) => {
                    return AgentEffect::AskUncertain { call: call.clone(), doubt: doubt.clone() };
                }
                _ => {}
            }
        }
        let Some(first) = batch.open().next() else { return AgentEffect::Wait { items: vec![] } };
        if first.kind != ToolKind::Plain {
            return self.next_own(first, batch);
        }
        // A question of the turn's own may change what the calls behind it may do: they wait for it.
        let span: Vec<&OpenCall> = batch.open().take_while(|open| open.kind == ToolKind::Plain).collect();
        let wanted = span.iter().filter_map(|open| match (&open.state, &open.call) {
            (CallState::Wanted(permission), Some(call)) => Some((call.clone(), permission.clone())),
            _ => None,
        });
        let wanted: Vec<_> = wanted.collect();
        if !wanted.is_empty() {
            return AgentEffect::Admit { calls: wanted };
        }
        let parked = span.iter().filter_map(|open| match open.state {
            CallState::Parked(item) => Some((open.position, item)),
            _ => None,
        });
        let items: Vec<_> = parked.collect();
        if !items.is_empty() {
            return AgentEffect::Wait { items };
        }
        execute(&span)
    }

    fn next_own(&self, open: &OpenCall, batch: &Batch) -> AgentEffect {
        match &open.state {
            CallState::Heard(resolution) => {
                own::granted(open, resolution).unwrap_or_else(|| AgentEffect::Record(self.heard(open, resolution)))
            }
            CallState::Parked(item) => AgentEffect::Wait { items: vec![(open.position, *item)] },
            CallState::Asleep => AgentEffect::AwaitInput,
            CallState::Wanted(_) | CallState::Admitted { .. } => {
                own::perform(open, batch.at, self.setup.spec.item_expiry)
            }
            CallState::Intended { .. } | CallState::Uncertain(_) | CallState::Settled(_) => {
                AgentEffect::Wait { items: vec![] }
            }
        }
    }
}

/// In the order of the reply: neighbours without side effects together, all others one by one.
fn execute(span: &[&OpenCall]) -> AgentEffect {
    let mut calls = vec![];
    for open in span {
        let (CallState::Admitted { permission, repeatable }, Some(call)) = (&open.state, &open.call) else { break };
        if !calls.is_empty() && !repeatable {
            break;
        }
        calls.push((call.clone(), permission.clone()));
        if !repeatable {
            break;
        }
    }
    AgentEffect::Execute { calls }
}

fn named(open: &OpenCall) -> Fact {
    let (tool, hash) = match &open.call {
        Some(call) => (call.tool.to_string(), call.hash()),
        None => (open.name.chars().take(LONGEST_NAME).collect(), CallHash::of(&open.name, &open.wrote)),
    };
    Fact::Named { position: open.position, tool, hash }
}

/// The result of a call that the turn itself has settled.
fn ruled(open: &OpenCall) -> Option<Fact> {
    if !matches!(open.state, CallState::Wanted(_) | CallState::Admitted { .. }) {
        return None;
    }
    let result = match open.ruling.as_ref()? {
        Ruling::Error { kind, text } => CallResult::failed(*kind, text.clone()),
        Ruling::Noted { text } => CallResult::ok(json!({ "text": text })),
    };
    Some(own::done(open.position, result))
}
