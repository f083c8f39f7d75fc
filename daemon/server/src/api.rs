use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use ow_protocol::{ErrorCode, PROTOCOL_HEADER, PROTOCOL_VERSION, VERSION_HEADER};
use ow_store::Store;
use tokio_util::sync::CancellationToken;

use crate::control::Control;
use crate::guard::guard;
use crate::problem::Problem;
use crate::routes;

/// What every request is served from.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) control: Arc<dyn Control>,
    pub(crate) stop: CancellationToken,
    ids: Arc<RequestIds>,
    version: HeaderValue,
}

impl Api {
    pub(crate) fn new(store: Arc<dyn Store>, control: Arc<dyn Control>, stop: CancellationToken) -> Self {
        let about = control.about();
        let version = HeaderValue::from_str(&about.version).expect("a version is visible ASCII");
        let life = format!("{:x}-{:x}", about.started_at.as_millisecond(), about.pid);
        let ids = Arc::new(RequestIds { life, next: AtomicU64::new(1) });
        Self { store, control, stop, ids, version }
    }

    /// The whole API. From the outside in: an id for every request, then who may speak, then what is asked.
    pub(crate) fn router(self) -> Router {
        routes::router()
            .fallback(async || Problem::not_found("there is no such path").with_hint("GET /v1/openapi.json lists them"))
            .method_not_allowed_fallback(async || {
                Problem::new(ErrorCode::MethodNotAllowed, "this path does not take this method")
            })
            .layer(from_fn_with_state(self.clone(), guard))
            .layer(from_fn_with_state(self.clone(), identify))
            .with_state(self)
    }
}

/// Names requests, unlike those of any other life of owd.
struct RequestIds {
    life: String,
    next: AtomicU64,
}

impl RequestIds {
    fn next(&self) -> String {
        format!("{}-{}", self.life, self.next.fetch_add(1, Ordering::Relaxed))
    }
}

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const PROTOCOL: HeaderName = HeaderName::from_static(PROTOCOL_HEADER);
const VERSION: HeaderName = HeaderName::from_static(VERSION_HEADER);

async fn identify(State(api): State<Api>, request: Request, next: Next) -> Response {
    let id = api.ids.next();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or("", |route| route.as_str()).to_owned();
    // A panic is a bug of owd; whoever asked still gets an answer that says under which id to look for it.
    let mut response = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => Problem::internal(&std::io::Error::other("panicked")).into_response(),
    };
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        problem.render(&mut response, &id);
    }
    tracing::debug!(request_id = %id, %method, route, status = response.status().as_u16(), "request answered");
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, HeaderValue::from_str(&id).expect("an id is visible ASCII"));
    headers.insert(PROTOCOL, HeaderValue::from(PROTOCOL_VERSION));
    headers.insert(VERSION, api.version);
    response
}
