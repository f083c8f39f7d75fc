use axum::Json as Answered;
use axum::extract::State;
use ow_model::{Answer, Item, ItemKind};
use ow_protocol::{AnswerRequest, ErrorCode, ItemView, Page, PageQuery};
use ow_store::ItemFilter;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::api::Api;
use crate::convert::item_view;
use crate::extract::{Json, Path, Query, page, refuse_filters};
use crate::find;
use crate::guard::Caller;
use crate::problem::Problem;

pub(super) async fn list(
    State(api): State<Api>,
    _caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Answered<Page<ItemView>>, Problem> {
    let PageQuery { after, limit, task, state, run, name } = query;
    refuse_filters("items", &[("name", name.is_some())])?;
    let pending_only = match state.as_deref() {
        None | Some("pending") => true,
        Some("all") => false,
        Some(other) => {
            return Err(Problem::bad_request(format!("`state={other}` is no filter of items: use `pending` or `all`")));
        }
    };
    let task = task.map(|task| task.parse()).transpose()?;
    let run = match run {
        None => None,
        Some(text) => Some(find::run(&api, &text).await?.id),
    };
    let found = api.store.items(&ItemFilter { pending_only, task, run }, &page(after, limit)?).await?;
    Ok(Answered(Page { rows: found.rows.into_iter().map(item_view).collect(), next: found.next }))
}

pub(super) async fn show(
    State(api): State<Api>,
    _caller: Caller,
    Path(text): Path<String>,
) -> Result<Answered<ItemView>, Problem> {
    Ok(Answered(item_view(find::item(&api, &text).await?)))
}

pub(super) async fn answer(
    State(api): State<Api>,
    caller: Caller,
    Path(text): Path<String>,
    Json(Exactly(request)): Json<Exactly>,
) -> Result<Answered<ItemView>, Problem> {
    let item = find::item(&api, &text).await?;
    if !api.control.may_answer(&caller.0.person, &item) {
        return Err(Problem::new(ErrorCode::Forbidden, format!("{} may not answer item {}", caller.name(), item.id))
            .with_hint("the configuration says who may answer which inbox"));
    }
    let answer = read_answer(request, &item)?;
    if answer.allows() {
        api.control.expect_call();
    }
    let resolved = api.store.resolve(item.id, &answer, &caller.0, api.control.now()).await?;
    api.control.wake_for_work();
    Ok(Answered(item_view(resolved.item)))
}

/// An answer and nothing beside it. serde passes over what stands beside a variant without fields; one who
/// sends arguments with an `approve` means something else than to approve what was shown.
pub(super) struct Exactly(AnswerRequest);

impl<'de> Deserialize<'de> for Exactly {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        let beside = fields.keys().find(|field| *field != "answer").cloned();
        let request = serde_json::from_value(Value::Object(fields)).map_err(D::Error::custom)?;
        match (&request, beside) {
            (AnswerRequest::Approve | AnswerRequest::ApproveForTask | AnswerRequest::Acknowledge, Some(beside)) => {
                Err(D::Error::custom(format!("unknown field `{beside}` beside an answer that has none")))
            }
            _ => Ok(Self(request)),
        }
    }
}

/// What the request means for this item. Whether it fits is for the store to say, in the same transaction in
/// which the item is resolved; a notification takes any answer as its acknowledgement.
fn read_answer(request: AnswerRequest, item: &Item) -> Result<Answer, Problem> {
    Ok(match request {
        AnswerRequest::Approve => Answer::Once,
        AnswerRequest::ApproveForTask => Answer::ForTask,
        AnswerRequest::ApproveTool => Answer::AlwaysTool,
        AnswerRequest::ApproveCommand => Answer::AlwaysCommand,
        AnswerRequest::Acknowledge => Answer::Acknowledge,
        AnswerRequest::Deny { reason } => Answer::Deny { reason },
        AnswerRequest::Edit { arguments } if arguments.is_object() => Answer::Edited { args: arguments },
        AnswerRequest::Edit { arguments: _ } => {
            return Err(Problem::invalid("`arguments` must be an object, as the item shows them"));
        }
        AnswerRequest::Answer { text } => {
            let text = text.trim();
            if text.is_empty() {
                return Err(Problem::invalid("an empty text answers nothing"));
            }
            let options = match &item.kind {
                ItemKind::Question { questions } => match questions.as_slice() {
                    [one] => one.options.as_slice(),
                    _ => &[],
                },
                _ => &[],
            };
            Answer::Text { text: ow_reply::option(text, options).map_or(text, |(_, label)| label).into() }
        }
    })
}
