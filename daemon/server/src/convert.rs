//! Between the model and the wire. Each conversion takes its type apart without `..`, so that a new field shows here.

mod answer;
mod audit;
mod call;
mod fact;
mod item;
mod positions;
mod preview;
mod rule;
mod run;
mod session;
mod slot;
mod status;
mod stream;
mod task;
mod transcript;
mod webhook;

use std::path::Path;

use jiff::Timestamp;

pub(crate) use answer::answer;
pub(crate) use audit::{audit_check_view, audit_entry_view};
pub(crate) use call::{artifacts, calls, keeps};
pub(crate) use fact::fact_view;
pub use item::shown_item;
pub(crate) use item::{delivery_view, item_view};
pub(crate) use preview::{allow_step, plan_step};
pub(crate) use rule::{rule_view, target_of};
pub(crate) use run::{event_value, failure_word, run_view, sleeps_until};
pub(crate) use session::{grants, mode_of, session_view};
pub(crate) use slot::{disposition, slot_view};
pub(crate) use status::{Status, backup_view, status_view};
pub(crate) use stream::{envelope, gap};
pub(crate) use task::{Shown, change_word, pause_words, task_view};
pub(crate) use transcript::{Transcript, markdown};
pub(crate) use webhook::webhook_view;

pub(crate) fn instant(at: Timestamp) -> String {
    at.to_string()
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
