//! Having an agent's calls judged, and running them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use ow_model::{Answer, BlobHash, Call, CallResult, Fact, Message, Position, Rule, SessionOffer};
use ow_policy::{Authorized, Facts, Refusal, Situation, Verdict};
use ow_store::{NewItem, StoreError};
use ow_turn::{AgentTurn, Doubt, Permission};
use serde_json::json;
use tracing::info;

use super::{AgentCourse, Onward};
use crate::command::Command;
use crate::engine::{Engine, Standing};
use crate::live::LiveKind;
use crate::session::workspace::Brought;
use crate::session::{CallEnd, Clearance, Question, Ready, Session, Surroundings, blocking};
use crate::{Say, Stop, words};

/// Calls that run side by side: each has a process of its own. The others wait for their turn.
const AT_ONCE: usize = 8;

/// A call that was let through.
pub(super) struct Cleared {
    call: Authorized<Call>,
    facts: Facts,
    clearance: Clearance,
    /// By the workspaces it was judged.
    brought: Arc<Brought>,
}

/// What became of a call at admission.
enum Admission {
    Cleared(Cleared),
    /// The call ends here, or is judged anew: this fact says how.
    Settled(Fact),
    Asks(Facts, Question),
    /// owd is stopping; nothing was decided.
    Left,
}

impl AgentCourse {
    /// Has calls judged one by one; those that ask are parked together.
    pub(super) async fn admit(&mut self, calls: Vec<(Call, Permission)>, stop: &Stop) -> Result<Onward, StoreError> {
        let mut asking: Vec<(Position, NewItem)> = vec![];
        for (call, permission) in calls {
            let position = call.position;
            match self.judge_with_hooks(call.clone(), &permission, stop).await? {
                Admission::Left => return Ok(Onward::Continue),
                Admission::Settled(fact) => self.record(fact),
                Admission::Cleared(cleared) => {
                    let Clearance { rule, by_rule, repeatable } = cleared.clearance.clone();
                    self.record(Fact::Admitted { position, rule, by_rule, repeatable });
                    self.cleared.insert(position, cleared);
                }
                Admission::Asks(..) if self.session.is_nested() => self.record(asks_nobody(position)),
                Admission::Asks(facts, question) => {
                    let title = words::agent_title(self.spec(), &call, question.category);
                    let item = self.session.approval(title, call, &facts, question).await;
                    asking.push((position, item));
                }
            }
        }
        if asking.is_empty() {
            return Ok(Onward::Continue);
        }
        self.park(asking, stop).await
    }

    /// Policy's verdict; of a call that it lets through the person's hooks are asked as well.
    async fn judge_with_hooks(
        &mut self,
        call: Call,
        permission: &Permission,
        stop: &Stop,
    ) -> Result<Admission, StoreError> {
        let admission = self.judge(call, permission).await?;
        let Admission::Cleared(cleared) = admission else { return Ok(admission) };
        let position = cleared.call.get().position;
        Ok(match self.session.ask_hooks(cleared.call.get(), &cleared.brought, stop).await {
            Say::Pass => Admission::Cleared(cleared),
            Say::Deny { why } => Admission::Settled(Fact::Refused { position, rule: why }),
            // A person has said yes to this very call.
            Say::Ask { .. } if matches!(permission, Permission::Answer { .. }) => Admission::Cleared(cleared),
            Say::Ask { why: reason } => {
                let category = words::category(cleared.facts.risk);
                Admission::Asks(
                    cleared.facts,
                    Question { category, reason, rule_offer: None, session_offer: SessionOffer::default() },
                )
            }
            // Nothing was said: the session is being left, and the call is judged anew when it goes on.
            Say::Stopped => Admission::Left,
        })
    }

