use std::path::Path;

use brush_parser::ParserOptions;
use brush_parser::word::{Parameter, ParameterExpr, TildeExpr, WordPiece, WordPieceWithSource};

/// Stands in a guessed text for what only the shell can tell.
pub(crate) const UNKNOWN: char = '\u{fffc}';

/// Stands where `$IFS` makes the shell split a word.
const FIELD: char = '\u{1}';

/// One word of shell text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Word {
    /// What the shell would pass on: exact if `literal`, else as far as it can be told.
    pub(crate) text: String,
    /// Nothing in it is expanded.
    pub(crate) literal: bool,
    /// The sources of the substitutions in it.
    pub(crate) nested: Vec<String>,
}

/// Where expansions are guessed from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) home: &'a Path,
    pub(crate) cwd: Option<&'a Path>,
}

impl Word {
    pub(crate) fn exact(text: &str) -> Self {
        Self { text: text.to_owned(), literal: true, nested: vec![] }
    }

    /// The words that the shell makes of this one by `$IFS`.
    pub(crate) fn fields(self) -> Vec<Self> {
        if self.literal || !self.text.contains(FIELD) {
            return vec![self];
        }
        let Self { text, nested, .. } = self;
        text.split(FIELD)
            .filter(|field| !field.is_empty())
            .map(|field| Self { text: field.to_owned(), literal: false, nested: nested.clone() })
            .collect()
    }

    pub(crate) fn read(raw: &str, places: Places) -> Self {
        if let Some(text) = literal(raw) {
            return Self { text, literal: true, nested: vec![] };
        }
        let mut word = Self { text: String::new(), literal: false, nested: vec![] };
        if let Ok(pieces) = brush_parser::word::parse(raw, &ParserOptions::default()) {
            word.add(&pieces, raw, places);
        } else {
            word.text.push(UNKNOWN);
            word.nested.push(raw.to_owned());
        }
        word
    }

    fn add(&mut self, pieces: &[WordPieceWithSource], raw: &str, places: Places) {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(text) | WordPiece::SingleQuotedText(text) => self.text.push_str(text),
                WordPiece::AnsiCQuotedText(text) => self.text.push_str(&ansi_c(text)),
                WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.add(inner, raw, places);
                }
                WordPiece::EscapeSequence(text) => self.text.push_str(text.strip_prefix('\\').unwrap_or(text)),
                WordPiece::TildeExpansion(tilde) => match (tilde, places.cwd) {
                    (TildeExpr::Home, _) => self.text.push_str(&places.home.to_string_lossy()),
                    (TildeExpr::WorkingDir, Some(cwd)) => self.text.push_str(&cwd.to_string_lossy()),
                    _ => self.text.push(UNKNOWN),
                },
                WordPiece::ParameterExpansion(parameter) => {
                    self.add_parameter(parameter, raw.get(piece.start_index..piece.end_index).unwrap_or(raw), places);
                }
                WordPiece::CommandSubstitution(text) => self.add_nested(text.clone()),
                WordPiece::BackquotedCommandSubstitution(text) => {
                    self.add_nested(text.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\"));
                }
                WordPiece::ArithmeticExpression(expression) => {
                    self.text.push(UNKNOWN);
                    if expression.value.contains(['`', '$']) {
                        self.nested.push(expression.value.clone());
                    }
                }
            }
        }
    }

    fn add_nested(&mut self, source: String) {
        self.text.push(UNKNOWN);
        self.nested.push(source);
    }

    fn add_parameter(&mut self, parameter: &ParameterExpr, source: &str, places: Places) {
        let name = match parameter {
            ParameterExpr::Parameter { parameter, indirect: false }
            | ParameterExpr::UseDefaultValues { parameter, indirect: false, .. }
            | ParameterExpr::AssignDefaultValues { parameter, indirect: false, .. }
            | ParameterExpr::IndicateErrorIfNullOrUnset { parameter, indirect: false, .. } => match parameter {
                Parameter::Named(name) => name.as_str(),
                _ => "",
            },
            _ => "",
        };
        match (name, places.cwd) {
            ("HOME", _) => self.text.push_str(&places.home.to_string_lossy()),
            ("PWD", Some(cwd)) => self.text.push_str(&cwd.to_string_lossy()),
            ("IFS", _) => self.text.push(FIELD),
            _ => self.text.push(UNKNOWN),
        }
        if source.contains('`') || source.contains("$(") {
            self.nested.push(source.to_owned());
        }
    }
}

