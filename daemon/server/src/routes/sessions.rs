use std::path::PathBuf;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ow_engine::Command;
use ow_model::{Attachment, Fact, Input, Mode, RecordedFact, RunState, SessionId, Source};
use ow_protocol::{
    ErrorCode, NewAttachment, NewMessage, NewSession, Page, PageQuery, SentMessage, SessionExport, SessionSettings,
    SessionView,
};
use ow_store::{SessionError, SessionFilter, SessionRow};
use serde::Deserialize;
use tokio::time::{Instant, timeout};

use crate::api::Api;
use crate::control::WantedSession;
use crate::convert::{Transcript, grants, markdown, mode_of, session_view, sleeps_until};
use crate::extract::{Json, JsonOrDefault, NoBody, Path, Query, page, refuse_filters};
use crate::find::{self, Readable};
use crate::guard::Caller;
use crate::limits::{ATTACHMENTS_LIMIT, COMMAND_WAIT, EVENT_KEY_LIMIT, MESSAGE_LIMIT, WORKER_OPENS, WORKER_WAIT};
use crate::problem::Problem;

/// The longest title in characters.
const TITLE_LIMIT: usize = 200;

pub(super) async fn list(
    State(api): State<Api>,
    _caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Answer<Page<SessionView>>, Problem> {
    let PageQuery { after, limit, task, state, run, name } = query;
    refuse_filters("sessions", &[("task", task.is_some()), ("run", run.is_some()), ("name", name.is_some())])?;
    let removed = match state.as_deref() {
        None | Some("open") => false,
        Some("all") => true,
        Some(other) => {
            return Err(Problem::bad_request(format!("`state={other}` is no filter of sessions: use `open` or `all`")));
        }
    };
    let found = api.store.sessions(&SessionFilter { removed }, &page(after, limit)?).await?;
    let rows = found.rows.iter().map(|row| session_view(row, None)).collect();
    Ok(Answer(Page { rows, next: found.next }))
}

pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    JsonOrDefault(wanted): JsonOrDefault<NewSession>,
) -> Result<Answer<SessionView>, Problem> {
    let NewSession { model, mode, roots, title, instructions, inbox } = wanted;
    let mode = mode.as_deref().map_or(Ok(Mode::default()), read_mode)?;
    let title = title.as_deref().map(read_title).transpose()?;
    let roots = roots.into_iter().map(PathBuf::from).collect();
    let spec = api
        .control
        .session_spec(&WantedSession { model, mode, roots, instructions, inbox })
        .map_err(|faults| Problem::invalid("the session cannot be opened").with_details(faults))?;
    let new = ow_store::NewSession { spec, title, by: caller.name().into() };
    let id = api.store.create_session(&new, api.control.now()).await?;
    Ok(Answer(session_view(&present(&api, id).await?, None)))
}

pub(super) async fn show(
    State(api): State<Api>,
    _caller: Caller,
    Path(text): Path<String>,
) -> Result<Answer<SessionView>, Problem> {
    let found = find::readable(&api, &text).await?;
    let facts = api.store.journal(found.row.run.id).await?;
    let mut transcript = Transcript::default();
    for fact in &facts {
        transcript.fold(fact);
    }
    Ok(Answer(whole_view(found, &facts, &transcript)))
}

pub(super) async fn remove(
    State(api): State<Api>,
    caller: Caller,
    Path(text): Path<String>,
    _: NoBody,
) -> Result<axum::http::StatusCode, Problem> {
    let id = find::session(&api, &text).await?.run.id;
    let why = format!("removed by {}", caller.name());
    if api.store.remove_session(id, &why, api.control.now()).await? {
        api.control.stop_run(id, &why).await;
    }
    api.control.wake();
    Ok(axum::http::StatusCode::NO_CONTENT)
}

pub(super) async fn say(
    State(api): State<Api>,
    caller: Caller,
    Path(text): Path<String>,
    Json(message): Json<NewMessage>,
) -> Result<Answer<SentMessage>, Problem> {
    let id = find::session(&api, &text).await?.run.id;
    let NewMessage { text, attachments, key } = message;
    if text.trim().is_empty() && attachments.is_empty() {
        return Err(Problem::invalid("an empty message says nothing").with_hint("send a text, an attachment, or both"));
    }
    if text.len() > MESSAGE_LIMIT {
        let most = MESSAGE_LIMIT / 1024 / 1024;
        return Err(Problem::new(ErrorCode::TooLarge, format!("the text is longer than {most} MiB"))
            .with_hint("attach it as a file"));
    }
    if let Some(key) = key.as_deref().filter(|key| key.is_empty() || key.len() > EVENT_KEY_LIMIT) {
        return Err(Problem::invalid(format!("`key` has {} bytes: use 1 to {EVENT_KEY_LIMIT}", key.len())));
    }
    let attachments = keep(&api, attachments).await?;
    let input = Input { text, attachments, source: Source::Person { person: caller.0.person.clone() } };
    let said = api.store.say(id, &input, key.as_deref(), api.control.now()).await?;
    api.control.wake_for_work();
    let session = session_view(&present(&api, id).await?, None);
    Ok(Answer(SentMessage { number: said.number, new: said.new, session }))
}

