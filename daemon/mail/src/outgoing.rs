//! The tool by which tasks and agents send mail.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use async_trait::async_trait;
use lettre::Message;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment, Body, Mailbox, MultiPart, SinglePart};
use ow_inbox::Fault;
use ow_model::{Artifact, Call, CallError, CallErrorKind, CallResult, Reconciled};
use ow_policy::{Action, Authorized, Facts};
use ow_tool::{CallOf, DaemonTool, Place, Runner, Tool, ToolSpec, Toolbox, enclosed, read_enclosed};
use serde_json::{Map, Value, json};

use crate::channel::MailChannel;
use crate::reader::chain;

const NAME: &str = "send_mail";

/// Recipients of one mail, all together.
const RECIPIENTS: usize = 50;

/// Letters of a subject.
const SUBJECT: usize = 300;

/// Bytes of a text.
const TEXT: usize = 256 * 1024;

/// Attachments of one mail, and the bytes that all of them may have: common servers take no mail above 25 MB, and
/// their encoding makes a third more of them.
const ATTACHMENTS: usize = 20;
const ATTACHED: u64 = 15 * 1024 * 1024;

/// The way that mail goes just now; the configuration may change it.
#[derive(Clone, Debug, Default)]
pub struct Outgoing(Arc<RwLock<Option<MailChannel>>>);

impl Outgoing {
    /// Mail goes this way from now on; none: no mail goes.
    pub fn set(&self, channel: Option<MailChannel>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = channel;
    }

    fn channel(&self) -> Option<MailChannel> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Adds the tool `send_mail` to the others.
pub fn register(toolbox: &mut Toolbox, outgoing: &Outgoing) {
    let tool = Arc::new(SendMail { spec: ToolSpec::own(NAME, schema()), outgoing: outgoing.clone() });
    toolbox.register(tool.clone(), Runner::Daemon(tool));
}

fn schema() -> Value {
    let addresses = |about: &str| {
        json!({
            "type": "array", "items": { "type": "string" },
            "description": format!("{about}: `ada@example.org`, or `Ada <ada@example.org>`"),
        })
    };
    json!({
        "type": "object", "additionalProperties": false, "required": ["to", "subject", "text"],
        "properties": {
            "to": addresses("who gets it"),
            "cc": addresses("who gets a copy"),
            "subject": { "type": "string", "description": "one line" },
            "text": { "type": "string", "description": "plain text" },
            "attachments": {
                "type": "array", "items": { "type": "string" },
                "description": "paths of files that go with it",
            },
        },
    })
}

struct SendMail {
    spec: ToolSpec,
    outgoing: Outgoing,
}

impl Tool for SendMail {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, args: &Value) -> Result<(), String> {
        Arguments::read(args).map(drop)
    }

    fn facts(&self, call: &Call, place: &Place) -> Result<Facts, CallError> {
        let bad = |message| CallError { kind: CallErrorKind::BadArguments, message };
        let arguments = Arguments::read(&call.args).map_err(bad)?;
        if arguments.attachments.is_empty() {
            return Ok(Facts { risk: self.spec.risk, action: Action::Plain });
        }
        let action = enclosed(&arguments.attachments, place)?;
        Ok(Facts { risk: self.spec.risk, action })
    }

    fn note(&self, _call: &Call, _place: &Place) -> Value {
        let from = self.outgoing.channel().map(|channel| channel.from.email.to_string());
        json!({ "from": from })
    }

    fn reconcile(&self, call: &Call, note: &Value, place: &Place) -> Reconciled {
        let run = place.run_folder.file_name().unwrap_or_default().to_string_lossy();
        let domain = note["from"].as_str().and_then(|from| from.rsplit_once('@')).map_or("…", |(_, domain)| domain);
        let id = message_id(&run, call, domain);
        // The server may have it, and no protocol asks it afterwards.
        let why = format!("whether the mail has gone is not known; its Message-ID would be {id}");
        Reconciled::Unknown { why }
    }
}

/// Fixed by the call alone: whatever is tried again has the same, and a reader shows it once.
fn message_id(run: &str, call: &Call, domain: &str) -> String {
    format!("<owd.sent.{run}.{}@{domain}>", call.position)
}

/// The arguments, read.
#[derive(Debug)]
struct Arguments<'a> {
    to: Vec<Mailbox>,
    cc: Vec<Mailbox>,
    subject: &'a str,
    text: &'a str,
    attachments: Vec<&'a str>,
}

