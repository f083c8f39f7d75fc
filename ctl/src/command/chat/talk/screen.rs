//! What is sent to the terminal: rows that stay in its scrollback, and below them a few that are drawn anew.

use super::text::Line;
use crate::output::Paint;

/// What is to be seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Frame {
    /// Goes into the scrollback and is never touched again.
    pub(super) said: Vec<Line>,
    /// Drawn anew each time. No row is wider than the terminal.
    pub(super) live: Vec<Line>,
    /// Row of `live` and column.
    pub(super) cursor: (usize, usize),
}

/// What stands on the terminal of the rows that are drawn anew.
#[derive(Debug, Default)]
pub(super) struct Screen {
    shown: Vec<Line>,
    cursor: (usize, usize),
    /// The terminal may have lost some of it.
    is_stale: bool,
}

impl Screen {
    /// The terminal has another size: what it made of the rows is its own affair, so they are all drawn anew.
    pub(super) fn resized(&mut self) {
        self.is_stale = true;
    }

    /// The bytes that make the terminal, `columns` wide, show the frame.
    pub(super) fn draw(&mut self, frame: Frame, columns: usize, paint: Paint) -> String {
        let is_stale = std::mem::take(&mut self.is_stale);
        if !is_stale && frame.said.is_empty() && frame.live == self.shown && frame.cursor == self.cursor {
            return String::new();
        }
        // As one: the terminal shows it when it is whole.
        let mut bytes = String::from("\x1b[?2026h\x1b[?25l");
        bytes.push_str(&self.wiped(columns));
        for line in &frame.said {
            bytes.push_str(&line.painted(paint));
            bytes.push_str("\r\n");
        }
        for (index, line) in frame.live.iter().enumerate() {
            if index > 0 {
                bytes.push_str("\r\n");
            }
            bytes.push_str(&line.painted(paint));
        }
        let (row, column) = frame.cursor;
        let up = frame.live.len().saturating_sub(row + 1);
        if up > 0 {
            put!(bytes, "\x1b[{up}A");
        }
        bytes.push('\r');
        if column > 0 {
            put!(bytes, "\x1b[{column}C");
        }
        bytes.push_str("\x1b[?25h\x1b[?2026l");
        self.shown = frame.live;
        self.cursor = frame.cursor;
        bytes
    }

    /// Takes away what is drawn anew: the cursor stands below the scrollback.
    pub(super) fn clear(&mut self, columns: usize) -> String {
        let bytes = self.wiped(columns);
        *self = Self::default();
        bytes
    }

    fn wiped(&self, columns: usize) -> String {
        let columns = columns.max(1);
        // A terminal that has become narrower has broken rows in two.
        let broken = |line: &Line| line.width().saturating_sub(1) / columns;
        let above: usize = self.shown.iter().take(self.cursor.0).map(|line| 1 + broken(line)).sum();
        let up = above + self.cursor.1 / columns;
        let up = if up > 0 { format!("\x1b[{up}A") } else { String::new() };
        format!("{up}\r\x1b[J")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(said: &[&str], live: &[&str], cursor: (usize, usize)) -> Frame {
        let lines = |texts: &[&str]| texts.iter().map(|text| Line::plain(text)).collect();
        Frame { said: lines(said), live: lines(live), cursor }
    }

    fn shown(bytes: &str) -> String {
        bytes.replace("\u{1b}[?2026h\u{1b}[?25l", "<").replace("\u{1b}[?25h\u{1b}[?2026l", ">").replace('\u{1b}', "^")
    }

    #[test]
    fn live_rows_are_wiped_before_anything_is_said() {
        let mut screen = Screen::default();
        let first = screen.draw(frame(&[], &["a", "> b"], (1, 3)), 80, Paint::Plain);
        assert_eq!(shown(&first), "<\r^[Ja\r\n> b\r^[3C>");
        let second = screen.draw(frame(&["said"], &["> b", "status"], (0, 2)), 80, Paint::Plain);
        assert_eq!(shown(&second), "<^[1A\r^[Jsaid\r\n> b\r\nstatus^[1A\r^[2C>");
        assert_eq!(screen.draw(frame(&[], &["> b", "status"], (0, 2)), 80, Paint::Plain), "", "nothing changed");
    }

    #[test]
    fn rows_that_a_narrower_terminal_broke_are_wiped_whole() {
        let mut screen = Screen::default();
        screen.draw(frame(&[], &["0123456789", "> "], (1, 2)), 80, Paint::Plain);
        screen.resized();
        let again = screen.draw(frame(&[], &["> "], (0, 2)), 5, Paint::Plain);
        assert_eq!(shown(&again), "<^[2A\r^[J> \r^[2C>");
        screen.resized();
        let same = screen.draw(frame(&[], &["> "], (0, 2)), 5, Paint::Plain);
        assert_eq!(shown(&same), "<\r^[J> \r^[2C>", "also where nothing else changed");
    }
}
