//! A small HTTP server on a Unix socket: answers as it was told, and keeps what it was asked.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

/// What the fake was asked, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// One answer, ready for the wire.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// Written as server-sent events.
    stream: bool,
    /// The connection is closed after it.
    close: bool,
}

impl Reply {
    pub(crate) fn json(value: &Value) -> Self {
        Self { status: 200, headers: vec![], body: value.to_string().into_bytes(), stream: false, close: false }
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn nothing() -> Self {
        Self { status: 204, headers: vec![], body: vec![], stream: false, close: false }
    }

    pub(crate) fn error(status: u16, code: &str, message: &str, hint: Option<&str>) -> Self {
        let body = serde_json::json!({
            "error": { "code": code, "message": message, "hint": hint, "request_id": "r-1" }
        });
        Self::json(&body).with_status(status)
    }

    pub(crate) fn stream(text: &str) -> Self {
        Self { status: 200, headers: vec![], body: text.as_bytes().to_vec(), stream: true, close: true }
    }

    /// The same, and the connection is closed after it without a word.
    pub(crate) fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

type Script = Vec<(String, VecDeque<Reply>)>;

/// Answers each request line that it knows with the next of its replies, the last one again and again.
pub(crate) struct Fake {
    folder: tempfile::TempDir,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicUsize>,
    script: Arc<Mutex<Script>>,
}

impl Fake {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let fake = Self { folder, asked: Arc::default(), connections: Arc::default(), script: Arc::default() };
        let listener = UnixListener::bind(fake.socket()).expect("a socket in a folder of our own");
        let (asked, script) = (Arc::clone(&fake.asked), Arc::clone(&fake.script));
        let connections = Arc::clone(&fake.connections);
        thread::spawn(move || {
            for stream in listener.incoming() {
                connections.fetch_add(1, Ordering::SeqCst);
                let (asked, script) = (Arc::clone(&asked), Arc::clone(&script));
                let stream = stream.expect("the listener stands until the process ends");
                thread::spawn(move || serve(stream, &asked, &script));
            }
        });
        fake
    }

    /// `line` as `GET /v1/status`.
    #[must_use]
    pub(crate) fn on(self, line: &str, reply: Reply) -> Self {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        match script.iter_mut().find(|(known, _)| known == line) {
            Some((_, replies)) => replies.push_back(reply),
            None => script.push((line.into(), VecDeque::from([reply]))),
        }
        drop(script);
        self
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("owd.sock")
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was asked, as `GET /v1/status` or `POST /v1/x {"body":1}`.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |asked: Asked| format!("{} {}", asked.line, asked.body).trim_end().to_owned();
        self.asked().into_iter().map(line).collect()
    }
}

fn serve(mut stream: UnixStream, asked: &Mutex<Vec<Asked>>, script: &Mutex<Script>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle to the socket"));
    while let Some(request) = read(&mut reader) {
        let reply = next_reply(&request.line, script);
        asked.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        if write(&mut stream, &reply).is_err() || reply.close {
            return;
        }
    }
}

fn next_reply(line: &str, script: &Mutex<Script>) -> Reply {
    let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
    match script.iter_mut().find(|(known, _)| known == line) {
        Some((_, replies)) if replies.len() > 1 => replies.pop_front().expect("more than one"),
        Some((_, replies)) => replies.front().expect("never left empty").clone(),
        None => Reply::error(404, "not_found", &format!("the fake knows no `{line}`"), None),
    }
}

fn read(reader: &mut BufReader<UnixStream>) -> Option<Asked> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut headers = vec![];
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or(Ok(0), |(_, text)| text.parse());
    let mut body = vec![0; length.expect("hyper writes a number")];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { line, headers, body: String::from_utf8(body).expect("JSON is text") })
}

fn write(stream: &mut UnixStream, reply: &Reply) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Word\r\n", reply.status);
    for (name, value) in &reply.headers {
        write!(head, "{name}: {value}\r\n").expect("writing to a String does not fail");
    }
    if reply.stream {
        head.push_str("content-type: text/event-stream\r\nconnection: close\r\n");
    } else if reply.status != 204 {
        write!(head, "content-type: application/json\r\ncontent-length: {}\r\n", reply.body.len())
            .expect("writing to a String does not fail");
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(&reply.body)
}
