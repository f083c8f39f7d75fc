use ow_protocol::TaskView;

use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::Paint;
use crate::table::pairs;
use crate::time::Clock;

/// Show a task: its state, its last run and its definition
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The task's name
    name: String,
}

impl Show {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let task = context.with_daemon(async |owd| Ok(owd.task(&self.name).await?))?;
        context.out.give(&task, |task| in_words(task, context.clock(), context.out.paint));
        Ok(())
    }
}

fn in_words(task: &TaskView, clock: &Clock, paint: Paint) -> String {
    let mut state = paint.state(&task.state);
    if let Some(why) = &task.paused_why {
        state = format!("{state}: {}; owctl task resume {}", escape::line(why), escape::line(&task.name));
    }
    let triggers: Vec<_> = task.triggers.iter().map(|trigger| escape::line(trigger)).collect();
    let source = match task.source.as_str() {
        "file" => "a file in tasks.d".into(),
        "store" => "owd's store".into(),
        other => escape::line(other),
    };
    let mut rows = vec![
        ("name", escape::line(&task.name)),
        ("title", task.title.as_deref().map_or("-".into(), escape::line)),
        ("state", state.into()),
        ("next", clock.when_or(task.next_due.as_deref(), "nothing is scheduled").into()),
        ("triggers", if triggers.is_empty() { "none: runs by hand".into() } else { triggers.join(", ").into() }),
        ("zone", escape::line(&task.time_zone)),
        ("kept in", source),
        ("revision", format!("{}, of {}", task.revision, clock.when(&task.updated_at)).into()),
    ];
    if task.events_waiting > 0 {
        rows.push(("events", format!("{} waiting", task.events_waiting).into()));
    }
    if task.failures_in_row > 0 {
        rows.push(("failures", format!("{} in a row", task.failures_in_row).into()));
    }
    if let Some(run) = &task.last_run {
        let mut last =
            format!("{} {}, {}", escape::line(&run.id), paint.state(&run.state), clock.when(&run.created_at));
        if let Some(message) = &run.message {
            put!(last, ": {}", escape::line(message));
        }
        rows.push(("last run", last.into()));
    }
    let mut text = pairs(paint, &rows);
    if let Some(definition) = &task.definition {
        text.push('\n');
        text.push_str(&escape::block(definition));
    }
    text
}
