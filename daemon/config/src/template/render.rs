use std::fmt::{self, Write};

use minijinja::value::ValueKind;
use serde_json::{Map, Value};

use super::error::shortened;
use super::expression::Expression;
use super::{Part, Template, TemplateError, TemplateFault, is_outside};

/// How many bytes the rendered arguments of one step may have in all.
pub const OUTPUT_LIMIT: usize = 1024 * 1024;

/// How deep a value that fills a whole string may be nested.
const DEPTH_LIMIT: usize = 64;

/// Arguments with every template filled.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    pub args: Value,
    /// Each use of a value from outside, in the order of the arguments.
    pub holes: Vec<HoleUse>,
}

/// One use of a value from outside.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HoleUse {
    /// `event.path`, `steps.disks.stdout`: dotted as written, up to the first part that is no plain attribute.
    pub name: String,
    /// Points to the string in which it was used (RFC 6901): `/argv/1`.
    pub pointer: String,
    /// The template is the whole string.
    pub whole: bool,
    /// Nothing stands before the value in the rendered string.
    pub leading: bool,
    /// What its expression became, as text.
    pub value: String,
}

/// Renders every string of a step's arguments, once.
///
/// A string that is exactly one `{{ … }}` becomes the expression's value with its type; any other becomes a
/// string. Keys are left alone. `context` is an object with the names of [`ROOTS`](super::ROOTS).
pub fn render_args(args: &Value, context: &Value) -> Result<Rendered, TemplateError> {
    let context = minijinja::Value::from(minijinja::value::Serde(context));
    let mut renderer = Renderer { context, left: OUTPUT_LIMIT, holes: vec![] };
    let args = renderer.render(args, &mut String::new())?;
    Ok(Rendered { args, holes: renderer.holes })
}

/// Renders what `context` already knows; a string that needs more keeps what is missing as written.
///
/// For a plan of a run that has not begun: it is never executed.
#[must_use]
pub fn preview_args(args: &Value, context: &Value) -> Value {
    preview(args, &minijinja::Value::from(minijinja::value::Serde(context)))
}

/// Whether a step's `if` holds. A text is neither true nor false: it must be compared.
pub fn eval_condition(text: &str, context: &Value) -> Result<bool, TemplateError> {
    let condition = || {
        let expression = Expression::parse_condition(text)?;
        let value = expression.evaluate(&minijinja::Value::from(minijinja::value::Serde(context)))?;
        match value.kind() {
            ValueKind::String => Err(TemplateFault::NotBoolean { expression: shortened(text) }),
            _ => Ok(value.is_true()),
        }
    };
    condition().map_err(|fault| TemplateError::new(text, fault))
}

struct Renderer {
    context: minijinja::Value,
    /// Bytes that may still be made.
    left: usize,
    holes: Vec<HoleUse>,
}

impl Renderer {
    fn render(&mut self, args: &Value, pointer: &mut String) -> Result<Value, TemplateError> {
        let parent = pointer.len();
        match args {
            Value::String(text) => {
                let template = Template::parse(text)?;
                self.fill(&template, pointer).map_err(|fault| TemplateError::new(text, fault))
            }
            Value::Array(elements) => {
                let mut rendered = Vec::with_capacity(elements.len());
                for (index, element) in elements.iter().enumerate() {
                    write!(pointer, "/{index}").expect("a string takes all text");
                    rendered.push(self.render(element, pointer)?);
                    pointer.truncate(parent);
                }
                Ok(Value::Array(rendered))
            }
            Value::Object(fields) => {
                let mut rendered = Map::new();
                for (key, field) in fields {
                    pointer.push('/');
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                    rendered.insert(key.clone(), self.render(field, pointer)?);
                    pointer.truncate(parent);
                }
                Ok(Value::Object(rendered))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(args.clone()),
        }
    }

    fn fill(&mut self, template: &Template, pointer: &str) -> Result<Value, TemplateFault> {
        if let Some(expression) = template.whole() {
            let value = expression.evaluate(&self.context)?;
            let json = to_json(expression, &value, &mut self.left, 0)?;
            let text = json.as_str().map_or_else(|| json.to_string(), String::from);
            self.note(expression, pointer, &text, Position { whole: true, leading: true });
            return Ok(json);
        }
        let mut filled = String::new();
        for part in &template.parts {
            match part {
                Part::Text(text) => {
                    self.left =
                        self.left.checked_sub(text.len()).ok_or(TemplateFault::Output { limit: OUTPUT_LIMIT })?;
                    filled.push_str(text);
                }
                Part::Expression(expression) => {
                    let text = to_text(expression, &expression.evaluate(&self.context)?, &mut self.left)?;
                    self.note(expression, pointer, &text, Position { whole: false, leading: filled.is_empty() });
                    filled.push_str(&text);
                }
            }
        }
        Ok(Value::String(filled))
    }

    fn note(&mut self, expression: &Expression, pointer: &str, value: &str, position: Position) {
        for name in expression.names().iter().filter(|name| is_outside(name)) {
            self.holes.push(HoleUse {
                name: name.clone(),
                pointer: pointer.into(),
                whole: position.whole,
                leading: position.leading,
                value: value.into(),
            });
        }
    }
}

#[derive(Clone, Copy)]
struct Position {
    whole: bool,
    leading: bool,
}

/// The text of a value inside a longer string; lists, tables, truth and nothing as in JSON.
fn to_text(expression: &Expression, value: &minijinja::Value, left: &mut usize) -> Result<String, TemplateFault> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => Ok(to_json(expression, value, left, 0)?.to_string()),
        ValueKind::Invalid | ValueKind::Plain | ValueKind::Undefined => unusable(expression, value),
        // As in TOML and JSON; the engine would write `True` and `None`.
        ValueKind::Bool => Ok(value.is_true().to_string()),
        ValueKind::None => Ok("null".into()),
        _ => {
            let mut text = Bounded { text: String::new(), left };
            match write!(text, "{value}") {
                Ok(()) => Ok(text.text),
                Err(fmt::Error) => Err(TemplateFault::Output { limit: OUTPUT_LIMIT }),
            }
        }
    }
}

