//! The crash matrix: a scripted load with an outside world that counts its effects, killed anywhere.
//!
//! At every sync of the store (before and after it) and at random instants owd is killed with SIGKILL, started
//! again, answered, and checked by its records and the counted effects: P1 (one record a slot), P2 (what was
//! acknowledged is there), P3 (effects at most once, unknown ones asked about), P5 (one answer an item).
//! `OW_CRASH=full cargo test -p ow-stories --test crash` takes every point; without it a sample.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ow_test_support::{Fault, FaultAction, FaultCall, Owctl, Owd, Scratch, monotonic, until};
use serde_json::Value;

const COUNT: &str = "echo \"$1 $2\" >> {work}/effects\n";

const EFFECTS: &str = r#"
mode = "edit"
roots = ["{work}"]
overlap = { allow = 20 }

[[step]]
tool = "shell"
args = { argv = ["sh", "{work}/count.sh", "{{ run.id }}", "one"] }

[[step]]
tool = "write_file"
args = { path = "{work}/notes/{{ run.id }}.md", content = "run {{ run.id }}\n" }

[[step]]
tool = "shell"
args = { argv = ["sh", "{work}/count.sh", "{{ run.id }}", "two"] }
"#;

const ASKS: &str = r#"
overlap = { allow = 20 }

[[step]]
tool = "shell"
args = { argv = ["bash", "{work}/count.sh", "{{ run.id }}", "asked"] }
"#;

const TICK: &str = r#"
[[trigger]]
every = "1s"

[[step]]
tool = "shell"
args = { argv = ["sh", "{work}/count.sh", "{{ run.id }}", "tick"] }
"#;

const AFTER: &str = r#"
overlap = { allow = 20 }
events = { each = 20 }

[[trigger]]
after = "effects"

[[step]]
tool = "shell"
args = { argv = ["sh", "{work}/count.sh", "{{ run.id }}", "after"] }
"#;

/// What was said yes to, and what the checks found.
#[derive(Debug, Default)]
struct Tally {
    kills: u64,
    effects: u64,
    unknowns: u64,
    duplicates: Vec<String>,
    losses: Vec<String>,
}

struct World {
    scratch: Scratch,
    /// Runs whose start was acknowledged.
    started: BTreeSet<String>,
    /// Items whose approval was acknowledged.
    approved: BTreeSet<String>,
}

impl World {
    fn new() -> Self {
        let scratch = Scratch::new();
        let work = scratch.work();
        fs::write(work.join("count.sh"), COUNT.replace("{work}", &work.to_string_lossy())).expect("a script");
        fs::create_dir_all(work.join("notes")).expect("a folder");
        scratch.config(&format!("[policy]\nallow = [\"sh {}/count.sh\"]\n", work.display()));
        for (name, text) in [("effects", EFFECTS), ("asks", ASKS), ("tick", TICK), ("later", AFTER)] {
            scratch.task(name, text);
        }
        Self { scratch, started: BTreeSet::new(), approved: BTreeSet::new() }
    }

    /// The scripted load. Whatever fails, since owd is gone, was not acknowledged.
    fn load(&mut self) {
        let owctl = self.scratch.owctl();
        for task in ["effects", "asks", "effects"] {
            if let Some(run) = answered(&owctl, &["task", "run", task]) {
                self.started.insert(run["id"].as_str().expect("an id").into());
            }
        }
        self.approve_some(&owctl);
        if let Some(run) = answered(&owctl, &["task", "run", "asks"]) {
            self.started.insert(run["id"].as_str().expect("an id").into());
        }
        self.approve_some(&owctl);
    }

    fn approve_some(&mut self, owctl: &Owctl) {
        for item in pending(owctl) {
            let id = item["id"].as_str().expect("an id");
            if item["kind"] == "approval" && answered(owctl, &["inbox", "approve", id]).is_some() {
                self.approved.insert(id.into());
            }
        }
    }

