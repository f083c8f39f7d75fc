use axum::Json as Answered;
use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ow_protocol::{DeliverRequest, DeliveredView};

use crate::api::Api;
use crate::control::TakenMail;
use crate::extract::Json;
use crate::guard::Caller;
use crate::problem::Problem;

pub(super) async fn deliver(
    State(api): State<Api>,
    caller: Caller,
    Json(request): Json<DeliverRequest>,
) -> Result<Answered<DeliveredView>, Problem> {
    let DeliverRequest { mail } = request;
    let raw = STANDARD.decode(&mail).map_err(|error| Problem::invalid(format!("`mail` is not base64: {error}")))?;
    let TakenMail { outcome, item, decision, why, told } = api.control.take_mail(&raw, &caller.0.person).await?;
    api.control.wake_for_work();
    Ok(Answered(DeliveredView {
        outcome: outcome.into(),
        item: item.map(|item| item.to_string()),
        decision: decision.into(),
        why,
        told,
    }))
}
