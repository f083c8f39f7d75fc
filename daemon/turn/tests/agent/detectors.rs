//! Loop detectors, as sequences of calls with their results.

use ow_model::{
    CallErrorKind, CallResult, Detector, Fact, Failure, LoopLimits, Outcome, Patience, Purpose, Reply, ReplyCall,
};
use serde_json::{Value, json};

use crate::support::*;

/// One step: calls of one reply, with their results.
type Step = Vec<(ReplyCall, CallResult)>;

fn single(name: &str, args: &Value, result: CallResult) -> Step {
    vec![(call(name, args), result)]
}

/// What the detectors say of these steps, by the number of calls of a model at which they say it; true: stop.
fn verdicts(steps: Vec<Step>) -> Vec<(usize, String, bool)> {
    run(steps).1
}

fn run(steps: Vec<Step>) -> (Rest, Vec<(usize, String, bool)>, World) {
    run_with(None, steps)
}

fn run_with(limits: Option<LoopLimits>, steps: Vec<Step>) -> (Rest, Vec<(usize, String, bool)>, World) {
    let replies: Vec<Reply> = steps.iter().map(|step| calls(step.iter().map(|(call, _)| call.clone()))).collect();
    let mut results: Vec<CallResult> = steps.into_iter().flatten().map(|(_, result)| result).collect();
    results.reverse();
    let agent = ow_model::AgentSpec { goal: Some("do it".into()), ..ow_model::AgentSpec::default() };
    let mut world = World::of(agent, 500, replies);
    let by_position: Vec<CallResult> = results.into_iter().rev().collect();
    world.tool = Box::new(move |call| by_position[call.position.0 as usize].clone());
    if let Some(limits) = limits {
        world.record(Fact::LoopLimitsSet { limits });
    }
    let rest = world.run();
    let mut found = vec![];
    let mut replied = 0;
    for recorded in &world.journal {
        match &recorded.fact {
            Fact::Replied { .. } => replied += 1,
            Fact::LoopFound { detector, stop, .. } => found.push((replied, detector.clone(), *stop)),
            _ => {}
        }
    }
    (rest, found, world)
}

fn says(steps: Vec<Step>, expected: &[(usize, &str, bool)]) {
    let found = verdicts(steps);
    let found: Vec<(usize, &str, bool)> = found.iter().map(|(at, name, stop)| (*at, name.as_str(), *stop)).collect();
    assert_eq!(found, expected);
}

fn repeat(count: usize, step: impl Fn(usize) -> Step) -> Vec<Step> {
    (0..count).map(step).collect()
}

fn shell_step(command: &str, result: CallResult) -> Step {
    single("shell", &json!({ "command": command }), result)
}

#[test]
fn the_same_call_twice_in_a_row_is_a_nudge_and_the_third_a_stop() {
    let expected = [(2, "consecutive-duplicate", false), (3, "consecutive-duplicate", true)];
    says(repeat(3, |_| single("read_file", &json!({ "path": "a.txt" }), ok("same"))), &expected);
    // However it is written.
    let spaced = |index: usize| if index == 1 { "make   all" } else { "make all" };
    says(repeat(3, |index| shell_step(spaced(index), ok("same"))), &expected);
}

#[test]
fn a_file_that_is_read_until_it_changes_is_no_loop_as_long_as_it_does() {
    says(repeat(6, |index| single("read_file", &json!({ "path": "log" }), ok(&format!("{index} lines")))), &[]);
    // A picture is what it shows.
    let picture = |index: usize| {
        let hash = ow_model::BlobHash::of(&[u8::try_from(index).expect("small")]);
        let image = json!({ "name": "a.png", "media-type": "image/png", "bytes": 1, "hash": hash });
        CallResult::ok(json!({ "images": [image] }))
    };
    says(repeat(6, |index| single("read_file", &json!({ "path": "a.png" }), picture(index))), &[]);
}

#[test]
fn a_stop_makes_one_last_call_without_tools_and_names_detector_count_and_evidence() {
    let (rest, _, world) = run(repeat(6, |_| shell_step("make", ok("same"))));
    let Rest::Ended(Outcome::Failed { failure: Failure::Loop, message }) = rest else { panic!("{rest:?}") };
    assert!(message.contains("consecutive-duplicate") && message.contains("3 times in a row"), "{message}");
    let last = world.requests.last().expect("asked");
    assert_eq!((last.purpose, last.with_tools), (Purpose::Final, false));
    assert_eq!(world.executed.len(), 3);
}

#[test]
fn repeats_in_between_others_count_within_the_window() {
    let step = |index: usize| {
        let name = ["a", "b"][index % 2];
        single("job_status", &json!({ "id": name }), ok(name))
    };
    let found = verdicts(repeat(5, step));
    assert_eq!(found, [(5, "exact-duplicate".to_owned(), false)]);
    // 20 calls later it is forgotten.
    let far = |index: usize| {
        let path = if index.is_multiple_of(21) { "x".to_owned() } else { format!("{index}") };
        vec![(read(&path), ok(&path)), (call("grep", &json!({ "pattern": index })), ok(&format!("hit {index}")))]
    };
    let found = verdicts(repeat(64, far));
    assert!(found.iter().all(|(_, name, _)| name != "exact-duplicate"), "{found:?}");
}

