//! The cases of replies and of mails, each as it stands in tests/cases.

use std::fs;
use std::path::PathBuf;

use jiff::Timestamp;
use ow_reply::{Context, Explained, Kind, Message, Pending, Phrases, Proof, State, explain};
use serde_json::Value;

fn cases() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases")
}

fn table(name: &str) -> Value {
    let text = fs::read_to_string(cases().join(name)).expect("the cases");
    serde_json::from_str(&text).expect("JSON")
}

fn kind(word: &str, options: &Value) -> Kind {
    let options =
        options.as_array().map(|all| all.iter().map(|one| text(one).to_owned()).collect()).unwrap_or_default();
    match word {
        "question" => Kind::Question { options },
        "notification" => Kind::Notification,
        _ => Kind::Approval,
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// Checks the decision as the case wants it; `acceptable` is no pass here, only what is wanted is.
fn check(found: &Explained, wanted: &Value, id: &str) {
    assert_eq!(found.decision, text(&wanted["decision"]), "{id}: {found:?}");
    if let Some(answer) = wanted["answer"].as_str() {
        assert_eq!(found.answer.as_deref().map(str::trim), Some(answer), "{id}");
    }
    if let Some(part) = wanted["comment_contains"].as_str() {
        assert!(found.comment.as_deref().is_some_and(|comment| comment.contains(part)), "{id}: {found:?}");
    }
    assert!(!found.why.is_empty(), "{id}");
}

#[test]
fn every_reply_text_is_read_as_its_case_says() {
    let phrases = Phrases::default();
    for case in table("reply-text.json")["cases"].as_array().expect("cases") {
        let kind = kind(text(&case["kind"]), &case["options"]);
        let context = Context {
            pending: &[],
            kind: &kind,
            approvers: &[],
            proof: Proof::Given,
            now: Timestamp::UNIX_EPOCH,
            phrases: &phrases,
        };
        check(&explain(Message::Text(text(&case["text"])), &context), case, text(&case["id"]));
    }
}

#[test]
fn every_mail_is_read_as_its_case_says() {
    let index = table("email-index.json");
    let phrases = Phrases::default();
    let told = &index["assumptions"];
    let approvers: Vec<String> =
        told["approvers"].as_array().expect("approvers").iter().map(|one| text(one).to_owned()).collect();
    for case in index["cases"].as_array().expect("cases") {
        let file = text(&case["file"]);
        let pending: Vec<Pending> = case["pending"]
            .as_array()
            .expect("items")
            .iter()
            .map(|item| Pending {
                id: text(&item["id"]).to_owned(),
                kind: kind(text(&item["kind"]), &item["options"]),
                state: match item["state"].as_str() {
                    None | Some("pending") => State::Pending,
                    Some(other) => State::Closed(other.to_owned()),
                },
            })
            .collect();
        let context = Context {
            pending: &pending,
            kind: &Kind::Approval,
            approvers: &approvers,
            proof: Proof::Relay(text(&told["trusted_authserv_id"])),
            now: text(&told["now"]).parse().expect("an instant"),
            phrases: &phrases,
        };
        let raw = fs::read(cases().join(file)).expect("a mail");
        // Line ends decide nothing.
        let bare: Vec<u8> = raw.iter().copied().filter(|byte| *byte != b'\r').collect();
        for raw in [raw, bare] {
            let found = explain(Message::Mail(&raw), &context);
            check(&found, &case["expect"], file);
            assert_eq!(found.token.as_deref(), case["expect"]["token"].as_str(), "{file}: {found:?}");
        }
    }
}
