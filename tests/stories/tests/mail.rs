//! Answers by mail, handed over by a mail server of this machine: `owctl inbox deliver`.

use std::fs;
use std::os::unix::fs::MetadataExt;

use ow_stories::{asking, executions};
use ow_test_support::{Owctl, Owd, Scratch, id};
use serde_json::Value;

const RELAY: &str = "mx.example.net";

/// A home in which ada, who runs it, and bob, whose inbox is another, have addresses.
fn home() -> Scratch {
    let scratch = asking();
    let uid = fs::metadata(scratch.path()).expect("a home").uid();
    scratch.config(&format!(
        "[mail]\nauthserv-id = \"{RELAY}\"\n[people.ada]\nuids = [{uid}]\nmail = [\"ada@example.org\"]\n\
         [people.bob]\nmail = [\"bob@example.org\"]\ninboxes = [\"other\"]\n[inboxes.other]\n"
    ));
    scratch
}

/// A reply to an item's notice, as the relay lets it through.
fn reply(from: &str, item: &str, text: &str) -> String {
    let domain = from.split('@').nth(1).expect("an address");
    format!(
        "Authentication-Results: {RELAY}; dmarc=pass header.from={domain}\nFrom: Some One <{from}>\nTo: owd@example.net\n\
         Subject: Re: Approval needed [ow:{item}]\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n{text}\n\n\
         On 3/3/26 09:12, owd wrote:\n> Reply APPROVE or DENY\n> [ow:{item}]\n"
    )
}

fn deliver(scratch: &Scratch, owctl: &Owctl, mail: &str) -> Value {
    let file = scratch.path().join("mail.eml");
    fs::write(&file, mail).expect("a mail");
    owctl.json(&["inbox", "deliver", file.to_str().expect("a path")])
}

fn parked(owd: &Owd) -> String {
    owd.owctl.ok(&["task", "run", "asking"]);
    id(&owd.item())
}

#[test]
fn an_approval_by_mail_lets_the_run_go_on_once_and_a_second_answer_is_told() {
    let scratch = home();
    let owd = scratch.start();
    let item = parked(&owd);
    let done =
        deliver(&scratch, &owd.owctl, &reply("ada@example.org", &item, "Approved, thanks.\n\nSent from my iPhone"));
    assert_eq!((done["outcome"].as_str(), done["item"].as_str()), (Some("done"), Some(item.as_str())), "{done}");
    owd.run_in("asking", "succeeded");
    let shown = owd.owctl.json(&["inbox", "show", &item]);
    assert_eq!(shown["resolution"]["surface"], "mail", "{shown}");
    assert_eq!(shown["resolution"]["by"], "ada", "{shown}");
    for text in ["approve", "deny", "what was that?"] {
        let late = deliver(&scratch, &owd.owctl, &reply("ada@example.org", &item, text));
        assert_eq!(late["outcome"], "already-decided", "{late}");
        assert!(late["told"].as_str().is_some_and(|told| told.contains("already approved by ada at")), "{late}");
    }
    assert_eq!(executions(&scratch), 1);
}

#[test]
fn a_denial_by_mail_refuses_the_call_and_tells_why() {
    let scratch = home();
    let owd = scratch.start();
    let item = parked(&owd);
    let done = deliver(&scratch, &owd.owctl, &reply("ada@example.org", &item, "Nein. Erst ab Montag."));
    assert_eq!(done["decision"], "deny", "{done}");
    owd.run_in("asking", "refused");
    let shown = owd.owctl.json(&["inbox", "show", &item]);
    assert_eq!(shown["resolution"]["answer"]["text"], "Erst ab Montag.", "{shown}");
    assert_eq!(executions(&scratch), 0);
}

#[test]
fn mail_that_is_no_answer_leaves_the_item_as_it_was_and_is_told_apart() {
    let scratch = home();
    let owd = scratch.start();
    let item = parked(&owd);
    let right = reply("ada@example.org", &item, "approve");
    for (outcome, mail) in [
        ("not-understood", reply("ada@example.org", &item, "approve, but only for staging")),
        ("not-understood", reply("ada@example.org", &item, "")),
        ("not-entitled", reply("bob@example.org", &item, "approve")),
        ("not-entitled", reply("eve@example.org", &item, "approve")),
        ("not-entitled", right.replace("dmarc=pass", "dmarc=fail")),
        ("not-entitled", right.replace(RELAY, "mx.bad.example")),
        ("no-answer", right.replace("Subject: Re:", "Subject: Fwd:")),
        ("no-answer", right.replace("To: owd", "Auto-Submitted: auto-replied\nTo: owd")),
        ("no-item", reply("ada@example.org", "zzzzzzzzzzzzzzzz", "approve")),
        ("no-item", right.replace(&format!("[ow:{item}]"), "")),
    ] {
        let found = deliver(&scratch, &owd.owctl, &mail);
        assert_eq!(found["outcome"], outcome, "{mail}\n{found}");
        assert_eq!(found["decision"], "none", "{found}");
        let silent = matches!(outcome, "not-entitled" | "no-answer");
        assert_eq!(found["told"].is_null(), silent, "{found}");
        assert_eq!(id(&owd.item()), item);
    }
    let later = owd.owctl.run(&["inbox", "deliver", "--json", &{
        let file = scratch.path().join("later.eml");
        fs::write(&file, right.replace("dmarc=pass", "dmarc=temperror")).expect("a mail");
        file.display().to_string()
    }]);
    assert_eq!(later.code, 75, "{}{}", later.stdout, later.stderr);
    let done = deliver(&scratch, &owd.owctl, &right);
    assert_eq!(done["outcome"], "done", "{done}");
    owd.run_in("asking", "succeeded");
    assert_eq!(executions(&scratch), 1);
}

