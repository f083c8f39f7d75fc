//! What becomes of the calls of a reply.

use jiff::Timestamp;
use ow_model::{
    Answer, Answered, BlobHash, Call, CallErrorKind, CallResult, Fact, Failure, ItemId, Message, Position, Reconciled,
    Resolution,
};
use serde_json::Value;

use super::batch::{Batch, CallState, OpenCall, Ruling, Settled, SettledBy};
use super::budget::Hold;
use super::detect::Seen;
use super::schema;
use super::setup::ToolKind;
use super::turn::{AgentTurn, Stage, TurnEnd, digest};
use super::{shown, words};
use crate::{Doubt, Permission};

/// Of so many reads it is known what they found.
const READS: usize = 100;

impl AgentTurn {
    pub(super) fn fold_call(&mut self, fact: &Fact, at: Timestamp) {
        match fact {
            Fact::Named { position, .. } => {
                if let Some(open) = self.open_mut(*position) {
                    open.named = true;
                }
            }
            Fact::Admitted { position, repeatable, .. } => {
                if let Some(open) = self.open_mut(*position)
                    && let CallState::Wanted(permission) = &open.state
                {
                    open.state = CallState::Admitted { permission: permission.clone(), repeatable: *repeatable };
                }
            }
            Fact::Refused { position, rule } => {
                self.settle_no(*position, CallErrorKind::Refused, &words::refused(rule));
            }
            Fact::Parked { position, item } => self.parked(*position, *item),
            Fact::Answered { position, item, answered } => self.answered(*position, *item, answered),
            Fact::Edited { position, call } => self.edited(*position, call),
            Fact::Voided { position, .. } => {
                if let Some(open) = self.open_mut(*position)
                    && matches!(open.state, CallState::Wanted(_) | CallState::Admitted { .. })
                {
                    open.state = CallState::Wanted(Permission::Policy);
                }
            }
            Fact::Intended { position, repeatable, intent, .. } => {
                let Some(open) = self.open_mut(*position) else { return };
                if let CallState::Wanted(permission) | CallState::Admitted { permission, .. } = &open.state {
                    open.state = CallState::Intended {
                        permission: permission.clone(),
                        intent: intent.clone(),
                        repeatable: *repeatable,
                        stopped: false,
                    };
                    self.side_effect |= !repeatable;
                }
            }
            Fact::Done { position, result, .. } => self.done(*position, result),
            Fact::Stopped { position } => {
                let Some(open) = self.open_mut(*position) else { return };
                match &mut open.state {
                    CallState::Intended { repeatable: true, permission, .. } => {
                        open.state = CallState::Wanted(permission.clone());
                    }
                    // The tool may know: a write that was stopped either replaced the file or did not.
                    CallState::Intended { stopped, .. } => *stopped = true,
                    _ => {}
                }
            }
            Fact::Reconciled { position, found } => self.reconciled(*position, found),
            Fact::Slept { .. } => {
                let sleeps = |open: &&mut OpenCall| {
                    matches!(open.kind, ToolKind::SleepUntil | ToolKind::WakeOn)
                        && matches!(open.state, CallState::Wanted(_))
                };
                let calls = self.batch.iter_mut().flat_map(|batch| &mut batch.calls);
                if let Some(open) = calls.into_iter().find(|open| sleeps(open)) {
                    open.state = CallState::Asleep;
                }
            }
            _ => {}
        }
        self.close_batch(at);
    }

    fn open_mut(&mut self, position: Position) -> Option<&mut OpenCall> {
        self.batch.as_mut()?.call_mut(position).filter(|open| !open.is_settled())
    }

    fn parked(&mut self, position: Position, item: ItemId) {
        if let Some(Hold::Reached { position: at, what }) = &self.hold
            && *at == position
        {
            self.hold = Some(Hold::Parked { position, item, what: what.clone() });
        } else if let Some(open) = self.open_mut(position) {
            if matches!(open.state, CallState::Wanted(_) | CallState::Admitted { .. } | CallState::Uncertain(_)) {
                open.state = CallState::Parked(item);
            }
        } else if self.batch.is_none() && position.0 == self.next_position && self.compactor.parked(position, item) {
            self.next_position += 1;
        }
    }