impl<'a> Arguments<'a> {
    fn read(args: &'a Value) -> Result<Self, String> {
        const KNOWN: [&str; 5] = ["to", "cc", "subject", "text", "attachments"];
        let Value::Object(fields) = args else { return Err(format!("`{NAME}` takes a table of arguments")) };
        if let Some(unknown) = fields.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            return Err(format!("`{NAME}` has no argument `{unknown}`; it takes {}", KNOWN.join(", ")));
        }
        let (to, cc) = (addresses(fields, "to")?, addresses(fields, "cc")?);
        if to.is_empty() {
            return Err("`to` is missing: an address, as `ada@example.org`, or a list of them".into());
        }
        if to.len() + cc.len() > RECIPIENTS {
            return Err(format!("{} recipients; one mail goes to at most {RECIPIENTS}", to.len() + cc.len()));
        }
        let subject = text(fields, "subject")?.ok_or("`subject` is missing: what it is about, on one line")?;
        if subject.chars().any(char::is_control) {
            return Err(format!("`subject` is {subject:?}; write one line"));
        }
        if subject.chars().count() > SUBJECT {
            return Err(format!("`subject` has {} letters; at most {SUBJECT} go", subject.chars().count()));
        }
        let body = text(fields, "text")?.ok_or("`text` is missing: what is to be sent")?;
        if body.len() > TEXT {
            return Err(format!("`text` has {} bytes; at most {TEXT} go: attach a file", body.len()));
        }
        if let Some(id) = ow_reply::tokens(&format!("{subject}\n{body}")).first() {
            // A reply to it would be read as an answer to that item.
            return Err(format!(
                "it holds the token `[ow:{id}]`, and a reply would answer that item; leave the token out"
            ));
        }
        let attachments = list(fields, "attachments")?;
        if attachments.len() > ATTACHMENTS {
            return Err(format!("{} attachments; at most {ATTACHMENTS} go in one mail", attachments.len()));
        }
        Ok(Self { to, cc, subject, text: body, attachments })
    }
}

fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Err(format!("`{key}` is empty")),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("`{key}` is {other}; write a text")),
    }
}

/// A text, or a list of texts.
fn list<'a>(fields: &'a Map<String, Value>, key: &str) -> Result<Vec<&'a str>, String> {
    let wrong = |value: &Value| format!("`{key}` is {value}; write a text or a list of texts, none of them empty");
    match fields.get(key) {
        None | Some(Value::Null) => Ok(vec![]),
        Some(Value::String(one)) if !one.trim().is_empty() => Ok(vec![one]),
        Some(Value::Array(all)) => {
            let one =
                |value: &'a Value| value.as_str().filter(|one| !one.trim().is_empty()).ok_or_else(|| wrong(value));
            all.iter().map(one).collect()
        }
        Some(other) => Err(wrong(other)),
    }
}

fn addresses(fields: &Map<String, Value>, key: &str) -> Result<Vec<Mailbox>, String> {
    let read = |one: &str| {
        let wrong = || {
            format!("`{key}` holds {one:?}; write one address each, as `ada@example.org` or `Ada <ada@example.org>`")
        };
        // What a person is shown must be what the server reads.
        if one.chars().any(char::is_control) || ow_model::escape::line(one) != one {
            return Err(wrong());
        }
        one.parse::<Mailbox>().map_err(|_| wrong())
    };
    list(fields, key)?.into_iter().map(read).collect()
}

#[async_trait]
impl DaemonTool for SendMail {
    async fn run(&self, call: &Authorized<Call>, of: &CallOf) -> CallResult {
        let call = call.get();
        let Some(channel) = self.outgoing.channel() else {
            let why = "no mail goes out: set [mail.out] in owd.toml, and `owctl doctor` looks whether it works";
            return CallResult::failed(CallErrorKind::Failed, why);
        };
        let arguments = match Arguments::read(&call.args) {
            Ok(arguments) => arguments,
            Err(why) => return CallResult::failed(CallErrorKind::BadArguments, why),
        };
        let files = of.enclosed.clone();
        // A file system that hangs holds up this call only.
        let read = tokio::task::spawn_blocking(move || {
            let mut left = ATTACHED;
            files
                .iter()
                .map(|file| {
                    let bytes = read_enclosed(file, left)?;
                    left = left.saturating_sub(bytes.len() as u64);
                    Ok((file.path.clone(), bytes))
                })
                .collect::<Result<Vec<_>, CallError>>()
        });
        let attached = match read.await {
            Ok(Ok(attached)) => attached,
            Ok(Err(error)) => return CallResult::failed(error.kind, error.message),
            Err(error) => return CallResult::failed(CallErrorKind::Failed, chain(&error)),
        };
        let id = message_id(&of.run.to_string(), call, channel.from.email.domain());
        let mail = match written(&arguments, attached, &id, &channel) {
            Ok(mail) => mail,
            Err(error) => {
                let why = format!("the mail cannot be put together: {}", chain(&error));
                return CallResult::failed(CallErrorKind::BadArguments, why);
            }
        };
        if let Err(fault) = channel.send(&mail).await {
            return match fault {
                Fault::Later { why, .. } | Fault::Never { why } => {
                    CallResult::failed(CallErrorKind::Failed, format!("it was not sent: {why}"))
                }
                Fault::Lost { why } => CallResult::failed(CallErrorKind::Lost, why),
            };
        }
        let all: Vec<String> = arguments.to.iter().chain(&arguments.cc).map(|to| to.email.to_string()).collect();
        let artifacts = all.iter().map(|to| Artifact::Message { to: format!("mail:{to}"), id: id.clone() }).collect();
        CallResult { artifacts, ..CallResult::ok(json!({ "message_id": id, "to": all })) }
    }
}

