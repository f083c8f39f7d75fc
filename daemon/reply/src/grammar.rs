use crate::contact::is_contact;
use crate::doubt::{doubts, limits};
use crate::phrase::Phrases;
use crate::sign_off::{Signer, is_name, looks_like_a_name};
use crate::words::{Piece, What, edged, folded, lines, pieces};

/// What kind of item a reply answers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Yes or no: an approval, a plan, a folder.
    Approval,
    /// Free text, or one of the options.
    Question { options: Vec<String> },
    /// Takes no answer.
    Notification,
}

/// What new text decides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    Approve,
    Deny,
    /// The text itself is what was asked for.
    Answer,
    /// Nothing: the item stays as it was.
    None,
}

/// What a person's new text says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reading {
    pub decision: Decision,
    /// With [`Decision::Answer`]: the answer.
    pub answer: Option<String>,
    /// What else was written: the reason of a denial, or all of a text that decides nothing.
    pub comment: Option<String>,
    pub why: String,
}

/// Reads what a person newly wrote; quotes and tokens are cut already, `names` are the words of the sender's name: without
/// any, no name signs.
#[must_use]
pub fn read(text: &str, kind: &Kind, names: &[String], phrases: &Phrases) -> Reading {
    read_of(text, kind, &Signer { names, ..Signer::default() }, phrases)
}

/// The same of a sender of whom more is known.
pub(crate) fn read_of(text: &str, kind: &Kind, signer: &Signer<'_>, phrases: &Phrases) -> Reading {
    let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}' || letter == '\u{200b}');
    let nothing = |why: &str| Reading {
        decision: Decision::None,
        answer: None,
        comment: Some(text.to_owned()).filter(|text| !text.is_empty()),
        why: why.to_owned(),
    };
    if text.is_empty() {
        return nothing("nothing new was written");
    }
    match kind {
        Kind::Notification => nothing("a notification takes no answer"),
        Kind::Question { options } => answer(text, options, signer, phrases),
        Kind::Approval => {
            if approves(text, signer, phrases) {
                return Reading {
                    decision: Decision::Approve,
                    answer: None,
                    comment: None,
                    why: "the whole new text is an approval".into(),
                };
            }
            match denies(text, signer, phrases) {
                Denial::Clear { comment } => Reading {
                    decision: Decision::Deny,
                    answer: None,
                    comment,
                    why: "the new text begins with a denial".into(),
                },
                Denial::Contradicted => nothing("it both denies and approves"),
                Denial::None => nothing("it is neither an approval and nothing else, nor a denial"),
            }
        }
    }
}

/// The lines that say something, each with its pieces.
struct Said<'a> {
    text: &'a str,
    /// Where the line begins in the whole text.
    at: usize,
    pieces: Vec<Piece>,
}

fn said(text: &str) -> Vec<Said<'_>> {
    let base = text.as_ptr() as usize;
    lines(text)
        .into_iter()
        .map(edged)
        .filter(|line| {
            // A ruler says nothing, nor does the dash above a name.
            let ruler = line.chars().count() > 2 && line.chars().all(|letter| "-_=*~—–─".contains(letter));
            let ruler = ruler || matches!(*line, "—" | "–" | "__" | "_");
            !line.is_empty() && !ruler
        })
        .map(|line| Said { text: line, at: line.as_ptr() as usize - base, pieces: pieces(line) })
        .collect()
}

fn approves(text: &str, signer: &Signer<'_>, phrases: &Phrases) -> bool {
    const SIGNED_LINES: usize = 10;
    let said = said(text);
    let greeting = usize::from(greets(&said, phrases, |word| {
        signer.writes_to.iter().any(|name| name == word) || is_greeted(word)
    }));
    let body = &said[greeting..];
    let mut approved = false;
    let mut signed = 0;
    let mut named = false;
    for line in body {
        if signed == 0
            && let Some(rest) = after_allow(&line.pieces, phrases)
        {
            approved = true;
            if rest.is_empty() {
                continue;
            }
            // Right behind the phrase a name is what is approved.
            let marked = matches!(line.pieces[line.pieces.len() - rest.len() - 1].what, What::Mark(_) | What::Sign(_));
            let name_first = matches!(&rest[0].what, What::Word(word) if signer.is_named(word));
            if (name_first && !marked) || !is_sign_off(rest, signer, phrases) {
                return false;
            }
            named |= rest.iter().any(|piece| matches!(&piece.what, What::Word(word) if signer.is_named(word)));
            signed = 1;
            continue;
        }
        let own = |piece: &Piece| matches!(&piece.what, What::Word(word) if signer.is_named(word));
        let names_own = line.pieces.iter().any(own);
        let closes = is_name(line.text, signer) || is_sign_off(&line.pieces, signer, phrases);
        // Who signs may write name and title on one line.
        let below = signed > 0 || names_own;
        if !approved || !(closes || (below && is_contact(line.text, named, signer, phrases))) {
            return false;
        }
        named |= names_own;
        signed += 1;
        if signed > SIGNED_LINES {
            return false;
        }
    }
    approved
}

