mod work;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ow_clock::Clock;
use ow_model::{Answer, AnswerBy, Item, ItemId, Person, Surface};
use ow_reply::Phrases;
use ow_store::{NewSession, ResolveError, Store, StoreError, TakenIn};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::answer::{self, About, Decided, Modal, Reader, Way};
use crate::channel::sent_for;
use crate::event::{Event, Place, Press, Submit, Written};
use crate::intake::SOURCE;
use crate::notice::Post;
use crate::shown::{reference, show, shown_at};
use crate::{Client, Fault, Intake, notice, threads};

/// Events that are looked at in one reading of the store.
const BATCH: usize = 32;
/// Notes that are on their way at the same time; a stranger's is dropped where there are more, for Slack limits them.
const TELLING: usize = 16;
/// The same for everybody: what is decided is never kept waiting by what is told.
const TELLING_AT_ALL: usize = 128;
/// A note to one person is tried so often; the item itself is decided before.
const ATTEMPTS: u32 = 4;
/// How long Slack is asked for the first message of a thread.
const LOOK: Duration = Duration::from_secs(3);
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// After the store has failed.
const STORE_WAIT: Duration = Duration::from_secs(1);

/// Who is who in Slack, as the configuration says it now.
#[async_trait]
pub trait Directory: Send + Sync {
    fn person(&self, user: &str) -> Option<Person>;
    fn may_answer(&self, person: &Person, item: &Item) -> bool;
    /// By which words an answer is read.
    fn phrases(&self) -> Arc<Phrases>;
    /// Whether a reaction to a notice answers it.
    fn takes_reactions(&self) -> bool;
    /// What a session is made of that this person starts from Slack.
    ///
    /// # Errors
    ///
    /// Says why they may start none.
    fn session_for(&self, person: &Person) -> Result<NewSession, String>;
    /// Offers a message to the tasks that listen to its channel; durable when this has returned.
    async fn offer(&self, message: &Written, data: Value) -> Result<(), StoreError>;
    /// There is work in the store.
    fn wake(&self);
}

/// Where what came from Slack is worked off, in the order of its coming.
pub struct Desk {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub client: Client,
    pub intake: Arc<Intake>,
    pub directory: Arc<dyn Directory>,
    /// The bot's user id.
    pub bot: String,
    /// Something was said in a thread.
    pub said: Arc<Notify>,
}

/// What is still to be told once an event is decided.
#[derive(Debug)]
enum Told {
    Nothing,
    /// To this person alone.
    Note {
        user: String,
        at: Place,
        thread: Option<String>,
        text: String,
        blocks: Value,
    },
    View {
        trigger: String,
        view: Value,
        otherwise: Box<Told>,
    },
    /// To all: the notice at this place shows what became of its item, before anything else that is told.
    Outcome {
        at: Place,
        item: ItemId,
        then: Box<Told>,
    },
}

