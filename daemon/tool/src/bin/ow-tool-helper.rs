//! The helper on its own, for this crate's tests; `owd helper` is the same body.

use std::process::ExitCode;

fn main() -> ExitCode {
    ow_tool::helper_main()
}
