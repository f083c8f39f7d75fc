use std::sync::Arc;

use jiff::Timestamp;
use ow_model::{Attachment, BlobHash, Source};
use ow_test_support::model_server::{RequestFault, check_anthropic, check_openai};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Attachments, Effort, ModelTable, Preset, Prompt, ToolChoice, ToolDeclaration, Tools};

pub(crate) fn said(text: &str) -> Message {
    let input = Input { text: text.into(), attachments: vec![], source: Source::Task };
    Message::User { input, at: Timestamp::UNIX_EPOCH }
}

pub(crate) fn answered(text: &str, calls: &[(u32, &str)]) -> Message {
    Message::Assistant {
        text: text.into(),
        calls: calls
            .iter()
            .map(|(position, name)| ToolUse {
                position: Position(*position),
                name: (*name).into(),
                args: json!({ "n": position }),
            })
            .collect(),
        reasoning: Some("a thought that is nobody's business".into()),
        usage: None,
        model: "anthropic:claude".into(),
        private: None,
        at: Timestamp::UNIX_EPOCH,
    }
}

pub(crate) fn result(position: u32, text: &str) -> Message {
    Message::Tool {
        position: Position(position),
        text: text.into(),
        is_error: false,
        outside: false,
        images: vec![],
        at: Timestamp::UNIX_EPOCH,
    }
}

fn notice() -> Message {
    Message::Notice { text: "for people alone".into(), at: Timestamp::UNIX_EPOCH }
}

fn with_private(message: Message, provider: &str, secret: Value) -> Message {
    let Message::Assistant { text, calls, reasoning, usage, at, .. } = message else { panic!("an answer") };
    Message::Assistant { text, calls, reasoning, usage, model: format!("{provider}:m"), private: Some(secret), at }
}

fn file(name: &str, media_type: &str, content: &str) -> Attachment {
    Attachment {
        name: name.into(),
        media_type: media_type.into(),
        bytes: content.len() as u64,
        hash: BlobHash::of(content.as_bytes()),
    }
}

#[derive(Debug)]
struct Shelf;

impl Attachments for Shelf {
    fn bytes(&self, attachment: &Attachment) -> Option<Vec<u8>> {
        (attachment.name != "lost.png").then(|| b"content".to_vec())
    }

    fn text(&self, attachment: &Attachment) -> Option<String> {
        (attachment.name == "a.pdf").then(|| "the text of the PDF".into())
    }
}

/// The body for a provider and one of its models.
fn sent(request: &Request, provider: &str) -> Value {
    let settings = Preset::named(provider).expect("a preset").settings();
    let capabilities = ModelTable::shipped().capabilities(provider, &request.model);
    let parameters = Parameters {
        limit: settings.limit_field,
        stream_options: settings.stream_options,
        effort: true,
        tool_choice: true,
        cache: true,
    };
    let bytes = body(request, &Profile::new(&settings, &capabilities), &capabilities, parameters);
    serde_json::from_slice(&bytes).expect("a body is JSON")
}

fn request(model: &str, messages: Vec<Message>) -> Request {
    Request { attachments: Arc::new(Shelf), ..Request::new(model, messages.into_iter().collect::<Prompt>().view()) }
}

fn check(messages: Vec<Message>) {
    let chat = sent(&request("m", messages.clone()), "openai");
    assert_eq!(check_openai(&chat, true), Ok(()), "{chat:#}");
    let message = sent(&request("m", messages), "anthropic");
    assert_eq!(check_anthropic(&message), Ok(()), "{message:#}");
}

#[test]
fn a_conversation_in_openais_format() {
    let mut request = request(
        "gpt-5",
        vec![
            said("look \"there\"\n"),
            notice(),
            answered("I look.", &[(0, "read"), (1, "list files!")]),
            result(0, "one"),
            result(1, ""),
            answered("Done.", &[]),
            said("thanks"),
        ],
    );
    request.system = "Be brief.".into();
    request.tail = Some("It is Monday.".into());
    request.effort = Some(Effort::Low);
    request.tools = Tools::new(vec![ToolDeclaration {
        name: "read".into(),
        description: "Reads.".into(),
        parameters: json!({ "type": "object" }),
    }]);
    let body = sent(&request, "openai");
    assert_eq!(
        body,
        json!({
            "model": "gpt-5",
            "stream": true,
            "stream_options": { "include_usage": true },
            "max_completion_tokens": 32000,
            "reasoning_effort": "low",
            "tools": [{ "type": "function", "function": {
                "name": "read", "description": "Reads.", "parameters": { "type": "object" },
            } }],
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "look \"there\"\n" },
                { "role": "assistant", "content": "I look.", "tool_calls": [
                    { "id": "call_0", "type": "function", "function": { "name": "read", "arguments": "{\"n\":0}" } },
                    { "id": "call_1", "type": "function", "function": { "name": "list_files_", "arguments": "{\"n\":1}" } },
                ] },
                { "role": "tool", "tool_call_id": "call_0", "content": "one" },
                { "role": "tool", "tool_call_id": "call_1", "content": "(no output)" },
                { "role": "assistant", "content": "Done." },
                { "role": "user", "content": "thanks\n\nIt is Monday." },
            ],
        })
    );
    request.tool_choice = ToolChoice::None;
    request.max_output = Some(100);
    let body = sent(&request, "openai");
    assert_eq!((&body["tool_choice"], &body["max_completion_tokens"]), (&json!("none"), &json!(100)));
}

