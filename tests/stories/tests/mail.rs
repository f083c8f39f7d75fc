//! Answers by mail, handed over by a mail server of this machine: `owctl inbox deliver`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use ow_stories::{asking, executions};
use ow_test_support::{Owctl, Owd, Scratch, id, until};
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
fn a_late_answer_is_told_however_often_its_sender_was_told_before_and_what_is_not_told_is_not_called_so() {
    let scratch = home();
    let (program, sent) = (scratch.path().join("sendmail"), scratch.path().join("sent"));
    fs::write(&program, format!("#!/bin/sh\ncat >> {}\n", sent.display())).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    let config = scratch.path().join("config/owd.toml");
    let text = fs::read_to_string(&config).expect("settings");
    let out = format!("[mail.out]\nsendmail = \"{}\"\nfrom = \"owd@example.net\"\n", program.display());
    fs::write(&config, format!("{text}{out}")).expect("written");
    let owd = scratch.start();
    let item = parked(&owd);
    for number in 1..=4 {
        let unclear = deliver(&scratch, &owd.owctl, &reply("ada@example.org", &item, &format!("hm, {number}")));
        assert_eq!(unclear["outcome"], "not-understood", "{unclear}");
        assert_eq!(unclear["told"].is_null(), number == 4, "{unclear}");
        assert_eq!(unclear["why"].to_string().contains("told no more for a while"), number == 4, "{unclear}");
    }
    // Another item is another matter.
    owd.owctl.ok(&["inbox", "deny", &item]);
    let other = parked(&owd);
    let unclear = deliver(&scratch, &owd.owctl, &reply("ada@example.org", &other, "hm"));
    assert!(unclear["told"].is_string(), "{unclear}");
    let late = deliver(&scratch, &owd.owctl, &reply("ada@example.org", &item, "approve"));
    assert!(late["told"].to_string().contains("already denied"), "{late}");
    until("it is told", || fs::read_to_string(&sent).ok().filter(|sent| sent.contains("already denied")));
}

