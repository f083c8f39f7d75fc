//! The tools that agents have, made once for all sessions that have the same.

use std::sync::{Arc, Mutex, PoisonError};

use ow_model::{Risk, TaskSpec, ToolName};
use ow_provider::{ToolDeclaration, Tools};
use ow_tool::Declaration;
use ow_turn::{ToolDecl, ToolKind};

use crate::engine::Engine;

/// Of so many different choices of tools the kits are kept.
const KEPT: usize = 32;

/// What an agent may use: as its turn knows it, and as a model is shown it.
#[derive(Clone)]
pub(crate) struct Kit {
    pub(crate) declared: Arc<[ToolDecl]>,
    pub(crate) shown: Tools,
}

/// The kits under one configuration, the one made last at the end.
#[derive(Default)]
pub(crate) struct Kits(Mutex<Vec<(Choice, Kit)>>);

/// By what kits differ.
#[derive(Clone, Eq, PartialEq)]
struct Choice {
    /// None: all.
    only: Option<Vec<ToolName>>,
    is_nested: bool,
}

impl Kit {
    pub(crate) fn of(engine: &Engine, spec: &TaskSpec, is_nested: bool) -> Self {
        let choice = Choice { only: spec.agent.as_ref().and_then(|agent| agent.tools.clone()), is_nested };
        let standing = engine.standing();
        let mut kits = standing.kits.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kit)) = kits.iter().find(|(known, _)| *known == choice) {
            return kit.clone();
        }
        let kit = Self::make(engine.toolbox.declarations(&standing.settings.tool_risk), &choice);
        if kits.len() == KEPT {
            kits.remove(0);
        }
        kits.push((choice, kit.clone()));
        kit
    }

    fn make(all: Vec<Declaration>, choice: &Choice) -> Self {
        let may = |name: &ToolName| choice.only.as_ref().is_none_or(|tools| tools.contains(name));
        let mut declared = vec![];
        let mut shown = vec![];
        for Declaration { spec: tool, .. } in all {
            let kind = kind(tool.name.as_str());
            // To end a job reads nothing, though nobody has to be asked about it.
            let reads = tool.risk == Risk::Read && kind == ToolKind::Plain && tool.name.as_str() != "job_kill";
            if !may(&tool.name) || (choice.is_nested && !reads) {
                continue;
            }
            declared.push(ToolDecl {
                name: tool.name.clone(),
                schema: tool.schema.clone(),
                risk: tool.risk,
                gui: tool.gui,
                kind,
            });
            shown.push(ToolDeclaration {
                name: tool.name.to_string(),
                description: tool.summary.to_owned(),
                parameters: tool.schema,
            });
        }
        Self { declared: declared.into(), shown: Tools::new(shown) }
    }
}

/// Which tools the turn itself performs.
fn kind(name: &str) -> ToolKind {
    match name {
        "ask_user" => ToolKind::AskUser,
        "propose_plan" => ToolKind::ProposePlan,
        "request_directory" => ToolKind::RequestDirectory,
        "todo_write" => ToolKind::Todo,
        "sleep_until" => ToolKind::SleepUntil,
        "wake_on" => ToolKind::WakeOn,
        "delegate" => ToolKind::SubAgent,
        _ => ToolKind::Plain,
    }
}