    async fn judge(&mut self, call: Call, permission: &Permission) -> Result<Admission, StoreError> {
        let position = call.position;
        let engine = Arc::clone(self.engine());
        let untried = |result| Admission::Settled(Fact::Done { position, result, took_ms: 0 });
        let bad = |why: String| untried(CallResult::failed(ow_model::CallErrorKind::BadArguments, why));
        let Some(tool) = engine.toolbox.tool(&call.tool) else {
            return Ok(bad(format!("there is no tool `{}`", call.tool)));
        };
        if let Permission::Answer { resolution, .. } = permission
            && let Answer::Edited { args } = &resolution.answer
            && *args != call.args
        {
            return Ok(Admission::Settled(Fact::Edited { position, call: Call { args: args.clone(), ..call } }));
        }
        if let Err(why) = tool.check(&call.args) {
            return Ok(bad(why));
        }
        if let Err(error) = fs::create_dir_all(&self.session.place.run_folder) {
            return Ok(bad(format!("cannot make {}: {error}", self.session.place.run_folder.display())));
        }
        let call = match self.with_kept_text(call).await? {
            Ok(call) => call,
            Err(why) => return Ok(bad(why)),
        };
        let (facts, brought) = self.session.look(&call).await;
        let facts = match facts {
            Ok(facts) => facts,
            Err(error) => return Ok(untried(CallResult::failed(error.kind, error.message))),
        };
        let standing = brought.judged_by(engine.standing());
        let now = engine.now();
        let rules = engine.store.rules(Some(&self.session.spec.name), now).await?;
        let bound = match permission {
            Permission::Answer { item, resolution } if !matches!(resolution.answer, Answer::Edited { .. }) => {
                Some(*item)
            }
            _ => None,
        };
        let binding = match bound {
            Some(item) => self.session.binding_of(item).await?,
            None => ow_policy::binding_of(&facts),
        };
        // A folder that was granted for reading is none to write or to run something in.
        let roots = if facts.risk.is_repeatable() { self.session.place.roots.clone() } else { self.writable_roots() };
        let situation = Situation { roots: &roots, ..self.situation(&rules, &standing) };
        let admission = match permission {
            Permission::Policy => match ow_policy::judge(&call, &facts, &situation) {
                Verdict::Allow { rule, by_rule } => match ow_policy::authorize(call, &facts, &situation) {
                    Ok(cleared) => Self::clear(cleared, facts, brought, rule, by_rule),
                    Err(verdict) => Admission::Settled(Fact::Refused { position, rule: verdict.rule().to_owned() }),
                },
                Verdict::Deny { rule, why } => {
                    info!(%position, %rule, "call refused");
                    self.session.note_refused_address(position, &facts, &rule, &why);
                    Admission::Settled(Fact::Refused { position, rule: format!("{rule}: {why}") })
                }
                Verdict::Ask { rule, why, category, rule_offer } => {
                    let session_offer = ow_policy::session_offer(&call, &facts, &situation);
                    let reason = format!("{rule}: {why}");
                    Admission::Asks(facts, Question { category, reason, rule_offer, session_offer })
                }
            },
            Permission::Answer { item, resolution } => {
                match ow_policy::authorize_answered(call, &facts, &binding, &resolution.answer, &situation) {
                    Ok(cleared) => {
                        let rule = format!("answered by {}", resolution.by.person.0);
                        Self::clear(cleared, facts, brought, rule, None)
                    }
                    Err(Refusal::Changed(why)) => {
                        info!(%position, %item, "what was approved has changed; asking again");
                        Admission::Settled(Fact::Voided { position, item: *item, why })
                    }
                    Err(refusal) => {
                        if let Refusal::Denied { rule, why } = &refusal {
                            self.session.note_refused_address(position, &facts, rule, why);
                        }
                        Admission::Settled(Fact::Refused { position, rule: refusal.to_string() })
                    }
                }
            }
        };
        Ok(admission)
    }

    fn clear(
        call: Authorized<Call>,
        facts: Facts,
        brought: Brought,
        rule: String,
        by_rule: Option<ow_model::RuleId>,
    ) -> Admission {
        let repeatable = facts.risk.is_repeatable() || rule.starts_with("safe: ");
        let clearance = Clearance { rule, by_rule, repeatable };
        Admission::Cleared(Cleared { call, facts, clearance, brought: brought.into() })
    }

    /// Whether what the session does may be drawn from text of outside.
    fn is_tainted(&self) -> bool {
        self.is_born_tainted || self.session.turn.holds_outside()
    }

