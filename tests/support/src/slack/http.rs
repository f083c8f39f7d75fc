//! Requests to the workspace: the Web API, and sockets that are to be opened.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};

use super::{Fault, Shared, SlackCall, api, socket, websocket};

const LONGEST_HEAD: usize = 64 * 1024;
const LONGEST_BODY: usize = 4 * 1024 * 1024;

struct Request {
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// Serves one connection until the client closes it or it has become a socket that ended.
pub(super) fn serve(stream: &TcpStream, address: SocketAddr, shared: &Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = read_request(&mut reader)? {
        if shared.stopped.load(Ordering::SeqCst) {
            return Ok(());
        }
        if let Some(key) = request.headers.get("sec-websocket-key") {
            if !socket::admits(&request.query, shared) {
                return write_answer(&mut writer, 401, &[], &json!({ "ok": false, "error": "invalid_ticket" }));
            }
            writer.write_all(websocket::welcome(key).as_bytes())?;
            return socket::serve(stream, reader, shared);
        }
        let Some(method) = request.path.strip_prefix("/api/") else {
            write_answer(&mut writer, 404, &[], &json!({ "ok": false, "error": "not_found" }))?;
            continue;
        };
        let args = arguments(&request);
        let token = request.headers.get("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let token = token.or_else(|| args["token"].as_str()).unwrap_or_default().to_owned();
        let mut state = shared.state();
        let fault = state.faults.iter().position(|(named, _)| named == method);
        let fault = fault.and_then(|at| state.faults.remove(at)).map(|(_, fault)| fault);
        let (status, answer) = match &fault {
            Some(Fault::Limited { .. }) => (429, json!({ "ok": false, "error": "ratelimited" })),
            Some(Fault::Error { error }) => (200, json!({ "ok": false, "error": error })),
            Some(Fault::Status(status)) => (*status, Value::Null),
            Some(Fault::Lost | Fault::Held) | None => (200, api::answer(&mut state, method, &args, &token, address)),
        };
        let scopes = state.scopes.iter().cloned().collect::<Vec<_>>().join(",");
        state.calls.push(SlackCall {
            method: method.into(),
            args,
            status,
            answer: answer.clone(),
            at: crate::monotonic(),
        });
        drop(state);
        shared.changed.notify_all();
        let mut headers = vec![("x-oauth-scopes", scopes)];
        match fault {
            Some(Fault::Limited { retry_after }) => headers.push(("retry-after", retry_after.to_string())),
            Some(Fault::Lost) => return Ok(()),
            // Until the other side has enough of it.
            Some(Fault::Held) => return io::copy(&mut reader, &mut io::sink()).map(drop),
            Some(Fault::Error { .. } | Fault::Status(_)) | None => {}
        }
        write_answer(&mut writer, status, &headers, &answer)?;
        if request.headers.get("connection").is_some_and(|word| word.eq_ignore_ascii_case("close")) {
            return Ok(());
        }
    }
    Ok(())
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let Some(target) = line.split_whitespace().nth(1).map(str::to_owned) else { return Ok(None) };
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut headers = BTreeMap::new();
    let mut size = line.len();
    loop {
        line.clear();
        size += reader.read_line(&mut line)?;
        if size > LONGEST_HEAD {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    if length > LONGEST_BODY {
        return Ok(None);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { path: path.into(), query: query.into(), headers, body }))
}

/// The arguments of a call: from the query, a form, or JSON.
fn arguments(request: &Request) -> Value {
    let mut args = Map::new();
    let kind = request.headers.get("content-type").map(String::as_str).unwrap_or_default();
    let form = if kind.starts_with("application/json") {
        if let Ok(Value::Object(given)) = serde_json::from_slice(&request.body) {
            args = given;
        }
        vec![]
    } else {
        pairs(&String::from_utf8_lossy(&request.body))
    };
    for (name, value) in pairs(&request.query).into_iter().chain(form) {
        // Structures travel as JSON in a form's field.
        let structured = value.starts_with(['[', '{']).then(|| serde_json::from_str(&value).ok()).flatten();
        args.insert(name, structured.unwrap_or(Value::String(value)));
    }
    Value::Object(args)
}

pub(super) fn pairs(form: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(form.as_bytes()).into_owned().collect()
}

fn write_answer(writer: &mut &TcpStream, status: u16, headers: &[(&str, String)], answer: &Value) -> io::Result<()> {
    let body = if answer.is_null() { "upstream error".to_owned() } else { answer.to_string() };
    let mut text = format!("HTTP/1.1 {status} {}\r\ncontent-type: application/json; charset=utf-8\r\n", reason(status));
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").map_err(io::Error::other)?;
    }
    write!(text, "content-length: {}\r\n\r\n{body}", body.len()).map_err(io::Error::other)?;
    writer.write_all(text.as_bytes())
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
