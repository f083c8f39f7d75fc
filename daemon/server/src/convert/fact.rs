use ow_model::{
    Answer, AnswerBy, Answered, Call, CallErrorKind, CallResult, Compaction, EndedRun, Fact, Finish, HookReport,
    LoopLimits, Patience, Purpose, Reconciled, RecordedFact, Resolution, Source, TurnOutcome,
};
use ow_protocol::FactView;

use super::instant;
use super::run::slept_words;

pub(crate) fn fact_view(recorded: &RecordedFact) -> FactView {
    let RecordedFact { seq, at, fact } = recorded;
    let (fact, text) = words(fact);
    FactView { seq: *seq, at: instant(*at), fact: fact.into(), text }
}

/// The journal's word for a fact, and the fact in words.
fn words(fact: &Fact) -> (&'static str, String) {
    match fact {
        Fact::Started { cause: _, context: _ } => ("started", "the run began".into()),
        Fact::StepSkipped { step } => ("step-skipped", format!("step {} was passed over: its `if` is false", step + 1)),
        Fact::Rendered { step, call: Call { position, tool, args: _ }, holes: _ } => {
            ("rendered", format!("step {} became call {position}, {tool}", step + 1))
        }
        Fact::RenderFailed { step, message } => {
            ("render-failed", format!("step {} could not be made into a call: {message}", step + 1))
        }
        Fact::Named { position, tool, hash: _ } => ("named", format!("call {position} is {tool}")),
        Fact::Allowed { position, rule, by_rule: _ } => ("allowed", format!("call {position} may run: {rule}")),
        Fact::Refused { position, rule } => ("refused", format!("call {position} may not run: {rule}")),
        Fact::Hooked { position: _, report: HookReport { event, command, said, exit: _, took_ms } } => {
            let command = command.display();
            let text = match said.why() {
                None => format!("{event} hook {command} passed, after {took_ms} ms"),
                Some(why) => format!("{event} hook {command} said {}, after {took_ms} ms: {why}", said.word()),
            };
            ("hooked", text)
        }
        Fact::AddressRefused { position, address } => ("address-refused", format!("call {position}: {address}")),
        Fact::Parked { position, item } => ("parked", format!("call {position} waits for an answer to item {item}")),
        Fact::Answered { position, item, answered } => {
            ("answered", format!("call {position}: item {item} {}", answered_words(answered)))
        }
        Fact::Edited { position, call: Call { position: _, tool, args: _ } } => {
            ("edited", format!("call {position} runs with the arguments of the answer, {tool}"))
        }
        Fact::Voided { position, item, why } => {
            ("voided", format!("call {position}: the answer to item {item} no longer fits: {why}"))
        }
        Fact::Intended { position, hash: _, repeatable: _, intent: _ } => {
            ("intended", format!("call {position} is about to run"))
        }
        Fact::Done {
            position,
            result: CallResult { output: _, kept: _, artifacts: _, outside: _, error },
            took_ms,
        } => {
            let text = match error {
                None => format!("call {position} is done, after {took_ms} ms"),
                Some(error) => format!("call {position} {}, after {took_ms} ms: {}", ended(error.kind), error.message),
            };
            ("done", text)
        }
        Fact::Stopped { position } => ("stopped", format!("call {position} was stopped in the middle")),
        Fact::Reconciled { position, found } => {
            let text = match found {
                Reconciled::Happened { result: _ } => format!("call {position} had taken effect before owd ended"),
                Reconciled::DidNotHappen => format!("call {position} had not taken effect before owd ended"),
                Reconciled::Unknown { why } => format!("call {position} may or may not have taken effect: {why}"),
            };
            ("reconciled", text)
        }
        Fact::Resumed => ("resumed", "the run goes on".into()),
        Fact::Delegated { position, fact } => ("delegated", format!("sub-agent of call {position}: {}", words(fact).1)),
        Fact::Input { .. }
        | Fact::Asked { .. }
        | Fact::Replied { .. }
        | Fact::ModelFailed { .. }
        | Fact::Admitted { .. }
        | Fact::Compacted { .. }
        | Fact::CompactionWanted
        | Fact::CompactionFailed { .. }
        | Fact::LoopFound { .. }
        | Fact::LoopLimitsSet { .. }
        | Fact::BudgetReached { .. }
        | Fact::BudgetRaised { .. }
        | Fact::TurnInterrupted { .. }
        | Fact::TurnEnded { .. }
        | Fact::Noticed { .. }
        | Fact::ModeSet { .. }
        | Fact::ModelSet { .. }
        | Fact::RootGranted { .. }
        | Fact::Slept { .. } => agent_words(fact),
        Fact::Ended { outcome } => {
            let state = ow_model::RunState::Ended(EndedRun { outcome: outcome.clone() });
            ("ended", format!("the run ended: {}", state.word()))
        }
    }
}

/// What the loop detectors are set to, by tool.
fn loop_limits_words(LoopLimits(limits): &LoopLimits) -> String {
    let set = limits.iter().flat_map(|(tool, set)| {
        set.iter().map(move |(detector, patience)| {
            let how = match patience {
                Patience::Off => "off".into(),
                Patience::Until { nudge, stop: None } => format!("nudges at {nudge}"),
                Patience::Until { nudge, stop: Some(stop) } => format!("nudges at {nudge}, stops at {stop}"),
            };
            let of = if tool == LoopLimits::ALL_TOOLS { "all tools" } else { tool };
            format!("{detector} for {of}: {how}")
        })
    });
    let set: Vec<String> = set.collect();
    if set.is_empty() { "the loop detectors have their own limits again".into() } else { set.join("; ") }
}

