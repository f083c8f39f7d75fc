//! Answers that come into a mailbox (a real IMAP server) or over a socket.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, SystemTime};

use base64::Engine;
use ow_stories::mail::{Domain, Other};
use ow_stories::{ASKING, asking, executions};
use ow_test_support::{Dovecot, Owd, Scratch, id, until};

const RELAY: &str = "mx.example.net";

fn home(dovecot: &Dovecot, domain: &Domain) -> Scratch {
    let scratch = asking();
    scratch.task("other", ASKING);
    let uid = fs::metadata(scratch.path()).expect("a home").uid();
    scratch.config(&format!(
        "[mail]\nauthserv-id = \"{RELAY}\"\ndns = \"{}\"\n[mail.in]\nserver = \"{}\"\nsecurity = \"none\"\nuser = \"owd\"\n\
         password = \"MAIL_PASSWORD\"\n[people.ada]\nuids = [{uid}]\nmail = [\"ada@example.org\"]\n",
        domain.dns(),
        dovecot.address()
    ));
    scratch
}

/// With the password in its environment, and the mailbox open.
fn start(scratch: &Scratch) -> Owd {
    let before = opened(scratch);
    let owd = scratch.start_with(|command| {
        command.env("OWD_SECRET_MAIL_PASSWORD", "secret");
    });
    until("the mailbox is open", || (opened(scratch) > before).then_some(()));
    owd
}

fn opened(scratch: &Scratch) -> usize {
    let log = fs::read_to_string(scratch.path().join("stderr")).unwrap_or_default();
    log.matches("the mailbox is open").count()
}

/// As the relay lets it through.
fn reply(item: &str, text: &str) -> String {
    format!(
        "Authentication-Results: {RELAY}; dmarc=pass header.from=example.org\r\nFrom: Ada <ada@example.org>\r\nTo: owd@example.net\r\n\
         Subject: Re: Approval needed [ow:{item}]\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n"
    )
}

/// Runs a task and waits until it asks.
fn asks(owd: &Owd, task: &str) -> String {
    owd.owctl.ok(&["task", "run", task]);
    id(&until("it asks", || owd.items().into_iter().find(|item| item["task"] == task)))
}

fn parked(owd: &Owd) -> String {
    asks(owd, "asking")
}

fn read(dovecot: &Dovecot, what: &str) -> Option<()> {
    dovecot.mails("owd").iter().any(|(mail, read)| mail.contains(what) && *read).then_some(())
}

#[test]
fn an_answer_in_the_mailbox_counts_whether_owd_was_up_or_down_or_the_server_was() {
    let Some(mut dovecot) = Dovecot::start() else { return };
    let domain = Domain::new();
    let scratch = home(&dovecot, &domain);
    dovecot.put("owd", "1", &reply("aaaaaaaaaaaaaaaa", "approve"));
    let owd = start(&scratch);
    let item = parked(&owd);
    dovecot.put("owd", "2", &reply(&item, "approve"));
    owd.run_in("asking", "succeeded");
    until("what was handled is marked as read", || read(&dovecot, &item));
    assert!(read(&dovecot, "aaaaaaaaaaaaaaaa").is_none(), "what is none of owd's business is not");
    // owd is down.
    let item = parked(&owd);
    owd.kill();
    dovecot.put("owd", "3", &reply(&item, "approve"));
    let owd = start(&scratch);
    owd.run_in("asking", "succeeded");
    assert_eq!(executions(&scratch), 2);
    // The server goes away, and comes back with a mail.
    let item = parked(&owd);
    dovecot.stop();
    until("owd says so", || {
        let status = owd.owctl.ok(&["status"]);
        status.contains("INBOX").then_some(())
    });
    dovecot.put("owd", "4", &reply(&item, "deny. Not now"));
    dovecot.start_again();
    until("the third run ends", || owd.runs("asking").iter().any(|run| run["state"] == "refused").then_some(()));
    assert_eq!(executions(&scratch), 2);
    owd.stop();
}

