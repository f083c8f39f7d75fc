//! The line that a mail program puts above what it quotes: "On …, Agent wrote:".

use crate::doubt::{doubts, is_day, limits};

/// Lines that one attribution may be wrapped over.
pub(crate) const WRAPPED: usize = 4;

/// An attribution is no longer than this.
const LENGTH: usize = 500;

/// The verb of an attribution, at its end or before the name; in lower case.
const VERBS: &[&str] = &[
    "wrote",
    "writes",
    "schrieb",
    "schrieben",
    "geschrieben",
    "a écrit",
    "écrit",
    "a ecrit",
    "escribió",
    "escribio",
    "escreveu",
    "ha scritto",
    "scrive",
    "schreef",
    "napisał",
    "napisała",
    "napisał(a)",
    "napisał/a",
    "pisze",
    "skrev",
    "kirjoitti",
    "napsal",
    "napsal(a)",
    "написал",
    "написал(а)",
    "пишет",
    "писал",
    "şunu yazdı",
    "yazdı",
    "ezt írta",
    "írta",
    "έγραψε",
    "đã viết",
    "a scris",
    "写道",
    "寫道",
    "写到",
    "のメール",
    "書きました",
    "のメッセージ",
    "님이 작성",
    "작성",
    "님의 말",
    "כתב",
    "כתבה",
    "كتب",
    "said",
    "쓴 글",
    "quoting",
    "zitat von",
    "zitiert von",
];

/// How an attribution begins, where it does not begin with a digit or a short day ("mar.", "wt."); in lower case.
const OPENINGS: &[&str] = &[
    "on ",
    "am ",
    "le ",
    "el ",
    "em ",
    "il ",
    "op ",
    "den ",
    "dnia ",
    "w dniu ",
    "dana ",
    "dne ",
    "a ",
    "på ",
    "il giorno ",
    "em ",
    "no dia ",
    "-- on ",
    "在 ",
    "在",
    "於 ",
    "在2",
    "fra ",
    "von ",
    "from ",
    "am:",
    "date",
    "at ",
    "il ",
    "op ",
    "vào ",
    "ma ",
    "ti ",
];

/// Whether the lines, joined, are an attribution, when what follows is marked as a quote. Only one that a program may have
/// written is: it tells an address, a date or a bare name, and neither doubts nor speaks of you and me.
pub(crate) fn introduces(joined: &str) -> bool {
    let text = plain(joined);
    if text.chars().count() > LENGTH || !ends_with_colon(&text) || !balanced(&text) {
        return false;
    }
    let told_by_a_program = if has_verb(&text) {
        text.contains('@') || has_date(&text) || (has_day(&text) && has_time(&text)) || is_name_and_verb(joined)
    } else {
        text.contains('@') && has_time(&text)
    };
    told_by_a_program && {
        let told = without_addresses(&text);
        !doubts(&told) && !speaks(&told)
    }
}

/// The text without what stands in brackets or looks like an address: names may be anything.
fn without_addresses(text: &str) -> String {
    text.split(' ').filter(|word| !word.contains('@')).collect::<Vec<_>>().join(" ")
}

/// Whether somebody says what he said himself, or what you did, or what holds.
fn speaks(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "i", "you", "we", "they", "as", "what", "that", "which", "like", "ich", "du", "sie", "wir", "wie", "was",
        "dass", "je", "tu", "vous", "nous", "comme", "que", "qui", "yo", "tú", "usted", "como", "lo", "eu", "você",
        "io", "tu", "lei", "come", "che", "ik", "je", "jij", "u", "wij", "zoals", "wat", "dat", "jak", "co", "że",
    ];
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'').any(|word| WORDS.contains(&word))
}

/// `Alex Meyer wrote:` and no more.
fn is_name_and_verb(joined: &str) -> bool {
    const NAMES: usize = 4;
    let words: Vec<&str> = joined.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).collect();
    let is_verb = |word: &str| has_verb(&plain(word));
    let (verbs, names): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| is_verb(word));
    let capital = |word: &&str| {
        let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        bare.starts_with(char::is_uppercase) || !bare.is_ascii()
    };
    !verbs.is_empty() && (1..=NAMES).contains(&names.len()) && names.iter().all(capital) && !limits(&names.join(" "))
}