    /// Answers all that is asked until every run has ended; unknown ones are approved and denied in turn.
    fn settle(owd: &Owd, tally: &mut Tally) -> BTreeMap<String, u64> {
        let mut again: BTreeMap<String, u64> = BTreeMap::new();
        owd.owctl.ok(&["task", "pause", "tick"]);
        until("every run has ended", || {
            for item in pending(&owd.owctl) {
                let id = item["id"].as_str().expect("an id");
                let category = item["approval"]["category"].as_str().unwrap_or_default();
                if category == "unknown-outcome" {
                    tally.unknowns += 1;
                    if tally.unknowns.is_multiple_of(2) {
                        *again.entry(item["run"].as_str().expect("a run").into()).or_default() += 1;
                        owd.owctl.ok(&["inbox", "approve", id]);
                    } else {
                        owd.owctl.ok(&["inbox", "deny", id]);
                    }
                } else if item["kind"] == "approval" {
                    owd.owctl.ok(&["inbox", "approve", id]);
                }
            }
            let open = owd.owctl.json(&["run", "list", "--state", "open"]);
            open["rows"].as_array().is_some_and(Vec::is_empty).then_some(())
        });
        again
    }

    fn check(&self, owd: &Owd, again: &BTreeMap<String, u64>, tally: &mut Tally) {
        let text = fs::read_to_string(self.scratch.work().join("effects")).unwrap_or_default();
        let mut counted: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for line in text.lines() {
            let (run, label) = line.split_once(' ').expect("two words");
            *counted.entry((run, label)).or_default() += 1;
            tally.effects += 1;
        }
        for ((run, label), count) in &counted {
            if *count > 1 + again.get(*run).copied().unwrap_or(0) {
                tally.duplicates.push(format!("{run} {label}: {count} times"));
            }
        }
        let rows = owd.owctl.json(&["run", "list", "--limit", "500"])["rows"].as_array().cloned().expect("rows");
        let states: BTreeMap<&str, &Value> = rows.iter().map(|run| (run["id"].as_str().expect("an id"), run)).collect();
        for run in &self.started {
            if !states.contains_key(run.as_str()) {
                tally.losses.push(format!("run {run} was acknowledged and is gone"));
            }
        }
        for (id, run) in &states {
            let labels: &[&str] = match run["task"].as_str() {
                Some("effects") => &["one", "two"],
                Some("asks") => &["asked"],
                Some("tick") => &["tick"],
                _ => &["after"],
            };
            let missing = labels.iter().filter(|label| !counted.contains_key(&(*id, **label)));
            if run["state"] == "succeeded" {
                tally.losses.extend(missing.map(|label| format!("{id} succeeded without {label}")));
            }
        }
        for item in &self.approved {
            let state = owd.owctl.json(&["inbox", "show", item])["state"].clone();
            if state != "approved" {
                tally.losses.push(format!("item {item} was approved and is {state}"));
            }
        }
        let effects = rows.iter().filter(|run| run["task"] == "effects" && run["state"] == "succeeded").count();
        let later = rows.iter().filter(|run| run["task"] == "later").count();
        if effects != later {
            tally.losses.push(format!("{effects} ends of effects, {later} runs after them"));
        }
        Self::check_slots(owd, tally);
    }

    /// Each instant of `tick` has one record: no two records share one, and no second lies between two of them.
    fn check_slots(owd: &Owd, tally: &mut Tally) {
        let why = owd.owctl.json(&["why", "tick"]);
        let mut stretches: Vec<(i64, i64, u64)> = vec![];
        for record in why["records"].as_array().expect("records") {
            if record["kind"] == "manual" || record["kind"] == "event" {
                continue;
            }
            let from = second(&record["key"]);
            let until = if record["until"].is_null() { from } else { second(&record["until"]) };
            stretches.push((from, until, record["count"].as_u64().unwrap_or(1)));
        }
        stretches.sort_unstable();
        for (before, after) in stretches.iter().zip(stretches.iter().skip(1)) {
            if after.0 <= before.1 {
                tally.duplicates.push(format!("slot {after:?} after {before:?}"));
            } else if after.0 > before.1 + 1 {
                tally.losses.push(format!("no record between {before:?} and {after:?}"));
            }
        }
        for (from, until, count) in stretches {
            if u64::try_from(until - from + 1) != Ok(count) {
                tally.losses.push(format!("{count} slots from {from} to {until}"));
            }
        }
    }
}