#[test]
fn a_poll_whose_answer_changes_is_no_loop_and_one_that_does_not_is_nudged() {
    let poll = |same: bool| {
        move |index: usize| {
            let status = if same { 0 } else { index * 10 };
            single("job_status", &json!({ "id": 7 }), ok(&format!("{status}%")))
        }
    };
    let found = verdicts(repeat(30, poll(false)));
    assert!(found.iter().all(|(_, _, stop)| !stop), "{found:?}");
    assert!(!verdicts(repeat(2, poll(true))).is_empty());
}

#[test]
fn an_edit_and_test_cycle_with_changing_output_is_no_loop() {
    let cycle = |index: usize| {
        if index.is_multiple_of(2) {
            shell_step("go test", error(&format!("{} tests fail", 50 - index)))
        } else {
            vec![(write("a.go", &format!("{index}")), ok("written"))]
        }
    };
    let found = verdicts(repeat(20, cycle));
    assert!(found.iter().all(|(_, _, stop)| !stop), "{found:?}");
    let found = verdicts(repeat(20, |_| shell_step("go test", error("1 test fails"))));
    assert!(found.iter().any(|(_, _, stop)| *stop));
}

#[test]
fn a_tool_that_keeps_failing_is_nudged_at_four_with_the_last_error() {
    let (_, found, world) =
        run(repeat(4, |index| shell_step(&format!("try {index}"), error(&format!("error {index}")))));
    assert_eq!(found, [(4, "same-tool-error".to_owned(), false)]);
    let evidence = world.journal.iter().find_map(|fact| match &fact.fact {
        Fact::LoopFound { evidence, .. } => Some(evidence.clone()),
        _ => None,
    });
    assert!(evidence.is_some_and(|evidence| evidence.contains("error 3")));
    let found = verdicts(repeat(8, |index| shell_step(&format!("try {index}"), error(&format!("error {index}")))));
    assert!(found.last().expect("found").2, "{found:?}");
}

#[test]
fn the_same_question_in_other_words_is_nudged_at_three() {
    let asked = ["rust 2026 release", "latest rust release", "rust release news", "Release, Rust"];
    let found =
        verdicts(repeat(4, |index| single("web_search", &json!({ "query": asked[index] }), ok(&format!("{index}")))));
    assert_eq!(found[0], (3, "family-no-progress".to_owned(), false));
    assert!(found.iter().all(|(_, _, stop)| !stop), "{found:?}");
    let found =
        verdicts(repeat(7, |index| single("web_search", &json!({ "query": "rust release", "n": index }), ok("x"))));
    assert!(found.last().expect("found").2, "{found:?}");
}

#[test]
fn searches_in_a_row_are_nudged_at_three_and_stopped_at_five_and_a_read_resets() {
    let search =
        |index: usize| single(["grep", "glob"][index % 2], &json!({ "pattern": index }), ok(&format!("hit {index}")));
    let found = verdicts(repeat(5, search));
    let stops: Vec<bool> = found.iter().map(|(_, _, stop)| *stop).collect();
    assert_eq!((found[0].0, stops), (3, vec![false, false, true]));
    let mut steps = repeat(2, search);
    steps.push(vec![(read("a"), ok("text"))]);
    steps.extend(repeat(2, |index| search(index + 5)));
    says(steps, &[]);
}

#[test]
fn searches_of_one_reply_are_one_step() {
    let all = (0..5).map(|index| (call("grep", &json!({ "pattern": index })), ok(&format!("hit {index}")))).collect();
    says(vec![all], &[]);
}

#[test]
fn eight_calls_of_one_tool_are_said_once_and_progress_resets_the_count_of_nudges() {
    let found = verdicts(repeat(16, |index| shell_step(&format!("step {index}"), ok(&format!("{index}")))));
    assert_eq!(found, [(8, "no-progress".to_owned(), false)]);
}

#[test]
fn three_nudges_in_a_row_are_a_stop() {
    let step = |index: usize| single("job_status", &json!({ "id": index % 3 }), ok(&format!("{}", index % 3)));
    let found = verdicts(repeat(12, step));
    let stops: Vec<bool> = found.iter().map(|(_, _, stop)| *stop).collect();
    assert_eq!(stops, [false, false, true], "{found:?}");
}

