use ow_protocol::{AnswerRequest, ItemView};
use serde_json::Value;

use super::view;
use crate::ask;
use crate::context::Context;
use crate::editor::Draft;
use crate::failure::Failure;
use crate::output::{Out, tell};
use crate::reference::Reference;

/// Let the call run, once; agree to a plan, a folder or more budget; or acknowledge a notification
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl inbox approve 7k2
  owctl inbox approve '[ow:7k2m9q4r8t0v3x5z]'   the token, as pasted from a notice
  owctl inbox approve 7k2 --for-task            also from now on, exactly as offered
  owctl inbox approve 7k2 --tool                also every call of this tool in this session
  owctl inbox approve 7k2 --edit                with other arguments, in your editor
  owctl inbox approve 7k2 --args '{\"argv\":[\"df\",\"-h\"]}'

The first answer counts. Edited arguments are judged again before they run.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Approve {
    /// The item's id, a unique beginning of it, or its token `[ow:…]`
    item: Reference,
    /// Also store the rule that the item offers
    #[arg(long, conflicts_with_all = ["edit", "args"])]
    for_task: bool,
    /// Also every call of this tool in this session
    #[arg(long, conflicts_with_all = ["for_task", "edit", "args", "command"])]
    tool: bool,
    /// Also every call with exactly this command line in this session
    #[arg(long, conflicts_with_all = ["for_task", "edit", "args"])]
    command: bool,
    /// Edit the arguments first
    #[arg(long, conflicts_with = "args")]
    edit: bool,
    /// Run with these arguments instead: a JSON object
    #[arg(long, value_name = "JSON", value_parser = object)]
    args: Option<Value>,
}

fn object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("not a JSON object".into()),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

impl Approve {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let out = context.out;
        let item = context.with_daemon(async |owd| {
            // A prefix may fit another item by the time it is answered, so an edit goes to what was shown.
            let mut id = self.item.as_str().to_owned();
            let answer = if self.for_task {
                AnswerRequest::ApproveForTask
            } else if self.tool {
                AnswerRequest::ApproveTool
            } else if self.command {
                AnswerRequest::ApproveCommand
            } else if let Some(arguments) = &self.args {
                AnswerRequest::Edit { arguments: arguments.clone() }
            } else if self.edit {
                let item = owd.item(&id).await?;
                let answer = edited(&item, out)?;
                id = item.id;
                answer
            } else {
                AnswerRequest::Approve
            };
            Ok(owd.answer_item(&id, &answer).await?)
        })?;
        out.give(&item, |item| view::answered(item, context.clock(), out.paint));
        Ok(())
    }
}

/// The answer that the person makes in the editor.
fn edited(item: &ItemView, out: Out) -> Result<AnswerRequest, Failure> {
    let Some(approval) = &item.approval else {
        return Err(Failure::usage(format!("item {} has no arguments to edit", item.id))
            .hint(format!("answer it as it is: owctl inbox show {}", item.id)));
    };
    let before = serde_json::to_string_pretty(&approval.arguments).expect("a JSON value is written") + "\n";
    let draft = Draft::new(&before, ".json")?;
    loop {
        let text = draft.edit()?;
        if text == before {
            return Err(Failure::failed("not_edited", "the arguments are as they were; nothing was answered")
                .hint(format!("to let it run as it is: owctl inbox approve {}", item.id)));
        }
        let why = match object(&text) {
            Ok(arguments) => return Ok(AnswerRequest::Edit { arguments }),
            Err(why) => why,
        };
        if !out.is_json() && ask::can_ask() {
            tell(&format!("error: {why}"));
            if ask::yes("Open the editor again?") {
                continue;
            }
        }
        let kept = draft.keep();
        return Err(Failure::usage(format!("the edited arguments are {why}; nothing was answered"))
            .hint(format!("your text is kept in {}", kept.display())));
    }
}
