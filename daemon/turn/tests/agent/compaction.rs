//! Shortening what goes to a provider.

use ow_model::{
    Answer, CallErrorKind, CallResult, Compaction, Fact, Failure, Message, ModelFailure, Outcome, Purpose, Reply,
};

use crate::support::*;

const SUCCEEDED: Rest = Rest::Ended(Outcome::Succeeded);

fn summaries(world: &World) -> usize {
    world.requests.iter().filter(|request| request.purpose == Purpose::Summary).count()
}

fn cuts(world: &World) -> Vec<Compaction> {
    let how = |fact: &ow_model::RecordedFact| match fact.fact {
        Fact::Compacted { how, .. } => Some(how),
        _ => None,
    };
    world.journal.iter().filter_map(how).collect()
}

fn long(name: &str) -> Reply {
    calls([read(name)])
}

/// A task whose reads return some 3 000 tokens each, in a window of 20 000.
fn big(replies: impl IntoIterator<Item = Reply>) -> World {
    let mut world = World::task(replies);
    world.progress.window = 20_000;
    world.tool = Box::new(|call| ok(&format!("{} {}", call.position, "word ".repeat(1_800))));
    world
}

#[test]
fn the_trigger_is_85_percent_of_the_window_or_the_cap() {
    for (window, cap, tokens, expected) in [
        (100_000, 250_000, 84_900, 0),
        (100_000, 250_000, 85_001, 1),
        (1_000_000, 250_000, 249_000, 0),
        (1_000_000, 250_000, 250_001, 1),
        (0, 250_000, 108_000, 0),
        (0, 250_000, 108_900, 1),
    ] {
        let mut world = World::task([]);
        world.progress.window = window;
        world.progress.cap = cap;
        world.script = (0..12).map(|index| Act::Reply(calls([read(&format!("{index}"))]))).collect();
        // The last reply says how much the provider counted; what follows it is small.
        let counted = used(tokens - 10, 10, calls([write("z", "")]));
        world.script.push_back(Act::Reply(counted));
        world.script.push_back(Act::Reply(text("ok")));
        let mut reads = 0;
        world.tool = Box::new(move |call| {
            reads += 1;
            if call.tool.as_str() == "write_file" { ok("x") } else { ok(&"word ".repeat(1_000 + reads)) }
        });
        assert_eq!(world.run(), SUCCEEDED);
        assert_eq!(summaries(&world), expected, "{window} {cap} {tokens}");
    }
}

#[test]
fn a_summary_keeps_the_task_the_state_and_whole_pairs_and_alters_no_transcript() {
    let mut world = big((0..14).map(|index| long(&format!("f{index}"))));
    world.then = Act::Reply(text("a fine summary"));
    world.tool = Box::new(|call| ok(&format!("{} {}", call.position, "word ".repeat(1_800))));
    assert_eq!(world.run(), SUCCEEDED);
    assert!(summaries(&world) >= 1);
    let shortened = world.requests.iter().rev().find(|request| request.summary.is_some()).expect("one was shortened");
    let summary = shortened.summary.as_deref().expect("it is");
    assert!(summary.contains("The task:\ndo it") && summary.contains("Tools used: read_file"), "{summary}");
    let results = world.turn.history().iter().filter(|message| matches!(&***message, Message::Tool { .. })).count();
    assert_eq!(results, world.executed.len(), "the transcript has every message");
    let request = world.requests.iter().find(|request| request.purpose == Purpose::Summary).expect("asked");
    assert!(!request.with_tools);
    assert!(request.instruction.as_deref().is_some_and(|told| told.contains("PERSON: do it")));
}

#[test]
fn the_cut_is_never_at_a_result() {
    let mut world = big((0..10).map(|index| calls([read(&format!("a{index}")), read(&format!("b{index}"))])));
    assert_eq!(world.run(), SUCCEEDED);
    assert!(!cuts(&world).is_empty());
    // Each request is checked by the world itself.
    let first = world.turn.history()[world.turn.outgoing().from].clone();
    assert!(!matches!(&*first, Message::Tool { .. }));
}