impl Desk {
    /// Works off what is stored until it is told to stop.
    ///
    /// # Cancel safety
    ///
    /// An event that was not worked off to its end is taken up again by the next life.
    pub async fn run(self, stop: CancellationToken) {
        let this = Arc::new(self);
        let began = this.clock.now();
        let mut telling: JoinSet<i64> = JoinSet::new();
        let mut in_hand: HashSet<i64> = HashSet::new();
        loop {
            let most = BATCH + in_hand.len();
            let waiting = match this.store.taken_in(SOURCE, most).await {
                Ok(waiting) => waiting,
                Err(error) => {
                    warn!(%error, "what came from Slack cannot be read");
                    tokio::select! {
                        () = stop.cancelled() => break,
                        () = sleep(STORE_WAIT) => continue,
                    }
                }
            };
            let (mut failed, more) = (false, waiting.len() >= most);
            for one in waiting.into_iter().filter(|one| !in_hand.contains(&one.id)).collect::<Vec<_>>() {
                match this.decide(&one, one.received_at < began).await {
                    Ok(told) if this.is_too_much(&told, telling.len()) => {
                        debug!("a note is dropped, as too many wait for Slack");
                        if let Err(error) = this.store.worked_off(one.id).await {
                            warn!(%error, "an event of Slack's stays and is looked at again");
                            failed = true;
                            break;
                        }
                    }
                    Ok(told) => {
                        in_hand.insert(one.id);
                        let this = Arc::clone(&this);
                        telling.spawn(async move {
                            this.tell(told).await;
                            if let Err(error) = this.store.worked_off(one.id).await {
                                warn!(%error, "an event of Slack's stays and is looked at again");
                            }
                            one.id
                        });
                    }
                    Err(error) => {
                        warn!(%error, "an event of Slack's cannot be worked off just now");
                        failed = true;
                        break;
                    }
                }
            }
            if more && !failed && !stop.is_cancelled() {
                continue;
            }
            let pause = async { if failed { sleep(STORE_WAIT).await } else { std::future::pending().await } };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(done) = telling.join_next() => {
                    if let Ok(id) = done {
                        in_hand.remove(&id);
                    }
                }
                () = this.intake.stored() => {}
                () = pause => {}
            }
        }
        // What is on its way is told in the next life, unless it is told at once.
        telling.shutdown().await;
    }

    /// Whether this is not told any more while so much is on its way.
    fn is_too_much(&self, told: &Told, telling: usize) -> bool {
        let known = match told {
            Told::Note { user, .. } => self.directory.person(user).is_some(),
            Told::Nothing | Told::View { .. } | Told::Outcome { .. } => true,
        };
        telling >= if known { TELLING_AT_ALL } else { TELLING }
    }

    /// Decides one event. `again`: a life before may have worked on it already.
    async fn decide(&self, one: &TakenIn, again: bool) -> Result<Told, StoreError> {
        let Ok(event) = serde_json::from_value::<Event>(one.payload.clone()) else {
            warn!("an event of Slack's is of another format and is left out");
            return Ok(Told::Nothing);
        };
        match event {
            Event::Message(written) => self.message(&written, again).await,
            Event::Reaction { user, at, name } => self.reaction(&user, &at, &name, again).await,
            Event::Press(press) => self.press(&press, again).await,
            Event::Submit(submit) => self.submit(&submit, again).await,
        }
    }

    async fn message(&self, written: &Written, again: bool) -> Result<Told, StoreError> {
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
            (About::Thread(_), []) | (About::Nothing, _) => match self.asked_in_thread(written).await? {
                Some(item) => (item, Way::Thread),
                None => return self.work(written, person.as_ref()).await,
            },
        };
        let decided = answer::of_message(written, &item, way, self.may(person.as_ref(), &item), &reader);
        let by = person.unwrap_or_else(|| Person(written.user.clone()));
        match decided {
            Decided::Answer(answer) => Ok(match self.resolve(&item, &answer, &by, again).await? {
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

    async fn reaction(&self, user: &str, at: &Place, name: &str, again: bool) -> Result<Told, StoreError> {
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

    async fn press(&self, press: &Press, again: bool) -> Result<Told, StoreError> {
        let at = Place { channel: press.channel.clone(), ts: press.ts.clone() };
        let note = |text: String| note_to(&press.user, &at, press.thread.clone(), &text);
        let person = self.directory.person(&press.user);
        let Some(item) = self.item_of(&press.value).await? else {
            return Ok(note("Nothing was decided: there is no such item any more.".into()));
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

    async fn submit(&self, submit: &Submit, again: bool) -> Result<Told, StoreError> {
        let note = |text: String| match &submit.from {
            Some(from) => note_to(&submit.user, from, None, &text),
            None => Told::Nothing,
        };
        let person = self.directory.person(&submit.user);
        let Some(item) = self.item_of(&submit.value).await? else {
            return Ok(note("Nothing was decided: there is no such item any more.".into()));
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

    /// The items that our message at this place tells of. `look`: ask Slack where the outbox does not know it, for Slack may
    /// have taken a message without owd's ever hearing of it.
    ///
    /// A message tells of what the outbox says it was sent for, never of what its text holds: that may be an agent's.
    async fn items_at(&self, place: &Place, look: bool) -> Result<Vec<ItemId>, StoreError> {
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

    async fn item_of(&self, value: &str) -> Result<Option<Item>, StoreError> {
        match answer::choice(value).and_then(|(id, _)| id.parse::<ItemId>().ok()) {
            Some(id) => self.store.item(id).await,
            None => Ok(None),
        }
    }

    fn may(&self, person: Option<&Person>, item: &Item) -> bool {
        person.is_some_and(|person| self.directory.may_answer(person, item))
    }

    /// Resolves an item; what its person is told, if it was done and if it was not.
    async fn resolve(
        &self,
        item: &Item,
        answer: &Answer,
        person: &Person,
        again: bool,
    ) -> Result<Result<String, String>, StoreError> {
        let by = AnswerBy { person: person.clone(), surface: Surface::Slack };
        let done = || Ok(format!("Done: “{}” is {}.", item.title, answer.word()));
        Ok(match self.store.resolve(item.id, answer, &by, self.clock.now()).await {
            Ok(_) => {
                self.directory.wake();
                info!(item = %item.id, decision = answer.word(), by = %person.0, "answered in Slack");
                done()
            }
            Err(ResolveError::Store(error)) => return Err(error),
            // Decided by this very event, by a life that did not live to say so.
            Err(ResolveError::Already { decision, by: first, .. })
                if again && first == by && decision == answer.word() =>
            {
                done()
            }
            Err(ResolveError::Already { decision, by, at, .. }) => Err(answer::already(decision, &by, at)),
            Err(error) => Err(format!("Nothing was changed: {error}.")),
        })
    }

    /// Shows at once what the outbox will show; also in a message of which the outbox does not know that it arrived.
    async fn show(&self, at: &Place, item: ItemId) {
        let shown = async {
            let told = shown_at(&*self.store, at).await?;
            Ok::<_, StoreError>(if told.is_empty() { self.store.item(item).await?.into_iter().collect() } else { told })
        };
        let items = match shown.await {
            Ok(items) => items,
            Err(error) => {
                warn!(%error, "an outcome is not shown yet");
                return;
            }
        };
        if let Err(fault) = show(&self.client, at, &items).await {
            warn!(%fault, "an outcome is not shown yet");
        }
    }

    async fn tell(&self, told: Told) {
        let told = match told {
            Told::Outcome { at, item, then } => {
                self.show(&at, item).await;
                *then
            }
            told => told,
        };
        let told = match told {
            Told::Nothing | Told::Outcome { .. } => return,
            Told::Note { .. } => told,
            Told::View { trigger, view, otherwise } => {
                let args = json!({ "trigger_id": trigger, "view": view });
                match self.client.call("views.open", &args).await {
                    Ok(_) => return,
                    Err(fault) => {
                        warn!(%fault, "a modal was not opened");
                        *otherwise
                    }
                }
            }
        };
        let Told::Note { user, at, thread, text, blocks } = told else { return };
        // In the conversation with that person alone, every message is to them alone.
        let direct = at.channel.starts_with('D');
        let method = if direct { "chat.postMessage" } else { "chat.postEphemeral" };
        let mut args = json!({
            "channel": at.channel, "text": text, "thread_ts": thread, "blocks": blocks,
            "parse": "none", "unfurl_links": false, "unfurl_media": false,
        });
        if !direct {
            args["user"] = json!(user);
        }
        let mut wait = Duration::from_secs(1);
        for _ in 0..ATTEMPTS {
            match self.client.call(method, &args).await {
                Ok(_) => return,
                Err(Fault::Later { after, why }) => {
                    warn!(why, "a note to one person waits");
                    sleep(after.unwrap_or(wait).min(LONGEST_WAIT)).await;
                    wait *= 2;
                }
                Err(Fault::Lost { why }) => {
                    warn!(why, "a note to one person waits");
                    sleep(wait).await;
                    wait *= 2;
                }
                Err(fault @ Fault::Never { .. }) => {
                    warn!(%fault, "a note to one person was not taken");
                    return;
                }
            }
        }
    }
}

fn outcome(at: Place, item: ItemId, then: Told) -> Told {
    Told::Outcome { at, item, then: Box::new(then) }
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

fn note_to(user: &str, at: &Place, thread: Option<String>, text: &str) -> Told {
    let Post { text, blocks } = notice::line(text);
    Told::Note { user: user.to_owned(), at: at.clone(), thread, text, blocks }
}

const SEVERAL: &str =
    "Nothing was decided: this may mean several items. Use the buttons, or write the token of the one that you mean.";
