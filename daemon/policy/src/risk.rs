use ow_model::{Risk, ToolName};

/// A person's word on how far a tool may go, by which its own class is raised or lowered.
///
/// It comes from the configuration alone: a package never gives itself or another a class.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RiskOverride {
    /// A tool's name; `*` stands for any part of one.
    pub pattern: String,
    pub risk: Risk,
}

/// The class that a person gave the tool; none: its own holds.
///
/// The most specific entry counts: a whole name before a pattern, and of patterns the one with more letters.
/// Between two that are as specific the stricter class holds.
#[must_use]
pub fn overridden_risk(tool: &ToolName, overrides: &[RiskOverride]) -> Option<Risk> {
    let specific = |entry: &RiskOverride| {
        let letters = entry.pattern.bytes().filter(|byte| *byte != b'*').count();
        (!entry.pattern.contains('*'), letters)
    };
    overrides
        .iter()
        .filter(|entry| matches(&entry.pattern, tool.as_str()))
        .max_by_key(|entry| (specific(entry), entry.risk))
        .map(|entry| entry.risk)
}

fn matches(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(begin) else { return false };
    let parts: Vec<&str> = rest.split('*').collect();
    let (last, between) = parts.split_last().expect("a split gives at least one part");
    for part in between {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_entry_counts_and_of_equals_the_stricter() {
        let entry = |pattern: &str, risk| RiskOverride { pattern: pattern.into(), risk };
        let overrides = [
            entry("*", Risk::External),
            entry("mail.*", Risk::Exec),
            entry("mail.list*", Risk::Read),
            entry("*.list_all", Risk::WriteLocal),
            entry("mail.send", Risk::External),
            entry("a*z", Risk::Read),
            entry("az*", Risk::WriteLocal),
        ];
        for (tool, risk) in [
            ("shell", Risk::External),
            ("mail.delete", Risk::Exec),
            ("mail.listen", Risk::Read),
            ("mail.list_all", Risk::WriteLocal),
            ("mail.send", Risk::External),
            ("azz", Risk::WriteLocal),
            ("a-z", Risk::Read),
        ] {
            assert_eq!(overridden_risk(&tool.parse().expect("a name"), &overrides), Some(risk), "{tool}");
        }
        assert_eq!(overridden_risk(&"shell".parse().expect("a name"), &overrides[1..]), None);
    }
}
