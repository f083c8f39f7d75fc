use ow_engine::{AllowableStep, PlannedStep, PlannedVerdict};
use ow_model::RuleTarget;
use ow_policy::Verdict;
use ow_protocol::{AllowStep, PlanStep};

use super::path;

pub(crate) fn plan_step(planned: PlannedStep) -> PlanStep {
    let PlannedStep { step, tool, args, holes, verdict } = planned;
    let (verdict, rule, why) = match verdict {
        PlannedVerdict::Judged(verdict) => {
            let word = verdict.word();
            match verdict {
                Verdict::Allow { rule, by_rule: _ } => {
                    let why = format!("{rule} allows it");
                    (word, rule, why)
                }
                Verdict::Deny { rule, why } | Verdict::Ask { rule, why, category: _, rule_offer: _ } => {
                    (word, rule, why)
                }
            }
        }
        PlannedVerdict::Conditional { condition } => {
            ("skip", "if".into(), format!("runs only if `{condition}` is true by then"))
        }
        PlannedVerdict::Broken { why } => ("deny", "arguments".into(), why),
    };
    PlanStep { step, tool: tool.to_string(), arguments: args, holes, verdict: verdict.into(), rule, why }
}

pub(crate) fn allow_step(allowable: AllowableStep) -> AllowStep {
    let AllowableStep { step, tool, text, text_hash, holes, target, allowed } = allowable;
    let (program, parts, refused) = match target {
        Ok(RuleTarget::Step { step: _, text: _, program, parts, holes: _ }) => {
            (program.map(|(program, _)| path(&program)), parts.iter().map(|(program, _)| path(program)).collect(), None)
        }
        Ok(RuleTarget::Call { .. } | RuleTarget::Argv { .. } | RuleTarget::Path { .. } | RuleTarget::Origin { .. }) => {
            (None, vec![], None)
        }
        Err(why) => (None, vec![], Some(why)),
    };
    let (tool, text_hash) = (tool.to_string(), text_hash.to_string());
    AllowStep { step, tool, text, text_hash, program, parts, holes, allowed, refused }
}
