//! What puts a yes in doubt: the one place that says so, for every line that is not a phrase itself.
//!
//! Whoever takes a line for a machine's (a quote's introduction, a gateway's warning, a phone's signature) or for a
//! sign-off asks here first: a line that may limit or take back what the person said is the person's.

use crate::languages::LANGUAGES;
use crate::words::{What, pieces};

/// The days of the week, written out; in lower case.
const DAYS: &[&str] = &[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "montag",
    "dienstag",
    "mittwoch",
    "donnerstag",
    "freitag",
    "samstag",
    "sonnabend",
    "sonntag",
    "lundi",
    "mardi",
    "mercredi",
    "jeudi",
    "vendredi",
    "samedi",
    "dimanche",
    "lunes",
    "martes",
    "miércoles",
    "jueves",
    "viernes",
    "sábado",
    "domingo",
    "segunda",
    "terça",
    "quarta",
    "quinta",
    "sexta",
    "segunda-feira",
    "terça-feira",
    "quarta-feira",
    "quinta-feira",
    "sexta-feira",
    "lunedì",
    "martedì",
    "mercoledì",
    "giovedì",
    "venerdì",
    "sabato",
    "domenica",
    "maandag",
    "dinsdag",
    "woensdag",
    "donderdag",
    "vrijdag",
    "zaterdag",
    "zondag",
    "poniedziałek",
    "wtorek",
    "środa",
    "czwartek",
    "piątek",
    "sobota",
    "niedziela",
];

/// Times, places and sizes: with the days, under a yes they are a condition. In lower case; of other scripts, parts of words.
const LIMITS: &[&str] = &[
    // Times.
    "today",
    "tonight",
    "tomorrow",
    "morning",
    "noon",
    "afternoon",
    "evening",
    "night",
    "weekend",
    "week",
    "month",
    "year",
    "now",
    "soon",
    "asap",
    "next",
    "heute",
    "morgen",
    "früh",
    "abend",
    "mittag",
    "nachmittag",
    "nacht",
    "woche",
    "demain",
    "matin",
    "midi",
    "soir",
    "nuit",
    "semaine",
    "hoy",
    "mañana",
    "tarde",
    "noche",
    "temprano",
    "semana",
    "hoje",
    "amanhã",
    "manhã",
    "noite",
    "oggi",
    "domani",
    "mattina",
    "sera",
    "notte",
    "settimana",
    "vandaag",
    "ochtend",
    "middag",
    "avond",
    "nacht",
    "week",
    "dziś",
    "jutro",
    "rano",
    "wieczorem",
    "tydzień",
    "tydzien",
    // Places and sizes.
    "staging",
    "stage",
    "production",
    "prod",
    "test",
    "tests",
    "testing",
    "dev",
    "development",
    "sandbox",
    "preview",
    "live",
    "canary",
    "local",
    "dry",
    "run",
    "dry-run",
    "max",
    "min",
    "maximum",
    "minimum",
    "limit",
    "half",
    "part",
    "partly",
    "condition",
    "conditions",
    "provided",
    "backup",
    "root",
    "main",
    "branch",
    "produktion",
    "teilweise",
    // What is to be done instead.
    "use",
    "delete",
    "drop",
    "skip",
    "forget",
    "revoke",
    "conditionally",
    "partially",
    "partial",
    "half",
    "rollback",
    "retry",
    "change",
    "fix",
    "edit",
    "replace",
    // Japanese, Chinese, Korean.
    "今日",
    "明日",
    "月曜",
    "火曜",
    "水曜",
    "木曜",
    "金曜",
    "土曜",
    "日曜",
    "今天",
    "明天",
    "周一",
    "周二",
    "周三",
    "周四",
    "周五",
    "星期",
    "오늘",
    "내일",
    "월요일",
    "화요일",
    "수요일",
    "목요일",
    "금요일",
];

/// Whether a word takes something back, in any of the languages.
pub(crate) fn is_doubt(word: &str) -> bool {
    LANGUAGES.iter().flat_map(|language| language.doubt).any(|doubt| means(word, doubt))
}

/// Whether a word says when, where or how much.
pub(crate) fn is_limit(word: &str) -> bool {
    is_day(word) || LIMITS.iter().any(|limit| means(word, limit))
}

/// Whether a word is a day of the week, written out.
pub(crate) fn is_day(word: &str) -> bool {
    DAYS.contains(&word)
}

/// Whether any word of a text takes something back.
pub(crate) fn doubts(text: &str) -> bool {
    any_word(text, is_doubt)
}

/// Whether any word of a text says when, where or how much.
pub(crate) fn limits(text: &str) -> bool {
    any_word(text, is_limit)
}

fn any_word(text: &str, holds: fn(&str) -> bool) -> bool {
    text.lines().flat_map(pieces).any(|piece| match piece.what {
        What::Word(word) => {
            holds(&word) || word.split(|letter: char| !letter.is_alphanumeric() && letter != '\'').any(holds)
        }
        What::Sign(_) => false,
        What::Mark(mark) => mark == '?',
    })
}

/// Words of scripts that set no blanks between them are found inside others.
fn means(word: &str, listed: &str) -> bool {
    if is_unspaced(listed) { word.contains(listed) } else { word == listed }
}

/// Whether a word is of a script that joins its words or glues endings to them.
pub(crate) fn is_unspaced(word: &str) -> bool {
    word.chars()
        .any(|letter| matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'))
}
