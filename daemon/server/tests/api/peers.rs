//! Nobody approves himself. Some tests start this very binary again, as a child with a part to play.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ow_model::ItemState;
use ow_server::{Lineage, Server, SocketAccess};
use ow_store::Store;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe;

use crate::daemon::Daemon;

const PART: &str = "OW_SERVER_TEST_PART";
const SOCKET: &str = "OW_SERVER_TEST_SOCKET";
const REQUEST: &str = "OW_SERVER_TEST_REQUEST";
const ANSWER: &str = "OW_SERVER_TEST_ANSWER";

/// Not a test of its own: what a child does.
#[test]
fn child() {
    let Ok(part) = std::env::var(PART) else { return };
    let var = |name| std::env::var(name).unwrap();
    match part.as_str() {
        "ask" => {
            let mut stream = UnixStream::connect(var(SOCKET)).unwrap();
            stream.write_all(var(REQUEST).as_bytes()).unwrap();
            let mut answer = vec![];
            stream.read_to_end(&mut answer).unwrap();
            finish(&answer);
        }
        "hand down" => {
            let stream: OwnedFd = UnixStream::connect(var(SOCKET)).unwrap().into();
            // The heir speaks once the one that connected is gone.
            let script = r#"while kill -0 "$1" 2>/dev/null; do sleep 0.01; done
                printf '%s' "$OW_SERVER_TEST_REQUEST"; { cat; printf '\0'; } > "$OW_SERVER_TEST_ANSWER""#;
            let pid = std::process::id().to_string();
            let mut heir = Command::new("sh");
            heir.args(["-c", script, "sh", &pid])
                .stdin(stream.try_clone().unwrap())
                .stdout(stream)
                .stderr(Stdio::null());
            // It outlives this process, which is what it waits for.
            drop(heir.spawn().unwrap());
        }
        "bind" => {
            let server = Server::bind_unix(Path::new(&var(SOCKET)), SocketAccess::Owner).unwrap();
            let mode = std::fs::metadata(var(SOCKET)).unwrap().permissions().mode();
            finish(format!("{:o}", mode & 0o7777).as_bytes());
            drop(server);
        }
        other => panic!("{other} is no part"),
    }
}

fn finish(answer: &[u8]) {
    std::fs::write(std::env::var(ANSWER).unwrap(), [answer, b"\0"].concat()).unwrap();
}

/// How a child is started: `$0` is it, `$@` its arguments.
async fn play(daemon: &Daemon, part: &str, shell: &str, request: &str) -> String {
    // A pipe, so that whoever reads is woken by whoever writes; a zero byte ends the answer.
    let answer = daemon.folder().join("answer");
    assert!(Command::new("mkfifo").arg(&answer).status().unwrap().success());
    let receiver = pipe::OpenOptions::new().open_receiver(&answer).unwrap();
    // Without a writer a reader would take the pipe for ended.
    let _held = pipe::OpenOptions::new().open_sender(&answer).unwrap();
    let binary = std::env::current_exe().unwrap();
    let status = Command::new("sh")
        .args(["-c", shell])
        .arg(binary)
        .args(["--exact", "peers::child"])
        .env(PART, part)
        .env(SOCKET, &daemon.socket)
        .env(REQUEST, request)
        .env(ANSWER, &answer)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
        .wait();
    assert!(status.unwrap().success());
    let mut text = vec![];
    let mut reader = BufReader::new(receiver);
    let read = reader.read_until(0, &mut text);
    tokio::time::timeout(Duration::from_secs(30), read).await.expect("the child answers").unwrap();
    std::fs::remove_file(&answer).unwrap();
    assert_eq!(text.pop(), Some(0));
    String::from_utf8(text).unwrap()
}

fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: owd\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_owd_started_gets_nothing() {
    // A helper is the subreaper of all it starts; here we are.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let daemon = Daemon::start_with(Lineage::own());
    let item = daemon.approval("asks").await;
    let approve = request("POST", &format!("/v1/items/{item}/answer"), r#"{"answer":"approve"}"#);
    let new_session = "setsid \"$0\" \"$@\"";
    let orphan = "(\"$0\" \"$@\" >/dev/null 2>&1 &)";
    for shell in ["\"$0\" \"$@\"", new_session, orphan] {
        let answer = play(&daemon, "ask", shell, &approve).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{shell}: {answer}");
        assert!(answer.contains("a process that owd started may answer, grant, edit and read nothing"), "{answer}");
    }
    for (method, path, body) in [
        ("GET", "/v1/items", ""),
        ("GET", "/v1/tasks/asks", ""),
        ("PUT", "/v1/tasks/asks", "{}"),
        ("DELETE", "/v1/tasks/asks", ""),
        ("POST", "/v1/rules", "{}"),
        ("POST", "/v1/tasks/asks/allow", "{}"),
        ("POST", "/v1/resume", ""),
        ("GET", "/v1/status", ""),
        ("POST", "/v1/status", ""),
        ("GET", "/v1/status/", ""),
        ("GET", "/v1/stream", ""),
        ("GET", "/nowhere", ""),
    ] {
        let answer = play(&daemon, "ask", "\"$0\" \"$@\"", &request(method, path, body)).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{method} {path}: {answer}");
    }
    assert_eq!(daemon.store.item(item).await.unwrap().unwrap().state, ItemState::Pending);
    assert_eq!(daemon.control.script().wakes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_owd_did_not_start_is_heard() {
    let daemon = Daemon::start();
    let item = daemon.approval("asks").await;
    let approve = request("POST", &format!("/v1/items/{item}/answer"), r#"{"answer":"approve"}"#);
    let answer = play(&daemon, "ask", "\"$0\" \"$@\"", &approve).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_process_is_gone_is_refused() {
    let daemon = Daemon::start();
    let answer = play(&daemon, "hand down", "\"$0\" \"$@\"", &request("GET", "/v1/tasks", "")).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.contains("it cannot be told which process asks"), "{answer}");
}

#[tokio::test]
async fn a_user_whom_owd_does_not_know_gets_nothing() {
    let daemon = Daemon::start();
    daemon.control.change(|script| script.person = None);
    let mut client = daemon.client().await;
    client.get("/v1/tasks").await.error(403, "forbidden");
    client.get("/v1/status").await.error(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_umask_opens_or_closes_the_socket() {
    let mut daemon = Daemon::start();
    daemon.stop().await;
    for umask in ["000", "022", "077", "177", "777"] {
        let shell = format!("umask {umask}; exec \"$0\" \"$@\"");
        // The child's own files are not the matter here, so what it answers with is readable under any umask as root only.
        if umask == "777" && !rustix::process::getuid().is_root() {
            continue;
        }
        assert_eq!(play(&daemon, "bind", &shell, "").await, "600", "umask {umask}");
        std::fs::remove_file(&daemon.socket).unwrap();
    }
}
