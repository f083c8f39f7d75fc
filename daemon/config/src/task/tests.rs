#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
#![expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]

use std::fmt::Write;
use std::path::Path;

use expect_test::{Expect, expect};
use jiff::Timestamp;
use ow_model::{CatchUp, EventDelivery, TaskSpec, ToolName, Trigger, WatchKind};
use serde_json::json;

use super::*;
use crate::{Config, FileFault, Host};

mod agent;
mod round_trip;

/// Three tools, as strict as the real ones about names of arguments.
struct Tools;

impl ToolChecker for Tools {
    fn known(&self) -> Vec<ToolName> {
        ["shell", "write_file", "http_request", "move_file", "search_files", "notify"]
            .map(|name| name.parse().expect("a well-formed name"))
            .to_vec()
    }

    fn check(&self, tool: &ToolName, args: &Value) -> Result<(), String> {
        match (tool.as_str(), args.get("argv")) {
            ("shell", None) if args.get("command").is_none() => Err("`shell` needs argument `argv`".into()),
            ("shell", Some(words)) if !words.is_array() => {
                Err(format!("argument `argv`: expected a list, found {words}"))
            }
            _ => Ok(()),
        }
    }
}

fn host() -> Host {
    Host { home: "/home/ada".into(), timezone: ZoneName("UTC".into()) }
}

fn defaults() -> TaskDefaults {
    TaskDefaults {
        webhooks: vec!["ci".parse().expect("a name"), "stripe".parse().expect("a name")],
        mail_folders: vec!["Invoices".into()],
        ..Config::new(&host()).task_defaults(&host())
    }
}

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().expect("an instant")
}

fn read(text: &str) -> Result<TaskSpec, Vec<FileFault>> {
    let name = "reports".parse().expect("a well-formed name");
    parse_task(&name, text, Some(Path::new("tasks.d/reports.toml")), &defaults(), &Tools, now())
}

fn good(text: &str) -> TaskSpec {
    read(text).unwrap_or_else(|faults| panic!("{text}\n{}", lines(&faults)))
}

fn lines(faults: &[FileFault]) -> String {
    faults.iter().fold(String::new(), |mut all, fault| {
        writeln!(all, "{fault}").expect("a string takes all text");
        all
    })
}

/// Reads a faulty task and compares all that is said about it.
fn faults(text: &str, expected: Expect) {
    expected.assert_eq(&lines(&read(text).expect_err("the text is faulty")));
}

/// Likewise for keys of the task itself, above one good step.
fn key_faults(keys: &str, expected: Expect) {
    faults(&format!("{keys}\n[[step]]\ntool = \"shell\"\nargs = {{ argv = [\"true\"] }}\n"), expected);
}

/// Likewise for the body of the one trigger.
fn trigger_faults(trigger: &str, expected: Expect) {
    key_faults(&format!("[[trigger]]\n{trigger}"), expected);
}

const ISSUE: &str = r#"
title = "Morning disk report"
timezone = "Europe/Paris"
catch-up = "once"
overlap = "skip"
roots = ["~/reports"]

[[trigger]]
cron = "0 6 * * mon-fri"

[[trigger]]
watch = { path = "~/reports/requests", glob = "*.txt", settle = "2s" }

[[step]]
tool = "shell"
args = { argv = ["df", "-h"] }
save-as = "disks"

[[step]]
tool = "write_file"
args = { path = "~/reports/{{ slot.date }}.md", content = "{{ steps.disks.stdout }}" }
"#;

