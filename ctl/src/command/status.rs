use std::borrow::Cow;

use ow_protocol::{SlackView, StatusView, WarningView};

use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::{Colour, Paint};
use crate::table::pairs;
use crate::time::Clock;

/// What owd is doing, and what you should know
#[derive(Debug, clap::Args)]
pub(crate) struct Status {}

impl Status {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let status = context.with_daemon(async |owd| Ok(owd.status().await?))?;
        context.out.give(&status, |status| in_words(status, context.clock(), context.out.paint));
        Ok(())
    }
}

pub(crate) fn in_words(status: &StatusView, clock: &Clock, paint: Paint) -> String {
    let state = if status.state == "running" { Colour::Green } else { Colour::Yellow };
    let head = format!("owd {} is {}", escape::line(&status.version), escape::line(&status.state));
    let mut text = format!("{} (pid {})\n", paint.in_colour(state, &head), status.pid);
    if let Some(by) = &status.paused_all {
        let line = format!("everything is paused by {}: `owctl resume --all` lets work start again", escape::line(by));
        text.push_str(&paint.in_colour(Colour::Yellow, &line));
        text.push('\n');
    }
    text.push('\n');
    let waiting = match status.items_pending {
        0 => "nothing waits for you".to_owned(),
        1 => "1 item waits for you: owctl inbox list".to_owned(),
        many => format!("{many} items wait for you: owctl inbox list"),
    };
    let next = clock.when_or(status.next_wake.as_deref(), "nothing is due");
    let hooks = status.listener.as_ref().map(|address| format!("webhooks at {address}"));
    let tcp = status.tcp.as_ref().map_or(String::new(), |address| format!(" and {address}"));
    let notices = notices(status);
    let mut lines = vec![("inbox", waiting.into())];
    lines.extend(notices.map(|notices| ("notices", notices.into())));
    lines.extend([
        ("next", next.into()),
        ("tasks", format!("{}, {} of them paused", status.tasks, status.tasks_paused).into()),
        ("runs", runs(status).into()),
        ("events", format!("{} waiting", status.events_waiting).into()),
        ("refused", refused(status.addresses_refused).into()),
        ("since", clock.when(&status.started_at).into()),
        ("zone", escape::line(&status.time_zone)),
        ("config", escape::line(&status.config_dir)),
        ("data", format!("{} ({})", escape::line(&status.data_dir), bytes(status.store_bytes)).into()),
        ("socket", Cow::Owned(format!("{}{}", escape::line(&status.socket), escape::line(&tcp)))),
        ("log", escape::line(&status.log)),
    ]);
    let slack = status.slack.as_ref().map(|slack| slack_line(slack, clock));
    if let Some(slack) = &slack {
        lines.insert(lines.len() - 1, ("slack", escape::line(slack)));
    }
    if let Some(hooks) = &hooks {
        lines.insert(lines.len() - 1, ("listener", escape::line(hooks)));
    }
    text.push_str(&pairs(paint, &lines));
    text.push_str(&warnings(status, paint));
    text
}

/// How the connection to Slack stands, with what went wrong last.
pub(crate) fn slack_line(slack: &SlackView, clock: &Clock) -> String {
    let SlackView { state, team, connected_since, last_error, last_error_at } = slack;
    let team = team.as_ref().map_or(String::new(), |team| format!(" to {team}"));
    let stands = match (state.as_str(), connected_since) {
        ("connected", Some(since)) => format!("connected{team} since {}", clock.when(since)),
        ("connecting", _) => format!("not connected{team}; it is tried again"),
        ("posting", _) => format!("writes{team}; what comes in is posted to the listener"),
        ("sending", _) => format!("writes{team}; nothing comes in: slack.app-token is not set"),
        (other, _) => other.to_owned(),
    };
    match (last_error, last_error_at) {
        (Some(why), Some(at)) => format!("{stands}; last error {}: {why}", clock.when(at)),
        (Some(why), None) => format!("{stands}: {why}"),
        (None, _) => stands,
    }
}

fn runs(status: &StatusView) -> String {
    let StatusView { runs_running, runs_queued, runs_parked, runs_interrupted, workers, .. } = status;
    let interrupted = match runs_interrupted {
        0 => String::new(),
        count => format!(", {count} interrupted"),
    };
    format!("{runs_running} running, {runs_queued} queued, {runs_parked} parked{interrupted}; {workers} workers")
}

/// None while all were delivered.
fn notices(status: &StatusView) -> Option<String> {
    match (status.deliveries_waiting, status.deliveries_failed) {
        (0, 0) => None,
        (waiting, 0) => Some(format!("{waiting} on their way")),
        (waiting, failed) => Some(format!("{waiting} on their way, {failed} given up: owctl inbox show ITEM")),
    }
}

fn refused(addresses: u64) -> String {
    match addresses {
        0 => "no address so far".into(),
        1 => "1 address so far; you were told of it: owctl inbox list --all".into(),
        many => format!("{many} addresses so far; you were told, once a run: owctl inbox list --all"),
    }
}

/// All warnings, each with what to do; empty if there are none.
pub(crate) fn warnings(status: &StatusView, paint: Paint) -> String {
    let mut text = String::new();
    for warning in &status.warnings {
        let head = format!("warning: {}", escape::block(&about_what(warning)));
        put!(text, "\n{}\n", paint.in_colour(Colour::Yellow, &head));
        if let Some(hint) = &warning.hint {
            put!(text, "  {}\n", escape::block(hint));
        }
    }
    text
}

/// A warning with what it is about. Faults of a file begin with its name themselves.
pub(crate) fn about_what(warning: &WarningView) -> String {
    let WarningView { about, message, .. } = warning;
    if message.starts_with(&**about) { message.clone() } else { format!("{}: {message}", escape::line(about)) }
}

