use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ow_model::ReplyCall;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::sse::Sse;
use crate::{Delta, StreamLimits};

/// The reply of a stream in these network chunks, with what was told on the way.
fn read(wire: Wire, chunks: &[Vec<u8>], limits: StreamLimits) -> (Result<Reply, StreamFault>, String) {
    let mut told = String::new();
    let mut deltas = |delta: Delta<'_>| match delta {
        Delta::Text(text) => told.push_str(text),
        Delta::Reasoning(_) => {}
        Delta::CallStarted { index, name } => told.extend(["<", &index.to_string(), ":", name, ">"]),
    };
    let mut sse = Sse::default();
    let mut assembly = Assembly::new(wire, limits);
    let mut result = Ok(());
    for chunk in chunks {
        result = result.and_then(|()| sse.push(chunk, &mut |event| assembly.event(&event, &mut deltas)));
    }
    if let Some(event) = sse.finish() {
        result = result.and_then(|()| assembly.event(&event, &mut deltas));
    }
    let reply = result.and_then(|()| assembly.finish("test:model", &mut deltas));
    (reply, told)
}

fn openai(stream: &str) -> Result<Reply, StreamFault> {
    read(Wire::OpenAi, &[stream.as_bytes().to_vec()], StreamLimits::default()).0
}

fn anthropic(stream: &str) -> Result<Reply, StreamFault> {
    read(Wire::Anthropic, &[stream.as_bytes().to_vec()], StreamLimits::default()).0
}

/// A stream of chat completions from deltas, ended as given.
fn chat(deltas: &[Value], finish: &str) -> String {
    let mut stream = String::new();
    let mut push = |event: Value| stream.extend(["data: ", &event.to_string(), "\n\n"]);
    for delta in deltas {
        push(json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }));
    }
    push(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }));
    stream.push_str("data: [DONE]\n\n");
    stream
}

fn fragment(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    json!({ "tool_calls": [{ "index": index, "id": id, "function": { "name": name, "arguments": arguments } }] })
}

fn calls(fragments: &[Value]) -> Vec<(Option<String>, String, String)> {
    let reply = openai(&chat(fragments, "tool_calls")).expect("a reply");
    reply.calls.into_iter().map(|ReplyCall { id, name, arguments }| (id, name, arguments)).collect()
}

fn call(id: Option<&str>, name: &str, arguments: &str) -> (Option<String>, String, String) {
    (id.map(str::to_owned), name.into(), arguments.into())
}

fn case(id: &str) -> (Value, Vec<Vec<u8>>) {
    let cases: Value = serde_json::from_str(include_str!("../../../../tests/cases/agent-loop.json")).expect("JSON");
    let case = cases["cases"].as_array().expect("cases").iter().find(|case| case["id"] == id).expect("the case");
    let chunks = case["chunks_b64"].as_array().expect("chunks").iter();
    let chunks = chunks.map(|chunk| STANDARD.decode(chunk.as_str().expect("text")).expect("base64")).collect();
    (case["expect"].clone(), chunks)
}

#[test]
fn loop_01_a_byte_a_chunk_leaves_the_text_whole() {
    let (expected, chunks) = case("loop-01");
    let (reply, told) = read(Wire::OpenAi, &chunks, StreamLimits::default());
    assert_eq!(reply.expect("a reply").text, expected["text"].as_str().expect("text"));
    assert_eq!(told, expected["text"].as_str().expect("text"));
}

#[test]
fn loop_03_calls_that_all_have_index_0_are_several() {
    let (expected, chunks) = case("loop-03");
    let reply = read(Wire::OpenAi, &chunks, StreamLimits::default()).0.expect("a reply");
    let found: Vec<Value> = reply
        .calls
        .iter()
        .map(
            |call| json!({ "id": call.id, "arguments": serde_json::from_str::<Value>(&call.arguments).expect("JSON") }),
        )
        .collect();
    assert_eq!(json!(found), expected["tool_calls"]);
    assert_eq!(reply.finish, Finish::ToolCalls);
}

#[test]
fn loop_06_a_call_cut_by_the_limit_stays_cut() {
    let (_, chunks) = case("loop-06");
    let reply = read(Wire::OpenAi, &chunks, StreamLimits::default()).0.expect("a reply");
    assert_eq!(reply.finish, Finish::Length);
    assert!(serde_json::from_str::<Value>(&reply.calls[0].arguments).is_err());
}

