//! Sends what the outbox holds for people's addresses.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use lettre::message::Mailbox;
use lettre::{Address, Message};
use ow_clock::Clock;
use ow_inbox::{Channel, Delivered, Fault};
use ow_store::{Content, Delivery, Thread};

use crate::notice::{Letter, acknowledgement, digest};
use crate::reader::chain;
use crate::smtp::Kept;
use crate::submit::Way;

/// Mail as a channel: its clones hand mails over by the same connections.
#[derive(Clone, Debug)]
pub struct MailChannel {
    pub(crate) from: Mailbox,
    pub(crate) way: Way,
    zone: TimeZone,
    pub(crate) clock: Clock,
    kept: Arc<Kept>,
}

#[async_trait]
impl Channel for MailChannel {
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, Fault> {
        let to: Address = delivery
            .binding
            .address()
            .parse()
            .map_err(|_| Fault::never(format!("`{}` is no mail address", delivery.binding.address())))?;
        let host = self.from.email.domain();
        let message_id = match &delivery.content {
            // A reply to several items at once names none of them.
            Content::Notices(notices) if notices.len() > 1 => {
                let number = delivery.message_id.rsplit('.').next().unwrap_or_default();
                format!("<owd.several.{number}@{host}>")
            }
            Content::Notices(_) | Content::Reply(_) => format!("<{}@{host}>", delivery.message_id),
        };
        let thread = match &delivery.content {
            Content::Notices(notices) => match notices.as_slice() {
                [one] => one.thread.iter().map(|thread| name_of(thread, host)).collect(),
                _ => vec![],
            },
            Content::Reply(reply) => thread_of(&reply.references, reply.in_reply_to.as_deref()),
        };
        let letter = Letter {
            from: &self.from,
            to: &to,
            message_id: &message_id,
            thread: &thread,
            date: self.clock.now(),
            zone: &self.zone,
        };
        let written = match &delivery.content {
            Content::Notices(notices) => {
                let news: Vec<_> = notices.iter().map(|notice| (&notice.item, notice.occasion)).collect();
                digest(&news, &letter)
            }
            Content::Reply(reply) => acknowledgement(&reply.text, &reply.subject, &letter),
        };
        let mail = written.map_err(|error| Fault::never(chain(&error)))?;
        self.send(&mail).await?;
        Ok(Delivered { reference: Some(message_id) })
    }
}

impl MailChannel {
    #[must_use]
    pub fn new(from: Mailbox, way: Way, zone: TimeZone, clock: Clock) -> Self {
        Self { from, way, zone, clock, kept: Arc::default() }
    }

    /// Hands a mail over for all that its head names.
    ///
    /// # Cancel safety
    ///
    /// Whether a mail that was cut off midway has gone is not known.
    pub(crate) async fn send(&self, mail: &Message) -> Result<(), Fault> {
        self.way.send(mail, self.from.email.domain(), &self.kept).await
    }
}

/// The Message-ID of a mail that was delivered before.
fn name_of(thread: &Thread, host: &str) -> String {
    thread.reference.clone().unwrap_or_else(|| format!("<{}@{host}>", thread.message_id))
}

/// What goes into `References`: ids alone, for they come from another's mail.
fn thread_of(references: &[String], in_reply_to: Option<&str>) -> Vec<String> {
    let mut ids: Vec<String> = vec![];
    for id in references.iter().map(String::as_str).chain(in_reply_to) {
        let plain = id.len() < 250
            && id.starts_with('<')
            && id.ends_with('>')
            && id.bytes().all(|byte| byte.is_ascii_graphic());
        if plain && !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    // A thread's beginning and its end are what programs go by.
    if ids.len() > 12 {
        ids.drain(1..ids.len() - 11);
    }
    ids
}
