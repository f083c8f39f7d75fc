use std::ops::ControlFlow;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ow_test_support::Scratch;
use serde_json::Value;

use crate::figure::Figures;
use crate::http::Http;
use crate::inbox::disk;
use crate::load::{self, FAR, started_at, wall, within};
use crate::measurement::Scale;

const DUE: usize = 100;
const WORKERS: usize = 100;
/// From the saving of the tasks to their instant.
const AHEAD: SignedDuration = SignedDuration::from_secs(6);

/// Many tasks stored: one due alone, several times, and 100 due in the same second.
pub(crate) fn measure(scale: Scale, figures: &mut Figures) {
    let scratch = Scratch::new();
    scratch.config(&format!("[scheduler]\nworkers = {WORKERS}\n[policy]\nallow = [\"date\"]\n"));
    let owd = scratch.start();
    load::store_tasks(scratch.path(), "far-", scale.tasks.saturating_sub(DUE), FAR);
    let stored = scale.tasks;
    disk(scratch.path(), scale, figures);
    let alone = measure_round(&scratch, "alone", 1, 8);
    figures.series(format!("due to committed run row, alone, {stored} stored"), "ms", alone.committed, "p50 <= 1");
    figures.series(format!("due to call started, alone, {stored} stored"), "ms", alone.started, "");
    let many = measure_round(&scratch, "due", DUE, 3);
    figures.series(
        format!("due to committed run row, {DUE} at once, {stored} stored"),
        "ms",
        many.committed,
        "p50 <= 1, p99 <= 5",
    );
    figures.series(format!("due to call started, {DUE} at once, {WORKERS} workers"), "ms", many.started, "last <= 60");
    owd.stop();
}

#[derive(Default)]
struct Late {
    /// Until a watcher was told of the run, which it is after the commit.
    committed: Vec<f64>,
    started: Vec<f64>,
}

fn measure_round(scratch: &Scratch, name: &str, count: usize, rounds: usize) -> Late {
    let mut late = Late::default();
    for round in 0..rounds {
        let prefix = format!("{name}-{round}-");
        let now = Timestamp::from_duration(SignedDuration::try_from(wall()).expect("a span")).expect("an instant");
        let at = Timestamp::from_second((now + AHEAD).as_second()).expect("an instant");
        let definition = format!(
            "[[trigger]]\nat = \"{at}\"\n\n[[step]]\ntool = \"shell\"\nargs = {{ argv = [\"date\", \"+%s%N\"] }}\n"
        );
        load::store_tasks(scratch.path(), &prefix, count, &definition);
        let due: Duration = at.duration_since(Timestamp::UNIX_EPOCH).unsigned_abs();
        let mut told: Vec<(Duration, String)> = vec![];
        Http::connect(scratch.path()).follow("/v1/stream?target=run", |event| {
            let when = wall();
            if event["type"] == "run.queued" {
                told.push((when, event["target"].as_str().expect("a target").replace("run:", "")));
            }
            if told.len() == count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let mut http = Http::connect(scratch.path());
        for (when, run) in told {
            late.committed.push(millis(when.saturating_sub(due)));
            let mut shown = Value::Null;
            within("what was due has run", || {
                shown = http.get(&format!("/v1/runs/{run}"));
                (shown["state"] == "succeeded").then_some(())
            });
            late.started.push(millis(started_at(&shown).expect("date printed when it began").saturating_sub(due)));
        }
    }
    late
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
