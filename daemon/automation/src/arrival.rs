//! Mail that comes in, offered to the tasks that a trigger of theirs has run on it.

use jiff::Timestamp;
use ow_model::{EventKey, EventPayload, MailFilter, NewEvent, Trigger};
use ow_store::{Offer, Offered, Store, StoreError, TaskRow};
use serde_json::Value;

use crate::Delivered;

/// A mail, as far as filters look at it.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    pub key: EventKey,
    /// The sender's address, in lower case, as the mail says it.
    pub from: String,
    pub subject: String,
    /// The id in its List-Id.
    pub list: Option<String>,
    /// The folder that it lies in; none: the mailbox that is read, or it was handed over.
    pub folder: Option<String>,
    /// What templates read as `event`: an object. Outside content.
    pub data: Value,
}

/// Whether it is known who sent a mail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sender {
    Proven,
    Claimed,
}

const KIND: &str = "mail";

/// What is asked of a mail by the tasks that would run on it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wanted {
    /// No task runs on it.
    No,
    /// Some task does, if its sender is proven.
    IfProven,
    Yes,
}

/// Whether some task would run on such a mail.
pub(crate) async fn wanted(store: &dyn Store, arrival: &Arrival) -> Result<Wanted, StoreError> {
    let tasks = store.tasks_on(KIND).await?;
    let is_for =
        |sender| tasks.iter().any(|task| filters(&task.spec.triggers).any(|filter| wants(filter, arrival, sender)));
    Ok(match (is_for(Sender::Proven), is_for(Sender::Claimed)) {
        (false, _) => Wanted::No,
        (true, false) => Wanted::IfProven,
        // One of several may still ask for proof.
        (true, true) => {
            let asks = tasks
                .iter()
                .flat_map(|task| filters(&task.spec.triggers))
                .any(|filter| !filter.from.is_empty() && wants(filter, arrival, Sender::Proven));
            if asks { Wanted::IfProven } else { Wanted::Yes }
        }
    })
}

/// Durable for every task that runs on it before this returns.
pub(crate) async fn accept(
    store: &dyn Store,
    arrival: &Arrival,
    sender: Sender,
    now: Timestamp,
) -> Result<Delivered, StoreError> {
    let tasks = store.tasks_on(KIND).await?;
    let takers = tasks.iter().filter(|task| filters(&task.spec.triggers).any(|filter| wants(filter, arrival, sender)));
    let offers: Vec<Offer> = takers.map(|task| offer(task, arrival)).collect();
    let mut delivered = Delivered::default();
    if offers.is_empty() {
        return Ok(delivered);
    }
    for offered in store.offer_events(&offers, now).await? {
        match offered {
            Offered::New => delivered.new += 1,
            // Its record says that it is one that came before.
            Offered::Known | Offered::Repeated => delivered.known += 1,
            Offered::Unwanted => delivered.unwanted += 1,
        }
    }
    Ok(delivered)
}

fn offer(task: &TaskRow, arrival: &Arrival) -> Offer {
    Offer {
        unwanted: None,
        twin: None,
        event: NewEvent {
            task: task.spec.name.clone(),
            key: arrival.key.clone(),
            payload: EventPayload { kind: KIND.into(), data: arrival.data.clone() },
            depth: 0,
        },
    }
}

fn filters(triggers: &[Trigger]) -> impl Iterator<Item = &MailFilter> {
    triggers.iter().filter_map(|trigger| match trigger {
        Trigger::Mail(filter) => Some(filter),
        _ => None,
    })
}

/// A sender is matched only where it is proven; everything that a filter names must hold.
fn wants(filter: &MailFilter, arrival: &Arrival, sender: Sender) -> bool {
    let MailFilter { from, subject, list, folder } = filter;
    let is_from = |wanted: &String| match wanted.strip_prefix('@') {
        Some(domain) => arrival.from.rsplit_once('@').is_some_and(|(_, found)| found.eq_ignore_ascii_case(domain)),
        None => arrival.from.eq_ignore_ascii_case(wanted),
    };
    let by_sender = from.is_empty() || (sender == Sender::Proven && from.iter().any(is_from));
    let by_subject =
        subject.as_ref().is_none_or(|pattern| glob(&pattern.to_lowercase(), &arrival.subject.to_lowercase()));
    let by_list = list
        .as_ref()
        .is_none_or(|wanted| arrival.list.as_ref().is_some_and(|found| found.eq_ignore_ascii_case(wanted)));
    by_sender && by_subject && by_list && *folder == arrival.folder
}

/// `*` stands for anything.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mail_is_for_a_task_when_all_that_a_filter_names_holds() {
        let arrival = Arrival {
            key: EventKey("mail:1".into()),
            from: "bob@example.org".into(),
            subject: "Invoice 7 of March".into(),
            list: Some("team.example.org".into()),
            folder: None,
            data: json!({}),
        };
        let filter = |from: &[&str], subject: Option<&str>, list: Option<&str>| MailFilter {
            from: from.iter().map(|&from| from.to_owned()).collect(),
            subject: subject.map(str::to_owned),
            list: list.map(str::to_owned),
            folder: None,
        };
        for (filter, proven, claimed) in [
            (filter(&[], None, None), true, true),
            (filter(&["bob@example.org"], None, None), true, false),
            (filter(&["eve@example.org", "@example.org"], Some("invoice*"), None), true, false),
            (filter(&["@ample.org"], None, None), false, false),
            (filter(&["@sub.example.org"], None, None), false, false),
            (filter(&[], Some("*invoice * march"), None), true, true),
            (filter(&[], Some("invoice"), None), false, false),
            (filter(&[], Some("invoice 7 of march*march"), None), false, false),
            (filter(&[], None, Some("Team.example.org")), true, true),
            (filter(&[], Some("*"), Some("other.example.org")), false, false),
        ] {
            assert_eq!(wants(&filter, &arrival, Sender::Proven), proven, "{filter:?}");
            assert_eq!(wants(&filter, &arrival, Sender::Claimed), claimed, "{filter:?}");
        }
    }

    #[test]
    fn a_mail_is_for_the_folder_that_it_lies_in_and_for_no_other() {
        let lies = |folder: Option<&str>| Arrival {
            key: EventKey("mail:1".into()),
            from: "bob@example.org".into(),
            subject: String::new(),
            list: None,
            folder: folder.map(str::to_owned),
            data: json!({}),
        };
        let of = |folder: Option<&str>| MailFilter { folder: folder.map(str::to_owned), ..MailFilter::default() };
        for (wanted, lying, fits) in [
            (None, None, true),
            (None, Some("Invoices"), false),
            (Some("Invoices"), None, false),
            (Some("Invoices"), Some("Invoices"), true),
            (Some("Invoices"), Some("invoices"), false),
        ] {
            assert_eq!(wants(&of(wanted), &lies(lying), Sender::Claimed), fits, "{wanted:?} {lying:?}");
        }
    }
}
