use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use ow_model::{Artifact, BlobHash, CallErrorKind, Reconciled};
use ow_tool::Limits;
use serde_json::json;

use crate::support::Bench;

#[tokio::test]
async fn a_file_is_read_as_text_or_as_base64() {
    let mut bench = Bench::new();
    bench.file("a.txt", "häl\nlo");
    let output = bench.output("read_file", json!({ "path": "a.txt" })).await;
    assert_eq!((&output["text"], &output["bytes"]), (&json!("häl\nlo"), &json!(7)));
    assert_eq!(output["hash"], BlobHash::of("häl\nlo".as_bytes()).to_string());
    let output = bench.output("read_file", json!({ "path": "a.txt", "offset": 2, "limit": 2 })).await;
    assert_eq!(output["text"], "\u{fffd}l");
    bench.file("b", b"\x00\xff");
    let output = bench.output("read_file", json!({ "path": "b" })).await;
    assert_eq!((&output["text"], &output["encoding"]), (&json!("AP8="), &json!("base64")));
    bench.limits = Limits { output_bytes: 20, ..bench.limits };
    bench.file("long", "0123456789".repeat(10));
    let (result, kept) = bench.whole("read_file", json!({ "path": "long" })).await;
    assert!(result.output["text"].as_str().unwrap().contains("80 bytes left out"));
    assert_eq!(kept[0].1.len(), 100);
}

