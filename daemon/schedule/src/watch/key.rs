use std::fmt::Write;
use std::path::Path;

use ow_model::EventKey;

/// Which file this is and in which state, without reading it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Fingerprint {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub mtime_ns: i64,
}

/// Returns `watch:<path>:<device>:<inode>:<size>:<mtime>`, by which the same state of a file is the same event again.
///
/// Every byte of the path that is not a plain printable ASCII character, and `%` and `:` themselves, is written as
/// `%XX`: two paths never share a key, and no name (newlines, bidi marks, invalid UTF-8) does anything to a log.
#[must_use]
pub fn event_key(path: &Path, fingerprint: &Fingerprint) -> EventKey {
    let mut key = String::from("watch:");
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'%' | b':') {
            key.push(char::from(*byte));
        } else {
            write!(key, "%{byte:02X}").expect("a string takes all");
        }
    }
    let Fingerprint { device, inode, size, mtime_ns } = fingerprint;
    write!(key, ":{device}:{inode}:{size}:{mtime_ns}").expect("a string takes all");
    EventKey(key)
}
