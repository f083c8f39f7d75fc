use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use ow_clock::Clock;
use ow_model::{Fact, InboxBinding, ItemId, RunState, SessionId, TurnOutcome};
use ow_store::{NewReply, Reply, Store, StoreError, ThreadRow};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::event::Place;
use crate::shown::{place, reference, show, shown_at};
use crate::{Client, markdown};

/// Before a thread's place in the store's table of threads.
const KIND: &str = "slack:";
/// The subject of a reply that is a notice of its item.
pub(crate) const NOTICE: &str = "notice";
const STORE_WAIT: Duration = Duration::from_secs(1);

/// Tells in threads what their sessions answer and ask, until each is idle and all of it is told.
pub(crate) struct Threads {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    /// Something was said in a thread.
    pub(crate) said: Arc<Notify>,
}

/// What a thread is called in the store.
pub(crate) fn name(first: &Place) -> String {
    format!("{KIND}{}", reference(first))
}

impl Threads {
    /// # Cancel safety
    ///
    /// What is told has a key of its own: told again, it is one message.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let this = Arc::new(self);
        let mut following: JoinSet<SessionId> = JoinSet::new();
        let mut in_hand: HashSet<SessionId> = HashSet::new();
        loop {
            match this.store.open_threads(KIND).await {
                Ok(open) => {
                    for thread in open {
                        if in_hand.insert(thread.session) {
                            let (this, stop) = (Arc::clone(&this), stop.clone());
                            following.spawn(async move {
                                let session = thread.session;
                                tokio::select! {
                                    () = stop.cancelled() => {}
                                    () = this.follow(thread) => {}
                                }
                                session
                            });
                        }
                    }
                }
                Err(error) => warn!(%error, "threads cannot be read"),
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(done) = following.join_next() => {
                    if let Ok(session) = done {
                        in_hand.remove(&session);
                    }
                }
                () = this.said.notified() => {}
            }
        }
        while following.join_next().await.is_some() {}
    }

    async fn follow(&self, mut thread: ThreadRow) {
        while let Err(error) = self.try_follow(&mut thread).await {
            warn!(%error, "a thread is not told yet");
            sleep(STORE_WAIT).await;
        }
    }

    async fn try_follow(&self, thread: &mut ThreadRow) -> Result<(), StoreError> {
        let Some(first) = thread.name.strip_prefix(KIND).and_then(place) else {
            return self.store.note_thread(thread, false).await;
        };
        let mut changes = self.store.session_changes(thread.session);
        loop {
            changes.mark_unchanged();
            let began = thread.told;
            for recorded in self.store.journal_from(thread.session, thread.told).await? {
                self.tell(&first, thread.session, recorded.seq, &recorded.fact).await?;
                thread.told = recorded.seq + 1;
            }
            let session = self.store.session(thread.session).await?;
            let is_over = session.as_ref().is_none_or(|session| {
                let rests = matches!(session.run.state, RunState::Idle) || session.run.ended_at.is_some();
                rests && session.waiting == 0 && session.length <= thread.told
            });
            if is_over || thread.told > began {
                self.store.note_thread(thread, !is_over).await?;
            }
            if is_over {
                return Ok(());
            }
            // The store lives as long as this.
            if changes.changed().await.is_err() {
                return Ok(());
            }
        }
    }

    async fn tell(&self, first: &Place, session: SessionId, seq: u32, fact: &Fact) -> Result<(), StoreError> {
        match fact {
            Fact::Replied { reply, .. } if reply.calls.is_empty() && !reply.text.trim().is_empty() => {
                self.write(first, &format!("{session}:{seq}"), &reply.text).await
            }
            Fact::TurnEnded { outcome: TurnOutcome::Failed { message, .. } } => {
                self.write(first, &format!("{session}:{seq}"), &format!("This went wrong: {message}")).await
            }
            Fact::TurnEnded { outcome: TurnOutcome::Interrupted } => {
                self.write(first, &format!("{session}:{seq}"), "Interrupted.").await
            }
            Fact::Parked { item, .. } => self.ask(first, *item).await,
            Fact::Answered { item, .. } => {
                for told in self.store.told_as(*item).await? {
                    let Some(at) = place(&told) else { continue };
                    let items = shown_at(&*self.store, &at).await?;
                    if let Err(fault) = show(&self.client, &at, &items).await {
                        warn!(%fault, "an outcome is not shown in its thread");
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Puts a text into the thread, in as many messages as it needs.
    async fn write(&self, first: &Place, key: &str, text: &str) -> Result<(), StoreError> {
        for part in 0..markdown::messages(text).len() {
            let reply = Reply {
                subject: String::new(),
                text: text.to_owned(),
                in_reply_to: Some(reference(first)),
                // Which of its messages: each is delivered once.
                references: vec![part.to_string()],
            };
            self.enqueue(first, &format!("{key}:{part}"), None, reply).await?;
        }
        Ok(())
    }

    /// Puts an item's notice into the thread.
    async fn ask(&self, first: &Place, item: ItemId) -> Result<(), StoreError> {
        let reply = Reply {
            subject: NOTICE.into(),
            text: item.to_string(),
            in_reply_to: Some(reference(first)),
            references: vec![],
        };
        self.enqueue(first, &format!("ask:{item}"), Some(item), reply).await
    }

    async fn enqueue(&self, first: &Place, key: &str, item: Option<ItemId>, reply: Reply) -> Result<(), StoreError> {
        let binding = InboxBinding::new("slack", &first.channel);
        let new = NewReply { key: format!("{KIND}{key}"), binding, item, reply };
        self.store.enqueue_reply(&new, self.clock.now()).await.map(|_| ())
    }
}