/// Who is greeted where nobody's name is known: a program, or all who read it. A word that is not here may be what is wanted.
fn is_greeted(word: &str) -> bool {
    const GREETED: &str = "\
        agent all assistant bot everybody everyone folks owd robot team there \
        alle zusammen équipe tous toutes equipo todos todas equipe tutti allemaal allen wszystkim zespole";
    GREETED.split_whitespace().any(|known| known == word)
}

/// Whether the first of several lines is a greeting, `Hi Agent,`, and no more; `known` says whom it may name.
fn greets(said: &[Said<'_>], phrases: &Phrases, known: impl Fn(&str) -> bool) -> bool {
    const NAMES: usize = 3;
    let Some(first) = said.first() else { return false };
    let Some(taken) = phrases.greets(&first.pieces) else { return false };
    let mut rest = first.pieces[taken..].iter().peekable();
    let mut names = 0;
    while rest.next_if(|piece| matches!(&piece.what, What::Word(word) if known(word))).is_some() {
        names += 1;
    }
    rest.next_if(|piece| matches!(piece.what, What::Mark(',' | '!' | '.')));
    let decides = (taken..first.pieces.len()).any(|at| {
        let rest = &first.pieces[at..];
        phrases.allows(rest).is_some() || phrases.denies(rest).is_some()
    });
    let addressed = &first.text[first.pieces[taken - 1].end..];
    let doubted = doubts(addressed) || limits(addressed);
    rest.next().is_none() && names <= NAMES && !decides && !doubted && said.len() > 1
}

/// What stands in a line after its allow phrases and their marks; none if it does not begin with one.
fn after_allow<'a>(line: &'a [Piece], phrases: &Phrases) -> Option<&'a [Piece]> {
    let mut rest = line.strip_prefix_mark('¡');
    rest = &rest[phrases.allows(rest)?..];
    loop {
        let after = after_marks(rest)?;
        let Some(taken) = phrases.allows(after) else { return Some(after) };
        // Two phrases without a mark between them may be one sentence ("si aprobado"); signs may follow at once.
        let apart = after.len() < rest.len();
        let signs = matches!(after[0].what, What::Sign(_));
        if !apart && !signs && !previous_is_sign(line, after) {
            return Some(after);
        }
        rest = &after[taken..];
    }
}

fn previous_is_sign(line: &[Piece], rest: &[Piece]) -> bool {
    let at = line.len() - rest.len();
    at > 0 && matches!(line[at - 1].what, What::Sign(_))
}

/// Skips the marks that may end a phrase; none if there is one that puts it in doubt.
fn after_marks(pieces: &[Piece]) -> Option<&[Piece]> {
    let marks = pieces.iter().take_while(|piece| matches!(piece.what, What::Mark(_))).count();
    let mut stops = 0;
    for piece in &pieces[..marks] {
        match piece.what {
            What::Mark('.') => stops += 1,
            What::Mark('!' | ',' | '-') => {}
            // It opens what follows.
            What::Mark('¡') if marks < pieces.len() => {}
            _ => return None,
        }
    }
    // Dots in a row hesitate.
    (stops <= 1).then_some(&pieces[marks..])
}

/// Whether a line, or the rest of one, is thanks, regards and the sender's name, and nothing else.
fn is_sign_off(mut rest: &[Piece], signer: &Signer<'_>, phrases: &Phrases) -> bool {
    const JOINTS: &[&str] = &["and", "&", "+", "und", "et", "y", "e", "en", "i"];
    let mut closed = false;
    while !rest.is_empty() {
        if let Some(taken) = phrases.closes(rest) {
            rest = &rest[taken..];
            closed = true;
            if let Some(What::Word(word)) = rest.first().map(|piece| &piece.what)
                && JOINTS.contains(&word.as_str())
                && phrases.closes(&rest[1..]).is_some()
            {
                rest = &rest[1..];
            }
        } else if let What::Word(word) = &rest[0].what
            && signer.is_named(word)
        {
            rest = &rest[1..];
            closed = true;
        } else {
            let Some(after) = after_marks(rest).filter(|after| after.len() < rest.len()) else { return false };
            rest = after;
        }
    }
    closed
}