fn second(instant: &Value) -> i64 {
    let instant: jiff::Timestamp = instant.as_str().expect("an instant").parse().expect("an instant");
    instant.as_second()
}

fn answered(owctl: &Owctl, args: &[&str]) -> Option<Value> {
    let mut all = args.to_vec();
    all.push("--json");
    let answer = owctl.run(&all);
    (answer.code == 0).then(|| serde_json::from_str(&answer.stdout).expect("JSON"))
}

fn pending(owctl: &Owctl) -> Vec<Value> {
    answered(owctl, &["inbox", "list"]).and_then(|page| page["rows"].as_array().cloned()).unwrap_or_default()
}

/// One life that is killed, one that makes good.
fn round(prepare: impl FnOnce(&mut World) -> Option<Owd>, tally: &mut Tally) {
    let mut world = World::new();
    if let Some(killed) = prepare(&mut world) {
        killed.kill();
    }
    tally.kills += 1;
    let owd = world.scratch.start();
    let again = World::settle(&owd, tally);
    world.check(&owd, &again, tally);
    owd.stop();
}

fn fault(world: &World, action: FaultAction, number: u64) -> Fault {
    let file = |name: &str| -> PathBuf { world.scratch.path().join(name) };
    Fault { call: FaultCall::Sync, action, number, until: file("until"), count: file("count") }
}

/// Runs the load while the fault waits. A killed owd may not even have become ready.
fn under(world: &mut World, fault: &Fault) -> Option<Owd> {
    let owd = world.scratch.try_start_with(|command| fault.apply(command))?;
    world.load();
    Some(owd)
}

fn is_full() -> bool {
    std::env::var_os("OW_CRASH").is_some_and(|value| value == "full")
}

fn conclude(name: &str, tally: &Tally) {
    println!(
        "{name}: {} kills, {} effects, {} duplicates, {} losses, {} unknowns (each asked about)",
        tally.kills,
        tally.effects,
        tally.duplicates.len(),
        tally.losses.len(),
        tally.unknowns
    );
    assert!(tally.duplicates.is_empty(), "{:#?}", tally.duplicates);
    assert!(tally.losses.is_empty(), "{:#?}", tally.losses);
}

#[test]
fn a_kill_at_any_sync_of_the_store_repeats_and_loses_nothing() {
    let mut tally = Tally::default();
    let mut world = World::new();
    let counting = fault(&world, FaultAction::KillAfter, 0);
    let owd = under(&mut world, &counting).expect("nothing kills it");
    let syncs = counting.calls();
    owd.kill();
    let stride = if is_full() { 1 } else { (syncs / 8).max(1) };
    for number in (1..=syncs).step_by(usize::try_from(stride).expect("small")) {
        for action in [FaultAction::KillBefore, FaultAction::KillAfter] {
            round(|world| under(world, &fault(world, action, number)), &mut tally);
        }
    }
    conclude(&format!("syncs ({syncs})"), &tally);
}

#[test]
fn a_kill_at_any_instant_repeats_and_loses_nothing() {
    let mut tally = Tally::default();
    let rounds = if is_full() { 200 } else { 10 };
    for number in 0..rounds {
        // Spread over the time that the load takes, in an order that is the same each time.
        let delay = Duration::from_millis((number * 37) % 300);
        round(
            |world| {
                let owd = world.scratch.start();
                let pid = owd.pid();
                std::thread::scope(|scope| {
                    scope.spawn(move || {
                        let at = monotonic() + delay;
                        until("the instant has come", || (monotonic() >= at).then_some(()));
                        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
                        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
                    });
                    world.load();
                });
                drop(owd);
                None
            },
            &mut tally,
        );
    }
    conclude("random instants", &tally);
}
