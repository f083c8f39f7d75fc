use bytes::Bytes;
use ow_model::{Input, Message, Position, ToolUse};

use crate::attachment::{Shown, old_picture, show};
use crate::settings::Echo;
use crate::{Attachments, Capabilities, ProviderSettings, Request};

mod anthropic;
mod openai;
mod walk;

pub(crate) use walk::Walk;

/// A vendor's format.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Wire {
    /// Chat completions, with streaming.
    OpenAi,
    /// Messages, with streaming.
    Anthropic,
}

/// All that an encoded message depends on besides the message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Profile {
    pub(crate) wire: Wire,
    /// Private fields go back to the provider that made them, and to no other.
    pub(crate) provider: String,
    pub(crate) vision: bool,
    pub(crate) pdf: bool,
    pub(crate) short_ids: bool,
    pub(crate) echo: Echo,
}

/// What a request says besides its messages, once the vendor has had its say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter that is sent or not")]
pub(crate) struct Parameters {
    pub(crate) limit: LimitField,
    pub(crate) stream_options: bool,
    pub(crate) effort: bool,
    pub(crate) tool_choice: bool,
    pub(crate) cache: bool,
}

/// Under which name the limit on output goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LimitField {
    MaxTokens,
    MaxCompletionTokens,
    None,
}

/// A message, encoded. Text is escaped and without quotes, so that neighbours can be joined.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Nothing of it is sent.
    Nothing,
    UserText(Box<str>),
    /// Parts with commas between them.
    UserParts(Box<str>),
    Assistant {
        text: Box<str>,
        /// OpenAI: calls with commas between them. Anthropic: all blocks.
        body: Box<str>,
        /// OpenAI: further fields, each after a comma.
        fields: Box<str>,
        calls: Box<[Position]>,
    },
    Result {
        position: Position,
        /// OpenAI: a message. Anthropic: a block.
        body: Box<str>,
        /// OpenAI: parts of the user message that follows the results, which alone can hold pictures.
        pictures: Box<str>,
    },
}

impl Profile {
    pub(crate) fn new(settings: &ProviderSettings, capabilities: &Capabilities) -> Self {
        Self {
            wire: settings.wire,
            provider: settings.name.clone(),
            vision: capabilities.vision,
            pdf: capabilities.pdf,
            short_ids: settings.short_ids,
            echo: settings.echo,
        }
    }

    fn id(&self, position: Position) -> String {
        if self.short_ids { format!("{:09}", position.0) } else { ToolUse::id(position) }
    }

    fn is_own(&self, model: &str) -> bool {
        model.split_once(':').is_some_and(|(provider, _)| provider == self.provider)
    }
}

/// The whole body of a request.
pub(crate) fn body(request: &Request, profile: &Profile, capabilities: &Capabilities, parameters: Parameters) -> Bytes {
    let text = match profile.wire {
        Wire::OpenAi => openai::body(request, profile, capabilities, parameters),
        Wire::Anthropic => anthropic::body(request, profile, capabilities, parameters),
    };
    Bytes::from(text)
}

/// One message. `pictures`: how many of a tool's pictures are shown, the newest.
pub(crate) fn encode(message: &Message, pictures: usize, attachments: &dyn Attachments, profile: &Profile) -> Piece {
    match message {
        Message::User { input, .. } => user(input, attachments, profile),
        Message::Assistant { text, calls, model, private, .. } => {
            if text.trim().is_empty() && calls.is_empty() {
                return Piece::Nothing;
            }
            let private = private.as_ref().filter(|_| profile.is_own(model));
            match profile.wire {
                Wire::OpenAi => openai::assistant(text, calls, private, profile),
                Wire::Anthropic => anthropic::assistant(text, calls, private, profile),
            }
        }
        Message::Tool { position, text, is_error, images, .. } => {
            let hidden = images.len() - pictures.min(images.len());
            let mut lines: Vec<String> = images[..hidden].iter().map(old_picture).collect();
            let mut parts = vec![];
            for image in &images[hidden..] {
                match show(image, attachments, profile) {
                    Shown::Part(part) => parts.push(part),
                    Shown::Text(line) => lines.push(line),
                }
            }
            let mut text = text.clone();
            for line in lines {
                text.push('\n');
                text.push_str(&line);
            }
            match profile.wire {
                Wire::OpenAi => openai::result(*position, &text, &parts, profile),
                Wire::Anthropic => anthropic::result(*position, &text, *is_error, &parts, profile),
            }
        }
        Message::Notice { .. } => Piece::Nothing,
    }
}

fn user(input: &Input, attachments: &dyn Attachments, profile: &Profile) -> Piece {
    let mut parts: Vec<String> = vec![];
    let mut texts: Vec<String> = vec![];
    for attachment in &input.attachments {
        match show(attachment, attachments, profile) {
            Shown::Part(part) => parts.push(part),
            Shown::Text(text) => texts.push(text),
        }
    }
    if !input.text.trim().is_empty() {
        texts.push(input.text.clone());
    }
    let text = texts.join("\n\n");
    if parts.is_empty() {
        return if text.is_empty() { Piece::Nothing } else { Piece::UserText(escaped(&text).into()) };
    }
    if !text.is_empty() {
        parts.push(text_part(&escaped(&text)));
    }
    Piece::UserParts(parts.join(",").into())
}

/// A text as a part of a message; the same in both formats.
fn text_part(escaped: &str) -> String {
    format!(r#"{{"type":"text","text":"{escaped}"}}"#)
}

/// A name that every vendor takes. A model may have called a tool by a name that none would take back.
fn tool_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '_' };
    let name: String = name.chars().take(64).map(plain).collect();
    if name.is_empty() { "unknown".into() } else { name }
}

/// Arguments as an object, whatever was kept of them.
fn arguments(args: &serde_json::Value) -> String {
    if args.is_object() { args.to_string() } else { serde_json::json!({ "value": args }).to_string() }
}

pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16 + 16);
    push_escaped(&mut out, text);
    out
}

pub(crate) fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

/// The text as in a JSON string, without the quotes. Copies runs of plain bytes whole; what JSON must escape is rare.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            _ => {
                out.push_str("\\u00");
                out.push(char::from(DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
    out.push_str(&text[plain..]);
}

#[cfg(test)]
pub(crate) mod tests;
