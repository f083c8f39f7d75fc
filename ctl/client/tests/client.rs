//! The client against a fake that speaks HTTP on a Unix socket.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod fake;

use fake::{Fake, Reply};
use ow_client::{Client, ClientError, Watched};
use ow_protocol::{ErrorCode, PROTOCOL_HEADER, VERSION_HEADER};
use serde_json::json;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn event(id: u64, kind: &str) -> String {
    let data = json!({
        "id": id.to_string(), "type": kind, "source": "owd", "target": "owd", "payload": {}, "metadata": {},
        "timestamp": 0, "network": "local", "visibility": "private",
    });
    format!("id: {id}\nevent: {kind}\ndata: {data}\n\n")
}

#[test]
fn requests_share_a_connection_and_a_reading_one_survives_its_end() {
    let fake = Fake::start()
        .on("POST /v1/pause", Reply::nothing())
        .on("POST /v1/resume", Reply::nothing().closing())
        .on("GET /v1/openapi.json", Reply::json(&json!({"openapi": "3.1.0"})));
    let mut client = Client::new(&fake.socket());
    block_on(async {
        client.pause_all().await.unwrap();
        client.resume_all().await.unwrap();
        assert_eq!(client.openapi().await.unwrap(), json!({"openapi": "3.1.0"}));
    });
    assert_eq!(fake.lines(), ["POST /v1/pause {}", "POST /v1/resume", "GET /v1/openapi.json"]);
    assert_eq!(fake.connections(), 2);
}

#[test]
fn a_refusal_is_the_servers_own_error() {
    let fake = Fake::start()
        .on("DELETE /v1/rules/ab", Reply::error(409, "ambiguous", "`ab` fits 2 rules", Some("write more letters")));
    let error = block_on(Client::new(&fake.socket()).remove_rule("ab")).unwrap_err();
    let ClientError::Http(body) = error else { panic!("{error:?}") };
    assert_eq!((body.code, body.hint.as_deref()), (ErrorCode::Ambiguous, Some("write more letters")));
}

#[test]
fn nobody_on_the_socket_is_not_running() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("owd.sock");
    let error = block_on(Client::new(&socket).status()).unwrap_err();
    assert!(matches!(error, ClientError::NotRunning { .. }), "{error:?}");
    // A socket file that a killed owd left behind.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let error = block_on(Client::new(&socket).status()).unwrap_err();
    assert!(matches!(error, ClientError::NotRunning { .. }), "{error:?}");
}

#[test]
fn another_protocol_is_told_whatever_the_answer_holds() {
    let fake =
        Fake::start().on("GET /v1/status", Reply::json(&json!({"protocol": 9, "version": "7.0.0", "new": []}))).on(
            "POST /v1/reload",
            Reply::error(418, "a_new_code", "?", None)
                .with_header(PROTOCOL_HEADER, "9")
                .with_header(VERSION_HEADER, "7.0.0"),
        );
    let mut client = Client::new(&fake.socket());
    for error in [block_on(client.status()).unwrap_err(), block_on(client.reload()).unwrap_err()] {
        let ClientError::Version { running, theirs } = error else { panic!("{error:?}") };
        assert_eq!((running.as_str(), theirs), ("7.0.0", 9));
    }
}

#[test]
fn a_stream_takes_up_after_the_last_event_it_saw() {
    let half = event(3, "run.ended");
    let first = format!("id: 1\n\n{}{}", event(2, "run.queued"), &half[..half.len() / 2]);
    let fake = Fake::start()
        .on("GET /v1/stream?target=owd", Reply::stream(&first))
        .on("GET /v1/stream?target=owd", Reply::stream(&event(3, "run.ended")));
    let seen = block_on(async {
        let mut stream = Client::new(&fake.socket()).stream(None, Some("owd")).await.unwrap();
        let mut seen = vec![];
        for _ in 0..4 {
            seen.push(match stream.next().await.unwrap() {
                Watched::Event(event) => event.kind,
                Watched::Lost => "lost".into(),
                Watched::Resumed => "resumed".into(),
            });
        }
        seen
    });
    assert_eq!(seen, ["run.queued", "lost", "resumed", "run.ended"]);
    let asked = fake.asked();
    assert_eq!(asked[0].header("last-event-id"), None);
    assert_eq!(asked[1].header("last-event-id"), Some("2"));
}

#[test]
fn a_stream_that_saw_nothing_yet_still_knows_where_it_stands() {
    let fake = Fake::start()
        .on("GET /v1/stream", Reply::stream("id: 41\n\n"))
        .on("GET /v1/stream", Reply::stream(&event(42, "owd.started")));
    block_on(async {
        let mut stream = Client::new(&fake.socket()).stream(None, None).await.unwrap();
        assert_eq!(stream.next().await.unwrap(), Watched::Lost);
        assert_eq!(stream.next().await.unwrap(), Watched::Resumed);
        assert!(matches!(stream.next().await.unwrap(), Watched::Event(_)));
    });
    assert_eq!(fake.asked()[1].header("last-event-id"), Some("41"));
}

#[test]
fn a_stream_comes_back_also_for_one_who_looks_away_all_the_time() {
    let fake = Fake::start()
        .on("GET /v1/stream", Reply::stream("id: 41\n\n"))
        .on("GET /v1/stream", Reply::stream(&event(42, "owd.started")));
    block_on(async {
        let mut stream = Client::new(&fake.socket()).stream(None, None).await.unwrap();
        assert_eq!(stream.next().await.unwrap(), Watched::Lost);
        let looked = async {
            loop {
                // Much less than the pause before an attempt.
                let look = tokio::time::timeout(std::time::Duration::from_millis(20), stream.next());
                if let Ok(seen) = look.await {
                    break seen.unwrap();
                }
            }
        };
        let seen = tokio::time::timeout(std::time::Duration::from_secs(30), looked).await;
        assert_eq!(seen.expect("it comes back in time"), Watched::Resumed);
    });
}
