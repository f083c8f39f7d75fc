//! Markdown as rows for a terminal.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::text::{Line, Style};

/// A column of a table is not made narrower than this; where that does not do, its cells stand below one another.
const NARROWEST_COLUMN: usize = 6;

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// The text as rows of at most so many columns.
pub(super) fn rows(text: &str, columns: usize) -> Vec<Line> {
    let mut writer = Writer::new(columns);
    for event in Parser::new_ext(text, options()) {
        writer.take(event);
    }
    writer.end_paragraph();
    writer.rows
}

/// How much of a text that still grows is settled: where the last block of its whole lines begins.
///
/// A line that is not whole counts for nothing: it may begin a block now and belong to the one before in the end, as the
/// first `|` of a table's row does.
pub(super) fn settled(text: &str) -> usize {
    last_block(whole_lines(text))
}

pub(super) fn whole_lines(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..=end])
}

/// Where the last block begins.
pub(super) fn last_block(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut last = 0;
    for (event, place) in Parser::new_ext(text, options()).into_offset_iter() {
        if depth == 0 {
            last = place.start;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    last
}

/// What stands before the rows of a block within another.
struct Prefix {
    /// Before the first row, as long as that is not written: a list's sign.
    first: Option<Line>,
    rest: Line,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<Line>>,
    cell: Option<Line>,
}

struct Writer {
    columns: usize,
    rows: Vec<Line>,
    /// The text of the paragraph so far; `\n` within stands for a forced break.
    paragraph: Vec<Line>,
    styles: Vec<Style>,
    prefixes: Vec<Prefix>,
    /// The next number of each list that is open; none: it has signs.
    lists: Vec<Option<u64>>,
    table: Option<Table>,
    code: Option<String>,
    links: Vec<(String, String)>,
    /// The next block is parted by an empty row from what stands above.
    gap: bool,
}

impl Writer {
    fn new(columns: usize) -> Self {
        Self {
            columns: columns.max(10),
            rows: vec![],
            paragraph: vec![],
            styles: vec![],
            prefixes: vec![],
            lists: vec![],
            table: None,
            code: None,
            links: vec![],
            gap: false,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::Code(text) => {
                let style = self.style() | Style::CYAN;
                self.span(&text, style);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.lines_of(&text),
            Event::FootnoteReference(name) => self.text(&name),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.paragraph.push(Line::empty()),
            Event::Rule => {
                self.begin_block();
                let line = Line::styled(&"─".repeat(self.room().min(40)), Style::DIM);
                self.write(&line);
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => {
                self.end_paragraph();
                self.begin_block();
            }
            Tag::Heading { level, .. } => {
                self.end_paragraph();
                self.begin_block();
                let more =
                    if matches!(level, HeadingLevel::H1 | HeadingLevel::H2) { Style::UNDERLINE } else { Style::PLAIN };
                self.styles.push(self.style() | Style::BOLD | more);
            }
            Tag::BlockQuote(_) => {
                self.end_paragraph();
                self.begin_block();
                self.prefixes.push(Prefix { first: None, rest: Line::styled("│ ", Style::DIM) });
            }
            Tag::CodeBlock(kind) => {
                self.end_paragraph();
                self.begin_block();
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.write(&Line::styled(&language, Style::DIM));
                }
                self.code = Some(String::new());
            }
            Tag::List(number) => {
                self.end_paragraph();
                if self.lists.is_empty() {
                    self.begin_block();
                }
                self.lists.push(number);
            }
            Tag::Item => self.start_item(),
            Tag::Table(_) => {
                self.end_paragraph();
                self.begin_block();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(vec![]);
                }
            }
            Tag::TableCell => {
                if let Some(table) = &mut self.table {
                    table.cell = Some(Line::empty());
                }
            }
            Tag::Emphasis => self.styles.push(self.style() | Style::ITALIC),
            Tag::Strong => self.styles.push(self.style() | Style::BOLD),
            Tag::Strikethrough => self.styles.push(self.style() | Style::STRUCK),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.into_string(), String::new()));
                self.styles.push(self.style() | Style::UNDERLINE);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_paragraph();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.end_paragraph();
                self.styles.pop();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.end_paragraph();
                self.prefixes.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                for line in code.lines() {
                    self.wrap(&Line::styled(line, Style::CYAN), &Line::plain("  "));
                }
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.end_paragraph();
                self.lists.pop();
                self.gap = self.gap || self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_paragraph();
                if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
                    self.write(&Line::empty());
                }
                self.prefixes.pop();
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table
                    && let (Some(cell), Some(row)) = (table.cell.take(), table.rows.last_mut())
                {
                    row.push(cell);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some((to, said)) = self.links.pop()
                    && to != said
                    && to != format!("mailto:{said}")
                {
                    self.span(&format!(" ({to})"), Style::DIM);
                }
            }
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            code.push_str(text);
            return;
        }
        self.span(text, self.style());
    }

    /// Several lines that are no Markdown.
    fn lines_of(&mut self, text: &str) {
        for (index, line) in text.trim_end_matches('\n').split('\n').enumerate() {
            if index > 0 {
                self.paragraph.push(Line::empty());
            }
            self.span(line, self.style());
        }
    }

    fn span(&mut self, text: &str, style: Style) {
        for (_, said) in &mut self.links {
            said.push_str(text);
        }
        let text = without_variations(text);
        if let Some(cell) = self.table.as_mut().and_then(|table| table.cell.as_mut()) {
            cell.push(&text, style);
            return;
        }
        if self.paragraph.is_empty() {
            self.paragraph.push(Line::empty());
        }
        self.paragraph.last_mut().expect("one was just pushed").push(&text, style);
    }

    fn start_item(&mut self) {
        self.end_paragraph();
        let sign = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "• ".into(),
        };
        let rest = Line::plain(&" ".repeat(sign.chars().count()));
        self.prefixes.push(Prefix { first: Some(Line::styled(&sign, Style::CYAN)), rest });
    }
}

