//! What every kind of turn does with a call: facts, its way into a helper, its end.

use std::sync::Arc;

use ow_model::{
    Binding, BoundFile, Call, CallError, CallErrorKind, CallResult, Fact, Intent, ItemId, ItemKind, Position,
    Reconciled, RefusedAddress, Risk, RuleId, Span,
};
use ow_policy::{Action, Authorized, Facts};
use ow_store::StoreError;
use ow_tool::{CallOf, DaemonTool, Helper, HelperEnd, Job, Limits, Net, Place, Runner};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::workspace::Brought;
use super::{Session, Turn, blocking, millis, persist};
use crate::engine::{Engine, Standing};
use crate::live::{CallWatchers, Watchers};
use crate::{Stop, words};

/// By what a call was let through.
#[derive(Clone, Debug)]
pub(crate) struct Clearance {
    pub(crate) rule: String,
    pub(crate) by_rule: Option<RuleId>,
    /// It has no side effect, so that after a crash it may simply run again.
    pub(crate) repeatable: bool,
}

/// What a call runs in, beside its session.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) standing: &'a Standing,
    /// The call may be drawn from text of outside.
    pub(crate) tainted: bool,
    /// Hosts that a person or the task mentions.
    pub(crate) named_hosts: &'a [String],
}

impl Surroundings<'_> {
    /// The only hosts that a redirect may lead the call to; none: any public one. To fetch a page is to read: only where
    /// text of outside may have chosen the way, it leads no further than people wanted.
    fn hosts(self, facts: &Facts, allow: &[String]) -> Option<Vec<String>> {
        let is_fetch = facts.risk == Risk::Read && matches!(facts.action, Action::Url { .. });
        match (is_fetch, self.tainted) {
            (true, false) => None,
            (true, true) => Some(allow.iter().chain(self.named_hosts).cloned().collect()),
            (false, _) => Some(allow.to_vec()),
        }
    }
}

/// A cleared call with all that it needs to run.
pub(crate) struct Ready {
    cleared: Authorized<Call>,
    pub(crate) clearance: Clearance,
    way: Way,
}

enum Way {
    Daemon(Arc<dyn DaemonTool>, CallOf),
    Helper(Box<(Helper, Job)>),
}

/// What became of a call.
pub(crate) enum CallEnd {
    Done(CallResult),
    Stopped,
    /// Its process died, or its answer was lost; the journal says `Intended`.
    Lost(String),
}

impl CallEnd {
    /// A tool that does not know whether its call took effect has no result to give.
    fn unless_lost(self, repeatable: bool) -> Self {
        match self {
            Self::Done(CallResult { error: Some(CallError { kind: CallErrorKind::Lost, message }), .. })
                if !repeatable =>
            {
                Self::Lost(message)
            }
            end => end,
        }
    }

    pub(crate) const fn result(&self) -> Option<&CallResult> {
        match self {
            Self::Done(result) => Some(result),
            Self::Stopped | Self::Lost(_) => None,
        }
    }
}

impl Ready {
    pub(crate) const fn call(&self) -> &Call {
        self.cleared.get()
    }

    /// Lets them hear what the call prints while it runs.
    pub(crate) fn watched_by(mut self, watchers: Option<Watchers>) -> Self {
        let position = self.call().position;
        if let (Way::Helper(way), Some(watchers)) = (&mut self.way, watchers) {
            way.1.audience = Some(Arc::new(CallWatchers { watchers, position }));
        }
        self
    }
}

impl<T: Turn> Session<T> {
    /// Looks at the world once for all that is decided of a call, off the runtime's threads: a hung file system must hold
    /// up this run only. With what the call would touch comes what the session's workspaces bring just then.
    pub(crate) async fn look(&self, call: &Call) -> (Result<Facts, CallError>, Brought) {
        let (engine, call, place) = (Arc::clone(&self.engine), call.clone(), self.place.clone());
        blocking(move || {
            let facts = match engine.toolbox.tool(&call.tool) {
                Some(tool) => tool.facts(&call, &place),
                None => Err(CallError { kind: CallErrorKind::BadArguments, message: "no such tool".into() }),
            };
            (facts, Brought::of(&place.roots, &engine.trust))
        })
        .await
    }

    async fn note_of(&self, call: &Call) -> serde_json::Value {
        let (engine, call, place) = (Arc::clone(&self.engine), call.clone(), self.place.clone());
        blocking(move || engine.toolbox.tool(&call.tool).map_or_else(Default::default, |tool| tool.note(&call, &place)))
            .await
    }

