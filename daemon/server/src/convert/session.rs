use ow_model::{Answer, Answered, Fact, Mode, RecordedFact, Run, RunState};
use ow_protocol::{GrantView, SessionView, UsageView};
use ow_store::SessionRow;
use serde_json::Value;

use super::{calls, instant, path, run_view};

/// The modes, by the words for them.
const MODES: [(&str, Mode); 4] = [("plan", Mode::Plan), ("ask", Mode::Ask), ("edit", Mode::Edit), ("auto", Mode::Auto)];

/// The mode that this word names.
pub(crate) fn mode_of(word: &str) -> Option<Mode> {
    MODES.iter().find(|(known, _)| *known == word).map(|(_, mode)| *mode)
}

pub(crate) fn mode_word(mode: Mode) -> &'static str {
    MODES.iter().find(|(_, known)| *known == mode).map_or("ask", |(word, _)| word)
}

pub(crate) fn session_view(row: &SessionRow, usage: Option<UsageView>) -> SessionView {
    let SessionRow { run, spec, title, mode, model, active_at, waiting, length } = row;
    let shown = run_view(run);
    let message = match run.state {
        RunState::Queued { not_before: Some(until), .. } => Some(format!("sleeps until {until}")),
        RunState::Idle => Some("waits for a message".into()),
        _ => shown.message,
    };
    SessionView {
        id: shown.id,
        title: title.clone(),
        state: shown.state,
        message,
        items: shown.items,
        waiting: *waiting,
        mode: mode_word(*mode).into(),
        model: model.clone(),
        roots: spec.roots.iter().map(|root| path(root)).collect(),
        inbox: spec.inbox.to_string(),
        created_at: shown.created_at,
        active_at: instant(*active_at),
        length: *length,
        usage,
        grants: vec![],
        task: None,
    }
}

/// What people allowed a session beyond single calls, in the order in which they did.
pub(crate) fn grants(run: &Run, facts: &[RecordedFact]) -> Vec<GrantView> {
    let calls = calls(run, facts);
    let mut grants = vec![];
    for RecordedFact { seq: _, at: _, fact } in facts {
        let (kind, what) = match fact {
            Fact::Answered { position, answered: Answered::Resolved(resolution), .. } => {
                let Some(call) = calls.iter().find(|call| call.position == position.0) else { continue };
                match &resolution.answer {
                    Answer::AlwaysTool => ("tool", call.tool.clone()),
                    Answer::AlwaysCommand => ("command", command_of(&call.arguments)),
                    _ => continue,
                }
            }
            Fact::RootGranted { path: folder, writable: true } => ("writable-folder", path(folder)),
            Fact::RootGranted { path: folder, writable: false } => ("folder", path(folder)),
            _ => continue,
        };
        let grant = GrantView { kind: kind.into(), what };
        if !grants.contains(&grant) {
            grants.push(grant);
        }
    }
    grants
}

/// The command of a call's arguments, as the model wrote it: a line, or words.
fn command_of(arguments: &Value) -> String {
    if let Some(line) = arguments.get("command").and_then(Value::as_str) {
        return line.to_owned();
    }
    let words = arguments.get("argv").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    words
        .iter()
        .map(|word| word.as_str().map_or_else(|| word.to_string(), ToOwned::to_owned))
        .collect::<Vec<_>>()
        .join(" ")
}