/// Writing rows.
impl Writer {
    /// Columns that are left beside what stands before.
    fn room(&self) -> usize {
        let taken: usize = self.prefixes.iter().map(|prefix| prefix.rest.width()).sum();
        self.columns.saturating_sub(taken).max(10)
    }

    fn begin_block(&mut self) {
        if std::mem::take(&mut self.gap) {
            let mut row = Line::empty();
            for prefix in &self.prefixes {
                row.append(prefix.rest.clone());
            }
            self.rows.push(if row.text().trim().is_empty() { Line::empty() } else { row });
        }
    }

    fn end_paragraph(&mut self) {
        for line in std::mem::take(&mut self.paragraph) {
            self.wrap(&line, &Line::empty());
        }
    }

    fn wrap(&mut self, line: &Line, indent: &Line) {
        for row in line.wrap(self.room(), indent, indent) {
            self.write(&row);
        }
    }

    fn write(&mut self, row: &Line) {
        let mut whole = Line::empty();
        for prefix in &mut self.prefixes {
            whole.append(prefix.first.take().unwrap_or_else(|| prefix.rest.clone()));
        }
        whole.append(row.clone());
        self.rows.push(whole);
    }

    fn end_table(&mut self) {
        let Some(Table { rows, .. }) = self.table.take() else { return };
        let count = rows.first().map_or(0, Vec::len);
        let wanted = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(Line::width).max().unwrap_or(0);
        let widths: Vec<usize> = (0..count).map(wanted).collect();
        match fitted(widths, self.room().saturating_sub(2 * count.saturating_sub(1))) {
            Some(widths) => self.columns_of(&rows, &widths),
            None => self.records_of(&rows),
        }
        self.gap = true;
    }

    fn columns_of(&mut self, rows: &[Vec<Line>], widths: &[usize]) {
        for (index, row) in rows.iter().enumerate() {
            let cells: Vec<Vec<Line>> =
                row.iter().zip(widths).map(|(cell, width)| cell.wrap(*width, &Line::empty(), &Line::empty())).collect();
            for at in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let mut line = Line::empty();
                for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                    let part = cell.get(at).cloned().unwrap_or_default();
                    let blanks = if column + 1 < cells.len() { width - part.width() + 2 } else { 0 };
                    line.append(part);
                    line.push(&" ".repeat(blanks), Style::PLAIN);
                }
                self.write(&line);
            }
            if index == 0 {
                let line = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("  ");
                self.write(&Line::styled(&line, Style::DIM));
            }
        }
    }

    /// A table that is too wide: each cell behind the name of its column.
    fn records_of(&mut self, rows: &[Vec<Line>]) {
        let Some((names, records)) = rows.split_first() else { return };
        for (index, record) in records.iter().enumerate() {
            if index > 0 {
                self.write(&Line::empty());
            }
            for (name, cell) in names.iter().zip(record) {
                let mut line = Line::styled(&format!("{}: ", name.text()), Style::BOLD);
                line.append(cell.clone());
                self.wrap(&line, &Line::empty());
            }
        }
    }
}

