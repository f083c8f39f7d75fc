//! Finds what a text names: a whole id, a unique prefix, or a token.

use ow_model::{Item, ItemId, Rule, Run, RunId, SessionId, TaskName};
use ow_protocol::ErrorCode;
use ow_store::SessionRow;

use crate::api::Api;
use crate::problem::Problem;

/// How many ids an ambiguous prefix is answered with.
const HITS_SHOWN: usize = 10;
const ID_LENGTH: usize = 16;

pub(crate) async fn run(api: &Api, text: &str) -> Result<Run, Problem> {
    let missing =
        || Problem::not_found(format!("there is no run `{text}`")).with_hint("`owctl run list` lists the runs");
    let prefix = Prefix::parse(text).ok_or_else(missing)?;
    let hits = match prefix.whole::<RunId>() {
        Some(id) => vec![id],
        None => api.store.runs_by_prefix(&prefix.0, HITS_SHOWN + 1).await?,
    };
    let id = only("run", text, &hits, missing)?;
    api.store.run(id).await?.ok_or_else(missing)
}

/// A chat; the runs of tasks are none, and do not make a prefix ambiguous.
pub(crate) async fn session(api: &Api, text: &str) -> Result<SessionRow, Problem> {
    let missing = || {
        Problem::not_found(format!("there is no session `{text}`")).with_hint("`owctl session list` lists the chats")
    };
    let prefix = Prefix::parse(text).ok_or_else(missing)?;
    let hits = match prefix.whole::<RunId>() {
        Some(id) => vec![id],
        None => api.store.sessions_by_prefix(&prefix.0, HITS_SHOWN + 1).await?,
    };
    let id = only("session", text, &hits, missing)?;
    api.store.session(id).await?.ok_or_else(missing)
}

/// A chat, or the session of a run that an agent works in: what can be read and not spoken to.
pub(crate) async fn readable(api: &Api, text: &str) -> Result<Readable, Problem> {
    let missing = match session(api, text).await {
        Ok(row) => return Ok(Readable { row, task: None }),
        Err(problem) => problem,
    };
    let Ok(run) = run(api, text).await else { return Err(missing) };
    let spec = api.store.revision(run.task, run.revision).await?;
    let Some((spec, agent)) = spec.and_then(|spec| spec.agent.clone().map(|agent| (spec, agent))) else {
        return Err(missing.with_hint(format!("it is a run of steps: owctl run show {}", run.id)));
    };
    let row = SessionRow {
        title: spec.title.clone(),
        mode: spec.mode,
        model: agent.model,
        active_at: run.ended_at.or(run.started_at).unwrap_or(run.created_at),
        waiting: 0,
        length: 0,
        spec,
        run,
    };
    Ok(Readable { task: Some(row.run.task_name.clone()), row })
}

/// A session with the task whose run it is.
pub(crate) struct Readable {
    pub(crate) row: SessionRow,
    pub(crate) task: Option<TaskName>,
}

/// A chat, or the session of a task's run.
pub(crate) async fn watchable(api: &Api, text: &str) -> Result<SessionId, Problem> {
    match session(api, text).await {
        Ok(row) => Ok(row.run.id),
        Err(problem) => run(api, text).await.map_or(Err(problem), |run| Ok(run.id)),
    }
}

pub(crate) async fn item(api: &Api, text: &str) -> Result<Item, Problem> {
    let missing = || {
        Problem::not_found(format!("there is no item `{text}`")).with_hint("`owctl inbox list` lists the open items")
    };
    let prefix = Prefix::parse(text).ok_or_else(missing)?;
    let hits = match prefix.whole::<ItemId>() {
        Some(id) => vec![id],
        None => api.store.items_by_prefix(&prefix.0, HITS_SHOWN + 1).await?,
    };
    let id = only("item", text, &hits, missing)?;
    api.store.item(id).await?.ok_or_else(missing)
}

pub(crate) async fn rule(api: &Api, text: &str) -> Result<Rule, Problem> {
    let missing =
        || Problem::not_found(format!("there is no rule `{text}`")).with_hint("`owctl rule list` lists the rules");
    let prefix = Prefix::parse(text).ok_or_else(missing)?;
    let mut rules = api.store.rules(None, api.control.now()).await?;
    rules.retain(|rule| rule.id.to_string().starts_with(&prefix.0));
    let hits: Vec<_> = rules.iter().map(|rule| rule.id).collect();
    let id = only("rule", text, &hits, missing)?;
    rules.into_iter().find(|rule| rule.id == id).ok_or_else(missing)
}

fn only<I: Copy + ToString>(kind: &str, text: &str, hits: &[I], missing: impl Fn() -> Problem) -> Result<I, Problem> {
    match hits {
        [] => Err(missing()),
        [only] => Ok(*only),
        several => {
            let mut shown: Vec<_> = several.iter().take(HITS_SHOWN).map(ToString::to_string).collect();
            if several.len() > HITS_SHOWN {
                shown.push("…".into());
            }
            Err(Problem::new(ErrorCode::Ambiguous, format!("`{text}` fits more than one {kind}"))
                .with_hint("write more letters of the id")
                .with_details(shown))
        }
    }
}

/// The beginning of an id, or all of it, in the letters that ids are written with.
#[derive(Debug, Eq, PartialEq)]
struct Prefix(String);

impl Prefix {
    /// Reads as ids are read, without regard to case and look-alikes. A token `[ow:…]` counts only in full.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let token = text.strip_prefix("[ow:").map(|rest| rest.strip_suffix(']'));
        let id = match token {
            None => text.as_str(),
            Some(token) => token.filter(|token| token.len() == ID_LENGTH)?,
        };
        let plain = |letter: char| letter.is_ascii_alphanumeric() && letter != 'u';
        if id.is_empty() || id.len() > ID_LENGTH || !id.chars().all(plain) {
            return None;
        }
        Some(Self(id.replace('o', "0").replace(['i', 'l'], "1")))
    }

    fn whole<I: std::str::FromStr>(&self) -> Option<I> {
        self.0.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_read_as_ids_are() {
        let read = |text: &str| Prefix::parse(text).map(|prefix| prefix.0);
        assert_eq!(read("ABC"), Some("abc".into()));
        assert_eq!(read(" oil "), Some("011".into()));
        assert_eq!(read("[ow:0123456789abcdef]"), Some("0123456789abcdef".into()));
        assert_eq!(read("[OW:0123456789ABCDEF]"), Some("0123456789abcdef".into()));
        for none in [
            "",
            " ",
            "u",
            "a b",
            "a-b",
            "%",
            "_",
            "é",
            "0123456789abcdef0",
            "[ow:0123]",
            "[ow:0123456789abcdef",
            "[ow:]",
            "[]",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
