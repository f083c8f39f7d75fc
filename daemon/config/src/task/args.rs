//! A step's arguments: TOML to JSON, each string checked as a template.

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::DeValue;

use crate::document::{Document, Place};
use crate::secret::{is_secret_by_name, looks_like_secret};
use crate::template::{self, Template, TemplateError};

const SECRET_REMEDY: &str =
    "keep it with `owctl secret set NAME` and name it here, as `{ secret = \"name\" }` in `env` or `headers`";

/// What the steps save, for checking the names in templates. A step that saves nothing has an empty name here.
pub(super) struct Names<'s> {
    /// Names that earlier steps save.
    pub(super) saved: &'s [String],
    /// Names that this step and later ones save.
    pub(super) later: &'s [String],
}

/// Converts the arguments, noting every fault at the string where it is.
pub(super) fn convert(
    document: &Document<'_>,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    names: &Names<'_>,
) -> Option<Value> {
    let place = Place { key: key.into(), span: value.span() };
    match value.get_ref() {
        DeValue::String(text) => {
            let field = key.rsplit('.').next().unwrap_or_default();
            if looks_like_secret(text) || is_secret_by_name(field, text) {
                let place = Place { span: value.span(), ..place };
                document.fault_redacted(&place, "looks like a secret", SECRET_REMEDY);
                return None;
            }
            match Template::parse(text) {
                Ok(template) => check_names(document, &place, template.names(), names)?,
                Err(error) => {
                    note(document, &place, &error);
                    return None;
                }
            }
            Some(Value::String(text.to_string()))
        }
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
            if number.is_none() {
                document.fault(&place, "a number of more than 64 bits", "write it as a text in quotes");
            }
            number.map(Value::from)
        }
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(serde_json::Number::from_f64);
            if number.is_none() {
                document.fault(&place, "not a finite number", "write a number");
            }
            number.map(Value::Number)
        }
        DeValue::Boolean(flag) => Some(Value::Bool(*flag)),
        DeValue::Datetime(datetime) => Some(Value::String(datetime.to_string())),
        DeValue::Array(elements) => {
            let converted: Vec<Option<Value>> = elements
                .iter()
                .enumerate()
                .map(|(index, element)| convert(document, &format!("{key}[{}]", index + 1), element, names))
                .collect();
            converted.into_iter().collect::<Option<Vec<_>>>().map(Value::Array)
        }
        DeValue::Table(fields) => {
            let mut converted = Map::new();
            let mut whole = true;
            for (name, field) in fields {
                if name.get_ref().contains("{{") {
                    let place = Place { key: format!("{key}.{name}", name = name.get_ref()), span: name.span() };
                    document.fault_without_value(&place, "a key cannot be a template", "write the key out");
                    whole = false;
                }
                match convert(document, &format!("{key}.{name}", name = name.get_ref()), field, names) {
                    Some(value) => drop(converted.insert(name.get_ref().to_string(), value)),
                    None => whole = false,
                }
            }
            whole.then_some(Value::Object(converted))
        }
    }
}

/// Checks a step's `if`.
pub(super) fn check_condition(document: &Document<'_>, place: &Place, text: &str, names: &Names<'_>) -> Option<()> {
    if text.trim_start().starts_with("{{") {
        let remedy = "write the expression without braces, as `if = \"steps.disks.status == 0\"`";
        document.fault(place, "`if` is an expression already", remedy);
        return None;
    }
    match template::names_of_condition(text) {
        Ok(read) => check_names(document, place, read.iter().map(String::as_str), names),
        Err(error) => {
            note(document, place, &error);
            None
        }
    }
}

/// Checks what a trigger wants of an event: the same expressions, over `event` alone.
pub(super) fn check_when(document: &Document<'_>, place: &Place, text: &str) -> Option<()> {
    if text.trim_start().starts_with("{{") {
        let remedy = "write the expression without braces, as `when = \"event.name == 'push'\"`";
        document.fault(place, "`when` is an expression already", remedy);
        return None;
    }
    match template::names_of_condition(text) {
        Ok(read) => match read.iter().find(|name| name.split('.').next() != Some("event")) {
            None => Some(()),
            Some(other) => {
                let message = format!("`{other}` is not known before there is a run");
                document.fault(
                    place,
                    message,
                    "compare what was delivered: `event.name`, `event.payload`, `event.headers`",
                );
                None
            }
        },
        Err(error) => {
            note(document, place, &error);
            None
        }
    }
}

fn note(document: &Document<'_>, place: &Place, error: &TemplateError) {
    document.fault(place, error.fault.to_string(), error.remedy());
}

fn check_names<'n>(
    document: &Document<'_>,
    place: &Place,
    read: impl Iterator<Item = &'n str>,
    names: &Names<'_>,
) -> Option<()> {
    let mut known = Some(());
    for name in read {
        let Some(rest) = name.strip_prefix("steps") else { continue };
        let step = rest.trim_start_matches('.').split('.').next().unwrap_or_default();
        if !step.is_empty() && names.saved.iter().any(|saved| saved == step) {
            continue;
        }
        known = None;
        let (message, remedy) = if step.is_empty() {
            ("`steps` without a name".to_owned(), "write `steps.<save-as>.<field>`".to_owned())
        } else if names.later.iter().any(|later| later == step) {
            let remedy = "move the step that saves it up, or this one down".to_owned();
            (format!("`steps.{step}` is used before it is saved"), remedy)
        } else {
            let remedy = match crate::suggest::nearest(step, names.saved.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean `steps.{meant}`?"),
                None => format!("give an earlier step `save-as = \"{step}\"`"),
            };
            (format!("no earlier step saves `steps.{step}`"), remedy)
        };
        document.fault(place, message, remedy);
    }
    known
}