#[test]
fn the_first_start_on_a_full_mailbox_replays_nothing() {
    let Some(dovecot) = Dovecot::start() else { return };
    let domain = Domain::new();
    let scratch = home(&dovecot, &domain);
    for number in 0..5000 {
        dovecot.put("owd", &format!("old{number}"), &format!("Subject: mail {number}\r\n\r\nHello\r\n"));
    }
    let owd = scratch.start();
    let old = parked(&owd);
    owd.kill();
    dovecot.put("owd", "answer", &reply(&old, "approve"));
    came(&dovecot, "answer", |written| written - Duration::from_mins(1));
    let owd = start(&scratch);
    let item = asks(&owd, "other");
    dovecot.put("owd", "new", &reply(&item, "approve"));
    until("the new answer counts", || (executions(&scratch) == 1).then_some(()));
    let waiting: Vec<String> = owd.items().iter().map(id).collect();
    assert_eq!(waiting, [old], "the old one does not");
}

/// Has a mail that nobody has read yet come at another time than it did.
fn came(dovecot: &Dovecot, name: &str, when: impl FnOnce(SystemTime) -> SystemTime) {
    let mail = fs::File::options().write(true).open(dovecot.maildir("owd").join("new").join(name)).expect("a mail");
    let written = mail.metadata().and_then(|mail| mail.modified()).expect("a time");
    mail.set_modified(when(written)).expect("another time");
}

#[test]
fn what_came_before_the_mailbox_could_be_opened_for_the_first_time_is_read() {
    let Some(mut dovecot) = Dovecot::start() else { return };
    let domain = Domain::new();
    let scratch = home(&dovecot, &domain);
    dovecot.put("owd", "old", &reply("aaaaaaaaaaaaaaaa", "approve"));
    came(&dovecot, "old", |written| written - Duration::from_mins(1));
    dovecot.stop();
    let owd = scratch.start_with(|command| {
        command.env("OWD_SECRET_MAIL_PASSWORD", "secret");
    });
    until("owd says so", || owd.owctl.ok(&["status"]).contains("INBOX").then_some(()));
    let item = parked(&owd);
    // In the very second, perhaps: a server's times are whole seconds.
    dovecot.put("owd", "1", &reply(&item, "approve"));
    dovecot.start_again();
    owd.run_in("asking", "succeeded");
    assert!(!scratch.stderr().contains("outcome=\"no-item\""), "what came before is left alone");
}

#[test]
fn a_mail_that_cannot_be_handled_yet_is_tried_again_and_holds_up_no_other() {
    let Some(dovecot) = Dovecot::start() else { return };
    let domain = Domain::new();
    let scratch = home(&dovecot, &domain);
    let owd = start(&scratch);
    let first = parked(&owd);
    let second = asks(&owd, "other");
    domain.fail(6);
    let now = owd.owctl.json(&["inbox", "show", &first])["created_at"].as_str().expect("an instant").to_owned();
    let date = now.parse::<jiff::Timestamp>().expect("an instant").strftime("%a, %d %b %Y %H:%M:%S +0000").to_string();
    let signed = domain.mail("ada@example.org", &format!("Re: [ow:{first}]"), &date, "", "approve\n");
    dovecot.put("owd", "1", &signed);
    dovecot.put("owd", "2", &reply(&second, "approve"));
    until("both runs go on", || (executions(&scratch) == 2).then_some(()));
    owd.kill();
    let log = fs::read_to_string(scratch.path().join("stderr")).expect("a log");
    assert!(log.contains("outcome=\"later\""), "{log}");
}

#[test]
fn a_server_that_numbers_its_mails_anew_loses_no_answer_and_repeats_none() {
    let Some(mut dovecot) = Dovecot::start() else { return };
    let domain = Domain::new();
    let scratch = home(&dovecot, &domain);
    let owd = start(&scratch);
    let item = parked(&owd);
    dovecot.put("owd", "1", &reply(&item, "approve"));
    owd.run_in("asking", "succeeded");
    until("it is handled", || read(&dovecot, &item));
    let item = parked(&owd);
    owd.kill();
    dovecot.renumber("owd");
    dovecot.put("owd", "2", &reply(&item, "approve"));
    let owd = start(&scratch);
    owd.run_in("asking", "succeeded");
    assert_eq!(executions(&scratch), 2);
    let again = parked(&owd);
    dovecot.put("owd", "3", &reply(&again, "deny"));
    until("it is denied", || owd.runs("asking").iter().any(|run| run["state"] == "refused").then_some(()));
    assert_eq!(executions(&scratch), 2);
}

