//! The dry run of hooks, for `owctl hook test`: needs no running owd and runs no call.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use ow_config::Config;
use ow_engine::{Occasion, Say};
use ow_model::{Call, CallResult, HookEvent, Position};
use ow_tool::Helpers;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::{Places, host};
use crate::settings::hooks;

/// What the hooks are to be asked about.
#[derive(Debug, clap::Args)]
pub(crate) struct HookTest {
    #[arg(long)]
    event: String,
    #[arg(long, default_value = "")]
    tool: String,
    #[arg(long, default_value = "{}")]
    input: String,
    #[arg(long, default_value = "{}")]
    response: String,
}

/// Asks the hooks as for a call of this kind and prints what they said, as JSON.
pub(crate) fn test(places: &Places, asked: &HookTest) -> anyhow::Result<ExitCode> {
    let paths = places.paths()?;
    let config = Config::load_if_present(&paths.config_file, &host())?;
    let event = HookEvent::ALL.into_iter().find(|event| event.word() == asked.event);
    let event = event.ok_or_else(|| anyhow!("`{}` is no event of hooks", asked.event))?;
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let object = |text: &str| -> anyhow::Result<Value> {
        let value: Value = serde_json::from_str(text).with_context(|| format!("`{text}` is not JSON"))?;
        if value.is_object() { Ok(value) } else { Err(anyhow!("`{text}` is not a JSON object")) }
    };
    let occasion = if event.is_about_a_call() {
        let tool = asked.tool.parse().with_context(|| format!("`{}` is no tool's name", asked.tool))?;
        let call = Call { position: Position(0), tool, args: object(&asked.input)? };
        match event {
            HookEvent::PreToolUse => Occasion::before(&call, SESSION, cwd),
            _ => Occasion::after(&call, &CallResult::ok(object(&asked.response)?), SESSION, cwd),
        }
    } else {
        Occasion::of_session(event, SESSION, cwd)
    };
    let helpers = Helpers::new(std::env::current_exe().context("cannot tell where owd is")?, vec!["helper".into()]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (reports, say) = runtime.block_on(async {
        let said = hooks(&config, &paths).heed(&occasion, &helpers, &CancellationToken::new()).await;
        helpers.close().await;
        said
    });
    let (verdict, why) = match say {
        Say::Pass | Say::Stopped => ("pass", None),
        Say::Deny { why } => ("deny", Some(why)),
        Say::Ask { why } => ("ask", Some(why)),
    };
    println!("{}", json!({ "verdict": verdict, "why": why, "hooks": reports }));
    Ok(ExitCode::SUCCESS)
}

/// A session's id as hooks are given one.
const SESSION: &str = "00000000000000000000000000";
