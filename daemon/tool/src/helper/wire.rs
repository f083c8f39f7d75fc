//! What passes between owd and a helper: frames of a length and JSON.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use ow_model::{Call, CallResult, Span};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

use super::hook::{HookEnd, HookJob};
use super::work::Judged;
use crate::{Limits, Net, Place};

/// Larger than any job or answer can be: two texts kept aside and an output that cut both.
const FRAME_LIMIT: usize = 256 * 1024 * 1024;

/// From owd.
#[derive(Deserialize, Serialize)]
pub(crate) enum ToHelper {
    Run(Box<WireJob>),
    Hook(HookJob),
    Stop {
        grace: Span,
    },
    /// Somebody watches what the call prints.
    Watched,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct WireJob {
    pub(crate) call: Call,
    pub(crate) place: Place,
    pub(crate) limits: Limits,
    pub(crate) judged: Judged,
    pub(crate) net: Net,
    pub(crate) protected: Vec<std::path::PathBuf>,
    /// All that are known: those that the call does not name are taken out of its result as well.
    pub(crate) secrets: BTreeMap<String, String>,
    pub(crate) live: Told,
}

/// What owd is told of what a call prints, while it runs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Told {
    Nothing,
    /// The newest now and then, if somebody watches by now, or once owd has said so.
    Latest {
        is_watched: bool,
    },
    /// All of it, and then it is no part of the result.
    All,
}

/// To owd.
#[derive(Deserialize, Serialize)]
pub(crate) enum FromHelper {
    Ready,
    /// The call printed something; followed by one plain frame.
    Printed,
    /// Followed by one plain frame for each name.
    Done {
        result: CallResult,
        kept: Vec<String>,
    },
    Hooked(HookEnd),
}

pub(crate) async fn write<T: Serialize>(pipe: &mut (impl AsyncWrite + Unpin), message: &T) -> io::Result<()> {
    let text = Zeroizing::new(serde_json::to_vec(message)?);
    write_bytes(pipe, &text).await
}

pub(crate) async fn write_bytes(pipe: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= FRAME_LIMIT).ok_or_else(too_long)?;
    if bytes.len() < 4096 {
        // One write, and so one wake-up at the other end.
        let mut frame = Zeroizing::new(Vec::with_capacity(4 + bytes.len()));
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(bytes);
        return pipe.write_all(&frame).await;
    }
    pipe.write_all(&length.to_le_bytes()).await?;
    pipe.write_all(bytes).await
}

/// Reads the next message; none where the pipe was closed between two.
///
/// # Cancel safety
///
/// Not safe: a frame that was begun is lost.
pub(crate) async fn read<T: DeserializeOwned>(pipe: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<T>> {
    let Some(text) = read_bytes(pipe).await? else { return Ok(None) };
    Ok(Some(serde_json::from_slice(&text)?))
}

pub(crate) async fn read_bytes(pipe: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let mut length = [0; 4];
    match pipe.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| too_long())?;
    if length > FRAME_LIMIT {
        return Err(too_long());
    }
    let mut bytes = Zeroizing::new(vec![0; length]);
    pipe.read_exact(&mut bytes).await?;
    Ok(Some(bytes))
}

fn too_long() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "a frame is too long")
}