/// A way to a server on which the first connections are cut, each after so many bytes from the server.
fn cut(server: &str, after: &'static [usize]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let server = server.to_owned();
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let (Ok(client), Ok(upstream)) = (client, TcpStream::connect(&server)) else { break };
            let left = after.get(number).copied().unwrap_or(usize::MAX);
            let (from, to) = (client.try_clone().expect("a handle"), upstream.try_clone().expect("a handle"));
            thread::spawn(move || pass(from, to, usize::MAX));
            thread::spawn(move || pass(upstream, client, left));
        }
    });
    address
}

/// Passes bytes on until so many have gone, or one side is gone; then both are.
fn pass(mut from: TcpStream, mut to: TcpStream, mut left: usize) {
    let mut buffer = [0; 4096];
    while let Ok(read) = from.read(&mut buffer) {
        let goes = read.min(left);
        if read == 0 || to.write_all(&buffer[..goes]).is_err() {
            break;
        }
        left -= goes;
        if left == 0 {
            break;
        }
    }
    // The other side may have gone first.
    for end in [from, to] {
        drop(end.shutdown(Shutdown::Both));
    }
}

#[test]
fn connections_that_are_cut_lose_no_answer_and_repeat_none() {
    const TASKS: usize = 12;
    let Some(dovecot) = Dovecot::start() else { return };
    let domain = Domain::new();
    // In the greeting, the login, the first look, and in the middle of mails.
    let way = cut(&dovecot.address(), &[40, 500, 900, 1500, 2100, 2600, 3500, 1900, 2300, 4000]);
    let scratch = home(&dovecot, &domain);
    let config = fs::read_to_string(scratch.path().join("config/owd.toml")).expect("a configuration");
    scratch.config(&config.replace(&dovecot.address(), &way));
    for number in 0..TASKS {
        scratch.task(&format!("task{number}"), ASKING);
    }
    let owd = start(&scratch);
    for number in 0..TASKS {
        let item = asks(&owd, &format!("task{number}"));
        dovecot.put("owd", &format!("{number}"), &reply(&item, "approve"));
    }
    for number in 0..TASKS {
        owd.run_in(&format!("task{number}"), "succeeded");
    }
    assert_eq!(executions(&scratch), TASKS);
    assert!(opened(&scratch) > 2, "it was cut more than once");
}

/// Says each line, and returns what was answered to each.
fn talk(socket: &std::path::Path, lines: &[&str]) -> Vec<String> {
    let stream = UnixStream::connect(socket).expect("a socket");
    let mut answers = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut told = vec![];
    let mut answer = || {
        let mut whole = String::new();
        loop {
            let mut line = String::new();
            answers.read_line(&mut line).expect("an answer");
            let ends = line.as_bytes().get(3) != Some(&b'-');
            write!(whole, "{}", line.trim_end()).expect("text");
            if ends {
                return whole;
            }
        }
    };
    told.push(answer());
    for line in lines {
        (&stream).write_all(format!("{line}\r\n").as_bytes()).expect("said");
        told.push(answer());
    }
    told
}

#[test]
fn a_mail_server_of_this_machine_hands_answers_over_a_socket() {
    let scratch = asking();
    let uid = fs::metadata(scratch.path()).expect("a home").uid();
    let socket = scratch.path().join("lmtp");
    scratch.config(&format!(
        "[mail]\nauthserv-id = \"{RELAY}\"\nlmtp = \"{}\"\n[people.ada]\nuids = [{uid}]\nmail = [\"ada@example.org\"]\n",
        socket.display()
    ));
    let owd = scratch.start();
    until("the socket is there", || socket.exists().then_some(()));
    assert_eq!(fs::metadata(&socket).expect("a socket").permissions().mode() & 0o777, 0o600);
    let item = parked(&owd);
    let mail = |mail: &str| format!("{}.", mail.replace("\r\n.", "\r\n.."));
    let later = mail(&reply(&item, "approve").replace("dmarc=pass", "dmarc=temperror"));
    let right = mail(&reply(&item, "approve"));
    let told = talk(
        &socket,
        &[
            "MAIL FROM:<ada@example.org>",
            "LHLO here",
            "MAIL FROM:<ada@example.org>",
            "RCPT TO:<owd@example.net>",
            "DATA",
            &later,
            "MAIL FROM:<ada@example.org>",
            "RCPT TO:<owd@example.net>",
            "DATA",
            &right,
            "QUIT",
        ],
    );
    let codes: Vec<&str> = told.iter().map(|line| &line[..3]).collect();
    assert_eq!(codes, ["220", "503", "250", "250", "250", "354", "451", "250", "250", "354", "250", "221"], "{told:?}");
    // One that is too large is no reason to send it back.
    let large = format!("{}{}\r\n.", reply(&item, "deny"), format!("{}\r\n", "x".repeat(76)).repeat(440_000));
    let envelope = ["LHLO here", "MAIL FROM:<ada@example.org>", "RCPT TO:<owd@example.net>", "DATA", &large, "QUIT"];
    let told = talk(&socket, &envelope);
    assert!(told[5].starts_with("250"), "{told:?}");
    // What was answered 250 is durable.
    owd.kill();
    let owd = scratch.start();
    owd.run_in("asking", "succeeded");
    assert_eq!(executions(&scratch), 1);
    owd.stop();
    assert!(!socket.exists());
}

