//! Templates: `{{ expression }}` inside the strings of a step's arguments, and a step's `if`.
//!
//! A template is rendered once, inside the parsed value, so one element stays one element whatever fills
//! it. Expressions and filters are those of Jinja; there are no statements, functions or includes: a
//! template fills holes, it is not a program. An undefined name is an error, and work and output are
//! bounded.
//!
//! `task`, `slot` and `run` are owd's own. What comes from `event` and `steps` is not: every use of it is
//! reported by name as a *hole*, also where a value only decides between two literals.

mod error;
mod expression;
mod render;

pub use error::{TemplateError, TemplateFault};
pub use render::{HoleUse, OUTPUT_LIMIT, Rendered, eval_condition, preview_args, render_args};

use expression::{Expression, end_of_expression};
use serde_json::Value;

/// What templates may read: `task`, `slot`, `run` from owd, `event` and `steps` from outside.
pub const ROOTS: [&str; 5] = ["task", "slot", "run", "event", "steps"];

/// One string, parsed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Part {
    Text(String),
    Expression(Expression),
}

impl Template {
    /// Parses a string and compiles what stands between `{{` and `}}`.
    ///
    /// `{%` is refused; for a literal `{{` write `{{ "{{" }}`.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let error = |fault| TemplateError::new(text, fault);
        let mut parts = vec![];
        let mut rest = text;
        while !rest.is_empty() {
            let open = rest.find("{{").unwrap_or(rest.len());
            let literal = &rest[..open];
            if literal.contains("{%") {
                return Err(error(TemplateFault::Statement));
            }
            if !literal.is_empty() {
                parts.push(Part::Text(literal.into()));
            }
            if open == rest.len() {
                break;
            }
            let inside = &rest[open + 2..];
            let end = end_of_expression(inside).ok_or_else(|| error(TemplateFault::Unclosed))?;
            parts.push(Part::Expression(Expression::parse(&inside[..end]).map_err(error)?));
            rest = &inside[end + 2..];
        }
        Ok(Self { parts })
    }

    /// Every name that it reads, dotted as written: `slot.date`, `steps.disks.stdout`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(_) => None,
                Part::Expression(expression) => Some(expression.names()),
            })
            .flatten()
            .map(String::as_str)
    }

    /// The names whose values come from outside, in the order of their first use.
    pub fn holes(&self) -> impl Iterator<Item = &str> {
        self.names().filter(|name| is_outside(name))
    }

    /// Whether the text holds no expression at all.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// The expression, if it is the whole string: its value keeps its type.
    fn whole(&self) -> Option<&Expression> {
        match self.parts.as_slice() {
            [Part::Expression(expression)] => Some(expression),
            _ => None,
        }
    }
}

/// Whether a value under this name comes from outside.
#[must_use]
pub fn is_outside(name: &str) -> bool {
    matches!(name.split('.').next(), Some("event" | "steps"))
}

/// The holes of a step's arguments by name, each once, without rendering.
///
/// A string that does not parse has none; `parse_task` has refused it before.
#[must_use]
pub fn holes_of(args: &Value) -> Vec<String> {
    let mut holes = vec![];
    collect_holes(args, &mut holes);
    holes
}

fn collect_holes(args: &Value, holes: &mut Vec<String>) {
    match args {
        Value::String(text) => {
            for hole in Template::parse(text).iter().flat_map(Template::holes) {
                if !holes.iter().any(|known| known == hole) {
                    holes.push(hole.into());
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect_holes(element, holes)),
        Value::Object(fields) => fields.values().for_each(|field| collect_holes(field, holes)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Parses the text of a step's `if` and returns the names that it reads.
pub fn names_of_condition(text: &str) -> Result<Vec<String>, TemplateError> {
    let expression = Expression::parse_condition(text).map_err(|fault| TemplateError::new(text, fault))?;
    Ok(expression.names().to_vec())
}

#[cfg(test)]
mod tests;
