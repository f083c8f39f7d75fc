//! What a chat is made of where its person says nothing else.

use std::path::Path;

use ow_config::{TaskDefaults, unknown_inbox};
use ow_model::{AgentSpec, CatchUp, EventDelivery, InboxName, Overlap, Retry, Span, TaskSpec, WhileParked};
use ow_server::WantedSession;

/// A chat has no end of its own.
const NO_TIMEOUT: Span = Span::from_secs(100 * 365 * 86_400);
const MODEL_LENGTH: usize = 200;

/// The definition of a chat's hidden task; all that is wrong with what is wanted, one text each.
pub(crate) fn spec(wanted: &WantedSession, defaults: &TaskDefaults) -> Result<TaskSpec, Vec<String>> {
    let WantedSession { model, mode, roots, instructions, inbox } = wanted;
    let mut faults: Vec<String> = roots.iter().filter_map(|root| check_root(root).err()).collect();
    faults.extend(model.as_deref().and_then(|model| check_model(model).err()));
    let TaskDefaults {
        timezone,
        home: _,
        timeout: _,
        call_timeout,
        expiry,
        reminder,
        inboxes,
        webhooks: _,
        mail_folders: _,
    } = defaults.clone();
    let inbox = match inbox {
        None => InboxName::default(),
        Some(name) => inboxes.iter().find(|inbox| inbox.as_str() == name).cloned().unwrap_or_else(|| {
            faults.push(format!("inbox `{name}`: there is no such inbox; {}", unknown_inbox(name, &inboxes)));
            InboxName::default()
        }),
    };
    if !faults.is_empty() {
        return Err(faults);
    }
    let agent = AgentSpec { model: model.clone(), instructions: instructions.clone(), ..AgentSpec::default() };
    Ok(TaskSpec {
        name: "chat".parse().expect("a word is a task's name"),
        title: None,
        timezone,
        triggers: vec![],
        steps: vec![],
        agent: Some(agent),
        mode: *mode,
        roots: roots.clone(),
        catch_up: CatchUp::default(),
        overlap: Overlap::default(),
        while_parked: WhileParked::default(),
        events: EventDelivery::default(),
        start_deadline: None,
        jitter: Span::from_millis(0),
        timeout: NO_TIMEOUT,
        call_timeout,
        retry: Retry { attempts: 0, backoff: Span::from_secs(60) },
        auto_pause_after: 0,
        concurrency: None,
        needs: vec![],
        item_expiry: expiry,
        item_reminder: reminder,
        http_allow: vec![],
        inbox,
    })
}

fn check_root(root: &Path) -> Result<(), String> {
    let shown = root.display();
    if !root.is_absolute() {
        return Err(format!("root `{shown}`: not absolute; write the whole path"));
    }
    if root.parent().is_none() {
        return Err(format!("root `{shown}`: all of the file system is no working folder; name one below it"));
    }
    if !root.is_dir() {
        return Err(format!("root `{shown}`: there is no such folder; make it, or name another"));
    }
    Ok(())
}

/// Whether this can be the name of a model: `provider:model`, or a bare name for the default provider.
pub(crate) fn check_model(model: &str) -> Result<(), String> {
    let plain = |letter: char| !letter.is_whitespace() && !letter.is_control();
    if model.is_empty() || model.len() > MODEL_LENGTH || !model.chars().all(plain) {
        return Err(format!("model `{model}`: not a model's name; write `provider:model`"));
    }
    Ok(())
}
