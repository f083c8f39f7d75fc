use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ow_model::{Span, WatchKind};

use super::Fingerprint;

/// What made the watcher look at a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hint {
    /// Nothing in particular: a scan, a poll, or a second look.
    Seen,
    /// The system says that it was created.
    Created,
    /// The system says that it was written.
    Written,
    /// The system says that it was renamed to here: it was complete when it came.
    MovedHere,
}

/// A change that has come to rest: one occasion.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settled {
    pub path: PathBuf,
    pub fingerprint: Fingerprint,
    pub kind: WatchKind,
}

/// Tells when files of one watch have come to rest.
///
/// Hints only make someone look; what counts is the fingerprint that is found. A state fires once, when it has not
/// changed for the settle span; one that is known already never does. A file that vanishes and comes back within the
/// span, as with editors that rename the old one away first, has changed and is not new.
#[derive(Clone, Debug)]
pub struct Settler {
    settle: Span,
    on: Vec<WatchKind>,
    /// The last state of each path that fired, or that was there before.
    known: HashMap<PathBuf, Fingerprint>,
    unsettled: HashMap<PathBuf, Unsettled>,
    /// Complete states that were replaced before they had settled.
    replaced: Vec<Settled>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Unsettled {
    /// None: it is gone.
    found: Option<Fingerprint>,
    /// How this state came.
    came: Hint,
    /// When it was last seen to change.
    since: Timestamp,
}

impl Settler {
    /// `known` are the states that count as seen; whatever else is there when owd looks first came while it was down.
    pub fn new(
        settle: Span,
        on: impl IntoIterator<Item = WatchKind>,
        known: impl IntoIterator<Item = (PathBuf, Fingerprint)>,
    ) -> Self {
        Self {
            settle,
            on: on.into_iter().collect(),
            known: known.into_iter().collect(),
            unsettled: HashMap::new(),
            replaced: Vec::new(),
        }
    }

    /// Takes in what is at a path now; `found` is none if no regular file is there.
    pub fn observe(&mut self, path: &Path, found: Option<Fingerprint>, hint: Hint, now: Timestamp) {
        let before = self.unsettled.get(path).copied();
        match before {
            Some(before) if before.found == found => {
                // The same state again; a write that left no trace in it still is one.
                if hint == Hint::Written {
                    self.unsettled.insert(path.into(), Unsettled { since: now, ..before });
                }
            }
            None if found == self.known.get(path).copied() => {}
            _ => {
                self.keep_replaced(path, before, hint);
                let came = match before {
                    // What begins by being created goes on by being written.
                    Some(before) if hint == Hint::Written || hint == Hint::Seen => before.came,
                    _ => hint,
                };
                self.unsettled.insert(path.into(), Unsettled { found, came, since: now });
            }
        }
    }

    /// Returns the paths whose span is over. Look at each again and `observe` it before [`Settler::settled`]: the
    /// system's hints may have been lost.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Vec<PathBuf> {
        let over = self.unsettled.iter().filter(|(_, unsettled)| self.is_over(unsettled, now));
        let mut paths: Vec<PathBuf> = over.map(|(path, _)| path.clone()).collect();
        paths.sort();
        paths
    }

    /// Takes out what has come to rest by `now`, each once, in the order of paths; of one path, as it came.
    pub fn settled(&mut self, now: Timestamp) -> Vec<Settled> {
        self.settled_of(self.due(now))
    }

    /// Takes out what has come to rest of these paths, which are [`Settler::due`].
    pub fn settled_of(&mut self, due: Vec<PathBuf>) -> Vec<Settled> {
        let mut settled = std::mem::take(&mut self.replaced);
        for path in due {
            let Some(Unsettled { found, came, .. }) = self.unsettled.remove(&path) else { continue };
            let Some(fingerprint) = found else {
                self.known.remove(&path);
                continue;
            };
            let before = self.known.insert(path.clone(), fingerprint);
            if before != Some(fingerprint)
                && let Some(kind) = self.kind(before, came)
            {
                settled.push(Settled { path, fingerprint, kind });
            }
        }
        settled
    }

    /// When to look next: the end of the earliest span. None: nothing is unsettled.
    #[must_use]
    pub fn next_wake(&self) -> Option<Timestamp> {
        let ends = self.unsettled.values().map(|unsettled| self.end(unsettled));
        if self.replaced.is_empty() { ends.min() } else { Some(Timestamp::MIN) }
    }

    /// The states that count as seen, to be kept over a restart.
    pub fn known(&self) -> impl Iterator<Item = (&Path, &Fingerprint)> {
        self.known.iter().map(|(path, fingerprint)| (path.as_path(), fingerprint))
    }

    /// The clock was set back to `now`: no span that has begun ends later than one that begins now.
    pub fn clock_set(&mut self, now: Timestamp) {
        for unsettled in self.unsettled.values_mut() {
            unsettled.since = unsettled.since.min(now);
        }
    }

    /// Two renames over a path are two saves, however quickly they follow each other: each brought a complete file.
    fn keep_replaced(&mut self, path: &Path, before: Option<Unsettled>, hint: Hint) {
        if let Some(Unsettled { found: Some(fingerprint), came: Hint::MovedHere, .. }) = before
            && hint == Hint::MovedHere
        {
            let known = self.known.insert(path.into(), fingerprint);
            if known != Some(fingerprint)
                && let Some(kind) = self.kind(known, Hint::MovedHere)
            {
                self.replaced.push(Settled { path: path.into(), fingerprint, kind });
            }
        }
    }

    /// What happened, if the watch asks for it.
    fn kind(&self, before: Option<Fingerprint>, came: Hint) -> Option<WatchKind> {
        let possible: &[WatchKind] = match (before, came) {
            (Some(_), _) => &[WatchKind::Change],
            // Where no file was one is now, which is what whoever asks for `create` waits for: most programs write under
            // another name and rename.
            (None, Hint::MovedHere) => &[WatchKind::Move, WatchKind::Create],
            (None, Hint::Created | Hint::Written) => &[WatchKind::Create],
            // Nobody saw how it came; whoever waits for either would miss it otherwise.
            (None, Hint::Seen) => &[WatchKind::Create, WatchKind::Move],
        };
        possible.iter().find(|kind| self.on.contains(kind)).copied()
    }

    fn is_over(&self, unsettled: &Unsettled, now: Timestamp) -> bool {
        self.end(unsettled) <= now
    }

    fn end(&self, unsettled: &Unsettled) -> Timestamp {
        unsettled.since.checked_add(self.settle.signed()).unwrap_or(Timestamp::MAX)
    }
}