    fn situation<'a>(&'a self, rules: &'a [Rule], standing: &'a Standing) -> Situation<'a> {
        let (session, turn) = (&self.session, &self.session.turn);
        Situation {
            task: Some(&session.spec.name),
            mode: turn.mode(),
            roots: &session.place.roots,
            run_folder: Some(&session.place.run_folder),
            rules,
            step: None,
            tainted: self.is_tainted(),
            denied: turn.denied(),
            uncertain: turn.uncertain(),
            task_http: &session.spec.http_allow,
            named_hosts: &self.equipment.named_hosts,
            always_tools: turn.always_tools(),
            always_commands: turn.always_commands(),
            settings: &standing.settings,
            now: session.engine.now(),
        }
    }

    /// Runs the first of admitted calls: more than one side by side only where none has a side effect. The turn asks
    /// again for those that are left.
    pub(super) async fn execute(&mut self, calls: Vec<(Call, Permission)>, stop: &Stop) -> Result<Onward, StoreError> {
        let mut ready: Vec<(Ready, Arc<Brought>)> = vec![];
        for (call, permission) in calls.into_iter().take(AT_ONCE) {
            let position = call.position;
            // A worker that took the session over has the call judged once more.
            let cleared = match self.cleared.remove(&position) {
                Some(cleared) => cleared,
                None => match self.judge_with_hooks(call.clone(), &permission, stop).await? {
                    Admission::Cleared(cleared) => cleared,
                    Admission::Left => return Ok(Onward::Continue),
                    Admission::Settled(fact) => {
                        self.record(fact);
                        continue;
                    }
                    Admission::Asks(..) if self.session.is_nested() => {
                        self.record(asks_nobody(position));
                        continue;
                    }
                    Admission::Asks(facts, question) => {
                        let title = words::agent_title(self.spec(), &call, question.category);
                        let item = self.session.approval(title, call, &facts, question).await;
                        return self.park(vec![(position, item)], stop).await;
                    }
                },
            };
            // Judged again, it may have an effect that it did not have by then: such a call runs by itself.
            let is_alone = |clearance: &Clearance| !clearance.repeatable;
            let any_alone = || ready.iter().any(|(made, _)| is_alone(&made.clearance));
            if !ready.is_empty() && (is_alone(&cleared.clearance) || any_alone()) {
                self.cleared.insert(position, cleared);
                break;
            }
            let Cleared { call, facts, clearance, brought } = cleared;
            let standing = brought.judged_by(self.engine().standing());
            let surroundings = Surroundings {
                standing: &standing,
                tainted: self.is_tainted(),
                named_hosts: &self.equipment.named_hosts,
            };
            match self.session.prepare(call, facts, clearance, surroundings).await {
                Ok(made) => ready.push((made, brought)),
                Err(result) => self.session.untried(position, result),
            }
        }
        let mut begun = vec![];
        let mut calls = vec![];
        for (call, brought) in ready {
            let (position, shown) = (call.call().position, call.call().clone());
            // False: the rule that let it through is used up by now; it is judged again.
            if self.session.intend(&call, stop).await? {
                self.tell(
                    LiveKind::ToolStarted,
                    || json!({ "position": position, "tool": &shown.tool, "arguments": &shown.args }),
                );
                // What a call with side effects leaves of the workspaces is looked at anew.
                calls.push((shown, Some(brought).filter(|_| call.clearance.repeatable)));
                begun.push((position, call));
            }
        }
        let engine = Arc::clone(self.engine());
        let lasting = begun.iter().any(|(_, call)| !call.clearance.repeatable);
        let inner = Stop::new();
        // At the journal's length now that all have begun.
        let watchers = self.session.watchers();
        let running: Vec<_> = begun
            .into_iter()
            .map(|(position, call)| (position, call.watched_by(watchers.clone())))
            .map(|(position, call)| carry_out(Arc::clone(&engine), position, call, inner.clone()))
            .collect();
        let mut all = std::pin::pin!(futures_util::future::join_all(running));
        let mut interrupts = vec![];
        let ended = loop {
            tokio::select! {
                ended = &mut all => break ended,
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
        };
        for (position, ended) in ended {
            let (end, took_ms) = ended?;
            // A person who interrupts a turn knows that the call is incomplete; so does the model.
            let end = match end {
                CallEnd::Stopped if !interrupts.is_empty() => CallEnd::Done(CallResult::failed(
                    ow_model::CallErrorKind::Stopped,
                    "interrupted by the person in the middle: it may be incomplete",
                )),
                end => end,
            };
            let end = match end {
                CallEnd::Done(result) if self.outside_texts.remove(&position) => {
                    CallEnd::Done(CallResult { outside: true, ..result })
                }
                end => end,
            };
            let result = end.result().cloned();
            self.session.record_end(position, end, took_ms);
            let call = calls.iter().find(|(call, _)| call.position == position);
            if let (Some(result), Some((call, brought))) = (result, call) {
                self.session.tell_hooks(call, &result, brought.as_deref(), stop).await?;
            }
        }
        if lasting {
            // What was judged before it may mean something else by now.
            self.cleared.clear();
            self.session.commit(stop).await?;
        }
        self.carry_interrupt(interrupts, stop).await?;
        Ok(Onward::Continue)
    }

    pub(super) async fn ask_uncertain(&mut self, call: Call, doubt: Doubt, stop: &Stop) -> Result<Onward, StoreError> {
        let (category, reason) = words::doubt(doubt);
        let facts = self.session.look(&call).await.0.unwrap_or_else(|_| words::unseen());
        let title = words::agent_title(self.spec(), &call, category);
        let position = call.position;
        let item = self
            .session
            .approval(
                title,
                call,
                &facts,
                Question { category, reason, rule_offer: None, session_offer: SessionOffer::default() },
            )
            .await;
        self.park(vec![(position, item)], stop).await
    }

    /// Folders that the person granted in mid-session.
    pub(super) fn apply_grants(&mut self) {
        let granted: Vec<PathBuf> = self.session.turn.granted_roots().iter().map(|(path, _)| path.clone()).collect();
        for path in granted {
            if !self.session.place.roots.contains(&path) {
                self.session.place.roots.push(path);
            }
        }
    }

    fn writable_roots(&self) -> Vec<PathBuf> {
        let is_granted =
            |root: &PathBuf| self.session.turn.granted_roots().iter().all(|(path, writable)| path != root || *writable);
        let own = &self.session.spec.roots;
        self.session.place.roots.iter().filter(|root| own.contains(root) || is_granted(root)).cloned().collect()
    }

    /// A call that reads the whole of an earlier result by the path that the result names, `blob:<hash>`, made one that
    /// reads a copy of it in the run's own folder. What no result of this session names is not found.
    async fn with_kept_text(&mut self, call: Call) -> Result<Result<Call, String>, StoreError> {
        let Some(hash) = call.args.get("path").and_then(|path| path.as_str()?.strip_prefix("blob:")) else {
            return Ok(Ok(call));
        };
        let missing = || format!("`blob:{hash}` is named by no result of this session");
        let Ok(wanted) = hash.parse::<BlobHash>() else { return Ok(Err(missing())) };
        let name = format!("blob:{wanted}");
        let named = self.session.turn.history().iter().filter_map(|message| match &**message {
            Message::Tool { text, outside, .. } if text.contains(&name) => Some(*outside),
            _ => None,
        });
        let named: Vec<bool> = named.collect();
        if named.is_empty() {
            return Ok(Err(missing()));
        }
        let Some(bytes) = self.engine().store.blob(wanted).await? else {
            return Ok(Err(format!("the text of `blob:{hash}` is gone")));
        };
        let path = self.session.place.run_folder.join(format!("kept-{wanted}.txt"));
        let copy = path.clone();
        if let Err(error) = blocking(move || write_anew(&copy, &bytes)).await {
            return Ok(Err(format!("cannot write {}: {error}", path.display())));
        }
        if named.contains(&true) {
            self.outside_texts.insert(call.position);
        }
        let mut call = call;
        call.args["path"] = path.to_string_lossy().into();
        Ok(Ok(call))
    }
}

/// Writes a file that replaces whatever has the name: a link that lies there is not followed.
pub(super) fn write_anew(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)?.write_all(bytes)
}

/// A sub-agent's call that would have to ask.
fn asks_nobody(position: Position) -> Fact {
    Fact::Refused { position, rule: "sub-agent: it may only read, and asks nobody".into() }
}

type CarriedOut = (Position, Result<(CallEnd, u64), StoreError>);

fn carry_out(engine: Arc<Engine>, position: Position, call: Ready, stop: Stop) -> BoxFuture<'static, CarriedOut> {
    Box::pin(async move { (position, Session::<AgentTurn>::carry_out(&engine, call, &stop).await) })
}
