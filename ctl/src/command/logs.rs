use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};
use crate::output::{Out, json_line, write};
use crate::place::{self, Installed};
use crate::program;

/// Show owd's log, wherever it goes
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl logs -n 200
  owctl logs -f        new lines as they come, also over a rotation")]
pub(crate) struct Logs {
    /// Go on with new lines as they come
    #[arg(long, short)]
    follow: bool,
    /// So many of the last lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    lines: usize,
}

impl Logs {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let place = match context.with_daemon(async |owd| Ok(owd.status().await?)) {
            Ok(status) => status.log,
            // After a crash the log is what one wants to see.
            Err(failure) if failure.exit == Exit::NotRunning => {
                let file = context.paths()?.log_file;
                let is_kept = file.exists() || matches!(place::installed(), Installed::Not);
                if !is_kept {
                    "journald".into()
                } else if file.exists() {
                    file.display().to_string()
                } else {
                    return Err(failure);
                }
            }
            Err(failure) => return Err(failure),
        };
        match place.as_str() {
            "stderr" | "journald" => self.journal(&place, context.out),
            file => self.file(Path::new(file), context.out),
        }
    }

    /// Becomes `journalctl`: nothing shows a journal better.
    fn journal(&self, place: &str, out: Out) -> Result<(), Failure> {
        let mut args = vec![format!("--lines={}", self.lines)];
        args.push(match place::installed() {
            Installed::ForUser => "--user-unit=owd".into(),
            Installed::ForSystem => "--unit=owd".into(),
            Installed::Not if place == "stderr" => {
                return Err(Failure::failed("log_elsewhere", "owd logs to the terminal in which it was started")
                    .hint("to keep it, set `target = \"file\"` in the table [log] of owd.toml, and restart owd"));
            }
            Installed::Not => "--identifier=owd".into(),
        });
        if self.follow {
            args.push("--follow".into());
        }
        if out.is_json() {
            args.push("--output=json".into());
        }
        let line = format!("journalctl {}", args.join(" "));
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let Some(journalctl) = program::find("journalctl", &search_path) else {
            return Err(Failure::failed(
                "log_elsewhere",
                "the log is in the journal, and `journalctl` is not on the search path",
            )
            .hint(format!("see it with: {line}")));
        };
        let why = Command::new(journalctl).args(&args).exec();
        Err(Failure::io(format!("cannot run `{line}`"), &why))
    }

    fn file(&self, path: &Path, out: Out) -> Result<(), Failure> {
        let mut tail = Tail::open(path)?;
        for line in tail.last(self.lines)? {
            show(&line, out);
        }
        if !self.follow {
            return Ok(());
        }
        loop {
            tail.wait()?;
            for line in tail.news()? {
                show(&line, out);
            }
        }
    }
}

fn show(line: &str, out: Out) {
    if !out.is_json() {
        write(&escape::block(line));
        return;
    }
    match serde_json::from_str::<Value>(line) {
        Ok(value @ Value::Object(_)) => json_line(&value),
        _ => json_line(&json!({ "line": line })),
    }
}

/// The end of a file that grows and is replaced by a new one now and then.
struct Tail {
    path: PathBuf,
    reader: BufReader<File>,
    inode: u64,
    /// A last line without its end yet.
    partial: Vec<u8>,
    changes: Changes,
}

impl Tail {
    fn open(path: &Path) -> Result<Self, Failure> {
        // Changes are watched before the file is read, so that none falls between.
        let changes = Changes::of(path.parent().unwrap_or(Path::new("/")))?;
        let file = File::open(path).map_err(|why| unreadable(path, &why))?;
        let inode = file.metadata().map_err(|why| unreadable(path, &why))?.ino();
        Ok(Self { path: path.to_owned(), reader: BufReader::new(file), inode, partial: vec![], changes })
    }

    fn last(&mut self, count: usize) -> Result<VecDeque<String>, Failure> {
        let mut last = VecDeque::with_capacity(count.min(1000));
        while let Some(line) = self.line()? {
            if last.len() == count {
                last.pop_front();
            }
            if count > 0 {
                last.push_back(line);
            }
        }
        Ok(last)
    }

