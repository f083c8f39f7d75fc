use ow_client::ForecastQuery;
use ow_protocol::{ForecastEntry, Page, PageQuery};

use super::paging::{Paging, more};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Out;
use crate::table::{Cell, Table};
use crate::time::{Clock, Toward};

/// What will run when
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl forecast                      what comes next
  owctl forecast --until 24h
  owctl forecast --task reports --until 2026-04-01")]
pub(crate) struct Forecast {
    /// Only this task
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// Until when: `24h`, `tomorrow`, `2026-04-01`, `2026-04-01 06:00`
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// From when, instead of now
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

impl Forecast {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let read = |text: &Option<String>| match text {
            Some(text) => context.clock().read_instant(text, Toward::Future).map(|at| Some(at.to_string())),
            None => Ok(None),
        };
        let PageQuery { after, limit, .. } = self.paging.query();
        let (from, until) = (read(&self.from)?, read(&self.until)?);
        let query = ForecastQuery { from, until, task: self.task.clone(), after, limit };
        let page = context.with_daemon(async |owd| Ok(owd.forecast(&query).await?))?;
        context.out.give(&page, |page| in_words(page, context.clock(), context.out));
        Ok(())
    }
}

fn in_words(page: &Page<ForecastEntry>, clock: &Clock, out: Out) -> String {
    if page.rows.is_empty() {
        return "Nothing is scheduled in that time.".into();
    }
    let mut table = Table::new(out, &["WHEN", "TASK", "TITLE", ""]);
    for ForecastEntry { at, task, title, held } in &page.rows {
        table.row([
            Cell::text(&clock.when(at)),
            Cell::text(task),
            Cell::maybe(title.as_deref()),
            held.as_deref().map_or_else(|| Cell::text(""), Cell::state),
        ]);
    }
    format!("{}{}", table.show(), more(page))
}
