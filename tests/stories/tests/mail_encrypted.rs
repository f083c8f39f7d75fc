//! Encryption and logins of mail, with Postfix and Dovecot and a certificate that an issuer of our own made.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ow_stories::asking;
use ow_test_support::{Certificates, Dovecot, Postfix, Proxy, Scratch, id, until};
use serde_json::Value;

/// What of the password may never be seen: itself, and as logins write it.
const SECRETS: [&str; 4] = ["s3cret-of-a-test", "czNjcmV0LW9mLWEtdGVzdA", "LOGIN", "AUTH"];

/// A home that reads and sends mail by these servers, each in a way.
fn home(incoming: (&str, &str), out: (&str, &str), ca: Option<&Path>) -> Scratch {
    let scratch = asking();
    let uid = fs::metadata(scratch.path()).expect("a home").uid();
    let ca = ca.map(|ca| format!("ca = \"{}\"\n", ca.display())).unwrap_or_default();
    let login = format!("user = \"owd\"\npassword = \"mail-password\"\n{ca}");
    scratch.config(&format!(
        "[mail]\nsignatures = false\n[mail.in]\nserver = \"{}\"\nsecurity = \"{}\"\n{login}[mail.out]\nserver = \"{}\"\nsecurity = \"{}\"\n{login}\
         from = \"owd@example.net\"\n[people.ada]\nuids = [{uid}]\nmail = [\"ada@example.org\"]\n\
         [inboxes.default]\nmail = [\"ada@example.org\"]\n",
        incoming.0, incoming.1, out.0, out.1
    ));
    scratch
}

/// What doctor finds of the mail: each finding and its remedy.
fn found(scratch: &Scratch, password: &str) -> Vec<String> {
    let mut doctor = scratch.owctl().command(&["doctor", "--json"]);
    let ran = doctor.env("OWD_SECRET_MAIL_PASSWORD", password).output().expect("owctl runs");
    let report: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks");
    let mail = checks.iter().filter(|check| check["name"] == "mail");
    mail.map(|check| {
        let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
        format!("{} {} -> {}", text("state"), text("message"), text("remedy"))
    })
    .collect()
}

#[test]
fn mail_goes_out_and_comes_in_encrypted_by_either_way() {
    let Some(certificates) = Certificates::make() else { return };
    let Some(dovecot) = Dovecot::start_encrypted(&certificates) else { return };
    let Some(postfix) = Postfix::start_encrypted(&dovecot, &certificates) else { return };
    for (security, imap, smtp) in
        [("tls", dovecot.tls_address(), postfix.tls_address()), ("starttls", dovecot.address(), postfix.address())]
    {
        let (reads, sends) = (Proxy::start(&imap), Proxy::start(&smtp));
        let ca = certificates.ca();
        let scratch = home((&reads.address(), security), (&sends.address(), security), Some(&ca));
        let owd = scratch.start_with(|command| {
            command.env("OWD_SECRET_MAIL_PASSWORD", "secret");
        });
        owd.owctl.ok(&["task", "run", "asking"]);
        let item = id(&owd.item());
        until("the notice arrives", || {
            dovecot.mails("ada").into_iter().find(|(mail, _)| mail.contains(&format!("[ow:{item}]")))
        });
        dovecot.put(
            "owd",
            &format!("1.{security}"),
            &format!("From: eve@example.com\r\nSubject: {security}\r\n\r\nhello\r\n"),
        );
        until("the mail is read", || scratch.stderr().contains("mail taken").then_some(()));
        assert!(postfix.log().contains("sasl_username=owd"), "it logs in: {}", postfix.log());
        for (proxy, what) in [(&reads, "IMAP"), (&sends, "SMTP")] {
            let seen = proxy.seen();
            assert!(!seen.contains(&item) && !seen.contains("LOGIN") && !seen.contains("AUTH"), "{what}: {seen}");
        }
        let well = found(&scratch, "secret");
        assert!(well.iter().all(|found| found.starts_with("ok")), "{well:?}");
        owd.stop();
    }
}

