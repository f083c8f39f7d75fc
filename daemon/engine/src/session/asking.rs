//! Waiting for a person.

use std::sync::Arc;

use ow_model::{Answered, Call, Fact, ItemId, ItemKind, ItemState, Position};
use ow_policy::Facts;
use ow_store::{NewItem, ParkRequest, StoreError};
use tracing::info;

use super::{Question, Session, Turn, blocking, persist};
use crate::Stop;

impl<T: Turn> Session<T> {
    /// The request for a person's consent to a call, with all that the answer is bound to.
    pub(crate) async fn approval(&self, title: String, call: Call, facts: &Facts, question: Question) -> NewItem {
        let Question { category, reason, rule_offer, session_offer } = question;
        let (engine, place) = (Arc::clone(&self.engine), self.place.clone());
        let shown = call.clone();
        let secrets = Arc::clone(&self.engine.standing().secrets);
        let diff = blocking(move || {
            let diff = engine.toolbox.tool(&shown.tool)?.diff(&shown, &place)?;
            // It shows what the file holds now, which may be a key.
            Some(secrets.redactor().redact(&diff).into_owned())
        })
        .await;
        let binding = ow_policy::binding_of(facts);
        self.item(
            title,
            ItemKind::Approval { hash: call.hash(), category, reason, binding, rule_offer, session_offer, diff, call },
        )
    }

    /// An item of this run, with its task's expiry and reminder.
    pub(crate) fn item(&self, title: String, kind: ItemKind) -> NewItem {
        NewItem {
            task: Some(self.spec.name.clone()),
            run: Some(self.run.id),
            title,
            kind,
            expires_in: Some(self.spec.item_expiry),
            remind_after: Some(self.spec.item_reminder),
            inbox: self.spec.inbox.clone(),
        }
    }

    /// Parks the run on these items, with the pending facts: when this has returned all of it is durable.
    pub(crate) async fn park(&mut self, items: Vec<(Position, NewItem)>, stop: &Stop) -> Result<(), StoreError> {
        let request = ParkRequest {
            run: self.run.id,
            next: self.next_seq,
            facts: self.pending.clone(),
            items,
            ran_for_ms: self.ran_for().millis(),
        };
        let items = persist(stop, || self.engine.store.park(&request, self.engine.clock.now())).await?;
        self.pending.clear();
        info!(items = ?items, "run parked");
        Ok(())
    }

    /// The journal waits for an item: the store knows how it ended, even if the journal does not say.
    ///
    /// True if the run is parked again, false if the answer is folded in now.
    pub(crate) async fn look_at(&mut self, position: Position, item: ItemId, stop: &Stop) -> Result<bool, StoreError> {
        self.look_at_all(vec![(position, item)], stop).await
    }

    /// How an item ended, or the question to ask again while it is open.
    async fn state_of(&self, item: ItemId) -> Result<Result<Answered, NewItem>, StoreError> {
        let Some(found) = self.engine.store.item(item).await? else {
            return Ok(Ok(Answered::Withdrawn { why: "the item is gone".into() }));
        };
        Ok(match found.state {
            ItemState::Resolved(resolution) => Ok(Answered::Resolved(resolution)),
            ItemState::Expired { .. } => Ok(Answered::Expired),
            ItemState::Withdrawn { why, .. } => Ok(Answered::Withdrawn { why }),
            ItemState::Pending => {
                let (task, run, title, kind, inbox) = (found.task, found.run, found.title, found.kind, found.inbox);
                Err(NewItem { task, run, title, kind, expires_in: None, remind_after: None, inbox })
            }
        })
    }

    /// The same for several items: true if some are still open, and the run is parked on those again.
    pub(crate) async fn look_at_all(
        &mut self,
        items: Vec<(Position, ItemId)>,
        stop: &Stop,
    ) -> Result<bool, StoreError> {
        let mut open = vec![];
        for (position, item) in items {
            match self.state_of(item).await? {
                Ok(answered) => self.record(Fact::Answered { position, item, answered }),
                Err(again) => open.push((position, again)),
            }
        }
        if open.is_empty() {
            return Ok(false);
        }
        self.park(open, stop).await?;
        Ok(true)
    }
}
