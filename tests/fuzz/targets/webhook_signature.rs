//! Requests of any kind are held against each profile: nothing panics, nobody who does not know the secret is let in, and
//! who knows it is, with any body, but not with another than was signed.
#![no_main]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use ow_webhook::{Headers, Keys, Profile, Refusal, Scheme, sign, verify};

const SECRETS: [&str; 2] = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "a secret that nobody knows 0123456789"];

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

fuzz_target!(|input: (Vec<(u8, Vec<u8>)>, Vec<u8>, u8)| {
    let (fields, body, flipped) = input;
    let fields = fields.into_iter().map(|(name, value)| (NAMES[usize::from(name) % NAMES.len()], value));
    let headers = Headers::new(fields.clone());
    let keys = Keys::new(SECRETS);
    let now = Timestamp::from_second(1_772_526_000).expect("an instant");
    for profile in Profile::ALL {
        let scheme = Scheme { id_header: Some("x-id".into()), ..Scheme::of(profile) };
        let proven = verify(&scheme, &keys, &headers, &body, now);
        assert!(proven.is_err(), "{profile} lets in {headers:?}");

        let signed = sign(&scheme, SECRETS[0], &body, "delivery-1", Some("push"), now);
        let request = Headers::new(signed.clone());
        match verify(&scheme, &keys, &request, &body, now) {
            Ok(delivery) => {
                // The same request is the same delivery.
                assert_eq!(verify(&scheme, &keys, &request, &body, now), Ok(delivery), "{profile}");
            }
            // Its time stands in the body, which is anything here.
            Err(Refusal::NoTime | Refusal::Old { .. } | Refusal::Early { .. }) if profile == Profile::Linear => {}
            Err(refusal) => panic!("{profile} does not let in whom it should: {refusal}"),
        }
        if matches!(profile, Profile::Bearer) {
            continue;
        }
        let mut other = body.clone();
        match other.get_mut(usize::from(flipped) % body.len().max(1)) {
            Some(byte) => *byte ^= 1 + (flipped & 0x7e),
            None => other.push(flipped),
        }
        assert!(verify(&scheme, &keys, &request, &other, now).is_err(), "{profile} takes another body than was signed");
        // Headers beside the proof do not make it another's.
        let more = Headers::new(signed.into_iter().map(|(name, value)| (name, value.into_bytes())).chain(
            fields.clone().map(|(name, value)| (name.to_owned(), value)),
        ));
        assert!(verify(&scheme, &keys, &more, &other, now).is_err(), "{profile} takes another body than was signed");
    }
});
