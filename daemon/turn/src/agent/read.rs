//! Calls as a model wrote them: what of them can be run, and what is said of the rest.

use std::collections::BTreeSet;

use ow_model::{Call, CallErrorKind, CallHash, Finish, Mode, Position, Reply, ReplyCall, Risk};
use serde_json::{Map, Value, json};

use super::batch::{Batch, CallState, OpenCall, Ruling};
use super::own;
use super::schema;
use super::setup::ToolKind;
use super::turn::{AgentTurn, Checkpoint};
use crate::Permission;

const MOST_CALLS: usize = Reply::MOST_CALLS;
/// Characters that are kept of arguments that cannot be read.
const JUNK: usize = 200;

/// What earlier calls of the same reply mean for the next one.
#[derive(Default)]
struct Earlier {
    /// Reads since the last call that may change something.
    reads: Vec<(CallHash, Position)>,
    others: Vec<(CallHash, Position)>,
}

impl AgentTurn {
    /// Opens the calls of a reply, at the next positions.
    pub(super) fn open_batch(&mut self, reply: &Reply, at: jiff::Timestamp) {
        let count = reply.calls.len();
        let mut earlier = Earlier::default();
        let mut calls = Vec::with_capacity(count.min(MOST_CALLS));
        // A reply with too many calls is not run at all, and the history does not carry them all.
        for call in reply.calls.iter().take(MOST_CALLS) {
            let position = Position(self.next_position);
            self.next_position += 1;
            let mut open = self.read_call(position, call, reply.finish == Finish::Length, &mut earlier, at);
            if count > MOST_CALLS {
                let text = format!(
                    "the reply holds {count} calls; at most {MOST_CALLS} are taken, and none of them was run. Send fewer, \
                     the most important first"
                );
                open.ruling = Some(Ruling::Error { kind: CallErrorKind::BadArguments, text });
            }
            calls.push(open);
        }
        self.tally.tools_used = true;
        self.tally.gui_used |= calls.iter().any(|open| self.tool(&open.name).is_some_and(|tool| tool.gui));
        if self.tally.checkpoint == Checkpoint::Asked {
            self.tally.checkpoint = Checkpoint::Passed;
        }
        self.batch = Some(Batch {
            text: reply.text.clone(),
            reasoning: reply.reasoning.clone(),
            usage: reply.usage,
            model: reply.model.clone(),
            private: reply.private.clone(),
            at,
            calls,
        });
    }

    fn read_call(
        &self,
        position: Position,
        ReplyCall { id: _, name, arguments }: &ReplyCall,
        is_cut: bool,
        earlier: &mut Earlier,
        at: jiff::Timestamp,
    ) -> OpenCall {
        let mut open = OpenCall {
            position,
            name: name.clone(),
            wrote: json!({}),
            call: None,
            kind: ToolKind::Plain,
            risk: Risk::External,
            ruling: None,
            edited: false,
            named: false,
            state: CallState::Wanted(Permission::Policy),
        };
        let wrong = |text: String| Some(Ruling::Error { kind: CallErrorKind::BadArguments, text });
        let args = match read_arguments(arguments, is_cut) {
            Ok(args) => args,
            Err(text) => {
                open.wrote = json!({ "unreadable": arguments.chars().take(JUNK).collect::<String>() });
                open.ruling = wrong(text);
                return open;
            }
        };
        open.wrote = args.clone();
        let Some(tool) = self.tool(name) else {
            let known: BTreeSet<&str> = self.setup.tools.iter().map(|tool| tool.name.as_str()).collect();
            let known: Vec<&str> = known.into_iter().collect();
            let name: String = name.chars().take(64).collect();
            open.ruling = wrong(format!("there is no tool `{name}`; the tools are: {}", known.join(", ")));
            return open;
        };
        (open.kind, open.risk) = (tool.kind, tool.risk);
        let call = Call { position, tool: tool.name.clone(), args };
        if let Some(misfit) = schema::misfit(&call.args, &tool.schema) {
            open.ruling = wrong(format!("{misfit}; the call of `{name}` was not run"));
            return open;
        }
        if let Err(text) = own::check(tool.kind, &call.args, at) {
            open.ruling = wrong(text);
            return open;
        }
        open.ruling = self.ruling(&call, &open, earlier);
        let hash = call.hash();
        if tool.risk.is_repeatable() && tool.kind == ToolKind::Plain {
            earlier.reads.push((hash, position));
        } else if tool.kind != ToolKind::Todo {
            earlier.others.push((hash, position));
            // What was read before it may read differently after it.
            earlier.reads.clear();
        }
        open.call = Some(call);
        open
    }

    fn ruling(&self, call: &Call, open: &OpenCall, earlier: &Earlier) -> Option<Ruling> {
        let hash = call.hash();
        if let Some((_, first)) = earlier.reads.iter().chain(&earlier.others).find(|(known, _)| *known == hash) {
            let text = format!("a duplicate of call_{} in the same reply, which alone was taken", first.0);
            return Some(Ruling::Error { kind: CallErrorKind::BadArguments, text });
        }
        if self.grants.denied.contains(&hash) {
            let text =
                "this very call was denied before in this turn and is not asked again. It DID NOT RUN. Go on without \
                        it, or say why it is needed"
                    .to_owned();
            return Some(Ruling::Error { kind: CallErrorKind::Denied, text });
        }
        match open.kind {
            ToolKind::Todo => Some(Ruling::Noted { text: own::todo_text(&call.args) }),
            ToolKind::ProposePlan if self.grants.mode != Mode::Plan => Some(Ruling::Error {
                kind: CallErrorKind::Refused,
                text: "the session is not in mode plan: there is nothing to approve; go on with the work".into(),
            }),
            _ => None,
        }
    }
}

/// Reads a call's arguments. Nothing is repaired: half a call is not a call.
fn read_arguments(text: &str, is_cut: bool) -> Result<Value, String> {
    const CUT: &str = "the call was cut off by the output limit and was NOT RUN; send a smaller call, or do it in several \
                       parts";
    if text.trim().is_empty() {
        return if is_cut { Err(CUT.into()) } else { Ok(Value::Object(Map::new())) };
    }
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("the arguments are no JSON object; the call was NOT RUN. Send them as an object".into()),
        Err(_) if is_cut => Err(CUT.into()),
        Err(error) => Err(format!(
            "the arguments are not valid JSON ({error}); the call was NOT RUN. Send it again, correctly quoted"
        )),
    }
}
