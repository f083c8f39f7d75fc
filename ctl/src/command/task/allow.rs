use std::num::NonZeroU32;

use ow_model::Span;
use ow_protocol::{AllowPreview, AllowRequest, AllowStep, AllowedStep, Page, RuleView};

use crate::ask;
use crate::command::follow::step_number;
use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::{Colour, Paint, write};

/// Let a task's steps run without asking
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl task allow reports                 shows every step, then asks
  owctl task allow reports 2               only step 2
  owctl task allow reports --expires 30d --yes

The rule is bound to the text of the step and to the program: change either, and it asks again.")]
pub(crate) struct Allow {
    /// The task's name
    name: String,
    /// Only this step, counted from 1
    #[arg(value_name = "STEP")]
    step: Option<NonZeroU32>,
    /// Do not ask: allow what is shown
    #[arg(long, short)]
    yes: bool,
    /// Accept only these values from events and earlier results; all that are shown if not given
    #[arg(long = "hole", value_name = "NAME")]
    holes: Vec<String>,
    /// Also in a run that holds text from outside
    #[arg(long)]
    covers_outside: bool,
    /// Ask again after this time, as in `30d`
    #[arg(long, value_name = "SPAN")]
    expires: Option<Span>,
    /// Ask again after so many uses
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    uses: Option<u32>,
}

impl Allow {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let out = context.out;
        let step = self.step.map(|number| number.get() - 1);
        let rules = context.with_daemon(async |owd| {
            let preview = owd.preview_allow(&self.name, step).await?;
            let open: Vec<&AllowStep> = preview.steps.iter().filter(|step| is_open(step)).collect();
            out.note_block(&in_words(&preview, out.paint));
            if open.is_empty() {
                return nothing_to_allow(&preview).map(|()| Page { rows: vec![], next: None });
            }
            let request = self.request(&open)?;
            if !self.yes {
                if out.is_json() || !ask::can_ask() {
                    return Err(Failure::usage("nobody can be asked here, and nothing was allowed")
                        .hint("look at what is shown without --json, then add --yes"));
                }
                if !ask::yes(&format!("Let {} run without asking?", steps_in_words(&open))) {
                    return Err(Failure::failed("not_confirmed", "nothing was allowed"));
                }
            }
            Ok(owd.allow_task(&self.name, &request).await?)
        })?;
        out.give(&rules, |rules| stored_in_words(rules, context));
        Ok(())
    }

    fn request(&self, open: &[&AllowStep]) -> Result<AllowRequest, Failure> {
        let is_shown = |hole: &String| open.iter().any(|step| step.holes.contains(hole));
        if let Some(unknown) = self.holes.iter().find(|hole| !is_shown(hole)) {
            return Err(
                Failure::usage(format!("no step takes `{unknown}`")).hint("name values as the preview shows them")
            );
        }
        let accepted = |step: &AllowStep| {
            step.holes.iter().filter(|hole| self.holes.is_empty() || self.holes.contains(hole)).cloned().collect()
        };
        let steps = open
            .iter()
            .map(|step| AllowedStep { step: step.step, text_hash: step.text_hash.clone(), holes: accepted(step) })
            .collect();
        let expires_in_ms = self.expires.map(Span::millis);
        Ok(AllowRequest { steps, covers_outside: self.covers_outside, expires_in_ms, uses: self.uses })
    }
}

fn is_open(step: &AllowStep) -> bool {
    !step.allowed && step.refused.is_none()
}

fn nothing_to_allow(preview: &AllowPreview) -> Result<(), Failure> {
    let refused: Vec<String> = preview
        .steps
        .iter()
        .filter_map(|step| Some(format!("step {}: {}", step_number(step.step), step.refused.as_ref()?)))
        .collect();
    if refused.is_empty() {
        return Ok(());
    }
    Err(Failure::usage("no rule can cover what is left; it will ask each time")
        .details(refused)
        .hint("change the step so that it can be allowed, or answer its items one by one"))
}

fn steps_in_words(steps: &[&AllowStep]) -> String {
    let numbers: Vec<String> = steps.iter().map(|step| step_number(step.step).to_string()).collect();
    match numbers.as_slice() {
        [one] => format!("step {one}"),
        many => format!("steps {}", many.join(", ")),
    }
}

fn in_words(preview: &AllowPreview, paint: Paint) -> String {
    let mut text = format!("{}, revision {}\n", escape::line(&preview.task), preview.revision);
    for step in &preview.steps {
        let head = format!("step {}: {}", step_number(step.step), escape::line(&step.tool));
        put!(text, "\n{}\n", paint.in_colour(Colour::Bold, &head));
        for line in step.text.lines() {
            put!(text, "  {}\n", escape::block(line));
        }
        for program in step.program.iter().chain(&step.parts) {
            put!(text, "  program: {}\n", escape::line(program));
        }
        if !step.holes.is_empty() {
            let holes: Vec<_> = step.holes.iter().map(|hole| escape::line(hole)).collect();
            put!(text, "  takes any value of: {}\n", holes.join(", "));
        }
        if step.allowed {
            text.push_str("  is allowed already\n");
        }
        if let Some(why) = &step.refused {
            put!(text, "  cannot be allowed: {}\n", escape::line(why));
        }
    }
    text
}

fn stored_in_words(rules: &Page<RuleView>, context: &Context) -> String {
    if rules.rows.is_empty() {
        return "Every step is allowed already.".into();
    }
    let mut text = String::new();
    for rule in &rules.rows {
        put!(text, "allowed: {} (rule {})", escape::line(&rule.text), escape::line(&rule.id));
        if let Some(at) = &rule.expires_at {
            put!(text, ", until {}", context.clock().when(at));
        }
        text.push('\n');
    }
    text + "Take it back with `owctl rule rm ID`.\n"
}

impl crate::output::Out {
    /// Shows what a question is about, on standard output as the answer is.
    fn note_block(self, text: &str) {
        if !self.is_json() {
            write(text);
        }
    }
}
