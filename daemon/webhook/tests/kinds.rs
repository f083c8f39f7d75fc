//! What each profile takes for a proof, and what not.

use jiff::Timestamp;
use ow_webhook::{Delivery, Headers, Keys, Profile, Refusal, Scheme, sign, verify};

const SECRET: &str = "It's a Secret to Everybody";
/// The base64 of 32 bytes.
const STANDARD_SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

type Fields = Vec<(String, String)>;

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().expect("a time")
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + seconds).expect("a time")
}

fn secret(profile: Profile) -> &'static str {
    if profile == Profile::Standard { STANDARD_SECRET } else { SECRET }
}

fn body(profile: Profile) -> Vec<u8> {
    match profile {
        Profile::Linear => format!(r#"{{"webhookTimestamp":{},"n":1.0}}"#, now().as_millisecond()).into_bytes(),
        _ => br#"{"n":1.0}"#.to_vec(),
    }
}

fn scheme(profile: Profile) -> Scheme {
    Scheme { id_header: Some("X-Id".into()), event_header: Some("X-Event".into()), ..Scheme::of(profile) }
}

fn signed(profile: Profile) -> Fields {
    sign(&scheme(profile), secret(profile), &body(profile), "d-1", Some("push"), now())
}

fn check(profile: Profile, fields: &Fields, body: &[u8], now: Timestamp) -> Result<Delivery, Refusal> {
    verify(&scheme(profile), &Keys::new([secret(profile)]), &Headers::new(fields.clone()), body, now)
}

/// The headers that prove something: the first that a sender writes.
fn proof(fields: &mut Fields, profile: Profile) -> &mut (String, String) {
    let name = if profile == Profile::Standard { "webhook-signature".to_owned() } else { fields[0].0.clone() };
    fields.iter_mut().find(|(known, _)| *known == name).expect("a proof")
}

#[test]
fn what_is_signed_is_proven_under_any_of_the_secrets() {
    for profile in Profile::ALL {
        let delivery = check(profile, &signed(profile), &body(profile), now()).expect("proven");
        assert!(delivery.key.is_some(), "{profile}");
        let rotated = Keys::new(["the next one", "", secret(profile)]);
        let headers = Headers::new(signed(profile));
        assert_eq!(verify(&scheme(profile), &rotated, &headers, &body(profile), now()), Ok(delivery), "{profile}");
    }
}

#[test]
fn nothing_is_proven_without_a_secret() {
    for profile in Profile::ALL {
        for none in [vec![], vec![""], vec![" ", "\n"]] {
            // What a sender with an empty secret would send.
            let secret = none.first().copied().unwrap_or_default();
            let fields = sign(&scheme(profile), secret, &body(profile), "d-1", None, now());
            let decided = verify(&scheme(profile), &Keys::new(&none), &Headers::new(fields), &body(profile), now());
            assert_eq!(decided, Err(Refusal::NoSecret), "{profile} {none:?}");
        }
    }
}

#[test]
fn each_header_that_proves_is_there_once_and_in_its_own_form() {
    for profile in Profile::ALL {
        let refused = |what: &str, change: &dyn Fn(&mut Fields)| {
            let mut fields = signed(profile);
            change(&mut fields);
            assert!(check(profile, &fields, &body(profile), now()).is_err(), "{profile}: {what}");
        };
        refused("nothing at all", &|fields| fields.clear());
        refused("no proof", &|fields| {
            let name = proof(fields, profile).0.clone();
            fields.retain(|(known, _)| *known != name);
        });
        refused("the proof twice", &|fields| {
            let twice = proof(fields, profile).clone();
            fields.push(twice);
        });
        refused("another one beside it", &|fields| {
            let mut other = proof(fields, profile).clone();
            other.1 = other.1.replace('0', "1");
            fields.push(other);
        });
        refused("an empty proof", &|fields| proof(fields, profile).1.clear());
        refused("cut by one", &|fields| {
            let value = &mut proof(fields, profile).1;
            value.truncate(value.len() - 1);
        });
        refused("longer by one", &|fields| proof(fields, profile).1.push('0'));
        refused("in capitals", &|fields| proof(fields, profile).1.make_ascii_uppercase());
        refused("with more before it", &|fields| proof(fields, profile).1.insert(0, 'x'));
        refused("with bytes that are no text", &|fields| proof(fields, profile).1.push('é'));
        refused("without what stands before the MAC", &|fields| {
            let value = &mut proof(fields, profile).1;
            // Where nothing stands before it, one of GitHub's is no better.
            *value = match value.rsplit_once(['=', ',', ' ']) {
                Some((_, mac)) if !mac.is_empty() => mac.into(),
                _ => format!("sha256={value}"),
            };
        });
    }
}

#[test]
fn another_body_secret_or_time_is_not_what_was_signed() {
    for profile in Profile::ALL {
        let (fields, body) = (signed(profile), body(profile));
        let is_signed = !matches!(profile, Profile::Bearer | Profile::Gitlab);
        for other in [&b""[..], b"{\"n\":1}", b"{\"n\":1.0} "] {
            assert_eq!(check(profile, &fields, other, now()).is_err(), is_signed, "{profile}");
        }
        let others = Keys::new(["another", &SECRET[1..], &STANDARD_SECRET.replace("MDE", "MDI")]);
        let decided = verify(&scheme(profile), &others, &Headers::new(fields.clone()), &body, now());
        assert!(matches!(decided, Err(Refusal::Signature | Refusal::Token)), "{profile}");
        let mut later = fields.clone();
        for (name, value) in &mut later {
            if name.to_ascii_lowercase().contains("timestamp") {
                *value = (now().as_second() + 1).to_string();
            }
        }
        let says_time = later != fields;
        assert_eq!(check(profile, &later, &body, now()) == Err(Refusal::Signature), says_time, "{profile}");
    }
}

#[test]
fn a_signed_time_counts_for_five_minutes_both_ways_and_linear_s_for_one() {
    for profile in [Profile::Stripe, Profile::Slack, Profile::Standard, Profile::Generic, Profile::Linear] {
        let window = if profile == Profile::Linear { 60 } else { 300 };
        let (fields, body) = (signed(profile), body(profile));
        for inside in [0, window, -window] {
            assert!(check(profile, &fields, &body, at(inside)).is_ok(), "{profile} {inside}");
        }
        assert!(matches!(check(profile, &fields, &body, at(window + 1)), Err(Refusal::Old { .. })), "{profile}");
        assert!(matches!(check(profile, &fields, &body, at(-window - 1)), Err(Refusal::Early { .. })), "{profile}");
    }
    for profile in [Profile::Github, Profile::Gitlab, Profile::Bearer] {
        assert!(check(profile, &signed(profile), &body(profile), at(1_000_000)).is_ok(), "{profile} signs no time");
    }
}

#[test]
fn a_time_is_whole_seconds_in_digits() {
    for bad in ["", "+1764504000", "-1", "1.5", "1764504000.0", " 1764504000", "0x1", "1764504000000000000", "١", "now"]
    {
        for (profile, name) in [
            (Profile::Generic, "X-Timestamp"),
            (Profile::Slack, "X-Slack-Request-Timestamp"),
            (Profile::Standard, "webhook-timestamp"),
        ] {
            let mut fields = signed(profile);
            fields.iter_mut().find(|(known, _)| known == name).expect("a time").1 = bad.into();
            assert!(check(profile, &fields, &body(profile), now()).is_err(), "{profile} {bad}");
        }
    }
}

#[test]
fn sha1_alone_proves_nothing() {
    let fields = vec![
        ("X-Hub-Signature".to_owned(), "sha1=0123456789012345678901234567890123456789".to_owned()),
        ("X-GitHub-Delivery".to_owned(), "d-1".to_owned()),
    ];
    let refusal = check(Profile::Github, &fields, b"{}", now()).expect_err("no proof");
    assert_eq!(refusal.to_string(), "no header `X-Hub-Signature-256`");
}

#[test]
fn githubs_own_example_is_proven() {
    let mac = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let fields = vec![("x-hub-signature-256".to_owned(), format!("sha256={mac}"))];
    assert!(check(Profile::Github, &fields, b"Hello, World!", now()).is_ok());
}

#[test]
fn slacks_own_example_is_proven() {
    let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V\
        &channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=\
        &response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN\
        &trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let headers = Headers::new([
        ("X-Slack-Request-Timestamp", "1531420618"),
        ("X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
    ]);
    let keys = Keys::new(["8f742231b10e8888abcd99yyyzzz85a5"]);
    let at = Timestamp::from_second(1_531_420_618).expect("a time");
    assert!(verify(&Scheme::of(Profile::Slack), &keys, &headers, body.as_bytes(), at).is_ok());
}

#[test]
fn stripe_may_sign_with_several_secrets_and_other_versions_prove_nothing() {
    let (fields, body) = (signed(Profile::Stripe), body(Profile::Stripe));
    let value = &fields[0].1;
    let (time, mac) = value.split_once(',').expect("two parts");
    let other = "v1=0000000000000000000000000000000000000000000000000000000000000000";
    let zero = mac.replace("v1=", "v0=");
    let decide = |value: String| check(Profile::Stripe, &vec![("Stripe-Signature".into(), value)], &body, now());
    for good in [format!("{time},{other},{mac}"), format!("{mac},{zero},{time}"), format!("{time}, {mac}")] {
        assert!(decide(good.clone()).is_ok(), "{good}");
    }
    for bad in [
        format!("{time},{zero}"),
        format!("{time},{other}"),
        format!("{time},{time},{mac}"),
        format!("t=1,{time},{mac}"),
        format!("{time},{mac},v1=00"),
        format!("{time},{mac},"),
        format!("{time};{mac}"),
        time.to_owned(),
        mac.to_owned(),
        format!("{time},{}", [mac; 17].join(",")),
    ] {
        assert!(decide(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn a_delivery_is_told_apart_by_what_its_sender_makes_unique() {
    let key = |profile: Profile, fields: &Fields, body: &[u8]| {
        let now = fields.iter().find(|(name, _)| name == "now").map_or_else(now, |(_, at)| at.parse().expect("a time"));
        check(profile, fields, body, now).expect("proven").key
    };
    let make = |profile: Profile, body: &[u8], id: &str, seconds: i64| {
        let mut fields = sign(&scheme(profile), secret(profile), body, id, None, at(seconds));
        fields.push(("now".into(), at(seconds).to_string()));
        fields
    };
    for profile in [Profile::Github, Profile::Gitlab, Profile::Standard, Profile::Generic, Profile::Bearer] {
        let (one, other) = (&b"{\"n\":1}"[..], &b"{\"n\":2}"[..]);
        let first = key(profile, &make(profile, one, "a", 0), one);
        assert_eq!(first, key(profile, &make(profile, one, "a", 90), one), "{profile}: a retry");
        assert_ne!(first, key(profile, &make(profile, one, "b", 0), one), "{profile}: another id");
        assert_eq!(first, key(profile, &make(profile, other, "a", 0), other), "{profile}: the id counts");
    }
    let stripe = |id: &str, seconds: i64| {
        let body = format!(r#"{{"id":"{id}","type":"charge.succeeded"}}"#);
        key(Profile::Stripe, &make(Profile::Stripe, body.as_bytes(), "", seconds), body.as_bytes())
    };
    assert_eq!(stripe("evt_1", 0), stripe("evt_1", 90), "a retry is signed anew");
    assert_ne!(stripe("evt_1", 0), stripe("evt_2", 0));

    // Without an id: the time and the bytes that were signed.
    let plain = Scheme::of(Profile::Generic);
    let generic = |body: &[u8], seconds: i64| {
        let fields = sign(&plain, SECRET, body, "unused", None, at(seconds));
        verify(&plain, &Keys::new([SECRET]), &Headers::new(fields), body, at(seconds)).expect("proven").key
    };
    assert_eq!(generic(b"x", 0), generic(b"x", 0));
    assert_ne!(generic(b"x", 0), generic(b"x", 1));
    assert_ne!(generic(b"x", 0), generic(b"y", 0));
    let bearer = Scheme::of(Profile::Bearer);
    let fields = sign(&bearer, SECRET, b"x", "unused", None, now());
    let delivery = verify(&bearer, &Keys::new([SECRET]), &Headers::new(fields), b"x", now()).expect("proven");
    assert_eq!(delivery.key, None);
}

#[test]
fn events_of_gitlab_that_follow_from_one_another_are_told_apart() {
    let fields: Fields = [("X-Gitlab-Token", SECRET), ("X-Gitlab-Event-UUID", "u-1"), ("X-Gitlab-Event", "Push Hook")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    let key = |body: &[u8]| check(Profile::Gitlab, &fields, body, now()).expect("proven").key;
    assert_eq!(key(b"1"), key(b"1"));
    assert_ne!(key(b"1"), key(b"2"));
}

#[test]
fn a_signature_of_gitlabs_counts_even_beside_a_token() {
    let signed = |secret: &str| sign(&scheme(Profile::Gitlab), secret, b"{}", "d-1", Some("Push Hook"), now());
    let decide = |fields: Fields, body: &[u8]| {
        verify(&scheme(Profile::Gitlab), &Keys::new([STANDARD_SECRET]), &Headers::new(fields), body, now())
    };
    let delivery = decide(signed(STANDARD_SECRET), b"{}").expect("proven");
    assert_eq!((delivery.id.as_deref(), delivery.event.as_deref()), (Some("d-1"), Some("Push Hook")));
    let mut both = signed(STANDARD_SECRET);
    both.push(("X-Gitlab-Token".into(), STANDARD_SECRET.into()));
    assert!(decide(both.clone(), b"{}").is_ok());
    assert_eq!(decide(both, b"{} "), Err(Refusal::Signature), "the token does not make up for it");
}

#[test]
fn an_id_that_is_none_is_refused() {
    for bad in ["a b", "", "\u{7f}", &"x".repeat(257)] {
        let mut fields = signed(Profile::Github);
        fields.iter_mut().find(|(name, _)| name == "X-GitHub-Delivery").expect("an id").1 = bad.into();
        assert!(check(Profile::Github, &fields, &body(Profile::Github), now()).is_err(), "{bad}");
    }
    let twice = Headers::new([("webhook-id", "a.1"), ("webhook-timestamp", "2"), ("webhook-signature", "v1,")]);
    assert!(verify(&scheme(Profile::Standard), &Keys::new([STANDARD_SECRET]), &twice, b"", now()).is_err());
}

#[test]
fn a_bearers_token_comes_in_one_place() {
    let decide = |fields: &[(&str, &str)]| {
        let headers = Headers::new(fields.iter().copied());
        verify(&scheme(Profile::Bearer), &Keys::new(["t0ken"]), &headers, b"", now()).is_ok()
    };
    assert!(decide(&[("Authorization", "Bearer t0ken")]) && decide(&[("authorization", "bearer t0ken")]));
    assert!(decide(&[("X-Auth-Token", "t0ken")]));
    for bad in
        ["t0ken", "Basic t0ken", "Bearer  t0ken", "Bearer t0ken ", "Bearer T0ken", "Bearer t0ken2", "Bearer ", "Bearer"]
    {
        assert!(!decide(&[("Authorization", bad)]), "{bad}");
    }
    assert!(!decide(&[("Authorization", "Bearer t0ken"), ("X-Auth-Token", "t0ken")]));
    assert!(!decide(&[("Authorization", "Bearer no"), ("X-Auth-Token", "t0ken")]));
}
