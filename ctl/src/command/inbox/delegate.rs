use super::view;
use crate::context::Context;
use crate::failure::Failure;
use crate::reference::Reference;

/// Hand an item on to another inbox: it is told of there, and its people may answer too
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  owctl inbox delegate 7k2 ops")]
pub(crate) struct Delegate {
    /// The item's id, a unique beginning of it, or its token `[ow:…]`
    item: Reference,
    /// The inbox, as owd.toml names it
    inbox: String,
}

impl Delegate {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let item = context.with_daemon(async |owd| Ok(owd.delegate_item(self.item.as_str(), &self.inbox).await?))?;
        context.out.give(&item, view::delegated);
        Ok(())
    }
}