#[test]
fn a_short_talk_is_left_alone() {
    let mut world = World::task([long("a"), text("ok")]);
    assert_eq!(world.run(), SUCCEEDED);
    assert!(cuts(&world).is_empty());
}

/// The world, with a summariser that always fails.
fn broken(attended: bool, replies: usize) -> World {
    let mut world = big([]);
    world.progress.attended = attended;
    world.script.clear();
    world.then = Act::Fail(ModelFailure::Unavailable, None);
    let mut left = replies;
    // Turns are scripted as they come, so that only summaries fail.
    while left > 0 {
        match world.next() {
            ow_turn::AgentEffect::CallModel { purpose: Purpose::Turn, .. } => {
                left -= 1;
                world.script.push_back(Act::Reply(long(&format!("f{left}"))));
            }
            _ => assert!(world.script.is_empty()),
        }
        if world.step() == Some(Rest::Waits) {
            break;
        }
    }
    world
}

#[test]
fn unattended_a_failed_summary_is_tried_once_more_then_trimmed_and_the_work_goes_on() {
    let world = broken(false, 7);
    assert_eq!((summaries(&world), cuts(&world)), (2, vec![Compaction::Trim]));
    assert!(world.turn.outgoing().summary.is_some_and(|summary| summary.contains("left out")));
}

#[test]
fn attended_the_person_chooses_between_retry_and_trim() {
    for (answer, expected) in [("Retry", 2), ("Trim", 1)] {
        let mut world = broken(true, 20);
        assert_eq!(summaries(&world), 1);
        let ow_model::ItemKind::Question { questions } = &world.asked[0] else { panic!() };
        assert_eq!(questions[0].options, ["Retry", "Trim"]);
        let (position, _) = world.parked[0];
        world.answer(position, Answer::Text { text: answer.into() });
        world.then = Act::Reply(text("all is well"));
        assert_eq!(world.run(), SUCCEEDED);
        assert_eq!(summaries(&world), expected, "{answer}");
    }
}

#[test]
fn a_blank_summary_counts_as_a_failure() {
    let mut world = big((0..6).map(|index| long(&format!("f{index}"))));
    world.script.push_back(Act::Reply(text("  ")));
    world.script.push_back(Act::Reply(text("real")));
    assert_eq!(world.run(), SUCCEEDED);
    assert!(
        world
            .journal
            .iter()
            .any(|fact| matches!(&fact.fact, Fact::CompactionFailed { message } if message.contains("empty")))
    );
}

#[test]
fn after_three_failures_in_a_row_none_is_tried_for_exactly_five_replies() {
    let world = broken(false, 40);
    // How many replies lie between one summary call and the next.
    let mut gaps = vec![];
    let mut turns = 0;
    for request in &world.requests {
        if request.purpose == Purpose::Summary {
            gaps.push(turns);
            turns = 0;
        } else {
            turns += 1;
        }
    }
    assert!(gaps.len() >= 4, "{gaps:?}");
    assert!(gaps[3] >= 6, "the one at which it failed, and five more: {gaps:?}");
}

#[test]
fn an_overflow_compacts_and_repeats_the_call() {
    let mut world = World::task((0..6).map(|index| long(&format!("f{index}"))));
    world.tool = Box::new(|call| ok(&format!("{} {}", call.position, "word ".repeat(500))));
    world.script.push_back(Act::Fail(ModelFailure::Overflow, None));
    world.script.push_back(Act::Reply(text("summary")));
    world.script.push_back(Act::Reply(text("answer")));
    assert_eq!(world.run(), SUCCEEDED);
    assert_eq!(
        (summaries(&world), cuts(&world), world.turn.last_text()),
        (1, vec![Compaction::Summary], Some("answer"))
    );
}

