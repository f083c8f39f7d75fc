use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;

use ow_protocol::{ErrorBody, PROTOCOL_VERSION};
use thiserror::Error;

/// Why an operation did not succeed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// owd answered, and the answer is no.
    #[error("{}", .0.message)]
    Http(ErrorBody),
    /// Nothing listens on the socket.
    #[error("owd is not running: nothing answers at {}", socket.display())]
    NotRunning {
        socket: PathBuf,
        #[source]
        why: io::Error,
    },
    /// Something listens, but this user may not connect.
    #[error("may not connect to {}", socket.display())]
    NotPermitted {
        socket: PathBuf,
        #[source]
        why: io::Error,
    },
    /// owd speaks another version of the protocol.
    #[error("owd {running} is running and speaks protocol {theirs}; this program speaks {PROTOCOL_VERSION}")]
    Version { running: String, theirs: u32 },
    /// The connection broke, or what came over it cannot be read. A request that changes something may have
    /// been carried out.
    #[error("{doing} failed")]
    Transport {
        doing: &'static str,
        #[source]
        why: Box<dyn StdError + Send + Sync>,
    },
    /// No answer within the time limit. A request that changes something may have been carried out.
    #[error("owd did not answer within {} s", limit.as_secs())]
    TimedOut { limit: std::time::Duration },
}

impl ClientError {
    pub(crate) fn transport(doing: &'static str) -> impl FnOnce(hyper::Error) -> Self {
        move |why| Self::Transport { doing, why: Box::new(why) }
    }

    pub(crate) fn unreadable(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Transport { doing: "reading owd's answer", why: why.into() }
    }
}
