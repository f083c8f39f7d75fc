//! Tools that the turn itself performs: they ask a person, note, sleep or delegate.

use jiff::Timestamp;
use ow_model::{
    Answer, CallErrorKind, CallResult, EventType, Fact, ItemKind, Mode, Position, Question, Resolution, Span, Wake,
};
use serde_json::{Value, json};

use super::batch::OpenCall;
use super::effect::AgentEffect;
use super::setup::ToolKind;
use super::turn::{AgentTurn, Sleep};

/// Questions of one call.
const MOST_QUESTIONS: usize = 4;

/// The schema of the arguments that the turn understands of such a tool; none for those that others perform.
#[must_use]
pub fn arguments_of(kind: ToolKind) -> Option<Value> {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let (properties, required) = match kind {
        ToolKind::Plain => return None,
        ToolKind::AskUser => {
            let question = json!({
                "type": "object",
                "properties": {
                    "header": text("a short label"),
                    "question": text("the question"),
                    "options": { "type": "array", "items": { "type": "string" }, "maxItems": 12 },
                    "multi": { "type": "boolean", "description": "more than one option may be chosen" },
                },
                "required": ["question"],
            });
            let questions = json!({ "type": "array", "items": question, "minItems": 1, "maxItems": MOST_QUESTIONS });
            (json!({ "questions": questions }), vec!["questions"])
        }
        ToolKind::ProposePlan => (json!({ "plan": text("the plan, in Markdown") }), vec!["plan"]),
        ToolKind::RequestDirectory => (
            json!({
                "path": text("an absolute path, or one below the home folder, as ~/notes"),
                "writable": { "type": "boolean" },
                "reason": text("what it is needed for"),
            }),
            vec!["path", "reason"],
        ),
        ToolKind::Todo => {
            let item = json!({
                "type": "object",
                "properties": { "text": text("what is to be done"), "state": { "enum": ["open", "doing", "done"] } },
                "required": ["text", "state"],
            });
            (json!({ "items": { "type": "array", "items": item, "maxItems": 100 } }), vec!["items"])
        }
        ToolKind::SleepUntil => (
            json!({
                "when": text("an instant with its offset, as 2026-03-08T09:00:00+01:00"),
                "for": text("instead of `when`: how long, as 90s, 15m or 2h"),
                "note": text("what to do then; you will be told"),
            }),
            vec!["note"],
        ),
        ToolKind::WakeOn => (
            json!({
                "job": text("a background job that ends"),
                "event": text("the type of an event that comes, as run.ended"),
                "when": text("at the latest at this instant"),
                "for": text("at the latest after this time, as 15m"),
                "note": text("what to do then; you will be told"),
            }),
            vec!["note"],
        ),
        ToolKind::SubAgent => {
            (json!({ "goal": text("what it is to find out"), "context": text("what it must know") }), vec!["goal"])
        }
    };
    Some(json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false }))
}

/// What the schema cannot say.
pub(super) fn check(kind: ToolKind, args: &Value, at: Timestamp) -> Result<(), String> {
    match kind {
        ToolKind::AskUser => match questions(args).len() {
            0 => Err("there is no question in `questions`; write [{\"question\": \"…\"}]".into()),
            count if count > MOST_QUESTIONS => {
                Err(format!("`questions` holds {count} questions; ask at most {MOST_QUESTIONS} at a time"))
            }
            _ => Ok(()),
        },
        ToolKind::ProposePlan if word(args, "plan").trim().is_empty() => Err("`plan` is empty".into()),
        ToolKind::RequestDirectory if !["/", "~/"].iter().any(|begin| word(args, "path").starts_with(begin)) => {
            Err(format!("`path` must be absolute or begin with `~/`, found `{}`", word(args, "path")))
        }
        ToolKind::SleepUntil => match until(args, at)? {
            None => Err("`when` is missing: an instant as 2026-03-08T09:00:00Z, or `for`: a time as 15m".into()),
            Some(until) if until <= at => Err(format!("{until} is past; now is {at}")),
            Some(_) => Ok(()),
        },
        ToolKind::WakeOn => {
            until(args, at)?;
            let wakes = wakes(args);
            if wakes.is_empty() {
                return Err("`job` or `event` is missing: what to wake on".into());
            }
            let never = |wake: &&Wake| matches!(wake, Wake::Event(kind) if EventType::of(kind).is_none());
            match wakes.iter().find(never) {
                Some(unknown) => {
                    let known: Vec<&str> = EventType::ALL.iter().map(|kind| kind.word()).collect();
                    Err(format!("no {unknown} ever comes; the types of events are: {}", known.join(", ")))
                }
                None => Ok(()),
            }
        }
        ToolKind::SubAgent if word(args, "goal").trim().is_empty() => Err("`goal` is empty".into()),
        _ => Ok(()),
    }
}

