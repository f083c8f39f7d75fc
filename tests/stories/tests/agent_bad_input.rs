//! Bad input of an agent's session: what models, keys, tools and disks can do wrong. Each ends in an outcome that says
//! what it is and what to do; nothing hangs, nothing grows without bound, and other work goes on.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ow_stories::{model_config, results};
use ow_test_support::model_server::{Gate, ModelReply, ModelResponse, ModelServer};
use ow_test_support::{Owd, Scratch, id, until};
use rusqlite::Connection;
use serde_json::{Value, json};

/// A scratch place whose agents speak to this model, which may be silent for a second, and whose calls may take two.
fn with_model(model: &ModelServer) -> Scratch {
    with_silent_model(model, "1s")
}

/// The same with a model that may be silent for so long.
fn with_silent_model(model: &ModelServer, silence: &str) -> Scratch {
    let scratch = Scratch::new();
    let more = format!("key = \"stub_key\"\nsilence = \"{silence}\"\n\n[scheduler]\ncall-timeout = \"2s\"\n");
    scratch.config(&model_config(model, &more));
    let secrets = scratch.path().join("config/secrets.toml");
    fs::write(&secrets, "stub_key = \"a-key-for-the-stub\"\n").expect("a file");
    fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).expect("a mode");
    scratch.task("agent", "roots = [\"{work}\"]\nmode = \"auto\"\ngoal = \"Do it\"\n");
    scratch
}

/// Runs the task with a model that always answers so; the run as it ended, and how often the model was asked.
fn ends_with(answer: impl Fn() -> ModelResponse + Send + Sync + 'static) -> (Value, usize) {
    ends_with_within("1s", answer)
}

fn ends_with_within(silence: &str, answer: impl Fn() -> ModelResponse + Send + Sync + 'static) -> (Value, usize) {
    let model = ModelServer::start();
    model.answer(move |_| answer());
    let scratch = with_silent_model(&model, silence);
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "agent"]);
    let run = owd.ended_run("agent");
    owd.stop();
    (run, model.seen())
}

/// Runs the task with a model that makes this one call; what it was told of it, and owd with its home.
fn told_of(tool: &str, arguments: Value, prepare: impl FnOnce(&Scratch)) -> (String, Owd, Scratch) {
    let model = ModelServer::start();
    model.push(ModelReply::calls([(tool, arguments)]));
    model.push(ModelReply::text("That is all."));
    let scratch = with_model(&model);
    prepare(&scratch);
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "agent"]);
    owd.run_in("agent", "succeeded");
    let told = results(&model.last().json()).pop().expect("a result");
    (told, owd, scratch)
}

