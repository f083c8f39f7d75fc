use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use ow_inbox::{Channel, Delivered, Fault as Undelivered, wording};
use ow_model::{Item, Occasion, Span};
use ow_store::{Content, Delivery, Notice, Reply, Store};
use serde_json::{Value, json};

use crate::event::Place;
use crate::notice::{self, Post};
use crate::shown::{place, reference, show, shown_at};
use crate::threads::NOTICE;
use crate::{Client, Fault, markdown};

/// What owd's messages are called in their metadata.
const EVENT: &str = "owd_delivery";
/// Messages among which an earlier attempt is looked for.
const LOOKED_AT: u32 = 200;

/// Delivers what `slack:` bindings are told: channels, and people by their member id.
pub struct SlackChannel {
    pub client: Client,
    pub store: Arc<dyn Store>,
}

#[async_trait]
impl Channel for SlackChannel {
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, Undelivered> {
        let channel = delivery.binding.address();
        match &delivery.content {
            Content::Reply(reply) => self.reply(delivery, channel, reply).await,
            Content::Notices(notices) => match notices.as_slice() {
                [one] => self.notice(delivery, channel, one).await,
                several => self.digest(delivery, channel, several).await,
            },
        }
    }
}

impl SlackChannel {
    async fn notice(&self, delivery: &Delivery, channel: &str, notice: &Notice) -> Result<Delivered, Undelivered> {
        let first = notice.thread.as_ref().and_then(|thread| place(thread.reference.as_deref()?));
        match (notice.occasion, first) {
            (Occasion::Settled, None) => {
                let name = notice.thread.as_ref().map(|thread| thread.message_id.as_str());
                self.settle_unheard(name, notice.item.created_at, channel).await
            }
            // What nobody here was told of needs no end.
            (Occasion::HandedOn, None) => Ok(Delivered::default()),
            (Occasion::Settled, Some(first)) => {
                // Reminders too said that it waits.
                for told in
                    self.store.told_as(notice.item.id).await.map_err(|error| Undelivered::later(error.to_string()))?
                {
                    if let Some(at) = place(&told).filter(|at| at.channel == first.channel) {
                        self.settle(&at).await?;
                    }
                }
                Ok(Delivered::default())
            }
            (Occasion::HandedOn, Some(first)) => {
                let text = format!("“{}”: {}", wording::title(&notice.item), wording::handed_on(&notice.item));
                self.post(delivery, &first.channel, Some(&first.ts), &notice::line(&text)).await
            }
            (Occasion::Reminded, Some(first)) => {
                let text = format!(
                    "“{}” still waits for an answer. Its buttons are above; a reply here answers it too.",
                    wording::title(&notice.item)
                );
                self.post(delivery, &first.channel, Some(&first.ts), &notice::line(&text)).await
            }
            (occasion, first) => {
                let thread = first.as_ref().map(|first| first.ts.as_str());
                let channel = first.as_ref().map_or(channel, |first| &first.channel);
                self.post(delivery, channel, thread, &notice::notice(&notice.item, occasion)).await
            }
        }
    }

    /// Several items in one message.
    async fn digest(&self, delivery: &Delivery, channel: &str, notices: &[Notice]) -> Result<Delivered, Undelivered> {
        let is_asked = |notice: &&Notice| !matches!(notice.occasion, Occasion::Settled | Occasion::HandedOn);
        let told: Vec<&Item> = notices.iter().filter(is_asked).map(|notice| &notice.item).collect();
        // The messages that told of them are changed; each holds others, perhaps.
        for notice in notices.iter().filter(|notice| notice.occasion == Occasion::Settled) {
            if let Some(first) = notice.thread.as_ref().and_then(|thread| place(thread.reference.as_deref()?)) {
                self.settle(&first).await?;
            }
        }
        if told.is_empty() {
            return Ok(Delivered::default());
        }
        self.post(delivery, channel, None, &notice::digest(&told)).await
    }

    /// Makes a message show the end of its item that Slack may have taken without owd's ever hearing of it: owd died before
    /// the answer. What nobody here was told of needs no end.
    async fn settle_unheard(
        &self,
        name: Option<&str>,
        asked_at: Timestamp,
        channel: &str,
    ) -> Result<Delivered, Undelivered> {
        let Some(name) = name else { return Ok(Delivered::default()) };
        if let Some(at) = self.posted(name, asked_at, channel, None).await.map_err(undelivered)? {
            let mut items = vec![];
            let stored = |error: ow_store::StoreError| Undelivered::later(error.to_string());
            for id in self.store.items_told_as(name).await.map_err(stored)? {
                items.extend(self.store.item(id).await.map_err(stored)?);
            }
            show(&self.client, &at, &items).await.map_err(undelivered)?;
        }
        Ok(Delivered::default())
    }

