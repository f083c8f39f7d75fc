//! What must be true of agents' sessions, read without owd: from the store, from the counted effects, and from every
//! request that the model has received.

use std::collections::BTreeMap;

use ow_test_support::model_server::check_openai;
use serde_json::Value;

use super::script::{Part, content, labels, last_text};
use super::world::Agents;
use crate::checker::{Findings, calls_of, item_answers, journal};
use crate::records::{Records, RunRow};

pub(crate) fn check(agents: &Agents, records: &Records) -> Findings {
    let mut found = Findings::default();
    if records.integrity != "ok" {
        found.contradictions.push(format!("the file: {}", records.integrity));
    }
    acknowledged(agents, records, &mut found);
    item_answers(&agents.said, records, &mut found);
    let last = requests(agents, &mut found);
    for (id, run) in &records.runs {
        journal(id, run, records, &mut found);
        if is_script(&run.task) && run.outcome["outcome"] != "succeeded" {
            found.contradictions.push(format!("run {id} of {} ended as {}", run.task, run.outcome));
        }
    }
    effects(agents, records, &mut found);
    let of_tasks = records.runs.iter().filter(|(_, run)| is_script(&run.task));
    let of_tasks = of_tasks.map(|(id, run)| Part { script: run.task.clone(), name: id.clone() });
    let messages = agents.messages.values().flatten();
    let of_chats = messages.map(|name| Part { script: "talks".into(), name: name.clone() });
    for part in of_tasks.chain(of_chats) {
        match last.get(part.session()) {
            Some(history) => told(agents, &part, history, records, &mut found),
            None => found.losses.push(format!("{part:?}: its model was never asked")),
        }
    }
    found
}

fn is_script(task: &str) -> bool {
    matches!(task, "works" | "asks" | "sleeps")
}

/// P1, P2.
fn acknowledged(agents: &Agents, records: &Records, found: &mut Findings) {
    for run in agents.said.runs.iter().chain(agents.messages.keys()) {
        if !records.runs.contains_key(run) {
            found.losses.push(format!("{run} was acknowledged and is gone"));
        }
    }
    for (item, approved) in &agents.said.answers {
        let is = records.items.get(item).map(|item| item.resolution["answer"]["answer"].clone());
        let expected = if *approved { "once" } else { "deny" };
        if is.as_ref().is_none_or(|is| is != expected) {
            found.losses.push(format!("item {item} was answered `{expected}` and is {is:?}"));
        }
    }
    for (chat, names) in &agents.messages {
        let journal = records.runs.get(chat).map(|run| run.journal.as_slice()).unwrap_or_default();
        for name in names {
            let heard = journal.iter().filter(|(_, fact)| {
                fact["fact"] == "input" && fact["input"]["text"].as_str().is_some_and(|text| text.contains(name))
            });
            match heard.count() {
                1 => {}
                0 => found.losses.push(format!("chat {chat} has not heard {name}")),
                count => found.duplicates.push(format!("chat {chat} has heard {name} {count} times")),
            }
        }
    }
}

/// P6: each request is well-formed, and no history ever loses or changes what it held. The last one of each session.
fn requests(agents: &Agents, found: &mut Findings) -> BTreeMap<String, Vec<Value>> {
    let mut sessions: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (number, request) in agents.model.requests().iter().enumerate() {
        let body = request.json();
        if let Err(fault) = check_openai(&body, false) {
            found.contradictions.push(format!("request {number}: {fault}"));
        }
        let Some(part) = Part::of(&body) else {
            found.contradictions.push(format!("request {number} holds no goal"));
            continue;
        };
        let history = history(&body);
        let known = sessions.entry(part.session().to_owned()).or_default();
        for (at, (before, now)) in known.iter().zip(&history).enumerate() {
            // What is said before a reply comes joins what was said before it.
            let joined = at + 1 == known.len() && now["role"] == "user" && content(now).starts_with(&content(before));
            if before != now && !joined {
                found.contradictions.push(format!("request {number}: message {at} was {before} and is {now}"));
            }
        }
        if history.len() < known.len() {
            found.losses.push(format!("request {number} has {} messages of {}", history.len(), known.len()));
        }
        *known = history;
    }
    sessions
}

/// The messages without what is said of the moment at the end.
fn history(body: &Value) -> Vec<Value> {
    let mut messages = body["messages"].as_array().cloned().unwrap_or_default();
    for message in &mut messages {
        let text = content(message);
        if let Some((text, _)) = text.split_once("<now>") {
            message["content"] = text.trim_end().into();
        } else if !text.is_empty() {
            message["content"] = text.trim_end().into();
        }
    }
    messages.retain(|message| message["role"] != "user" || !content(message).is_empty());
    messages
}

