//! The tool `send_mail`, through real servers: Postfix and Dovecot on loopback.

use std::fs;

use ow_stories::mail_world::{World, distinct, field, readable, world};
use ow_stories::{model_config, results};
use ow_test_support::model_server::{ModelReply, ModelServer};
use ow_test_support::{Owd, Proxy, id, until};
use serde_json::json;

const REPORT: &str = r#"
roots = ["{work}"]
[[step]]
tool = "send_mail"
args = { to = ["Bob <bob@example.org>"], cc = "eve@example.org", subject = "Report for März", text = "All is well.\n.\n— owd", attachments = ["{work}/report.csv"] }
"#;

fn home() -> Option<World> {
    let world = world("ada@example.org")?;
    fs::write(world.scratch.work().join("report.csv"), "a,b\n1,2\n").expect("a file");
    world.scratch.task("report", REPORT);
    Some(world)
}

fn asks(owd: &Owd, task: &str) -> String {
    owd.owctl.ok(&["task", "run", task]);
    let item = owd.item();
    assert_eq!(item["approval"]["tool"], "send_mail", "{item}");
    id(&item)
}

fn bobs(world: &World) -> Vec<(String, bool)> {
    world.dovecot.mails("bob")
}

#[test]
fn a_mail_is_shown_in_full_and_goes_as_it_was_approved() {
    let Some(world) = home() else { return };
    let owd = world.start();
    let item = asks(&owd, "report");
    let notice = world.arrives(&[&format!("[ow:{item}]"), "To allow it"]);
    for shown in ["Bob <bob@example.org>", "eve@example.org", "Report for M=C3=A4rz", "All is well.", "report.csv"] {
        assert!(readable(&notice).contains(shown), "{shown}: {notice}");
    }
    // What was approved is that file as it was.
    fs::write(world.scratch.work().join("report.csv"), "other\n").expect("a file");
    owd.owctl.ok(&["inbox", "approve", &item]);
    let again =
        until("it is asked anew", || owd.items().into_iter().map(|item| id(&item)).find(|other| *other != item));
    assert!(bobs(&world).is_empty());
    owd.owctl.ok(&["inbox", "approve", &again]);
    let run = owd.run_in("report", "succeeded");
    let mail = until("the mail arrives", || bobs(&world).pop()).0;
    assert_eq!(field(&mail, "To"), "Bob <bob@example.org>");
    assert_eq!(field(&mail, "Auto-Submitted"), "auto-generated");
    assert_eq!(field(&mail, "Message-ID"), format!("<owd.sent.{}.0@example.net>", id(&run)));
    assert!(mail.contains("All is well.") && mail.contains("filename=\"report.csv\""), "{mail}");
    assert!(mail.contains("b3RoZXIK"), "the file as it was approved: {mail}");
    until("the copy arrives", || world.dovecot.mails("eve").pop());
    let shown = owd.owctl.ok(&["run", "show", &id(&run)]);
    assert!(shown.contains("owd.sent."), "{shown}");
    assert!(owd.owctl.ok(&["tool", "list"]).contains("send_mail"));
    assert!(owd.items().is_empty());
}

#[test]
fn a_mail_that_may_have_gone_when_owd_was_killed_is_asked_about_and_not_sent_again() {
    let Some(world) = home() else { return };
    let proxy = Proxy::start(&world.postfix.address());
    world.reach_out_by(&proxy.address());
    let owd = world.start();
    let item = asks(&owd, "report");
    world.arrives(&[&format!("[ow:{item}]")]);
    proxy.hold_answers(true);
    owd.owctl.ok(&["inbox", "approve", &item]);
    let mail = until("the server has the mail", || bobs(&world).pop()).0;
    // owd was not told of it.
    assert!(proxy.held() >= 1);
    owd.kill();
    proxy.hold_answers(false);
    let owd = world.start();
    let uncertain = until("it is asked about", || {
        owd.items().into_iter().find(|item| item["approval"]["category"] == "unknown-outcome")
    });
    let shown = owd.owctl.ok(&["inbox", "show", &id(&uncertain)]);
    assert!(shown.contains(&field(&mail, "Message-ID")), "by that it can be looked for: {shown}");
    assert_eq!(bobs(&world).len(), 1);
    owd.owctl.ok(&["inbox", "deny", &id(&uncertain)]);
    owd.run_in("report", "failed");
    assert_eq!(bobs(&world).len(), 1, "at most one");
    owd.stop();
}

#[test]
fn a_connection_that_is_lost_with_the_mail_on_its_way_is_asked_about_too() {
    let Some(world) = home() else { return };
    let proxy = Proxy::start(&world.postfix.address());
    world.reach_out_by(&proxy.address());
    let owd = world.start();
    let item = asks(&owd, "report");
    world.arrives(&[&format!("[ow:{item}]")]);
    proxy.hold_answers(true);
    owd.owctl.ok(&["inbox", "approve", &item]);
    until("the server has the mail", || (!bobs(&world).is_empty()).then_some(()));
    proxy.hold_answers(false);
    proxy.cut();
    let uncertain = until("it is asked about", || {
        owd.items().into_iter().find(|item| item["approval"]["category"] == "unknown-outcome")
    });
    // Who wants it sent all the same says so; it has the same Message-ID, and a reader shows it once.
    owd.owctl.ok(&["inbox", "approve", &id(&uncertain)]);
    owd.run_in("report", "succeeded");
    let both = until("it arrives", || Some(bobs(&world)).filter(|mails| mails.len() == 2));
    assert_eq!(distinct(&both, "All is well."), 1);
}

#[test]
fn a_mail_that_surely_did_not_go_fails_and_says_why() {
    let Some(world) = home() else { return };
    world.scratch.task("refused", &REPORT.replace("bob@example.org", "refused@example.org"));
    let owd = world.start();
    owd.owctl.ok(&["inbox", "approve", &asks(&owd, "refused")]);
    let run = owd.run_in("refused", "failed");
    let shown = owd.owctl.ok(&["run", "show", &id(&run)]);
    assert!(shown.contains("it was not sent") && shown.contains("refused@example.org"), "{shown}");
    assert!(world.dovecot.mails("eve").is_empty(), "to nobody: {shown}");
}

#[test]
fn an_agent_sends_a_mail_once_a_person_allows_it() {
    let Some(world) = home() else { return };
    let model = ModelServer::start();
    let report = world.scratch.work().join("report.csv");
    let mail = json!({
        "to": ["bob@example.org"], "subject": "Hello", "text": "From an agent", "attachments": [report],
    });
    model.push(ModelReply::calls([("send_mail", mail)]));
    model.push(ModelReply::text("It is sent."));
    let config = world.scratch.path().join("config/owd.toml");
    let known = fs::read_to_string(&config).expect("settings");
    world.scratch.config(&format!("{}\n{known}", model_config(&model, "")));
    world.scratch.task("agent", "roots = [\"{work}\"]\nmode = \"auto\"\ngoal = \"Greet bob\"\n");
    let owd = world.start();
    owd.owctl.ok(&["inbox", "approve", &asks(&owd, "agent")]);
    owd.run_in("agent", "succeeded");
    assert!(results(&model.last().json())[0].contains("owd.sent."), "{}", model.last().json());
    let mail = until("the mail arrives", || bobs(&world).pop()).0;
    assert!(mail.contains("From an agent") && mail.contains("YSxiCjEsMgo="), "{mail}");
}
