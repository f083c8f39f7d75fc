use axum::Json as Answer;
use axum::extract::State;
use ow_protocol::{Page, SecretView};

use crate::api::Api;
use crate::guard::Caller;

pub(super) async fn list(State(api): State<Api>, _caller: Caller) -> Answer<Page<SecretView>> {
    let rows = api.control.secrets().into_iter().map(|(name, origin)| SecretView { name, origin }).collect();
    Answer(Page { rows, next: None })
}
