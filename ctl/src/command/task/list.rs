use clap::ValueEnum;
use ow_protocol::{Page, TaskView};

use crate::command::paging::{Paging, more};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Out;
use crate::table::{Cell, Table};
use crate::time::Clock;

/// List tasks by name
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only those whose name contains this
    #[arg(value_name = "TEXT")]
    name: Option<String>,
    /// Only these
    #[arg(long, value_name = "STATE")]
    state: Option<State>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    Active,
    Paused,
}

impl List {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut query = self.paging.query();
        query.name.clone_from(&self.name);
        query.state = self.state.map(|state| match state {
            State::Active => "active".into(),
            State::Paused => "paused".into(),
        });
        let page = context.with_daemon(async |owd| Ok(owd.tasks(&query).await?))?;
        context.out.give(&page, |page| in_words(page, context.clock(), context.out));
        Ok(())
    }
}

fn in_words(page: &Page<TaskView>, clock: &Clock, out: Out) -> String {
    if page.rows.is_empty() {
        return "No tasks. Add one with `owctl task add FILE`, or see `owd demo`.".into();
    }
    let mut table = Table::new(out, &["NAME", "STATE", "NEXT", "TRIGGERS", "TITLE"]);
    for task in &page.rows {
        table.row([
            Cell::text(&task.name),
            Cell::state(&task.state),
            Cell::text(&clock.when_or(task.next_due.as_deref(), "-")),
            Cell::text(&task.triggers.join(", ")),
            Cell::maybe(task.title.as_deref()),
        ]);
    }
    table.show() + &more(page)
}
