use std::path::Path;
use std::time::Duration;

use ow_test_support::{Scratch, until};
use serde_json::{Value, json};

use crate::figure::Figures;
use crate::http::Http;
use crate::idle::kib;
use crate::load::{started_at, timed, wait_parked, wall};
use crate::measurement::Scale;

/// A task whose every event becomes a run that asks.
pub(crate) const ASKING: &str = "overlap = { allow = 20000 }\nevents = { each = 20000 }\n\n[[step]]\ntool = \"shell\"\n\
    args = { argv = [\"date\", \"+%s%N\"] }\n";

/// Approve to the tool's start, lists, memory and disk, alone and with many parked.
pub(crate) fn measure(scale: Scale, figures: &mut Figures) {
    let scratch = Scratch::new();
    scratch.config("[policy]\nsafe-commands = \"off\"\n");
    let owd = scratch.start();
    let mut http = Http::connect(scratch.path());
    http.ok("PUT", "/v1/tasks/asking", &json!({ "definition": ASKING }));
    disk(scratch.path(), scale, figures);
    approve(&mut http, 0, scale, "approve to the tool's start, alone", figures);

    // What the first of them warm up is no cost of each.
    let mut parked = park(&mut http, 0, scale.parked / 10);
    let before = kib(owd.pid(), "Pss:");
    parked = park(&mut http, parked, scale.parked - scale.parked / 10);
    let more = f64::from(u32::try_from(scale.parked - scale.parked / 10).expect("a count"));
    let memory = (kib(owd.pid(), "Pss:") - before) * 1024.0 / more;
    figures.value(format!("memory per parked item, at {parked}"), "bytes", memory, "<= 1024");
    // With its log moved into it, which the end of owd does, the file's size is what is kept.
    owd.stop();
    let bytes = store_bytes(scratch.path());
    let owd = scratch.start();
    let mut http = Http::connect(scratch.path());
    let after = park(&mut http, parked, scale.parked / 10);
    owd.stop();
    let grown = store_bytes(scratch.path()) - bytes;
    let runs = f64::from(u32::try_from(after - parked).expect("a count"));
    figures.value("disk bytes per parked run", "bytes", grown / runs, "");
    parked = after;
    let owd = scratch.start();
    let mut http = Http::connect(scratch.path());
    approve(&mut http, parked, scale, &format!("approve to the tool's start, {parked} parked"), figures);
    // What the client makes of the text is no time of owd's.
    let pages = |http: &mut Http, path: &str| -> Vec<Duration> {
        (0..scale.rounds).map(|_| timed(|| http.send("GET", path, "")).1).collect()
    };
    figures.times(format!("a page of 50 of {parked} items"), &pages(&mut http, "/v1/items?limit=50"), "<= 1 ms");
    let lists: Vec<Duration> =
        (0..scale.rounds).map(|_| timed(|| owd.owctl.ok(&["inbox", "list", "--json"])).1).collect();
    figures.times(format!("owctl inbox list at {parked} parked, whole process"), &lists, "");
    owd.stop();
}

/// Parks so many runs beside those that are; returns how many there are then.
pub(crate) fn park(http: &mut Http, parked: u64, more: usize) -> u64 {
    let mut key = parked;
    let last = parked + u64::try_from(more).expect("a count");
    while key < last {
        let events: Vec<Value> = (key..last.min(key + 100))
            .map(|key| json!({ "task": "asking", "key": format!("parked-{key}"), "data": {} }))
            .collect();
        key = last.min(key + 100);
        http.ok("POST", "/v1/events", &json!({ "events": events }));
    }
    wait_parked(http, last);
    last
}

#[expect(clippy::cast_precision_loss, reason = "a file's size")]
fn store_bytes(home: &Path) -> f64 {
    std::fs::metadata(home.join("data/owd.db")).expect("the store").len() as f64
}

/// Parks one run after the other, approves it, and reads from its output when its call began.
fn approve(http: &mut Http, parked: u64, scale: Scale, name: &str, figures: &mut Figures) {
    let mut times = vec![];
    for round in 0..scale.rounds {
        let key = format!("approve-{parked}-{round}");
        http.ok("POST", "/v1/events", &json!({ "events": [{ "task": "asking", "key": key, "data": {} }] }));
        wait_parked(http, parked + 1);
        let item = http.get("/v1/items?limit=1")["rows"][0].clone();
        let began = wall();
        let answer = json!({ "answer": "approve" });
        http.ok("POST", &format!("/v1/items/{}/answer", item["id"].as_str().expect("an id")), &answer);
        let run = format!("/v1/runs/{}", item["run"].as_str().expect("a run"));
        let started = until("the approved call has run", || started_at(&http.get(&run)));
        times.push(started.saturating_sub(began));
    }
    figures.times(name, &times, "p50 <= flushes + 0.7 ms");
}

/// What no durable answer can be faster than, here and now.
pub(crate) fn disk(folder: &Path, scale: Scale, figures: &mut Figures) {
    figures.times("the disk's own flush (4 KiB, fdatasync)", &flushes(folder, scale.rounds), "");
}

/// What a durable 4 KiB write costs here.
fn flushes(folder: &Path, rounds: usize) -> Vec<Duration> {
    use std::io::Write;
    let mut file = std::fs::File::create(folder.join("flush")).expect("a file");
    (0..rounds)
        .map(|_| {
            file.write_all(&[0; 4096]).expect("a write");
            timed(|| file.sync_data().expect("a flush")).1
        })
        .collect()
}
