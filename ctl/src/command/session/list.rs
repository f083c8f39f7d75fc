use ow_protocol::{Page, SessionView};

use crate::command::paging::{Paging, more};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Out;
use crate::table::{Cell, Table};
use crate::time::Clock;

/// List chats, the last active first
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  owctl session list --all      those that were removed too, as long as their records are kept")]
pub(crate) struct List {
    /// Those that were removed, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    paging: Paging,
}

impl List {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut query = self.paging.query();
        query.state = self.all.then(|| "all".into());
        let page = context.with_daemon(async |owd| Ok(owd.sessions(&query).await?))?;
        context.out.give(&page, |page| in_words(page, context.clock(), context.out));
        Ok(())
    }
}

fn in_words(page: &Page<SessionView>, clock: &Clock, out: Out) -> String {
    if page.rows.is_empty() {
        return "No chats. Begin one: owctl chat".into();
    }
    let mut table = Table::new(out, &["SESSION", "STATE", "ACTIVE", "MODEL", "TITLE"]);
    for session in &page.rows {
        table.row([
            Cell::text(&session.id),
            Cell::state(&session.state),
            Cell::text(&clock.when(&session.active_at)),
            Cell::maybe(session.model.as_deref()),
            Cell::maybe(session.title.as_deref()),
        ]);
    }
    table.show() + &more(page)
}
