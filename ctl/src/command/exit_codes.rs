use serde_json::json;

use crate::context::Context;
use crate::failure::EXIT_CODES;

/// List the exit codes
#[derive(Debug, clap::Args)]
#[command(after_help = in_words())]
pub(crate) struct ExitCodes {}

impl ExitCodes {
    pub(crate) fn run(&self, context: &Context) {
        let Self {} = self;
        let codes: Vec<_> =
            EXIT_CODES.iter().map(|(code, meaning)| json!({ "code": code, "meaning": meaning })).collect();
        context.out.give(&json!({ "exit_codes": codes }), |_| in_words());
    }
}

fn in_words() -> String {
    let mut text = String::from("Exit codes:\n");
    for (code, meaning) in EXIT_CODES {
        put!(text, "  {code}  {meaning}\n");
    }
    text
}
