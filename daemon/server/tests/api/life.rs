use std::os::unix::net::UnixListener;
use std::sync::Arc;

use ow_server::{BindError, Lineage, Options, Server, SocketAccess, Warning};
use serde_json::json;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::daemon::Daemon;

#[tokio::test]
async fn the_status_says_what_owd_does_and_what_a_person_should_know() {
    let daemon = Daemon::start();
    daemon.approval("asks").await;
    let warning = Warning { kind: "watch".into(), about: "asks".into(), message: "polls".into(), hint: None };
    daemon.control.change(|script| script.warnings = vec![warning]);
    let mut client = daemon.client().await;
    let status = client.get("/v1/status").await.ok();
    assert_eq!(
        (&status["version"], &status["protocol"], &status["state"]),
        (&json!("0.1.0"), &json!(1), &json!("running"))
    );
    assert_eq!((&status["tasks"], &status["runs_parked"], &status["items_pending"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!(status["warnings"], json!([{ "kind": "watch", "about": "asks", "message": "polls", "hint": null }]));
    assert!(status["next_wake"].is_string());
    client.send("POST", "/v1/pause", &[], "{}").await.done();
    assert_eq!(client.get("/v1/status").await.ok()["paused_all"], "anna");
    client.send("POST", "/v1/resume", &[], "").await.done();
    assert_eq!(client.get("/v1/status").await.ok()["paused_all"], json!(null));
    client.send("POST", "/v1/reload", &[], "").await.ok();
    daemon.control.change(|script| script.reload = Err(vec!["owd.toml:3: `tcp`: no port".into()]));
    let error = client.send("POST", "/v1/reload", &[], "").await.error(422, "invalid");
    assert_eq!(error["details"], json!(["owd.toml:3: `tcp`: no port"]));
}

#[tokio::test]
async fn a_stop_removes_the_socket_and_answers_nobody_new() {
    let mut daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.get("/v1/status").await.ok();
    daemon.stop().await;
    assert!(!daemon.socket.exists());
    assert!(UnixStream::connect(&daemon.socket).await.is_err());
}

#[tokio::test]
async fn a_living_owds_socket_is_not_taken_and_a_dead_ones_is() {
    let daemon = Daemon::start();
    assert!(matches!(Server::bind_unix(&daemon.socket, SocketAccess::Owner), Err(BindError::Live { .. })));
    daemon.client().await.get("/v1/status").await.ok();
    let stale = daemon.folder().join("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    Server::bind_unix(&stale, SocketAccess::Group).unwrap();
}

#[tokio::test]
async fn a_listener_that_a_service_manager_opened_is_served_and_left_in_place() {
    let daemon = Daemon::start();
    let path = daemon.folder().join("inherited.sock");
    let server = Server::from_listener(UnixListener::bind(&path).unwrap());
    let stop = CancellationToken::new();
    let options = Options { tcp: None, webhooks: None, lineage: Lineage::of(vec![]) };
    let mut running = JoinSet::new();
    running.spawn(server.serve(
        Arc::clone(&daemon.store) as _,
        Arc::clone(&daemon.control) as _,
        options,
        stop.clone(),
    ));
    Client::unix(&path).await.get("/v1/status").await.ok();
    stop.cancel();
    running.join_next().await.unwrap().unwrap().unwrap();
    assert!(path.exists());
}
