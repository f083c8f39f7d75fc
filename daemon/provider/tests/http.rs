//! A provider over real connections, against a server that follows the vendors' formats.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use ow_clock::Clock;
use ow_model::{Finish, Input, Message, ModelFailure, Source, Usage};
use ow_provider::{
    Completion, CompletionError, Delta, Effort, Keys, ModelError, Progress, Prompt, ProviderOverride, Request,
    RetryPolicy, Router, RouterConfig, Wire,
};
use ow_secret::SecretValue;
use ow_test_support::model_server::{Gate, ModelReply, ModelResponse, ModelServer};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-test-0123456789";

/// Waits that a test can bear; the proportions are those of the real policy.
const QUICK: RetryPolicy = RetryPolicy {
    attempts: 4,
    attempts_before_failover: 2,
    first: Duration::from_millis(4),
    longest: Duration::from_millis(50),
    patience: Duration::from_mins(5),
};

struct World {
    server: ModelServer,
    router: Router,
}

fn provider(name: &str, server: &ModelServer, wire: Wire) -> ProviderOverride {
    ProviderOverride {
        name: name.into(),
        base_url: Some(server.url()),
        wire: Some(wire),
        key: Some("test_key".into()),
        silence: Some(Duration::from_secs(20)),
    }
}

fn router(providers: Vec<ProviderOverride>) -> Router {
    let config = RouterConfig { default_provider: "here".into(), providers, retry: QUICK, ..RouterConfig::default() };
    let keys = Keys::new(|name| (name == "test_key").then(|| SecretValue::new(KEY.into())));
    Router::new(config, keys, Clock::system()).expect("a router")
}

/// `here` speaks OpenAI's format and `there` Anthropic's, at one server.
fn world() -> World {
    let server = ModelServer::start();
    let providers = vec![provider("here", &server, Wire::OpenAi), provider("there", &server, Wire::Anthropic)];
    let router = router(providers);
    World { server, router }
}

fn said(text: &str) -> Message {
    let input = Input { text: text.into(), attachments: vec![], source: Source::Task };
    Message::User { input, at: Timestamp::UNIX_EPOCH }
}

fn request() -> Request {
    Request::new("", [said("hello")].into_iter().collect::<Prompt>().view())
}

impl World {
    async fn ask(&self, goals: &[&str]) -> (Result<Completion, CompletionError>, Vec<String>) {
        ask(&self.router, goals, &request(), &CancellationToken::new()).await
    }

    async fn fails(&self, goals: &[&str]) -> (ModelError, Vec<String>) {
        match self.ask(goals).await {
            (Err(CompletionError::Failed(error)), told) => (error, told),
            (other, _) => panic!("{other:?}"),
        }
    }
}

/// The completion with what was told on the way.
async fn ask(
    router: &Router,
    goals: &[&str],
    request: &Request,
    cancel: &CancellationToken,
) -> (Result<Completion, CompletionError>, Vec<String>) {
    let goals: Vec<String> = goals.iter().map(|goal| (*goal).to_owned()).collect();
    let told = Mutex::new(vec![]);
    let mut progress = |progress: Progress<'_>| {
        told.lock().expect("whole").push(match progress {
            Progress::Delta(Delta::Text(text)) => format!("text {text}"),
            Progress::Delta(Delta::Reasoning(text)) => format!("thought {text}"),
            Progress::Delta(Delta::CallStarted { name, .. }) => format!("call {name}"),
            Progress::Waiting { model, attempt, error, .. } => format!("wait {model} {attempt} {:?}", error.kind),
            Progress::Switched { from, to, .. } => format!("switch {from} {to}"),
        });
    };
    let result = router.asking(&goals, request.clone()).complete(&mut progress, cancel).await;
    (result, told.into_inner().expect("whole"))
}

fn look_up() -> ModelReply {
    let mut reply = ModelReply::calls([("read", json!({ "path": "ä.txt" })), ("list", json!({}))]);
    reply.text = "I look.".into();
    reply.reasoning("hm").usage(120, 20, 30).in_pieces(2)
}