/// Has the turn's own tool performed.
pub(super) fn perform(open: &OpenCall, at: Timestamp, longest: Span) -> AgentEffect {
    let position = open.position;
    let args = open.call.as_ref().map_or(&Value::Null, |call| &call.args);
    match (open.kind, open.call.clone()) {
        (ToolKind::AskUser, _) => {
            AgentEffect::Ask { position, kind: ItemKind::Question { questions: questions(args) } }
        }
        (ToolKind::ProposePlan, _) => {
            AgentEffect::Ask { position, kind: ItemKind::Plan { text: word(args, "plan").to_owned() } }
        }
        (ToolKind::RequestDirectory, _) => {
            let (path, writable) = directory(args);
            let reason = word(args, "reason").to_owned();
            AgentEffect::Ask { position, kind: ItemKind::Directory { path: path.into(), writable, reason } }
        }
        (ToolKind::SleepUntil | ToolKind::WakeOn, _) => {
            let Sleep { position, until, on, note } = sleep(open, at, longest);
            AgentEffect::Sleep { position, until, on, note }
        }
        (ToolKind::SubAgent, Some(call)) => {
            let (goal, context) = (word(args, "goal"), word(args, "context"));
            let goal = if context.is_empty() { goal.to_owned() } else { format!("{goal}\n\n{context}") };
            AgentEffect::Delegate { call, goal }
        }
        (ToolKind::Todo | ToolKind::Plain | ToolKind::SubAgent, _) => {
            let result = CallResult::failed(CallErrorKind::BadArguments, "the call cannot be run");
            AgentEffect::Record(vec![Fact::Done { position, result, took_ms: 0 }])
        }
    }
}

/// What the call sleeps for: where it names no end, at most for `longest`, since what it waits for may never happen.
pub(super) fn sleep(open: &OpenCall, at: Timestamp, longest: Span) -> Sleep {
    let args = open.call.as_ref().map_or(&Value::Null, |call| &call.args);
    let until = until(args, at).ok().flatten().or_else(|| at.checked_add(longest.signed()).ok());
    Sleep { position: open.position, until, on: wakes(args), note: word(args, "note").to_owned() }
}

impl AgentTurn {
    /// What an answer to a question of the turn's own comes to. The call's result comes last: it closes the matter.
    pub(super) fn heard(&self, open: &OpenCall, resolution: &Resolution) -> Vec<Fact> {
        let position = open.position;
        let who = &resolution.by.person.0;
        let done = |output: Value| done(position, CallResult::ok(output));
        match (open.kind, &resolution.answer) {
            (_, Answer::Deny { reason }) => {
                let reason = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
                vec![self::done(position, CallResult::failed(CallErrorKind::Denied, format!("{who} said no{reason}")))]
            }
            // Words are feedback on a plan or a folder, not consent.
            (ToolKind::ProposePlan | ToolKind::RequestDirectory, Answer::Text { text }) => {
                vec![done(json!({ "approved": false, "feedback": text, "by": who }))]
            }
            (ToolKind::ProposePlan, answer) if answer.allows() => {
                let mode = match self.grants.before_plan {
                    Mode::Plan => Mode::Ask,
                    mode => mode,
                };
                vec![
                    Fact::ModeSet { mode },
                    done(json!({ "text": format!("{who} approved the plan; carry it out now") })),
                ]
            }
            (ToolKind::ProposePlan | ToolKind::RequestDirectory, _) => {
                vec![done(json!({ "approved": false, "by": who }))]
            }
            (_, Answer::Text { text }) => vec![done(json!({ "answer": text, "by": who }))],
            (_, Answer::Acknowledge) => vec![done(json!({ "answer": "seen", "by": who }))],
            (_, _) => vec![done(json!({ "answer": "yes", "by": who }))],
        }
    }
}

