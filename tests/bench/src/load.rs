use std::path::Path;
use std::time::Duration;

use ow_test_support::monotonic;
use serde_json::{Value, json};

use crate::http::Http;

/// Connections that load in parallel, so that commits are shared.
pub(crate) const CONNECTIONS: usize = 8;

/// Stores `count` tasks named `<prefix>0…` with this definition.
pub(crate) fn store_tasks(home: &Path, prefix: &str, count: usize, definition: &str) {
    std::thread::scope(|scope| {
        for worker in 0..CONNECTIONS {
            scope.spawn(move || {
                let mut http = Http::connect(home);
                for index in (worker..count).step_by(CONNECTIONS) {
                    let path = format!("/v1/tasks/{prefix}{index}");
                    http.ok("PUT", &path, &json!({ "definition": definition }));
                }
            });
        }
    });
}

/// A task that comes due far away.
pub(crate) const FAR: &str =
    "[[trigger]]\ncron = \"0 0 1 1 *\"\n\n[[step]]\ntool = \"shell\"\nargs = { argv = [\"true\"] }\n";

/// Waits until this many runs are parked.
pub(crate) fn wait_parked(http: &mut Http, count: u64) {
    within("all runs are parked", || {
        let status = http.get("/v1/status");
        (status["runs_parked"].as_u64() == Some(count)).then_some(())
    });
}

/// As `until`, for what takes longer than a test would wait. The status counts what is stored: to ask for it without a
/// pause would be most of the work that is waited for.
pub(crate) fn within<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    const LIMIT: Duration = Duration::from_mins(20);
    const PAUSE: Duration = Duration::from_millis(5);

    let began = monotonic();
    loop {
        let (found, took) = timed(&mut look);
        if let Some(found) = found {
            return found;
        }
        assert!(monotonic().saturating_sub(began) < LIMIT, "waited {LIMIT:?} for: {what}");
        std::thread::park_timeout(PAUSE.max(took * 20));
    }
}

/// The instant that a `date +%s%N` in the newest run's first call printed, since 1970.
pub(crate) fn started_at(run: &Value) -> Option<Duration> {
    let text = run["calls"][0]["output"]["stdout"].as_str()?;
    text.trim().parse().ok().map(Duration::from_nanos)
}

/// The wall clock, since 1970.
#[expect(clippy::disallowed_methods, reason = "a measurement compares with what a child printed")]
pub(crate) fn wall() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970")
}

/// Times one piece of work.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = monotonic();
    let value = work();
    (value, monotonic().saturating_sub(began))
}