/// The text of a word in which a shell would expand nothing.
///
/// Stricter than a shell: what might be a pattern, a brace list, a tilde or a history mark anywhere counts
/// as an expansion, and so do control characters other than a quoted newline or tab.
pub(crate) fn literal(raw: &str) -> Option<String> {
    let mut text = String::new();
    let mut letters = raw.chars().peekable();
    let mut brace = false;
    let mut at_start = true;
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => loop {
                match letters.next()? {
                    '\'' => break,
                    quoted => text.push(plain(quoted)?),
                }
            },
            '"' => loop {
                match letters.next()? {
                    '"' => break,
                    '$' | '`' => return None,
                    '\\' => match letters.next()? {
                        escaped @ ('$' | '`' | '"' | '\\') => text.push(escaped),
                        '\n' => return None,
                        other => {
                            text.push('\\');
                            text.push(plain(other)?);
                        }
                    },
                    quoted => text.push(plain(quoted)?),
                }
            },
            '\\' => match letters.next()? {
                '\n' => return None,
                escaped => text.push(plain(escaped)?),
            },
            '$' | '`' | '*' | '?' | '[' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '\n' | ' ' | '\t' => return None,
            '~' | '#' if at_start => return None,
            '{' => {
                brace = true;
                text.push(letter);
            }
            ',' if brace => return None,
            '.' if brace && letters.peek() == Some(&'.') => return None,
            '~' if text.ends_with([':', '=']) => return None,
            other => text.push(plain(other)?),
        }
        at_start = false;
    }
    Some(text)
}

/// What a person can see for what it is: no control characters, nothing invisible, nothing that turns text around.
fn plain(letter: char) -> Option<char> {
    let deceives = matches!(
        letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffc}' | '\u{e0000}'..='\u{e007f}'
    );
    (letter == '\n' || letter == '\t' || !(letter.is_control() || deceives)).then_some(letter)
}

/// Splits text into the raw words of one simple command; none where it is more than that.
///
/// A second reading, independent of the parser: both must agree before a line runs as its argv.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let mut words = vec![];
    let mut word = String::new();
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            '\'' | '"' => {
                word.push(letter);
                loop {
                    let quoted = letters.next()?;
                    word.push(quoted);
                    if quoted == letter {
                        break;
                    }
                    if letter == '"' && quoted == '\\' {
                        word.push(letters.next()?);
                    }
                }
            }
            '\\' => {
                word.push(letter);
                word.push(letters.next()?);
            }
            ';' | '&' | '|' | '<' | '>' | '(' | ')' | '\n' | '`' => return None,
            '#' if word.is_empty() => return None,
            other => word.push(other),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    Some(words)
}

/// Decodes the escapes of `$'…'` that can hide letters; the word stays an expansion all the same.
fn ansi_c(text: &str) -> String {
    let mut decoded = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            decoded.push(letter);
            continue;
        }
        let (base, limit) = match letters.next() {
            Some('x') => (16, 2),
            Some('u') => (16, 4),
            Some('U') => (16, 8),
            Some(digit @ '0'..='7') => {
                let mut code = digit.to_digit(8).unwrap_or_default();
                for _ in 0..2 {
                    match letters.peek().and_then(|letter| letter.to_digit(8)) {
                        Some(digit) => {
                            code = code * 8 + digit;
                            letters.next();
                        }
                        None => break,
                    }
                }
                decoded.push(char::from_u32(code).unwrap_or(UNKNOWN));
                continue;
            }
            Some('n') => {
                decoded.push('\n');
                continue;
            }
            Some('t') => {
                decoded.push('\t');
                continue;
            }
            Some(other) => {
                decoded.push(other);
                continue;
            }
            None => break,
        };
        let mut code = 0;
        for _ in 0..limit {
            match letters.peek().and_then(|letter| letter.to_digit(base)) {
                Some(digit) => {
                    code = code * base + digit;
                    letters.next();
                }
                None => break,
            }
        }
        decoded.push(char::from_u32(code).unwrap_or(UNKNOWN));
    }
    decoded
}
