use std::fmt::Write;

use ow_model::{Fact, Finish, Purpose, RecordedFact, Run};

use super::positions::Positions;
use crate::limits::RESULT_SHOWN;

/// The agent's newest text: its answer, or where the run ended otherwise the best that it had said by then.
///
/// A text that the token limit cut is joined with what continued it. A long one is shown from its beginning.
pub(crate) fn answer(run: &Run, facts: &[RecordedFact]) -> Option<String> {
    let mut newest = None;
    let mut parts = String::new();
    let mut purpose = None;
    let mut positions = Positions::default();
    for RecordedFact { seq: _, at: _, fact } in facts {
        let has_calls = !positions.take(fact).is_empty();
        let (text, goes_on) = match fact {
            Fact::Asked { purpose: asked, .. } => {
                purpose = Some(*asked);
                continue;
            }
            Fact::Replied { reply, .. } => (Some(&reply.text), reply.finish == Finish::Length && !has_calls),
            Fact::ModelFailed { partial, .. } | Fact::TurnInterrupted { partial, .. } => (partial.as_ref(), false),
            _ => continue,
        };
        if purpose.take() == Some(Purpose::Summary) {
            continue;
        }
        let mut whole = std::mem::take(&mut parts);
        if has_calls {
            whole.clear();
        }
        whole.push_str(text.map_or("", String::as_str));
        if goes_on {
            parts.clone_from(&whole);
        }
        if !whole.trim().is_empty() {
            newest = Some(whole);
        }
    }
    newest.map(|text| shown(text, run))
}

fn shown(mut text: String, run: &Run) -> String {
    if let Some((end, _)) = text.char_indices().nth(RESULT_SHOWN) {
        let left = text[end..].chars().count();
        text.truncate(end);
        write!(text, "\n[{left} more characters: owctl session export {}]", run.id).expect("a String takes all");
    }
    text
}
