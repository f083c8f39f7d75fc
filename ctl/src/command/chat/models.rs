//! What to do where no model is configured: what is at hand on this machine, and what makes one available.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::command::model::{self, Described};
use crate::context::Context;
use crate::escape;
use crate::failure::Failure;

/// Local servers of models, by the provider that owd knows them as, and the port that they usually listen on.
const USUAL: [(&str, u16); 4] = [("ollama", 11434), ("lmstudio", 1234), ("llama.cpp", 8080), ("vllm", 8000)];
/// A server on this machine answers within this, or is none.
const ANSWERS_WITHIN: Duration = Duration::from_millis(300);
/// No list of models is longer.
const LONGEST: u64 = 256 * 1024;
/// Models that are named at most.
const NAMED: usize = 3;

/// Refuses to begin a chat that nobody could answer. Where the configuration cannot be asked, owd will say it.
pub(super) fn must_be_one(context: &Context) -> Result<(), Failure> {
    match model::configured(context) {
        Ok(None) => Err(none_is_configured(context)),
        Ok(Some(_)) | Err(_) => Ok(()),
    }
}

/// The model that agents get which name none, as far as the configuration can be asked.
pub(super) fn default_name(context: &Context) -> Option<String> {
    model::ask(context, &["none".into()]).ok()?.default
}

fn none_is_configured(context: &Context) -> Failure {
    let known = model::ask(context, &[]).map_or_else(|_| vec![], |answer| answer.models);
    let with_key: Vec<String> =
        known.iter().filter(|model| model.needs_key && model.has_key).map(|model| model.name.clone()).collect();
    let local = USUAL.iter().filter_map(|(provider, port)| {
        let name = models_at(SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))?.into_iter().next()?;
        Some(format!("{provider}:{name}"))
    });
    let at_hand: Vec<String> = local.chain(with_key).take(NAMED).collect();
    let config = context.paths().map_or_else(|_| "owd.toml".into(), |paths| paths.config_file.display().to_string());
    Failure::failed("no_model", "no model is configured").hint(advice(&at_hand, &known, &config))
}

fn advice(at_hand: &[String], known: &[Described], config: &str) -> String {
    let mut lines = vec![];
    for name in at_hand {
        lines.push(format!("owctl chat --model {}", escape::line(name)));
    }
    if at_hand.is_empty() {
        // The first that was seen to work, so that the line can be typed as it is.
        let example = known.iter().find(|model| model.verified && model.key.is_some());
        let (key, name) = example
            .and_then(|model| Some((model.key.clone()?, model.name.clone())))
            .unwrap_or_else(|| ("ANTHROPIC_API_KEY".into(), "PROVIDER:MODEL".into()));
        lines.push(format!(
            "owctl secret set {key}, or {key} in the environment of owd; then owctl chat --model {name}"
        ));
        lines.push(
            "or start a local server (Ollama, LM Studio, llama.cpp, vLLM); then owctl chat --model ollama:NAME".into(),
        );
        lines.push("owctl model list shows what is known".into());
    }
    let name = at_hand.first().map_or("PROVIDER:MODEL", String::as_str);
    lines.push(format!(
        "for all chats and tasks: [agent] model = \"{}\" in {config}, then owctl reload",
        escape::line(name)
    ));
    lines.join("\n       ")
}

/// The models that an OpenAI-compatible server at this address says it has; none: there is no such server.
fn models_at(address: SocketAddr) -> Option<Vec<String>> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWERS_WITHIN).ok()?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN)).ok()?;
    stream.set_write_timeout(Some(ANSWERS_WITHIN)).ok()?;
    let request = format!("GET /v1/models HTTP/1.0\r\nHost: {address}\r\nAccept: application/json\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = vec![];
    // What came before a pause may be all of it.
    let _ended = stream.take(LONGEST).read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (_, body) = answer.split_once("\r\n\r\n")?;
    // In chunks or not: the document stands between the outermost braces.
    let document = body.get(body.find('{')?..=body.rfind('}')?)?;
    let document: Value = serde_json::from_str(document).ok()?;
    let models = document["data"].as_array()?.iter();
    Some(models.filter_map(|model| model["id"].as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn served(answer: &'static str) -> Option<Vec<String>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("bound");
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut head = [0; 1024];
            let _length = stream.read(&mut head).expect("a request");
            stream.write_all(answer.as_bytes()).expect("written");
        });
        let found = models_at(address);
        server.join().expect("it ends");
        found
    }

    #[test]
    fn only_a_server_of_models_is_taken_for_one() {
        let plain = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{\"object\":\"list\",\"data\":[{\"id\":\"qwen3:8b\"}]}";
        assert_eq!(served(plain), Some(vec!["qwen3:8b".to_owned()]));
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1b\r\n{\"data\":[{\"id\":\"gemma3\"}]}\r\n0\r\n\r\n";
        assert_eq!(served(chunked), Some(vec!["gemma3".to_owned()]));
        assert_eq!(served("HTTP/1.1 404 Not Found\r\n\r\n<html>{}</html>"), None);
        assert_eq!(served(""), None);
    }

    #[test]
    fn the_advice_can_be_typed_as_it_is() {
        let with = advice(&["ollama:qwen3:8b".into()], &[], "/c/owd.toml");
        assert!(with.starts_with("owctl chat --model ollama:qwen3:8b\n"), "{with}");
        assert!(with.ends_with("[agent] model = \"ollama:qwen3:8b\" in /c/owd.toml, then owctl reload"), "{with}");
        let without = advice(&[], &[], "/c/owd.toml");
        assert!(
            without.contains("owctl secret set ANTHROPIC_API_KEY, or ANTHROPIC_API_KEY in the environment"),
            "{without}"
        );
    }
}
