use ow_model::{BlobHash, RuleScope, RuleTarget};
use ow_store::Store;
use serde_json::{Value, json};

use crate::daemon::{Daemon, step};

fn request(step: u32, text: &str, holes: &[&str]) -> Value {
    json!({ "step": step, "text_hash": BlobHash::of(text.as_bytes()).to_string(), "holes": holes })
}

#[tokio::test]
async fn a_step_is_allowed_as_it_was_shown_and_with_the_holes_that_were_accepted() {
    let daemon = Daemon::start();
    daemon.save("reports", |_| {}).await;
    let refused =
        ow_engine::AllowableStep { target: Err("a command line has holes".into()), ..step(3, "sh", &["event.path"]) };
    daemon.control.change(|script| {
        script.allowable = Ok(vec![step(1, "echo", &[]), step(2, "cp", &["event.path", "event.name"]), refused]);
    });
    let mut client = daemon.client().await;
    let shown = client.get("/v1/tasks/reports/allow").await.ok();
    assert_eq!(shown["steps"].as_array().unwrap().len(), 3);
    assert_eq!(shown["steps"][0]["program"], "/bin/echo");
    assert_eq!(shown["steps"][0]["parts"], json!(["/bin/cat"]));
    assert_eq!(shown["steps"][2]["refused"], "a command line has holes");
    let one = client.get("/v1/tasks/reports/allow?step=2").await.ok();
    assert_eq!((one["steps"].as_array().unwrap().len(), &one["steps"][0]["step"]), (1, &json!(2)));
    let unknown = client.get("/v1/tasks/reports/allow?step=9").await;
    assert!(unknown.text().contains("no step 10"), "people count from 1: {}", unknown.text());
    unknown.error(404, "not_found");

    for (steps, status, code) in [
        (json!([]), 422, "invalid"),
        (json!([request(1, "echo", &[]), request(2, "changed", &[])]), 409, "conflict"),
        (json!([request(9, "echo", &[])]), 404, "not_found"),
        (json!([request(3, "sh", &[])]), 422, "invalid"),
        (json!([request(2, "cp", &["event.other"])]), 422, "invalid"),
    ] {
        client.post("/v1/tasks/reports/allow", &json!({ "steps": steps })).await.error(status, code);
    }
    for terms in [json!({ "expires_in_ms": 0 }), json!({ "uses": 0 }), json!({ "expires_in_ms": u64::MAX })] {
        let mut body = json!({ "steps": [request(1, "echo", &[])] });
        body.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
        client.post("/v1/tasks/reports/allow", &body).await.error(422, "invalid");
    }
    assert!(daemon.store.rules(None, daemon.now()).await.unwrap().is_empty(), "all or none");

    let steps = json!([request(1, "echo", &[]), request(2, "cp", &["event.path"])]);
    let made = client
        .post("/v1/tasks/reports/allow", &json!({ "steps": steps, "uses": 3, "expires_in_ms": 60_000 }))
        .await
        .ok();
    assert_eq!(made["rows"].as_array().unwrap().len(), 2);
    let rules = daemon.store.rules(None, daemon.now()).await.unwrap();
    assert!(
        rules.iter().all(|rule| rule.scope == RuleScope::Task("reports".parse().unwrap()) && rule.created_by == "anna")
    );
    assert!(rules.iter().all(|rule| rule.uses_left == Some(3) && rule.expires_at.is_some() && !rule.covers_outside));
    let second = rules.iter().find(|rule| matches!(rule.target, RuleTarget::Step { step: 2, .. })).unwrap();
    assert!(matches!(&second.target, RuleTarget::Step { holes, .. } if *holes == ["event.path"]));

    // Allowing again replaces what was allowed before, for that step alone.
    let steps = json!([request(2, "cp", &[])]);
    client.post("/v1/tasks/reports/allow", &json!({ "steps": steps, "covers_outside": true })).await.ok();
    let rules = daemon.store.rules(None, daemon.now()).await.unwrap();
    assert_eq!(rules.len(), 2);
    let again = rules.iter().find(|rule| matches!(rule.target, RuleTarget::Step { step: 2, .. })).unwrap();
    assert!(matches!(&again.target, RuleTarget::Step { holes, .. } if holes.is_empty()) && again.covers_outside);
}

