use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Where an inbox is told of: `desktop`, or a channel's kind and an address there, as `mail:ada@example.org`.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct InboxBinding(String);

impl InboxBinding {
    /// A binding of a channel that knows addresses.
    #[must_use]
    pub fn new(kind: &str, address: &str) -> Self {
        Self(format!("{kind}:{address}"))
    }

    /// The desktop of the account that owd runs under.
    #[must_use]
    pub fn desktop() -> Self {
        Self("desktop".into())
    }

    /// As a binding was written before.
    #[must_use]
    pub const fn from_text(text: String) -> Self {
        Self(text)
    }

    /// Which channel delivers there.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.0.split_once(':').map_or(&self.0, |(kind, _)| kind)
    }

    /// The address there; empty where there is only one.
    #[must_use]
    pub fn address(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, address)| address)
    }

    /// For logs, notices and lists. Of a web address whoever knows its path may write there: only where it is is shown.
    #[must_use]
    pub fn shown(&self) -> Cow<'_, str> {
        let Some((start, rest)) = self.0.split_once("://") else { return Cow::Borrowed(&self.0) };
        match rest.split_once(['/', '?', '#']) {
            Some((host, path)) if !path.is_empty() => Cow::Owned(format!("{start}://{host}/…")),
            _ => Cow::Borrowed(&self.0),
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InboxBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// On what occasion an item is told of.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Occasion {
    Asked,
    Reminded,
    /// Nobody of its inbox has answered in time; it has come to this one too.
    Escalated,
    /// Somebody handed it on to this inbox.
    Delegated,
    /// Somebody handed it on from this inbox to another, the last of those that it has come to.
    HandedOn,
    /// It needs no answer any more: its state says why.
    Settled,
}

impl Occasion {
    pub const ALL: [Self; 6] =
        [Self::Asked, Self::Reminded, Self::Escalated, Self::Delegated, Self::HandedOn, Self::Settled];

    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Reminded => "reminded",
            Self::Escalated => "escalated",
            Self::Delegated => "delegated",
            Self::HandedOn => "handed-on",
            Self::Settled => "settled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_web_address_only_the_server_is_shown() {
        for (kind, address, shown) in [
            ("mail", "ada@example.org", "mail:ada@example.org"),
            ("slack", "C0123", "slack:C0123"),
            ("ntfy", "https://ntfy.sh/secret-topic", "ntfy:https://ntfy.sh/…"),
            ("webhook", "https://example.org:8443?key=k", "webhook:https://example.org:8443/…"),
            ("webhook", "http://127.0.0.1:8000/", "webhook:http://127.0.0.1:8000/"),
        ] {
            assert_eq!(InboxBinding::new(kind, address).shown(), shown);
        }
        assert_eq!(InboxBinding::desktop().shown(), "desktop");
    }
}
