//! A mail as an event: what a task may know of it.

use mail_parser::{MessageParser, MimeHeaders};
use ow_reply::{Received, without_envelope};
use serde_json::{Value, json};

use crate::reader::Extent;

/// Letters of a mail's text that an event holds.
const TEXT: usize = 64 * 1024;

/// Attachments that an event names.
const ATTACHMENTS: usize = 50;

/// Letters of a field that an event holds.
const FIELD: usize = 1000;

/// What templates read as `event`. All of it is what the mail says; none: it cannot be read.
#[must_use]
pub fn as_event(raw: &[u8], extent: Extent, mail: &Received, is_proven: bool) -> Option<Value> {
    let message = MessageParser::default().parse(without_envelope(raw))?;
    // A signature of a list, a note beside an attachment: each is a part of its own.
    let texts: Vec<_> = (0..message.text_body_count()).filter_map(|part| message.body_text(part)).collect();
    let text = texts.join("\n");
    let kept: String = text.chars().take(TEXT).collect();
    let attachments: Vec<Value> = message
        .attachments()
        .take(ATTACHMENTS)
        .map(|part| {
            let kind = part.content_type().map_or_else(String::new, |kind| {
                format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or_default())
            });
            json!({ "name": field(part.attachment_name().unwrap_or_default()), "type": field(&kind), "bytes": part.contents().len() })
        })
        .collect();
    let header = |name: &str| mail.header(name).map(field);
    Some(json!({
        "from": mail.sender().map(|sender| sender.address.clone()),
        "proven": is_proven,
        "to": header("to"),
        "cc": header("cc"),
        "subject": field(mail.subject()),
        "date": mail.date().map(|date| date.to_string()),
        "message_id": header("message-id"),
        "list": list(mail),
        "is_cut": extent == Extent::Head || kept.len() < text.len(),
        "text": kept,
        "attachments": attachments,
    }))
}

/// The id in a mail's List-Id (RFC 2919).
#[must_use]
pub fn list(mail: &Received) -> Option<String> {
    let value = mail.header("list-id")?;
    let id = value.rsplit_once('<').map_or(value, |(_, rest)| rest).trim().trim_end_matches('>');
    Some(field(id))
}

fn field(text: &str) -> String {
    text.chars().take(FIELD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(raw: &str, extent: Extent) -> Value {
        let mail = Received::read(raw.as_bytes()).expect("a mail");
        as_event(raw.as_bytes(), extent, &mail, false).expect("an event")
    }

    #[test]
    fn the_text_of_a_mail_is_all_its_parts_that_are_shown() {
        let part = |kind: &str, text: &str| format!("--b\nContent-Type: {kind}\n\n{text}\n");
        let raw = format!(
            "From: a@example.org\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{}{}{}--b--\n",
            part("text/plain", "Before the picture."),
            part("image/png; name=a.png\nContent-Disposition: inline", "x"),
            part("text/plain", "After the picture."),
        );
        let event = event(&raw, Extent::Whole);
        let text = event["text"].as_str().expect("a text");
        assert!(text.contains("Before the picture.") && text.contains("After the picture."), "{text}");
        assert_eq!(event["is_cut"], false);
    }

    #[test]
    fn a_mail_of_which_only_the_head_was_read_says_so() {
        let head = "From: a@example.org\nSubject: x\nContent-Type: text/plain\n\n";
        let event = event(head, Extent::Head);
        assert_eq!((&event["subject"], &event["is_cut"]), (&json!("x"), &json!(true)));
    }
}
