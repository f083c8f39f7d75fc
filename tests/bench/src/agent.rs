//! What owd adds to a model's own time. The model is a stub that answers at once.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use ow_test_support::{Owd, Scratch, monotonic};
use serde_json::{Value, json};

use crate::figure::Figures;
use crate::http::Http;
use crate::idle::{family, kib};
use crate::load::within;
use crate::measurement::Scale;
use crate::stub::{Reply, Seen, Stub, count};

/// Bytes of the system prompt.
const PROMPT: usize = 25 * 1024;
const ITERATIONS: usize = 100;
const MESSAGES: usize = 1600;
const SESSIONS: usize = 50;
const SESSION_ITERATIONS: usize = 10;
const MODEL_TIME: Duration = Duration::from_millis(300);

pub(crate) fn measure(scale: Scale, figures: &mut Figures) {
    turn(scale, figures);
    long_history(scale, figures);
    at_once(scale, figures, Duration::ZERO, "<= 0.25 s, <= 20 MiB");
    at_once(scale, figures, MODEL_TIME, "<= 3.4 s");
    in_flight(scale, figures);
    approve(scale, figures);
    first_byte(scale, figures);
    idle_sessions(scale, figures);
}

/// A scratch home whose agents speak to this model, with files that they can read.
fn with_model(stub: &Stub, workers: usize, files: usize) -> Scratch {
    let scratch = Scratch::new();
    scratch.config(&stub.config(workers));
    let models = "[[model]]\nname = \"stub:small\"\nwindow = 100000000\ntools = true\n";
    std::fs::write(scratch.path().join("config/models.toml"), models).expect("the table of models is written");
    for number in 0..files {
        let note = scratch.work().join(format!("note-{number}.txt"));
        std::fs::write(note, format!("note {number}: the quick brown fox\n")).expect("a note is written");
    }
    scratch
}

/// A call that reads another note each time.
fn read_note(number: usize) -> Reply {
    Reply::call(number, "read_file", &json!({ "path": format!("note-{number}.txt") }))
}

/// A chat that works in the scratch home's folder.
fn chat(http: &mut Http, scratch: &Scratch, instructions: &str) -> String {
    let asked = json!({ "roots": [scratch.work()], "instructions": instructions, "mode": "ask" });
    http.ok("POST", "/v1/sessions", &asked)["id"].as_str().expect("an id").to_owned()
}

fn say(http: &mut Http, session: &str) {
    http.ok("POST", &format!("/v1/sessions/{session}/messages"), &json!({ "text": "Read all the notes." }));
}

fn wait_idle(http: &mut Http, session: &str) {
    within("the turn is over", || {
        let shown = http.get(&format!("/v1/sessions/{session}"));
        (shown["state"] == "idle" && shown["waiting"] == 0).then_some(())
    });
}

/// From the model's answer to its next request.
fn between(seen: &[Seen]) -> Vec<Duration> {
    seen.windows(2).map(|pair| pair[1].came.saturating_sub(pair[0].answered)).collect()
}

fn instructions() -> String {
    "Read each note once and say what stands in it. ".repeat(PROMPT / 47)
}

/// One long turn: what an iteration with one read of a file costs beyond the model.
fn turn(scale: Scale, figures: &mut Figures) {
    let rounds = if scale.rounds >= 100 { 3 } else { 1 };
    let mut times = vec![];
    for _ in 0..rounds {
        let seen = reading_turn(ITERATIONS);
        times.extend(between(&seen));
    }
    figures.times(format!("iteration of a {ITERATIONS}-iteration turn, 25 KB prompt"), &times, "p50 <= 0.5 ms");
}

/// The same once the history is long.
fn long_history(scale: Scale, figures: &mut Figures) {
    let messages = if scale.rounds >= 100 { MESSAGES } else { MESSAGES / 4 };
    // A call and its result are two messages; the last iterations are measured.
    let last = 50;
    let seen = reading_turn(messages / 2 + last);
    let long = &seen[seen.len().saturating_sub(last)..];
    figures.times(format!("iteration at {messages} messages"), &between(long), "<= 1 ms");
    let bytes = u32::try_from(long.last().expect("requests came").bytes).expect("some hundred KB");
    figures.value(format!("request at {messages} messages"), "KiB", f64::from(bytes) / 1024.0, "");
}

