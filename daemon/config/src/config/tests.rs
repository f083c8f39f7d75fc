#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
#![expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]

use expect_test::{Expect, expect};

use ow_model::{Detector, Patience};

use super::*;

fn host() -> Host {
    Host { home: "/home/ada".into(), timezone: ZoneName("Europe/Paris".into()) }
}

fn read(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Some(Path::new("owd.toml")), &host())
}

fn inbox(name: &str) -> InboxName {
    name.parse().expect("a name")
}

fn faults(text: &str, expected: Expect) {
    expected.assert_eq(&format!("{}\n", read(text).expect_err("the text is faulty")));
}

fn example() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/owd.toml");
    std::fs::read_to_string(file).expect("the example is in the repository")
}

/// The example with the settings that it only shows.
fn whole_example() -> String {
    let lines = example()
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.is_empty() && !setting.starts_with(' ') => setting.to_owned(),
            _ => line.to_owned(),
        })
        .collect::<Vec<_>>();
    lines.join("\n")
}

#[test]
fn the_example_says_what_is_in_effect_without_it() {
    assert_eq!(read(&example()), Ok(Config::new(&host())));
}

#[test]
fn the_example_names_every_setting() {
    let config = read(&whole_example()).expect("the example is right");
    let mut shown: Vec<String> =
        config.show().lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key.into()).collect();
    let text = whole_example();
    let mut named: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" = "))
        .map(|(key, _)| key.into())
        .collect();
    shown.sort();
    named.sort();
    assert_eq!(named, shown);
}

#[test]
fn what_is_shown_reads_back() {
    let config = read(&whole_example()).expect("the example is right");
    assert_eq!(read(&config.show()), Ok(config));
    let defaults = Config::new(&host());
    assert_eq!(read(&defaults.show()), Ok(defaults));
}

#[test]
fn a_setting_replaces_its_default_and_no_other() {
    let config =
        read("[scheduler]\nworkers = 2\n[server]\ntcp = \"[::1]:7700\"\nkey-file = \"~/key\"\n").expect("it is right");
    let mut expected = Config::new(&host());
    expected.scheduler.workers = 2;
    expected.server.tcp = Some("[::1]:7700".parse().expect("an address"));
    expected.server.key_file = Some("/home/ada/key".into());
    assert_eq!(config, expected);
}

