//! The operations of the API as data: what the `OpenAPI` document is generated from.

use schemars::{Schema, SchemaGenerator};

use crate as wire;
use crate::routes;

/// Which query parameters an operation takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Query {
    None,
    /// [`crate::PageQuery`].
    Page,
    /// These, all optional texts.
    Named(&'static [&'static str]),
}

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One method on one path.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    /// The operation id: one word, `snake_case`.
    pub id: &'static str,
    pub summary: &'static str,
    pub query: Query,
    pub request: Option<SchemaOf>,
    /// None: `204 No Content`, or a stream.
    pub answer: Option<SchemaOf>,
}

fn of<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

macro_rules! operation {
    ($method:literal $path:ident $id:ident, $summary:literal, $query:expr, $request:expr, $answer:expr) => {
        Operation {
            method: $method,
            path: routes::$path,
            id: stringify!($id),
            summary: $summary,
            query: $query,
            request: $request,
            answer: $answer,
        }
    };
}

/// Every operation, in the order of the document.
pub const OPERATIONS: &[Operation] = &[
    operation!("get" STATUS status, "What owd is doing", Query::None, None, Some(of::<wire::StatusView>)),
    operation!("post" PAUSE pause_all, "The kill switch: nothing starts, running calls are stopped, items stay", Query::None, None, None),
    operation!("post" RESUME resume_all, "Lets work start again", Query::None, None, None),
    operation!("post" RELOAD reload, "Reads configuration and task files again", Query::None, None, Some(of::<wire::StatusView>)),
    operation!("post" BACKUP backup, "Backs the running store up into a new folder", Query::None, Some(of::<wire::BackupRequest>), Some(of::<wire::BackupView>)),
    operation!("get" TASKS list_tasks, "Tasks by name", Query::Page, None, Some(of::<wire::Page<wire::TaskView>>)),
    operation!("get" TASK show_task, "One task", Query::None, None, Some(of::<wire::TaskView>)),
    operation!("put" TASK save_task, "Saves a task in the store", Query::None, Some(of::<wire::SaveTask>), Some(of::<wire::SavedTask>)),
    operation!("delete" TASK delete_task, "Deletes a task; its records stay", Query::None, None, None),
    operation!("post" TASK_RUN run_task, "Runs a task now; its next slot stays", Query::None, Some(of::<wire::RunNowRequest>), Some(of::<wire::RunView>)),
    operation!("post" TASK_PLAN plan_task, "What a run would do and what would ask, with no effect", Query::None, Some(of::<wire::RunNowRequest>), Some(of::<wire::PlanView>)),
    operation!("post" TASK_PAUSE pause_task, "Pauses a task", Query::None, None, None),
    operation!("post" TASK_RESUME resume_task, "Lets a paused task go on", Query::None, None, None),
    operation!("get" TASK_ALLOW preview_allow, "What allowing this task's steps would permit", Query::Named(&["step"]), None, Some(of::<wire::AllowPreview>)),
    operation!("post" TASK_ALLOW allow_task, "Allows steps as previewed", Query::None, Some(of::<wire::AllowRequest>), Some(of::<wire::Page<wire::RuleView>>)),
    operation!("get" TASK_WHY why, "Why a task ran at a time, or did not", Query::Named(&["at", "from", "until", "limit"]), None, Some(of::<wire::WhyView>)),
    operation!("get" FORECAST forecast, "Every future slot in order", Query::Named(&["from", "until", "task", "after", "limit"]), None, Some(of::<wire::Page<wire::ForecastEntry>>)),
    operation!("post" EVENTS accept_events, "Accepts events for tasks, durably", Query::None, Some(of::<wire::NewEvents>), Some(of::<wire::AcceptedEvents>)),
    operation!("get" RUNS list_runs, "Runs, newest first", Query::Page, None, Some(of::<wire::Page<wire::RunView>>)),
    operation!("get" RUN show_run, "One run with its calls; by id or unique prefix", Query::None, None, Some(of::<wire::RunDetail>)),
    operation!("post" RUN_CANCEL cancel_run, "Cancels a run", Query::None, None, Some(of::<wire::RunView>)),
    operation!("post" RUN_RETRY retry_run, "Runs an ended run's task again with the same events", Query::None, None, Some(of::<wire::RunView>)),
    operation!("get" RUN_OUTPUT run_output, "The whole text of an output that was cut", Query::None, None, None),
    operation!("get" RUN_SENT list_sent, "What went to models in a run, also what was cut off", Query::None, None, Some(of::<wire::Page<wire::SentView>>)),
    operation!("get" RUN_SENT_BODY show_sent, "The body of one such request, byte for byte", Query::None, None, None),
    operation!("get" ITEMS list_items, "Inbox items, newest first; pending ones unless `state=all`", Query::Page, None, Some(of::<wire::Page<wire::ItemView>>)),
    operation!("get" ITEM show_item, "One item; by id or unique prefix", Query::None, None, Some(of::<wire::ItemView>)),
    operation!("post" ITEM_ANSWER answer_item, "Answers an item; the first answer wins", Query::None, Some(of::<wire::AnswerRequest>), Some(of::<wire::ItemView>)),
    operation!("get" ITEM_DELIVERIES list_deliveries, "Where an item was told of, oldest first", Query::None, None, Some(of::<wire::Page<wire::DeliveryView>>)),
    operation!("post" ITEM_DELEGATE delegate_item, "Hands an item on to another inbox, whose people may then answer too", Query::None, Some(of::<wire::DelegateRequest>), Some(of::<wire::ItemView>)),
    operation!("post" INBOX_TEST try_bindings, "Sends a test notice to all that an inbox is bound to, and says what came of each", Query::None, None, Some(of::<wire::Page<wire::TriedBinding>>)),
    operation!("post" MAIL deliver_mail, "Takes a mail that may answer an item", Query::None, Some(of::<wire::DeliverRequest>), Some(of::<wire::DeliveredView>)),
    operation!("get" WEBHOOKS list_webhooks, "Webhooks with their tasks and what has come", Query::None, None, Some(of::<wire::Page<wire::WebhookView>>)),
    operation!("post" WEBHOOK_SAMPLE sign_sample, "Signs a delivery as a sender of the webhook would; sends nothing", Query::None, Some(of::<wire::SampleRequest>), Some(of::<wire::SampleView>)),
    operation!("get" WEBHOOK_DELIVERIES show_delivery, "What became of a delivery, by task", Query::Named(&["key"]), None, Some(of::<wire::Page<wire::DeliveryFateView>>)),
    operation!("get" RULES list_rules, "Standing rules", Query::Page, None, Some(of::<wire::Page<wire::RuleView>>)),
    operation!("post" RULES add_rule, "Adds a standing rule", Query::None, Some(of::<wire::NewRule>), Some(of::<wire::RuleView>)),
    operation!("delete" RULE remove_rule, "Removes a rule; by id or unique prefix", Query::None, None, None),
    operation!("get" SESSIONS list_sessions, "Chats, the last active first", Query::Page, None, Some(of::<wire::Page<wire::SessionView>>)),
    operation!("post" SESSIONS create_session, "Opens a chat with an agent", Query::None, Some(of::<wire::NewSession>), Some(of::<wire::SessionView>)),
    operation!("get" SESSION show_session, "One chat; by id or unique prefix", Query::None, None, Some(of::<wire::SessionView>)),
    operation!("delete" SESSION remove_session, "Ends a chat for good; its records go as retention says", Query::None, None, None),
    operation!("post" SESSION_MESSAGES say, "Says something to the agent, durably; during a turn it steers that", Query::None, Some(of::<wire::NewMessage>), Some(of::<wire::SentMessage>)),
    operation!("post" SESSION_INTERRUPT interrupt_session, "Ends the turn under way; the chat stays", Query::None, None, Some(of::<wire::SessionView>)),
    operation!("post" SESSION_SETTINGS set_session, "Sets mode, model or title", Query::None, Some(of::<wire::SessionSettings>), Some(of::<wire::SessionView>)),
    operation!("post" SESSION_COMPACT compact_session, "Shortens what of the history is sent to the model", Query::None, None, Some(of::<wire::SessionView>)),
    operation!("get" SESSION_STREAM stream_session, "The history, then what happens, as server-sent events; resumes after `Last-Event-ID`", Query::Named(&["after"]), None, None),
    operation!("get" SESSION_SENT list_session_sent, "What went to models in a chat, also what was cut off", Query::None, None, Some(of::<wire::Page<wire::SentView>>)),
    operation!("get" SESSION_SENT_BODY show_session_sent, "The body of one such request, byte for byte", Query::None, None, None),
    operation!("get" SESSION_EXPORT export_session, "All that was said; `format=markdown` for people", Query::Named(&["format"]), None, Some(of::<wire::SessionExport>)),
    operation!("get" AUDIT list_audit, "Who decided what about which call, and what came of it; newest first", Query::Page, None, Some(of::<wire::Page<wire::AuditEntryView>>)),
    operation!("get" AUDIT_CHECK check_audit, "Whether the audit is what was written", Query::None, None, Some(of::<wire::AuditCheckView>)),
    operation!("get" SECRETS list_secrets, "The names of secrets and where each comes from, never a value", Query::None, None, Some(of::<wire::Page<wire::SecretView>>)),
    operation!("get" TRUST list_trust, "What workspaces bring and what of it is trusted; the one at `path`, or all that are trusted", Query::Named(&["path"]), None, Some(of::<wire::Page<wire::TrustView>>)),
    operation!("post" TRUST give_trust, "Trusts the hooks of a workspace, as they were shown", Query::None, Some(of::<wire::NewTrust>), Some(of::<wire::TrustView>)),
    operation!("delete" TRUST take_trust, "Takes trust in the workspace at `path` back", Query::Named(&["path"]), None, None),
    operation!("get" STREAM stream, "Events as they happen, as server-sent events; resumes after `Last-Event-ID`", Query::Named(&["after", "target"]), None, None),
    operation!("get" OPENAPI openapi, "This document", Query::None, None, None),
];
