use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ow_test_support::{Owd, Scratch, hmac_hex, monotonic};
use serde_json::Value;

use crate::figure::Figures;
use crate::http::Http;
use crate::load::{CONNECTIONS, within};
use crate::measurement::Scale;

const SECRET: &str = "a secret of the bench";
const CONFIG: &str = "[listener]\naddress = \"127.0.0.1:0\"\n\n[webhook.ci]\nprofile = \"github\"\nsecret = \"ci\"\n\
    per-minute = 1000000\n";
const TASK: &str = "events = { batch = 10000 }\n\n[[trigger]]\nwebhook = \"ci\"\n\n[[step]]\ntool = \"shell\"\n\
    args = { argv = [\"true\"] }\n";
const ROUND: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;

/// Signed deliveries over the listener: accepts a second, their times, and many of them delivered twice.
pub(crate) fn measure(scale: Scale, figures: &mut Figures) {
    let scratch = Scratch::new();
    scratch.config(CONFIG);
    let owd = scratch.start_with(|command| {
        command.env("OWD_SECRET_CI", SECRET);
    });
    let mut http = Http::connect(scratch.path());
    http.ok("PUT", "/v1/tasks/sink", &serde_json::json!({ "definition": TASK }));
    http.ok("POST", "/v1/tasks/sink/pause", &Value::Null);
    let mut rates = vec![];
    let mut times = vec![];
    for round in 0..ROUNDS {
        let began = monotonic();
        let spent = every(&owd, |sender, connection| {
            let mut spent = vec![];
            while monotonic().saturating_sub(began) < ROUND {
                let before = monotonic();
                assert_eq!(sender.deliver(&format!("{round}-{connection}-{}", spent.len())), 202);
                spent.push(monotonic().saturating_sub(before));
            }
            spent
        });
        #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
        rates.push(spent.len() as f64 / monotonic().saturating_sub(began).as_secs_f64());
        times.extend(spent);
    }
    figures.series(format!("webhook accepts a second, {CONNECTIONS} connections"), "1/s", rates, "");
    figures.times(format!("a webhook's answer, {CONNECTIONS} connections"), &times, "");
    owd.stop();
    replay(scale, figures);
}

/// Every delivery twice, the second time all over again: each becomes one event.
fn replay(scale: Scale, figures: &mut Figures) {
    let scratch = Scratch::new();
    scratch.config(CONFIG);
    scratch.task("sink", TASK);
    let owd = scratch.start_with(|command| {
        command.env("OWD_SECRET_CI", SECRET);
    });
    let share = scale.parked / CONNECTIONS;
    let began = monotonic();
    for status in [202, 200] {
        every(&owd, |sender, connection| {
            for number in 0..share {
                assert_eq!(sender.deliver(&format!("replayed-{connection}-{number}")), status);
            }
            vec![]
        });
    }
    let seconds = monotonic().saturating_sub(began).as_secs_f64();
    let total = u64::try_from(share * CONNECTIONS).expect("a count");
    let mut http = Http::connect(scratch.path());
    within("all events are worked off", || {
        let status = http.get("/v1/status");
        let waits = ["events_waiting", "runs_queued", "runs_running"].iter().any(|name| status[*name] != 0);
        (!waits).then_some(())
    });
    let mut given = 0;
    for run in http.get("/v1/runs?task=sink&limit=500")["rows"].as_array().expect("runs") {
        let run = http.get(&format!("/v1/runs/{}", run["id"].as_str().expect("an id")));
        given += run["events"].as_array().map_or(0, Vec::len) as u64;
    }
    assert_eq!(given, total, "each delivery is one event");
    figures.value(format!("{total} deliveries made twice, each once a run's"), "s", seconds, "");
    owd.stop();
}

/// Has each connection deliver, and gathers what it gives.
fn every(owd: &Owd, work: impl Fn(&mut Sender, usize) -> Vec<Duration> + Sync) -> Vec<Duration> {
    let status = owd.owctl.json(&["status"]);
    let address = status["listener"].as_str().expect("a listener");
    let work = &work;
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..CONNECTIONS)
            .map(|connection| scope.spawn(move || work(&mut Sender::connect(address), connection)))
            .collect();
        senders.into_iter().flat_map(|sender| sender.join().expect("it delivers")).collect()
    })
}

/// One connection that is kept, as a sender's.
struct Sender(BufReader<TcpStream>);

impl Sender {
    fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("owd listens");
        stream.set_nodelay(true).expect("a socket");
        Self(BufReader::new(stream))
    }

    /// A push of some 500 bytes.
    fn deliver(&mut self, id: &str) -> u16 {
        let body = format!(
            "{{\"ref\":\"refs/heads/main\",\"id\":\"{id}\",\"repository\":{{\"full_name\":\"ada/engine\"}},\
             \"pusher\":{{\"name\":\"ada\"}},\"commits\":[{{\"message\":\"{}\"}}]}}",
            "x".repeat(360)
        );
        let signature = hmac_hex(SECRET, body.as_bytes());
        let request = format!(
            "POST /hooks/ci HTTP/1.1\r\nhost: owd\r\ncontent-type: application/json\r\nx-github-delivery: {id}\r\n\
             x-github-event: push\r\nx-hub-signature-256: sha256={signature}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes()).expect("owd reads");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("owd answers");
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let mut length = 0;
        loop {
            line.clear();
            self.0.read_line(&mut line).expect("owd answers");
            let head = line.trim_end().to_ascii_lowercase();
            if head.is_empty() {
                break;
            }
            if let Some(value) = head.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut text = vec![0; length];
        self.0.read_exact(&mut text).expect("owd answers");
        status
    }
}
