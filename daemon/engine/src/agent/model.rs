//! Asking a model.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use ow_model::{Fact, Finish, Message, Purpose, Sent, SentMiddle, Usage};
use ow_provider::{
    Asking, Completion, CompletionError, Delta, ModelError, Progress, Prompt, Request, ToolChoice, Tools,
};
use ow_store::StoreError;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::sent::LONGEST_INLINE;
use super::{AgentCourse, Onward, prompt};
use crate::Stop;
use crate::command::{Command, Told};
use crate::live::{LiveKind, Watchers};
use crate::session::persist;

/// A model call as the turn wants it.
pub(super) struct Ask {
    pub(super) purpose: Purpose,
    pub(super) reserved: Usage,
    pub(super) with_tools: bool,
    pub(super) tail: Option<String>,
    pub(super) max_output: Option<u32>,
    pub(super) instruction: Option<String>,
}

/// What waiting for a completion came to.
enum Waited {
    Answered(Result<Completion, CompletionError>),
    /// The person, or owd, wants the call to end: what to do then.
    Told(Told),
    Stopped,
}

impl AgentCourse {
    pub(super) async fn call_model(&mut self, ask: Ask, stop: &Stop) -> Result<Onward, StoreError> {
        let (Some(router), Some(resolved)) = (self.equipment.router.clone(), self.model()) else {
            if ask.purpose == Purpose::Summary {
                let model = String::new();
                self.record(Fact::Asked { model, purpose: ask.purpose, reserved: Usage::default(), sent: None });
            }
            self.record(Self::no_model());
            return Ok(Onward::Continue);
        };
        for warning in &resolved.warnings {
            self.warn_once(warning.to_string());
        }
        let model = resolved.name();
        let has_limit = self.spec().agent.as_ref().is_some_and(|agent| agent.budget.cost_micros.is_some());
        if has_limit && resolved.capabilities.price.is_none() {
            self.warn_once(format!(
                "the price of {model} is not known, so no budget in money holds; give it one in models.toml"
            ));
        }
        let mut goals = vec![model.clone()];
        goals.extend(self.equipment.failover.iter().cloned());
        // Where a reply was lost, what waited behind it is heard once another is asked for: what goes out is known then.
        let made = if self.session.turn.is_asking() { None } else { Some(self.request(&ask, stop).await?) };
        let place = self.session.pending.len();
        let asked = |sent| Fact::Asked { model: model.clone(), purpose: ask.purpose, reserved: ask.reserved, sent };
        let asking = if let Some(request) = made {
            let asking = router.asking(&goals, request);
            let sent = self.sent_by(&asking, stop).await?;
            self.record(asked(sent));
            asking
        } else {
            self.record(asked(None));
            let asking = router.asking(&goals, self.request(&ask, stop).await?);
            let sent = self.sent_by(&asking, stop).await?;
            // What goes out is no part of what the turn folds.
            self.session.pending[place] = asked(sent);
            asking
        };
        // The last commit before the provider is asked: with it are the results that the request shows.
        self.session.commit(stop).await?;

        let cancel = CancellationToken::new();
        let notices: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut tell = teller(self.session.watchers(), ask.purpose != Purpose::Summary, Arc::clone(&notices));
        let waited = {
            let mut completion = std::pin::pin!(asking.complete(&mut *tell, &cancel));
            // A model that is silent for ever does not outlive the run's own time.
            let left = self.session.time_left().map(|left| Duration::from_millis(left.millis()));
            let mut late = std::pin::pin!(tokio::time::sleep(left.unwrap_or_default()));
            let told = loop {
                tokio::select! {
                    result = &mut completion => break Waited::Answered(result),
                    () = stop.token().cancelled() => break Waited::Stopped,
                    () = &mut late, if left.is_some() => break Waited::Stopped,
                    told = self.commands.recv() => match told.command {
                        Command::Interrupt { .. } => break Waited::Told(told),
                        // These hold for what comes after this call.
                        Command::SetMode(_) | Command::SetModel(_) | Command::Compact => {
                            self.carry(told, None, stop).await?;
                        }
                    },
                }
            };
            match told {
                Waited::Answered(result) => Waited::Answered(result),
                other => {
                    cancel.cancel();
                    // The connection closes; what had arrived is kept.
                    let partial = match completion.await {
                        Ok(completion) => Some(completion.reply.text),
                        Err(CompletionError::Cancelled { partial }) => partial,
                        Err(CompletionError::Failed(error)) => error.partial,
                    };
                    self.partial = partial.filter(|text| !text.trim().is_empty());
                    other
                }
            }
        };
        let notices = std::mem::take(&mut *notices.lock().unwrap_or_else(PoisonError::into_inner));
        for text in notices {
            self.record(Fact::Noticed { text });
        }
        match waited {
            Waited::Answered(Ok(completion)) => {
                let sent = self.keep_sent(&completion.sent, stop).await?;
                let reply = completion.reply;
                if reply.finish == Finish::Refusal {
                    tracing::info!(model = %reply.model, "the model refused");
                }
                self.record(Fact::Replied { reply, sent: Some(sent) });
            }
            Waited::Answered(Err(CompletionError::Failed(error))) => self.failed(error, stop).await?,
            Waited::Answered(Err(CompletionError::Cancelled { .. })) | Waited::Stopped => {}
            Waited::Told(told) => {
                let partial = self.partial.take();
                self.carry(told, partial, stop).await?;
            }
        }
        Ok(Onward::Continue)
    }

