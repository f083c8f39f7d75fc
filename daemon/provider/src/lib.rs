//! Models behind one trait: a request becomes a vendor's wire format, its stream becomes a reply or a typed error.
//!
//! A [`Provider`] makes one streamed completion. The [`Router`] finds the provider of a `provider:model` name, waits and
//! repeats where that helps, and goes down a failover list. A [`Prompt`] keeps a session's history as encoded pieces, so
//! that a request of a thousand messages is put together and not encoded anew. The [`ModelTable`] says what a model can
//! do and costs.
//!
//! This crate knows nothing of turns, tools or budgets. It reads no configuration: [`RouterConfig`] comes from its
//! caller, and keys come from a callback at the moment of a call.
//!
//! ```
//! use ow_provider::ModelTable;
//!
//! let models = ModelTable::shipped();
//! assert_eq!(models.capabilities("anthropic", "claude-sonnet-4-6").window, 200_000);
//! assert!(!models.capabilities("ollama", "somebody/unheard-of").is_known);
//! ```

mod provider;
mod request;

mod attachment;
mod prompt;
mod wire;

mod sse;
mod stream;

mod error;
mod fault;
mod repair;
mod retry;

mod model;
mod preset;
mod settings;

mod http;
mod router;
#[cfg(feature = "scripted")]
pub mod scripted;

pub use attachment::{Attachments, NoAttachments};
pub use error::{CompletionError, ModelError};
pub use http::HttpProvider;
pub use model::{Capabilities, ModelEntry, ModelTable, ModelTableError, Price, Thinking};
pub use preset::{PRESETS, Preset};
pub use prompt::{Prompt, View};
pub use provider::{Body, Completion, Delta, Deltas, Provider};
pub use request::{Effort, Request, SystemPrompt, ToolChoice, ToolDeclaration, Tools};
pub use retry::RetryPolicy;
pub use router::{Asking, Keys, ModelWarning, Progress, Resolved, Router, RouterConfig};
pub use settings::{Echo, ProviderOverride, ProviderSettings, SettingsError, StreamLimits};
pub use wire::Wire;
