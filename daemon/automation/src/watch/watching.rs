use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ow_model::NewEvent;
use ow_schedule::watch::{Fingerprint, Hint, Settler};
use ow_store::SeenFile;

use super::event::event;
use super::ground::Survey;
use super::target::Target;

/// One watch trigger at work: what it has seen, and what has not settled yet.
pub(crate) struct Watching {
    pub(crate) target: Target,
    settler: Settler,
    /// The device of each file that has not settled. Apart from what is compared: some file systems get a new
    /// number at each mount, and a restart must not make all files news.
    devices: HashMap<PathBuf, u64>,
}

/// What has settled, in the order in which it must become durable: first the events, then what was seen.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    pub(crate) events: Vec<NewEvent>,
    pub(crate) seen: Vec<SeenFile>,
    /// The paths of files that are gone.
    pub(crate) gone: Vec<Vec<u8>>,
}

impl Delivery {
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.seen.is_empty() && self.gone.is_empty()
    }

    pub(crate) fn append(&mut self, mut later: Self) {
        self.events.append(&mut later.events);
        self.seen.append(&mut later.seen);
        self.gone.append(&mut later.gone);
    }
}

impl Watching {
    pub(crate) fn new(target: Target, known: impl IntoIterator<Item = (PathBuf, Fingerprint)>) -> Self {
        let known = known.into_iter().map(|(below, found)| (below, without_device(found)));
        let settler = Settler::new(target.settle, target.on.iter().copied(), known);
        Self { target, settler, devices: HashMap::new() }
    }

    /// Takes in what is at a path below the root now.
    pub(crate) fn observe(&mut self, below: &Path, found: Option<Fingerprint>, hint: Hint, now: Timestamp) {
        if !self.target.means(below) {
            return;
        }
        if let Some(found) = found {
            self.devices.insert(below.to_path_buf(), found.device);
        }
        self.settler.observe(below, found.map(without_device), hint, now);
    }

    /// Takes in all that is there, but where something `waits` to be taken in before.
    pub(crate) fn observe_all(&mut self, survey: &Survey, waits: impl Fn(&Path) -> bool, now: Timestamp) {
        for (below, found) in survey.files.iter().filter(|(below, _)| !waits(below)) {
            self.observe(below, Some(*found), Hint::Seen, now);
        }
        let hidden = |below: &Path| survey.unreadable.iter().any(|(folder, _)| below.starts_with(folder));
        let known: BTreeSet<PathBuf> = self.settler.known().map(|(below, _)| below.to_path_buf()).collect();
        for below in known.iter().chain(&self.unsettled()) {
            if !survey.files.contains_key(below) && !hidden(below) && !waits(below) {
                self.observe(below, None, Hint::Seen, now);
            }
        }
    }

    /// The paths below a folder that this has seen or is about to.
    pub(crate) fn below(&self, folder: &Path) -> Vec<PathBuf> {
        let known = self.settler.known().map(|(below, _)| below.to_path_buf());
        known.chain(self.unsettled()).filter(|below| below.starts_with(folder)).collect()
    }

    fn unsettled(&self) -> Vec<PathBuf> {
        self.settler.due(Timestamp::MAX)
    }

    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        self.settler.next_wake()
    }

    pub(crate) fn due(&self, now: Timestamp) -> Vec<PathBuf> {
        self.settler.due(now)
    }

    /// Takes out what has settled. `found`: the second look at what was due; what is not in it stays.
    pub(crate) fn settle(&mut self, found: &HashMap<PathBuf, Option<Fingerprint>>, now: Timestamp) -> Delivery {
        for (below, found) in found {
            self.observe(below, *found, Hint::Seen, now);
        }
        let mut delivery = Delivery::default();
        let mut due = self.settler.due(now);
        due.retain(|below| found.contains_key(below));
        for below in &due {
            match found[below] {
                Some(found) => delivery.seen.push(seen_file(below, &found)),
                None => delivery.gone.push(below.as_os_str().as_bytes().to_vec()),
            }
        }
        for settled in self.settler.settled_of(due) {
            let device = self.devices.get(&settled.path).copied().unwrap_or_default();
            let state = Fingerprint { device, ..settled.fingerprint };
            let path = if settled.path.as_os_str().is_empty() {
                self.target.root.clone()
            } else {
                self.target.root.join(&settled.path)
            };
            delivery.events.push(event(&self.target.task, &path, &state, settled.kind));
        }
        let unsettled: BTreeSet<PathBuf> = self.unsettled().into_iter().collect();
        self.devices.retain(|below, _| unsettled.contains(below));
        delivery
    }
}

fn without_device(found: Fingerprint) -> Fingerprint {
    Fingerprint { device: 0, ..found }
}

pub(crate) fn seen_file(below: &Path, found: &Fingerprint) -> SeenFile {
    let Fingerprint { device: _, inode, size, mtime_ns } = *found;
    SeenFile { path: below.as_os_str().as_bytes().to_vec(), inode, size, modified: mtime_ns }
}
