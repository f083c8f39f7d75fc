//! A mail as an event: what a task may know of it.

use mail_parser::{MessageParser, MimeHeaders};
use ow_reply::{Received, without_envelope};
use serde_json::{Value, json};

/// Letters of a mail's text that an event holds.
const TEXT: usize = 64 * 1024;

/// Attachments that an event names.
const ATTACHMENTS: usize = 50;

/// Letters of a field that an event holds.
const FIELD: usize = 1000;

/// What templates read as `event`. All of it is what the mail says; none: it cannot be read.
#[must_use]
pub fn as_event(raw: &[u8], mail: &Received, is_proven: bool) -> Option<Value> {
    let message = MessageParser::default().parse(without_envelope(raw))?;
    let text = message.body_text(0).unwrap_or_default();
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
        "is_cut": kept.len() < text.len(),
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