    async fn settle(&self, at: &Place) -> Result<(), Undelivered> {
        let items = shown_at(&*self.store, at).await.map_err(|error| Undelivered::later(error.to_string()))?;
        show(&self.client, at, &items).await.map_err(undelivered)
    }

    /// Something in a thread: a part of a text, or the notice of an item.
    async fn reply(&self, delivery: &Delivery, channel: &str, reply: &Reply) -> Result<Delivered, Undelivered> {
        let first = reply.in_reply_to.as_deref().and_then(place);
        let channel = first.as_ref().map_or(channel, |first| &first.channel);
        let thread = first.as_ref().map(|first| first.ts.as_str());
        let post = if reply.subject == NOTICE {
            let id = reply.text.parse().map_err(|_| Undelivered::never("it names no item"))?;
            let item = self.store.item(id).await.map_err(|error| Undelivered::later(error.to_string()))?;
            // What is gone needs no telling.
            let Some(item) = item else { return Ok(Delivered::default()) };
            notice::notice(&item, Occasion::Asked)
        } else {
            let part = reply.references.first().and_then(|part| part.parse().ok()).unwrap_or(0);
            let Some((text, blocks)) = markdown::messages(&reply.text).into_iter().nth(part) else {
                return Ok(Delivered::default());
            };
            Post { text, blocks }
        };
        self.post(delivery, channel, thread, &post).await
    }

    /// Posts a message; one that an attempt before has posted already is found by the name that goes with it.
    async fn post(
        &self,
        delivery: &Delivery,
        channel: &str,
        thread: Option<&str>,
        post: &Post,
    ) -> Result<Delivered, Undelivered> {
        // Where it cannot be looked for: twice is better than never.
        if delivery.attempt > 1
            && let Ok(Some(found)) = self.posted(&delivery.message_id, delivery.created_at, channel, thread).await
        {
            return Ok(Delivered { reference: Some(reference(&found)) });
        }
        let args = json!({
            "channel": channel, "thread_ts": thread, "text": post.text, "blocks": post.blocks,
            "metadata": { "event_type": EVENT, "event_payload": { "delivery": delivery.message_id } },
            "parse": "none", "unfurl_links": false, "unfurl_media": false,
        });
        let answer = self.client.call("chat.postMessage", &args).await.map_err(undelivered)?;
        let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
        Ok(Delivered { reference: Some(reference(&Place { channel: text("channel"), ts: text("ts") })) })
    }

    /// A message that goes by the name of a delivery which was made at that time.
    async fn posted(
        &self,
        name: &str,
        made_at: Timestamp,
        channel: &str,
        thread: Option<&str>,
    ) -> Result<Option<Place>, Fault> {
        let channel = if channel.starts_with(['U', 'W']) {
            let opened = self.client.call("conversations.open", &json!({ "users": channel })).await?;
            opened["channel"]["id"].as_str().unwrap_or_default().to_owned()
        } else {
            channel.to_owned()
        };
        let mut args = json!({ "channel": channel, "limit": LOOKED_AT, "include_all_metadata": true });
        let method = if let Some(thread) = thread {
            args["ts"] = json!(thread);
            "conversations.replies"
        } else {
            // Clocks differ.
            args["oldest"] = json!(format!("{}.000000", made_at.as_second() - 600));
            "conversations.history"
        };
        let answer = self.client.call(method, &args).await?;
        let messages = answer["messages"].as_array();
        let found = messages.into_iter().flatten().find(|message| sent_for(message) == Some(name));
        Ok(found.and_then(|found| Some(Place { channel, ts: found["ts"].as_str()?.to_owned() })))
    }
}

/// The delivery that a message was posted for; only owd can say so of a message of its app.
pub(crate) fn sent_for(message: &Value) -> Option<&str> {
    let metadata = &message["metadata"];
    metadata["event_payload"]["delivery"].as_str().filter(|_| metadata["event_type"] == EVENT)
}

fn undelivered(fault: Fault) -> Undelivered {
    match fault {
        Fault::Later { after, why } => {
            let after = after.map(|after| Span::from_millis(u64::try_from(after.as_millis()).unwrap_or(u64::MAX)));
            Undelivered::Later { after, why }
        }
        Fault::Lost { why } => Undelivered::Lost { why },
        // A revoked token, a channel that the app was not invited to: once that is mended, it arrives.
        fault @ Fault::Never { .. } if fault.is_mendable() => Undelivered::later(fault.to_string()),
        fault @ Fault::Never { .. } => Undelivered::Never { why: fault.to_string() },
    }
}
