//! What a hook's end means.

use ow_config::HookConfig;
use ow_model::{HookEvent, HookSaid};
use ow_tool::{HookEnd, HookExit};
use serde::Deserialize;

use super::refuses_broken;

/// The status by which a hook refuses.
const REFUSED: i32 = 2;
/// What a hook says reaches the model and the journal: no more of it than a reason needs.
const LONGEST_REASON: usize = 2000;

/// What a hook may write on its standard output in place of a status.
#[derive(Deserialize)]
struct Written {
    decision: String,
    reason: Option<String>,
}

pub(super) fn by(hook: &HookConfig, end: &HookEnd) -> HookSaid {
    let broken = |why: String| if refuses_broken(hook) { HookSaid::Deny { why } } else { HookSaid::Warn { why } };
    let is_asked = hook.event == HookEvent::PreToolUse;
    match &end.how {
        HookExit::Status(0) if is_asked => written(&end.stdout),
        HookExit::Status(0) | HookExit::Stopped => HookSaid::Pass,
        HookExit::Status(REFUSED) if is_asked => HookSaid::Deny { why: reason(&end.stderr, "it refused this call") },
        HookExit::Status(status) => HookSaid::Warn { why: reason(&end.stderr, &format!("exit status {status}")) },
        HookExit::Signal(signal) => broken(format!("it was ended by signal {signal}")),
        HookExit::TimedOut => broken(format!("it took longer than {}, so it was ended", hook.timeout)),
        HookExit::NotStarted(why) => broken(format!("it could not start: {why}")),
        HookExit::Lost(why) => broken(why.clone()),
    }
}

fn written(stdout: &str) -> HookSaid {
    let Ok(Written { decision, reason: why }) = serde_json::from_str(stdout) else { return HookSaid::Pass };
    let why = reason(&why.unwrap_or_default(), "it gave no reason");
    match decision.as_str() {
        "ask" => HookSaid::Ask { why },
        "deny" => HookSaid::Deny { why },
        "allow" => HookSaid::Pass,
        other => HookSaid::Warn { why: format!("it wrote the decision `{}`, which is none", reason(other, "")) },
    }
}

fn reason(text: &str, otherwise: &str) -> String {
    let text = text.trim();
    if text.is_empty() { otherwise.into() } else { text.chars().take(LONGEST_REASON).collect() }
}

#[cfg(test)]
mod tests {
    use ow_config::OnFailure;
    use ow_model::Span;

    use super::*;

    fn hook(event: HookEvent, on_failure: OnFailure) -> HookConfig {
        HookConfig { event, matcher: None, command: "./x".into(), timeout: Span::from_secs(10), on_failure }
    }

    fn said(event: HookEvent, how: HookExit, stdout: &str, stderr: &str) -> (&'static str, Option<String>) {
        let end = HookEnd { how, stdout: stdout.into(), stderr: stderr.into() };
        let said = by(&hook(event, OnFailure::Deny), &end);
        (said.word(), said.why().map(str::to_owned))
    }

    const PRE: HookEvent = HookEvent::PreToolUse;
    const POST: HookEvent = HookEvent::PostToolUse;

    #[test]
    fn zero_lets_pass_two_refuses_and_anything_else_is_a_warning() {
        let because = |text: &str| Some(text.to_owned());
        assert_eq!(said(PRE, HookExit::Status(0), "fine", "noise"), ("pass", None));
        assert_eq!(said(PRE, HookExit::Status(2), "", " not this file\n"), ("deny", because("not this file")));
        assert_eq!(said(PRE, HookExit::Status(2), "", ""), ("deny", because("it refused this call")));
        assert_eq!(said(PRE, HookExit::Status(1), "", ""), ("warn", because("exit status 1")));
    }

    #[test]
    fn a_hook_may_write_that_a_person_must_be_asked() {
        let written = r#"{"decision": "ask", "reason": "on a Friday?"}"#;
        assert_eq!(said(PRE, HookExit::Status(0), written, ""), ("ask", Some("on a Friday?".into())));
        assert_eq!(said(PRE, HookExit::Status(0), r#"{"decision":"deny"}"#, "").0, "deny");
        assert_eq!(said(PRE, HookExit::Status(0), r#"{"decision":"alow"}"#, "").0, "warn");
        assert_eq!(said(POST, HookExit::Status(0), written, ""), ("pass", None));
    }

    #[test]
    fn a_broken_hook_refuses_before_a_call_and_warns_elsewhere() {
        let broken = [
            HookExit::Signal(11),
            HookExit::TimedOut,
            HookExit::NotStarted("there is no file".into()),
            HookExit::Lost("it is gone".into()),
        ];
        for how in broken {
            assert_eq!(said(PRE, how.clone(), "", "").0, "deny");
            assert_eq!(said(POST, how.clone(), "", "").0, "warn");
            let end = HookEnd { how, stdout: String::new(), stderr: String::new() };
            assert_eq!(by(&hook(PRE, OnFailure::Warn), &end).word(), "warn");
        }
    }

    #[test]
    fn two_refuses_nothing_after_the_call() {
        assert_eq!(said(POST, HookExit::Status(2), "", "too late").0, "warn");
        assert_eq!(said(HookEvent::Stop, HookExit::Status(2), "", "").0, "warn");
    }
}
