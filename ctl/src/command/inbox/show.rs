use super::view;
use crate::context::Context;
use crate::failure::Failure;
use crate::reference::Reference;

/// Show all of an item: what exactly would run, why it asks, what your answer is bound to
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The item's id, a unique beginning of it, or its token `[ow:…]`
    item: Reference,
}

impl Show {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let item = context.with_daemon(async |owd| Ok(owd.item(self.item.as_str()).await?))?;
        context.out.give(&item, |item| view::whole(item, context.clock(), context.out.paint));
        Ok(())
    }
}