fn reading_turn(iterations: usize) -> Vec<Seen> {
    let asked = AtomicUsize::new(0);
    let stub = Stub::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        number if number < iterations => read_note(number),
        _ => Reply::text("All are read."),
    });
    let scratch = with_model(&stub, 8, iterations);
    let owd = scratch.start();
    let mut http = Http::connect(scratch.path());
    let session = chat(&mut http, &scratch, &instructions());
    say(&mut http, &session);
    // To ask owd where a long session stands takes a processor of what is measured.
    within("the last request has come", || (stub.seen().len() > iterations).then_some(()));
    wait_idle(&mut http, &session);
    owd.stop();
    let seen = stub.seen();
    assert_eq!(seen.len(), iterations + 1, "every iteration asked the model");
    seen
}

/// Many sessions at the same time, to the end of the last.
fn at_once(scale: Scale, figures: &mut Figures, takes: Duration, goal: &'static str) {
    let model = if takes.is_zero() { String::new() } else { format!(", a model of {} ms", takes.as_millis()) };
    let rounds = if scale.rounds >= 100 { 3 } else { 1 };
    let (mut spans, mut peaks) = (vec![], vec![]);
    for _ in 0..rounds {
        let stub = Stub::start(move |body| {
            let number = count(body, "\"tool_call_id\"");
            let reply = if number < SESSION_ITERATIONS { read_note(number) } else { Reply::text("All are read.") };
            reply.after(takes)
        });
        let scratch = with_model(&stub, SESSIONS, SESSION_ITERATIONS);
        let owd = scratch.start();
        let mut http = Http::connect(scratch.path());
        let sessions: Vec<String> = (0..SESSIONS).map(|_| chat(&mut http, &scratch, "Be brief.")).collect();
        let requests = SESSIONS * (SESSION_ITERATIONS + 1);
        let (span, peak) = watched(&owd, || {
            let began = monotonic();
            for session in &sessions {
                say(&mut http, session);
            }
            within("all sessions have asked to the end", || (stub.seen().len() >= requests).then_some(()));
            let last = stub.seen().last().expect("requests came").answered;
            last.saturating_sub(began)
        });
        spans.push(span.as_secs_f64());
        peaks.push(peak / 1024.0);
        owd.stop();
    }
    let what = format!("{SESSIONS} sessions x {SESSION_ITERATIONS} iterations at once{model}");
    figures.series(what.clone(), "s", spans, goal);
    figures.series(format!("{what}: peak PSS, helpers included"), "MiB", peaks, "");
}

/// Does something while the memory of owd and of what it started is watched; the peak in KiB.
fn watched<T>(owd: &Owd, work: impl FnOnce() -> T) -> (T, f64) {
    let (pid, done) = (owd.pid(), AtomicBool::new(false));
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = 0.0_f64;
            while !done.load(Ordering::SeqCst) {
                peak = peak.max(family(pid));
                thread::park_timeout(Duration::from_millis(20));
            }
            peak
        });
        let value = work();
        done.store(true, Ordering::SeqCst);
        (value, watch.join().expect("it watches"))
    })
}

/// Many sessions that all wait for the model.
fn in_flight(scale: Scale, figures: &mut Figures) {
    let sessions = if scale.rounds >= 100 { 1000 } else { 100 };
    let stub = Stub::start(|_| Reply::text("Yes.").after(Duration::from_secs(20)));
    let scratch = with_model(&stub, sessions, 0);
    let owd = scratch.start();
    talk(scratch.path(), sessions, |http| chat(http, &scratch, "Be brief."));
    let asking = || {
        let established = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        let port = format!(":{:04X} 01", stub.port());
        established.lines().filter(|line| line.contains(&port)).count()
    };
    within("all sessions wait for the model", || (asking() >= sessions).then_some(()));
    figures.value(format!("{sessions} sessions in flight: PSS"), "MiB", kib(owd.pid(), "Pss:") / 1024.0, "<= 60 MiB");
    owd.kill();
}

