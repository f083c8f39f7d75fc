//! Bodies of any type are read: nothing panics, JSON means one thing or is refused, what was read reads the same again, and
//! no secret gets into an event.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ow_webhook::{Body, Delivery, Headers, Keys, Profile, Scheme, payload};

const SECRET: &str = "a-secret-that-nobody-knows-0123456789";
const TYPES: &[&str] = &[
    "application/json",
    "application/x-www-form-urlencoded",
    "application/cloudevents+json; charset=utf-8",
    "text/plain",
    "",
];

fuzz_target!(|input: (u8, Vec<u8>, String, bool)| {
    let (kind, body, name, twice) = input;
    let kind = TYPES[usize::from(kind) % TYPES.len()];
    let headers = Headers::new([("content-type", kind), ("x-copied", SECRET)]);
    if let Ok(read) = payload(&headers, &body) {
        let is_text = std::str::from_utf8(&body).is_ok();
        assert_eq!(matches!(read.body, Body::Text(_)), is_text, "the body is kept as it came");
        let json = Headers::new([("content-type", "application/json")]);
        let again = payload(&json, read.value.to_string().as_bytes()).expect("it was JSON");
        // A number that is written out with more digits than a double surely has becomes a text.
        let has_fractions = read.value.to_string().contains('.');
        assert!(again.value == read.value || has_fractions, "{} reads as {}", read.value, again.value);
        let delivery = Delivery { key: None, signed: None, id: None, event: None };
        let event = read.into_event("hook", &delivery, &headers, (&Scheme::of(Profile::Generic), &Keys::new([SECRET]))).to_string();
        assert!(!event.contains(SECRET) || String::from_utf8_lossy(&body).contains("nobody"), "a secret is told");
    }
    // A name that stands twice in one object would mean one thing to a filter and another to somebody else.
    let first = serde_json::to_string(&name).expect("a text");
    let spelled: String = name.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    let second = if twice { format!("\"{spelled}\"") } else { format!("\"{spelled}x\"") };
    let json = format!("[{{\"a\":{{{first}:1,\"-\":[],{second}:2}}}}]");
    let read = payload(&Headers::new([("content-type", kind), ("x", "y")]), json.as_bytes());
    if kind != "application/x-www-form-urlencoded" && name != "-" && name != "" {
        assert_eq!(read.is_err(), twice, "{json}: {read:?}");
    }
});
