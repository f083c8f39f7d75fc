//! Webhooks, seen from outside: what a sender gets, and what becomes of it.

use std::fmt::Write as _;
use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ow_test_support::{Answered, Owd, Scratch, exchange, hmac_hex, id, post, until};
use serde_json::Value;

const SECRET: &str = "whsec_test_0123456789";

const CONFIG: &str = r#"
[listener]
address = "127.0.0.1:0"

[webhook.github]
profile = "github"
secret = ["next", "hook"]

[webhook.generic]
profile = "generic"
secret = "hook"
per-minute = 5

[webhook.bare]
profile = "github"
secret = "nobody_set_this"

[webhook.named]
profile = "generic"
secret = "hook"
id-header = "X-Id"

[webhook.bodies]
profile = "github"
secret = "hook"
told-apart = "by-body"
"#;

/// A home whose task `taker` runs on the hooks `github` and `generic`.
fn home() -> Scratch {
    let scratch = Scratch::new();
    scratch.config(CONFIG);
    secrets(&scratch, SECRET);
    scratch.task(
        "taker",
        "events = { each = 1000 }\noverlap = \"queue\"\n[[trigger]]\nwebhook = \"github\"\n\
         [[trigger]]\nwebhook = \"generic\"\n[[trigger]]\nwebhook = \"bare\"\n\
         [[trigger]]\nwebhook = \"named\"\n[[trigger]]\nwebhook = \"bodies\"\n\
         [[step]]\ntool = \"shell\"\nargs = { argv = [\"pwd\"] }\n",
    );
    scratch
}

/// Seconds since 1970, as senders sign them.
#[expect(clippy::disallowed_methods, reason = "owd under test reads the same clock")]
fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn secrets(scratch: &Scratch, hook: &str) {
    use std::os::unix::fs::PermissionsExt;
    let file = scratch.path().join("config/secrets.toml");
    fs::write(&file, format!("hook = \"{hook}\"\n")).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("for its owner alone");
}

fn listener(owd: &Owd) -> String {
    owd.owctl.json(&["status"])["listener"].as_str().expect("a listener").to_owned()
}

fn send(owd: &Owd, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answered {
    exchange(&listener(owd), &post(path, headers, body)).expect("an answer")
}

/// A delivery as GitHub signs it.
fn github(owd: &Owd, delivery: &str, body: &[u8]) -> u16 {
    let signature = format!("sha256={}", hmac_hex(SECRET, body));
    let headers = [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Delivery", delivery)];
    send(owd, "/hooks/github", &headers, body).status
}

/// What the runs of a task were given, oldest first.
fn given(owd: &Owd, task: &str) -> Vec<Value> {
    let mut runs = owd.runs(task);
    runs.reverse();
    let events = |run: &Value| owd.owctl.json(&["run", "show", &id(run)])["events"].as_array().expect("events").clone();
    runs.iter().flat_map(events).map(|event| event["data"].clone()).collect()
}

fn runs_become(owd: &Owd, count: usize) {
    until(&format!("{count} runs have ended"), || {
        let ended = owd.runs("taker").iter().filter(|run| !run["ended_at"].is_null()).count();
        (ended >= count).then_some(())
    });
    assert_eq!(owd.runs("taker").len(), count);
}

#[test]
fn every_case_is_answered_as_written() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../cases/webhook.json");
    let cases: Value = serde_json::from_str(&fs::read_to_string(cases).expect("the cases")).expect("JSON");
    let scratch = home();
    let owd = scratch.start();
    let mut runs = 0;
    for case in cases["cases"].as_array().expect("cases") {
        let case_id = case["id"].as_str().expect("an id");
        let body = STANDARD.decode(case["body_b64"].as_str().expect("a body")).expect("base64");
        let mut headers: Vec<(String, String)> = case["headers"]
            .as_object()
            .expect("headers")
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().expect("text").to_owned()))
            .collect();
        let mut path = "/hooks/github";
        // The clock of a running owd is the machine's: what was signed at a time of the case is signed anew, as long ago.
        if let Some(at) = case["now"].as_i64() {
            path = "/hooks/generic";
            let field = |name: &str| headers.iter().position(|(known, _)| known == name).expect("a header");
            let (time, signature) = (field("X-Timestamp"), field("X-Signature"));
            let age = at - headers[time].1.parse::<i64>().expect("a time");
            let signed_at = now() - age;
            headers[time].1 = signed_at.to_string();
            headers[signature].1 = hmac_hex(SECRET, &[format!("{signed_at}.").as_bytes(), &body].concat());
        }
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let status = send(&owd, path, &headers, &body).status;
        let allowed = match &case["expect"]["status"] {
            Value::Array(all) => all.clone(),
            one => vec![one.clone()],
        };
        assert!(allowed.contains(&status.into()), "{case_id}: {status}");
        runs += case["expect"]["runs"].as_u64().expect("a count");
        runs_become(&owd, usize::try_from(runs).expect("a few"));
    }
    assert_eq!(runs, 2);
}

