use super::*;

fn kind(status: u16, body: &str) -> ModelFailure {
    Answer::of_status(status, body.as_bytes()).kind
}

#[test]
fn each_vendors_errors_are_what_they_are() {
    use ModelFailure::{Auth, BadRequest, Garbage, Overflow, Quota, RateLimit, Refusal, Unavailable};
    for (vendor, status, body, expected) in [
        (
            "OpenAI",
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-a***b.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
            Auth,
        ),
        (
            "OpenAI",
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
            Quota,
        ),
        (
            "OpenAI",
            429,
            r#"{"error":{"message":"Rate limit reached for gpt-5 in organization org-x on tokens per min (TPM)","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
            RateLimit,
        ),
        (
            "OpenAI",
            400,
            r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            Overflow,
        ),
        (
            "OpenAI",
            404,
            r#"{"error":{"message":"The model `gpt-9` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
            Auth,
        ),
        (
            "OpenAI",
            400,
            r#"{"error":{"message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy.","type":"invalid_request_error","param":null,"code":"invalid_prompt"}}"#,
            Refusal,
        ),
        (
            "OpenAI",
            400,
            r#"{"error":{"message":"Invalid schema for function 'x'","type":"invalid_request_error","param":"tools[0].function.parameters","code":"invalid_function_parameters"}}"#,
            BadRequest,
        ),
        (
            "Anthropic",
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            Auth,
        ),
        (
            "Anthropic",
            403,
            r#"{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission to use the specified resource."}}"#,
            Auth,
        ),
        (
            "Anthropic",
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            Quota,
        ),
        (
            "Anthropic",
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            Overflow,
        ),
        (
            "Anthropic",
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            Overflow,
        ),
        (
            "Anthropic",
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Unavailable,
        ),
        (
            "Anthropic",
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.0: roles must alternate"}}"#,
            BadRequest,
        ),
        ("Anthropic", 404, r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#, Auth),
        (
            "Google",
            400,
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
            Auth,
        ),
        (
            "Google",
            429,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"21s"}]}}]"#,
            RateLimit,
        ),
        (
            "Google",
            400,
            r#"[{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
            Overflow,
        ),
        ("DeepSeek", 402, r#"{"error":{"message":"Insufficient Balance","type":"unknown_error"}}"#, Quota),
        ("DeepSeek", 400, r#"{"error":{"message":"Content Exists Risk","type":"invalid_request_error"}}"#, Refusal),
        (
            "Moonshot",
            429,
            r#"{"error":{"message":"Your account is suspended, please check your plan","type":"exceeded_current_quota_error"}}"#,
            Quota,
        ),
        (
            "Moonshot",
            429,
            r#"{"error":{"message":"The engine is currently overloaded, please try again later","type":"engine_overloaded_error"}}"#,
            RateLimit,
        ),
        (
            "Qwen",
            400,
            r#"{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content."}}"#,
            Refusal,
        ),
        (
            "Qwen",
            400,
            r#"{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}}"#,
            Quota,
        ),
        (
            "GLM",
            429,
            r#"{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}"#,
            Quota,
        ),
        (
            "Mistral",
            422,
            r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","x"]}]},"type":"invalid_request_error"}"#,
            BadRequest,
        ),
        ("Mistral", 401, r#"{"detail":"Unauthorized"}"#, Auth),
        (
            "Groq",
            413,
            r#"{"error":{"message":"Request too large for model","type":"tokens","code":"rate_limit_exceeded"}}"#,
            Overflow,
        ),
        ("OpenRouter", 402, r#"{"error":{"message":"This request requires more credits","code":402}}"#, Quota),
        (
            "OpenRouter",
            403,
            r#"{"error":{"message":"Input was flagged by moderation","code":403,"metadata":{"reasons":["x"]}}}"#,
            Refusal,
        ),
        (
            "llama.cpp",
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":4096}}"#,
            Overflow,
        ),
        (
            "llama.cpp",
            503,
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            Unavailable,
        ),
        ("Ollama", 404, r#"{"error":{"message":"model 'x' not found","type":"not_found_error"}}"#, Auth),
        (
            "vLLM",
            400,
            r#"{"object":"error","message":"This model's maximum context length is 8192 tokens.","type":"BadRequestError","code":400}"#,
            Overflow,
        ),
        ("a proxy", 502, "<html>Bad Gateway</html>", Unavailable),
        ("a web server", 404, "<html>Not Found</html>", BadRequest),
        ("a redirect", 302, "", Garbage),
        ("nobody", 500, "", Unavailable),
        ("nobody", 401, "", Auth),
        ("nobody", 400, "not JSON", BadRequest),
    ] {
        assert_eq!(kind(status, body), expected, "{vendor}: {status} {body}");
    }
}

#[test]
fn what_a_provider_says_is_shown_on_one_line_and_bounded() {
    let answer =
        Answer::of_status(400, b"{\"error\":{\"message\":\"one\\n two\\u001b[31m\",\"type\":\"t\",\"code\":\"c\"}}");
    assert_eq!((answer.message.as_str(), answer.code.as_str()), ("one two [31m", "c, t"));
    let long = Answer::of_status(400, "ä".repeat(10_000).as_bytes());
    assert_eq!(long.message.chars().count(), LONGEST_MESSAGE + 1);
    assert_eq!(Answer::of_status(502, b" <html>").message, "a web page instead of an answer");
}

#[test]
fn retry_after_is_read_as_seconds_and_as_a_date() {
    let now: Timestamp = "2026-11-30T10:00:00Z".parse().expect("an instant");
    let read = |value: &str, date: Option<&str>| retry_after(Some(value), None, date, now);
    assert_eq!(read("20", None), Some(Duration::from_secs(20)));
    assert_eq!(read(" 1.5 ", None), Some(Duration::from_millis(1500)));
    assert_eq!(read("Mon, 30 Nov 2026 10:00:30 GMT", None), Some(Duration::from_secs(30)));
    assert_eq!(read("Mon, 30 Nov 2026 09:00:00 GMT", None), Some(Duration::ZERO));
    let skewed = Some("Mon, 30 Nov 2026 10:00:20 GMT");
    assert_eq!(read("Mon, 30 Nov 2026 10:00:30 GMT", skewed), Some(Duration::from_secs(10)));
    assert_eq!([read("soon", None), read("-3", None), read("1e300", None)], [None; 3]);
    assert_eq!(retry_after(None, Some("250"), None, now), Some(Duration::from_millis(250)));
    assert_eq!(retry_after(None, None, None, now), None);
}
