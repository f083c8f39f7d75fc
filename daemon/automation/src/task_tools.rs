//! The tools by which an agent or a step sees, writes and starts tasks: `task_*`.
//!
//! A task that is saved or started runs later, with rights of its own. So what changes something is of risk external:
//! it asks in every mode unless a person's rule covers it, and the request shows the whole definition.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use jiff::Timestamp;
use ow_model::{
    Call, CallError, CallErrorKind, CallResult, EventKey, EventPayload, NewEvent, PauseReason, TaskName, TaskSource,
    TaskState,
};
use ow_policy::{Action, Authorized, Facts, OwnTool};
use ow_store::{PageRequest, Store, StoreError, TaskError, TaskFilter, TaskRow};
use ow_tool::{CallOf, DaemonTool, Place, Runner, Tool, ToolSpec, Toolbox};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::parts::{Check, Written};
use crate::{Automation, Handle};

/// Tasks in one answer of `task_list`.
const LISTED: usize = 100;

/// Gives the tools what they need once there is an [`Automation`]: the toolbox is made before it.
pub struct TaskTools(Shelf);

/// The tools are open until this is dropped. They hold what holds the toolbox, and with it the store: left open, they
/// would keep the store from being closed at the end.
#[must_use = "the tools are closed when it is dropped"]
pub struct OpenTaskTools(Shelf);

/// None: closed.
type Shelf = Arc<RwLock<Option<Arc<Desk>>>>;

