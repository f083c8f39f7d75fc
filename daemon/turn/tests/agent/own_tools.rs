//! Tools that the turn itself performs.

use std::path::PathBuf;

use ow_model::{AgentSpec, Answer, Fact, ItemKind, Mode, Outcome, Position, Source};
use ow_turn::AgentEffect;
use serde_json::json;

use crate::support::*;

const SUCCEEDED: Rest = Rest::Ended(Outcome::Succeeded);

fn plan_world(replies: Vec<ow_model::Reply>) -> World {
    let agent = AgentSpec { goal: Some("do it".into()), ..AgentSpec::default() };
    World::with(ow_model::TaskSpec { mode: Mode::Plan, ..spec(agent) }, 50, replies)
}

#[test]
fn a_question_is_asked_and_its_answer_is_the_result() {
    let questions = json!({ "questions": [{ "question": "Which?", "options": ["a", "b"] }] });
    let mut world = World::task([one("ask_user", &questions), text("ok")]);
    world.answers = [Answer::Text { text: "b".into() }].into();
    assert_eq!(world.run(), SUCCEEDED);
    assert!(matches!(&world.asked[..], [ItemKind::Question { questions }] if questions[0].options == ["a", "b"]));
    assert!(world.result(0).contains("answer: b"), "{}", world.result(0));
}

#[test]
fn more_than_four_questions_are_not_asked() {
    let five: Vec<_> = (0..5).map(|index| json!({ "question": format!("{index}?") })).collect();
    let mut world = World::task([one("ask_user", &json!({ "questions": five })), text("ok")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert!(world.asked.is_empty());
}

#[test]
fn an_approved_plan_flips_the_mode_and_feedback_does_not() {
    let plan = || one("propose_plan", &json!({ "plan": "first this" }));
    let mut world = plan_world(vec![plan(), plan(), text("ok")]);
    world.answers = [Answer::Text { text: "smaller steps".into() }, Answer::Once].into();
    while world.asked.len() < 2 {
        assert_eq!(world.step(), None);
    }
    assert_eq!(world.turn.mode(), Mode::Plan);
    assert!(world.result(0).contains("smaller steps"));
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(world.turn.mode(), Mode::Ask);

    let mut world = World::task([plan(), text("ok")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert!(world.asked.is_empty() && world.result(0).contains("not in mode plan"));
}

#[test]
fn a_denied_plan_stays_in_plan_mode() {
    let mut world = plan_world(vec![one("propose_plan", &json!({ "plan": "x" })), text("ok")]);
    world.answers = [Answer::Deny { reason: Some("too much".into()) }].into();
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(world.turn.mode(), Mode::Plan);
    assert!(world.result(0).contains("too much"));
}

#[test]
fn a_granted_folder_is_a_root_before_the_calls_behind_it_are_judged() {
    let ask = call("request_directory", &json!({ "path": "/srv/data", "writable": true, "reason": "reports" }));
    let mut world = World::task([calls([ask, read("/srv/data/a")]), text("ok")]);
    assert_eq!(world.run(), Rest::Waits);
    world.answer(Position(0), Answer::Once);
    while !matches!(world.next(), AgentEffect::Admit { .. }) {
        world.step();
    }
    assert_eq!(world.turn.granted_roots(), [(PathBuf::from("/srv/data"), true)]);
    assert_eq!(world.run(), SUCCEEDED);
}

#[test]
fn sleep_costs_nothing_survives_a_restart_and_ends_with_a_wake() {
    let mut world = World::task([one("sleep_until", &json!({ "for": "15m", "note": "look again" })), text("ok")]);
    assert_eq!(world.run(), Rest::Idle);
    let facts = world.journal.len();
    world.crash(facts);
    assert_eq!(world.run(), Rest::Idle);
    let sleep = world.turn.sleep().expect("asleep");
    assert_eq!((sleep.note.as_str(), sleep.until.is_some()), ("look again", true));
    world.say("it is time", Source::Wake { note: "look again".into() });
    assert_eq!(world.run(), SUCCEEDED);
    assert!(world.result(0).contains("look again"));
    assert!(world.turn.sleep().is_none());

    let mut world =
        World::task([one("sleep_until", &json!({ "when": "2020-01-01T00:00:00Z", "note": "" })), text("ok")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert!(world.result(0).contains("is past"));
}

#[test]
fn the_list_of_what_is_to_do_is_kept_and_a_sub_agent_returns_its_report() {
    let items = json!({ "items": [{ "text": "a", "state": "done" }, { "text": "b", "state": "open" }] });
    let mut world =
        World::task([calls([call("todo", &items), call("sub_agent", &json!({ "goal": "find it" }))]), text("ok")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(world.turn.todo(), &items);
    assert_eq!((world.result(0), world.result(1)), ("noted: 2 to do, 1 of them done", "find it"));
}

#[test]
fn an_event_that_owd_never_tells_of_is_refused_and_those_it_has_are_named() {
    let mut world = World::task([one("wake_on", &json!({ "event": "run.endet", "note": "look" })), text("ok")]);
    assert_eq!(world.run(), SUCCEEDED);
    let result = world.result(0);
    assert!(result.contains("no event run.endet ever comes") && result.contains("run.ended, "), "{result}");
}

#[test]
fn what_is_waited_for_without_an_end_is_waited_for_as_long_as_an_item_at_most() {
    let mut world = World::task([one("wake_on", &json!({ "event": "run.ended", "note": "look" })), text("ok")]);
    assert_eq!(world.run(), Rest::Idle);
    let asked = world.journal.iter().find(|recorded| matches!(recorded.fact, Fact::Replied { .. })).expect("a reply");
    let until = asked.at + spec(AgentSpec::default()).item_expiry.signed();
    assert_eq!(world.turn.sleep().expect("asleep").until, Some(until));
}
