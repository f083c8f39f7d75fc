//! A response's body as text, where it is text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::Encoding;

/// A body as a result can hold it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Body {
    Text(String),
    /// Not text: base64.
    Bytes(String),
}

/// Decodes by the byte-order mark, the header's charset, or UTF-8.
///
/// `is_whole` is false for a body that was cut, which may end inside a character.
pub(super) fn decoded(bytes: &[u8], content_type: Option<&str>, is_whole: bool) -> Body {
    let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
    let charset = content_type.split(';').skip(1).find_map(|part| {
        part.trim().strip_prefix("charset=").map(|label| label.trim_matches(['"', '\'', ' ']).to_owned())
    });
    let named = charset.as_deref().and_then(|label| Encoding::for_label(label.as_bytes()));
    let marked = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let is_text = is_text_type(&content_type) || named.is_some() || marked.is_some();
    if !is_text && (bytes.contains(&0) || !is_utf8(bytes, is_whole)) {
        return Body::Bytes(STANDARD.encode(bytes));
    }
    let (text, _, _) = named.unwrap_or(encoding_rs::UTF_8).decode(bytes);
    Body::Text(text.into_owned())
}

fn is_utf8(bytes: &[u8], is_whole: bool) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => !is_whole && error.error_len().is_none(),
    }
}

fn is_text_type(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || matches!(
            kind,
            "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/x-www-form-urlencoded"
                | "application/x-ndjson"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_by_mark_then_header_then_as_utf_8() {
        for (bytes, content_type, expected) in [
            (&b"caf\xe9"[..], Some("text/plain; charset=ISO-8859-1"), "café"),
            (b"caf\xe9", Some("text/plain; Charset=\"windows-1252\""), "café"),
            (b"caf\xc3\xa9", None, "café"),
            (b"\xff\xfec\x00", Some("application/octet-stream"), "c"),
            (b"\x82\xa0", Some("text/html; charset=shift_jis"), "あ"),
            (b"bad \xff", Some("text/plain"), "bad \u{fffd}"),
            (b"{}", Some("application/json; charset=nonsense"), "{}"),
        ] {
            assert_eq!(decoded(bytes, content_type, true), Body::Text(expected.into()), "{content_type:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_base64() {
        assert_eq!(decoded(b"\x89PNG\x00", Some("image/png"), true), Body::Bytes("iVBORwA=".into()));
        assert_eq!(decoded(b"\xff\xd8", None, true), Body::Bytes("/9g=".into()));
        assert_eq!(decoded(b"caf\xc3", None, false), Body::Text("caf\u{fffd}".into()));
    }
}
