use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use ow_model::{Rule, RuleId, RuleScope, RuleTarget, TaskName};
use ow_protocol::{NewRule, Page, PageQuery, RuleView};

use super::tasks::find;
use crate::api::Api;
use crate::convert::{rule_view, target_of};
use crate::extract::{Json, NoBody, Path, Query, page, refuse_filters};
use crate::guard::Caller;
use crate::problem::Problem;

pub(super) async fn list(
    State(api): State<Api>,
    _caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Answer<Page<RuleView>>, Problem> {
    let PageQuery { after, limit, task, state, run, name } = query;
    refuse_filters("rules", &[("state", state.is_some()), ("run", run.is_some()), ("name", name.is_some())])?;
    let request = page(after, limit)?;
    let task = task.map(|task| task.parse::<TaskName>()).transpose()?;
    let mut rules = api.store.rules(task.as_ref(), api.control.now()).await?;
    rules.sort_by_key(place);
    if let Some(after) = request.after {
        let after = read_cursor(&after).ok_or(ow_store::StoreError::Cursor { cursor: after })?;
        rules.retain(|rule| place(rule) > after);
    }
    let more = rules.len() > request.limit;
    rules.truncate(request.limit);
    let next = rules.last().filter(|_| more).map(cursor);
    Ok(Answer(Page { rows: rules.iter().map(rule_view).collect(), next }))
}

pub(super) async fn add(
    State(api): State<Api>,
    caller: Caller,
    Json(NewRule { task, target, covers_outside, expires_in_ms, uses }): Json<NewRule>,
) -> Result<Answer<RuleView>, Problem> {
    let now = api.control.now();
    let Terms { expires_at, uses_left } = terms(expires_in_ms, uses, now)?;
    let target = target_of(target)?;
    let scope = match task {
        Some(task) => RuleScope::Task(find(&api, &task.parse()?).await?.spec.name),
        None if matches!(target, RuleTarget::Step { .. }) => {
            return Err(Problem::invalid("a rule for a step needs the `task` whose step it is"));
        }
        None => RuleScope::Everywhere,
    };
    if let Some(why) = api.control.never_permits(&target) {
        return Err(Problem::invalid(format!("this would never be permitted, whatever rule there is: {why}"))
            .with_hint("name something else; a rule lifts no hard block"));
    }
    let created_by = caller.name().into();
    let id = RuleId::random();
    let rule = Rule { id, scope, target, covers_outside, created_at: now, created_by, expires_at, uses_left, used: 0 };
    api.store.add_rule(&rule).await?;
    Ok(Answer(rule_view(&rule)))
}

pub(super) async fn remove(
    State(api): State<Api>,
    _caller: Caller,
    Path(text): Path<String>,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    let rule = crate::find::rule(&api, &text).await?;
    if api.store.remove_rule(rule.id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found(format!("there is no rule `{text}`")))
    }
}

/// Until when and how often a rule holds.
pub(super) struct Terms {
    pub(super) expires_at: Option<Timestamp>,
    pub(super) uses_left: Option<u32>,
}

pub(super) fn terms(expires_in_ms: Option<u64>, uses: Option<u32>, now: Timestamp) -> Result<Terms, Problem> {
    let expires_at = expires_in_ms
        .map(|millis| {
            let span = i64::try_from(millis).ok().filter(|millis| *millis > 0).map(SignedDuration::from_millis);
            let at = span.and_then(|span| now.checked_add(span).ok());
            at.ok_or_else(|| Problem::invalid(format!("`expires_in_ms`: {millis} ms from now is no time to expire")))
        })
        .transpose()?;
    if uses == Some(0) {
        return Err(Problem::invalid("`uses`: a rule that may be used 0 times permits nothing"));
    }
    Ok(Terms { expires_at, uses_left: uses })
}

/// Where a rule stands in the list: by age. The id makes the place unique.
fn place(rule: &Rule) -> (i128, String) {
    (rule.created_at.as_nanosecond(), rule.id.to_string())
}

fn cursor(rule: &Rule) -> String {
    let (at, id) = place(rule);
    format!("{at}.{id}")
}

fn read_cursor(text: &str) -> Option<(i128, String)> {
    let (at, id) = text.split_once('.')?;
    Some((at.parse().ok()?, id.parse::<RuleId>().ok()?.to_string()))
}