#[test]
fn a_conversation_in_anthropics_format() {
    let mut request = request(
        "claude-haiku-4-5",
        vec![
            said("look"),
            answered("I look.", &[(0, "read"), (1, "list")]),
            result(0, "one"),
            result(1, "two"),
            said("faster"),
            answered("Done.", &[]),
            said("thanks"),
        ],
    );
    request.system = "Be brief.".into();
    request.tail = Some("It is Monday.".into());
    request.effort = Some(Effort::Medium);
    request.tool_choice = ToolChoice::None;
    request.tools = Tools::new(vec![ToolDeclaration {
        name: "read".into(),
        description: "Reads.".into(),
        parameters: json!({ "type": "object" }),
    }]);
    let mark = json!({ "type": "ephemeral" });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let marked = |text: &str| json!({ "type": "text", "text": text, "cache_control": mark });
    assert_eq!(
        sent(&request, "anthropic"),
        json!({
            "model": "claude-haiku-4-5",
            "stream": true,
            "max_tokens": 32000,
            "thinking": { "type": "enabled", "budget_tokens": 8192 },
            "tools": [{ "name": "read", "description": "Reads.", "input_schema": { "type": "object" } }],
            "tool_choice": { "type": "none" },
            "system": [marked("Be brief.")],
            "messages": [
                { "role": "user", "content": [text("look")] },
                { "role": "assistant", "content": [
                    text("I look."),
                    { "type": "tool_use", "id": "call_0", "name": "read", "input": { "n": 0 } },
                    { "type": "tool_use", "id": "call_1", "name": "list", "input": { "n": 1 } },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "call_0", "content": "one" },
                    { "type": "tool_result", "tool_use_id": "call_1", "content": "two" },
                    text("faster"),
                ] },
                { "role": "assistant", "content": [text("Done.")] },
                { "role": "user", "content": [marked("thanks"), text("It is Monday.")] },
            ],
        })
    );
    request.model = "claude-sonnet-4-6".into();
    let adaptive = sent(&request, "anthropic");
    assert_eq!(
        (&adaptive["thinking"], &adaptive["output_config"]),
        (&json!({ "type": "adaptive" }), &json!({ "effort": "medium" }))
    );
}

#[test]
fn the_end_of_a_chain_of_calls_is_marked_for_the_cache() {
    let mut request = request("m", vec![said("go"), answered("", &[(0, "read")]), result(0, "one")]);
    request.tail = Some("It is Monday.".into());
    let messages = sent(&request, "anthropic")["messages"].clone();
    assert!(messages[0]["content"][0]["cache_control"].is_object());
    assert_eq!(messages[0]["content"][1]["cache_control"], Value::Null, "the tail changes");
    assert!(messages[2]["content"][0]["cache_control"].is_object());
}

#[test]
fn loop_09_a_history_cut_inside_a_batch_is_well_formed() {
    let history =
        [said("u"), answered("", &[(0, "a"), (1, "b")]), result(0, "A"), result(1, "B"), answered("x", &[]), said("u")];
    for cut in 0..=history.len() {
        for summary in [None, Some("before: much")] {
            let mut prompt: Prompt = history.iter().cloned().collect();
            prompt.begin_at(cut, summary);
            let request = Request::new("m", prompt.view());
            assert_eq!(check_openai(&sent(&request, "openai"), true), Ok(()), "cut at {cut}");
            assert_eq!(check_anthropic(&sent(&request, "anthropic")), Ok(()), "cut at {cut}");
        }
    }
}

#[test]
fn loop_10_a_call_without_a_result_gets_one_that_says_so() {
    let history = vec![said("u"), answered("", &[(0, "a"), (1, "b")]), result(0, "A")];
    check(history.clone());
    let body = sent(&request("m", history), "openai");
    let expected = json!({ "role": "tool", "tool_call_id": "call_1", "content": walk::NO_RESULT });
    assert_eq!(body["messages"][3], expected);
}