enum Denial {
    Clear { comment: Option<String> },
    Contradicted,
    None,
}

fn denies(text: &str, signer: &Signer<'_>, phrases: &Phrases) -> Denial {
    let said = said(text);
    // A no stays one whoever is greeted.
    let body = &said[usize::from(greets(&said, phrases, |_| true))..];
    let Some(first) = body.first() else { return Denial::None };
    let line = first.pieces.strip_prefix_mark('¡');
    let skipped = first.pieces.len() - line.len();
    let Some(mut taken) = phrases.denies(line) else { return Denial::None };
    while let Some(more) = line.get(taken).and_then(|next| match next.what {
        What::Sign(_) => phrases.denies(&line[taken..]),
        What::Word(_) | What::Mark(_) => None,
    }) {
        taken += more;
    }
    let polite = is_sign_off(&line[taken..], signer, phrases);
    match line.get(taken).map(|next| &next.what) {
        _ if polite => {}
        None => {}
        Some(What::Mark(mark)) if *mark != '?' && *mark != '"' => {}
        Some(_) => return Denial::None,
    }
    if line[taken..]
        .iter()
        .take_while(|piece| matches!(piece.what, What::Mark(_)))
        .any(|piece| piece.what == What::Mark('?'))
    {
        return Denial::None;
    }
    let is_mark = |piece: &Piece| matches!(piece.what, What::Mark(_));
    let mut rest =
        std::iter::once((first.text, &line[taken..])).chain(body[1..].iter().map(|line| (line.text, &line.pieces[..])));
    if rest.any(|(text, line)| line.split(is_mark).any(|clause| consents(text, clause, phrases))) {
        return Denial::Contradicted;
    }
    let end = first.at + first.pieces[skipped + taken - 1].end;
    let comment = text[end..]
        .trim_start_matches(|letter: char| letter.is_whitespace() || ".,;:!-–—…。，！；：、*_".contains(letter));
    let comment = without_sign_off(comment, 0, signer, phrases);
    Denial::Clear { comment: Some(comment.to_owned()).filter(|comment| !comment.is_empty()) }
}

/// Whether a clause behind a no says yes all the same: it is an allow phrase, begins with one that nothing limits, or says
/// that nothing stands against it.
fn consents(line: &str, clause: &[Piece], phrases: &Phrases) -> bool {
    const FILLERS: &[&str] =
        &["please", "just", "do", "then", "so", "well", "and", "but", "bitte", "dann", "aber", "y", "et", "e"];
    let begin =
        clause.iter().take_while(|piece| matches!(&piece.what, What::Word(word) if FILLERS.contains(&&word[..])));
    let begin = begin.count();
    (0..=begin).any(|at| {
        let clause = &clause[at..];
        let Some(taken) = phrases.allows(clause).max(phrases.agrees(clause)) else { return false };
        let (Some(next), Some(last)) = (clause.get(taken), clause.last()) else { return true };
        !doubts(&line[next.start..last.end])
    }) || (0..clause.len()).any(|at| phrases.has_no_objection(&clause[at..]))
}

trait Marks {
    fn strip_prefix_mark(&self, mark: char) -> &Self;
}

impl Marks for [Piece] {
    /// Without the mark that Spanish puts before.
    fn strip_prefix_mark(&self, mark: char) -> &Self {
        match self.first() {
            Some(first) if first.what == What::Mark(mark) => &self[1..],
            _ => self,
        }
    }
}

/// Cuts a closing and the name and contact lines under it from the end of free text: what stands under a blank line, or
/// begins with a closing and its comma. Not the first `own` lines, nor what a colon announces.
fn without_sign_off<'a>(text: &'a str, own: usize, signer: &Signer<'_>, phrases: &Phrases) -> &'a str {
    let said = said(text);
    let begins = |at: usize| {
        let line = &said[at];
        let above = at.checked_sub(1).map(|before| &said[before]);
        let gap = above.map(|above| &text[above.at + above.text.len()..line.at]);
        let apart = gap.is_none_or(|gap| gap.matches('\n').count().max(gap.matches('\r').count()) > 1);
        let announced = above.is_some_and(|above| above.text.ends_with([':', '：']));
        let closes = is_sign_off(&line.pieces, signer, phrases);
        !announced
            && ((apart && (closes || is_name(line.text, signer))) || (closes && line.text.ends_with([',', '，'])))
    };
    let cut = (own..said.len()).find(|&at| begins(at) && signs(&said[at..], signer, phrases));
    cut.map_or(text, |at| &text[..said[at].at]).trim()
}

