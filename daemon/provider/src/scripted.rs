//! A provider that answers from a script.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use ow_model::{Finish, ModelFailure, Reply, ReplyCall, Usage};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::error::partial;
use crate::wire::{LimitField, Parameters, Profile, body};
use crate::{
    Body, Completion, CompletionError, Delta, Deltas, ModelError, ModelTable, Preset, Provider, ProviderSettings,
    Request,
};

/// What a scripted model does when it is asked.
#[derive(Clone, Debug)]
pub enum Act {
    Reply(Reply),
    Fail(ModelError),
    /// Says this and then nothing more, until it is cancelled.
    Hang(String),
    /// Waits for [`Scripted::release`], then replies.
    Held(Reply),
}

/// A request as it was made.
#[derive(Clone, Debug)]
pub struct Asked {
    pub request: Request,
    /// The body in OpenAI's format.
    pub sent: Bytes,
}

impl Asked {
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.sent).unwrap_or(Value::Null)
    }
}

type Answer = Box<dyn Fn(&Request, usize) -> Act + Send + Sync>;

/// Answers each request with the next act; when they are used up, by the closure, or with an error.
pub struct Scripted {
    name: String,
    settings: ProviderSettings,
    acts: Mutex<VecDeque<Act>>,
    answer: Option<Answer>,
    asked: Mutex<Vec<Asked>>,
    released: Notify,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Scripted {
    /// `name` is the provider's: replies carry `name:model`.
    #[must_use]
    pub fn new(name: &str, acts: impl IntoIterator<Item = Act>) -> Arc<Self> {
        Arc::new(Self::with(name, acts.into_iter().collect(), None))
    }

    /// `answer` is given the request and how many came before it.
    #[must_use]
    pub fn answering(name: &str, answer: impl Fn(&Request, usize) -> Act + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self::with(name, VecDeque::new(), Some(Box::new(answer))))
    }

    fn with(name: &str, acts: VecDeque<Act>, answer: Option<Answer>) -> Self {
        let preset = Preset::named("openai").expect("it is one");
        let settings = ProviderSettings { name: name.to_owned(), ..preset.settings() };
        Self {
            name: name.to_owned(),
            settings,
            acts: Mutex::new(acts),
            answer,
            asked: Mutex::default(),
            released: Notify::new(),
        }
    }

    pub fn push(&self, act: impl Into<Act>) {
        lock(&self.acts).push_back(act.into());
    }

    /// Lets one held reply go, or the next that will be held.
    pub fn release(&self) {
        self.released.notify_one();
    }

    /// Every request so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.asked).clone()
    }
}

impl From<Reply> for Act {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

impl From<ModelError> for Act {
    fn from(error: ModelError) -> Self {
        Self::Fail(error)
    }
}

/// A reply that is text alone.
#[must_use]
pub fn text(text: impl Into<String>) -> Reply {
    Reply {
        text: text.into(),
        reasoning: None,
        calls: vec![],
        finish: Finish::Stop,
        usage: Some(Usage { input: 100, cached: 0, output: 10 }),
        model: String::new(),
        private: None,
    }
}

/// A reply that calls tools, by their names and arguments.
#[must_use]
pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Reply {
    let call = |(index, (name, arguments)): (usize, (&str, Value))| ReplyCall {
        id: Some(format!("c{index}")),
        name: name.to_owned(),
        arguments: arguments.to_string(),
    };
    Reply { calls: calls.into_iter().enumerate().map(call).collect(), finish: Finish::ToolCalls, ..text("") }
}

#[async_trait]
impl Provider for Scripted {
    fn body(&self, request: &Request) -> Body {
        let capabilities = ModelTable::default().capabilities("openai", &request.model);
        let parameters = Parameters {
            limit: LimitField::MaxCompletionTokens,
            stream_options: true,
            effort: true,
            tool_choice: true,
            cache: true,
        };
        let bytes = body(request, &Profile::new(&self.settings, &capabilities), &capabilities, parameters);
        Body { bytes, parameters }
    }

    async fn complete(
        &self,
        request: &Request,
        first: Body,
        deltas: &mut Deltas<'_>,
        cancel: &CancellationToken,
    ) -> Result<Completion, CompletionError> {
        let sent = first.bytes;
        let before = {
            let mut asked = lock(&self.asked);
            asked.push(Asked { request: request.clone(), sent: sent.clone() });
            asked.len() - 1
        };
        if cancel.is_cancelled() {
            return Err(CompletionError::Cancelled { partial: None });
        }
        let next = lock(&self.acts).pop_front();
        let act = next.or_else(|| self.answer.as_ref().map(|answer| answer(request, before)));
        let mut reply = match act {
            Some(Act::Reply(reply)) => reply,
            Some(Act::Held(reply)) => {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => return Err(CompletionError::Cancelled { partial: None }),
                    () = self.released.notified() => reply,
                }
            }
            Some(Act::Fail(mut error)) => {
                if let Some(text) = &error.partial {
                    deltas(Delta::Text(text));
                }
                error.sent = Some(sent);
                return Err(error.into());
            }
            Some(Act::Hang(text)) => {
                deltas(Delta::Text(&text));
                cancel.cancelled().await;
                return Err(CompletionError::Cancelled { partial: partial(&text) });
            }
            None => {
                let message = format!("`{}`: the script is used up after {before} requests", self.name);
                return Err(ModelError::new(ModelFailure::BadRequest, message).into());
            }
        };
        if let Some(reasoning) = &reply.reasoning {
            deltas(Delta::Reasoning(reasoning));
        }
        if !reply.text.is_empty() {
            deltas(Delta::Text(&reply.text));
        }
        for (index, call) in reply.calls.iter().enumerate() {
            deltas(Delta::CallStarted { index, name: &call.name });
        }
        if reply.model.is_empty() {
            reply.model = format!("{}:{}", self.name, request.model);
        }
        Ok(Completion { reply, sent })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
