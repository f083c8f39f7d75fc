use ow_model::{Mode, RunState};
use ow_protocol::{SessionView, UsageView};
use ow_store::SessionRow;

use super::{instant, path, run_view};

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
    }
}