impl Drop for OpenTaskTools {
    fn drop(&mut self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

struct Desk {
    store: Arc<dyn Store>,
    check: Check,
    handle: Handle,
}

/// Adds the tools. Their calls fail until they are opened by [`TaskTools::open`].
#[must_use]
pub fn register_task_tools(toolbox: &mut Toolbox) -> TaskTools {
    let desk = Shelf::default();
    for (name, act) in ACTS {
        let tool = Arc::new(TaskTool { spec: ToolSpec::own(name, schema(*act)), act: *act, desk: Arc::clone(&desk) });
        toolbox.register(tool.clone(), Runner::Daemon(tool));
    }
    TaskTools(desk)
}

impl TaskTools {
    /// From now on the tools' calls go to this automation.
    pub fn open(self, automation: &Automation, store: Arc<dyn Store>, check: Check) -> OpenTaskTools {
        let desk = Desk { store, check, handle: automation.handle() };
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(desk));
        OpenTaskTools(self.0)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Act {
    List,
    Show,
    Save,
    Run,
    Pause,
    Resume,
}

const ACTS: &[(&str, Act)] = &[
    ("task_list", Act::List),
    ("task_show", Act::Show),
    ("task_save", Act::Save),
    ("task_run", Act::Run),
    ("task_pause", Act::Pause),
    ("task_resume", Act::Resume),
];

struct TaskTool {
    spec: ToolSpec,
    act: Act,
    desk: Shelf,
}

fn schema(act: Act) -> Value {
    let name = json!({ "type": "string", "description": "the task's name" });
    let (properties, required) = match act {
        Act::List => {
            (json!({ "contains": { "type": "string", "description": "a part of the name; all if left out" } }), vec![])
        }
        Act::Show | Act::Pause | Act::Resume => (json!({ "name": name }), vec!["name"]),
        Act::Save => (
            json!({
                "name": name,
                "definition": {
                    "type": "string",
                    "description": "the whole task in TOML, as task_show gives one: title, [[trigger]], [[step]] or goal",
                },
                "replace": {
                    "type": "boolean",
                    "description": "whether a task of this name may be there already; false if left out",
                },
            }),
            vec!["name", "definition"],
        ),
        Act::Run => (
            json!({
                "name": name,
                "payload": { "type": "object", "description": "what the task finds as its event's data" },
            }),
            vec!["name"],
        ),
    };
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArgs {
    contains: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NameArgs {
    name: TaskName,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaveArgs {
    name: TaskName,
    definition: String,
    #[serde(default)]
    replace: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunArgs {
    name: TaskName,
    payload: Option<serde_json::Map<String, Value>>,
}

impl TaskTool {
    fn read<A: for<'a> Deserialize<'a>>(&self, args: &Value) -> Result<A, String> {
        A::deserialize(args).map_err(|error| format!("`{}`: {error}", self.spec.name))
    }
}

impl Tool for TaskTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, args: &Value) -> Result<(), String> {
        match self.act {
            Act::List => self.read::<ListArgs>(args).map(drop),
            Act::Show | Act::Pause | Act::Resume => self.read::<NameArgs>(args).map(drop),
            Act::Save => self.read::<SaveArgs>(args).map(drop),
            Act::Run => self.read::<RunArgs>(args).map(drop),
        }
    }

    fn facts(&self, call: &Call, _place: &Place) -> Result<Facts, CallError> {
        let bad = |message| CallError { kind: CallErrorKind::BadArguments, message };
        self.check(&call.args).map_err(bad)?;
        if let (Act::Save, Some(desk)) = (self.act, self.opened()) {
            // A definition that cannot be saved is the model's to mend; nobody is asked about it.
            let SaveArgs { name, definition, replace } = self.read(&call.args).map_err(bad)?;
            // What replaces a task is read against that one, where it is saved.
            if !replace {
                checked(&desk, &name, &definition, None).map_err(bad)?;
            }
        }
        let risk = OwnTool::named(self.spec.name.as_str()).map_or(self.spec.risk, |own| own.risk);
        Ok(Facts { risk, action: Action::Plain })
    }
}

#[async_trait]
impl DaemonTool for TaskTool {
    async fn run(&self, call: &Authorized<Call>, of: &CallOf) -> CallResult {
        let Some(desk) = self.opened() else {
            return CallResult::failed(CallErrorKind::Failed, "owd is starting or stopping; try again in a moment");
        };
        match self.act(&desk, &call.get().args, of).await {
            Ok(output) => CallResult::ok(output),
            Err(Fault::Args(why)) => CallResult::failed(CallErrorKind::BadArguments, why),
            Err(Fault::Failed(why)) => CallResult::failed(CallErrorKind::Failed, why),
        }
    }
}

enum Fault {
    Args(String),
    Failed(String),
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Args(why)
    }
}

impl From<TaskError> for Fault {
    fn from(error: TaskError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl TaskTool {
    fn opened(&self) -> Option<Arc<Desk>> {
        self.desk.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn act(&self, desk: &Desk, args: &Value, of: &CallOf) -> Result<Value, Fault> {
        let Desk { store, handle, .. } = desk;
        let output = match self.act {
            Act::List => {
                let ListArgs { contains } = self.read(args)?;
                let filter = TaskFilter { name_contains: contains, ..TaskFilter::default() };
                let found = store.tasks(&filter, &PageRequest { after: None, limit: LISTED }).await?;
                let tasks: Vec<Value> = found.rows.iter().map(shown).collect();
                json!({ "tasks": tasks, "more": found.next.is_some() })
            }
            Act::Show => {
                let NameArgs { name } = self.read(args)?;
                let task = task(desk, &name).await?;
                let mut shown = shown(&task);
                shown["definition"] = Value::String(task.text);
                shown
            }
            Act::Save => return self.save(desk, args, of.now).await,
            Act::Run => return self.start(desk, args, of).await,
            Act::Pause => {
                let NameArgs { name } = self.read(args)?;
                store.pause_task(&name, PauseReason::Person, of.now).await?;
                json!({ "paused": name })
            }
            Act::Resume => {
                let NameArgs { name } = self.read(args)?;
                store.resume_task(&name, of.now).await?;
                json!({ "resumed": name })
            }
        };
        if matches!(self.act, Act::Pause | Act::Resume) {
            handle.wake();
        }
        Ok(output)
    }

    async fn save(&self, desk: &Desk, args: &Value, now: Timestamp) -> Result<Value, Fault> {
        let SaveArgs { name, definition, replace } = self.read(args)?;
        let before = if replace { desk.store.task(&name).await?.map(|task| task.spec) } else { None };
        let spec = checked(desk, &name, &definition, before.as_ref())?;
        let expected = if replace { None } else { Some(0) };
        let saved = desk.store.save_task(&spec, TaskSource::Store, &definition, expected, now).await?;
        desk.handle.wake();
        let next = desk.store.task(&name).await?.and_then(|task| task.next_due);
        Ok(json!({ "saved": name, "revision": saved.revision, "next": next }))
    }

    /// Starts a task as an event of it: the same call is one event however often it is tried, and tasks that start each
    /// other end as a loop.
    async fn start(&self, desk: &Desk, args: &Value, of: &CallOf) -> Result<Value, Fault> {
        let RunArgs { name, payload } = self.read(args)?;
        let depth = desk.store.run(of.run).await?.map_or(0, |run| run.depth);
        let by = of.task.as_ref().map(TaskName::as_str);
        let data = json!({ "by": by, "run": of.run, "payload": payload.map_or(Value::Null, Value::Object) });
        let event = NewEvent {
            task: name.clone(),
            key: EventKey(format!("task_run:{}/{}", of.run, of.position)),
            payload: EventPayload { kind: "task".into(), data },
            depth: depth.saturating_add(1),
        };
        desk.store.accept_events(&[event], of.now).await?;
        desk.handle.wake();
        let waits = matches!(task(desk, &name).await?.state, TaskState::Paused { .. });
        Ok(json!({ "accepted": name, "waits": if waits { Some("the task is paused") } else { None } }))
    }
}

fn checked(
    desk: &Desk,
    name: &TaskName,
    definition: &str,
    before: Option<&ow_model::TaskSpec>,
) -> Result<ow_model::TaskSpec, String> {
    let written = Written { name, text: definition, file: None, before };
    let now = desk.handle.shared.clock.now();
    (desk.check)(&written, now).map_err(|faults| format!("the definition is wrong: {}", faults.join("; ")))
}

async fn task(desk: &Desk, name: &TaskName) -> Result<TaskRow, Fault> {
    let found = desk.store.task(name).await?.filter(|task| !matches!(task.state, TaskState::Deleted { .. }));
    found.ok_or_else(|| TaskError::Unknown { name: name.clone() }.into())
}

fn shown(task: &TaskRow) -> Value {
    let state = match &task.state {
        TaskState::Active => "active",
        TaskState::Paused { .. } => "paused",
        TaskState::Deleted { .. } => "deleted",
    };
    json!({
        "name": task.spec.name,
        "title": task.spec.title,
        "state": state,
        "next": task.next_due,
        "waiting_events": task.waiting,
    })
}