#[tokio::test]
async fn a_reply_comes_whole_over_both_formats_in_any_chunks() {
    let world = world();
    for (goal, model) in [("here:m", "here:m"), ("there:claude-x", "there:claude-x"), ("m", "here:m")] {
        for size in [1, 7, 100_000] {
            world.server.push(ModelResponse::from(look_up()).in_chunks_of(size));
            let (completion, told) = world.ask(&[goal]).await;
            let Completion { reply, sent } = completion.expect("a reply");
            assert_eq!((reply.text.as_str(), reply.reasoning.as_deref()), ("I look.", Some("hm")));
            assert_eq!((reply.model.as_str(), reply.finish), (model, Finish::ToolCalls));
            assert_eq!(reply.usage, Some(Usage { input: 120, cached: 20, output: 30 }));
            let calls: Vec<_> = reply.calls.iter().map(|call| (&*call.name, &*call.arguments)).collect();
            assert_eq!(calls, [("read", r#"{"path":"ä.txt"}"#), ("list", "{}")]);
            assert_eq!(told.iter().filter(|told| told.starts_with("call")).count(), 2);
            assert_eq!(world.server.last().body, sent, "byte for byte");
        }
    }
}

#[tokio::test]
async fn the_key_goes_where_each_format_wants_it() {
    let world = world();
    world.server.answer(|_| ModelReply::text("yes").into());
    world.ask(&["here:m"]).await.0.expect("a reply");
    let chat = world.server.last();
    assert_eq!(
        (chat.path.as_str(), chat.header("authorization")),
        ("/v1/chat/completions", Some("Bearer sk-test-0123456789"))
    );
    world.ask(&["there:m"]).await.0.expect("a reply");
    let message = world.server.last();
    assert_eq!((message.path.as_str(), message.header("x-api-key")), ("/v1/messages", Some(KEY)));
    assert_eq!(message.header("anthropic-version"), Some("2023-06-01"));
}

#[tokio::test]
async fn without_its_key_a_provider_is_not_even_asked() {
    let server = ModelServer::start();
    let mut here = provider("here", &server, Wire::OpenAi);
    here.key = Some("other_key".into());
    let router = router(vec![here]);
    let (result, _) = ask(&router, &["here:m"], &request(), &CancellationToken::new()).await;
    let Err(CompletionError::Failed(error)) = result else { panic!("{result:?}") };
    assert_eq!(error.kind, ModelFailure::Auth);
    assert_eq!(
        error.message,
        "`here` needs a key and there is none; store it with: owctl secret set other_key (or set $other_key)"
    );
    assert_eq!(server.seen(), 0);
    assert!(!router.has_key("here") && router.has_key("ollama") && !router.has_key("openai"));
}

#[tokio::test]
async fn loop_19_an_overloaded_model_is_tried_again_and_then_another() {
    let world = world();
    for _ in 0..2 {
        world.server.push(ModelResponse::error(529, "Overloaded"));
    }
    world.server.push(ModelReply::text("from the other"));
    let (completion, told) = world.ask(&["there:claude", "here:m"]).await;
    assert_eq!(completion.expect("a reply").reply.text, "from the other");
    assert_eq!(told, ["wait there:claude 1 Unavailable", "switch there:claude here:m", "text from the other"]);
}

#[tokio::test]
async fn loop_23_a_bad_request_is_not_repeated_and_not_handed_on() {
    let world = world();
    world.server.push(ModelResponse::error(400, "Invalid schema for function 'x'"));
    let (error, told) = world.fails(&["here:m", "there:m"]).await;
    assert_eq!((error.kind, error.status, told.len()), (ModelFailure::BadRequest, Some(400), 0));
    assert_eq!(error.message, "`here` answered 400 (invalid_request_error): Invalid schema for function 'x'");
    assert_eq!(world.server.seen(), 1);
    assert_eq!(error.sent.expect("what was sent"), world.server.last().body);
}

#[tokio::test]
async fn what_no_repetition_mends_ends_as_what_it_is_and_says_what_to_do() {
    let world = world();
    for (status, message, kind, remedy) in [
        (
            401,
            "invalid x-api-key",
            ModelFailure::Auth,
            "; store a key that is valid for this model: owctl secret set test_key",
        ),
        (402, "pay", ModelFailure::Quota, "; raise the limit or pay the bill of that account, or choose another model"),
        (403, "no", ModelFailure::Auth, "; store a key that is valid for this model: owctl secret set test_key"),
        (
            404,
            "no such model",
            ModelFailure::Auth,
            "; choose a model that it has and that the key may use: owctl model list",
        ),
        (413, "too large", ModelFailure::Overflow, ""),
        (400, "prompt is too long: 2 tokens > 1 maximum", ModelFailure::Overflow, ""),
    ] {
        world.server.push(ModelResponse::error(status, message));
        let (error, told) = world.fails(&["here:m", "there:m"]).await;
        assert_eq!((error.kind, told.len()), (kind, 0), "{status}");
        assert!(error.message.ends_with(&format!(": {message}{remedy}")), "{}", error.message);
    }
}

#[tokio::test]
async fn a_key_never_shows_in_an_error() {
    let world = world();
    world.server.push(ModelResponse::error(401, &format!("Incorrect API key provided: {KEY}")));
    let (error, _) = world.fails(&["here:m"]).await;
    assert!(error.message.contains("[redacted]") && !format!("{error:?}").contains(KEY), "{error:?}");
}

#[tokio::test]
async fn a_provider_that_says_when_to_come_back_is_not_asked_before() {
    let world = world();
    world.server.push(ModelResponse::error(429, "slow down").header("retry-after", "0.3"));
    world.server.push(ModelReply::text("now"));
    let began = ow_test_support::monotonic();
    let (completion, told) = world.ask(&["here:m"]).await;
    assert_eq!(completion.expect("a reply").reply.text, "now");
    assert_eq!(told, ["wait here:m 1 RateLimit", "text now"]);
    assert!(ow_test_support::monotonic().saturating_sub(began) >= Duration::from_millis(300));
}

#[tokio::test]
async fn retries_used_up_keep_the_best_text_so_far() {
    let world = world();
    let text = "a long beginning of an answer".repeat(4);
    for cut in [900, 2000, 300, 1000] {
        world.server.push(ModelResponse::from(ModelReply::text(text.as_str()).in_pieces(3)).cut_after(cut));
    }
    let (error, told) = world.fails(&["here:m"]).await;
    assert_eq!((error.kind, world.server.seen()), (ModelFailure::Unavailable, 4));
    assert_eq!(told.iter().filter(|told| told.starts_with("wait")).count(), 3);
    let partial = error.partial.expect("text");
    assert!(text.starts_with(&partial) && partial.len() > 9, "{partial}");
    assert!(error.message.starts_with("`here`: the connection broke in the middle of the reply"), "{}", error.message);
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_unreachable() {
    let address = ModelServer::start().address();
    let mut gone = provider("here", &ModelServer::start(), Wire::OpenAi);
    gone.base_url = Some(format!("http://{address}/v1"));
    let router = router(vec![gone]);
    let (result, told) = ask(&router, &["here:m"], &request(), &CancellationToken::new()).await;
    let Err(CompletionError::Failed(error)) = result else { panic!("{result:?}") };
    assert_eq!((error.kind, told.len()), (ModelFailure::Unreachable, 3));
    assert!(
        error.message.starts_with(&format!("`here` cannot be reached at http://{address}/v1: ")),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn silence_is_a_failure_after_its_limit() {
    let server = ModelServer::start();
    let mut here = provider("here", &server, Wire::OpenAi);
    here.silence = Some(Duration::from_millis(200));
    let router = router(vec![here]);
    let whole = ModelResponse::from(ModelReply::text("never more").in_pieces(1));
    server.answer(move |_| whole.clone().hang_after(700));
    let (result, _) = ask(&router, &["here:m"], &request(), &CancellationToken::new()).await;
    let Err(CompletionError::Failed(error)) = result else { panic!("{result:?}") };
    let told = "`here` was silent for 200ms; give it longer in owd.toml: [provider.here] silence = \"10m\", or name another \
                model to fail over to";
    assert_eq!((error.kind, error.message.as_str()), (ModelFailure::Unavailable, told));
    assert!(error.partial.is_some_and(|partial| "never more".starts_with(&partial)));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_closes_the_connection_and_keeps_the_text() {
    let world = world();
    world.server.push(ModelResponse::from(ModelReply::text("half of it")).hang_after(600));
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let goals = vec!["here:m".to_owned()];
    let mut progress = |progress: Progress<'_>| {
        if matches!(progress, Progress::Delta(Delta::Text(_))) {
            stop.cancel();
        }
    };
    let result = world.router.asking(&goals, request()).complete(&mut progress, &cancel).await;
    assert_eq!(result, Err(CompletionError::Cancelled { partial: Some("half of it".into()) }));
    let request = world.server.last();
    ow_test_support::until("the connection is closed", || request.was_abandoned().then_some(()));

    // Before anything has come, and while waiting for the next attempt, it works too.
    let gate = Gate::new();
    world.server.push(ModelResponse::from(ModelReply::text("late")).after(&gate));
    let cancel = CancellationToken::new();
    let request = self::request();
    let (result, ()) = tokio::join!(ask(&world.router, &["here:m"], &request, &cancel), async {
        while world.server.seen() < 2 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!(result.0, Err(CompletionError::Cancelled { partial: None }));
    gate.open();
}

#[tokio::test]
async fn a_refused_parameter_is_left_out_and_not_sent_again() {
    let world = world();
    world.server.answer(|request| {
        let body = request.json();
        if body["max_tokens"].is_u64() {
            return ModelResponse::error(
                400,
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            );
        }
        if body["reasoning_effort"].is_string() {
            return ModelResponse::error(400, "Unrecognized request argument supplied: reasoning_effort");
        }
        if body["stream_options"].is_object() {
            return ModelResponse::error(422, "stream_options: Extra inputs are not permitted");
        }
        ModelReply::text("fine").into()
    });
    let mut request = request();
    request.max_output = Some(500);
    request.effort = Some(Effort::High);
    let (completion, told) = ask(&world.router, &["here:m"], &request, &CancellationToken::new()).await;
    assert_eq!(completion.expect("a reply").reply.text, "fine");
    assert_eq!((told, world.server.seen()), (vec!["text fine".to_owned()], 4));
    assert_eq!(world.server.last().json()["max_completion_tokens"], 500);
    let (completion, _) = ask(&world.router, &["here:m"], &request, &CancellationToken::new()).await;
    completion.expect("a reply");
    assert_eq!(world.server.seen(), 5);
}

#[tokio::test]
async fn a_parameter_that_is_refused_for_ever_is_given_up() {
    let world = world();
    world.server.answer(|_| ModelResponse::error(400, "max_tokens and max_completion_tokens are not supported"));
    let mut request = request();
    request.max_output = Some(500);
    let (result, _) = ask(&world.router, &["here:m"], &request, &CancellationToken::new()).await;
    assert!(matches!(result, Err(CompletionError::Failed(error)) if error.kind == ModelFailure::BadRequest));
    assert!(world.server.seen() <= 4);
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let world = world();
    let chat = json!({
        "object": "chat.completion",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "at once" } }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 2 },
    });
    world.server.push(ModelResponse::whole(200, chat.to_string()));
    let reply = world.ask(&["here:m"]).await.0.expect("a reply").reply;
    assert_eq!((reply.text.as_str(), reply.usage), ("at once", Some(Usage { input: 5, cached: 0, output: 2 })));
    let message = json!({
        "type": "message", "stop_reason": "tool_use", "usage": { "input_tokens": 5, "output_tokens": 2 },
        "content": [{ "type": "tool_use", "id": "t", "name": "read", "input": { "a": 1 } }],
    });
    world.server.push(ModelResponse::whole(200, message.to_string()));
    let reply = world.ask(&["there:m"]).await.0.expect("a reply").reply;
    assert_eq!((reply.calls[0].arguments.as_str(), reply.finish), (r#"{"a":1}"#, Finish::ToolCalls));
    world.server.push(ModelResponse::whole(200, r#"{"error":{"message":"Overloaded","type":"overloaded_error"}}"#));
    world.server.push(ModelReply::text("again"));
    assert_eq!(world.ask(&["here:m"]).await.0.expect("a reply").reply.text, "again");
}

#[tokio::test]
async fn garbage_is_told_as_such() {
    let world = world();
    let page = ModelResponse::whole(200, "<html>hello</html>").header("content-type", "text/html");
    world.server.answer(move |_| page.clone());
    let (error, told) = world.fails(&["here:m"]).await;
    let url = world.server.url();
    assert_eq!((error.kind, told.len()), (ModelFailure::Garbage, 1));
    assert_eq!(error.message, format!("`here`: a web page instead of an answer; is `{url}` the right base-url?"));
    world.server.answer(|_| ModelResponse::stream("data: lorem ipsum\n\n"));
    let (error, told) = world.fails(&["here:m"]).await;
    assert_eq!((error.kind, told.len()), (ModelFailure::Garbage, 1));
    assert_eq!(
        error.message,
        format!("`here`: an event that is not JSON: `lorem ipsum`; is `{url}` the right base-url?")
    );
    // A page that is sent under another name holds no event at all.
    let page = ModelResponse::whole(200, "<html>hello</html>").header("content-type", "text/plain");
    world.server.answer(move |_| page.clone());
    let (error, told) = world.fails(&["here:m"]).await;
    assert_eq!((error.kind, told.len()), (ModelFailure::Garbage, 1));
    assert_eq!(
        error.message,
        format!("`here`: an answer that is not JSON: `<html>hello</html>`; is `{url}` the right base-url?")
    );
}

#[tokio::test]
async fn ten_megabytes_and_two_thousand_calls_are_the_bounds() {
    let world = world();
    let long = ModelReply::text("x".repeat(10_000_001));
    world.server.answer(move |_| long.clone().into());
    let remedy = "none of it was used; ask for less at a time, or choose another model";
    let (error, told) = world.fails(&["here:m"]).await;
    // What came is paid for; the same model is not asked for as much again.
    assert!(error.kind == ModelFailure::TooLarge && !told.iter().any(|told| told.starts_with("wait")));
    assert_eq!(error.message, format!("`here`: the reply is longer than 10000000 bytes; {remedy}"));
    let whole = json!({ "choices": [{ "message": { "content": "x".repeat(20_000_001) }, "finish_reason": "stop" }] });
    let whole = ModelResponse::whole(200, whole.to_string());
    world.server.answer(move |_| whole.clone());
    assert_eq!(world.fails(&["here:m"]).await.0.message, error.message);
    for (count, is_fine) in [(2000, true), (2001, false)] {
        let many = ModelReply::calls((0..count).map(|_| ("now", json!({}))));
        world.server.answer(move |_| many.clone().into());
        let (completion, _) = world.ask(&["here:m"]).await;
        match completion {
            Ok(completion) => assert_eq!((completion.reply.calls.len(), is_fine), (count, true)),
            Err(error) => {
                assert!(!is_fine);
                assert_eq!(error.to_string(), format!("`here`: the reply holds more than 2000 calls; {remedy}"));
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_neither_ends_nor_says_so_is_not_waited_for() {
    let world = world();
    let stream = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n";
    world.server.push(ModelResponse::stream(format!("{stream}: more")).hang_after(stream.len()));
    assert_eq!(world.ask(&["here:m"]).await.0.expect("a reply").reply.text, "x");
}

#[tokio::test]
async fn a_name_is_understood_as_a_person_means_it() {
    let World { server, router } = world();
    let resolve = |goal: &str| {
        let found = router.resolve(goal);
        let warnings: Vec<String> =
            found.warnings.iter().map(|warning| warning.to_string().chars().take(40).collect()).collect();
        (found.name(), warnings.join("|"))
    };
    let plain = |name: &str| (name.to_owned(), String::new());
    assert_eq!(resolve("openai:gpt-5"), plain("openai:gpt-5"));
    assert_eq!(resolve("gemini:gemini-2.5-pro"), plain("google:gemini-2.5-pro"));
    assert_eq!(resolve("openrouter:z-ai/glm-5.2:free"), plain("openrouter:z-ai/glm-5.2:free"));
    let unknown = |name: &str| format!("`{name}` is not in the table of models").chars().take(40).collect::<String>();
    assert_eq!(resolve("gpt-5"), ("here:gpt-5".into(), unknown("here:gpt-5")));
    assert_eq!(resolve("ollama:x:7b"), ("ollama:x:7b".into(), unknown("ollama:x:7b")));
    let (name, warnings) = resolve("qwen2.5-coder:32b");
    assert_eq!(name, "here:qwen2.5-coder:32b");
    assert!(warnings.starts_with("`qwen2.5-coder` is no known provider"), "{warnings}");
    drop(server);
}

#[tokio::test]
async fn a_new_configuration_and_a_new_key_count_at_once() {
    let (one, other) = (ModelServer::start(), ModelServer::start());
    one.answer(|_| ModelReply::text("one").into());
    other.answer(|_| ModelReply::text("other").into());
    let key = Arc::new(Mutex::new("sk-first".to_owned()));
    let config = |server: &ModelServer| RouterConfig {
        default_provider: "here".into(),
        providers: vec![provider("here", server, Wire::OpenAi)],
        retry: QUICK,
        ..RouterConfig::default()
    };
    let held = Arc::clone(&key);
    let keys = Keys::new(move |_| Some(SecretValue::new(held.lock().expect("whole").clone())));
    let router = Router::new(config(&one), keys, Clock::system()).expect("a router");
    let ask =
        async || ask(&router, &["here:m"], &request(), &CancellationToken::new()).await.0.expect("a reply").reply.text;
    assert_eq!(ask().await, "one");
    *key.lock().expect("whole") = "sk-second".into();
    assert_eq!(ask().await, "one");
    assert_eq!(one.last().header("authorization"), Some("Bearer sk-second"));
    router.reconfigure(config(&other)).expect("fits");
    assert_eq!(ask().await, "other");
    let wrong = RouterConfig { default_provider: "nowhere".into(), ..config(&one) };
    assert!(router.reconfigure(wrong).is_err());
    assert_eq!(ask().await, "other", "a wrong configuration changes nothing");
    // What was put together before is what goes out, and where it was to go.
    let asking = router.asking(&["here:m".to_owned()], request());
    let body = asking.body().expect("its provider can be spoken to").clone();
    router.reconfigure(config(&one)).expect("fits");
    let completion = asking.complete(&mut |_| {}, &CancellationToken::new()).await.expect("a reply");
    assert_eq!((completion.reply.text.as_str(), &completion.sent), ("other", &body));
    assert_eq!(other.last().body, body);
}

#[tokio::test]
async fn a_scripted_provider_stands_in_for_a_real_one() {
    use ow_provider::scripted::{Act, Scripted, calls, text};
    let router = router(vec![provider("here", &ModelServer::start(), Wire::OpenAi)]);
    let acts = [
        Act::Fail(ModelError::new(ModelFailure::Unavailable, "down").with_partial("par")),
        Act::Reply(calls([("read", json!({ "a": 1 }))])),
        Act::Reply(text("done")),
    ];
    let scripted = Scripted::new("fake", acts);
    router.mount("fake", scripted.clone());
    let (completion, told) = ask(&router, &["fake:m"], &request(), &CancellationToken::new()).await;
    let reply = completion.expect("a reply").reply;
    assert_eq!((reply.model.as_str(), reply.finish), ("fake:m", Finish::ToolCalls));
    assert_eq!(told, ["text par", "wait fake:m 1 Unavailable", "call read"]);
    let (completion, _) = ask(&router, &["fake:m"], &request(), &CancellationToken::new()).await;
    assert_eq!(completion.expect("a reply").reply.text, "done");
    let asked = scripted.asked();
    assert_eq!((asked.len(), asked[0].json()["messages"][0]["content"].as_str()), (3, Some("hello")));
}
