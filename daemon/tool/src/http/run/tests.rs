use std::collections::VecDeque;
use std::sync::Mutex;

use ow_model::{Call, Position};
use ow_secret::Secrets;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::helper::work::{Judged, Live, Stop};
use crate::{Limits, Net, Place};

/// Answers of a resolver: the first, second, … question of each name.
struct Table(Mutex<BTreeMap<&'static str, VecDeque<Vec<IpAddr>>>>);

impl Table {
    fn of(entries: &[(&'static str, &[&[&str]])]) -> Self {
        let parse = |list: &[&str]| list.iter().map(|address| address.parse().unwrap()).collect();
        let answers = |lists: &[&[&str]]| lists.iter().map(|list| parse(list)).collect();
        Self(Mutex::new(entries.iter().map(|(name, lists)| (*name, answers(lists))).collect()))
    }
}

impl Names for Table {
    async fn addresses(&self, host: &str, _port: u16) -> io::Result<Vec<IpAddr>> {
        let mut table = self.0.lock().unwrap();
        let answers = table.get_mut(host).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(answers.pop_front().unwrap_or_default())
    }
}

fn work(url: &str, allow: &[String]) -> Work {
    let call = Call {
        position: Position(0),
        tool: "http_request".parse().unwrap(),
        args: json!({ "url": url, "timeout": "5s" }),
    };
    Work {
        call,
        place: Place { cwd: "/".into(), roots: vec![], home: "/".into(), run_folder: "/".into(), outside: false },
        limits: Limits::default(),
        judged: Judged::Url,
        net: Net { allow: allow.to_vec(), own: vec![], hosts: None },
        protected: vec![],
        secrets: Secrets::default(),
        stop: Stop::default(),
        live: Live::Nothing,
    }
}

/// Serves one connection after another with `answer`, and counts them.
async fn with_server<T>(answer: &str, client: impl AsyncFnOnce(u16) -> T) -> (T, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut served = 0;
    let serve = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            served += 1;
            let mut head = [0; 4096];
            let _length = stream.read(&mut head).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    };
    let done = tokio::select! {
        () = serve => unreachable!("it serves until the client is done"),
        done = client(port) => done,
    };
    (done, served)
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

#[tokio::test]
async fn a_name_is_connected_at_the_address_that_was_checked() {
    let (result, served) = with_server(OK, async |port| {
        let names = Table::of(&[("pinned.example", &[&["127.0.0.1"]])]);
        let allow = [format!("pinned.example:{port}")];
        run_with(&work(&format!("http://pinned.example:{port}/"), &allow), &names).await
    })
    .await;
    assert_eq!(result.unwrap().result.output["body"], "ok");
    assert_eq!(served, 1);
}

#[tokio::test]
async fn one_private_address_among_public_ones_refuses_all() {
    let (result, served) = with_server(OK, async |port| {
        let names = Table::of(&[("mixed.example", &[&["93.184.215.14", "127.0.0.1"]])]);
        run_with(&work(&format!("http://mixed.example:{port}/"), &[]), &names).await
    })
    .await;
    assert!(matches!(result.unwrap_err(), Unanswered::Refused(address) if address.hop == 0));
    assert_eq!(served, 0);
}

#[tokio::test]
async fn each_hop_resolves_and_is_judged_anew() {
    let answer = "HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let (result, served) = with_server(answer, async |port| {
        // The second question gets an address that the entry for this name does not open elsewhere.
        let names = Table::of(&[("rebind.example", &[&["127.0.0.1"], &[]])]);
        let allow = [format!("rebind.example:{port}")];
        run_with(&work(&format!("http://rebind.example:{port}/"), &allow), &names).await
    })
    .await;
    assert!(matches!(result.unwrap_err(), Unanswered::Failed(error) if error.kind == CallErrorKind::Unreachable));
    assert_eq!(served, 1);
}

#[tokio::test]
async fn a_redirect_to_a_local_name_asks_no_resolver() {
    let answer = "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://localhost:11434/\r\nContent-Length: 0\r\n\r\n";
    let (result, served) = with_server(answer, async |port| {
        let names = Table::of(&[("r2.example", &[&["127.0.0.1"]])]);
        let allow = [format!("r2.example:{port}")];
        run_with(&work(&format!("http://r2.example:{port}/"), &allow), &names).await
    })
    .await;
    assert!(matches!(result.unwrap_err(), Unanswered::Refused(address) if address.hop == 1));
    assert_eq!(served, 1);
}

#[tokio::test]
async fn every_refused_case_is_refused_before_a_packet_is_sent() {
    let text = include_str!("../../../../../tests/cases/ssrf-urls.json");
    let cases: Value = serde_json::from_str(text).unwrap();
    let mut run = 0;
    for case in cases["cases"].as_array().unwrap() {
        if case["blocked"] != true || case.get("redirects").is_some() {
            continue;
        }
        let url = case["url"].as_str().unwrap();
        let table = Table(Mutex::new(BTreeMap::new()));
        for (name, addresses) in case.get("dns").and_then(Value::as_object).into_iter().flatten() {
            let addresses = addresses.as_array().unwrap().iter().map(|one| one.as_str().unwrap().parse().unwrap());
            let name: &'static str = Box::leak(name.clone().into_boxed_str());
            table.0.lock().unwrap().insert(name, VecDeque::from([addresses.collect::<Vec<IpAddr>>()]));
        }
        let error = run_with(&work(url, &[]), &table).await.unwrap_err();
        let right = match &error {
            Unanswered::Refused(address) => address.hop == 0,
            // What is no URL has no address that could be refused.
            Unanswered::Failed(error) => error.message.contains("does not resolve") || url::Url::parse(url).is_err(),
        };
        assert!(right, "{url}: {error:?}");
        run += 1;
    }
    assert!(run > 30, "{run}");
}