#[test]
fn a_socket_for_mail_that_is_taken_away_and_put_back_is_there() {
    let scratch = asking();
    let socket = scratch.path().join("lmtp");
    let with = format!("[mail]\nauthserv-id = \"{RELAY}\"\nlmtp = \"{}\"\n", socket.display());
    scratch.config(&with);
    let owd = scratch.start();
    until("the socket is there", || socket.exists().then_some(()));
    for _ in 0..5 {
        // Who is in the middle of a mail keeps the one that ends for a while.
        let middle = std::os::unix::net::UnixStream::connect(&socket).expect("it listens");
        (&middle).write_all(b"LHLO here\r\n").expect("said");
        scratch.config("");
        owd.owctl.ok(&["reload"]);
        scratch.config(&with);
        owd.owctl.ok(&["reload"]);
        drop(middle);
        until("a mail server is answered", || {
            let stream = std::os::unix::net::UnixStream::connect(&socket).ok()?;
            let mut greeting = [0; 3];
            std::io::Read::read_exact(&mut &stream, &mut greeting).ok()?;
            (greeting == *b"220").then_some(())
        });
    }
    let status = owd.owctl.json(&["status"]).to_string();
    assert!(!status.contains("cannot listen for mail"), "{status}");
}

#[test]
fn a_person_who_hands_mail_over_decides_no_more_by_it_than_they_may() {
    let scratch = asking();
    let uid = fs::metadata(scratch.path()).expect("a home").uid();
    let socket = scratch.path().join("lmtp");
    let config = |server: &str| {
        scratch.config(&format!(
            "[mail]\nauthserv-id = \"{RELAY}\"\nlmtp = \"{}\"\n{server}\n[people.ada]\nmail = [\"ada@example.org\"]\n\
             [people.eve]\nuids = [{uid}]\ninboxes = [\"other\"]\n[inboxes.other]\n",
            socket.display()
        ));
    };
    config("");
    let owd = scratch.start();
    until("the socket is there", || socket.exists().then_some(()));
    let item = parked(&owd);
    // Written by eve, with the relay's word for ada in it.
    let forged = format!("{}.", reply(&item, "approve").replace("\r\n.", "\r\n.."));
    let envelope = ["LHLO here", "MAIL FROM:<ada@example.org>", "RCPT TO:<owd@example.net>", "DATA", &forged, "QUIT"];
    let told = talk(&socket, &envelope);
    assert!(told[5].starts_with("250"), "{told:?}");
    assert_eq!(id(&owd.item()), item, "it waits still");
    owd.stop();
    // The mail server is believed.
    config(&format!("lmtp-user = \"{uid}\""));
    let owd = scratch.start();
    until("the socket is there", || socket.exists().then_some(()));
    talk(&socket, &envelope);
    until("it has run", || (executions(&scratch) == 1).then_some(()));
    owd.stop();
}

#[test]
fn an_answer_that_is_too_large_decides_nothing_and_its_sender_is_told_why() {
    let Some(dovecot) = Dovecot::start() else { return };
    let domain = Domain::new();
    let scratch = home(&dovecot, &domain);
    let sent = scratch.path().join("sent");
    let sendmail = scratch.path().join("sendmail");
    fs::write(&sendmail, format!("#!/bin/sh\ncat >> {}\n", sent.display())).expect("a program");
    fs::set_permissions(&sendmail, fs::Permissions::from_mode(0o755)).expect("may run");
    let file = scratch.path().join("config/owd.toml");
    let config = fs::read_to_string(&file).expect("settings");
    let out = format!("[mail.out]\nsendmail = \"{}\"\nfrom = \"owd@example.net\"\n", sendmail.display());
    fs::write(&file, format!("{config}{out}")).expect("written");
    let owd = start(&scratch);
    let item = parked(&owd);
    let attached = format!("{}\r\n", "x".repeat(76)).repeat(33 * 1024 * 1024 / 78);
    dovecot.put("owd", "large", &format!("{}{attached}", reply(&item, "approve\r\n\r\n-- \r\n")));
    until("its sender is told", || {
        fs::read_to_string(&sent).is_ok_and(|sent| sent.replace("=\n", "").contains("too large")).then_some(())
    });
    assert_eq!(id(&owd.item()), item);
}

