use std::collections::BTreeMap;

use serde_json::Value;

use crate::records::{Records, RunRow, SlotRow};
use crate::world::{Said, World, labels};

const SECOND: i64 = 1_000_000;

/// What is wrong, by the promise that it breaks.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// P1, P3: a slot that fired twice, an effect that nobody allowed to happen again.
    pub(crate) duplicates: Vec<String>,
    /// P1, P2: what was acknowledged, or due, and has no record.
    pub(crate) losses: Vec<String>,
    /// P3: calls of unknown outcome that no person was asked about.
    pub(crate) unasked: Vec<String>,
    /// P5, P6, P7: records that contradict each other.
    pub(crate) contradictions: Vec<String>,
}

/// Checks records and effects against what was said. It shares no code with owd.
pub(crate) fn check(world: &World, records: &Records) -> Findings {
    let mut found = Findings::default();
    if records.integrity != "ok" {
        found.contradictions.push(format!("the file: {}", records.integrity));
    }
    acknowledged(world, records, &mut found);
    every_second(records, &mut found);
    one_record_a_run(records, &mut found);
    events(world, records, &mut found);
    effects(world, records, &mut found);
    item_answers(&world.said, records, &mut found);
    for (id, run) in &records.runs {
        journal(id, run, records, &mut found);
    }
    found
}

/// P2.
fn acknowledged(world: &World, records: &Records, found: &mut Findings) {
    for (name, text) in &world.said.tasks {
        if !records.tasks.iter().any(|task| task.name == *name && task.text == *text) {
            found.losses.push(format!("task {name} was saved and is not there as it was"));
        }
    }
    for run in &world.said.runs {
        if !records.runs.contains_key(run) {
            found.losses.push(format!("run {run} was acknowledged and is gone"));
        }
    }
    for (item, approved) in &world.said.answers {
        let is = records.items.get(item).map(|item| item.resolution["answer"]["answer"].clone());
        let expected = if *approved { "once" } else { "deny" };
        if is.as_ref().is_none_or(|is| is != expected) {
            found.losses.push(format!("item {item} was answered `{expected}` and is {is:?}"));
        }
    }
}

/// P1 for the schedule: from its making on, each second has one record.
fn every_second(records: &Records, found: &mut Findings) {
    let Some(task) = records.tasks.iter().find(|task| task.name == "tick") else {
        return;
    };
    let slots: Vec<&SlotRow> = records.slots.iter().filter(|slot| slot.task == "tick" && slot.kind < 2).collect();
    for slot in &slots {
        if slot.ends - slot.starts != (slot.count - 1) * SECOND {
            found.losses.push(format!("{} slots from {} to {}", slot.count, slot.starts, slot.ends));
        }
    }
    for (before, after) in slots.iter().zip(slots.iter().skip(1)) {
        let apart = after.starts - before.ends;
        if apart < SECOND {
            found.duplicates.push(format!("slots {} and {} are {apart} µs apart", before.ends, after.starts));
        } else if apart > SECOND {
            found.losses.push(format!("no record between {} and {}", before.ends, after.starts));
        }
    }
    let (first, last) = (slots.first().map(|slot| slot.starts), slots.last().map(|slot| slot.ends));
    if first.unwrap_or(task.accounted_until) > task.created_at + SECOND {
        found.losses.push(format!("made at {}, accounted for from {first:?} on", task.created_at));
    }
    if last.unwrap_or(task.created_at) + SECOND <= task.accounted_until {
        found.losses.push(format!("accounted for until {}, the last record is of {last:?}", task.accounted_until));
    }
}

/// P1: no slot fires twice, no run is without its occasion.
fn one_record_a_run(records: &Records, found: &mut Findings) {
    let mut fired: BTreeMap<&str, u64> = BTreeMap::new();
    for slot in &records.slots {
        if let Some(run) = &slot.fired {
            *fired.entry(run).or_default() += 1;
            if !records.runs.contains_key(run) {
                found.losses.push(format!("slot {} of {} fired run {run}, which is gone", slot.starts, slot.task));
            }
        }
    }
    for (id, run) in &records.runs {
        match fired.get(id.as_str()) {
            Some(1) => {}
            // A catch-up run stands for a range, whose record says so.
            None if run.journal.first().is_some_and(|(_, fact)| fact["cause"]["kind"] == "catch-up") => {}
            other => found.contradictions.push(format!("run {id} of {} has {other:?} records", run.task)),
        }
    }
}

