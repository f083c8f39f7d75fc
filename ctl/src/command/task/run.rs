use ow_protocol::{PlanView, RunNowRequest};
use serde_json::Value;

use crate::command::follow;
use crate::command::run::view;
use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::{Colour, Paint};

/// Run a task now; its next slot stays as planned
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl task run reports
  owctl task run --plan reports                  what it would do and what would ask; no effect
  owctl task run --wait reports                  until it has ended
  owctl task run --payload '{\"path\":\"/srv/x\"}' filing")]
pub(crate) struct Run {
    /// The task's name
    name: String,
    /// Only show what it would do and what would ask
    #[arg(long, conflicts_with = "wait")]
    plan: bool,
    /// Wait for its end; the exit code tells whether it succeeded
    #[arg(long)]
    wait: bool,
    /// What the steps read as `event`: JSON
    #[arg(long, value_name = "JSON", value_parser = json)]
    payload: Option<Value>,
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}

impl Run {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let request = RunNowRequest { payload: self.payload.clone() };
        let out = context.out;
        context.with_daemon(async |owd| {
            if self.plan {
                let plan = owd.plan_task(&self.name, &request).await?;
                out.give(&plan, |plan| in_words(plan, out.paint));
                return Ok(());
            }
            if self.wait {
                // The stream stands before the run begins, so nothing of it is missed.
                let stream = owd.stream(None, Some("run")).await?;
                let run = owd.run_task(&self.name, &request).await?;
                return follow::to_the_end(owd, stream, &run.id, context).await;
            }
            let run = owd.run_task(&self.name, &request).await?;
            out.give(&run, |run| view::one_line(run, context.clock(), out.paint));
            out.note(&format!("Watch it: owctl run watch {}", escape::line(&run.id)));
            Ok(())
        })
    }
}

fn in_words(plan: &PlanView, paint: Paint) -> String {
    let mut text = format!("{}, revision {}: what a run would do now\n", escape::line(&plan.task), plan.revision);
    for step in &plan.steps {
        put!(
            text,
            "\n{} {}  {}\n",
            paint.in_colour(Colour::Bold, &format!("step {}", follow::step_number(step.step))),
            escape::line(&step.tool),
            paint.state(&step.verdict)
        );
        text.push_str(&view::arguments(&step.arguments, "  "));
        put!(text, "  {} ({})\n", escape::line(&step.why), escape::line(&step.rule));
        if !step.holes.is_empty() {
            let holes: Vec<_> = step.holes.iter().map(|hole| escape::line(hole)).collect();
            put!(text, "  only a run knows: {}\n", holes.join(", "));
        }
    }
    let asking = plan.steps.iter().filter(|step| step.verdict == "ask").count();
    if asking > 0 {
        put!(
            text,
            "\n{asking} of {} steps would ask. To let them run without asking: owctl task allow {}\n",
            plan.steps.len(),
            escape::line(&plan.task)
        );
    }
    text
}