#[test]
fn doctor_names_the_step_of_a_mails_way_that_fails() {
    let Some(dovecot) = Dovecot::start() else { return };
    dovecot.put("owd", "1", &reply("aaaaaaaaaaaaaaaa", "hello"));
    let scratch = Scratch::new();
    let right = format!(
        "[mail]\nauthserv-id = \"{RELAY}\"\n[mail.in]\nserver = \"{}\"\nsecurity = \"none\"\nuser = \"owd\"\npassword = \"mail-password\"\n\
         mailbox = \"INBOX\"\n",
        dovecot.address()
    );
    let finds = |config: &str| -> Vec<(String, String)> {
        scratch.config(config);
        let mut command = scratch.owctl().command(&["doctor", "--json"]);
        let output = command.env("OWD_SECRET_MAIL_PASSWORD", "secret").output().expect("doctor runs");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
        let checks = report["checks"].as_array().cloned().unwrap_or_default();
        let checks = checks.into_iter().filter(|check| check["name"] == "mail");
        checks.map(|check| (check["state"].to_string(), format!("{}: {}", check["message"], check["remedy"]))).collect()
    };
    let well = finds(&right);
    assert!(well.len() == 2 && well.iter().all(|(state, _)| state == "\"ok\""), "{well:?}");
    let closed = ow_test_support::free_port();
    let address = dovecot.address();
    for (change, to, says) in [
        (address.as_str(), format!("127.0.0.1:{closed}"), "cannot be connected to"),
        ("\"mail-password\"", "\"other-password\"".into(), "owctl secret set other-password"),
        ("mailbox = \"INBOX\"", "mailbox = \"Nowhere\"".into(), "set `mailbox` in [mail.in]"),
        ("security = \"none\"", "security = \"tls\"".into(), "no encrypted connection"),
        ("security = \"none\"", "security = \"starttls\"".into(), "does not offer STARTTLS"),
        (RELAY, "mx.other.example".into(), "not of `mx.other.example`"),
    ] {
        let found = finds(&right.replace(change, &to));
        assert!(
            found.iter().any(|(state, text)| state == "\"warn\"" && text.contains(says)),
            "{change} {to}: {found:?}"
        );
    }
    let out = "[mail.out]\nsecurity = \"none\"\nfrom = \"owd@example.net\"\n";
    let found = finds(&format!("{out}server = \"127.0.0.1:{closed}\"\n"));
    assert!(found[0].1.contains("[mail.out]") && found[0].0 == "\"warn\"", "{found:?}");
    let found = finds("[mail.out]\nfrom = \"owd@example.net\"\nsendmail = \"/nowhere/sendmail\"\n");
    assert!(found[0].1.contains("there is no program /nowhere/sendmail"), "{found:?}");
    assert_eq!(finds("[people.ada]\nuids = [0]\n"), [], "where no mail is configured, none is tried");
}

