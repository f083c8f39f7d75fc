use unicode_normalization::UnicodeNormalization;

/// A piece of text as the grammar sees it; `start` and `end` are bytes in the text it was made from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Piece {
    pub(crate) what: What,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum What {
    /// In lower case, composed, with a plain apostrophe.
    Word(String),
    /// An emoji, without its variation and skin tone.
    Sign(char),
    /// A mark between words; full-width ones as their plain ones.
    Mark(char),
}

/// Splits one line into words, signs and marks.
pub(crate) fn pieces(line: &str) -> Vec<Piece> {
    let mut found = vec![];
    let mut word_start = None;
    let mut letters = line.char_indices().peekable();
    let mut before = None;
    while let Some((start, letter)) = letters.next() {
        let end = start + letter.len_utf8();
        let next = letters.peek().map(|(_, next)| *next);
        let apart = match letter {
            _ if letter.is_whitespace() => Some(None),
            '-' if !(is_inner(before) && is_inner(next)) => Some(Some(What::Mark('-'))),
            _ => mark(letter).map(|mark| Some(What::Mark(mark))).or_else(|| {
                is_sign(letter).then(|| {
                    while letters.next_if(|(_, next)| matches!(next, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}')).is_some()
                    {
                    }
                    Some(What::Sign(letter))
                })
            }),
        };
        before = Some(letter);
        match apart {
            None => {
                word_start.get_or_insert(start);
            }
            Some(what) => {
                if let Some(from) = word_start.take() {
                    found.push(word(line, from, start));
                }
                let end = letters.peek().map_or(line.len(), |(next, _)| *next).max(end);
                found.extend(what.map(|what| Piece { what, start, end }));
            }
        }
    }
    if let Some(from) = word_start {
        found.push(word(line, from, line.len()));
    }
    found
}

fn word(line: &str, start: usize, end: usize) -> Piece {
    Piece { what: What::Word(folded(&line[start..end])), start, end }
}

/// A word as words are compared: composed, in lower case, with a plain apostrophe.
pub(crate) fn folded(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    for letter in word.nfc() {
        match letter {
            '’' | '‘' | 'ʼ' | '`' | '´' | '′' | '＇' => folded.push('\''),
            _ if letter.is_ascii() => folded.push(letter.to_ascii_lowercase()),
            // The Kelvin sign would become a `k`: what only looks like a letter stays what it is.
            _ if letter.to_lowercase().any(|lower| lower.is_ascii()) => folded.push(letter),
            _ => folded.extend(letter.to_lowercase()),
        }
    }
    folded
}

fn is_inner(letter: Option<char>) -> bool {
    letter.is_some_and(char::is_alphanumeric)
}

fn mark(letter: char) -> Option<char> {
    Some(match letter {
        '.' | '。' | '．' | '｡' => '.',
        ',' | '，' | '、' | '､' => ',',
        '!' | '！' => '!',
        '¡' => '¡',
        ';' | '；' => ';',
        ':' | '：' => ':',
        '?' | '？' | '¿' | '؟' => '?',
        '…' | '⋯' => '…',
        '–' | '—' | '―' | '－' => '-',
        '(' | '（' => '(',
        ')' | '）' => ')',
        '"' | '“' | '”' | '„' | '«' | '»' | '「' | '」' => '"',
        _ => return None,
    })
}

fn is_sign(letter: char) -> bool {
    matches!(letter, '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Takes away what a person neither sees nor types at the edges of a line, and the stars of a bold one.
pub(crate) fn edged(line: &str) -> &str {
    let line = line.trim_matches(|letter: char| letter.is_whitespace() || is_invisible(letter));
    for wrap in ["**", "*", "__", "_"] {
        if let Some(inner) = line.strip_prefix(wrap).and_then(|inner| inner.strip_suffix(wrap))
            && inner.starts_with(char::is_alphanumeric)
        {
            return inner.trim();
        }
    }
    line
}

fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// Splits text at every line end there is.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text
        .split('\n')
        .flat_map(|line| {
            line.strip_suffix('\r').unwrap_or(line).split(['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'])
        })
        .collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

/// How many of these parts of words, in lower case, a text holds.
pub(crate) fn hits(text: &str, parts: &[&str]) -> usize {
    let text = folded(text);
    parts.iter().filter(|part| text.contains(**part)).count()
}
