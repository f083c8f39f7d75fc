//! A reply as it comes: its finished blocks go into the scrollback, the last one is drawn anew as it grows.

use super::markdown;
use super::text::Line;

#[derive(Clone, Debug, Default)]
pub(super) struct TextStream {
    text: String,
    /// Bytes of finished blocks, which are in the scrollback.
    done: usize,
    /// Rows of the block after them that are in the scrollback already, as the screen had no room.
    spilled: usize,
    /// Some of it is in the scrollback.
    begun: bool,
    /// Pieces are missing: what comes is not shown before the whole is there.
    torn: bool,
}

impl TextStream {
    pub(super) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
    }

    pub(super) fn tear(&mut self) {
        self.torn = true;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() || self.torn
    }

    /// Rows for the scrollback, and those that are still to be drawn anew, at most `most`.
    pub(super) fn flow(&mut self, columns: usize, most: usize) -> (Vec<Line>, Vec<Line>) {
        if self.torn {
            return (vec![], vec![]);
        }
        let mut said = vec![];
        let growing = &self.text[self.done..];
        let settled = markdown::settled(growing);
        if settled > 0 {
            let rows = markdown::rows(&growing[..settled], columns);
            self.say(rows, &mut said);
            self.done += settled;
            self.spilled = 0;
        }
        let growing = &self.text[self.done..];
        let rows = markdown::rows(growing, columns);
        // What the last, unfinished line makes of the text may not stay so.
        let firm = match markdown::last_block(growing) {
            0 => rows.len(),
            _ => markdown::rows(markdown::whole_lines(growing), columns).len(),
        };
        let over = rows.len().saturating_sub(most.max(2)).min(firm).max(self.spilled);
        if over > self.spilled {
            self.say(rows[..over].to_vec(), &mut said);
            self.spilled = over;
        }
        let mut live: Vec<Line> = rows.into_iter().skip(over).collect();
        if self.begun && self.spilled == 0 && !live.is_empty() {
            live.insert(0, Line::empty());
        }
        (said, live)
    }

    /// Rows of the present block that are not said yet, with a gap before a new one.
    fn say(&mut self, rows: Vec<Line>, said: &mut Vec<Line>) {
        if rows.len() <= self.spilled {
            return;
        }
        if self.spilled == 0 && self.begun {
            said.push(Line::empty());
        }
        self.begun = true;
        said.extend(rows.into_iter().skip(self.spilled));
    }

    /// It will not grow: the rest of it, for the scrollback.
    pub(super) fn end(&mut self, columns: usize) -> Vec<Line> {
        let mut said = self.flow(columns, usize::MAX).0;
        let rows = markdown::rows(&self.text[self.done..], columns);
        if !self.torn {
            self.say(rows, &mut said);
        }
        *self = Self::default();
        said
    }

    /// The whole text is known: what of it is not in the scrollback yet. All of it, if what was shown was another.
    pub(super) fn complete(&mut self, whole: &str, columns: usize) -> Vec<Line> {
        if !whole.starts_with(&self.text[..self.done]) || (self.spilled > 0 && !whole.starts_with(self.text.as_str())) {
            *self = Self::default();
        }
        whole.clone_into(&mut self.text);
        self.torn = false;
        self.end(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(rows: &[Line]) -> Vec<String> {
        rows.iter().map(Line::text).collect()
    }

    /// However the text is cut into pieces, the same rows end up in the scrollback.
    #[test]
    fn pieces_make_the_same_rows_as_the_whole() {
        let table = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |";
        let text = "# Title\n\nSome *text* that is long enough to be broken.\n\n- one\n- two\n\n```sh\nls\n\nps\n```\n\n1. a\n2. b\n\nend";
        let text = &format!("{text}\n\n{table}\n\n{text}");
        let whole = texts(&TextStream::default().complete(text, 20));
        assert!(whole.contains(&"  ps".to_owned()), "{whole:?}");
        for size in [1, 2, 3, 7, 50] {
            for most in [2, 3, 100] {
                let mut stream = TextStream::default();
                let mut said = vec![];
                let letters: Vec<char> = text.chars().collect();
                for piece in letters.chunks(size) {
                    stream.push(&piece.iter().collect::<String>());
                    let (rows, live) = stream.flow(20, most);
                    said.extend(rows);
                    assert!(live.len() <= most + 3, "{live:?}");
                }
                said.extend(stream.complete(text, 20));
                assert_eq!(texts(&said), whole, "pieces of {size}, {most} rows");
            }
        }
    }

    #[test]
    fn a_torn_stream_is_shown_when_it_is_whole() {
        let mut stream = TextStream::default();
        stream.push("one");
        stream.tear();
        stream.push("three");
        assert!(stream.is_empty());
        assert_eq!(stream.flow(20, 9), (vec![], vec![]));
        assert_eq!(texts(&stream.complete("one two three", 20)), ["one two three"]);
    }
}