#[test]
fn an_overflow_that_nothing_can_shorten_fails_and_ends() {
    let mut world = World::task((0..6).map(|index| long(&format!("f{index}"))));
    world.then = Act::Fail(ModelFailure::Overflow, None);
    let rest = world.run();
    let Rest::Ended(Outcome::Failed { failure: Failure::Model(ModelFailure::Overflow), message }) = rest else {
        panic!("{rest:?}")
    };
    assert!(message.contains("larger window"), "{message}");
    let froms: Vec<u32> = world
        .journal
        .iter()
        .filter_map(|fact| match &fact.fact {
            Fact::Compacted { until, .. } => Some(*until),
            _ => None,
        })
        .collect();
    assert!(froms.windows(2).all(|pair| pair[0] < pair[1]), "each pass moves the cut: {froms:?}");
}

#[test]
fn files_commands_and_what_the_person_said_outlive_two_compactions() {
    let mut world = World::chat([]);
    world.tool = Box::new(|call| match call.tool.as_str() {
        "shell" => CallResult {
            output: serde_json::json!({ "status": 2 }),
            ..CallResult::failed(CallErrorKind::Failed, "ended with status 2")
        },
        _ => ok("fine"),
    });
    for turn in 0..60 {
        world.script.extend([
            Act::Reply(calls([write("a.rs", "1"), write("b.rs", "2"), write("a.rs", "3"), shell("cargo test")])),
            Act::Reply(text("done")),
        ]);
        world.person(&format!("wish {turn} {}", "x".repeat(2_000)));
        assert_eq!(world.run(), Rest::Idle);
        if turn % 20 == 19 {
            world.record(Fact::CompactionWanted);
            world.script.push_back(Act::Reply(text(&format!("summary {turn}"))));
            assert_eq!(world.run(), Rest::Idle);
        }
    }
    assert_eq!(cuts(&world).len(), 3);
    let summary = world.turn.outgoing().summary.expect("shortened");
    assert!(summary.contains("wish 0 ") && summary.contains("older messages of the person are left out"), "{summary}");
    assert_eq!(summary.matches("- wish ").count(), 40);
    assert!(summary.contains("Files written, newest first: a.rs; b.rs"), "{summary}");
    assert!(summary.contains("cargo test (status 2)"));
    assert!(summary.lines().filter(|line| line.starts_with("- wish")).all(|line| line.chars().count() <= 603));
    let second = world.requests.iter().filter_map(|request| request.instruction.as_deref()).nth(1).expect("asked");
    assert!(second.contains("summary 19"), "the first summary is folded in");
}

#[test]
fn a_summary_of_outside_text_is_outside_text() {
    let mut world =
        big((0..8).map(|index| one("web_fetch", &serde_json::json!({ "url": format!("https://{index}.example") }))));
    world.tool = Box::new(|call| CallResult {
        outside: call.position.0 == 0,
        ..ok(&format!("{} {}", call.position, "word ".repeat(1_800)))
    });
    assert_eq!(world.run(), SUCCEEDED);
    assert!(world.turn.outgoing().from > 2, "the outside page is cut away");
    assert!(world.turn.holds_outside());
}

#[test]
fn a_wish_to_shorten_outlives_a_crash_and_is_done_with_once_a_model_was_asked() {
    let mut world = World::chat([text("one"), text("two")]);
    for wish in ["first", "second"] {
        world.person(&format!("{wish} {}", "x".repeat(2_000)));
        assert_eq!(world.run(), Rest::Idle);
    }
    world.record(Fact::CompactionWanted);
    world.crash(world.journal.len());
    world.script.push_back(Act::Reply(text("a summary")));
    assert_eq!(world.run(), Rest::Idle);
    assert_eq!(cuts(&world).len(), 1);
    // There is nothing more to leave out; the wish does not wait for more to come.
    world.record(Fact::CompactionWanted);
    world.person("third");
    assert_eq!(world.run(), Rest::Idle);
    world.person(&"x".repeat(2_000));
    assert_eq!(world.run(), Rest::Idle);
    assert_eq!(cuts(&world).len(), 1);
}
