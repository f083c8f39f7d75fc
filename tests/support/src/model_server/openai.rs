//! Chat completions as OpenAI publishes them: `chat.completion.chunk` objects, then `[DONE]`.

use serde_json::{Value, json};

use super::ModelReply;
use super::response::pieces;

pub(super) fn stream(reply: &ModelReply, request: &Value, number: usize) -> Vec<u8> {
    let model = request["model"].as_str().unwrap_or("stub");
    let chunk = |choices: Value, usage: Value| {
        let body = json!({
            "id": format!("chatcmpl-{number}"),
            "object": "chat.completion.chunk",
            "created": 1_760_000_000,
            "model": model,
            "system_fingerprint": "fp_stub",
            "choices": choices,
            "usage": usage,
        });
        format!("data: {body}\n\n")
    };
    let delta = |delta: Value| {
        chunk(json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": null }]), Value::Null)
    };
    let mut text = delta(json!({ "role": "assistant", "content": "", "refusal": null }));
    for piece in pieces(reply.reasoning.as_deref().unwrap_or_default(), reply.pieces) {
        text += &delta(json!({ "reasoning_content": piece }));
    }
    for piece in pieces(&reply.text, reply.pieces) {
        text += &delta(json!({ "content": piece }));
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let id = call.id.clone().unwrap_or_else(|| format!("call_{number}x{index}"));
        let function = json!({ "name": call.name, "arguments": "" });
        text +=
            &delta(json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": function }] }));
        for piece in pieces(&call.arguments, reply.pieces) {
            text += &delta(json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] }));
        }
    }
    let finish = json!([{ "index": 0, "delta": {}, "logprobs": null, "finish_reason": reply.finish_reason() }]);
    text += &chunk(finish, Value::Null);
    if let Some((input, cached, output)) = reply.usage
        && request["stream_options"]["include_usage"] == true
    {
        let usage = json!({
            "prompt_tokens": input,
            "completion_tokens": output,
            "total_tokens": input + output,
            "prompt_tokens_details": { "cached_tokens": cached, "audio_tokens": 0 },
            "completion_tokens_details": { "reasoning_tokens": 0 },
        });
        text += &chunk(json!([]), usage);
    }
    text += "data: [DONE]\n\n";
    text.into_bytes()
}