#[test]
fn a_mail_with_large_attachments_is_an_answer_and_one_that_is_too_large_is_taken_and_decides_nothing() {
    let scratch = home();
    let owd = scratch.start();
    let item = parked(&owd);
    let attached = |bytes: usize| {
        let mail = reply("ada@example.org", &item, "approve");
        let (head, text) = mail.split_once("\n\n").expect("a head");
        let head = head.replace("Content-Type: text/plain; charset=utf-8", "Content-Type: multipart/mixed; boundary=b");
        let lines = format!("{}\n", "eHh4".repeat(18)).repeat(bytes / 73);
        format!(
            "{head}\n\n--b\nContent-Type: text/plain\n\n{text}\n--b\nContent-Type: application/pdf; name=x.pdf\n\
             Content-Disposition: attachment; filename=x.pdf\nContent-Transfer-Encoding: base64\n\n{lines}\n--b--\n"
        )
    };
    let cut = deliver(&scratch, &owd.owctl, &attached(40_000_000));
    assert_eq!((&cut["outcome"], cut["item"].as_str()), (&"not-understood".into(), Some(item.as_str())), "{cut}");
    assert!(cut["told"].to_string().contains("too large"), "{cut}");
    let done = deliver(&scratch, &owd.owctl, &attached(30_000_000));
    assert_eq!(done["outcome"], "done", "{done}");
    owd.run_in("asking", "succeeded");
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
        // Bob is known, and told that much.
        let silent = matches!(outcome, "not-entitled" | "no-answer") && !mail.contains("bob@");
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
fn a_person_who_may_not_answer_is_told_so_and_nothing_of_the_item() {
    let scratch = home();
    let owd = scratch.start();
    let item = parked(&owd);
    let refused = reply("bob@example.org", &item, "approve");
    let found = deliver(&scratch, &owd.owctl, &refused);
    let told = found["told"].as_str().expect("a line for bob");
    assert!(told.contains("you may not answer this") && !told.contains("asking"), "{told}");
    for silent in [
        refused.replace("dmarc=pass", "dmarc=fail"),
        refused.replace("Subject: Re:", "Subject: Fwd:"),
        reply("eve@example.org", &item, "approve"),
    ] {
        let found = deliver(&scratch, &owd.owctl, &silent);
        assert!(found["told"].is_null(), "{silent}\n{found}");
    }
    assert_eq!(id(&owd.item()), item);
}

#[test]
fn an_answer_to_a_mail_that_owd_did_not_send_is_none_whatever_that_mail_called_itself() {
    let scratch = home();
    let owd = scratch.start();
    let item = parked(&owd);
    // As if somebody had written to ada under a name that looks like a notice's.
    let foreign = reply("ada@example.org", &item, "yes").replace(
        &format!("Subject: Re: Approval needed [ow:{item}]"),
        &format!("Subject: Re: Lunch?\nIn-Reply-To: <ow.{item}.1@mail.example.com>"),
    );
    let bare = foreign.replace(&format!("> [ow:{item}]\n"), "");
    for mail in [&foreign, &bare] {
        let found = deliver(&scratch, &owd.owctl, mail);
        assert_eq!((&found["outcome"], &found["decision"]), (&"no-item".into(), &"none".into()), "{mail}\n{found}");
        assert_eq!(id(&owd.item()), item);
    }
}

#[test]
fn what_answers_a_notice_or_comes_from_a_program_is_no_work_for_tasks() {
    let scratch = home();
    scratch.task("any", "[[trigger]]\nmail = {}\n[[step]]\ntool = \"shell\"\nargs = { argv = [\"pwd\"] }\n");
    let owd = scratch.start();
    let (one, other) = ("a".repeat(16), "b".repeat(16));
    let several = reply("ada@example.org", &one, "yes to both")
        .replace(&format!("Approval needed [ow:{one}]"), &format!("2 items [ow:{one}] [ow:{other}]"));
    let found = deliver(&scratch, &owd.owctl, &several);
    assert_eq!(found["outcome"], "no-item", "{found}");
    assert!(found["told"].as_str().is_some_and(|told| told.contains("several items")), "{found}");
    let news = |head: &str| {
        format!("{head}From: shop@example.com\nTo: owd@example.net\nSubject: Hello\nMIME-Version: 1.0\n\nall is well\n")
    };
    for head in [
        "In-Reply-To: <owd.several.7@example.net>\n",
        "In-Reply-To: <x@example.com>\nReferences: <ow.reply.7@example.net> <x@example.com>\n",
        "Auto-Submitted: auto-replied\n",
        "X-Autoreply: yes\n",
        "Return-Path: <>\n",
        "Content-Type: multipart/report; report-type=disposition-notification; boundary=b\n",
    ] {
        let found = deliver(&scratch, &owd.owctl, &news(head));
        assert_ne!(found["outcome"], "event", "{head}{found}");
    }
    assert_eq!(owd.runs("any").len(), 0);
    // What programs write of their own accord, and what answers a mail that a task has sent.
    for head in ["Auto-Submitted: auto-generated\nPrecedence: bulk\n", "In-Reply-To: <owd.sent.1.2@example.net>\n"] {
        let found = deliver(&scratch, &owd.owctl, &news(head));
        assert_eq!(found["outcome"], "event", "{head}{found}");
    }
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
    // No call is under way when owd is killed: what became of it would be asked about.
    owd.owctl.ok(&["pause", "--all"]);
    owd.owctl.ok(&["inbox", "deliver", &file]);
    owd.kill();
    let owd = scratch.start();
    owd.owctl.ok(&["resume", "--all"]);
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
    let by_an_alias = format!("Return-Path: <x@y>\nDelivered-To: owd+b@example.net\nReceived: from a by b\n{invoice}");
    assert_eq!(takes(&by_an_alias), "event", "it came twice, and was written once");
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
