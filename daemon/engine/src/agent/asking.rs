//! Waiting for a person, and handing work to a sub-agent.

use ow_model::{Call, CallErrorKind, CallResult, Fact, ItemId, ItemKind, Outcome, Position};
use ow_store::{NewItem, StoreError};
use serde_json::json;
use tokio::sync::mpsc;

use super::{AgentCourse, Onward, Report};
use crate::command::Command;
use crate::live::LiveKind;
use crate::session::Handed;
use crate::{Stop, words};

impl AgentCourse {
    /// Parks the session; the worker is free.
    pub(super) async fn park(&mut self, items: Vec<(Position, NewItem)>, stop: &Stop) -> Result<Onward, StoreError> {
        let titles: Vec<String> = items.iter().map(|(_, item)| item.title.clone()).collect();
        self.session.park(items, stop).await?;
        self.tell(LiveKind::Waiting, || json!({ "titles": titles }));
        Ok(Onward::Left)
    }

    /// Parks on a question, a plan, a folder or a budget.
    pub(super) async fn ask(&mut self, position: Position, kind: ItemKind, stop: &Stop) -> Result<Onward, StoreError> {
        if self.session.is_nested() {
            let why = "a sub-agent asks nobody; report what is unclear";
            self.session.untried(position, CallResult::failed(CallErrorKind::Refused, why));
            return Ok(Onward::Continue);
        }
        let kind = match self.with_folder(kind).await {
            Ok(kind) => kind,
            Err(why) => {
                self.session.untried(position, CallResult::failed(CallErrorKind::Refused, why));
                return Ok(Onward::Continue);
            }
        };
        let title = words::asking(self.spec(), &kind);
        let item = self.session.item(title, kind);
        self.park(vec![(position, item)], stop).await
    }

    /// The journal waits for items whose answers it does not have.
    pub(super) async fn wait(&mut self, items: Vec<(Position, ItemId)>, stop: &Stop) -> Result<Onward, StoreError> {
        if self.session.look_at_all(items, stop).await? { Ok(Onward::Left) } else { Ok(Onward::Continue) }
    }

    /// Runs a sub-agent to its end: it may only read, has a history of its own, and only its report comes back. What it
    /// does and uses is in this session's journal.
    pub(super) async fn delegate(&mut self, call: Call, goal: String, stop: &Stop) -> Result<Onward, StoreError> {
        let position = call.position;
        if self.session.is_nested() {
            let why = "a sub-agent has none of its own";
            self.session.untried(position, CallResult::failed(CallErrorKind::Refused, why));
            return Ok(Onward::Continue);
        }
        self.tell(LiveKind::ToolStarted, || json!({ "position": position, "tool": call.tool, "arguments": call.args }));
        let began = tokio::time::Instant::now();
        let inner = Stop::new();
        let mut interrupts = vec![];
        let (outer, mut handed) = mpsc::channel(1);
        let of_it = |fact| Fact::Delegated { position, fact: Box::new(fact) };
        let Report { outcome, text: report, outside, facts } = {
            let mut nested = Self::nested(self, position, goal, outer).follow_nested(&inner);
            loop {
                tokio::select! {
                    report = &mut nested => break report?,
                    Some(Handed { facts, used, kept }) = handed.recv() => {
                        let facts = facts.into_iter().map(of_it).collect();
                        let is_kept = self.session.keep(facts, used, stop).await?;
                        // Where nobody waits for it any more, it is kept all the same.
                        let _unheard = kept.send(is_kept);
                    }
                    () = stop.token().cancelled(), if inner.reason().is_none() => inner.interrupt(),
                    told = self.commands.recv() => match told.command {
                        Command::Interrupt { .. } => {
                            interrupts.push(told);
                            inner.interrupt();
                        }
                        Command::SetMode(_) | Command::SetModel(_) | Command::Compact => {
                            self.carry(told, None, stop).await?;
                        }
                    },
                }
            }
        };
        for fact in facts {
            self.record(of_it(fact));
        }
        if inner.reason().is_some() {
            // Nothing had an effect: it begins anew when the session goes on.
            self.carry_interrupt(interrupts, stop).await?;
            return Ok(Onward::Continue);
        }
        let report = report.unwrap_or_default();
        let mut result = match outcome {
            Outcome::Succeeded => CallResult::ok(json!({ "report": report })),
            Outcome::Failed { message, .. } if !report.is_empty() => {
                CallResult::ok(json!({ "report": report, "incomplete": message }))
            }
            other => CallResult::failed(CallErrorKind::Failed, words::sub_agent_failed(&other)),
        };
        // What it read speaks through its report.
        result.outside = outside;
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.record(Fact::Done { position, result, took_ms });
        Ok(Onward::Continue)
    }
}
