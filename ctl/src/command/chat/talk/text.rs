//! Styled text for a terminal: spans, lines, and how they are broken into rows.

use std::ops::BitOr;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::escape;
use crate::output::{Colour, Paint};

/// How a span looks: any of these together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Style(u16);

impl Style {
    pub(super) const PLAIN: Self = Self(0);
    pub(super) const BOLD: Self = Self(1);
    pub(super) const DIM: Self = Self(1 << 1);
    pub(super) const ITALIC: Self = Self(1 << 2);
    pub(super) const UNDERLINE: Self = Self(1 << 3);
    pub(super) const STRUCK: Self = Self(1 << 4);
    pub(super) const RED: Self = Self(1 << 5);
    pub(super) const GREEN: Self = Self(1 << 6);
    pub(super) const YELLOW: Self = Self(1 << 7);
    pub(super) const CYAN: Self = Self(1 << 8);

    /// The codes of "select graphic rendition", in the order of the bits.
    const CODES: [&'static str; 9] = ["1", "2", "3", "4", "9", "31", "32", "33", "36"];

    fn codes(self) -> String {
        let set = Self::CODES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        set.map(|(_, code)| *code).collect::<Vec<_>>().join(";")
    }
}

impl BitOr for Style {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A piece of text in one style. Whatever it is made from, it is safe to print: what could deceive is written out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Span {
    text: String,
    style: Style,
}

/// A row of the terminal, or a text that becomes several when it is wrapped.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Line(Vec<Span>);

impl Span {
    pub(super) fn new(text: &str, style: Style) -> Self {
        Self { text: escape::line(&text.replace('\t', "    ")).into_owned(), style }
    }
}

impl Line {
    pub(super) const fn empty() -> Self {
        Self(vec![])
    }

    pub(super) fn plain(text: &str) -> Self {
        Self::styled(text, Style::PLAIN)
    }

    pub(super) fn styled(text: &str, style: Style) -> Self {
        Self(vec![Span::new(text, style)])
    }

    pub(super) fn of(parts: impl IntoIterator<Item = (impl AsRef<str>, Style)>) -> Self {
        Self(parts.into_iter().map(|(text, style)| Span::new(text.as_ref(), style)).collect())
    }

    pub(super) fn push(&mut self, text: &str, style: Style) {
        self.0.push(Span::new(text, style));
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|span| span.text.is_empty())
    }

    /// Columns.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|span| width(&span.text)).sum()
    }

    pub(super) fn text(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }

    /// The row as the terminal is sent it.
    pub(super) fn painted(&self, paint: Paint) -> String {
        let mut row = String::new();
        for Span { text, style } in &self.0 {
            if *style == Style::PLAIN || paint == Paint::Plain {
                row.push_str(text);
            } else {
                put!(row, "\x1b[{}m{text}{}", style.codes(), Colour::END);
            }
        }
        row
    }

    /// The row cut to so many columns; what is missing is told by `…`.
    pub(super) fn cut(self, columns: usize) -> Self {
        if self.width() <= columns {
            return self;
        }
        let mut cut = Self::empty();
        let mut used = 0;
        for Span { text, style } in self.0 {
            let mut kept = String::new();
            for cluster in text.graphemes(true) {
                if used + width(cluster) >= columns {
                    kept.push('…');
                    cut.0.push(Span { text: kept, style });
                    return cut;
                }
                used += width(cluster);
                kept.push_str(cluster);
            }
            cut.0.push(Span { text: kept, style });
        }
        cut
    }

    /// Breaks the text into rows, between words where that is possible. `first` stands before the first row, `rest` before
    /// the others.
    pub(super) fn wrap(&self, columns: usize, first: &Self, rest: &Self) -> Vec<Self> {
        let clusters = self.0.iter().flat_map(|span| span.text.graphemes(true).map(|text| (text, span.style)));
        let mut rows: Vec<Vec<(&str, Style)>> = vec![];
        let mut row: Vec<(&str, Style)> = vec![];
        let mut used = first.width();
        // Where the last word of the row begins.
        let mut word = 0;
        for (text, style) in clusters {
            let wide = width(text);
            if used + wide > columns && !row.is_empty() {
                if text == " " {
                    rows.push(std::mem::take(&mut row));
                    (used, word) = (rest.width(), 0);
                    continue;
                }
                let carried = if word > 0 { row.split_off(word) } else { vec![] };
                rows.push(std::mem::replace(&mut row, carried));
                used = rest.width() + row.iter().map(|(text, _)| width(text)).sum::<usize>();
                word = 0;
            }
            row.push((text, style));
            used += wide;
            if text == " " && row.iter().any(|(text, _)| *text != " ") {
                word = row.len();
            }
        }
        rows.push(row);
        let mut prefix = first;
        let mut lines = vec![];
        for mut row in rows {
            if row.iter().any(|(text, _)| *text != " ") {
                while row.last().is_some_and(|(text, _)| *text == " ") {
                    row.pop();
                }
            }
            lines.push(prefix.followed_by(row));
            prefix = rest;
        }
        lines
    }

    fn followed_by(&self, row: Vec<(&str, Style)>) -> Self {
        let mut line = self.clone();
        for (text, style) in row {
            match line.0.last_mut() {
                Some(last) if last.style == style => last.text.push_str(text),
                _ => line.0.push(Span { text: text.into(), style }),
            }
        }
        line
    }
}

/// The columns that a safe text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        let rows = Line::plain(text).wrap(columns, &Line::plain("* "), &Line::plain("  "));
        rows.iter().map(Line::text).collect()
    }

    #[test]
    fn a_text_is_broken_between_words_and_a_long_word_within() {
        assert_eq!(wrapped("one two three", 9), ["* one two", "  three"]);
        assert_eq!(wrapped("abcdefghij", 6), ["* abcd", "  efgh", "  ij"]);
        assert_eq!(wrapped("", 6), ["* "]);
        assert_eq!(wrapped("漢字漢字", 6), ["* 漢字", "  漢字"], "each takes two columns");
        assert_eq!(wrapped("    let x = 1;", 20), ["*     let x = 1;"], "an indent is kept");
    }

    #[test]
    fn what_deceives_never_reaches_the_terminal() {
        let line = Line::styled("a\u{1b}[2J\u{202e}b\n", Style::RED);
        assert_eq!(line.painted(Paint::Plain), "a\\u{1b}[2J\\u{202e}b\\n");
        assert_eq!(line.painted(Paint::Colours), "\u{1b}[31ma\\u{1b}[2J\\u{202e}b\\n\u{1b}[0m");
    }

    #[test]
    fn a_row_that_is_cut_says_so() {
        assert_eq!(Line::plain("abcdef").cut(4).text(), "abc…");
        assert_eq!(Line::plain("abcd").cut(4).text(), "abcd");
    }
}
