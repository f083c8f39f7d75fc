//! What a write would change, for a person to read.

use std::fmt::Write;
use std::path::Path;

const CONTEXT: usize = 3;
/// Longer differences are cut and say so.
const LINES: usize = 300;
const LINE_LENGTH: usize = 400;
/// Above this many pairs of lines, what differs is shown as one piece.
const PAIRS: usize = 1_000_000;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    Both,
    Old,
    New,
}

/// A unified difference. `old` is none where the file does not exist.
pub(super) fn difference(path: &Path, old: Option<&[u8]>, new: &[u8]) -> String {
    let mut text = match old {
        Some(_) => format!("--- {0}\n+++ {0}\n", path.display()),
        None => format!("--- /dev/null\n+++ {}\n", path.display()),
    };
    let old = old.unwrap_or_default();
    let (Ok(old_text), Ok(new_text)) = (std::str::from_utf8(old), std::str::from_utf8(new)) else {
        let _infallible = writeln!(text, "not text: {} bytes become {} bytes", old.len(), new.len());
        return text;
    };
    if old == new {
        text.push_str("nothing changes\n");
        return text;
    }
    let (old_lines, new_lines) = (lines(old_text), lines(new_text));
    let compared = compare(&old_lines, &new_lines);
    let mut shown = 0;
    for (begin, end) in hunks(&compared) {
        let before = &compared[..begin];
        let counts = |sides: &[(Side, &str)], side| {
            sides.iter().filter(|(found, _)| *found == Side::Both || *found == side).count()
        };
        let (old_at, new_at) = (counts(before, Side::Old), counts(before, Side::New));
        let hunk = &compared[begin..end];
        let (old_count, new_count) = (counts(hunk, Side::Old), counts(hunk, Side::New));
        // Writing to a string cannot fail.
        let _infallible = writeln!(text, "@@ -{},{old_count} +{},{new_count} @@", old_at + 1, new_at + 1);
        for (side, line) in hunk {
            if shown == LINES {
                let left = compared.iter().filter(|(side, _)| *side != Side::Both).count();
                let _infallible = writeln!(text, "[… cut here; {left} lines change in all …]");
                return text;
            }
            shown += 1;
            text.push(match side {
                Side::Both => ' ',
                Side::Old => '-',
                Side::New => '+',
            });
            push_line(&mut text, line);
        }
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    let (body, ended) = match line.strip_suffix('\n') {
        Some(body) => (body, true),
        None => (line, false),
    };
    if body.chars().count() > LINE_LENGTH {
        text.extend(body.chars().take(LINE_LENGTH));
        text.push_str(" [… line cut …]");
    } else {
        text.push_str(body);
    }
    text.push('\n');
    if !ended {
        text.push_str("\\ no newline at the end\n");
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Side, &'a str)> {
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(new).take_while(same).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(same).count();
    let old_middle = &old_rest[..old_rest.len() - tail];
    let new_middle = &new_rest[..new_rest.len() - tail];
    let both = |line: &&'a str| (Side::Both, *line);
    let mut compared: Vec<(Side, &str)> = old[..head].iter().map(both).collect();
    if old_middle.len().saturating_mul(new_middle.len()) > PAIRS {
        compared.extend(old_middle.iter().map(|line| (Side::Old, *line)));
        compared.extend(new_middle.iter().map(|line| (Side::New, *line)));
    } else {
        compared.extend(common(old_middle, new_middle));
    }
    compared.extend(old[old.len() - tail..].iter().map(both));
    compared
}

/// Aligns two lists by their longest common sequence.
fn common<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Side, &'a str)> {
    let width = new.len() + 1;
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    for (row, left) in old.iter().enumerate().rev() {
        for (column, right) in new.iter().enumerate().rev() {
            longest[row * width + column] = if left == right {
                longest[(row + 1) * width + column + 1] + 1
            } else {
                longest[(row + 1) * width + column].max(longest[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut aligned = vec![];
    while row < old.len() && column < new.len() {
        if old[row] == new[column] {
            aligned.push((Side::Both, old[row]));
            row += 1;
            column += 1;
        } else if longest[(row + 1) * width + column] >= longest[row * width + column + 1] {
            aligned.push((Side::Old, old[row]));
            row += 1;
        } else {
            aligned.push((Side::New, new[column]));
            column += 1;
        }
    }
    aligned.extend(old[row..].iter().map(|line| (Side::Old, *line)));
    aligned.extend(new[column..].iter().map(|line| (Side::New, *line)));
    aligned
}

/// Where something changes, with some lines around; changes that are near are one piece.
fn hunks(compared: &[(Side, &str)]) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = vec![];
    for (at, _) in compared.iter().enumerate().filter(|(_, (side, _))| *side != Side::Both) {
        let (begin, end) = (at.saturating_sub(CONTEXT), (at + 1 + CONTEXT).min(compared.len()));
        match hunks.last_mut() {
            Some(last) if last.1 >= begin => last.1 = end,
            _ => hunks.push((begin, end)),
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(old: Option<&str>, new: &str, expected: &Expect) {
        expected.assert_eq(&difference(Path::new("/r/a"), old.map(str::as_bytes), new.as_bytes()));
    }

    #[test]
    fn a_change_is_shown_with_what_stands_around_it() {
        check(
            Some("1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
            "1\n2\n3\n4\nfive\n6\n7\n8\n9",
            &expect![[r"
                --- /r/a
                +++ /r/a
                @@ -2,8 +2,8 @@
                 2
                 3
                 4
                -5
                +five
                 6
                 7
                 8
                -9
                +9
                \ no newline at the end
            "]],
        );
    }

    #[test]
    fn a_new_file_is_all_new() {
        check(
            None,
            "a\nb\n",
            &expect![[r"
                --- /dev/null
                +++ /r/a
                @@ -1,0 +1,2 @@
                +a
                +b
            "]],
        );
    }

    #[test]
    fn equal_and_binary_content_are_told_in_words() {
        check(
            Some("a"),
            "a",
            &expect![[r"
            --- /r/a
            +++ /r/a
            nothing changes
        "]],
        );
        let text = difference(Path::new("/r/a"), Some(b"\xff\xfe"), b"text");
        assert!(text.ends_with("not text: 2 bytes become 4 bytes\n"));
    }

    #[test]
    fn a_long_difference_is_cut_and_says_so() {
        let many = |word: &str| format!("{word}\n").repeat(5000);
        let text = difference(Path::new("/r/a"), Some(many("old").as_bytes()), many("new").as_bytes());
        assert!(text.lines().count() < LINES + 10 && text.contains("10000 lines change in all"), "{text}");
        let long = "x".repeat(100_000);
        assert!(difference(Path::new("/r/a"), None, long.as_bytes()).len() < 1000);
    }
}
