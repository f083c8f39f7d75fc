//! Reads a text by lines: a range of them, each bounded, with a word on where to go on.

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;

use ow_model::{CallError, CallErrorKind, CallResult};
use serde_json::json;

use super::walk::is_binary;
use crate::capture::Finished;
use crate::helper::work::Work;
use crate::world::{self, failed};

/// So many lines are read at once.
pub(super) const LINES: u64 = 2000;
/// Characters of one line that are shown.
const LINE: usize = 500;
const PIECE: usize = 64 * 1024;

/// Which lines, and how they are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    /// Counted from 1.
    pub(super) first: u64,
    pub(super) most: u64,
    pub(super) numbered: bool,
}

pub(super) fn read(
    work: &Work,
    path: &Path,
    mut file: &File,
    metadata: &Metadata,
    range: Range,
) -> Result<Finished, CallError> {
    // From the beginning on, so that a secret over several lines is found whatever is asked for.
    let mut redact = work.secrets.redactor().stream();
    let mut lines = Lines::new(range, work.limits.output_bytes);
    let mut piece = vec![0; PIECE];
    let mut is_first = true;
    loop {
        let length = file.read(&mut piece).map_err(|error| world::io_failed("read", path, &error))?;
        if is_first && (is_binary(&piece[..length]) || known_kind(&piece[..length]).is_some()) {
            return Err(failed(format!(
                "`{}` is {} of {} bytes and no text; it cannot be read by lines",
                path.display(),
                kind_of(&piece[..length]),
                metadata.len()
            )));
        }
        is_first = false;
        if length == 0 {
            lines.push(&redact.finish());
            lines.end();
            break;
        }
        lines.push(&redact.push(&piece[..length]));
        if lines.is_full {
            break;
        }
        if work.stop.token.is_cancelled() {
            return Err(CallError { kind: CallErrorKind::Stopped, message: "stopped by owd".into() });
        }
    }
    let Range { first, .. } = range;
    let Lines { text, taken, number, is_full, crlf, .. } = lines;
    let known = number - 1;
    if taken == 0 && first > 1 {
        return Err(failed(format!("`{}` has only {known} lines, and line {first} was asked for", path.display())));
    }
    let mut output = json!({ "path": path, "bytes": metadata.len(), "text": text });
    output["from"] = first.into();
    output["to"] = (first + taken).saturating_sub(1).into();
    if is_full {
        let next = first + taken;
        output["next"] = next.into();
        output["note"] = format!("there is more: go on with line = {next}").into();
    } else {
        output["lines"] = known.into();
    }
    if crlf {
        output["line-ends"] = "CRLF".into();
    }
    let result = CallResult { outside: world::is_outside(file, metadata), ..CallResult::ok(output) };
    Ok(result.into())
}

/// Takes a text in pieces and keeps the lines that are asked for.
struct Lines {
    range: Range,
    room: usize,
    text: String,
    taken: u64,
    /// Of the line that is being read.
    number: u64,
    line: Vec<u8>,
    /// Characters of the line beyond those that are kept.
    beyond: u64,
    /// Something of the line was there.
    begun: bool,
    is_full: bool,
    crlf: bool,
}

impl Lines {
    fn new(range: Range, room: usize) -> Self {
        Self {
            range,
            room,
            text: String::new(),
            taken: 0,
            number: 1,
            line: vec![],
            beyond: 0,
            begun: false,
            is_full: false,
            crlf: false,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        // A character has at most four bytes, and a line end two more.
        const KEPT: usize = LINE * 4 + 2;
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_full {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let part = &rest[..end.unwrap_or(rest.len())];
            if self.number >= self.range.first {
                let kept = part.len().min(KEPT - self.line.len());
                self.line.extend_from_slice(&part[..kept]);
                self.beyond += part[kept..].iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u64;
            }
            self.begun |= !part.is_empty();
            match end {
                Some(end) => {
                    self.line_ends();
                    rest = &rest[end + 1..];
                }
                None => return,
            }
        }
    }

    fn end(&mut self) {
        if self.begun && !self.is_full {
            self.line_ends();
        }
    }

    fn line_ends(&mut self) {
        let line = std::mem::take(&mut self.line);
        let beyond = std::mem::take(&mut self.beyond);
        self.begun = false;
        if self.number >= self.range.first {
            if self.taken >= self.range.most {
                self.is_full = true;
                return;
            }
            let bare = line.strip_suffix(b"\r").unwrap_or(&line);
            let shown = self.shown(bare, beyond);
            if self.taken > 0 && self.text.len() + shown.len() > self.room {
                self.is_full = true;
                return;
            }
            self.crlf |= bare.len() < line.len() && beyond == 0;
            self.text.push_str(&shown);
            self.taken += 1;
        }
        self.number += 1;
    }

    fn shown(&self, line: &[u8], beyond: u64) -> String {
        let text = String::from_utf8_lossy(line);
        let number = if self.range.numbered { format!("{:>6}\t", self.number) } else { String::new() };
        match text.char_indices().nth(LINE) {
            None if beyond == 0 => format!("{number}{text}\n"),
            at => {
                let at = at.map_or(text.len(), |(at, _)| at);
                let left = text[at..].chars().count() as u64 + beyond;
                format!("{number}{}… [{left} more characters]\n", &text[..at])
            }
        }
    }
}

/// What a file that is no text is, by how it begins.
pub(crate) fn kind_of(bytes: &[u8]) -> &'static str {
    known_kind(bytes).unwrap_or("a binary file")
}

pub(crate) fn known_kind(bytes: &[u8]) -> Option<&'static str> {
    const KINDS: &[(&[u8], &str)] = &[
        (b"%PDF-", "a PDF document"),
        (b"\x89PNG\r\n", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"PK\x03\x04", "a ZIP archive or an office document"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"\x7fELF", "a program"),
        (b"SQLite format 3\0", "an SQLite database"),
    ];
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("a WebP image");
    }
    KINDS.iter().find(|(begin, _)| bytes.starts_with(begin)).map(|(_, kind)| *kind)
}