/// A person opened the folder that was asked for, or another instead.
pub(super) fn granted(open: &OpenCall, resolution: &Resolution) -> Option<AgentEffect> {
    let Resolution { answer, by, .. } = resolution;
    let is_asked = open.kind == ToolKind::RequestDirectory && answer.allows();
    if !is_asked || matches!(answer, Answer::Text { .. }) {
        return None;
    }
    let (path, writable) = match answer {
        Answer::Edited { args: edited } if edited.get("path").is_some() => directory(edited),
        _ => directory(open.call.as_ref().map_or(&Value::Null, |call| &call.args)),
    };
    Some(AgentEffect::Grant { position: open.position, path, writable, by: by.person.0.clone() })
}

pub(super) fn done(position: Position, result: CallResult) -> Fact {
    Fact::Done { position, result, took_ms: 0 }
}

pub(super) fn todo_text(args: &Value) -> String {
    let items = args.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_done = |item: &&Value| item.get("state").and_then(Value::as_str) == Some("done");
    format!("noted: {} to do, {} of them done", items.len(), items.iter().filter(is_done).count())
}

fn directory(args: &Value) -> (String, bool) {
    (word(args, "path").to_owned(), args.get("writable").and_then(Value::as_bool).unwrap_or(false))
}

fn wakes(args: &Value) -> Vec<Wake> {
    let given = |key: &str| Some(word(args, key).trim().to_owned()).filter(|text| !text.is_empty());
    given("job").map(Wake::Job).into_iter().chain(given("event").map(Wake::Event)).collect()
}

fn until(args: &Value, at: Timestamp) -> Result<Option<Timestamp>, String> {
    let given = |keys: [&'static str; 2]| keys.into_iter().map(|key| word(args, key)).find(|text| !text.is_empty());
    let after = |span: Span| at.checked_add(span.signed()).map(Some).map_err(|_| format!("`{span}` is too long"));
    if let Some(text) = given(["when", "until"]) {
        if let Ok(until) = text.parse::<Timestamp>() {
            return Ok(Some(until));
        }
        return text.parse().map_err(|_| {
            format!("`{text}` is no instant and no time; write 2026-03-08T09:00:00Z with its offset, or 15m for in 15 minutes")
        }).and_then(after);
    }
    let Some(text) = given(["for", "after"]) else { return Ok(None) };
    let span: Span = text.parse().map_err(|error: ow_model::SpanError| error.to_string())?;
    after(span)
}

fn questions(args: &Value) -> Vec<Question> {
    let listed = args.get("questions").and_then(Value::as_array);
    let questions = match listed {
        Some(questions) => questions.as_slice(),
        None => std::slice::from_ref(args),
    };
    let question = |question: &Value| {
        let text = ["question", "text"].iter().find_map(|key| question.get(*key)?.as_str())?.trim();
        let options = question.get("options").and_then(Value::as_array).into_iter().flatten();
        (!text.is_empty()).then(|| Question {
            header: question.get("header").and_then(Value::as_str).map(str::to_owned),
            text: text.to_owned(),
            options: options.filter_map(Value::as_str).map(str::to_owned).collect(),
            multi: question.get("multi").and_then(Value::as_bool).unwrap_or(false),
        })
    };
    questions.iter().filter_map(question).collect()
}

fn word<'a>(args: &'a Value, key: &str) -> &'a str {
    args.get(key).and_then(Value::as_str).unwrap_or_default()
}