    fn answered(&mut self, position: Position, item: ItemId, answered: &Answered) {
        if self.compactor.answered(position, item, answered) {
            return;
        }
        match &self.hold {
            Some(Hold::Parked { position: at, item: asked, what }) if *at == position && *asked == item => {
                let what = what.clone();
                self.budget_answered(position, item, what, answered);
            }
            _ => self.call_answered(position, item, answered),
        }
    }

    fn budget_answered(&mut self, position: Position, item: ItemId, what: String, answered: &Answered) {
        let end = match answered {
            Answered::Resolved(resolution) if resolution.answer.allows() => {
                self.hold = Some(Hold::Approved);
                return;
            }
            Answered::Withdrawn { .. } => {
                self.hold = Some(Hold::Reached { position, what });
                return;
            }
            Answered::Resolved(resolution) => TurnEnd::Failed {
                failure: Failure::Budget,
                message: format!("{what}, and {} did not raise it", resolution.by.person.0),
            },
            Answered::Expired => TurnEnd::Expired { item, message: format!("{what}, and nobody raised it in time") },
        };
        self.hold = None;
        self.stage = Stage::Closing(end);
    }

    fn call_answered(&mut self, position: Position, item: ItemId, answered: &Answered) {
        let Some(open) = self.open_mut(position) else { return };
        if !matches!(open.state, CallState::Parked(parked) if parked == item) {
            return;
        }
        let (kind, call) = (open.kind, open.call.clone());
        let is_uncertain = call.as_ref().is_some_and(|call| self.grants.uncertain.contains(&call.hash()));
        // That it did not run may not be said of what may have.
        let without_it = if is_uncertain { CallErrorKind::Lost } else { CallErrorKind::Denied };
        match answered {
            Answered::Resolved(resolution) if kind != ToolKind::Plain => {
                self.set(position, CallState::Heard(resolution.clone()));
            }
            Answered::Resolved(resolution) if resolution.answer.allows() => {
                if let Some(call) = &call {
                    self.remember(call, &resolution.answer);
                }
                let permission = Permission::Answer { item, resolution: resolution.clone() };
                self.set(position, CallState::Wanted(permission));
            }
            Answered::Resolved(Resolution { answer, by, .. }) => {
                let who = &by.person.0;
                let reason = match answer {
                    Answer::Deny { reason } => reason.as_deref(),
                    _ => None,
                };
                let text = if is_uncertain {
                    let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
                    words::stays_unknown(&format!("{who} did not let it run again{reason}"))
                } else {
                    words::denied(who, reason)
                };
                self.deny(call.as_ref());
                self.settle_no(position, without_it, &text);
            }
            Answered::Expired => {
                let text = if is_uncertain {
                    words::stays_unknown("nobody answered in time")
                } else {
                    words::UNANSWERED.to_owned()
                };
                self.deny(call.as_ref());
                self.settle_no(position, without_it, &text);
            }
            // Withdrawn without an answer (a restore): the question still stands and is asked anew.
            Answered::Withdrawn { why } if is_uncertain => {
                self.set(position, CallState::Uncertain(Doubt::Crashed { why: why.clone() }));
            }
            Answered::Withdrawn { .. } => self.set(position, CallState::Wanted(Permission::Policy)),
        }
    }

