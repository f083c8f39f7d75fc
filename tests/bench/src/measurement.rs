use clap::ValueEnum;

use crate::figure::Figures;
use crate::{
    agent, idle, inbox, lateness, mail, mail_soak, notices, size, slack, slack_soak, start, throughput, webhooks,
};

/// What can be measured by itself, in the order in which all of it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Measurement {
    /// Bytes of the binaries, packages locked
    Size,
    /// From spawn to ready, with few and many tasks stored
    Start,
    /// Memory, CPU and wake-ups of an owd that waits
    Idle,
    /// From the due instant to the run's row and to its call, one run and many
    Lateness,
    /// Events accepted a second
    Throughput,
    /// Webhooks: accepted a second, and until the run begins
    Webhooks,
    /// From an approval to its tool, pages of items, memory and disk per item
    Inbox,
    /// From a click or a mention in Slack to what it starts
    Slack,
    /// What is decided in Slack while Slack fails at random; --minutes says how long
    SlackSoak,
    /// Notices delivered a second
    Notices,
    /// From an answer by mail to what it allows, notices by SMTP, full mailboxes
    Mail,
    /// Items asked and answered by mail while connections are cut at random; --minutes says how long
    MailSoak,
    /// Whole processes of owctl
    Owctl,
    /// What owd adds to a model's own time
    Agent,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) rounds: usize,
    pub(crate) tasks: usize,
    pub(crate) parked: usize,
    pub(crate) idle_seconds: u64,
    pub(crate) minutes: u64,
}

impl Scale {
    pub(crate) const FULL: Self = Self { rounds: 200, tasks: 100_000, parked: 10_000, idle_seconds: 60, minutes: 3 };
    pub(crate) const QUICK: Self = Self { rounds: 30, tasks: 2_000, parked: 300, idle_seconds: 5, minutes: 1 };
}

impl Measurement {
    pub(crate) fn name(self) -> String {
        self.to_possible_value().expect("no variant is skipped").get_name().to_owned()
    }

    pub(crate) fn take(self, scale: Scale, figures: &mut Figures) {
        match self {
            Self::Size => size::measure(scale, figures),
            Self::Start => start::measure(scale, figures),
            Self::Idle => idle::measure(scale, figures),
            Self::Lateness => lateness::measure(scale, figures),
            Self::Throughput => throughput::measure(scale, figures),
            Self::Webhooks => webhooks::measure(scale, figures),
            Self::Inbox => inbox::measure(scale, figures),
            Self::Slack => slack::measure(scale, figures),
            Self::SlackSoak => slack_soak::measure(scale.minutes, figures),
            Self::Notices => notices::measure(scale, figures),
            Self::Mail => mail::measure(scale, figures),
            Self::MailSoak => mail_soak::measure(scale, figures),
            Self::Owctl => start::measure_owctl(scale, figures),
            Self::Agent => agent::measure(scale, figures),
        }
    }
}
