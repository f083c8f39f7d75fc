//! The machine of steps, driven by tables and by random worlds that stop it anywhere.

use ow_model::{
    Answer, AnswerBy, Answered, CallErrorKind, CallResult, CatchUp, Cause, EventDelivery, Fact, Failure, Intent,
    ItemId, Mode, OnError, Outcome, Overlap, Person, Position, Reconciled, Resolution, Retry, Span, Step, Surface,
    TaskSpec, WhileParked, ZoneName,
};
use ow_turn::{Doubt, Effect, Permission, StepsTurn};
use proptest::prelude::*;
use serde_json::{Value, json};

fn step(args: Value) -> Step {
    let tool = "shell".parse().expect("a name");
    Step { tool, args, save_as: None, condition: None, on_error: OnError::Stop }
}

fn task(steps: Vec<Step>) -> TaskSpec {
    TaskSpec {
        name: "reports".parse().expect("a name"),
        title: None,
        timezone: ZoneName("UTC".into()),
        triggers: vec![],
        steps,
        agent: None,
        mode: Mode::Ask,
        roots: vec![],
        catch_up: CatchUp::Once,
        overlap: Overlap::Skip,
        while_parked: WhileParked::Hold,
        events: EventDelivery::default(),
        start_deadline: None,
        jitter: Span::default(),
        timeout: Span::from_secs(3600),
        call_timeout: Span::from_secs(600),
        retry: Retry { attempts: 0, backoff: Span::from_secs(60) },
        auto_pause_after: 0,
        concurrency: None,
        needs: vec![],
        item_expiry: Span::from_secs(60),
        item_reminder: Span::from_secs(30),
        http_allow: vec![],
        inbox: ow_model::InboxName::default(),
    }
}

fn started() -> Fact {
    Fact::Started { cause: Cause::Schedule, context: json!({ "slot": { "date": "2026-03-08" }, "event": {} }) }
}

fn intended(position: u32, repeatable: bool) -> Fact {
    let hash = ow_model::CallHash(ow_model::BlobHash::of(b""));
    Fact::Intended { position: Position(position), hash, repeatable, intent: Intent::default() }
}

fn done(position: u32, output: Value) -> Fact {
    Fact::Done { position: Position(position), result: CallResult::ok(output), took_ms: 1 }
}

fn failed(position: u32, message: &str) -> Fact {
    let result = CallResult::failed(CallErrorKind::Failed, message);
    Fact::Done { position: Position(position), result, took_ms: 1 }
}

fn answer(answer: Answer) -> Answered {
    let by = AnswerBy { person: Person("ann".into()), surface: Surface::Socket };
    Answered::Resolved(Resolution { answer, by, at: jiff::Timestamp::UNIX_EPOCH })
}

/// Folds facts, recording what the machine itself wants recorded in between.
fn fold(spec: &TaskSpec, facts: &[Fact]) -> StepsTurn {
    let mut turn = StepsTurn::new(spec.clone());
    for fact in facts {
        turn = settle(turn).apply(fact);
    }
    settle(turn)
}

fn settle(mut turn: StepsTurn) -> StepsTurn {
    while let Effect::Record(fact) = turn.next() {
        turn = turn.apply(&fact);
    }
    turn
}

const ITEM: ItemId = ItemId::from_bytes([7; 10]);

#[test]
fn steps_run_in_order_and_read_earlier_results() {
    let first = Step { save_as: Some("disks".into()), ..step(json!({ "argv": ["df"] })) };
    let second = step(json!({ "argv": ["echo", "{{ slot.date }}", "{{ steps.disks.stdout }}"] }));
    let spec = task(vec![first, second]);
    let turn = fold(&spec, &[started(), intended(0, true), done(0, json!({ "stdout": "80%" }))]);
    let Effect::Admit { step: 1, call, holes, permission: Permission::Policy } = turn.next() else {
        panic!("{:?}", turn.next())
    };
    assert_eq!(call.args, json!({ "argv": ["echo", "2026-03-08", "80%"] }));
    assert_eq!(
        holes.iter().map(|hole| (hole.name.as_str(), hole.at.as_str())).collect::<Vec<_>>(),
        [("steps.disks.stdout", "/argv/2")]
    );
    let turn = fold(
        &spec,
        &[started(), intended(0, true), done(0, json!({ "stdout": "80%" })), intended(1, false), done(1, json!({}))],
    );
    assert_eq!(turn.next(), Effect::End(Outcome::Succeeded));
    assert!(turn.had_side_effect());
}

#[test]
fn a_failed_step_ends_the_run_as_failed_unless_it_says_continue() {
    let spec = task(vec![step(json!({})), step(json!({}))]);
    let turn = fold(&spec, &[started(), intended(0, false), failed(0, "no such file")]);
    let Effect::End(Outcome::Failed { failure: Failure::Step, message }) = turn.next() else { panic!() };
    assert_eq!(message, "step 1 (`shell`) failed: no such file");

    let first = Step { on_error: OnError::Continue, save_as: Some("try".into()), ..step(json!({})) };
    let second = Step { condition: Some("steps.try.error != none".into()), ..step(json!({})) };
    let turn = fold(&task(vec![first, second]), &[started(), intended(0, false), failed(0, "no such file")]);
    assert!(matches!(turn.next(), Effect::Admit { step: 1, .. }), "{:?}", turn.next());
}

