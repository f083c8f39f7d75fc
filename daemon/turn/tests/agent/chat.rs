//! A chat: turns, steering, interrupts.

use ow_model::{
    Answer, Fact, Finish, Input, Message, Mode, Outcome, Person, Position, Reply, Source, TurnOutcome, Why,
};
use ow_turn::AgentEffect;
use serde_json::json;

use crate::support::*;

fn ends(world: &World) -> Vec<TurnOutcome> {
    let end = |fact: &ow_model::RecordedFact| match &fact.fact {
        Fact::TurnEnded { outcome } => Some(outcome.clone()),
        _ => None,
    };
    world.journal.iter().filter_map(end).collect()
}

fn interrupt(world: &mut World, partial: Option<&str>) {
    world.record(Fact::TurnInterrupted { by: "ann".into(), partial: partial.map(str::to_owned) });
}

fn ask(world: &mut World) {
    let AgentEffect::CallModel { purpose, reserved, .. } = world.next() else { panic!("{:?}", world.next()) };
    world.record(Fact::Asked { model: "stub:m".into(), purpose, reserved, sent: None });
}

#[test]
fn a_turn_ends_and_the_chat_waits_for_the_next_message() {
    let mut world = World::chat([text("hello"), text("again")]);
    assert_eq!(world.run(), Rest::Idle);
    assert!(world.requests.is_empty());
    world.person("hi");
    assert_eq!(world.run(), Rest::Idle);
    world.person("and?");
    assert_eq!(world.run(), Rest::Idle);
    assert_eq!(ends(&world), [TurnOutcome::Completed, TurnOutcome::Completed]);
    assert_eq!(world.turn.last_text(), Some("again"));
}

#[test]
fn what_is_said_while_the_model_works_is_heard_behind_its_reply_and_answered() {
    let mut world = World::chat([text("answer to both")]);
    world.person("first");
    ask(&mut world);
    world.person("second");
    world.record(Fact::Replied { reply: text("answer to the first"), sent: None });
    assert_eq!(world.run(), Rest::Idle);
    let roles: Vec<&str> = world
        .turn
        .history()
        .iter()
        .map(|message| match &**message {
            Message::User { input, .. } => input.text.as_str(),
            Message::Assistant { text, .. } => text.as_str(),
            Message::Tool { .. } | Message::Notice { .. } => "other",
        })
        .collect();
    assert_eq!(roles, ["first", "answer to the first", "second", "answer to both"]);
}

#[test]
fn what_is_said_while_a_tool_works_is_heard_behind_the_results() {
    let mut world = World::chat([calls([shell("a"), read("b")]), text("ok")]);
    world.asks = vec!["shell"];
    world.person("go");
    assert_eq!(world.run(), Rest::Waits);
    world.person("wait");
    assert!(matches!(world.next(), AgentEffect::Wait { .. }), "it queues behind the open item");
    world.answer(Position(0), Answer::Once);
    assert_eq!(world.run(), Rest::Idle);
    let sent = &world.requests[1].messages;
    assert!(matches!(&**sent.last().expect("not empty"), Message::User { input, .. } if input.text == "wait"));
}

#[test]
fn an_input_is_heard_once_however_often_it_is_journaled() {
    let mut world = World::chat([]);
    let input =
        Input { text: "hi".into(), attachments: vec![], source: Source::Person { person: Person("ann".into()) } };
    for _ in 0..2 {
        world.record(Fact::Input { number: Some(0), input: input.clone() });
    }
    assert_eq!(world.turn.history().len(), 1);
    assert!(world.turn.has_heard(0) && !world.turn.has_heard(1));
}

#[test]
fn an_interrupt_while_the_model_streams_keeps_its_text_and_no_calls() {
    let mut world = World::chat([]);
    world.person("go");
    ask(&mut world);
    interrupt(&mut world, Some("I was about to"));
    // What still comes in is too late.
    world.record(Fact::Replied { reply: calls([read("a")]), sent: None });
    assert_eq!(world.run(), Rest::Idle);
    assert_eq!(ends(&world), [TurnOutcome::Interrupted]);
    assert_eq!(world.turn.last_text(), Some("I was about to"));
    assert!(matches!(&**world.turn.history().last().expect("not empty"), Message::Notice { .. }), "the marker is last");
    world.person("go on");
    assert_eq!(world.run(), Rest::Idle);
}

