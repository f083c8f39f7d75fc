//! Live views: what happens, as it happens, over the event stream. Nothing polls.

use std::collections::BTreeMap;

use ow_client::{Client, ClientError, EventStream, SessionEvent, SessionStream, Watched};
use ow_protocol::{EventEnvelope, FactView, RunDetail};
use serde_json::Value;

use super::printed::Printed;
use super::run::view;
use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};
use crate::output::{Colour, Paint, write};
use crate::time::Clock;

/// People count steps from 1, owd from 0.
pub(crate) const fn step_number(step: u32) -> u32 {
    step + 1
}

/// The next event; losses of the connection are told to the person on the way.
pub(crate) async fn next(stream: &mut EventStream, context: &Context) -> Result<Box<EventEnvelope>, Failure> {
    loop {
        match stream.next().await? {
            Watched::Event(event) => return Ok(event),
            Watched::Lost => context.out.note("owd has gone; waiting for it to come back"),
            Watched::Resumed => context.out.note("owd is back"),
        }
    }
}

/// What happened meanwhile cannot be told any more: whoever watches something must look at it again.
pub(crate) fn is_gap(event: &EventEnvelope) -> bool {
    event.kind == "gap"
}

/// An event in a line.
pub(crate) fn event_in_words(event: &EventEnvelope, clock: &Clock, paint: Paint) -> String {
    let at = jiff::Timestamp::from_millisecond(event.timestamp).map_or_else(|_| "?".into(), |at| clock.local_of(at));
    let payload = match &event.payload {
        serde_json::Value::Null => String::new(),
        serde_json::Value::Object(map) if map.is_empty() => String::new(),
        payload => format!("  {}", escape::line(&payload.to_string())),
    };
    let kind = paint.in_colour(Colour::Cyan, &escape::line(&event.kind));
    format!("{}  {kind}  {}{payload}", paint.in_colour(Colour::Dim, &at), escape::line(&event.target))
}

/// Shows what a run does, and what its commands print, until it has ended.
///
/// # Errors
///
/// Also when the run ended otherwise than well.
pub(crate) async fn to_the_end(
    owd: &mut Client,
    mut stream: EventStream,
    id: &str,
    context: &Context,
) -> Result<(), Failure> {
    let out = context.out;
    let mut told = Told::default();
    let mut run = owd.run(id).await?;
    let known = run.facts.last().map(|fact| fact.seq);
    // Only an addition: an owd that cannot tell it tells all else.
    let mut printed = if out.is_json() { None } else { owd.watch_session(&run.run.id, known).await.ok() };
    loop {
        if !out.is_json() {
            write(&told.news(&run, context.clock(), out.paint));
        }
        if run.run.ended_at.is_some() {
            if !out.is_json() {
                write(&view::answer(&run, out.paint));
            }
            break;
        }
        let about = format!("run:{}", run.run.id);
        loop {
            let event = tokio::select! {
                event = next(&mut stream, context) => event?,
                lives = some(&mut printed) => {
                    match lives {
                        Ok(SessionEvent::Live { kind, payload }) if kind == "tool-output" => {
                            write(&told.printed(&payload, out.paint));
                        }
                        Ok(_) => {}
                        Err(_) => printed = None,
                    }
                    continue;
                }
            };
            if event.target == about || is_gap(&event) {
                break;
            }
        }
        run = owd.run(id).await?;
    }
    if out.is_json() {
        out.json(&run);
    }
    out.note(&format!("All of it: owctl run show {}", escape::line(&run.run.id)));
    if run.run.state == "succeeded" { Ok(()) } else { Err(Failure::told(Exit::Failed)) }
}

/// What a session does next; without one nothing ever comes.
async fn some(stream: &mut Option<SessionStream>) -> Result<SessionEvent, ClientError> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

/// How much of a run was shown.
#[derive(Default)]
struct Told {
    facts: Option<u32>,
    state: String,
    /// What calls printed, by their position, as far as it is shown.
    printed: BTreeMap<u64, Printed>,
}

/// A line that a command printed.
fn shown(line: &str, paint: Paint) -> String {
    format!("{}\n", paint.in_colour(Colour::Dim, &format!("  | {}", escape::line(line))))
}

impl Told {
    fn printed(&mut self, payload: &Value, paint: Paint) -> String {
        let position = payload.get("position").and_then(Value::as_u64).unwrap_or_default();
        let text = payload.get("text").and_then(Value::as_str).unwrap_or_default();
        self.printed.entry(position).or_default().take(text).iter().map(|line| shown(line, paint)).collect()
    }

    fn news(&mut self, run: &RunDetail, clock: &Clock, paint: Paint) -> String {
        let mut text: String =
            self.printed.values_mut().filter_map(Printed::end).map(|line| shown(&line, paint)).collect();
        for FactView { seq, at, fact, text: words } in &run.facts {
            if self.facts.is_some_and(|seen| *seq <= seen) {
                continue;
            }
            self.facts = Some(*seq);
            let at = paint.in_colour(Colour::Dim, &clock.local(at));
            put!(text, "{at}  {}  {}\n", escape::line(fact), escape::line(&clock.in_sentence(words)));
        }
        if run.run.state != self.state {
            self.state.clone_from(&run.run.state);
            text.push_str(&view::one_line(&run.run, clock, paint));
            text.push('\n');
            for item in &run.run.items {
                let item = escape::line(item);
                put!(text, "  waits for you: owctl inbox show {item}, owctl inbox approve {item}\n");
            }
        }
        text
    }
}