#[test]
fn a_false_condition_passes_a_step_over() {
    let spec = task(vec![Step { condition: Some("slot.date == 'never'".into()), ..step(json!({})) }]);
    assert_eq!(fold(&spec, &[started()]).next(), Effect::End(Outcome::Succeeded));
}

#[test]
fn a_template_that_cannot_be_rendered_fails_the_run() {
    let spec = task(vec![step(json!({ "argv": ["{{ steps.ghost.stdout }}"] }))]);
    let Effect::End(Outcome::Failed { failure: Failure::Template, message }) = fold(&spec, &[started()]).next() else {
        panic!()
    };
    assert!(message.contains("steps.ghost"), "{message}");
}

#[test]
fn a_parked_call_waits_and_goes_on_with_its_answer() {
    let spec = task(vec![step(json!({ "argv": ["rm", "x"] }))]);
    let parked = [started(), Fact::Parked { position: Position(0), item: ITEM }];
    assert_eq!(fold(&spec, &parked).next(), Effect::Wait { position: Position(0), item: ITEM });
    let with = |how| {
        let mut facts = parked.to_vec();
        facts.push(Fact::Answered { position: Position(0), item: ITEM, answered: how });
        fold(&spec, &facts)
    };
    assert!(matches!(with(answer(Answer::Once)).next(), Effect::Admit { permission: Permission::Answer { .. }, .. }));
    let denied = with(answer(Answer::Deny { reason: Some("not today".into()) }));
    let Effect::End(Outcome::Refused { message }) = denied.next() else { panic!() };
    assert_eq!(message, "step 1 was denied by ann: not today");
    assert_eq!(denied.denied().len(), 1);
    assert_eq!(with(Answered::Expired).next(), Effect::End(Outcome::Expired { item: ITEM }));
    let asked_anew = with(Answered::Withdrawn { why: "restored".into() });
    assert!(matches!(asked_anew.next(), Effect::Admit { permission: Permission::Policy, .. }));
}

#[test]
fn an_answer_to_another_item_changes_nothing() {
    let spec = task(vec![step(json!({}))]);
    let other = ItemId::from_bytes([8; 10]);
    let facts = [
        started(),
        Fact::Parked { position: Position(0), item: ITEM },
        Fact::Answered { position: Position(0), item: other, answered: answer(Answer::Once) },
    ];
    assert_eq!(fold(&spec, &facts).next(), Effect::Wait { position: Position(0), item: ITEM });
}

#[test]
fn an_answer_that_no_longer_fits_is_asked_again() {
    let spec = task(vec![step(json!({}))]);
    let facts = [
        started(),
        Fact::Parked { position: Position(0), item: ITEM },
        Fact::Answered { position: Position(0), item: ITEM, answered: answer(Answer::Once) },
        Fact::Voided { position: Position(0), item: ITEM, why: "job.sh changed".into() },
    ];
    assert!(matches!(fold(&spec, &facts).next(), Effect::Admit { permission: Permission::Policy, .. }));
}

#[test]
fn a_call_whose_end_is_not_on_record_is_looked_into_and_then_asked_about() {
    let spec = task(vec![step(json!({}))]);
    let crashed = [started(), intended(0, false)];
    assert!(matches!(fold(&spec, &crashed).next(), Effect::Reconcile { repeatable: false, .. }));
    let found = |found| {
        let facts = [started(), intended(0, false), Fact::Reconciled { position: Position(0), found }];
        fold(&spec, &facts).next()
    };
    let happened = found(Reconciled::Happened { result: CallResult::ok(json!({})) });
    assert_eq!(happened, Effect::End(Outcome::Succeeded));
    assert!(matches!(found(Reconciled::DidNotHappen), Effect::Admit { permission: Permission::Policy, .. }));
    let why = "nothing to compare".to_owned();
    let Effect::AskUncertain { doubt: Doubt::Crashed { .. }, .. } = found(Reconciled::Unknown { why }) else {
        panic!()
    };
}

#[test]
fn what_a_person_allowed_and_a_crash_kept_from_happening_goes_on_with_their_answer() {
    let spec = task(vec![step(json!({}))]);
    let asked = Fact::Parked { position: Position(0), item: ITEM };
    let allowed = Fact::Answered { position: Position(0), item: ITEM, answered: answer(Answer::Once) };
    let did_not = Fact::Reconciled { position: Position(0), found: Reconciled::DidNotHappen };
    let crashed = [started(), asked.clone(), allowed.clone(), intended(0, false), did_not];
    let stopped = [started(), asked, allowed, intended(0, true), Fact::Stopped { position: Position(0) }];
    for facts in [crashed, stopped] {
        let next = fold(&spec, &facts).next();
        assert!(matches!(next, Effect::Admit { permission: Permission::Answer { item: ITEM, .. }, .. }), "{next:?}");
    }
}

