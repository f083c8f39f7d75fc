use ow_model::Span;
use serde::{Deserialize, Serialize};

/// How much one call may use.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Limits {
    /// Running time.
    pub time: Span,
    /// Bytes of one text in the result; of a longer one, beginning and end are shown.
    pub output_bytes: usize,
    /// Bytes of one text that are kept aside when the result had to cut it.
    pub kept_bytes: usize,
    /// Processes alive at once, all that the call started counted together.
    pub processes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Span::from_secs(600), output_bytes: 64 * 1024, kept_bytes: 16 * 1024 * 1024, processes: 512 }
    }
}

/// A file larger than this is neither read nor edited whole.
pub(crate) const FILE_LIMIT: u64 = 64 * 1024 * 1024;
