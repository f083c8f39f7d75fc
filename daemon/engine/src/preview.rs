use std::fs;
use std::path::Path;
use std::sync::Arc;

use jiff::tz::TimeZone;
use ow_config::template;
use ow_model::{
    BlobHash, Call, Cause, EventPayload, Hole, Position, Risk, RuleTarget, Run, RunId, RunState, TaskId, TaskSpec,
    ToolName,
};
use ow_policy::{Action, Facts, Situation, Verdict};
use ow_store::StoreError;
use ow_turn::{RunContext, RunFolder};
use serde_json::Value;
use tracing::debug;

use crate::Engine;
use crate::course::step_facts;
use crate::session::workspace::Brought;

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

impl Engine {
    /// What each step of a task would do if it ran now, and what would ask: the same judgement, no effect.
    ///
    /// `payload` stands for the event. What only a run can know (results of earlier steps) stays a hole.
    pub async fn plan(
        self: &Arc<Self>,
        task: TaskId,
        spec: &TaskSpec,
        revision: u32,
        payload: Option<Value>,
    ) -> Result<Vec<PlannedStep>, StoreError> {
        let now = self.clock.now();
        let rules = self.store.rules(Some(&spec.name), now).await?;
        let (engine, spec) = (Arc::clone(self), spec.clone());
        let planned = tokio::task::spawn_blocking(move || {
            let context = engine.imagined_context(task, &spec, revision, payload);
            engine.with_stand_in(|run_folder| {
                let steps = spec.steps.iter().zip(0..);
                steps.map(|(_, step)| engine.plan_step(&spec, step, &context, run_folder, &rules)).collect()
            })
        });
        Ok(planned.await.expect("judging a plan does not panic"))
    }

    /// A run has a folder of its own before its first call is judged; here one stands in for the moment.
    fn with_stand_in<T>(&self, judge: impl FnOnce(&Path) -> T) -> T {
        let run_folder = self.runs_dir.join(RunId::random().to_string());
        if let Err(error) = fs::create_dir_all(&run_folder) {
            debug!(%error, "no folder stands in for a run's");
        }
        let judged = judge(&run_folder);
        // Nothing was put into it; should it stay, it is an empty folder.
        drop(fs::remove_dir(&run_folder));
        judged
    }

    fn imagined_context(&self, task: TaskId, spec: &TaskSpec, revision: u32, payload: Option<Value>) -> Value {
        let now = self.clock.now();
        let run = Run {
            id: RunId::from_bytes([0; 10]),
            order: 0,
            task,
            task_name: spec.name.clone(),
            revision,
            cause: Cause::Manual { by: String::new() },
            scheduled_for: now,
            created_at: now,
            started_at: None,
            ended_at: None,
            state: RunState::Running,
            depth: 0,
            attempt: 1,
            retry_of: None,
            ran_for_ms: 0,
        };
        let events: Vec<EventPayload> =
            payload.into_iter().map(|data| EventPayload { kind: "manual".into(), data }).collect();
        let zone = TimeZone::get(&spec.timezone.0).unwrap_or(TimeZone::UTC);
        let folder = RunFolder(self.runs_dir.join("<run>").to_string_lossy().into_owned());
        ow_turn::context(&RunContext { spec, run: &run, folder: &folder, events: &events, zone: &zone, now })
    }

    fn plan_step(
        &self,
        spec: &TaskSpec,
        index: u32,
        context: &Value,
        run_folder: &Path,
        rules: &[ow_model::Rule],
    ) -> PlannedStep {
        let step = &spec.steps[index as usize];
        let args = template::preview_args(&step.args, context);
        let holes = template::holes_of(&step.args);
        let planned = |verdict| PlannedStep {
            step: index,
            tool: step.tool.clone(),
            args: args.clone(),
            holes: holes.clone(),
            verdict,
        };
        if let Some(condition) = &step.condition
            && !matches!(template::eval_condition(condition, context), Ok(true))
        {
            return planned(PlannedVerdict::Conditional { condition: condition.clone() });
        }
        let call = Call { position: Position(index), tool: step.tool.clone(), args: args.clone() };
        let Some(tool) = self.toolbox.tool(&call.tool) else {
            return planned(PlannedVerdict::Broken { why: format!("there is no tool `{}`", call.tool) });
        };
        // What only the run will know is judged as if it fitted.
        let fitting = Call { args: ow_tool::as_if_filled(tool.spec(), &call.args), ..call.clone() };
        if let Err(why) = tool.check(&fitting.args) {
            return planned(PlannedVerdict::Broken { why });
        }
        let place = self.place(spec, run_folder.to_owned());
        let facts = match tool.facts(&fitting, &place) {
            Ok(facts) => facts,
            Err(error) => return planned(PlannedVerdict::Broken { why: error.message }),
        };
        let standing = Brought::of(&place.roots, &self.trust).judged_by(self.standing());
        let mut places = vec![];
        collect_holes(&step.args, "", &mut places);
        let step_facts = step_facts(spec, index, &places);
        let situation = Situation {
            task: Some(&spec.name),
            mode: spec.mode,
            roots: &place.roots,
            run_folder: Some(&place.run_folder),
            rules,
            step: Some(&step_facts),
            tainted: crate::course::is_tainted(&places, false),
            denied: &[],
            uncertain: &[],
            task_http: &spec.http_allow,
            named_hosts: &[],
            always_tools: &[],
            always_commands: &[],
            settings: &standing.settings,
            now: self.clock.now(),
        };
        planned(PlannedVerdict::Judged(ow_policy::judge(&call, &facts, &situation)))
    }

