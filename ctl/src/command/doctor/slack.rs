use std::ffi::OsStr;

use ow_protocol::SlackView;
use serde::Deserialize;

use super::{Check, daemon};
use crate::command::status::slack_line;
use crate::context::Context;
use crate::program;
use crate::time::Clock;

const NAME: &str = "slack";
const CONNECTION: &str = "slack-connection";

/// What owd found on its way to Slack.
#[derive(Debug, Deserialize)]
struct Answer {
    configured: bool,
    hops: Vec<Hop>,
}

#[derive(Debug, Deserialize)]
struct Hop {
    ok: bool,
    message: String,
    remedy: Option<String>,
}

/// Each hop to Slack; nothing where it is not configured. The only check that speaks to somebody else.
pub(super) fn check(context: &Context, answer: &daemon::Answer) -> Vec<Check> {
    let connection = answer.status.as_ref().ok().and_then(|status| status.slack.as_ref());
    let mut checks: Vec<Check> = connection.map(|slack| connected(slack, context.clock())).into_iter().collect();
    checks.extend(hops(context));
    checks
}

/// What the running owd says of its connection.
fn connected(slack: &SlackView, clock: &Clock) -> Check {
    let line = slack_line(slack, clock);
    match slack.state.as_str() {
        "connected" | "posting" => Check::ok(CONNECTION, line),
        "sending" => Check::warn(CONNECTION, line, "set slack.app-token, so that answers can come in"),
        _ => Check::warn(CONNECTION, line, "mend what is wrong below, then `owctl reload`"),
    }
}

fn hops(context: &Context) -> Vec<Check> {
    let Ok(done) = program::run_owd(context, [OsStr::new("slack-check")]) else { return vec![] };
    if !done.status.success() {
        // What is wrong with the configuration has a check of its own.
        return vec![];
    }
    match serde_json::from_slice::<Answer>(&done.stdout) {
        Ok(answer) => judge(answer),
        Err(_) => vec![Check::warn(NAME, "owd answered something else", "are owd and owctl of one version?")],
    }
}

fn judge(answer: Answer) -> Vec<Check> {
    if !answer.configured {
        return vec![];
    }
    let told = |hop: Hop| {
        if hop.ok {
            Check::ok(NAME, hop.message)
        } else {
            Check::warn(NAME, hop.message, hop.remedy.unwrap_or_else(|| "see the README".into()))
        }
    };
    answer.hops.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_lost_connection_is_a_warning_and_one_that_stands_is_not() {
        let clock = Clock::fixed("2026-03-08T12:00:00Z", jiff::tz::TimeZone::UTC);
        let slack = |state: &str| SlackView {
            state: state.into(),
            team: None,
            connected_since: Some("2026-03-08T11:30:00Z".into()),
            last_error: None,
            last_error_at: None,
        };
        for (state, found) in [
            ("connected", State::Ok),
            ("posting", State::Ok),
            ("connecting", State::Warn),
            ("sending", State::Warn),
            ("unusable", State::Warn),
        ] {
            assert_eq!(connected(&slack(state), &clock).state, found, "{state}");
        }
    }

    #[test]
    fn each_hop_is_told_and_what_to_do() {
        assert_eq!(judge(Answer { configured: false, hops: vec![] }), []);
        let hop = |ok: bool| Hop { ok, message: "the app is in #ops".into(), remedy: None };
        let checks = judge(Answer { configured: true, hops: vec![hop(true), hop(false)] });
        assert_eq!(checks.iter().map(|check| check.state).collect::<Vec<_>>(), [State::Ok, State::Warn]);
        assert!(checks[1].remedy.is_some());
    }
}