/// Element by element, since a list may be lazy and much longer than what made it.
fn to_json(
    expression: &Expression,
    value: &minijinja::Value,
    left: &mut usize,
    depth: usize,
) -> Result<Value, TemplateFault> {
    let mut take = |bytes: usize| {
        *left = left.checked_sub(bytes).ok_or(TemplateFault::Output { limit: OUTPUT_LIMIT })?;
        Ok::<(), TemplateFault>(())
    };
    let too_deep =
        || TemplateFault::Evaluation { expression: shortened(expression.text()), reason: "nested too deep".into() };
    let fault = |error| expression.fault(&error);
    if depth > DEPTH_LIMIT {
        return Err(too_deep());
    }
    take(1)?;
    match value.kind() {
        ValueKind::None => Ok(Value::Null),
        ValueKind::Bool => Ok(Value::Bool(value.is_true())),
        ValueKind::Number => serde_json::to_value(value).or_else(|_| unusable(expression, value)),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            take(text.len())?;
            Ok(Value::String(text.into()))
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let mut elements = vec![];
            for element in value.try_iter().map_err(fault)? {
                elements.push(to_json(expression, &element, left, depth + 1)?);
            }
            Ok(Value::Array(elements))
        }
        ValueKind::Map => {
            let mut fields = Map::new();
            for key in value.try_iter().map_err(fault)? {
                let name = to_text(expression, &key, left)?;
                let field = value.get_item(&key).map_err(fault)?;
                fields.insert(name, to_json(expression, &field, left, depth + 1)?);
            }
            Ok(Value::Object(fields))
        }
        _ => unusable(expression, value),
    }
}

fn unusable<T>(expression: &Expression, value: &minijinja::Value) -> Result<T, TemplateFault> {
    let expression_text = shortened(expression.text());
    match value.kind() {
        ValueKind::Undefined => Err(TemplateFault::Undefined { expression: expression_text }),
        // The value is an error that the engine could not report where it arose.
        ValueKind::Invalid => Err(match value.get_attr("value") {
            Err(error) => expression.fault(&error),
            Ok(_) => TemplateFault::Work { expression: expression_text },
        }),
        kind => {
            Err(TemplateFault::Evaluation { expression: expression_text, reason: format!("a {kind} is no argument") })
        }
    }
}

/// Text that fails once it has used what is left.
struct Bounded<'l> {
    text: String,
    left: &'l mut usize,
}

impl Write for Bounded<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        *self.left = self.left.checked_sub(text.len()).ok_or(fmt::Error)?;
        self.text.push_str(text);
        Ok(())
    }
}

fn preview(args: &Value, context: &minijinja::Value) -> Value {
    match args {
        Value::String(text) => preview_text(text, context).unwrap_or_else(|| args.clone()),
        Value::Array(elements) => elements.iter().map(|element| preview(element, context)).collect(),
        Value::Object(fields) => fields.iter().map(|(key, field)| (key.clone(), preview(field, context))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => args.clone(),
    }
}

fn preview_text(text: &str, context: &minijinja::Value) -> Option<Value> {
    let template = Template::parse(text).ok()?;
    let mut left = OUTPUT_LIMIT;
    if let Some(expression) = template.whole() {
        let value = expression.evaluate(context).ok()?;
        return to_json(expression, &value, &mut left, 0).ok();
    }
    let mut shown = String::new();
    for part in &template.parts {
        match part {
            Part::Text(literal) => shown.push_str(literal),
            Part::Expression(expression) => {
                let known = expression.evaluate(context).and_then(|value| to_text(expression, &value, &mut left));
                shown.push_str(&known.unwrap_or_else(|_| format!("{{{{ {} }}}}", expression.text())));
            }
        }
    }
    Some(Value::String(shown))
}
