use ow_model::{CallErrorKind, Detector, Patience};

use super::{Detectors, Seen, Verdict};

/// Tools that do the same thing by other means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Family {
    Web,
    Screen,
    Search,
}

impl Detectors {
    /// What the newest call shows.
    pub(super) fn of_newest(&mut self) -> Vec<Verdict> {
        let Some(newest) = self.window.back().cloned() else { return vec![] };
        let no_progress = self.no_progress(&newest);
        [
            self.tool_mode_switch(&newest),
            self.success_after_error(&newest),
            self.consecutive_duplicate(&newest),
            self.exact_duplicate(&newest),
            self.same_tool_error(&newest),
            // Says more than that the same page was asked for again.
            self.network_retry_storm(&newest),
            self.family_no_progress(&newest),
            no_progress,
            self.sleep(&newest),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn before(&self) -> impl Iterator<Item = &Seen> {
        self.window.iter().rev().skip(1)
    }

    fn tool_mode_switch(&self, newest: &Seen) -> Option<Verdict> {
        let before = self.before().next()?;
        let is_data = before.tool == "applescript" || before.tool.starts_with("browser");
        let found = is_visual(&newest.tool) && is_data && before.error.is_none();
        (found && self.hears(newest, Detector::ToolModeSwitch)).then(|| {
            let (look, data) = (&newest.tool, &before.tool);
            nudge(
                Detector::ToolModeSwitch,
                format!("`{look}` looks again at what `{data}` returned as data, which is proof enough"),
            )
        })
    }

    fn success_after_error(&self, newest: &Seen) -> Option<Verdict> {
        let mut before = self.before();
        let (worked, failed) = (before.next()?, before.next()?);
        let mended = worked.tool == failed.tool
            && worked.error.is_none()
            && failed.error.is_some()
            && worked.call != failed.call;
        (is_visual(&newest.tool) && mended && self.hears(newest, Detector::SuccessAfterError)).then(|| {
            let evidence = format!("`{}` worked at the second try, which confirms it; answer now", worked.tool);
            nudge(Detector::SuccessAfterError, evidence)
        })
    }

    fn consecutive_duplicate(&self, newest: &Seen) -> Option<Verdict> {
        let count = self.window.iter().rev().take_while(|seen| is_same(seen, newest)).count();
        self.judge_count(newest, Detector::ConsecutiveDuplicate, count, (2, 3), || {
            format!("`{}` was called {count} times in a row with the same arguments and the same result", newest.tool)
        })
    }

    fn exact_duplicate(&self, newest: &Seen) -> Option<Verdict> {
        let count = self.window.iter().filter(|seen| is_same(seen, newest)).count();
        // An edit in between may be a try at something else.
        let tried = |seen: &&Seen| !(seen.changes && seen.is_fresh && !is_same(seen, newest));
        let since_edit = self.window.iter().rev().take_while(tried).filter(|seen| is_same(seen, newest)).count();
        let evidence =
            || format!("`{}` was called {count} times lately with the same arguments and the same result", newest.tool);
        let (nudge, stop) = self.bounds(newest, Detector::ExactDuplicate, (3, 6));
        let verdict = |stop| Verdict { detector: Detector::ExactDuplicate, evidence: evidence(), stop };
        if since_edit >= stop { Some(verdict(true)) } else { (count >= nudge).then(|| verdict(false)) }
    }

    fn same_tool_error(&self, newest: &Seen) -> Option<Verdict> {
        newest.error?;
        let fails = |seen: &&Seen| seen.tool == newest.tool && seen.error.is_some();
        let in_row = steps(self.window.iter().rev().take_while(fails));
        let alike = steps(self.window.iter().filter(fails).filter(|seen| seen.result == newest.result));
        let count = in_row.max(alike);
        self.judge_count(newest, Detector::SameToolError, count, (4, 8), || {
            format!("`{}` failed {count} times; the last time: {}", newest.tool, newest.told)
        })
    }

    fn family_no_progress(&self, newest: &Seen) -> Option<Verdict> {
        let family = family(&newest.tool)?;
        let kin = || self.window.iter().filter(|seen| self::family(&seen.tool) == Some(family));
        let Some(topic) = &newest.topic else {
            if is_on_screen(&newest.tool) || is_browser(&newest.tool) {
                return None;
            }
            let count = steps(self.window.iter().filter(|seen| seen.tool == newest.tool && !seen.is_fresh));
            return self.judge_count(newest, Detector::FamilyNoProgress, count, (5, 7), || {
                format!("{count} calls of `{}` found nothing new", newest.tool)
            });
        };
        let about = kin()
            .filter(|seen| seen.topic.as_ref() == Some(topic) || (seen.urls.is_some() && seen.urls == newest.urls));
        // A page that changes is being watched; a question asked again in other words is not.
        let count = match &newest.url {
            Some(_) => steps(about.filter(|seen| !seen.is_fresh)) + 1,
            None => steps(about),
        };
        if newest.url.is_some() && newest.is_fresh {
            return None;
        }
        self.judge_count(newest, Detector::FamilyNoProgress, count, (3, 7), || {
            let stronger = if count >= 5 { ", and more of the same will not help" } else { "" };
            format!("{count} lookups about the same ({topic}){stronger}")
        })
    }

    /// Judged once a step: the searches of one reply are one.
    pub(super) fn search_escalation(&self) -> Option<Verdict> {
        let newest = self.window.back()?;
        let mut newest_first = self.window.iter().rev().peekable();
        if newest.step != self.step {
            return None;
        }
        let mut count = 0;
        while let Some(step) = newest_first.peek().map(|seen| seen.step) {
            let mut only_searches = true;
            while let Some(seen) = newest_first.next_if(|seen| seen.step == step) {
                only_searches &= family(&seen.tool) == Some(Family::Search);
            }
            if !only_searches {
                break;
            }
            count += 1;
        }
        self.judge_count(newest, Detector::SearchEscalation, count, (3, 5), || {
            format!("{count} searches in a row, and nothing that they found was read")
        })
    }

    fn no_progress(&mut self, newest: &Seen) -> Option<Verdict> {
        if is_on_screen(&newest.tool) || is_browser(&newest.tool) {
            return None;
        }
        let calls = || self.window.iter().filter(|seen| seen.tool == newest.tool);
        let (all, stale) = (steps(calls()), steps(calls().filter(|seen| !seen.is_fresh)));
        let (many, _) = self.bounds(newest, Detector::NoProgress, (8, 16));
        if all < many {
            self.told.remove(&newest.tool);
        }
        let stuck = self.judge_count(newest, Detector::NoProgress, stale, (8, 16), || {
            format!("{stale} calls of `{}` brought nothing new", newest.tool)
        });
        // Many calls of one tool are said once: it may be the right tool.
        stuck.or_else(|| {
            (all >= many && self.told.insert(newest.tool.clone()))
                .then(|| nudge(Detector::NoProgress, format!("{all} of the last calls were of `{}`", newest.tool)))
        })
    }

    fn sleep(&self, newest: &Seen) -> Option<Verdict> {
        let sleeps: Vec<&Seen> = self.window.iter().filter(|seen| seen.sleeps).collect();
        let count = steps(sleeps.iter().copied());
        let changes = sleeps
            .iter()
            .enumerate()
            .all(|(index, seen)| !seen.is_blank && sleeps[..index].iter().all(|before| before.result != seen.result));
        let evidence = || format!("{count} commands sleep; the tools to sleep or to wait for a job cost nothing");
        if !newest.sleeps {
            return None;
        }
        let verdict = self.judge_count(newest, Detector::Sleep, count, (2, 4), evidence)?;
        Some(Verdict { stop: verdict.stop && !changes, ..verdict })
    }

    /// At how many this detector nudges and stops for calls of the newest one's tool; the given ones where nothing is set.
    fn bounds(&self, newest: &Seen, detector: Detector, own: (usize, usize)) -> (usize, usize) {
        match self.limits.of(&newest.tool, detector) {
            None => own,
            Some(Patience::Off) => (usize::MAX, usize::MAX),
            Some(Patience::Until { nudge, stop }) => (nudge as usize, stop.map_or(usize::MAX, |stop| stop as usize)),
        }
    }

    fn hears(&self, newest: &Seen, detector: Detector) -> bool {
        self.limits.of(&newest.tool, detector) != Some(Patience::Off)
    }

    fn judge_count(
        &self,
        newest: &Seen,
        detector: Detector,
        count: usize,
        own: (usize, usize),
        evidence: impl FnOnce() -> String,
    ) -> Option<Verdict> {
        let (nudge, stop) = self.bounds(newest, detector, own);
        (count >= nudge).then(|| Verdict { detector, evidence: evidence(), stop: count >= stop })
    }

    fn network_retry_storm(&self, newest: &Seen) -> Option<Verdict> {
        let url = newest.url.as_ref()?;
        let lost = |seen: &&Seen| {
            seen.url.as_ref() == Some(url)
                && matches!(seen.error, Some(CallErrorKind::TimedOut | CallErrorKind::Unreachable))
        };
        if !lost(&newest) {
            return None;
        }
        let count = steps(self.window.iter().filter(lost));
        self.judge_count(newest, Detector::NetworkRetryStorm, count, (3, 5), || {
            format!("{url} could not be reached {count} times")
        })
    }
}

/// How many replies these calls are of.
fn steps<'s>(calls: impl Iterator<Item = &'s Seen>) -> usize {
    let mut last = None;
    calls.filter(|seen| last.replace(seen.step) != Some(seen.step)).count()
}

fn is_same(seen: &Seen, newest: &Seen) -> bool {
    seen.call == newest.call && seen.result == newest.result
}

fn nudge(detector: Detector, evidence: String) -> Verdict {
    Verdict { detector, evidence, stop: false }
}

pub(super) fn family(tool: &str) -> Option<Family> {
    match tool {
        "web_search" | "web_fetch" | "http_request" => Some(Family::Web),
        tool if is_browser(tool) => Some(Family::Web),
        tool if is_on_screen(tool) => Some(Family::Screen),
        "grep" | "glob" => Some(Family::Search),
        _ => None,
    }
}

fn is_browser(tool: &str) -> bool {
    tool.starts_with("browser")
}

fn is_visual(tool: &str) -> bool {
    matches!(tool, "screenshot" | "computer" | "accessibility")
}

fn is_on_screen(tool: &str) -> bool {
    is_visual(tool) || tool == "applescript"
}
