use ow_protocol::WebhookView;
use serde_json::json;

use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};

/// Print the address to enter at a webhook's sender
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It begins with `[listener] url` of the configuration: what the sender reaches owd by, as a rule through a
proxy that speaks TLS. Without it, it is the listener's own address."
)]
pub(crate) struct HookUrl {
    /// The webhook's name; all of them if not given
    #[arg(value_name = "WEBHOOK")]
    hook: Option<String>,
}

impl HookUrl {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let page = context.with_daemon(async |owd| Ok(owd.webhooks().await?))?;
        let wanted = |hook: &&WebhookView| self.hook.as_ref().is_none_or(|name| *name == hook.name);
        let hooks: Vec<&WebhookView> = page.rows.iter().filter(wanted).collect();
        match &self.hook {
            Some(name) if hooks.is_empty() => {
                return Err(Failure::new(Exit::NotFound, "not_found", format!("there is no webhook `{name}`"))
                    .hint("`owctl webhook list` lists them"));
            }
            None if hooks.is_empty() => {
                return Err(Failure::new(Exit::NotFound, "not_found", "there are no webhooks")
                    .hint("add `[webhook.NAME]` and `[listener]` to owd.toml, then restart owd"));
            }
            _ => {}
        }
        if hooks.iter().any(|hook| hook.url.is_none()) {
            return Err(Failure::new(Exit::Failed, "no_listener", "owd has no listener for webhooks")
                .hint("set `[listener] address` in owd.toml, then restart owd"));
        }
        let rows: Vec<_> = hooks.iter().map(|hook| json!({ "webhook": hook.name, "url": hook.url })).collect();
        context.out.give(&json!({ "rows": rows }), |_| {
            let line = |hook: &&WebhookView| {
                let url = escape::line(hook.url.as_deref().unwrap_or_default()).into_owned();
                if self.hook.is_some() { url } else { format!("{}  {url}", escape::line(&hook.name)) }
            };
            hooks.iter().map(line).collect::<Vec<_>>().join("\n")
        });
        Ok(())
    }
}
