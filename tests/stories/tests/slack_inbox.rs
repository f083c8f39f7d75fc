//! An Inbox that is a conversation with the app in Slack: plain replies, digests and reminders.

use ow_stories::slack::{connect, workspace};
use ow_stories::{ASKING, asking, executions};
use ow_test_support::{Owd, Scratch, Slack, id, until};
use serde_json::Value;

/// A home whose items are told to ada alone.
fn home(slack: &Slack, more: &str) -> Scratch {
    let scratch = asking();
    connect(&scratch, slack, "", &format!("slack = [\"UADA\"]\n{more}"));
    scratch
}

/// Starts a run that asks, and waits until ada is told of it; the item, and the conversation with her.
fn asked(owd: &Owd, slack: &Slack, task: &str) -> (String, String) {
    owd.owctl.ok(&["task", "run", task]);
    let item = until("the item", || owd.items().iter().find(|item| item["task"] == task).map(id));
    let channel = until("a conversation", || slack.direct("UADA"));
    slack.wait_for_message(&channel, |message| says(message, &item));
    // owd has heard of it, too.
    until("it is told", || {
        let shown = owd.owctl.json(&["inbox", "show", &item]);
        (shown["deliveries"][0]["state"] == "sent").then_some(())
    });
    (item, channel)
}

fn says(message: &Value, words: &str) -> bool {
    message["text"].as_str().is_some_and(|text| text.contains(words))
}

#[test]
fn a_plain_reply_decides_the_one_item_that_waits_in_a_conversation_with_the_app() {
    let slack = workspace();
    let scratch = home(&slack, "");
    let owd = scratch.start();
    slack.wait_for_connection();
    let (item, channel) = asked(&owd, &slack, "asking");
    // A doubt is no yes, and what begins as no answer is none.
    slack.writes_to_bot("UADA", "approve, but only on Monday");
    slack.wait_for_message(&channel, |message| says(message, "Nothing was decided") && says(message, "To allow it"));
    assert_eq!(executions(&scratch), 0);
    slack.writes_to_bot("UADA", "approve");
    owd.run_in("asking", "succeeded");
    slack.wait_for_message(&channel, |message| says(message, "Done: "));
    slack.wait_for_message(&channel, |message| says(message, "Approved by ada over Slack"));
    let shown = owd.owctl.json(&["inbox", "show", &item]);
    assert_eq!((&shown["resolution"]["by"], &shown["resolution"]["surface"]), (&"ada".into(), &"slack".into()));
    // Nothing waits any more: the second to answer is told who was the first.
    slack.writes_to_bot("UADA", "deny");
    slack.wait_for_message(&channel, |message| says(message, "already approved by ada"));
    assert_eq!((executions(&scratch), owd.items().len()), (1, 0));
}

#[test]
fn with_several_waiting_the_app_asks_which_is_meant() {
    let slack = workspace();
    let scratch = home(&slack, "");
    scratch.task("other", ASKING);
    let owd = scratch.start();
    slack.wait_for_connection();
    let (one, channel) = asked(&owd, &slack, "asking");
    let (two, _) = asked(&owd, &slack, "other");
    slack.writes_to_bot("UADA", "approve");
    slack.wait_for_message(&channel, |message| {
        says(message, "2 items wait here") && says(message, &one) && says(message, &two)
    });
    assert_eq!((executions(&scratch), owd.items().len()), (0, 2), "nothing is decided");
    slack.writes_to_bot("UADA", &format!("deny [ow:{two}]"));
    owd.run_in("other", "refused");
    // Now there is one.
    slack.writes_to_bot("UADA", "Approved, thanks!");
    owd.run_in("asking", "succeeded");
    assert_eq!(executions(&scratch), 1);
}