/// A size as `12.3 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} bytes");
    }
    let mut tenths = count * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use jiff::tz::TimeZone;
    use ow_protocol::WarningView;

    use super::*;

    fn status() -> StatusView {
        StatusView {
            version: "0.1.0".into(),
            protocol: 1,
            pid: 4711,
            started_at: "2026-03-08T09:00:00Z".into(),
            now: "2026-03-08T12:00:00Z".into(),
            time_zone: "Europe/Paris".into(),
            state: "running".into(),
            config_dir: "/home/ada/.config/owd".into(),
            data_dir: "/home/ada/.local/state/owd".into(),
            socket: "/run/user/1000/owd/owd.sock".into(),
            tcp: None,
            listener: None,
            slack: None,
            log: "journald".into(),
            paused_all: None,
            tasks: 12,
            tasks_paused: 1,
            runs_running: 2,
            runs_queued: 0,
            runs_parked: 3,
            runs_interrupted: 0,
            sessions: 0,
            items_pending: 3,
            deliveries_waiting: 0,
            deliveries_failed: 0,
            events_waiting: 0,
            addresses_refused: 2,
            workers: 8,
            next_wake: Some("2026-03-08T14:00:00Z".into()),
            store_bytes: 1_300_000,
            store_format: 1,
            epoch: 1,
            warnings: vec![],
        }
    }

    #[test]
    fn what_waits_for_the_person_comes_first() {
        let clock = Clock::fixed("2026-03-08T12:00:00Z", TimeZone::UTC);
        expect![[r"
            owd 0.1.0 is running (pid 4711)

            inbox    3 items wait for you: owctl inbox list
            next     2026-03-08 14:00:00 (in 2 h)
            tasks    12, 1 of them paused
            runs     2 running, 0 queued, 3 parked; 8 workers
            events   0 waiting
            refused  2 addresses so far; you were told, once a run: owctl inbox list --all
            since    2026-03-08 09:00:00 (3 h ago)
            zone     Europe/Paris
            config   /home/ada/.config/owd
            data     /home/ada/.local/state/owd (1.2 MiB)
            socket   /run/user/1000/owd/owd.sock
            log      journald
        "]]
        .assert_eq(&in_words(&status(), &clock, Paint::Plain));
    }

    #[test]
    fn how_slack_stands_is_one_line() {
        let clock = Clock::fixed("2026-03-08T12:00:00Z", TimeZone::UTC);
        let slack = |state: &str, since: Option<&str>, error: Option<&str>| SlackView {
            state: state.into(),
            team: Some("Acme".into()),
            connected_since: since.map(str::to_owned),
            last_error: error.map(str::to_owned),
            last_error_at: error.map(|_| "2026-03-08T11:00:00Z".into()),
        };
        for (slack, line) in [
            (
                slack("connected", Some("2026-03-08T11:30:00Z"), None),
                "slack    connected to Acme since 2026-03-08 11:30:00 (30 min ago)\n",
            ),
            (
                slack("connected", Some("2026-03-08T11:30:00Z"), Some("the other side closed it")),
                "slack    connected to Acme since 2026-03-08 11:30:00 (30 min ago); last error 2026-03-08 11:00:00 (1 h \
                 ago): the other side closed it\n",
            ),
            (
                slack("connecting", None, Some("no route")),
                "slack    not connected to Acme; it is tried again; last error 2026-03-08 11:00:00 (1 h ago): no route\n",
            ),
            (slack("posting", None, None), "slack    writes to Acme; what comes in is posted to the listener\n"),
        ] {
            let status = StatusView { slack: Some(slack), ..status() };
            let text = in_words(&status, &clock, Paint::Plain);
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn notices_are_told_of_while_they_are_not_all_delivered() {
        let clock = Clock::fixed("2026-03-08T12:00:00Z", TimeZone::UTC);
        for (waiting, failed, line) in [
            (1, 0, "notices  1 on their way\n"),
            (1, 2, "notices  1 on their way, 2 given up: owctl inbox show ITEM\n"),
        ] {
            let status = StatusView { deliveries_waiting: waiting, deliveries_failed: failed, ..status() };
            let text = in_words(&status, &clock, Paint::Plain);
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn the_kill_switch_and_warnings_stand_out_and_cannot_draw_on_the_terminal() {
        let clock = Clock::fixed("2026-03-08T12:00:00Z", TimeZone::UTC);
        let warning = WarningView {
            kind: "task_file".into(),
            about: "re\u{202e}ports.toml".into(),
            message: "reports.toml:3:1: unknown key `crn`\u{1b}[2J".into(),
            hint: Some("write `cron`".into()),
        };
        let status =
            StatusView { paused_all: Some("ada".into()), runs_interrupted: 2, warnings: vec![warning], ..status() };
        let text = in_words(&status, &clock, Paint::Plain);
        assert!(text.contains("3 parked, 2 interrupted; 8 workers"), "{text}");
        let ends: Vec<&str> =
            text.lines().enumerate().filter(|(n, _)| *n < 2 || *n > 14).map(|(_, line)| line).collect();
        expect![[r"
            owd 0.1.0 is running (pid 4711)
            everything is paused by ada: `owctl resume --all` lets work start again

            warning: re\u{202e}ports.toml: reports.toml:3:1: unknown key `crn`\u{1b}[2J
              write `cron`"]]
        .assert_eq(&ends.join("\n"));
    }

    #[test]
    fn sizes_are_short() {
        for (count, want) in [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (1 << 30, "1.0 GiB")] {
            assert_eq!(bytes(count), want);
        }
        assert_eq!(bytes(1_u64 << 50), "1024.0 TiB");
    }
}
