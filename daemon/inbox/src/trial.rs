use std::time::Duration;

use jiff::Timestamp;
use ow_model::{InboxBinding, ItemId};
use ow_store::{Content, Delivery, DeliveryId, Reply};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Channels;

/// A person waits for the answer.
const LIMIT: Duration = Duration::from_secs(30);

/// Sends a test notice to each of these bindings, all at once; what went wrong with each, in their order.
///
/// Nothing of it is kept: it is not tried again.
pub async fn try_bindings(
    channels: &Channels,
    bindings: Vec<InboxBinding>,
    now: Timestamp,
) -> Vec<(InboxBinding, Option<String>)> {
    let mut trials = JoinSet::new();
    for (place, binding) in bindings.iter().cloned().enumerate() {
        let channel = channels.of(&binding);
        trials.spawn(async move {
            let channel = match channel {
                Ok(channel) => channel,
                Err(fault) => return (place, Some(fault.into_why())),
            };
            let fault = match timeout(LIMIT, channel.deliver(&test_notice(binding, now))).await {
                Ok(Ok(_delivered)) => None,
                Ok(Err(fault)) => Some(fault.into_why()),
                Err(_elapsed) => Some(format!("no answer within {} seconds", LIMIT.as_secs())),
            };
            (place, fault)
        });
    }
    let mut faults = vec![Some("its channel failed; the log says how".to_owned()); bindings.len()];
    while let Some(ended) = trials.join_next().await {
        if let Ok((place, fault)) = ended {
            faults[place] = fault;
        }
    }
    bindings.into_iter().zip(faults).collect()
}

fn test_notice(binding: InboxBinding, now: Timestamp) -> Delivery {
    Delivery {
        id: DeliveryId(0),
        binding,
        message_id: format!("ow.test.{}", ItemId::random()),
        created_at: now,
        attempt: 1,
        content: Content::Reply(Reply {
            subject: "A test of owd".into(),
            text: "This is where an inbox of owd is told of. Nothing is asked.\n".into(),
            in_reply_to: None,
            references: vec![],
        }),
    }
}