/// Keeps the bytes of attachments before anything refers to them.
async fn keep(api: &Api, attachments: Vec<NewAttachment>) -> Result<Vec<Attachment>, Problem> {
    if attachments.len() > ATTACHMENTS_LIMIT {
        return Err(Problem::invalid(format!(
            "{} attachments: a message takes at most {ATTACHMENTS_LIMIT}",
            attachments.len()
        )));
    }
    let mut kept = vec![];
    for NewAttachment { name, media_type, base64 } in attachments {
        if name.is_empty() || name.len() > 255 || name.contains(['/', '\0']) {
            return Err(Problem::invalid(format!(
                "attachment `{name}`: `name` must be a file's name without a folder"
            )));
        }
        let is_type = |text: &str| {
            let token = |part: &str| {
                !part.is_empty()
                    && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
            };
            text.split_once('/').is_some_and(|(kind, part)| token(kind) && token(part))
        };
        if !is_type(&media_type) {
            return Err(Problem::invalid(format!("attachment `{name}`: `{media_type}` is no media type"))
                .with_hint("write it as in `application/pdf`"));
        }
        let bytes = STANDARD
            .decode(&base64)
            .map_err(|error| Problem::invalid(format!("attachment `{name}`: `base64` cannot be read: {error}")))?;
        let hash = api.store.put_blob(&bytes).await?;
        kept.push(Attachment { name, media_type, bytes: bytes.len() as u64, hash });
    }
    Ok(kept)
}

pub(super) async fn interrupt(
    State(api): State<Api>,
    caller: Caller,
    Path(text): Path<String>,
    _: NoBody,
) -> Result<Answer<SessionView>, Problem> {
    let id = find::session(&api, &text).await?.run.id;
    deliver(&api, id, &Command::Interrupt { by: caller.name().into() }).await?;
    api.control.wake_for_work();
    Ok(Answer(session_view(&present(&api, id).await?, None)))
}

/// Whether a session without a worker is in the middle of a turn: it sleeps until something happens.
async fn sleeps(api: &Api, id: SessionId) -> Result<bool, Problem> {
    let facts = api.store.journal(id).await?;
    Ok(facts.last().is_some_and(|last| matches!(last.fact, Fact::Slept { .. })))
}

pub(super) async fn set(
    State(api): State<Api>,
    _caller: Caller,
    Path(text): Path<String>,
    Json(settings): Json<SessionSettings>,
) -> Result<Answer<SessionView>, Problem> {
    let id = find::session(&api, &text).await?.run.id;
    let SessionSettings { mode, model, title } = settings;
    // All is checked before any is set.
    let mode = mode.as_deref().map(read_mode).transpose()?;
    let title = title.as_deref().map(read_title).transpose()?;
    if let Some(model) = &model {
        api.control.check_model(model).map_err(Problem::invalid)?;
    }
    if let Some(mode) = mode {
        deliver(&api, id, &Command::SetMode(mode)).await?;
    }
    if let Some(model) = model {
        deliver(&api, id, &Command::SetModel(model)).await?;
    }
    if let Some(title) = title {
        api.store.rename_session(id, &title, api.control.now()).await?;
    }
    Ok(Answer(session_view(&present(&api, id).await?, None)))
}

pub(super) async fn compact(
    State(api): State<Api>,
    _caller: Caller,
    Path(text): Path<String>,
    _: NoBody,
) -> Result<Answer<SessionView>, Problem> {
    let id = find::session(&api, &text).await?.run.id;
    deliver(&api, id, &Command::Compact).await?;
    api.control.wake_for_work();
    Ok(Answer(session_view(&present(&api, id).await?, None)))
}

/// Gives a command to the session's worker, or writes it down where none has it. It is durable when this has returned.
///
/// Between the two stands a worker that is about to begin or to leave: it is waited for.
async fn deliver(api: &Api, id: SessionId, command: &Command) -> Result<(), Problem> {
    let mut deadline = Instant::now() + WORKER_WAIT;
    let mut changes = api.store.session_changes(id);
    loop {
        changes.mark_unchanged();
        let began = Instant::now();
        let Ok(is_taken) = timeout(COMMAND_WAIT, api.control.command(id, command.clone())).await else {
            let message = format!("session {id} has not taken it in yet, and may do so later");
            let hint = format!("look at it with `owctl session show {id}`; the log says what it waits for");
            return Err(Problem::new(ErrorCode::Conflict, message).with_hint(hint));
        };
        if is_taken || write_down(api, id, command).await? {
            return Ok(());
        }
        // A worker that had it and left is no sign that none will come.
        deadline += began.elapsed();
        if Instant::now() >= deadline {
            let message = format!("session {id} is between two states");
            return Err(Problem::new(ErrorCode::Conflict, message).with_hint("try again"));
        }
        // A worker that has just taken it opens its queue of commands without a change in the store.
        drop(timeout(WORKER_OPENS, changes.changed()).await);
    }
}