#[test]
fn what_is_wrong_with_an_encryption_or_a_login_is_named_and_nothing_is_told_in_the_clear() {
    let Some(certificates) = Certificates::make() else { return };
    let Some(dovecot) = Dovecot::start_encrypted(&certificates) else { return };
    let Some(postfix) = Postfix::start_encrypted(&dovecot, &certificates) else { return };
    let other = Certificates::make().expect("as before");
    let (ca, no_file) = (certificates.ca(), other.ca().with_file_name("none.pem"));
    let tls = ((dovecot.tls_address(), "tls"), (postfix.tls_address(), "tls"));
    let starttls = ((dovecot.address(), "starttls"), (postfix.address(), "starttls"));
    let to_plain = ((dovecot.address(), "tls"), (postfix.address(), "tls"));
    for (((imap, reads_by), (smtp, sends_by)), ca, password, says_in, says_out) in [
        (&tls, Some(ca.as_path()), "s3cret-of-a-test", "refused the login of `owd`", "535"),
        (&starttls, Some(ca.as_path()), "s3cret-of-a-test", "refused the login of `owd`", "535"),
        (&tls, None, "s3cret-of-a-test", "no encrypted connection", "certificate"),
        (&starttls, None, "s3cret-of-a-test", "no encrypted connection", "certificate"),
        (&tls, Some(other.ca().as_path()), "s3cret-of-a-test", "no encrypted connection", "certificate"),
        (
            &tls,
            Some(no_file.as_path()),
            "s3cret-of-a-test",
            "no certificates can be read",
            "no certificates can be read",
        ),
        (&to_plain, Some(ca.as_path()), "s3cret-of-a-test", "no encrypted connection", ""),
    ] {
        let (reads, sends) = (Proxy::start(imap), Proxy::start(smtp));
        let scratch = home((&reads.address(), reads_by), (&sends.address(), sends_by), ca);
        let found = found(&scratch, password);
        assert!(found.len() == 2 && found.iter().all(|found| found.starts_with("warn")), "{found:?}");
        assert!(found[0].contains(says_in) && found[0].contains("[mail.in]"), "{found:?}");
        assert!(found[1].contains(says_out) && found[1].contains("[mail.out]"), "{found:?}");
        for seen in [reads.seen(), sends.seen()] {
            assert!(SECRETS.iter().all(|secret| !seen.contains(secret)), "{seen}");
        }
    }
}

#[test]
fn a_server_that_offers_no_starttls_is_told_nothing() {
    let Some(dovecot) = Dovecot::start() else { return };
    let Some(postfix) = Postfix::start(&dovecot) else { return };
    let (reads, sends) = (Proxy::start(&dovecot.address()), Proxy::start(&postfix.address()));
    let scratch = home((&reads.address(), "starttls"), (&sends.address(), "starttls"), None);
    let owd = scratch.start_with(|command| {
        command.env("OWD_SECRET_MAIL_PASSWORD", "s3cret-of-a-test");
    });
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    // Neither a mail nor a login, however often it is tried.
    until("both are tried twice", || {
        (reads.seen().matches("CAPABILITY").count() >= 2 && sends.seen().matches("EHLO").count() >= 2).then_some(())
    });
    let found = found(&scratch, "s3cret-of-a-test");
    assert!(found[0].contains("does not offer STARTTLS"), "{found:?}");
    assert!(found[1].contains("STARTTLS is not supported"), "{found:?}");
    for seen in [reads.seen(), sends.seen()] {
        assert!(SECRETS.iter().all(|secret| !seen.contains(secret)), "{seen}");
        assert!(!seen.contains(&item) && !seen.contains("MAIL FROM"), "{seen}");
    }
    let status = owd.owctl.ok(&["status"]);
    assert!(status.contains("STARTTLS"), "status tells of it: {status}");
    assert!(dovecot.mails("ada").is_empty());
}