/// P3, by what the outside world has counted.
fn effects(agents: &Agents, records: &Records, found: &mut Findings) {
    for (effect, count) in &records.effects {
        let (name, label) = effect;
        let again = agents.said.again.get(effect).copied().unwrap_or(0);
        if *count > 1 + again {
            found.duplicates.push(format!("{name} {label}: {count} times, {again} of them allowed again"));
        }
        let Some(run) = records.runs.get(name.split('-').next().expect("a part")) else {
            found.losses.push(format!("{name} had the effect {label} and is gone"));
            continue;
        };
        let intended = intended(run, name, label);
        if *count > intended {
            found.contradictions.push(format!("{name} {label}: {count} times, journaled {intended} times before"));
        }
        if matches!(label.as_str(), "asked" | "asked-too" | "chatted") && !agents.said.allowed.contains(effect) {
            found.duplicates.push(format!("{name} {label}: nobody has allowed it"));
        }
    }
}

/// How often the journal says that a call of this effect was about to begin.
fn intended(run: &RunRow, name: &str, label: &str) -> u64 {
    let calls = calls_of(run);
    let is_of = |position: i64| {
        let call = usize::try_from(position).ok().and_then(|at| calls.get(at));
        let arguments = call.map(|call| &call["arguments"]);
        is_about(
            &arguments.map_or_else(String::new, |it| it.as_str().map_or_else(|| it.to_string(), str::to_owned)),
            name,
            label,
        )
    };
    let begun = run.journal.iter().filter(|(_, fact)| {
        fact["fact"] == "intended" && fact["repeatable"] == false && fact["position"].as_i64().is_some_and(is_of)
    });
    begun.count() as u64
}

/// Whether a call's arguments name the effect.
fn is_about(arguments: &str, name: &str, label: &str) -> bool {
    arguments.contains(name)
        && (arguments.contains(&format!("\"{label}\"")) || arguments.contains(&format!("/{label}\"")))
}

/// P7: what the model was told of each effect is what the outside world says of it.
fn told(agents: &Agents, part: &Part, history: &[Value], records: &Records, found: &mut Findings) {
    let mut calls: BTreeMap<String, String> = BTreeMap::new();
    for call in history.iter().filter_map(|message| message["tool_calls"].as_array()).flatten() {
        let (id, arguments) = (&call["id"], &call["function"]["arguments"]);
        calls.insert(id.as_str().unwrap_or_default().into(), arguments.as_str().unwrap_or_default().into());
    }
    for label in labels(&part.script) {
        let effect = (part.name.clone(), (*label).to_owned());
        let count = records.effects.get(&effect).copied().unwrap_or(0);
        let is_of = |arguments: &String| is_about(arguments, &part.name, label);
        let result = history.iter().find(|message| {
            message["role"] == "tool"
                && message["tool_call_id"].as_str().and_then(|id| calls.get(id)).is_some_and(is_of)
        });
        let Some(text) = result.map(content) else {
            // Of two messages that are heard as one, the script follows the first.
            let is_joined = |text: &str| text.contains(&part.name) && text.matches("script=").count() > 1;
            if history.iter().any(|message| message["role"] == "user" && is_joined(&content(message))) {
                continue;
            }
            found.losses.push(format!("{part:?}: the model was told nothing of {label}"));
            continue;
        };
        let is_denied = agents.denied.contains(&effect);
        if text.contains("UNKNOWN") {
            if !is_denied {
                found.contradictions.push(format!("{part:?} {label}: nobody left it unknown: {text}"));
            }
        } else if text.contains("DID NOT RUN") {
            if count > 0 || !is_denied {
                found.contradictions.push(format!("{part:?} {label}: {count} times, and told: {text}"));
            }
        } else if count == 0 {
            found.contradictions.push(format!("{part:?} {label}: it never happened, and told: {text}"));
        }
    }
    let said = records.runs.get(part.session());
    let said =
        said.map(|run| run.journal.as_slice()).unwrap_or_default().iter().any(|(_, fact)| {
            fact["fact"] == "replied" && fact["reply"]["text"].as_str() == Some(last_text(part).as_str())
        });
    // A message in mid-turn steers a chat: the script of the first then has no end.
    if !said && part.script != "talks" {
        found.losses.push(format!("{part:?}: its last text is not on record"));
    }
}
