//! What the person said in earlier chats, in a file that only they may read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Lines that are kept; the file may grow to twice as many before the older ones go.
const KEPT: usize = 1000;

/// One JSON text a line, so that a text may have several lines.
pub(super) struct History {
    file: PathBuf,
}

impl History {
    pub(super) const fn in_file(file: PathBuf) -> Self {
        Self { file }
    }

    /// The texts, oldest first. Where none can be read there are none: recalling them is a comfort and no more.
    pub(super) fn read(&self) -> Vec<String> {
        let Ok(text) = fs::read_to_string(&self.file) else { return vec![] };
        let mut texts: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if texts.len() > 2 * KEPT {
            texts.drain(..texts.len() - KEPT);
            drop(self.rewrite(&texts));
        }
        texts
    }

    pub(super) fn add(&self, text: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.file)?;
        file.write_all(line(text).as_bytes())
    }

    fn rewrite(&self, texts: &[String]) -> io::Result<()> {
        let new = self.file.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(texts.iter().map(|text| line(text)).collect::<String>().as_bytes())?;
        fs::rename(new, &self.file)
    }
}

fn line(text: &str) -> String {
    serde_json::to_string(text).expect("a text is written") + "\n"
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_the_newest_are_kept_and_nobody_else_reads_them() {
        let dir = tempfile::tempdir().expect("a folder");
        let history = History::in_file(dir.path().join("chat-history"));
        assert!(history.read().is_empty());
        history.add("two\nlines").expect("added");
        assert_eq!(history.read(), ["two\nlines"]);
        assert_eq!(fs::metadata(&history.file).expect("a file").permissions().mode() & 0o777, 0o600);
        for number in 0..2 * KEPT {
            history.add(&number.to_string()).expect("added");
        }
        assert_eq!(history.read().len(), KEPT);
        assert_eq!(history.read().last(), Some(&(2 * KEPT - 1).to_string()));
    }
}
