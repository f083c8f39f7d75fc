use super::support::Directory;

crate::store_conformance!(Directory::new());
