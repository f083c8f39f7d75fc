use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jiff::Timestamp;
use ow_model::{EventPayload, NewEvent, TaskName, WatchKind};
use ow_schedule::watch::{Fingerprint, event_key};
use serde_json::{Value, json};

/// The event that a file's new content is.
///
/// The payload: `path`, `name`, `size` in bytes, `modified`, `change`. A path that is no UTF-8 has its stray bytes
/// written as `\xff`, and stands whole in `path_hex`.
pub(crate) fn event(task: &TaskName, path: &Path, state: &Fingerprint, change: WatchKind) -> NewEvent {
    let modified = Timestamp::from_nanosecond(i128::from(state.mtime_ns)).unwrap_or(Timestamp::UNIX_EPOCH);
    let mut data = json!({
        "path": text(path.as_os_str()),
        "name": text(path.file_name().unwrap_or_default()),
        "size": state.size,
        "modified": modified.to_string(),
        "change": word(change),
    });
    if path.to_str().is_none() {
        data["path_hex"] = Value::String(hex(path.as_os_str().as_bytes()));
    }
    NewEvent {
        task: task.clone(),
        key: event_key(path, state),
        payload: EventPayload { kind: "watch".into(), data },
        depth: 0,
    }
}

pub(crate) const fn word(change: WatchKind) -> &'static str {
    match change {
        WatchKind::Create => "create",
        WatchKind::Change => "change",
        WatchKind::Move => "move",
    }
}

/// The name as it is where it is UTF-8; else with its stray bytes escaped.
pub(crate) fn text(name: &OsStr) -> String {
    let mut text = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a string takes all");
        }
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;

    use super::*;

    const STATE: Fingerprint = Fingerprint { device: 1, inode: 2, size: 3, mtime_ns: 1_772_000_000_000_000_004 };

    #[test]
    fn a_name_that_is_utf_8_stands_as_it_is() {
        let task: TaskName = "t".parse().expect("a name");
        for name in ["; rm -rf ~", "-o", "two\nlines", "\u{202e}txt.exe", "plain.txt", "ü \\xff {{ task.name }}"] {
            let event = event(&task, &Path::new("/in").join(name), &STATE, WatchKind::Create);
            assert_eq!(event.payload.data["name"], name);
            assert_eq!(event.payload.data["path"], format!("/in/{name}"));
            assert_eq!(event.payload.data.get("path_hex"), None);
            assert_eq!(event.payload.data["change"], "create");
            assert_eq!(event.payload.data["modified"], "2026-02-25T06:13:20.000000004Z");
        }
    }

    #[test]
    fn stray_bytes_are_escaped_and_the_path_is_kept_whole() {
        let task: TaskName = "t".parse().expect("a name");
        let path = PathBuf::from("/in").join(OsString::from_vec(vec![b'a', 0xff, 0xc3, b'z']));
        let event = event(&task, &path, &STATE, WatchKind::Move);
        assert_eq!(event.payload.data["name"], "a\\xff\\xc3z");
        assert_eq!(event.payload.data["path_hex"], "2f696e2f61ffc37a");
        assert_eq!(event.payload.data["change"], "move");
    }
}