    pub(crate) async fn binding_of(&self, item: ItemId) -> Result<Binding, StoreError> {
        let kind = self.engine.store.item(item).await?.map(|item| item.kind);
        Ok(match kind {
            Some(ItemKind::Approval { binding, .. }) => binding,
            Some(_) | None => Binding::default(),
        })
    }

    /// Gets ready what a cleared call runs in.
    ///
    /// # Errors
    ///
    /// The result that it ends with because it cannot be tried.
    pub(crate) async fn prepare(
        &self,
        cleared: Authorized<Call>,
        facts: Facts,
        clearance: Clearance,
        surroundings: Surroundings<'_>,
    ) -> Result<Ready, CallResult> {
        let standing = surroundings.standing;
        let call = cleared.get();
        let way = match self.engine.toolbox.runner(&call.tool) {
            Some(Runner::Daemon(tool)) => {
                let (position, now) = (call.position, self.engine.clock.now());
                let of = CallOf {
                    task: Some(self.spec.name.clone()),
                    inbox: self.spec.inbox.clone(),
                    run: self.run.id,
                    position,
                    now,
                    enclosed: enclosed(facts),
                };
                Way::Daemon(Arc::clone(tool), of)
            }
            Some(Runner::Helper) | None => {
                let helper = self.engine.helpers.ready().await.map_err(|error| {
                    CallResult::failed(CallErrorKind::Failed, format!("no helper process: {error}"))
                })?;
                let allow = self.http_allow(standing);
                let hosts = surroundings.hosts(&facts, &allow);
                let job = Job {
                    run: self.run.id,
                    place: Place { outside: self.turn.holds_outside(), ..self.place.clone() },
                    limits: self.limits(),
                    facts,
                    secrets: Arc::clone(&standing.secrets),
                    net: Net { allow, own: standing.settings.own_addresses.clone(), hosts },
                    protected: standing.settings.protected.clone(),
                    audience: None,
                };
                Way::Helper(Box::new((helper, job)))
            }
        };
        Ok(Ready { cleared, clearance, way })
    }

    /// Journals that a call was let through and is about to take effect. If it has an effect, or uses up a rule, this
    /// is durable when it has returned.
    ///
    /// False, and nothing is written, if the rule that let it through is gone or used up by now: the call must be
    /// judged again.
    pub(crate) async fn intend(&mut self, ready: &Ready, stop: &Stop) -> Result<bool, StoreError> {
        let call = ready.call();
        let Clearance { rule, by_rule, repeatable } = ready.clearance.clone();
        let position = call.position;
        let intent = match &ready.way {
            Way::Daemon(..) if repeatable => Intent::default(),
            Way::Daemon(..) => Intent { note: self.note_of(call).await, ..Intent::default() },
            Way::Helper(way) => Intent {
                helper_pid: Some(way.0.pid()),
                helper_start: way.0.start_ticks(),
                boot_id: way.0.boot_id(),
                note: if repeatable { serde_json::Value::Null } else { self.note_of(call).await },
            },
        };
        debug!(%position, %rule, "call allowed");
        let facts = [
            Fact::Allowed { position, rule, by_rule },
            Fact::Intended { position, hash: call.hash(), repeatable, intent },
        ];
        if repeatable && by_rule.is_none() {
            for fact in facts {
                self.record(fact);
            }
            return Ok(true);
        }
        self.keep(facts.into(), by_rule, stop).await
    }

    /// Runs a call that was journaled as intended. Needs nothing of the session, so that calls may run side by side.
    pub(crate) async fn carry_out(engine: &Engine, ready: Ready, stop: &Stop) -> Result<(CallEnd, u64), StoreError> {
        let began = Instant::now();
        let repeatable = ready.clearance.repeatable;
        let end = match ready.way {
            Way::Daemon(tool, of) => CallEnd::Done(tool.run(&ready.cleared, &of).await),
            Way::Helper(way) => {
                let (helper, job) = *way;
                let time = job.limits.time;
                match helper.run(&ready.cleared, job, stop.token().clone(), engine.grace).await {
                    HelperEnd::Done(mut result, whole) => {
                        for (field, text) in whole {
                            let hash = persist(stop, || engine.store.put_blob(&text)).await?;
                            result.kept.push((field, hash));
                        }
                        CallEnd::Done(result)
                    }
                    HelperEnd::TimedOut => CallEnd::Done(CallResult::failed(
                        CallErrorKind::TimedOut,
                        format!("it took longer than {time}"),
                    )),
                    HelperEnd::Stopped => CallEnd::Stopped,
                    HelperEnd::Lost(why) if repeatable => CallEnd::Done(CallResult::failed(
                        CallErrorKind::Failed,
                        format!("the call's process died: {why}"),
                    )),
                    HelperEnd::Lost(why) => CallEnd::Lost(why),
                }
            }
        };
        Ok((end.unless_lost(repeatable), millis(began.elapsed())))
    }

