use axum::Json as Answer;
use axum::extract::State;
use jiff::Timestamp;
use ow_engine::AllowableStep;
use ow_model::{Rule, RuleId, RuleScope, RuleTarget};
use ow_protocol::{AllowPreview, AllowRequest, AllowedStep, ErrorCode, Page, RuleView};
use ow_store::TaskRow;
use serde::Deserialize;

use super::rules::{Terms, terms};
use super::tasks::find;
use crate::api::Api;
use crate::convert::{allow_step, rule_view};
use crate::extract::{Json, Named, Query};
use crate::guard::Caller;
use crate::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PreviewQuery {
    step: Option<u32>,
}

pub(super) async fn preview(
    State(api): State<Api>,
    _caller: Caller,
    Named(name): Named,
    Query(PreviewQuery { step }): Query<PreviewQuery>,
) -> Result<Answer<AllowPreview>, Problem> {
    let task = find(&api, &name).await?;
    let mut steps = allowable(&api, &task).await?;
    if let Some(step) = step {
        steps.retain(|allowable| allowable.step == step);
        if steps.is_empty() {
            return Err(no_step(&task, step));
        }
    }
    let steps = steps.into_iter().map(allow_step).collect();
    Ok(Answer(AllowPreview { task: name.to_string(), revision: task.revision, steps }))
}

pub(super) async fn allow(
    State(api): State<Api>,
    caller: Caller,
    Named(name): Named,
    Json(request): Json<AllowRequest>,
) -> Result<Answer<Page<RuleView>>, Problem> {
    let AllowRequest { steps, covers_outside, expires_in_ms, uses } = request;
    let now = api.control.now();
    let Terms { expires_at, uses_left } = terms(expires_in_ms, uses, now)?;
    if steps.is_empty() {
        return Err(Problem::invalid("no step is named"));
    }
    let task = find(&api, &name).await?;
    let allowable = allowable(&api, &task).await?;
    // All are checked before the first is stored.
    let targets: Vec<_> = steps.iter().map(|step| accepted(&task, &allowable, step)).collect::<Result<_, _>>()?;

    let mut rules: Vec<Rule> = vec![];
    for target in targets {
        if !rules.iter().any(|rule| rule.target == target) {
            rules.push(Rule {
                id: RuleId::random(),
                scope: RuleScope::Task(name.clone()),
                target,
                covers_outside,
                created_at: now,
                created_by: caller.name().into(),
                expires_at,
                uses_left,
                used: 0,
            });
        }
    }
    let replaced = replaced(&api, &rules, now).await?;
    for rule in &rules {
        api.store.add_rule(rule).await?;
    }
    // The new rules hold by now, so that there is no instant at which the step is not allowed.
    for rule in replaced {
        api.store.remove_rule(rule).await?;
    }
    Ok(Answer(Page { rows: rules.iter().map(rule_view).collect(), next: None }))
}

/// The rule that the person saw and accepted, for one step.
fn accepted(task: &TaskRow, allowable: &[AllowableStep], request: &AllowedStep) -> Result<RuleTarget, Problem> {
    let AllowedStep { step, text_hash, holes } = request;
    let number = number(*step);
    let found = allowable.iter().find(|allowable| allowable.step == *step).ok_or_else(|| no_step(task, *step))?;
    if found.text_hash.to_string() != *text_hash {
        return Err(Problem::new(
            ErrorCode::Conflict,
            format!("step {number} of task `{}` was changed since it was shown", task.spec.name),
        )
        .with_hint("look at it again with `owctl task allow`"));
    }
    let target = found
        .target
        .as_ref()
        .map_err(|why| Problem::invalid(format!("step {number} cannot be allowed by a rule: {why}")))?;
    if let Some(unknown) = holes.iter().find(|hole| !found.holes.contains(hole)) {
        return Err(Problem::invalid(format!("step {number} has no hole `{unknown}`"))
            .with_details(found.holes.iter().map(|hole| format!("it has `{hole}`")).collect()));
    }
    Ok(match target.clone() {
        RuleTarget::Step { step, text, program, parts, holes: _ } => {
            RuleTarget::Step { step, text, program, parts, holes: holes.clone() }
        }
        other => other,
    })
}

/// Older rules of the same task for the same step: allowing again replaces what was allowed.
async fn replaced(api: &Api, rules: &[Rule], now: Timestamp) -> Result<Vec<RuleId>, Problem> {
    let mut old = api.store.rules(None, now).await?;
    old.retain(|old| {
        rules.iter().any(|new| {
            old.scope == new.scope && step_of(&old.target).is_some_and(|step| step_of(&new.target) == Some(step))
        })
    });
    Ok(old.into_iter().map(|rule| rule.id).collect())
}

const fn step_of(target: &RuleTarget) -> Option<u32> {
    match target {
        RuleTarget::Step { step, .. } => Some(*step),
        RuleTarget::Call { .. } | RuleTarget::Argv { .. } | RuleTarget::Path { .. } | RuleTarget::Origin { .. } => None,
    }
}

async fn allowable(api: &Api, task: &TaskRow) -> Result<Vec<AllowableStep>, Problem> {
    let steps = api.control.allowable(task).await;
    steps.map_err(|why| Problem::invalid(format!("the steps of task `{}` cannot be judged: {why}", task.spec.name)))
}

fn no_step(task: &TaskRow, step: u32) -> Problem {
    Problem::not_found(format!("task `{}` has no step {}", task.spec.name, number(step)))
        .with_hint(format!("it has {} of them, counted from 1", task.spec.steps.len()))
}

/// A step as people count: from 1.
const fn number(step: u32) -> u64 {
    step as u64 + 1
}
