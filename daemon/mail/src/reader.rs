//! Reads a mailbox for as long as owd lives.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use ow_clock::Clock;
use ow_store::{Store, StoreError};
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::desk::{Outcome, Taken};
use crate::imap::{Account, ImapError, Session};
use crate::progress::{Handled, Look, Next, Progress};

/// Of a mail that is larger only the headers are read; common servers take none above 25 MB.
const LARGEST: u64 = 32 * 1024 * 1024;

/// A connection that says nothing for so long is asked whether it is still there.
const QUIET: SignedDuration = SignedDuration::from_mins(5);

/// How often a server is asked that does not tell by itself.
const ASKED: SignedDuration = SignedDuration::from_mins(1);

/// A lost connection is tried again after this, then after twice the time, and so on.
const FIRST: SignedDuration = SignedDuration::from_secs(1);

/// But never later than this.
const LONGEST: SignedDuration = SignedDuration::from_mins(5);

/// How much of a mail is there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Extent {
    Whole,
    /// Only its header: the rest is too large.
    Head,
}

/// Where mail goes once it is here.
#[async_trait]
pub trait Takes: Send + Sync {
    /// Handles a mail; once this returns, what it decided is durable.
    ///
    /// `folder` is the one that it lies in; none: the mailbox that answers come to, or it was handed over.
    async fn take(&self, raw: &[u8], extent: Extent, folder: Option<&str>) -> Result<Taken, StoreError>;
    /// Tells the person of a mail that could not be handled.
    async fn give_up(&self, mailbox: &str, uid: u32) -> Result<(), StoreError>;
    /// Tells how the connection to the mailbox stands: why it is lost, or that it is there.
    fn stands(&self, mailbox: &str, fault: Option<&str>);
}

/// Reads one mailbox: what came while nobody looked, then each mail as it comes.
pub struct MailboxReader {
    pub account: Account,
    /// Its name, if it is not the mailbox that answers come to.
    pub folder: Option<String>,
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub takes: Arc<dyn Takes>,
}

#[derive(Debug, Error)]
enum ReadError {
    #[error(transparent)]
    Imap(#[from] ImapError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MailboxReader {
    /// Runs until `stop`; a mail that is in hand is handled first.
    pub async fn run(&self, stop: CancellationToken) {
        let name = self.account.name();
        if let Err(error) = self.wanted(&name).await {
            warn!(mailbox = name, %error, "it is not noted since when the mailbox is read");
        }
        let mut wait = FIRST;
        while !stop.is_cancelled() {
            let mut handled = false;
            match self.read(&stop, &mut handled).await {
                Ok(()) => return,
                Err(error) => {
                    let why = chain(&error);
                    warn!(mailbox = name, error = why, "the mailbox cannot be read just now");
                    self.takes.stands(&name, Some(&why));
                }
            }
            // A connection that brought something was a good one.
            if handled {
                wait = FIRST;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.until(self.clock.now().checked_add(wait).unwrap_or(Timestamp::MAX)) => {}
            }
            wait = wait.saturating_mul(2).min(LONGEST);
        }
    }

    /// Notes since when the mailbox is to be read: it may be long until it can be opened.
    async fn wanted(&self, name: &str) -> Result<(), StoreError> {
        if self.store.mailbox(name).await?.is_none() {
            self.store.note_mailbox(name, &Progress::wanted(self.clock.now())).await?;
        }
        Ok(())
    }

    /// One connection, from its beginning to its end; says whether a mail was handled, or waited for in peace.
    async fn read(&self, stop: &CancellationToken, handled: &mut bool) -> Result<(), ReadError> {
        let opened = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            opened = Session::open(&self.account) => opened,
        };
        let mut session = opened?;
        let name = self.account.name();
        let next = match session.next {
            Some(next) => next,
            None => session.after(0).await?.last().map_or(1, |last| last.saturating_add(1)),
        };
        let before = self.store.mailbox(&name).await?;
        let known = before.as_ref().map(|mark| mark.validity);
        let (mut progress, look) = Progress::opened(before, session.validity, next, self.clock.now());
        match look {
            Look::After(seen) => progress.found(&session.after(seen).await?),
            Look::Since(at) => {
                info!(mailbox = name, "the server numbers the mailbox anew");
                let found = session.since(at).await?;
                progress.found_all(&found, next);
            }
            Look::Arrived(at) => {
                let found = session.arrived_from(at).await?;
                progress.found_all(&found, next);
            }
        }
        // While something is to be handled, the mark before finds it once more.
        if known != Some(session.validity) && matches!(progress.next(self.clock.now()), Next::Wait(_)) {
            self.store.note_mailbox(&name, progress.mark()).await?;
        }
        info!(mailbox = name, "the mailbox is open");
        self.takes.stands(&name, None);
        loop {
            if stop.is_cancelled() {
                session.close().await;
                return Ok(());
            }
            let now = self.clock.now();
            match progress.next(now) {
                Next::Handle(uid) => {
                    self.handle(&mut session, &mut progress, uid).await?;
                    *handled = true;
                }
                Next::Wait(until) => {
                    let most = if session.tells() { QUIET } else { ASKED };
                    let end = now.checked_add(most).unwrap_or(Timestamp::MAX);
                    let end = until.map_or(end, |until| until.min(end));
                    let waited = async {
                        tokio::select! {
                            () = stop.cancelled() => {}
                            () = self.until(end) => {}
                        }
                    };
                    if session.tells() {
                        session.idle(waited).await?;
                    } else {
                        waited.await;
                    }
                    *handled = true;
                    let seen = progress.mark().seen;
                    progress.found(&session.after(seen).await?);
                }
            }
        }
    }

    async fn handle(&self, session: &mut Session, progress: &mut Progress, uid: u32) -> Result<(), ReadError> {
        let name = self.account.name();
        let fetched = session.fetch(uid, LARGEST).await;
        let (handled, concerns) = match &fetched {
            // One that is gone needs nothing more.
            Ok(None) => (Handled::Done, false),
            Ok(Some((raw, extent))) => match self.takes.take(raw, *extent, self.folder.as_deref()).await {
                Ok(taken) if taken.outcome == Outcome::Later => (Handled::Failed, false),
                Ok(taken) => (Handled::Done, taken.item.is_some() || taken.outcome == Outcome::Event),
                Err(error) => {
                    warn!(mailbox = name, uid, %error, "a mail could not be handled");
                    (Handled::Failed, false)
                }
            },
            // It may be the mail that breaks the connection: then it must not do so for ever.
            Err(_) => (Handled::Failed, false),
        };
        let given_up = progress.handled(uid, handled, self.clock.now());
        debug!(mailbox = name, uid, ?handled, "mail read");
        for uid in given_up {
            self.takes.give_up(&name, uid).await?;
        }
        // Only now: a crash before this has the mail handled again, which changes nothing.
        self.store.note_mailbox(&name, progress.mark()).await?;
        fetched?;
        if concerns && let Err(error) = session.mark_read(uid).await {
            match error {
                ImapError::Refused { .. } => debug!(mailbox = name, uid, %error, "a mail could not be marked as read"),
                error => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn until(&self, at: Timestamp) {
        while self.clock.now() < at {
            self.clock.wake_at(Some(at)).await;
        }
    }
}

/// An error with what caused it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}
