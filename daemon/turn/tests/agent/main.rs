//! The machine of an agent's session, driven by a scripted world.

mod support;

mod calls;
mod chat;
mod compaction;
mod detectors;
mod limits;
mod own_tools;
mod properties;
mod replies;
