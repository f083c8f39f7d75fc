use ow_model::{AnswerBy, AuditEffect, AuditEntry, Audited, Decided, HookReport};
use ow_protocol::{AuditCheckView, AuditDecisionView, AuditEntryView, AuditHookView};
use ow_store::{AuditCheck, AuditFault};
use serde_json::Value;

use super::{instant, path};

pub(crate) fn audit_entry_view(entry: &AuditEntry) -> AuditEntryView {
    let AuditEntry { seq, at, audited, hash } = entry;
    let Audited { task, run, position, tool, call, decided, effect, took_ms, hooks, arguments } = audited;
    let error = match effect {
        Some(AuditEffect::Failed { error }) => word(error),
        _ => None,
    };
    AuditEntryView {
        seq: *seq,
        at: instant(*at),
        task: task.as_ref().map(ToString::to_string),
        run: run.map(|run| run.to_string()),
        position: position.map(|position| position.0),
        tool: tool.clone(),
        call: call.map(|call| call.to_string()),
        decided: decided.iter().map(decision).collect(),
        effect: effect.map(|effect| effect.word().to_owned()),
        error,
        took_ms: *took_ms,
        hooks: hooks.iter().map(hook).collect(),
        arguments: arguments.clone(),
        hash: hash.to_string(),
    }
}

fn decision(decided: &Decided) -> AuditDecisionView {
    let view = AuditDecisionView {
        what: decided.word().into(),
        rule: None,
        item: None,
        answer: None,
        by: None,
        surface: None,
    };
    match decided {
        Decided::Allow { rule, by_rule } => {
            let rule = by_rule.map_or_else(|| rule.clone(), |id| format!("{rule} ({id})"));
            AuditDecisionView { rule: Some(rule), ..view }
        }
        Decided::Refuse { rule } => AuditDecisionView { rule: Some(rule.clone()), ..view },
        Decided::Ask { item } | Decided::Expire { item } | Decided::Withdraw { item } | Decided::Void { item } => {
            AuditDecisionView { item: Some(item.to_string()), ..view }
        }
        Decided::Answer { item, answer, by: AnswerBy { person, surface } } => AuditDecisionView {
            item: Some(item.to_string()),
            answer: Some(answer.clone()),
            by: Some(person.0.clone()),
            surface: word(surface),
            ..view
        },
        Decided::Edit => view,
        Decided::AddRule { rule } => {
            AuditDecisionView { rule: Some(rule.id.to_string()), by: Some(rule.created_by.clone()), ..view }
        }
        Decided::RemoveRule { rule } => AuditDecisionView { rule: Some(rule.to_string()), ..view },
        Decided::Restore { epoch } => AuditDecisionView { rule: Some(format!("epoch {epoch}")), ..view },
    }
}

/// As serde writes a variant without data.
fn word<T: serde::Serialize>(value: &T) -> Option<String> {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => Some(word),
        _ => None,
    }
}

fn hook(report: &HookReport) -> AuditHookView {
    let HookReport { event, command, said, exit, took_ms } = report;
    AuditHookView {
        event: event.word().into(),
        command: path(command),
        said: said.word().into(),
        why: said.why().map(str::to_owned),
        exit: *exit,
        took_ms: *took_ms,
    }
}

pub(crate) fn audit_check_view(check: AuditCheck) -> AuditCheckView {
    let AuditCheck { entries, head, fault } = check;
    let intact = fault.is_none();
    let (broken_at, why) = fault.map_or((None, None), |AuditFault { seq, why }| (Some(seq), Some(why)));
    AuditCheckView { intact, entries, head, broken_at, why }
}
