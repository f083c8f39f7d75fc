//! Messages: an answer, where one means a single item, or something else.

use std::time::Duration;

use ow_model::{InboxBinding, Item, ItemId, Person};
use ow_store::{Conversation, StoreError, ToldIn};
use serde_json::json;
use tokio::time::timeout;
use tracing::debug;

use super::Desk;
use super::told::{Told, note_to, outcome};
use crate::answer::{self, About, Alone, Decided, Reader, Way};
use crate::channel::sent_for;
use crate::event::{Place, Written};
use crate::shown::{place, reference};
use crate::threads;

/// How long Slack is asked for the first message of a thread.
const LOOK: Duration = Duration::from_secs(3);

impl Desk {
    pub(super) async fn message(&self, written: &Written, again: bool) -> Result<Told, StoreError> {
        let phrases = self.directory.phrases();
        let reader = Reader { bot: &self.bot, phrases: &phrases, now: self.clock.now() };
        let at = Place { channel: written.channel.clone(), ts: written.ts.clone() };
        let note = |text: String| note_to(&written.user, &at, written.thread.clone(), &text);
        let person = self.directory.person(&written.user);
        let in_thread = match &written.thread {
            Some(thread) => {
                let first = Place { channel: written.channel.clone(), ts: thread.clone() };
                // Slack is asked only about what may be an answer: everything after waits for it.
                let look = person.is_some()
                    && answer::reads(written, &reader)
                    && self.store.thread(&threads::name(&first)).await?.is_none();
                self.items_at(&first, look).await?
            }
            None => vec![],
        };
        let (item, way) = match (answer::about(written, &reader), in_thread.as_slice()) {
            (About::Token(token), of_thread) => {
                let item = match token.parse::<ItemId>() {
                    Ok(id) => self.store.item(id).await?,
                    Err(_) => None,
                };
                match item {
                    Some(item) if of_thread.is_empty() || of_thread.contains(&item.id) => (item, Way::Token),
                    // Who writes one item's token under the notice of another leaves in doubt which is meant.
                    Some(_) => return Ok(note(SEVERAL.into())),
                    None if person.is_some() => {
                        return Ok(note(format!("Nothing was decided: there is no item `{token}`.")));
                    }
                    None => return Ok(Told::Nothing),
                }
            }
            (About::Several, _) => {
                return Ok(if person.is_some() { note(SEVERAL.into()) } else { Told::Nothing });
            }
            (About::Thread(_), [one]) => match self.store.item(*one).await? {
                Some(item) => (item, Way::Thread),
                None => return Ok(Told::Nothing),
            },
            (About::Thread(_), [_, _, ..]) => return Ok(note(SEVERAL.into())),
            (About::Thread(_), []) | (About::Nothing, _) => {
                let asked = self.asked_in_thread(written).await?;
                let may = |item: &Item| self.may(person.as_ref(), item);
                match answer::in_session(written, asked, may, &reader) {
                    Alone::Item(item) => (*item, Way::Thread),
                    Alone::Doubt(text) => return Ok(note(text)),
                    Alone::Nothing => match self.meant_alone(written, person.as_ref(), &reader).await? {
                        Alone::Item(item) => (*item, Way::Alone),
                        Alone::Doubt(text) => return Ok(note(text)),
                        Alone::Nothing => return self.work(written, person.as_ref()).await,
                    },
                }
            }
        };
        let decided = answer::of_message(written, &item, way, self.may(person.as_ref(), &item), &reader);
        let by = person.unwrap_or_else(|| Person(written.user.clone()));
        match decided {
            Decided::Answer(answer) => Ok(match self.resolve(&item, &answer, &by, again).await? {
                Ok(done) if way == Way::Alone => self.outcomes(&item, &at.channel, note(done)).await?,
                Ok(done) => match (&written.thread, in_thread.is_empty()) {
                    (Some(thread), false) => {
                        outcome(Place { channel: written.channel.clone(), ts: thread.clone() }, item.id, note(done))
                    }
                    _ => note(done),
                },
                Err(told) => note(told),
            }),
            Decided::Tell(text) => Ok(note(text)),
            Decided::Ask(_) | Decided::Show | Decided::Nothing => Ok(Told::Nothing),
        }
    }

    /// The items that our message at this place tells of. `look`: ask Slack where the outbox does not know it, for Slack may
    /// have taken a message without owd's ever hearing of it.
    ///
    /// A message tells of what the outbox says it was sent for, never of what its text holds: that may be an agent's.
    pub(super) async fn items_at(&self, place: &Place, look: bool) -> Result<Vec<ItemId>, StoreError> {
        let known = self.store.items_told_as(&reference(place)).await?;
        if !known.is_empty() || !look {
            return Ok(known);
        }
        let args = json!({ "channel": place.channel, "ts": place.ts, "limit": 1, "include_all_metadata": true });
        let answer = match timeout(LOOK, self.client.call("conversations.replies", &args)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(fault)) => {
                debug!(%fault, "the first message of a thread cannot be read");
                return Ok(vec![]);
            }
            Err(_) => return Ok(vec![]),
        };
        let first = &answer["messages"][0];
        if first["user"] != self.bot.as_str() || first["ts"] != place.ts.as_str() {
            return Ok(vec![]);
        }
        match sent_for(first) {
            Some(delivery) => self.store.items_told_as(delivery).await,
            None => Ok(vec![]),
        }
    }
    /// What a person means who writes to the app alone, in no thread, as people answer each other: the one item that waits
    /// there for them.
    async fn meant_alone(
        &self,
        written: &Written,
        person: Option<&Person>,
        reader: &Reader<'_>,
    ) -> Result<Alone, StoreError> {
        let Some(person) = person.filter(|_| written.direct && written.thread.is_none()) else {
            return Ok(Alone::Nothing);
        };
        let ToldIn { waiting, last } = self.store.told_in(&conversation(written)).await?;
        let mut items = vec![];
        for id in waiting {
            items.extend(self.store.item(id).await?.filter(|item| self.directory.may_answer(person, item)));
        }
        let last = match last {
            Some(id) => self.store.item(id).await?,
            None => None,
        };
        Ok(answer::alone(written, items, last, reader))
    }

    /// The messages in this channel that told of an item show what became of it.
    async fn outcomes(&self, item: &Item, channel: &str, then: Told) -> Result<Told, StoreError> {
        let places = self.store.told_as(item.id).await?;
        let places = places.iter().filter_map(|name| place(name)).filter(|at| at.channel == channel);
        Ok(places.fold(then, |then, at| outcome(at, item.id, then)))
    }
}

/// What the store knows of the conversation that a message stands in.
fn conversation(written: &Written) -> Conversation {
    let first = Place { channel: written.channel.clone(), ts: String::new() };
    let bindings = [&written.user, &written.channel].map(|address| InboxBinding::new("slack", address));
    Conversation { messages: reference(&first), threads: threads::name(&first), bindings: bindings.into() }
}

const SEVERAL: &str =
    "Nothing was decided: this may mean several items. Use the buttons, or write the token of the one that you mean.";
