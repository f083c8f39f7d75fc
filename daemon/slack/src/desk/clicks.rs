//! Reactions, buttons and modals.

use ow_inbox::told::GONE;
use ow_model::{Item, ItemId, Person};
use ow_store::StoreError;

use super::Desk;
use super::told::{Told, note_to, outcome};
use crate::answer::{self, Decided, Modal, Reader};
use crate::event::{Place, Press, Submit};
use crate::notice;

impl Desk {
    pub(super) async fn reaction(&self, user: &str, at: &Place, name: &str, again: bool) -> Result<Told, StoreError> {
        if !self.directory.takes_reactions() {
            return Ok(Told::Nothing);
        }
        let person = self.directory.person(user);
        let items = self.items_at(at, person.is_some() && crate::text::sign(name).is_some()).await?;
        let [id] = items.as_slice() else { return Ok(Told::Nothing) };
        let Some(item) = self.store.item(*id).await? else { return Ok(Told::Nothing) };
        let phrases = self.directory.phrases();
        let reader = Reader { bot: &self.bot, phrases: &phrases, now: self.clock.now() };
        let may = self.may(person.as_ref(), &item);
        let by = person.unwrap_or_else(|| Person(user.to_owned()));
        let note = |text: String| note_to(user, at, Some(at.ts.clone()), &text);
        match answer::of_reaction(name, &item, may, &reader) {
            Decided::Answer(answer) => Ok(match self.resolve(&item, &answer, &by, again).await? {
                Ok(done) => outcome(at.clone(), item.id, note(done)),
                Err(told) => note(told),
            }),
            Decided::Tell(text) => Ok(note(text)),
            Decided::Ask(_) | Decided::Show | Decided::Nothing => Ok(Told::Nothing),
        }
    }

    pub(super) async fn press(&self, press: &Press, again: bool) -> Result<Told, StoreError> {
        let at = Place { channel: press.channel.clone(), ts: press.ts.clone() };
        let note = |text: String| note_to(&press.user, &at, press.thread.clone(), &text);
        let person = self.directory.person(&press.user);
        let Some(item) = self.item_of(&press.value).await? else {
            return Ok(note(GONE.into()));
        };
        let decided = answer::of_press(press, &item, self.may(person.as_ref(), &item));
        let by = person.unwrap_or_else(|| Person(press.user.clone()));
        Ok(match decided {
            Decided::Answer(answer) => match self.resolve(&item, &answer, &by, again).await? {
                // The notice itself shows it.
                Ok(_) => outcome(at.clone(), item.id, Told::Nothing),
                Err(told) => note(told),
            },
            Decided::Ask(what) => ask(what, press, &item, &at, note),
            Decided::Show => {
                let post = notice::arguments(&item);
                Told::Note {
                    user: press.user.clone(),
                    at: at.clone(),
                    thread: press.thread.clone(),
                    text: post.text,
                    blocks: post.blocks,
                }
            }
            Decided::Tell(text) => note(text),
            Decided::Nothing => Told::Nothing,
        })
    }

    pub(super) async fn submit(&self, submit: &Submit, again: bool) -> Result<Told, StoreError> {
        let note = |text: String| match &submit.from {
            Some(from) => note_to(&submit.user, from, None, &text),
            None => Told::Nothing,
        };
        let person = self.directory.person(&submit.user);
        let Some(item) = self.item_of(&submit.value).await? else {
            return Ok(note(GONE.into()));
        };
        let decided = answer::of_submit(submit, &item, self.may(person.as_ref(), &item));
        let by = person.unwrap_or_else(|| Person(submit.user.clone()));
        Ok(match decided {
            Decided::Answer(answer) => match self.resolve(&item, &answer, &by, again).await? {
                Ok(_) => submit.from.clone().map_or(Told::Nothing, |from| outcome(from, item.id, Told::Nothing)),
                Err(told) => note(told),
            },
            Decided::Tell(text) => note(text),
            Decided::Ask(_) | Decided::Show | Decided::Nothing => Told::Nothing,
        })
    }

    async fn item_of(&self, value: &str) -> Result<Option<Item>, StoreError> {
        match answer::choice(value).and_then(|(id, _)| id.parse::<ItemId>().ok()) {
            Some(id) => self.store.item(id).await,
            None => Ok(None),
        }
    }
}

fn ask(what: Modal, press: &Press, item: &Item, at: &Place, note: impl Fn(String) -> Told) -> Told {
    match (notice::modal(what, item, at), &press.trigger) {
        (Ok(view), Some(trigger)) => {
            let late = "This took too long to be shown; press the button again.";
            Told::View { trigger: trigger.clone(), view, otherwise: Box::new(note(late.into())) }
        }
        (Ok(_), None) => Told::Nothing,
        (Err(why), _) => note(why),
    }
}
