use clap::Subcommand;
use ow_protocol::{AuditCheckView, AuditDecisionView, AuditEntryView, AuditHookView, Page};
use serde::Serialize;

use crate::command::paging::{Paging, more};
use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::table::{Cell, Table};
use crate::time::{Clock, span};

/// Who decided what about which call, and what came of it
#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    Show(Show),
    Verify(Verify),
}

/// Show the record, newest first: one line a call
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl audit show --run 4k7
  owctl audit show --task reports --entries

A call may have several entries: asked, answered, begun, done. The limit counts entries.")]
pub(crate) struct Show {
    /// Only this run: its id, or a unique beginning of it; of a run that is gone, the whole id
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Only the runs of this task
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// Each entry by itself, as it was written
    #[arg(long)]
    entries: bool,
    #[command(flatten)]
    paging: Paging,
}

/// Check that the record is what was written: nothing changed, removed or moved
#[derive(Debug, clap::Args)]
#[command(after_help = "The exit code is 1 if the record is not what was written.

Each entry's hash covers the one before it. Note the head that is shown somewhere else, and give it later with --head:
then a record that was written anew as a whole shows too.")]
pub(crate) struct Verify {
    /// The hash of an earlier newest entry, which must still be there
    #[arg(long, value_name = "HASH")]
    head: Option<String>,
}

impl Audit {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Show(command) => command.run(context),
            Self::Verify(command) => command.run(context),
        }
    }
}

/// All that a page's entries say of one call.
#[derive(Serialize)]
struct Record<'a> {
    task: &'a Option<String>,
    run: &'a Option<String>,
    position: Option<u32>,
    tool: &'a Option<String>,
    /// Oldest first.
    entries: Vec<&'a AuditEntryView>,
}

/// Entries of one call together, in the order of their newest ones.
fn records(page: &Page<AuditEntryView>) -> Page<Record<'_>> {
    let mut rows: Vec<Record<'_>> = vec![];
    for entry in &page.rows {
        let of = (&entry.run, entry.position);
        let known = rows
            .iter_mut()
            .find(|record| record.position.is_some() && (record.run, record.position) == of && entry.run.is_some());
        match known {
            Some(record) => {
                record.entries.insert(0, entry);
                record.tool = if record.tool.is_none() { &entry.tool } else { record.tool };
            }
            None => rows.push(Record {
                task: &entry.task,
                run: &entry.run,
                position: entry.position,
                tool: &entry.tool,
                entries: vec![entry],
            }),
        }
    }
    Page { rows, next: page.next.clone() }
}

impl Show {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut query = self.paging.query();
        query.task.clone_from(&self.task);
        query.run.clone_from(&self.run);
        let page = context.with_daemon(async |owd| Ok(owd.audit(&query).await?))?;
        let (clock, out) = (context.clock(), context.out);
        if self.entries {
            out.give(&page, |page| {
                let rows = page.rows.iter().map(|entry| row(clock, &[entry], entry));
                in_words(out, rows.collect(), &more(page))
            });
        } else {
            let records = records(&page);
            out.give(&records, |records| {
                let rows = records
                    .rows
                    .iter()
                    .filter_map(|record| record.entries.last().map(|newest| row(clock, &record.entries, newest)));
                in_words(out, rows.collect(), &more(records))
            });
        }
        Ok(())
    }
}

fn in_words(out: Out, rows: Vec<[Cell; 7]>, more: &str) -> String {
    if rows.is_empty() {
        return "Nothing was decided.".into();
    }
    let mut table = Table::new(out, &["ENTRY", "WHEN", "RUN", "CALL", "TOOL", "DECIDED", "CAME OF IT"]);
    for cells in rows {
        table.row(cells);
    }
    table.show() + more
}

