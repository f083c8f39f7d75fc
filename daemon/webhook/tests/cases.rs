//! The cases of `tests/cases/webhook.json`, as far as a request's headers and body decide them.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use ow_webhook::{Headers, Keys, Profile, Refusal, Scheme, verify};
use serde_json::Value;

const SECRET: &str = "whsec_test_0123456789";

#[test]
fn every_case_is_decided_as_written() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/webhook.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(file).expect("the cases")).expect("JSON");
    let keys = Keys::new([SECRET]);
    let mut known = BTreeSet::new();
    let mut proven = 0;
    for case in file["cases"].as_array().expect("cases") {
        let id = case["id"].as_str().expect("an id");
        let body = STANDARD.decode(case["body_b64"].as_str().expect("a body")).expect("base64");
        let headers = case["headers"].as_object().expect("headers");
        let headers = Headers::new(headers.iter().map(|(name, value)| (name.as_str(), value.as_str().expect("text"))));
        let profile = if case.get("scheme").is_some() { Profile::Generic } else { Profile::Github };
        let now = case["now"].as_i64().map_or(Timestamp::UNIX_EPOCH, |at| Timestamp::from_second(at).expect("a time"));
        let decided = verify(&Scheme::of(profile), &keys, &headers, &body, now);
        let statuses = match &case["expect"]["status"] {
            Value::Array(statuses) => statuses.iter().filter_map(Value::as_i64).collect(),
            one => vec![one.as_i64().expect("a status")],
        };
        if statuses.iter().any(|status| (200..300).contains(status)) {
            let delivery = decided.unwrap_or_else(|refusal| panic!("{id}: {refusal}"));
            let is_new = known.insert(delivery.key.expect("a key"));
            assert_eq!(Some(u64::from(is_new)), case["expect"]["runs"].as_u64(), "{id}");
            proven += 1;
        } else if statuses != [413] {
            assert!(matches!(decided, Err(Refusal::Missing { .. } | Refusal::Signature | Refusal::Old { .. })), "{id}");
        }
    }
    assert_eq!(proven, 3);
}
