//! The whole way by mail, through real servers: Postfix and Dovecot on loopback, and mail signed by its sender's domain.

use ow_stories::mail_world::{World, distinct, field, readable, world};
use ow_stories::{ASKING, executions};
use ow_test_support::{id, until};

#[test]
fn a_scheduled_task_asks_by_mail_and_goes_on_by_the_answer_with_a_kill_at_each_step() {
    let Some(world) = world("ada@example.org") else { return };
    world.scratch.task("asking", &format!("[[trigger]]\ncron = \"* * * * * *\"\n{ASKING}"));
    let owd = world.start();
    let item = id(&owd.item());
    owd.owctl.ok(&["task", "pause", "asking"]);
    owd.kill();
    let owd = world.start();
    let notice = world.arrives(&[&format!("[ow:{item}]"), "To allow it, reply with `approve`", "count.sh"]);
    assert!(field(&notice, "Message-ID").starts_with(&format!("<ow.{item}.")), "{notice}");
    assert!(field(&notice, "From").contains("owd@example.net"), "{notice}");
    owd.kill();
    world.answer(&notice, 1, "approve");
    let owd = world.start();
    // Not while the call runs: nobody could tell then whether it has taken effect, and owd would ask.
    owd.run_in("asking", "succeeded");
    owd.kill();
    let owd = world.start();
    let told = world.arrives(&["In-Reply-To: <1@mail.example.org>", "approved"]);
    assert!(field(&told, "Subject").starts_with("Re: "), "{told}");
    assert_eq!(field(&told, "Auto-Submitted"), "auto-replied");
    // The answer once more, in a mail of its own: told, and nothing done.
    world.answer(&notice, 2, "approve");
    world.arrives(&["In-Reply-To: <2@mail.example.org>", "already approved by ada"]);
    let mails = world.dovecot.mails("ada");
    assert_eq!(distinct(&mails, "To allow it, reply"), 1, "one notice, whatever was killed");
    assert_eq!(distinct(&mails, "In-Reply-To: <1@mail.example.org>"), 1, "one acknowledgement");
    assert_eq!(executions(&world.scratch), 1);
    owd.stop();
}

#[test]
fn what_is_not_understood_is_answered_with_what_would_be_and_a_decision_elsewhere_is_told() {
    let Some(world) = world("ada@example.org") else { return };
    let owd = world.start();
    let item = World::asks(&owd);
    let notice = world.arrives(&[&format!("[ow:{item}]"), "To allow it"]);
    world.answer(&notice, 1, "approve, but only for staging");
    let told = world.arrives(&["In-Reply-To: <1@mail.example.org>", "Nothing was decided"]);
    assert!(readable(&told).contains("reply `approve` and nothing else"), "{told}");
    assert_eq!(id(&owd.item()), item);
    owd.owctl.ok(&["inbox", "deny", &item, "--reason", "Not on a Friday"]);
    let settled = world.arrives(&["Denied by ada over owctl", "Not on a Friday"]);
    assert_eq!(field(&settled, "In-Reply-To"), field(&notice, "Message-ID"), "in the thread of the notice");
    owd.run_in("asking", "refused");
    assert_eq!(executions(&world.scratch), 0);
}

#[test]
fn a_notice_that_does_not_arrive_is_told_in_the_local_inbox() {
    for (to, says) in [("ada@bounce.example", "no-such-mailbox"), ("refused@example.org", "refused@example.org")] {
        let Some(world) = world(to) else { return };
        let owd = world.start();
        let item = World::asks(&owd);
        let told = until("the person is told", || {
            owd.items().into_iter().find(|told| told["kind"] == "notification" && told["id"] != item.as_str())
        });
        let shown = owd.owctl.ok(&["inbox", "show", &id(&told)]);
        assert!(shown.contains(says), "{shown}");
        owd.owctl.ok(&["inbox", "approve", &item]);
        until("the run goes on", || (executions(&world.scratch) == 1).then_some(()));
    }
}

#[test]
fn who_hands_an_item_on_is_told_where_it_is() {
    let Some(world) = world("ada@example.org") else { return };
    let config = world.scratch.path().join("config/owd.toml");
    let text = std::fs::read_to_string(&config).expect("settings");
    std::fs::write(&config, format!("{text}[inboxes.ops]\nmail = [\"ops@example.org\"]\n")).expect("settings");
    let owd = world.start();
    let item = World::asks(&owd);
    let notice = world.arrives(&[&format!("[ow:{item}]"), "To allow it"]);
    owd.owctl.ok(&["inbox", "delegate", &item, "ops"]);
    let handed = world.arrives(&["It was handed on to `ops`"]);
    assert_eq!(field(&handed, "In-Reply-To"), field(&notice, "Message-ID"), "in the thread of the notice");
    until("the others are asked", || {
        world.dovecot.mails("ops").into_iter().find(|(mail, _)| readable(mail).contains("It was handed on to you"))
    });
    // What was not taken away may still be answered.
    world.answer(&notice, 1, "approve");
    world.arrives(&["In-Reply-To: <1@mail.example.org>", "is approved"]);
    owd.run_in("asking", "succeeded");
    assert_eq!(executions(&world.scratch), 1);
}
