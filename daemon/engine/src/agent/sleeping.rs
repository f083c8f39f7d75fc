//! Sessions that sleep until their time, or until something happens.

use ow_model::{CallErrorKind, CallResult, Fact, Input, Source, Wake};
use ow_store::StoreError;
use ow_tool::JobStanding;
use ow_turn::Sleep;

use super::{AgentCourse, Onward};
use crate::Stop;
use crate::wakes::job_words;

impl AgentCourse {
    /// The session goes to sleep as a call of it asks, unless what it waits for is over.
    pub(super) async fn fall_asleep(&mut self, sleep: Sleep, stop: &Stop) -> Result<Onward, StoreError> {
        let Sleep { position, until, on, note } = sleep;
        let run = self.session.run.id;
        let jobs: Vec<String> = on.iter().filter_map(job_of).collect();
        let mut over = None;
        for job in &jobs {
            match self.engine().helpers.background().standing(run, job) {
                JobStanding::Unknown => {
                    let why = format!(
                        "this session has no background job `{job}`; jobs end with owd, and how far one came then is not \
                         known"
                    );
                    self.session.untried(position, CallResult::failed(CallErrorKind::BadArguments, why));
                    return Ok(Onward::Continue);
                }
                JobStanding::Running => {}
                JobStanding::Ended(how) => over = Some(job_words(job, Some(&how))),
            }
        }
        self.record(Fact::Slept { until, on, note: note.clone() });
        if let Some(text) = over {
            let input = Input { text, attachments: vec![], source: Source::Wake { note } };
            self.record(Fact::Input { number: None, input });
            return Ok(Onward::Continue);
        }
        self.session.sleep(until, stop).await?;
        // One that ended while this was written was told to nobody.
        for job in jobs {
            if let JobStanding::Ended(how) = self.engine().helpers.background().standing(run, &job) {
                // Where the store fails until owd stops, the next life tells of it.
                stop.token().run_until_cancelled(self.engine().tell_of_job(run, &job, Some(&how))).await;
            }
        }
        Ok(Onward::Left)
    }

    /// The session was looked at while it sleeps, and nothing was said to it.
    pub(super) async fn sleep_on(&mut self, sleep: Sleep, stop: &Stop) -> Result<Onward, StoreError> {
        if sleep.until.is_some_and(|until| until <= self.engine().now()) {
            let Sleep { note, on, .. } = sleep;
            let on: Vec<String> = on.iter().map(ToString::to_string).collect();
            let missed = match on.as_slice() {
                [] => String::new(),
                on => format!("; what you waited for, {}, did not happen", on.join(" or ")),
            };
            let to_do = if note.is_empty() { ".".to_owned() } else { format!(": {note}") };
            let text = format!("It is time{missed}{to_do}");
            let input = Input { text, attachments: vec![], source: Source::Wake { note } };
            self.record(Fact::Input { number: None, input });
            return Ok(Onward::Continue);
        }
        self.session.sleep(sleep.until, stop).await?;
        Ok(Onward::Left)
    }

    /// Who wakes a session does not know what for; its own note does.
    pub(super) fn with_note(&self, input: Input) -> Input {
        match (&input.source, self.session.turn.sleep()) {
            (Source::Wake { note }, Some(sleep)) if note.is_empty() => {
                Input { source: Source::Wake { note: sleep.note }, ..input }
            }
            _ => input,
        }
    }
}

fn job_of(wake: &Wake) -> Option<String> {
    match wake {
        Wake::Job(job) => Some(job.clone()),
        Wake::Event(_) => None,
    }
}
