//! Paths: the cases over a real tree with real links, and the walk itself.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ow_policy::path::{LinkAt, Links, NoLinks, PathRefusal, explain, grantable, resolve, runs_later, secret_name};
use ow_policy::{Explained, PathOp};
use proptest::prelude::*;
use serde::Deserialize;

/// The links of the real file system.
struct Real;

impl Links for Real {
    fn read_link(&self, path: &Path) -> LinkAt {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => fs::read_link(path).map_or(LinkAt::Unreadable, LinkAt::Link),
            Ok(_) => LinkAt::NotALink,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => LinkAt::Missing,
            Err(_) => LinkAt::Unreadable,
        }
    }
}

struct Tree {
    root: PathBuf,
    out: PathBuf,
    home: PathBuf,
    _folder: tempfile::TempDir,
}

fn tree() -> Tree {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().canonicalize().expect("its path");
    let tree = Tree { root: base.join("root"), out: base.join("out"), home: base.join("home"), _folder: folder };
    for path in [&tree.root, &tree.out, &tree.home.join(".ssh")] {
        fs::create_dir_all(path).expect("a folder");
    }
    fs::write(tree.out.join("victim.txt"), "x").expect("a file");
    fs::write(tree.out.join("secret.txt"), "x").expect("a file");
    tree
}

fn ask(tree: &Tree, op: PathOp, path: &str) -> Explained {
    explain(&tree.root, op, Path::new(path), &tree.home, &[tree.home.join(".config/owd")], &Real)
}

#[derive(Deserialize)]
struct Cases {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    setup: Vec<String>,
    op: String,
    path: String,
    allow: bool,
    why: String,
}

#[test]
fn cases_hold() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/path-scope.json"));
    let cases: Cases = serde_json::from_str(text).expect("the cases parse");
    for case in cases.cases {
        let tree = tree();
        let fill = |text: &str| {
            text.replace("$OUT", &tree.out.display().to_string()).replace("$ROOT", &tree.root.display().to_string())
        };
        for line in &case.setup {
            if let Some(link) = line.strip_prefix("ln -s ") {
                let (target, name) = link.split_once(' ').expect("a target and a name");
                symlink(fill(target), tree.root.join(name)).expect("a link");
            }
        }
        let path = fill(&case.path);
        let found = match case.op.as_str() {
            "write" => ask(&tree, PathOp::Write, &path),
            "read" => ask(&tree, PathOp::Read, &path),
            // A search asks anew for each thing that it meets.
            "search" => {
                let met: Vec<_> = fs::read_dir(tree.root.join(&path))
                    .expect("a folder")
                    .map(|entry| entry.expect("an entry").path())
                    .collect();
                met.iter()
                    .map(|path| ask(&tree, PathOp::Search, &path.display().to_string()))
                    .find(|found| found.verdict != "allow")
                    .unwrap_or_else(|| ask(&tree, PathOp::Search, &path))
            }
            other => panic!("{}: unknown operation {other}", case.id),
        };
        assert_eq!(found.verdict == "allow", case.allow, "{} {} ({}): {found:?}", case.id, case.path, case.why);
    }
}

#[test]
fn a_path_is_judged_on_where_it_leads() {
    let tree = tree();
    symlink("..", tree.root.join("up")).expect("a link");
    symlink(&tree.out, tree.root.join("folder")).expect("a link");
    symlink("hop2", tree.root.join("hop1")).expect("a link");
    symlink("../out/secret.txt", tree.root.join("hop2")).expect("a link");
    symlink(tree.home.join(".ssh/id_rsa"), tree.root.join("key")).expect("a link");
    symlink("loop", tree.root.join("loop")).expect("a link");
    symlink("inside.txt", tree.root.join("alias")).expect("a link");
    symlink("/proc/self/environ", tree.root.join("env")).expect("a link");
    fs::create_dir(tree.root.join("sub")).expect("a folder");
    for path in [
        "up/out/secret.txt",
        "folder/secret.txt",
        "hop1",
        "key",
        "sub/../../out/secret.txt",
        "folder/../home/x",
        "loop",
        "env",
    ] {
        for op in [PathOp::Read, PathOp::Write, PathOp::Search] {
            assert_ne!(ask(&tree, op, path).verdict, "allow", "{op:?} {path}");
        }
    }
    // No question is worth asking about a write through a link that leads out.
    assert_eq!(ask(&tree, PathOp::Write, "folder/new.txt").verdict, "deny");
    for path in [
        "alias",
        "new/deep/file.txt",
        "sub/../a.txt",
        "./a",
        "up/root/a.txt",
        "…/a",
        "a b",
        "%2e%2e/a",
        "..a",
        "a..b/c",
    ] {
        assert_eq!(ask(&tree, PathOp::Write, path).verdict, "allow", "{path}");
    }
    let absolute = tree.root.join("a.txt").display().to_string();
    assert_eq!(ask(&tree, PathOp::Read, &absolute).verdict, "allow");
    assert_eq!(ask(&tree, PathOp::Write, ".").verdict, "ask", "the root itself");
}

#[test]
fn outside_the_root_reads_and_writes_ask() {
    let tree = tree();
    for path in ["/etc/passwd", "../out/victim.txt", "~", "~/notes.txt", "/", "//etc/passwd", "/etc/../etc/hosts"] {
        assert_eq!(ask(&tree, PathOp::Read, path).verdict, "ask", "{path}");
    }
    assert_eq!(ask(&tree, PathOp::Write, "../a.txt").verdict, "ask");
    for path in [
        "",
        "a\0b",
        "/proc/self/cwd/../../etc/passwd",
        "/proc/thread-self/root/etc/passwd",
        "/proc/1/root/etc",
        "/proc/1/fd/3",
    ] {
        assert_eq!(ask(&tree, PathOp::Read, path).verdict, "deny", "{path:?}");
    }
    for path in ["/dev/sda", "/proc/sys/kernel/core_pattern", "/sys/power/state"] {
        assert_eq!(ask(&tree, PathOp::Write, path).verdict, "deny", "{path}");
    }
}

