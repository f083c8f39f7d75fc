//! A model without a time of its own: it answers from bytes made before, and notes when requests come and answers go.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ow_test_support::monotonic;
use serde_json::{Value, json};

/// A thousand connections have a thread each.
const STACK: usize = 64 * 1024;

/// What the model does with one request.
pub(crate) struct Reply {
    stream: Vec<u8>,
    takes: Duration,
    pause: Duration,
}

/// One request, seen from the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// All of it had come.
    pub(crate) came: Duration,
    /// The answer's last byte was about to go.
    pub(crate) answered: Duration,
    /// The answer's first event was about to go.
    pub(crate) first: Duration,
    pub(crate) bytes: usize,
}

type Answer = dyn Fn(&[u8]) -> Reply + Send + Sync;

/// Listens on loopback until it is dropped.
pub(crate) struct Stub {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    answer: Box<Answer>,
    seen: Mutex<Vec<Seen>>,
    stopped: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl Stub {
    pub(crate) fn start(answer: impl Fn(&[u8]) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            seen: Mutex::default(),
            stopped: AtomicBool::new(false),
            streams: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if accepting.stopped.load(Ordering::SeqCst) {
                    return;
                }
                lock(&accepting.streams).push(stream.try_clone().expect("a handle"));
                let shared = Arc::clone(&accepting);
                // A client that leaves ends its connection, and nothing else.
                spawn(move || drop(serve(&stream, &shared)));
            }
        });
        Self { address, shared }
    }

    /// The configuration that has agents speak to it, with as many at work at once.
    pub(crate) fn config(&self, workers: usize) -> String {
        format!(
            "[scheduler]\nworkers = {workers}\nchat-workers = {workers}\n\n[agent]\nmodel = \"stub:small\"\n\
             compaction-cap = 2000000\nmax-iterations = 1000\n\n[provider.stub]\nbase-url = \"http://{}/v1\"\n\
             wire = \"openai\"\n",
            self.address
        )
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// All requests so far, in the order of their coming.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let mut seen = lock(&self.shared.seen).clone();
        seen.sort_by_key(|request| request.came);
        seen
    }

    pub(crate) fn forget(&self) {
        lock(&self.shared.seen).clear();
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        for stream in lock(&self.shared.streams).drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

impl Reply {
    pub(crate) fn text(text: &str) -> Self {
        Self::of(&json!({ "role": "assistant", "content": text }), "stop")
    }

    pub(crate) fn call(id: usize, tool: &str, arguments: &Value) -> Self {
        let call = json!({
            "index": 0, "id": format!("call-{id}"), "type": "function",
            "function": { "name": tool, "arguments": arguments.to_string() },
        });
        Self::of(&json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
    }

    /// The model takes this long.
    pub(crate) const fn after(mut self, takes: Duration) -> Self {
        self.takes = takes;
        self
    }

    /// After its first event the stream waits this long, so that the first can be seen by itself.
    pub(crate) const fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    fn of(delta: &Value, finish: &str) -> Self {
        let event = |choices: Value, usage: Value| {
            let data = json!({
                "id": "stub", "object": "chat.completion.chunk", "created": 1, "model": "small",
                "choices": choices, "usage": usage,
            });
            format!("data: {data}\n\n")
        };
        let mut stream = event(json!([{ "index": 0, "delta": delta, "finish_reason": null }]), Value::Null);
        stream.push_str(&event(json!([{ "index": 0, "delta": {}, "finish_reason": finish }]), Value::Null));
        stream.push_str(&event(json!([]), json!({ "prompt_tokens": 100, "completion_tokens": 10 })));
        stream.push_str("data: [DONE]\n\n");
        Self { stream: stream.into_bytes(), takes: Duration::ZERO, pause: Duration::ZERO }
    }
}

/// How often a text stands in a request.
pub(crate) fn count(body: &[u8], text: &str) -> usize {
    body.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
}

fn serve(stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    let mut line = String::new();
    loop {
        let mut length = 0;
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let head = line.trim_end().to_ascii_lowercase();
            if let Some(value) = head.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if head.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let came = monotonic();
        let Reply { stream, takes, pause } = (shared.answer)(&body);
        pass(takes);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunk = |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        let begins =
            if pause.is_zero() { 0 } else { stream.windows(2).position(|two| two == b"\n\n").map_or(0, |at| at + 2) };
        let mut bytes = head.as_bytes().to_vec();
        let mut first = None;
        if begins > 0 {
            bytes.extend(chunk(&stream[..begins]));
            first = Some(monotonic());
            writer.write_all(&bytes)?;
            bytes.clear();
            pass(pause);
        }
        bytes.extend(chunk(&stream[begins..]));
        bytes.extend(b"0\r\n\r\n");
        let answered = monotonic();
        lock(&shared.seen).push(Seen { came, answered, first: first.unwrap_or(answered), bytes: length });
        writer.write_all(&bytes)?;
    }
}

/// Lets time pass; a spurious wake only makes the model faster.
fn pass(time: Duration) {
    if !time.is_zero() {
        thread::park_timeout(time);
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) {
    drop(thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread"));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