fn row(clock: &Clock, entries: &[&AuditEntryView], newest: &AuditEntryView) -> [Cell; 7] {
    let decided: Vec<String> = entries.iter().flat_map(|entry| entry.decided.iter().map(decision)).collect();
    let hooks = entries.iter().flat_map(|entry| entry.hooks.iter().filter_map(hook));
    let decided: Vec<String> = decided.into_iter().chain(hooks).collect();
    let tool = entries.iter().rev().find_map(|entry| entry.tool.as_deref());
    let position = newest.position.map(|position| position.to_string());
    [
        Cell::text(&newest.seq.to_string()),
        Cell::text(&clock.when(&newest.at)),
        Cell::maybe(newest.run.as_deref()),
        Cell::maybe(position.as_deref()),
        Cell::maybe(tool),
        Cell::text(&decided.join("; ")),
        entries
            .iter()
            .rev()
            .find(|entry| entry.effect.is_some())
            .map_or_else(|| Cell::maybe(None), |entry| effect(entry)),
    ]
}

fn decision(decision: &AuditDecisionView) -> String {
    let AuditDecisionView { what, rule, item, answer, by, surface } = decision;
    let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
    let surface = surface.as_ref().map_or_else(String::new, |surface| format!(" ({surface})"));
    let what = answer.as_ref().unwrap_or(what);
    let about = rule.as_ref().or(item.as_ref()).map_or_else(String::new, |about| format!(": {about}"));
    format!("{what}{by}{surface}{about}")
}

/// One that let pass is no news.
fn hook(hook: &AuditHookView) -> Option<String> {
    let AuditHookView { event: _, command, said, why, exit: _, took_ms: _ } = hook;
    (said != "pass").then(|| format!("hook {command} said {said}: {}", why.as_deref().unwrap_or_default()))
}

fn effect(entry: &AuditEntryView) -> Cell {
    let Some(effect) = &entry.effect else { return Cell::maybe(None) };
    let error = entry.error.as_ref().map_or_else(String::new, |error| format!(" ({error})"));
    let took = entry.took_ms.map_or_else(String::new, |took| format!(", {}", span(took)));
    match effect.as_str() {
        "failed" | "unknown" | "stopped" => Cell::text(&format!("{effect}{error}{took}")),
        _ => Cell::text(&format!("{effect}{took}")),
    }
}

impl Verify {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let (check, noted) = context.with_daemon(async |owd| {
            let check = owd.check_audit().await?;
            let noted = match &self.head {
                Some(head) => Some(is_there(owd, head).await?),
                None => None,
            };
            Ok((check, noted))
        })?;
        context.out.give(&check, |check| check_in_words(check, noted));
        if check.intact && noted != Some(false) { Ok(()) } else { Err(Failure::told(Exit::Failed)) }
    }
}

/// Whether an entry with this hash is in the record.
async fn is_there(owd: &mut ow_client::Client, head: &str) -> Result<bool, Failure> {
    let mut query = ow_protocol::PageQuery { limit: Some(500), ..ow_protocol::PageQuery::default() };
    loop {
        let page = owd.audit(&query).await?;
        if page.rows.iter().any(|entry| entry.hash == head) {
            return Ok(true);
        }
        if page.next.is_none() {
            return Ok(false);
        }
        query.after = page.next;
    }
}

fn check_in_words(check: &AuditCheckView, noted: Option<bool>) -> String {
    let AuditCheckView { intact, entries, head, broken_at, why } = check;
    let mut text = String::new();
    if *intact {
        put!(text, "The record is what was written: {entries} entries.\n");
    } else {
        let at = broken_at.unwrap_or_default();
        let why = why.as_deref().unwrap_or_default();
        put!(text, "The record is broken at entry {at}: {}.\n", escape::line(why));
        put!(text, "The {entries} entries before it are in order. `owctl backup` folders hold earlier states.\n");
    }
    if let Some(head) = head {
        put!(text, "head: {}\n", escape::line(head));
    }
    match noted {
        Some(true) => put!(text, "The head that you noted is in it.\n"),
        Some(false) => put!(text, "The head that you noted is not in it: the record was written anew.\n"),
        None => {}
    }
    text
}