#[test]
fn sleeping_is_nudged_at_two_and_stopped_at_four_whatever_came_before() {
    let mut steps = repeat(8, |index| shell_step(&format!("step {index}"), ok(&format!("{index}"))));
    steps.extend(repeat(4, |index| shell_step(&format!("sleep {}", index + 1), ok(""))));
    let found = verdicts(steps);
    assert!(found.last().expect("found").2, "{found:?}");
    assert!(
        verdicts(repeat(2, |index| shell_step(&format!("sleep {index}"), ok(""))))
            .iter()
            .any(|(_, name, _)| name == "sleep")
    );
    says(repeat(3, |index| shell_step(&format!("cat sleep.log {index}"), ok(&format!("{index}")))), &[]);
}

#[test]
fn a_look_at_the_screen_after_data_is_nudged_once() {
    let look = |index: usize| single("screenshot", &json!({ "n": index }), ok(&format!("picture {index}")));
    let steps = vec![single("browser", &json!({ "do": "read" }), ok("data")), look(1), look(2)];
    says(steps, &[(2, "tool-mode-switch", false)]);
    let steps = vec![shell_step("a", error("no")), shell_step("b", ok("yes")), look(1)];
    says(steps, &[(3, "success-after-error", false)]);
    says(repeat(12, look), &[]);
    assert!(!verdicts(repeat(2, |_| look(1))).is_empty(), "equal calls count for a screen too");
}

#[test]
fn a_host_that_does_not_answer_is_nudged_at_three_and_stopped_at_five() {
    let lost = |index: usize| {
        let args = json!({ "url": "https://a.example/x", "try": index });
        let kind = if index.is_multiple_of(2) { CallErrorKind::TimedOut } else { CallErrorKind::Unreachable };
        let other = vec![(write(&format!("{index}"), "x"), ok(&format!("{index}")))];
        [single("web_fetch", &args, CallResult::failed(kind, format!("no answer {index}"))), other]
    };
    let steps: Vec<Step> = (0..5).flat_map(lost).collect();
    let found = verdicts(steps);
    let storm: Vec<(usize, bool)> =
        found.iter().filter(|(_, name, _)| name == "network-retry-storm").map(|(at, _, stop)| (*at, *stop)).collect();
    assert_eq!(storm, [(5, false), (7, false), (9, true)], "{found:?}");
}

fn limits(tool: &str, set: &[(Detector, Patience)]) -> LoopLimits {
    LoopLimits([(tool.to_owned(), set.iter().copied().collect())].into())
}

#[test]
fn a_person_sets_by_tool_with_how_many_calls_a_detector_bears() {
    let polls = |count| repeat(count, |_| single("job_status", &json!({ "id": 7 }), ok("running")));
    let found = |limits: LoopLimits, steps| run_with(Some(limits), steps).1;
    let is = |found: &[(usize, String, bool)], expected: &[(usize, &str, bool)]| {
        let found: Vec<_> = found.iter().map(|(at, name, stop)| (*at, name.as_str(), *stop)).collect();
        assert_eq!(found, expected);
    };
    let until = |nudge, stop| Patience::Until { nudge, stop };
    let only = |set: &[(Detector, Patience)]| {
        let others = Detector::OF_CALLS.into_iter().map(|detector| (detector, Patience::Off));
        limits("job_status", &others.chain(set.iter().copied()).collect::<Vec<_>>())
    };
    let later = only(&[(Detector::ConsecutiveDuplicate, until(5, Some(6)))]);
    is(&found(later, polls(8)), &[(5, "consecutive-duplicate", false), (6, "consecutive-duplicate", true)]);
    // Without a number to stop at, three nudges in a row still do.
    let nudges = only(&[(Detector::ExactDuplicate, until(4, None))]);
    let expected = [(4, "exact-duplicate", false), (5, "exact-duplicate", false), (6, "exact-duplicate", true)];
    is(&found(nudges, polls(8)), &expected);
    is(&found(only(&[]), polls(30)), &[]);
    // Another tool keeps what detectors have by themselves.
    let expected = [(2, "consecutive-duplicate", false), (3, "consecutive-duplicate", true)];
    let reads = repeat(4, |_| single("read_file", &json!({ "path": "a.txt" }), ok("same")));
    is(&found(only(&[]), reads), &expected);
}

#[test]
fn what_is_set_of_the_detectors_is_judged_by_as_the_journal_has_it() {
    let set = limits("*", &[(Detector::ConsecutiveDuplicate, Patience::Until { nudge: 7, stop: Some(7) })]);
    let steps = repeat(9, |index| single("job_status", &json!({ "id": 7 }), ok(&format!("{}", index / 8))));
    let (_, _, world) = run_with(Some(set.clone()), steps);
    assert_eq!(world.turn.loop_limits(), &set);
    for facts in 0..=world.journal.len() {
        let some = &world.journal[..facts];
        let (once, again) = (replay(&world.setup, some), replay(&world.setup, some));
        assert_eq!(serde_json::to_string(&once).expect("a state"), serde_json::to_string(&again).expect("a state"));
    }
    let whole = replay(&world.setup, &world.journal);
    assert_eq!(serde_json::to_string(&whole).expect("a state"), serde_json::to_string(&world.turn).expect("a state"));
}