#[test]
fn doctor_tells_whether_signatures_prove_the_people_and_what_is_wrong_with_a_key() {
    let Some(dovecot) = Dovecot::start() else { return };
    let domain = Domain::new();
    let scratch = Scratch::new();
    scratch.config(&format!(
        "[mail]\ndns = \"{}\"\n[mail.in]\nserver = \"{}\"\nsecurity = \"none\"\nuser = \"owd\"\npassword = \"mail-password\"\n\
         [people.ada]\nuids = [0]\nmail = [\"ada@example.org\"]\n",
        domain.dns(),
        dovecot.address()
    ));
    let finds = || {
        let mut command = scratch.owctl().command(&["doctor", "--json"]);
        let output = command.env("OWD_SECRET_MAIL_PASSWORD", "secret").output().expect("doctor runs");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
        let checks = report["checks"].as_array().cloned().unwrap_or_default();
        let mail: Vec<_> = checks.into_iter().filter(|check| check["name"] == "mail").collect();
        assert_eq!(mail.len(), 2, "{mail:?}");
        (mail[1]["state"] == "ok", format!("{} {}", mail[1]["message"], mail[1]["remedy"]))
    };
    let is = |well: bool, says: &str| {
        let (state, text) = finds();
        assert!(state == well && text.contains(says), "{text}");
    };
    is(false, "none of the last mails is from `example.org`");
    dovecot.put("owd", "1", "From: ada@example.org\r\nSubject: s\r\n\r\nhello\r\n");
    is(false, "is not signed by it (DKIM)");
    let date = "Mon, 02 Mar 2026 09:00:00 +0000";
    dovecot.put("owd", "2", &domain.mail("Ada <ada@example.org>", "s", date, "", "hello"));
    is(true, "its key `s._domainkey.example.org` is in the DNS");
    domain.answer(Some(Other::Nothing));
    is(false, "is not in the DNS");
    domain.answer(Some(Other::Text("v=spf1 -all".into())));
    is(false, "by that name is none");
    domain.answer(None);
    domain.fail(20);
    is(false, "the DNS does not tell the key");
}

#[test]
fn what_owd_started_hands_over_no_mail() {
    let scratch = asking();
    let uid = fs::metadata(scratch.path()).expect("a home").uid();
    let socket = scratch.path().join("lmtp");
    scratch.config(&format!(
        "[mail]\nauthserv-id = \"{RELAY}\"\nlmtp = \"{}\"\n[people.ada]\nuids = [{uid}]\nmail = [\"ada@example.org\"]\n",
        socket.display()
    ));
    let script = scratch.work().join("forge.sh");
    let text = format!(
        "python3 - <<'END'\nimport socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('{}')\nprint('said:', s.recv(100))\nEND\n",
        socket.display()
    );
    fs::write(&script, text).expect("a script");
    scratch.task(
        "forge",
        "[[step]]\nsave-as = \"tried\"\ntool = \"shell\"\nargs = { argv = [\"bash\", \"{work}/forge.sh\"] }\n\
         [[step]]\ntool = \"notify\"\nargs = { text = \"{{ steps.tried.stdout }}\" }\n",
    );
    let owd = scratch.start();
    until("the socket is there", || socket.exists().then_some(()));
    let greeting = talk(&socket, &["QUIT"]).remove(0);
    assert!(greeting.starts_with("220"), "a program of the person's is greeted: {greeting}");
    owd.owctl.ok(&["inbox", "approve", &asks(&owd, "forge")]);
    owd.run_in("forge", "succeeded");
    let told = until("the run tells", || owd.items().into_iter().find(|item| item["kind"] == "notification"));
    let text = owd.owctl.ok(&["inbox", "show", &id(&told)]);
    assert!(text.contains("said: b'554 5.7.1") && text.contains("may hand over no mail"), "{text}");
}

/// A mail with these attachments, from `example.org`, as the relay lets it through.
fn with_attachments(number: u32, names: &[&str]) -> String {
    let mut mail = format!(
        "Authentication-Results: mx.example.net; dmarc=pass header.from=example.org\r\nFrom: bob@example.org\r\nTo: owd@example.net\r\n\
         Subject: Invoice {number}\r\nMessage-ID: <invoice.{number}@example.org>\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nSee below.\r\n"
    );
    for (at, name) in names.iter().enumerate() {
        let name = base64::engine::general_purpose::STANDARD.encode(name);
        write!(
            mail,
            "--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"=?utf-8?b?{name}?=\"\r\n\r\n\
             content {number}.{at}\r\n"
        )
        .expect("text");
    }
    mail + "--b--\r\n"
}

