//! What comes at a webhook, offered to the tasks that name it.

use jiff::Timestamp;
use ow_config::template::eval_condition;
use ow_model::{EventKey, EventPayload, NewEvent, Trigger, WebhookName};
use ow_store::{Offer, Offered, Store, StoreError, TaskRow};
use serde_json::{Value, json};

/// A delivery whose sender is proven.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub hook: WebhookName,
    pub key: EventKey,
    /// What templates read as `event`: an object. Outside content.
    pub data: Value,
}

/// What a delivery became.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Delivered {
    /// Tasks that have it to do.
    pub new: usize,
    /// Tasks that had it already.
    pub known: usize,
    /// Tasks whose `when` it does not meet.
    pub unwanted: usize,
}

const KIND: &str = "webhook";

/// Durable for every task that names the hook before this returns.
pub(crate) async fn accept(store: &dyn Store, delivery: &Delivery, now: Timestamp) -> Result<Delivered, StoreError> {
    let tasks = store.tasks_on(&delivery.hook.source()).await?;
    if tasks.is_empty() {
        return Ok(Delivered::default());
    }
    let offers: Vec<Offer> = tasks.iter().map(|task| offer(task, delivery)).collect();
    let mut delivered = Delivered::default();
    for offered in store.offer_events(&offers, now).await? {
        match offered {
            Offered::New => delivered.new += 1,
            Offered::Known => delivered.known += 1,
            Offered::Unwanted => delivered.unwanted += 1,
        }
    }
    Ok(delivered)
}

fn offer(task: &TaskRow, delivery: &Delivery) -> Offer {
    Offer {
        unwanted: wants(&task.spec.triggers, delivery).err(),
        event: NewEvent {
            task: task.spec.name.clone(),
            key: delivery.key.clone(),
            payload: EventPayload { kind: KIND.into(), data: delivery.data.clone() },
            depth: 0,
        },
    }
}

/// Whether one of the triggers is for this delivery; if not, why. What a filter asks for and the delivery does not have
/// is no match.
fn wants(triggers: &[Trigger], delivery: &Delivery) -> Result<(), String> {
    let mut reasons = vec![];
    for trigger in triggers {
        let Trigger::Webhook { hook, when } = trigger else { continue };
        if *hook != delivery.hook {
            continue;
        }
        let Some(when) = when else { return Ok(()) };
        let mut event = delivery.data.clone();
        event["kind"] = KIND.into();
        match eval_condition(when, &json!({ "event": event })) {
            Ok(true) => return Ok(()),
            Ok(false) => reasons.push(format!("`{when}` is false")),
            Err(error) => reasons.push(format!("`when`: {}", error.fault)),
        }
    }
    Err(if reasons.is_empty() { "it names another webhook now".into() } else { reasons.join("; ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery() -> Delivery {
        Delivery {
            hook: "ci".parse().expect("a name"),
            key: EventKey("webhook:ci:id:1".into()),
            data: json!({ "name": "push", "payload": { "ref": "refs/heads/main", "n": 3 }, "headers": { "x_a": "1" } }),
        }
    }

    fn on(hook: &str, when: Option<&str>) -> Trigger {
        Trigger::Webhook { hook: hook.parse().expect("a name"), when: when.map(str::to_owned) }
    }

    #[test]
    fn a_delivery_is_for_a_task_when_one_of_its_filters_holds() {
        for (triggers, expected) in [
            (vec![on("ci", None)], Ok(())),
            (vec![on("other", None)], Err("it names another webhook now")),
            (vec![on("ci", Some("event.name == 'push' and event.payload.n > 2"))], Ok(())),
            (vec![on("ci", Some("event.kind == 'webhook' and event.headers.x_a == '1'"))], Ok(())),
            (vec![on("ci", Some("event.name == 'pull'"))], Err("`event.name == 'pull'` is false")),
            (vec![on("ci", Some("event.name == 'pull'")), on("ci", Some("event.payload.n == 3"))], Ok(())),
            (
                vec![on("ci", Some("event.payload.action == 'opened'"))],
                Err("`when`: `event.payload.action == 'opened'` is undefined"),
            ),
            (vec![on("ci", Some("event.name"))], Err("`when`: `event.name` is a text, and neither true nor false")),
            (
                vec![on("ci", Some("event.payload.action is defined"))],
                Err("`event.payload.action is defined` is false"),
            ),
        ] {
            assert_eq!(wants(&triggers, &delivery()), expected.map_err(str::to_owned), "{triggers:?}");
        }
    }
}
