use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ow_client::Client;
use ow_protocol::{DeliveryFateView, SampleRequest, SampleView};
use serde::Serialize;

use super::post::post;
use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};

/// Deliver a signed sample to the running listener, as its sender would
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl webhook test ci                         a small body as the profile's senders write it
  owctl webhook test ci --event push --body payload.json

owd signs it with the webhook's first secret that has a value, and it is delivered at the listener's own address, not
through the proxy before it. The tasks that run on the webhook run.")]
pub(crate) struct Test {
    /// The webhook's name
    #[arg(value_name = "WEBHOOK")]
    hook: String,
    /// The body to deliver
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// The kind of event, where its senders say it in a header, as `push`
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
}

/// What came of it.
#[derive(Serialize)]
struct Tested {
    webhook: String,
    status: u16,
    /// What the delivery is known by; none: it cannot be told from others.
    key: Option<String>,
    tasks: Vec<DeliveryFateView>,
}

/// How long a run that comes of the delivery is waited for, and after which time it is looked for again.
const RUN_WAIT: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(50);

impl Test {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let body = self
            .body
            .as_ref()
            .map(|file| fs::read(file).map_err(|why| Failure::io(format!("cannot read {}", file.display()), &why)));
        let body = body.transpose()?.map(|body| STANDARD.encode(body));
        let tested = context.with_daemon(async |owd| {
            let sample = owd.sign_sample(&self.hook, &SampleRequest { body, event: self.event.clone() }).await?;
            let status = post(&sample)?;
            let tasks = match (&sample.key, status) {
                (Some(key), 200..300) => fates(owd, &self.hook, key).await?,
                _ => vec![],
            };
            let SampleView { key, .. } = sample;
            Ok(Tested { webhook: self.hook.clone(), status, key, tasks })
        })?;
        if !(200..300).contains(&tested.status) {
            return Err(refused(&tested));
        }
        context.out.give(&tested, in_words);
        Ok(())
    }
}

/// What became of the delivery, once each task has made a run of it or will not at once.
async fn fates(owd: &mut Client, hook: &str, key: &str) -> Result<Vec<DeliveryFateView>, Failure> {
    let until = tokio::time::Instant::now() + RUN_WAIT;
    loop {
        let rows = owd.delivery(hook, key).await?.rows;
        let is_settled = rows.iter().all(|row| row.fate != "waiting");
        if is_settled || tokio::time::Instant::now() >= until {
            return Ok(rows);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn refused(tested: &Tested) -> Failure {
    let Tested { webhook, status, .. } = tested;
    let why = match status {
        401 => "it did not count as signed",
        404 => "there is no such webhook at the listener",
        413 => "the body is larger than the webhook's `body-limit`",
        429 => "deliveries came too fast",
        400 => "the body is not the JSON that it should be",
        503 => "no task runs on it, or it could not be stored",
        _ => "it was not taken",
    };
    Failure::new(Exit::Failed, "not_delivered", format!("webhook `{webhook}` answered {status}: {why}"))
        .hint("`owctl webhook list` says what was refused last, `owctl logs` more")
}

fn in_words(tested: &Tested) -> String {
    let Tested { webhook, status, key, tasks } = tested;
    let what = if *status == 200 { "it is known already" } else { "it was accepted" };
    let mut text = format!("{} answered {status}: {what}", escape::line(webhook));
    if key.is_none() {
        text.push_str("\nits deliveries cannot be told apart without an `id-header`: see `owctl run list`");
    }
    for DeliveryFateView { task, fate, run, why } in tasks {
        let more = match (run, why) {
            (Some(run), _) => format!(": run {run} (`owctl run show {run}`)"),
            (None, Some(why)) => format!(": {why}"),
            (None, None) => String::new(),
        };
        put!(text, "\n{} {}{}", escape::line(task), escape::line(fate), escape::line(&more));
    }
    text
}