#[test]
fn what_is_not_signed_gets_a_status_and_nothing_else() {
    let scratch = home();
    let owd = scratch.start();
    let signature = format!("sha256={}", hmac_hex(SECRET, b"{}"));
    let sign = |value: &str| vec![("X-Hub-Signature-256".to_owned(), value.to_owned())];
    let sha1 = vec![("X-Hub-Signature".to_owned(), "sha1=aa".to_owned())];
    let both = [sign(&signature), sign(&signature)].concat();
    for headers in [
        vec![],
        sha1,
        both,
        sign(&signature.to_uppercase()),
        sign(&signature.replace("sha256=", "")),
        sign(&signature[..signature.len() - 1]),
        sign(&format!("{signature}0")),
        sign("sha256="),
        sign(&hmac_hex("", b"{}")),
    ] {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let answer = send(&owd, "/hooks/github", &headers, b"{}");
        assert_eq!((answer.status, answer.body.as_str()), (401, ""), "{headers:?}");
    }
    // A hook whose secret has no value takes nothing, not even what is signed with an empty one.
    let empty = format!("sha256={}", hmac_hex("", b"{}"));
    assert_eq!(send(&owd, "/hooks/bare", &[("X-Hub-Signature-256", &empty)], b"{}").status, 401);

    for (path, status) in [
        ("/hooks/nobody", 404),
        ("/hooks/", 404),
        ("/hooks", 404),
        ("/hooks/github/more", 404),
        ("/hooks/GitHub", 404),
        ("/hooks/%67ithub/", 404),
        ("/", 404),
        ("/v1/status", 404),
        ("/v1/pause", 404),
    ] {
        let answer = send(&owd, path, &[("X-Hub-Signature-256", &signature)], b"{}");
        assert_eq!((answer.status, answer.body.as_str()), (status, ""), "{path}");
    }
    for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let request = format!("{method} /hooks/github HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert_eq!(exchange(&listener(&owd), request.as_bytes()).expect("an answer").status, 405, "{method}");
    }
    assert_eq!(owd.runs("taker"), Vec::<Value>::new());
    let hooks = owd.owctl.json(&["webhook", "list"]);
    let bare = &hooks["rows"][0];
    assert_eq!((&bare["name"], &bare["refused"]), (&"bare".into(), &1.into()));
    assert_eq!(bare["last_refused_why"], "the hook has no secret");
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_is_read_and_a_chunked_one_once_it_is_too_long() {
    let scratch = home();
    let owd = scratch.start();
    // Not a byte of the body is sent: the answer does not wait for it.
    let announced = post("/hooks/github", &[("Content-Length", "1048577")], b"");
    assert_eq!(exchange(&listener(&owd), &announced).expect("an answer").status, 413);
    let chunk = [b"10000\r\n".as_slice(), &vec![b'a'; 0x10000], b"\r\n"].concat();
    let chunked = |chunks: usize, end: &[u8]| {
        let body = [chunk.repeat(chunks).as_slice(), end].concat();
        let signature = format!("sha256={}", hmac_hex(SECRET, &vec![b'a'; chunks * 0x10000]));
        let headers = [("Transfer-Encoding", "chunked"), ("X-Hub-Signature-256", signature.as_str())];
        exchange(&listener(&owd), &post("/hooks/github", &headers, &body)).expect("an answer").status
    };
    assert_eq!(chunked(17, b""), 413, "without its end");
    assert_eq!(chunked(16, b"0\r\n\r\n"), 202, "as long as it may be");
    runs_become(&owd, 1);
}

#[test]
fn a_delivery_comes_once_over_restarts_and_each_other_one_too() {
    let scratch = home();
    let owd = scratch.start();
    assert_eq!(github(&owd, "d-1", br#"{"n":1}"#), 202);
    assert_eq!(github(&owd, "d-1", br#"{"n":1}"#), 200);
    assert_eq!(github(&owd, "d-2", br#"{"n":1}"#), 202, "the same body under another id");
    runs_become(&owd, 2);
    owd.kill();
    let owd = scratch.start();
    assert_eq!(github(&owd, "d-1", br#"{"n":1}"#), 200);
    // Without an id, it is the bytes that tell.
    let unnamed = |body: &[u8]| {
        let signature = format!("sha256={}", hmac_hex(SECRET, body));
        send(&owd, "/hooks/github", &[("X-Hub-Signature-256", &signature)], body).status
    };
    assert_eq!((unnamed(b"{}"), unnamed(b"{}"), unnamed(b"{} ")), (202, 200, 202));
    runs_become(&owd, 4);
}

#[test]
fn a_recorded_delivery_that_is_made_again_under_another_id_runs_nothing_and_has_a_record() {
    let scratch = home();
    let owd = scratch.start();
    let signed_at = now().to_string();
    let send_at = |owd: &Owd, time: &str, delivery: &str| {
        let signature = hmac_hex(SECRET, format!("{time}.{{}}").as_bytes());
        let headers = [("X-Timestamp", time), ("X-Signature", signature.as_str()), ("X-Id", delivery)];
        send(owd, "/hooks/named", &headers, b"{}").status
    };
    assert_eq!(send_at(&owd, &signed_at, "d-1"), 202);
    owd.kill();
    let owd = scratch.start();
    assert_eq!(send_at(&owd, &signed_at, "d-2"), 200, "the same signed time and body");
    // Who signs the same words at another time has something new to say, and a retry is signed anew, too.
    let earlier = (now() - 30).to_string();
    assert_eq!((send_at(&owd, &earlier, "d-3"), send_at(&owd, &(now() - 60).to_string(), "d-3")), (202, 200));
    runs_become(&owd, 2);
    let records = owd.owctl.json(&["why", "taker"])["records"].take();
    let again = records.as_array().into_iter().flatten().find(|record| record["key"] == "webhook:named:id:d-2");
    let again = again.expect("a record");
    assert_eq!(again["disposition"], "skipped", "{again}");
    assert!(again.to_string().contains("was delivered before, under another id"), "{again}");

    // GitHub signs no time: only where the hook says so is the same body the same delivery.
    let body = |delivery: &str, body: &[u8]| {
        let signature = format!("sha256={}", hmac_hex(SECRET, body));
        let headers = [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Delivery", delivery)];
        send(&owd, "/hooks/bodies", &headers, body).status
    };
    assert_eq!((body("d-1", b"{}"), body("d-2", b"{}"), body("d-2", b"[]")), (202, 200, 202));
    runs_become(&owd, 4);
}

#[test]
fn json_that_readers_could_read_otherwise_is_refused_and_the_person_sees_why() {
    let scratch = home();
    let owd = scratch.start();
    assert_eq!(github(&owd, "d-1", br#"{"ref":"refs/heads/main","ref":"refs/heads/evil"}"#), 400);
    assert_eq!(github(&owd, "d-1", br#"{"ref":"refs/heads/main"}"#), 202, "what was refused was not taken");
    runs_become(&owd, 1);
    let listed = owd.owctl.ok(&["--json", "webhook", "list"]);
    assert!(listed.contains("the name `ref` stands twice in one object"), "{listed}");
}

#[test]
fn one_that_was_accepted_survives_a_kill_at_once() {
    let scratch = home();
    for round in 0..5 {
        let owd = scratch.start();
        assert_eq!(github(&owd, &format!("d-{round}"), b"{}"), 202);
        owd.kill();
    }
    let owd = scratch.start();
    runs_become(&owd, 5);
}

#[test]
fn deliveries_that_come_too_fast_are_told_when_to_try_again() {
    let scratch = home();
    let owd = scratch.start();
    let deliver = |n: u32| {
        let time = now().to_string();
        let body = format!(r#"{{"n":{n}}}"#);
        let signature = hmac_hex(SECRET, format!("{time}.{body}").as_bytes());
        send(&owd, "/hooks/generic", &[("X-Timestamp", &time), ("X-Signature", &signature)], body.as_bytes())
    };
    for n in 0..5 {
        assert_eq!(deliver(n).status, 202);
    }
    let answer = deliver(5);
    assert_eq!(answer.status, 429);
    let wait = answer.head.lines().find_map(|line| line.strip_prefix("retry-after: ")).expect("a time");
    assert!((1..=13).contains(&wait.parse::<u32>().expect("seconds")), "{wait}");
    assert_eq!(github(&owd, "d-1", b"{}"), 202, "another hook is not held up");
    runs_become(&owd, 6);
}

#[test]
fn what_is_delivered_is_readable_in_filters_and_steps_as_outside_content() {
    let scratch = home();
    let task = |when: &str| {
        format!(
            "[[trigger]]\nwebhook = {{ hook = \"github\", when = {when:?} }}\n\
             [[step]]\ntool = \"notify\"\nargs = {{ text = \"{{{{ event.name }}}} {{{{ event.payload.ref }}}}\" }}\n"
        )
    };
    scratch.task("main", &task("event.name == 'push' and event.payload.ref == 'refs/heads/main'"));
    scratch.task("opened", &task("event.payload.action == 'opened'"));
    let owd = scratch.start();
    let push = |delivery: &str, kind: &str, body: &[u8]| {
        let signature = format!("sha256={}", hmac_hex(SECRET, body));
        let headers = [
            ("X-Hub-Signature-256", signature.as_str()),
            ("X-GitHub-Delivery", delivery),
            ("X-GitHub-Event", "push"),
            ("Content-Type", kind),
        ];
        send(&owd, "/hooks/github", &headers, body).status
    };
    let json = r#"{"ref":"refs/heads/main","n":1.0,"big":123456789012345678901234567890}"#;
    assert_eq!(push("d-1", "application/json", json.as_bytes()), 202);
    owd.run_in("main", "succeeded");
    let event = &given(&owd, "main")[0];
    assert_eq!(event["payload"]["big"], "123456789012345678901234567890");
    assert_eq!((event["body"].as_str(), &event["headers"]["x_github_event"]), (Some(json), &"push".into()));
    assert_eq!(event["headers"].get("x_hub_signature_256"), None);
    let told = owd.items().iter().any(|item| item.to_string().contains("push refs/heads/main"));
    assert!(told, "{:?}", owd.items());

    let form = b"payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%7D";
    assert_eq!(push("d-2", "application/x-www-form-urlencoded", form), 202);
    until("the form came as its payload", || {
        given(&owd, "main").get(1).filter(|event| event["payload"]["ref"] == "refs/heads/main").cloned()
    });
    assert_eq!(push("d-3", "application/json", b"{\"ref\":"), 400, "it says that it is JSON");

    let why = owd.owctl.ok(&["why", "opened"]);
    assert!(why.contains("not wanted: `when`: `event.payload.action == 'opened'` is undefined"), "{why}");
    // Once the filter is mended, the same delivery counts when it comes again.
    scratch.task("opened", &task("event.payload.ref is defined"));
    owd.owctl.ok(&["reload"]);
    assert_eq!(push("d-1", "application/json", json.as_bytes()), 202);
    owd.run_in("opened", "succeeded");
    assert_eq!(push("d-1", "application/json", json.as_bytes()), 200);
}

#[test]
fn events_wait_for_a_task_that_is_paused() {
    let scratch = home();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "pause", "taker"]);
    assert_eq!((github(&owd, "d-1", b"{}"), github(&owd, "d-1", b"{}")), (202, 200));
    assert_eq!(owd.owctl.json(&["status"])["events_waiting"], 1);
    owd.owctl.ok(&["task", "resume", "taker"]);
    runs_become(&owd, 1);
    let record = &owd.owctl.json(&["why", "taker"])["records"][0];
    assert_eq!(
        (record["key"].as_str(), record["disposition"].as_str()),
        (Some("webhook:github:id:d-1"), Some("fired"))
    );
}

#[test]
fn a_secret_is_replaced_without_a_gap_and_without_a_restart() {
    let scratch = home();
    let owd = scratch.start();
    let deliver = |secret: &str, delivery: &str| {
        let signature = format!("sha256={}", hmac_hex(secret, b"{}"));
        let headers = [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Delivery", delivery)];
        send(&owd, "/hooks/github", &headers, b"{}").status
    };
    assert_eq!((deliver(SECRET, "1"), deliver("the next one", "2")), (202, 401));
    let file = scratch.path().join("config/secrets.toml");
    fs::write(&file, format!("hook = \"{SECRET}\"\nnext = \"the next one\"\n")).expect("written");
    owd.owctl.ok(&["reload"]);
    assert_eq!((deliver(SECRET, "3"), deliver("the next one", "4")), (202, 202));
    fs::write(&file, "next = \"the next one\"\n").expect("written");
    owd.owctl.ok(&["reload"]);
    assert_eq!((deliver(SECRET, "5"), deliver("the next one", "6")), (401, 202));
}

#[test]
fn a_sample_of_each_profile_is_accepted_and_its_run_is_told() {
    let scratch = home();
    let profiles = ["github", "gitlab", "stripe", "slack", "linear", "standard", "generic", "bearer"];
    let mut config = String::from("[listener]\naddress = \"127.0.0.1:0\"\nurl = \"https://hooks.example.org/\"\n");
    let mut triggers = String::from("events = { each = 100 }\noverlap = \"queue\"\n");
    for profile in profiles {
        let header = if profile == "bearer" { "id-header = \"X-Id\"\n" } else { "" };
        write!(config, "[webhook.{profile}]\nprofile = \"{profile}\"\nsecret = \"hook\"\n{header}").expect("a string");
        writeln!(triggers, "[[trigger]]\nwebhook = \"{profile}\"").expect("a string");
    }
    scratch.config(&config);
    // A secret that is one for Standard Webhooks as well.
    secrets(&scratch, "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=");
    scratch.task("taker", &format!("{triggers}[[step]]\ntool = \"shell\"\nargs = {{ argv = [\"pwd\"] }}\n"));
    let owd = scratch.start();
    for profile in profiles {
        let tested = owd.owctl.json(&["webhook", "test", profile]);
        assert_eq!((&tested["status"], &tested["tasks"][0]["fate"]), (&202.into(), &"fired".into()), "{tested}");
        assert!(tested["tasks"][0]["run"].is_string(), "{tested}");
        let url = owd.owctl.ok(&["hook-url", profile]);
        assert_eq!(url.trim(), format!("https://hooks.example.org/hooks/{profile}"));
    }
    let body = scratch.path().join("body.json");
    fs::write(&body, r#"{"action":"opened"}"#).expect("written");
    let tested = owd.owctl.json(&["webhook", "test", "linear", "--body", &body.to_string_lossy()]);
    assert_eq!(tested["status"], 202, "{tested}");
    runs_become(&owd, profiles.len() + 1);
    let doctor = owd.owctl.run(&["doctor"]).stdout;
    assert!(doctor.contains("bearer: 1 accepted for taker"), "{doctor}");
}

#[test]
fn bodies_that_are_announced_and_do_not_come_hold_up_no_other() {
    use std::io::Write;
    let scratch = home();
    let owd = scratch.start();
    let address = listener(&owd);
    let stalled: Vec<_> = (0..80)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(&address).expect("somebody listens");
            let head = "POST /hooks/github HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n{";
            stream.write_all(head.as_bytes()).expect("written");
            stream
        })
        .collect();
    assert_eq!(github(&owd, "d-1", &[b' '; 98].iter().copied().chain(*b"{}").collect::<Vec<u8>>()), 202);
    // Slack posts nothing here, so that nothing is read.
    let mut slack = std::net::TcpStream::connect(&address).expect("somebody listens");
    slack.write_all(b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n").expect("written");
    let mut status = [0; 12];
    std::io::Read::read_exact(&mut slack, &mut status).expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 404");
    drop(stalled);
}

#[test]
fn a_delivery_that_no_task_names_is_not_said_yes_to() {
    let scratch = home();
    std::fs::remove_file(scratch.path().join("config/tasks.d/taker.toml")).expect("no task");
    let owd = scratch.start();
    let signature = format!("sha256={}", hmac_hex(SECRET, b"{}"));
    let headers = [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Delivery", "d-1")];
    let answer = send(&owd, "/hooks/github", &headers, b"{}");
    assert!(answer.status == 503 && answer.head.to_lowercase().contains("retry-after: 60"), "{}", answer.head);
    let hooks = owd.owctl.json(&["webhook", "list"]).to_string();
    assert!(hooks.contains("no task has a trigger") && hooks.contains("\"refused\":1"), "{hooks}");
    let tested = owd.owctl.run(&["webhook", "test", "github"]);
    assert!(tested.code != 0 && tested.stderr.contains("no task runs on it"), "{tested:?}");
    // Sent again once there is one, it runs.
    scratch
        .task("taker", "[[trigger]]\nwebhook = \"github\"\n[[step]]\ntool = \"shell\"\nargs = { argv = [\"pwd\"] }\n");
    owd.owctl.ok(&["reload"]);
    assert_eq!(github(&owd, "d-1", b"{}"), 202);
    owd.run_in("taker", "succeeded");
}

#[test]
fn a_proxy_changes_nothing() {
    let scratch = home();
    let owd = scratch.start();
    let signature = format!("sha256={}", hmac_hex(SECRET, b"{}"));
    // As nginx passes it on by default: HTTP/1.0, another Host, and headers of its own.
    let request = format!(
        "POST /hooks/github?from=outside HTTP/1.0\r\nHost: owd_upstream\r\nX-Forwarded-For: 203.0.113.9\r\n\
         X-Forwarded-Proto: https\r\nForwarded: for=203.0.113.9\r\nX-GitHub-Delivery: d-1\r\n\
         X-Hub-Signature-256: {signature}\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    assert_eq!(exchange(&listener(&owd), request.as_bytes()).expect("an answer").status, 202);
    runs_become(&owd, 1);
}

#[test]
fn a_sender_that_does_not_go_on_is_let_go_and_holds_up_no_other() {
    use std::io::Write;
    let scratch = home();
    let owd = scratch.start();
    let address = listener(&owd);
    // Each with half a head.
    let slow: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(&address).expect("somebody listens");
            stream.write_all(b"POST /hooks/github HTTP/1.1\r\nHost: x\r\nX-Slow: ").expect("written");
            stream
        })
        .collect();
    assert_eq!(github(&owd, "d-1", b"{}"), 202);
    drop(slow);
    runs_become(&owd, 1);
}

#[test]
fn deliveries_made_twice_with_a_kill_in_between_are_each_once_in_a_run() {
    const SENDERS: usize = 4;
    const EACH: usize = 60;
    let scratch = home();
    scratch.config(&CONFIG.replace("[\"next\", \"hook\"]", "\"hook\"\nper-minute = 100000"));
    let owd = scratch.start();
    let address = listener(&owd);
    // What each sender was answered, until owd was gone.
    let deliver = |address: &str, sender: usize, number: usize| {
        let body = format!(r#"{{"sender":{sender},"number":{number}}}"#);
        let signature = format!("sha256={}", hmac_hex(SECRET, body.as_bytes()));
        let delivery = format!("{sender}-{number}");
        let headers = [("X-Hub-Signature-256", signature.as_str()), ("X-GitHub-Delivery", &delivery)];
        std::net::TcpStream::connect(address).ok()?;
        std::panic::catch_unwind(|| exchange(address, &post("/hooks/github", &headers, body.as_bytes()))).ok().flatten()
    };
    let accepted = std::sync::atomic::AtomicUsize::new(0);
    let known: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let (address, accepted) = (&address, &accepted);
                scope.spawn(move || {
                    let mut known = vec![];
                    for number in 0..EACH {
                        match deliver(address, sender, number) {
                            Some(answer) if answer.status == 202 => known.push(number),
                            Some(answer) => panic!("{answer:?}"),
                            None => break,
                        }
                        accepted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                    known
                })
            })
            .collect();
        until("some are accepted", || {
            (accepted.load(std::sync::atomic::Ordering::Relaxed) >= SENDERS * EACH / 3).then_some(())
        });
        owd.kill();
        senders.into_iter().map(|sender| sender.join().expect("it delivers")).collect()
    });
    let owd = scratch.start();
    let address = listener(&owd);
    for (sender, known) in known.iter().enumerate() {
        for number in 0..EACH {
            let status = deliver(&address, sender, number).expect("an answer").status;
            // One that was stored and not answered any more is known as well.
            assert!(status == 200 || (status == 202 && !known.contains(&number)), "{sender}-{number}: {status}");
            assert_eq!(deliver(&address, sender, number).expect("an answer").status, 200);
        }
    }
    until("all are worked off", || {
        let status = owd.owctl.json(&["status"]);
        ["events_waiting", "runs_queued", "runs_running"].iter().all(|name| status[*name] == 0).then_some(())
    });
    let records = owd.owctl.json(&["why", "taker", "--limit", "500"]);
    let records = records["records"].as_array().expect("records");
    let mut keys: Vec<&str> = records.iter().filter_map(|record| record["key"].as_str()).collect();
    assert!(records.iter().all(|record| record["disposition"] == "fired"), "{records:?}");
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((keys.len(), records.len()), (SENDERS * EACH, SENDERS * EACH));
}

#[test]
fn what_was_delivered_asks_before_it_reaches_a_command_that_is_allowed() {
    let scratch = home();
    scratch.config(&format!("{CONFIG}\n[policy]\nallow = [\"echo\"]\n"));
    scratch.task(
        "echo",
        "mode = \"auto\"\n[[trigger]]\nwebhook = \"github\"\n\
         [[step]]\ntool = \"shell\"\nargs = { argv = [\"echo\", \"{{ event.payload.text }}\"] }\n",
    );
    let owd = scratch.start();
    assert_eq!(github(&owd, "d-1", br#"{"text":"$(reboot)"}"#), 202);
    owd.run_in("echo", "parked");
    let item = owd.item();
    assert!(item.to_string().contains("$(reboot)"), "{item}");
    owd.owctl.ok(&["inbox", "approve", &id(&item)]);
    let run = owd.run_in("echo", "succeeded");
    let shown = owd.owctl.json(&["run", "show", &id(&run)]);
    assert_eq!(shown["calls"][0]["output"]["stdout"], "$(reboot)\n", "one element stays one element: {shown}");
}