fn written(
    arguments: &Arguments<'_>,
    attached: Vec<(std::path::PathBuf, Vec<u8>)>,
    id: &str,
    channel: &MailChannel,
) -> Result<Message, lettre::error::Error> {
    let automatic = HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".into());
    let mut mail = Message::builder()
        .from(channel.from.clone())
        .subject(arguments.subject)
        .date(SystemTime::from(channel.clock.now()))
        .message_id(Some(id.to_owned()))
        .raw_header(automatic);
    for to in &arguments.to {
        mail = mail.to(to.clone());
    }
    for cc in &arguments.cc {
        mail = mail.cc(cc.clone());
    }
    let encoding = ContentTransferEncoding::QuotedPrintable;
    let lines = arguments.text.replace("\r\n", "\n").replace('\n', "\r\n");
    // Everything has a form in quoted-printable.
    let body =
        Body::new_with_encoding(lines, encoding).unwrap_or_else(|bytes| Body::dangerous_pre_encoded(bytes, encoding));
    let text = SinglePart::builder().header(ContentType::TEXT_PLAIN).body(body);
    if attached.is_empty() {
        return mail.singlepart(text);
    }
    let mut parts = MultiPart::mixed().singlepart(text);
    for (path, bytes) in attached {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let body = Body::new_with_encoding(bytes, ContentTransferEncoding::Base64)
            .unwrap_or_else(|bytes| Body::dangerous_pre_encoded(bytes, ContentTransferEncoding::Base64));
        parts = parts.singlepart(Attachment::new(name).body(body, kind(&path)));
    }
    mail.multipart(parts)
}

/// What readers show of an attachment without opening it; they go by the name otherwise.
fn kind(path: &Path) -> ContentType {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let kind = match ending.as_str() {
        "txt" | "log" | "md" => "text/plain; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "html" | "htm" => "text/html; charset=utf-8",
        "ics" => "text/calendar; charset=utf-8",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "zip" => "application/zip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        _ => "application/octet-stream",
    };
    ContentType::parse(kind).expect("the table holds kinds of content")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arguments_are_named_with_what_would_be_right() {
        let right = json!({ "to": ["Ada <ada@example.org>"], "subject": "s", "text": "t" });
        assert!(Arguments::read(&right).is_ok());
        for (key, value, words) in [
            ("to", json!([]), "`to` is missing"),
            ("to", json!("nobody"), "one address each"),
            ("to", json!("a@example.org\r\nBcc: b@example.org"), "one address each"),
            ("to", json!(["a@example.org, b@example.org"]), "one address each"),
            ("to", json!("\u{202e}a@example.org"), "one address each"),
            ("cc", json!([7]), "a text or a list of texts"),
            ("bcc", json!("b@example.org"), "no argument `bcc`"),
            ("subject", json!("one\ntwo"), "write one line"),
            ("subject", json!("x".repeat(301)), "at most 300"),
            ("text", json!(" "), "`text` is empty"),
            ("text", json!("x".repeat(TEXT + 1)), "attach a file"),
            ("text", json!("Reply approve [ow:abcdefgh12345678]"), "leave the token out"),
            ("attachments", json!(vec!["a"; 21]), "at most 20"),
        ] {
            let mut args = right.clone();
            args[key] = value;
            let told = Arguments::read(&args).expect_err("it is wrong");
            assert!(told.contains(words), "{args}: {told}");
        }
        let many = json!({ "to": vec!["a@example.org"; 51], "subject": "s", "text": "t" });
        assert!(Arguments::read(&many).expect_err("too many").contains("at most 50"));
    }
}
