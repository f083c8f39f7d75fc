//! The shell of the turn: performs effects, journals them, resumes after a stop.
//!
//! A worker hands a taken run to [`Engine::perform`]. The turn (pure) names one effect at a time; the engine
//! has it judged, journals it as intended, performs it, journals it as done. It knows no surface and no
//! scheduler: a question is an item in the store, and an answer is a fact that a later worker finds.

mod agent;
mod attached;
mod command;
mod course;
mod engine;
mod hooks;
mod live;
mod preview;
mod session;
mod stop;
mod trouble;
mod trust;
mod wakes;
mod words;

pub use agent::{Agents, ModelDefaults, SentBody, SentRequest, sent_requests};
pub use command::{Command, CommandReceiver, Commands, Told};
pub use engine::{Engine, Parts};
pub use hooks::{Hooks, Occasion, Say};
pub use live::{Live, LiveEvent, LiveKind, LiveNews, LiveReceiver};
pub use preview::{AllowableStep, PlannedStep, PlannedVerdict};
pub use stop::{Stop, StopReason};
pub use trust::{Offer, OfferedHook, Trust, TrustError, Trusted};