    /// All whole lines since the last look, of a successor too.
    fn news(&mut self) -> Result<Vec<String>, Failure> {
        let mut news = vec![];
        loop {
            while let Some(line) = self.line()? {
                news.push(line);
            }
            let position = self.reader.stream_position().map_err(|why| unreadable(&self.path, &why))?;
            match self.path.metadata() {
                Ok(now) if now.ino() != self.inode => {
                    let Ok(file) = File::open(&self.path) else { return Ok(news) };
                    self.inode = now.ino();
                    self.reader = BufReader::new(file);
                    self.partial.clear();
                }
                Ok(now) if now.len() < position => {
                    self.reader.seek(SeekFrom::Start(0)).map_err(|why| unreadable(&self.path, &why))?;
                    self.partial.clear();
                }
                // Between a rename and the new file there is none.
                _ => return Ok(news),
            }
        }
    }

    fn line(&mut self) -> Result<Option<String>, Failure> {
        self.reader.read_until(b'\n', &mut self.partial).map_err(|why| unreadable(&self.path, &why))?;
        if self.partial.last() != Some(&b'\n') {
            return Ok(None);
        }
        self.partial.pop();
        let line = String::from_utf8_lossy(&self.partial).into_owned();
        self.partial.clear();
        Ok(Some(line))
    }

    fn wait(&mut self) -> Result<(), Failure> {
        self.changes.wait()
    }
}

fn unreadable(path: &Path, why: &std::io::Error) -> Failure {
    Failure::io(format!("cannot read the log {}", path.display()), why)
        .hint("the log belongs to the account that owd runs under; read it as that account")
}

/// Sleeps until something changes in a folder.
#[cfg(target_os = "linux")]
struct Changes {
    notifier: rustix::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl Changes {
    fn of(folder: &Path) -> Result<Self, Failure> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let failed = |why: rustix::io::Errno| {
            Failure::io(format!("cannot watch {}", folder.display()), &why.into())
                .hint("`owctl doctor` tells whether the system's limit on watches is reached")
        };
        let notifier = init(CreateFlags::CLOEXEC).map_err(failed)?;
        let what = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
        add_watch(&notifier, folder, what).map_err(failed)?;
        Ok(Self { notifier })
    }

    fn wait(&mut self) -> Result<(), Failure> {
        let mut buffer = [0_u8; 4096];
        loop {
            match rustix::io::read(&self.notifier, &mut buffer) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(why) => return Err(Failure::io("cannot wait for new lines", &why.into())),
            }
        }
    }
}

/// Where the system cannot tell of changes in a few lines, a look now and then must do.
#[cfg(not(target_os = "linux"))]
struct Changes;

#[cfg(not(target_os = "linux"))]
impl Changes {
    fn of(_folder: &Path) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn wait(&mut self) -> Result<(), Failure> {
        std::thread::sleep(std::time::Duration::from_millis(500));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    use super::*;

    fn append(path: &Path, text: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn only_whole_lines_are_shown_and_the_last_ones_first() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("owd.log");
        append(&log, "one\ntwo\nthree\nfo");
        let mut tail = Tail::open(&log).unwrap();
        assert_eq!(tail.last(2).unwrap(), ["two", "three"]);
        append(&log, "ur\n");
        tail.wait().unwrap();
        assert_eq!(tail.news().unwrap(), ["four"]);
    }

    #[test]
    fn a_rotated_log_is_followed_into_the_new_file_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("owd.log");
        append(&log, "one\n");
        let mut tail = Tail::open(&log).unwrap();
        assert_eq!(tail.last(10).unwrap(), ["one"]);
        append(&log, "two\n");
        fs::rename(&log, folder.path().join("owd.log.1")).unwrap();
        append(&log, "three\n");
        tail.wait().unwrap();
        assert_eq!(tail.news().unwrap(), ["two", "three"]);
    }

    #[test]
    fn a_log_that_was_cut_is_read_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("owd.log");
        append(&log, "a long first line\n");
        let mut tail = Tail::open(&log).unwrap();
        tail.last(1).unwrap();
        fs::write(&log, "new\n").unwrap();
        assert_eq!(tail.news().unwrap(), ["new"]);
    }
}
