use axum::Json as Answered;
use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ow_protocol::{DeliverRequest, DeliveredView};

use crate::api::Api;
use crate::control::{HandedMail, TakenMail};
use crate::extract::Json;
use crate::guard::Caller;
use crate::limits::MAIL_BODY_LIMIT;
use crate::problem::Problem;

pub(super) async fn deliver(
    State(api): State<Api>,
    caller: Caller,
    Json(request): Json<DeliverRequest, MAIL_BODY_LIMIT>,
) -> Result<Answered<DeliveredView>, Problem> {
    let DeliverRequest { mail, head_only } = request;
    let raw = STANDARD.decode(&mail).map_err(|error| Problem::invalid(format!("`mail` is not base64: {error}")))?;
    let mail = HandedMail { raw, head_only };
    let TakenMail { outcome, item, decision, why, told } = api.control.take_mail(&mail, &caller.0.person).await?;
    api.control.wake_for_work();
    Ok(Answered(DeliveredView {
        outcome: outcome.into(),
        item: item.map(|item| item.to_string()),
        decision: decision.into(),
        why,
        told,
    }))
}
