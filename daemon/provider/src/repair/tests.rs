use super::*;

const SENT: Parameters =
    Parameters { limit: LimitField::MaxTokens, stream_options: true, effort: true, tool_choice: true, cache: true };

fn after(parameters: Parameters, wire: Wire, message: &str) -> Option<Parameters> {
    repaired(parameters, wire, &Answer::of_status(400, message.as_bytes()))
}

#[test]
fn the_parameter_that_is_named_is_changed_or_left_out() {
    let limit = |limit| Some(Parameters { limit, ..SENT });
    for (message, expected) in [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            limit(LimitField::MaxCompletionTokens),
        ),
        ("max_tokens is too large: 32000. This model supports at most 4096.", limit(LimitField::None)),
        (
            "maximum context length is 8192 tokens. However, you requested 32100 tokens (100 in the messages, 32000 in the completion)",
            limit(LimitField::None),
        ),
        ("Unrecognized request argument supplied: reasoning_effort", Some(Parameters { effort: false, ..SENT })),
        ("stream_options: Extra inputs are not permitted", Some(Parameters { stream_options: false, ..SENT })),
        ("tool_choice must be auto", Some(Parameters { tool_choice: false, ..SENT })),
        ("messages: at least one message is required", None),
        ("your prompt is too long", None),
    ] {
        assert_eq!(after(SENT, Wire::OpenAi, message), expected, "{message}");
    }
}

#[test]
fn what_is_not_sent_is_not_repaired() {
    let bare =
        Parameters { limit: LimitField::None, stream_options: false, effort: false, tool_choice: false, cache: false };
    for message in ["max_tokens", "stream_options", "reasoning_effort", "tool_choice", "cache_control"] {
        assert_eq!(after(bare, Wire::OpenAi, message), None, "{message}");
    }
    assert_eq!(after(Parameters { effort: false, ..SENT }, Wire::Anthropic, "max_tokens: 90000 > 64000"), None);
}