/// Whether under the first of these lines, a closing or a name, all is part of a signature. Whose name is not known may
/// sign with any: nothing is decided by it.
fn signs(block: &[Said<'_>], signer: &Signer<'_>, phrases: &Phrases) -> bool {
    let Some((first, rest)) = block.split_first() else { return false };
    let mut named = is_name(first.text, signer);
    // It may be the first word of a list.
    let mut any_name = signer.names.is_empty() && folded(first.text) != "best";
    rest.iter().all(|line| {
        let name = is_name(line.text, signer) || (any_name && looks_like_a_name(line.text));
        any_name &= !name;
        named |= name;
        name || is_sign_off(&line.pieces, signer, phrases) || is_contact(line.text, named, signer, phrases)
    })
}

fn answer(text: &str, options: &[String], signer: &Signer<'_>, phrases: &Phrases) -> Reading {
    let given =
        |answer: String, why: String| Reading { decision: Decision::Answer, answer: Some(answer), comment: None, why };
    // A text that is nothing but a closing may be an option's label.
    let own = without_sign_off(text, 1, signer, phrases);
    match labelled(text, options).or_else(|| option(own, options)) {
        Some((number, label)) => given(label.clone(), format!("it names option {number}")),
        None => given(own.to_owned(), "the new text is the answer".into()),
    }
}

/// The option that the whole text stands for, with its number from 1: by its label, else by its number. Among options that
/// are numbers a number is a label or nothing.
#[must_use]
pub fn option<'a>(text: &str, options: &'a [String]) -> Option<(usize, &'a String)> {
    let is_digit = |letter: char| plain_digit(letter).is_ascii_digit();
    let wanted = folded(bare(text));
    // `2) us-east` names one twice.
    let twice = |at: usize, label: &str| {
        wanted.strip_prefix(&(at + 1).to_string()).is_some_and(|rest| {
            rest.strip_prefix([')', '.', ':']).is_some_and(|rest| folded(rest.trim()) == folded(bare(label)))
        })
    };
    let by_twice =
        || options.iter().enumerate().find(|(at, label)| twice(*at, label)).map(|(at, label)| (at + 1, label));
    let by_number = || {
        let number = wanted.trim_start_matches("option").trim_start_matches([' ', '#']);
        let numbers = options.iter().any(|label| bare(label).chars().all(is_digit));
        if numbers || number.chars().count() > 3 {
            return None;
        }
        let number: String = number.chars().map(plain_digit).collect();
        let at = number.parse::<usize>().ok()?.checked_sub(1)?;
        options.get(at).map(|label| (at + 1, label))
    };
    match labelled(text, options) {
        Some(found) => Some(found),
        // Several labels differ by their case alone, and this is none of them.
        None if options.iter().any(|label| folded(bare(label)) == wanted) => None,
        None => by_twice().or_else(by_number),
    }
}

/// The option whose label is the whole text: letter for letter, else but for marks around it, else but for its case where
/// that leaves one.
fn labelled<'a>(text: &str, options: &'a [String]) -> Option<(usize, &'a String)> {
    let find = |same: &dyn Fn(&str) -> bool| {
        let mut found = options.iter().enumerate().filter(|(_, label)| same(label));
        let (at, label) = found.next()?;
        Some((at + 1, label, found.next().is_none()))
    };
    let text = text.trim();
    let (at, label, _) = find(&|label| label.trim() == text)
        .or_else(|| find(&|label| bare(label) == bare(text)))
        .or_else(|| find(&|label| folded(bare(label)) == folded(bare(text))).filter(|(_, _, alone)| *alone))?;
    Some((at, label))
}

/// A label without marks around it.
fn bare(text: &str) -> &str {
    edged(text).trim_matches(|letter: char| ".,!;:()[]\"'“”。！，".contains(letter) || letter.is_whitespace())
}

/// A full-width digit as a plain one.
fn plain_digit(letter: char) -> char {
    match letter {
        '０'..='９' => char::from_u32(u32::from(letter) - u32::from('０') + u32::from('0')).unwrap_or(letter),
        _ => letter,
    }
}