#[test]
fn loop_29_roles_alternate_and_the_user_is_first() {
    check(vec![answered("hello", &[]), said("one"), said("two"), result(0, "of a call that is gone")]);
    check(vec![]);
    check(vec![notice()]);
    check(vec![answered("one", &[]), answered("two", &[(0, "a")]), answered("three", &[]), said("")]);
    let body = sent(&request("m", vec![said("one"), said("two")]), "google");
    assert_eq!(body["messages"], json!([{ "role": "user", "content": "one\n\ntwo" }]));
}

#[test]
fn side_fields_and_notices_are_never_sent() {
    let history = vec![
        said("u"),
        notice(),
        with_private(answered("x", &[(0, "a")]), "other", json!({ "thought": "secret-1" })),
        result(0, "r"),
    ];
    for provider in ["openai", "anthropic", "deepseek", "minimax"] {
        let body = sent(&request("m", history.clone()), provider).to_string();
        for word in ["nobody's business", "for people", "secret-1", "1970", "source"] {
            assert!(!body.contains(word), "{provider}: {word} in {body}");
        }
    }
}

#[test]
fn private_fields_go_back_to_their_own_provider_alone() {
    let order = json!({ "order": [
        { "thought": { "type": "thinking", "thinking": "hm", "signature": "s" } },
        { "text": 1 },
        { "call": true },
    ] });
    let history = |provider: &str, secret: &Value| {
        vec![said("u"), with_private(answered("x", &[(0, "a")]), provider, secret.clone()), result(0, "r")]
    };
    let own = sent(&request("m", history("anthropic", &order)), "anthropic");
    assert_eq!(own["messages"][1]["content"][0], json!({ "type": "thinking", "thinking": "hm", "signature": "s" }));
    assert_eq!(own["messages"][1]["content"].as_array().map(Vec::len), Some(3));
    assert_eq!(check_anthropic(&own), Ok(()));
    let changed = history(
        "anthropic",
        &json!({ "order": [{ "thought": { "type": "thinking", "thinking": "hm", "signature": "s" } }, { "text": 99 }] }),
    );
    assert_eq!(check_anthropic(&sent(&request("m", changed), "anthropic")), Ok(()));

    let thought = json!({ "thought": "hm" });
    let field = |provider: &str, of: &str| {
        sent(&request("m", history(of, &thought)), provider)["messages"][1]["reasoning_content"].clone()
    };
    assert_eq!(field("deepseek", "deepseek"), json!("hm"));
    assert_eq!(field("deepseek", "moonshot"), Value::Null);
    assert_eq!(field("openai", "openai"), Value::Null);
    let tagged = sent(&request("m", history("minimax", &thought)), "minimax");
    assert_eq!(tagged["messages"][1]["content"], json!("<think>hm</think>x"));
    let signed = json!({ "extra_content": [{ "google": { "thought_signature": "s" } }] });
    let google = sent(&request("m", history("google", &signed)), "google");
    assert_eq!(google["messages"][1]["tool_calls"][0]["extra_content"], signed["extra_content"][0]);
}

#[test]
fn an_attachment_is_shown_as_the_model_can_take_it() {
    let attachments = vec![
        file("a.pdf", "application/pdf", "%PDF"),
        file("b.png", "image/png", "png"),
        file("c.txt", "text/plain; charset=utf-8", "text"),
        file("d.zip", "application/zip", "zip"),
        file("lost.png", "image/png", "png"),
    ];
    let input = Input { text: "read these".into(), attachments, source: Source::Task };
    let history = vec![Message::User { input, at: Timestamp::UNIX_EPOCH }];
    let shown = |provider: &str, model: &str| {
        let body = sent(&request(model, history.clone()), provider);
        let content = body["messages"][0]["content"].clone();
        let kinds: Vec<String> = content
            .as_array()
            .map(|parts| parts.iter().map(|part| part["type"].as_str().unwrap_or("?").to_owned()).collect())
            .unwrap_or_default();
        (kinds.join(" "), content)
    };
    let (kinds, content) = shown("openai", "gpt-5");
    assert_eq!(kinds, "file image_url text");
    assert_eq!(content[0]["file"]["file_data"], "data:application/pdf;base64,Y29udGVudA==");
    assert_eq!(content[1]["image_url"]["url"], "data:image/png;base64,Y29udGVudA==");
    let text = content[2]["text"].as_str().expect("text");
    assert!(
        text.contains("<file name=\"c.txt\"") && text.contains("cannot read it") && text.ends_with("read these"),
        "{text}"
    );
    let (kinds, content) = shown("anthropic", "claude-haiku-4-5");
    assert_eq!(kinds, "document image text");
    assert_eq!(content[0]["source"]["data"], "Y29udGVudA==");
    assert_eq!(shown("google", "gemini-2.5-pro").0, "image_url text");
    let (kinds, content) = shown("deepseek", "deepseek-v4-pro");
    let content = content.as_str().expect("text alone");
    assert_eq!(kinds, "");
    assert!(content.contains("the text of the PDF") && content.contains("sees no images"), "{content}");
}

