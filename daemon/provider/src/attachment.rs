use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ow_model::Attachment;

use crate::wire::{Profile, Wire, push_escaped, push_quoted};

/// A text file of more characters is cut.
const LONGEST_TEXT: usize = 200_000;

/// What was attached to a history, at hand when a request is put together.
///
/// Each is asked for once a session and way of encoding, on the thread that serves the request: an implementation
/// answers from the disk or from memory, and has drawn the text of a PDF before.
pub trait Attachments: Send + Sync {
    fn bytes(&self, attachment: &Attachment) -> Option<Vec<u8>>;

    /// The text in an attachment that is not text itself.
    fn text(&self, attachment: &Attachment) -> Option<String>;
}

/// For histories without attachments.
#[derive(Clone, Copy, Debug)]
pub struct NoAttachments;

impl Attachments for NoAttachments {
    fn bytes(&self, _: &Attachment) -> Option<Vec<u8>> {
        None
    }

    fn text(&self, _: &Attachment) -> Option<String> {
        None
    }
}

impl fmt::Debug for dyn Attachments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attachments")
    }
}

/// What a provider gets of an attachment.
pub(crate) enum Shown {
    /// A part of a message, in the provider's own form.
    Part(String),
    /// Text in its place.
    Text(String),
}

/// An attachment for this model: as it is where the model can read it, else its text, else a line about it.
pub(crate) fn show(attachment: &Attachment, from: &dyn Attachments, profile: &Profile) -> Shown {
    let Attachment { name, media_type, bytes, hash: _ } = attachment;
    let kind = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let can = |able: bool| able.then(|| from.bytes(attachment)).flatten();
    if is_picture(&kind) {
        return match can(profile.vision) {
            Some(data) => Shown::Part(picture(&kind, &data, profile.wire)),
            None if profile.vision => Shown::Text(format!("[image `{name}` ({media_type}): not there any more]")),
            None => Shown::Text(format!("[image `{name}` ({media_type}, {bytes} bytes): this model sees no images]")),
        };
    }
    if kind == "application/pdf"
        && let Some(data) = can(profile.pdf)
    {
        return Shown::Part(pdf(name, &data, profile.wire));
    }
    let text = if is_text(&kind) {
        from.bytes(attachment).map(|data| String::from_utf8_lossy(&data).into_owned())
    } else {
        from.text(attachment)
    };
    Shown::Text(match text {
        Some(text) => framed(name, media_type, &text),
        None => format!("[file `{name}` ({media_type}, {bytes} bytes): this model cannot read it]"),
    })
}

/// A picture that a tool returned and that has had its turn.
pub(crate) fn old_picture(attachment: &Attachment) -> String {
    let Attachment { name, media_type, .. } = attachment;
    format!("[image `{name}` ({media_type}): shown before; only the newest are shown again]")
}

fn framed(name: &str, media_type: &str, text: &str) -> String {
    let kept = text.char_indices().nth(LONGEST_TEXT).map_or(text, |(end, _)| &text[..end]);
    let cut = if kept.len() < text.len() { "\n[cut here; the file is longer]" } else { "" };
    format!("<file name=\"{}\" type=\"{media_type}\">\n{kept}{cut}\n</file>", name.replace(['"', '<', '>', '\n'], "_"))
}

/// The kinds that both vendors take.
fn is_picture(kind: &str) -> bool {
    matches!(kind, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

fn is_text(kind: &str) -> bool {
    kind.starts_with("text/")
        || matches!(
            kind,
            "application/json"
                | "application/xml"
                | "application/toml"
                | "application/yaml"
                | "application/x-yaml"
                | "application/javascript"
                | "application/x-sh"
                | "image/svg+xml"
        )
}

fn picture(kind: &str, data: &[u8], wire: Wire) -> String {
    let mut part = String::with_capacity(data.len() * 4 / 3 + 128);
    match wire {
        Wire::OpenAi => {
            part.push_str(r#"{"type":"image_url","image_url":{"url":"data:"#);
            push_escaped(&mut part, kind);
            part.push_str(";base64,");
            STANDARD.encode_string(data, &mut part);
            part.push_str("\"}}");
        }
        Wire::Anthropic => {
            part.push_str(r#"{"type":"image","source":{"type":"base64","media_type":"#);
            push_quoted(&mut part, kind);
            part.push_str(r#","data":""#);
            STANDARD.encode_string(data, &mut part);
            part.push_str("\"}}");
        }
    }
    part
}

fn pdf(name: &str, data: &[u8], wire: Wire) -> String {
    let mut part = String::with_capacity(data.len() * 4 / 3 + 128);
    match wire {
        Wire::OpenAi => {
            part.push_str(r#"{"type":"file","file":{"filename":"#);
            push_quoted(&mut part, name);
            part.push_str(r#","file_data":"data:application/pdf;base64,"#);
            STANDARD.encode_string(data, &mut part);
            part.push_str("\"}}");
        }
        Wire::Anthropic => {
            part.push_str(r#"{"type":"document","title":"#);
            push_quoted(&mut part, name);
            part.push_str(r#","source":{"type":"base64","media_type":"application/pdf","data":""#);
            STANDARD.encode_string(data, &mut part);
            part.push_str("\"}}");
        }
    }
    part
}
