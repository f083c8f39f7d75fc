//! What an agent reads: ranges of lines, names and lines by pattern, pieces to edit.

use ow_model::CallErrorKind;
use ow_secret::Secrets;
use ow_tool::Limits;
use serde_json::{Value, json};

use crate::support::Bench;

#[tokio::test]
async fn a_text_is_read_by_lines_and_says_where_to_go_on() {
    let bench = Bench::new();
    bench.file("a", (1..=2500).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n"));
    let output = bench.output("read_file", json!({ "path": "a", "line": 1 })).await;
    assert!(output["text"].as_str().unwrap().starts_with("line 1\nline 2\n"));
    assert_eq!((&output["from"], &output["to"], &output["next"]), (&json!(1), &json!(2000), &json!(2001)));
    assert_eq!(output["note"], "there is more: go on with line = 2001");
    let output = bench.output("read_file", json!({ "path": "a", "line": 2499, "numbered": true })).await;
    assert_eq!(output["text"], "  2499\tline 2499\n  2500\tline 2500\n");
    assert_eq!((&output["lines"], &output["next"]), (&json!(2500), &Value::Null));
    let output = bench.output("read_file", json!({ "path": "a", "line": 10, "lines": 2 })).await;
    assert_eq!((&output["text"], &output["next"]), (&json!("line 10\nline 11\n"), &json!(12)));
    let error = bench.error("read_file", json!({ "path": "a", "line": 2501 })).await;
    assert!(error.message.contains("only 2500 lines"), "{error}");
}

#[tokio::test]
async fn the_end_of_a_file_is_told_exactly() {
    let bench = Bench::new();
    for (content, text, lines) in
        [("", "", 0), ("\n", "\n", 1), ("a", "a\n", 1), ("a\n", "a\n", 1), ("a\n\nb", "a\n\nb\n", 3)]
    {
        bench.file("a", content);
        let output = bench.output("read_file", json!({ "path": "a", "line": 1 })).await;
        assert_eq!((&output["text"], &output["lines"]), (&json!(text), &json!(lines)), "{content:?}");
    }
    bench.file("a", "one\r\ntwo\r\n");
    let output = bench.output("read_file", json!({ "path": "a", "lines": 2 })).await;
    assert_eq!((&output["text"], &output["line-ends"]), (&json!("one\ntwo\n"), &json!("CRLF")));
}

#[tokio::test]
async fn a_long_line_is_cut_between_characters_and_a_page_at_a_line_end() {
    let mut bench = Bench::new();
    bench.file("long", format!("{}\nnext\n", "é".repeat(100_000)));
    let output = bench.output("read_file", json!({ "path": "long", "line": 1 })).await;
    assert_eq!(output["text"], format!("{}… [99500 more characters]\nnext\n", "é".repeat(500)));
    bench.limits = Limits { output_bytes: 25, ..bench.limits };
    bench.file("short", "0123456789\n".repeat(5));
    let output = bench.output("read_file", json!({ "path": "short", "line": 1 })).await;
    assert_eq!((&output["text"], &output["next"]), (&json!("0123456789\n0123456789\n"), &json!(3)));
}

#[tokio::test]
async fn what_is_no_text_is_named_for_what_it_is() {
    let bench = Bench::new();
    for (content, kind) in [
        (&b"%PDF-1.7\nno zero byte here"[..], "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a PNG image"),
        (b"\xff\xd8\xff\xe0", "a JPEG image"),
        (b"a\0b", "a binary file"),
    ] {
        bench.file("x", content);
        let error = bench.error("read_file", json!({ "path": "x", "line": 1 })).await;
        assert!(error.message.contains(kind), "{error}");
    }
    bench.file("x", b"\x89PNG\r\n\x1a\n\0\0");
    let output = bench.output("read_file", json!({ "path": "x" })).await;
    assert_eq!((&output["kind"], &output["encoding"]), (&json!("a PNG image"), &json!("base64")));
    let error = bench.error("read_file", json!({ "path": "x", "line": 1, "offset": 2 })).await;
    assert!(error.message.contains("not both"), "{error}");
}

#[tokio::test]
async fn a_secret_over_several_lines_is_taken_out_of_any_range() {
    let mut bench = Bench::new();
    bench.secrets = Secrets::from_pairs([("key", "s3cr3t-first-line\ns3cr3t-second-line")]).unwrap();
    bench.file("a", "one\ns3cr3t-first-line\ns3cr3t-second-line\nfour\n");
    for line in 1..=3 {
        let output = bench.output("read_file", json!({ "path": "a", "line": line, "numbered": true })).await;
        assert!(!output["text"].as_str().unwrap().contains("s3cr3t"), "{output}");
    }
}

fn tree(bench: &Bench) {
    bench.file("src/main.rs", "fn main() {\n    println!(\"FIND: one\");\n}\n");
    bench.file("src/deep/lib.rs", "// find two\nfn two() {}\n");
    bench.file("notes.md", "FIND three\n");
    bench.file("target/debug/main.rs", "FIND built\n");
    bench.file("node_modules/x/index.js", "FIND theirs\n");
    bench.file(".git/config", "FIND git\n");
    bench.file(".env", "FIND=secret\n");
    bench.file("picture.rs", b"FIND\0binary");
}

#[tokio::test]
async fn grep_finds_lines_and_passes_over_builds_secrets_and_binaries() {
    let bench = Bench::new();
    tree(&bench);
    let output = bench.output("grep", json!({ "pattern": "FIND" })).await;
    assert_eq!(output["hits"], json!(["notes.md:1: FIND three", "src/main.rs:2:     println!(\"FIND: one\");"]));
    assert_eq!(output["left-out"], json!({ "secrets": 1, "build-folders": 3 }));
    let hits = async |args: Value| bench.output("grep", args).await["hits"].clone();
    assert_eq!(
        hits(json!({ "pattern": "find", "ignore-case": true, "glob": "*.rs", "files-only": true })).await,
        json!(["src/deep/lib.rs", "src/main.rs"])
    );
    assert_eq!(hits(json!({ "pattern": "^fn \\w+\\(\\) \\{\\}$" })).await, json!(["src/deep/lib.rs:2: fn two() {}"]));
    assert_eq!(
        hits(json!({ "pattern": "\"FIND: one\");", "literal": true, "path": "src" })).await,
        json!(["main.rs:2:     println!(\"FIND: one\");"])
    );
    assert_eq!(hits(json!({ "pattern": "FIND", "path": "notes.md" })).await, json!(["notes.md:1: FIND three"]));
    assert_eq!(hits(json!({ "pattern": "built", "path": "target" })).await, json!(["debug/main.rs:1: FIND built"]));
    assert_eq!(
        hits(json!({ "pattern": "theirs", "all": true })).await,
        json!(["node_modules/x/index.js:1: FIND theirs"])
    );
    assert_eq!(hits(json!({ "pattern": "two", "glob": "src/**/*.rs" })).await.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_pattern_counts_lines_whatever_it_may_run_over() {
    let bench = Bench::new();
    bench.file("a", "x = 1;\ny\nz\n\nlast");
    let hits = async |pattern: &str| bench.output("grep", json!({ "pattern": pattern })).await["hits"].clone();
    assert_eq!(hits("[^;]+").await, json!(["a:1: x = 1;", "a:2: y", "a:3: z", "a:5: last"]));
    assert_eq!(hits("^$").await, json!(["a:4: "]));
    assert_eq!(hits("y\\nz").await, json!([]));
    assert_eq!(hits("last$").await, json!(["a:5: last"]));
    bench.file("a", "one\r\ntwo\r\n");
    assert_eq!(hits("one$").await, json!(["a:1: one"]));
}

#[tokio::test]
async fn hits_are_bounded_and_what_is_wrong_with_a_pattern_is_said() {
    let bench = Bench::new();
    bench.file("a", "hit\n".repeat(5000));
    let output = bench.output("grep", json!({ "pattern": "hit" })).await;
    assert_eq!((output["hits"].as_array().unwrap().len(), &output["cut"]), (100, &json!(true)));
    let output = bench.output("grep", json!({ "pattern": "hit", "limit": 1000 })).await;
    assert_eq!(output["hits"].as_array().unwrap().len(), 1000);
    for (args, words) in [
        (json!({ "pattern": "(" }), ["`pattern`", "literal = true"]),
        (json!({ "pattern": "(?=x)" }), ["`pattern`", "look-around"]),
        (json!({ "pattern": "(\\w{1000}){1000}" }), ["`pattern`", "size limit"]),
        (json!({ "pattern": "x", "limit": 1001 }), ["`limit`", "1001"]),
        (json!({ "pattern": "x", "all": "yes" }), ["`all`", "true or false"]),
        (json!({ "pattern": "x", "path": "gone" }), ["gone", "does not exist"]),
    ] {
        let error = bench.error("grep", args.clone()).await;
        assert!(words.iter().all(|word| error.message.contains(word)), "{args}: {error}");
    }
}

#[tokio::test]
async fn glob_finds_files_and_folders_by_name_and_by_path() {
    let bench = Bench::new();
    tree(&bench);
    let found = async |args: Value| bench.output("glob", args).await["found"].clone();
    assert_eq!(found(json!({ "pattern": "*.rs" })).await, json!(["picture.rs", "src/deep/lib.rs", "src/main.rs"]));
    assert_eq!(found(json!({ "pattern": "src/*" })).await, json!(["src/deep/", "src/main.rs"]));
    assert_eq!(
        found(json!({ "pattern": "./src/**/*.rs", "path": "." })).await,
        json!(["src/deep/lib.rs", "src/main.rs"])
    );
    assert_eq!(
        found(json!({ "pattern": "*.{md,js}", "all": true })).await,
        json!(["node_modules/x/index.js", "notes.md"])
    );
    let output = bench.output("glob", json!({ "pattern": "*", "limit": 2 })).await;
    assert_eq!((output["found"].as_array().unwrap().len(), &output["cut"]), (2, &json!(true)));
    let error = bench.error("glob", json!({ "pattern": "../*" })).await;
    assert!(error.message.contains("`path`"), "{error}");
}

#[tokio::test]
async fn an_edit_replaces_all_only_when_asked() {
    let bench = Bench::new();
    bench.file("a", "aa b aa\naa");
    let error = bench.error("edit_file", json!({ "path": "a", "old": "aa", "new": "c" })).await;
    assert!(error.kind == CallErrorKind::Failed && error.message.contains("all = true"), "{error}");
    let output = bench.output("edit_file", json!({ "path": "a", "old": "aa", "new": "c", "all": true })).await;
    assert_eq!((&output["replaced"], bench.text("a").as_str()), (&json!(3), "c b c\nc"));
    bench.file("a", "aaaa");
    let output = bench.output("edit_file", json!({ "path": "a", "old": "aaa", "new": "b", "all": true })).await;
    assert_eq!((&output["replaced"], bench.text("a").as_str()), (&json!(1), "ba"));
    let error = bench.error("edit_file", json!({ "path": "a", "old": "zz", "new": "b", "all": true })).await;
    assert!(error.message.contains("is not in"), "{error}");
}
