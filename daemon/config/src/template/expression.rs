use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior};

use super::error::{TemplateFault, shortened};

/// One unit pays for an instruction, or for 64 bytes made or read: some milliseconds at most.
const FUEL: u64 = 500_000;

/// Those of Jinja that compute a value from a value. Not `safe` and `escape` (there is no markup here) and
/// not `pprint` (it prints what the engine happens to hold).
pub(super) const FILTERS: &[&str] = &[
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "chain",
    "count",
    "d",
    "default",
    "dictsort",
    "first",
    "float",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
    "zip",
];

pub(super) const TESTS: &[&str] = &[
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "even",
    "false",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "true",
    "undefined",
    "upper",
];

const WORDS: &[&str] =
    &["and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None"];

/// The engine: filters and tests, and no function, since `debug()` would show all values at once.
static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::new();
    let globals: Vec<String> = engine.globals().map(|(name, _)| name.to_owned()).collect();
    for name in globals {
        engine.remove_global(&name);
    }
    for name in ["safe", "escape", "e", "pprint"] {
        engine.remove_filter(name);
    }
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_fuel(Some(FUEL));
    engine
});

/// What stands between `{{` and `}}`, known to compile.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Expression {
    text: String,
    names: Vec<String>,
}

impl Expression {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateFault> {
        if text.starts_with(['-', '+']) || text.ends_with(['-', '+']) {
            return Err(TemplateFault::Trim);
        }
        Self::compile(text)
    }

    pub(super) fn parse_condition(text: &str) -> Result<Self, TemplateFault> {
        Self::compile(text)
    }

    fn compile(text: &str) -> Result<Self, TemplateFault> {
        let text = text.trim();
        let syntax = |reason: &str| TemplateFault::Syntax { expression: shortened(text), reason: reason.into() };
        if text.is_empty() {
            return Err(syntax("it is empty"));
        }
        let names = names(text)?;
        if let Err(error) = ENGINE.compile_expression(text) {
            return Err(syntax(error.detail().unwrap_or("it does not parse")));
        }
        Ok(Self { text: text.into(), names })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Every name that it reads, dotted as written up to the first part that is no plain attribute.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The value; undefined is an error.
    pub(super) fn evaluate(&self, context: &minijinja::Value) -> Result<minijinja::Value, TemplateFault> {
        let compiled = ENGINE.compile_expression(&self.text).map_err(|error| self.fault(&error))?;
        let value = compiled.eval(context.clone()).map_err(|error| self.fault(&error))?;
        if value.is_undefined() {
            return Err(TemplateFault::Undefined { expression: shortened(&self.text) });
        }
        Ok(value)
    }

    pub(super) fn fault(&self, error: &minijinja::Error) -> TemplateFault {
        let expression = shortened(&self.text);
        match error.kind() {
            minijinja::ErrorKind::UndefinedError => TemplateFault::Undefined { expression },
            minijinja::ErrorKind::OutOfFuel => TemplateFault::Work { expression },
            kind => {
                let reason = error.detail().map_or_else(|| kind.to_string(), shortened);
                TemplateFault::Evaluation { expression, reason }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Token<'t> {
    Name(&'t str),
    Literal,
    Symbol(char),
}

/// Where the `}}` stands that ends an expression: outside quotes and brackets, as the engine finds it.
pub(super) fn end_of_expression(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    let mut at = 0;
    while at < text.len() {
        if depth == 0 && text[at..].starts_with("}}") {
            return Some(at);
        }
        let (token, length) = token(&text[at..])?;
        match token {
            Some(Token::Symbol('(' | '[' | '{')) => depth += 1,
            Some(Token::Symbol(')' | ']' | '}')) => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += length;
    }
    None
}

/// The first token (none for white space) and its length; none for a quote that is never closed.
fn token(text: &str) -> Option<(Option<Token<'_>>, usize)> {
    let first = text.chars().next()?;
    let run = |belongs: fn(char) -> bool| text.find(|letter: char| !belongs(letter)).unwrap_or(text.len());
    match first {
        '"' | '\'' => {
            let mut escaped = false;
            for (at, letter) in text.char_indices().skip(1) {
                match letter {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    _ if letter == first => return Some((Some(Token::Literal), at + 1)),
                    _ => {}
                }
            }
            None
        }
        _ if first.is_whitespace() => Some((None, run(char::is_whitespace))),
        _ if first.is_ascii_digit() => Some((Some(Token::Literal), run(|c| c.is_ascii_alphanumeric() || c == '_'))),
        _ if first.is_ascii_alphabetic() || first == '_' => {
            let length = run(|c| c.is_ascii_alphanumeric() || c == '_');
            Some((Some(Token::Name(&text[..length])), length))
        }
        _ => Some((Some(Token::Symbol(first)), first.len_utf8())),
    }
}

/// The names that an expression reads. Found in its tokens, and not by asking the engine: the engine's own
/// answer leaves out what a slice (`event.path[1:]`) is taken of.
fn names(text: &str) -> Result<Vec<String>, TemplateFault> {
    let mut tokens = vec![];
    let mut rest = text;
    while !rest.is_empty() {
        let unclosed = || TemplateFault::Syntax { expression: shortened(text), reason: "a quote is not closed".into() };
        let (token, length) = token(rest).ok_or_else(unclosed)?;
        tokens.extend(token);
        rest = &rest[length..];
    }
    let symbol = |at: usize, symbol: char| tokens.get(at) == Some(&Token::Symbol(symbol));
    let mut names: Vec<String> = vec![];
    for (at, token) in tokens.iter().enumerate() {
        let Token::Name(name) = token else { continue };
        let before = at.checked_sub(1).map(|before| tokens[before]);
        let is_test = before == Some(Token::Name("is"))
            || (before == Some(Token::Name("not")) && at >= 2 && tokens[at - 2] == Token::Name("is"));
        if before == Some(Token::Symbol('.')) {
            if symbol(at + 1, '(') {
                return Err(TemplateFault::Call { name: (*name).into() });
            }
        } else if before == Some(Token::Symbol('|')) {
            if !FILTERS.contains(name) {
                return Err(TemplateFault::Unknown { kind: "filter", name: (*name).into() });
            }
        } else if is_test {
            if *name != "not" && !TESTS.contains(name) {
                return Err(TemplateFault::Unknown { kind: "test", name: (*name).into() });
            }
        } else if WORDS.contains(name) {
        } else if symbol(at + 1, '=') && !symbol(at + 2, '=') {
            // A keyword argument of a filter: `round(precision=2)`.
        } else if !super::ROOTS.contains(name) {
            let fault = if symbol(at + 1, '(') {
                TemplateFault::Call { name: (*name).into() }
            } else {
                TemplateFault::UnknownName { name: (*name).into() }
            };
            return Err(fault);
        } else if symbol(at + 1, '(') {
            return Err(TemplateFault::Call { name: (*name).into() });
        } else {
            let mut dotted = String::from(*name);
            let mut next = at + 1;
            while let (true, Some(Token::Name(attribute))) = (symbol(next, '.'), tokens.get(next + 1)) {
                dotted.push('.');
                dotted.push_str(attribute);
                next += 2;
            }
            if !names.contains(&dotted) {
                names.push(dotted);
            }
        }
    }
    Ok(names)
}
