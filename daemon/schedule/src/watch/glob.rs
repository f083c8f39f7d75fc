use thiserror::Error;

const LENGTH_LIMIT: usize = 256;

/// Why a text is not a pattern for file names.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum GlobError {
    #[error("glob `{glob}` holds a `/`; it is matched against file names alone")]
    Slash { glob: String },
    #[error("glob `{glob}` does not close its `{open}`")]
    Open { glob: String, open: char },
    #[error("glob `{glob}` must have 1 to {LENGTH_LIMIT} bytes")]
    Length { glob: String },
}

/// A pattern for file names: `*`, `?`, `[a-z]`, `[!a-z]`, `{one,other}`, and `\` before a character that stands for itself.
///
/// Matches bytes, so that a name need not be UTF-8; `?` is one character where the bytes are one, else one byte. As in
/// a shell a name that begins with a dot is matched only by a pattern that does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Glob {
    /// One for each choice of the braces.
    patterns: Vec<Vec<Token>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Token {
    Byte(u8),
    AnyChar,
    AnyRun,
    Class { not: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        let shown = || text.chars().take(LENGTH_LIMIT).flat_map(char::escape_debug).collect::<String>();
        if text.is_empty() || text.len() > LENGTH_LIMIT {
            return Err(GlobError::Length { glob: shown() });
        }
        if text.contains('/') {
            return Err(GlobError::Slash { glob: shown() });
        }
        let letters: Vec<char> = text.chars().collect();
        let mut patterns = Vec::new();
        for choice in choices(&letters).map_err(|open| GlobError::Open { glob: shown(), open })? {
            patterns.push(tokens(&choice).map_err(|open| GlobError::Open { glob: shown(), open })?);
        }
        Ok(Self { patterns })
    }

    /// Returns the pattern of a watch without one: every name that does not begin with a dot.
    #[must_use]
    pub fn any() -> Self {
        Self { patterns: vec![vec![Token::AnyRun]] }
    }

    #[must_use]
    pub fn matches(&self, name: &[u8]) -> bool {
        self.patterns.iter().any(|tokens| {
            let hidden = name.first() == Some(&b'.');
            (!hidden || tokens.first() == Some(&Token::Byte(b'.'))) && matches(tokens, name)
        })
    }
}

/// Writes braces out; each `{a,b}` at most doubles the patterns, and the length limit bounds them.
fn choices(letters: &[char]) -> Result<Vec<Vec<char>>, char> {
    /// Enough for any list of endings.
    const CHOICE_LIMIT: usize = 1024;

    let mut open = None;
    let mut commas = Vec::new();
    let mut depth = 0_u32;
    let mut index = 0;
    while index < letters.len() {
        match letters[index] {
            '\\' => index += 1,
            '{' => {
                depth += 1;
                open = open.or(Some(index));
            }
            ',' if depth == 1 => commas.push(index),
            '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    let start = open.expect("a brace was opened");
                    let mut found = Vec::new();
                    let mut from = start + 1;
                    commas.push(index);
                    for comma in commas {
                        let rest = [&letters[..start], &letters[from..comma], &letters[index + 1..]].concat();
                        found.extend(choices(&rest)?);
                        from = comma + 1;
                        if found.len() > CHOICE_LIMIT {
                            return Err('{');
                        }
                    }
                    return Ok(found);
                }
            }
            _ => {}
        }
        index += 1;
    }
    if depth > 0 { Err('{') } else { Ok(vec![letters.to_vec()]) }
}

fn tokens(letters: &[char]) -> Result<Vec<Token>, char> {
    let mut tokens = Vec::new();
    let mut index = 0;
    let literal = |letter: char, tokens: &mut Vec<Token>| {
        let mut bytes = [0; 4];
        tokens.extend(letter.encode_utf8(&mut bytes).bytes().map(Token::Byte));
    };
    while let Some(letter) = letters.get(index) {
        index += 1;
        match letter {
            '*' => {
                if tokens.last() != Some(&Token::AnyRun) {
                    tokens.push(Token::AnyRun);
                }
            }
            '?' => tokens.push(Token::AnyChar),
            '\\' => {
                literal(letters.get(index).copied().unwrap_or('\\'), &mut tokens);
                index += 1;
            }
            '[' => {
                let (class, end) = class(letters, index)?;
                tokens.push(class);
                index = end;
            }
            other => literal(*other, &mut tokens),
        }
    }
    Ok(tokens)
}

/// Reads a class from behind its `[`; a `]` in the first place stands for itself.
fn class(letters: &[char], mut index: usize) -> Result<(Token, usize), char> {
    let not = matches!(letters.get(index), Some('!' | '^'));
    index += usize::from(not);
    let mut ranges = Vec::new();
    loop {
        let first = *letters.get(index).ok_or('[')?;
        index += 1;
        if first == ']' && !ranges.is_empty() {
            return Ok((Token::Class { not, ranges }, index));
        }
        match (letters.get(index), letters.get(index + 1)) {
            (Some('-'), Some(last)) if *last != ']' => {
                ranges.push((first, *last));
                index += 2;
            }
            _ => ranges.push((first, first)),
        }
    }
}

/// Matches with one point of return, the last `*`, so that no pattern takes exponential time.
fn matches(tokens: &[Token], name: &[u8]) -> bool {
    let (mut token, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() || token < tokens.len() {
        let step = match tokens.get(token) {
            Some(Token::AnyRun) => {
                star = Some((token, at));
                token += 1;
                continue;
            }
            Some(Token::Byte(byte)) => (name.get(at) == Some(byte)).then_some(1),
            Some(Token::AnyChar) => character(&name[at..]).map(|(_, length)| length),
            Some(Token::Class { not, ranges }) => character(&name[at..]).and_then(|(letter, length)| {
                let inside = letter.is_some_and(|letter| ranges.iter().any(|(a, b)| (*a..=*b).contains(&letter)));
                (inside != *not).then_some(length)
            }),
            None => None,
        };
        match (step, star) {
            (Some(length), _) => {
                token += 1;
                at += length;
            }
            (None, Some((star_token, star_at))) if star_at < name.len() => {
                star = Some((star_token, star_at + 1));
                token = star_token + 1;
                at = star_at + 1;
            }
            (None, _) => return false,
        }
    }
    true
}

/// The first character and its length in bytes; a byte that begins none is one by itself.
fn character(bytes: &[u8]) -> Option<(Option<char>, usize)> {
    let first = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(first) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&first[..error.valid_up_to()]).expect("valid up to there"),
    };
    match valid.chars().next() {
        Some(letter) => Some((Some(letter), letter.len_utf8())),
        None => (!bytes.is_empty()).then_some((None, 1)),
    }
}
