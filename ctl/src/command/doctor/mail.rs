use std::ffi::OsStr;

use serde::Deserialize;

use super::Check;
use super::machine::Machine;
use crate::context::Context;
use crate::program;

const NAME: &str = "mail";

/// What owd found on one step of a mail's way.
#[derive(Debug, Deserialize)]
struct Found {
    message: String,
    remedy: Option<String>,
}

/// Tries to read and to send mail as it is configured; sends nothing. None where no mail is.
pub(super) fn checks(machine: &Machine, context: &Context) -> Vec<Check> {
    // A faulty configuration is told of elsewhere.
    let is_configured =
        machine.config().is_ok_and(|config| config.mail.incoming.is_some() || config.mail.out.is_some());
    if !is_configured {
        return vec![];
    }
    let done = match program::run_owd(context, [OsStr::new("mail-check")]) {
        Ok(done) => done,
        Err(why) => return vec![Check::warn(NAME, why.message, "install owd beside owctl")],
    };
    let Ok(found) = serde_json::from_slice::<Vec<Found>>(&done.stdout) else {
        let said = String::from_utf8_lossy(&done.stderr).trim().trim_start_matches("owd: ").to_owned();
        return vec![Check::warn(NAME, said, "are owd and owctl of one version?")];
    };
    let check = |Found { message, remedy }| match remedy {
        None => Check::ok(NAME, message),
        Some(remedy) => Check::warn(NAME, message, remedy),
    };
    found.into_iter().map(check).collect()
}
