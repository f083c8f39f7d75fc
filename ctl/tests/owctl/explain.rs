//! `owctl explain` answers every case as the program that outside suites run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::program::{Owctl, Ran};

fn cases(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases").join(file);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().map_or(vec![], |list| list.iter().map(|text| text.as_str().unwrap()).collect())
}

fn text<'v>(case: &'v Value, key: &str) -> &'v str {
    case[key].as_str().unwrap_or_else(|| panic!("{key} in {case}"))
}

#[track_caller]
fn assert_usage_error(ran: &Ran, case: &Value) {
    assert_eq!(ran.code, 2, "{case}: {ran:?}");
    let error = &ran.json()["error"];
    assert!(error["code"].is_string() && error["message"].is_string(), "{case}: {ran:?}");
}

#[test]
fn cron_gives_the_next_instants_whatever_the_zone_of_the_process() {
    let count = cases("cron-next.json")["cases"].as_array().unwrap().len();
    assert!(count > 30);
    for process_zone in ["UTC", "Asia/Tokyo"] {
        for case in cases("cron-next.json")["cases"].as_array().unwrap() {
            let args = ["explain", "cron", "--json", text(case, "expr"), "--tz", text(case, "tz"), "--from"];
            let want = texts(&case["expect"]);
            let number = want.len().to_string();
            let ran = Owctl::new().with("TZ", process_zone).run(args.into_iter().chain([
                text(case, "from"),
                "--count",
                &number,
            ]));
            assert_eq!(ran.code, 0, "{case}: {ran:?}");
            let answer = ran.json();
            let next = texts(&answer["next"]);
            let also: Vec<Vec<&str>> =
                case["also_accept"].as_array().map_or(vec![], |lists| lists.iter().map(texts).collect());
            assert!(next == want || also.contains(&next), "{case}: {next:?}");
        }
    }
}

#[test]
fn cron_refuses_what_is_wrong_or_never_fires() {
    for case in cases("cron-invalid.json")["expressions"].as_array().unwrap() {
        let ran = Owctl::new().run(["explain", "cron", "--json", text(case, "expr"), "--tz", "UTC"]);
        match text(case, "expect") {
            "error_or_never" if ran.code == 0 => assert_eq!(ran.json()["next"], Value::Array(vec![]), "{case}"),
            "error" | "error_or_never" => assert_usage_error(&ran, case),
            other => panic!("{other} in {case}"),
        }
    }
    for case in cases("cron-invalid.json")["zones"].as_array().unwrap() {
        let ran = Owctl::new().run(["explain", "cron", "--json", text(case, "expr"), "--tz", text(case, "tz")]);
        match text(case, "expect") {
            "error" => assert_usage_error(&ran, case),
            "ok" => assert_eq!(ran.code, 0, "{case}: {ran:?}"),
            other => panic!("{other} in {case}"),
        }
    }
}

#[test]
fn a_command_is_allowed_only_as_the_cases_say() {
    for case in cases("command-allowlist.json")["cases"].as_array().unwrap() {
        let mut args = vec!["explain", "command", "--json"];
        for entry in texts(&case["allow"]) {
            args.extend(["--allow", entry]);
        }
        args.extend(["--", text(case, "command")]);
        let ran = Owctl::new().run(args);
        assert_eq!(ran.code, 0, "{case}: {ran:?}");
        let answer = ran.json();
        assert!(answer["rule"].is_string() && answer["why"].is_string(), "{answer}");
        let verdict = text(&answer, "verdict");
        assert!(["allow", "ask", "deny"].contains(&verdict), "{answer}");
        if let Some(allowed) = case["expect"].as_bool() {
            assert_eq!(verdict == "allow", allowed, "{case}: {answer}");
        }
    }
}

struct Folders {
    _all: tempfile::TempDir,
    root: PathBuf,
    out: PathBuf,
}

