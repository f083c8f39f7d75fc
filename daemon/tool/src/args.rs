//! Reads a tool's arguments: one declaration gives the schema, the check and its error texts.

use ow_model::{CallError, CallErrorKind, Span};
use ow_secret::{SecretName, Secrets};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

/// One argument of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arg {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    pub(crate) about: &'static str,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Need {
    Required,
    Optional,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// A text that the system takes: not empty, without zero bytes.
    Name,
    /// At least one text without zero bytes; the first is not empty.
    Argv,
    /// A text, or the name of a secret.
    Hidden,
    /// Texts or names of secrets, by name.
    HiddenMap,
    /// An address; its tool says of what kind.
    Url,
    /// One of these words, whatever their case.
    OneOf(&'static [&'static str]),
    /// A span of time: `90s`.
    Time,
    /// A whole number in these bounds.
    Count(u64, u64),
    /// True or false.
    Flag,
    /// Names, one or more.
    Names,
}

/// Checks `value` against the declaration.
pub(crate) fn check(tool: &str, declared: &[Arg], value: &Value) -> Result<(), String> {
    let Value::Object(args) = value else {
        return Err(format!("the arguments of `{tool}` must be a table, found {}", shown(value)));
    };
    for name in args.keys() {
        if declared.iter().all(|arg| arg.name != name) {
            let known: Vec<String> = declared.iter().map(|arg| format!("`{}`", arg.name)).collect();
            return Err(format!("`{tool}` has no argument `{name}`; it takes {}", known.join(", ")));
        }
    }
    for arg in declared {
        match args.get(arg.name) {
            Some(value) => arg
                .kind
                .check(value)
                .map_err(|expected| format!("argument `{}` of `{tool}`: expected {expected}", arg.name))?,
            None if arg.need == Need::Required => {
                return Err(format!("`{tool}` needs argument `{}`: {}", arg.name, arg.about));
            }
            None => {}
        }
    }
    Ok(())
}

