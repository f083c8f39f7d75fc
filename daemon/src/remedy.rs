use ow_store::StoreError;

/// What a person can do about a failure that keeps owd from starting, where its own text does not say so.
pub(crate) fn of(error: &anyhow::Error) -> Option<&'static str> {
    match error.chain().find_map(|cause| cause.downcast_ref())? {
        StoreError::InUse { .. } => {
            Some("use that one (`owctl status`), or stop it first (`owd stop`, or its service manager)")
        }
        StoreError::Directory { .. } => {
            Some("make it a folder that owd's account may write, or name another with --data-dir")
        }
        StoreError::Full { .. } => Some("make room on that disk, then start owd again"),
        StoreError::Disk { .. } => Some("make room on that disk, or see what is wrong with it; then start owd again"),
        StoreError::Write { .. } => Some("let owd's account write there, then try again"),
        _ => None,
    }
}
