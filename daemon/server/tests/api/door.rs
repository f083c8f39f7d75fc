use std::path::Path;

use ow_store::Store;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::Client;
use crate::daemon::{ALLOWED_ORIGIN, Daemon, KEY};

/// What a request brings, and how it is answered.
struct Case<'a> {
    host: &'a str,
    origin: &'a str,
    authorization: &'a str,
    expected: Result<(), (u16, &'static str)>,
}

#[tokio::test]
async fn host_origin_and_key_are_checked_on_every_request() {
    let daemon = Daemon::start();
    let address = daemon.tcp.to_string();
    let port = daemon.tcp.port();
    let (own, local) = (format!("http://{address}"), format!("http://localhost:{port}"));
    let localhost = format!("localhost:{port}");
    let rebound = format!("evil.example:{port}");
    let longer = format!("http://{address}.evil.example");
    let bearer = format!("Bearer {KEY}");
    let wrong = format!("Bearer {KEY}x");
    let foreign = Err((403, "foreign_origin"));
    let unknown = Err((401, "unauthorized"));
    let case = |host, origin, authorization, expected| Case { host, origin, authorization, expected };
    let (address, bearer) = (address.as_str(), bearer.as_str());
    let cases = [
        case(address, "", bearer, Ok(())),
        case(&localhost, "", bearer, Ok(())),
        case(address, &own, bearer, Ok(())),
        case(address, &local, bearer, Ok(())),
        case(address, ALLOWED_ORIGIN, bearer, Ok(())),
        case(address, "https://evil.example", bearer, foreign),
        case(address, "null", bearer, foreign),
        case(address, &longer, bearer, foreign),
        case(address, "https://desk.example.evil", bearer, foreign),
        case(&rebound, "", bearer, foreign),
        case("127.0.0.1", "", bearer, foreign),
        case("", "", bearer, foreign),
        case(address, "", "", unknown),
        case(address, "", &wrong, unknown),
        case(address, "", KEY, unknown),
        case(address, "", "Basic YTpi", unknown),
        case(address, &own, "", unknown),
        // A page learns nothing of the key.
        case(address, "https://evil.example", "", foreign),
        case(&rebound, "https://evil.example", &wrong, foreign),
    ];
    for (method, path) in [("GET", "/v1/status"), ("GET", "/v1/tasks"), ("POST", "/v1/nowhere"), ("GET", "/v1/stream")]
    {
        for Case { host, origin, authorization, expected } in &cases {
            let mut client = daemon.web().await;
            let headers = [("host", *host), ("origin", *origin), ("authorization", *authorization)];
            if let Err((status, code)) = expected {
                client.send(method, path, &headers, "").await.error(*status, code);
                continue;
            }
            let response = client.open(method, path, &headers, hyper::body::Bytes::new()).await;
            let found = if path == "/v1/nowhere" { 404 } else { 200 };
            assert_eq!(response.status(), found, "{method} {path} {host} {origin}");
        }
    }
}

#[tokio::test]
async fn two_hosts_or_origins_are_none() {
    let daemon = Daemon::start();
    let address = daemon.tcp;
    for extra in [
        "Host: evil.example".to_owned(),
        format!("Host: {address}"),
        format!("Origin: http://{address}\r\nOrigin: https://evil.example"),
        "Origin: \u{ff}".to_owned(),
    ] {
        let head = format!(
            "GET /v1/tasks HTTP/1.1\r\nHost: {address}\r\n{extra}\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\r\n"
        );
        assert!(raw(address, head).await.starts_with("HTTP/1.1 403 "), "{extra}");
    }
    let absolute = format!(
        "GET http://evil.example/v1/tasks HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\r\n"
    );
    assert!(raw(address, absolute).await.starts_with("HTTP/1.1 403 "));
    let old = format!("GET /v1/tasks HTTP/1.0\r\nAuthorization: Bearer {KEY}\r\n\r\n");
    assert!(raw(address, old).await.contains(" 403 "), "a request without a Host");
}

async fn raw(address: std::net::SocketAddr, request: String) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![];
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The case `daemon-13`: a page in a browser posts to the port.
#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/daemon.json");
    let cases: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let cases = cases["cases"].as_array().unwrap();
    let case = cases.iter().find(|case| case["id"] == "daemon-13").expect("the case is there");
    let status = u16::try_from(case["expect"]["status"].as_u64().unwrap()).unwrap();

    let daemon = Daemon::start();
    daemon.save("reports", |_| {}).await;
    let item = daemon.approval("asks").await;
    let head = *daemon.store.stream_head().borrow();
    for (path, body) in [
        ("/v1/tasks/reports/run".to_owned(), "{}"),
        ("/v1/pause".into(), ""),
        ("/v1/tasks/reports/pause".into(), ""),
        (format!("/v1/items/{item}/answer"), r#"{"answer":"approve"}"#),
        ("/v1/events".into(), r#"{"events":[{"task":"reports","key":"k"}]}"#),
        ("/api".into(), "x"),
    ] {
        // With the key and without: a page may not even spend a key that it has got hold of.
        for authorization in [format!("Bearer {KEY}"), String::new()] {
            let mut client = daemon.web().await;
            let headers = [
                ("origin", "https://evil.example"),
                ("content-type", "text/plain"),
                ("authorization", authorization.as_str()),
            ];
            client.send("POST", &path, &headers, body).await.error(status, "foreign_origin");
        }
    }
    assert_eq!(*daemon.store.stream_head().borrow(), head, "changes: {}", case["expect"]["changes"]);
    assert_eq!(daemon.control.script().wakes, 0);
}

#[tokio::test]
async fn a_tcp_client_that_changes_too_much_is_told_when_to_come_back_and_the_socket_is_exempt() {
    let daemon = Daemon::start();
    daemon.save("reports", |_| {}).await;
    let body = |index: u32| json!({ "events": [{ "task": "reports", "key": format!("k{index}") }] });
    let mut web = daemon.web().await;
    for index in 0..30 {
        web.post("/v1/events", &body(index)).await.ok();
    }
    // A connection of its own does not help, and reading goes on.
    let mut again = Client::tcp(daemon.tcp, KEY).await;
    let reply = again.post("/v1/events", &body(30)).await;
    reply.error(429, "too_many_requests");
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=10).contains(&wait));
    again.get("/v1/tasks").await.ok();
    let mut client = daemon.client().await;
    for index in 31..100 {
        client.post("/v1/events", &body(index)).await.ok();
    }
    let task = client.get("/v1/tasks/reports").await.ok();
    assert_eq!(task["events_waiting"], 99, "the refused one changed nothing");
}

#[tokio::test]
async fn who_holds_the_key_answers_over_the_web() {
    let daemon = Daemon::start();
    let item = daemon.approval("asks").await;
    let mut web = daemon.web().await;
    let answered = web.post(&format!("/v1/items/{item}/answer"), &json!({ "answer": "approve" })).await.ok();
    assert_eq!(answered["resolution"]["surface"], "web");
    assert_eq!(answered["resolution"]["by"], "anna");
}
