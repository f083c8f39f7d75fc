use jiff::{SignedDuration, Timestamp};
use ow_test_support::Scratch;
use serde_json::Value;

use crate::Scale;
use crate::figure::Figures;
use crate::http::Http;
use crate::load::{self, FAR, started_at, until_long, wall};

const DUE: usize = 100;
const WORKERS: usize = 100;

/// Many tasks stored, 100 due in the same second.
pub(crate) fn measure(scale: Scale, figures: &mut Figures) {
    let scratch = Scratch::new();
    scratch.config(&format!("[scheduler]\nworkers = {WORKERS}\n[policy]\nallow = [\"date\"]\n"));
    let owd = scratch.start();
    load::store_tasks(scratch.path(), "far-", scale.tasks.saturating_sub(DUE), FAR);
    let now = Timestamp::from_duration(SignedDuration::try_from(wall()).expect("a span")).expect("an instant");
    let at = Timestamp::from_second((now + SignedDuration::from_secs(6)).as_second()).expect("an instant");
    let definition = format!(
        "[[trigger]]\nat = \"{at}\"\n\n[[step]]\ntool = \"shell\"\nargs = {{ argv = [\"date\", \"+%s%N\"] }}\n"
    );
    load::store_tasks(scratch.path(), "due-", DUE, &definition);
    let mut http = Http::connect(scratch.path());
    let mut runs: Vec<Value> = vec![];
    until_long("all that was due has run", || {
        runs = http.get("/v1/runs?state=succeeded&limit=200")["rows"].as_array().cloned().unwrap_or_default();
        (runs.len() >= DUE).then_some(())
    });
    let due = at.duration_since(Timestamp::UNIX_EPOCH);
    let (mut committed, mut started) = (vec![], vec![]);
    for run in &runs {
        let created: Timestamp = run["created_at"].as_str().expect("a time").parse().expect("a time");
        committed.push(millis(created.duration_since(Timestamp::UNIX_EPOCH) - due));
        let shown = http.get(&format!("/v1/runs/{}", run["id"].as_str().expect("an id")));
        let began = started_at(&shown).expect("date printed when it began");
        started.push(millis(SignedDuration::try_from(began).expect("a span") - due));
    }
    let events = http.get("/v1/status");
    drop(events);
    figures.series(
        format!("due to claim, {DUE} at once, {} stored", scale.tasks),
        "ms",
        committed,
        "p50 <= 1, p99 <= 5",
    );
    figures.series(format!("due to call started, {DUE} at once, {WORKERS} workers"), "ms", started, "last <= 60");
    owd.stop();
}

fn millis(span: SignedDuration) -> f64 {
    span.as_secs_f64() * 1e3
}