#[test]
fn a_stopped_call_runs_again_by_itself_only_if_it_has_no_side_effect() {
    let spec = task(vec![step(json!({}))]);
    let stopped = |repeatable| [started(), intended(0, repeatable), Fact::Stopped { position: Position(0) }];
    assert!(matches!(fold(&spec, &stopped(true)).next(), Effect::Admit { .. }));
    assert!(matches!(fold(&spec, &stopped(false)).next(), Effect::Reconcile { .. }));
    let mut facts = stopped(false).to_vec();
    facts.push(Fact::Reconciled { position: Position(0), found: Reconciled::Unknown { why: "?".into() } });
    let turn = fold(&spec, &facts);
    assert!(matches!(turn.next(), Effect::AskUncertain { doubt: Doubt::Stopped, .. }));
    assert_eq!(turn.uncertain().len(), 1);
}

/// What the world makes of an effect; the number chooses among the possible facts.
fn react(effect: &Effect, choice: u8) -> Fact {
    match effect {
        Effect::Start => started(),
        Effect::Record(fact) => fact.clone(),
        Effect::Admit { call, .. } => match choice % 4 {
            0 => Fact::Refused { position: call.position, rule: "deny".into() },
            1 => Fact::Parked { position: call.position, item: ITEM },
            _ => intended(call.position.0, choice.is_multiple_of(2)),
        },
        Effect::Reconcile { call, .. } => match choice % 5 {
            0 => Fact::Reconciled { position: call.position, found: Reconciled::Unknown { why: "?".into() } },
            1 => Fact::Reconciled { position: call.position, found: Reconciled::DidNotHappen },
            2 => Fact::Stopped { position: call.position },
            3 => failed(call.position.0, "no"),
            _ => done(call.position.0, json!({ "stdout": "x" })),
        },
        Effect::AskUncertain { call, .. } => Fact::Parked { position: call.position, item: ITEM },
        Effect::Wait { position, item } => {
            let answered = match choice % 4 {
                0 => answer(Answer::Deny { reason: None }),
                1 => Answered::Expired,
                2 => Answered::Withdrawn { why: "?".into() },
                _ => answer(Answer::Once),
            };
            Fact::Answered { position: *position, item: *item, answered }
        }
        Effect::End(outcome) => Fact::Ended { outcome: outcome.clone() },
    }
}

proptest! {
    /// P2, P3: a crash anywhere loses nothing, since the state is the fold of the journal.
    #[test]
    fn a_replayed_journal_gives_the_same_state(choices in proptest::collection::vec(any::<u8>(), 0..60)) {
        let first = Step { save_as: Some("a".into()), on_error: OnError::Continue, ..step(json!({ "argv": ["a"] })) };
        let spec = task(vec![first, step(json!({ "argv": ["{{ steps.a.error }}"] })), step(json!({}))]);
        let mut journal = vec![];
        let mut turn = StepsTurn::new(spec.clone());
        for choice in choices {
            if turn.has_ended() {
                break;
            }
            let fact = react(&turn.next(), choice);
            turn = turn.apply(&fact);
            journal.push(fact);
            let replayed = journal.iter().fold(StepsTurn::new(spec.clone()), StepsTurn::apply);
            prop_assert_eq!(&replayed, &turn);
        }
    }

    /// P3: between two beginnings of one call with side effects lies its end, a check of the world, or an answer.
    #[test]
    fn a_call_with_side_effects_begins_again_only_after_somebody_has_looked(
        choices in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let spec = task(vec![step(json!({ "argv": ["a"] })), step(json!({ "argv": ["b"] }))]);
        let mut turn = StepsTurn::new(spec);
        let mut begun: Option<Position> = None;
        for choice in choices {
            if turn.has_ended() {
                break;
            }
            let fact = react(&turn.next(), choice);
            match &fact {
                Fact::Intended { position, repeatable: false, .. } => {
                    prop_assert_ne!(begun, Some(*position), "began twice");
                    begun = Some(*position);
                }
                Fact::Done { .. } | Fact::Reconciled { .. } | Fact::Answered { .. } => begun = None,
                _ => {}
            }
            turn = turn.apply(&fact);
        }
    }

    /// A fact that does not fit where the run stands changes nothing, or only what it may.
    #[test]
    fn an_ended_run_stays_ended(choices in proptest::collection::vec(any::<u8>(), 0..40)) {
        let spec = task(vec![step(json!({}))]);
        let outcome = Outcome::Cancelled { why: "test".into() };
        let mut turn = StepsTurn::new(spec).apply(&started()).apply(&Fact::Ended { outcome });
        for choice in choices {
            let effect = Effect::Wait { position: Position(u32::from(choice % 3)), item: ITEM };
            turn = turn.apply(&react(&effect, choice));
            prop_assert!(turn.has_ended());
        }
    }
}
