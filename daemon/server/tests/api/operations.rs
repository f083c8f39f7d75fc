use ow_protocol::OPERATIONS;

use crate::daemon::Daemon;

#[tokio::test]
async fn every_operation_of_the_protocol_is_served() {
    let daemon = Daemon::start();
    for operation in OPERATIONS {
        let path = operation.path.replace("{name}", "reports").replace("{id}", "0123").replace("{hash}", "00");
        let mut client = daemon.client().await;
        let response = client.open(&operation.method.to_uppercase(), &path, &[], hyper::body::Bytes::new()).await;
        let status = response.status().as_u16();
        assert_ne!(status, 405, "{} {path}", operation.method);
        assert_ne!(status, 500, "{} {path}", operation.method);
        if status == 404 {
            use http_body_util::BodyExt;
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert!(!String::from_utf8_lossy(&body).contains("no such path"), "{} {path}", operation.method);
        }
    }
}

#[tokio::test]
async fn an_operation_without_a_body_refuses_one() {
    let daemon = Daemon::start();
    for operation in OPERATIONS.iter().filter(|operation| operation.method != "get" && operation.request.is_none()) {
        let path = operation.path.replace("{name}", "reports").replace("{id}", "0123");
        let path = if operation.id == "take_trust" { format!("{path}?path=/x") } else { path };
        let method = operation.method.to_uppercase();
        for body in ["{\"task\": \"reports\"}", "{\"task\":", "nonsense"] {
            let reply = daemon.client().await.send(&method, &path, &[], body).await;
            assert_eq!(reply.status, 400, "{method} {path}: {}", String::from_utf8_lossy(&reply.body));
        }
    }
    assert_eq!(daemon.client().await.send("POST", "/v1/pause", &[], "{}").await.status, 204);
}

#[tokio::test]
async fn the_document_is_served() {
    let daemon = Daemon::start();
    let document = daemon.client().await.get("/v1/openapi.json").await.ok();
    assert_eq!(document["openapi"], "3.1.0");
    for operation in OPERATIONS {
        assert_eq!(document["paths"][operation.path][operation.method]["operationId"], operation.id);
    }
}