#[test]
fn a_hook_has_a_profile_and_secrets_and_headers_of_its_own_only_where_it_chooses_them() {
    let hook = |text: &str| read(&format!("[webhook.ci]\n{text}")).map(|config| config.webhook.into_values().next());
    let made = hook("profile = \"generic\"\nsecret = [\"next\", \"last\"]\nid-header = \"X-Id\"\nbody-limit = 16");
    let made = made.expect("it is right").expect("a hook");
    assert_eq!(
        (made.secret.as_slice(), made.body_limit, made.per_minute),
        (&["next".into(), "last".into()][..], 16, 600)
    );
    let scheme = made.scheme();
    assert_eq!((scheme.signature_header.as_str(), scheme.id_header.as_deref()), ("X-Signature", Some("X-Id")));

    faults(
        "[webhook.ci]\nprofile = \"github\"\n[webhook.\"My Hook\"]\nprofile = \"gitthub\"\nsecret = \"it is a secret\"\n",
        expect![[r#"
            owd.toml:1:1: webhook.ci: no `secret`: anybody could deliver; keep one with `owctl secret set NAME` and name it: `secret = "NAME"`
            owd.toml:3:1: webhook.My Hook: webhook name `My Hook` holds 'M'; use lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit; choose such a name, as `[webhook.ci]`
            owd.toml:4:11: webhook.My Hook.profile = "gitthub": not one of the known values; did you mean "github"?
            owd.toml:5:10: webhook.My Hook.secret = [redacted]: not the name of a secret; keep one with `owctl secret set NAME` and name it: `secret = "NAME"`
        "#]],
    );
    faults(
        "[webhook.ci]\nprofile = \"github\"\nsecret = \"x\"\nid-header = \"X Id\"\nsignature-header = \"X-Sig\"\nbody-limit = 17\nper-minute = 0\nlimit = 1\n",
        expect![[r#"
            owd.toml:4:13: webhook.ci.id-header = "X Id": not a header; write a header's name, as `X-Signature`
            owd.toml:5:20: webhook.ci.signature-header = "X-Sig": a header that this profile does not choose; remove it; it is for the profile `generic`
            owd.toml:6:14: webhook.ci.body-limit = 17: not between 1 and 16; choose a number within these bounds
            owd.toml:7:14: webhook.ci.per-minute = 0: not between 1 and 1000000; choose a number within these bounds
            owd.toml:8:1: webhook.ci.limit: unknown key; remove it, or use one of `body-limit`, `event-header`, `id-header`, `per-minute`, `profile`, `secret`, `signature-header`, `timestamp-header`, `told-apart`
        "#]],
    );
    for same in [
        "signature-header = \"X-Time\"\ntimestamp-header = \"x-time\"",
        "signature-header = \"x-timestamp\"",
        "id-header = \"X-Timestamp\"",
        "id-header = \"X-Delivery\"\nevent-header = \"X-Delivery\"",
    ] {
        let fault =
            hook(&format!("profile = \"generic\"\nsecret = \"x\"\n{same}")).expect_err("a header holds one thing");
        assert!(format!("{fault:?}").contains("would hold two things"), "{same}: {fault:?}");
    }
    let made =
        hook("profile = \"github\"\nsecret = \"x\"\ntold-apart = \"by-body\"").expect("it is right").expect("a hook");
    assert_eq!(made.scheme().told_apart, ow_webhook::ToldApart::ByBody);
    faults(
        "[webhook.ci]\nprofile = \"slack\"\nsecret = \"x\"\ntold-apart = \"by-id\"\n[webhook.b]\nprofile = \"github\"\nsecret = \"x\"\ntold-apart = \"never\"\n",
        expect![[r#"
            owd.toml:4:14: webhook.ci.told-apart = "by-id": nothing to choose for this profile; remove it; it is for the profile `github`
            owd.toml:8:14: webhook.b.told-apart = "never": not a way to tell deliveries apart; write "by-id", or "by-body" where two events that say the same may count as one
        "#]],
    );
    faults(
        "[webhook.ci]\nsecret = []\n[webhook.a]\nprofile = \"slack\"\nsecret = 5\n",
        expect![[r#"
        owd.toml:1:1: webhook.ci: no `profile`; say how its senders sign: github, gitlab, stripe, slack, linear, standard, generic, bearer
        owd.toml:2:10: webhook.ci.secret = []: 0 secrets; name one to 8
        owd.toml:5:10: webhook.a.secret = 5: expected a secret's name, or a list of them, found a number; keep one with `owctl secret set NAME` and name it: `secret = "NAME"`
    "#]],
    );
}

#[test]
fn the_listener_has_an_address_and_what_senders_reach_it_by() {
    let config =
        read("[listener]\naddress = \"0.0.0.0:8787\"\nurl = \"https://example.org/owd/\"\n").expect("it is right");
    assert_eq!(config.listener.url.as_deref(), Some("https://example.org/owd"));
    assert!(config.listener.is_exposed());
    assert!(!read("[listener]\naddress = \"[::1]:0\"\n").expect("it is right").listener.is_exposed());
    faults(
        "[listener]\naddress = \"localhost\"\nurl = \"hooks.example.org\"\n",
        expect![[r#"
        owd.toml:2:11: listener.address = "localhost": not an address with a port; write an address and a port, as `127.0.0.1:8787`
        owd.toml:3:7: listener.url = "hooks.example.org": not an http or https address without a query; write what senders reach it by, as `https://hooks.example.org` or `https://example.org/owd`
    "#]],
    );
    for bad in ["https://", "https:///x", "ftp://x", "https://x?y", "https://x/#", "https://a b", "https://u@x"] {
        assert!(read(&format!("[listener]\nurl = \"{bad}\"\n")).is_err(), "{bad}");
    }
}

#[test]
fn an_account_is_a_person() {
    let config =
        read("[people.ada]\nuids = [1000]\n[people.bob]\nusers = [\"bob\"]\ninboxes = [\"work\"]\n[inboxes.work]\n")
            .expect("it is right");
    assert_eq!(config.person_of(1000, None).map(|(name, _)| name), Some("ada"));
    let (name, bob) = config.person_of(1001, Some("bob")).expect("bob is known");
    assert_eq!(
        (name, bob.inboxes.contains(&inbox("work")), bob.inboxes.contains(&inbox("home"))),
        ("bob", true, false)
    );
    assert_eq!(config.person_of(1002, Some("eve")), None);
}

#[test]
fn an_unknown_key_is_told_which_was_meant() {
    faults(
        "[schedular]\nworkers = 3\n[log]\nlevels = \"info\"\n[policy]\nsafe_commands = \"on\"\nzzz = 1\n",
        expect![[r#"
            owd.toml:1:2: schedular: unknown key; did you mean `scheduler`?
            owd.toml:4:1: log.levels: unknown key; did you mean `level`?
            owd.toml:6:1: policy.safe_commands: unknown key; did you mean `safe-commands`?
            owd.toml:7:1: policy.zzz: unknown key; remove it, or use one of `allow`, `deny`, `http-allow`, `safe-commands`, `trusted`
        "#]],
    );
}

#[test]
fn a_wrong_value_says_what_belongs_there() {
    faults(
        "timezone = \"Europe/Pariss\"\n[scheduler]\nworkers = 0\ncall-timeout = \"ten minutes\"\ngrace = 5\n[log]\nlevel = \"verbose\"\ntarget = \"syslog\"\n[policy]\nsafe-commands = false\nallow = [\"*\", \"git status\"]\ndeny = [\"\"]\nhttp-allow = [\"https://x.example\"]\n[retention]\nruns = \"1h\"\n",
        expect![[r#"
            owd.toml:1:12: timezone = "Europe/Pariss": unknown time zone; did you mean "Europe/Paris"?
            owd.toml:3:11: scheduler.workers = 0: not between 1 and 1024; choose a number within these bounds
            owd.toml:4:16: scheduler.call-timeout = "ten minutes": not a duration; write a number and a unit, as in `90s`, `15m`, `6h`, `2d` or `1h 30m`
            owd.toml:5:9: scheduler.grace = 5: expected a duration, found a number; write it as `"90s"` or `"1h 30m"`, in quotes
            owd.toml:7:9: log.level = "verbose": not one of the known values; write one of "error", "warn", "info", "debug", "trace"
            owd.toml:8:10: log.target = "syslog": not one of the known values; write one of "stderr", "file", "journald"
            owd.toml:10:17: policy.safe-commands = false: expected one of "on", "off", found a boolean; write one of these
            owd.toml:11:10: policy.allow = "*": allows every command; name the programs that may run; for one task choose `mode = "auto"` there
            owd.toml:12:9: policy.deny = "": an empty entry; write a command, or remove the entry
            owd.toml:13:15: policy.http-allow = "https://x.example": not a host; write `host`, `host:port` or `*.domain`, without scheme and path
            owd.toml:15:8: retention.runs = "1h": not between 1d and 520w; choose a duration within these bounds
        "#]],
    );
}

#[test]
fn the_network_side_stays_on_this_machine() {
    faults(
        "[server]\ntcp = \"0.0.0.0:7700\"\nallowed-origins = [\"https://ok.example\", \"https://x.example/\", \"*\"]\n",
        expect![[r#"
            owd.toml:2:7: server.tcp = "0.0.0.0:7700": not an address of this machine alone: the key would cross the network unencrypted; write an address and a port of this machine, as `127.0.0.1:7700`
            owd.toml:3:42: server.allowed-origins = "https://x.example/": not an origin; write scheme and host, and the port if it is not the scheme's own, without a path: `https://host:8443`
            owd.toml:3:64: server.allowed-origins = "*": not an origin; write scheme and host, and the port if it is not the scheme's own, without a path: `https://host:8443`
        "#]],
    );
    faults(
        "[server]\ntcp = \"7700\"\nkey-file = \"key\"\n",
        expect![[r#"
        owd.toml:2:7: server.tcp = "7700": not an address with a port; write an address and a port of this machine, as `127.0.0.1:7700`
        owd.toml:3:12: server.key-file = "key": a relative path; write the path in full, or begin it with `~/`
    "#]],
    );
}

#[test]
fn an_address_is_one_persons_and_phrases_mean_one_thing() {
    let config = read(
        "[inbox]\napprove-words = [\"make it so\"]\n[mail]\nauthserv-id = \"mx.example.net\"\n[people.ada]\nmail = [\"Ada@Example.org\"]\n",
    )
    .expect("right");
    assert_eq!(config.people["ada"].mail, ["ada@example.org"]);
    assert_eq!(config.mail.authserv_id.as_deref(), Some("mx.example.net"));
    assert_eq!(config.inbox.approve_words, ["make it so"]);
    faults(
        "[inbox]\napprove-words = [\"no\", \"why?\"]\n[mail]\nauthserv-id = \"a b\"\n[people.ada]\nmail = [\"ada@example.org\"]\n[people.bob]\nmail = [\"ADA@example.org\", \"Bob <bob@example.org>\"]\n",
        expect![[r#"
            owd.toml:2:18: inbox.approve-words = "no": a phrase that means the opposite already; write a phrase of words, without marks, that owd does not know yet
            owd.toml:2:24: inbox.approve-words = "why?": not words alone; write a phrase of words, without marks, that owd does not know yet
            owd.toml:4:15: mail.authserv-id = "a b": not the name of a relay; write the name that the relay begins its Authentication-Results with, as `mx.example.net`
            owd.toml:7:1: people.bob: address `ada@example.org` is already `people.ada`; give each address to one person
            owd.toml:8:28: people.bob.mail = "Bob <bob@example.org>": not a mail address; write the bare address, as `ada@example.org`
        "#]],
    );
}

#[test]
fn a_phrase_that_is_unclear_and_an_address_that_is_a_pattern_are_refused() {
    faults(
        "[inbox]\napprove-words = [\"ok\", \"later\", \"thanks\"]\ndeny-words = [\"OK\", \"merci\", \"yes\", \"hold on\"]\n[people.ada]\nmail = [\"*@b.org\"]\n[inboxes.ops]\nmail = [\"*@b.org\"]\n",
        expect![[r#"
            owd.toml:2:24: inbox.approve-words = "later": a phrase that puts a yes in doubt, greets or thanks; write a phrase that says yes or no and nothing else
            owd.toml:2:33: inbox.approve-words = "thanks": a phrase that puts a yes in doubt, greets or thanks; write a phrase that says yes or no and nothing else
            owd.toml:3:15: inbox.deny-words = "OK": a phrase that `approve-words` has too; take it out of one of them, for it cannot mean both
            owd.toml:3:21: inbox.deny-words = "merci": a phrase that puts a yes in doubt, greets or thanks; write a phrase that says yes or no and nothing else
            owd.toml:3:30: inbox.deny-words = "yes": a phrase that means the opposite already; write a phrase of words, without marks, that owd does not know yet
            owd.toml:4:1: people.ada: nobody: it has neither `uids` nor `users`; give `uids = [1000]` or `users = ["ada"]`
            owd.toml:5:9: people.ada.mail = "*@b.org": a pattern, and anybody could write from a fitting address; write each bare address, as `ada@example.org`
            owd.toml:7:9: inboxes.ops.mail = "*@b.org": a pattern, and anybody could write from a fitting address; write each bare address, as `ada@example.org`
        "#]],
    );
}

#[test]
fn mail_is_read_and_sent_as_the_file_says() {
    let config = read(
        "[mail]\nlmtp = \"/run/owd/lmtp.sock\"\n[mail.in]\nserver = \"imap.example.org\"\nuser = \"ada\"\npassword = \"MAIL_PASSWORD\"\n\
         [mail.out]\nserver = \"smtp.example.org\"\nsecurity = \"starttls\"\nfrom = \"owd <owd@example.org>\"\n",
    )
    .expect("right");
    let server = |host: &str, port, security| MailServer { host: host.into(), port, security, ca: None };
    let incoming = config.mail.incoming.expect("a mailbox");
    assert_eq!(incoming.server, server("imap.example.org", 993, MailSecurity::Tls));
    assert_eq!((incoming.user.as_str(), incoming.mailbox.as_str()), ("ada", "INBOX"));
    let way = MailWay::Server { server: server("smtp.example.org", 587, MailSecurity::StartTls), login: None };
    assert_eq!(config.mail.out, Some(MailOutConfig { from: "owd <owd@example.org>".into(), way }));
    let own = read(
        "[mail.in]\nserver = \"127.0.0.1:1143\"\nsecurity = \"none\"\nuser = \"ada\"\npassword = \"P\"\nmailbox = \"Owd\"\n\
         folders = [\"Invoices\"]\n[mail.out]\nserver = \"mail.home\"\nca = \"/etc/ssl/home.pem\"\nfrom = \"owd@mail.home\"\n",
    )
    .expect("right");
    assert_eq!(read(&own.show()).as_ref(), Ok(&own), "what is shown can be read back");
    let Some(MailWay::Server { server: out, .. }) = own.mail.out.map(|out| out.way) else { panic!("a server") };
    assert_eq!(out.ca.as_deref(), Some(std::path::Path::new("/etc/ssl/home.pem")));
    let own = own.mail.incoming.expect("a mailbox");
    assert_eq!(own.folders, ["Invoices"]);
    assert_eq!(own.server, server("127.0.0.1", 1143, MailSecurity::None));
    faults(
        "[mail.in]\nserver = \"imap.example.org:x\"\nuser = \"ada\"\npassword = \"s3cret pass!\"\n[mail.out]\nserver = \"smtp.example.org\"\nsecurity = \"none\"\nfrom = \"a@example.org, b@example.org\"\npassword = \"P\"\n",
        expect![[r#"
            owd.toml:2:10: mail.in.server = "imap.example.org:x": not the name of a server; write a name, and a port if it is not the usual one, as `mail.example.org:993`
            owd.toml:4:12: mail.in.password = [redacted]: not the name of a secret; keep it with `owctl secret set MAIL_PASSWORD`, and write that name here
            owd.toml:5:1: mail.out: `password` without `user`; name the user
            owd.toml:6:10: mail.out.server = "smtp.example.org": not a server of this machine: mail and password would cross the network unencrypted; set `security` to "tls" or "starttls"
            owd.toml:8:8: mail.out.from = "a@example.org, b@example.org": not one mail address; write an address, as `owd@example.org`, or `owd <owd@example.org>`
        "#]],
    );
    faults(
        "[mail.in]\n[mail.out]\nsendmail = \"sendmail\"\nserver = \"smtp.example.org\"\n",
        expect![[r#"
        owd.toml:1:1: mail.in: no `server`; name the mail server: `server = "mail.example.org"`
        owd.toml:1:1: mail.in: a mailbox without `user` and `password`; give `user`, and `password` as the name of a secret: `owctl secret set NAME` keeps it
        owd.toml:2:1: mail.out: mail without `from`; say from which address owd writes: `from = "owd@example.org"`
        owd.toml:3:12: mail.out.sendmail = "sendmail": a relative path; write the path in full, or begin it with `~/`
    "#]],
    );
}

#[test]
fn one_account_is_one_person() {
    faults(
        "[people.ada]\nuids = [1000]\n[people.bob]\nuids = [1000]\n[people.eve]\ninboxes = [\"*\"]\n[people.max]\nuid = 5\n",
        expect![[r#"
            owd.toml:3:1: people.bob: account `1000` is already `people.ada`; give each account to one person
            owd.toml:5:1: people.eve: nobody: it has neither `uids` nor `users`; give `uids = [1000]` or `users = ["ada"]`
            owd.toml:7:1: people.max: nobody: it has neither `uids` nor `users`; give `uids = [1000]` or `users = ["ada"]`
            owd.toml:8:1: people.max.uid: unknown key; did you mean `uids`?
        "#]],
    );
    faults(
        "[people]\nada = 1000\n",
        expect![[r#"
            owd.toml:2:7: people.ada = 1000: expected a table, found a number; write it as `ada = { … }`
        "#]],
    );
}

#[test]
fn an_inbox_says_where_and_when_it_is_told_of() {
    let config = read(
        "[inboxes.default]\nmail = [\"Ada@Example.org\"]\ndesktop = true\nquiet = \"22:00-7:30\"\ndigest = \"10m\"\n\
         escalate = { after = \"4h\", to = \"ops\" }\n[inboxes.ops]\nslack = [\"C0123\"]\n",
    )
    .expect("sound");
    let default = &config.inboxes[&InboxName::default()];
    assert_eq!(default.mail, ["ada@example.org"]);
    let shown = config.show();
    assert!(shown.contains("quiet = \"22:00-07:30\""), "{shown}");
    assert_eq!(read(&shown), Ok(config), "what is shown can be read back");
}

#[test]
fn a_fault_in_an_inbox_is_named_with_its_remedy() {
    faults(
        r#"[inboxes.default]
mail = ["Ada <ada@example.org>"]
slack = ["general"]
ntfy = "ntfy.sh/x"
webhook = "https://ada:pw@example.org/hook"
quiet = "22:00-25:00"
digest = "10"
escalate = { after = "4h", to = "opps" }
[inboxes.ops]
quiet = "7:00-07:00"
webhook-secret = "hook"
escalate = { to = "boss" }
[inboxes.boss]
escalate = { after = "1h", to = "deputy" }
[inboxes.deputy]
escalate = { after = "1h", to = "boss" }
[inboxes."The Lot"]
[people.ada]
uids = [1000]
inboxes = ["op", "nobody-knows"]
"#,
        expect![[r#"
            owd.toml:2:9: inboxes.default.mail = "Ada <ada@example.org>": not a mail address; write the bare address, as `ada@example.org`
            owd.toml:3:10: inboxes.default.slack = "general": not an id of Slack's; write the id of a channel (`C…`) or of a user (`U…`), as Slack shows it under the name
            owd.toml:4:8: inboxes.default.ntfy = "ntfy.sh/x": not an address that begins with https:// or http://; write the topic's address, as `https://ntfy.sh/my-topic`
            owd.toml:5:11: inboxes.default.webhook = [redacted]: an address with a password in it; write the address to call, as `https://example.org/owd`
            owd.toml:6:9: inboxes.default.quiet = "22:00-25:00": not a time of day; write two times of day, as `22:00-07:00`
            owd.toml:7:10: inboxes.default.digest = "10": not a duration; write a number and a unit, as in `90s`, `15m`, `6h`, `2d` or `1h 30m`
            owd.toml:8:33: inboxes.default.escalate.to = "opps": unknown inbox; did you mean "ops"?
            owd.toml:9:1: inboxes.ops: `webhook-secret` without `webhook`; name the address that is called, or remove it
            owd.toml:10:9: inboxes.ops.quiet = "7:00-07:00": begins when it ends; write two times of day, as `22:00-07:00`
            owd.toml:12:12: inboxes.ops.escalate: no `after`; write both, as `escalate = { after = "4h", to = "ops" }`
            owd.toml:13:1: inboxes.boss: escalates in a circle: boss → deputy → boss; let one of them escalate no further
            owd.toml:17:1: inboxes.The Lot: inbox name `The Lot` holds 'T'; use lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit; give it another name
            owd.toml:20:12: people.ada.inboxes = "op": unknown inbox; did you mean "ops"?
            owd.toml:20:18: people.ada.inboxes = "nobody-knows": unknown inbox; use one of `boss`, `default`, `deputy`, `ops`, or add a section `[inboxes.NAME]` to owd.toml
        "#]],
    );
}

#[test]
fn a_file_that_is_not_toml_is_named_by_its_line() {
    faults(
        "[log]\nlevel = info\n",
        expect![[r#"
            owd.toml:2:9: not TOML: invalid float, expected `inf`; correct the line `level = info`: a text stands in quotes
        "#]],
    );
    faults(
        "[log]\nlevel = \"info\"\n[log]\n",
        expect![[r#"
        owd.toml:3:2: not TOML: duplicate key; correct the line `[log]`
    "#]],
    );
}

#[test]
fn a_missing_file_is_an_error_only_where_it_was_asked_for() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("owd.toml");
    assert_eq!(Config::load_if_present(&file, &host()), Ok(Config::new(&host())));
    let error = Config::load(&file, &host()).expect_err("there is none").to_string();
    expect!["./owd.toml: cannot be read: No such file or directory (os error 2); check the path, or leave it out: every setting has a default"].assert_eq(&error.replace(&*folder.path().to_string_lossy(), "."));
    std::fs::write(&file, b"# caf\xe9\n").expect("a scratch file");
    let error = Config::load_if_present(&file, &host()).expect_err("it is not UTF-8").to_string();
    expect!["./owd.toml: cannot be read: stream did not contain valid UTF-8; save it as UTF-8"]
        .assert_eq(&error.replace(&*folder.path().to_string_lossy(), "."));
}

#[test]
fn the_zone_is_the_environment_s_by_name() {
    let host = |zone: &'static str| {
        Host::new(&move |name: &str| match name {
            "TZ" => Some(zone.into()),
            "HOME" => Some("/home/ada".into()),
            _ => None,
        })
    };
    assert_eq!(host("Asia/Tokyo").timezone, ZoneName("Asia/Tokyo".into()));
    assert_eq!(host(":Asia/Tokyo").timezone, ZoneName("Asia/Tokyo".into()));
    assert!(!host("Mars/Olympus").timezone.0.is_empty());
    assert_eq!(host("UTC").home, Path::new("/home/ada"));
}

#[test]
fn a_tools_class_is_given_by_name_or_pattern() {
    let config = read("[tool-risk]\nshell = \"external\"\n\"mail.*\" = \"read\"\n").expect("it is right");
    assert_eq!(config.tool_risk, BTreeMap::from([("mail.*".into(), Risk::Read), ("shell".into(), Risk::External)]));
    faults(
        "[tool-risk]\nshell = \"wild\"\n\"Mail X\" = \"read\"\nlist_dir = 3\n",
        expect![[r#"
            owd.toml:2:9: tool-risk.shell = "wild": not one of the known values; write one of "read", "write-local", "exec", "external"
            owd.toml:3:12: tool-risk.Mail X: not the name of a tool; write a name as `owctl tool list` shows it, or a pattern such as "mail.*"
            owd.toml:4:12: tool-risk.list_dir = 3: expected one of "read", "write-local", "exec", "external", found a number; write one of these
        "#]],
    );
}

#[test]
fn the_patience_of_a_loop_detector_is_set_by_tool_and_checked() {
    let config =
        read("[agent.loops.\"*\"]\nsleep = [3]\n[agent.loops.shell]\nsleep = \"off\"\nno-progress = [10, 20]\n")
            .expect("it is right");
    let limits = &config.agent.loops;
    assert_eq!(limits.of("shell", Detector::Sleep), Some(Patience::Off));
    assert_eq!(limits.of("shell", Detector::NoProgress), Some(Patience::Until { nudge: 10, stop: Some(20) }));
    assert_eq!(limits.of("grep", Detector::Sleep), Some(Patience::Until { nudge: 3, stop: None }));
    assert_eq!(limits.of("grep", Detector::NoProgress), None);
    faults(
        "[agent.loops]\nsleep = [2, 4]\n\"Shell!\" = {}\ngrep = 3\n[agent.loops.shell]\nslep = \"off\"\n\
         sleep = [4, 2]\nno-progress = [8, 21]\nexact-duplicate = [1]\nsame-tool-error = true\n\
         tool-mode-switch = [1, 2]\nsearch-escalation = []\n",
        expect![[r#"
            owd.toml:2:9: agent.loops.sleep: a detector where a tool belongs; name the tool first: `[agent.loops.shell]`, or `[agent.loops."*"]` for all; there `sleep = …`
            owd.toml:3:12: agent.loops.Shell!: not the name of a tool; write a name as `owctl tool list` shows it, or "*" for all tools
            owd.toml:4:8: agent.loops.grep = 3: expected a table, found a number; write it as `grep = { … }`
            owd.toml:6:1: agent.loops.shell.slep: unknown key; did you mean `sleep`?
            owd.toml:7:9: agent.loops.shell.sleep = [4, 2]: would end the turn at 2 calls, before the model is told at 4; let the second number be no smaller than the first
            owd.toml:8:19: agent.loops.shell.no-progress = 21: not between 1 and 20; choose a number within these bounds
            owd.toml:9:20: agent.loops.shell.exact-duplicate = 1: not between 2 and 20; choose a number within these bounds
            owd.toml:10:19: agent.loops.shell.same-tool-error = true: not what this loop detector can be set to; write `[3, 6]` to tell the model at 3 calls and end the turn at 6, `[3]` to tell it alone, or "off"
            owd.toml:11:20: agent.loops.shell.tool-mode-switch = [1, 2]: not what this loop detector can be set to; it counts nothing: write "off", or remove the line
            owd.toml:12:21: agent.loops.shell.search-escalation = []: not what this loop detector can be set to; write `[3, 6]` to tell the model at 3 calls and end the turn at 6, `[3]` to tell it alone, or "off"
        "#]],
    );
}

#[test]
fn slack_is_named_by_secrets_and_people_by_member_ids() {
    faults(
        "[slack]\nbot-token = \"xoxb-1-2\"\napi-url = \"http://slack.example/api\"\n[people.ada]\nslack = [\"@ada\"]\n",
        expect![[r#"
            owd.toml:2:13: slack.bot-token: a token itself, where others may read it; write the name of a secret, as `slack-bot-token`, and store the token with: owctl secret set NAME
            owd.toml:3:11: slack.api-url = "http://slack.example/api": an address that anybody on the way can read; leave it out for Slack's own; another is `https://…`, or `http://` with an address of this machine
            owd.toml:4:1: people.ada: nobody: it has neither `uids` nor `users`; give `uids = [1000]` or `users = ["ada"]`
            owd.toml:5:10: people.ada.slack = "@ada": not a Slack member id; write the member id, as `U024BE7LH`: in Slack, open the profile and choose “Copy member ID”
        "#]],
    );
    faults(
        "[slack]\napp-token = \"slack-app-token\"\n",
        expect![[r#"
        owd.toml:1:1: slack: `bot-token` is missing; write the name of the secret that is the bot's token, as `bot-token = "slack-bot-token"`
    "#]],
    );
    faults(
        "[people.ada]\nslack = [\"U12\"]\n[people.bob]\nslack = [\"U12\"]\n",
        expect![[r#"
        owd.toml:3:1: people.bob: Slack user `U12` is already `people.ada`; give each user id to one person
    "#]],
    );
    let config =
        read("[slack]\nbot-token = \"slack-bot-token\"\napi-url = \"http://127.0.0.1:9/api/\"\n").expect("right");
    let slack = config.slack.expect("there");
    assert_eq!((slack.bot_token.as_str(), slack.app_token, slack.reactions), ("slack-bot-token", None, false));
}