#[tokio::test]
async fn rules_are_added_listed_by_age_and_removed_by_prefix() {
    let daemon = Daemon::start();
    daemon.save("reports", |_| {}).await;
    let mut client = daemon.client().await;
    let hash = BlobHash::of(b"x").to_string();
    let targets = [
        json!({ "target": "call", "hash": hash }),
        json!({ "target": "argv", "argv": ["df", "-h"], "cwd": "/srv" }),
        json!({ "target": "path", "tool": "write_file", "path": "/srv/report.md" }),
        json!({ "target": "origin", "method": "get", "origin": "https://API.example" }),
    ];
    let mut ids = vec![];
    for target in &targets {
        let made = client.post("/v1/rules", &json!({ "target": target, "task": "reports" })).await.ok();
        ids.push(made["id"].as_str().unwrap().to_owned());
        daemon.control.advance(1);
    }
    let step = json!({ "target": "step", "step": 1, "text_hash": hash, "holes": [] });
    client.post("/v1/rules", &json!({ "target": step, "task": "reports" })).await.ok();

    let mut seen = vec![];
    let mut path = "/v1/rules?limit=2".to_owned();
    loop {
        let page = client.get(&path).await.ok();
        seen.extend(page["rows"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(cursor) => path = format!("/v1/rules?limit=2&after={cursor}"),
            None => break,
        }
    }
    let listed: Vec<_> = seen.iter().map(|rule| rule["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(listed[..4], ids);
    assert_eq!(seen[1]["text"], "the command df -h in /srv");
    assert_eq!(seen[3]["target"], json!({ "target": "origin", "method": "GET", "origin": "https://api.example:443" }));

    client.delete(&format!("/v1/rules/{}", &ids[0][..14])).await.done();
    client.delete(&format!("/v1/rules/{}", ids[0])).await.error(404, "not_found");
    assert_eq!(client.get("/v1/rules").await.ok()["rows"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_rule_for_what_is_refused_always_is_refused_with_the_reason() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    daemon.control.change(|script| script.never_permits = Some("it would destroy `/`".into()));
    let rule = json!({ "target": { "target": "argv", "argv": ["rm", "-rf", "/"] } });
    let refused = client.post("/v1/rules", &rule).await;
    assert!(refused.text().contains("it would destroy `/`"), "{}", refused.text());
    refused.error(422, "invalid");
    assert!(daemon.store.rules(None, daemon.now()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_rule_that_permits_nothing_exact_is_refused() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let hash = BlobHash::of(b"x").to_string();
    for (target, task, status) in [
        (json!({ "target": "step", "step": 1, "text_hash": hash, "holes": [] }), None, 422),
        (json!({ "target": "step", "step": 1, "text_hash": "zz", "holes": [] }), None, 422),
        (json!({ "target": "step", "step": 1, "text_hash": hash, "program": "/bin/ls", "holes": [] }), None, 422),
        (json!({ "target": "call", "hash": "zz" }), None, 422),
        (json!({ "target": "argv", "argv": [] }), None, 422),
        (json!({ "target": "argv", "argv": ["ls"], "cwd": "srv" }), None, 422),
        (json!({ "target": "path", "tool": "write_file", "path": "/srv/../etc/passwd" }), None, 422),
        (json!({ "target": "path", "tool": "write_file", "path": "report.md" }), None, 422),
        (json!({ "target": "path", "tool": "Write File", "path": "/srv/a" }), None, 422),
        (json!({ "target": "origin", "method": "GET", "origin": "api.example" }), None, 422),
        (json!({ "target": "origin", "method": "GET", "origin": "ftp://api.example" }), None, 422),
        (json!({ "target": "origin", "method": "GET", "origin": "https://a@api.example" }), None, 422),
        (json!({ "target": "origin", "method": "GET", "origin": "https://api.example/path" }), None, 422),
        (json!({ "target": "origin", "method": "G T", "origin": "https://api.example" }), None, 422),
        (json!({ "target": "call", "hash": hash }), Some("none"), 404),
        (json!({ "target": "everything" }), None, 400),
    ] {
        let reply = client.post("/v1/rules", &json!({ "target": target, "task": task })).await;
        assert_eq!(reply.status, status, "{target}: {}", reply.text());
    }
    assert!(daemon.store.rules(None, daemon.now()).await.unwrap().is_empty());
}
