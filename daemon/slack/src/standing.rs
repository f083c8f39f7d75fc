use jiff::Timestamp;

/// How the connection stands.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Standing {
    /// The workspace's name, once Slack has said whose the tokens are.
    pub team: Option<String>,
    /// Since when a socket is open; none: one is being opened, or none is wanted.
    pub since: Option<Timestamp>,
    /// What went wrong last; mended if a socket is open since.
    pub trouble: Option<Trouble>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trouble {
    pub at: Timestamp,
    pub why: String,
}

impl Standing {
    /// Nothing comes in since `at`.
    pub(crate) fn lost(&mut self, at: Timestamp, why: &str) {
        self.since = None;
        self.trouble = Some(Trouble { at, why: why.to_owned() });
    }
}
