use ow_protocol::WebhookView;

use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::table::{Cell, Table};

/// List the webhooks with their tasks and what has come since owd started
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

impl List {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let page = context.with_daemon(async |owd| Ok(owd.webhooks().await?))?;
        context.out.give(&page, |page| {
            if page.rows.is_empty() {
                return "No webhooks. Add `[webhook.NAME]` and `[listener]` to owd.toml, then restart owd.".into();
            }
            let mut table =
                Table::new(context.out, &["WEBHOOK", "PROFILE", "TASKS", "ACCEPTED", "AGAIN", "TOO FAST", "REFUSED"]);
            for hook in &page.rows {
                table.row(vec![
                    Cell::text(&hook.name),
                    Cell::text(&hook.profile),
                    Cell::maybe(Some(hook.tasks.join(", ")).filter(|tasks| !tasks.is_empty()).as_deref()),
                    Cell::text(&hook.accepted.to_string()),
                    Cell::text(&hook.known.to_string()),
                    Cell::text(&hook.limited.to_string()),
                    Cell::text(&hook.refused.to_string()),
                ]);
            }
            let mut text = table.show();
            for hook in &page.rows {
                for remark in remarks(hook, context) {
                    put!(text, "\n{}: {}", escape::line(&hook.name), escape::line(&remark));
                }
            }
            text
        });
        Ok(())
    }
}

/// What keeps a webhook from working, and what was refused last.
fn remarks(hook: &WebhookView, context: &Context) -> Vec<String> {
    let mut remarks = vec![];
    if hook.url.is_none() {
        remarks.push("owd has no listener: set `[listener] address` in owd.toml, then restart owd".to_owned());
    }
    for secret in hook.secrets.iter().filter(|secret| !secret.known) {
        remarks.push(format!("no secret `{0}`: `owctl secret set {0}`", secret.name));
    }
    if hook.tasks.is_empty() {
        remarks.push(format!("no task runs on it: give one `[[trigger]]` with `webhook = \"{}\"`", hook.name));
    }
    if let (Some(at), Some(why)) = (&hook.last_refused_at, &hook.last_refused_why) {
        remarks.push(format!("last refused {}: {why}", context.clock().when(at)));
    }
    remarks
}
