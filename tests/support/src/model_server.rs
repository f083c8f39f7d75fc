//! A stub of a model provider: an HTTP server on loopback that follows the published stream formats of OpenAI's chat
//! completions and Anthropic's messages, and answers from a script.
//!
//! It judges each request as the vendors do (roles, pairs of calls and results, unique ids) and answers 400 to one that
//! is not well-formed. It records every request, byte for byte.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

use crate::until;

mod anthropic;
mod check;
mod openai;
mod response;

pub use check::{Fault as RequestFault, check_anthropic, check_openai};
pub use response::{Gate, ModelCall, ModelReply, ModelResponse};

use response::{End, Part};

/// The stack of a connection's thread: a thousand of them must cost little.
const STACK: usize = 128 * 1024;
const LONGEST_HEAD: usize = 64 * 1024;

/// The server. It ends when it is dropped, with all its connections.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// One request to a model, as it came.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub method: String,
    /// With the query, if any.
    pub path: String,
    /// In the order of the request; names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    closed: Arc<AtomicBool>,
}

impl ModelRequest {
    /// The body as JSON; null where it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the client closed the connection before the answer was complete.
    #[must_use]
    pub fn was_abandoned(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

type Answer = Box<dyn Fn(&ModelRequest) -> ModelResponse + Send + Sync>;

struct Shared {
    script: Mutex<VecDeque<ModelResponse>>,
    answer: Mutex<Option<Arc<Answer>>>,
    requests: Mutex<Vec<ModelRequest>>,
    seen: AtomicUsize,
    kept: AtomicUsize,
    judges: AtomicBool,
    alternates: AtomicBool,
    stopped: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl ModelServer {
    /// # Panics
    ///
    /// When loopback has no free port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            script: Mutex::default(),
            answer: Mutex::default(),
            requests: Mutex::default(),
            seen: AtomicUsize::new(0),
            kept: AtomicUsize::new(usize::MAX),
            judges: AtomicBool::new(true),
            alternates: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            streams: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        spawn(move || accept(&listener, &accepting));
        Self { address, shared }
    }

    /// What an OpenAI-compatible provider's `base-url` is set to: `http://127.0.0.1:<port>/v1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds to the script: the next request that no earlier entry answers gets this.
    pub fn push(&self, response: impl Into<ModelResponse>) {
        lock(&self.shared.script).push_back(response.into());
    }

    /// Answers what the script does not: every request, once the script is used up.
    pub fn answer(&self, answer: impl Fn(&ModelRequest) -> ModelResponse + Send + Sync + 'static) {
        *lock(&self.shared.answer) = Some(Arc::new(Box::new(answer)));
    }

    /// Keeps only the newest `count` requests, for loads that send many large ones.
    pub fn keep(&self, count: usize) {
        self.shared.kept.store(count, Ordering::SeqCst);
    }

    /// Answers ill-formed requests too.
    pub fn lenient(&self) {
        self.shared.judges.store(false, Ordering::SeqCst);
    }

    /// Refuses chat completions whose roles do not alternate, as Gemini and many local chat templates do.
    pub fn alternating(&self) {
        self.shared.alternates.store(true, Ordering::SeqCst);
    }

    /// How many requests for a completion have come.
    #[must_use]
    pub fn seen(&self) -> usize {
        self.shared.seen.load(Ordering::SeqCst)
    }

    /// The requests for a completion that are kept, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.shared.requests).clone()
    }

    /// The newest request.
    ///
    /// # Panics
    ///
    /// When none has come.
    #[must_use]
    pub fn last(&self) -> ModelRequest {
        lock(&self.shared.requests).last().cloned().expect("a request has come")
    }

    /// Waits until `count` requests have come.
    ///
    /// # Panics
    ///
    /// When they do not come within the limit.
    pub fn wait_for(&self, count: usize) {
        until(&format!("{count} requests to the model"), || (self.seen() >= count).then_some(()));
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        drop(TcpStream::connect(self.address));
        for stream in lock(&self.shared.streams).drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn(work: impl FnOnce() + Send + 'static) {
    drop(thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread"));
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        if let Ok(copy) = stream.try_clone() {
            lock(&shared.streams).push(copy);
        }
        let shared = Arc::clone(shared);
        spawn(move || {
            // A client that leaves is no fault of the server's.
            drop(serve(&stream, &shared));
            drop(stream.shutdown(Shutdown::Both));
        });
    }
}

/// Serves one connection until the client closes it or a response ends it.
fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = read_request(&mut reader)? {
        if request.method == "GET" && request.path.ends_with("/models") {
            let list = json!({ "object": "list", "data": [{ "id": "stub", "object": "model", "owned_by": "stub" }] });
            write_whole(&mut writer, 200, &[], list.to_string().as_bytes())?;
            continue;
        }
        let response = shared.take(&request);
        let is_last = request.header("connection").is_some_and(|word| word.eq_ignore_ascii_case("close"));
        if !write_response(&mut writer, &request, &response, shared)? || is_last {
            return Ok(());
        }
    }
    Ok(())
}

impl Shared {
    fn take(&self, request: &ModelRequest) -> ModelResponse {
        let mut requests = lock(&self.requests);
        requests.push(request.clone());
        let surplus = requests.len().saturating_sub(self.kept.load(Ordering::SeqCst));
        requests.drain(..surplus);
        drop(requests);
        self.seen.fetch_add(1, Ordering::SeqCst);
        if self.judges.load(Ordering::SeqCst)
            && let Err(fault) = self.judge(request)
        {
            return ModelResponse::error(400, &fault.to_string());
        }
        if let Some(response) = lock(&self.script).pop_front() {
            return response;
        }
        let answer = lock(&self.answer).clone();
        answer.map_or_else(|| ModelResponse::error(500, "the script is used up"), |answer| answer(request))
    }

    fn judge(&self, request: &ModelRequest) -> Result<(), RequestFault> {
        if is_anthropic(request) {
            check_anthropic(&request.json())
        } else {
            check_openai(&request.json(), self.alternates.load(Ordering::SeqCst))
        }
    }
}

fn is_anthropic(request: &ModelRequest) -> bool {
    request.path.ends_with("/messages")
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<ModelRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next().map(str::to_owned), words.next().map(str::to_owned)) else {
        return Ok(None);
    };
    let mut headers = vec![];
    let mut length = 0;
    let mut size = line.len();
    loop {
        line.clear();
        size += reader.read_line(&mut line)?;
        if size > LONGEST_HEAD {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let (name, value) = (name.to_ascii_lowercase(), value.trim().to_owned());
        if name == "content-length" {
            length = value.parse().unwrap_or(0);
        }
        headers.push((name, value));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(ModelRequest { method, path, headers, body, closed: Arc::default() }))
}

/// Writes the response; whether the connection can be used again.
fn write_response(
    writer: &mut &TcpStream,
    request: &ModelRequest,
    response: &ModelResponse,
    shared: &Shared,
) -> io::Result<bool> {
    if let Some(gate) = &response.opens {
        gate.wait(&shared.stopped);
    }
    if let Some(latency) = response.latency {
        // Parked, not asleep: nothing wakes it earlier, and a spurious wake only makes the model faster.
        thread::park_timeout(latency);
    }
    let is_stream = response.is_stream();
    let number = shared.seen.load(Ordering::SeqCst);
    let (parts, end) = response.render(is_anthropic(request), &request.json(), number);
    if !is_stream {
        let whole: Vec<u8> = parts.into_iter().flat_map(|part| part.bytes).collect();
        write_whole(writer, response.status, &response.headers, &whole)?;
        return Ok(true);
    }
    let mut head = format!("HTTP/1.1 {} {}\r\n", response.status, reason(response.status));
    head.push_str("content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n");
    for (name, value) in &response.headers {
        write!(head, "{name}: {value}\r\n").map_err(io::Error::other)?;
    }
    head.push_str("\r\n");
    let mut pending = head.into_bytes();
    for Part { bytes, waits } in parts {
        if let Some(gate) = waits {
            writer.write_all(&pending)?;
            pending.clear();
            gate.wait(&shared.stopped);
        }
        if !bytes.is_empty() {
            pending.extend(format!("{:x}\r\n", bytes.len()).into_bytes());
            pending.extend(bytes);
            pending.extend(b"\r\n");
        }
        if response.flushes {
            if writer.write_all(&pending).is_err() {
                request.closed.store(true, Ordering::SeqCst);
                return Ok(false);
            }
            pending.clear();
        }
    }
    match end {
        End::Whole => {
            pending.extend(b"0\r\n\r\n");
            writer.write_all(&pending)?;
            Ok(true)
        }
        End::Cut => {
            writer.write_all(&pending)?;
            Ok(false)
        }
        End::Hang => {
            writer.write_all(&pending)?;
            // Silent until the client leaves.
            let gone = writer.read(&mut [0]).map_or(true, |read| read == 0);
            request.closed.store(gone && !shared.stopped.load(Ordering::SeqCst), Ordering::SeqCst);
            Ok(false)
        }
    }
}

fn write_whole(writer: &mut &TcpStream, status: u16, headers: &[(String, String)], body: &[u8]) -> io::Result<()> {
    let mut text = format!("HTTP/1.1 {status} {}\r\ncontent-length: {}\r\n", reason(status), body.len());
    if !headers.iter().any(|(name, _)| name == "content-type") {
        text.push_str("content-type: application/json\r\n");
    }
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").map_err(io::Error::other)?;
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    writer.write_all(&bytes)
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
