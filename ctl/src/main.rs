//! owctl: the command line of owd.
//!
//! Each command is a file under `command`. One that speaks to the daemon opens one connection on a
//! current-thread runtime; the others make no runtime at all. A failure becomes an exit code, a message and what
//! to do next, in words or as JSON. Whatever comes from outside is escaped before it reaches a terminal.

use std::process::ExitCode;

#[macro_use]
mod put;

mod ask;
mod cli;
mod command;
mod context;
mod editor;
mod escape;
mod failure;
mod output;
mod place;
mod program;
mod reference;
mod table;
mod time;

fn main() -> ExitCode {
    match cli::parse() {
        Ok((command, context)) => match command.run(&context) {
            Ok(()) => ExitCode::SUCCESS,
            Err(mut failure) => {
                if !context.out.is_json() {
                    failure.message = context.clock().in_sentence(&failure.message);
                }
                context.out.fail(&failure)
            }
        },
        Err(end) => end.print(),
    }
}
