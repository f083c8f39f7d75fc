//! What is no answer: work that a person starts or goes on with, and messages that tasks wait for.

use ow_model::{Input, Item, ItemKind, Person, Source};
use ow_store::{ItemFilter, PageRequest, StoreError};
use serde_json::json;
use tracing::info;

use super::Desk;
use super::told::{Told, note_to};
use crate::event::{Place, Written};
use crate::shown::reference;
use crate::threads;

const NO_WORK: &str = "You may not start work here. Whoever runs owd says who may.";

/// Items that are read at once.
const PAGE: usize = 100;

impl Desk {
    /// What the session of this message's thread asks for.
    pub(super) async fn asked_in_thread(&self, written: &Written) -> Result<Vec<Item>, StoreError> {
        let Some(thread) = &written.thread else { return Ok(vec![]) };
        let first = Place { channel: written.channel.clone(), ts: thread.clone() };
        let Some(thread) = self.store.thread(&threads::name(&first)).await? else { return Ok(vec![]) };
        let filter = ItemFilter { pending_only: true, run: Some(thread.session), ..ItemFilter::default() };
        let mut page = PageRequest { limit: PAGE, after: None };
        let mut asked = vec![];
        loop {
            let found = self.store.items(&filter, &page).await?;
            // However much was only told, what is asked is among them.
            asked.extend(found.rows.into_iter().filter(|item| !matches!(item.kind, ItemKind::Notification { .. })));
            match found.next {
                Some(next) => page.after = Some(next),
                None => return Ok(asked),
            }
        }
    }

    /// What is neither an answer nor meant for the app may be what a task waits for.
    async fn offer(&self, written: &Written, person: Option<&Person>) -> Result<(), StoreError> {
        let data = json!({
            "channel": written.channel, "user": written.user, "person": person.map(|person| &person.0),
            "ts": written.ts, "thread": written.thread, "text": crate::text::plain(&written.text, &self.bot).trim(),
        });
        self.directory.offer(written, data).await
    }

    /// Starts a session, or goes on with that of the thread: who is addressed is the app.
    pub(super) async fn work(&self, written: &Written, person: Option<&Person>) -> Result<Told, StoreError> {
        let first = Place {
            channel: written.channel.clone(),
            ts: written.thread.clone().unwrap_or_else(|| written.ts.clone()),
        };
        let name = threads::name(&first);
        let addressed = written.mention || written.direct;
        if !addressed && (written.thread.is_none() || self.store.thread(&name).await?.is_none()) {
            return self.offer(written, person).await.map(|()| Told::Nothing);
        }
        let at = Place { channel: written.channel.clone(), ts: written.ts.clone() };
        let note = |text: &str| note_to(&written.user, &at, written.thread.clone(), text);
        let new = match person.map(|person| (person, self.directory.session_for(person))) {
            Some((_, Ok(new))) => new,
            // People talk in a thread; only who speaks to the app is told.
            Some((_, Err(_))) | None if !addressed => return Ok(Told::Nothing),
            Some((_, Err(why))) => return Ok(note(&why)),
            None => return Ok(note(NO_WORK)),
        };
        let text = crate::text::plain(&written.text, &self.bot);
        let text = text.trim();
        if text.is_empty() {
            return Ok(note("Say what is to be done after the mention, in the same message."));
        }
        let person = person.cloned().unwrap_or_else(|| Person(written.user.clone()));
        let input = Input { text: text.to_owned(), attachments: vec![], source: Source::Person { person } };
        let key = reference(&at);
        let said = self.store.say_in_thread(&name, &new, &input, &key, self.clock.now()).await?;
        if said.begun {
            info!(session = %said.session, "a session is opened from Slack");
        }
        self.directory.wake();
        self.said.notify_one();
        Ok(Told::Nothing)
    }
}
