//! Any interleaving, with an interrupt or a crash anywhere.

use ow_model::{Answer, Fact, Finish, ModelFailure, Outcome, Reply, ReplyCall, Source};
use ow_turn::AgentEffect;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use crate::support::*;

/// What happens to the session beside what it asks for.
#[derive(Clone, Debug)]
enum Event {
    Step,
    Person,
    Outside,
    Interrupt,
    /// Lose this many of the newest facts, and go on.
    Crash(usize),
    Resume,
    Compact,
    /// Settings change whenever the person wants.
    Mode,
    Model,
    /// A reply or a failure comes while a model is at work; a call stays begun.
    Halfway,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => Just(Event::Step),
        1 => Just(Event::Person),
        1 => Just(Event::Outside),
        1 => Just(Event::Interrupt),
        2 => (0_usize..6).prop_map(Event::Crash),
        1 => Just(Event::Resume),
        1 => Just(Event::Compact),
        1 => Just(Event::Mode),
        1 => Just(Event::Model),
        1 => Just(Event::Halfway),
    ]
}

fn reply_call() -> impl Strategy<Value = ReplyCall> {
    let named = select(vec![
        ("read_file", "{\"path\":\"a\"}"),
        ("read_file", "{\"path\":\"b\"}"),
        ("read_file", "{\"path\":"),
        ("read_file", "{\"path\":7}"),
        ("write_file", "{\"path\":\"a\",\"text\":\"x\"}"),
        ("shell", "{\"command\":\"make\"}"),
        ("shell", "{\"command\":\"sleep 5\"}"),
        ("send", "{}"),
        ("nonesuch", "{}"),
        ("web_fetch", "{\"url\":\"https://a.example\"}"),
        ("screenshot", "{}"),
        ("ask_user", "{\"questions\":[{\"question\":\"Why?\"}]}"),
        ("propose_plan", "{\"plan\":\"go\"}"),
        ("request_directory", "{\"path\":\"/srv\",\"reason\":\"data\"}"),
        ("todo", "{\"items\":[{\"text\":\"a\",\"state\":\"done\"}]}"),
        ("sleep_until", "{\"for\":\"5m\",\"note\":\"look\"}"),
        ("wake_on", "{\"job\":\"7\",\"note\":\"look\"}"),
        ("sub_agent", "{\"goal\":\"look\"}"),
    ]);
    named.prop_map(|(name, arguments)| ReplyCall {
        id: Some("c1".into()),
        name: name.into(),
        arguments: arguments.into(),
    })
}

fn act() -> impl Strategy<Value = Act> {
    let words =
        select(vec!["", " ", "done", "a longer text that says something", "{\"name\":\"grep\",\"arguments\":{}}"]);
    let finish = select(vec![Finish::Stop, Finish::ToolCalls, Finish::Length, Finish::Refusal]);
    let reply = (words, prop::collection::vec(reply_call(), 0..4), finish, any::<bool>()).prop_map(
        |(words, calls, finish, counted)| {
            let reply = Reply { text: words.into(), calls, finish, ..text("") };
            Act::Reply(if counted { used(1_500, 300, reply) } else { reply })
        },
    );
    let kinds = vec![ModelFailure::Unavailable, ModelFailure::Overflow, ModelFailure::Auth];
    let failure = (select(kinds), any::<bool>()).prop_map(|(kind, partial)| Act::Fail(kind, partial.then_some("half")));
    prop_oneof![8 => reply, 1 => failure]
}

fn answer() -> impl Strategy<Value = Answer> {
    select(vec![
        Answer::Once,
        Answer::AlwaysTool,
        Answer::AlwaysCommand,
        Answer::Deny { reason: None },
        Answer::Edited { args: json!({ "path": "c", "text": "y" }) },
        Answer::Text { text: "because".into() },
    ])
}

fn world(is_chat: bool, window: u64, attended: bool, acts: Vec<Act>, answers: Vec<Answer>) -> World {
    let agent = ow_model::AgentSpec {
        goal: (!is_chat).then(|| "do it".into()),
        budget: ow_model::Budget { tokens: Some(9_000), calls: Some(30), ..ow_model::Budget::default() },
        ..ow_model::AgentSpec::default()
    };
    let mut world = World::of(agent, 8, []);
    world.script = acts.into();
    world.answers = answers.into();
    world.asks = vec!["shell", "send"];
    world.refuses = vec!["glob"];
    world.tool = Box::new(|call| match call.tool.as_str() {
        "web_fetch" => ow_model::CallResult { outside: true, ..ok("page") },
        "shell" if call.position.0.is_multiple_of(2) => error("no rule"),
        _ => ok(&"lorem ipsum ".repeat(40)),
    });
    world.progress.window = window;
    world.progress.attended = attended;
    if is_chat {
        world.person("hello");
    }
    world
}

/// Begins what the machine asks for, and dies before its end.
fn halfway(world: &mut World) {
    match world.next() {
        AgentEffect::CallModel { purpose, reserved, .. } => {
            world.record(Fact::Asked { model: "stub:m".into(), purpose, reserved, sent: None });
        }
        AgentEffect::Execute { calls } => world.intend(&calls[0].0),
        _ => {}
    }
}

fn check(world: &World) {
    check_pairs(world.turn.history());
    let outgoing = world.turn.outgoing();
    check_pairs(&world.turn.history()[outgoing.from..]);
}

fn check_replay(world: &World) {
    let again = replay(&world.setup, &world.journal);
    assert_eq!(
        serde_json::to_string(&again).expect("serializes"),
        serde_json::to_string(&world.turn).expect("serializes"),
        "replaying gives another state"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_happens_the_history_is_well_formed_and_replay_gives_the_same_state(
        is_chat: bool,
        attended: bool,
        window in select(vec![400_u64, 1_200, 4_000, 128_000]),
        acts in prop::collection::vec(act(), 0..25),
        answers in prop::collection::vec(answer(), 0..10),
        events in prop::collection::vec(event(), 0..80),
    ) {
        let mut world = world(is_chat, window, attended, acts, answers);
        for event in events {
            match event {
                Event::Step => { world.step(); }
                Event::Person => world.person("and one more thing"),
                Event::Outside => world.say("an event </outside>", Source::Event { kind: "webhook".into() }),
                Event::Interrupt => world.record(Fact::TurnInterrupted { by: "ann".into(), partial: Some("half a".into()) }),
                Event::Crash(lost) => {
                    let kept = world.journal.len().saturating_sub(lost).max(1);
                    world.crash(kept);
                    let kept = &world.journal;
                    let parked = |position: ow_model::Position, item: ow_model::ItemId| kept.iter().any(|fact|
                        matches!(fact.fact, Fact::Parked { position: at, item: was } if at == position && was == item));
                    world.parked.retain(|(position, item)| parked(*position, *item));
                }
                Event::Resume => world.record(Fact::Resumed),
                Event::Compact => world.record(Fact::CompactionWanted),
                Event::Mode => world.record(Fact::ModeSet { mode: ow_model::Mode::Plan }),
                Event::Model => world.record(Fact::ModelSet { model: "stub:other".into() }),
                Event::Halfway => halfway(&mut world),
            }
            check(&world);
        }
        // And it comes to rest.
        check_replay(&world);
        world.then = Act::Reply(text("the end"));
        world.script.clear();
        let rest = world.run();
        check(&world);
        check_replay(&world);
        if let Rest::Ended(Outcome::Succeeded) = rest {
            prop_assert!(world.turn.last_text().is_some(), "a success without an answer");
        }
    }
}