#[test]
fn what_is_no_answer_of_a_model_is_garbage_and_names_the_base_url() {
    type Bad = fn() -> ModelResponse;
    const PAGE: &str = "<!doctype html><title>Log in</title><h1>Welcome to the hotel</h1>";
    let cases: [(&str, Bad); 6] = [
        ("no JSON", || ModelResponse::whole(200, "lorem ipsum")),
        ("a page", || ModelResponse::whole(200, PAGE).header("content-type", "text/html; charset=utf-8")),
        ("a page under another name", || ModelResponse::whole(200, PAGE).header("content-type", "text/plain")),
        ("bytes", || ModelResponse::whole(200, vec![0xff; 4096]).header("content-type", "application/octet-stream")),
        ("another API's JSON", || ModelResponse::whole(200, r#"{"status":"ok","version":3}"#)),
        ("a stream of no JSON", || ModelResponse::stream("data: {\"choi\n\ndata: [DONE]\n\n")),
    ];
    for (what, bad) in cases {
        let (run, seen) = ends_with(bad);
        assert_eq!((&run["state"], &run["failure"]), (&json!("failed"), &json!("model-garbage")), "{what}: {run}");
        let message = run["message"].as_str().expect("a message");
        assert!(message.contains("base-url"), "{what}: {message}");
        assert!(seen <= 2, "{what}: asked {seen} times");
    }
}

/// Some servers name no content type, or a wrong one.
#[test]
fn an_answer_under_a_wrong_content_type_is_still_an_answer() {
    const STREAM: &str = concat!(
        r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}"#,
        "\n\ndata: [DONE]\n\n"
    );
    let (run, _) = ends_with(|| ModelResponse::whole(200, STREAM).header("content-type", "application/octet-stream"));
    assert_eq!(run["state"], "succeeded", "{run}");
}

#[test]
fn a_model_that_is_silent_ends_the_run_in_time_and_says_what_to_do() {
    type Bad = Box<dyn Fn() -> ModelResponse + Send + Sync>;
    let gate = Gate::new();
    let waiting = gate.clone();
    let cases: [(&str, Bad); 3] = [
        ("no status", Box::new(move || ModelResponse::from(ModelReply::text("late")).after(&waiting))),
        ("no byte", Box::new(|| ModelResponse::from(ModelReply::text("a long answer")).hang_after(0))),
        (
            "half of it",
            Box::new(|| ModelResponse::from(ModelReply::text("a long answer").in_pieces(1)).hang_after(400)),
        ),
    ];
    for (what, bad) in cases {
        let (run, seen) = ends_with(bad);
        assert_eq!((&run["state"], &run["failure"]), (&json!("failed"), &json!("model-unavailable")), "{what}: {run}");
        let message = run["message"].as_str().expect("a message");
        assert!(message.contains("silent") && message.contains("silence ="), "{what}: {message}");
        assert!(seen <= 4, "{what}: asked {seen} times");
    }
    gate.open();
}

#[test]
fn ten_megabytes_of_text_are_no_reply() {
    // On a busy machine more than a second may pass before so much of it is made.
    let (run, seen) = ends_with_within("30s", || ModelReply::text("word ".repeat(2_100_000)).into());
    assert_eq!((&run["state"], &run["failure"]), (&json!("failed"), &json!("model-too-large")), "{run}");
    let message = run["message"].as_str().expect("a message");
    assert!(
        message.len() < 20_000 && message.contains("10000000 bytes; none of it was used; ask for less"),
        "{message}"
    );
    assert_eq!(seen, 1);
}

/// Each is told as what it is, with the account's remedy; none that waiting does not mend is tried again.
#[test]
fn a_key_that_is_wrong_expired_or_over_quota_is_named_as_that() {
    type Bad = fn() -> ModelResponse;
    let cases: [(&str, Bad, &str, &str, usize); 6] = [
        (
            "wrong",
            || {
                ModelResponse::whole(
                    401,
                    r#"{"error":{"message":"Incorrect API key provided: a-key-for-the-stub","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                )
            },
            "model-auth",
            "owctl secret set stub_key",
            1,
        ),
        (
            "expired",
            || ModelResponse::whole(401, r#"{"error":{"message":"API key expired","type":"authentication_error"}}"#),
            "model-auth",
            "owctl secret set stub_key",
            1,
        ),
        (
            "over quota",
            || {
                ModelResponse::whole(
                    429,
                    r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                )
            },
            "model-quota",
            "pay the bill",
            1,
        ),
        (
            "unpaid",
            || {
                ModelResponse::whole(
                    402,
                    r#"{"error":{"message":"Insufficient balance","code":"invalid_request_error"}}"#,
                )
            },
            "model-quota",
            "pay the bill",
            1,
        ),
        (
            "too fast for long",
            || {
                ModelResponse::whole(
                    429,
                    r#"{"error":{"message":"Rate limit reached for requests","type":"requests","code":"rate_limit_exceeded"}}"#,
                )
                .header("retry-after-ms", "5")
            },
            "model-rate-limit",
            "fail over",
            4,
        ),
        (
            "not before tomorrow",
            || ModelResponse::error(429, "slow down").header("retry-after", "90000"),
            "model-rate-limit",
            "left alone for 1d 1h; wait, or name another model to fail over to",
            1,
        ),
    ];
    for (what, bad, failure, remedy, most) in cases {
        let (run, seen) = ends_with(bad);
        assert_eq!((&run["state"], &run["failure"]), (&json!("failed"), &json!(failure)), "{what}: {run}");
        let message = run["message"].as_str().expect("a message");
        assert!(message.contains(remedy), "{what}: {message}");
        assert!(!message.contains("a-key-for-the-stub"), "{what}: {message}");
        assert!(seen <= most, "{what}: asked {seen} times");
    }
}

#[test]
fn a_model_that_is_asked_too_fast_is_asked_again_when_it_said() {
    let model = ModelServer::start();
    model.push(ModelResponse::error(429, "slow down").header("retry-after-ms", "10"));
    model.push(ModelResponse::error(529, "overloaded").header("retry-after-ms", "10"));
    model.push(ModelReply::text("Here I am."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "agent"]);
    owd.run_in("agent", "succeeded");
    assert_eq!(model.seen(), 3);
}

/// Whether a process with these words is alive.
fn lives(words: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("proc").filter_map(Result::ok);
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).any(|line| line.contains(words))
}

#[test]
fn a_tool_that_never_ends_is_ended_with_all_that_it_started() {
    // Each with an odd number of its own, by which it is found.
    let cases = [
        ("never ends", "sleep 100071", "exec sleep 100071\n"),
        ("ignores SIGTERM", "sleep 100072", "trap '' TERM\nsleep 100072 & wait; while :; do sleep 100072; done\n"),
        ("leaves its group", "sleep 100073", "setsid sh -c 'trap \"\" TERM HUP; sleep 100073' &\nsleep 100073\n"),
    ];
    for (what, words, script) in cases {
        let (told, owd, _scratch) = told_of("shell", json!({ "argv": ["sh", "tool.sh"] }), |scratch| {
            fs::write(scratch.work().join("tool.sh"), script).expect("a script");
        });
        assert!(told.contains("2 s") || told.contains("2s") || told.contains("time"), "{what}: {told}");
        until(&format!("{what}: all is gone"), || (!lives(words)).then_some(()));
        owd.stop();
    }
}

/// What a command leaves behind ends with it, and does not hold it up.
#[test]
fn a_tool_that_forks_leaves_nothing_behind() {
    let (told, owd, _scratch) = told_of("shell", json!({ "argv": ["sh", "tool.sh"] }), |scratch| {
        let script = "for n in 1 2 3 4 5 6 7 8; do setsid sh -c 'sleep 100074' & sleep 100074 & done\necho forked\n";
        fs::write(scratch.work().join("tool.sh"), script).expect("a script");
    });
    assert!(told.contains("forked"), "{told}");
    until("all is gone", || (!lives("sleep 100074")).then_some(()));
    owd.stop();
}

#[test]
fn a_tool_that_prints_a_gigabyte_is_cut_and_costs_no_more_than_what_is_kept() {
    let (told, owd, scratch) = told_of("shell", json!({ "argv": ["sh", "tool.sh"], "timeout": "60s" }), |scratch| {
        fs::write(scratch.work().join("tool.sh"), "head -c 1000000000 /dev/zero | tr '\\0' x\n").expect("a script");
    });
    assert!(told.len() < 200_000, "{} bytes are told", told.len());
    let status = fs::read_to_string(format!("/proc/{}/status", owd.pid())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a figure");
    let peak: u64 = peak.trim().trim_end_matches(" kB").trim().parse().expect("a number");
    assert!(peak < 300_000, "owd took {peak} kB");
    let size: u64 = walk(&scratch.path().join("data"));
    assert!(size < 60_000_000, "{size} bytes are kept");
    owd.stop();
}

fn walk(folder: &std::path::Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(known) if known.is_dir() => walk(&entry.path()),
        Ok(known) => known.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

#[test]
fn a_tool_that_prints_bytes_that_are_no_text_is_told_as_text() {
    let (told, owd, _scratch) = told_of("shell", json!({ "argv": ["sh", "tool.sh"] }), |scratch| {
        let script = "printf 'before \\377\\376\\000\\033[31m\\302 after\\n'; head -c 5000 /dev/urandom\n";
        fs::write(scratch.work().join("tool.sh"), script).expect("a script");
    });
    assert!(told.contains("before") && told.contains("after"), "{told}");
    assert!(!told.contains('\0') && !told.contains('\u{1b}'), "{told:?}");
    owd.stop();
}

/// A session whose journal cannot be read is set aside and told of; what is whole goes on.
#[test]
fn a_session_that_is_half_written_is_set_aside_and_told_of() {
    let model = ModelServer::start();
    model.push(ModelReply::calls([("shell", json!({ "argv": ["bash", "-c", "true"] }))]));
    model.push(ModelReply::text("All is well."));
    let scratch = with_model(&model);
    scratch.task("asks", "roots = [\"{work}\"]\ngoal = \"Ask first\"\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asks"]);
    let item = owd.item();
    let run = item["run"].as_str().expect("a run").to_owned();
    owd.kill();
    let db = Connection::open(scratch.path().join("data/owd.db")).expect("a store");
    let half = "UPDATE journal SET fact = substr(fact, 1, length(fact) / 2) WHERE fact LIKE '{\"fact\":\"replied\"%'";
    assert_eq!(db.execute(half, []).expect("a row"), 1);
    drop(db);

    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "agent"]);
    owd.run_in("agent", "succeeded");
    owd.owctl.run(&["inbox", "approve", &id(&item)]);
    let ended = owd.ended_run("asks");
    assert_eq!((&ended["id"], &ended["state"], &ended["failure"]), (&json!(run), &json!("failed"), &json!("internal")));
    let message = ended["message"].as_str().expect("a message");
    assert!(message.contains("cannot be read") && message.contains("owctl doctor"), "{message}");
    let listed = owd.owctl.run(&["doctor"]);
    assert!(listed.stdout.contains("journal"), "{}{}", listed.stdout, listed.stderr);
    let shown = owd.owctl.run(&["run", "show", &run]);
    assert!(shown.stdout.contains("cannot be read"), "{}{}", shown.stdout, shown.stderr);
    assert!(!scratch.stderr().contains("panicked"), "{}", scratch.stderr());
    assert_eq!(model.seen(), 2, "its model is not asked anew");
    owd.stop();
}

#[test]
fn a_workspace_that_vanishes_in_mid_turn_is_told_to_the_model_and_the_run_ends_by_itself() {
    let model = ModelServer::start();
    let scratch = with_model(&model);
    let work = scratch.work();
    let gone = work.clone();
    model.answer(move |request| {
        let messages = request.json()["messages"].as_array().expect("messages").len();
        match request.json()["messages"].to_string().matches("\"role\":\"tool\"").count() {
            0 => ModelReply::calls([("list_dir", json!({ "path": "." }))]).into(),
            1 => {
                fs::remove_dir_all(&gone).expect("it is there");
                ModelReply::calls([
                    ("list_dir", json!({ "path": "notes" })),
                    ("shell", json!({ "argv": ["touch", "made"] })),
                    ("write_file", json!({ "path": "a.txt", "content": "x" })),
                ])
                .into()
            }
            _ => ModelReply::text(format!("The folder is gone; {messages} messages.")).into(),
        }
    });
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "agent"]);
    owd.run_in("agent", "succeeded");
    let told = results(&model.last().json());
    assert_eq!(told.len(), 4, "{told:?}");
    for text in &told[1..3] {
        assert!(text.contains("no such") || text.contains("No such") || text.contains("not exist"), "{text}");
    }
    owd.stop();
}
