use ow_protocol::{DeliveryView, ItemView};
use serde::Serialize;

use super::view;
use crate::context::Context;
use crate::failure::Failure;
use crate::reference::Reference;

/// Show all of an item: what exactly would run, why it asks, what your answer is bound to, where it was told of
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The item's id, a unique beginning of it, or its token `[ow:…]`
    item: Reference,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    item: ItemView,
    deliveries: Vec<DeliveryView>,
}

impl Show {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let shown = context.with_daemon(async |owd| {
            let item = owd.item(self.item.as_str()).await?;
            let deliveries = owd.deliveries(&item.id).await?.rows;
            Ok(Shown { item, deliveries })
        })?;
        context.out.give(&shown, |Shown { item, deliveries }| {
            let (clock, paint) = (context.clock(), context.out.paint);
            format!("{}{}", view::whole(item, clock, paint), view::deliveries(deliveries, clock))
        });
        Ok(())
    }
}