/// The same for the facts of an agent's session.
fn agent_words(fact: &Fact) -> (&'static str, String) {
    match fact {
        Fact::Input { number: _, input } => {
            let who = match &input.source {
                Source::Person { person } => person.0.clone(),
                Source::Task => "the task".into(),
                Source::Event { kind } => format!("the event {kind}"),
                Source::Wake { .. } => "a wake-up".into(),
                Source::Owd { .. } => "owd".into(),
            };
            ("input", format!("{who}: {}", beginning(&input.text)))
        }
        Fact::Asked { model, purpose, reserved: _, sent: _ } => {
            let what = match purpose {
                Purpose::Turn => "",
                Purpose::Final => ", for a last answer without tools",
                Purpose::Summary => ", for a summary",
            };
            ("asked", format!("{model} was asked{what}"))
        }
        Fact::Replied { reply, sent: _ } => {
            let how = match reply.finish {
                Finish::Length => " (cut by the token limit)",
                Finish::Refusal => " (refused)",
                Finish::Stop | Finish::ToolCalls => "",
            };
            let text = match reply.calls.len() {
                0 => beginning(&reply.text),
                1 => format!("asks for {}", reply.calls[0].name),
                calls => format!("asks for {calls} calls"),
            };
            ("replied", format!("{}{how}: {text}", reply.model))
        }
        Fact::ModelFailed { kind: _, message, partial: _, sent: _ } => ("model-failed", message.clone()),
        Fact::Admitted { position, rule, by_rule: _, repeatable: _ } => {
            ("admitted", format!("call {position} may run: {rule}"))
        }
        Fact::Compacted { until, summary: _, how } => {
            let how = match how {
                Compaction::Summary => "summarised",
                Compaction::Trim => "left out",
            };
            ("compacted", format!("what came before message {until} goes to the model {how}"))
        }
        Fact::CompactionWanted => ("compaction-wanted", "the history is to be shortened".into()),
        Fact::CompactionFailed { message } => ("compaction-failed", format!("no summary could be had: {message}")),
        Fact::LoopFound { detector, evidence, stop } => {
            let what = if *stop { "stops the turn" } else { "nudges" };
            ("loop-found", format!("{detector} {what}: {evidence}"))
        }
        Fact::LoopLimitsSet { limits } => ("loop-limits-set", loop_limits_words(limits)),
        Fact::BudgetReached { what } => ("budget-reached", format!("the budget is used up: {what}")),
        Fact::BudgetRaised { times } => ("budget-raised", format!("the budget is now {times} times what it was")),
        Fact::TurnInterrupted { by, partial: _ } => ("turn-interrupted", format!("interrupted by {by}")),
        Fact::TurnEnded { outcome } => {
            let text = match outcome {
                TurnOutcome::Completed => "the turn is complete".into(),
                TurnOutcome::Interrupted => "the turn was interrupted".into(),
                TurnOutcome::Failed { failure: _, message } => format!("the turn failed: {message}"),
            };
            ("turn-ended", text)
        }
        Fact::ModeSet { mode } => ("mode-set", format!("the session is in mode {}", mode_word(*mode))),
        Fact::ModelSet { model } => ("model-set", format!("the session's model is {model}")),
        Fact::RootGranted { path, writable } => {
            let how = if *writable { "to read and write" } else { "to read" };
            ("root-granted", format!("{} was granted, {how}", path.display()))
        }
        Fact::Slept { until, on, note: _ } => ("slept", slept_words(*until, on)),
        Fact::Noticed { text } => ("noticed", text.clone()),
        _ => ("fact", String::new()),
    }
}

const fn mode_word(mode: ow_model::Mode) -> &'static str {
    match mode {
        ow_model::Mode::Plan => "plan",
        ow_model::Mode::Ask => "ask",
        ow_model::Mode::Edit => "edit",
        ow_model::Mode::Auto => "auto",
    }
}

/// The first line of a text, at most 200 characters of it.
fn beginning(text: &str) -> String {
    let line = text.trim_start().lines().next().unwrap_or_default();
    let mut beginning: String = line.chars().take(200).collect();
    if beginning.len() < text.trim().len() {
        beginning.push('…');
    }
    beginning
}

const fn ended(kind: CallErrorKind) -> &'static str {
    match kind {
        CallErrorKind::BadArguments => "was given arguments that do not fit",
        CallErrorKind::Failed => "failed",
        CallErrorKind::TimedOut => "took too long",
        CallErrorKind::Limit => "reached a limit",
        CallErrorKind::Refused => "was refused",
        CallErrorKind::Denied => "was denied",
        CallErrorKind::Stopped => "was stopped",
        CallErrorKind::Unreachable => "could not reach its goal",
        CallErrorKind::Lost => "lost its answer",
    }
}

fn answered_words(answered: &Answered) -> String {
    match answered {
        Answered::Resolved(Resolution { answer, by: AnswerBy { person, surface: _ }, at }) => {
            let how = match answer {
                Answer::Once => "approved",
                Answer::ForTask => "approved for the task",
                Answer::AlwaysTool => "approved for all calls of this tool",
                Answer::AlwaysCommand => "approved for all calls of this command",
                Answer::Edited { .. } => "approved with other arguments",
                Answer::Deny { .. } => "denied",
                Answer::Text { .. } => "answered",
                Answer::Acknowledge => "acknowledged",
            };
            format!("was {how} by {} at {at}", person.0)
        }
        Answered::Expired => "expired without an answer".into(),
        Answered::Withdrawn { why } => format!("was withdrawn: {why}"),
    }
}
