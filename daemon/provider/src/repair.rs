//! Repairs a request that a provider refused for one of its parameters.

use crate::Wire;
use crate::fault::Answer;
use crate::wire::{LimitField, Parameters};

/// A request is mended and repeated so often.
pub(crate) const MOST_REPAIRS: u32 = 3;

/// The parameters without what the provider named; none where it named none that can go.
pub(crate) fn repaired(parameters: Parameters, wire: Wire, answer: &Answer) -> Option<Parameters> {
    let said = format!("{} {} {}", answer.message, answer.code, answer.parameter).to_ascii_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let mut mended = parameters;
    if parameters.effort && names(&["reasoning_effort", "reasoning effort", "thinking", "output_config", "effort"]) {
        mended.effort = false;
    } else if parameters.stream_options && names(&["stream_options", "include_usage"]) {
        mended.stream_options = false;
    } else if parameters.tool_choice && names(&["tool_choice"]) {
        mended.tool_choice = false;
    } else if parameters.cache && names(&["cache_control"]) {
        mended.cache = false;
    } else if wire == Wire::OpenAi {
        mended.limit = match parameters.limit {
            LimitField::MaxTokens if names(&["max_completion_tokens"]) => LimitField::MaxCompletionTokens,
            LimitField::MaxTokens if names(&["max_tokens", "max tokens"]) => LimitField::None,
            LimitField::MaxCompletionTokens if names(&["max_completion_tokens"]) => LimitField::MaxTokens,
            // The limit itself, not the prompt, is more than the window holds.
            limit if limit != LimitField::None && names(&["in the completion"]) => LimitField::None,
            _ => return None,
        };
    } else {
        return None;
    }
    (mended != parameters).then_some(mended)
}

#[cfg(test)]
mod tests;
