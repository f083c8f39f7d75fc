use ow_model::{EndedRun, EventKey, Failure, ItemId, Outcome, RunId, TaskId};

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

fn run(cause: Cause, started_at: Option<&str>, state: RunState) -> Run {
    Run {
        id: RunId::from_bytes([1; 10]),
        order: 1,
        task: TaskId(1),
        task_name: "reports".parse().expect("a name"),
        revision: 1,
        cause,
        scheduled_for: at("2026-03-29T07:00:00Z"),
        created_at: at("2026-03-29T07:00:00Z"),
        started_at: started_at.map(at),
        ended_at: None,
        state,
        depth: 0,
        attempt: 1,
        retry_of: None,
        ran_for_ms: 0,
    }
}

fn ended(outcome: Outcome) -> RunState {
    RunState::Ended(EndedRun { outcome })
}

fn told(key: SlotKey, disposition: Disposition, run: Option<Run>, obstacle: Option<Run>) -> Told {
    let record = SlotRecord { task: TaskId(1), key, disposition, recorded_at: at("2026-03-29T10:00:00Z") };
    Told { record, run, obstacle }
}

/// Paris at noon of 29 March 2026, a few hours after its clocks went forward.
fn answer(question: Question, records: &[Told], before: Option<&Told>, change: impl FnOnce(&mut Why<'_>)) -> String {
    let zone = TimeZone::get("Europe/Paris").expect("a zone");
    let mut why = Why {
        question,
        records,
        before,
        due: None,
        now: at("2026-03-29T10:00:00Z"),
        created_at: at("2026-03-01T10:00:00Z"),
        accounted_until: at("2026-03-29T10:00:00Z"),
        paused: None,
        halted: false,
        behind_pause: None,
        next_due: Some(at("2026-03-30T07:00:00Z")),
        zone: &zone,
        zone_name: "Europe/Paris",
    };
    change(&mut why);
    why.answer()
}

const NINE: &str = "2026-03-29T07:00:00Z";
const TAIL: &str = " Next at 2026-03-30 09:00. Times are of Europe/Paris.";

#[test]
fn a_record_is_answered_with_what_became_of_its_slot() {
    let id = RunId::from_bytes([1; 10]);
    let slot = || SlotKey::Instant(at(NINE));
    let range = |count| SlotKey::Range { from: at("2026-03-26T08:00:00Z"), until: at(NINE), count };
    let catch_up = |count| Cause::CatchUp { from: at("2026-03-26T08:00:00Z"), until: at(NINE), count };
    let down = |folded_into| Disposition::Missed { why: "down".into(), folded_into };
    let skipped = |why: &str| Disposition::Skipped { why: why.into() };
    let succeeded = || ended(Outcome::Succeeded);
    let failed = || ended(Outcome::Failed { failure: Failure::Step, message: "no".into() });
    let item = ItemId::from_bytes([2; 10]);
    let started = Some("2026-03-29T09:12:30Z");
    for (key, disposition, run, obstacle, expected) in [
        (
            slot(),
            Disposition::Fired { run: id },
            Some(run(Cause::Schedule, Some(NINE), succeeded())),
            None,
            "The slot of 2026-03-29 09:00 ran at 2026-03-29 09:00 and succeeded.",
        ),
        (
            slot(),
            Disposition::Fired { run: id },
            Some(run(Cause::Schedule, Some(NINE), failed())),
            None,
            "The slot of 2026-03-29 09:00 ran at 2026-03-29 09:00 and ended as failed.",
        ),
        (
            slot(),
            Disposition::Fired { run: id },
            Some(run(Cause::Schedule, None, RunState::Queued { not_before: None, answered: false })),
            None,
            "The slot of 2026-03-29 09:00 made run {run}, which has not begun.",
        ),
        (
            slot(),
            Disposition::Fired { run: id },
            None,
            None,
            "The slot of 2026-03-29 09:00 started run {run}, whose record is gone.",
        ),
        (
            range(4),
            down(Some(id)),
            Some(run(catch_up(4), started, succeeded())),
            None,
            "Ran at 2026-03-29 11:12:30 as a catch-up run for 4 missed slots, from 2026-03-26 09:00 to 2026-03-29 09:00, because owd was down and succeeded.",
        ),
        (
            slot(),
            down(Some(id)),
            Some(run(catch_up(1), started, RunState::Running)),
            None,
            "Ran at 2026-03-29 11:12:30 as a catch-up run for the missed slot of 2026-03-26 09:00 because owd was down; it is running.",
        ),
        (
            range(4),
            down(None),
            None,
            None,
            "4 slots from 2026-03-26 09:00 to 2026-03-29 09:00 were missed: owd was down.",
        ),
        (
            range(1),
            Disposition::Missed { why: "start deadline".into(), folded_into: None },
            None,
            None,
            "The slot of 2026-03-26 09:00 was missed: it was later than the task's start deadline.",
        ),
        (
            slot(),
            skipped("overlap"),
            None,
            Some(run(Cause::Schedule, Some(NINE), RunState::Running)),
            "The slot of 2026-03-29 09:00 was skipped: the run of 2026-03-29 09:00 was still running.",
        ),
        (
            slot(),
            skipped("overlap"),
            None,
            None,
            "The slot of 2026-03-29 09:00 was skipped: an earlier run was still going.",
        ),
        (
            slot(),
            skipped(&format!("held by {item}")),
            None,
            None,
            "The slot of 2026-03-29 09:00 was skipped: an earlier run was waiting for an answer to item {item}.",
        ),
        (
            range(2),
            skipped("paused"),
            None,
            None,
            "2 slots from 2026-03-26 09:00 to 2026-03-29 09:00 were skipped: the task was paused.",
        ),
        (
            slot(),
            skipped("paused: all"),
            None,
            None,
            "The slot of 2026-03-29 09:00 was skipped: everything was paused.",
        ),
        (
            slot(),
            skipped("a reason of its own"),
            None,
            None,
            "The slot of 2026-03-29 09:00 was skipped: a reason of its own.",
        ),
        (
            slot(),
            Disposition::Superseded { by: Some(id), why: "overlap: cancel-previous".into() },
            None,
            None,
            "The slot of 2026-03-29 09:00 gave way to run {run}: a newer slot was due.",
        ),
        (
            slot(),
            Disposition::Voided { why: "the clock was set back".into() },
            None,
            None,
            "The slot of 2026-03-29 09:00 was voided: the clock was set back.",
        ),
        (
            SlotKey::Event(EventKey("watch:/in/a".into())),
            Disposition::Fired { run: id },
            Some(run(Cause::Event { count: 3 }, started, succeeded())),
            None,
            "Event `watch:/in/a` ran at 2026-03-29 11:12:30 with 3 events and succeeded.",
        ),
        (
            SlotKey::Manual(id),
            Disposition::Fired { run: id },
            Some(run(Cause::Manual { by: "anna".into() }, started, succeeded())),
            None,
            "The run by hand ran at 2026-03-29 11:12:30, started by anna and succeeded.",
        ),
    ] {
        let records = [told(key, disposition, run, obstacle)];
        let expected = expected.replace("{run}", &id.to_string()).replace("{item}", &item.to_string());
        assert_eq!(answer(Question::Lately, &records, None, |_| {}), format!("{expected}{TAIL}"));
    }
}

#[test]
fn where_there_is_no_record_the_answer_says_why_there_is_none() {
    let question = |text| Question::At { from: at(text), until: at(text) };
    let check = |text, change: fn(&mut Why<'_>), expected: &str| {
        assert_eq!(answer(question(text), &[], None, change), format!("{expected}{TAIL}"));
    };
    check(NINE, |_| {}, "Nothing was due at 2026-03-29 09:00.");
    check(
        "2026-02-01T08:00:00Z",
        |_| {},
        "There was no such task at 2026-02-01 09:00: it was made at 2026-03-01 11:00.",
    );
    check("2026-03-30T08:00:00Z", |_| {}, "2026-03-30 10:00 is still to come; no slot is due then.");
    check(
        "2026-03-30T07:00:00Z",
        |why| why.due = Some(at("2026-03-30T07:00:00Z")),
        "2026-03-30 09:00 is still to come; a slot is due then.",
    );
    check(
        "2026-03-29T09:59:59Z",
        |why| {
            why.due = Some(at("2026-03-29T09:59:59Z"));
            why.accounted_until = at("2026-03-29T09:00:00Z");
        },
        "The slot of 2026-03-29 11:59:59 is due and about to be taken.",
    );
    let before = told(SlotKey::Instant(at(NINE)), Disposition::Skipped { why: "paused".into() }, None, None);
    assert_eq!(
        answer(question("2026-03-29T08:30:00Z"), &[], Some(&before), |_| {}),
        format!(
            "Nothing was due at 2026-03-29 10:30; before that, the slot of 2026-03-29 09:00 was skipped: the task was paused.{TAIL}"
        )
    );
    assert_eq!(
        answer(Question::Lately, &[], None, |_| {}),
        format!("Nothing was due since the task was made at 2026-03-01 11:00.{TAIL}")
    );
}

#[test]
fn a_day_without_records_is_answered_by_its_own_hours() {
    let day = |from: &str, until: &str, change: fn(&mut Why<'_>)| {
        answer(Question::Within { from: at(from), until: at(until) }, &[], None, change)
    };
    assert_eq!(
        day("2026-03-29T22:00:00Z", "2026-03-30T22:00:00Z", |why| why.due = Some(at("2026-03-30T07:00:00Z"))),
        format!("The slot of 2026-03-30 09:00 is still to come.{TAIL}")
    );
    assert_eq!(
        day("2031-01-01T00:00:00Z", "2031-01-02T00:00:00Z", |_| {}),
        format!("No slot is due from 2031-01-01 01:00 to 2031-01-02 01:00.{TAIL}")
    );
    assert_eq!(
        day("2026-03-27T23:00:00Z", "2026-03-28T23:00:00Z", |_| {}),
        format!("Nothing was due from 2026-03-28 00:00 to 2026-03-29 00:00.{TAIL}")
    );
    assert_eq!(
        day("2026-01-01T23:00:00Z", "2026-01-02T23:00:00Z", |_| {}),
        format!(
            "There was no such task from 2026-01-02 00:00 to 2026-01-03 00:00: it was made at 2026-03-01 11:00.{TAIL}"
        )
    );
}

#[test]
fn the_outlook_says_what_comes_next_or_why_nothing_does() {
    let outlook = |change: fn(&mut Why<'_>)| answer(Question::Lately, &[], None, change);
    for (change, expected) in [
        (
            (|why| why.paused = Some("its task file is gone".into())) as fn(&mut Why<'_>),
            "Nothing starts now: its task file is gone.",
        ),
        (|why| why.next_due = None, "No further slot is planned; it runs on events or by hand."),
        (|why| why.next_due = Some(why.now), "The slot of 2026-03-29 12:00 is due."),
    ] {
        let said = outlook(change);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn what_came_due_behind_a_pause_was_skipped_although_its_record_is_still_to_come() {
    let asked = Question::At { from: at("2026-03-29T09:00:00Z"), until: at("2026-03-29T09:00:59Z") };
    let slots = SlotKey::Range { from: at("2026-03-29T08:00:00Z"), until: at("2026-03-29T10:00:00Z"), count: 3 };
    let why = |question, halted| {
        answer(question, &[], None, |why| {
            why.accounted_until = at("2026-03-29T07:30:00Z");
            why.due = Some(at("2026-03-29T09:00:00Z"));
            why.behind_pause = Some(slots.clone());
            why.paused = Some(if halted { "everything is paused by ann" } else { "paused by a person" }.into());
            why.halted = halted;
        })
    };
    assert_eq!(
        why(Question::Lately, false),
        "3 slots from 2026-03-29 10:00 to 2026-03-29 12:00 were skipped. Nothing starts now: paused by a person. Times \
         are of Europe/Paris."
    );
    assert_eq!(
        why(asked, true),
        "The slot of 2026-03-29 11:00 was skipped. Nothing starts now: everything is paused by ann. Times are of \
         Europe/Paris."
    );
}

#[test]
fn a_run_that_the_kill_switch_stopped_goes_on_when_it_opens() {
    let id = RunId::from_bytes([1; 10]);
    let run = run(Cause::Schedule, Some(NINE), RunState::Interrupted);
    let told = told(SlotKey::Instant(at(NINE)), Disposition::Fired { run: id }, Some(run), None);
    let answer = answer(Question::Lately, &[told], None, |why| why.halted = true);
    assert!(answer.contains("it was interrupted and goes on once work is resumed"), "{answer}");
}

#[test]
fn a_run_in_the_way_that_waits_for_its_turn_was_not_running() {
    let skipped = Disposition::Skipped { why: "overlap".into() };
    let waiting = run(Cause::Schedule, Some("2026-03-29T09:00:00Z"), RunState::Running);
    let told = told(SlotKey::Instant(at("2026-03-29T08:00:00Z")), skipped, None, Some(waiting));
    let answer = answer(Question::Lately, &[told], None, |_| {});
    assert!(answer.contains("the run of 2026-03-29 09:00 had not begun yet"), "{answer}");
}
