use jiff::Timestamp;
use ow_client::ForecastQuery;
use ow_protocol::{ForecastEntry, Page, PageQuery};

use super::paging::{Paging, more};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Out;
use crate::table::{Cell, Table};
use crate::time::{Asked, Clock, Toward};

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
        let from = self.from.as_deref().map(|text| beginning(text, context.clock())).transpose()?;
        let until = self.until.as_deref().map(|text| context.clock().read_instant(text, Toward::Future)).transpose()?;
        if let (Some(from), Some(until)) = (from, until)
            && from >= until
        {
            let [from, until] = [&self.from, &self.until].map(|text| text.as_deref().unwrap_or_default());
            return Err(Failure::usage(format!("--from {from} is later than --until {until}"))
                .hint("name the earlier time with --from"));
        }
        let PageQuery { after, limit, .. } = self.paging.query();
        let (from, until) = (from.map(|at| at.to_string()), until.map(|at| at.to_string()));
        let query = ForecastQuery { from, until, task: self.task.clone(), after, limit };
        let page = context.with_daemon(async |owd| Ok(owd.forecast(&query).await?))?;
        context.out.give(&page, |page| in_words(page, context.clock(), context.out));
        Ok(())
    }
}

/// A span is of the time to come, as with `--until`; a day is meant from its beginning on.
fn beginning(text: &str, clock: &Clock) -> Result<Timestamp, Failure> {
    Ok(match clock.read(text, Toward::Future)? {
        Asked::Instant(at) | Asked::Day { from: at, .. } => at,
    })
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
