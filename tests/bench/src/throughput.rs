use std::time::Duration;

use ow_test_support::{Scratch, monotonic};
use serde_json::{Value, json};

use crate::figure::Figures;
use crate::http::Http;
use crate::load::CONNECTIONS;
use crate::measurement::Scale;

const TASK: &str = "events = { batch = 10000 }\n\n[[step]]\ntool = \"shell\"\nargs = { argv = [\"true\"] }\n";
const ROUND: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;

/// Durable event accepts a second, one a request and a hundred a request.
pub(crate) fn measure(_scale: Scale, figures: &mut Figures) {
    for batch in [1, 100] {
        let scratch = Scratch::new();
        let owd = scratch.start();
        for connection in 0..CONNECTIONS {
            let path = format!("/v1/tasks/sink{connection}");
            let mut http = Http::connect(scratch.path());
            http.ok("PUT", &path, &json!({ "definition": TASK }));
            http.ok("POST", &format!("{path}/pause"), &Value::Null);
        }
        let mut rates = vec![];
        for round in 0..ROUNDS {
            let began = monotonic();
            let accepted: u64 = std::thread::scope(|scope| {
                let workers: Vec<_> = (0..CONNECTIONS)
                    .map(|connection| {
                        let home = scratch.path();
                        scope.spawn(move || {
                            let mut http = Http::connect(home);
                            let mut sent = 0_u64;
                            while monotonic().saturating_sub(began) < ROUND {
                                let events: Vec<Value> = (0..batch)
                                    .map(|index| {
                                        json!({
                                            "task": format!("sink{connection}"),
                                            "key": format!("{round}-{connection}-{sent}-{index}"),
                                            "data": { "path": "/srv/incoming/letter.txt" },
                                        })
                                    })
                                    .collect();
                                http.ok("POST", "/v1/events", &json!({ "events": events }));
                                sent += batch;
                            }
                            sent
                        })
                    })
                    .collect();
                workers.into_iter().map(|worker| worker.join().expect("it sends")).sum()
            });
            #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
            rates.push(accepted as f64 / monotonic().saturating_sub(began).as_secs_f64());
        }
        let name = format!("event accepts a second, {CONNECTIONS} connections, {batch} a request");
        figures.series(name, "1/s", rates, ">= 15 000");
        owd.stop();
    }
}