/// Makes so many sessions over a few connections and says something to each.
fn talk(home: &Path, sessions: usize, make: impl Fn(&mut Http) -> String + Sync) {
    let connections = 8;
    thread::scope(|scope| {
        for connection in 0..connections {
            let make = &make;
            scope.spawn(move || {
                let mut http = Http::connect(home);
                for _ in (connection..sessions).step_by(connections) {
                    let session = make(&mut http);
                    say(&mut http, &session);
                }
            });
        }
    });
}

/// From a person's yes to the request that carries the call's result.
fn approve(scale: Scale, figures: &mut Figures) {
    let asked = AtomicUsize::new(0);
    let stub = Stub::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        number if number % 2 == 0 => {
            Reply::call(number, "write_file", &json!({ "path": format!("made-{number}.txt"), "content": "made\n" }))
        }
        _ => Reply::text("It is written."),
    });
    let scratch = with_model(&stub, 8, 0);
    let owd = scratch.start();
    let mut http = Http::connect(scratch.path());
    let session = chat(&mut http, &scratch, "Be brief.");
    let mut times = vec![];
    for _ in 0..scale.rounds {
        stub.forget();
        say(&mut http, &session);
        let mut item = Value::Null;
        within("the call asks", || {
            item = http.get("/v1/items?limit=1")["rows"][0].clone();
            item["id"].is_string().then_some(())
        });
        let began = monotonic();
        let path = format!("/v1/items/{}/answer", item["id"].as_str().expect("an id"));
        http.ok("POST", &path, &json!({ "answer": "approve" }));
        within("the result goes to the model", || (stub.seen().len() > 1).then_some(()));
        wait_idle(&mut http, &session);
        times.push(stub.seen().last().expect("requests came").came.saturating_sub(began));
    }
    figures.times("approve to the next model request", &times, "<= 1 ms");
    owd.stop();
}

/// How much later than the provider's first byte a watching client has it.
fn first_byte(scale: Scale, figures: &mut Figures) {
    let stub = Stub::start(|_| Reply::text("Yes.").with_pause(Duration::from_millis(30)));
    let scratch = with_model(&stub, 8, 0);
    let owd = scratch.start();
    let mut http = Http::connect(scratch.path());
    let mut times = vec![];
    for _ in 0..scale.rounds.min(50) {
        stub.forget();
        let session = chat(&mut http, &scratch, "Be brief.");
        let watcher = Http::connect(scratch.path());
        let path = format!("/v1/sessions/{session}/stream");
        let heard = thread::spawn(move || {
            let mut heard = Duration::ZERO;
            watcher.follow(&path, |event| {
                if event["text"] == "Yes." {
                    heard = monotonic();
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
            heard
        });
        say(&mut http, &session);
        let heard = heard.join().expect("it hears");
        wait_idle(&mut http, &session);
        let seen = stub.seen();
        times.push(heard.saturating_sub(seen.last().expect("a request came").first));
    }
    figures.times("provider's first byte to the client's", &times, "");
    owd.stop();
}

/// What a session costs that nobody speaks to.
fn idle_sessions(scale: Scale, figures: &mut Figures) {
    let stub = Stub::start(|_| Reply::text("Yes."));
    let scratch = with_model(&stub, 8, 0);
    let owd = scratch.start();
    let more = if scale.rounds >= 100 { 500 } else { 50 };
    let mut http = Http::connect(scratch.path());
    let mut pss = vec![];
    // What the first of them warm up is no cost of each.
    for round in 1..=2 {
        talk(scratch.path(), more, |http| chat(http, &scratch, "Be brief."));
        within("all are answered", || (stub.seen().len() >= round * more).then_some(()));
        within("all are idle", || {
            let shown = http.get("/v1/sessions?limit=500");
            let rows = shown["rows"].as_array().expect("sessions");
            rows.iter().all(|session| session["state"] == "idle").then_some(())
        });
        pss.push(kib(owd.pid(), "Pss:"));
    }
    let each = (pss[1] - pss[0]) * 1024.0 / f64::from(u32::try_from(more).expect("a count"));
    figures.value("memory per idle session", "bytes", each, "");
    owd.stop();
}
