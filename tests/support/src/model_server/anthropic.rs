//! Messages as Anthropic publishes them: named events from `message_start` to `message_stop`.

use serde_json::{Value, json};

use super::ModelReply;
use super::response::pieces;

pub(super) fn stream(reply: &ModelReply, request: &Value, number: usize) -> Vec<u8> {
    let event = |body: Value| format!("event: {}\ndata: {body}\n\n", body["type"].as_str().unwrap_or_default());
    let (input, cached, output) = reply.usage.unwrap_or_default();
    let message = json!({
        "id": format!("msg_{number}"),
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": input - cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": 1,
        },
    });
    let mut text = event(json!({ "type": "message_start", "message": message }));
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        let mut text = event(json!({ "type": "content_block_start", "index": index, "content_block": start }));
        for delta in deltas {
            text += &event(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        text += &event(json!({ "type": "content_block_stop", "index": index }));
        index += 1;
        text
    };
    if let Some(reasoning) = &reply.reasoning {
        let mut deltas: Vec<Value> = pieces(reasoning, reply.pieces)
            .into_iter()
            .map(|piece| json!({ "type": "thinking_delta", "thinking": piece }))
            .collect();
        deltas.push(json!({ "type": "signature_delta", "signature": format!("sig-{number}") }));
        text += &block(json!({ "type": "thinking", "thinking": "", "signature": "" }), deltas);
    }
    text += &event(json!({ "type": "ping" }));
    if !reply.text.is_empty() {
        let deltas = pieces(&reply.text, reply.pieces).into_iter();
        let deltas = deltas.map(|piece| json!({ "type": "text_delta", "text": piece })).collect();
        text += &block(json!({ "type": "text", "text": "" }), deltas);
    }
    for (place, call) in reply.calls.iter().enumerate() {
        let id = call.id.clone().unwrap_or_else(|| format!("toolu_{number}x{place}"));
        let deltas = pieces(&call.arguments, reply.pieces).into_iter();
        let deltas = deltas.map(|piece| json!({ "type": "input_json_delta", "partial_json": piece })).collect();
        text += &block(json!({ "type": "tool_use", "id": id, "name": call.name, "input": {} }), deltas);
    }
    let stop = match reply.finish_reason() {
        "tool_calls" => "tool_use",
        "length" => "max_tokens",
        "content_filter" => "refusal",
        "stop" => "end_turn",
        other => other,
    };
    let delta = json!({ "stop_reason": stop, "stop_sequence": null });
    text += &event(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": output } }));
    text += &event(json!({ "type": "message_stop" }));
    text.into_bytes()
}
