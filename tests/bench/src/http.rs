use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

/// One connection to the control API, as thin as can be: what it measures is owd.
pub(crate) struct Http {
    stream: BufReader<UnixStream>,
}

impl Http {
    pub(crate) fn connect(home: &Path) -> Self {
        let stream = UnixStream::connect(home.join("owd.sock")).expect("owd listens");
        Self { stream: BufReader::new(stream) }
    }

    /// Sends a request and returns status and body.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: owd\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("owd reads");
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("owd answers");
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("owd answers");
            let head = line.trim_end().to_ascii_lowercase();
            if head.is_empty() {
                break;
            }
            if let Some(value) = head.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut text = vec![0; length];
        self.stream.read_exact(&mut text).expect("owd answers");
        (status, String::from_utf8(text).expect("JSON is UTF-8"))
    }

    /// Sends a request that must succeed and reads its answer.
    pub(crate) fn ok(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = self.send(method, path, &body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
        if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("JSON") }
    }

    /// Follows the event stream; `heard` is told each event's envelope when it comes in, until it says that it has heard
    /// enough.
    pub(crate) fn follow(mut self, path: &str, mut heard: impl FnMut(&Value) -> ControlFlow<()>) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: owd\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes()).expect("owd reads");
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.stream.read_line(&mut line).expect("owd answers") > 0, "the stream ended");
            let Some(data) = line.strip_prefix("data:") else { continue };
            if heard(&serde_json::from_str(data).expect("JSON")).is_break() {
                return;
            }
        }
    }

    pub(crate) fn get(&mut self, path: &str) -> Value {
        self.ok("GET", path, &Value::Null)
    }
}