/// Writes what a command does into the journal of a session that no worker has; false: one has it.
async fn write_down(api: &Api, id: SessionId, command: &Command) -> Result<bool, Problem> {
    let (store, now) = (&api.store, api.control.now());
    let written = match command {
        Command::SetMode(mode) => store.note_in_session(id, &[Fact::ModeSet { mode: *mode }], None, now).await?,
        Command::SetModel(model) => {
            // A worker says so itself, before the model's next call.
            let warnings = api.control.check_model(model).map_err(Problem::invalid)?;
            let mut facts = vec![Fact::ModelSet { model: model.clone() }];
            facts.extend(warnings.into_iter().map(|text| Fact::Noticed { text }));
            store.note_in_session(id, &facts, None, now).await?
        }
        Command::Compact => {
            let written = store.note_in_session(id, &[Fact::CompactionWanted], None, now).await?;
            // An idle session is shortened at once.
            store.rouse(id, now).await?;
            written
        }
        Command::Interrupt { by } => {
            let stopped = [Fact::TurnInterrupted { by: by.clone(), partial: None }];
            match present(api, id).await?.run.state {
                RunState::Running => false,
                // What it asked is moot; the worker that then has it closes the turn.
                RunState::Parked { .. } => {
                    store.note_in_session(id, &stopped, Some("the turn was interrupted"), now).await?
                }
                RunState::Queued { .. } | RunState::Interrupted => {
                    store.note_in_session(id, &stopped, None, now).await?
                }
                RunState::Idle if sleeps(api, id).await? => {
                    let written = store.note_in_session(id, &stopped, None, now).await?;
                    store.rouse(id, now).await?;
                    written
                }
                // Between two turns there is nothing to interrupt.
                RunState::Idle | RunState::Ended(_) => true,
            }
        }
    };
    Ok(written)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportQuery {
    format: Option<String>,
}

pub(super) async fn export(
    State(api): State<Api>,
    _caller: Caller,
    Path(text): Path<String>,
    Query(ExportQuery { format }): Query<ExportQuery>,
) -> Result<Response, Problem> {
    let found = find::readable(&api, &text).await?;
    let mut transcript = Transcript::default();
    let facts = api.store.journal(found.row.run.id).await?;
    let messages: Vec<_> = facts.iter().filter_map(|fact| transcript.fold(fact)).collect();
    let session = whole_view(found, &facts, &transcript);
    match format.as_deref() {
        None | Some("json") => Ok(Answer(SessionExport { session, messages }).into_response()),
        Some("markdown") => {
            let kind = [(CONTENT_TYPE, "text/markdown; charset=utf-8")];
            Ok((kind, markdown(&session, &messages)).into_response())
        }
        Some(other) => Err(Problem::bad_request(format!("`format={other}` is no format: use `json` or `markdown`"))),
    }
}

/// A session with what only its journal says.
fn whole_view(found: Readable, facts: &[RecordedFact], transcript: &Transcript) -> SessionView {
    let Readable { mut row, task } = found;
    row.length = u32::try_from(facts.len()).unwrap_or(u32::MAX);
    let mut view = session_view(&row, Some(transcript.usage()));
    if let Some(sleeps) = sleeps_until(&row.run.state, facts) {
        view.message = Some(sleeps);
    }
    view.grants = grants(&row.run, facts);
    view.task = task.map(|task| task.to_string());
    view
}

fn read_mode(word: &str) -> Result<Mode, Problem> {
    mode_of(word).ok_or_else(|| {
        Problem::invalid(format!("`{word}` is no mode")).with_hint("use `plan`, `ask`, `edit` or `auto`")
    })
}

fn read_title(title: &str) -> Result<String, Problem> {
    let title = title.trim();
    match title.chars().count() {
        1..=TITLE_LIMIT => Ok(title.to_owned()),
        count => Err(Problem::invalid(format!("the title has {count} characters: use 1 to {TITLE_LIMIT}"))),
    }
}

async fn present(api: &Api, id: SessionId) -> Result<SessionRow, Problem> {
    Ok(api.store.session(id).await?.ok_or(SessionError::Unknown { id })?)
}
