use ow_protocol::AnswerRequest;

use super::view;
use crate::context::Context;
use crate::failure::Failure;
use crate::reference::Reference;

/// Answer a question
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl inbox answer 7k2 'the second one, please'
  owctl inbox answer 7k2 2                       option 2")]
pub(crate) struct Answer {
    /// The item's id, a unique beginning of it, or its token `[ow:…]`
    item: Reference,
    /// The answer: a text, or an option's number or label
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
}

impl Answer {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let answer = AnswerRequest::Answer { text: self.text.join(" ") };
        let item = context.with_daemon(async |owd| Ok(owd.answer_item(self.item.as_str(), &answer).await?))?;
        context.out.give(&item, |item| view::answered(item, context.clock(), context.out.paint));
        Ok(())
    }
}
