//! A mail as an event: what a task may know of it.

use mail_parser::{Message, MessageParser, MessagePart, MimeHeaders};
use ow_model::{BlobHash, escape};
use ow_reply::{Received, without_envelope};
use serde_json::{Value, json};

use crate::reader::Extent;

/// Letters of a mail's text that an event holds.
const TEXT: usize = 64 * 1024;

/// Attachments that an event names.
const ATTACHMENTS: usize = 50;

/// Those of them that are kept, from the first on, and the bytes that all of them may have.
const KEPT: usize = 20;
const KEPT_BYTES: usize = 25 * 1024 * 1024;

/// Letters of a field that an event holds.
const FIELD: usize = 1000;

/// Bytes of a file's name.
const FILE_NAME: usize = 80;

/// A mail as tasks have it.
#[derive(Clone, Debug, PartialEq)]
pub struct MailEvent {
    /// What templates read as `event`. All of it is what the mail says.
    pub data: Value,
    /// What its attachments hold, as far as it is kept; `data` names each by its hash.
    pub contents: Vec<Vec<u8>>,
}

/// Names what was written, whichever way it came: each server that a mail passes writes headers of its own, and one that
/// goes to two of owd's addresses comes twice.
#[must_use]
pub fn written(raw: &[u8], mail: &Received) -> BlobHash {
    const WRITTEN: [&str; 6] = ["message-id", "from", "date", "to", "subject", "content-type"];
    let mut whole = vec![];
    for name in WRITTEN {
        whole.extend_from_slice(mail.header(name).map(str::trim).unwrap_or_default().as_bytes());
        whole.push(b'\n');
    }
    let mut rest = raw;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = rest.split_at(end + 1);
        rest = after;
        if line.trim_ascii().is_empty() {
            break;
        }
    }
    // Servers also end lines in their own way, and leave out or add the last end.
    whole.extend(rest.trim_ascii_end().iter().filter(|byte| **byte != b'\r'));
    BlobHash::of(&whole)
}

/// A mail as an event; none: it cannot be read.
#[must_use]
pub fn as_event(
    raw: &[u8],
    extent: Extent,
    mail: &Received,
    is_proven: bool,
    folder: Option<&str>,
) -> Option<MailEvent> {
    let message = MessageParser::default().parse(without_envelope(raw))?;
    // A signature of a list, a note beside an attachment: each is a part of its own.
    let texts: Vec<_> = (0..message.text_body_count()).filter_map(|part| message.body_text(part)).collect();
    let text = texts.join("\n");
    let kept: String = text.chars().take(TEXT).collect();
    let (attachments, contents) = attachments(&message);
    let header = |name: &str| mail.header(name).map(field);
    let data = json!({
        "from": mail.sender().map(|sender| sender.address.clone()),
        "proven": is_proven,
        "to": header("to"),
        "cc": header("cc"),
        "subject": field(mail.subject()),
        "date": mail.date().map(|date| date.to_string()),
        "message_id": header("message-id"),
        "list": list(mail),
        "folder": folder,
        "is_cut": extent == Extent::Head || kept.len() < text.len(),
        "text": kept,
        "attachments": attachments,
    });
    Some(MailEvent { data, contents })
}

/// The id in a mail's List-Id (RFC 2919).
#[must_use]
pub fn list(mail: &Received) -> Option<String> {
    let value = mail.header("list-id")?;
    let id = value.rsplit_once('<').map_or(value, |(_, rest)| rest).trim().trim_end_matches('>');
    Some(field(id))
}

fn attachments(message: &Message<'_>) -> (Vec<Value>, Vec<Vec<u8>>) {
    let (mut named, mut contents, mut left) = (vec![], vec![], KEPT_BYTES);
    for (at, part) in message.attachments().take(ATTACHMENTS).enumerate() {
        let name = part.attachment_name().unwrap_or_default();
        let bytes = part.contents();
        let is_kept = at < KEPT && bytes.len() <= left;
        let mut attachment = json!({
            "name": field(&escape::line(name)),
            "type": field(&escape::line(&kind(part))),
            "bytes": bytes.len(),
        });
        if is_kept {
            left -= bytes.len();
            attachment["file"] = file_name(at, name).into();
            attachment["hash"] = BlobHash::of(bytes).to_string().into();
            contents.push(bytes.to_vec());
        }
        named.push(attachment);
    }
    (named, contents)
}

fn kind(part: &MessagePart<'_>) -> String {
    part.content_type()
        .map_or_else(String::new, |kind| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or_default()))
}