#[test]
fn a_task_names_an_inbox_that_there_is() {
    let step = "[[step]]\ntool = \"shell\"\nargs = { argv = [\"true\"] }\n";
    let config = Config::parse("[inboxes.ops]\n", None, &host()).expect("sound");
    let name = "reports".parse().expect("a well-formed name");
    let text = format!("inbox = \"ops\"\n{step}");
    let spec = parse_task(&name, &text, None, &config.task_defaults(&host()), &Tools, now()).expect("sound");
    assert_eq!(spec.inbox.as_str(), "ops");
    let written = to_toml(&spec);
    assert_eq!(parse_task(&name, &written, None, &config.task_defaults(&host()), &Tools, now()), Ok(spec), "{written}");
    assert_eq!(good(step).inbox, ow_model::InboxName::default());
    key_faults(
        "inbox = \"opps\"",
        expect![[r#"
        tasks.d/reports.toml:1:9: inbox = "opps": unknown inbox; use one of `default`, or add a section `[inboxes.NAME]` to owd.toml
    "#]],
    );
    key_faults(
        "inbox = \"defualt\"",
        expect![[r#"
        tasks.d/reports.toml:1:9: inbox = "defualt": unknown inbox; did you mean "default"?
    "#]],
    );
}

#[test]
fn a_task_file_is_read_into_a_task() {
    let spec = good(ISSUE);
    assert_eq!(spec.title.as_deref(), Some("Morning disk report"));
    assert_eq!(spec.timezone, ZoneName("Europe/Paris".into()));
    assert_eq!(spec.roots, [Path::new("/home/ada/reports")]);
    assert_eq!(
        spec.triggers,
        [
            Trigger::Cron("0 6 * * mon-fri".into()),
            Trigger::Watch {
                path: "/home/ada/reports/requests".into(),
                glob: Some("*.txt".into()),
                settle: Span::from_secs(2),
                on: vec![WatchKind::Create, WatchKind::Change, WatchKind::Move],
            },
        ]
    );
    assert_eq!(spec.steps[0].save_as.as_deref(), Some("disks"));
    assert_eq!(
        spec.steps[1].args,
        json!({ "path": "~/reports/{{ slot.date }}.md", "content": "{{ steps.disks.stdout }}" })
    );
}

#[test]
fn what_a_task_does_not_say_is_the_configuration_s() {
    let spec = good("[[step]]\ntool = \"notify\"\nargs = { text = \"hello\" }\n");
    expect![[r#"
        timezone = "UTC"
        mode = "ask"
        roots = []
        catch-up = "once"
        overlap = "skip"
        while-parked = "hold"
        events = { batch = 1000 }
        jitter = "0s"
        timeout = "1h"
        call-timeout = "10m"
        retry = { attempts = 0, backoff = "1m" }
        auto-pause-after = 10
        needs = []
        expiry = "2w"
        reminder = "1d"
        http-allow = []

        [[step]]
        tool = "notify"
        args = { text = "hello" }
    "#]]
    .assert_eq(&to_toml(&spec));
}

#[test]
fn every_form_of_a_trigger_is_read() {
    for (text, expected) in [
        (r#"cron = "@daily""#, "Cron(\"@daily\")"),
        (r#"every = "15m""#, "Every { period: Span(900000), anchor: None }"),
        (
            "every = \"1d\"\nanchor = 2026-11-30T08:00:00",
            "Every { period: Span(86400000), anchor: Some(2026-11-30T07:00:00Z) }",
        ),
        (r#"at = "2026-12-24T18:00""#, "At(2026-12-24T17:00:00Z)"),
        ("at = 2026-12-24T18:00:00Z", "At(2026-12-24T18:00:00Z)"),
        (r#"after = "other""#, "After { task: TaskName(\"other\"), on: Success }"),
        (r#"after = { task = "other", on = "any" }"#, "After { task: TaskName(\"other\"), on: Any }"),
        ("startup = true", "Startup"),
        (r#"slack = "C01""#, "Slack { channel: \"C01\", from: [], when: None }"),
        (
            r#"slack = { channel = "C01", from = ["U01"], when = "event.text == 'go'" }"#,
            "Slack { channel: \"C01\", from: [\"U01\"], when: Some(\"event.text == 'go'\") }",
        ),
        ("mail = {}", "Mail(MailFilter { from: [], subject: None, list: None, folder: None })"),
        (
            r#"mail = { from = ["Bob@example.org", "@example.net"], subject = "invoice*" }"#,
            "Mail(MailFilter { from: [\"bob@example.org\", \"@example.net\"], subject: Some(\"invoice*\"), list: None, folder: None })",
        ),
        (
            r#"mail = { folder = "Invoices" }"#,
            "Mail(MailFilter { from: [], subject: None, list: None, folder: Some(\"Invoices\") })",
        ),
        (r#"webhook = "ci""#, "Webhook { hook: WebhookName(\"ci\"), when: None }"),
        (
            r#"webhook = { hook = "ci", when = "event.name == 'push'" }"#,
            "Webhook { hook: WebhookName(\"ci\"), when: Some(\"event.name == 'push'\") }",
        ),
        (
            r#"watch = { path = "/srv/in/", on = ["move"], settle = "0s" }"#,
            "Watch { path: \"/srv/in\", glob: None, settle: Span(0), on: [Move] }",
        ),
    ] {
        let spec = good(&format!(
            "timezone = \"Europe/Paris\"\n[[trigger]]\n{text}\n[[step]]\ntool = \"notify\"\nargs = {{}}\n"
        ));
        assert_eq!(format!("{:?}", spec.triggers[0]), expected, "{text}");
    }
}

#[test]
fn a_filter_of_mail_names_addresses_or_domains_and_a_list() {
    let from = "trigger[1].mail.from = ";
    for (trigger, fault) in [
        (r#"{ from = ["bob"] }"#, format!("{from}\"bob\": neither a mail address nor a domain; write bare addresses")),
        (r#"{ from = ["@"] }"#, format!("{from}\"@\": neither a mail address nor a domain")),
        (r#"{ from = ["Bob <bob@example.org>"] }"#, format!("{from}\"Bob <bob@example.org>\": neither")),
        (
            r#"{ list = "<team.example.org>" }"#,
            "trigger[1].mail.list = \"<team.example.org>\": not the id of a list".into(),
        ),
        (r#"{ sender = "bob@example.org" }"#, "trigger[1].mail.sender: unknown key".into()),
    ] {
        let text = format!("[[trigger]]\nmail = {trigger}\n[[step]]\ntool = \"notify\"\nargs = {{}}\n");
        let faults = read(&text).expect_err(trigger);
        assert!(faults.iter().any(|found| found.to_string().contains(&fault)), "{faults:?}");
    }
}

#[test]
fn a_webhook_is_one_that_there_is_and_its_filter_asks_the_event_alone() {
    for (trigger, fault) in [
        (r#""cii""#, "trigger[1].webhook = \"cii\": no such webhook; did you mean \"ci\"?"),
        (
            r#""gitea""#,
            "trigger[1].webhook = \"gitea\": no such webhook; add `[webhook.gitea]` to owd.toml, then `owctl reload`",
        ),
        ("{}", "trigger[1].webhook: no `hook`; name the webhook, as `hook = \"ci\"`"),
        (
            r#"{ hook = "ci", when = "{{ event.name }}" }"#,
            "trigger[1].webhook.when = \"{{ event.name }}\": `when` is an expression already; write the expression without braces, as `when = \"event.name == 'push'\"`",
        ),
        (
            r#"{ hook = "ci", when = "slot.date == event.day" }"#,
            "trigger[1].webhook.when = \"slot.date == event.day\": `slot.date` is not known before there is a run; compare what was delivered: `event.name`, `event.payload`, `event.headers`",
        ),
        (
            r#"{ hook = "ci", when = "payload.ref == 1" }"#,
            "trigger[1].webhook.when = \"payload.ref == 1\": unknown name `payload`; begin with `task`, `slot`, `run`, `event` or `steps`; put a text in quotes",
        ),
    ] {
        let text = format!("[[trigger]]\nwebhook = {trigger}\n[[step]]\ntool = \"notify\"\nargs = {{}}\n");
        let faults = read(&text).expect_err(trigger);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].to_string().ends_with(fault), "{}\n{fault}", faults[0]);
    }
}

#[test]
fn a_slack_trigger_names_channel_and_members_by_id() {
    for (trigger, fault) in [
        (
            r##""#general""##,
            "trigger[1].slack = \"#general\": not an id of Slack's; write the channel's id, as `C0123456789`: at the end of its details in Slack",
        ),
        ("{}", "trigger[1].slack: no `channel`; name the channel, as `channel = \"C0123456789\"`"),
        (
            r#"{ channel = "C0123456789", from = ["@ada"] }"#,
            "trigger[1].slack.from = \"@ada\": not an id of Slack's; write the member id, as `U024BE7LH`: in Slack, open the profile and choose “Copy member ID”",
        ),
    ] {
        let text = format!("[[trigger]]\nslack = {trigger}\n[[step]]\ntool = \"notify\"\nargs = {{}}\n");
        let faults = read(&text).expect_err(trigger);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].to_string().ends_with(fault), "{}\n{fault}", faults[0]);
    }
}

#[test]
fn words_and_their_counted_forms_are_read() {
    let step = "[[step]]\ntool = \"notify\"\n";
    assert_eq!(good(&format!("catch-up = {{ all = 5 }}\n{step}")).catch_up, CatchUp::All { max: 5 });
    assert_eq!(good(&format!("events = \"each\"\n{step}")).events, EventDelivery::Each { max: 1000 });
    assert_eq!(good(&format!("events = {{ each = 7 }}\n{step}")).events, EventDelivery::Each { max: 7 });

    // In a batch these would see the newest event alone.
    let reads =
        |what: &str| good(&format!("[[step]]\ntool = \"notify\"\nargs = {{ title = \"x\", text = \"{what}\" }}"));
    assert_eq!(reads("{{ event.payload.ref }}").events, EventDelivery::Each { max: 1000 });
    assert_eq!(reads("{{ event.count }} came, the newest {{ event.path }}").events, EventDelivery::Batch { max: 1000 });
    assert_eq!(reads("{{ slot.date }}").events, EventDelivery::Batch { max: 1000 });
    let said = "events = \"batch\"\n[[step]]\ntool = \"notify\"\nargs = { title = \"x\", text = \"{{ event.path }}\" }";
    assert_eq!(good(said).events, EventDelivery::Batch { max: 1000 });
}

#[test]
fn the_zone_has_the_database_s_spelling() {
    let spec = good("timezone = \"europe/paris\"\n[[step]]\ntool = \"notify\"\n");
    assert_eq!(spec.timezone, ZoneName("Europe/Paris".into()));
}

#[test]
fn text_that_is_not_toml_is_named_by_its_line() {
    faults(
        "title = \"a\"\n[[step]\ntool = \"shell\"\n",
        expect![[r#"
        tasks.d/reports.toml:2:8: not TOML: unclosed array table, expected `]`; correct the line `[[step]`
    "#]],
    );
    faults(
        "title = \"a\ntool = 3\n",
        expect![[r#"
        tasks.d/reports.toml:1:11: not TOML: invalid basic string, expected `"`; correct the line `title = "a`
    "#]],
    );
    faults(
        "title = \"a\"\ntitle = \"b\"\n",
        expect![[r#"
        tasks.d/reports.toml:2:1: not TOML: duplicate key; correct the line `title = "b"`
    "#]],
    );
    faults(
        "just words\n",
        expect![[r#"
        tasks.d/reports.toml:1:6: not TOML: key with no value, expected `=`; correct the line `just words`
    "#]],
    );
}

#[test]
fn an_unknown_key_is_told_which_was_meant() {
    key_faults(
        "catchup = \"once\"\ntime-zone = \"UTC\"\ncolour = \"red\"",
        expect![[r#"
            tasks.d/reports.toml:1:1: catchup: unknown key; did you mean `catch-up`?
            tasks.d/reports.toml:2:1: time-zone: unknown key; did you mean `timezone`?
            tasks.d/reports.toml:3:1: colour: unknown key; remove it, or use one of `auto-pause-after`, `budget`, `call-timeout`, `catch-up`, `concurrency`, `events`, `expiry`, `failover`, `goal`, `http-allow`, `inbox`, `instructions`, `jitter`, `loops`, `max-iterations`, `mode`, `model`, `needs`, `overlap`, `reminder`, `retry`, `roots`, `start-deadline`, `step`, `timeout`, `timezone`, `title`, `tools`, `trigger`, `while-parked`
        "#]],
    );
    faults(
        "[[step]]\ntool = \"shell\"\nargs = { argv = [\"x\"] }\nsave_as = \"a\"\nname = \"b\"\n",
        expect![[r#"
        tasks.d/reports.toml:4:1: step[1].save_as: unknown key; did you mean `save-as`?
        tasks.d/reports.toml:5:1: step[1].name: unknown key; remove it, or use one of `args`, `if`, `on-error`, `save-as`, `tool`
    "#]],
    );
    trigger_faults(
        "cron = \"@daily\"\ntz = \"UTC\"",
        expect![[r#"
            tasks.d/reports.toml:3:1: trigger[1].tz: unknown key; remove it, or use one of `after`, `anchor`, `at`, `cron`, `every`, `mail`, `slack`, `startup`, `watch`, `webhook`
        "#]],
    );
    trigger_faults(
        "watch = { path = \"/a\", globs = \"*\" }",
        expect![[r#"
        tasks.d/reports.toml:2:24: trigger[1].watch.globs: unknown key; did you mean `glob`?
    "#]],
    );
    key_faults(
        "retry = { attempts = 1, back-off = \"1m\" }",
        expect![[r#"
        tasks.d/reports.toml:1:25: retry.back-off: unknown key; did you mean `backoff`?
    "#]],
    );
}

#[test]
fn a_wrong_type_says_what_belongs_there() {
    key_faults(
        "title = 3\nroots = \"~/a\"\ntimeout = 60\nauto-pause-after = \"3\"\ncatch-up = true\nretry = 3\nneeds = [1]",
        expect![[r#"
            tasks.d/reports.toml:1:9: title = 3: expected a text, found a number; put it in quotes
            tasks.d/reports.toml:2:9: roots = "~/a": expected a list of texts, found a text; write it as `["one", "two"]`
            tasks.d/reports.toml:3:11: timeout = 60: expected a duration, found a number; write it as `"90s"` or `"1h 30m"`, in quotes
            tasks.d/reports.toml:4:20: auto-pause-after = "3": expected a whole number, found a text; write it in digits, without quotes
            tasks.d/reports.toml:5:12: catch-up = true: expected one of "once", "none", { all = N }, found a boolean; write one of these
            tasks.d/reports.toml:6:9: retry = 3: expected a table, found a number; write it as `retry = { … }`
            tasks.d/reports.toml:7:10: needs = 1: expected a text, found a number; put it in quotes
        "#]],
    );
    faults(
        "trigger = \"daily\"\nstep = { tool = \"shell\" }",
        expect![[r#"
            tasks.d/reports.toml:1:11: trigger = "daily": expected a list of tables, found a text; write `[[trigger]]` above each
            tasks.d/reports.toml:2:8: step = { tool = "shell" }: expected a list of tables, found a table; write `[[step]]` above each
        "#]],
    );
    faults(
        "[[step]]\ntool = [\"shell\"]\nargs = \"df\"\nif = true\n",
        expect![[r#"
            tasks.d/reports.toml:2:8: step[1].tool = ["shell"]: expected a text, found a list; put it in quotes
            tasks.d/reports.toml:3:8: step[1].args = "df": expected a table, found a text; write it as `args = { … }`
            tasks.d/reports.toml:4:6: step[1].if = true: expected a text, found a boolean; put it in quotes
        "#]],
    );
}

#[test]
fn a_value_out_of_bounds_or_unknown_is_refused() {
    key_faults(
        "mode = \"autoo\"\noverlap = \"wait\"\ncatch-up = { all = 0 }\nevents = { batch = 1, each = 2 }\nwhile-parked = { hold = 1 }\nneeds = [\"network\", \"power\"]",
        expect![[r#"
            tasks.d/reports.toml:1:8: mode = "autoo": not one of the known values; did you mean "auto"?
            tasks.d/reports.toml:2:11: overlap = "wait": not one of the known values; write one of "skip", "queue", "cancel-previous", { allow = N }
            tasks.d/reports.toml:3:20: catch-up.all = 0: not between 1 and 1000000; choose a number within these bounds
            tasks.d/reports.toml:4:10: events = { batch = 1, each = 2 }: not one of the known values; write one of "batch", "each", { batch = N }, { each = N }
            tasks.d/reports.toml:5:16: while-parked = { hold = 1 }: expected one of "hold", "release", "supersede", found a table; write one of these
            tasks.d/reports.toml:6:21: needs = "power": not one of the known values; write "network", or remove it
        "#]],
    );
    key_faults(
        "timeout = \"0s\"\njitter = \"1h 5x\"\nexpiry = \"1000w\"\nstart-deadline = \"9999999999999w\"\nauto-pause-after = -1\nretry = { backoff = \"1m\" }",
        expect![[r#"
            tasks.d/reports.toml:1:11: timeout = "0s": not between 1s and 520w; choose a duration within these bounds
            tasks.d/reports.toml:2:10: jitter = "1h 5x": not a duration; write a number and a unit, as in `90s`, `15m`, `6h`, `2d` or `1h 30m`
            tasks.d/reports.toml:3:10: expiry = "1000w": not between 1s and 520w; choose a duration within these bounds
            tasks.d/reports.toml:4:18: start-deadline = "9999999999999w": too long a duration; write a shorter one
            tasks.d/reports.toml:5:20: auto-pause-after = -1: not between 0 and 1000000; choose a number within these bounds
            tasks.d/reports.toml:6:9: retry: no `attempts`; say how often to try again
        "#]],
    );
    key_faults(
        "title = \"a\\nb\"\nconcurrency = \"Two Words\"",
        expect![[r#"
        tasks.d/reports.toml:1:9: title = "a\nb": not one line of text of at most 200 bytes; write a short line, or leave it out
        tasks.d/reports.toml:2:15: concurrency = "Two Words": not a name; write a short name, as `backups`
    "#]],
    );
}

#[test]
fn an_unknown_zone_is_told_which_was_meant() {
    key_faults(
        "timezone = \"Europe/Pairs\"",
        expect![[r#"
        tasks.d/reports.toml:1:12: timezone = "Europe/Pairs": unknown time zone; did you mean "Europe/Paris"?
    "#]],
    );
    key_faults(
        "timezone = \"New York\"",
        expect![[r#"
        tasks.d/reports.toml:1:12: timezone = "New York": unknown time zone; did you mean "America/New_York"?
    "#]],
    );
    key_faults(
        "timezone = \"+02:00\"",
        expect![[r#"
        tasks.d/reports.toml:1:12: timezone = "+02:00": unknown time zone; write an IANA name, as "Europe/Paris" or "UTC"
    "#]],
    );
    key_faults(
        "timezone = \"Mars/Olympus\"",
        expect![[r#"
        tasks.d/reports.toml:1:12: timezone = "Mars/Olympus": unknown time zone; write an IANA name, as "Europe/Paris" or "UTC"
    "#]],
    );
}

#[test]
fn paths_are_absolute_and_plain() {
    key_faults(
        "roots = [\"reports\", \"~bob/x\", \"/a/../b\", \"/\", \"/a\", \"/a/\"]",
        expect![[r#"
        tasks.d/reports.toml:1:10: roots = "reports": a relative path; write the path in full, or begin it with `~/`
        tasks.d/reports.toml:1:21: roots = "~bob/x": another account's home; write the path in full, or `~/…` for your own home
        tasks.d/reports.toml:1:31: roots = "/a/../b": a path with `..`; write the path that it leads to
        tasks.d/reports.toml:1:42: roots = "/": the whole file system; name the folders that the task works in
        tasks.d/reports.toml:1:53: roots = "/a/": named twice; remove one of them
    "#]],
    );
    trigger_faults(
        "watch = { path = \"inbox\" }",
        expect![[r#"
        tasks.d/reports.toml:2:18: trigger[1].watch.path = "inbox": a relative path; write the path in full, or begin it with `~/`
    "#]],
    );
    trigger_faults(
        "watch = { path = \"~/in\", glob = \"/tmp/*\", on = [\"delete\"] }",
        expect![[r#"
            tasks.d/reports.toml:2:33: trigger[1].watch.glob = "/tmp/*": a pattern with a whole path; put the folder into `path`; the pattern is tried below it
            tasks.d/reports.toml:2:49: trigger[1].watch.on = "delete": not one of the known values; write "create", "change" or "move"
        "#]],
    );
    trigger_faults(
        "watch = { glob = \"[a\" }",
        expect![[r#"
        tasks.d/reports.toml:2:9: trigger[1].watch: no `path`; name the folder, as `path = "~/inbox"`
        tasks.d/reports.toml:2:18: trigger[1].watch.glob = "[a": a `[` that is never closed; close it with `]`, or write `\[` for the letter
    "#]],
    );
}

#[test]
fn a_host_is_a_name_without_scheme_and_path() {
    key_faults(
        "http-allow = [\"example.org:8080\", \"*.example.org\", \"[::1]:80\", \"https://example.org\", \"*.org\", \"*\", \"a b\", \"x:0\"]",
        expect![[r#"
            tasks.d/reports.toml:1:64: http-allow = "https://example.org": not a host; write `host`, `host:port` or `*.domain`, without scheme and path
            tasks.d/reports.toml:1:87: http-allow = "*.org": not a host; write `host`, `host:port` or `*.domain`, without scheme and path
            tasks.d/reports.toml:1:96: http-allow = "*": not a host; write `host`, `host:port` or `*.domain`, without scheme and path
            tasks.d/reports.toml:1:101: http-allow = "a b": not a host; write `host`, `host:port` or `*.domain`, without scheme and path
            tasks.d/reports.toml:1:108: http-allow = "x:0": not a host; write `host`, `host:port` or `*.domain`, without scheme and path
        "#]],
    );
}

#[test]
fn a_trigger_has_exactly_one_occasion_that_can_come() {
    trigger_faults(
        "",
        expect![[r#"
            tasks.d/reports.toml:1:1: trigger[1]: a trigger without an occasion; give it one of `cron`, `every`, `at`, `watch`, `webhook`, `slack`, `mail`, `after` or `startup`
        "#]],
    );
    trigger_faults(
        "cron = \"@daily\"\nevery = \"1h\"",
        expect![[r#"
        tasks.d/reports.toml:1:1: trigger[1]: several occasions in one trigger: `cron`, `every`; write a `[[trigger]]` for each
    "#]],
    );
    trigger_faults(
        "cron = \"@daily\"\nanchor = 2026-01-01T00:00:00Z",
        expect![[r#"
        tasks.d/reports.toml:3:10: trigger[1].anchor = 2026-01-01T00:00:00Z: `anchor` beside `cron`; remove it; only `every` has an anchor
    "#]],
    );
    trigger_faults(
        "startup = false",
        expect![[r#"
        tasks.d/reports.toml:2:11: trigger[1].startup = false: never fires; remove the trigger, or write `startup = true`
    "#]],
    );
    trigger_faults(
        "every = \"0s\"",
        expect![[r#"
            tasks.d/reports.toml:2:9: trigger[1].every = "0s": not between 1s and 520w; choose a duration within these bounds
        "#]],
    );
    trigger_faults(
        "every = \"1h\"\nanchor = \"noon\"",
        expect![[r#"
        tasks.d/reports.toml:3:10: trigger[1].anchor = "noon": not a date and time; write `2026-12-24T18:00:00` (in the task's zone) or `2026-12-24T18:00:00+01:00`
    "#]],
    );
    trigger_faults(
        "at = \"2026-11-30T11:59:59Z\"",
        expect![[r#"
        tasks.d/reports.toml:2:6: trigger[1].at = "2026-11-30T11:59:59Z": in the past: it is 2026-11-30 12:00:00 UTC now; choose a later time, or run the task by hand with `owctl task run`
    "#]],
    );
    trigger_faults(
        "at = 2026-12-01",
        expect![[r#"
        tasks.d/reports.toml:2:6: trigger[1].at = 2026-12-01: not a date and time; write `2026-12-24T18:00:00` (in the task's zone) or `2026-12-24T18:00:00+01:00`
    "#]],
    );
    trigger_faults(
        "after = \"reports\"",
        expect![[r#"
        tasks.d/reports.toml:2:9: trigger[1].after = "reports": follows itself; name another task, or use `every`
    "#]],
    );
    trigger_faults(
        "after = { task = \"Other!\", on = \"always\" }",
        expect![[r#"
            tasks.d/reports.toml:2:18: trigger[1].after.task = "Other!": task name `Other!` holds 'O'; use lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit; write the name of a task, as `owctl task list` shows it
            tasks.d/reports.toml:2:33: trigger[1].after.on = "always": not one of the known values; write one of "success", "failure", "any"
        "#]],
    );
    trigger_faults(
        "after = { on = \"any\" }",
        expect![[r#"
        tasks.d/reports.toml:2:9: trigger[1].after: no `task`; name the task that it follows
    "#]],
    );
    trigger_faults(
        "startup = true\n[[trigger]]\nstartup = true",
        expect![[r#"
        tasks.d/reports.toml:3:1: trigger[2]: the same trigger again; remove one of them
    "#]],
    );
}

#[test]
fn a_time_that_has_come_stays_right_in_its_own_task() {
    let text = "[[trigger]]\nat = 2026-12-01T00:00:00Z\n[[step]]\ntool = \"notify\"\n";
    let (before, later) = (good(text), "2026-12-02T00:00:00Z".parse().expect("an instant"));
    assert_eq!(parse_edited_task(&before, text, None, &defaults(), &Tools, later), Ok(before.clone()));
    let moved = text.replace("00:00:00Z", "01:00:00Z");
    assert!(parse_edited_task(&before, &moved, None, &defaults(), &Tools, later).is_err());
    assert!(parse_task(&before.name, text, None, &defaults(), &Tools, later).is_err());
}

#[test]
fn a_cron_expression_that_cannot_fire_is_refused() {
    trigger_faults(
        "cron = \"\"",
        expect![[r#"
        tasks.d/reports.toml:2:8: trigger[1].cron = "": the cron expression is empty; write five fields, as in `0 9 * * mon-fri`
    "#]],
    );
    trigger_faults(
        "cron = \"0 25 * * *\"",
        expect![[r#"
        tasks.d/reports.toml:2:8: trigger[1].cron = "0 25 * * *": hour field: `25` is out of range; use 0-23
    "#]],
    );
    trigger_faults(
        "cron = \"0 6 * *\"",
        expect![[r#"
        tasks.d/reports.toml:2:8: trigger[1].cron = "0 6 * *": expected 5 fields (minute hour day-of-month month day-of-week) or 6 with the second first, found 4 in `0 6 * *`; write minute, hour, day-of-month, month and day-of-week, as `0 9 * * mon-fri`
    "#]],
    );
    trigger_faults(
        "cron = \"0 0 30 2 *\"",
        expect![[r#"
            tasks.d/reports.toml:2:8: trigger[1].cron = "0 0 30 2 *": `0 0 30 2 *` never comes: no month that it names has that day-of-month; choose a day that the month has
        "#]],
    );
    trigger_faults(
        "cron = \"@reboot\"",
        expect![[r#"
        tasks.d/reports.toml:2:8: trigger[1].cron = "@reboot": `@reboot` is not a time; give the task a trigger `startup = true` instead
    "#]],
    );
}

#[test]
fn a_task_has_steps_with_known_tools_and_fitting_arguments() {
    faults(
        "title = \"nothing\"\n",
        expect![[r#"
            tasks.d/reports.toml:1:1: step: the task has no step; add a `[[step]]` with `tool` and `args`, or a `goal` for an agent
        "#]],
    );
    faults(
        "step = []\n",
        expect![[r#"
            tasks.d/reports.toml:1:1: step: the task has no step; add a `[[step]]` with `tool` and `args`, or a `goal` for an agent
        "#]],
    );
    faults(
        "[[step]]\nargs = { argv = [\"df\"] }\n",
        expect![[r#"
        tasks.d/reports.toml:1:1: step[1]: no `tool`; name the tool, as `tool = "shell"`
    "#]],
    );
    faults(
        "[[step]]\ntool = \"shel\"\n[[step]]\ntool = \"teleport\"\n",
        expect![[r#"
        tasks.d/reports.toml:2:8: step[1].tool = "shel": unknown tool; did you mean "shell"?
        tasks.d/reports.toml:4:8: step[2].tool = "teleport": unknown tool; use one of `shell`, `write_file`, `http_request`, `move_file`, `search_files`, `notify`
    "#]],
    );
    faults(
        "[[step]]\ntool = \"shell\"\nargs = { argv = \"df -h\" }\n[[step]]\ntool = \"shell\"\n",
        expect![[r#"
            tasks.d/reports.toml:3:8: step[1].args = { argv = "df -h" }: argument `argv`: expected a list, found "df -h"; correct the arguments of `shell`
            tasks.d/reports.toml:4:1: step[2]: `shell` needs argument `argv`; correct the arguments of `shell`
        "#]],
    );
    faults(
        "[[step]]\ntool = \"shell\"\nargs = { argv = [\"df\"] }\non-error = \"ignore\"\n",
        expect![[r#"
        tasks.d/reports.toml:4:12: step[1].on-error = "ignore": not one of the known values; write one of "stop", "continue"
    "#]],
    );
    faults(
        "[[step]]\ntool = \"notify\"\nargs = { n = 99999999999999999999, x = nan }\n",
        expect![[r#"
        tasks.d/reports.toml:3:14: step[1].args.n = 99999999999999999999: a number of more than 64 bits; write it as a text in quotes
        tasks.d/reports.toml:3:40: step[1].args.x = nan: not a finite number; write a number
    "#]],
    );
}

#[test]
fn a_template_is_checked_where_it_stands() {
    faults(
        r#"
[[step]]
tool = "notify"
args = { a = "{{ slot.date", b = "{% if x %}", c = "{{ slot. }}", d = "{{ evnt.path }}", e = "{{ event.path | uper }}" }

[[step]]
tool = "notify"
args = { a = ["x", { b = "{{ env('HOME') }}" }], c = "{{ event.path.lower() }}", d = "{{- slot.date }}", "{{ k }}" = 1 }

[[step]]
tool = "notify"
if = "{{ event.ok }}"

[[step]]
tool = "notify"
if = "event.ok =="
"#,
        expect![[r#"
            tasks.d/reports.toml:4:14: step[1].args.a = "{{ slot.date": `{{` without its `}}`; close it with `}}`, or write `{{ "{{" }}` for the two braces themselves
            tasks.d/reports.toml:4:34: step[1].args.b = "{% if x %}": `{%` begins a statement; only expressions in `{{ … }}` are known; use an expression, as `{{ a if b else c }}`, or the step's `if`; for the text itself write `{{ "{%" }}`
            tasks.d/reports.toml:4:52: step[1].args.c = "{{ slot. }}": `slot.` is no expression: unexpected end of input, expected identifier or integer; write an expression, as `{{ steps.disks.stdout | trim }}`; for literal braces write `{{ "{{" }}`
            tasks.d/reports.toml:4:71: step[1].args.d = "{{ evnt.path }}": unknown name `evnt`; did you mean `event`?
            tasks.d/reports.toml:4:94: step[1].args.e = "{{ event.path | uper }}": unknown filter `uper`; did you mean `upper`?
            tasks.d/reports.toml:8:26: step[2].args.a[2].b = "{{ env('HOME') }}": `env(…)`: nothing can be called; use a filter, as `{{ event.path | upper }}`
            tasks.d/reports.toml:8:54: step[2].args.c = "{{ event.path.lower() }}": `lower(…)`: nothing can be called; use a filter, as `{{ event.path | upper }}`
            tasks.d/reports.toml:8:86: step[2].args.d = "{{- slot.date }}": `{{-` and `-}}` are not known; leave the `-` out; use the filter `trim` for a value
            tasks.d/reports.toml:8:106: step[2].args.{{ k }}: a key cannot be a template; write the key out
            tasks.d/reports.toml:12:6: step[3].if = "{{ event.ok }}": `if` is an expression already; write the expression without braces, as `if = "steps.disks.status == 0"`
            tasks.d/reports.toml:16:6: step[4].if = "event.ok ==": `event.ok ==` is no expression: unexpected end of input, expected expression; write an expression, as `{{ steps.disks.stdout | trim }}`; for literal braces write `{{ "{{" }}`
        "#]],
    );
}

#[test]
fn a_result_is_read_after_it_is_saved_and_by_its_name() {
    faults(
        r#"
[[step]]
tool = "notify"
args = { text = "{{ steps.later.stdout }} {{ steps.self.x }}" }
save-as = "self"

[[step]]
tool = "notify"
args = { text = "{{ steps.slef.stdout }}" }
save-as = "later"

[[step]]
tool = "notify"
if = "steps.never.status == 0"
args = { text = "{{ steps['self'].x }}" }
save-as = "self"

[[step]]
tool = "notify"
save-as = "two words"

[[step]]
tool = "notify"
save-as = "1st"
"#,
        expect![[r#"
            tasks.d/reports.toml:4:17: step[1].args.text = "{{ steps.later.stdout }} {{ steps.self.x }}": `steps.later` is used before it is saved; move the step that saves it up, or this one down
            tasks.d/reports.toml:4:17: step[1].args.text = "{{ steps.later.stdout }} {{ steps.self.x }}": `steps.self` is used before it is saved; move the step that saves it up, or this one down
            tasks.d/reports.toml:9:17: step[2].args.text = "{{ steps.slef.stdout }}": no earlier step saves `steps.slef`; did you mean `steps.self`?
            tasks.d/reports.toml:14:6: step[3].if = "steps.never.status == 0": no earlier step saves `steps.never`; give an earlier step `save-as = "never"`
            tasks.d/reports.toml:15:17: step[3].args.text = "{{ steps['self'].x }}": `steps` without a name; write `steps.<save-as>.<field>`
            tasks.d/reports.toml:16:11: step[3].save-as = "self": an earlier step saves under this name; choose another name
            tasks.d/reports.toml:20:11: step[4].save-as = "two words": not a name that a template can read; write `two_words`
            tasks.d/reports.toml:24:11: step[5].save-as = "1st": not a name that a template can read; write letters, digits and `_`, beginning with a letter
        "#]],
    );
}

#[test]
fn results_are_read_one_by_one() {
    faults(
        "[[step]]\ntool = \"notify\"\n[[step]]\ntool = \"notify\"\nargs = { a = \"{{ steps }}\" }\n",
        expect![[r#"
        tasks.d/reports.toml:5:14: step[2].args.a = "{{ steps }}": `steps` without a name; write `steps.<save-as>.<field>`
    "#]],
    );
}

#[test]
fn a_task_has_no_more_triggers_than_can_be_followed() {
    let many: String = (1..=2000).fold(String::new(), |mut all, seconds| {
        writeln!(all, "[[trigger]]\nevery = \"{seconds}s\"").expect("a string takes all text");
        all
    });
    key_faults(
        &many,
        expect![[r#"
        tasks.d/reports.toml:1:1: trigger: 2000 triggers of kind `every` are too many for one task; at most 8 are allowed
    "#]],
    );
}

#[test]
fn a_secret_is_refused_and_not_repeated() {
    let text = r#"
[[step]]
tool = "shell"
args = { argv = ["curl", "-H", "Authorization: Bearer abcdef0123456789abcdef"], env = { API_KEY = "hunter2" } }

[[step]]
tool = "http_request"
args = { url = "https://ada:hunter2@example.org/", headers = { Authorization = { secret = "site", prefix = "Bearer " } } }
"#;
    faults(
        text,
        expect![[r#"
        tasks.d/reports.toml:4:32: step[1].args.argv[3] = [redacted]: looks like a secret; keep it with `owctl secret set NAME` and name it here, as `{ secret = "name" }` in `env` or `headers`
        tasks.d/reports.toml:4:99: step[1].args.env.API_KEY = [redacted]: looks like a secret; keep it with `owctl secret set NAME` and name it here, as `{ secret = "name" }` in `env` or `headers`
        tasks.d/reports.toml:8:16: step[2].args.url = [redacted]: looks like a secret; keep it with `owctl secret set NAME` and name it here, as `{ secret = "name" }` in `env` or `headers`
    "#]],
    );
    for leak in ["abcdef0123", "hunter2"] {
        assert!(!lines(&read(text).expect_err("it holds secrets")).contains(leak));
    }
    let broken = "[[step]]\ntool = \"shell\"\nargs = { argv = [\"ghp_0123456789abcdefghijABCDEFGHIJ012345\" }\n";
    assert!(!lines(&read(broken).expect_err("it is not TOML")).contains("ghp_"));
}

#[test]
fn a_text_without_a_file_is_named_by_line_and_column() {
    let name = "added".parse().expect("a well-formed name");
    let faults = parse_task(&name, "mode = \"off\"\n", None, &defaults(), &Tools, now()).expect_err("it is faulty");
    expect![[r#"
        line 1, column 1: step: the task has no step; add a `[[step]]` with `tool` and `args`, or a `goal` for an agent
        line 1, column 8: mode = "off": not one of the known values; write one of "plan", "ask", "edit", "auto"
    "#]]
    .assert_eq(&lines(&faults));
}

#[test]
fn a_step_s_text_is_the_same_however_it_is_laid_out() {
    let compact = good("[[step]]\ntool = \"shell\"\nargs = { argv = [\"df\", \"-h\"], cwd = \"/\" }\n");
    let spread = good(
        "# a comment\n[[step]]\non-error = \"stop\"\ntool = 'shell'\n[step.args]\ncwd = '/'\nargv = [\n  \"df\",\n  \"-h\",\n]\n",
    );
    let changed = good("[[step]]\ntool = \"shell\"\nargs = { argv = [\"df\", \"-H\"], cwd = \"/\" }\n");
    assert_eq!(step_text(&compact.steps[0]), step_text(&spread.steps[0]));
    assert_ne!(step_text(&compact.steps[0]).1, step_text(&changed.steps[0]).1);
    expect![[r#"
        [[step]]
        tool = "shell"
        args = { argv = ["df", "-h"], cwd = "/" }
    "#]]
    .assert_eq(&step_text(&compact.steps[0]).0);
}

#[test]
fn the_hash_of_a_step_never_changes_between_releases() {
    // Standing permissions are bound to it: another hash would ask everybody again.
    let spec = good(ISSUE);
    let hashes: Vec<String> = spec.steps.iter().map(|step| step_text(step).1.to_string()).collect();
    expect![[r#"
        7f62f64384fd1782c9457e58da714c6bf66397c19a29416885a69ed005a72a5d
        714311ae1a5a66a0ac8e00c0f4afa3c78689a2adfca5aee77c298995a3f45e08"#]]
    .assert_eq(&hashes.join("\n"));
}

#[test]
fn a_folder_s_task_files_are_read_in_the_order_of_their_names() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let put = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).expect("a scratch file");
    let step = b"[[step]]\ntool = \"notify\"\n";
    put("b.toml", step);
    put("a.toml", b"[[step]]\ntool = \"nonsense\"\n");
    put("Upper.toml", step);
    put("latin.toml", b"# one\n# caf\xe9\n");
    put("huge.toml", &vec![b'#'; TASK_FILE_LIMIT + 1]);
    for left_behind in [".b.toml", ".b.toml.swp", "b.toml~", "#b.toml#", "b.toml.bak", "notes.txt", ".#b.toml"] {
        put(left_behind, step);
    }
    std::fs::create_dir(folder.path().join("folder.toml")).expect("a scratch folder");
    let files = load_tasks(folder.path(), &defaults(), &Tools, now()).expect("the folder is readable");
    let mut listing = String::new();
    for file in &files {
        let name = file.path.file_name().expect("it was listed").to_string_lossy();
        let what = match &file.task {
            Ok(task) => format!("task {}\n", task.name),
            Err(faults) => lines(faults),
        };
        let what = what.replace(&*folder.path().to_string_lossy(), "tasks.d");
        writeln!(listing, "{name}: {}", what.trim_end()).expect("a string takes all text");
    }
    expect![[r#"
        Upper.toml: tasks.d/Upper.toml: task name `Upper` holds 'U'; use lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit; rename the file: its name is the task's name
        a.toml: tasks.d/a.toml:2:8: step[1].tool = "nonsense": unknown tool; use one of `shell`, `write_file`, `http_request`, `move_file`, `search_files`, `notify`
        b.toml: task b
        folder.toml: tasks.d/folder.toml: not a regular file; replace it with a file, or rename it
        huge.toml: tasks.d/huge.toml: more than 262144 bytes; split the task, or move long texts into files of their own
        latin.toml: tasks.d/latin.toml:2:1: not UTF-8; save it as UTF-8
    "#]].assert_eq(&listing);
}

#[test]
fn of_files_that_follow_each_other_in_a_circle_the_one_that_closes_it_is_faulty() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let follows = |name: &str, after: &str| {
        let text =
            format!("[[trigger]]\nafter = \"{after}\"\n[[step]]\ntool = \"shell\"\nargs = {{ argv = [\"df\"] }}\n");
        std::fs::write(folder.path().join(format!("{name}.toml")), text).expect("a scratch file");
    };
    follows("a", "b");
    follows("b", "c");
    follows("c", "a");
    follows("d", "c");
    let files = load_tasks(folder.path(), &defaults(), &Tools, now()).expect("the folder is readable");
    let faulty: Vec<String> = files.iter().filter_map(|file| file.task.as_ref().err()).map(|all| lines(all)).collect();
    let told = faulty.concat().replace(&*folder.path().to_string_lossy(), "tasks.d");
    expect![[r#"
        tasks.d/c.toml: `after` would run in a circle: a after b after c after a; take one of these `after` triggers out
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_folder_that_is_not_there_has_no_tasks() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    assert_eq!(load_tasks(&folder.path().join("none"), &defaults(), &Tools, now()), Ok(vec![]));
}

#[test]
fn a_folder_that_cannot_be_read_is_no_empty_folder() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("tasks.d");
    std::fs::write(&file, "").expect("a scratch file");
    let fault = load_tasks(&file, &defaults(), &Tools, now()).expect_err("it is a file");
    assert!(fault.message.starts_with("cannot be read"), "{fault}");
}

#[test]
fn the_example_tasks_are_good() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/tasks.d");
    let files = load_tasks(&folder, &defaults(), &Tools, now()).expect("the examples are readable");
    assert!(files.len() >= 4);
    for file in files {
        if let Err(faults) = file.task {
            panic!("{}", lines(&faults));
        }
    }
}
