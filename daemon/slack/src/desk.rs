mod clicks;
mod message;
mod told;
mod work;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ow_clock::Clock;
use ow_inbox::told as words;
use ow_model::{Answer, AnswerBy, Item, Person, Surface};
use ow_reply::Phrases;
use ow_store::{NewSession, ResolveError, Store, StoreError, TakenIn};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::event::{Event, Written};
use crate::intake::SOURCE;
use crate::{Client, Intake};

use told::Told;

/// Events that are looked at in one reading of the store.
const BATCH: usize = 32;
/// Notes that are on their way at the same time; a stranger's is dropped where there are more, for Slack limits them.
const TELLING: usize = 16;
/// The same for everybody: what is decided is never kept waiting by what is told.
const TELLING_AT_ALL: usize = 128;
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
        let done = || Ok(words::done(item, answer));
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
            Err(error) => Err(words::refused(&error)),
        })
    }
}
