//! The part of JSON Schema that tools declare their arguments with.
//!
//! Ours rather than a library's: errors here are read by a model and must name the argument, what was found and what
//! would fit; and a keyword that is not known here is left to the tool itself, which checks its arguments anyway.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// `$ref` into `$defs`, and choices in choices, are followed so deep.
const DEEPEST: u32 = 64;

/// The first thing about `value` that does not fit `schema`, in words.
pub(super) fn misfit(value: &Value, schema: &Value) -> Option<String> {
    Check { root: schema }.check(value, schema, "", 0).err()
}

struct Check<'s> {
    root: &'s Value,
}

impl Check<'_> {
    fn check(&self, value: &Value, schema: &Value, at: &str, depth: u32) -> Result<(), String> {
        let schema = match schema {
            Value::Bool(false) => return Err(format!("{} is not allowed", place(at))),
            Value::Object(schema) => schema,
            _ => return Ok(()),
        };
        if depth > DEEPEST {
            return Err(format!("{} is nested too deep", place(at)));
        }
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        if let Some(target) = target.and_then(|target| self.root.pointer(target)) {
            self.check(value, target, at, depth + 1)?;
        }
        kind(value, schema, at)?;
        allowed(value, schema, at)?;
        self.choices(value, schema, at, depth)?;
        match value {
            Value::Object(fields) => self.object(fields, schema, at, depth),
            Value::Array(elements) => self.array(elements, schema, at, depth),
            Value::String(text) => {
                let length = text.chars().count();
                count(length, schema, ("minLength", "maxLength"), at, "characters")
            }
            Value::Number(number) => number.as_f64().map_or(Ok(()), |number| range(number, schema, at)),
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    fn choices(&self, value: &Value, schema: &Map<String, Value>, at: &str, depth: u32) -> Result<(), String> {
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.check(value, part, at, depth + 1)?;
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(forms) = schema.get(keyword).and_then(Value::as_array) else { continue };
            let misfits: Vec<String> =
                forms.iter().filter_map(|form| self.check(value, form, at, depth + 1).err()).collect();
            if misfits.len() == forms.len() {
                return Err(format!("{} fits none of its forms: {}", place(at), misfits.join("; or ")));
            }
            if keyword == "oneOf" && misfits.len() + 1 < forms.len() {
                return Err(format!("{} fits more than one of its forms, which exclude each other", place(at)));
            }
        }
        if let Some(form) = schema.get("not")
            && self.check(value, form, at, depth + 1).is_ok()
        {
            return Err(format!("{} has a form that is not allowed", place(at)));
        }
        Ok(())
    }

    fn object(
        &self,
        fields: &Map<String, Value>,
        schema: &Map<String, Value>,
        at: &str,
        depth: u32,
    ) -> Result<(), String> {
        let properties = schema.get("properties").and_then(Value::as_object);
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                return Err(format!("`{}` is missing", below(at, name)));
            }
        }
        for (name, value) in fields {
            let at = below(at, name);
            match (properties.and_then(|properties| properties.get(name)), schema.get("additionalProperties")) {
                (Some(property), _) => self.check(value, property, &at, depth + 1)?,
                (None, Some(Value::Bool(false))) => {
                    let known: Vec<String> =
                        properties.into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    return Err(format!("there is no argument `{at}`; there are: {known}"));
                }
                (None, Some(further)) => self.check(value, further, &at, depth + 1)?,
                (None, None) => {}
            }
        }
        count(fields.len(), schema, ("minProperties", "maxProperties"), at, "fields")
    }

    fn array(&self, elements: &[Value], schema: &Map<String, Value>, at: &str, depth: u32) -> Result<(), String> {
        count(elements.len(), schema, ("minItems", "maxItems"), at, "elements")?;
        if schema.get("uniqueItems") == Some(&Value::Bool(true))
            && let Some(twice) = (1..elements.len()).find(|index| elements[..*index].contains(&elements[*index]))
        {
            return Err(format!("{} holds {} twice", place(at), short(&elements[twice])));
        }
        if let Some(form) = schema.get("items") {
            for (index, element) in elements.iter().enumerate() {
                self.check(element, form, &format!("{at}[{index}]"), depth + 1)?;
            }
        }
        Ok(())
    }
}

