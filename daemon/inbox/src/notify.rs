use std::sync::Arc;

use async_trait::async_trait;
use ow_model::{Artifact, Call, CallError, CallErrorKind, CallResult, ItemKind, Risk};
use ow_policy::{Action, Authorized, Facts};
use ow_store::{NewItem, Store};
use ow_tool::{CallOf, DaemonTool, Place, Runner, Tool, ToolSpec, Toolbox};
use serde_json::{Value, json};

/// Bytes that a message may have.
const TEXT_LIMIT: usize = 64 * 1024;
const TITLE_LIMIT: usize = 200;

/// Adds `notify` to the tools.
pub fn register(toolbox: &mut Toolbox, store: Arc<dyn Store>) {
    toolbox.register(Arc::new(Notify::new()), Runner::Daemon(Arc::new(Notifier { store })));
}

/// Adds it for who checks calls and runs none: there is no store behind it.
pub fn declare(toolbox: &mut Toolbox) {
    toolbox.register(Arc::new(Notify::new()), Runner::Helper);
}

/// The tool as policy and `check` see it.
struct Notify {
    spec: ToolSpec,
}

impl Notify {
    fn new() -> Self {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["text"],
            "properties": {
                "title": { "type": "string", "description": "one line; the task's title where it is left out" },
                "text": { "type": "string", "description": "what the task's people are told" },
            },
        });
        // Of risk read: it changes nothing but the Inbox of those whose task it is, and a repetition is the same item.
        Self { spec: ToolSpec::own("notify", schema) }
    }
}

impl Tool for Notify {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, args: &Value) -> Result<(), String> {
        Message::read(args).map(drop)
    }

    fn facts(&self, call: &Call, _place: &Place) -> Result<Facts, CallError> {
        match Message::read(&call.args) {
            Ok(_) => Ok(Facts { risk: Risk::Read, action: Action::Plain }),
            Err(message) => Err(CallError { kind: CallErrorKind::BadArguments, message }),
        }
    }
}

/// The arguments, read.
struct Message<'a> {
    title: Option<&'a str>,
    text: &'a str,
}

impl<'a> Message<'a> {
    fn read(args: &'a Value) -> Result<Self, String> {
        let Value::Object(fields) = args else { return Err("`notify` takes a table of arguments".into()) };
        if let Some(unknown) = fields.keys().find(|key| !matches!(key.as_str(), "title" | "text")) {
            return Err(format!("`notify` has no argument `{unknown}`; it takes `title` and `text`"));
        }
        let text_of = |key: &str, limit: usize| match fields.get(key) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() <= limit => Ok(Some(text.as_str())),
            Some(Value::String(text)) => Err(format!("`{key}` has {} bytes; at most {limit} are told", text.len())),
            Some(other) => Err(format!("`{key}` is {other}; write a text")),
        };
        let text = text_of("text", TEXT_LIMIT)?.ok_or("`text` is missing: what is to be told")?;
        Ok(Self { title: text_of("title", TITLE_LIMIT)?, text })
    }
}

/// Where the calls run: in owd, one transaction each.
struct Notifier {
    store: Arc<dyn Store>,
}

#[async_trait]
impl DaemonTool for Notifier {
    async fn run(&self, call: &Authorized<Call>, of: &CallOf) -> CallResult {
        let CallOf { task, inbox, run, position, now, enclosed: _ } = of;
        let Message { title, text } = match Message::read(&call.get().args) {
            Ok(message) => message,
            Err(why) => return CallResult::failed(CallErrorKind::BadArguments, why),
        };
        let name = task.as_ref().map_or("owd", |task| task.as_str());
        let item = NewItem {
            task: task.clone(),
            run: Some(*run),
            title: title.unwrap_or(name).to_owned(),
            kind: ItemKind::Notification { text: text.to_owned() },
            expires_in: None,
            remind_after: None,
            inbox: inbox.clone(),
        };
        match self.store.notify(&item, &format!("{run}/{position}"), *now).await {
            Ok(id) => CallResult {
                artifacts: vec![Artifact::Message { to: "inbox".into(), id: id.to_string() }],
                ..CallResult::ok(json!({ "item": id.to_string() }))
            },
            Err(error) => CallResult::failed(CallErrorKind::Failed, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arguments_are_named_with_what_would_be_right() {
        let tool = Notify::new();
        for (args, fault) in [
            (json!("hello"), "`notify` takes a table of arguments"),
            (json!({}), "`text` is missing: what is to be told"),
            (json!({ "text": 5 }), "`text` is 5; write a text"),
            (json!({ "text": "a", "to": "ann" }), "`notify` has no argument `to`; it takes `title` and `text`"),
        ] {
            assert_eq!(tool.check(&args), Err(fault.into()));
        }
        assert_eq!(tool.check(&json!({ "text": "done", "title": "Backup" })), Ok(()));
    }

    #[test]
    fn a_repeated_call_is_one_item() {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn Store> = ow_store::SqliteStore::open(folder.path()).expect("a store");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let now = jiff::Timestamp::UNIX_EPOCH;
        let item = NewItem {
            task: None,
            run: None,
            title: "Backup".into(),
            kind: ItemKind::Notification { text: "done".into() },
            expires_in: None,
            remind_after: None,
            inbox: ow_model::InboxName::default(),
        };
        runtime.block_on(async {
            let first = store.notify(&item, "run/0", now).await.expect("it is stored");
            assert_eq!(store.notify(&item, "run/0", now).await.expect("it is stored"), first);
            assert_ne!(store.notify(&item, "run/1", now).await.expect("it is stored"), first);
        });
    }
}