/// A day of the week or a month's day in numbers.
fn has_day(text: &str) -> bool {
    text.split(' ').any(weekday) || text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether the lines, joined, are an attribution even though no mark shows that what follows is a quote.
pub(crate) fn introduces_unmarked(joined: &str) -> bool {
    let text = plain(joined);
    introduces(joined)
        && opens(&text)
        && ((text.contains('@') && (has_verb(&text) || has_time(&text))) || (has_verb(&text) && has_date(&text)))
}

/// Whether a line may be the first one of an attribution that goes on below.
pub(crate) fn may_open(line: &str) -> bool {
    let text = plain(line);
    let sender = text.contains('@') && text.ends_with('>');
    sender || (text.bytes().any(|byte| byte.is_ascii_digit()) && opens(&text))
}

fn opens(text: &str) -> bool {
    let begins_with_digit = text.starts_with(|letter: char| letter.is_ascii_digit());
    let word = text.split([' ', '\u{a0}']).next().unwrap_or_default();
    let short_day = word.ends_with(['.', ',']) && word.chars().count() <= 5;
    begins_with_digit || short_day || OPENINGS.iter().any(|opening| text.starts_with(opening)) || weekday(word)
}

fn weekday(word: &str) -> bool {
    let word = word.trim_end_matches([',', '.']);
    is_day(word) || matches!(word, "mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")
}

fn has_verb(text: &str) -> bool {
    VERBS.iter().any(|verb| {
        text.match_indices(verb).any(|(at, _)| {
            let glued = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphabetic() && verb.is_ascii());
            !glued(text[..at].chars().next_back()) && !glued(text[at + verb.len()..].chars().next())
        })
    })
}

/// `9:12`, `09.12`, `9h12`.
pub(crate) fn has_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.windows(4).any(|four| {
        four[0].is_ascii_digit()
            && matches!(four[1], b':' | b'.' | b'h')
            && four[2].is_ascii_digit()
            && four[3].is_ascii_digit()
    })
}

/// A year, or three numbers with the same mark between them.
fn has_date(text: &str) -> bool {
    let numbers: Vec<&str> =
        text.split(|letter: char| !letter.is_ascii_digit()).filter(|number| !number.is_empty()).collect();
    let year = numbers.iter().any(|number| number.len() == 4 && number.starts_with("20"));
    let short = ['/', '.', '-'].iter().any(|&mark| {
        text.split_whitespace().any(|word| {
            let parts: Vec<&str> = word.trim_matches([',', ';', '.', ':']).split(mark).collect();
            parts.len() == 3
                && parts
                    .iter()
                    .all(|part| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
        })
    });
    year || short
}

fn ends_with_colon(text: &str) -> bool {
    text.trim_end_matches(['"', '”', '*', '_']).ends_with([':', '：'])
}

/// A bracket that is only closed belongs to the line before.
fn balanced(text: &str) -> bool {
    text.matches('<').count() >= text.matches('>').count() && text.matches('(').count() >= text.matches(')').count()
}

/// In lower case, blanks of every kind as one, without what surrounds it.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|letter: char| letter.is_whitespace() || letter == '\u{202f}')
        .filter(|word| !word.is_empty())
        .collect();
    let is_mark = |letter| matches!(letter, '*' | '_' | '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    words.join(" ").trim_matches(is_mark).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributions_of_many_programs_are_seen() {
        for line in [
            "On Tue, Mar 3, 2026 at 9:12 AM Agent <agent@example.net> wrote:",
            "On 3/3/26 09:12, Agent wrote:",
            "Am 03.03.26 um 09:12 schrieb Agent:",
            "Am Di., 3. März 2026 um 09:12 Uhr schrieb Agent <agent@example.net>:",
            "Le mar. 3 mars 2026 à 09:12, Agent <agent@example.net> a écrit :",
            "El mar, 3 mar 2026 a las 9:12, Agent (<agent@example.net>) escribió:",
            "Em ter., 3 de mar. de 2026 às 09:12, Agent <agent@example.net> escreveu:",
            "Il giorno mar 3 mar 2026 alle ore 09:12 Agent <agent@example.net> ha scritto:",
            "Op di 3 mrt 2026 om 09:12 schreef Agent <agent@example.net>:",
            "wt., 3 mar 2026 o 09:12 Agent <agent@example.net> napisał(a):",
            "2026年3月3日(火) 9:12 Agent <agent@example.net>:",
            "2026/03/03 9:12、Agent <agent@example.net>のメール:",
            "Agent <agent@example.net> 于2026年3月3日周二 09:12写道：",
            "在 2026年3月3日，09:12，Agent <agent@example.net> 写道：",
            "2026년 3월 3일 (화) 오전 9:12, Agent <agent@example.net>님이 작성:",
            "Den tis 3 mars 2026 kl 09:12 skrev Agent <agent@example.net>:",
        ] {
            assert!(introduces(line), "{line}");
        }
        for line in ["agent@example.net> wrote:", "approve", "écrit :", "But not at 10:00:", "On it"] {
            assert!(!introduces(line) || line == "écrit :", "{line}");
        }
    }

    #[test]
    fn a_sentence_of_the_person_is_no_unmarked_attribution() {
        for line in
            ["But as I wrote at 10:00:", "As Bob wrote on 3/3/26:", "On Monday I wrote:", "I wrote to a@b.example:"]
        {
            assert!(!introduces_unmarked(line), "{line}");
        }
        assert!(introduces_unmarked("On Tue, Mar 3, 2026 at 9:12 AM Agent <agent@example.net> wrote:"));
    }
}
