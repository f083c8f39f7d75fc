//! A reply as it comes: its finished blocks go into the scrollback, the last one is drawn anew as it grows.

use super::markdown;
use super::text::Line;

/// Bytes of a block that are drawn anew at most; of a longer one the whole lines so far are taken for a block of their own,
/// so that a reply without an end costs no more than one with many ends.
const LONGEST_BLOCK: usize = 32 * 1024;

/// What begins the rest of code.
const FENCE: &str = "```\n";

/// A block that was too long, of which a part is said.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Within {
    #[default]
    Nothing,
    Text,
    Code,
}

#[derive(Clone, Debug, Default)]
pub(super) struct TextStream {
    text: String,
    /// Bytes of finished blocks, which are in the scrollback.
    done: usize,
    /// Rows of the block after them that are in the scrollback already, as the screen had no room.
    spilled: usize,
    /// Some of it is in the scrollback.
    begun: bool,
    /// What the growing text is the rest of.
    within: Within,
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
        self.settle(columns, &mut said);
        let growing = self.growing();
        let rows = markdown::rows(&growing, columns);
        // What the last, unfinished line makes of the text may not stay so.
        let firm = match markdown::last_block(&growing) {
            0 => rows.len(),
            _ => markdown::rows(markdown::whole_lines(&growing), columns).len(),
        };
        let over = rows.len().saturating_sub(most.max(2)).min(firm).max(self.spilled);
        if over > self.spilled {
            self.say(rows[..over].to_vec(), &mut said);
            self.spilled = over;
        }
        let mut live: Vec<Line> = rows.into_iter().skip(over).collect();
        if self.begins_a_block() && !live.is_empty() {
            live.insert(0, Line::empty());
        }
        (said, live)
    }

    /// Says the blocks that will not change, and of one that is too long its whole lines.
    fn settle(&mut self, columns: usize, said: &mut Vec<Line>) {
        let growing = self.growing();
        let fence = if self.within == Within::Code { FENCE.len() } else { 0 };
        let settled = markdown::settled(&growing);
        if settled > 0 {
            self.say(markdown::rows(&growing[..settled], columns), said);
            self.done += settled - fence;
            (self.spilled, self.within) = (0, Within::Nothing);
        } else if growing.len() > LONGEST_BLOCK {
            let whole = markdown::whole_lines(&growing).len();
            let cut = if whole > fence { whole } else { growing.len() };
            self.say(markdown::rows(&growing[..cut], columns), said);
            self.within = if growing.starts_with("```") { Within::Code } else { Within::Text };
            self.done += cut - fence;
            self.spilled = 0;
        }
    }

    /// What is not settled; where that is the rest of code, with the fence that it stood behind.
    fn growing(&self) -> String {
        let fence = if self.within == Within::Code { FENCE } else { "" };
        format!("{fence}{}", &self.text[self.done..])
    }

    /// What is said next is parted from what was said before.
    fn begins_a_block(&self) -> bool {
        self.begun && self.spilled == 0 && self.within == Within::Nothing
    }

    /// Rows of the present block that are not said yet, with a gap before a new one.
    fn say(&mut self, rows: Vec<Line>, said: &mut Vec<Line>) {
        if rows.len() <= self.spilled {
            return;
        }
        if self.begins_a_block() {
            said.push(Line::empty());
        }
        self.begun = true;
        said.extend(rows.into_iter().skip(self.spilled));
    }

    /// It will not grow: the rest of it, for the scrollback.
    pub(super) fn end(&mut self, columns: usize) -> Vec<Line> {
        let mut said = self.flow(columns, usize::MAX).0;
        if !self.torn {
            let rows = markdown::rows(&self.growing(), columns);
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
    fn a_block_without_an_end_is_told_whole_and_in_time() {
        for (open, end) in [("```text\n", "\n"), ("", " ")] {
            let words: Vec<String> = (0..12_000).map(|word| format!("w{word}")).collect();
            let text = format!("{open}{}", words.join(end));
            let mut stream = TextStream::default();
            let mut said = vec![];
            for piece in text.as_bytes().chunks(4096) {
                stream.push(std::str::from_utf8(piece).expect("ASCII"));
                said.extend(stream.flow(80, 20).0);
            }
            said.extend(stream.complete(&text, 80));
            let found: Vec<String> = texts(&said)
                .iter()
                .flat_map(|row| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
                .collect();
            // A word that a piece cut in two may stand on two rows.
            assert_eq!(found.concat().trim_start_matches("text"), words.concat());
            if !open.is_empty() {
                assert!(said[1..].iter().all(|row| row.text().starts_with("  w")), "all of it is code");
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
