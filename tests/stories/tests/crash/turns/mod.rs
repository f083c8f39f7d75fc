//! The same for agents: turns of scripted models, killed at every sync, between a request and its reply, between a reply
//! and its results, and between an effect and the news of it.

mod bites;
mod kills;
mod outside;
mod script;
mod verdicts;
mod world;
