use std::ffi::OsStr;

use serde::Deserialize;

use super::Check;
use crate::context::Context;
use crate::program;

const NAME: &str = "slack";

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
pub(super) fn check(context: &Context) -> Vec<Check> {
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
    fn each_hop_is_told_and_what_to_do() {
        assert_eq!(judge(Answer { configured: false, hops: vec![] }), []);
        let hop = |ok: bool| Hop { ok, message: "the app is in #ops".into(), remedy: None };
        let checks = judge(Answer { configured: true, hops: vec![hop(true), hop(false)] });
        assert_eq!(checks.iter().map(|check| check.state).collect::<Vec<_>>(), [State::Ok, State::Warn]);
        assert!(checks[1].remedy.is_some());
    }
}
