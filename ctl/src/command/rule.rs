use std::path::PathBuf;

use clap::Subcommand;
use ow_model::Span;
use ow_protocol::{NewRule, Page, PageQuery, RuleTargetView, RuleView};
use serde_json::json;

use crate::command::backup::absolute;
use crate::command::follow::step_number;
use crate::command::paging::{Paging, more};
use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::Out;
use crate::reference::Reference;
use crate::table::{Cell, Table};
use crate::time::Clock;

/// Standing rules: what may run without asking
#[derive(Debug, Subcommand)]
pub(crate) enum Rule {
    Add(Add),
    List(List),
    Rm(Remove),
}

/// Add a standing rule for one exact thing
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl rule add --task sync -- git fetch origin
  owctl rule add --task reports --path ~/reports/latest.md
  owctl rule add --task pinger --origin https://status.example.com --method POST

A command is allowed with exactly these arguments. To allow the steps of a task: owctl task allow NAME.")]
#[command(group = clap::ArgGroup::new("target").required(true).args(["argv", "path", "origin"]))]
pub(crate) struct Add {
    /// Only for this task
    #[arg(long, value_name = "NAME", required_unless_present = "everywhere")]
    task: Option<String>,
    /// For every task
    #[arg(long, conflicts_with = "task")]
    everywhere: bool,
    /// A command with its arguments, after `--`
    #[arg(last = true, value_name = "ARGV")]
    argv: Vec<String>,
    /// Only when the command runs in this folder
    #[arg(long, value_name = "DIR", requires = "argv")]
    cwd: Option<PathBuf>,
    /// Writing exactly this file, whatever the content
    #[arg(long, value_name = "FILE")]
    path: Option<PathBuf>,
    /// The tool that writes it
    #[arg(long, value_name = "TOOL", default_value = "write_file", requires = "path")]
    tool: String,
    /// Requests to this origin, as `https://host:port`
    #[arg(long, value_name = "ORIGIN")]
    origin: Option<String>,
    /// With this method
    #[arg(long, value_name = "METHOD", default_value = "GET", requires = "origin")]
    method: String,
    /// Also in a run that holds text from outside
    #[arg(long)]
    covers_outside: bool,
    /// Ends after this time, as in `30d`
    #[arg(long, value_name = "SPAN")]
    expires: Option<Span>,
    /// Ends after so many uses
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    uses: Option<u32>,
}

/// List standing rules
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only those for this task
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

/// Take a rule back
#[derive(Debug, clap::Args)]
pub(crate) struct Remove {
    /// The rule's id, or a unique beginning of it
    rule: Reference,
}

impl Rule {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Add(command) => command.run(context),
            Self::List(command) => command.run(context),
            Self::Rm(command) => command.run(context),
        }
    }
}

impl Add {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let rule = NewRule {
            task: self.task.clone(),
            target: self.target()?,
            covers_outside: self.covers_outside,
            expires_in_ms: self.expires.map(Span::millis),
            uses: self.uses,
        };
        let rule = context.with_daemon(async |owd| Ok(owd.add_rule(&rule).await?))?;
        context
            .out
            .give(&rule, |rule| format!("allowed: {} (rule {})", escape::line(&rule.text), escape::line(&rule.id)));
        Ok(())
    }

    fn target(&self) -> Result<RuleTargetView, Failure> {
        if let Some(path) = &self.path {
            return Ok(RuleTargetView::Path { tool: self.tool.clone(), path: absolute(path)? });
        }
        if let Some(origin) = &self.origin {
            return Ok(RuleTargetView::Origin { method: self.method.to_uppercase(), origin: origin.clone() });
        }
        let cwd = self.cwd.as_deref().map(absolute).transpose()?;
        Ok(RuleTargetView::Argv { argv: self.argv.clone(), cwd })
    }
}

impl List {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let query = PageQuery { task: self.task.clone(), ..self.paging.query() };
        let page = context.with_daemon(async |owd| Ok(owd.rules(&query).await?))?;
        context.out.give(&page, |page| in_words(page, context.clock(), context.out));
        Ok(())
    }
}

impl Remove {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        context.with_daemon(async |owd| Ok(owd.remove_rule(self.rule.as_str()).await?))?;
        context
            .out
            .give(&json!({ "removed": self.rule.as_str() }), |_| "The rule is taken back; it asks again.".into());
        Ok(())
    }
}

fn in_words(page: &Page<RuleView>, clock: &Clock, out: Out) -> String {
    if page.rows.is_empty() {
        return "No standing rules: what has side effects asks.".into();
    }
    let mut table = Table::new(out, &["RULE", "FOR", "ALLOWS", "USED", "ENDS", "BY"]);
    for rule in &page.rows {
        let ends = match (&rule.expires_at, rule.uses_left) {
            (Some(at), Some(uses)) => Some(format!("{} or after {uses} uses", clock.when(at))),
            (Some(at), None) => Some(clock.when(at)),
            (None, Some(uses)) => Some(format!("after {uses} uses")),
            (None, None) => None,
        };
        let outside = if rule.covers_outside { ", also with text from outside" } else { "" };
        table.row([
            Cell::text(&rule.id),
            Cell::text(rule.task.as_deref().unwrap_or("everything")),
            Cell::text(&format!("{}{outside}", rule.text)),
            Cell::text(&rule.used.to_string()),
            Cell::maybe(ends.as_deref()),
            Cell::text(&rule.created_by),
        ]);
    }
    table.show() + &more(page)
}

/// What a rule would permit, in a line.
pub(crate) fn target_in_words(target: &RuleTargetView) -> String {
    let text = match target {
        RuleTargetView::Step { step, program, parts, holes, .. } => {
            let programs = program.iter().chain(parts.iter().map(|part| &part.program));
            let programs = programs.map(String::as_str).collect::<Vec<_>>().join(", ");
            let program = if programs.is_empty() { programs } else { format!(" with {programs}") };
            let holes = if holes.is_empty() { String::new() } else { format!(", any value of {}", holes.join(", ")) };
            format!("step {} as it is written{program}{holes}", step_number(*step))
        }
        RuleTargetView::Call { .. } => "exactly this call".into(),
        RuleTargetView::Argv { argv, cwd } => {
            let argv: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
            let folder = cwd.as_ref().map_or(String::new(), |folder| format!(" in {folder}"));
            format!("{}{folder}", argv.join(" "))
        }
        RuleTargetView::Path { tool, path } => format!("{tool} to {path}"),
        RuleTargetView::Origin { method, origin } => format!("{method} {origin}"),
    };
    escape::line(&text).into_owned()
}

/// A word as a shell would have to be given it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
