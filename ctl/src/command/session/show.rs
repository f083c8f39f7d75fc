use ow_protocol::{GrantView, SessionView};

use crate::command::sent;
use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::{Colour, Paint};
use crate::reference::Reference;
use crate::table::pairs;
use crate::time::Clock;

/// Show where a chat stands, or a run's session
#[derive(Debug, clap::Args)]
#[command(after_help = "What was said is in `owctl session export`.

Examples:
  owctl session show 4k7
  owctl session show 4k7 --sent 2 | jq .messages")]
pub(crate) struct Show {
    /// The id of a chat or of a task's run, or a unique beginning of it
    session: Reference,
    /// What went to models instead: all requests, or the body of one exactly as it was sent
    #[arg(long, value_name = "N", num_args = 0..=1)]
    sent: Option<Vec<u32>>,
}

impl Show {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        if let Some(numbers) = &self.sent {
            return sent::show(context, sent::Of::Session(self.session.as_str()), numbers.first().copied());
        }
        let session = context.with_daemon(async |owd| Ok(owd.session(self.session.as_str()).await?))?;
        context.out.give(&session, |session| in_words(session, context.clock(), context.out.paint));
        Ok(())
    }
}

fn in_words(session: &SessionView, clock: &Clock, paint: Paint) -> String {
    let title = session.title.as_deref().unwrap_or("(nothing was said yet)");
    let mut text = format!("{}\n\n", paint.in_colour(Colour::Bold, &escape::line(title)));
    let state = match &session.message {
        Some(message) => format!("{}; {}", paint.state(&session.state), escape::line(&clock.in_sentence(message))),
        None => paint.state(&session.state),
    };
    let model = session.model.as_deref().unwrap_or("the configured default");
    let mut rows = vec![
        ("session", escape::line(&session.id)),
        ("task", escape::line(session.task.as_deref().unwrap_or_default())),
        ("state", state.into()),
        ("model", escape::line(model)),
        ("mode", escape::line(&session.mode)),
    ];
    if session.task.is_none() {
        rows.retain(|(name, _)| *name != "task");
    }
    for GrantView { kind, what } in &session.grants {
        let what = escape::line(what);
        let text = match kind.as_str() {
            "tool" => format!("each call of {what}"),
            "command" => format!("each time: {what}"),
            "writable-folder" => format!("to read and write in {what}"),
            _ => format!("to read in {what}"),
        };
        rows.push(("allowed", text.into()));
    }
    if !session.roots.is_empty() {
        rows.push(("works in", escape::line(&session.roots.join(", ")).into_owned().into()));
    }
    if session.inbox != "default" {
        rows.push(("asks in", escape::line(&session.inbox)));
    }
    rows.push(("begun", clock.when(&session.created_at).into()));
    rows.push(("active", clock.when(&session.active_at).into()));
    if session.waiting > 0 {
        rows.push(("unheard", format!("{} messages", session.waiting).into()));
    }
    if let Some(usage) = session.usage.filter(|usage| usage.calls > 0) {
        let used = format!(
            "{} tokens in ({} cached), {} out, {} model calls",
            usage.input, usage.cached, usage.output, usage.calls
        );
        rows.push(("used", used.into()));
    }
    text.push_str(&pairs(paint, &rows));
    text.push('\n');
    for item in &session.items {
        let item = escape::line(item);
        put!(text, "Waits for you: owctl inbox show {item}\n");
    }
    let id = escape::line(&session.id);
    if session.task.is_some() {
        put!(text, "A task's run. What it did: owctl run show {id}; what was said: owctl session export {id}\n");
    } else if session.state == "cancelled" {
        put!(text, "It was removed. What was said, as long as its records are kept: owctl session export {id}\n");
    } else {
        put!(text, "Go on: owctl chat --session {id}\n");
    }
    text
}