#[test]
fn owds_own_files_are_denied_to_read_and_write() {
    let tree = tree();
    symlink(tree.home.join(".config/owd"), tree.root.join("conf")).expect("a link");
    for path in ["~/.config/owd/config.toml", "~/.config/owd", "conf/key"] {
        for op in [PathOp::Read, PathOp::Write, PathOp::Search] {
            assert_eq!(ask(&tree, op, path).verdict, "deny", "{path}");
        }
    }
    assert_eq!(ask(&tree, PathOp::Write, "~/.config").verdict, "deny", "moving what holds it");
    assert_eq!(ask(&tree, PathOp::Search, "~/.config").verdict, "ask");
}

#[test]
fn secrets_and_what_runs_later_ask_inside_the_root_too() {
    let tree = tree();
    for path in [
        ".env",
        ".ENV",
        ".env.local",
        ".env copy",
        ".env.d/prod",
        "server.key.bak",
        "id_rsa~",
        "deploy_rsa",
        ".terraformrc",
        "prod.env",
        "key.pem",
        "tls.KEY",
        "my-credentials.yaml",
        ".ssh/config",
        "a/.ssh/known_hosts",
        "id_rsa",
        "id_ed25519.pub",
        ".netrc",
        ".npmrc",
        ".aws/config",
        "kubeconfig",
        ".kube/config",
        "x.kdbx",
        "secrets.yaml",
        "tokens.json",
        ".git-credentials",
        ".docker/config.json",
        ".bash_history",
    ] {
        assert_eq!(ask(&tree, PathOp::Read, path).verdict, "ask", "{path}");
        assert_eq!(ask(&tree, PathOp::Write, path).verdict, "ask", "{path}");
    }
    for path in [
        ".git/hooks/pre-commit",
        ".GIT/config",
        ".bashrc",
        ".envrc",
        "a/.vscode/tasks.json",
        ".husky/pre-push",
        ".config/systemd/user/x.service",
    ] {
        assert_eq!(ask(&tree, PathOp::Write, path).verdict, "ask", "{path}");
    }
    for path in
        ["environment.md", "keys.md", "monkey.txt", ".env.example", "ssh/notes", "gitignore", ".gitignore", "pem.txt"]
    {
        assert_eq!(ask(&tree, PathOp::Read, path).verdict, "allow", "{path}");
    }
    assert_eq!(ask(&tree, PathOp::Read, ".git/config").verdict, "allow");
    assert_eq!(secret_name(Path::new("/x/.ssh/config")), Some(".ssh/".into()));
    assert_eq!(runs_later(Path::new("/x/.git")), Some(".git"));
}

struct Endless;
impl Links for Endless {
    fn read_link(&self, _: &Path) -> LinkAt {
        LinkAt::Link("x/y".into())
    }
}

struct Locked;
impl Links for Locked {
    fn read_link(&self, _: &Path) -> LinkAt {
        LinkAt::Unreadable
    }
}

#[test]
fn a_walk_that_cannot_end_is_refused() {
    let home = Path::new("/home/u");
    let refused = resolve(Path::new("a"), Path::new("/r"), home, &Endless);
    assert!(matches!(refused, Err(PathRefusal::Loop { .. })), "{refused:?}");
    assert_eq!(
        resolve(Path::new("a"), Path::new("r"), home, &NoLinks),
        Err(PathRefusal::Relative { path: "r/a".into() })
    );
    assert_eq!(resolve(Path::new(&"a/".repeat(3000)), Path::new("/r"), home, &NoLinks), Err(PathRefusal::Long));
    assert!(matches!(resolve(Path::new("a"), Path::new("/r"), home, &Locked), Err(PathRefusal::Unreadable { .. })));
}

proptest! {
    #[test]
    fn what_is_allowed_lies_below_the_root(parts in prop::collection::vec("(\\.\\.|\\.|~|[a-c]{1,2}|)", 0..8), absolute: bool) {
        let path = format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"));
        let (root, home) = (Path::new("/r/oot"), Path::new("/home/u"));
        let found = explain(root, PathOp::Write, Path::new(&path), home, &[], &NoLinks);
        if found.verdict == "allow" {
            let resolved = resolve(Path::new(&path), root, home, &NoLinks).expect("an allowed path resolves");
            prop_assert!(resolved.resolved.starts_with(root) && resolved.resolved != root, "{}", path);
        }
    }
}

#[test]
fn a_person_opens_no_session_the_whole_of_the_machine_or_of_home_nor_secrets_nor_what_is_owd_s() {
    let tree = tree();
    symlink("/", tree.home.join("all")).expect("a link");
    symlink(tree.home.join(".ssh"), tree.home.join("notes")).expect("a link");
    let own = [tree.home.join(".config/owd")];
    let judged = |asked: &Path| {
        let folder = resolve(asked, &tree.home, &tree.home, &Real).expect("it leads somewhere");
        grantable(&folder, &tree.home, &own)
    };
    for asked in
        ["/", "~", "~/", "..", "~/..", "all", "notes", ".ssh", ".ssh/deeper", ".config/owd/data", "/proc/1", "/dev"]
    {
        assert!(judged(Path::new(asked)).is_err(), "{asked}");
    }
    for asked in [Path::new("~/work"), Path::new("work/../pictures"), &tree.out, Path::new("/srv")] {
        assert_eq!(judged(asked), Ok(()), "{}", asked.display());
    }
}
