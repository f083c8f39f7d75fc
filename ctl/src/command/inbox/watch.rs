use ow_client::Client;
use ow_protocol::{ItemView, PageQuery};

use super::view;
use crate::command::follow;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::{json_line, write};

/// Watch the Inbox: what waits now, then each new item and each answer
#[derive(Debug, clap::Args)]
#[command(after_help = "It goes on until Ctrl-C, also over a restart of owd. With --json: one item a line.")]
pub(crate) struct Watch {}

impl Watch {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        context.with_daemon(async |owd| {
            // The stream stands before the list is read, so an item that comes between is not missed.
            let mut stream = owd.stream(None, Some("item")).await?;
            show_pending(owd, context).await?;
            loop {
                let event = follow::next(&mut stream, context).await?;
                if follow::is_gap(&event) {
                    show_pending(owd, context).await?;
                }
                let Some(id) = event.target.strip_prefix("item:") else { continue };
                match owd.item(id).await.map_err(Failure::from) {
                    Ok(item) => show(&item, context),
                    // Retention may have taken it while this was not looking.
                    Err(Failure { exit: Exit::NotFound, .. }) => {}
                    Err(failure) => return Err(failure),
                }
            }
        })
    }
}

/// Oldest first, as they would have come.
async fn show_pending(owd: &mut Client, context: &Context) -> Result<(), Failure> {
    let mut query = PageQuery { limit: Some(500), ..PageQuery::default() };
    let mut items = vec![];
    loop {
        let page = owd.items(&query).await?;
        items.extend(page.rows);
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    items.iter().rev().for_each(|item| show(item, context));
    Ok(())
}

fn show(item: &ItemView, context: &Context) {
    if context.out.is_json() {
        json_line(item);
    } else {
        write(&view::one_line(item, context.clock(), context.out.paint));
    }
}
