use serde_json::{Value, json};

use crate::ToolSpec;

/// Arguments as somebody wrote them, with an example wherever a template decides what the value will be.
///
/// A template that is the whole string keeps the type of what fills it, so its text says nothing of whether it will
/// fit: a number, a list, a duration, an address. Texts that may hold anything stay as they are.
#[must_use]
pub fn as_if_filled(spec: &ToolSpec, args: &Value) -> Value {
    let Value::Object(fields) = args else { return args.clone() };
    let filled = fields.iter().map(|(name, value)| {
        let example = value.as_str().filter(|text| text.contains("{{")).and_then(|text| {
            let text = text.trim();
            let is_whole = text.starts_with("{{") && text.find("}}") == Some(text.len() - 2);
            example(&spec.schema["properties"][name], is_whole)
        });
        (name.clone(), example.unwrap_or_else(|| value.clone()))
    });
    Value::Object(filled.collect())
}

/// A value that fits; none where the template's own text does.
fn example(schema: &Value, is_whole: bool) -> Option<Value> {
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), Some("duration")) => Some(json!("1s")),
        (Some("string"), Some("uri")) => Some(json!("https://known-only-to-the-run.invalid/")),
        (Some("string"), _) if schema["enum"].is_array() => Some(schema["enum"][0].clone()),
        (Some("integer"), _) if is_whole => Some(schema.get("minimum").cloned().unwrap_or(json!(1))),
        (Some("array"), _) if is_whole => Some(json!(["x"])),
        (Some("object"), _) if is_whole => Some(json!({})),
        (Some("boolean"), _) if is_whole => Some(json!(true)),
        _ => None,
    }
}
