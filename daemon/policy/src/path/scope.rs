use std::path::{Path, PathBuf};

use super::resolve::{Links, resolve};
use super::{runs_later, secret_name};
use crate::{Explained, PathOp, ResolvedPath};

/// The folders that decide where a call may go; all absolute, links followed.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    pub roots: &'a [PathBuf],
    pub run_folder: Option<&'a Path>,
    pub protected: &'a [PathBuf],
}

/// How a path stands to a call's folders; the first that holds, from the strictest on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Standing {
    /// owd's own.
    Protected,
    /// A device, or a file of the kernel: writing it changes the machine.
    Device,
    /// Asked for below a root, but a link leads out.
    LeftByLink,
    Outside,
    /// Its name says that it holds a secret.
    Secret(String),
    /// A write would plant something that runs later.
    RunsLater(&'static str),
    Inside,
    /// Inside the run's own folder.
    RunFolder,
}

pub(super) const KERNEL: &[&str] = &["/dev", "/proc", "/sys"];

/// Whether a place is owd's own. A run's own folder lies among owd's data, and is the run's.
#[must_use]
pub fn is_owds(at: &Path, protected: &[PathBuf], run_folder: Option<&Path>) -> bool {
    protected.iter().any(|own| at.starts_with(own)) && !run_folder.is_some_and(|folder| at.starts_with(folder))
}

/// Whether a folder has owd's own in it, or is owd's own.
#[must_use]
pub fn holds_owds(at: &Path, protected: &[PathBuf]) -> bool {
    protected.iter().any(|own| own.starts_with(at))
}

/// Tells how `path` stands.
#[must_use]
pub fn standing(path: &ResolvedPath, op: PathOp, scope: &Scope) -> Standing {
    let at = &path.resolved;
    let writes = op == PathOp::Write;
    let owds = |at: &Path| is_owds(at, scope.protected, scope.run_folder);
    // A folder that holds owd's own may be searched (the tool leaves that part out) but not moved.
    if owds(at) || owds(&path.lexical) || (writes && holds_owds(at, scope.protected)) {
        return Standing::Protected;
    }
    if writes && KERNEL.iter().any(|folder| at.starts_with(folder)) {
        return Standing::Device;
    }
    let in_run_folder = scope.run_folder.is_some_and(|folder| at.starts_with(folder));
    let inside = in_run_folder || scope.roots.iter().any(|root| at.starts_with(root));
    if !inside {
        return if path.left_root_by_link(scope.roots) { Standing::LeftByLink } else { Standing::Outside };
    }
    // A root itself may be moved or replaced only by someone who knows what hangs on it.
    if writes && scope.roots.iter().any(|root| root.starts_with(at)) && !in_run_folder {
        return Standing::Outside;
    }
    if let Some(name) = secret_name(at).or_else(|| secret_name(&path.lexical)) {
        return Standing::Secret(name);
    }
    if writes && let Some(name) = runs_later(at).or_else(|| runs_later(&path.lexical)) {
        return Standing::RunsLater(name);
    }
    if in_run_folder { Standing::RunFolder } else { Standing::Inside }
}

impl ResolvedPath {
    /// Whether the text alone stays below a root while a link leads out of all of them.
    #[must_use]
    pub fn left_root_by_link(&self, roots: &[PathBuf]) -> bool {
        roots.iter().any(|root| self.lexical.starts_with(root))
            && !roots.iter().any(|root| self.resolved.starts_with(root))
    }
}

/// What owd would say to a file tool that asks for `asked` below `root`, as in mode edit.
///
/// The search of a tree is judged by where it begins; what it meets there is judged one by one.
#[must_use]
pub fn explain(
    root: &Path,
    op: PathOp,
    asked: &Path,
    home: &Path,
    protected: &[PathBuf],
    links: &dyn Links,
) -> Explained {
    let deny = |why: String| Explained { verdict: "deny".into(), rule: "hard-block: path".into(), why };
    let root = match resolve(root, Path::new("/"), home, links) {
        Ok(root) => root.resolved,
        Err(refusal) => return deny(format!("the root: {refusal}")),
    };
    let path = match resolve(asked, &root, home, links) {
        Ok(path) => path,
        Err(refusal) => return deny(refusal.to_string()),
    };
    let roots = [root];
    let standing = standing(&path, op, &Scope { roots: &roots, run_folder: None, protected });
    let (verdict, rule, why) = words(&standing, op, &path);
    Explained { verdict: verdict.into(), rule, why }
}

/// Verdict, rule and reason for a path in mode edit.
pub(crate) fn words(standing: &Standing, op: PathOp, path: &ResolvedPath) -> (&'static str, String, String) {
    let at = path.resolved.display();
    let verb = match op {
        PathOp::Read => "read",
        PathOp::Write => "write",
        PathOp::Search => "search",
    };
    match standing {
        Standing::Protected => (
            "deny",
            "hard-block: owd's own files".into(),
            format!("`{at}` belongs to owd itself; use owctl to change its tasks and settings"),
        ),
        Standing::Device => {
            ("deny", "hard-block: device".into(), format!("`{at}` is a device or a file of the kernel"))
        }
        Standing::LeftByLink if op == PathOp::Write => (
            "deny",
            "hard-block: link out of the root".into(),
            format!("a link leads from `{}` to `{at}`, out of the roots; name the target itself", path.asked.display()),
        ),
        Standing::LeftByLink => (
            "ask",
            format!("ask: {verb} outside roots"),
            format!("a link leads from `{}` to `{at}`, out of the roots", path.asked.display()),
        ),
        Standing::Outside => {
            ("ask", format!("ask: {verb} outside roots"), format!("`{at}` is in none of the task's roots"))
        }
        Standing::Secret(name) => ("ask", "ask: secret".into(), format!("`{at}` may hold a secret (`{name}`)")),
        Standing::RunsLater(name) => {
            ("ask", "ask: runs later".into(), format!("what is written to `{at}` runs later (`{name}`)"))
        }
        Standing::Inside | Standing::RunFolder => {
            let rule = if op == PathOp::Write { "mode edit: inside root" } else { "read: inside root" };
            ("allow", rule.into(), format!("`{at}` is inside a root"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_folder_among_owds_data_is_the_runs() {
        let protected = [PathBuf::from("/var/lib/owd")];
        let folder = Path::new("/var/lib/owd/runs/abc");
        assert!(!is_owds(Path::new("/var/lib/owd/runs/abc/notes.md"), &protected, Some(folder)));
        for own in ["/var/lib/owd/owd.db", "/var/lib/owd/runs/other/notes.md", "/var/lib/owd/runs/abcd"] {
            assert!(is_owds(Path::new(own), &protected, Some(folder)), "{own}");
        }
    }
}
