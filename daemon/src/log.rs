//! Where the log goes: standard error, a file that is bounded and can be reopened, or journald.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use ow_config::{LogConfig, LogFormat, LogLevel, LogTarget};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// A log file that has grown to this size is set aside as `.1`, the one before as `.2`; older ones go.
/// So a crash loop cannot fill the disk.
const FILE_LIMIT: u64 = 16 * 1024 * 1024;

/// The log of this process.
pub(crate) struct Log {
    level: reload::Handle<LevelFilter, Registry>,
    file: Option<Arc<LogFile>>,
    /// A path, `stderr` or `journald`.
    pub(crate) place: String,
}

impl Log {
    /// Starts logging as configured.
    pub(crate) fn start(config: &LogConfig, default_file: &Path) -> anyhow::Result<Self> {
        let (level, handle) = reload::Layer::new(filter(config.level));
        let registry = tracing_subscriber::registry().with(level);
        let (file, place) = match config.target {
            LogTarget::Stderr => {
                registry.with(lines(config.format, io::stderr)).init();
                (None, "stderr".to_owned())
            }
            LogTarget::Journald => {
                let journald = tracing_journald::layer().context("cannot reach journald; set `target` in [log]")?;
                registry.with(journald).init();
                (None, "journald".to_owned())
            }
            LogTarget::File => {
                let path = config.file.clone().unwrap_or_else(|| default_file.to_owned());
                let file = Arc::new(LogFile::open(&path).with_context(|| format!("cannot log to {}", path.display()))?);
                let writer = Arc::clone(&file);
                registry.with(lines(config.format, move || Shared(Arc::clone(&writer)))).init();
                (Some(file), path.to_string_lossy().into_owned())
            }
        };
        Ok(Self { level: handle, file, place })
    }

    /// Takes over a new level, and opens the file by its name again: it may have been moved away.
    pub(crate) fn reload(&self, config: &LogConfig) -> anyhow::Result<()> {
        self.level.reload(filter(config.level)).context("the log is gone")?;
        if let Some(file) = &self.file {
            file.reopen().with_context(|| format!("cannot log to {}", file.path.display()))?;
        }
        Ok(())
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

fn lines<S, W>(format: LogFormat, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> fmt::MakeWriter<'writer> + Send + Sync + 'static,
{
    let layer = fmt::layer().with_ansi(false).with_target(false).with_writer(writer);
    match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    }
}

struct LogFile {
    path: PathBuf,
    open: Mutex<Open>,
}

struct Open {
    file: File,
    bytes: u64,
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        Ok(Self { path: path.to_owned(), open: Mutex::new(Open::append(path)?) })
    }

    fn reopen(&self) -> io::Result<()> {
        let open = Open::append(&self.path)?;
        *self.open.lock().expect("no writer panics") = open;
        Ok(())
    }

    fn write(&self, line: &[u8]) -> io::Result<()> {
        let mut open = self.open.lock().expect("no writer panics");
        if open.bytes + line.len() as u64 > FILE_LIMIT && open.bytes > 0 {
            fs::rename(numbered(&self.path, 1), numbered(&self.path, 2)).or_else(absent)?;
            fs::rename(&self.path, numbered(&self.path, 1)).or_else(absent)?;
            *open = Open::append(&self.path)?;
        }
        open.bytes += line.len() as u64;
        open.file.write_all(line)
    }
}

impl Open {
    fn append(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes })
    }
}

fn numbered(path: &Path, number: u8) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

fn absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

struct Shared(Arc<LogFile>);

impl Write for Shared {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