    /// Folds in what became of a call. A lost one stays `Intended`: what became of it must be found out.
    pub(crate) fn record_end(&mut self, position: Position, end: CallEnd, took_ms: u64) {
        match end {
            CallEnd::Done(result) => {
                if let Some(address) = RefusedAddress::of(&result) {
                    self.record(Fact::AddressRefused { position, address });
                }
                self.record(Fact::Done { position, result, took_ms });
            }
            CallEnd::Stopped => self.record(Fact::Stopped { position }),
            CallEnd::Lost(why) => {
                warn!(%position, %why, "what became of a call is not known");
                self.lost = Some((position, why));
            }
        }
    }

    /// Puts on record that the URL guard refused the call, if it did.
    pub(crate) fn note_refused_address(&mut self, position: Position, facts: &Facts, rule: &str, why: &str) {
        if let Action::Url { url, .. } = &facts.action
            && rule == ow_policy::ADDRESS_BLOCK
        {
            let address = RefusedAddress { url: ow_policy::url::on_record(url), hop: 0, why: why.into() };
            self.record(Fact::AddressRefused { position, address });
        }
    }

    /// The call ends without having been tried.
    pub(crate) fn broken(&mut self, position: Position, why: String) {
        self.untried(position, CallResult::failed(CallErrorKind::BadArguments, why));
    }

    pub(crate) fn untried(&mut self, position: Position, result: CallResult) {
        self.record(Fact::Done { position, result, took_ms: 0 });
    }

    /// Makes sure that nothing of a call lives whose end is not in the journal, and finds out what it did.
    pub(crate) async fn reconcile(&mut self, call: Call, intent: Intent, repeatable: bool) {
        let position = call.position;
        if let Some(pid) = intent.helper_pid {
            let (start, boot) = (intent.helper_start, intent.boot_id.clone());
            let leftover = blocking(move || ow_tool::end_leftover(pid, start, boot.as_deref())).await;
            debug!(%position, ?leftover, "made sure that nothing of the call lives");
        }
        let found = if repeatable {
            Reconciled::DidNotHappen
        } else {
            let (engine, place) = (Arc::clone(&self.engine), self.place.clone());
            blocking(move || match engine.toolbox.tool(&call.tool) {
                Some(tool) => tool.reconcile(&call, &intent.note, &place),
                None => Reconciled::Unknown { why: format!("there is no tool `{}` any more", call.tool) },
            })
            .await
        };
        let found = match (found, self.lost.take()) {
            (Reconciled::Unknown { why }, Some((lost, how))) if lost == position => {
                Reconciled::Unknown { why: format!("{how}; {why}") }
            }
            (found, _) => found,
        };
        info!(%position, found = words::found(&found), "looked at what became of a call");
        self.record(Fact::Reconciled { position, found });
    }

    fn limits(&self) -> Limits {
        let most = self.spec.call_timeout;
        let time = self.time_left().map_or(most, |left| most.min(left).max(Span::from_millis(1)));
        Limits { time, ..self.engine.limits }
    }

    pub(crate) fn http_allow(&self, standing: &Standing) -> Vec<String> {
        standing.settings.http_allow.iter().chain(&self.spec.http_allow).cloned().collect()
    }
}

fn enclosed(facts: Facts) -> Vec<BoundFile> {
    match facts.action {
        Action::Enclosed { files, .. } => files,
        Action::Plain | Action::Command { .. } | Action::Paths { .. } | Action::Url { .. } => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_is_led_to_any_public_host_until_text_of_outside_may_have_chosen_the_way() {
        let standing = Standing {
            settings: ow_policy::Settings::default(),
            secrets: Arc::default(),
            agents: None,
            kits: crate::agent::Kits::default().into(),
        };
        let named_hosts = ["named.example".to_owned()];
        let allow = ["allowed.example".to_owned()];
        let led = |risk: Risk, tainted: bool| {
            let url = "https://a.example/".parse().expect("a URL");
            let action = Action::Url { method: "GET".into(), url, has_body: false, own_headers: false };
            let surroundings = Surroundings { standing: &standing, tainted, named_hosts: &named_hosts };
            surroundings.hosts(&Facts { risk, action }, &allow)
        };
        assert_eq!(led(Risk::Read, false), None);
        assert_eq!(led(Risk::Read, true), Some(vec!["allowed.example".into(), "named.example".into()]));
        for tainted in [false, true] {
            assert_eq!(led(Risk::External, tainted), Some(allow.to_vec()), "to send something is another thing");
        }
    }
}
