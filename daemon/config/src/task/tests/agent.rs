use expect_test::expect;
use ow_model::{Budget, Detector, Patience, Span};

use super::{faults, good, key_faults};
use crate::{parse_task, to_toml};

const AGENT: &str = r#"
title = "Triage"
goal = "Sort the mail of {{ slot.date }}"
model = "anthropic:claude-sonnet-4-5"
failover = ["openai:gpt-5.5"]
instructions = "Answer nobody."
tools = ["write_file", "shell"]
max-iterations = 20
budget = { tokens = 200000, cost = "0.50", calls = 30, time = "20m" }

[loops.shell]
sleep = "off"
no-progress = [10]

[loops."*"]
same-tool-error = [3, 9]
"#;

#[test]
fn a_task_with_a_goal_is_an_agents() {
    let agent = good(AGENT).agent.expect("an agent");
    assert_eq!(agent.goal.as_deref(), Some("Sort the mail of {{ slot.date }}"));
    assert_eq!(agent.model.as_deref(), Some("anthropic:claude-sonnet-4-5"));
    assert_eq!(agent.failover, ["openai:gpt-5.5"]);
    assert_eq!(agent.max_iterations, Some(20));
    let budget = Budget {
        tokens: Some(200_000),
        cost_micros: Some(500_000),
        calls: Some(30),
        time: Some(Span::from_secs(1200)),
    };
    assert_eq!(agent.budget, budget);
    assert_eq!(agent.loops.of("shell", Detector::NoProgress), Some(Patience::Until { nudge: 10, stop: None }));
    assert_eq!(
        agent.loops.of("write_file", Detector::SameToolError),
        Some(Patience::Until { nudge: 3, stop: Some(9) })
    );
}

#[test]
fn an_agents_task_reads_back_as_written() {
    let spec = good(AGENT);
    let again = parse_task(&spec.name, &to_toml(&spec), None, &super::defaults(), &super::Tools, super::now());
    assert_eq!(again.expect("it reads back"), spec);
}

#[test]
fn what_an_agent_is_told_holds_nothing_from_outside() {
    faults(
        "goal = \"do what {{ event.text }} says\"",
        expect![[r#"
            tasks.d/reports.toml:1:8: goal = "do what {{ event.text }} says": a goal cannot hold `event.text`; use values of `task`, `slot` and `run`; what an event brought is told to the agent by itself, as data
        "#]],
    );
}

#[test]
fn a_task_has_a_goal_or_steps() {
    key_faults(
        "goal = \"both\"",
        expect![[r#"
        tasks.d/reports.toml:1:8: goal: a task has a goal or steps, not both; keep the goal or the steps; an `after` trigger chains two tasks
    "#]],
    );
    key_faults(
        "model = \"openai:gpt-5.5\"",
        expect![[r#"
        tasks.d/reports.toml:1:9: model: means something only for an agent; add a `goal`, or remove it
    "#]],
    );
}

#[test]
fn faults_of_an_agent_are_named() {
    faults(
        "goal = \"x\"\n[loops]\nsleep = [2]\n[loops.shel]\nsleep = \"off\"\n[loops.write_file]\nsleep = [4, 2]",
        expect![[r#"
            tasks.d/reports.toml:3:9: loops.sleep: a detector where a tool belongs; name the tool first: `[loops.shell]`, or `[loops."*"]` for all; there `sleep = …`
            tasks.d/reports.toml:4:1: loops.shel: there is no such tool; did you mean `shell`?
            tasks.d/reports.toml:7:9: loops.write_file.sleep = [4, 2]: would end the turn at 2 calls, before the model is told at 4; let the second number be no smaller than the first
        "#]],
    );
    faults(
        "goal = \" \"",
        expect![[r#"
        tasks.d/reports.toml:1:8: goal: not a text of 1 to 100000 bytes; say what the agent is to reach
    "#]],
    );
    faults(
        "goal = \"x\"\nmodel = \"a model\"",
        expect![[r#"
        tasks.d/reports.toml:2:9: model = "a model": not a model's name; write `provider:model`; `owctl model list` shows some
    "#]],
    );
    faults(
        "goal = \"x\"\ntools = [\"shel\"]",
        expect![[r#"
        tasks.d/reports.toml:2:10: tools = "shel": unknown tool; did you mean "shell"?
    "#]],
    );
    faults(
        "goal = \"x\"\nbudget = { cost = \"0\" }",
        expect![[r#"
        tasks.d/reports.toml:2:19: budget.cost = "0": not an amount of money above 0; write an amount of the price table's currency, as `"0.50"`
    "#]],
    );
    faults(
        "goal = \"x\"\nbudget = { cost = \"1.2345678\", tokens = 0 }",
        expect![[r#"
        tasks.d/reports.toml:2:19: budget.cost = "1.2345678": not an amount of money above 0; write an amount of the price table's currency, as `"0.50"`
        tasks.d/reports.toml:2:41: budget.tokens = 0: not between 1 and 4294967295; choose a number within these bounds
    "#]],
    );
}
