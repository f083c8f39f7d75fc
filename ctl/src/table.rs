use std::borrow::Cow;

use comfy_table::{ColumnConstraint, ContentArrangement, Table as Layout, presets};

use crate::escape;
use crate::output::{Colour, Out, Paint};

/// Rows in columns: as wide as the terminal with colours, else each row in one line.
pub(crate) struct Table {
    layout: Layout,
    paint: Paint,
}

// Marks without width stand for colours while the layout counts columns. Text from outside cannot hold them: they
// are escaped in it.
const BEGIN: [(Colour, char); 6] = [
    (Colour::Bold, '\u{206a}'),
    (Colour::Dim, '\u{206b}'),
    (Colour::Red, '\u{206c}'),
    (Colour::Green, '\u{206d}'),
    (Colour::Yellow, '\u{206e}'),
    (Colour::Cyan, '\u{206f}'),
];
const END: char = '\u{2060}';

/// One cell; its text is escaped as it is made.
pub(crate) struct Cell(String);

impl Cell {
    pub(crate) fn text(text: &str) -> Self {
        Self(escape::line(text).into_owned())
    }

    /// A word that says how something stands, in its colour.
    pub(crate) fn state(word: &str) -> Self {
        match Colour::of_state(word) {
            Some(colour) => Self::coloured(colour, word),
            None => Self::text(word),
        }
    }

    pub(crate) fn coloured(colour: Colour, text: &str) -> Self {
        let begin = BEGIN.iter().find(|(known, _)| *known == colour).map(|(_, mark)| *mark);
        Self(format!("{}{}{END}", begin.expect("every colour has a mark"), escape::line(text)))
    }

    pub(crate) fn maybe(text: Option<&str>) -> Self {
        text.map_or_else(|| Self::coloured(Colour::Dim, "-"), Self::text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::text(&text)
    }
}

impl Table {
    pub(crate) fn new(out: Out, header: &[&str]) -> Self {
        let mut layout = Layout::new();
        layout.load_style(presets::NOTHING);
        match out.width {
            Some(width) => {
                layout.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
            }
            None => {
                layout.set_content_arrangement(ContentArrangement::Disabled);
            }
        }
        let header = header.iter().map(|name| Cell::coloured(Colour::Bold, name).0);
        layout.set_header(header);
        let mut table = Self { layout, paint: out.paint };
        for column in table.layout.column_iter_mut() {
            column.set_padding((0, 2));
        }
        // What a row is called by must be copied in one piece.
        if let Some(first) = table.layout.column_mut(0) {
            first.set_constraint(ColumnConstraint::ContentWidth);
        }
        table
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.layout.add_row(cells.into_iter().map(|cell| cell.0));
    }

    pub(crate) fn show(&self) -> String {
        let mut text = String::new();
        for line in self.layout.lines() {
            text.push_str(painted(&line, self.paint).trim_end());
            text.push('\n');
        }
        text
    }
}

/// Names and values, a pair a line, the values in one column.
pub(crate) fn pairs(paint: Paint, rows: &[(&str, Cow<'_, str>)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in rows {
        text.push_str(&paint.in_colour(Colour::Bold, &format!("{name:width$}")));
        text.push_str("  ");
        text.push_str(value);
        text.push('\n');
    }
    text
}

fn painted(line: &str, paint: Paint) -> String {
    let mut text = String::with_capacity(line.len());
    for letter in line.chars() {
        let code = match BEGIN.iter().find(|(_, mark)| *mark == letter) {
            Some((colour, _)) => colour.code(),
            None if letter == END => Colour::END,
            None => {
                text.push(letter);
                continue;
            }
        };
        if paint == Paint::Colours {
            text.push_str(code);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::output::Form;

    fn table(out: Out) -> String {
        let mut table = Table::new(out, &["ID", "STATE", "TITLE"]);
        table.row([Cell::text("4k7"), Cell::state("succeeded"), Cell::text("evil\u{202e}\u{206c}\n漢字")]);
        table.row([Cell::text("9"), Cell::state("parked"), Cell::text("a rather long title that will not fit")]);
        table.show()
    }

    #[test]
    fn without_a_terminal_each_row_is_a_line_without_colour() {
        let out = Out { form: Form::Words, paint: Paint::Plain, width: None };
        expect![[r"
            ID   STATE      TITLE
            4k7  succeeded  evil\u{202e}\u{206c}\n漢字
            9    parked     a rather long title that will not fit
        "]]
        .assert_eq(&table(out));
    }

    #[test]
    fn on_a_terminal_columns_wrap_and_colours_take_no_room() {
        let out = Out { form: Form::Words, paint: Paint::Colours, width: Some(40) };
        let shown = table(out).replace('\x1b', "^");
        expect![[r"
            ^[1mID^[0m   ^[1mSTATE^[0m      ^[1mTITLE^[0m
            4k7  ^[32msucceeded^[0m  evil\u{202e}\u{206c}\n
                            漢字
            9    ^[33mparked^[0m     a rather long title
                            that will not fit
        "]]
        .assert_eq(&shown);
    }
}
