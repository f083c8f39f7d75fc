//! The nouns of owd and the identifiers that name them.
//!
//! Every other crate speaks in these types. They have checked constructors, so a value that exists is
//! right; there is no I/O, no clock and no policy here. The present always enters as an argument.

mod audit;
mod call;
pub mod escape;
mod event;
mod hook;
mod id;
mod item;
mod journal;
mod loops;
mod message;
mod name;
mod notice;
mod rule;
mod run;
mod slot;
mod span;
mod task;
mod told;
mod wake;

pub use audit::{AuditEffect, AuditEntry, Audited, Decided};
pub use call::{Artifact, Call, CallError, CallErrorKind, CallHash, CallResult, Position, RefusedAddress, Risk};
pub use event::{EventId, EventKey, EventPayload, NewEvent, WaitingEvent};
pub use hook::{HookEvent, HookReport, HookSaid};
pub use id::{BlobHash, BlobHasher, IdError, ItemId, RuleId, RunId, SessionId};
pub use item::{
    Answer, AnswerBy, Binding, BoundFile, Category, Item, ItemKind, ItemState, Person, Question, Resolution,
    SessionOffer, Surface,
};
pub use journal::{
    Answered, Compaction, Fact, Hole, Intent, ModelFailure, Purpose, Reconciled, RecordedFact, Sent, SentMiddle,
    TurnOutcome,
};
pub use loops::{Detector, LoopLimits, Patience};
pub use message::{Attachment, Finish, Input, Message, Reply, ReplyCall, Source, ToolUse, Usage, Why};
pub use name::{InboxName, NameError, TaskName, ToolName, WebhookName, ZoneName, slack_source};
pub use notice::{InboxBinding, Occasion};
pub use rule::{Rule, RuleScope, RuleTarget};
pub use run::{Cause, EndedRun, Failure, Outcome, Run, RunState};
pub use slot::{Disposition, SlotKey, SlotRecord};
pub use span::{Span, SpanError};
pub use task::{
    AfterEnd, AgentSpec, Budget, CatchUp, EventDelivery, MailFilter, Mode, Need, OnError, Overlap, PauseReason, Retry,
    Step, TaskId, TaskSource, TaskSpec, TaskState, Trigger, WatchKind, WhileParked,
};
pub use told::EventType;
pub use wake::{Wake, WakeError};
