//! Repositories that are read, and those that would rather run something.

use std::fs;
use std::path::Path;
use std::process::Command;

use ow_policy::path::{Scope, Standing, standing};
use ow_policy::{Action, PathOp};
use serde_json::json;

use crate::support::{Bench, call};

fn git(folder: &Path, words: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"])
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn repository(folder: &Path) {
    git(folder, &["init", "-q"]);
    fs::write(folder.join("a.txt"), "one\n").unwrap();
    fs::write(folder.join(".env"), "KEY=hunter2\n").unwrap();
    git(folder, &["add", "-f", "."]);
    git(folder, &["commit", "-qm", "first"]);
    fs::write(folder.join("a.txt"), "one\ntwo\n").unwrap();
    git(folder, &["commit", "-qam", "second"]);
    fs::write(folder.join("a.txt"), "one\ntwo\nthree\n").unwrap();
    fs::write(folder.join("new.txt"), "new\n").unwrap();
}

async fn text(bench: &Bench, args: serde_json::Value) -> String {
    bench.output("git", args).await["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_repository_is_read() {
    let bench = Bench::new();
    repository(&bench.root());
    let status = text(&bench, json!({ "action": "status" })).await;
    assert!(status.contains("## main") && status.contains(" M a.txt") && status.contains("?? new.txt"), "{status}");
    let diff = text(&bench, json!({ "action": "diff" })).await;
    assert!(diff.contains("+three") && !diff.contains("+two"), "{diff}");
    let diff = text(&bench, json!({ "action": "diff", "commit": "HEAD~1", "files": ["a.txt"] })).await;
    assert!(diff.contains("+three") && diff.contains("+two"), "{diff}");
    assert_eq!(text(&bench, json!({ "action": "diff", "staged": true })).await, "");
    let log = text(&bench, json!({ "action": "log" })).await;
    assert!(log.contains("Ada") && log.find("second").unwrap() < log.find("first").unwrap(), "{log}");
    let log = text(&bench, json!({ "action": "log", "limit": 1, "summary": true })).await;
    assert!(log.contains("a.txt | 1 +") && !log.contains("first"), "{log}");
    let show = text(&bench, json!({ "action": "show", "commit": "HEAD" })).await;
    assert!(show.contains("second") && show.contains("+two"), "{show}");
    let branch = text(&bench, json!({ "action": "branch" })).await;
    assert!(branch.contains("* main"), "{branch}");
    fs::create_dir(bench.root().join("sub")).unwrap();
    let diff = text(&bench, json!({ "action": "diff", "path": "sub" })).await;
    assert!(diff.contains("+three"), "{diff}");
}

#[tokio::test]
async fn changes_of_secret_files_are_left_out() {
    let bench = Bench::new();
    repository(&bench.root());
    fs::write(bench.root().join(".env"), "KEY=hunter3\n").unwrap();
    for args in [json!({ "action": "diff" }), json!({ "action": "show", "commit": "HEAD~1" })] {
        let output = bench.output("git", args).await;
        assert!(!output["text"].as_str().unwrap().contains("hunter"), "{output}");
        assert_eq!(output["left-out"]["secrets"], 1);
    }
}

#[tokio::test]
async fn nothing_that_a_repository_names_is_started() {
    let bench = Bench::new();
    repository(&bench.root());
    let mark = bench.base().join("started");
    let trap = bench.file("trap", format!("#!/bin/sh\ntouch '{}'\ncat\n", mark.display()));
    fs::set_permissions(&trap, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let trap = trap.to_str().unwrap();
    for (key, value) in [
        ("core.fsmonitor", trap),
        ("core.pager", trap),
        ("pager.log", trap),
        ("pager.diff", trap),
        ("diff.external", trap),
        ("diff.x.command", trap),
        ("diff.x.textconv", trap),
        ("filter.x.clean", trap),
        ("filter.x.smudge", trap),
        ("filter.x.required", "true"),
        ("filter.p=q.process", trap),
        ("gpg.program", trap),
        ("log.showSignature", "true"),
        ("core.sshCommand", trap),
        ("core.askPass", trap),
        ("core.editor", trap),
        ("alias.log", &format!("!{trap}")),
        ("interactive.diffFilter", trap),
        ("core.worktree", "/"),
    ] {
        git(&bench.root(), &["config", key, value]);
    }
    let hooks = bench.root().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-index-change", "fsmonitor-watchman", "pre-auto-gc"] {
        fs::copy(trap, hooks.join(hook)).unwrap();
    }
    fs::write(bench.root().join(".gitattributes"), "*.txt filter=x diff=x\nnew* filter=p=q\n").unwrap();
    fs::write(bench.root().join("a.txt"), "one\ntwo\nchanged\n").unwrap();
    for args in [
        json!({ "action": "status" }),
        json!({ "action": "diff" }),
        json!({ "action": "diff", "summary": true }),
        json!({ "action": "diff", "commit": "HEAD~1" }),
        json!({ "action": "log", "summary": true }),
        json!({ "action": "show", "commit": "HEAD" }),
        json!({ "action": "branch" }),
    ] {
        let before = fs::metadata(bench.root().join(".git/index")).unwrap().modified().unwrap();
        bench.output("git", args.clone()).await;
        assert!(!mark.exists(), "{args}");
        assert_eq!(fs::metadata(bench.root().join(".git/index")).unwrap().modified().unwrap(), before, "{args}");
    }
    // That the traps are live is shown by git as it is.
    let plain = Command::new("git").arg("diff").env("GIT_WORK_TREE", bench.root()).current_dir(bench.root()).output();
    drop(plain.unwrap());
    assert!(mark.exists());
}

#[tokio::test]
async fn options_and_files_in_commits_are_no_commits() {
    let bench = Bench::new();
    repository(&bench.root());
    for commit in ["--output=x", "-Ox", "HEAD:.env", "HEAD main", ""] {
        let error = bench.error("git", json!({ "action": "show", "commit": commit })).await;
        assert!(error.message.contains("`commit`"), "{commit}: {error}");
    }
    for (args, words) in [
        (json!({ "action": "push" }), "status, diff"),
        (json!({ "action": "log", "commit": "no-such-branch" }), "git log"),
        (json!({ "action": "diff", "files": [] }), "`files`"),
    ] {
        let error = bench.error("git", args.clone()).await;
        assert!(error.message.contains(words), "{args}: {error}");
    }
    let output = bench.output("git", json!({ "action": "diff", "files": ["--output=x", ":(top)a.txt"] })).await;
    assert_eq!(output["text"], "");
    assert!(!bench.root().join("x").exists());
}

fn standings(bench: &Bench) -> Vec<Standing> {
    let facts = bench.facts(&call("git", json!({ "action": "log" }))).unwrap();
    let Action::Paths { paths, .. } = facts.action else { panic!("paths") };
    let roots = [bench.root()];
    let scope = Scope { roots: &roots, run_folder: None, protected: &[] };
    paths.iter().map(|path| standing(path, PathOp::Search, &scope)).collect()
}

#[tokio::test]
async fn a_repository_that_lies_or_borrows_elsewhere_is_judged_by_that_place() {
    let bench = Bench::new();
    repository(&bench.out());
    // Above the root there may be one, and it is none of the session's business.
    let error = bench.error("git", json!({ "action": "log" })).await;
    assert!(error.message.contains("no git repository"), "{error}");
    fs::write(bench.root().join(".git"), format!("gitdir: {}\n", bench.out().join(".git").display())).unwrap();
    assert!(standings(&bench).contains(&Standing::Outside));
    fs::remove_file(bench.root().join(".git")).unwrap();
    std::os::unix::fs::symlink(bench.out().join(".git"), bench.root().join(".git")).unwrap();
    assert!(standings(&bench).iter().any(|one| *one != Standing::Inside));
    fs::remove_file(bench.root().join(".git")).unwrap();
    repository(&bench.root());
    assert!(standings(&bench).iter().all(|one| *one == Standing::Inside));
    let store = bench.out().join(".git/objects");
    fs::write(bench.root().join(".git/objects/info/alternates"), format!("{}\n", store.display())).unwrap();
    assert!(standings(&bench).contains(&Standing::Outside));
}

#[tokio::test]
async fn a_second_working_tree_is_read_too() {
    let bench = Bench::new();
    let main = bench.root().join("main");
    fs::create_dir(&main).unwrap();
    repository(&main);
    git(&main, &["worktree", "add", "-q", "../side", "-b", "side"]);
    fs::write(bench.root().join("side/a.txt"), "one\nside\n").unwrap();
    let diff = text(&bench, json!({ "action": "diff", "path": "side" })).await;
    assert!(diff.contains("+side"), "{diff}");
    assert!(text(&bench, json!({ "action": "status", "path": "side" })).await.contains("## side"));
}
