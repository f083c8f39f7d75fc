use std::collections::HashMap;

use ow_model::{ItemKind, RunState};
use ow_store::Store;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::Client;
use crate::daemon::{Daemon, approval};

#[tokio::test]
async fn an_approval_shows_what_it_asks_and_its_answer_lets_the_run_go_on() {
    let daemon = Daemon::start();
    let item = daemon.approval("asks").await;
    let mut client = daemon.client().await;
    let shown = client.get(&format!("/v1/items/{item}")).await.ok();
    let run = shown["run"].as_str().unwrap().to_owned();
    assert_eq!(shown["token"], format!("[ow:{item}]"));
    assert_eq!(
        (&shown["kind"], &shown["state"], &shown["task"]),
        (&json!("approval"), &json!("pending"), &json!("asks"))
    );
    assert_eq!(shown["approval"]["tool"], "shell");
    assert_eq!(shown["approval"]["arguments"], json!({ "argv": ["echo", "hello"] }));
    assert_eq!(shown["approval"]["category"], "exec");
    assert_eq!(shown["approval"]["reason"], "mode ask");
    assert_eq!(shown["approval"]["call_id"], format!("{run}/0"));
    assert_eq!(shown["approval"]["rule_offer"]["target"], "call");

    let answered =
        client.post(&format!("/v1/items/{item}/answer"), &json!({ "answer": "approve-for-task" })).await.ok();
    assert_eq!(answered["state"], "approved");
    assert_eq!(answered["resolution"]["answer"]["kind"], "approve-for-task");
    assert_eq!((&answered["resolution"]["by"], &answered["resolution"]["surface"]), (&json!("anna"), &json!("socket")));
    assert_eq!(daemon.control.script().wakes, 1);
    assert_eq!(client.get("/v1/rules?task=asks").await.ok()["rows"].as_array().unwrap().len(), 1);
    let run = daemon.store.run(run.parse().unwrap()).await.unwrap().unwrap();
    assert!(matches!(run.state, RunState::Queued { answered: true, .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_answers_the_first_counts_and_the_other_is_told_by_whom() {
    let daemon = Daemon::start();
    for round in 0..20 {
        let item = daemon.approval(&format!("asks-{round}")).await;
        let path = format!("/v1/items/{item}/answer");
        let mut clients = JoinSet::new();
        for (web, answer) in [(false, "approve"), (true, "deny")] {
            let (path, mut client): (_, Client) =
                (path.clone(), if web { daemon.web().await } else { daemon.client().await });
            clients.spawn(async move { client.post(&path, &json!({ "answer": answer })).await });
        }
        let mut replies = clients.join_all().await;
        replies.sort_by_key(|reply| reply.status);
        let won = replies[0].ok();
        let error = replies[1].error(409, "already_answered");
        let message = error["message"].as_str().unwrap();
        let decision = won["state"].as_str().unwrap();
        let at = won["resolution"]["at"].as_str().unwrap();
        assert!(message.contains(decision) && message.contains("anna") && message.contains(at), "{message}");
    }
}

#[tokio::test]
async fn an_answer_must_fit_its_item() {
    let daemon = Daemon::start();
    let task = daemon.save("asks", |_| {}).await;
    let taken = daemon.begin(&task).await;
    let question = ItemKind::Question {
        questions: vec![ow_model::Question {
            header: None,
            text: "which?".into(),
            options: vec!["today".into(), "later".into()],
            multi: false,
        }],
    };
    let items = daemon.park(&taken, vec![approval(0, None), question]).await;
    let (approval, question) = (items[0], items[1]);
    let told = daemon.notification("told").await;
    let mut client = daemon.client().await;
    for (item, answer, status, code) in [
        (question, json!({ "answer": "approve" }), 422, "invalid"),
        (question, json!({ "answer": "edit", "arguments": {} }), 422, "invalid"),
        (question, json!({ "answer": "answer", "text": " " }), 422, "invalid"),
        (approval, json!({ "answer": "answer", "text": "yes" }), 422, "invalid"),
        (approval, json!({ "answer": "acknowledge" }), 422, "invalid"),
        (approval, json!({ "answer": "approve-for-task" }), 422, "invalid"),
        (approval, json!({ "answer": "edit", "arguments": "echo" }), 422, "invalid"),
        (approval, json!({ "answer": "yes" }), 400, "bad_request"),
        (approval, json!({ "answer": "approve", "for": "ever" }), 400, "bad_request"),
    ] {
        client.post(&format!("/v1/items/{item}/answer"), &answer).await.error(status, code);
    }
    assert_eq!(daemon.control.script().wakes, 0);
    let mut answer = async |item, answer: Value| client.post(&format!("/v1/items/{item}/answer"), &answer).await.ok();
    let chosen = answer(question, json!({ "answer": "answer", "text": "2" })).await;
    assert_eq!(chosen["resolution"]["answer"], json!({ "kind": "answer", "text": "later" }));
    let edited = answer(approval, json!({ "answer": "edit", "arguments": { "argv": ["true"] } })).await;
    assert_eq!(edited["resolution"]["answer"]["kind"], "edit");
    let seen = answer(told, json!({ "answer": "approve" })).await;
    assert_eq!(seen["state"], "acknowledged");
}

#[tokio::test]
async fn expired_and_withdrawn_items_say_so() {
    let daemon = Daemon::start();
    let expired = daemon.approval("late").await;
    let withdrawn = daemon.approval("moot").await;
    daemon.store.withdraw_item(withdrawn, "asked again", daemon.now()).await.unwrap();
    daemon.control.advance(3601);
    daemon.store.tend_items(daemon.now()).await.unwrap();
    let mut client = daemon.client().await;
    let approve = json!({ "answer": "approve" });
    client.post(&format!("/v1/items/{expired}/answer"), &approve).await.error(409, "expired");
    client.post(&format!("/v1/items/{withdrawn}/answer"), &approve).await.error(409, "withdrawn");
    let shown = client.get(&format!("/v1/items/{withdrawn}")).await.ok();
    assert_eq!(shown["resolution"]["answer"], json!({ "kind": "withdrawn", "text": "asked again" }));
    assert_eq!(shown["resolution"]["by"], "owd");
}

#[tokio::test]
async fn who_may_not_answer_an_item_is_forbidden_to() {
    let daemon = Daemon::start();
    let item = daemon.approval("asks").await;
    daemon.control.change(|script| script.may_answer = false);
    let mut client = daemon.client().await;
    client.post(&format!("/v1/items/{item}/answer"), &json!({ "answer": "approve" })).await.error(403, "forbidden");
    assert_eq!(client.get(&format!("/v1/items/{item}")).await.ok()["state"], "pending");
}

#[tokio::test]
async fn an_item_is_found_by_id_token_or_unique_prefix() {
    let daemon = Daemon::start();
    // More items than there are letters: two begin alike.
    let mut by_letter: HashMap<char, Vec<String>> = HashMap::new();
    for index in 0..33 {
        let id = daemon.notification(&format!("notice {index}")).await.to_string();
        by_letter.entry(id.chars().next().unwrap()).or_default().push(id);
    }
    let mut client = daemon.client().await;
    let (letter, alike) = by_letter.iter().find(|(_, ids)| ids.len() > 1).unwrap();
    let error = client.get(&format!("/v1/items/{letter}")).await.error(409, "ambiguous");
    let mut details: Vec<_> =
        error["details"].as_array().unwrap().iter().map(|hit| hit.as_str().unwrap().to_owned()).collect();
    details.sort();
    let mut alike = alike.clone();
    alike.sort();
    assert_eq!(details, alike);

    let id = &alike[0];
    let upper = id.to_uppercase();
    let token = format!("%5Bow%3A{id}%5D");
    let bare = format!("[ow:{id}]").replace('[', "%5B").replace(']', "%5D");
    for name in [id.as_str(), &upper, &id[..12], &token, &bare] {
        assert_eq!(client.get(&format!("/v1/items/{name}")).await.ok()["id"], **id, "{name}");
    }
    // A token counts in full or not at all.
    client.get(&format!("/v1/items/%5Bow:{}%5D", &id[..12])).await.error(404, "not_found");
}

#[tokio::test]
async fn items_page_newest_first_and_only_those_asked_for() {
    let daemon = Daemon::start();
    let first = daemon.approval("asks").await;
    for index in 0..6 {
        daemon.notification(&format!("notice {index}")).await;
    }
    let mut client = daemon.client().await;
    client.post(&format!("/v1/items/{first}/answer"), &json!({ "answer": "deny", "reason": "no" })).await.ok();
    let mut seen = vec![];
    let mut next = String::new();
    loop {
        let page = client.get(&format!("/v1/items?state=all&limit=3{next}")).await.ok();
        seen.extend(page["rows"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(cursor) => next = format!("&after={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 7);
    assert_eq!(seen.last(), Some(&first.to_string()));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 7, "none twice");
    assert_eq!(client.get("/v1/items").await.ok()["rows"].as_array().unwrap().len(), 6, "pending ones");
    assert_eq!(client.get("/v1/items?state=all&task=asks").await.ok()["rows"].as_array().unwrap().len(), 1);
    let run = client.get(&format!("/v1/items/{first}")).await.ok()["run"].as_str().unwrap().to_owned();
    let of_run = client.get(&format!("/v1/items?state=all&run={}", &run[..14])).await.ok();
    assert_eq!(of_run["rows"][0]["resolution"]["answer"], json!({ "kind": "deny", "text": "no" }));
}
