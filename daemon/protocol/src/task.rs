use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A task as lists and `task show` give it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct TaskView {
    pub name: String,
    pub title: Option<String>,
    pub revision: u32,
    /// `file` or `store`.
    pub source: String,
    /// `active` or `paused`.
    pub state: String,
    /// Why it is paused.
    pub paused_why: Option<String>,
    pub time_zone: String,
    /// Each trigger in words, as `cron 0 6 * * mon-fri`.
    pub triggers: Vec<String>,
    pub next_due: Option<String>,
    pub failures_in_row: u32,
    pub events_waiting: u32,
    pub created_at: String,
    pub updated_at: String,
    /// The last run, if there was one. Only in `task show`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<crate::RunView>,
    /// The definition as TOML. Only in `task show`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
}

/// `PUT /v1/tasks/{name}`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SaveTask {
    /// The definition, TOML as in a task file.
    pub definition: String,
    /// Refuse if the task exists (`task add`).
    #[serde(default)]
    pub must_be_new: bool,
    /// Refuse unless the task is at this revision (`task edit`).
    #[serde(default)]
    pub expect_revision: Option<u32>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SavedTask {
    pub name: String,
    pub revision: u32,
    /// `created`, `revised`, `unchanged`.
    pub change: String,
    pub next_due: Option<String>,
}

/// `POST /v1/tasks/{name}/run`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunNowRequest {
    /// What templates read as `event`.
    #[serde(default)]
    pub payload: Option<Value>,
}

/// What a run would do, without any effect: `POST /v1/tasks/{name}/plan`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct PlanView {
    pub task: String,
    pub revision: u32,
    pub steps: Vec<PlanStep>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct PlanStep {
    pub step: u32,
    pub tool: String,
    /// Rendered as far as it can be now; holes that only a run fills stand as `{{ name }}`.
    pub arguments: Value,
    /// Values that only the run will know, by name.
    pub holes: Vec<String>,
    /// `allow`, `ask`, `deny`, `skip`.
    pub verdict: String,
    pub rule: String,
    pub why: String,
}

/// What `task allow` would store: `GET /v1/tasks/{name}/allow`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct AllowPreview {
    pub task: String,
    pub revision: u32,
    pub steps: Vec<AllowStep>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct AllowStep {
    pub step: u32,
    pub tool: String,
    /// The step's unrendered text, exactly what the rule is bound to.
    pub text: String,
    pub text_hash: String,
    pub program: Option<String>,
    /// Every other program that the step's text names; the rule is bound to them too.
    #[serde(default)]
    pub parts: Vec<String>,
    /// Holes that the rule would accept, by name.
    pub holes: Vec<String>,
    /// A rule covers this step already.
    pub allowed: bool,
    /// Why no rule can cover it, if none can.
    pub refused: Option<String>,
}

/// `POST /v1/tasks/{name}/allow`: stores rules for the steps as previewed.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AllowRequest {
    /// The steps as the preview gave them, by number and text hash: a step changed since is refused.
    pub steps: Vec<AllowedStep>,
    #[serde(default)]
    pub covers_outside: bool,
    /// Milliseconds until the rules expire.
    #[serde(default)]
    pub expires_in_ms: Option<u64>,
    #[serde(default)]
    pub uses: Option<u32>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedStep {
    pub step: u32,
    pub text_hash: String,
    pub holes: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ForecastEntry {
    pub at: String,
    pub task: String,
    pub title: Option<String>,
    /// Set if it would not start: `paused`.
    pub held: Option<String>,
}

/// One record of what became of a slot.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SlotView {
    /// `instant`, `range`, `event`, `manual`.
    pub kind: String,
    /// The instant, the range's first instant, or the event key.
    pub key: String,
    /// For a range: its last instant and how many it stands for.
    pub until: Option<String>,
    pub count: u64,
    /// `fired`, `skipped`, `missed`, `superseded`, `voided`.
    pub disposition: String,
    pub why: Option<String>,
    pub run: Option<String>,
    /// The state of that run.
    pub run_state: Option<String>,
    pub recorded_at: String,
}

/// The answer of `owctl why TASK [TIME]`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct WhyView {
    pub task: String,
    /// The question in words answered in a sentence.
    pub answer: String,
    pub records: Vec<SlotView>,
    pub next_due: Option<String>,
}
