use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

use crate::ResolvedPath;

/// As many links as Linux follows in one path.
const LINK_LIMIT: u32 = 40;
/// As long as a path may be on Linux.
const LENGTH_LIMIT: usize = 4096;

/// Reads links for the walk. The shells implement it over the file system.
pub trait Links {
    /// What stands at this absolute path; the folders before it hold no links.
    fn read_link(&self, path: &Path) -> LinkAt;
}

/// What stands at a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LinkAt {
    Link(PathBuf),
    NotALink,
    Missing,
    /// It could not be read, so where it leads is not known.
    Unreadable,
}

/// A file system without links, for paths that are judged by their text alone.
#[derive(Clone, Copy, Debug)]
pub struct NoLinks;

impl Links for NoLinks {
    fn read_link(&self, _path: &Path) -> LinkAt {
        LinkAt::NotALink
    }
}

/// Why a path cannot be followed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PathRefusal {
    #[error("the path is empty")]
    Empty,
    #[error("the path holds a zero byte")]
    Zero,
    #[error("the path is longer than {LENGTH_LIMIT} bytes")]
    Long,
    #[error("`{}` has no absolute folder to start from", path.display())]
    Relative { path: PathBuf },
    #[error("`{}` goes through more than {LINK_LIMIT} links", path.display())]
    Loop { path: PathBuf },
    #[error("`{}` cannot be read, so where it leads is not known", path.display())]
    Unreadable { path: PathBuf },
    #[error("`{}` leads through a process of the kernel's /proc", path.display())]
    Process { path: PathBuf },
}

/// Follows `asked` from `base` to where it leads.
///
/// `~` and `~/…` begin at `home`; `..` goes up from where the links before it led, as the kernel does.
/// Components that do not exist are kept as they are, so a new file has a place too.
///
/// # Errors
///
/// [`PathRefusal`] for a path that cannot be followed, or that leads through a process in `/proc`, whose
/// links mean something else to every reader.
pub fn resolve(asked: &Path, base: &Path, home: &Path, links: &dyn Links) -> Result<ResolvedPath, PathRefusal> {
    let bytes = asked.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(PathRefusal::Empty);
    }
    if bytes.contains(&0) {
        return Err(PathRefusal::Zero);
    }
    if bytes.len() > LENGTH_LIMIT {
        return Err(PathRefusal::Long);
    }
    let whole = match asked.strip_prefix("~") {
        Ok(rest) => home.join(rest),
        Err(_) => base.join(asked),
    };
    if !whole.is_absolute() {
        return Err(PathRefusal::Relative { path: whole });
    }
    let resolved = follow(&whole, links)?;
    Ok(ResolvedPath { asked: asked.to_owned(), lexical: lexical(&whole), resolved })
}

/// The path by its text alone: `.` and `..` removed, no link followed.
pub(crate) fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(component),
        }
    }
    plain
}

enum Move {
    Up,
    Into(OsString),
}

fn follow(whole: &Path, links: &dyn Links) -> Result<PathBuf, PathRefusal> {
    let mut ahead: VecDeque<Move> = moves(whole).collect();
    let mut here = PathBuf::from("/");
    let mut followed = 0;
    while let Some(next) = ahead.pop_front() {
        let name = match next {
            Move::Up => {
                here.pop();
                continue;
            }
            Move::Into(name) => name,
        };
        let at = here.join(&name);
        if is_process_link(&at) {
            return Err(PathRefusal::Process { path: whole.to_owned() });
        }
        match links.read_link(&at) {
            LinkAt::NotALink | LinkAt::Missing => here = at,
            LinkAt::Unreadable => return Err(PathRefusal::Unreadable { path: at }),
            LinkAt::Link(_) if at.starts_with("/proc") => {
                return Err(PathRefusal::Process { path: whole.to_owned() });
            }
            LinkAt::Link(target) => {
                followed += 1;
                if followed > LINK_LIMIT || target.as_os_str().len() > LENGTH_LIMIT {
                    return Err(PathRefusal::Loop { path: whole.to_owned() });
                }
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                for step in moves(&target).collect::<Vec<_>>().into_iter().rev() {
                    ahead.push_front(step);
                }
            }
        }
    }
    Ok(here)
}

fn moves(path: &Path) -> impl Iterator<Item = Move> {
    path.components().filter_map(|component| match component {
        Component::ParentDir => Some(Move::Up),
        Component::Normal(name) => Some(Move::Into(name.to_owned())),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}

/// `/proc/self`, `/proc/thread-self` and the links of any process, whatever the file system says of them.
fn is_process_link(at: &Path) -> bool {
    let Ok(below) = at.strip_prefix("/proc") else { return false };
    let names: Vec<_> = below.components().map(|component| component.as_os_str().to_string_lossy()).collect();
    match names.as_slice() {
        [process] => matches!(&**process, "self" | "thread-self"),
        [process, .., link] => {
            process.bytes().all(|byte| byte.is_ascii_digit())
                && matches!(&**link, "cwd" | "root" | "exe" | "fd" | "map_files" | "ns")
        }
        [] => false,
    }
}
