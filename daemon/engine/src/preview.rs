use ow_model::{BlobHash, RuleTarget, ToolName};
use ow_policy::Verdict;
use serde_json::Value;

/// What one step of a task would do now, judged by the same code as a real run, with no effect.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedStep {
    pub step: u32,
    pub tool: ToolName,
    /// Rendered as far as it can be now; what only a run knows stands as `{{ name }}`.
    pub args: Value,
    /// The values that only a run will know, by name.
    pub holes: Vec<String>,
    pub verdict: PlannedVerdict,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PlannedVerdict {
    Judged(Verdict),
    /// Its `if` is false as things stand, or depends on what only a run knows.
    Conditional {
        condition: String,
    },
    /// It could not run at all: bad arguments, no such program.
    Broken {
        why: String,
    },
}

/// One step as `owctl task allow` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct AllowableStep {
    pub step: u32,
    pub tool: ToolName,
    /// The unrendered text that the rule is bound to.
    pub text: String,
    pub text_hash: BlobHash,
    pub holes: Vec<String>,
    /// The rule that would be stored, or why none can be.
    pub target: Result<RuleTarget, String>,
    /// A rule covers it already.
    pub allowed: bool,
}
