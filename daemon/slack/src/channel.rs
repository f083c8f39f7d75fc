use std::sync::Arc;

use async_trait::async_trait;
use ow_inbox::{Channel, Delivered, Fault as Undelivered};
use ow_model::{Item, Occasion, Span};
use ow_store::{Content, Delivery, Notice, Reply, Store};
use serde_json::{Value, json};

use crate::event::Place;
use crate::notice::{self, News, Post};
use crate::shown::{place, reference, show, shown_at};
use crate::text::escaped;
use crate::{Client, Fault};

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
            Content::Reply(reply) => self.reply(channel, reply).await,
            Content::Notices(notices) => match notices.as_slice() {
                [one] => self.notice(channel, one).await,
                several => self.digest(channel, several).await,
            },
        }
    }
}

impl SlackChannel {
    async fn notice(&self, channel: &str, notice: &Notice) -> Result<Delivered, Undelivered> {
        let first = notice.thread.as_ref().and_then(|thread| place(thread.reference.as_deref()?));
        match (notice.occasion, first) {
            // What nobody here was told of needs no end.
            (Occasion::Settled, None) => Ok(Delivered::default()),
            (Occasion::Settled, Some(first)) => self.settle(&first).await.map(|()| Delivered::default()),
            (Occasion::Reminded, Some(first)) => {
                let text = format!(
                    "“{}” still waits for an answer. Its buttons are above; a reply here answers it too.",
                    notice.item.title
                );
                let post = Post { text: escaped(&text), blocks: Value::Null };
                self.post(&first.channel, Some(&first.ts), &post).await
            }
            (occasion, first) => {
                let thread = first.as_ref().map(|first| first.ts.as_str());
                let channel = first.as_ref().map_or(channel, |first| &first.channel);
                self.post(channel, thread, &notice::notice(&notice.item, news(occasion))).await
            }
        }
    }

    /// Several items in one message.
    async fn digest(&self, channel: &str, notices: &[Notice]) -> Result<Delivered, Undelivered> {
        let told: Vec<&Item> =
            notices.iter().filter(|notice| notice.occasion != Occasion::Settled).map(|notice| &notice.item).collect();
        // The messages that told of them are changed; each holds others, perhaps.
        for notice in notices.iter().filter(|notice| notice.occasion == Occasion::Settled) {
            if let Some(first) = notice.thread.as_ref().and_then(|thread| place(thread.reference.as_deref()?)) {
                self.settle(&first).await?;
            }
        }
        if told.is_empty() {
            return Ok(Delivered::default());
        }
        self.post(channel, None, &notice::digest(&told)).await
    }

    async fn settle(&self, at: &Place) -> Result<(), Undelivered> {
        let items = shown_at(&*self.store, at).await.map_err(|error| Undelivered::later(error.to_string()))?;
        show(&self.client, at, &items).await.map_err(undelivered)
    }

    async fn reply(&self, channel: &str, reply: &Reply) -> Result<Delivered, Undelivered> {
        let first = reply.in_reply_to.as_deref().and_then(place);
        let channel = first.as_ref().map_or(channel, |first| &first.channel);
        let post = Post { text: escaped(&reply.text), blocks: Value::Null };
        self.post(channel, first.as_ref().map(|first| first.ts.as_str()), &post).await
    }

    async fn post(&self, channel: &str, thread: Option<&str>, post: &Post) -> Result<Delivered, Undelivered> {
        let args = json!({
            "channel": channel, "thread_ts": thread, "text": post.text, "blocks": post.blocks,
            "unfurl_links": false, "unfurl_media": false,
        });
        let answer = self.client.call("chat.postMessage", &args).await.map_err(undelivered)?;
        let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
        Ok(Delivered { reference: Some(reference(&Place { channel: text("channel"), ts: text("ts") })) })
    }
}

const fn news(occasion: Occasion) -> News {
    match occasion {
        Occasion::Asked | Occasion::Settled => News::Asked,
        Occasion::Reminded => News::Reminded,
        Occasion::Escalated | Occasion::Delegated => News::Escalated,
    }
}

fn undelivered(fault: Fault) -> Undelivered {
    match fault {
        Fault::Later { after, why } => {
            let after = after.map(|after| Span::from_millis(u64::try_from(after.as_millis()).unwrap_or(u64::MAX)));
            Undelivered::Later { after, why }
        }
        fault @ Fault::Never { .. } => Undelivered::Never { why: fault.to_string() },
    }
}
