use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Finds a program on a search path as a shell would; a name with a slash is a path already.
pub(crate) fn find(name: &str, search_path: &OsStr) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    std::env::split_paths(search_path).map(|folder| folder.join(name)).find(|path| is_program(path))
}

pub(crate) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Where owd is: beside this program, else on the search path.
pub(crate) fn owd() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("owd")).filter(|path| is_program(path));
    beside.or_else(|| find("owd", &std::env::var_os("PATH")?))
}
