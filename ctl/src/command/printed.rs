//! What a running command prints, which comes in pieces.

use std::collections::VecDeque;

/// So many of its lines are kept.
const KEPT: usize = 3;
/// A line that is not over by then is taken for one.
const LONGEST: usize = 8192;

/// The newest lines of what a call printed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Printed {
    lines: VecDeque<String>,
    open: String,
}

impl Printed {
    /// Takes the next piece, and returns the lines that are whole by it. A progress bar's states are lines too; empty
    /// ones are none.
    pub(crate) fn take(&mut self, piece: &str) -> Vec<String> {
        let mut whole = vec![];
        for part in piece.split_inclusive(['\n', '\r']) {
            self.open.push_str(part);
            if part.ends_with(['\n', '\r']) || self.open.len() > LONGEST {
                whole.extend(self.end());
            }
        }
        whole
    }

    /// The line that is not over, as if it were.
    pub(crate) fn end(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.open).trim_end().to_owned();
        if line.is_empty() {
            return None;
        }
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line.clone());
        Some(line)
    }

    /// The last lines, at most `most` of them, oldest first.
    pub(crate) fn newest(&self, most: usize) -> impl Iterator<Item = &str> {
        let open = Some(self.open.trim_end()).filter(|line| !line.is_empty());
        let count = self.lines.len() + usize::from(open.is_some());
        self.lines.iter().map(String::as_str).chain(open).skip(count.saturating_sub(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_from_pieces_and_the_newest_are_kept() {
        let mut printed = Printed::default();
        assert_eq!(printed.take("one\ntw"), ["one"]);
        assert_eq!(printed.newest(3).collect::<Vec<_>>(), ["one", "tw"]);
        assert_eq!(printed.take("o\n\n10%\r20%\r"), ["two", "10%", "20%"]);
        assert_eq!(printed.newest(3).collect::<Vec<_>>(), ["two", "10%", "20%"]);
        assert_eq!(printed.newest(1).collect::<Vec<_>>(), ["20%"]);
        assert!(printed.take("the end").is_empty());
        assert_eq!((printed.end().as_deref(), printed.end()), (Some("the end"), None));
        assert_eq!(printed.take(&"x".repeat(100_000)).len(), 1, "a text without lines is no reason to wait");
    }
}
