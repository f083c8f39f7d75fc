//! `[agent.loops]`, and a task's `[loops]`: with how many calls the loop detectors bear, by tool.

use std::collections::BTreeMap;

use ow_model::{Detector, LoopLimits, Patience};
use toml::de::DeValue;

use crate::document::Section;

/// The detectors look at the newest 20 calls: more of anything they never count.
const WINDOW: u32 = 20;

/// `name` is the section's, as it is written.
pub(crate) fn limits(within: &Section<'_, '_>, name: &str) -> LoopLimits {
    let mut limits = LoopLimits::default();
    let Some(loops) = within.section("loops") else { return limits };
    for (tool, value) in loops.entries() {
        let place = loops.place_of(tool, value);
        if Detector::OF_CALLS.iter().any(|detector| detector.word() == tool) {
            let remedy =
                format!("name the tool first: `[{name}.shell]`, or `[{name}.\"*\"]` for all; there `{tool} = …`");
            loops.document().fault_without_value(&place, "a detector where a tool belongs", remedy);
            continue;
        }
        let is_name =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '_' | '.');
        if tool != LoopLimits::ALL_TOOLS && (tool.is_empty() || !tool.chars().all(is_name)) {
            let remedy = "write a name as `owctl tool list` shows it, or \"*\" for all tools";
            loops.document().fault_without_value(&place, "not the name of a tool", remedy);
            continue;
        }
        let Some(section) = loops.section_in(tool, value) else { continue };
        let set: BTreeMap<Detector, Patience> = Detector::OF_CALLS
            .into_iter()
            .filter_map(|detector| patience(&section, detector).map(|patience| (detector, patience)))
            .collect();
        section.finish();
        if !set.is_empty() {
            limits.0.insert(tool.to_owned(), set);
        }
    }
    limits
}

fn patience(section: &Section<'_, '_>, detector: Detector) -> Option<Patience> {
    let value = section.value(detector.word())?;
    let place = section.place_of(detector.word(), value);
    let numbers = match value.get_ref() {
        DeValue::String(word) if word == "off" => return Some(Patience::Off),
        DeValue::Array(numbers) if detector.counts() && (1..=2).contains(&numbers.len()) => numbers,
        _ => {
            let remedy = if detector.counts() {
                "write `[3, 6]` to tell the model at 3 calls and end the turn at 6, `[3]` to tell it alone, or \"off\""
            } else {
                "it counts nothing: write \"off\", or remove the line"
            };
            section.document().fault(&place, "not what this loop detector can be set to", remedy);
            return None;
        }
    };
    // One call alone repeats nothing.
    let least = if matches!(detector, Detector::ConsecutiveDuplicate | Detector::ExactDuplicate) { 2 } else { 1 };
    let counts: Vec<u32> =
        numbers.iter().filter_map(|number| section.count_in(detector.word(), number, least..=WINDOW)).collect();
    match counts[..] {
        [nudge] if numbers.len() == 1 => Some(Patience::Until { nudge, stop: None }),
        [nudge, stop] if nudge <= stop => Some(Patience::Until { nudge, stop: Some(stop) }),
        [nudge, stop] => {
            let message = format!("would end the turn at {stop} calls, before the model is told at {nudge}");
            section.document().fault(&place, message, "let the second number be no smaller than the first");
            None
        }
        _ => None,
    }
}