#[test]
fn an_answer_to_the_app_where_nothing_waits_starts_no_work() {
    let slack = workspace();
    let scratch = home(&slack, "");
    let config = scratch.path().join("config/owd.toml");
    let text = std::fs::read_to_string(&config).expect("settings");
    let text = text.replacen("slack = [\"UADA\"]\n", "slack = [\"UADA\"]\nstart-work = true\n", 1);
    std::fs::write(&config, text).expect("written");
    let owd = scratch.start();
    slack.wait_for_connection();
    let (channel, _) = slack.writes_to_bot("UADA", "approve");
    slack.wait_for_message(&channel, |message| says(message, "nothing waits here"));
    let sessions = owd.owctl.json(&["session", "list"]);
    assert_eq!(sessions["rows"].as_array().map(Vec::len), Some(0), "{sessions}");
}

#[test]
fn who_may_not_answer_decides_nothing_by_a_plain_reply() {
    let slack = workspace();
    let scratch = home(&slack, "");
    let owd = scratch.start();
    slack.wait_for_connection();
    let (_, channel) = asked(&owd, &slack, "asking");
    let (eves, _) = slack.writes_to_bot("UEVE", "approve");
    slack.wait_for_message(&eves, |message| says(message, "may not start work"));
    assert_ne!(eves, channel);
    assert_eq!((executions(&scratch), owd.items().len()), (0, 1));
}

#[test]
fn what_comes_within_the_time_of_a_digest_is_one_message_whose_buttons_decide() {
    let slack = workspace();
    let scratch = home(&slack, "digest = \"5s\"");
    scratch.task("other", ASKING);
    let owd = scratch.start();
    slack.wait_for_connection();
    for task in ["asking", "other"] {
        owd.owctl.ok(&["task", "run", task]);
    }
    until("both ask", || (owd.items().len() == 2).then_some(()));
    let channel = until("a conversation", || slack.direct("UADA"));
    let digest = slack.wait_for_message(&channel, |message| says(message, "2 items in the Inbox"));
    let told = slack.messages(&channel).into_iter().filter(|message| message["bot_id"].is_string()).count();
    assert_eq!(told, 1, "one message");
    let first = digest["blocks"].as_array().into_iter().flatten().find(|block| block["type"] == "actions");
    let value = first.and_then(|block| block["elements"][0]["value"].as_str()).expect("a button").to_owned();
    let item = value.split('/').next().expect("an item").to_owned();
    slack.presses(&channel, "UADA", digest["ts"].as_str().expect("a ts"), "once");
    until("it is decided", || (owd.owctl.json(&["inbox", "show", &item])["resolution"]["by"] == "ada").then_some(()));
    // The other waits, with its buttons.
    until("the digest shows it", || {
        let now = slack.message(&channel, digest["ts"].as_str()?)?;
        let blocks = now["blocks"].to_string();
        (blocks.contains("Approved by ada over Slack") && blocks.matches("\"actions\"").count() == 1).then_some(())
    });
    assert_eq!(owd.items().len(), 1);
    // A plain reply means the one that is left.
    slack.writes_to_bot("UADA", "no");
    until("nothing waits", || owd.items().is_empty().then_some(()));
    assert_eq!(executions(&scratch), 1);
}

#[test]
fn what_stays_unanswered_is_reminded_of_in_its_thread_where_a_reply_answers_it() {
    let slack = workspace();
    let scratch = home(&slack, "[inbox]\nreminder = \"2s\"");
    let owd = scratch.start();
    slack.wait_for_connection();
    let (item, channel) = asked(&owd, &slack, "asking");
    let reminder = slack.wait_for_message(&channel, |message| says(message, "still waits for an answer"));
    let thread = reminder["thread_ts"].as_str().expect("in a thread").to_owned();
    let notice = slack.message(&channel, &thread).expect("its first message");
    assert!(says(&notice, &item), "{notice}");
    slack.replies(&channel, "UADA", &thread, "deny. Not this week");
    owd.run_in("asking", "refused");
    let shown = owd.owctl.json(&["inbox", "show", &item]);
    assert_eq!(shown["resolution"]["answer"]["text"], "Not this week", "{shown}");
}
