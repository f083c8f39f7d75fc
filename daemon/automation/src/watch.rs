//! Watched folders: hints from the system's watcher, or a look every two seconds where it cannot serve.
//!
//! A hint only says where to look. What counts is what a file *is*: a file that differs from what this watch has
//! seen of it, and has stood still for the watch's settle time, is an event. What was seen is kept in the store,
//! so that what came while owd was down is found at the start, and what was there when the task was made is not.

mod event;
mod folders;
mod ground;
mod look;
mod system;
mod target;
mod watcher;
mod watching;

pub(crate) use folders::OpenWatcher;
#[cfg(test)]
pub(crate) use folders::{FolderWatcher, Hints, Unwatchable};
#[cfg(test)]
pub(crate) use look::{Entry, entry};
pub(crate) use system::open_system_watcher;
pub(crate) use watcher::Watcher;
