//! Automation over the real store and file system, with a clock that is moved by hand and a scripted performer.

mod chats;
mod files;
mod scenarios;
mod timer;
mod watch;
mod world;
