use serde_json::json;

use super::*;

fn read(kind: &str, body: &str) -> Value {
    payload(&Headers::new([("Content-Type", kind)]), body.as_bytes()).expect("a payload").value
}

#[test]
fn numbers_that_would_be_rounded_keep_their_digits() {
    for (text, expected) in [
        ("9007199254740993", json!(9_007_199_254_740_993_u64)),
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551616", json!("18446744073709551616")),
        ("-9223372036854775809", json!("-9223372036854775809")),
        ("1.0", json!(1.0)),
        ("0.1", json!(0.1)),
        ("0.0", json!(0.0)),
        ("1e3", json!(1000.0)),
        ("0.12345678901234567890", json!("0.12345678901234567890")),
        ("1e400", json!("1e400")),
        ("1e-400", json!("1e-400")),
    ] {
        // A number out of range is no JSON for this reader only if it is not rewritten.
        assert_eq!(
            read("application/json", &format!(r#"{{"n":[{text}, "{text}"]}}"#)),
            json!({ "n": [expected, text] })
        );
    }
    assert_eq!(
        read("", r#"{"18446744073709551616\"1": 18446744073709551616}"#)["18446744073709551616\"1"],
        "18446744073709551616"
    );
}

#[test]
fn a_form_is_its_fields_and_one_with_a_payload_is_that_json() {
    let form = "application/x-www-form-urlencoded";
    assert_eq!(read(form, "payload=%7B%22ref%22%3A%22a+b%22%7D"), json!({ "ref": "a b" }));
    assert_eq!(read(form, "payload=text"), json!({ "payload": "text" }));
    assert_eq!(read(form, "a=1&b=&a=2&a=%C3%A9"), json!({ "a": ["1", "2", "é"], "b": "" }));
    assert_eq!(read(form, ""), json!({}));
    assert_eq!(read("Application/X-WWW-Form-Urlencoded; charset=utf-8", "a=1"), json!({ "a": "1" }));
}

#[test]
fn json_is_read_strictly_where_the_sender_says_that_it_is_some() {
    for bad in ["", "{", "{} {}", "{'a':1}", "[1,]", "NaN", "\u{feff}{}", &"[".repeat(200)] {
        let headers = Headers::new([("content-type", "application/json; charset=utf-8")]);
        assert!(payload(&headers, bad.as_bytes()).is_err(), "{bad}");
        assert!(payload(&Headers::new([("content-type", "application/vnd.x+json")]), bad.as_bytes()).is_err(), "{bad}");
        assert_eq!(read("text/plain", bad), Value::Null);
    }
    assert_eq!(read("text/plain", " [1] "), json!([1]));
}

#[test]
fn a_name_that_stands_twice_in_an_object_is_refused_whatever_the_type_says() {
    let (form, json) = ("application/x-www-form-urlencoded", "application/json");
    for (kind, body) in [
        (json, r#"{"ref":"main","ref":"evil"}"#),
        (json, r#"{"ref":"main","\u0072ef":"evil"}"#),
        (json, r#"[{"a":[{"b":{"c":1,"d":2,"c":1}}]}]"#),
        (json, r#"{"n":18446744073709551616,"":0,"":0}"#),
        ("application/cloudevents+json", r#"{"a":1,"a":1}"#),
        ("text/plain", r#"{"a":1,"a":1}"#),
        ("", r#"{"a":1,"a":1}"#),
        (form, "payload=%7B%22a%22%3A1%2C%22a%22%3A2%7D"),
    ] {
        let read = payload(&Headers::new([("Content-Type", kind)]), body.as_bytes());
        assert!(matches!(read, Err(PayloadError::Ambiguous { .. })), "{kind}: {body}: {read:?}");
    }
    let told = payload(&Headers::new([("Content-Type", json)]), br#"{"a\n":1,"a\n":1}"#).expect_err("ambiguous");
    assert_eq!(
        told.to_string(),
        "the body is JSON that not all readers read alike: the name `a\\n` stands twice in one object at line 1 column 14"
    );
    // The same name in different objects is none of this, nor are a form's fields, which become a list.
    assert_eq!(read(json, r#"{"a":{"a":1},"b":[{"a":1},{"a":2}]}"#)["a"]["a"], 1);
    assert_eq!(read(form, "a=1&a=2"), json!({ "a": ["1", "2"] }));
}

#[test]
fn the_body_stands_in_the_event_as_it_came_and_no_proof_does() {
    let headers = Headers::new([
        ("X-GitHub-Event", "push"),
        ("X-Hub-Signature-256", "sha256=00"),
        ("X-Gitlab-Token", "hidden"),
        ("Authorization", "Bearer hidden"),
        ("X-Custom", "hidden"),
        ("X-Custom-Bearer", "Bearer hidden"),
        ("Accept", "a"),
        ("Accept", "b"),
    ]);
    let delivery = Delivery { key: None, signed: None, id: Some("1".into()), event: Some("push".into()) };
    let event = |body: &[u8]| {
        let payload = payload(&headers, body).expect("a payload");
        payload.into_event("ci", &delivery, &headers, (&Scheme::of(Profile::Github), &Keys::new(["hidden"])))
    };
    let expected = json!({
        "hook": "ci", "id": "1", "name": "push", "payload": { "a": 1.0 },
        "headers": { "x_github_event": "push", "accept": "a, b" },
        "body": "{\"a\": 1.0 }",
    });
    assert_eq!(event(b"{\"a\": 1.0 }"), expected);
    assert_eq!(event(b"\xff\x00")["body_base64"], "/wA=");
    assert_eq!(event(b"\xff\x00")["payload"], Value::Null);
}

#[test]
fn a_generic_hooks_own_signature_is_no_part_of_the_event() {
    let headers = Headers::new([("X-Acme-Seal", "5f70bf18"), ("X-Acme-Event", "paid")]);
    let delivery = Delivery { key: None, signed: None, id: None, event: None };
    let scheme = Scheme { signature_header: "X-Acme-Seal".into(), ..Scheme::of(Profile::Generic) };
    let payload = payload(&headers, b"{}").expect("a payload");
    let event = payload.into_event("acme", &delivery, &headers, (&scheme, &Keys::new(["hidden"])));
    assert_eq!(event["headers"], json!({ "x_acme_event": "paid" }));
}
