use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ow_protocol::NewAttachment;

use crate::failure::Failure;

/// owd takes bodies of 16 MiB, in which these bytes grow by a third.
const LONGEST: u64 = 11 * 1024 * 1024;

/// By the end of a file's name; what is text is looked at.
const TYPES: [(&str, &str); 12] = [
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("json", "application/json"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("md", "text/markdown"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

/// The files as they go with a message.
pub(crate) fn files(paths: &[PathBuf]) -> Result<Vec<NewAttachment>, Failure> {
    paths.iter().map(|path| file(path)).collect()
}

pub(crate) fn file(path: &Path) -> Result<NewAttachment, Failure> {
    let shown = path.display();
    let failed = |why: &std::io::Error| Failure::io(format!("cannot attach {shown}"), why);
    let found = std::fs::metadata(path).map_err(|why| failed(&why))?;
    if !found.is_file() {
        return Err(Failure::usage(format!("cannot attach {shown}: it is no file")).hint("attach files one by one"));
    }
    if found.len() > LONGEST {
        return Err(Failure::usage(format!("cannot attach {shown}: it has {} bytes", found.len()))
            .hint("at most 11 MiB; name its path in the message, so that the agent reads what it needs"));
    }
    let bytes = std::fs::read(path).map_err(|why| failed(&why))?;
    let name = path.file_name().map_or_else(|| "file".into(), |name| name.to_string_lossy().into_owned());
    let media_type = media_type(&name, &bytes).into();
    Ok(NewAttachment { name, media_type, base64: STANDARD.encode(&bytes) })
}

fn media_type(name: &str, bytes: &[u8]) -> &'static str {
    let end = name.rsplit_once('.').map_or(String::new(), |(_, end)| end.to_ascii_lowercase());
    match TYPES.iter().find(|(known, _)| *known == end) {
        Some((_, media_type)) => media_type,
        None if std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0')) => "text/plain",
        None => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_its_name_or_its_bytes_say() {
        assert_eq!(media_type("a.PDF", b""), "application/pdf");
        assert_eq!(media_type("Makefile", b"all:\n"), "text/plain");
        assert_eq!(media_type("x", b"\0\x01"), "application/octet-stream");
        assert_eq!(media_type("x.rs", &[0xff]), "application/octet-stream");
    }
}