/// A name that means nothing but a file, wherever it is written: letters, digits, `-`, `_` and dots in it, behind a number
/// that makes it the only one of its mail.
fn file_name(at: usize, name: &str) -> String {
    let mut plain = String::new();
    for letter in name.chars() {
        match letter {
            letter if letter.is_alphanumeric() => plain.push(letter),
            // What kind of file it is stays, whatever stood before the dot.
            '.' if !plain.is_empty() => {
                plain.truncate(plain.trim_end_matches(['.', '-', '_']).len());
                plain.push('.');
            }
            '-' if !plain.is_empty() && !plain.ends_with(['.', '-', '_']) => plain.push('-'),
            _ if plain.is_empty() || plain.ends_with('_') => {}
            _ => plain.push('_'),
        }
    }
    let plain = plain.trim_end_matches(['.', '-', '_']);
    // What kind of file it is stays, however long its name.
    let (stem, ending) = match plain.rsplit_once('.') {
        Some((stem, ending)) if ending.len() <= 10 => (stem, format!(".{ending}")),
        _ => (plain, String::new()),
    };
    let mut end = stem.len().min(FILE_NAME);
    while !stem.is_char_boundary(end) {
        end -= 1;
    }
    let stem = if end == 0 { "attachment" } else { &stem[..end] };
    format!("{}-{stem}{ending}", at + 1)
}

fn field(text: &str) -> String {
    text.chars().take(FIELD).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whatever_an_attachment_is_called_its_file_has_a_harmless_name() {
        for (name, file) in [
            ("Invoice 7.pdf", "1-Invoice_7.pdf"),
            ("Rechnung März.PDF", "1-Rechnung_März.PDF"),
            ("請求書.pdf", "1-請求書.pdf"),
            ("../../etc/passwd", "1-etc_passwd"),
            ("/etc/cron.d/x", "1-etc_cron.d_x"),
            ("; rm -rf ~", "1-rm_rf"),
            ("$(touch x).sh", "1-touch_x.sh"),
            ("-rf", "1-rf"),
            (".bashrc", "1-bashrc"),
            ("a\u{202e}fdp.exe", "1-a_fdp.exe"),
            ("a\0b\nc", "1-a_b_c"),
            ("C:\\temp\\x.txt", "1-C_temp_x.txt"),
            ("", "1-attachment"),
            ("...", "1-attachment"),
            (".pdf", "1-pdf"),
        ] {
            assert_eq!(file_name(0, name), file, "{name:?}");
        }
        let long = file_name(4, &format!("{}.pdf", "ä".repeat(500)));
        assert!(long.starts_with("5-ä") && long.ends_with("ä.pdf") && long.len() < 100, "{long}");
    }

    proptest! {
        #[test]
        fn no_name_leads_anywhere(name in any::<String>(), at in 0_usize..50) {
            let file = file_name(at, &name);
            prop_assert!(file.starts_with(&format!("{}-", at + 1)) && file.len() <= 110, "{}", file);
            prop_assert!(file.chars().all(|letter| letter.is_alphanumeric() || "-_.".contains(letter)), "{}", file);
            prop_assert!(!file.contains("..") && !file.ends_with('.'), "{}", file);
        }
    }

    fn with_attachments(count: usize, bytes: usize) -> String {
        let mut mail = "From: bob@example.org\r\nSubject: s\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
                        --b\r\nContent-Type: text/plain\r\n\r\nhello\r\n"
            .to_owned();
        for at in 0..count {
            write!(
                mail,
                "--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename=\"{at}.csv\"\r\n\r\n{}\r\n",
                "x".repeat(bytes)
            )
            .expect("a string takes all text");
        }
        mail + "--b--\r\n"
    }

    fn event(mail: &str) -> MailEvent {
        let received = Received::read(mail.as_bytes()).expect("a mail");
        as_event(mail.as_bytes(), Extent::Whole, &received, true, Some("Invoices")).expect("an event")
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
        let event = event(&raw).data;
        let text = event["text"].as_str().expect("a text");
        assert!(text.contains("Before the picture.") && text.contains("After the picture."), "{text}");
        assert_eq!(event["is_cut"], false);
    }

    #[test]
    fn attachments_are_kept_up_to_a_number_and_a_size_and_the_rest_is_named() {
        let MailEvent { data, contents } = event(&with_attachments(60, 10));
        let named = data["attachments"].as_array().expect("a list");
        assert_eq!((named.len(), contents.len()), (ATTACHMENTS, KEPT));
        assert_eq!(named[1]["file"], "2-1.csv");
        assert_eq!(named[1]["hash"], BlobHash::of(b"xxxxxxxxxx").to_string());
        assert_eq!(named[KEPT], json!({ "name": "20.csv", "type": "text/csv", "bytes": 10 }));
        assert_eq!((data["folder"].as_str(), data["is_cut"].as_bool()), (Some("Invoices"), Some(false)));
        let large = event(&with_attachments(3, 10 * 1024 * 1024));
        assert_eq!(large.contents.len(), 2, "the third would be too much");
    }

    #[test]
    fn a_mail_of_which_only_the_head_was_read_says_so() {
        let head = "From: a@example.org\nSubject: x\nContent-Type: text/plain\n\n";
        let received = Received::read(head.as_bytes()).expect("a mail");
        let event = as_event(head.as_bytes(), Extent::Head, &received, false, None).expect("an event").data;
        assert_eq!((&event["subject"], &event["is_cut"]), (&json!("x"), &json!(true)));
    }
}
