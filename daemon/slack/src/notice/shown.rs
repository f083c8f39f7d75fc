use ow_inbox::wording::{self, Part};
use ow_model::{Item, escape};

use super::rich::Rich;
use super::time;

/// Letters of an item that a message shows; one with more is cut, and not approved in Slack.
pub(super) const WHOLE: usize = 12_000;
/// Letters of each text that are shown of an item that is cut.
const CUT: usize = 1_500;
/// Texts of an item that are shown of one that is cut.
const CUT_TEXTS: usize = 5;

/// Letters of an item that is shown beside others; what is longer stands alone but for letters that are written out here.
const BESIDE_OTHERS: usize = 4_500;

/// Whether every message that tells of this item shows all that it asks. One of which some do not is not approved in Slack.
#[must_use]
pub fn fits(item: &Item) -> bool {
    letters(&wording::asked(item)) <= if item.stands_alone() { WHOLE } else { BESIDE_OTHERS }
}

/// Whether it is short enough to be shown whole beside others.
pub(super) fn fits_in_digest(item: &Item) -> bool {
    letters(&wording::asked(item)) <= BESIDE_OTHERS
}

fn letters(parts: &[Part]) -> usize {
    parts.iter().map(Part::letters).sum()
}

/// All that is asked, or its beginning and that there is more.
pub(super) fn item(rich: &mut Rich, item: &Item) {
    let mut facts = vec![];
    if let Some(task) = &item.task {
        facts.push(format!("task {}", escape::line(task.as_str())));
    }
    if let Some(at) = item.expires_at {
        facts.push(format!("expires {}", time(at)));
    }
    if !facts.is_empty() {
        rich.line(&facts.join(" · "));
    }
    let parts = wording::asked(item);
    let whole = letters(&parts) <= WHOLE;
    for part in if whole { parts } else { wording::shortened(parts, CUT_TEXTS, CUT) } {
        match part {
            Part::Facts(facts) => {
                let facts: Vec<String> = facts.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
                rich.line(&facts.join(" · "));
            }
            Part::Text(text) => rich.line(&text),
            Part::Code(text) => rich.code(&text),
        }
    }
    if !whole {
        rich.bold(&format!("It is too long to be shown here whole. Open it: owctl inbox show {}", item.id));
    }
}
