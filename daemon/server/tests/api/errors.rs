use hyper::body::Bytes;
use serde_json::json;

use crate::daemon::{Daemon, definition};

#[tokio::test]
async fn every_answer_carries_its_own_request_id_protocol_and_version() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let mut ids = vec![];
    for path in ["/v1/status", "/v1/tasks", "/nowhere", "/v1/openapi.json", "/v1/tasks/none"] {
        let reply = client.get(path).await;
        ids.push(reply.header("x-request-id").expect("an id").to_owned());
        assert_eq!(reply.header("x-owd-protocol"), Some("1"), "{path}");
        assert_eq!(reply.header("x-owd-version"), Some("0.1.0"), "{path}");
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5);
}

#[tokio::test]
async fn what_cannot_be_routed_or_read_is_refused_by_name() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.get("/").await.error(404, "not_found");
    client.get("/v1/task").await.error(404, "not_found");
    let reply = client.send("POST", "/v1/status", &[], "").await;
    reply.error(405, "method_not_allowed");
    assert!(reply.header("allow").is_some_and(|allow| allow.contains("GET")), "{:?}", reply.headers);
    client.send("PATCH", "/v1/tasks", &[], "").await.error(405, "method_not_allowed");

    for (method, path, body, named) in [
        ("POST", "/v1/events", "{", "line 1"),
        ("POST", "/v1/events", "", "not JSON"),
        ("POST", "/v1/events", "7", "NewEvents"),
        ("POST", "/v1/events", r#"{"events":[{"task":"a"}]}"#, "`key`"),
        ("POST", "/v1/events", r#"{"events":[],"extra":1}"#, "`extra`"),
        ("POST", "/v1/events", "\u{feff}\u{202e}{}", "line 1"),
        ("PUT", "/v1/tasks/a", r#"{"definition":7}"#, "integer `7`"),
        ("POST", "/v1/tasks/a/run", r#"{"pay":1}"#, "`pay`"),
        ("GET", "/v1/tasks?limit=x", "", "limit"),
        ("GET", "/v1/tasks?limit=0", "", "limit=0"),
        ("GET", "/v1/tasks?limit=501", "", "limit=501"),
        ("GET", "/v1/tasks?colour=red", "", "`colour`"),
        ("GET", "/v1/tasks?run=abc", "", "`run`"),
        ("GET", "/v1/tasks?state=asleep", "", "asleep"),
        ("GET", "/v1/runs?name=a", "", "`name`"),
        ("GET", "/v1/runs?state=asleep", "", "asleep"),
        ("GET", "/v1/items?state=asleep", "", "asleep"),
        ("GET", "/v1/items?name=a", "", "`name`"),
        ("GET", "/v1/rules?state=a", "", "`state`"),
        ("GET", "/v1/runs?after=nonsense", "", "nonsense"),
        ("GET", "/v1/items?after=nonsense", "", "nonsense"),
        ("GET", "/v1/rules?after=nonsense", "", "nonsense"),
        ("GET", "/v1/forecast?after=nonsense", "", "nonsense"),
        ("GET", "/v1/forecast?from=tomorrow", "", "from=tomorrow"),
        ("GET", "/v1/forecast?from=2026-03-02T00:00:00Z&until=2026-03-01T00:00:00Z", "", "later"),
        ("GET", "/v1/stream?after=x", "", "`x`"),
        ("GET", "/v1/stream?target=x", "", "target=x"),
        ("GET", "/v1/runs/%ff", "", "path"),
    ] {
        let error = client.send(method, path, &[], body).await.error(400, "bad_request");
        assert!(error["message"].as_str().unwrap().contains(named), "{method} {path} {body}: {error}");
    }
    for path in ["/v1/tasks/UPPER", "/v1/tasks/a%20b", "/v1/tasks/%2e%2e", "/v1/tasks/%E2%80%AE", "/v1/runs?task=A"] {
        client.get(path).await.error(422, "invalid");
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    for (method, path) in [
        ("GET", "/v1/tasks/none"),
        ("DELETE", "/v1/tasks/none"),
        ("POST", "/v1/tasks/none/run"),
        ("POST", "/v1/tasks/none/plan"),
        ("POST", "/v1/tasks/none/pause"),
        ("POST", "/v1/tasks/none/resume"),
        ("GET", "/v1/tasks/none/allow"),
        ("GET", "/v1/tasks/none/why"),
        ("GET", "/v1/forecast?task=none"),
        ("GET", "/v1/runs/0123"),
        ("GET", "/v1/runs/0123456789abcdef"),
        ("POST", "/v1/runs/0123456789abcdef/cancel"),
        ("POST", "/v1/runs/0123456789abcdef/retry"),
        ("GET", "/v1/runs/0123456789abcdef/output/00"),
        ("GET", "/v1/items/0123"),
        ("GET", "/v1/items/%5Bow:0123456789abcdef%5D"),
        ("GET", "/v1/items/-"),
        ("DELETE", "/v1/rules/0123"),
    ] {
        client.send(method, path, &[], "").await.error(404, "not_found");
    }
    client.post("/v1/items/0123/answer", &json!({ "answer": "approve" })).await.error(404, "not_found");
    client.post("/v1/events", &json!({ "events": [{ "task": "none", "key": "k" }] })).await.error(404, "not_found");
}

#[tokio::test]
async fn a_body_over_sixteen_mebibytes_is_refused_and_one_of_that_size_is_not() {
    let daemon = Daemon::start();
    let body = |length: usize| {
        let head = r#"{"events":[{"task":"none","key":"k","data":""#;
        let tail = r#""}]}"#;
        format!("{head}{}{tail}", "x".repeat(length - head.len() - tail.len()))
    };
    let limit = 16 * 1024 * 1024;
    for mut client in [daemon.client().await, daemon.web().await] {
        client.send("POST", "/v1/events", &[], &body(limit)).await.error(404, "not_found");
        let error = client.send("POST", "/v1/events", &[], &body(limit + 1)).await.error(413, "too_large");
        assert!(error["message"].as_str().unwrap().contains("16 MiB"));
    }
    // One who asks before sending is refused before sending.
    let mut client = daemon.client().await;
    let length = (limit + 1).to_string();
    let asking = [("expect", "100-continue"), ("content-length", length.as_str())];
    let response = client.open("POST", "/v1/events", &asking, Bytes::new()).await;
    assert_eq!(response.status(), 413);
}

#[tokio::test]
async fn reading_changes_nothing() {
    let daemon = Daemon::start();
    daemon.save("reports", |_| {}).await;
    let item = daemon.approval("asks").await;
    let head = *ow_store::Store::stream_head(&*daemon.store).borrow();
    let mut client = daemon.client().await;
    for path in [
        "/v1/pause",
        "/v1/resume",
        "/v1/reload",
        "/v1/backup",
        "/v1/tasks/reports/run",
        "/v1/tasks/reports/plan",
        "/v1/tasks/reports/pause",
        "/v1/tasks/reports/resume",
        "/v1/events",
    ] {
        for method in ["GET", "HEAD"] {
            assert_eq!(client.send(method, path, &[], "").await.status, 405, "{method} {path}");
        }
    }
    for method in ["GET", "HEAD"] {
        let answer = format!("/v1/items/{item}/answer?answer=approve");
        assert_eq!(client.send(method, &answer, &[], r#"{"answer":"approve"}"#).await.status, 405);
        assert_eq!(client.send(method, &format!("/v1/items/{item}"), &[], "").await.status, 200);
        assert_eq!(client.send(method, "/v1/tasks/reports", &[], "").await.status, 200);
    }
    let reply = client.send("HEAD", "/v1/tasks", &[], "").await;
    assert!(reply.body.is_empty() && reply.header("x-request-id").is_some());
    assert_eq!(*ow_store::Store::stream_head(&*daemon.store).borrow(), head, "nothing happened");
    assert_eq!(daemon.control.script().wakes, 0);
}

#[tokio::test]
async fn a_failing_store_tells_its_caller_nothing_of_its_insides() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let data = daemon.folder().join("data");
    std::fs::write(daemon.folder().join("file"), "").unwrap();
    let into = daemon.folder().join("file").join("backup");
    let error = client.post("/v1/backup", &json!({ "into": into })).await;
    error.error(503, "unavailable");
    assert!(!error.text().contains(data.to_str().unwrap()), "{}", error.text());
    client.post("/v1/backup", &json!({ "into": "backup" })).await.error(422, "invalid");
    let into = daemon.folder().join("backup");
    let made = client.post("/v1/backup", &json!({ "into": into })).await.ok();
    assert!(made["bytes"].as_u64().unwrap() > 0);
    client.post("/v1/backup", &json!({ "into": into })).await.error(409, "conflict");
}

#[tokio::test]
async fn a_wrong_definition_is_refused_with_all_its_faults() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let error = client.put("/v1/tasks/reports", &json!({ "definition": "{" })).await.error(422, "invalid");
    assert_eq!(error["details"].as_array().unwrap().len(), 1);
    let other = definition("other").to_string();
    let error = client.put("/v1/tasks/reports", &json!({ "definition": other })).await.error(422, "invalid");
    assert!(error["details"][0].as_str().unwrap().contains("`other` is not `reports`"));
    client.get("/v1/tasks/reports").await.error(404, "not_found");
}
