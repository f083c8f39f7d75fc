//! Which model the demo's agent may ask: one that runs on this machine, else one whose key is in the environment.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use ow_provider::{ModelEntry, ModelTable, PRESETS};

/// A server on this machine answers at once, or is none.
const PROBE: Duration = Duration::from_millis(500);
const LONGEST_LIST: u64 = 1024 * 1024;

/// A model that was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Found {
    /// `provider:model`.
    pub(super) name: String,
    /// What the configuration needs beside a preset.
    pub(super) base_url: Option<String>,
    /// For the person: how it was found.
    pub(super) by: String,
}

/// Looks for a model: at this address if one is given, else where local servers usually listen, else for a key.
pub(super) fn find(base_url: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Option<Found> {
    if let Some(url) = base_url {
        let model = listed(url)?;
        return Some(Found {
            name: format!("demo:{model}"),
            base_url: Some(url.into()),
            by: format!("found at {url}"),
        });
    }
    let local = PRESETS.iter().filter(|preset| preset.is_local).find_map(|preset| {
        let model = listed(preset.base_url)?;
        let by = format!("found at {}, where {} usually listens", preset.base_url, preset.title);
        Some(Found { name: format!("{}:{model}", preset.name), base_url: None, by })
    });
    local.or_else(|| by_key(variable))
}

/// The cheapest model that is known to call tools, of the first vendor whose key is there.
fn by_key(variable: impl Fn(&str) -> Option<String>) -> Option<Found> {
    let table = ModelTable::shipped();
    let vendors = PRESETS.iter().filter(|preset| !preset.is_local);
    vendors.filter_map(|preset| Some((preset.name, preset.key?))).find_map(|(vendor, key)| {
        variable(key).filter(|value| !value.trim().is_empty())?;
        let price = |entry: &&ModelEntry| entry.price.map_or(u64::MAX, |price| price.output);
        let known = table.entries().filter(|entry| entry.tools && entry.name.split(':').next() == Some(vendor));
        let entry = known.min_by_key(price)?;
        let by = format!("by the key in ${key}; it costs a few thousand tokens");
        Some(Found { name: entry.name.clone(), base_url: None, by })
    })
}

/// The first model that a server lists; none: nobody answers there, or not as a model server does.
fn listed(base_url: &str) -> Option<String> {
    let rest = base_url.strip_prefix("http://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let with_port = if authority.contains(':') { authority.to_owned() } else { format!("{authority}:80") };
    let address: SocketAddr = with_port.to_socket_addrs().ok()?.find(|address| address.ip().is_loopback())?;
    let mut stream = TcpStream::connect_timeout(&address, PROBE).ok()?;
    stream.set_read_timeout(Some(PROBE)).ok()?;
    stream.set_write_timeout(Some(PROBE)).ok()?;
    let path = format!("/{}/models", path.trim_matches('/')).replace("//", "/");
    // Of HTTP/1.0, so that the list comes in one piece.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = vec![];
    // What came before the time was over may be all: some servers keep the connection.
    drop(stream.take(LONGEST_LIST).read_to_end(&mut answer));
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    if head.split(' ').nth(1) != Some("200") {
        return None;
    }
    let list: serde_json::Value = serde_json::from_str(&body[body.find('{')?..=body.rfind('}')?]).ok()?;
    let ids = list["data"].as_array()?.iter().filter_map(|model| model["id"].as_str());
    // A model that makes vectors answers nothing.
    ids.filter(|id| !id.contains("embed") && !id.contains(char::is_whitespace)).map(str::to_owned).next()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A server that answers one request so; its base URL.
    fn serves(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        drop(thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 1024];
            let length = stream.read(&mut request).expect("a request");
            assert!(request[..length].starts_with(b"GET /v1/models HTTP/1.0\r\n"));
            stream.write_all(answer.as_bytes()).expect("an answer");
        }));
        url
    }

    #[test]
    fn a_local_server_is_known_by_its_list_of_models() {
        let url = serves("HTTP/1.1 200 OK\r\n\r\n{\"data\":[{\"id\":\"nomic-embed-text\"},{\"id\":\"qwen3:4b\"}]}");
        let found = find(Some(&url), |_| None).expect("a model");
        assert_eq!((found.name.as_str(), found.base_url.as_deref()), ("demo:qwen3:4b", Some(url.as_str())));
        for other in
            ["HTTP/1.1 200 OK\r\n\r\n<html>", "HTTP/1.1 404 Not Found\r\n\r\n{}", "HTTP/1.1 200 OK\r\n\r\n{}", ""]
        {
            assert_eq!(find(Some(&serves(other)), |_| None), None, "{other}");
        }
        assert_eq!(find(Some("http://127.0.0.1:1/v1"), |_| None), None);
        assert_eq!(find(Some("http://192.0.2.1/v1"), |_| None), None, "nobody outside this machine is asked");
    }

    #[test]
    fn a_key_finds_the_cheapest_model_of_its_vendor() {
        let found = by_key(|name| (name == "OPENAI_API_KEY").then(|| "a-key".into())).expect("a model");
        assert!(found.name.starts_with("openai:") && found.by.contains("$OPENAI_API_KEY"), "{found:?}");
        assert!(!found.by.contains("a-key"));
        assert_eq!(by_key(|_| Some("  ".into())), None);
        assert_eq!(by_key(|_| None), None);
    }
}
