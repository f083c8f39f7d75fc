//! Requests of any kind are held against each profile: nothing panics, and nobody who does not know the secret is let in.
#![no_main]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use ow_webhook::{Headers, Keys, Profile, Scheme, payload, verify};

/// Headers that profiles read; a fuzzer would take long to find them.
const NAMES: &[&str] = &[
    "x-hub-signature-256",
    "x-github-delivery",
    "x-gitlab-token",
    "webhook-signature",
    "webhook-id",
    "webhook-timestamp",
    "stripe-signature",
    "x-slack-signature",
    "x-slack-request-timestamp",
    "linear-signature",
    "linear-delivery",
    "x-signature",
    "x-timestamp",
    "authorization",
    "x-auth-token",
    "content-type",
];

fuzz_target!(|input: (Vec<(u8, Vec<u8>)>, Vec<u8>)| {
    let (fields, body) = input;
    let headers = Headers::new(fields.into_iter().map(|(name, value)| (NAMES[usize::from(name) % NAMES.len()], value)));
    let keys = Keys::new(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "a secret that nobody knows 0123456789"]);
    let now = Timestamp::from_second(1_772_526_000).expect("an instant");
    for profile in Profile::ALL {
        let proven = verify(&Scheme::of(profile), &keys, &headers, &body, now);
        assert!(proven.is_err(), "{profile} lets in {headers:?}");
    }
    let _ = payload(&headers, &body);
});