    async fn failed(&mut self, error: ModelError, stop: &Stop) -> Result<(), StoreError> {
        let ModelError { kind, message, partial, sent, .. } = error;
        let sent = match sent {
            Some(body) => Some(self.keep_sent(&body, stop).await?),
            None => None,
        };
        tracing::warn!(?kind, %message, "no reply from a model");
        self.record(Fact::ModelFailed { kind, message, partial, sent });
        Ok(())
    }

    /// The record of what is about to be sent to a model.
    async fn sent_by(&mut self, asking: &Asking, stop: &Stop) -> Result<Option<Sent>, StoreError> {
        Ok(match asking.body() {
            Some(body) => Some(self.keep_sent(body, stop).await?),
            None => None,
        })
    }

    /// The record of a request for the journal.
    async fn keep_sent(&mut self, body: &Bytes, stop: &Stop) -> Result<Sent, StoreError> {
        if let Some(same) = self.sent.again(body) {
            return Ok(same);
        }
        let (mut sent, middle) = self.sent.next(body);
        if middle.len() > LONGEST_INLINE {
            // All of it goes into one file, so that it can be read without those before it.
            let hash = persist(stop, || self.engine().store.put_blob(body)).await?;
            self.sent.break_off(hash);
            sent = Sent { head: 0, tail: 0, middle: SentMiddle::File(hash), ..sent };
        }
        Ok(sent)
    }

    fn warn_once(&mut self, text: String) {
        let told = |message: &Arc<Message>| matches!(&**message, Message::Notice { text: told, .. } if *told == text);
        if !self.session.turn.history().iter().any(told) {
            tracing::warn!(warning = %text, "model");
            self.record(Fact::Noticed { text });
        }
    }

    async fn request(&mut self, ask: &Ask, stop: &Stop) -> Result<Request, StoreError> {
        if let Some(instruction) = &ask.instruction {
            // A summary is asked for by itself: what it has to fold is in the instruction.
            let mut prompt = Prompt::new();
            let source = ow_model::Source::Owd { why: ow_model::Why::Stop };
            let input = ow_model::Input { text: instruction.clone(), attachments: vec![], source };
            prompt.push(Message::User { input, at: self.engine().now() });
            let mut request = Request::new("", prompt.view());
            request.max_output = ask.max_output;
            return Ok(request);
        }
        self.grow_prompt();
        let engine = Arc::clone(self.engine());
        let (folder, history) = (&self.session.place.run_folder, self.session.turn.history());
        let attachments = self.equipment.shelf.take_in(&engine, folder, history, stop.token()).await?;
        let mut request = Request::new("", self.prompt.view());
        request.system = self.equipment.system(&self.session.spec, &self.session.place);
        let tail = prompt::tail(&self.session, ask.tail.as_deref());
        request.tail = Some(tail.into());
        request.tools = Tools::clone(&self.equipment.tools);
        request.tool_choice = if ask.with_tools { ToolChoice::Auto } else { ToolChoice::None };
        request.max_output = ask.max_output;
        request.attachments = attachments;
        Ok(request)
    }

    /// Brings what goes to models up to the turn's history.
    fn grow_prompt(&mut self) {
        let history = self.session.turn.history();
        for message in &history[self.prompt.len()..] {
            self.prompt.push(Arc::clone(message));
        }
        let outgoing = self.session.turn.outgoing();
        if outgoing.from > self.prompt_begins {
            self.prompt_begins = outgoing.from;
            self.prompt.begin_at(outgoing.from, outgoing.summary);
        }
    }
}

/// Tells those who watch of a reply as it comes, and keeps what the journal is to say of the way to it.
fn teller(
    watchers: Option<Watchers>,
    shown: bool,
    notices: Arc<Mutex<Vec<String>>>,
) -> Box<dyn FnMut(Progress<'_>) + Send> {
    let send = move |kind, payload: &dyn Fn() -> serde_json::Value| {
        if let Some(watchers) = &watchers {
            watchers.send(kind, payload);
        }
    };
    let note = move |send: &dyn Fn(LiveKind, &dyn Fn() -> serde_json::Value), text: String| {
        // What was shown of the reply is void: it begins anew.
        send(LiveKind::Notice, &|| json!({ "text": text, "restart": true }));
        notices.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    };
    Box::new(move |progress| match progress {
        Progress::Delta(_) if !shown => {}
        Progress::Delta(Delta::Text(text)) => send(LiveKind::Text, &|| json!({ "text": text })),
        Progress::Delta(Delta::Reasoning(text)) => send(LiveKind::Reasoning, &|| json!({ "text": text })),
        Progress::Delta(Delta::CallStarted { .. }) => {}
        Progress::Waiting { model, attempt, delay, error } => {
            let seconds = delay.as_secs_f32().ceil();
            note(&send, format!("{model}: {error}; trying again in {seconds} s (attempt {attempt})"));
        }
        Progress::Switched { from, to, error } => note(&send, format!("{from}: {error}; {to} takes over")),
    })
}