fn kind(value: &Value, schema: &Map<String, Value>, at: &str) -> Result<(), String> {
    let names: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    if names.iter().any(|name| is_a(value, name)) {
        return Ok(());
    }
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    Err(format!("{} must be of type {}, found the {found} {}", place(at), names.join(" or "), short(value)))
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => {
            value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(|number| number.trunc().total_cmp(&number).is_eq())
        }
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn allowed(value: &Value, schema: &Map<String, Value>, at: &str) -> Result<(), String> {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return Err(format!("{} must be one of {}, found {}", place(at), choices.join(", "), short(value)));
    }
    match schema.get("const") {
        Some(only) if only != value => Err(format!("{} must be {only}, found {}", place(at), short(value))),
        _ => Ok(()),
    }
}

fn range(found: f64, schema: &Map<String, Value>, at: &str) -> Result<(), String> {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let mut wrong = String::new();
    if let Some(least) = limit("minimum").filter(|least| found < *least) {
        let _ = write!(wrong, "at least {least}");
    } else if let Some(most) = limit("maximum").filter(|most| found > *most) {
        let _ = write!(wrong, "at most {most}");
    } else if let Some(least) = limit("exclusiveMinimum").filter(|least| found <= *least) {
        let _ = write!(wrong, "more than {least}");
    } else if let Some(most) = limit("exclusiveMaximum").filter(|most| found >= *most) {
        let _ = write!(wrong, "less than {most}");
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{} must be {wrong}, found {found}", place(at))) }
}

fn count(
    found: usize,
    schema: &Map<String, Value>,
    (least, most): (&str, &str),
    at: &str,
    what: &str,
) -> Result<(), String> {
    let limit = |name: &str| schema.get(name).and_then(Value::as_u64);
    if let Some(least) = limit(least).filter(|least| (found as u64) < *least) {
        return Err(format!("{} must have at least {least} {what}, found {found}", place(at)));
    }
    if let Some(most) = limit(most).filter(|most| found as u64 > *most) {
        return Err(format!("{} may have at most {most} {what}, found {found}", place(at)));
    }
    Ok(())
}

fn place(at: &str) -> String {
    if at.is_empty() { "the arguments".into() } else { format!("`{at}`") }
}

fn below(at: &str, name: &str) -> String {
    if at.is_empty() { name.into() } else { format!("{at}.{name}") }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, value: &Value, expected: Option<&str>) {
        assert_eq!(misfit(value, schema).as_deref(), expected, "{value}");
    }

    #[test]
    fn what_does_not_fit_is_named_with_what_would() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "minLength": 1 },
                "limit": { "type": "integer", "minimum": 1, "maximum": 2000 },
                "how": { "enum": ["all", "first"] },
                "edits": { "type": "array", "items": { "$ref": "#/$defs/edit" }, "minItems": 1 },
            },
            "required": ["path"],
            "additionalProperties": false,
            "$defs": { "edit": { "type": "object", "required": ["old"] } },
        });
        check(&schema, &json!({ "path": "a", "limit": 2.0, "how": "all", "edits": [{ "old": "x" }] }), None);
        check(&schema, &json!({}), Some("`path` is missing"));
        check(&schema, &json!({ "path": 3 }), Some("`path` must be of type string, found the number 3"));
        check(&schema, &json!({ "path": "" }), Some("`path` must have at least 1 characters, found 0"));
        check(&schema, &json!({ "path": "a", "limit": 0 }), Some("`limit` must be at least 1, found 0"));
        check(
            &schema,
            &json!({ "path": "a", "limit": "5" }),
            Some("`limit` must be of type integer, found the string \"5\""),
        );
        check(
            &schema,
            &json!({ "path": "a", "how": "some" }),
            Some("`how` must be one of \"all\", \"first\", found \"some\""),
        );
        check(&schema, &json!({ "path": "a", "edits": [{}] }), Some("`edits[0].old` is missing"));
        check(
            &schema,
            &json!({ "path": "a", "file": 1 }),
            Some("there is no argument `file`; there are: `edits`, `how`, `limit`, `path`"),
        );
    }

    #[test]
    fn one_of_takes_exactly_one_form() {
        let schema = json!({ "oneOf": [
            { "type": "object", "required": ["argv"] },
            { "type": "object", "required": ["command"] },
        ] });
        check(&schema, &json!({ "argv": [] }), None);
        check(
            &schema,
            &json!({}),
            Some("the arguments fits none of its forms: `argv` is missing; or `command` is missing"),
        );
        check(
            &schema,
            &json!({ "argv": [], "command": "" }),
            Some("the arguments fits more than one of its forms, which exclude each other"),
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        check(&json!({ "$ref": "#" }), &json!({}), Some("the arguments is nested too deep"));
    }
}
