//! The line that a person types in; it may have several.

use unicode_segmentation::UnicodeSegmentation;

use super::key::Key;
use super::text::{Line, Style};

/// A text under the cursor, with what was said before.
#[derive(Clone, Debug, Default)]
pub(super) struct Prompt {
    text: String,
    /// A byte between two characters.
    cursor: usize,
    history: Vec<String>,
    /// Which entry of the history is shown, and what was typed before it was.
    recalled: Option<(usize, String)>,
    killed: String,
}

/// What a key did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Typed {
    /// The text or the cursor changed, or nothing.
    On,
    /// It is done.
    Entered(String),
    /// The key is not for editing.
    Unused,
}

impl Prompt {
    pub(super) fn with_history(history: Vec<String>) -> Self {
        Self { history, ..Self::default() }
    }

    /// The text up to the cursor.
    pub(super) fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
        self.recalled = None;
    }

    pub(super) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Keeps what was said, for later recall.
    pub(super) fn remember(&mut self, said: &str) {
        if self.history.last().is_none_or(|last| last != said) {
            self.history.push(said.to_owned());
        }
    }

    pub(super) fn history(&self) -> &[String] {
        &self.history
    }

    pub(super) fn press(&mut self, key: &Key) -> Typed {
        match key {
            Key::Char(letter) => self.insert(letter.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => self.insert(text),
            Key::NewLine => self.insert("\n"),
            // A backslash at the end of the line asks for one more.
            Key::Enter if self.before().ends_with('\\') => {
                self.backspace();
                self.insert("\n");
            }
            Key::Enter => {
                let text = std::mem::take(&mut self.text);
                self.clear();
                return Typed::Entered(text);
            }
            Key::Backspace => self.backspace(),
            Key::Delete => self.remove(self.cursor, self.right(self.cursor)),
            Key::Ctrl('d') if !self.is_empty() => self.remove(self.cursor, self.right(self.cursor)),
            Key::Left | Key::Ctrl('b') => self.cursor = self.left(self.cursor),
            Key::Right | Key::Ctrl('f') => self.cursor = self.right(self.cursor),
            Key::WordLeft | Key::Alt('b') => self.cursor = self.word_left(),
            Key::WordRight | Key::Alt('f') => self.cursor = self.word_right(),
            Key::Home | Key::Ctrl('a') => self.cursor = self.line_start(),
            Key::End | Key::Ctrl('e') => self.cursor = self.line_end(),
            Key::Up => self.up(),
            Key::Down => self.down(),
            Key::Ctrl('p') => self.recall_older(),
            Key::Ctrl('n') => self.recall_newer(),
            Key::Ctrl('k') => self.kill(self.cursor, self.line_end()),
            Key::Ctrl('u') => self.kill(self.line_start(), self.cursor),
            Key::Ctrl('w') => self.kill(self.word_left(), self.cursor),
            Key::Alt('d') => self.kill(self.cursor, self.word_right()),
            Key::Ctrl('y') => {
                let killed = self.killed.clone();
                self.insert(&killed);
            }
            Key::Alt(_) | Key::Ctrl(_) | Key::Tab | Key::Escape | Key::Other => return Typed::Unused,
        }
        Typed::On
    }

    fn left(&self, at: usize) -> usize {
        self.text[..at].graphemes(true).next_back().map_or(0, |cluster| at - cluster.len())
    }

    fn right(&self, at: usize) -> usize {
        self.text[at..].graphemes(true).next().map_or(at, |cluster| at + cluster.len())
    }

    fn word_left(&self) -> usize {
        let before = self.before().trim_end_matches(|letter: char| !letter.is_alphanumeric());
        before.trim_end_matches(char::is_alphanumeric).len()
    }

    fn word_right(&self) -> usize {
        let after = &self.text[self.cursor..];
        let word = after.trim_start_matches(|letter: char| !letter.is_alphanumeric());
        self.text.len() - word.trim_start_matches(char::is_alphanumeric).len()
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn backspace(&mut self) {
        self.remove(self.left(self.cursor), self.cursor);
    }

    fn remove(&mut self, from: usize, until: usize) {
        self.text.drain(from..until);
        self.cursor = from;
    }

    fn kill(&mut self, from: usize, until: usize) {
        if from < until {
            self.killed = self.text[from..until].to_owned();
            self.remove(from, until);
        }
    }

    fn up(&mut self) {
        let start = self.line_start();
        if start == 0 {
            return self.recall_older();
        }
        let column = self.before()[start..].graphemes(true).count();
        self.cursor = start - 1;
        self.move_to_column(column);
    }

    fn down(&mut self) {
        let end = self.line_end();
        if end == self.text.len() {
            return self.recall_newer();
        }
        let column = self.before()[self.line_start()..].graphemes(true).count();
        self.cursor = end + 1;
        self.move_to_column(column);
    }

    /// Puts the cursor into this column of the line that it is in, or to the line's end.
    fn move_to_column(&mut self, column: usize) {
        let (start, end) = (self.line_start(), self.line_end());
        let columns = self.text[start..end].graphemes(true).take(column);
        self.cursor = start + columns.map(str::len).sum::<usize>();
    }

    fn recall_older(&mut self) {
        let (at, typed) = match self.recalled.take() {
            Some((at, typed)) => (at.saturating_sub(1), typed),
            None if self.history.is_empty() => return,
            None => (self.history.len() - 1, self.text.clone()),
        };
        self.show(self.history[at].clone());
        self.recalled = Some((at, typed));
    }

    fn recall_newer(&mut self) {
        let Some((at, typed)) = self.recalled.take() else { return };
        if let Some(newer) = self.history.get(at + 1).cloned() {
            self.show(newer);
            self.recalled = Some((at + 1, typed));
        } else {
            self.show(typed);
        }
    }

    fn show(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
    }

    /// The rows as they are drawn, at most `most` of them around the cursor, and where the cursor stands: row, column.
    pub(super) fn rows(&self, sign: &str, columns: usize, most: usize) -> (Vec<Line>, (usize, usize)) {
        let (first, rest) =
            (Line::styled(sign, Style::BOLD | Style::CYAN), Line::plain(&" ".repeat(sign.chars().count())));
        let mut rows = vec![first];
        let mut used = rest.width();
        let mut place = None;
        let mut at = 0;
        for cluster in self.text.graphemes(true) {
            if at == self.cursor {
                place = Some((rows.len() - 1, used));
            }
            at += cluster.len();
            if cluster == "\n" || cluster == "\r\n" {
                rows.push(rest.clone());
                used = rest.width();
                continue;
            }
            let shown = Line::plain(cluster);
            if used + shown.width() >= columns {
                if place == Some((rows.len() - 1, used)) {
                    place = Some((rows.len(), rest.width()));
                }
                rows.push(rest.clone());
                used = rest.width();
            }
            used += shown.width();
            rows.last_mut().expect("there is always a row").push(cluster, Style::PLAIN);
        }
        let (row, column) = place.unwrap_or((rows.len() - 1, used));
        let skipped = (row + 1).saturating_sub(most.max(1));
        (rows.into_iter().skip(skipped).take(most.max(1)).collect(), (row - skipped, column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::chat::talk::key::Decoder;

    fn typed(prompt: &mut Prompt, bytes: &str) -> Vec<String> {
        let keys = Decoder::default().feed(bytes.as_bytes());
        let entered = keys.iter().filter_map(|key| match prompt.press(key) {
            Typed::Entered(text) => Some(text),
            Typed::On | Typed::Unused => None,
        });
        entered.collect()
    }

    #[test]
    fn a_line_is_edited_as_everywhere() {
        let cases = [
            ("hello\u{1}X\r", "Xhello"),
            ("one two three\u{17}\u{17}\r", "one "),
            ("one two\u{15}x\r", "x"),
            ("ab\u{1b}[D\u{7f}\r", "b"),
            ("one two\u{1b}b\u{b}\u{1}\u{19}\r", "twoone "),
            ("e\u{301}x\u{7f}\u{7f}\r", ""),
            ("a\\\rb\r", "a\nb"),
            ("a\u{1b}\rb\u{1b}[A!\r", "a!\nb"),
            ("\u{1b}[200~a\nb\u{1b}[201~c\r", "a\nbc"),
        ];
        for (bytes, text) in cases {
            assert_eq!(typed(&mut Prompt::default(), bytes), [text], "{bytes:?}");
        }
    }

    #[test]
    fn what_was_said_is_recalled_and_what_was_typed_comes_back() {
        let mut prompt = Prompt::with_history(vec!["one".into(), "two".into()]);
        typed(&mut prompt, "dra\u{1b}[A\u{1b}[A\u{1b}[A");
        assert_eq!(prompt.text, "one");
        typed(&mut prompt, "\u{1b}[B\u{1b}[B");
        assert_eq!(prompt.text, "dra");
    }

    #[test]
    fn long_lines_are_broken_and_the_cursor_stays_in_sight() {
        let mut prompt = Prompt::default();
        typed(&mut prompt, "abcdefgh");
        let (rows, place) = prompt.rows("> ", 7, 5);
        assert_eq!(rows.iter().map(Line::text).collect::<Vec<_>>(), ["> abcd", "  efgh"]);
        assert_eq!(place, (1, 6));
        let (rows, place) = prompt.rows("> ", 7, 1);
        assert_eq!((rows[0].text().as_str(), place), ("  efgh", (0, 6)));
        typed(&mut prompt, "\u{1}");
        assert_eq!(prompt.rows("> ", 7, 5).1, (0, 2));
    }
}
