//! Whatever comes in: no panic, and no proof without the right MAC.

use jiff::Timestamp;
use ow_webhook::{Headers, Keys, Profile, Scheme, payload, sign, verify};
use proptest::prelude::*;

const SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().expect("a time")
}

fn profile() -> impl Strategy<Value = Profile> {
    proptest::sample::select(&Profile::ALL[..])
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(
            &[
                "X-Hub-Signature-256",
                "X-GitHub-Delivery",
                "X-Gitlab-Token",
                "webhook-id",
                "webhook-timestamp",
                "webhook-signature",
                "Stripe-Signature",
                "X-Slack-Signature",
                "X-Slack-Request-Timestamp",
                "Linear-Signature",
                "X-Signature",
                "X-Timestamp",
                "Authorization",
                "X-Auth-Token",
                "Content-Type",
            ][..]
        )
        .prop_map(str::to_owned),
        "[a-zA-Z-]{1,12}",
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<Vec<u8>>(),
        "(sha256=|v0=|v1,|t=1764504000,v1=|Bearer |)[0-9a-f]{60,66}".prop_map(String::into_bytes),
        "(t=[0-9]{0,11},?)*(v[01]=[0-9a-f]{64},?){0,3}".prop_map(String::into_bytes),
        "1796040[0-9]{3}".prop_map(String::into_bytes),
        "application/(json|x-www-form-urlencoded)".prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn headers_without_the_mac_prove_nothing(
        profile in profile(),
        fields in proptest::collection::vec((name(), value()), 0..8),
        body in any::<Vec<u8>>(),
    ) {
        let decided = verify(&Scheme::of(profile), &Keys::new([SECRET]), &Headers::new(fields), &body, now());
        prop_assert!(decided.is_err());
    }

    #[test]
    fn one_changed_byte_of_what_is_signed_undoes_the_proof(
        profile in proptest::sample::select(
            &[Profile::Github, Profile::Gitlab, Profile::Stripe, Profile::Slack, Profile::Standard, Profile::Generic][..]
        ),
        body in proptest::collection::vec(any::<u8>(), 1..64),
        at in any::<proptest::sample::Index>(),
        flip in 1..=255_u8,
    ) {
        let scheme = Scheme::of(profile);
        let headers = Headers::new(sign(&scheme, SECRET, &body, "d-1", Some("push"), now()));
        prop_assert!(verify(&scheme, &Keys::new([SECRET]), &headers, &body, now()).is_ok());
        let mut other = body.clone();
        other[at.index(body.len())] ^= flip;
        prop_assert!(verify(&scheme, &Keys::new([SECRET]), &headers, &other, now()).is_err());
    }

    #[test]
    fn one_changed_byte_of_a_proof_undoes_it(
        profile in profile(),
        header in any::<proptest::sample::Index>(),
        at in any::<proptest::sample::Index>(),
        flip in 1..=127_u8,
    ) {
        let body = format!(r#"{{"webhookTimestamp":{}}}"#, now().as_millisecond());
        let scheme = Scheme::of(profile);
        let mut fields = sign(&scheme, SECRET, body.as_bytes(), "d-1", None, now());
        let before = fields.clone();
        let chosen = header.index(fields.len());
        let mut bytes = fields[chosen].1.clone().into_bytes();
        let index = at.index(bytes.len());
        bytes[index] ^= flip;
        fields[chosen].1 = String::from_utf8_lossy(&bytes).into_owned();
        let decided = verify(&scheme, &Keys::new([SECRET]), &Headers::new(fields.clone()), body.as_bytes(), now());
        // An id that no MAC covers may be another one, and the word `Bearer` may be written in any case.
        let is_uncovered = matches!(before[chosen].0.as_str(), "X-GitHub-Delivery" | "Linear-Delivery" | "Idempotency-Key")
            || fields[chosen].1.eq_ignore_ascii_case(&before[chosen].1) && profile == Profile::Bearer && index < 7;
        prop_assert!(decided.is_err() || is_uncovered, "{:?}", fields);
    }

    #[test]
    fn any_body_is_read_or_refused(kind in value(), body in any::<Vec<u8>>()) {
        drop(payload(&Headers::new([("content-type", kind)]), &body));
    }

    #[test]
    fn json_means_the_same_with_its_numbers_kept(
        text in "\\{\"a\":(-?[1-9][0-9]{0,30}(\\.[0-9]{1,20})?(e[+-]?[0-9]{1,3})?),\"b\":\"[0-9\\\\]{0}[0-9a-z]*\"\\}"
    ) {
        let headers = Headers::new([("content-type", "application/json")]);
        let read = payload(&headers, text.as_bytes()).expect("JSON").value;
        let number = text.trim_start_matches("{\"a\":").split(',').next().expect("a number");
        match &read["a"] {
            serde_json::Value::String(kept) => prop_assert_eq!(kept, number),
            kept => prop_assert_eq!(kept.as_f64(), number.parse().ok()),
        }
    }
}
