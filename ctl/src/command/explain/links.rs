use std::io::ErrorKind;
use std::path::Path;

use ow_policy::path::{LinkAt, Links};

/// Links as this machine's file system has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemLinks;

impl Links for SystemLinks {
    fn read_link(&self, path: &Path) -> LinkAt {
        match std::fs::read_link(path) {
            Ok(target) => LinkAt::Link(target),
            Err(why) => match why.kind() {
                // What is there is no link.
                ErrorKind::InvalidInput => LinkAt::NotALink,
                ErrorKind::NotFound | ErrorKind::NotADirectory => LinkAt::Missing,
                _ => LinkAt::Unreadable,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_files_and_nothing_are_told_apart() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").expect("a file");
        std::os::unix::fs::symlink("file", at("link")).expect("a link");
        assert_eq!(SystemLinks.read_link(&at("link")), LinkAt::Link("file".into()));
        assert_eq!(SystemLinks.read_link(&at("file")), LinkAt::NotALink);
        assert_eq!(SystemLinks.read_link(folder.path()), LinkAt::NotALink);
        assert_eq!(SystemLinks.read_link(&at("none")), LinkAt::Missing);
        assert_eq!(SystemLinks.read_link(&at("file/below")), LinkAt::Missing);
    }
}
