use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ow_clock::Clock;
use ow_model::InboxBinding;
use ow_store::{Attempted, Delivery, Store};
use tokio::task::{self, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::retry::attempted;
use crate::{Channels, Fault};

/// Bindings that are delivered to at the same time.
const LANES: usize = 64;
/// How long one attempt may take.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(90);
/// How long attempts may go on once owd is to stop. What is cut off is repeated at the next start.
const LAST_ATTEMPTS: Duration = Duration::from_secs(5);
/// A binding that failed is not tried again before its message is, but no longer than this.
const LONGEST_REST: SignedDuration = SignedDuration::from_hours(1);
/// A store that refuses is asked again after this.
const STORE_PAUSE: Duration = Duration::from_secs(5);

/// Delivers what the store's outbox holds.
///
/// Each binding has a lane of its own, one message at a time: one that is slow or dead holds up no other.
pub struct Post {
    store: Arc<dyn Store>,
    clock: Clock,
    channels: Arc<Channels>,
}

/// A lane has nothing more to do now; with an instant, its binding rests until then.
type Left = Option<Timestamp>;

impl Post {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Clock, channels: Arc<Channels>) -> Self {
        Self { store, clock, channels }
    }

    /// Delivers until `stop` is cancelled; sleeps while nothing is due.
    pub async fn run(self, stop: CancellationToken) {
        let mut changes = self.store.outbox_changes();
        let mut channels = self.channels.changes();
        let mut lanes: JoinSet<Left> = JoinSet::new();
        // With the generation of channels that each lane began by.
        let mut busy: HashMap<task::Id, (InboxBinding, u64)> = HashMap::new();
        let mut resting: BTreeMap<InboxBinding, Timestamp> = BTreeMap::new();
        loop {
            let now = self.clock.now();
            changes.borrow_and_update();
            resting.retain(|_, until| *until > now);
            let closed: BTreeSet<InboxBinding> =
                busy.values().map(|(binding, _)| binding).chain(resting.keys()).cloned().collect();
            let free = LANES.saturating_sub(lanes.len());
            let mut pause = None;
            let mut wake_at = resting.values().min().copied();
            match self.store.take_deliveries(&closed, free, now).await {
                Ok(taken) => {
                    // With no lane free it is the end of one that matters.
                    if taken.deliveries.len() < free {
                        wake_at = [wake_at, taken.next].into_iter().flatten().min();
                    }
                    for delivery in taken.deliveries {
                        let (binding, by) = (delivery.binding.clone(), *channels.borrow());
                        let task = lanes.spawn(self.lane(delivery)).id();
                        busy.insert(task, (binding, by));
                    }
                }
                Err(error) => {
                    warn!(%error, "the outbox cannot be read; it is tried again");
                    pause = Some(STORE_PAUSE);
                }
            }
            let paused = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(left) = lanes.join_next_with_id() => match left {
                    Ok((task, until)) => {
                        let began = busy.remove(&task).zip(until);
                        match began {
                            Some(((binding, by), until)) if by == *channels.borrow() => {
                                resting.insert(binding, until);
                            }
                            // It failed by a channel that has been replaced since.
                            Some(_) => self.hurry().await,
                            None => {}
                        }
                    }
                    // Its message is handed out again in the next life.
                    Err(error) => {
                        warn!(%error, "a lane of the post ended badly");
                        busy.remove(&error.id());
                    }
                },
                Ok(()) = changes.changed() => {}
                Ok(()) = channels.changed() => {
                    channels.borrow_and_update();
                    resting.clear();
                    self.hurry().await;
                }
                _ = self.clock.wake_at(wake_at) => {}
                () = paused => {}
            }
        }
        let finish = async { while lanes.join_next().await.is_some() {} };
        if timeout(LAST_ATTEMPTS, finish).await.is_err() {
            info!(count = lanes.len(), "deliveries are cut off; they are repeated at the next start");
        }
    }

    /// What failed is tried again at once.
    async fn hurry(&self) {
        if let Err(error) = self.store.hurry_deliveries(self.clock.now()).await {
            warn!(%error, "what was not delivered waits for its time");
        }
    }

    /// Delivers one message after the other to one binding, until nothing is due there or it must rest.
    fn lane(&self, first: Delivery) -> impl Future<Output = Left> + use<> {
        let (store, clock, channels) = (Arc::clone(&self.store), self.clock.clone(), Arc::clone(&self.channels));
        async move {
            let binding = first.binding.clone();
            let mut next = Some(first);
            while let Some(delivery) = next {
                let result = match channels.of(&binding) {
                    Err(fault) => Err(fault),
                    Ok(channel) => match timeout(ATTEMPT_LIMIT, channel.deliver(&delivery)).await {
                        Ok(result) => result,
                        Err(_elapsed) => {
                            Err(Fault::lost(format!("no answer within {} seconds", ATTEMPT_LIMIT.as_secs())))
                        }
                    },
                };
                let now = clock.now();
                let attempted = attempted(&delivery, result, now);
                match &attempted {
                    Attempted::Sent { .. } => {
                        info!(binding = %binding.shown(), attempt = delivery.attempt, "delivered");
                    }
                    Attempted::Later { at, why, perhaps: _ } => {
                        info!(binding = %binding.shown(), %at, why, "not delivered; it is tried again");
                    }
                    Attempted::Failed { why, .. } => warn!(binding = %binding.shown(), why, "a delivery was given up"),
                }
                if let Attempted::Later { at, .. } = attempted {
                    keep(&*store, &delivery, &attempted, &clock).await;
                    // What is late itself holds up what comes after it no longer than this.
                    return Some(at.min(now.saturating_add(LONGEST_REST).unwrap_or(Timestamp::MAX)));
                }
                next = keep(&*store, &delivery, &attempted, &clock).await;
            }
            None
        }
    }
}

/// Records what came of a delivery, however often the store refuses: to repeat the delivery instead would be a second one.
async fn keep(store: &dyn Store, delivery: &Delivery, attempted: &Attempted, clock: &Clock) -> Option<Delivery> {
    loop {
        match store.record_delivery(delivery, attempted, clock.now()).await {
            Ok(next) => return next,
            Err(error) => {
                warn!(%error, "a delivery could not be recorded; it is tried again");
                tokio::time::sleep(STORE_PAUSE).await;
            }
        }
    }
}
