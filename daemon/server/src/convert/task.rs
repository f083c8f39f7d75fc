use ow_model::{AfterEnd, MailFilter, PauseReason, TaskSource, TaskState, Trigger};
use ow_protocol::{RunView, TaskView};
use ow_store::{SaveChange, TaskRow};

use super::{instant, path};

/// How much of a task is shown.
pub(crate) enum Shown {
    /// A row of a list.
    Row,
    /// With its definition and its last run.
    Whole { last_run: Option<Box<RunView>> },
}

pub(crate) fn task_view(task: TaskRow, shown: Shown) -> TaskView {
    let TaskRow {
        id: _,
        spec,
        text,
        revision,
        source,
        state,
        created_at,
        updated_at,
        next_due,
        accounted_until: _,
        failures_in_row,
        waiting,
    } = task;
    let (state, paused_why) = match state {
        TaskState::Active => ("active", None),
        TaskState::Paused { reason, since } => ("paused", Some(format!("{}, since {since}", pause_words(&reason)))),
        TaskState::Deleted { at } => ("deleted", Some(format!("deleted at {at}"))),
    };
    let (last_run, definition) = match shown {
        Shown::Row => (None, None),
        Shown::Whole { last_run } => (last_run.map(|run| *run), Some(text)),
    };
    TaskView {
        name: spec.name.to_string(),
        title: spec.title,
        revision,
        source: match source {
            TaskSource::File => "file",
            TaskSource::Store => "store",
        }
        .into(),
        state: state.into(),
        paused_why,
        time_zone: spec.timezone.to_string(),
        triggers: spec.triggers.iter().map(trigger_words).collect(),
        next_due: next_due.map(instant),
        failures_in_row,
        events_waiting: waiting,
        created_at: instant(created_at),
        updated_at: instant(updated_at),
        last_run,
        definition,
    }
}

pub(crate) fn pause_words(reason: &PauseReason) -> String {
    match reason {
        PauseReason::Person => "paused by a person".into(),
        PauseReason::FileGone => "its task file is gone".into(),
        PauseReason::Failures(count) => format!("it failed {count} times in a row"),
    }
}

pub(crate) const fn change_word(change: SaveChange) -> &'static str {
    match change {
        SaveChange::Created => "created",
        SaveChange::Revised => "revised",
        SaveChange::Unchanged => "unchanged",
    }
}

fn trigger_words(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Cron(expression) => format!("cron {expression}"),
        Trigger::Every { period, anchor: None } => format!("every {period}"),
        Trigger::Every { period, anchor: Some(anchor) } => format!("every {period} from {anchor}"),
        Trigger::At(at) => format!("at {at}"),
        Trigger::Watch { path: folder, glob, settle: _, on: _ } => {
            let glob = glob.as_ref().map(|glob| format!(" {glob}")).unwrap_or_default();
            format!("watch {}{glob}", path(folder))
        }
        Trigger::After { task, on } => {
            let end = match on {
                AfterEnd::Success => "success",
                AfterEnd::Failure => "failure",
                AfterEnd::Any => "any end",
            };
            format!("after {task} ({end})")
        }
        Trigger::Startup => "startup".into(),
        Trigger::Slack { channel, from, when } => {
            let from = if from.is_empty() { String::new() } else { format!(" from {}", from.join(", ")) };
            let when = when.as_ref().map(|when| format!(" when {when}")).unwrap_or_default();
            format!("slack {channel}{from}{when}")
        }
        Trigger::Mail(MailFilter { from, subject, list, folder }) => {
            let mut text = "mail".to_owned();
            if !from.is_empty() {
                text = format!("{text} from {}", from.join(" or "));
            }
            if let Some(subject) = subject {
                text = format!("{text} with subject {subject}");
            }
            if let Some(list) = list {
                text = format!("{text} of list {list}");
            }
            if let Some(folder) = folder {
                text = format!("{text} in {folder}");
            }
            text
        }
        Trigger::Webhook { hook, when: None } => format!("webhook {hook}"),
        Trigger::Webhook { hook, when: Some(when) } => format!("webhook {hook} when {when}"),
    }
}
