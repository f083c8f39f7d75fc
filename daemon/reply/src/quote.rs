use crate::attribution::{WRAPPED, introduces, introduces_unmarked, may_open};
use crate::doubt::is_doubt;
use crate::labels::{is_forward_marker, is_headed_original, is_header_block, is_original_marker, is_rule};
use crate::signature::without_signature;

/// A line as a person sees it; `depth` is how deep its quote is, 0 what the sender wrote.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Line {
    pub(crate) depth: usize,
    pub(crate) text: String,
    /// It stands in what may be a quote: some programs leave the cursor there, others put there what was said before.
    pub(crate) perhaps: bool,
}

/// A message's text, taken apart.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Split {
    /// What the sender newly wrote, signatures cut.
    pub(crate) new: String,
    /// The same with signatures.
    pub(crate) signed: String,
    /// What is quoted, the outermost first: index 0 holds depth 1.
    pub(crate) quoted: Vec<String>,
    pub(crate) forwards: bool,
    /// Some of what is taken for new stands in what may be a quote.
    pub(crate) perhaps: bool,
}

/// Counts and takes off the `>` marks of a plain line.
pub(crate) fn marked(line: &str) -> Line {
    let mut depth = 0;
    let mut rest = line;
    loop {
        let bare = rest.trim_start_matches([' ', '\u{a0}', '\u{feff}', '\u{200b}']);
        let Some(after) = bare.strip_prefix(['>', '＞']) else { break };
        depth += 1;
        rest = after;
    }
    // "AM> text", as some programs mark whom they quote.
    if depth == 0
        && let Some((initials, after)) = line.split_once('>')
        && (1..=3).contains(&initials.len())
        && initials.bytes().all(|byte| byte.is_ascii_uppercase())
        && !is_doubt(&initials.to_ascii_lowercase())
    {
        return Line { depth: 1, text: after.trim_start().to_owned(), perhaps: false };
    }
    let text = if depth == 0 { line } else { rest.strip_prefix(' ').unwrap_or(rest) };
    Line { depth, text: text.to_owned(), perhaps: false }
}

/// Tells new text from quotes.
pub(crate) fn split(mut lines: Vec<Line>) -> Split {
    mend_wrapped(&mut lines);
    let mut forwards = false;
    let mut quoted = false;
    let mut at = 0;
    while at < lines.len() {
        if lines[at].depth > 0 {
            forwards |= !quoted && begins_as_forward(&lines[at..]);
            quoted = true;
            take_attribution(&mut lines, at);
            at += lines[at..].iter().take_while(|line| line.depth > 0).count();
            continue;
        }
        forwards |= is_forward_marker(&lines[at].text);
        if begins_unmarked(&lines, at) {
            let above =
                lines[..at].iter().rev().take_while(|line| line.text.trim().is_empty() || is_rule(&line.text)).count();
            let rule = lines[at - above..at].iter().any(|line| is_rule(&line.text));
            deepen(&mut lines, if rule { at - above } else { at });
            break;
        }
        at += 1;
    }
    nest(&mut lines);
    let mut split = Split { forwards, ..Split::default() };
    let mut stretch: Vec<&str> = vec![];
    for line in &lines {
        if line.depth == 0 {
            split.perhaps |= line.perhaps && !line.text.trim().is_empty();
            stretch.push(&line.text);
            push_line(&mut split.signed, &line.text);
            continue;
        }
        close(&mut split.new, &mut stretch);
        if split.quoted.len() < line.depth {
            split.quoted.resize(line.depth, String::new());
        }
        push_line(&mut split.quoted[line.depth - 1], &line.text);
    }
    close(&mut split.new, &mut stretch);
    split
}

/// A quoted line that some program wrapped without a mark on its second half is quoted all the same: it stands right
/// between marked lines, the first of them long.
fn mend_wrapped(lines: &mut [Line]) {
    const LONG: usize = 60;
    for at in 1..lines.len().saturating_sub(1) {
        let (before, after) = (&lines[at - 1], &lines[at + 1]);
        let wrapped = before.depth > 0 && before.depth == after.depth && before.text.chars().count() >= LONG;
        if lines[at].depth == 0 && wrapped && !lines[at].text.trim().is_empty() {
            lines[at].depth = before.depth;
        }
    }
}

