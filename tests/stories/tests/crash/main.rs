//! The crash matrix: a scripted load with an outside world that counts its effects, and everything that can
//! happen to a process and its disk in the middle of it.
//!
//! Owd is killed at every sync of the store (before and after it, also with all undone that was not synced), in the
//! middle of every write, and at random instants; writes and syncs fail; files are cut and their bytes flipped. Then
//! owd is started again, what it asks is answered, and a checker that shares no code with it reads the store and the
//! counted effects: P1 (one record a slot), P2 (what was acknowledged is there), P3 (effects at most once, unknown
//! ones asked about), P5 (one answer an item), P6 and P7 (journals without gaps that end as their runs do).
//!
//! `turns` does the same to agents: their models are scripted, the service that they send to counts, and besides the
//! disk, the model, a command and the service strike owd down between a call and its result. There every request that
//! the model has received is looked at too (P6: well-formed, and no history ever loses or changes what it held), and
//! what it was told of each effect is held against what the outside world says (P7).
//!
//! `OW_CRASH=full cargo test -p ow-stories --test crash -- --nocapture` takes every point and prints the figures;
//! otherwise it is a sample.

mod bites;
mod checker;
mod damage;
mod disk;
mod kills;
mod records;
mod tally;
mod turns;
mod world;