    /// What an answer allows beyond its call.
    fn remember(&mut self, call: &Call, answer: &Answer) {
        match answer {
            Answer::AlwaysTool if !self.grants.tools.contains(&call.tool) => self.grants.tools.push(call.tool.clone()),
            Answer::AlwaysCommand => {
                let argv = || {
                    let argv = call.args.get("argv")?.as_array()?;
                    argv.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
                };
                let line = call.args.get("command").and_then(Value::as_str);
                let line = line.map(|line| vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()]);
                if let Some(command) = argv().or(line)
                    && !self.grants.commands.contains(&command)
                {
                    self.grants.commands.push(command);
                }
            }
            _ => {}
        }
    }

    fn deny(&mut self, call: Option<&Call>) {
        if let Some(hash) = call.map(Call::hash)
            && !self.grants.denied.contains(&hash)
        {
            self.grants.denied.push(hash);
        }
    }

    fn edited(&mut self, position: Position, call: &Call) {
        let misfit = self.tool(call.tool.as_str()).and_then(|tool| schema::misfit(&call.args, &tool.schema));
        let Some(open) = self.open_mut(position) else { return };
        if !matches!(open.state, CallState::Wanted(Permission::Answer { .. }) | CallState::Admitted { .. }) {
            return;
        }
        open.call = Some(Call { position, ..call.clone() });
        open.edited = true;
        if let Some(misfit) = misfit {
            let text =
                format!("the person changed the arguments, and they no longer fit: {misfit}; the call DID NOT RUN");
            open.ruling = Some(Ruling::Error { kind: CallErrorKind::BadArguments, text });
        }
    }

    fn reconciled(&mut self, position: Position, found: &Reconciled) {
        let Some(open) = self.open_mut(position) else { return };
        let CallState::Intended { stopped, permission, .. } = &open.state else { return };
        let (stopped, permission) = (*stopped, permission.clone());
        let hash = open.call.as_ref().map(Call::hash);
        match found {
            Reconciled::Happened { result } => self.done(position, result),
            // What a person allowed was for one run, and that is still to come.
            Reconciled::DidNotHappen => self.set(position, CallState::Wanted(permission)),
            Reconciled::Unknown { why } => {
                self.grants.uncertain.extend(hash);
                let doubt = if stopped { Doubt::Stopped } else { Doubt::Crashed { why: why.clone() } };
                self.set(position, CallState::Uncertain(doubt));
            }
        }
    }

    fn done(&mut self, position: Position, result: &CallResult) {
        let beside = self.batch.as_ref().map_or(1, |batch| batch.calls.len());
        let Some(open) = self.batch.as_ref().and_then(|batch| batch.call(position)) else { return };
        if matches!(open.state, CallState::Settled(_) | CallState::Parked(_) | CallState::Asleep) {
            return;
        }
        let by = match (&open.ruling, &open.state) {
            (Some(Ruling::Error { text, .. }), _) if text.starts_with("a duplicate") => SettledBy::Duplicate,
            (Some(Ruling::Error { kind: CallErrorKind::Denied | CallErrorKind::Refused, .. }), _) => SettledBy::No,
            (Some(Ruling::Error { .. }), _) => SettledBy::Ruling,
            _ => SettledBy::Run,
        };
        let shown::Shown { mut text, images } = shown::result(&open.source(), result, beside);
        let digest = images.iter().fold(digest(&text), |sofar, image| digest(&format!("{sofar} {}", image.hash)));
        // Anybody may have changed what it found before, so a repeat runs; what is known from before is only that nothing did.
        if by == SettledBy::Run
            && let Some(first) = self.same_before(open, digest)
        {
            text = format!("[unchanged since call_{}, the same call]\n{text}", first.0);
        }
        if open.edited
            && by == SettledBy::Run
            && let Some(call) = &open.call
        {
            text = format!("[the person changed the arguments; what ran is {}]\n{text}", call.args);
        }
        let settled = Settled {
            text,
            images,
            error: result.error.as_ref().map(|error| error.kind),
            outside: result.outside,
            result: digest,
            by,
        };
        if by == SettledBy::Run {
            self.deeds.note(open, result);
        }
        if open.kind == ToolKind::Todo
            && result.error.is_none()
            && let Some(call) = &open.call
        {
            self.todo = call.args.clone();
        }
        self.set(position, CallState::Settled(settled));
    }

    fn settle_no(&mut self, position: Position, kind: CallErrorKind, text: &str) {
        let Some(open) = self.open_mut(position) else { return };
        if matches!(open.state, CallState::Intended { .. }) {
            return;
        }
        let result = CallResult::failed(kind, text);
        let shown::Shown { text, images } = shown::result("", &result, 1);
        let digest = digest(&text);
        let settled = Settled { text, images, error: Some(kind), outside: false, result: digest, by: SettledBy::No };
        self.set(position, CallState::Settled(settled));
    }

    fn set(&mut self, position: Position, state: CallState) {
        if let Some(open) = self.open_mut(position) {
            open.state = state;
        }
    }

    /// Gives every open call a result that says what is known of it.
    pub(super) fn interrupt_calls(&mut self, why: &str, at: Timestamp) {
        let mut unknown = vec![];
        for open in self.batch.iter_mut().flat_map(|batch| &mut batch.calls).filter(|open| !open.is_settled()) {
            let is_unknown =
                matches!(open.state, CallState::Intended { repeatable: false, .. } | CallState::Uncertain(_));
            let text = if is_unknown {
                unknown.extend(open.call.as_ref().map(Call::hash));
                format!("[{why}; {}]", words::stays_unknown("it had begun"))
            } else {
                format!("[{why}; it did not run, or did not come to its end]")
            };
            open.state = CallState::Settled(Settled {
                result: digest(&text),
                text,
                images: vec![],
                error: Some(CallErrorKind::Stopped),
                outside: false,
                by: SettledBy::Interrupt,
            });
        }
        for hash in unknown {
            if !self.grants.uncertain.contains(&hash) {
                self.grants.uncertain.push(hash);
            }
        }
        self.enter_batch(at);
    }

    /// Moves a reply into the history once all its calls have results, and has the detectors look at it.
    pub(super) fn close_batch(&mut self, at: Timestamp) {
        if !self.batch.as_ref().is_some_and(|batch| batch.calls.iter().all(OpenCall::is_settled)) {
            return;
        }
        let seen = self.enter_batch(at);
        let usable = |seen: &Seen| !matches!(seen.by, SettledBy::Ruling);
        self.tally.unusable = if seen.iter().any(usable) { 0 } else { self.tally.unusable + 1 };
        if self.tally.halt.is_none() {
            self.verdict = self.detectors.judge(seen, self.tally.unusable);
        }
        self.hear_queue();
    }

    fn enter_batch(&mut self, at: Timestamp) -> Vec<Seen> {
        let Some(Batch { text, reasoning, usage, model, private, at: replied_at, calls }) = self.batch.take() else {
            return vec![];
        };
        let uses = calls.iter().map(OpenCall::as_use).collect();
        let reply = Message::Assistant { text, calls: uses, reasoning, usage, model, private, at: replied_at };
        self.log.push(reply, false);
        let mut seen = vec![];
        for open in calls {
            let CallState::Settled(settled) = &open.state else { continue };
            let words = settled.text.lines().next().unwrap_or_default();
            self.tally.last_result = Some(format!("`{}`: {}", open.name, words.chars().take(200).collect::<String>()));
            self.note_read(&open, settled);
            if settled.by != SettledBy::Duplicate {
                seen.push(Seen::of(&open, settled));
            }
            let CallState::Settled(Settled { text, images, error, outside, .. }) = open.state else { continue };
            let message =
                Message::Tool { position: open.position, text, is_error: error.is_some(), outside, images, at };
            self.log.push(message, outside);
        }
        seen
    }

    /// The earlier call that found the very same.
    fn same_before(&self, open: &OpenCall, result: BlobHash) -> Option<Position> {
        let hash = open.call.as_ref()?.hash();
        let (_, first, before) = self.reads.iter().find(|(call, ..)| *call == hash)?;
        (*before == result).then_some(*first)
    }

    fn note_read(&mut self, open: &OpenCall, settled: &Settled) {
        let reads = open.risk.is_repeatable() && settled.by == SettledBy::Run && settled.error.is_none();
        let Some(call) = open.call.as_ref().filter(|_| reads) else { return };
        let hash = call.hash();
        let first = self.same_before(open, settled.result).unwrap_or(open.position);
        self.reads.retain(|(known, ..)| *known != hash);
        if self.reads.len() == READS {
            self.reads.remove(0);
        }
        self.reads.push((hash, first, settled.result));
    }
}
