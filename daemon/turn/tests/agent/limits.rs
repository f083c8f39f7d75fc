//! Limits: iterations, the checkpoint, budgets.

use std::sync::Arc;

use ow_model::{
    AgentSpec, Answer, Answered, Budget, Fact, Failure, ItemKind, Outcome, Position, Purpose, Span, TurnOutcome, Usage,
    Why,
};
use ow_turn::{AgentEffect, AgentSetup};
use serde_json::json;

use crate::support::*;

const SUCCEEDED: Rest = Rest::Ended(Outcome::Succeeded);

fn agent() -> AgentSpec {
    AgentSpec { goal: Some("do it".into()), ..AgentSpec::default() }
}

/// A model that never stops calling, each time with other results.
fn restless(max_iterations: u32) -> World {
    let script = (0..200).map(|index| calls([read(&format!("{index}"))]));
    World::of(agent(), max_iterations, script)
}

#[test]
fn a_model_that_never_stops_gets_one_last_call_without_tools_and_its_own_failure() {
    let mut world = restless(12);
    world.script.insert(12, Act::Reply(text("this is how far I came")));
    let rest = world.run();
    let Rest::Ended(Outcome::Failed { failure: Failure::Iterations, message }) = rest else { panic!("{rest:?}") };
    assert!(message.contains("12 replies") && message.contains("max-iterations"), "{message}");
    assert_eq!(world.requests.len(), 13);
    let last = world.requests.last().expect("asked");
    assert_eq!((last.purpose, last.with_tools), (Purpose::Final, false));
    assert_eq!(world.turn.last_text(), Some("this is how far I came"));
    assert_eq!(world.turn.iterations(), 12);
}

#[test]
fn a_machine_that_is_told_nothing_of_it_makes_twelve_model_calls_a_turn() {
    let script = (0..200).map(|index| calls([read(&format!("{index}"))]));
    let mut world = World::on(AgentSetup::bare(Arc::new(spec(agent())), tools().into()), script);
    let rest = world.run();
    assert!(matches!(rest, Rest::Ended(Outcome::Failed { failure: Failure::Iterations, .. })), "{rest:?}");
    assert_eq!(world.turn.iterations(), 12);
}

#[test]
fn calls_in_the_last_reply_are_not_run() {
    let mut world = restless(3);
    world.run();
    assert_eq!(world.executed.len(), 3);
    check_pairs(world.turn.history());
}

#[test]
fn work_on_a_screen_may_take_three_times_as_long() {
    let mut world = restless(5);
    world.script.push_front(Act::Reply(one("screenshot", &json!({}))));
    world.run();
    assert_eq!(world.turn.iterations(), 15);
}

