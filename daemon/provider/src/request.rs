use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::wire::escaped;
use crate::{Attachments, NoAttachments, View, Wire};

/// What a model is asked. Cheap to clone: all that grows is shared.
#[derive(Clone, Debug)]
pub struct Request {
    /// As the provider names it, without the provider.
    pub model: String,
    pub system: SystemPrompt,
    pub history: View,
    /// Stands after the last thing that was said to the model, in this request alone: the clock, the mode.
    pub tail: Option<Arc<str>>,
    /// Not sent to a model that cannot call. A history with calls wants their declarations too, also where the model must
    /// not call any more: see [`ToolChoice::None`].
    pub tools: Tools,
    pub tool_choice: ToolChoice,
    /// None: what the model table says, at most 32 000.
    pub max_output: Option<u32>,
    /// None: as the vendor has it.
    pub effort: Option<Effort>,
    pub attachments: Arc<dyn Attachments>,
}

impl Request {
    /// A request without system prompt, tail or tools.
    #[must_use]
    pub fn new(model: impl Into<String>, history: View) -> Self {
        Self {
            model: model.into(),
            system: SystemPrompt::default(),
            history,
            tail: None,
            tools: Tools::default(),
            tool_choice: ToolChoice::Auto,
            max_output: None,
            effort: None,
            attachments: Arc::new(NoAttachments),
        }
    }
}

/// A system prompt, made ready once for all requests that share it. A blank one is none.
#[derive(Clone, Debug, Default)]
pub struct SystemPrompt(Arc<str>);

impl SystemPrompt {
    /// As in a JSON string, without the quotes.
    pub(crate) fn escaped(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(&*self.0)
    }
}

impl From<&str> for SystemPrompt {
    fn from(text: &str) -> Self {
        if text.trim().is_empty() { Self::default() } else { Self(escaped(text).into()) }
    }
}

/// Whether the model may call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ToolChoice {
    #[default]
    Auto,
    /// It must answer in text. The declarations stay in the request: the history speaks of them.
    None,
}

/// How long the model should think, where it can be told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effort {
    Low,
    Medium,
    High,
}

impl Effort {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// In tokens, for vendors that want a number.
    pub(crate) const fn budget(self) -> u32 {
        match self {
            Self::Low => 2_048,
            Self::Medium => 8_192,
            Self::High => 24_576,
        }
    }
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDeclaration {
    pub name: String,
    pub description: String,
    /// A JSON schema of an object.
    pub parameters: Value,
}

/// The tools of a request, encoded once for all requests that share them.
#[derive(Clone, Default)]
pub struct Tools(Arc<Inner>);

#[derive(Default)]
struct Inner {
    declarations: Vec<ToolDeclaration>,
    openai: OnceLock<Box<str>>,
    anthropic: OnceLock<Box<str>>,
}

impl Tools {
    #[must_use]
    pub fn new(declarations: Vec<ToolDeclaration>) -> Self {
        Self(Arc::new(Inner { declarations, ..Inner::default() }))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.declarations.is_empty()
    }

    #[must_use]
    pub fn declarations(&self) -> &[ToolDeclaration] {
        &self.0.declarations
    }

    /// The list in JSON.
    pub(crate) fn encoded(&self, wire: Wire) -> &str {
        let (cell, encode): (_, fn(&ToolDeclaration) -> Value) = match wire {
            Wire::OpenAi => (&self.0.openai, |tool| {
                let ToolDeclaration { name, description, parameters } = tool;
                json!({
                    "type": "function",
                    "function": { "name": name, "description": description, "parameters": parameters },
                })
            }),
            Wire::Anthropic => (&self.0.anthropic, |tool| {
                let ToolDeclaration { name, description, parameters } = tool;
                json!({ "name": name, "description": description, "input_schema": parameters })
            }),
        };
        cell.get_or_init(|| Value::Array(self.0.declarations.iter().map(encode).collect()).to_string().into())
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.declarations.iter().map(|tool| &tool.name)).finish()
    }
}
