use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct RuleView {
    pub id: String,
    /// The task's name, or none for a rule that holds everywhere.
    pub task: Option<String>,
    pub target: RuleTargetView,
    /// The target in words.
    pub text: String,
    pub covers_outside: bool,
    pub created_at: String,
    pub created_by: String,
    pub expires_at: Option<String>,
    pub uses_left: Option<u32>,
    pub used: u64,
}

/// What exactly a rule permits.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(tag = "target", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RuleTargetView {
    Step {
        step: u32,
        text_hash: String,
        #[serde(default)]
        program: Option<String>,
        #[serde(default)]
        program_hash: Option<String>,
        /// Every other program that the step's text names.
        #[serde(default)]
        parts: Vec<ProgramView>,
        holes: Vec<String>,
    },
    Call {
        hash: String,
    },
    Argv {
        argv: Vec<String>,
        #[serde(default)]
        cwd: Option<String>,
    },
    Path {
        tool: String,
        path: String,
    },
    Origin {
        method: String,
        origin: String,
    },
}

/// A program as a rule is bound to it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramView {
    pub program: String,
    pub hash: String,
}

/// `POST /v1/rules`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NewRule {
    #[serde(default)]
    pub task: Option<String>,
    pub target: RuleTargetView,
    #[serde(default)]
    pub covers_outside: bool,
    #[serde(default)]
    pub expires_in_ms: Option<u64>,
    #[serde(default)]
    pub uses: Option<u32>,
}
