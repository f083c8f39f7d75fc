//! Consent, seen from outside: nothing happens before an answer, and one answer is one execution.

use std::fs;

use ow_test_support::{Scratch, until};

const ASKING: &str = r#"
[[step]]
tool = "shell"
args = { argv = ["sh", "{work}/count.sh"] }
"#;

/// A home with a task that asks before it appends a line to `count`.
fn asking() -> Scratch {
    let scratch = Scratch::new();
    let count = scratch.work().join("count");
    fs::write(scratch.work().join("count.sh"), format!("echo ran >> {}\n", count.display())).expect("a script");
    scratch.task("asking", ASKING);
    scratch
}

fn executions(scratch: &Scratch) -> usize {
    fs::read_to_string(scratch.work().join("count")).map_or(0, |text| text.lines().count())
}

fn id(item: &serde_json::Value) -> String {
    item["id"].as_str().expect("an id").to_owned()
}

#[test]
fn an_approved_call_runs_once_and_a_second_approval_is_told_so() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = owd.item();
    assert_eq!(executions(&scratch), 0, "nothing happens before the answer");
    owd.owctl.ok(&["inbox", "approve", &id(&item)]);
    let run = owd.run_in("asking", "succeeded");
    assert_eq!(run["task"], "asking");
    let again = owd.owctl.run(&["inbox", "approve", &id(&item)]);
    assert_eq!(again.code, 5, "{}{}", again.stdout, again.stderr);
    assert!(again.stderr.contains("already approved by"), "{}", again.stderr);
    assert_eq!(executions(&scratch), 1);
}

#[test]
fn a_parked_run_outlives_kill_9_and_asks_nothing_anew() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = owd.item();
    owd.kill();
    let owd = scratch.start();
    let items = owd.items();
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!(id(&items[0]), id(&item));
    owd.owctl.ok(&["inbox", "approve", &id(&item)]);
    owd.run_in("asking", "succeeded");
    assert_eq!(executions(&scratch), 1);
}

#[test]
fn a_script_that_changed_since_it_was_shown_is_not_run_but_asked_again() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let first = owd.item();
    fs::write(scratch.work().join("count.sh"), "echo other >> /dev/null\n").expect("a script");
    owd.owctl.ok(&["inbox", "approve", &id(&first)]);
    let second = until("it asks again", || owd.items().into_iter().find(|item| id(item) != id(&first)));
    assert_eq!(second["kind"], "approval");
    assert_eq!(executions(&scratch), 0);
}

#[test]
fn a_denial_ends_the_run_as_refused_with_the_reason() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    owd.owctl.ok(&["inbox", "deny", &id(&owd.item()), "--reason", "not on a Monday"]);
    let run = owd.run_in("asking", "refused");
    assert!(run["message"].as_str().is_some_and(|message| message.contains("not on a Monday")), "{run}");
    assert_eq!(executions(&scratch), 0);
}

#[test]
fn an_approval_for_the_task_asks_no_second_time_until_the_step_changes() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    owd.owctl.ok(&["inbox", "approve", &id(&owd.item()), "--for-task"]);
    owd.run_in("asking", "succeeded");
    owd.owctl.ok(&["task", "run", "asking", "--wait"]);
    assert_eq!(executions(&scratch), 2);
    scratch.task("asking", &ASKING.replace("count.sh\"", "count.sh\", \"x\""));
    owd.owctl.ok(&["reload"]);
    owd.owctl.ok(&["task", "run", "asking"]);
    owd.item();
    assert_eq!(executions(&scratch), 2);
}

#[test]
fn an_unanswered_question_expires_into_no() {
    let scratch = asking();
    scratch.task("asking", &format!("expiry = \"1s\"\n{ASKING}"));
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = owd.item();
    owd.run_in("asking", "expired");
    let late = owd.owctl.run(&["inbox", "approve", &id(&item)]);
    assert_eq!(late.code, 5, "{}", late.stderr);
    assert_eq!(executions(&scratch), 0);
}

/// Nobody approves himself: a process that owd started is answered nothing.
#[test]
fn a_step_that_approves_its_own_item_gets_nothing() {
    let scratch = asking();
    let owctl = ow_test_support::binary("owctl");
    let script = format!(
        "export OWD_HOME={home}\n{owctl} inbox list --json > {work}/list 2>&1; echo $? >> {work}/codes\n\
         {owctl} inbox approve \"$1\" > {work}/approve 2>&1; echo $? >> {work}/codes\n\
         setsid {owctl} rule list > {work}/rules 2>&1; echo $? >> {work}/codes\n",
        home = scratch.path().display(),
        work = scratch.work().display(),
        owctl = owctl.display(),
    );
    fs::write(scratch.work().join("self.sh"), script).expect("a script");
    scratch.config("[policy]\nallow = [\"sh\"]\n");
    scratch.task(
        "selfish",
        "[[step]]\ntool = \"shell\"\nargs = { argv = [\"sh\", \"{work}/self.sh\", \"{{ event.item }}\"] }\n",
    );
    scratch.task("asking", &ASKING.replace("\"sh\"", "\"bash\""));
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    owd.owctl.ok(&["task", "run", "selfish", "--payload", &format!("{{\"item\": \"{item}\"}}")]);
    let asks = until("the value from outside asks", || owd.items().into_iter().find(|asked| id(asked) != item));
    owd.owctl.ok(&["inbox", "approve", &id(&asks)]);
    let run = until("the run is over", || owd.runs("selfish").into_iter().find(|run| !run["ended_at"].is_null()));
    assert_eq!(run["state"], "succeeded", "{run}");
    let codes = fs::read_to_string(scratch.work().join("codes")).expect("it ran");
    assert!(codes.lines().all(|code| code != "0"), "{codes}");
    assert_eq!(owd.items().len(), 1, "its item is still open");
    assert_eq!(executions(&scratch), 0);
}
