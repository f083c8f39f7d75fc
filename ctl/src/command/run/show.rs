use std::io::Write as _;

use ow_client::Client;
use ow_protocol::{FactView, RunDetail};

use super::view;
use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::Colour;
use crate::reference::Reference;

/// Show a run: its calls, what they gave, what it made
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl run show 4k7
  owctl run show 4k7 --facts     the journal: every fact in order
  owctl run show 4k7 --full      outputs to their end")]
pub(crate) struct Show {
    /// The run's id, or a unique beginning of it
    run: Reference,
    /// Also the journal
    #[arg(long)]
    facts: bool,
    /// Also the whole text of outputs that were cut
    #[arg(long)]
    full: bool,
}

impl Show {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
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
                print(&bytes, context)?;
            }
        }
        Ok(())
    }
}

struct Output {
    head: String,
    bytes: Vec<u8>,
}

/// Texts on a terminal are made safe; into a pipe they go as they are.
fn print(bytes: &[u8], context: &Context) -> Result<(), Failure> {
    if context.out.width.is_some() {
        crate::output::write(&escape::block(&String::from_utf8_lossy(bytes)));
        return Ok(());
    }
    std::io::stdout().lock().write_all(bytes).map_err(|why| Failure::io("cannot write the output", &why))
}

async fn full_outputs(owd: &mut Client, run: &RunDetail) -> Result<Vec<Output>, Failure> {
    let mut outputs = vec![];
    for call in &run.calls {
        for (name, hash) in &call.kept {
            let bytes = owd.run_output(&run.run.id, hash).await?;
            let step = crate::command::follow::step_number(call.step);
            let head = format!("step {step}, {}:", escape::line(name));
            outputs.push(Output { head, bytes });
        }
        // What was not cut stands in the view, which may have left lines out.
        if let Some(serde_json::Value::Object(output)) = &call.output {
            for (name, value) in output {
                let text = value.as_str().filter(|_| !call.kept.iter().any(|(kept, _)| kept == name));
                if let Some(text) = text.filter(|text| text.lines().count() > 1) {
                    let step = crate::command::follow::step_number(call.step);
                    let head = format!("step {step}, {}:", escape::line(name));
                    outputs.push(Output { head, bytes: text.as_bytes().to_vec() });
                }
            }
        }
    }
    Ok(outputs)
}
