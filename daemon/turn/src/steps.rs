use std::sync::Arc;

use ow_config::template;
use ow_model::{
    Answer, Answered, Call, CallError, CallErrorKind, CallHash, CallResult, Fact, Failure, Hole, Intent, ItemId,
    OnError, Outcome, Position, Reconciled, Resolution, TaskSpec,
};
use serde_json::{Map, Value, json};

use crate::{Doubt, Effect, Permission};

/// Where a run of steps stands: the fold of its journal.
#[derive(Clone, Debug, PartialEq)]
pub struct StepsTurn {
    spec: Arc<TaskSpec>,
    context: Value,
    results: Map<String, Value>,
    stage: Stage,
    next_position: u32,
    side_effect: bool,
    denied: Vec<CallHash>,
    uncertain: Vec<CallHash>,
    outside: bool,
}

/// A rendered call of one step.
#[derive(Clone, Debug, PartialEq)]
struct Rendered {
    step: u32,
    call: Call,
    holes: Vec<Hole>,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    New,
    /// The step with this index comes next; past the last one the run has succeeded.
    Ready {
        step: u32,
    },
    Admitting {
        rendered: Rendered,
        permission: Permission,
    },
    Parked {
        rendered: Rendered,
        item: ItemId,
    },
    Intended {
        rendered: Rendered,
        /// By what it was let through, and may be again if it did not happen.
        permission: Permission,
        intent: Intent,
        repeatable: bool,
        /// owd stopped it itself: known to be incomplete.
        stopped: bool,
    },
    /// A stopped or reconciled call of which nobody knows whether it took effect.
    Uncertain {
        rendered: Rendered,
        doubt: Doubt,
    },
    /// Something ends the run that has not been recorded yet.
    Ending {
        outcome: Outcome,
    },
    Ended,
}

impl StepsTurn {
    #[must_use]
    pub fn new(spec: impl Into<Arc<TaskSpec>>) -> Self {
        Self {
            spec: spec.into(),
            context: Value::Null,
            results: Map::new(),
            stage: Stage::New,
            next_position: 0,
            side_effect: false,
            denied: vec![],
            uncertain: vec![],
            outside: false,
        }
    }

    /// Whether a call with side effects has begun: then the run is not tried again by itself.
    #[must_use]
    pub const fn had_side_effect(&self) -> bool {
        self.side_effect
    }

    /// Calls that were denied in this run; they are not asked again.
    #[must_use]
    pub fn denied(&self) -> &[CallHash] {
        &self.denied
    }

    /// Calls whose outcome was unknown; equal ones ask, whatever rule or mode says.
    #[must_use]
    pub fn uncertain(&self) -> &[CallHash] {
        &self.uncertain
    }

    /// Whether a result so far holds text from outside.
    #[must_use]
    pub const fn holds_outside(&self) -> bool {
        self.outside
    }

    /// The one effect that comes next.
    #[must_use]
    pub fn next(&self) -> Effect {
        match &self.stage {
            Stage::New => Effect::Start,
            Stage::Ready { step } => self.begin_step(*step),
            Stage::Admitting { rendered, permission } => Effect::Admit {
                step: rendered.step,
                call: rendered.call.clone(),
                holes: rendered.holes.clone(),
                permission: permission.clone(),
            },
            Stage::Parked { rendered, item } => Effect::Wait { position: rendered.call.position, item: *item },
            Stage::Intended { rendered, intent, repeatable, .. } => {
                Effect::Reconcile { call: rendered.call.clone(), intent: intent.clone(), repeatable: *repeatable }
            }
            Stage::Uncertain { rendered, doubt } => {
                Effect::AskUncertain { step: rendered.step, call: rendered.call.clone(), doubt: doubt.clone() }
            }
            Stage::Ending { outcome } => Effect::End(outcome.clone()),
            Stage::Ended => Effect::End(Outcome::Succeeded),
        }
    }

