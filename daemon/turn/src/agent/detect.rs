//! Loop detectors: whether the last calls lead anywhere.
//!
//! They look at the newest 20 calls, at arguments in canonical form and at results: a poll whose answer changes is no
//! loop, nor is a cycle of edits and tests. Calls of one reply are one step. All run, and the worst verdict counts; the
//! third nudge in a row without progress is a stop.

mod rules;
mod topic;

use std::collections::{BTreeSet, VecDeque};

use ow_model::{BlobHash, CallErrorKind, Detector, Fact, LoopLimits, Risk};
use serde::Serialize;
use serde_json::Value;

use super::batch::{OpenCall, Settled, SettledBy};
use super::deeds::command;
use super::turn::digest;

const WINDOW: usize = 20;
/// So many nudges in a row become a stop.
const NUDGES: u32 = 3;
/// Replies in a row of which no call could be used.
const UNUSABLE: u32 = 5;

/// One call as the detectors see it.
#[derive(Clone, Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a plain trait of the call, of which one detector asks")]
pub(super) struct Seen {
    tool: String,
    /// Of tool and canonical arguments.
    call: BlobHash,
    result: BlobHash,
    is_blank: bool,
    error: Option<CallErrorKind>,
    /// What went wrong, in a few words.
    told: String,
    pub(super) by: SettledBy,
    /// It ran, and may have changed something.
    changes: bool,
    url: Option<String>,
    topic: Option<String>,
    /// The set of URLs in the result.
    urls: Option<BlobHash>,
    /// The command only waits.
    sleeps: bool,
    /// The reply that it was a part of.
    step: u32,
    /// It brought something that was not known before.
    is_fresh: bool,
}

/// What a detector found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Verdict {
    pub(super) detector: Detector,
    pub(super) evidence: String,
    pub(super) stop: bool,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Detectors {
    window: VecDeque<Seen>,
    step: u32,
    nudges: u32,
    /// Tools of whose many calls the model has been told.
    told: BTreeSet<String>,
    limits: LoopLimits,
}

impl Verdict {
    pub(super) fn fact(&self) -> Fact {
        Fact::LoopFound { detector: self.detector.word().into(), evidence: self.evidence.clone(), stop: self.stop }
    }
}

impl Seen {
    pub(super) fn of(open: &OpenCall, settled: &Settled) -> Self {
        let args = open.call.as_ref().map_or(&open.wrote, |call| &call.args);
        let is_exec = open.risk == Risk::Exec;
        let canonical = if is_exec { collapsed(args).to_string() } else { args.to_string() };
        let is_web = rules::family(&open.name) == Some(rules::Family::Web);
        Self {
            tool: open.name.clone(),
            call: digest(&format!("{}\n{canonical}", open.name)),
            result: settled.result,
            is_blank: settled.text.starts_with("(done"),
            error: settled.error,
            told: settled.text.lines().next().unwrap_or_default().chars().take(200).collect(),
            by: settled.by,
            changes: settled.by == SettledBy::Run && !open.risk.is_repeatable(),
            url: topic::url(args).map(str::to_owned),
            topic: topic::topic(args),
            urls: if is_web { topic::urls(&settled.text) } else { None },
            sleeps: is_exec && command(args).is_some_and(|command| topic::sleeps(&command)),
            step: 0,
            is_fresh: false,
        }
    }
}

impl Detectors {
    /// A person spoke: what came before is no evidence against what they ask now.
    pub(super) fn begin_turn(&mut self) {
        *self = Self { step: self.step, limits: std::mem::take(&mut self.limits), ..Self::default() };
    }

    /// What the person set of their patience; it holds for all that is seen from here on.
    pub(super) const fn limits(&self) -> &LoopLimits {
        &self.limits
    }

    pub(super) fn limit(&mut self, limits: LoopLimits) {
        self.limits = limits;
    }

    /// The worst verdict after the calls of one reply. `unusable`: replies in a row without any usable call.
    pub(super) fn judge(&mut self, calls: Vec<Seen>, unusable: u32) -> Option<Verdict> {
        self.step += 1;
        let mut found: Vec<Verdict> = vec![];
        let mut progress = false;
        for seen in calls {
            self.see(seen);
            progress |= self.window.back().is_some_and(|seen| seen.is_fresh);
            found.extend(self.of_newest());
        }
        found.extend(self.search_escalation());
        if unusable >= UNUSABLE {
            let evidence = format!(
                "no call of the last {unusable} replies could be run: no such tool, arguments that do not fit, or too many at once"
            );
            found.push(Verdict { detector: Detector::UnusableCalls, evidence, stop: true });
        }
        if progress {
            self.nudges = 0;
        }
        let worst = found.into_iter().reduce(|worst, next| if next.stop && !worst.stop { next } else { worst })?;
        if worst.stop {
            return Some(worst);
        }
        self.nudges += 1;
        let is_last = self.nudges >= NUDGES;
        let evidence = if is_last {
            format!("{} nudges in a row changed nothing; {}", NUDGES, worst.evidence)
        } else {
            worst.evidence
        };
        Some(Verdict { stop: is_last, evidence, ..worst })
    }

    fn see(&mut self, mut seen: Seen) {
        seen.step = self.step;
        let known = |before: &Seen| {
            before.tool == seen.tool
                && if seen.changes { before.call == seen.call } else { before.result == seen.result }
        };
        seen.is_fresh = seen.by == SettledBy::Run && seen.error.is_none() && !self.window.iter().any(known);
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(seen);
    }
}

/// The same command however it is spaced.
fn collapsed(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        Value::Array(elements) => elements.iter().map(collapsed).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), collapsed(value))).collect(),
        other => other.clone(),
    }
}
