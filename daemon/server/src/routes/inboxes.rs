//! Where items are told of: which deliveries there were, handing an item on, a trial of what is bound.

use axum::Json as Answered;
use axum::extract::State;
use ow_model::InboxName;
use ow_protocol::{DelegateRequest, DeliveryView, ErrorCode, ItemView, Page, TriedBinding};

use crate::api::Api;
use crate::convert::{delivery_view, item_view};
use crate::extract::{Json, NoBody, Path};
use crate::find;
use crate::guard::Caller;
use crate::problem::Problem;

pub(super) async fn deliveries(
    State(api): State<Api>,
    _caller: Caller,
    Path(text): Path<String>,
) -> Result<Answered<Page<DeliveryView>>, Problem> {
    let item = find::item(&api, &text).await?;
    let rows = api.store.deliveries(item.id).await?;
    Ok(Answered(Page { rows: rows.into_iter().map(delivery_view).collect(), next: None }))
}

pub(super) async fn delegate(
    State(api): State<Api>,
    caller: Caller,
    Path(text): Path<String>,
    Json(request): Json<DelegateRequest>,
) -> Result<Answered<ItemView>, Problem> {
    let item = find::item(&api, &text).await?;
    if !api.control.may_answer(&caller.0.person, &item) {
        return Err(Problem::new(
            ErrorCode::Forbidden,
            format!("{} may not hand item {} on, as they may not answer it", caller.name(), item.id),
        )
        .with_hint("the configuration says who may answer which inbox"));
    }
    let to = known(&api, &request.inbox)?;
    let item = api.store.delegate(item.id, &to, &caller.0, api.control.now()).await?;
    api.control.wake();
    Ok(Answered(item_view(item)))
}

pub(super) async fn try_bindings(
    State(api): State<Api>,
    _caller: Caller,
    Path(text): Path<String>,
    _: NoBody,
) -> Result<Answered<Page<TriedBinding>>, Problem> {
    let inbox = known(&api, &text)?;
    let tried = api.control.try_bindings(&inbox).await;
    let rows = tried
        .into_iter()
        .map(|(binding, fault)| TriedBinding { binding: binding.shown().into_owned(), fault })
        .collect();
    Ok(Answered(Page { rows, next: None }))
}

fn known(api: &Api, text: &str) -> Result<InboxName, Problem> {
    let inboxes = api.control.inboxes();
    if let Some(inbox) = inboxes.iter().find(|inbox| inbox.as_str() == text) {
        return Ok(inbox.clone());
    }
    let known: Vec<String> = inboxes.iter().map(|inbox| format!("`{inbox}`")).collect();
    Err(Problem::not_found(format!("there is no inbox `{text}`"))
        .with_hint(format!("there are {}; owd.toml names them, as `[inboxes.ops]`", known.join(", "))))
}