#[test]
fn a_call_cut_before_its_arguments_is_no_call_without_arguments() {
    let reply = openai(&chat(&[fragment(Some(0), Some("a"), Some("stop_all"), "")], "length")).expect("a reply");
    assert_eq!((reply.calls[0].arguments.as_str(), reply.finish), ("", Finish::Length));
    let reply = openai(&chat(&[fragment(Some(0), Some("a"), Some("stop_all"), "")], "tool_calls")).expect("a reply");
    assert_eq!(reply.calls[0].arguments, "{}");
}

#[test]
fn fragments_find_their_call_whatever_index_id_and_name_say() {
    // As published.
    assert_eq!(
        calls(&[
            fragment(Some(0), Some("a"), Some("read"), ""),
            fragment(Some(0), None, None, r#"{"path""#),
            fragment(Some(1), Some("b"), Some("list"), r#"{"p"#),
            fragment(Some(0), None, None, r#":"x"}"#),
            fragment(Some(1), None, None, r#"":1}"#),
        ]),
        [call(Some("a"), "read", r#"{"path":"x"}"#), call(Some("b"), "list", r#"{"p":1}"#)]
    );
    // No ids, all index 0, whole arguments.
    assert_eq!(
        calls(&[
            fragment(Some(0), None, Some("read"), r#"{"a":1}"#),
            fragment(Some(0), None, Some("read"), r#"{"a":2}"#),
            fragment(Some(0), None, Some("list"), "{}"),
        ]),
        [call(None, "read", r#"{"a":1}"#), call(None, "read", r#"{"a":2}"#), call(None, "list", "{}")]
    );
    // No ids, all index 0, arguments after the name.
    assert_eq!(
        calls(&[
            fragment(Some(0), None, Some("read"), ""),
            fragment(Some(0), None, None, r#"{"a":"#),
            fragment(Some(0), None, None, "1}"),
            fragment(Some(0), None, Some("read"), ""),
            fragment(Some(0), None, None, r#"{"a":2}"#),
        ]),
        [call(None, "read", r#"{"a":1}"#), call(None, "read", r#"{"a":2}"#)]
    );
    // The same id for all, told apart by index.
    assert_eq!(
        calls(&[
            fragment(Some(0), Some("call_0"), Some("read"), "{}"),
            fragment(Some(1), Some("call_0"), Some("list"), "{}"),
        ]),
        [call(Some("call_0"), "read", "{}"), call(Some("call_0"), "list", "{}")]
    );
    // The same id and index for all.
    assert_eq!(
        calls(&[
            fragment(Some(0), Some("c"), Some("read"), r#"{"a":1}"#),
            fragment(Some(0), Some("c"), Some("read"), r#"{"a":2}"#),
        ]),
        [call(Some("c"), "read", r#"{"a":1}"#), call(Some("c"), "read", r#"{"a":2}"#)]
    );
    // Id and name repeated in each fragment.
    assert_eq!(
        calls(&[
            fragment(Some(0), Some("a"), Some("read"), r#"{"a":"#),
            fragment(Some(0), Some("a"), Some("read"), r#""{}"}"#),
            fragment(Some(0), Some("a"), Some("read"), ""),
        ]),
        [call(Some("a"), "read", r#"{"a":"{}"}"#)]
    );
    // No index.
    assert_eq!(
        calls(&[
            fragment(None, Some("a"), Some("read"), r#"{"a":"#),
            fragment(None, None, None, "1}"),
            fragment(None, Some("b"), Some("list"), ""),
            fragment(None, Some("b"), None, "{}"),
        ]),
        [call(Some("a"), "read", r#"{"a":1}"#), call(Some("b"), "list", "{}")]
    );
    // Two without arguments and without ids.
    assert_eq!(
        calls(&[fragment(Some(0), None, Some("now"), ""), fragment(Some(0), None, Some("list"), "")]),
        [call(None, "now", "{}"), call(None, "list", "{}")]
    );
}

#[test]
fn arguments_given_as_an_object_are_text_again() {
    let delta = json!({ "tool_calls": [{ "function": { "name": "read", "arguments": { "path": "x" } } }] });
    assert_eq!(calls(&[delta]), [call(None, "read", r#"{"path":"x"}"#)]);
}

#[test]
fn the_end_of_a_reply_is_seen_in_each_form() {
    let text = json!({ "content": "done" });
    let without = |what: &str| chat(std::slice::from_ref(&text), "stop").replace(what, "");
    assert_eq!(openai(&without("data: [DONE]\n\n")).expect("finish_reason is enough").text, "done");
    assert_eq!(openai(&chat(std::slice::from_ref(&text), "")).expect("[DONE] is enough").finish, Finish::Stop);
    let cut = chat(std::slice::from_ref(&text), "").replace("data: [DONE]\n\n", "");
    assert_eq!(openai(&cut).expect_err("neither came").kind, ModelFailure::Unavailable);
    for (word, finish) in [
        ("stop", Finish::Stop),
        ("eos", Finish::Stop),
        ("tool_calls", Finish::Stop),
        ("length", Finish::Length),
        ("content_filter", Finish::Refusal),
        ("sensitive", Finish::Refusal),
    ] {
        assert_eq!(openai(&chat(std::slice::from_ref(&text), word)).expect(word).finish, finish, "{word}");
    }
    let busy = openai(&chat(&[text], "insufficient_system_resource"));
    assert_eq!(busy.expect_err("no answer").kind, ModelFailure::Unavailable);
    let called = openai(&chat(&[fragment(Some(0), Some("a"), Some("now"), "{}")], "stop")).expect("a reply");
    assert_eq!(called.finish, Finish::ToolCalls);
}

#[test]
fn an_empty_reply_is_an_empty_reply() {
    let reply = openai(&chat(&[json!({ "role": "assistant", "content": "" })], "stop")).expect("a reply");
    assert_eq!((reply.text.as_str(), reply.calls.len(), reply.usage), ("", 0, None));
}

#[test]
fn usage_is_read_in_each_vendors_form_and_never_invented() {
    let ended = chat(&[json!({ "content": "x" })], "stop");
    let with = |event: Value| {
        let stream = ended.replace("data: [DONE]", &format!("data: {event}\n\ndata: [DONE]"));
        openai(&stream).expect("a reply").usage
    };
    let usage = |cached| Some(Usage { input: 9, cached, output: 3 });
    let plain = json!({ "prompt_tokens": 9, "completion_tokens": 3 });
    let and = |key: &str, value: Value| {
        let mut usage = plain.clone();
        usage[key] = value;
        usage
    };
    assert_eq!(with(json!({ "choices": [], "usage": plain })), usage(0));
    let details = and("prompt_tokens_details", json!({ "cached_tokens": 4 }));
    assert_eq!(with(json!({ "choices": [], "usage": details })), usage(4), "OpenAI");
    assert_eq!(with(json!({ "choices": [], "usage": and("prompt_cache_hit_tokens", json!(5)) })), usage(5), "DeepSeek");
    let choice = json!([{ "index": 0, "delta": {}, "usage": and("cached_tokens", json!(6)) }]);
    assert_eq!(with(json!({ "choices": choice })), usage(6), "Moonshot");
    assert_eq!(with(json!({ "choices": [], "x_groq": { "usage": plain } })), usage(0), "Groq");
    assert_eq!(with(json!({ "choices": [], "usage": null })), None);
}

#[test]
fn thoughts_are_kept_apart_from_the_text_in_each_vendors_form() {
    let read = |deltas: &[Value]| {
        let reply = openai(&chat(deltas, "stop")).expect("a reply");
        (reply.reasoning.unwrap_or_default(), reply.text)
    };
    let expected = ("hm, so".to_owned(), "Yes.".to_owned());
    let field = |name: &str| read(&[json!({ name: "hm, " }), json!({ name: "so" }), json!({ "content": "Yes." })]);
    assert_eq!(field("reasoning_content"), expected, "DeepSeek, Moonshot, GLM, llama.cpp");
    assert_eq!(field("reasoning"), expected, "OpenRouter, Groq, Ollama");
    let both = json!({ "reasoning": "hm, so", "reasoning_content": "hm, so" });
    assert_eq!(read(&[both, json!({ "content": "Yes." })]), expected);
    let thinking = json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": "hm, so" }] }]);
    let text = json!([{ "type": "text", "text": "Yes." }]);
    assert_eq!(read(&[json!({ "content": thinking }), json!({ "content": text })]), expected, "Mistral");
    let tagged = "<think>hm, so</think>\n\nYes.";
    assert_eq!(read(&[json!({ "content": tagged })]), expected);
    let letters: Vec<Value> = tagged.chars().map(|letter| json!({ "content": letter.to_string() })).collect();
    assert_eq!(read(&letters), expected);
    for text in ["a <think> in the middle", "<thin", "< think>", "</think> alone"] {
        assert_eq!(read(&[json!({ "content": text })]), (String::new(), text.to_owned()));
    }
    assert_eq!(read(&[json!({ "content": "<think>never ends" })]), ("never ends".into(), String::new()));
}

#[test]
fn what_only_google_understands_is_kept_with_its_call() {
    let signed = json!({ "tool_calls": [{
        "index": 0, "id": "a", "extra_content": { "google": { "thought_signature": "abc" } },
        "function": { "name": "read", "arguments": "{}" },
    }] });
    let reply =
        openai(&chat(&[signed, fragment(Some(1), Some("b"), Some("list"), "{}")], "tool_calls")).expect("a reply");
    let expected = json!({ "extra_content": [{ "google": { "thought_signature": "abc" } }, null] });
    assert_eq!(reply.private, Some(expected));
}

#[test]
fn the_parts_of_a_thought_that_must_go_back_are_joined() {
    let detail = |text: &str| json!({ "reasoning_details": [{ "type": "reasoning.text", "index": 0, "text": text }] });
    let signature = json!({ "reasoning_details": [{ "type": "reasoning.text", "index": 0, "signature": "s" }] });
    let reply = openai(&chat(&[detail("one "), detail("two"), signature], "stop")).expect("a reply");
    let expected = json!([{ "type": "reasoning.text", "index": 0, "text": "one two", "signature": "s" }]);
    assert_eq!(reply.private.expect("kept")["reasoning_details"], expected);
}

#[test]
fn a_refusal_is_a_reply_that_says_so() {
    let reply = openai(&chat(&[json!({ "refusal": "I cannot." })], "stop")).expect("a reply");
    assert_eq!((reply.text.as_str(), reply.finish), ("I cannot.", Finish::Refusal));
    let stream = ANTHROPIC.replace("end_turn", "refusal");
    assert_eq!(anthropic(&stream).expect("a reply").finish, Finish::Refusal);
}

#[test]
fn errors_in_mid_stream_are_what_they_are() {
    for (error, kind) in [
        (json!({ "error": { "message": "Overloaded", "type": "overloaded_error" } }), ModelFailure::Unavailable),
        (json!({ "error": { "message": "slow down", "code": 429 } }), ModelFailure::RateLimit),
        (json!({ "error": { "message": "Provider returned error", "code": 502 } }), ModelFailure::Unavailable),
        (json!({ "error": "model runner has stopped" }), ModelFailure::Unavailable),
        (json!({ "error": { "message": "too long", "code": "context_length_exceeded" } }), ModelFailure::Overflow),
    ] {
        let fault = openai(&format!("data: {error}\n\n")).expect_err("an error");
        assert_eq!(fault.kind, kind, "{error}");
    }
    let fault = anthropic(
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
    );
    assert_eq!(fault.expect_err("an error").kind, ModelFailure::Unavailable);
}

#[test]
fn what_is_no_answer_is_garbage() {
    for stream in ["data: <html>\n\n", "data: {\"hello\":1}\n\n", "data: 7\n\n"] {
        assert_eq!(openai(stream).expect_err(stream).kind, ModelFailure::Garbage, "{stream}");
    }
    assert_eq!(openai("").expect_err("nothing").kind, ModelFailure::Unavailable);
}

#[test]
fn a_reply_is_bounded() {
    let limits = StreamLimits { bytes: 100, calls: 2, ..StreamLimits::default() };
    let read = |deltas: &[Value]| super::tests::read(Wire::OpenAi, &[chat(deltas, "stop").into_bytes()], limits).0;
    assert!(read(&[json!({ "content": "x".repeat(100) })]).is_ok());
    let long = read(&[json!({ "content": "x".repeat(101) })]).expect_err("too long");
    assert_eq!((long.kind, long.message.as_str()), (ModelFailure::TooLarge, "the reply is longer than 100 bytes"));
    let many: Vec<Value> = (0..3).map(|index| fragment(Some(index), None, Some("now"), "{}")).collect();
    assert!(read(&many[..2]).is_ok());
    let many = read(&many).expect_err("too many");
    assert_eq!((many.kind, many.message.as_str()), (ModelFailure::TooLarge, "the reply holds more than 2 calls"));
}

/// As in the vendor's reference, with a thought, text and two calls.
const ANTHROPIC: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":20,"cache_creation_input_tokens":5,"cache_read_input_tokens":75,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"look."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwK"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Grüße 🦀"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"a"}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":".txt\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"now","input":{}}}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":89}}

event: message_stop
data: {"type":"message_stop"}

"#;

#[test]
fn a_message_of_anthropics_is_read_whole() {
    let reply = anthropic(ANTHROPIC).expect("a reply");
    assert_eq!(reply.text, "Grüße 🦀");
    assert_eq!(reply.reasoning.as_deref(), Some("Let me look."));
    assert_eq!(reply.usage, Some(Usage { input: 100, cached: 75, output: 89 }));
    assert_eq!(reply.finish, Finish::ToolCalls);
    let calls: Vec<_> = reply.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, [("read", r#"{"path": "a.txt"}"#), ("now", "{}")]);
    let order = json!({ "order": [
        { "thought": { "type": "thinking", "thinking": "Let me look.", "signature": "EqQB" } },
        { "thought": { "type": "redacted_thinking", "data": "EmwK" } },
        { "text": 12 },
        { "call": true },
        { "call": true },
    ] });
    assert_eq!(reply.private, Some(order));
}

#[test]
fn a_message_of_anthropics_that_breaks_off_is_no_reply() {
    let cut = ANTHROPIC.find("event: message_delta").expect("it is there");
    let (reply, told) = read(Wire::Anthropic, &[ANTHROPIC.as_bytes()[..cut].to_vec()], StreamLimits::default());
    assert_eq!(reply.expect_err("broken").kind, ModelFailure::Unavailable);
    assert_eq!(told, "Grüße 🦀<0:read><1:now>");
    for (word, finish) in [("max_tokens", Finish::Length), ("tool_use", Finish::ToolCalls)] {
        assert_eq!(anthropic(&ANTHROPIC.replace("end_turn", word)).expect("a reply").finish, finish);
    }
}

fn cut(stream: &str, cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| stream.as_bytes()[pair[0]..pair[1]].to_vec()).collect()
}

proptest! {
    #[test]
    fn any_chunking_of_a_stream_gives_the_same_reply(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..60)) {
        let chat = chat(
            &[
                json!({ "content": "<think>déjà</think>Grüße 你好 🦀" }),
                fragment(Some(0), Some("a"), Some("read"), r#"{"path":"#),
                fragment(Some(0), None, None, r#""ü\"}"}"#),
            ],
            "tool_calls",
        );
        for (wire, stream) in [(Wire::OpenAi, chat.as_str()), (Wire::Anthropic, ANTHROPIC)] {
            let whole = read(wire, &[stream.as_bytes().to_vec()], StreamLimits::default());
            let pieces = read(wire, &cut(stream, &cuts), StreamLimits::default());
            prop_assert_eq!(pieces.0.expect("a reply"), whole.0.expect("a reply"));
            prop_assert_eq!(pieces.1, whole.1);
        }
    }

    /// However a vendor splits text and arguments into deltas, the reply is the same.
    #[test]
    fn any_split_of_text_and_arguments_gives_the_same_reply(
        text in ".{0,30}",
        arguments in prop::collection::btree_map("[a-z]{1,3}", "[{}\"\\\\a-z,:]{0,8}", 0..4),
        size in 1_usize..6,
    ) {
        let arguments = json!(arguments).to_string();
        let pieces = |text: &str| -> Vec<String> {
            text.chars().collect::<Vec<_>>().chunks(size).map(|piece| piece.iter().collect()).collect()
        };
        let mut deltas: Vec<Value> = pieces(&text).iter().map(|piece| json!({ "content": piece })).collect();
        for index in 0..2 {
            deltas.push(fragment(Some(index), Some(&format!("c{index}")), Some("read"), ""));
            deltas.extend(pieces(&arguments).iter().map(|piece| fragment(Some(index), None, None, piece)));
        }
        let reply = openai(&chat(&deltas, "tool_calls")).expect("a reply");
        prop_assert_eq!(&reply.text, &text);
        prop_assert_eq!(reply.calls.len(), 2);
        for call in reply.calls {
            prop_assert_eq!(&call.arguments, &arguments);
        }
    }
}
