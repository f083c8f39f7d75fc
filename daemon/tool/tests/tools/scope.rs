//! What is judged is what is opened: the cases, and swaps between the two.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use ow_model::Span;
use ow_tool::HelperEnd;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, call};

fn setup(bench: &Bench, line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["ln", "-s", target, name] => {
            let target = target.replace("$OUT", bench.out().to_str().unwrap());
            symlink(target, bench.root().join(name)).unwrap();
            true
        }
        _ => false,
    }
}

/// Whether mode edit lets the call run without asking, and then what it does.
async fn passes(bench: &Bench, op: &str, path: &str) -> bool {
    let (tool, args) = match op {
        "write" => ("write_file", json!({ "path": path, "content": "x" })),
        "read" => ("read_file", json!({ "path": path })),
        _ => ("search_files", json!({ "path": path, "text": "secret" })),
    };
    let call = call(tool, args);
    let Ok(facts) = bench.facts(&call) else { return false };
    let ow_policy::Action::Paths { op, paths, .. } = &facts.action else { panic!("{facts:?}") };
    let (roots, protected) = ([bench.root()], []);
    let scope = ow_policy::path::Scope { roots: &roots, run_folder: None, protected: &protected };
    if paths.iter().any(|path| ow_policy::path::standing(path, *op, &scope) != ow_policy::path::Standing::Inside) {
        return false;
    }
    let result = bench.run(tool, call.args).await;
    result.error.is_none() && result.output["matches"] != json!([])
}

#[tokio::test]
async fn every_case_of_the_path_scope_holds_through_the_tool() {
    let text = include_str!("../../../../tests/cases/path-scope.json");
    let cases: Value = serde_json::from_str(text).unwrap();
    let mut run = 0;
    for case in cases["cases"].as_array().unwrap() {
        let bench = Bench::new();
        fs::write(bench.out().join("victim.txt"), "secret").unwrap();
        fs::write(bench.out().join("secret.txt"), "secret").unwrap();
        if !case["setup"].as_array().unwrap().iter().all(|line| setup(&bench, line.as_str().unwrap())) {
            continue;
        }
        let path = case["path"].as_str().unwrap().replace("$ROOT", bench.root().to_str().unwrap());
        let allowed = passes(&bench, case["op"].as_str().unwrap(), &path).await;
        assert_eq!(allowed, case["allow"].as_bool().unwrap(), "{case}");
        assert_eq!(fs::read_to_string(bench.out().join("victim.txt")).unwrap(), "secret", "{case}");
        assert_eq!(fs::read_dir(bench.base()).unwrap().count(), 4, "{case}");
        run += 1;
    }
    assert!(run >= 7, "{run}");
}

/// Judges, swaps, runs.
async fn after_swap(bench: &Bench, tool: &str, args: Value, swap: impl FnOnce(&Path, &Path)) -> String {
    let call = call(tool, args);
    let facts = bench.facts(&call).unwrap();
    let authorized = bench.allowed(&call, &facts).unwrap();
    swap(&bench.root(), &bench.out());
    let helper = bench.helpers.ready().await.unwrap();
    let end = helper.run(&authorized, bench.job(facts), CancellationToken::new(), Span::from_secs(1)).await;
    let HelperEnd::Done(result, _) = end else { panic!("{end:?}") };
    result.error.expect("the swap is refused").message
}

#[tokio::test]
async fn a_link_put_in_after_the_judgement_is_not_followed() {
    for (tool, args) in [
        ("read_file", json!({ "path": "dir/file" })),
        ("write_file", json!({ "path": "dir/file", "content": "x" })),
        ("edit_file", json!({ "path": "dir/file", "old": "inside", "new": "x" })),
        ("move_file", json!({ "from": "dir/file", "to": "moved" })),
        ("move_file", json!({ "from": "other", "to": "dir/file2" })),
        ("list_dir", json!({ "path": "dir" })),
        ("search_files", json!({ "path": "dir", "text": "outside" })),
    ] {
        // The folder is swapped for a link.
        let bench = Bench::new();
        bench.file("dir/file", "inside");
        bench.file("other", "inside");
        fs::write(bench.out().join("file"), "outside").unwrap();
        let error = after_swap(&bench, tool, args, |root, out| {
            fs::rename(root.join("dir"), root.join("was")).unwrap();
            symlink(out, root.join("dir")).unwrap();
        })
        .await;
        assert!(!error.contains("outside\n"), "{error}");
        assert_eq!(fs::read_to_string(bench.out().join("file")).unwrap(), "outside", "{tool}");
        assert_eq!(fs::read_dir(bench.out()).unwrap().count(), 1, "{tool}");
    }
}

#[tokio::test]
async fn a_file_swapped_for_a_link_is_not_opened() {
    for (tool, args) in [
        ("read_file", json!({ "path": "file" })),
        ("write_file", json!({ "path": "file", "content": "x" })),
        ("edit_file", json!({ "path": "file", "old": "inside", "new": "x" })),
    ] {
        let bench = Bench::new();
        bench.file("file", "inside");
        fs::write(bench.out().join("file"), "inside").unwrap();
        let error = after_swap(&bench, tool, args, |root, out| {
            fs::remove_file(root.join("file")).unwrap();
            symlink(out.join("file"), root.join("file")).unwrap();
        })
        .await;
        assert!(error.contains("a link stands where none was"), "{tool}: {error}");
        assert_eq!(fs::read_to_string(bench.out().join("file")).unwrap(), "inside");
    }
}

#[tokio::test]
async fn a_path_outside_the_roots_is_opened_as_it_was_allowed_and_makes_no_folders() {
    let bench = Bench::new();
    let path = bench.out().join("a.txt");
    bench.output("write_file", json!({ "path": path, "content": "x" })).await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "x");
    let error = bench.error("write_file", json!({ "path": bench.out().join("new/a"), "content": "x" })).await;
    assert!(error.message.contains("inside the roots only"), "{error}");
    assert!(!bench.out().join("new").exists());
}