    /// Whether the run's last fact is in the journal.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    fn begin_step(&self, step: u32) -> Effect {
        let Some(text) = self.spec.steps.get(step as usize) else {
            return Effect::End(Outcome::Succeeded);
        };
        let context = self.template_context();
        let failed = |message: String| Effect::Record(Fact::RenderFailed { step, message });
        match text.condition.as_deref().map(|condition| template::eval_condition(condition, &context)) {
            Some(Ok(false)) => return Effect::Record(Fact::StepSkipped { step }),
            Some(Err(error)) => return failed(format!("step {}: `if`: {error}", step + 1)),
            Some(Ok(true)) | None => {}
        }
        match template::render_args(&text.args, &context) {
            Ok(rendered) => {
                let call =
                    Call { position: Position(self.next_position), tool: text.tool.clone(), args: rendered.args };
                let holes = rendered.holes.into_iter().map(hole).collect();
                Effect::Record(Fact::Rendered { step, call, holes })
            }
            Err(error) => failed(format!("step {}: {error}", step + 1)),
        }
    }

    fn template_context(&self) -> Value {
        let mut context = self.context.clone();
        if let Value::Object(fields) = &mut context {
            fields.insert("steps".into(), Value::Object(self.results.clone()));
        }
        context
    }

    /// Folds one fact in.
    ///
    /// Total: a fact that does not fit where the run stands changes nothing.
    #[must_use]
    pub fn apply(mut self, fact: &Fact) -> Self {
        self.stage = match (self.stage.clone(), fact) {
            (Stage::New, Fact::Started { context, .. }) => {
                self.context = context.clone();
                Stage::Ready { step: 0 }
            }
            (Stage::Ready { step }, Fact::StepSkipped { step: skipped }) if step == *skipped => {
                Stage::Ready { step: step + 1 }
            }
            (Stage::Ready { step }, Fact::RenderFailed { step: broken, message }) if step == *broken => {
                let error = CallError { kind: CallErrorKind::BadArguments, message: message.clone() };
                let outcome = Outcome::Failed { failure: Failure::Template, message: message.clone() };
                self.failed_step(step, &error, None, outcome)
            }
            (Stage::Ready { step }, Fact::Rendered { step: rendered, call, holes }) if step == *rendered => {
                self.next_position = call.position.0 + 1;
                let rendered = Rendered { step, call: call.clone(), holes: holes.clone() };
                Stage::Admitting { rendered, permission: Permission::Policy }
            }
            (Stage::Admitting { rendered, .. }, Fact::Refused { position, rule }) if is(&rendered, *position) => {
                self.denied.push(rendered.call.hash());
                let message = format!("step {} was refused: {rule}", rendered.step + 1);
                let error = CallError { kind: CallErrorKind::Refused, message: message.clone() };
                self.failed_step(rendered.step, &error, None, Outcome::Refused { message })
            }
            (
                Stage::Admitting { rendered, .. } | Stage::Uncertain { rendered, .. },
                Fact::Parked { position, item },
            ) if is(&rendered, *position) => Stage::Parked { rendered, item: *item },
            (Stage::Parked { rendered, item }, Fact::Answered { position, item: answered, answered: how })
                if is(&rendered, *position) && item == *answered =>
            {
                self.answered(rendered, item, how)
            }
            (Stage::Admitting { rendered, .. }, Fact::Edited { position, call }) if is(&rendered, *position) => {
                let Stage::Admitting { permission, .. } = self.stage.clone() else { unreachable!("matched above") };
                Stage::Admitting { rendered: Rendered { call: call.clone(), holes: vec![], ..rendered }, permission }
            }
            (Stage::Admitting { rendered, .. }, Fact::Voided { position, .. }) if is(&rendered, *position) => {
                Stage::Admitting { rendered, permission: Permission::Policy }
            }
            (Stage::Admitting { rendered, permission }, Fact::Intended { position, intent, repeatable, .. })
                if is(&rendered, *position) =>
            {
                self.side_effect |= !repeatable;
                Stage::Intended {
                    rendered,
                    permission,
                    intent: intent.clone(),
                    repeatable: *repeatable,
                    stopped: false,
                }
            }
            // Without `Intended` the call ended before it was tried: its arguments do not fit, no such file.
            (
                Stage::Admitting { rendered, .. } | Stage::Intended { rendered, .. },
                Fact::Done { position, result, .. },
            ) if is(&rendered, *position) => self.done(&rendered, result),
            (Stage::Intended { rendered, permission, intent, repeatable, .. }, Fact::Stopped { position })
                if is(&rendered, *position) =>
            {
                if repeatable {
                    Stage::Admitting { rendered, permission }
                } else {
                    // The tool may know: a write that was stopped either replaced the file or did not.
                    Stage::Intended { rendered, permission, intent, repeatable, stopped: true }
                }
            }
            (Stage::Intended { rendered, permission, stopped, .. }, Fact::Reconciled { position, found })
                if is(&rendered, *position) =>
            {
                match found {
                    Reconciled::Happened { result } => self.done(&rendered, result),
                    // What a person allowed was for one run, and that is still to come.
                    Reconciled::DidNotHappen => Stage::Admitting { rendered, permission },
                    Reconciled::Unknown { why } => {
                        self.uncertain.push(rendered.call.hash());
                        let doubt = if stopped { Doubt::Stopped } else { Doubt::Crashed { why: why.clone() } };
                        Stage::Uncertain { rendered, doubt }
                    }
                }
            }
            (Stage::Ended, _) | (_, Fact::Ended { .. }) => Stage::Ended,
            (stage, _) => stage,
        };
        self
    }

    fn answered(&mut self, rendered: Rendered, item: ItemId, how: &Answered) -> Stage {
        let step = rendered.step;
        match how {
            Answered::Resolved(resolution) if resolution.answer.allows() => {
                let permission = Permission::Answer { item, resolution: resolution.clone() };
                Stage::Admitting { rendered, permission }
            }
            Answered::Resolved(resolution) => {
                self.denied.push(rendered.call.hash());
                let message = denial(step, resolution);
                let error = CallError { kind: CallErrorKind::Denied, message: message.clone() };
                let outcome = if self.uncertain.contains(&rendered.call.hash()) {
                    Outcome::Failed { failure: Failure::Unknown, message }
                } else {
                    Outcome::Refused { message }
                };
                self.failed_step(step, &error, None, outcome)
            }
            Answered::Expired => {
                self.denied.push(rendered.call.hash());
                let message = format!("step {}: nobody answered in time", step + 1);
                let error = CallError { kind: CallErrorKind::Denied, message };
                self.failed_step(step, &error, None, Outcome::Expired { item })
            }
            // Withdrawn without an answer (a restore): the question still stands and is asked anew.
            Answered::Withdrawn { .. } => {
                if self.uncertain.contains(&rendered.call.hash()) {
                    let why = "its question was withdrawn".to_owned();
                    Stage::Uncertain { rendered, doubt: Doubt::Crashed { why } }
                } else {
                    Stage::Admitting { rendered, permission: Permission::Policy }
                }
            }
        }
    }

    fn done(&mut self, rendered: &Rendered, result: &CallResult) -> Stage {
        let step = rendered.step;
        self.outside |= result.outside;
        let Some(error) = &result.error else {
            self.save(step, result_value(result));
            return Stage::Ready { step: step + 1 };
        };
        let failure = match error.kind {
            CallErrorKind::Unreachable => Failure::Unreachable,
            _ => Failure::Step,
        };
        let message = format!("step {} (`{}`) failed: {error}", step + 1, rendered.call.tool);
        self.failed_step(step, error, Some(result), Outcome::Failed { failure, message })
    }

    fn failed_step(&mut self, step: u32, error: &CallError, result: Option<&CallResult>, outcome: Outcome) -> Stage {
        match self.spec.steps.get(step as usize).map(|step| step.on_error) {
            Some(OnError::Continue) => {
                let mut value = result.map_or_else(|| json!({}), result_value);
                if let Value::Object(fields) = &mut value {
                    fields.insert("error".into(), Value::String(error.message.clone()));
                }
                self.save(step, value);
                Stage::Ready { step: step + 1 }
            }
            Some(OnError::Stop) | None => Stage::Ending { outcome },
        }
    }

    fn save(&mut self, step: u32, value: Value) {
        let name = self.spec.steps.get(step as usize).and_then(|step| step.save_as.clone());
        if let Some(name) = name {
            self.results.insert(name, value);
        }
    }
}

fn is(rendered: &Rendered, position: Position) -> bool {
    rendered.call.position == position
}

fn hole(used: template::HoleUse) -> Hole {
    Hole { name: used.name, at: used.pointer }
}

/// What later steps read: the output with `error` empty.
fn result_value(result: &CallResult) -> Value {
    let mut value = result.output.clone();
    if let Value::Object(fields) = &mut value {
        fields.entry("error").or_insert(Value::Null);
    }
    value
}

fn denial(step: u32, resolution: &Resolution) -> String {
    let who = &resolution.by.person.0;
    match &resolution.answer {
        Answer::Deny { reason: Some(reason) } => format!("step {} was denied by {who}: {reason}", step + 1),
        _ => format!("step {} was denied by {who}", step + 1),
    }
}
