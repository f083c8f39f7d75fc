use jiff::Timestamp;
use ow_model::ZoneName;
use ow_schedule::{Cron as Expression, system_zone, zone};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Exit, Failure, chain};
use crate::time::{Toward, relative};

/// When a cron expression fires
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl explain cron '0 9 * * mon-fri'
  owctl explain cron '30 2 * * *' --tz America/New_York --from 2026-03-07T12:00:00Z --count 3

Five fields: minute, hour, day of month, month, day of week; with six the first is the second. A fixed local time
that a clock change skips fires at the first instant after the gap; one that comes twice fires the first time.")]
pub(crate) struct Cron {
    /// Five or six fields, or a name such as `@daily`
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    expression: String,
    /// The zone, as `Europe/Paris`; the system's if not given
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    tz: Option<String>,
    /// Later than this instant; now if not given
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,
    /// So many instants
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
}

impl Cron {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let expression = Expression::parse(&self.expression).map_err(|error| {
            Failure::new(
                Exit::Usage,
                "invalid_cron",
                format!("cron expression `{}`: {}", shortened(&self.expression), chain(&error)),
            )
        })?;
        let name = match &self.tz {
            Some(name) => ZoneName(name.clone()),
            None => system_zone().map_err(|error| zone_failure(&error))?,
        };
        let zone = zone(&name).map_err(|error| zone_failure(&error))?;
        let from = match &self.from {
            Some(text) => context.clock().read_instant(text, Toward::Past)?,
            None => context.clock().now(),
        };
        let mut next: Vec<Timestamp> = vec![];
        while next.len() < self.count.into()
            && let Some(at) = expression.next_after(*next.last().unwrap_or(&from), &zone)
        {
            next.push(at);
        }
        let local = |at: &Timestamp| at.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        let texts: Vec<String> = next.iter().map(local).collect();
        context.out.give(&json!({ "next": texts }), |_| {
            let mut words = format!("`{}` in {name} fires next at\n", crate::escape::line(&self.expression));
            for (at, text) in next.iter().zip(&texts) {
                put!(words, "  {text}  ({})\n", relative(at.duration_since(context.clock().now())));
            }
            words
        });
        Ok(())
    }
}

/// A pasted book need not be repeated.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn zone_failure(error: &ow_schedule::ScheduleError) -> Failure {
    Failure::new(Exit::Usage, "invalid_zone", chain(error))
}