/// The declaration as JSON Schema.
pub(crate) fn schema(declared: &[Arg]) -> Value {
    let properties: Map<String, Value> = declared
        .iter()
        .map(|arg| {
            let mut schema = arg.kind.schema();
            schema["description"] = arg.about.into();
            (arg.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> = declared.iter().filter(|arg| arg.need == Need::Required).map(|arg| arg.name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// Reads arguments that [`check`] accepts.
pub(crate) fn read<T: DeserializeOwned>(args: &Value) -> Result<T, CallError> {
    serde_json::from_value(args.clone())
        .map_err(|error| CallError { kind: CallErrorKind::BadArguments, message: format!("arguments: {error}") })
}

/// The secrets that the arguments name.
pub(crate) fn secrets_named(args: &Value) -> Vec<SecretName> {
    match args {
        Value::Object(map) => {
            let own = map.get("secret").and_then(Value::as_str).and_then(|name| name.parse().ok());
            own.into_iter().chain(map.values().flat_map(secrets_named)).collect()
        }
        Value::Array(list) => list.iter().flat_map(secrets_named).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![],
    }
}

impl Kind {
    fn check(self, value: &Value) -> Result<(), String> {
        match self {
            Self::Text => value.as_str().map(drop).ok_or_else(|| format!("a string, found {}", shown(value))),
            Self::OneOf(words) => match value.as_str() {
                Some(text) if words.iter().any(|word| word.eq_ignore_ascii_case(text)) => Ok(()),
                _ => Err(format!("one of {}, found {}", words.join(", "), shown(value))),
            },
            Self::Name | Self::Url => match value.as_str() {
                Some("") => Err("a string that is not empty".into()),
                Some(text) => without_zero(text),
                None => Err(format!("a string, found {}", shown(value))),
            },
            Self::Argv => {
                let wrong = || format!("a list of strings such as [\"df\", \"-h\"], found {}", shown(value));
                let list = value.as_array().ok_or_else(wrong)?;
                let texts: Vec<&str> = list.iter().map(Value::as_str).collect::<Option<_>>().ok_or_else(wrong)?;
                if texts.first().is_none_or(|program| program.is_empty()) {
                    return Err("a list that begins with a program's name".into());
                }
                texts.into_iter().try_for_each(without_zero)
            }
            Self::Hidden => check_hidden(value),
            Self::HiddenMap => {
                let wrong = || format!("a table of strings, found {}", shown(value));
                let map = value.as_object().ok_or_else(wrong)?;
                map.iter().try_for_each(|(name, value)| {
                    if name.is_empty() || name.contains(['=', '\0', '\n', '\r']) {
                        return Err(format!("names without `=` and line ends, found {name:?}"));
                    }
                    check_hidden(value).map_err(|expected| format!("for `{name}` {expected}"))
                })
            }
            Self::Time => match value.as_str().map(str::parse::<Span>) {
                Some(Ok(span)) if !span.is_zero() => Ok(()),
                _ => Err(format!("a duration such as \"90s\", found {}", shown(value))),
            },
            Self::Flag => value.as_bool().map(drop).ok_or_else(|| format!("true or false, found {}", shown(value))),
            Self::Names => {
                let wrong = || format!("a list of strings that are not empty, found {}", shown(value));
                let list = value.as_array().filter(|list| !list.is_empty()).ok_or_else(wrong)?;
                list.iter().try_for_each(|one| Self::Name.check(one).map_err(|_| wrong()))
            }
            Self::Count(least, most) => match value.as_u64() {
                Some(count) if (least..=most).contains(&count) => Ok(()),
                _ => Err(format!("a whole number from {least} to {most}, found {}", shown(value))),
            },
        }
    }

    fn schema(self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Time => json!({ "type": "string", "format": "duration" }),
            Self::Url => json!({ "type": "string", "format": "uri" }),
            Self::OneOf(words) => json!({ "type": "string", "enum": words }),
            Self::Name => json!({ "type": "string", "minLength": 1 }),
            Self::Argv => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
            Self::Hidden => hidden(),
            Self::HiddenMap => json!({ "type": "object", "additionalProperties": hidden() }),
            Self::Count(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Names => json!({ "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1 }),
        }
    }
}

fn hidden() -> Value {
    json!({ "anyOf": [
        { "type": "string" },
        {
            "type": "object",
            "properties": {
                "secret": { "type": "string", "description": "the name of a stored secret; never its value" },
                "prefix": { "type": "string", "description": "what stands before the value, such as \"Bearer \"" },
            },
            "required": ["secret"],
            "additionalProperties": false,
        },
    ] })
}

fn without_zero(text: &str) -> Result<(), String> {
    if text.contains('\0') { Err("a string without zero bytes".into()) } else { Ok(()) }
}

fn check_hidden(value: &Value) -> Result<(), String> {
    let wrong = || format!("a string or {{ secret = \"name\" }}, found {}", shown(value));
    match value {
        Value::String(text) => without_zero(text),
        Value::Object(map) => {
            if map.keys().any(|key| key != "secret" && key != "prefix") || map.values().any(|part| !part.is_string()) {
                return Err(wrong());
            }
            let name = map.get("secret").and_then(Value::as_str).ok_or_else(wrong)?;
            name.parse::<SecretName>().map(drop).map_err(|error| format!("a secret's name: {error}"))
        }
        _ => Err(wrong()),
    }
}

/// What a person wrote, short enough for a message.
fn shown(value: &Value) -> String {
    const LIMIT: usize = 60;
    let text = value.to_string();
    if text.chars().count() <= LIMIT {
        return text;
    }
    let mut cut: String = text.chars().take(LIMIT).collect();
    cut.push('…');
    cut
}

/// A text that may be a secret's: the arguments hold only its name.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum Hidden {
    Plain(String),
    Secret {
        secret: String,
        /// Stands before the value, as in `Bearer `.
        #[serde(default)]
        prefix: String,
    },
}

impl Hidden {
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self, Self::Secret { .. })
    }

    pub(crate) fn text(&self, secrets: &Secrets) -> Result<Zeroizing<String>, CallError> {
        match self {
            Self::Plain(text) => Ok(Zeroizing::new(text.clone())),
            Self::Secret { secret, prefix } => {
                let value = secret.parse().ok().and_then(|name| secrets.value(&name));
                let value = value.ok_or_else(|| unknown_secret(secret))?;
                Ok(Zeroizing::new(format!("{prefix}{}", value.expose())))
            }
        }
    }
}

pub(crate) fn unknown_secret(name: &str) -> CallError {
    CallError {
        kind: CallErrorKind::BadArguments,
        message: format!("no secret `{name}` is known; add it to secrets.toml or to the service's credentials"),
    }
}
