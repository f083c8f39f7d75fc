use std::collections::BTreeMap;

use jiff::Timestamp;
use ow_model::{InboxBinding, InboxName, Span};
use ow_store::{Route, Routing};

use crate::Hours;

/// Where an inbox is told of, and when.
#[derive(Clone, Debug, Default)]
pub struct InboxRoutes {
    pub told: Vec<InboxBinding>,
    /// When nothing is told.
    pub quiet: Option<Hours>,
    /// What comes within this time is one message.
    pub digest: Option<Span>,
    /// What is unanswered for so long comes to that inbox too.
    pub escalation: Option<(Span, InboxName)>,
}

/// What is told of an item in this inbox that is written at `now`. An inbox that there is not is `default`.
#[must_use]
pub fn route(inboxes: &BTreeMap<InboxName, InboxRoutes>, inbox: &InboxName, now: Timestamp) -> Routing {
    let Some(routes) = inboxes.get(inbox).or_else(|| inboxes.get(&InboxName::default())) else {
        return Routing::default();
    };
    let InboxRoutes { told, quiet, digest, escalation } = routes;
    let gathered = digest.map_or(now, |digest| now.saturating_add(digest.signed()).unwrap_or(Timestamp::MAX));
    let due_at = quiet.as_ref().map_or(gathered, |quiet| quiet.end_after(gathered));
    let told =
        told.iter().map(|binding| Route { binding: binding.clone(), due_at, digest: digest.is_some() }).collect();
    Routing { told, escalation: escalation.clone() }
}

#[cfg(test)]
mod tests {
    use jiff::civil::Time;
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn an_inbox_that_is_gone_is_told_of_as_the_default_one() {
        let to =
            |address: &str| InboxRoutes { told: vec![InboxBinding::new("mail", address)], ..InboxRoutes::default() };
        let name = |name: &str| name.parse::<InboxName>().expect("a name");
        let inboxes = [(name("default"), to("ada")), (name("ops"), to("bob"))].into();
        let told =
            |inbox: &str| route(&inboxes, &name(inbox), Timestamp::UNIX_EPOCH).told.remove(0).binding.to_string();
        assert_eq!([told("ops"), told("default"), told("gone")], ["mail:bob", "mail:ada", "mail:ada"]);
        assert_eq!(route(&BTreeMap::new(), &name("ops"), Timestamp::UNIX_EPOCH), Routing::default());
    }

    #[test]
    fn a_digest_that_would_end_in_quiet_hours_comes_at_their_end() {
        let routes = InboxRoutes {
            told: vec![InboxBinding::desktop()],
            quiet: Some(Hours {
                from: Time::constant(22, 0, 0, 0),
                until: Time::constant(7, 0, 0, 0),
                zone: TimeZone::UTC,
            }),
            digest: Some(Span::from_secs(600)),
            escalation: None,
        };
        let inboxes = [(InboxName::default(), routes)].into();
        for (now, due) in [
            ("2026-01-10T21:49:59Z", "2026-01-10T21:59:59Z"),
            ("2026-01-10T21:55:00Z", "2026-01-11T07:00:00Z"),
            ("2026-01-11T06:55:00Z", "2026-01-11T07:05:00Z"),
        ] {
            let routing = route(&inboxes, &InboxName::default(), now.parse().expect("an instant"));
            assert_eq!((routing.told[0].due_at.to_string().as_str(), routing.told[0].digest), (due, true));
        }
    }
}
