use ow_test_support::Scratch;
use ow_test_support::model_server::ModelServer;
use serde_json::Value;

/// A configuration by which agents speak to this model; `more` follows the provider's own keys.
#[must_use]
pub fn model_config(model: &ModelServer, more: &str) -> String {
    let url = model.url();
    format!("[agent]\nmodel = \"stub:small\"\n\n[provider.stub]\nbase-url = \"{url}\"\nwire = \"openai\"\n{more}")
}

/// A home whose agents speak to this model.
#[must_use]
pub fn with_model(model: &ModelServer) -> Scratch {
    let scratch = Scratch::new();
    scratch.config(&model_config(model, ""));
    scratch
}

/// The results of calls that a request to a model holds, in order.
///
/// # Panics
///
/// When it is no request of a chat.
#[must_use]
pub fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages");
    let tools = messages.iter().filter(|message| message["role"] == "tool");
    tools.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}
