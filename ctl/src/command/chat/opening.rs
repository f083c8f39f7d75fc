use std::path::PathBuf;

use ow_client::{Client, ClientError};
use ow_model::RunId;
use ow_protocol::{NewAttachment, NewMessage, NewSession, PageQuery, SentMessage, SessionSettings, SessionView};

use super::{Chat, models};
use crate::context::Context;
use crate::failure::{Exit, Failure};

/// The chat that is meant: an old one, set as the command line says, or a new one.
pub(super) async fn open(owd: &mut Client, chat: &Chat, context: &Context) -> Result<SessionView, Failure> {
    let old = match (&chat.session, chat.go_on) {
        (Some(session), _) => Some(owd.session(session.as_str()).await?),
        (None, true) => Some(last(owd).await?),
        (None, false) => None,
    };
    let Some(old) = old else {
        if chat.model.is_none() {
            models::must_be_one(context)?;
        }
        let new = NewSession {
            model: chat.model.clone(),
            mode: chat.mode.clone(),
            roots: roots(chat, context)?,
            title: chat.title.clone(),
            instructions: None,
            inbox: chat.inbox.clone(),
        };
        return Ok(owd.create_session(&new).await?);
    };
    if !chat.roots.is_empty() {
        return Err(Failure::usage("a chat keeps the folders that it began with")
            .hint("begin a new one for another folder: owctl chat --root DIR"));
    }
    if let Some(inbox) = &chat.inbox
        && *inbox != old.inbox
    {
        return Err(Failure::usage(format!(
            "--inbox {inbox}: the questions of chat {} go to `{}`, and a chat keeps its inbox",
            old.id, old.inbox
        ))
        .hint(format!("begin a new one: owctl chat --inbox {inbox}")));
    }
    let settings = SessionSettings { mode: chat.mode.clone(), model: chat.model.clone(), title: chat.title.clone() };
    if settings == SessionSettings::default() { Ok(old) } else { Ok(owd.set_session(&old.id, &settings).await?) }
}

async fn last(owd: &mut Client) -> Result<SessionView, Failure> {
    let query = PageQuery { limit: Some(1), ..PageQuery::default() };
    owd.sessions(&query).await?.rows.into_iter().next().ok_or_else(|| {
        Failure::new(Exit::NotFound, "not_found", "there is no chat to go on with").hint("begin one: owctl chat")
    })
}

/// Where the agent may work: the folders that are named, else the present one.
fn roots(chat: &Chat, context: &Context) -> Result<Vec<String>, Failure> {
    let text = |path: PathBuf| {
        path.into_os_string()
            .into_string()
            .map_err(|path| Failure::usage(format!("folder {}: its name is not UTF-8", PathBuf::from(path).display())))
    };
    if !chat.roots.is_empty() {
        let whole = chat.roots.iter().map(|root| {
            root.canonicalize().map_err(|why| Failure::io(format!("folder {}", root.display()), &why)).and_then(text)
        });
        return whole.collect();
    }
    let here = std::env::current_dir().map_err(|why| Failure::io("cannot tell the present folder", &why))?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    if here.parent().is_none() || home.is_some_and(|home| home == here) {
        context.out.note("It works in no folder: this one is too large for that. Name one with --root DIR.");
        return Ok(vec![]);
    }
    Ok(vec![text(here)?])
}

/// Says something once, also when the connection breaks in the middle.
pub(super) async fn say(
    owd: &mut Client,
    session: &str,
    text: &str,
    attachments: Vec<NewAttachment>,
) -> Result<SentMessage, ClientError> {
    let key = Some(RunId::random().to_string());
    let message = NewMessage { text: text.into(), attachments, key };
    match owd.say(session, &message).await {
        Err(ClientError::Transport { .. }) => owd.say(session, &message).await,
        said => said,
    }
}