fn folders() -> Folders {
    let all = tempfile::tempdir().unwrap();
    let (root, out) = (all.path().join("root"), all.path().join("out"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("victim.txt"), "keep").unwrap();
    fs::write(out.join("secret.txt"), "secret").unwrap();
    Folders { _all: all, root, out }
}

#[test]
fn a_path_is_allowed_only_as_the_cases_say() {
    for case in cases("path-scope.json")["cases"].as_array().unwrap() {
        if case.get("only_on").is_some() {
            continue;
        }
        let folders = folders();
        let (root, out) = (folders.root.to_str().unwrap(), folders.out.to_str().unwrap());
        for line in texts(&case["setup"]) {
            let done = Command::new("sh").arg("-c").arg(line).env("OUT", out).current_dir(root).status().unwrap();
            assert!(done.success(), "{case}");
        }
        let op = text(case, "op");
        let path = text(case, "path").replace("$ROOT", root).replace("$OUT", out);
        let ran = Owctl::new().run(["explain", "path", "--json", "--root", root, "--op", op, &path]);
        assert_eq!(ran.code, 0, "{case}: {ran:?}");
        let verdict = ran.json();
        assert_eq!(text(&verdict, "verdict") == "allow", case["allow"].as_bool().unwrap(), "{case}: {verdict}");
    }
}

#[test]
fn a_url_is_blocked_only_as_the_cases_say() {
    for case in cases("ssrf-urls.json")["cases"].as_array().unwrap() {
        let mut args = vec!["explain".into(), "url".into(), "--json".into(), text(case, "url").to_owned()];
        for (name, addresses) in case["dns"].as_object().into_iter().flatten() {
            args.extend(["--dns".into(), format!("{name}={}", texts(addresses).join(","))]);
        }
        for (name, looks) in case["dns_sequence"].as_object().into_iter().flatten() {
            args.extend(["--dns".into(), format!("{name}={}", texts(&looks[0]).join(","))]);
        }
        for hop in case["redirects"].as_array().into_iter().flatten() {
            args.push("--redirect".into());
            args.extend(texts(hop).into_iter().map(str::to_owned));
        }
        let ran = Owctl::new().run(&args);
        assert_eq!(ran.code, 0, "{case}: {ran:?}");
        let answer = ran.json();
        assert!(answer["why"].is_string(), "{answer}");
        if let Some(blocked) = case["blocked"].as_bool() {
            assert_eq!(answer["blocked"].as_bool(), Some(blocked), "{case}: {answer}");
        }
    }
}

#[test]
fn explanations_are_sentences_without_json() {
    let ran = Owctl::new().run(["explain", "command", "--allow", "git status", "--", "git status; id"]);
    expect_test::expect![[r#"
        exit 0
        ask: no entry or rule covers `id`
        by ask: exec
    "#]]
    .assert_eq(&ran.shown());
    let ran = Owctl::new().run(["explain", "url", "http://169.254.169.254/latest/"]);
    expect_test::expect![[r#"
        exit 0
        blocked: `169.254.169.254` does not lead to the public internet; a person may open it in owd.toml, under [policy], with http-allow = ["host:port"]
    "#]].assert_eq(&ran.shown());
}

#[test]
fn a_search_is_allowed_where_nothing_in_the_tree_leads_out() {
    let folders = folders();
    let (root, out) = (folders.root.to_str().unwrap(), folders.out.to_str().unwrap());
    fs::create_dir(folders.root.join("sub")).unwrap();
    fs::write(folders.root.join("sub/a.txt"), "a").unwrap();
    std::os::unix::fs::symlink("a.txt", folders.root.join("sub/b.txt")).unwrap();
    let search = || Owctl::new().run(["explain", "path", "--json", "--root", root, "--op", "search", "."]).json();
    assert_eq!(search()["verdict"], "allow");
    std::os::unix::fs::symlink(out, folders.root.join("sub/out")).unwrap();
    let found = search();
    assert_ne!(found["verdict"], "allow");
    assert!(text(&found, "why").contains("sub/out"), "{found}");
}

/// Runs `explain reply` with `input` as its standard input.
fn reply(args: &[&str], input: &str) -> Value {
    let mut owctl = Owctl::new();
    let file = owctl.home().join("input");
    fs::write(&file, input).unwrap();
    owctl.command().stdin(fs::File::open(file).unwrap());
    let ran = owctl.run(["explain", "reply", "--json"].iter().chain(args));
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    ran.json()
}

#[track_caller]
fn assert_reply(found: &Value, wanted: &Value, id: &str) {
    assert_eq!(found["decision"], wanted["decision"], "{id}: {found}");
    if let Some(answer) = wanted["answer"].as_str() {
        assert_eq!(found["answer"].as_str().map(str::trim), Some(answer), "{id}");
    }
    if let Some(part) = wanted["comment_contains"].as_str() {
        assert!(found["comment"].as_str().is_some_and(|comment| comment.contains(part)), "{id}: {found}");
    }
}

#[test]
fn a_reply_is_read_as_its_case_says() {
    for case in cases("reply-text.json")["cases"].as_array().unwrap() {
        let found = reply(&["--text", "-", "--kind", text(case, "kind")], text(case, "text"));
        assert_reply(&found, case, text(case, "id"));
    }
}

#[test]
fn a_mail_is_read_as_its_case_says() {
    let index = cases("email-index.json");
    let told = &index["assumptions"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases");
    for case in index["cases"].as_array().unwrap() {
        let file = folder.join(text(case, "file"));
        let mut args = vec!["--mail".to_owned(), file.to_str().unwrap().to_owned()];
        for item in case["pending"].as_array().unwrap() {
            args.push("--pending".into());
            args.push(format!("{}:{}:{}", text(item, "id"), text(item, "kind"), text(item, "state")));
            args.extend(texts(&item["options"]).iter().flat_map(|label| ["--option".to_owned(), (*label).to_owned()]));
        }
        args.extend(texts(&told["approvers"]).iter().flat_map(|one| ["--approver".to_owned(), (*one).to_owned()]));
        args.extend([
            "--authserv-id".into(),
            text(told, "trusted_authserv_id").into(),
            "--now".into(),
            text(told, "now").into(),
        ]);
        let found = reply(&args.iter().map(String::as_str).collect::<Vec<_>>(), "");
        assert_reply(&found, &case["expect"], text(case, "file"));
        assert_eq!(found["token"], case["expect"]["token"], "{case}: {found}");
    }
}

#[test]
fn a_reply_is_explained_in_words_and_bad_input_names_what_is_wrong() {
    let ran = Owctl::new().run(["explain", "reply", "--text", "deny: frozen [ow:3f9c2a71b4de]"]);
    expect_test::expect![[r#"
        exit 0
        deny: the new text begins with a denial
        item 3f9c2a71b4de
        comment frozen
    "#]]
    .assert_eq(&ran.shown());
    let ran = Owctl::new().run(["explain", "reply", "--mail", "none.eml"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.shown().contains("none.eml"), "{ran:?}");
    for (wrong, remedy) in [
        ("xyz", "`xyz` is not an id: write 6 to 64 letters and digits"),
        ("abc-def", "`abc-def` is not an id"),
        ("abcdef:approval:bogus", "`bogus` is not a state: write pending, approved, denied"),
    ] {
        let ran = Owctl::new().run(["explain", "reply", "--text", "yes", "--pending", wrong]);
        assert_eq!(ran.code, 2, "{wrong:?}: {ran:?}");
        assert!(ran.shown().contains(remedy), "{ran:?}");
    }
    let long = format!("{}:approval:expired", "a".repeat(64));
    let ran = Owctl::new().run(["explain", "reply", "--text", "yes", "--pending", &long]);
    assert!(ran.code == 0 && ran.shown().contains("none: the item is expired already"), "{ran:?}");
    for wrong in [&["--pending", "x y"][..], &["--pending", "abcdef:wish"], &["--now", "soon"], &[]] {
        let text: &[&str] = if wrong.is_empty() { &[] } else { &["--text", "yes"] };
        let ran = Owctl::new().run(["explain", "reply"].iter().chain(text).chain(wrong));
        assert_eq!(ran.code, 2, "{wrong:?}: {ran:?}");
    }
}
