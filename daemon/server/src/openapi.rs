//! The OpenAPI document, made from the operations and types of the protocol. Only a test makes it: what is
//! served is the file that the test compares.

use ow_protocol::{ErrorReply, OPERATIONS, Operation, PageQuery, Query};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Operations that answer with something other than JSON or nothing.
const OTHER_ANSWERS: [(&str, &str, &str); 6] = [
    ("run_output", "text/plain", "The text, or its bytes as `application/octet-stream`"),
    ("show_sent", "application/json", "The body as the provider got it"),
    ("show_session_sent", "application/json", "The body as the provider got it"),
    ("stream", "text/event-stream", "Events, each an `EventEnvelope`; `gap` when some can no longer be told"),
    (
        "stream_session",
        "text/event-stream",
        "`message`: a `MessageView` with its `seq` as id; `state`: a `SessionView`; between them what is not kept: `text`, \
         `reasoning`, `tool-started`, `tool-output`, `waiting`, `turn-started`, `turn-ended`, `notice`, `lagged`",
    ),
    ("openapi", "application/json", "This document"),
];

fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = described(operation, &mut generator);
    }
    generator.subschema_for::<ow_protocol::EventEnvelope>();
    generator.subschema_for::<ow_protocol::MessageView>();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "owd control API",
            "version": ow_protocol::PROTOCOL_VERSION.to_string(),
            "license": { "name": "MIT OR Apache-2.0" },
            "description": "JSON over HTTP on owd's Unix socket and, when configured, on loopback TCP with a bearer key. \
                Every answer carries `X-Request-Id`; errors repeat it as `request_id`.",
        },
        "servers": [{ "url": "http://localhost" }],
        "security": [{}, { "key": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer", "description": "TCP only" } },
        },
    })
}

fn described(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let Operation { method: _, path, id, summary, query, request, answer } = operation;
    let mut described = json!({ "operationId": id, "summary": summary });
    let parameters: Vec<_> = path_parameters(path).chain(query_parameters(*query)).collect();
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if let Some(request) = request {
        described["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": request(generator) } } });
    }
    let other = OTHER_ANSWERS.iter().find(|(other, ..)| other == id);
    let success = match (answer, other) {
        (Some(answer), _) => (
            "200",
            json!({ "description": "Done", "content": { "application/json": { "schema": answer(generator) } } }),
        ),
        (None, Some((_, kind, description))) => {
            ("200", json!({ "description": description, "content": { *kind: {} } }))
        }
        (None, None) => ("204", json!({ "description": "Done" })),
    };
    let error = json!({
        "description": "An error; its code says which",
        "content": { "application/json": { "schema": generator.subschema_for::<ErrorReply>() } },
    });
    described["responses"] = json!({ success.0: success.1, "default": error });
    described
}

fn path_parameters(path: &'static str) -> impl Iterator<Item = Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
}

fn query_parameters(query: Query) -> Vec<Value> {
    match query {
        Query::None => vec![],
        Query::Named(names) => {
            names.iter().map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } })).collect()
        }
        Query::Page => {
            let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<PageQuery>();
            let fields = schema.get("properties").and_then(Value::as_object).expect("a struct has properties");
            let parameter = |(name, field): (&String, &Value)| {
                let integer = field["type"].as_array().is_some_and(|types| types.contains(&json!("integer")));
                let mut parameter = json!({ "name": name, "in": "query", "schema": { "type": if integer { "integer" } else { "string" } } });
                if let Some(description) = field.get("description") {
                    parameter["description"] = description.clone();
                }
                parameter
            };
            fields.iter().map(parameter).collect()
        }
    }
}

#[test]
fn the_document_in_the_repository_is_what_the_protocol_says() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    let made = format!("{:#}\n", document());
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(file, &made).expect("the document can be written");
    }
    let kept = std::fs::read_to_string(file).expect("the document is in the repository");
    assert!(
        kept == made,
        "daemon/server/openapi.json is stale; renew it with `UPDATE_OPENAPI=1 cargo test -p ow-server openapi`"
    );
}

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(Into::into));
                fields.values().for_each(|field| references(field, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = vec![];
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("a reference within the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}
