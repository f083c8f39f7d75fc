use clap::Subcommand;
use ow_config::Host;
use ow_model::{Risk, ToolName};
use ow_policy::{OWN_TOOLS, OwnTool, Performed, RiskOverride, overridden_risk};
use serde::Serialize;

use super::config;
use crate::context::Context;
use crate::failure::Failure;
use crate::place::environment;
use crate::table::{Cell, Table};

/// What tasks and agents can do
#[derive(Debug, Subcommand)]
pub(crate) enum Tool {
    List(List),
}

/// List the tools with their risk; needs no daemon
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Risk decides who is asked: read runs, write-local runs in mode edit, exec in mode auto, external asks
for hosts and effects that nobody named. `[tool-risk]` in the configuration raises or lowers it."
)]
pub(crate) struct List {}

/// One tool, as `--json` gives it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Listed {
    name: &'static str,
    /// The class by which it is asked about.
    risk: Risk,
    /// The class that it declares; none: the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    declared_risk: Option<Risk>,
    /// Its calls may run beside others.
    parallel: bool,
    source: &'static str,
    /// `steps, agents`, or `agents` alone; or nobody, and why.
    used_by: &'static str,
    summary: &'static str,
}

impl Tool {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List(command) => command.run(context),
        }
    }
}

fn listed(context: &Context) -> Result<Vec<Listed>, Failure> {
    let (_, settings) = config::load(None, context, &Host::new(&environment))?;
    let overrides: Vec<RiskOverride> = settings
        .tool_risk
        .iter()
        .map(|(pattern, risk)| RiskOverride { pattern: pattern.clone(), risk: *risk })
        .collect();
    let (has_slack, has_mail) = (settings.slack.is_some(), settings.mail.out.is_some());
    let tools = OWN_TOOLS.iter().map(|tool| {
        let listed = Listed::of(tool, &overrides);
        match tool.name {
            name if name.starts_with("slack_") && !has_slack => Listed { used_by: WITHOUT_SLACK, ..listed },
            "send_mail" if !has_mail => Listed { used_by: WITHOUT_MAIL, ..listed },
            _ => listed,
        }
    });
    Ok(tools.collect())
}

/// By whom a tool is used that needs what is not set up.
const WITHOUT_SLACK: &str = "nobody: no [slack]";
const WITHOUT_MAIL: &str = "nobody: no [mail.out]";

/// Name, risk and use of each tool that an agent has here.
pub(crate) fn in_short(context: &Context) -> Result<Vec<[String; 3]>, Failure> {
    let tools = listed(context)?.into_iter().filter(|tool| ![WITHOUT_SLACK, WITHOUT_MAIL].contains(&tool.used_by));
    Ok(tools.map(|tool| [tool.name.into(), word(tool.risk).into(), tool.about().into()]).collect())
}

impl List {
    #[expect(clippy::unused_self, reason = "every command runs by its own method")]
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let listed = listed(context)?;
        context.out.give(&listed, |listed| {
            let mut table = Table::new(context.out, &["TOOL", "RISK", "PARALLEL", "SOURCE", "USED BY", "WHAT IT DOES"]);
            for tool in listed {
                let risk = match tool.declared_risk {
                    Some(declared) => format!("{} (declares {})", word(tool.risk), word(declared)),
                    None => word(tool.risk).to_owned(),
                };
                table.row(vec![
                    Cell::text(tool.name),
                    Cell::text(&risk),
                    Cell::text(if tool.parallel { "yes" } else { "no" }),
                    Cell::text(tool.source),
                    Cell::text(tool.used_by),
                    Cell::text(tool.about()),
                ]);
            }
            table.show()
        });
        Ok(())
    }
}

impl Listed {
    /// What it does, in a sentence.
    fn about(&self) -> &'static str {
        self.summary.split_once(". ").map_or(self.summary, |(first, _)| first).trim_end_matches('.')
    }

    fn of(tool: &OwnTool, overrides: &[RiskOverride]) -> Self {
        let name: ToolName = tool.name.parse().expect("a tool's name");
        let risk = overridden_risk(&name, overrides).unwrap_or(tool.risk);
        Self {
            name: tool.name,
            risk,
            declared_risk: (risk != tool.risk).then_some(tool.risk),
            parallel: risk.max(tool.risk) == Risk::Read,
            source: "builtin",
            used_by: match tool.performed {
                Performed::AsCall => "steps, agents",
                Performed::BySession => "agents",
            },
            summary: tool.summary,
        }
    }
}

const fn word(risk: Risk) -> &'static str {
    match risk {
        Risk::Read => "read",
        Risk::WriteLocal => "write-local",
        Risk::Exec => "exec",
        Risk::External => "external",
    }
}
