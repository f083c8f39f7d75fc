use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What looks for loops in an agent's calls.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detector {
    ToolModeSwitch,
    SuccessAfterError,
    ConsecutiveDuplicate,
    ExactDuplicate,
    SameToolError,
    NetworkRetryStorm,
    FamilyNoProgress,
    SearchEscalation,
    NoProgress,
    Sleep,
    /// Of replies, not of calls of a tool: no patience can be set for it.
    UnusableCalls,
}

impl Detector {
    /// Those whose patience with a tool can be set.
    pub const OF_CALLS: [Self; 10] = [
        Self::ToolModeSwitch,
        Self::SuccessAfterError,
        Self::ConsecutiveDuplicate,
        Self::ExactDuplicate,
        Self::SameToolError,
        Self::NetworkRetryStorm,
        Self::FamilyNoProgress,
        Self::SearchEscalation,
        Self::NoProgress,
        Self::Sleep,
    ];

    /// As in the file and in the journal.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ToolModeSwitch => "tool-mode-switch",
            Self::SuccessAfterError => "success-after-error",
            Self::ConsecutiveDuplicate => "consecutive-duplicate",
            Self::ExactDuplicate => "exact-duplicate",
            Self::SameToolError => "same-tool-error",
            Self::NetworkRetryStorm => "network-retry-storm",
            Self::FamilyNoProgress => "family-no-progress",
            Self::SearchEscalation => "search-escalation",
            Self::NoProgress => "no-progress",
            Self::Sleep => "sleep",
            Self::UnusableCalls => "unusable-calls",
        }
    }

    /// Whether it counts; one that does not can only be switched off.
    #[must_use]
    pub const fn counts(self) -> bool {
        !matches!(self, Self::ToolModeSwitch | Self::SuccessAfterError)
    }
}

impl fmt::Display for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// With how many calls a detector bears.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(from = "Written", into = "Written")]
pub enum Patience {
    /// It says nothing.
    Off,
    /// It nudges at so many, and stops at so many; without `stop`, never by itself.
    Until { nudge: u32, stop: Option<u32> },
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(untagged)]
enum Written {
    Word(Off),
    Nudge([u32; 1]),
    Both([u32; 2]),
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Off {
    Off,
}

impl From<Written> for Patience {
    fn from(written: Written) -> Self {
        match written {
            Written::Word(Off::Off) => Self::Off,
            Written::Nudge([nudge]) => Self::Until { nudge, stop: None },
            Written::Both([nudge, stop]) => Self::Until { nudge, stop: Some(stop) },
        }
    }
}

impl From<Patience> for Written {
    fn from(patience: Patience) -> Self {
        match patience {
            Patience::Off => Self::Word(Off::Off),
            Patience::Until { nudge, stop: None } => Self::Nudge([nudge]),
            Patience::Until { nudge, stop: Some(stop) } => Self::Both([nudge, stop]),
        }
    }
}

/// What a person set of the loop detectors' patience, by tool; `*` is for all tools that say nothing themselves.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct LoopLimits(pub BTreeMap<String, BTreeMap<Detector, Patience>>);

impl LoopLimits {
    /// The entry that stands for all tools.
    pub const ALL_TOOLS: &'static str = "*";

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These, where `own` says nothing else of a detector: for the tool, or for all tools.
    #[must_use]
    pub fn overridden_by(mut self, own: &Self) -> Self {
        for (tool, set) in &own.0 {
            for (detector, patience) in set {
                if tool == Self::ALL_TOOLS {
                    for general in self.0.values_mut() {
                        general.remove(detector);
                    }
                }
                self.0.entry(tool.clone()).or_default().insert(*detector, *patience);
            }
        }
        self.0.retain(|_, set| !set.is_empty());
        self
    }

    /// What is set for calls of this tool; none: what the detector has by itself.
    #[must_use]
    pub fn of(&self, tool: &str, detector: Detector) -> Option<Patience> {
        [tool, Self::ALL_TOOLS].into_iter().find_map(|name| self.0.get(name)?.get(&detector)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_says_of_a_detector_goes_before_what_all_say() {
        let read = |text: serde_json::Value| serde_json::from_value::<LoopLimits>(text).expect("it reads");
        let all =
            read(serde_json::json!({ "shell": { "sleep": [3, 9] }, "*": { "sleep": [5], "no-progress": "off" } }));
        let own = read(serde_json::json!({ "grep": { "sleep": "off" } }));
        let both = read(serde_json::json!({
            "shell": { "sleep": [3, 9] }, "*": { "sleep": [5], "no-progress": "off" }, "grep": { "sleep": "off" }
        }));
        assert_eq!(all.clone().overridden_by(&own), both);
        let own = read(serde_json::json!({ "*": { "sleep": "off" } }));
        assert_eq!(all.overridden_by(&own), read(serde_json::json!({ "*": { "sleep": "off", "no-progress": "off" } })));
    }

    #[test]
    fn what_is_set_for_a_tool_goes_before_what_is_set_for_all() {
        let json = r#"{"*":{"same-tool-error":[2]},"shell":{"same-tool-error":"off","sleep":[3,9]}}"#;
        let limits: LoopLimits = serde_json::from_str(json).expect("parses");
        assert_eq!(serde_json::to_string(&limits).expect("text keys"), json);
        assert_eq!(limits.of("shell", Detector::SameToolError), Some(Patience::Off));
        assert_eq!(limits.of("shell", Detector::Sleep), Some(Patience::Until { nudge: 3, stop: Some(9) }));
        assert_eq!(limits.of("grep", Detector::SameToolError), Some(Patience::Until { nudge: 2, stop: None }));
        assert_eq!(limits.of("grep", Detector::Sleep), None);
    }

    #[test]
    fn a_detector_has_one_name_in_file_journal_and_words() {
        for detector in Detector::OF_CALLS.into_iter().chain([Detector::UnusableCalls]) {
            assert_eq!(serde_json::to_value(detector).expect("a word"), detector.word());
        }
    }
}
