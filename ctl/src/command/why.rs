use jiff::{Timestamp, Zoned, civil};
use ow_client::WhyQuery;
use ow_protocol::{SlotView, WhyView};

use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::Out;
use crate::table::{Cell, Table};
use crate::time::{Asked, Clock, Toward};

/// Why a task ran at a time, or did not
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl why reports                   the latest
  owctl why reports 06:00             today at that time
  owctl why reports yesterday
  owctl why reports '2026-03-08 02:30'")]
pub(crate) struct Why {
    /// The task's name
    task: String,
    /// A time of the task's zone or a day: `06:00`, `yesterday`, `2026-03-08 02:30`, `2h ago`
    #[arg(value_name = "TIME", allow_hyphen_values = true)]
    time: Option<String>,
    /// At most so many records
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: Option<u16>,
}

impl Why {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut query = WhyQuery { limit: self.limit.map(usize::from), ..WhyQuery::default() };
        if let Some(text) = &self.time {
            match context.clock().read(text, Toward::Past)? {
                // A time on the wall is the wall's of the task.
                Asked::Instant(_) if is_local(text) => query.at = Some(text.trim().to_owned()),
                Asked::Instant(at) => query.at = Some(at.to_string()),
                // And a day is a day there.
                Asked::Day { day, .. } => query.at = Some(day.to_string()),
            }
        }
        let why = context.with_daemon(async |owd| Ok(owd.why(&self.task, &query).await?))?;
        context.out.give(&why, |why| in_words(why, context.clock(), context.out));
        Ok(())
    }
}

/// Whether it names a time, with or without its day, and no zone.
fn is_local(text: &str) -> bool {
    let text = text.trim();
    let names_zone = text.parse::<Timestamp>().is_ok() || text.parse::<Zoned>().is_ok();
    !names_zone
        && (text.parse::<civil::Time>().is_ok() || text.parse::<civil::DateTime>().is_ok())
        && text.contains(':')
}

fn in_words(why: &WhyView, clock: &Clock, out: Out) -> String {
    let mut text = format!("{}\n", escape::block(&why.answer));
    if !why.records.is_empty() || why.next_due.is_some() {
        // The answer is told in the task's zone.
        put!(text, "\nBy your own clock ({}):\n", clock.zone_name());
    }
    if !why.records.is_empty() {
        let mut table = Table::new(out, &["SLOT", "BECAME", "WHY", "RUN"]);
        for record in &why.records {
            table.row(cells(record, clock));
        }
        text.push_str(&table.show());
    }
    if let Some(next) = &why.next_due {
        put!(text, "next: {}\n", clock.when(next));
    }
    text
}

fn cells(record: &SlotView, clock: &Clock) -> [Cell; 4] {
    let slot = match &record.until {
        Some(until) => format!("{} .. {} ({} slots)", clock.local(&record.key), clock.local(until), record.count),
        None if record.kind == "instant" => clock.local(&record.key),
        None => record.key.clone(),
    };
    let run = match (&record.run, &record.run_state) {
        (Some(run), Some(state)) => Cell::text(&format!("{run} {state}")),
        (run, _) => Cell::maybe(run.as_deref()),
    };
    [Cell::text(&slot), Cell::state(&record.disposition), Cell::maybe(record.why.as_deref()), run]
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::output::{Form, Paint};

    #[test]
    fn the_answer_is_a_sentence_and_the_records_prove_it() {
        let fired = SlotView {
            kind: "instant".into(),
            key: "2026-03-08T06:00:00Z".into(),
            until: None,
            count: 1,
            disposition: "fired".into(),
            why: None,
            run: Some("4k7q".into()),
            run_state: Some("succeeded".into()),
            recorded_at: "2026-03-08T06:00:00Z".into(),
        };
        let missed = SlotView {
            kind: "range".into(),
            key: "2026-03-05T06:00:00Z".into(),
            until: Some("2026-03-07T06:00:00Z".into()),
            count: 3,
            disposition: "missed".into(),
            why: Some("owd was not running".into()),
            run: None,
            run_state: None,
            recorded_at: "2026-03-08T05:00:00Z".into(),
        };
        let why = WhyView {
            task: "reports".into(),
            answer: "It ran at 06:00 as planned.".into(),
            records: vec![missed, fired],
            next_due: Some("2026-03-09T06:00:00Z".into()),
        };
        let clock = Clock::fixed("2026-03-08T12:00:00Z", TimeZone::UTC);
        let out = Out { form: Form::Words, paint: Paint::Plain, width: None };
        expect![[r"
            It ran at 06:00 as planned.

            By your own clock (UTC):
            SLOT                                                  BECAME  WHY                  RUN
            2026-03-05 06:00:00 .. 2026-03-07 06:00:00 (3 slots)  missed  owd was not running  -
            2026-03-08 06:00:00                                   fired   -                    4k7q succeeded
            next: 2026-03-09 06:00:00 (in 18 h)
        "]]
        .assert_eq(&in_words(&why, &clock, out));
    }
}
