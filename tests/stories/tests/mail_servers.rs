//! The whole way by mail, through real servers: Postfix and Dovecot on loopback, and mail signed by its sender's domain.

use std::fs;
use std::os::unix::fs::MetadataExt;

use ow_stories::mail::Domain;
use ow_stories::{ASKING, asking, executions};
use ow_test_support::{Dovecot, Owd, Postfix, Scratch, id, until};

struct World {
    postfix: Postfix,
    dovecot: Dovecot,
    domain: Domain,
    scratch: Scratch,
}

/// ada, who is asked at `to`, writes from `ada@example.org`; owd reads and writes as `owd@example.net`.
fn world(to: &str) -> Option<World> {
    let dovecot = Dovecot::start()?;
    let postfix = Postfix::start(&dovecot)?;
    let domain = Domain::new();
    let scratch = asking();
    let uid = fs::metadata(scratch.path()).expect("a home").uid();
    scratch.config(&format!(
        "[mail]\ndns = \"{}\"\n[mail.in]\nserver = \"{}\"\nsecurity = \"none\"\nuser = \"owd\"\npassword = \"mail-password\"\n\
         [mail.out]\nserver = \"{}\"\nsecurity = \"none\"\nfrom = \"owd <owd@example.net>\"\n\
         [people.ada]\nuids = [{uid}]\nmail = [\"ada@example.org\"]\n[inboxes.default]\nmail = [\"{to}\"]\n",
        domain.dns(),
        dovecot.address(),
        postfix.address()
    ));
    Some(World { postfix, dovecot, domain, scratch })
}

impl World {
    fn start(&self) -> Owd {
        self.scratch.start_with(|command| {
            command.env("OWD_SECRET_MAIL_PASSWORD", "secret");
        })
    }

    /// Runs `asking` and waits until it asks.
    fn asks(owd: &Owd) -> String {
        owd.owctl.ok(&["task", "run", "asking"]);
        id(&owd.item())
    }

    /// Waits for a mail in ada's mailbox with all of these in it, in its head or its text.
    fn arrives(&self, what: &[&str]) -> String {
        until(&format!("a mail with {what:?}"), || {
            let mails = self.dovecot.mails("ada");
            mails.into_iter().map(|(mail, _)| mail).find(|mail| what.iter().all(|what| readable(mail).contains(what)))
        })
    }

    /// ada's answer to a notice.
    fn answer(&self, notice: &str, number: u32, text: &str) {
        let field = |name: &str| field(notice, name);
        let date = field("Date").replace("GMT", "+0000");
        let quoted: Vec<String> = readable(notice).lines().map(|line| format!("> {line}")).collect();
        let text = format!("{text}\n\nOn {date}, owd wrote:\n{}\n", quoted.join("\n"));
        let head = format!("In-Reply-To: {}\r\nMessage-ID: <{number}@mail.example.org>\r\n", field("Message-ID"));
        let subject = format!("Re: {}", field("Subject"));
        let mail = self.domain.mail("Ada <ada@example.org>", &subject, &date, &head, &text);
        self.postfix.submit("ada@example.org", "owd@example.net", &mail);
    }
}

/// A field of a mail's head, on one line.
fn field(mail: &str, name: &str) -> String {
    let head = mail.replace("\r\n", "\n").replace("\n ", " ").replace("\n\t", " ");
    let line = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).unwrap_or_default();
    line.trim().to_owned()
}

/// A mail with the quoting of its transport taken out, up to its HTML.
fn readable(mail: &str) -> String {
    let mail = mail.replace("\r\n", "\n").replace("=\n", "").replace("=3D", "=");
    mail.split("Content-Type: text/html").next().unwrap_or_default().to_owned()
}

fn distinct(mails: &[(String, bool)], what: &str) -> usize {
    let mut ids: Vec<String> = mails
        .iter()
        .filter(|(mail, _)| readable(mail).contains(what))
        .map(|(mail, _)| field(mail, "Message-ID"))
        .collect();
    ids.sort();
    ids.dedup();
    ids.len()
}

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
    assert!(readable(&told).contains("reply with `approve` and nothing else"), "{told}");
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
