//! What the model says, and what of it ends a turn.

use ow_model::{Fact, Failure, Finish, ModelFailure, Outcome, Purpose, Reply, ReplyCall, Why};
use serde_json::json;

use crate::support::*;

const SUCCEEDED: Rest = Rest::Ended(Outcome::Succeeded);

fn failure(rest: Rest) -> (Failure, String) {
    match rest {
        Rest::Ended(Outcome::Failed { failure, message }) => (failure, message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_without_tools_ends_the_run() {
    let mut world = World::task([text("42")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(world.turn.last_text(), Some("42"));
    assert_eq!(world.requests.len(), 1);
}

#[test]
fn the_classic_walk_takes_three_model_calls_and_one_approval() {
    let mut world = World::task([
        one("grep", &json!({ "pattern": "later" })),
        calls([write("issues.md", "- later")]),
        text("collected"),
    ]);
    world.asks = vec!["write_file"];
    assert_eq!(world.run(), Rest::Waits);
    assert_eq!(world.ran(), ["grep"]);
    world.answer(ow_model::Position(1), ow_model::Answer::Once);
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!((world.requests.len(), world.parked.len()), (3, 1));
    assert!(world.turn.had_side_effect());
}

#[test]
fn arguments_that_are_cut_or_broken_get_the_right_diagnosis_and_do_not_run() {
    for (finish, arguments, told) in [
        (Finish::Length, "{\"path\": \"a.py\", \"text\": \"line 1", "cut off by the output limit"),
        (Finish::Length, "", "cut off by the output limit"),
        (Finish::ToolCalls, "{\"path\": \"a.py\", \"text\": \"line 1", "not valid JSON"),
        (Finish::ToolCalls, "[1]", "no JSON object"),
        (Finish::Stop, "{\"path\": 3}", "`path` must be of type string"),
        (
            Finish::Stop,
            "{\"path\": \"a\", \"mode\": 1}",
            "there is no argument `mode`; there are: `line`, `path`, `text`",
        ),
        (Finish::Stop, "", "`path` is missing"),
    ] {
        let junk = format!("{arguments}{}", " x".repeat(if arguments.contains("line 1") { 5_000 } else { 0 }));
        let bad = ReplyCall { id: Some("c1".into()), name: "write_file".into(), arguments: junk };
        let mut world = World::task([Reply { finish, ..calls([bad]) }, text("sorry")]);
        assert_eq!(world.run(), SUCCEEDED);
        assert!(world.result(0).contains(told), "{}", world.result(0));
        assert!(world.executed.is_empty());
        let sent = serde_json::to_string(&*world.turn.history()[1]).expect("serializes");
        assert!(sent.len() < 600, "the junk is short");
    }
}

#[test]
fn a_call_that_is_whole_runs_even_where_the_reply_was_cut_after_it() {
    let half = ReplyCall { id: None, name: "read_file".into(), arguments: "{\"path\"".into() };
    let mut world = World::task([Reply { finish: Finish::Length, ..calls([read("a"), half]) }, text("ok")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(world.executed.len(), 1);
}

#[test]
fn a_tool_that_does_not_exist_is_named_with_those_that_do_and_a_few_repeats_stop() {
    let mut world = World::task([]);
    world.then = Act::Reply(one("delete_everything", &json!({})));
    let (failure, message) = failure(world.run());
    assert_eq!(failure, Failure::Loop, "{message}");
    assert!(world.result(0).contains("there is no tool `delete_everything`; the tools are: ask_user, browser"));
    assert!(world.requests.len() <= 4, "{}", world.requests.len());
    assert!(world.executed.is_empty());

    // Ever new ones, too.
    let mut world = World::task((0..20).map(|index| one(&format!("tool_{index}"), &json!({}))));
    let (failure, message) = self::failure(world.run());
    assert_eq!(failure, Failure::Loop);
    assert!(message.contains("unusable-calls"), "{message}");
    assert!(world.requests.len() <= 6);
}

#[test]
fn more_than_200_calls_in_one_reply_are_not_run() {
    let many = (0..250).map(|index| read(&format!("{index}")));
    let mut world = World::task([calls(many), text("ok")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert!(world.executed.is_empty());
    assert!(world.result(0).contains("250 calls"));
    let many = (0..200).map(|index| read(&format!("{index}")));
    let mut world = World::task([calls(many), text("ok")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(world.executed.len(), 200);
}

#[test]
fn a_call_written_as_text_is_pointed_out_twice_and_never_run() {
    let wrote = "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}";
    let mut world = World::task([text(wrote), calls([read("a")]), text("ok")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!((world.spoke(Why::CallAsText), world.executed.len()), (1, 1));

    let mut world = World::task([]);
    world.then = Act::Reply(text(wrote));
    let (failure, _) = failure(world.run());
    assert_eq!(failure, Failure::NoAnswer);
    assert_eq!((world.spoke(Why::CallAsText), world.requests.len()), (2, 3));
    assert!(world.executed.is_empty());

    let mut world = World::task([text(&format!("Do this:\n```json\n{wrote}\n```"))]);
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(world.spoke(Why::CallAsText), 0);
}

#[test]
fn an_empty_answer_is_asked_after_once_and_is_never_a_success() {
    let mut world = World::task([calls([read("a")]), text(""), text("found it")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(world.spoke(Why::Empty), 1);

    let mut world = World::task([calls([read("a")]), text(""), text(" \n")]);
    let (failure, message) = failure(world.run());
    assert_eq!(failure, Failure::NoAnswer);
    assert!(message.contains("`read_file`: result of 0"), "{message}");
    assert_eq!((world.spoke(Why::Empty), world.requests.len()), (1, 3));
}

#[test]
fn a_cut_answer_is_continued_at_most_three_times_and_joined() {
    let mut world = World::task([cut("one "), cut("two "), cut("three "), text("four")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(world.turn.last_text(), Some("one two three four"));
    assert_eq!(world.spoke(Why::Continue), 3);

    let mut world = World::task([]);
    world.then = Act::Reply(cut("on and "));
    let (failure, _) = failure(world.run());
    assert_eq!((failure, world.requests.len()), (Failure::NoAnswer, 4));
    assert_eq!(world.turn.last_text(), Some("on and on and on and on and "));
}

#[test]
fn a_refusal_fails_as_one_and_runs_nothing() {
    let refused = Reply { finish: Finish::Refusal, ..calls([read("a")]) };
    let mut world = World::task([Reply { text: "I cannot help with that.".into(), ..refused }]);
    let (failure, message) = failure(world.run());
    assert_eq!(failure, Failure::Model(ModelFailure::Refusal));
    assert!(message.contains("I cannot help"), "{message}");
    assert!(world.executed.is_empty());
}

#[test]
fn a_model_that_cannot_be_had_fails_the_run_and_keeps_the_partial_text() {
    let mut world = World::task([calls([read("a")])]);
    world.then = Act::Fail(ModelFailure::Unavailable, Some("So far I have found"));
    let (failure, message) = failure(world.run());
    assert_eq!((failure, message.as_str()), (Failure::Model(ModelFailure::Unavailable), "503 overloaded"));
    assert_eq!(world.turn.last_text(), Some("So far I have found"));
    let notice = world.turn.history().last().expect("not empty");
    assert!(matches!(&**notice, ow_model::Message::Notice { .. }), "the marker is last");
}

#[test]
fn a_rate_limit_is_shown_and_compacts_nothing() {
    let mut world = World::task([]);
    world.then = Act::Fail(ModelFailure::RateLimit, None);
    assert_eq!(failure(world.run()).0, Failure::Model(ModelFailure::RateLimit));
    assert!(world.requests.iter().all(|request| request.purpose == Purpose::Turn));
}

#[test]
fn reasoning_and_usage_stay_beside_the_message() {
    let reply = Reply { reasoning: Some("hm".into()), private: Some(json!({ "sig": 1 })), ..used(10, 2, text("hi")) };
    let mut world = World::task([reply]);
    assert_eq!(world.run(), SUCCEEDED);
    let ow_model::Message::Assistant { text, reasoning, usage, private, .. } = &*world.turn.history()[1] else {
        panic!()
    };
    assert_eq!((text.as_str(), reasoning.as_deref()), ("hi", Some("hm")));
    assert!(usage.is_some() && private.is_some());
    assert_eq!(world.turn.usage().usage.total(), 12);
}

#[test]
fn a_fact_that_does_not_fit_changes_nothing() {
    let mut world = World::task([calls([read("a")]), text("ok")]);
    assert_eq!(world.run(), SUCCEEDED);
    let before = serde_json::to_string(&world.turn).expect("serializes");
    for fact in world.journal.clone() {
        let stray = !matches!(fact.fact, Fact::Input { .. });
        if stray {
            world.turn.apply(&fact);
        }
    }
    assert_eq!(serde_json::to_string(&world.turn).expect("serializes"), before);
}