#[test]
fn a_task_runs_on_the_mails_of_a_folder_and_has_their_attachments_as_files() {
    let Some(mut dovecot) = Dovecot::start() else { return };
    let scratch = Scratch::new();
    let folder = "Rechnungen & März";
    scratch.config(&format!(
        "[mail]\nauthserv-id = \"mx.example.net\"\n[mail.in]\nserver = \"{}\"\nsecurity = \"none\"\nuser = \"owd\"\n\
         password = \"MAIL_PASSWORD\"\nfolders = [\"{folder}\"]\n",
        dovecot.address()
    ));
    scratch.task(
        "invoices",
        &format!(
            "[[trigger]]\nmail = {{ folder = \"{folder}\", from = [\"@example.org\"] }}\n[[step]]\nsave-as = \"read\"\ntool = \"read_file\"\n\
             args = {{ path = \"{{{{ event.attachments[0].path }}}}\" }}\n[[step]]\ntool = \"notify\"\n\
             args = {{ text = \"{{{{ event.subject }}}}: {{{{ steps.read.text }}}}|{{{{ event.attachments }}}}\" }}\n"
        ),
    );
    scratch.task(
        "inbox",
        "[[trigger]]\nmail = {}\n[[step]]\ntool = \"notify\"\nargs = { text = \"{{ event.subject }}\" }\n",
    );
    let written = "Rechnungen &- M&AOQ-rz";
    dovecot.put_in("owd", written, "0", &with_attachments(0, &["old.pdf"]));
    dovecot.put("owd", "0", "Subject: old\r\n\r\nold\r\n");
    let owd = start(&scratch);
    until("both are open", || (scratch.stderr().matches("the mailbox is open").count() == 2).then_some(()));
    let bad = ["../../x.pdf", "; rm -rf ~", "a\u{202e}fdp.exe"];
    dovecot.put_in("owd", written, "1", &with_attachments(1, &bad));
    let run = owd.run_in("invoices", "succeeded");
    let told = until("the run tells", || owd.items().into_iter().find(|item| item["kind"] == "notification"));
    let text = owd.owctl.json(&["inbox", "show", &id(&told)]).to_string();
    assert!(text.contains("Invoice 1: content 1.0"), "{text}");
    let kept = scratch.path().join("data/runs").join(id(&run)).join("attachments");
    let mut files: Vec<String> = fs::read_dir(&kept)
        .expect("a folder")
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    files.sort();
    assert_eq!(files, ["1-x.pdf", "2-rm_rf", "3-a_fdp.exe"]);
    assert!(!text.contains('\u{202e}'), "{text}");
    let facts = owd.owctl.json(&["run", "show", &id(&run), "--facts"]).to_string();
    assert!(facts.contains("1-x.pdf"), "{facts}");
    // A server that numbers the folder anew, while owd is down, has nothing told twice; what came is told.
    owd.kill();
    dovecot.put_in("owd", written, "2", &with_attachments(2, &["b.pdf"]));
    dovecot.renumber_folder("owd", written);
    dovecot.put("owd", "1", "From: eve@example.com\r\nSubject: to the inbox\r\n\r\nhello\r\n");
    let owd = start(&scratch);
    until("the second invoice is told", || (owd.runs("invoices").len() == 2).then_some(()));
    until("the other task runs on the mailbox alone", || (owd.runs("inbox").len() == 1).then_some(()));
    until("what had a task run is marked as read", || read(&dovecot, "to the inbox"));
    let mut doctor = owd.owctl.command(&["doctor"]);
    let found = doctor.env("OWD_SECRET_MAIL_PASSWORD", "secret").output().expect("owctl runs").stdout;
    let found = String::from_utf8_lossy(&found).into_owned();
    assert!(found.contains("Rechnungen & März can be read"), "{found}");
    owd.stop();
}

#[test]
fn a_folder_that_is_not_there_is_named_and_the_mailbox_is_read_all_the_same() {
    let Some(dovecot) = Dovecot::start() else { return };
    let domain = Domain::new();
    let scratch = home(&dovecot, &domain);
    let config = scratch.path().join("config/owd.toml");
    let known = fs::read_to_string(&config).expect("settings");
    fs::write(&config, known.replace("user = \"owd\"", "user = \"owd\"\nfolders = [\"Invoices\"]")).expect("settings");
    let owd = start(&scratch);
    until("owd says so", || owd.owctl.ok(&["status"]).contains("Invoices").then_some(()));
    let mut doctor = owd.owctl.command(&["doctor"]);
    let found = doctor.env("OWD_SECRET_MAIL_PASSWORD", "secret").output().expect("owctl runs");
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(found.contains("Invoices") && found.contains("`folders`"), "{found}");
    let item = parked(&owd);
    dovecot.put("owd", "1", &reply(&item, "approve"));
    owd.run_in("asking", "succeeded");
    scratch.task(
        "wrong",
        "[[trigger]]\nmail = { folder = \"Invoice\" }\n[[step]]\ntool = \"notify\"\nargs = { text = \"x\" }\n",
    );
    let wrong = owd.owctl.run(&["reload"]);
    assert!(wrong.stderr.contains("did you mean \"Invoices\"?"), "{}{}", wrong.stdout, wrong.stderr);
}
