use ow_protocol::{ItemView, Page};

use crate::command::paging::{Paging, more};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Out;
use crate::reference::Reference;
use crate::table::{Cell, Table};
use crate::time::Clock;

/// List what waits for you, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Also what was answered, expired or withdrawn
    #[arg(long)]
    all: bool,
    /// Only those of this task
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// Only those of this run
    #[arg(long, value_name = "ID")]
    run: Option<Reference>,
    #[command(flatten)]
    paging: Paging,
}

impl List {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut query = self.paging.query();
        query.task.clone_from(&self.task);
        query.run = self.run.as_ref().map(|run| run.as_str().into());
        query.state = self.all.then(|| "all".into());
        let page = context.with_daemon(async |owd| Ok(owd.items(&query).await?))?;
        context.out.give(&page, |page| match (page.rows.is_empty(), self.all) {
            (true, true) => "No items.".into(),
            (true, false) => "Nothing waits for you.".into(),
            (false, _) => in_words(page, context.clock(), context.out),
        });
        Ok(())
    }
}

fn in_words(page: &Page<ItemView>, clock: &Clock, out: Out) -> String {
    let mut table = Table::new(out, &["ITEM", "KIND", "STATE", "TASK", "ASKED", "TITLE"]);
    for item in &page.rows {
        table.row([
            Cell::text(&item.id),
            Cell::text(&item.kind),
            Cell::state(&item.state),
            Cell::maybe(item.task.as_deref()),
            Cell::text(&clock.when(&item.created_at)),
            Cell::text(&item.title),
        ]);
    }
    let mut text = table.show() + &more(page);
    if page.rows.iter().any(|item| item.state == "pending") {
        text.push_str("\nowctl inbox show ITEM tells all of it; approve, deny or answer it by its id.\n");
    }
    text
}
