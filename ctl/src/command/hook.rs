use std::ffi::OsStr;

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use ow_config::{Config, HOOKS_FOLDER, HookConfig, Host};
use ow_model::{HookEvent, HookReport};
use ow_policy::OWN_TOOLS;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};
use crate::place::environment;
use crate::program;
use crate::table::{Cell, Table};

/// Your own programs that are asked before a call and told after it
#[derive(Debug, Subcommand)]
pub(crate) enum Hook {
    List(List),
    Test(Test),
}

/// List the hooks of the configuration, and whether their programs can run; needs no daemon
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

/// Ask the hooks as for a call, which is not run; needs no daemon
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl hook test write_file '{\"path\": \"/srv/.env.production\", \"content\": \"\"}'
  owctl hook test shell '{\"argv\": [\"df\"]}' --event post-tool-use --response '{\"status\": 0}'
  owctl hook test --event stop

The hooks themselves do run, with what they do: a hook that writes a log writes it. The exit code is 1 if the call
would be refused.")]
pub(crate) struct Test {
    /// The tool of the call
    #[arg(value_name = "TOOL")]
    tool: Option<String>,
    /// The call's arguments, as JSON
    #[arg(value_name = "ARGUMENTS", default_value = "{}")]
    input: String,
    /// What the hooks are asked at
    #[arg(long, value_name = "EVENT", default_value = "pre-tool-use", value_parser = events())]
    event: String,
    /// The call's output, as JSON, for post-tool-use
    #[arg(long, value_name = "JSON", default_value = "{}")]
    response: String,
}

fn events() -> PossibleValuesParser {
    HookEvent::ALL.map(HookEvent::word).into()
}

impl Hook {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List(command) => command.run(context),
            Self::Test(command) => command.run(context),
        }
    }
}

#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    hook: HookConfig,
    /// What keeps its program from running; none: nothing does.
    fault: Option<String>,
}

impl List {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let listed = listed(context)?;
        context.out.give(&json!({ "hooks": listed }), |_| {
            if listed.is_empty() {
                return "No hooks. The example configuration shows how to write one.\n".into();
            }
            let mut table = Table::new(context.out, &["COMMAND", "EVENT", "TOOLS", "TIMEOUT", "STATE"]);
            for Listed { hook, fault } in &listed {
                let tools = hook.matcher.as_ref().map(ow_config::Matcher::as_str);
                table.row(vec![
                    Cell::text(&hook.command.display().to_string()),
                    Cell::text(hook.event.word()),
                    Cell::text(tools.unwrap_or(if hook.event.is_about_a_call() { "all" } else { "" })),
                    Cell::text(&hook.timeout.to_string()),
                    fault.as_ref().map_or_else(|| Cell::state("ok"), |fault| Cell::text(fault)),
                ]);
            }
            table.show()
        });
        Ok(())
    }
}

fn listed(context: &Context) -> Result<Vec<Listed>, Failure> {
    let file = context.paths()?.config_file;
    let folder = file.with_file_name(HOOKS_FOLDER);
    let config = Config::load_if_present(&file, &Host::new(&environment)).map_err(|error| {
        Failure::new(Exit::Usage, "invalid", "the configuration is faulty")
            .details(error.faults.iter().map(ToString::to_string).collect())
            .hint("correct what is named, then `owctl config check`")
    })?;
    let looked_at = config.hook.into_iter().map(|hook| {
        let fault = hook.program(&folder).err().map(|fault| fault.to_string());
        Listed { hook, fault }
    });
    Ok(looked_at.collect())
}

/// What `owd hook-test` prints.
#[derive(Deserialize, Serialize)]
struct Said {
    verdict: String,
    why: Option<String>,
    hooks: Vec<HookReport>,
}

impl Test {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let is_about_a_call = matches!(self.event.as_str(), "pre-tool-use" | "post-tool-use");
        if is_about_a_call && self.tool.is_none() {
            return Err(Failure::usage("no tool is named").hint("say of which call: `owctl hook test shell`"));
        }
        if let Some(tool) = &self.tool
            && !OWN_TOOLS.iter().any(|own| own.name == tool)
        {
            return Err(no_such_tool(tool));
        }
        for text in [&self.input, &self.response] {
            let is_object = serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
            if !is_object {
                return Err(Failure::usage(format!("`{text}` is not a JSON object"))
                    .hint("quote it for the shell, as in '{\"argv\": [\"df\"]}'"));
            }
        }
        let tool = self.tool.as_deref().unwrap_or_default();
        let words = ["hook-test", "--event", &self.event, "--tool", tool, "--input", &self.input];
        let words = words.into_iter().chain(["--response", &self.response]).map(OsStr::new);
        let done = program::run_owd(context, words)?;
        if !done.status.success() {
            let message = String::from_utf8_lossy(&done.stderr).trim().trim_start_matches("owd: ").to_owned();
            return Err(Failure::failed("hook_test", message).hint("see `owctl config check`"));
        }
        let said: Said = serde_json::from_slice(&done.stdout).map_err(|_| {
            Failure::failed("hook_test", "owd answered something else").hint("are both of one version?")
        })?;
        context.out.give(&said, |said| in_words(context, said));
        if said.verdict == "deny" { Err(Failure::told(Exit::Failed)) } else { Ok(()) }
    }
}

fn no_such_tool(tool: &str) -> Failure {
    let failure = Failure::new(Exit::NotFound, "not_found", format!("there is no tool `{tool}`"));
    match ow_config::nearest(tool, OWN_TOOLS.iter().map(|own| own.name)) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint("`owctl tool list` shows all tools"),
    }
}

fn in_words(context: &Context, said: &Said) -> String {
    if said.hooks.is_empty() {
        return "No hook matches.\n".into();
    }
    let mut table = Table::new(context.out, &["COMMAND", "SAID", "EXIT", "TOOK", "WHY"]);
    for HookReport { event: _, command, said, exit, took_ms } in &said.hooks {
        table.row(vec![
            Cell::text(&command.display().to_string()),
            Cell::state(said.word()),
            Cell::maybe(exit.map(|exit| exit.to_string()).as_deref()),
            Cell::text(&format!("{took_ms} ms")),
            Cell::maybe(said.why()),
        ]);
    }
    let mut text = table.show();
    let verdict = match said.verdict.as_str() {
        "deny" => "The call would be refused.",
        "ask" => "A person would be asked.",
        _ => "The call would go on.",
    };
    put!(text, "{}\n", escape::line(verdict));
    text
}