fn close(new: &mut String, stretch: &mut Vec<&str>) {
    for line in without_signature(stretch) {
        push_line(new, line);
    }
    stretch.clear();
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn begins_as_forward(lines: &[Line]) -> bool {
    lines.iter().find(|line| !line.text.trim().is_empty()).is_some_and(|line| is_forward_marker(&line.text))
}

/// Makes the lines that introduce a marked quote, which begins at `at`, part of it.
fn take_attribution(lines: &mut [Line], at: usize) {
    const BLANK: usize = 2;
    let blank = lines[..at].iter().rev().take_while(|line| line.depth == 0 && line.text.trim().is_empty()).count();
    let end = at - blank;
    if blank > BLANK {
        return;
    }
    let mut from = None;
    for count in 1..=WRAPPED.min(end) {
        let start = end - count;
        if lines[start].depth > 0 || lines[start].text.trim().is_empty() {
            break;
        }
        let fits = introduces(&joined(&lines[start..end]));
        if fits && (from.is_none() || may_open(&lines[start].text)) {
            from = Some(start);
        }
    }
    if let Some(from) = from {
        for line in &mut lines[from..end] {
            line.depth = 1;
        }
    }
}

/// Whether a quote without marks begins at a line: then all that follows is quoted.
fn begins_unmarked(lines: &[Line], at: usize) -> bool {
    let rest = &lines[at..];
    let text = &rest[0].text;
    if is_original_marker(text)
        || is_forward_marker(text)
        || is_header_block(rest.iter().map(|line| line.text.as_str()))
        || is_headed_original(text, rest[1..].iter().map(|line| line.text.as_str()))
    {
        return true;
    }
    (1..=WRAPPED.min(rest.len())).any(|count| {
        let wrapped = &rest[..count];
        let whole = wrapped.iter().all(|line| line.depth == 0 && !line.text.trim().is_empty());
        let marked =
            || rest[count..].iter().find(|line| !line.text.trim().is_empty()).is_some_and(|line| line.depth > 0);
        whole && introduces_unmarked(&joined(wrapped)) && !marked()
    })
}

fn deepen(lines: &mut [Line], from: usize) {
    for line in &mut lines[from..] {
        line.depth += 1;
    }
}

/// Quotes within quotes that carry no marks: what follows a header block or an attribution in a quote is deeper.
fn nest(lines: &mut [Line]) {
    let mut begun = lines.iter().take_while(|line| line.depth == 0).count();
    // The block or attribution that begins the quote itself.
    begun += header_length(&lines[begun..]);
    let mut at = begun;
    while at < lines.len() {
        let depth = lines[at].depth;
        let text = lines[at].text.clone();
        let opens = depth > 0
            && (is_header_block(lines[at..].iter().map(|line| line.text.as_str()))
                || is_original_marker(&text)
                || (1..=WRAPPED.min(lines.len() - at))
                    .any(|count| introduces_unmarked(&joined(&lines[at..at + count]))));
        if !opens {
            at += 1;
            continue;
        }
        let length = header_length(&lines[at..]).max(1);
        let end = lines[at..].iter().take_while(|line| line.depth >= depth).count() + at;
        // Where marks tell of the deeper quote already, only the introduction itself moves.
        let marked = lines.get(at + length..end).unwrap_or_default().iter().find(|line| !line.text.trim().is_empty());
        let until = if marked.is_some_and(|line| line.depth > depth) { (at + length).min(end) } else { end };
        for line in &mut lines[at..until] {
            line.depth += 1;
        }
        at += length;
    }
}

/// Lines of the introduction that a quote begins with.
fn header_length(lines: &[Line]) -> usize {
    const LABELS: usize = 9;
    let blank = lines
        .iter()
        .take_while(|line| line.text.trim().is_empty() || is_rule(&line.text) || is_original_marker(&line.text))
        .count();
    let rest = &lines[blank..];
    if is_header_block(rest.iter().map(|line| line.text.as_str())) {
        return blank + rest.iter().take(LABELS).take_while(|line| !line.text.trim().is_empty()).count();
    }
    let introduced = (1..=WRAPPED.min(rest.len())).rev().find(|count| introduces(&joined(&rest[..*count])));
    introduced.map_or(blank, |count| blank + count)
}

fn joined(lines: &[Line]) -> String {
    let texts: Vec<&str> = lines.iter().map(|line| line.text.trim()).collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_text(text: &str) -> String {
        split(text.lines().map(marked).collect()).new.trim().to_owned()
    }

    #[test]
    fn text_above_below_and_between_quotes_is_new() {
        assert_eq!(new_text("a\n\nOn 3/3/26 09:12, Agent wrote:\n> q\n\nb\n\n> q\nc"), "a\n\n\nb\n\nc");
        assert_eq!(
            new_text("approve\nOn Tue, Mar 3, 2026 at 9:12 AM Agent <\nagent@example.net> wrote:\n> q"),
            "approve"
        );
        assert_eq!(new_text("approve\nFrom: Agent\nSent: today\nTo: me\nSubject: s\n\nno"), "approve");
        assert_eq!(new_text("approve\n\n_______________\nFrom: Agent\nSent: today\nTo: me\n\nno"), "approve");
    }

    #[test]
    fn a_condition_below_a_colon_stays_new() {
        assert_eq!(
            new_text("approve\n\nBut as I wrote at 10:00:\nonly staging"),
            "approve\n\nBut as I wrote at 10:00:\nonly staging"
        );
    }

    #[test]
    fn signatures_end_where_a_quote_begins() {
        assert_eq!(new_text("-- \nAlex\n> q\ndeny"), "deny");
        assert_eq!(new_text("wait\n-- \nYes Ltd\n\nOn 3/3/26 09:12, Agent wrote:\n> q"), "wait");
    }

    #[test]
    fn quotes_without_marks_nest_by_their_headers() {
        let text = "x\nFrom: A\nSent: t\nTo: b\n\nouter\n\nFrom: C\nSent: t\nTo: d\n\ninner";
        let split = split(text.lines().map(marked).collect());
        assert!(split.quoted[0].contains("outer") && !split.quoted[0].contains("inner"));
        assert!(split.quoted[1].contains("inner"));
    }

    #[test]
    fn a_forward_is_told_by_its_marker_outside_quotes() {
        let forwards = |text: &str| split(text.lines().map(marked).collect()).forwards;
        assert!(forwards("look\n\n---------- Forwarded message ---------\nFrom: A"));
        assert!(!forwards("no\n\n> ---- Re: x\n> ---------- Forwarded message ---------"));
    }
}