/// P1 for what came from outside, and for what follows a run.
fn events(world: &World, records: &Records, found: &mut Findings) {
    for event in &records.events {
        let slots =
            records.slots.iter().filter(|slot| slot.task == event.task && slot.key.as_ref() == Some(&event.key));
        match (slots.count(), event.runs.len()) {
            (1, 1) => {}
            (0, _) | (_, 0) => found.losses.push(format!("event {} has no run", event.key)),
            (_, runs) => found.duplicates.push(format!("event {} has {runs} runs", event.key)),
        }
    }
    let mut expect = |task: &str, what: &str, is: &dyn Fn(&Value, &str) -> bool| match records
        .events
        .iter()
        .filter(|event| event.task == task && is(&event.payload, &event.key))
        .count()
    {
        1 => {}
        0 => found.losses.push(format!("{what} is no event of {task}")),
        count => found.duplicates.push(format!("{what} is {count} events of {task}")),
    };
    for key in &world.said.events {
        expect("posted", key, &|_, is| is == key);
    }
    for file in &world.said.files {
        expect("intake", file, &|payload, _| payload["data"]["path"] == **file);
    }
    // A store that failed may have kept the following task out until the followed one had already run.
    let follows = records.tasks.iter().find(|task| task.name == "later").map(|task| task.created_at);
    for (id, run) in &records.runs {
        let is_followed = follows.zip(run.ended_at).is_some_and(|(made, ended)| made < ended);
        if is_followed && run.task == "effects" && run.outcome["outcome"] == "succeeded" {
            expect("later", id, &|payload, _| payload["data"]["run"] == **id);
        }
    }
}

/// P3, by what the outside world has counted.
fn effects(world: &World, records: &Records, found: &mut Findings) {
    for (effect, count) in &records.effects {
        let (run, label) = effect;
        let Some(row) = records.runs.get(run) else {
            found.losses.push(format!("run {run} had the effect {label} and is gone"));
            continue;
        };
        let again = world.said.again.get(effect).copied().unwrap_or(0);
        if *count > 1 + again {
            found.duplicates.push(format!("{run} {label}: {count} times, {again} of them allowed again"));
        }
        let intended =
            row.journal.iter().filter(|(_, fact)| fact["fact"] == "intended" && label_of(row, fact) == *label);
        let intended = intended.count() as u64;
        if *count > intended {
            found.contradictions.push(format!("{run} {label}: {count} times, journaled {intended} times before"));
        }
        if label == "asked" && !world.said.allowed.contains(effect) {
            found.duplicates.push(format!("{run} {label}: nobody has allowed it"));
        }
    }
    for (id, run) in records.runs.iter().filter(|(_, run)| run.outcome["outcome"] == "succeeded") {
        for label in labels(&run.task) {
            if !records.effects.contains_key(&(id.clone(), (*label).to_owned())) {
                found.losses.push(format!("run {id} of {} succeeded without {label}", run.task));
            }
        }
        if run.task == "effects" {
            let note = world.scratch.work().join(format!("notes/{id}.md"));
            if std::fs::read_to_string(note).unwrap_or_default() != format!("run {id}\n") {
                found.losses.push(format!("run {id} succeeded without its note"));
            }
        }
    }
}

/// The label of the call that a fact is about.
fn label_of(run: &RunRow, fact: &Value) -> String {
    let position = &fact["position"];
    let rendered = |(_, other): &&(i64, Value)| other["fact"] == "rendered" && other["call"]["position"] == *position;
    let call = run.journal.iter().find(rendered).map(|(_, fact)| fact["call"].clone()).unwrap_or_default();
    call["args"]["argv"][3].as_str().unwrap_or_default().to_owned()
}

/// P5, and that each unknown outcome was put to a person.
pub(crate) fn item_answers(said: &Said, records: &Records, found: &mut Findings) {
    for (id, item) in &records.items {
        let answers = records.runs.values().flat_map(|run| &run.journal);
        let answers = answers.filter(|(_, fact)| fact["fact"] == "answered" && fact["item"] == **id).count();
        let expected = usize::from(item.run.is_some() && !item.category.is_empty());
        if item.state != "pending" && answers != expected {
            found.contradictions.push(format!("item {id} is {} and has {answers} answers", item.state));
        }
        if item.state == "pending" && !item.category.is_empty() {
            found.losses.push(format!("item {id} is pending though its run has ended"));
        }
        if item.category == "unknown-outcome" && !said.asked.contains(id) {
            found.unasked.push(format!("item {id} about {} was never shown", item.args));
        }
    }
}

/// Where one call stands, read from its facts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Call {
    /// May start: judged, allowed, or known not to have happened.
    Free,
    /// Has started; whether it took effect is open.
    Started,
    /// The same without side effects: it may simply start again.
    Harmless,
    /// Nobody can tell: only a person may say go on.
    Unknown,
    Asked,
    Over,
}

