use super::follow;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{json_line, write};

/// Watch everything that happens, live
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl events
  owctl events --target task:reports
  owctl events --type item. --json      one JSON object a line

It goes on until Ctrl-C, also over a restart of owd. `--after` begins after an event seen before: its `id`.")]
pub(crate) struct Events {
    /// Only about this: `task:NAME`, `run:ID`, `item:ID`, `owd`, or all of a kind: `task`, `run`, `item`
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Only those whose type begins so, as `run.` or `item.created`
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Begin after the event with this id, instead of now
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// End after so many
    #[arg(long, short = 'n', value_name = "N")]
    count: Option<u64>,
}

impl Events {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut left = self.count.unwrap_or(u64::MAX);
        context.with_daemon(async |owd| {
            let mut stream = owd.stream(self.after.as_deref(), self.target.as_deref()).await?;
            while left > 0 {
                let event = follow::next(&mut stream, context).await?;
                if !self.types.is_empty() && !self.types.iter().any(|begin| event.kind.starts_with(begin)) {
                    continue;
                }
                if context.out.is_json() {
                    json_line(&event);
                } else {
                    write(&follow::event_in_words(&event, context.clock(), context.out.paint));
                }
                left -= 1;
            }
            Ok(())
        })
    }
}
