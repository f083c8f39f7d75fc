use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Which calls on the store's files are touched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FaultCall {
    Write,
    Sync,
}

/// What happens to them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FaultAction {
    /// The process is killed right before the call, as if it had not come to it.
    KillBefore,
    /// The process is killed right after the call.
    KillAfter,
    /// The process is killed when half of the write is done.
    Tear,
    /// What no sync has made durable is undone, and the process killed before the call.
    LosePower,
    /// The same, when no sync has made anything durable: what a disk that lies does.
    Lie,
    /// This call and all later ones fail with EIO; a failed sync loses what it should have made durable.
    InputOutput,
    /// The same with ENOSPC.
    NoSpace,
}

/// A fault below SQLite: a preloaded library that fails, or kills, at a chosen call.
#[derive(Clone, Debug)]
pub struct Fault {
    pub call: FaultCall,
    pub action: FaultAction,
    /// The first call that is touched, counted from 1; 0: none, they are only counted.
    pub number: u64,
    /// Failing ends once this file exists.
    pub until: PathBuf,
    /// Grows by one byte for each call.
    pub count: PathBuf,
}

impl Fault {
    /// Prepares a command so that its process meets the fault.
    pub fn apply(&self, command: &mut Command) {
        let call = match self.call {
            FaultCall::Write => "write",
            FaultCall::Sync => "sync",
        };
        let action = match self.action {
            FaultAction::KillBefore => "kill-before",
            FaultAction::KillAfter => "kill-after",
            FaultAction::Tear => "tear",
            FaultAction::LosePower => "lose-power",
            FaultAction::Lie => "lie",
            FaultAction::InputOutput => "eio",
            FaultAction::NoSpace => "enospc",
        };
        command
            .env("LD_PRELOAD", library())
            .env("OW_FAULT_FILE", "/data/")
            .env("OW_FAULT_CALL", call)
            .env("OW_FAULT_ACTION", action)
            .env("OW_FAULT_NUMBER", self.number.to_string())
            .env("OW_FAULT_UNTIL", &self.until)
            .env("OW_FAULT_COUNT", &self.count);
    }

    /// How many calls there have been.
    #[must_use]
    pub fn calls(&self) -> u64 {
        std::fs::metadata(&self.count).map_or(0, |counted| counted.len())
    }
}

/// The library, compiled once a test process.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fault/fault.c");
        let library = std::env::temp_dir().join(format!("owd-fault-{}.so", std::process::id()));
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .status()
            .expect("a C compiler, as the build needs one too");
        assert!(status.success(), "the fault library does not compile");
        library
    })
}
