use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{any, get};
use ow_model::{CallErrorKind, RefusedAddress};
use ow_secret::Secrets;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::Bench;

const PAGE: &str = "<!doctype html><title>A page</title><script>x()</script><h1>Hello</h1><p>See <a href='/b'>b</a>.";

type Seen = Arc<Mutex<Vec<(String, HeaderMap)>>>;

struct Server {
    address: SocketAddr,
    seen: Seen,
    stop: CancellationToken,
}

impl Server {
    async fn start() -> Self {
        let seen = Seen::default();
        let routes = Router::new()
            .route(
                "/text",
                get(|| async { ([(header::CONTENT_TYPE, "text/plain; charset=latin1")], b"caf\xe9".to_vec()) }),
            )
            .route("/echo", any(|body: String| async move { body }))
            .route("/missing", get(|| async { (StatusCode::NOT_FOUND, "no such page") }))
            .route("/large", get(|| async { "x".repeat(3_000_000) }))
            .route("/never", get(std::future::pending::<String>))
            .route("/silent", any(std::future::pending::<String>))
            .route("/breaks", any(breaks))
            .route("/page", get(|| async { ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], PAGE) }))
            .route("/pdf", get(|| async { ([(header::CONTENT_TYPE, "application/pdf")], "%PDF-1.7 s3cr3t") }))
            .route("/json", get(|| async { ([(header::CONTENT_TYPE, "application/json")], "{\"a\":1}") }))
            .route("/markdown", get(|| async { ([(header::CONTENT_TYPE, "text/markdown")], "# Head") }))
            .route("/to-page", get(|| async { Redirect::temporary("/page") }))
            .route("/hop", any(|| async { Redirect::temporary("/text") }))
            .route("/inward", get(|| async { Redirect::temporary("http://169.254.169.254/latest/") }))
            .route("/away", get(away))
            .fallback(|| async { StatusCode::NOT_FOUND })
            .layer(axum::middleware::from_fn_with_state(seen.clone(), note))
            .with_state(());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio_util::task::TaskTracker::new().spawn(async move {
            tokio::select! {
                served = axum::serve(listener, routes) => served.unwrap(),
                () = stopped.cancelled() => {}
            }
        });
        Self { address, seen, stop }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn paths(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn note(State(seen): State<Seen>, request: Request, next: axum::middleware::Next) -> Response {
    seen.lock().unwrap().push((request.uri().to_string(), request.headers().clone()));
    next.run(request).await
}

async fn away(request: Request) -> Response {
    let to = request.uri().query().unwrap_or_default().to_owned();
    Redirect::temporary(&to).into_response()
}

fn bench(servers: &[&Server]) -> Bench {
    let mut bench = Bench::new();
    bench.net.allow = servers.iter().map(|server| server.address.to_string()).collect();
    bench
}

/// An answer that ends in its middle.
async fn breaks() -> Response {
    let pieces = [Ok("begun"), Err(std::io::Error::other("gone"))];
    axum::body::Body::from_stream(futures_util::stream::iter(pieces)).into_response()
}

#[tokio::test]
async fn an_answer_is_decoded_and_is_outside_content() {
    let server = Server::start().await;
    let bench = bench(&[&server]);
    let result = bench.run("http_request", json!({ "url": server.url("/text") })).await;
    assert_eq!(result.error, None);
    assert_eq!((&result.output["status"], &result.output["body"]), (&json!(200), &json!("café")));
    assert!(result.outside);
    let args = json!({ "method": "post", "url": server.url("/echo"), "body": "sent" });
    assert_eq!(bench.output("http_request", args).await["body"], "sent");
}

#[tokio::test]
async fn an_error_of_the_server_is_a_failure_with_its_body() {
    let server = Server::start().await;
    let result = bench(&[&server]).run("http_request", json!({ "url": server.url("/missing") })).await;
    assert_eq!(result.output["body"], "no such page");
    let error = result.error.unwrap();
    assert_eq!(error.kind, CallErrorKind::Failed);
    assert!(error.message.contains("404"), "{error}");
}

#[tokio::test]
async fn a_private_address_that_nobody_opened_is_refused_and_not_reached() {
    let server = Server::start().await;
    let error = Bench::new().error("http_request", json!({ "url": server.url("/text") })).await;
    assert_eq!(error.kind, CallErrorKind::Refused);
    assert!(server.paths().is_empty());
    let mut bench = bench(&[&server]);
    bench.net.own = vec![server.address];
    let error = bench.error("http_request", json!({ "url": server.url("/text") })).await;
    assert_eq!(error.kind, CallErrorKind::Refused, "owd's own address is reached by nobody");
    assert!(server.paths().is_empty());
}

#[tokio::test]
async fn get_follows_redirects_and_other_methods_return_them() {
    let server = Server::start().await;
    let bench = bench(&[&server]);
    let output = bench.output("http_request", json!({ "url": server.url("/hop") })).await;
    assert_eq!((&output["body"], &output["redirects"]), (&json!("café"), &json!(1)));
    assert_eq!(output["url"], server.url("/text"));
    let output = bench.output("http_request", json!({ "method": "POST", "url": server.url("/hop") })).await;
    assert_eq!((&output["status"], &output["headers"]["location"]), (&json!(307), &json!("/text")));
}

#[tokio::test]
async fn a_redirect_inward_is_refused() {
    let server = Server::start().await;
    let other = Server::start().await;
    let bench = bench(&[&server]);
    for path in ["/inward".to_owned(), format!("/away?{}", other.url("/text"))] {
        let result = bench.run("http_request", json!({ "url": server.url(&path) })).await;
        let address = RefusedAddress::of(&result).unwrap();
        assert_eq!(address.hop, 1, "{address}");
        assert_ne!(address.url, server.url(&path), "the goal is named, not the way");
        assert!(result.error.unwrap().message.contains(&address.url));
    }
    assert!(other.paths().is_empty());
}

#[tokio::test]
async fn credentials_do_not_go_to_another_origin() {
    let server = Server::start().await;
    let other = Server::start().await;
    let mut bench = bench(&[&server, &other]);
    bench.secrets = Secrets::from_pairs([("key", "s3cr3t-value")]).unwrap();
    let headers = json!({
        "authorization": { "secret": "key", "prefix": "Bearer " },
        "x-api-key": { "secret": "key" },
        "cookie": "a=b",
        "accept": "text/plain",
    });
    let url = server.url(&format!("/away?{}", other.url("/text")));
    bench.output("http_request", json!({ "url": url, "headers": headers })).await;
    let first = server.seen.lock().unwrap()[0].1.clone();
    assert_eq!(first["authorization"], "Bearer s3cr3t-value");
    assert_eq!(first["x-api-key"], "s3cr3t-value");
    let second = other.seen.lock().unwrap()[0].1.clone();
    for name in ["authorization", "x-api-key", "cookie", "referer"] {
        assert!(!second.contains_key(name), "{name}");
    }
    assert_eq!(second["accept"], "text/plain");
}

#[tokio::test]
async fn an_answer_that_repeats_a_secret_is_redacted() {
    let server = Server::start().await;
    let mut bench = bench(&[&server]);
    bench.secrets = Secrets::from_pairs([("key", "s3cr3t-value")]).unwrap();
    let args = json!({ "method": "PUT", "url": server.url("/echo"), "body": { "secret": "key" } });
    assert_eq!(bench.output("http_request", args).await["body"], "[redacted]");
}

#[tokio::test]
async fn a_large_answer_is_bounded() {
    let server = Server::start().await;
    let mut bench = bench(&[&server]);
    bench.limits.output_bytes = 1000;
    bench.limits.kept_bytes = 2_000_000;
    let (result, kept) = bench.whole("http_request", json!({ "url": server.url("/large") })).await;
    assert_eq!(result.error, None);
    assert!(result.output["body"].as_str().unwrap().len() < 1100 && kept[0].1.len() == 2_000_000);
    assert_eq!(result.output["cut"]["body"], "more than 2000000 bytes");
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_out_of_time_or_unreachable() {
    let server = Server::start().await;
    let mut bench = bench(&[&server]);
    let error = bench.error("http_request", json!({ "url": server.url("/never"), "timeout": "100ms" })).await;
    assert_eq!(error.kind, CallErrorKind::TimedOut);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    bench.net.allow.push(free.to_string());
    let url = format!("http://{free}/?key=AIzaFAKE");
    let error = bench.error("http_request", json!({ "url": url })).await;
    assert_eq!(error.kind, CallErrorKind::Unreachable);
    assert!(!error.message.contains("AIzaFAKE"), "{error}");
    let error = bench.error("http_request", json!({ "url": "http://nowhere.invalid/" })).await;
    assert_eq!(error.kind, CallErrorKind::Unreachable, "{error}");
}

#[tokio::test]
async fn a_request_that_may_have_been_taken_is_lost_and_not_failed() {
    let server = Server::start().await;
    let mut bench = bench(&[&server]);
    let url = server.url("/silent");
    for (method, kind) in [
        ("POST", CallErrorKind::Lost),
        ("PATCH", CallErrorKind::Lost),
        // Made again, these change nothing more.
        ("PUT", CallErrorKind::TimedOut),
        ("DELETE", CallErrorKind::TimedOut),
    ] {
        let error = bench.error("http_request", json!({ "method": method, "url": url, "timeout": "300ms" })).await;
        assert_eq!(error.kind, kind, "{method}: {error}");
    }
    let breaks = server.url("/breaks");
    let error = bench.error("http_request", json!({ "method": "POST", "url": breaks })).await;
    assert_eq!(error.kind, CallErrorKind::Lost, "{error}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    bench.net.allow.push(free.to_string());
    let url = format!("http://{free}/");
    let error = bench.error("http_request", json!({ "method": "POST", "url": url })).await;
    assert_eq!(error.kind, CallErrorKind::Unreachable, "nobody took it: {error}");
}

#[tokio::test]
async fn each_bad_argument_is_named() {
    let bench = Bench::new();
    for (args, word) in [
        (json!({}), "`url`"),
        (json!({ "url": "example.com" }), "https://example.com/"),
        (json!({ "url": "http://a/", "method": "FETCH" }), "FETCH"),
        (json!({ "url": "http://a/", "headers": { "a b": "c" } }), "a b"),
        (json!({ "url": "http://a/", "headers": { "Host": "b" } }), "Host"),
        (json!({ "url": "http://a/", "headers": { "a": "b\r\nc: d" } }), "line end"),
        (json!({ "url": "http://a/", "body": 5 }), "`body`"),
        (json!({ "url": "http://a/", "timeout": 5 }), "`timeout`"),
        (json!({ "url": "file:///etc/passwd" }), "scheme"),
        (json!({ "url": "http://user:pass@example.com/" }), "user name"),
    ] {
        let error = bench.error("http_request", args.clone()).await;
        assert!(error.message.contains(word), "{args}: {error}");
    }
}

#[tokio::test]
async fn a_page_is_fetched_as_text_with_its_title_and_final_address() {
    let mut bench = Bench::new();
    let server = Server::start().await;
    bench.net.allow = vec![server.address.to_string()];
    let result = bench.run("web_fetch", json!({ "url": server.url("/to-page#part") })).await;
    assert_eq!((&result.error, result.outside), (&None, true));
    let output = result.output;
    assert_eq!((&output["title"], &output["type"]), (&json!("A page"), &json!("html")));
    assert_eq!(output["text"], format!("# Hello\n\nSee [b]({}).", server.url("/b")));
    assert_eq!(output["url"], server.url("/page"));
    let (_, headers) = server.seen.lock().unwrap()[0].clone();
    assert!(headers[header::ACCEPT].to_str().unwrap().contains("text/html"));
    assert!(headers.get(header::COOKIE).is_none() && headers.get(header::AUTHORIZATION).is_none());
    for (path, kind, text) in
        [("/json", "json", "{\"a\":1}"), ("/markdown", "markdown", "# Head"), ("/text", "text", "café")]
    {
        let output = bench.output("web_fetch", json!({ "url": server.url(path) })).await;
        assert_eq!((&output["type"], &output["text"]), (&json!(kind), &json!(text)));
    }
}

#[tokio::test]
async fn a_long_page_is_read_in_parts() {
    let mut bench = Bench::new();
    let server = Server::start().await;
    bench.net.allow = vec![server.address.to_string()];
    let output = bench.output("web_fetch", json!({ "url": server.url("/large") })).await;
    assert_eq!((output["text"].as_str().unwrap().len(), &output["next"]), (20_000, &json!(20_000)));
    let args = json!({ "url": server.url("/large"), "from": 2_999_990, "limit": 100_000 });
    let output = bench.output("web_fetch", args).await;
    assert_eq!((&output["text"], &output["next"]), (&json!("xxxxxxxxxx"), &json!(null)));
    bench.limits.kept_bytes = 1000;
    let output = bench.output("web_fetch", json!({ "url": server.url("/large") })).await;
    assert_eq!(
        (&output["characters"], &output["cut"]["text"]),
        (&json!(1000), &json!("only the first 1000 bytes were read"))
    );
}

#[tokio::test]
async fn what_is_no_page_says_what_it_is() {
    let mut bench = Bench::new();
    let server = Server::start().await;
    bench.net.allow = vec![server.address.to_string()];
    let result = bench.run("web_fetch", json!({ "url": server.url("/pdf") })).await;
    assert_eq!((&result.output["kind"], result.output.get("text")), (&json!("a PDF document"), None));
    assert!(result.error.unwrap().message.contains("a PDF document"));
    let error = bench.error("web_fetch", json!({ "url": server.url("/missing") })).await;
    assert!(error.message.contains("404"), "{error}");
    let error = bench.error("web_fetch", json!({ "url": server.url("/never"), "timeout": "100ms" })).await;
    assert_eq!(error.kind, CallErrorKind::TimedOut);
    for args in [json!({ "url": "example.com" }), json!({ "url": "https://a.example/", "headers": {} }), json!({})] {
        assert_eq!(bench.error("web_fetch", args).await.kind, CallErrorKind::BadArguments);
    }
}

#[tokio::test]
async fn a_fetch_is_guarded_at_every_hop() {
    let mut bench = Bench::new();
    let server = Server::start().await;
    let error = bench.error("web_fetch", json!({ "url": server.url("/page") })).await;
    assert_eq!(error.kind, CallErrorKind::Refused);
    bench.net.allow = vec![server.address.to_string()];
    let error = bench.error("web_fetch", json!({ "url": server.url("/inward") })).await;
    assert_eq!(error.kind, CallErrorKind::Refused);
    assert_eq!(server.paths(), ["/inward"]);
}
