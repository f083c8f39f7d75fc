use std::fs;

use ow_test_support::binary;

use crate::figure::Figures;
use crate::measurement::Scale;

/// Binaries as built, and packages locked.
pub(crate) fn measure(_scale: Scale, figures: &mut Figures) {
    for name in ["owd", "owctl"] {
        let bytes = fs::metadata(binary(name)).expect("it is built").len();
        #[expect(clippy::cast_precision_loss, reason = "a file's size")]
        let size = bytes as f64 / 1e6;
        figures.value(format!("size of {name}"), "MB", size, if name == "owd" { "<= 15 MB" } else { "" });
    }
    let lock = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).expect("a lock file");
    let packages = u32::try_from(lock.lines().filter(|line| line.starts_with("name = ")).count()).expect("a count");
    figures.value("packages locked", "", f64::from(packages), "< 400");
}