    /// What `owctl task allow` would store for each step, exactly as it is shown.
    pub async fn allowable(self: &Arc<Self>, spec: &TaskSpec) -> Result<Vec<AllowableStep>, StoreError> {
        let rules = self.store.rules(Some(&spec.name), self.clock.now()).await?;
        let (engine, spec) = (Arc::clone(self), spec.clone());
        let steps = tokio::task::spawn_blocking(move || {
            engine.with_stand_in(|run_folder| {
                let steps = spec.steps.iter().zip(0..);
                steps.map(|(_, step)| engine.allowable_step(&spec, step, run_folder, &rules)).collect()
            })
        });
        Ok(steps.await.expect("looking at a step does not panic"))
    }

    /// Why a rule would never permit anything.
    #[must_use]
    pub fn never_permits(&self, target: &RuleTarget) -> Option<String> {
        let (rule, why) = ow_policy::never_permits(target, &self.standing().settings)?;
        Some(format!("{why} ({rule})"))
    }

    fn allowable_step(
        &self,
        spec: &TaskSpec,
        index: u32,
        run_folder: &Path,
        rules: &[ow_model::Rule],
    ) -> AllowableStep {
        let step = &spec.steps[index as usize];
        let (text, text_hash) = ow_config::step_text(step);
        let holes = template::holes_of(&step.args);
        let target = self
            .facts_of_step(spec, index, run_folder)
            .map(|facts| ow_policy::rule_for_step(index, text_hash, facts.as_ref(), holes.clone()));
        let allowed = target.as_ref().is_ok_and(|target| rules.iter().any(|rule| rule.target == *target));
        AllowableStep { step: index, tool: step.tool.clone(), text, text_hash, holes, target, allowed }
    }

    /// What a step that starts programs would start now; none for tools that start none.
    fn facts_of_step(&self, spec: &TaskSpec, index: u32, run_folder: &Path) -> Result<Option<Facts>, String> {
        let step = &spec.steps[index as usize];
        let tool = self.toolbox.tool(&step.tool).ok_or_else(|| format!("there is no tool `{}`", step.tool))?;
        let risk = tool.spec().risk;
        if !matches!(risk, Risk::Exec | Risk::WriteLocal) {
            return Ok(None);
        }
        // A template's own syntax would be read as the shell's.
        let context = self.imagined_context(TaskId(0), spec, 0, None);
        let args = ow_tool::as_if_filled(tool.spec(), &template::preview_args(&step.args, &context));
        let call = Call { position: Position(index), tool: step.tool.clone(), args };
        let place = self.place(spec, run_folder.to_owned());
        let facts = match tool.facts(&call, &place) {
            Ok(facts) => facts,
            // What it writes to may only be there in a run.
            Err(_) if risk == Risk::WriteLocal => return Ok(None),
            Err(error) => return Err(error.message),
        };
        if let Some((rule, why)) = ow_policy::hard_block(&facts, &self.standing().settings, Some(run_folder)) {
            return Err(format!("{why} ({rule})"));
        }
        if matches!(facts.action, Action::Command { program: None, .. }) {
            return Err("its program is not found, or is not named in the step; a rule cannot be bound to it".into());
        }
        Ok(Some(facts).filter(|_| risk == Risk::Exec))
    }
}

/// Where holes stand in unrendered arguments: what rendering would report.
fn collect_holes(args: &Value, pointer: &str, holes: &mut Vec<Hole>) {
    match args {
        Value::String(text) => {
            for name in template::Template::parse(text).iter().flat_map(template::Template::holes) {
                holes.push(Hole { name: name.to_owned(), at: pointer.to_owned() });
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                collect_holes(element, &format!("{pointer}/{index}"), holes);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect_holes(field, &format!("{pointer}/{key}"), holes);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
