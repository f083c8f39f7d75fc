use std::ffi::OsStr;
use std::iter;

use clap::Subcommand;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};
use crate::program;
use crate::table::{Cell, Table};

/// The models that agents can be given
#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    List(List),
    Check(Check),
}

/// List the known models and what they can do; needs no daemon
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl model list --provider anthropic
  owctl model list --ready

models.toml beside the configuration adds models and changes those that are known.")]
pub(crate) struct List {
    /// Only those of this provider
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Only those that could be asked now: their key is there, or none is needed
    #[arg(long)]
    ready: bool,
}

/// Check a model's name: who would be asked, what it can do, whether its key is there; asks nobody
#[derive(Debug, clap::Args)]
#[command(after_help = "The exit code is 1 if the model could not be asked: there is no key.")]
pub(crate) struct Check {
    /// `provider:model`; the configured ones if not given
    #[arg(value_name = "MODEL")]
    name: Option<String>,
}

/// What `owd model` prints.
#[derive(Deserialize, Serialize)]
pub(crate) struct Answer {
    pub(crate) default: Option<String>,
    pub(crate) failover: Vec<String>,
    pub(crate) models: Vec<Described>,
}

#[derive(Clone, Deserialize, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) asked: String,
    pub(crate) provider: String,
    pub(crate) model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    pub(crate) known: bool,
    pub(crate) window: u64,
    pub(crate) output: Option<u32>,
    pub(crate) tools: bool,
    pub(crate) vision: bool,
    pub(crate) pdf: bool,
    /// Calling tools was seen to work with it.
    pub(crate) verified: bool,
    pub(crate) price: Option<Price>,
    pub(crate) base_url: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) needs_key: bool,
    pub(crate) has_key: bool,
    pub(crate) warnings: Vec<String>,
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Price {
    pub(crate) input: f64,
    pub(crate) cached: f64,
    pub(crate) output: f64,
}

impl Described {
    pub(crate) const fn is_ready(&self) -> bool {
        self.has_key || !self.needs_key
    }

    /// What to do for a key; none: nothing needs to be done.
    pub(crate) fn remedy(&self) -> Option<String> {
        let key = self.key.as_deref().filter(|_| !self.is_ready())?;
        Some(format!("`owctl secret set {key}`"))
    }
}

impl Model {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List(command) => command.run(context),
            Self::Check(command) => command.run(context),
        }
    }
}

/// Asks owd, running or not, about these models, or about all that it knows.
pub(crate) fn ask(context: &Context, names: &[String]) -> Result<Answer, Failure> {
    program::ask_owd(context, iter::once(OsStr::new("model")).chain(names.iter().map(OsStr::new)))
}

/// The models that the configuration names; none if it names none.
pub(crate) fn configured(context: &Context) -> Result<Option<Vec<Described>>, Failure> {
    let Answer { default, failover, .. } = ask(context, &["none".into()])?;
    let names: Vec<String> = default.into_iter().chain(failover).collect();
    if names.is_empty() {
        return Ok(None);
    }
    Ok(Some(ask(context, &names)?.models))
}

impl List {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut answer = ask(context, &[])?;
        answer.models.retain(|model| self.provider.as_ref().is_none_or(|provider| *provider == model.provider));
        answer.models.retain(|model| !self.ready || model.is_ready());
        context.out.give(&answer, |answer| {
            if answer.models.is_empty() {
                return "No model is known that fits; any name may be used, at your own risk.".into();
            }
            let mut table = Table::new(context.out, &["MODEL", "WINDOW", "TOOLS", "TAKES", "$ IN / OUT", "KEY"]);
            for model in &answer.models {
                table.row([
                    Cell::text(&model.name),
                    Cell::text(&thousands(model.window)),
                    Cell::text(tools(model)),
                    Cell::text(takes(model)),
                    Cell::maybe(model.price.map(|price| format!("{} / {}", price.input, price.output)).as_deref()),
                    key(model),
                ]);
            }
            let mut text = table.show();
            match &answer.default {
                Some(name) => put!(text, "\nAgents that name none get {}.\n", escape::line(name)),
                None => text.push_str("\nAgents must name theirs: `[agent] model` in owd.toml is not set.\n"),
            }
            text
        });
        Ok(())
    }
}

fn thousands(tokens: u64) -> String {
    if tokens >= 1_000_000 { format!("{}M", tokens / 1_000_000) } else { format!("{}k", tokens / 1000) }
}

const fn tools(model: &Described) -> &'static str {
    match (model.tools, model.verified) {
        (false, _) => "no",
        (true, true) => "verified",
        (true, false) => "yes",
    }
}

const fn takes(model: &Described) -> &'static str {
    match (model.vision, model.pdf) {
        (true, true) => "images, PDF",
        (true, false) => "images",
        (false, true) => "PDF",
        (false, false) => "text",
    }
}

fn key(model: &Described) -> Cell {
    match (model.has_key, model.needs_key) {
        (true, _) => Cell::state("ok"),
        (false, true) => Cell::text("missing"),
        (false, false) => Cell::text("none needed"),
    }
}

impl Check {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let models = match &self.name {
            Some(name) => Some(ask(context, std::slice::from_ref(name))?.models),
            None => configured(context)?,
        };
        let models = models.ok_or_else(|| {
            Failure::usage("no model is configured")
                .hint("name one, or set `[agent] model` in owd.toml; `owctl model list` shows the known ones")
        })?;
        context.out.give(&serde_json::json!({ "models": models }), |_| {
            models.iter().map(in_words).collect::<Vec<_>>().join("\n")
        });
        if models.iter().all(Described::is_ready) { Ok(()) } else { Err(Failure::told(Exit::Failed)) }
    }
}

fn in_words(model: &Described) -> String {
    let mut text = String::new();
    put!(text, "{}\n", escape::line(&model.name));
    put!(text, "  asked at   {}\n", escape::line(model.base_url.as_deref().unwrap_or("-")));
    put!(text, "  window     {} tokens\n", model.window);
    put!(text, "  tools      {}\n", tools(model));
    put!(text, "  takes      {}\n", takes(model));
    if let Some(Price { input, cached, output }) = model.price {
        put!(text, "  price      ${input} in, ${cached} read before, ${output} out, for a million tokens\n");
    }
    match (&model.key, model.has_key) {
        (Some(key), true) => put!(text, "  key        {} is there\n", escape::line(key)),
        (Some(key), false) if model.needs_key => put!(text, "  key        {} is missing\n", escape::line(key)),
        _ => text.push_str("  key        none needed\n"),
    }
    for warning in &model.warnings {
        put!(text, "  warning: {}\n", escape::line(warning));
    }
    if let Some(remedy) = model.remedy() {
        put!(text, "  next: {}\n", escape::line(&remedy));
    }
    text
}
