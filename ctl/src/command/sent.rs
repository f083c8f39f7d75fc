//! What went to models, byte for byte: `--sent` of `run show` and `session show`.

use ow_client::Client;
use ow_protocol::{Page, SentView};
use serde::Serialize;

use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::{Colour, write, write_bytes};

/// Whose requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of<'a> {
    Run(&'a str),
    Session(&'a str),
}

/// A request with its body, as `--json` gives it.
#[derive(Debug, Serialize)]
struct Sent {
    #[serde(flatten)]
    request: SentView,
    /// It is UTF-8, so that this is every byte of it.
    body: String,
}

/// Shows all requests, or the body of one, exactly as it was sent.
pub(crate) fn show(context: &Context, of: Of<'_>, number: Option<u32>) -> Result<(), Failure> {
    let found = context.with_daemon(async |owd| {
        if let (Some(number), false) = (number, context.out.is_json()) {
            return Ok(Found::One(of.body(owd, number).await?));
        }
        let mut all = vec![];
        for request in of.list(owd).await?.rows {
            if number.is_none_or(|number| number == request.number) {
                let bytes = of.body(owd, request.number).await?;
                all.push(Sent { body: String::from_utf8_lossy(&bytes).into_owned(), request });
            }
        }
        if let (Some(number), []) = (number, all.as_slice()) {
            // owd says what there is.
            of.body(owd, number).await?;
        }
        Ok(Found::All(all))
    })?;
    match found {
        Found::One(bytes) => return write_bytes(&bytes, context.out),
        Found::All(all) if number.is_some() => context.out.json(&all.first()),
        Found::All(all) if context.out.is_json() => context.out.json(&all),
        Found::All(all) if all.is_empty() => write("Nothing went to a model.\n"),
        Found::All(all) => {
            for Sent { request, body } in &all {
                let head = format!("{}\n", context.out.paint.in_colour(Colour::Bold, &head(request, context)));
                write(&head);
                write_bytes(body.as_bytes(), context.out)?;
                write("\n\n");
            }
        }
    }
    Ok(())
}

enum Found {
    One(Vec<u8>),
    All(Vec<Sent>),
}

fn head(request: &SentView, context: &Context) -> String {
    let SentView { number, at, model, purpose, sub_agent_of, answered, hash: _ } = request;
    let mut head = format!("request {number}: {}", escape::line(model));
    match purpose.as_str() {
        "turn" => {}
        "final" => head.push_str(", for a last answer"),
        other => put!(head, ", for a {}", escape::line(other)),
    }
    if let Some(position) = sub_agent_of {
        put!(head, ", by the sub-agent of call {position}");
    }
    put!(head, ", {}{}", context.clock().local(at), if *answered { "" } else { ", without an answer" });
    head
}

impl Of<'_> {
    async fn list(self, owd: &mut Client) -> Result<Page<SentView>, ow_client::ClientError> {
        match self {
            Self::Run(id) => owd.sent(id).await,
            Self::Session(id) => owd.session_sent(id).await,
        }
    }

    async fn body(self, owd: &mut Client, number: u32) -> Result<Vec<u8>, ow_client::ClientError> {
        match self {
            Self::Run(id) => owd.sent_body(id, number).await,
            Self::Session(id) => owd.session_sent_body(id, number).await,
        }
    }
}