#[test]
fn the_checkpoint_comes_once_at_60_percent_and_its_answer_does_not_end_the_run() {
    let mut world = restless(10);
    world.script.insert(6, Act::Reply(text("the task is clear, half is done")));
    world.script.insert(7, Act::Reply(text("all done")));
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(world.turn.last_text(), Some("all done"));
    assert_eq!((world.executed.len(), world.spoke(Why::Checkpoint)), (6, 2));
    let asked = &world.requests[6].messages;
    let ow_model::Message::User { input, .. } = &**asked.last().expect("not empty") else { panic!() };
    for question in ["What is the task?", "What is done?", "What is next?", "still on target?"] {
        assert!(input.text.contains(question), "{}", input.text);
    }

    // Never without a tool call.
    let mut world = World::of(agent(), 2, [cut("a"), text("b")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(world.spoke(Why::Checkpoint), 0);
}

#[test]
fn reaching_a_budget_asks_and_approving_doubles_it() {
    let script = (0..10).map(|index| used(500, 100, calls([read(&format!("{index}"))])));
    let mut world = World::budget(Budget { tokens: Some(2_000), ..Budget::default() }, script);
    assert_eq!(world.run(), Rest::Waits);
    assert_eq!(world.requests.len(), 3, "600 each, and the next needs some 600 again");
    assert!(
        matches!(&world.asked[..], [ItemKind::Budget { text }] if text.contains("2000 tokens")),
        "{:?}",
        world.asked
    );
    let (position, _) = world.parked[0];
    world.answer(position, Answer::Once);
    assert_eq!(world.run(), Rest::Waits);
    assert!(world.journal.iter().any(|fact| fact.fact == Fact::BudgetRaised { times: 2 }));
    assert_eq!(world.requests.len(), 6);
    let (position, _) = world.parked[1];
    world.answer(position, Answer::Deny { reason: None });
    let rest = world.run();
    assert!(matches!(rest, Rest::Ended(Outcome::Failed { failure: Failure::Budget, .. })), "{rest:?}");
}

#[test]
fn a_budget_that_nobody_raises_in_time_expires() {
    let mut world = World::budget(Budget { calls: Some(1), ..Budget::default() }, [calls([read("a")])]);
    assert_eq!(world.run(), Rest::Waits);
    let (position, item) = world.parked[0];
    world.answered(position, Answered::Withdrawn { why: "restored".into() });
    assert_eq!(world.run(), Rest::Waits, "asked anew");
    let (position, newer) = world.parked[1];
    assert_ne!(item, newer);
    world.answered(position, Answered::Expired);
    assert_eq!(world.run(), Rest::Ended(Outcome::Expired { item: newer }));
}

#[test]
fn running_time_is_a_budget_too() {
    let mut world =
        World::budget(Budget { time: Some(Span::from_secs(60)), ..Budget::default() }, [calls([read("a")])]);
    world.progress.ran_for = Span::from_secs(59);
    assert_eq!(world.run(), SUCCEEDED);
    let mut world = World::budget(Budget { time: Some(Span::from_secs(60)), ..Budget::default() }, []);
    world.progress.ran_for = Span::from_secs(60);
    assert_eq!(world.run(), Rest::Waits);
}

#[test]
fn a_lost_reply_counts_as_what_was_reserved() {
    let mut world = World::budget(Budget { calls: Some(2), ..Budget::default() }, []);
    for _ in 0..2 {
        let ow_turn::AgentEffect::CallModel { purpose, reserved, .. } = world.next() else { panic!() };
        world.record(Fact::Asked { model: "stub:m".into(), purpose, reserved, sent: None });
        let facts = world.journal.len();
        world.crash(facts);
        world.record(Fact::Resumed);
    }
    assert!(world.turn.usage().usage.total() > 0);
    assert_eq!(world.run(), Rest::Waits);
}

#[test]
fn in_a_chat_a_limit_ends_the_turn_alone() {
    let mut world = World::of(AgentSpec::default(), 2, (0..3).map(|index| calls([read(&format!("{index}"))])));
    world.person("go");
    assert_eq!(world.run(), Rest::Idle);
    let ended = world.journal.iter().find_map(|fact| match &fact.fact {
        Fact::TurnEnded { outcome } => Some(outcome),
        _ => None,
    });
    assert!(matches!(ended, Some(TurnOutcome::Failed { failure: Failure::Iterations, .. })), "{ended:?}");
    world.person("again");
    assert_eq!(world.run(), Rest::Idle);
    assert_eq!(world.turn.last_text(), Some("done"));
}

/// What a sub-agent says in the session's journal.
fn of_sub_agent(fact: Fact) -> Fact {
    Fact::Delegated { position: Position(0), fact: Box::new(fact) }
}

#[test]
fn what_a_sub_agent_uses_is_used_of_the_session_s_budget() {
    let budget = Budget { tokens: Some(10_000), calls: Some(4), ..Budget::default() };
    let mut world = World::budget(budget, [used(1_000, 100, one("sub_agent", &json!({ "goal": "look" })))]);
    while !matches!(world.next(), AgentEffect::Delegate { .. }) {
        world.step();
    }
    assert_eq!((world.turn.budget_left().tokens, world.turn.budget_left().calls), (Some(8_900), Some(3)));
    let asked = || {
        of_sub_agent(Fact::Asked {
            model: "stub:m".into(),
            purpose: Purpose::Turn,
            reserved: Usage { input: 500, cached: 0, output: 500 },
            sent: None,
        })
    };
    world.record(asked());
    world.record(of_sub_agent(Fact::Replied { reply: used(2_000, 100, text("found")), sent: None }));
    assert_eq!((world.turn.budget_left().tokens, world.turn.budget_left().calls), (Some(6_800), Some(2)));
    // A reply that was lost used what was reserved for it.
    world.record(asked());
    world.crash(world.journal.len());
    world.record(Fact::Resumed);
    assert_eq!((world.turn.budget_left().tokens, world.turn.budget_left().calls), (Some(5_800), Some(1)));
    assert!(matches!(world.next(), AgentEffect::Delegate { .. }), "it begins anew");
}

#[test]
fn no_call_of_a_sub_agent_has_the_position_of_another() {
    let mut world = World::task([one("sub_agent", &json!({ "goal": "look" })), calls([read("a")]), text("ok")]);
    while !matches!(world.next(), AgentEffect::Delegate { .. }) {
        world.step();
    }
    let position = Position(1);
    let named = Fact::Named {
        position,
        tool: "read_file".into(),
        hash: ow_model::Call { position, tool: "read_file".parse().expect("a name"), args: json!({}) }.hash(),
    };
    world.record(of_sub_agent(named));
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(world.executed.last().expect("a call").position, Position(2));
}
