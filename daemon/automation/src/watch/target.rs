use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use ow_model::{Span, TaskId, TaskName, Trigger, WatchKind};
use ow_schedule::watch::Glob;
use ow_store::TaskRow;

use super::event::text;
use super::look::Depth;

/// Names a watch for good: its task, and what of which folder it watches. Its settle time is not part of that.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct TargetKey {
    pub(crate) task: TaskId,
    pub(crate) watch: String,
}

/// What one watch trigger asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Target {
    pub(crate) task: TaskName,
    /// A folder, or a single file.
    pub(crate) root: PathBuf,
    pattern: Pattern,
    pub(crate) settle: Span,
    pub(crate) on: Vec<WatchKind>,
}

/// The watch triggers of a task.
pub(crate) fn targets(row: &TaskRow) -> Vec<(TargetKey, Target)> {
    let of_trigger = |trigger: &Trigger| match trigger {
        Trigger::Watch { path, glob, settle, on } => {
            let watch = format!("{}\n{}", text(path.as_os_str()), glob.as_deref().unwrap_or_default());
            let target = Target {
                task: row.spec.name.clone(),
                root: path.clone(),
                pattern: Pattern::new(glob.as_deref()),
                settle: *settle,
                on: on.clone(),
            };
            Some((TargetKey { task: row.id, watch }, target))
        }
        Trigger::Cron(_)
        | Trigger::Every { .. }
        | Trigger::At(_)
        | Trigger::After { .. }
        | Trigger::Startup
        | Trigger::Webhook { .. }
        | Trigger::Slack { .. }
        | Trigger::Mail(_) => None,
    };
    row.spec.triggers.iter().filter_map(of_trigger).collect()
}

impl Target {
    pub(crate) const fn depth(&self) -> Depth {
        match &self.pattern {
            Pattern::Name(_) => Depth::Folder,
            Pattern::Path(_) | Pattern::Text(_) => Depth::Tree,
        }
    }

    /// Whether a file below the root is meant; the root itself, where that is a file, always is.
    pub(crate) fn means(&self, below: &Path) -> bool {
        below.as_os_str().is_empty() || self.pattern.matches(below)
    }
}

/// Which paths below a folder are meant.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Pattern {
    /// Files right in the folder.
    Name(Glob),
    /// Part for part.
    Path(Vec<Part>),
    /// Alternatives that hold a `/`; matched as text.
    Text(String),
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Part {
    /// `**`: any folders, none included. Not those whose name begins with a dot.
    Folders,
    Name(Glob),
}

impl Pattern {
    fn new(glob: Option<&str>) -> Self {
        let Some(glob) = glob else { return Self::Name(Glob::any()) };
        if !glob.contains("**")
            && let Ok(name) = Glob::parse(glob)
        {
            return Self::Name(name);
        }
        let part = |part: &str| {
            if part == "**" { Some(Part::Folders) } else { Glob::parse(part).ok().map(Part::Name) }
        };
        match glob.split('/').map(part).collect::<Option<Vec<Part>>>() {
            Some(mut parts) => {
                // `**` alone means the files in those folders.
                if parts.last() == Some(&Part::Folders) {
                    parts.push(Part::Name(Glob::any()));
                }
                Self::Path(parts)
            }
            None => Self::Text(glob.into()),
        }
    }

    fn matches(&self, below: &Path) -> bool {
        let names: Vec<&[u8]> = below.components().filter_map(name).collect();
        match self {
            Self::Name(glob) => matches!(names[..], [name] if glob.matches(name)),
            Self::Path(parts) => parts_match(parts, &names),
            Self::Text(glob) => glob_match::glob_match(glob, &text(below.as_os_str())),
        }
    }
}

fn name(component: Component<'_>) -> Option<&[u8]> {
    match component {
        Component::Normal(name) => Some(OsStr::as_bytes(name)),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    }
}

fn parts_match(parts: &[Part], names: &[&[u8]]) -> bool {
    match (parts, names) {
        ([], []) => true,
        ([Part::Folders, rest @ ..], _) => {
            let visible = |name: &&[u8]| name.first() != Some(&b'.');
            let deep = names.iter().take_while(|name| visible(name)).count();
            (0..=deep).any(|skipped| parts_match(rest, &names[skipped..]))
        }
        ([Part::Name(glob), parts @ ..], [name, names @ ..]) => glob.matches(name) && parts_match(parts, names),
        ([Part::Name(_), ..], []) | ([], [_, ..]) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn a_pattern_means_names_in_the_folder_and_paths_where_it_says_so() {
        for (glob, path, meant) in [
            (None, "a.txt", true),
            (None, "-o", true),
            (None, "; rm -rf ~", true),
            (None, "two\nlines", true),
            (None, ".a.txt.swp", false),
            (None, "sub/a.txt", false),
            (Some("*.txt"), "a.txt", true),
            (Some("*.txt"), "a.md", false),
            (Some("*.txt"), "sub/a.txt", false),
            (Some("*.txt"), ".a.txt", false),
            (Some(".*"), ".a.txt", true),
            (Some("*.{md,txt}"), "a.md", true),
            (Some("sub/*.txt"), "sub/a.txt", true),
            (Some("sub/*.txt"), "a.txt", false),
            (Some("**/*.txt"), "a.txt", true),
            (Some("**/*.txt"), "x/y/a.txt", true),
            (Some("**/*.txt"), "x/.git/a.txt", false),
            (Some("**"), "x/y/a.txt", true),
            (Some("x/**/z/*"), "x/1/2/z/a", true),
            (Some("x/**/z/*"), "x/1/2/a", false),
            (Some("{x/y,z}/*.txt"), "x/y/a.txt", true),
            (Some("{x/y,z}/*.txt"), "w/a.txt", false),
        ] {
            assert_eq!(Pattern::new(glob).matches(Path::new(path)), meant, "{glob:?} {path}");
        }
    }

    #[test]
    fn a_name_need_not_be_utf_8() {
        let name = PathBuf::from(OsString::from_vec(vec![0xff, b'.', b't', b'x', b't']));
        assert!(Pattern::new(Some("*.txt")).matches(&name));
        assert!(Pattern::new(Some("**/*.txt")).matches(&Path::new("sub").join(&name)));
    }
}