#[test]
fn an_interrupt_while_a_call_waits_for_a_person_gives_it_a_result_and_it_never_runs() {
    let mut world = World::chat([calls([shell("rm x"), read("a")])]);
    world.asks = vec!["shell"];
    world.person("go");
    assert_eq!(world.run(), Rest::Waits);
    interrupt(&mut world, None);
    world.answer(Position(0), Answer::Once);
    assert_eq!(world.run(), Rest::Idle);
    assert!(world.executed.is_empty());
    assert!(world.result(0).contains("interrupted by ann") && world.result(1).contains("interrupted by ann"));
}

#[test]
fn an_interrupt_in_the_middle_of_an_effect_leaves_it_unknown() {
    let mut world = World::chat([calls([shell("deploy"), shell("tell")])]);
    world.person("go");
    while !matches!(world.next(), AgentEffect::Execute { .. }) {
        world.step();
    }
    let AgentEffect::Execute { calls } = world.next() else { panic!() };
    world.intend(&calls[0].0);
    interrupt(&mut world, None);
    assert_eq!(world.run(), Rest::Idle);
    assert!(world.result(0).contains("UNKNOWN") && !world.result(1).contains("UNKNOWN"));
    assert_eq!(world.turn.uncertain(), [calls[0].0.hash()], "the same call asks from now on");
}

#[test]
fn an_interrupted_task_is_cancelled() {
    let mut world = World::task([]);
    interrupt(&mut world, None);
    assert!(matches!(world.run(), Rest::Ended(Outcome::Cancelled { .. })));
}

#[test]
fn a_stop_hook_that_objects_sends_the_agent_back_to_work() {
    let mut world = World::task([text("done"), text("now really")]);
    while !matches!(world.next(), AgentEffect::End(_)) {
        world.step();
    }
    world.say("the tests do not pass", Source::Owd { why: Why::Hook });
    assert_eq!(world.run(), Rest::Ended(Outcome::Succeeded));
    assert_eq!(world.turn.last_text(), Some("now really"));
}

#[test]
fn what_was_denied_may_be_asked_again_once_the_person_has_spoken() {
    let mut world = World::chat([calls([shell("x")]), text("ok"), calls([shell("x")]), text("ok")]);
    world.asks = vec!["shell"];
    world.answers = [Answer::Deny { reason: None }, Answer::Once].into();
    world.person("go");
    world.run();
    world.person("go ahead");
    world.run();
    assert_eq!(world.ran(), ["shell"]);
}

#[test]
fn the_model_and_the_mode_change_between_turns_with_a_marker_where_there_is_history() {
    let mut world = World::chat([text("hi")]);
    world.record(Fact::ModelSet { model: "a:b".into() });
    assert!(world.turn.history().is_empty(), "silent in a fresh session");
    world.person("hello");
    world.run();
    world.record(Fact::ModelSet { model: "c:d".into() });
    world.record(Fact::ModeSet { mode: Mode::Auto });
    assert!(
        matches!(&**world.turn.history().last().expect("not empty"), Message::Notice { text, .. } if text.contains("c:d"))
    );
    assert_eq!((world.turn.model(), world.turn.mode()), (Some("c:d"), Mode::Auto));
}

#[test]
fn what_is_set_before_anything_was_said_holds() {
    let mut world = World::chat([text("hi")]);
    world.journal.clear();
    world.turn = ow_turn::AgentTurn::new(std::sync::Arc::clone(&world.setup));
    world.record(Fact::ModeSet { mode: Mode::Plan });
    world.record(Fact::ModelSet { model: "a:b".into() });
    world.person("hello");
    world.run();
    assert_eq!((world.turn.model(), world.turn.mode()), (Some("a:b"), Mode::Plan));
}

#[test]
fn a_refused_turn_leaves_the_chat_usable() {
    let mut world = World::chat([Reply { finish: Finish::Refusal, ..text("no") }, text("sure")]);
    world.person("a");
    assert_eq!(world.run(), Rest::Idle);
    world.person("b");
    assert_eq!(world.run(), Rest::Idle);
    assert_eq!(world.turn.last_text(), Some("sure"));
    assert_eq!(json!(ends(&world).len()), json!(2));
}