#[test]
fn a_model_that_cannot_call_is_given_no_tools() {
    let mut request = request("gpt-5", vec![said("u")]);
    let parameters = serde_json::json!({ "type": "object" });
    request.tools = Tools::new(vec![ToolDeclaration { name: "a".into(), description: String::new(), parameters }]);
    for provider in ["openai", "anthropic"] {
        assert!(sent(&request, provider)["tools"].is_array());
        let settings = Preset::named(provider).expect("a preset").settings();
        let capabilities = Capabilities { tools: false, ..ModelTable::shipped().capabilities(provider, "m") };
        let parameters = Parameters {
            limit: LimitField::None,
            stream_options: false,
            effort: false,
            tool_choice: true,
            cache: false,
        };
        let bytes = body(&request, &Profile::new(&settings, &capabilities), &capabilities, parameters);
        assert!(!String::from_utf8_lossy(&bytes).contains("tool"), "{provider}");
    }
}

#[test]
fn mistrals_ids_have_nine_digits() {
    let body =
        sent(&request("mistral-large-latest", vec![said("u"), answered("", &[(7, "a")]), result(7, "r")]), "mistral");
    assert_eq!(body["messages"][1]["tool_calls"][0]["id"], "000000007");
    assert_eq!(body["messages"][2]["tool_call_id"], "000000007");
    assert_eq!(body["stream_options"], Value::Null);
}

#[test]
fn escaping_is_that_of_json() {
    let all: String = (0..0x250).filter_map(char::from_u32).chain("🦀\u{2028}\u{fffd}".chars()).collect();
    let mut text = String::new();
    push_quoted(&mut text, &all);
    assert_eq!(serde_json::from_str::<String>(&text).expect("JSON"), all);
}

/// Histories of any shape, also such as a crash or a cut leaves behind.
fn any_history() -> impl Strategy<Value = Vec<Message>> {
    let message = prop_oneof![
        ".{0,6}".prop_map(|text| said(&text)),
        (".{0,6}", prop::collection::btree_set(0_u32..12, 0..3)).prop_map(|(text, positions)| {
            let calls: Vec<(u32, &str)> = positions.into_iter().map(|position| (position, "a")).collect();
            answered(&text, &calls)
        }),
        (0_u32..12, ".{0,6}").prop_map(|(position, text)| result(position, &text)),
        Just(notice()),
    ];
    prop::collection::vec(message, 0..14).prop_map(|messages| {
        // A position is used for one call alone.
        let mut next = 0;
        let renumbered = |message: Message| match message {
            Message::Assistant { text, calls, .. } => {
                let calls: Vec<(u32, &str)> = calls
                    .iter()
                    .map(|_| {
                        next += 1;
                        (next - 1, "a")
                    })
                    .collect();
                answered(&text, &calls)
            }
            other => other,
        };
        messages.into_iter().map(renumbered).collect()
    })
}

proptest! {
    #[test]
    fn any_history_is_sent_well_formed(history in any_history(), cut in 0_usize..14, tail in prop::option::of("[a-z ]{0,4}")) {
        let mut prompt: Prompt = history.into_iter().collect();
        prompt.begin_at(cut, (cut % 2 == 0).then_some("a summary"));
        let mut request = Request::new("m", prompt.view());
        request.tail = tail.map(Arc::from);
        let good: Result<(), RequestFault> = Ok(());
        prop_assert_eq!(check_openai(&sent(&request, "openai"), true), good.clone());
        prop_assert_eq!(check_anthropic(&sent(&request, "anthropic")), good);
    }

    /// A history that grew piece by piece, with requests in between and a change of model, is sent as one that is
    /// encoded at once.
    #[test]
    fn pieces_equal_the_whole_encoded_anew(history in any_history(), looks in prop::collection::vec(0_usize..14, 0..4)) {
        let mut grown = Prompt::new();
        for (index, message) in history.iter().enumerate() {
            grown.push(message.clone());
            if looks.contains(&index) {
                sent(&Request::new("m", grown.view()), ["openai", "anthropic", "deepseek"][index % 3]);
            }
        }
        let whole: Prompt = history.into_iter().collect();
        for provider in ["openai", "anthropic", "deepseek"] {
            let of = |prompt: &Prompt| sent(&Request::new("m", prompt.view()), provider);
            prop_assert_eq!(of(&grown), of(&whole));
        }
    }
}