#[tokio::test]
async fn what_cannot_be_read_says_why() {
    let bench = Bench::new();
    fs::create_dir(bench.root().join("folder")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, bench.root().join("pipe"), rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    for (args, word) in [
        (json!({ "path": "gone" }), "does not exist"),
        (json!({ "path": "folder" }), "is a folder"),
        (json!({ "path": "pipe" }), "not a regular file"),
        (json!({ "path": "" }), "not empty"),
        (json!({ "path": "a\u{0}" }), "zero"),
        (json!({ "path": 5 }), "5"),
        (json!({}), "`path`"),
        (json!({ "path": "a", "limit": 0 }), "`limit`"),
        (json!({ "path": "a", "offset": -1 }), "`offset`"),
        (json!({ "path": "x".repeat(5000) }), "longer"),
    ] {
        let error = bench.error("read_file", args.clone()).await;
        assert!(error.message.contains(word), "{args}: {error}");
    }
}

#[tokio::test]
async fn a_write_makes_folders_and_is_an_artifact() {
    let bench = Bench::new();
    let result = bench.run("write_file", json!({ "path": "a/b/c.txt", "content": "new" })).await;
    assert_eq!(result.error, None);
    assert_eq!(bench.text("a/b/c.txt"), "new");
    let path = bench.root().join("a/b/c.txt");
    assert_eq!(result.artifacts, [Artifact::File { path, bytes: 3, hash: BlobHash::of(b"new") }]);
    assert_eq!(fs::read_dir(bench.root().join("a/b")).unwrap().count(), 1, "nothing unfinished is left");
}

#[tokio::test]
async fn a_write_keeps_the_mode_and_replaces_whole() {
    let bench = Bench::new();
    let path = bench.file("a.sh", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let open = fs::File::open(&path).unwrap();
    bench.output("write_file", json!({ "path": "a.sh", "content": "new" })).await;
    assert_eq!(bench.text("a.sh"), "new");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
    assert_eq!(std::io::read_to_string(open).unwrap(), "old", "a reader of the old file is not disturbed");
}

#[tokio::test]
async fn a_write_that_fails_changes_nothing() {
    let bench = Bench::new();
    bench.file("file", "old");
    fs::create_dir(bench.root().join("folder")).unwrap();
    for (path, word) in [("file/below", "not a folder"), ("folder", "folder"), ("a\u{0}", "zero")] {
        let error = bench.error("write_file", json!({ "path": path, "content": "x" })).await;
        assert!(error.message.contains(word), "{path}: {error}");
    }
    let long = "n".repeat(300);
    let error = bench.error("write_file", json!({ "path": long, "content": "x" })).await;
    assert!(error.message.contains("name too long"), "{error}");
    let longest = "n".repeat(255);
    bench.output("write_file", json!({ "path": longest, "content": "x" })).await;
    assert_eq!(bench.text("file"), "old");
}

#[tokio::test]
async fn a_file_that_changed_after_the_judgement_is_not_overwritten() {
    let bench = Bench::new();
    let path = bench.file("a", "old");
    for (tool, args) in [
        ("write_file", json!({ "path": "a", "content": "new" })),
        ("edit_file", json!({ "path": "a", "old": "old", "new": "new" })),
    ] {
        fs::write(&path, "old").unwrap();
        let call = crate::support::call(tool, args);
        let facts = bench.facts(&call).unwrap();
        let authorized = bench.allowed(&call, &facts).unwrap();
        fs::write(&path, "old, and more by someone else").unwrap();
        let helper = bench.helpers.ready().await.unwrap();
        let end = helper
            .run(
                &authorized,
                bench.job(facts),
                tokio_util::sync::CancellationToken::new(),
                ow_model::Span::from_secs(1),
            )
            .await;
        let ow_tool::HelperEnd::Done(result, _) = end else { panic!("{end:?}") };
        assert_eq!(result.error.unwrap().kind, CallErrorKind::Refused);
        assert_eq!(bench.text("a"), "old, and more by someone else");
    }
}

#[tokio::test]
async fn an_edit_replaces_the_one_place() {
    let bench = Bench::new();
    bench.file("a", "one\ntwo\nthree\n");
    let output = bench.output("edit_file", json!({ "path": "a", "old": "two", "new": "2" })).await;
    assert_eq!(output["line"], 2);
    assert_eq!(bench.text("a"), "one\n2\nthree\n");
}

#[tokio::test]
async fn an_edit_that_does_not_fit_says_what_matched() {
    let bench = Bench::new();
    bench.file("a", "x = 1\ny  =  2\nx = 1\n");
    for (old, words) in [
        ("x = 1", vec!["2 times", "lines 1, 3"]),
        ("z = 3", vec!["not in"]),
        ("y = 2", vec!["line 2", "blanks"]),
        ("", vec!["`old`", "write_file"]),
        ("new", vec!["same"]),
    ] {
        let error = bench.error("edit_file", json!({ "path": "a", "old": old, "new": "new" })).await;
        for word in words {
            assert!(error.message.contains(word), "{old}: {error}");
        }
    }
    let error = bench.error("edit_file", json!({ "path": "gone", "old": "a", "new": "b" })).await;
    assert!(error.message.contains("write_file"), "{error}");
    assert_eq!(bench.text("a"), "x = 1\ny  =  2\nx = 1\n");
}

#[tokio::test]
async fn a_write_is_shown_as_a_difference_with_its_base() {
    let bench = Bench::new();
    let path = bench.file("a", "one\ntwo\n");
    let place = bench.place();
    let call = crate::support::call("edit_file", json!({ "path": "a", "old": "two", "new": "2" }));
    let diff = bench.tool("edit_file").diff(&call, &place).unwrap();
    assert!(diff.contains("\n one\n-two\n+2\n"), "{diff}");
    assert_eq!(bench.tool("edit_file").base(&call, &place), Some((path, Some(BlobHash::of(b"one\ntwo\n")))));
    let call = crate::support::call("write_file", json!({ "path": "deep/new", "content": "text\n" }));
    let diff = bench.tool("write_file").diff(&call, &place).unwrap();
    assert!(diff.contains("/dev/null") && diff.contains("+text"), "{diff}");
    assert_eq!(bench.tool("write_file").base(&call, &place), Some((bench.root().join("deep/new"), None)));
}

#[test]
fn a_write_is_reconciled_by_its_content() {
    let bench = Bench::new();
    let path = bench.file("a", "old");
    let args = json!({ "path": "a", "content": "new" });
    assert_eq!(bench.reconciled("write_file", args.clone(), || ()), Reconciled::DidNotHappen);
    let unfinished = |pid: u32| {
        let hash = BlobHash::of(b"a").to_string();
        bench.root().join(format!(".owd-{pid}-{}", &hash[..16]))
    };
    let (dead, living) = (unfinished(u32::MAX), unfinished(std::process::id()));
    let found = bench.reconciled("write_file", args.clone(), || {
        fs::write(&dead, "ne").unwrap();
        fs::write(&living, "ne").unwrap();
        fs::write(&path, "new").unwrap();
    });
    let Reconciled::Happened { result } = found else { panic!("{found:?}") };
    assert_eq!(result.artifacts.len(), 1);
    assert!(!dead.exists() && living.exists(), "what a dead writer left is removed");
    let found =
        bench.reconciled("write_file", json!({ "path": "a", "content": "newer" }), || fs::write(&path, "?").unwrap());
    assert!(matches!(found, Reconciled::Unknown { .. }), "{found:?}");
    let args = json!({ "path": "fresh/b", "content": "b" });
    assert_eq!(bench.reconciled("write_file", args, || ()), Reconciled::DidNotHappen);
    fs::write(&path, "one two").unwrap();
    let edit = json!({ "path": "a", "old": "two", "new": "2" });
    let found = bench.reconciled("edit_file", edit.clone(), || fs::write(&path, "one 2").unwrap());
    assert!(matches!(found, Reconciled::Happened { .. }), "{found:?}");
    fs::write(&path, "one two").unwrap();
    assert_eq!(bench.reconciled("edit_file", edit, || ()), Reconciled::DidNotHappen);
}

#[tokio::test]
async fn a_move_makes_the_folder_and_never_replaces() {
    let bench = Bench::new();
    bench.file("in/a.txt", "a");
    let result = bench.run("move_file", json!({ "from": "in/a.txt", "to": "2026/11/" })).await;
    assert_eq!(result.error, None);
    assert_eq!(bench.text("2026/11/a.txt"), "a");
    assert!(!bench.root().join("in/a.txt").exists());
    let path = bench.root().join("2026/11/a.txt");
    assert_eq!(result.artifacts, [Artifact::File { path, bytes: 1, hash: BlobHash::of(b"a") }]);
    bench.file("in/a.txt", "b");
    let error = bench.error("move_file", json!({ "from": "in/a.txt", "to": "2026/11/a.txt" })).await;
    assert!(error.message.contains("never replaced"), "{error}");
    assert_eq!((bench.text("in/a.txt").as_str(), bench.text("2026/11/a.txt").as_str()), ("b", "a"));
    fs::create_dir(bench.root().join("full")).unwrap();
    let error = bench.error("move_file", json!({ "from": "in/a.txt", "to": "full" })).await;
    assert!(error.message.contains("never replaced"), "{error}");
    bench.output("move_file", json!({ "from": "in", "to": "elsewhere" })).await;
    assert_eq!(bench.text("elsewhere/a.txt"), "b");
}

#[tokio::test]
async fn a_move_that_does_not_fit_says_why() {
    let bench = Bench::new();
    bench.file("dir/a", "a");
    for (from, to, word) in [
        ("gone", "b", "does not exist"),
        ("dir", "dir/below/x", "into itself"),
        ("..", "b", "name of a file"),
        ("dir/a", "", "not empty"),
    ] {
        let error = bench.error("move_file", json!({ "from": from, "to": to })).await;
        assert!(error.message.contains(word), "{from}: {error}");
    }
    assert_eq!(bench.text("dir/a"), "a");
}

#[tokio::test]
async fn a_move_of_a_link_moves_the_link() {
    let bench = Bench::new();
    let victim = bench.out().join("victim");
    fs::write(&victim, "v").unwrap();
    symlink(&victim, bench.root().join("link")).unwrap();
    bench.output("move_file", json!({ "from": "link", "to": "link2" })).await;
    assert_eq!(fs::read_link(bench.root().join("link2")).unwrap(), victim);
    assert!(victim.exists());
}

#[test]
fn a_move_is_reconciled_by_identity() {
    let bench = Bench::new();
    let from = bench.file("a", "a");
    let to = bench.root().join("b");
    let args = json!({ "from": "a", "to": "b" });
    assert_eq!(bench.reconciled("move_file", args.clone(), || ()), Reconciled::DidNotHappen);
    let found = bench.reconciled("move_file", args.clone(), || fs::rename(&from, &to).unwrap());
    assert!(matches!(found, Reconciled::Happened { .. }), "{found:?}");
    fs::rename(&to, &from).unwrap();
    let found = bench.reconciled("move_file", args, || fs::write(&to, "another").unwrap());
    assert!(matches!(found, Reconciled::Unknown { .. }), "{found:?}");
}

#[tokio::test]
async fn a_folder_is_listed_whatever_its_names_are() {
    let bench = Bench::new();
    bench.file("b; rm -rf ~", "12");
    bench.file("-o", "");
    bench.file("line\nbreak\u{202e}", "");
    fs::write(bench.root().join(OsStr::from_bytes(b"bad\xff")), "").unwrap();
    fs::create_dir(bench.root().join("dir")).unwrap();
    symlink("/etc", bench.root().join("link")).unwrap();
    let output = bench.output("list_dir", json!({})).await;
    let names: Vec<(&str, &str)> = output["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["name"].as_str().unwrap(), entry["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(
        names,
        [
            ("-o", "file"),
            ("b; rm -rf ~", "file"),
            ("bad\\xff", "file"),
            ("dir", "folder"),
            ("line\nbreak\u{202e}", "file"),
            ("link", "link"),
        ]
    );
    assert_eq!(output["entries"][2]["escaped"], true);
    assert_eq!(output["entries"][1]["bytes"], 2);
    let output = bench.output("list_dir", json!({ "limit": 2 })).await;
    assert_eq!((&output["cut"], &output["total"]), (&json!(true), &json!(6)));
    let error = bench.error("list_dir", json!({ "path": "gone" })).await;
    assert!(error.message.contains("does not exist"), "{error}");
}

#[tokio::test]
async fn no_result_of_a_file_tool_holds_a_secret() {
    let mut bench = Bench::new();
    bench.secrets = ow_secret::Secrets::from_pairs([("key", "s3cr3t-value")]).unwrap();
    bench.file("a", format!("{}needle s3cr3t-value{}", "x".repeat(110), "y".repeat(400)));
    for (tool, args) in [
        ("search_files", json!({ "text": "needle" })),
        ("search_files", json!({ "text": "s3cr3t" })),
        ("read_file", json!({ "path": "a" })),
    ] {
        let text = bench.output(tool, args).await.to_string();
        assert!(!text.contains("s3cr") && !text.contains("value"), "{text}");
    }
}

#[tokio::test]
async fn a_search_finds_lines_and_names() {
    let mut bench = Bench::new();
    bench.file("a.txt", "one needle\ntwo\nneedle\r\n");
    bench.file("docs/b.md", "a needle in docs");
    bench.file("docs/deep/c.txt", "nothing");
    bench.file("binary", b"needle\0");
    bench.file(".env", "NEEDLE=needle");
    bench.file("own/state", "needle");
    bench.protected = vec![bench.root().join("own")];
    let output = bench.output("search_files", json!({ "text": "needle" })).await;
    assert_eq!(
        output["matches"],
        json!([
            { "path": "a.txt", "line": 1, "text": "one needle" },
            { "path": "a.txt", "line": 3, "text": "needle" },
            { "path": "docs/b.md", "line": 1, "text": "a needle in docs" },
        ])
    );
    assert_eq!(output["left-out"], json!({ "secrets": 2 }));
    let output = bench.output("search_files", json!({ "glob": "*.txt" })).await;
    assert_eq!(output["matches"], json!([{ "path": "a.txt" }, { "path": "docs/deep/c.txt" }]));
    let output = bench.output("search_files", json!({ "glob": "docs/**/*.txt" })).await;
    assert_eq!(output["matches"], json!([{ "path": "docs/deep/c.txt" }]));
    let output = bench.output("search_files", json!({ "text": "needle", "glob": "*.md" })).await;
    assert_eq!(output["matches"].as_array().unwrap().len(), 1);
    let output = bench.output("search_files", json!({ "text": "needle", "limit": 1 })).await;
    assert_eq!((output["matches"].as_array().unwrap().len(), &output["cut"]), (1, &json!(true)));
    let error = bench.error("search_files", json!({})).await;
    assert!(error.message.contains("`text` or `glob`"), "{error}");
    let error = bench.error("search_files", json!({ "path": "a.txt", "glob": "*" })).await;
    assert!(error.message.contains("not a folder"), "{error}");
}

/// What a session writes after it has read text from outside is outside text for whoever reads it.
#[tokio::test]
async fn what_is_drawn_from_outside_stays_marked_in_the_file() {
    let mut bench = Bench::new();
    bench.file("own.txt", "plum one\n");
    bench.outside = true;
    bench.output("write_file", json!({ "path": "notes.md", "content": "plum two\n" })).await;
    bench.outside = false;
    for (tool, args, is_outside) in [
        ("read_file", json!({ "path": "notes.md" }), true),
        ("read_file", json!({ "path": "notes.md", "line": 1 }), true),
        ("grep", json!({ "path": ".", "pattern": "plum two" }), true),
        ("search_files", json!({ "path": ".", "text": "plum two" }), true),
        ("shell", json!({ "argv": ["cat", "notes.md"] }), true),
        ("shell", json!({ "command": "cat 'notes.md' | head -1" }), true),
        ("read_file", json!({ "path": "own.txt" }), false),
        ("grep", json!({ "path": ".", "pattern": "plum one" }), false),
        ("shell", json!({ "argv": ["cat", "own.txt"] }), false),
        // An edit keeps the rest of what stands there, a move all of it.
        ("edit_file", json!({ "path": "notes.md", "old": "two", "new": "three" }), false),
        ("read_file", json!({ "path": "notes.md" }), true),
        ("move_file", json!({ "from": "notes.md", "to": "moved.md" }), false),
        ("read_file", json!({ "path": "moved.md" }), true),
        // New content of one's own is one's own.
        ("write_file", json!({ "path": "moved.md", "content": "pear\n" }), false),
        ("read_file", json!({ "path": "moved.md" }), false),
    ] {
        let result = bench.run(tool, args.clone()).await;
        assert!(result.error.is_none(), "{tool} {args}: {:?}", result.error);
        assert_eq!(result.outside, is_outside, "{tool} {args}");
    }
}
