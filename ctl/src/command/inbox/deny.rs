use ow_protocol::AnswerRequest;

use super::view;
use crate::context::Context;
use crate::failure::Failure;
use crate::reference::Reference;

/// Do not let the call run
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  owctl inbox deny 7k2 --reason 'not before the backup is done'")]
pub(crate) struct Deny {
    /// The item's id, a unique beginning of it, or its token `[ow:…]`
    item: Reference,
    /// Why; the run is told
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
}

impl Deny {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let answer = AnswerRequest::Deny { reason: self.reason.clone() };
        let item = context.with_daemon(async |owd| Ok(owd.answer_item(self.item.as_str(), &answer).await?))?;
        context.out.give(&item, |item| view::answered(item, context.clock(), context.out.paint));
        Ok(())
    }
}