#[test]
fn an_answer_outlives_kill_9_and_mail_for_a_stopped_owd_is_to_come_again() {
    let scratch = home();
    let owd = scratch.start();
    let item = parked(&owd);
    owd.kill();
    let file = scratch.path().join("mail.eml");
    fs::write(&file, reply("ada@example.org", &item, "approve")).expect("a mail");
    let file = file.display().to_string();
    let down = scratch.owctl().run(&["inbox", "deliver", &file]);
    assert_eq!(down.code, 75, "a mail server keeps it: {}{}", down.stdout, down.stderr);
    let owd = scratch.start();
    owd.owctl.ok(&["inbox", "deliver", &file]);
    owd.kill();
    let owd = scratch.start();
    owd.run_in("asking", "succeeded");
    let again = owd.owctl.json(&["inbox", "deliver", &file]);
    assert_eq!(again["outcome"], "already-decided", "{again}");
    assert_eq!(executions(&scratch), 1);
}

#[test]
fn without_people_or_a_relay_nobodys_mail_counts() {
    let scratch = asking();
    let owd = scratch.start();
    let item = parked(&owd);
    let found = deliver(&scratch, &owd.owctl, &reply("ada@example.org", &item, "approve"));
    assert_eq!(found["outcome"], "not-entitled", "{found}");
    assert_eq!(id(&owd.item()), item);
}

#[test]
fn what_no_mail_can_show_whole_is_refused_by_mail_but_not_approved() {
    let scratch = home();
    let long = "x".repeat(70_000);
    scratch.task("long", &ow_stories::ASKING.replace("count.sh\"", &format!("count.sh\", \"{long}\"")));
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "long"]);
    let item = id(&owd.item());
    let found = deliver(&scratch, &owd.owctl, &reply("ada@example.org", &item, "approve"));
    assert_eq!(found["outcome"], "not-understood", "{found}");
    assert!(found["told"].as_str().is_some_and(|told| told.contains(&format!("owctl inbox show {item}"))), "{found}");
    let found = deliver(&scratch, &owd.owctl, &reply("ada@example.org", &item, "deny"));
    assert_eq!(found["outcome"], "done", "{found}");
    assert_eq!(executions(&scratch), 0);
}

#[test]
fn a_task_runs_on_mail_that_its_filter_lets_through_once_and_the_rest_is_read_as_ever() {
    let scratch = home();
    let task = |filter: &str| {
        format!(
            "[[trigger]]\nmail = {filter}\n[[step]]\ntool = \"notify\"\nargs = {{ text = \"{{{{ event.from }}}}: {{{{ event.subject }}}} / {{{{ event.text }}}}\" }}\n"
        )
    };
    scratch.task("invoices", &task("{ from = [\"@supplier.example\"], subject = \"invoice*\" }"));
    scratch.task("list", &task("{ list = \"team.example.net\" }"));
    let owd = scratch.start();
    let mail = |from: &str, subject: &str, head: &str| {
        format!(
            "Authentication-Results: {RELAY}; dmarc=pass header.from=supplier.example\n{head}From: {from}\nTo: owd@example.net\n\
             Subject: {subject}\nMessage-ID: <{}@x>\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n42 euros\n",
            subject.len()
        )
    };
    let takes = |mail: &str| deliver(&scratch, &owd.owctl, mail)["outcome"].as_str().expect("a word").to_owned();
    let invoice = mail("bob@supplier.example", "Invoice 7", "");
    assert_eq!(takes(&invoice), "event");
    owd.run_in("invoices", "succeeded");
    let told = owd.items().into_iter().find(|item| item["kind"] == "notification").expect("a notice");
    let shown = owd.owctl.ok(&["inbox", "show", &id(&told)]);
    assert!(shown.contains("bob@supplier.example: Invoice 7 / 42 euros"), "{shown}");
    assert_eq!(takes(&invoice), "event", "it is known");
    for (mail, outcome) in [
        (mail("bob@supplier.example", "About invoice 7", ""), "not-entitled"),
        (mail("bob@other.example", "Invoice 8", ""), "not-entitled"),
        (invoice.replace("dmarc=pass", "dmarc=fail"), "not-entitled"),
        (invoice.replace("<9@x>", "<ow.x.1@y>"), "not-entitled"),
        (mail("anybody@other.example", "Hello", "List-Id: The team <team.example.net>\n"), "event"),
    ] {
        assert_eq!(takes(&mail), outcome, "{mail}");
    }
    let file = scratch.path().join("later.eml");
    fs::write(&file, invoice.replace("dmarc=pass", "dmarc=temperror")).expect("a mail");
    let later = owd.owctl.run(&["inbox", "deliver", &file.display().to_string()]);
    assert_eq!(later.code, 75, "who sent it is not known yet: {}{}", later.stdout, later.stderr);
    owd.run_in("list", "succeeded");
    assert_eq!(owd.runs("invoices").len(), 1);
}