/// The calls of a session's model, by position.
pub(crate) fn calls_of(run: &RunRow) -> Vec<&Value> {
    let replies = run.journal.iter().filter(|(_, fact)| fact["fact"] == "replied");
    replies.filter_map(|(_, fact)| fact["reply"]["calls"].as_array()).flatten().collect()
}

/// Whether the call of a fact reads what an equal one has read, after which no call with side effects has begun.
fn is_repeat(run: &RunRow, seq: i64, position: i64) -> bool {
    let calls = calls_of(run);
    let call = |at: i64| usize::try_from(at).ok().and_then(|at| calls.get(at));
    let is_same = |at: i64| {
        let (this, other) = (call(position), call(at));
        this.is_some_and(|this| {
            other.is_some_and(|o| (&this["name"], &this["arguments"]) == (&o["name"], &o["arguments"]))
        })
    };
    let before = run.journal.iter().rev().skip_while(|(at, _)| *at >= seq);
    before
        .take_while(|(_, fact)| fact["fact"] != "intended" || fact["repeatable"] == true)
        .any(|(_, fact)| fact["fact"] == "done" && fact["position"].as_i64().is_some_and(is_same))
}

/// P3, P6, P7 by the journal: gapless, one end, and each call goes only where it may.
pub(crate) fn journal(id: &str, run: &RunRow, records: &Records, found: &mut Findings) {
    let gapless = run.journal.iter().zip(0..).all(|((seq, _), expected)| *seq == expected);
    if !gapless || run.next_seq != i64::try_from(run.journal.len()).expect("short") {
        found.contradictions.push(format!("run {id}: the journal has gaps"));
    }
    let end = run.journal.last().map(|(_, fact)| fact);
    // A chat does not end; between turns it is idle.
    let rests = run.state == "idle" && end.is_none_or(|end| end["fact"] == "turn-ended");
    let is_over =
        run.state == "ended" && end.is_some_and(|end| end["fact"] == "ended" && end["outcome"] == run.outcome);
    if !rests && !is_over {
        found
            .contradictions
            .push(format!("run {id} is {} {} and its journal ends with {end:?}", run.state, run.outcome));
    }
    let mut calls: BTreeMap<i64, Call> = BTreeMap::new();
    for (seq, fact) in &run.journal {
        let Some(position) = fact["position"].as_i64() else {
            continue;
        };
        let call = calls.entry(position).or_insert(Call::Free);
        let word = fact["fact"].as_str().expect("a word");
        *call = match (word, *call) {
            // An agent's calls are named when their reply comes.
            ("named" | "allowed" | "admitted" | "edited" | "voided", Call::Free) | ("reconciled", Call::Harmless) => {
                Call::Free
            }
            // An equal call of the same turn has read it, and nothing was written since.
            ("done", Call::Free) if is_repeat(run, *seq, position) => Call::Over,
            ("refused", Call::Free | Call::Asked) | ("done", Call::Started | Call::Harmless) => Call::Over,
            ("intended", Call::Free | Call::Harmless) if fact["repeatable"] == true => Call::Harmless,
            ("intended", Call::Free) => Call::Started,
            ("intended", Call::Started | Call::Unknown | Call::Over) => {
                found.duplicates.push(format!("run {id}: fact {seq} starts call {position} again from {call:?}"));
                Call::Started
            }
            ("stopped", Call::Started | Call::Harmless) => Call::Unknown,
            ("reconciled", Call::Started | Call::Unknown) => match fact["found"]["found"].as_str() {
                Some("happened") => Call::Over,
                Some("did-not-happen") => Call::Free,
                _ => Call::Unknown,
            },
            ("parked", Call::Free | Call::Unknown) => {
                let item = records.items.get(fact["item"].as_str().expect("an item"));
                let category = item.map(|item| item.category.as_str());
                if *call == Call::Unknown && !matches!(category, Some("unknown-outcome" | "stopped")) {
                    found.unasked.push(format!("run {id}: call {position} is unknown and asks as {category:?}"));
                }
                Call::Asked
            }
            ("answered", Call::Asked) => {
                let answer = &fact["answered"]["answer"]["answer"];
                if answer == "once" { Call::Free } else { Call::Over }
            }
            (word, call) => {
                found
                    .contradictions
                    .push(format!("run {id}: fact {seq} `{word}` of call {position}, which is {call:?}"));
                call
            }
        };
    }
    for (position, call) in calls {
        match call {
            Call::Over | Call::Free => {}
            Call::Started | Call::Unknown => {
                found.unasked.push(format!("run {id}: call {position} is {call:?} at the end"));
            }
            Call::Harmless | Call::Asked => {
                found.contradictions.push(format!("run {id}: call {position} is {call:?} at the end"));
            }
        }
    }
}
