//! What a chat asks of owd and of the system, performed.

use std::path::{Path, PathBuf};

use ow_client::Client;
use ow_protocol::PageQuery;

use super::exchange::{Ask, Completed, Told};
use crate::command::chat::{attach, opening};
use crate::command::{model, tool};
use crate::context::Context;
use crate::failure::Failure;

/// Chats that `/resume` lists, items that `/inbox` lists.
const LISTED: usize = 20;
/// Candidates of a completion that are shown.
const CANDIDATES: usize = 30;

/// Asks, and gives the client back with the answer.
pub(super) async fn perform(mut owd: Client, session: String, ask: Ask, context: &Context) -> (Client, Told) {
    let told = match attempt(&mut owd, &session, &ask, context).await {
        Ok(told) => told,
        Err(why) => Told::Failed { asked: ask, why },
    };
    (owd, told)
}

async fn attempt(owd: &mut Client, session: &str, ask: &Ask, context: &Context) -> Result<Told, Failure> {
    let listed = PageQuery { limit: Some(LISTED), ..PageQuery::default() };
    Ok(match ask {
        Ask::Say { text, attachments } => {
            Told::Said(Box::new(opening::say(owd, session, text, attachments.clone()).await?))
        }
        Ask::Item(item) => Told::Item(Box::new(owd.item(item).await?)),
        Ask::Answer { item, answer } => {
            owd.answer_item(item, answer).await?;
            Told::Answered
        }
        Ask::Interrupt => {
            owd.interrupt_session(session).await?;
            Told::Interrupting
        }
        Ask::Set(settings) => Told::Session(Box::new(owd.set_session(session, settings).await?)),
        Ask::Compact => {
            owd.compact_session(session).await?;
            Told::Compacting
        }
        Ask::Pending => Told::Pending(owd.items(&listed).await?.rows),
        Ask::Tools => Told::Tools(tool::in_short(context)?),
        Ask::Cost => {
            let session = owd.session(session).await?;
            let names: Vec<String> = session.model.into_iter().collect();
            // Where no price is known, the tokens are told alone.
            let price = if names.is_empty() {
                model::configured(context).ok().flatten()
            } else {
                model::ask(context, &names).ok().map(|answer| answer.models)
            };
            let price = price.and_then(|models| models.first().and_then(|model| model.price));
            Told::Cost { usage: session.usage.unwrap_or_default(), price }
        }
        Ask::Chats => Told::Chats(owd.sessions(&listed).await?.rows),
        Ask::Attach(path) => Told::Attached(attach::file(&at_home(path))?),
        Ask::Complete { start, word, of } => {
            let mut candidates = match of {
                Completed::Files => files(word),
                Completed::Models => models(word, context)?,
            };
            candidates.truncate(CANDIDATES);
            Told::Candidates { start: *start, candidates }
        }
    })
}

/// `~` is the person's home.
fn at_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.to_owned(),
    }
}

/// Files and folders whose path begins so, folders with a `/` at the end.
fn files(word: &str) -> Vec<String> {
    let (folder, name) = word.rsplit_once('/').map_or(("", word), |(folder, name)| (&word[..=folder.len()], name));
    let place = if folder.is_empty() { PathBuf::from(".") } else { at_home(Path::new(folder)) };
    let Ok(entries) = std::fs::read_dir(place) else { return vec![] };
    let mut fitting: Vec<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let found = entry.file_name().into_string().ok()?;
            let is_hidden = found.starts_with('.') && !name.starts_with('.');
            let end = if entry.path().is_dir() { "/" } else { "" };
            (found.starts_with(name) && !is_hidden).then(|| format!("{folder}{found}{end}"))
        })
        .collect();
    fitting.sort_unstable();
    fitting
}

/// Models that could be asked now.
fn models(word: &str, context: &Context) -> Result<Vec<String>, Failure> {
    let known = model::ask(context, &[])?;
    let ready = known
        .default
        .into_iter()
        .chain(known.models.into_iter().filter(model::Described::is_ready).map(|model| model.name));
    let mut fitting: Vec<String> = ready.filter(|name| name.starts_with(word)).collect();
    fitting.sort_unstable();
    fitting.dedup();
    Ok(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_complete_below_their_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("notes.txt"), "").expect("a file");
        std::fs::write(dir.path().join(".hidden"), "").expect("a file");
        std::fs::create_dir(dir.path().join("nested")).expect("a folder");
        let root = dir.path().to_str().expect("UTF-8");
        assert_eq!(files(&format!("{root}/n")), [format!("{root}/nested/"), format!("{root}/notes.txt")]);
        assert_eq!(files(&format!("{root}/.h")), [format!("{root}/.hidden")]);
        assert_eq!(files(&format!("{root}/none/x")), Vec::<String>::new());
    }
}
