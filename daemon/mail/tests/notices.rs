//! Notices as mail: what they show, and that what they offer is what would be understood.

use std::path::PathBuf;

use expect_test::expect;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use lettre::message::Mailbox;
use ow_mail::{Letter, acknowledgement, digest, fits_in_a_mail, message_id, notice};
use ow_model::{
    Answer, AnswerBy, Binding, Call, Category, Item, ItemId, ItemKind, ItemState, Occasion, Person, Position, Question,
    Resolution, Surface,
};
use ow_reply::{Cause, Context, Kind, Message, Pending, Phrases, Proof, State, explain};
use serde_json::{Value, json};

const ID: [u8; 10] = [7; 10];

fn instant(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

fn item(kind: ItemKind) -> Item {
    Item {
        id: ItemId::from_bytes(ID),
        order: 1,
        inbox: ow_model::InboxName::default(),
        also: vec![],
        task: Some("nightly".parse().expect("a name")),
        run: None,
        title: "Send the weekly report".into(),
        kind,
        created_at: instant("2026-03-03T08:12:00Z"),
        expires_at: Some(instant("2026-03-17T08:12:00Z")),
        remind_at: None,
        reminded: 0,
        state: ItemState::Pending,
        holds_back: 0,
    }
}

fn approval(args: Value, diff: Option<String>) -> Item {
    let call = Call { position: Position(0), tool: "http_request".parse().expect("a name"), args };
    item(ItemKind::Approval {
        hash: call.hash(),
        call,
        category: Category::External,
        reason: "no rule names the host `api.example.org`".into(),
        binding: Binding {
            working_directory: Some(PathBuf::from("/srv/report")),
            unbound: Some("what the host answers".into()),
            ..Binding::default()
        },
        rule_offer: None,
        session_offer: ow_model::SessionOffer::default(),
        diff,
    })
}

fn question(options: &[&str]) -> Item {
    let options = options.iter().map(|option| (*option).to_owned()).collect();
    item(ItemKind::Question {
        questions: vec![Question { header: None, text: "Which one?".into(), options, multi: false }],
    })
}

fn letter_with<T>(thread: &[String], ask: impl FnOnce(&Letter<'_>) -> T) -> T {
    let from: Mailbox = "owd <owd@example.net>".parse().expect("an address");
    let to = "ada@example.org".parse().expect("an address");
    ask(&Letter {
        from: &from,
        to: &to,
        message_id: "<ow.70w3ge1r70w3ge1r.1@example.net>",
        thread,
        date: instant("2026-03-03T08:12:05Z"),
        zone: &TimeZone::get("Europe/Paris").expect("a zone"),
    })
}

fn mail(item: &Item, news: Occasion, thread: &[String]) -> String {
    let mail = letter_with(thread, |letter| notice(item, news, letter)).expect("a mail");
    String::from_utf8(mail.formatted()).expect("a mail is ASCII")
}

fn parts(mail: &str) -> (String, String) {
    let read = mail_parser::MessageParser::default().parse(mail.as_bytes()).expect("a mail");
    (read.body_text(0).expect("text").replace("\r\n", "\n"), read.body_html(0).expect("HTML").replace("\r\n", "\n"))
}

/// Address, subject and text of each mail that the text's links open.
fn links(text: &str) -> Vec<(String, String, String)> {
    let decoded = |text: &str| {
        let mut bytes = vec![];
        let mut rest = text.as_bytes();
        while let [first, more @ ..] = rest {
            if *first == b'%' {
                let digits = std::str::from_utf8(&more[..2]).expect("digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("hexadecimal"));
                rest = &more[2..];
            } else {
                bytes.push(*first);
                rest = more;
            }
        }
        String::from_utf8(bytes).expect("UTF-8")
    };
    let one = |line: &str| {
        let link = line.trim().strip_prefix("<mailto:")?.strip_suffix('>')?;
        let (address, fields) = link.split_once("?subject=").expect("a subject");
        let (subject, body) = fields.split_once("&body=").expect("a body");
        Some((decoded(address), decoded(subject), decoded(body)))
    };
    text.lines().filter_map(one).collect()
}

/// As a mail program quotes it.
fn quoted(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("> {line}\r\n")).collect();
    lines.concat()
}

/// What a mail of that subject and text decides about the item.
fn says(item: &Item, kind: &Kind, subject: &str, text: &str) -> (String, Option<String>, Cause) {
    let raw = format!(
        "From: Ada <ada@example.org>\r\nTo: owd@example.net\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n\r\nAda\r\n"
    );
    let pending = [
        Pending { id: item.id.to_string(), kind: kind.clone(), state: State::Pending },
        Pending { id: "zzzzzzzzzzzzzzzz".into(), kind: kind.clone(), state: State::Pending },
    ];
    let found = explain(
        Message::Mail(raw.as_bytes()),
        &Context {
            pending: &pending,
            kind,
            approvers: &["ada@example.org".into()],
            proof: Proof::Given,
            now: instant("2026-03-03T09:00:00Z"),
            phrases: &Phrases::default(),
        },
    );
    assert_eq!(found.token, Some(item.id.to_string()), "{found:?}");
    (found.decision.to_owned(), found.answer, found.cause)
}

#[test]
fn a_notice_shows_all_that_is_asked_and_how_to_answer() {
    let item = approval(json!({"method": "POST", "url": "https://api.example.org/v1", "body": "two\nlines"}), None);
    let mail = mail(&item, Occasion::Asked, &[]);
    let (text, html) = parts(&mail);
    expect![[r"
        Approval needed: Send the weekly report

          task     nightly
          asked    2026-03-03 09:12 CET
          expires  2026-03-17 09:12 CET; then it counts as denied

          tool  http_request
          kind  acts outside this machine
          in    /srv/report

          body:
            two
            lines
          method: POST
          url: https://api.example.org/v1

        It asks because: no rule names the host `api.example.org`

        Not bound: what the host answers

        To allow it, reply with `approve` and nothing else. To refuse it, reply with `deny`, and a reason after a full stop if you like.

        Approve:
          <mailto:owd@example.net?subject=Re%3A%20Approval%20needed%3A%20Send%20the%20weekly%20report%20%5Bow%3A0w3ge1r70w3ge1r7%5D&body=approve>
        Deny:
          <mailto:owd@example.net?subject=Re%3A%20Approval%20needed%3A%20Send%20the%20weekly%20report%20%5Bow%3A0w3ge1r70w3ge1r7%5D&body=deny>

        [ow:0w3ge1r70w3ge1r7]
    "]]
    .assert_eq(&text);
    expect![[r#"
        <!DOCTYPE html>
        <html><head><meta charset="utf-8"></head>
        <body style="font-family:sans-serif">
        <p><b>Approval needed: Send the weekly report</b></p>
        <table>
        <tr><td>task</td><td>nightly</td></tr>
        <tr><td>asked</td><td>2026-03-03 09:12 CET</td></tr>
        <tr><td>expires</td><td>2026-03-17 09:12 CET; then it counts as denied</td></tr>
        </table>
        <table>
        <tr><td>tool</td><td>http_request</td></tr>
        <tr><td>kind</td><td>acts outside this machine</td></tr>
        <tr><td>in</td><td>/srv/report</td></tr>
        </table>
        <pre style="white-space:pre-wrap">body:
          two
          lines
        method: POST
        url: https://api.example.org/v1</pre>
        <p style="white-space:pre-wrap">It asks because: no rule names the host `api.example.org`</p>
        <p style="white-space:pre-wrap">Not bound: what the host answers</p>
        <p style="white-space:pre-wrap">To allow it, reply with `approve` and nothing else. To refuse it, reply with `deny`, and a reason after a full stop if you like.</p>
        <p>
        <a href="mailto:owd@example.net?subject=Re%3A%20Approval%20needed%3A%20Send%20the%20weekly%20report%20%5Bow%3A0w3ge1r70w3ge1r7%5D&amp;body=approve">Approve</a><br>
        <a href="mailto:owd@example.net?subject=Re%3A%20Approval%20needed%3A%20Send%20the%20weekly%20report%20%5Bow%3A0w3ge1r70w3ge1r7%5D&amp;body=deny">Deny</a><br>
        </p>
        <p style="white-space:pre-wrap">[ow:0w3ge1r70w3ge1r7]</p>
        </body></html>
    "#]].assert_eq(&html);
    let head = mail.split("\r\n\r\n").next().expect("a head").replace("\r\n", "\n");
    expect![[r#"
        From: owd <owd@example.net>
        To: ada@example.org
        Subject: Approval needed: Send the weekly report [ow:0w3ge1r70w3ge1r7]
        Date: Tue, 03 Mar 2026 08:12:05 +0000
        Message-ID: <ow.70w3ge1r70w3ge1r.1@example.net>
        Auto-Submitted: auto-generated
        X-Auto-Response-Suppress: All
        MIME-Version: 1.0
        Content-Type: multipart/alternative; boundary="=_owd""#]]
    .assert_eq(&head);
}

#[test]
fn what_its_links_write_is_understood_as_they_say() {
    let told = |item: &Item| links(&parts(&mail(item, Occasion::Asked, &[])).0);
    let found = told(&approval(json!({}), None));
    let [approve, deny] = found.as_slice() else { panic!("{found:?}") };
    let asked = approval(json!({}), None);
    for (link, decision) in [(approve, "approve"), (deny, "deny")] {
        assert_eq!(link.0, "owd@example.net");
        assert_eq!(says(&asked, &Kind::Approval, &link.1, &link.2).0, decision, "{link:?}");
    }
    let options = ["Red", "2", "Thanks", "yes & <no>", "1", "one\nline & two", "  "];
    let asked = question(&options);
    let kind = Kind::Question { options: options.iter().map(|&option| option.to_owned()).collect() };
    let found = told(&asked);
    assert!(found.len() >= 6, "{found:?}");
    for (link, option) in found.iter().zip(&options) {
        let (decision, answer, _) = says(&asked, &kind, &link.1, &link.2);
        assert_eq!((decision.as_str(), answer.as_deref()), ("answer", Some(*option)), "{link:?}");
    }
    assert_eq!(told(&item(ItemKind::Notification { text: "Done".into() })), []);
    for kind in [
        ItemKind::Plan { text: "First this".into() },
        ItemKind::Budget { text: "10 of 10 used".into() },
        ItemKind::Directory { path: "/srv".into(), writable: true, reason: "to work".into() },
    ] {
        assert_eq!(told(&item(kind)).len(), 2);
    }
}

#[test]
fn a_reply_that_quotes_a_notice_says_what_stands_above_the_quote() {
    let asked = approval(json!({"body": "approve\n\nyes, approve it"}), None);
    let (text, _) = parts(&mail(&asked, Occasion::Asked, &[]));
    let quoted = quoted(&text);
    for (new, decision) in
        [("approve", "approve"), ("deny. Not on a Friday", "deny"), ("", "none"), ("who asks?", "none")]
    {
        let reply = format!("{new}\r\n\r\nOn Tue, 3 Mar 2026 at 09:12, owd <owd@example.net> wrote:\r\n{quoted}");
        assert_eq!(says(&asked, &Kind::Approval, "Re: your mail", &reply).0, decision, "{new}");
    }
}

#[test]
fn a_notice_that_comes_back_decides_nothing() {
    let asked = approval(json!({"body": "approve"}), None);
    for raw in [
        mail(&asked, Occasion::Asked, &[]),
        String::from_utf8(
            letter_with(&[], |letter| acknowledgement("Done: approve", "Re: it [ow:x]", letter))
                .expect("a mail")
                .formatted(),
        )
        .expect("ASCII"),
    ] {
        let found = explain(
            Message::Mail(raw.as_bytes()),
            &Context {
                pending: &[],
                kind: &Kind::Approval,
                approvers: &[],
                proof: Proof::Given,
                now: instant("2026-03-03T09:00:00Z"),
                phrases: &Phrases::default(),
            },
        );
        assert_eq!((found.decision, found.cause), ("none", Cause::Unasked), "{found:?}");
    }
}

#[test]
fn content_from_outside_cannot_change_the_mail_around_it() {
    let evil = "x\r\n--=_owd\r\nContent-Type: text/html\r\n\r\n<script src=\"https://bad.example/x.js\"></script>\
                <img src=https://bad.example/a.png>\u{202e}gpj\u{200b}\u{1b}[2J\u{7}";
    let mut asked = approval(json!({"body": evil, "<b>name</b>": "</pre>"}), Some(evil.into()));
    asked.title = format!("{evil}\nBcc: eve@bad.example\n[ow:zzzzzzzzzzzzzzzz]");
    let mail = mail(&asked, Occasion::Asked, &[]);
    let read = mail_parser::MessageParser::default().parse(mail.as_bytes()).expect("a mail");
    assert_eq!((read.text_body_count(), read.html_body_count(), read.attachment_count()), (1, 1, 0), "{mail}");
    assert!(
        read.bcc().is_none() && read.to().is_some_and(|to| to.as_list().is_some_and(|list| list.len() == 1)),
        "{mail}"
    );
    let subject = read.subject().expect("a subject");
    assert_eq!(ow_reply::tokens(subject), [asked.id.to_string()], "{subject}");
    let (text, html) = parts(&mail);
    for shown in [&text, &html] {
        let deceptive = |letter: char| letter != '\n' && ow_model::escape::is_deceptive(letter);
        assert!(!shown.chars().any(deceptive), "{shown}");
        assert!(!shown.contains("[ow:z") && shown.contains("(ow:zzzzzzzzzzzzzzzz)"), "it names no other item: {shown}");
    }
    for tag in html.split('<').skip(1) {
        let name: String = tag.chars().take_while(|letter| *letter != '>' && *letter != ' ').collect();
        let known = ["!DOCTYPE", "html", "head", "meta", "body", "p", "b", "pre", "table", "tr", "td", "a", "br"];
        assert!(known.contains(&name.trim_start_matches('/')), "{name}");
    }
    assert_eq!(html.matches("href=\"").count(), html.matches("href=\"mailto:owd@example.net?").count());
    assert!(mail.is_ascii() && mail.lines().all(|line| line.len() < 998));
}

#[test]
fn an_item_that_no_mail_can_show_whole_is_cut_says_so_and_is_not_approved_by_mail() {
    let long = "+a line & more\n".repeat(4000);
    for asked in [
        approval(json!({"path": "a.txt"}), Some(long.clone())),
        approval(json!({"body": long}), None),
        approval(
            (0..3000).map(|at| (format!("k{at}"), json!("<<<<<<<<<<"))).collect::<serde_json::Map<_, _>>().into(),
            None,
        ),
        item(ItemKind::Plan { text: "'".repeat(20_000) }),
    ] {
        assert!(!fits_in_a_mail(&asked));
        let (text, html) = parts(&mail(&asked, Occasion::Asked, &[]));
        assert!(html.len() < 100 * 1024 && text.len() < 100 * 1024, "{}", html.len());
        assert!(text.contains("… cut here: ") && text.contains("owctl inbox show 0w3ge1r70w3ge1r7"), "{text}");
        let found: Vec<String> = links(&text).into_iter().map(|(_, _, body)| body).collect();
        assert_eq!(found, ["deny"]);
        assert!(!text.contains("`approve`"));
    }
    assert!(fits_in_a_mail(&approval(json!({}), Some("+line\n".repeat(2000)))));
}

#[test]
fn one_thread_holds_what_is_told_of_an_item() {
    let mut asked = approval(json!({}), None);
    let first = message_id(&asked, "1", "example.net");
    assert_eq!(first, "<ow.0w3ge1r70w3ge1r7.1@example.net>");
    let reminder = mail(&asked, Occasion::Reminded, std::slice::from_ref(&first));
    assert!(reminder.contains(&format!("In-Reply-To: {first}\r\n")), "{reminder}");
    assert!(reminder.contains(&format!("References: {first}\r\n")), "{reminder}");
    assert!(reminder.contains("Subject: Re: Approval needed: "), "{reminder}");
    let says = |asked: &Item| parts(&mail(asked, Occasion::Settled, std::slice::from_ref(&first))).0;
    let at = instant("2026-03-03T10:00:00Z");
    let by = AnswerBy { person: Person("bob".into()), surface: Surface::Slack };
    asked.state = ItemState::Resolved(Resolution { answer: Answer::Once, by: by.clone(), at });
    expect![[r"
        Approval needed: Send the weekly report

        Approved by bob over Slack at 2026-03-03 11:00 CET

        [ow:0w3ge1r70w3ge1r7]
    "]]
    .assert_eq(&says(&asked));
    let deny = Answer::Deny { reason: Some("not \u{202e}now".into()) };
    asked.state = ItemState::Resolved(Resolution { answer: deny, by, at });
    assert!(says(&asked).contains("Denied by bob over Slack at 2026-03-03 11:00 CET: not \\u{202e}now"));
    asked.state = ItemState::Expired { at };
    assert!(says(&asked).contains("Expired at 2026-03-03 11:00 CET: nobody answered, which counts as a no"));
    asked.state = ItemState::Withdrawn { at, why: "the run was cancelled".into() };
    assert!(says(&asked).contains("Withdrawn at 2026-03-03 11:00 CET: the run was cancelled"));
}

#[test]
fn a_digest_has_links_for_each_item_and_a_reply_to_it_names_none() {
    let one = approval(json!({"url": "https://one.example"}), None);
    let mut two = question(&["Red", "Green"]);
    two.id = ItemId::from_bytes([9; 10]);
    let news = [(&one, Occasion::Asked), (&two, Occasion::Reminded)];
    let mail = letter_with(&[], |letter| {
        digest(&news, &Letter { message_id: "<owd.digest.1@example.net>", ..letter.clone() })
    });
    let mail = String::from_utf8(mail.expect("a mail").formatted()).expect("ASCII");
    let (text, _) = parts(&mail);
    assert!(mail.contains("Subject: 2 items in your Inbox\r\n"), "{mail}");
    let found = links(&text);
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(says(&one, &Kind::Approval, &found[0].1, &found[0].2).0, "approve");
    let options = Kind::Question { options: vec!["Red".into(), "Green".into()] };
    let subject = &found[3].1;
    let raw = format!("From: ada@example.org\r\nSubject: {subject}\r\n\r\n{}\r\n", found[3].2);
    let pending = [Pending { id: two.id.to_string(), kind: options.clone(), state: State::Pending }];
    let context = Context {
        pending: &pending,
        kind: &options,
        approvers: &[],
        proof: Proof::Given,
        now: instant("2026-03-03T09:00:00Z"),
        phrases: &Phrases::default(),
    };
    assert_eq!(explain(Message::Mail(raw.as_bytes()), &context).answer.as_deref(), Some("Green"));
    let quoted = quoted(&text);
    let reply = format!(
        "From: ada@example.org\r\nIn-Reply-To: <owd.digest.1@example.net>\r\nSubject: Re: 2 items in your Inbox\r\n\r\napprove\r\n\r\n\
         On Tue, 3 Mar 2026 at 09:12, owd <owd@example.net> wrote:\r\n{quoted}"
    );
    let found = explain(Message::Mail(reply.as_bytes()), &context);
    assert_eq!((found.decision, found.cause), ("none", Cause::NoItem), "{found:?}");
}

#[test]
fn what_a_mail_may_tell_beside_others_is_shown_whole_there_or_not_approved_by_mail() {
    let mut other = approval(json!({}), None);
    other.id = ItemId::from_bytes([9; 10]);
    let mut approved = 0;
    for letter in ["x", "<", "\u{7f}", "\u{202e}", "é", "\n"] {
        for length in [10, 500, 900, 1_400, 3_000, 60_000] {
            let item = approval(json!({ "body": letter.repeat(length) }), None);
            if item.stands_alone() || !fits_in_a_mail(&item) {
                continue;
            }
            approved += 1;
            let news = [(&item, Occasion::Asked), (&other, Occasion::Asked)];
            let mail = letter_with(&[], |letter| digest(&news, letter)).expect("a mail");
            let mail = String::from_utf8(mail.formatted()).expect("ASCII");
            let (text, _) = parts(&mail);
            assert!(!text.contains("cut here") && text.contains("approve"), "{length} of {letter:?}");
        }
    }
    assert!(approved >= 6, "{approved}");
    assert!(approval(json!({ "body": "x".repeat(1_500) }), None).stands_alone());
}

#[test]
fn an_acknowledgement_stays_in_the_thread_of_the_mail_it_answers() {
    let theirs = ["<a@mail.example>".to_owned()];
    let mail = letter_with(&theirs, |letter| {
        acknowledgement("Done: it is approved.", "RE: Grüße [ow:0w3ge1r70w3ge1r7]", letter)
    });
    let mail = String::from_utf8(mail.expect("a mail").formatted()).expect("ASCII");
    let read = mail_parser::MessageParser::default().parse(mail.as_bytes()).expect("a mail");
    assert_eq!(read.subject(), Some("RE: Grüße [ow:0w3ge1r70w3ge1r7]"));
    assert!(
        mail.contains("In-Reply-To: <a@mail.example>\r\n") && mail.contains("Auto-Submitted: auto-replied\r\n"),
        "{mail}"
    );
}
