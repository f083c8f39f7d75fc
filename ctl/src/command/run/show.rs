use ow_client::Client;
use ow_protocol::{FactView, RunDetail};

use super::view;
use crate::command::sent;
use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::{Colour, write_bytes};
use crate::reference::Reference;

/// Show a run: its calls, what they gave, what it made
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl run show 4k7
  owctl run show 4k7 --facts     the journal: every fact in order
  owctl run show 4k7 --full      outputs to their end
  owctl run show 4k7 --sent      what went to models, byte for byte
  owctl run show 4k7 --sent 2 | jq .messages")]
pub(crate) struct Show {
    /// The run's id, or a unique beginning of it
    run: Reference,
    /// Also the journal
    #[arg(long)]
    facts: bool,
    /// Also the whole text of outputs that were cut
    #[arg(long)]
    full: bool,
    /// What went to models instead: all requests, or the body of one exactly as it was sent
    #[arg(long, value_name = "N", num_args = 0..=1, conflicts_with_all = ["facts", "full"])]
    sent: Option<Vec<u32>>,
}

impl Show {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        if let Some(numbers) = &self.sent {
            return sent::show(context, sent::Of::Run(self.run.as_str()), numbers.first().copied());
        }
        let (run, full) = context.with_daemon(async |owd| {
            let run = owd.run(self.run.as_str()).await?;
            let full = if self.full { full_outputs(owd, &run).await? } else { vec![] };
            Ok((run, full))
        })?;
        context.out.give(&run, |run| {
            let mut text = view::whole(run, context.clock(), context.out.paint);
            if self.facts {
                text.push('\n');
                for FactView { seq, at, fact, text: words } in &run.facts {
                    let at = context.out.paint.in_colour(Colour::Dim, &context.clock().local(at));
                    put!(text, "{seq:>4}  {at}  {}  {}\n", escape::line(fact), escape::line(words));
                }
            }
            text
        });
        if !context.out.is_json() {
            for Output { head, bytes } in full {
                crate::output::write(&format!("\n{head}"));
                write_bytes(&bytes, context.out)?;
            }
        }
        Ok(())
    }
}

struct Output {
    head: String,
    bytes: Vec<u8>,
}

async fn full_outputs(owd: &mut Client, run: &RunDetail) -> Result<Vec<Output>, Failure> {
    let mut outputs = vec![];
    for call in &run.calls {
        for (name, hash) in &call.kept {
            let bytes = owd.run_output(&run.run.id, hash).await?;
            let head = format!("{}, {}:", view::name(call), escape::line(name));
            outputs.push(Output { head, bytes });
        }
        // What was not cut stands in the view, which may have left lines out.
        if let Some(serde_json::Value::Object(output)) = &call.output {
            for (name, value) in output {
                let text = value.as_str().filter(|_| !call.kept.iter().any(|(kept, _)| kept == name));
                if let Some(text) = text.filter(|text| text.lines().count() > 1) {
                    let head = format!("{}, {}:", view::name(call), escape::line(name));
                    outputs.push(Output { head, bytes: text.as_bytes().to_vec() });
                }
            }
        }
    }
    Ok(outputs)
}
