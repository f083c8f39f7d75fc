//! The wire types of owd's control API: what the server writes and `owctl` reads.
//!
//! JSON over HTTP on a Unix socket, and on loopback TCP when configured; server-sent events for streams.
//! Nothing of ours stands behind these types: they are plain data, and a field is only ever added.
//! Instants are RFC 3339 in UTC, spans are milliseconds, names are `snake_case`.

mod audit;
mod error;
mod inbox;
mod mail;
mod operation;
mod page;
mod routes;
mod rule;
mod run;
mod secret;
mod session;
mod status;
mod stream;
mod task;
mod trust;
mod webhook;

pub use audit::{AuditCheckView, AuditDecisionView, AuditEntryView, AuditHookView};
pub use error::{ErrorBody, ErrorCode, ErrorReply};
pub use inbox::{
    AnswerRequest, AnswerView, ApprovalView, BoundFileView, DelegateRequest, DeliveryView, DirectoryView, ItemView,
    QuestionView, ResolutionView, TriedBinding,
};
pub use mail::{DeliverRequest, DeliveredView, LARGEST_MAIL};
pub use operation::{OPERATIONS, Operation, Query};
pub use page::{Page, PageQuery};
pub use routes::*;
pub use rule::{NewRule, ProgramView, RuleTargetView, RuleView};
pub use run::{ArtifactView, CallView, CauseView, FactView, RunDetail, RunView, SentView};
pub use secret::SecretView;
pub use session::{
    AttachmentView, CallUse, GrantView, MessageView, NewAttachment, NewMessage, NewSession, SentMessage, SessionExport,
    SessionSettings, SessionView, UsageView,
};
pub use status::{BackupRequest, BackupView, DamageView, PauseRequest, SlackView, StatusView, WarningView};
pub use stream::{AcceptedEvents, EventEnvelope, NewEventView, NewEvents};
pub use task::{
    AllowPreview, AllowRequest, AllowStep, AllowedStep, ForecastEntry, PlanStep, PlanView, RunNowRequest, SaveTask,
    SavedTask, SlotView, TaskView, WhyView,
};
pub use trust::{NewTrust, TrustHookView, TrustQuery, TrustView};
pub use webhook::{DeliveryFateView, SampleRequest, SampleView, WebhookSecretView, WebhookView};

/// The version of this protocol. `owctl` and `owd` must agree on it.
pub const PROTOCOL_VERSION: u32 = 1;

/// The header in which every answer carries [`PROTOCOL_VERSION`]: a client of another version is told so
/// instead of misreading the answer.
pub const PROTOCOL_HEADER: &str = "x-owd-protocol";

/// The header in which every answer carries owd's own version, as `0.1.0`.
pub const VERSION_HEADER: &str = "x-owd-version";
