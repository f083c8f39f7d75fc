use ow_protocol::{Page, RunView};

use crate::command::paging::{Paging, more};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Out;
use crate::table::{Cell, Table};
use crate::time::{Clock, span};

/// List runs, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl run list --task reports
  owctl run list --state failed")]
pub(crate) struct List {
    /// Only those of this task
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// Only those in this state
    #[arg(long, value_name = "STATE", value_parser = STATES)]
    state: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

const STATES: [&str; 11] = [
    "open",
    "queued",
    "running",
    "parked",
    "interrupted",
    "succeeded",
    "failed",
    "refused",
    "expired",
    "cancelled",
    "missed",
];

impl List {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut query = self.paging.query();
        query.task.clone_from(&self.task);
        query.state.clone_from(&self.state);
        let page = context.with_daemon(async |owd| Ok(owd.runs(&query).await?))?;
        context.out.give(&page, |page| in_words(page, context.clock(), context.out));
        Ok(())
    }
}

fn in_words(page: &Page<RunView>, clock: &Clock, out: Out) -> String {
    if page.rows.is_empty() {
        return "No runs.".into();
    }
    let mut table = Table::new(out, &["RUN", "TASK", "STATE", "CAUSE", "PLANNED", "TOOK", "MESSAGE"]);
    for run in &page.rows {
        let took = run.started_at.as_ref().map(|_| span(run.ran_for_ms));
        table.row([
            Cell::text(&run.id),
            Cell::text(&run.task),
            Cell::state(&run.state),
            Cell::text(&run.cause.kind),
            Cell::text(&clock.when(&run.scheduled_for)),
            Cell::maybe(took.as_deref()),
            Cell::maybe(run.message.as_deref()),
        ]);
    }
    table.show() + &more(page)
}