/// Widths of columns that together take at most `room`: the widest give way first. None: it cannot be.
fn fitted(mut widths: Vec<usize>, room: usize) -> Option<Vec<usize>> {
    for width in &mut widths {
        *width = (*width).max(1);
    }
    while widths.iter().sum::<usize>() > room {
        let widest = widths.iter_mut().max()?;
        if *widest <= NARROWEST_COLUMN {
            return None;
        }
        *widest -= 1;
    }
    Some(widths)
}

/// Without the marks by which a picture letter asks for its colours, and the joints between two: they hide nothing there,
/// and written out they would stand in half of what models say.
fn without_variations(text: &str) -> String {
    let is_picture = |letter: char| matches!(letter, '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}');
    let mut kept = String::with_capacity(text.len());
    let mut pictures = false;
    for letter in text.chars() {
        if pictures && matches!(letter, '\u{fe0e}' | '\u{fe0f}' | '\u{200d}') {
            continue;
        }
        pictures = is_picture(letter);
        kept.push(letter);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Paint;

    fn check(text: &str, columns: usize, rows: &[&str]) {
        let shown: Vec<String> = super::rows(text, columns).iter().map(Line::text).collect();
        assert_eq!(shown, rows, "{text:?}");
    }

    #[test]
    fn blocks_are_legible() {
        check("# One\n\ntwo\nthree", 40, &["One", "", "two three"]);
        check("a\n\n- b\n- c c c c\n  1. d\n\ne", 9, &["a", "", "• b", "• c c c c", "  1. d", "", "e"]);
        check("- a\n\n- b", 40, &["• a", "", "• b"]);
        check("> quoted\n> more\n>\n> end", 40, &["│ quoted more", "│ ", "│ end"]);
        check("```rust\nfn a() {\n    b();\n}\n```\nx", 40, &["rust", "  fn a() {", "      b();", "  }", "", "x"]);
        check("- [x] done\n- [ ] open", 40, &["• [x] done", "• [ ] open"]);
        check(
            "see [here](https://a.example) and <https://b.example>",
            80,
            &["see here (https://a.example) and https://b.example"],
        );
        check("a  \nb\n\n---\n\n<b>c</b>", 20, &["a", "b", "", &"─".repeat(20), "", "<b>c</b>"]);
    }

    #[test]
    fn a_table_fits_or_becomes_records() {
        let table = "| name | what it is |\n|---|---|\n| a | the first |\n| b | one two three |";
        check(table, 40, &["name  what it is", "────  ─────────────", "a     the first", "b     one two three"]);
        check(
            table,
            14,
            &[
                "name  what it",
                "      is",
                "────  ────────",
                "a     the",
                "      first",
                "b     one two",
                "      three",
            ],
        );
        let wide = "| aaaaaaaaa | bbbbbbbbb | ccccccccc |\n|---|---|---|\n| 1 | 2 | 3 |";
        check(wide, 12, &["aaaaaaaaa: 1", "bbbbbbbbb: 2", "ccccccccc: 3"]);
    }

    #[test]
    fn emphasis_is_colour_and_the_text_stays_safe() {
        let row = &rows("a **b** _c_ `d` &#x202e;x \u{26a0}\u{fe0f}!", 80)[0];
        assert_eq!(
            row.painted(Paint::Colours),
            "a \u{1b}[1mb\u{1b}[0m \u{1b}[3mc\u{1b}[0m \u{1b}[36md\u{1b}[0m \\u{202e}x \u{26a0}!"
        );
    }

    #[test]
    fn only_the_last_block_of_a_growing_text_can_change() {
        for (text, done) in [
            ("one\n\ntwo\n", "one\n\n"),
            ("one\n\ntwo", ""),
            ("one", ""),
            ("|a|\n|-|\n|", ""),
            ("- a\n- b", ""),
            ("a\n```\nb\n\nc\n", "a\n"),
            ("", ""),
        ] {
            assert_eq!(settled(text), done.len(), "{text:?}");
        }
    }
}
