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
    /// What was signed, if the same under another key is this delivery again.
    pub signed: Option<String>,
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
    Ok(counted(store.offer_events(&offers, now).await?))
}

fn offer(task: &TaskRow, delivery: &Delivery) -> Offer {
    Offer {
        unwanted: wants(&task.spec.triggers, delivery).err(),
        twin: delivery.signed.as_ref().map(|signed| format!("{}:{signed}", delivery.hook.source())),
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
        match holds(when, KIND, &delivery.data) {
            Ok(()) => return Ok(()),
            Err(why) => reasons.push(why),
        }
    }
    Err(if reasons.is_empty() { "it names another webhook now".into() } else { reasons.join("; ") })
}

/// A message that a person wrote in a Slack channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Posted {
    pub channel: String,
    /// The member who wrote it.
    pub user: String,
    pub key: EventKey,
    /// What templates read as `event`: an object. Outside content.
    pub data: Value,
}

const SLACK: &str = "slack";

/// Durable for every task that listens to the channel before this returns.
pub(crate) async fn accept_post(store: &dyn Store, posted: &Posted, now: Timestamp) -> Result<Delivered, StoreError> {
    let tasks = store.tasks_on(&ow_model::slack_source(&posted.channel)).await?;
    if tasks.is_empty() {
        return Ok(Delivered::default());
    }
    let offers: Vec<Offer> = tasks
        .iter()
        .map(|task| Offer {
            unwanted: wants_post(&task.spec.triggers, posted).err(),
            twin: None,
            event: NewEvent {
                task: task.spec.name.clone(),
                key: posted.key.clone(),
                payload: EventPayload { kind: SLACK.into(), data: posted.data.clone() },
                depth: 0,
            },
        })
        .collect();
    Ok(counted(store.offer_events(&offers, now).await?))
}

/// Whether one of the triggers is for this message; if not, why.
fn wants_post(triggers: &[Trigger], posted: &Posted) -> Result<(), String> {
    let mut reasons = vec![];
    for trigger in triggers {
        let Trigger::Slack { channel, from, when } = trigger else { continue };
        if *channel != posted.channel {
            continue;
        }
        if !from.is_empty() && !from.contains(&posted.user) {
            reasons.push(format!("it is from {}", posted.user));
            continue;
        }
        let Some(when) = when else { return Ok(()) };
        match holds(when, SLACK, &posted.data) {
            Ok(()) => return Ok(()),
            Err(why) => reasons.push(why),
        }
    }
    Err(if reasons.is_empty() { "it listens to another channel now".into() } else { reasons.join("; ") })
}

fn holds(when: &str, kind: &str, data: &Value) -> Result<(), String> {
    let mut event = data.clone();
    event["kind"] = kind.into();
    match eval_condition(when, &json!({ "event": event })) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("`{when}` is false")),
        Err(error) => Err(format!("`when`: {}", error.fault)),
    }
}

fn counted(offered: Vec<Offered>) -> Delivered {
    let mut delivered = Delivered::default();
    for offered in offered {
        match offered {
            Offered::New => delivered.new += 1,
            // Its record says that it is one that came before.
            Offered::Known | Offered::Repeated => delivered.known += 1,
            Offered::Unwanted => delivered.unwanted += 1,
        }
    }
    delivered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_for_a_task_that_listens_to_its_channel_its_writer_and_its_words() {
        let on = |from: &[&str], when: Option<&str>| Trigger::Slack {
            channel: "C1".into(),
            from: from.iter().map(|&user| user.to_owned()).collect(),
            when: when.map(str::to_owned),
        };
        let posted = Posted {
            channel: "C1".into(),
            user: "UADA".into(),
            key: EventKey("slack:C1/1.1".into()),
            data: json!({ "text": "deploy now" }),
        };
        for (trigger, expected) in [
            (on(&[], None), Ok(())),
            (on(&["UEVE", "UADA"], Some("'deploy' in event.text and event.kind == 'slack'")), Ok(())),
            (on(&["UEVE"], None), Err("it is from UADA")),
            (on(&[], Some("event.text == 'deploy'")), Err("`event.text == 'deploy'` is false")),
            (
                Trigger::Slack { channel: "C2".into(), from: vec![], when: None },
                Err("it listens to another channel now"),
            ),
        ] {
            assert_eq!(
                wants_post(std::slice::from_ref(&trigger), &posted),
                expected.map_err(str::to_owned),
                "{trigger:?}"
            );
        }
    }

    fn delivery() -> Delivery {
        Delivery {
            hook: "ci".parse().expect("a name"),
            key: EventKey("webhook:ci:id:1".into()),
            signed: None,
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
