use std::fmt;
use std::sync::LazyLock;

use crate::doubt::{is_doubt, is_limit};
use crate::languages::LANGUAGES;
use crate::words::{Piece, What, folded, pieces};

/// The words that approve, deny, greet and close, in every language of [`LANGUAGES`] and from the configuration.
///
/// The grammar of an approval, over the whole new text: a greeting on a line of its own, if there is one; one allow
/// phrase or several, apart by `,`, `.`, `!`, a dash or a line end; then a sign-off, if there is one: thanks, regards,
/// the sender's own name, contact lines that are known whole (a number to call, an address, a company, a title), "sent from …". A denial: a deny phrase, then nothing or a
/// mark and a comment that holds no allow phrase of its own. Everything else is neither.
#[derive(Clone, Debug)]
pub struct Phrases {
    built_in: &'static LazyLock<BuiltIn>,
    own_allow: Vec<Phrase>,
    own_deny: Vec<Phrase>,
}

/// Those of [`LANGUAGES`], made of their patterns once, when the first reply is read.
static BUILT_IN: LazyLock<BuiltIn> = LazyLock::new(BuiltIn::new);

#[derive(Debug)]
struct BuiltIn {
    allow: Vec<Phrase>,
    deny: Vec<Phrase>,
    closing: Vec<Phrase>,
    greeting: Vec<Phrase>,
    agreement: Vec<Phrase>,
    no_objection: Vec<Phrase>,
}

/// Why a phrase of the configuration cannot be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PhraseError {
    /// It has no word, or something else than words.
    NotWords { phrase: String },
    /// It means both.
    Both { phrase: String },
    /// It is what people write to take a yes back or to put it off, or a greeting, or thanks.
    Unclear { phrase: String },
}

impl fmt::Display for PhraseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWords { phrase } => write!(out, "`{phrase}` is not a phrase: write words, without marks"),
            Self::Both { phrase } => write!(out, "`{phrase}` would both approve and deny; take it out of one"),
            Self::Unclear { phrase } => {
                write!(
                    out,
                    "`{phrase}` puts a yes in doubt, greets or thanks; write a phrase that says yes or no alone"
                )
            }
        }
    }
}

impl std::error::Error for PhraseError {}

impl Default for Phrases {
    fn default() -> Self {
        Self { built_in: &BUILT_IN, own_allow: vec![], own_deny: vec![] }
    }
}

impl BuiltIn {
    fn new() -> Self {
        let all = |of: fn(&crate::Language) -> &'static [&'static str]| {
            LANGUAGES.iter().flat_map(of).map(|pattern| Phrase::pattern(pattern)).collect()
        };
        Self {
            allow: all(|language| language.allow),
            deny: all(|language| language.deny),
            closing: all(|language| language.closing),
            greeting: all(|language| language.greeting),
            agreement: AGREEMENT.iter().map(|pattern| Phrase::pattern(pattern)).collect(),
            no_objection: NO_OBJECTION.iter().map(|pattern| Phrase::pattern(pattern)).collect(),
        }
    }
}

impl Phrases {
    /// The built-in phrases and some more, as the configuration has them: plain words.
    ///
    /// # Errors
    ///
    /// If one is no words, means its opposite already, or is known as a greeting or as thanks; one that is to approve may not
    /// be made of words that take a yes back or limit it either.
    pub fn with(allow: &[String], deny: &[String]) -> Result<Self, PhraseError> {
        let mut phrases = Self::default();
        for phrase in allow {
            let plain = Phrase::plain(phrase)?;
            let words = pieces(phrase);
            if longest(phrases.deny(), &words) == Some(words.len()) {
                return Err(PhraseError::Both { phrase: phrase.clone() });
            }
            if phrases.is_polite(&words) || words.iter().all(is_doubtful) {
                return Err(PhraseError::Unclear { phrase: phrase.clone() });
            }
            phrases.own_allow.push(plain);
        }
        for phrase in deny {
            let plain = Phrase::plain(phrase)?;
            let words = pieces(phrase);
            if longest(phrases.allow(), &words) == Some(words.len()) {
                return Err(PhraseError::Both { phrase: phrase.clone() });
            }
            if phrases.is_polite(&words) {
                return Err(PhraseError::Unclear { phrase: phrase.clone() });
            }
            phrases.own_deny.push(plain);
        }
        Ok(phrases)
    }

    /// Whether it is thanks or a greeting and no more.
    fn is_polite(&self, words: &[Piece]) -> bool {
        [self.closes(words), self.greets(words)].contains(&Some(words.len()))
    }

    fn allow(&self) -> impl Iterator<Item = &Phrase> {
        self.built_in.allow.iter().chain(&self.own_allow)
    }

    fn deny(&self) -> impl Iterator<Item = &Phrase> {
        self.built_in.deny.iter().chain(&self.own_deny)
    }

    /// How many pieces an allow phrase takes at the beginning; the longest.
    pub(crate) fn allows(&self, pieces: &[Piece]) -> Option<usize> {
        longest(self.allow(), pieces).or_else(|| sign(pieces, &ALLOW_SIGNS))
    }

    pub(crate) fn denies(&self, pieces: &[Piece]) -> Option<usize> {
        longest(self.deny(), pieces).or_else(|| sign(pieces, &DENY_SIGNS))
    }

    pub(crate) fn closes(&self, pieces: &[Piece]) -> Option<usize> {
        longest(&self.built_in.closing, pieces)
    }

    pub(crate) fn greets(&self, pieces: &[Piece]) -> Option<usize> {
        longest(&self.built_in.greeting, pieces)
    }

    /// What is too vague for a yes, and enough to make a no unclear.
    pub(crate) fn agrees(&self, pieces: &[Piece]) -> Option<usize> {
        longest(&self.built_in.agreement, pieces)
    }

    pub(crate) fn has_no_objection(&self, pieces: &[Piece]) -> bool {
        longest(&self.built_in.no_objection, pieces).is_some()
    }
}

const AGREEMENT: &[&str] = &[
    "?it_is|it's|that_is|that's|this_is|all fine|ok|okay|alright|good",
    "all_right",
    "of_course",
    "sure",
    "in_ordnung|passt|gerne|natürlich|klar",
    "d'accord|pas_de_problème|bien_sûr",
    "está_bien|de_acuerdo|claro|por_supuesto",
    "está_bem|tudo_bem|pode|claro",
    "va_bene|d'accordo|certo",
    "is_goed|prima|in_orde|natuurlijk",
    "w_porządku|dobrze|oczywiście",
    "問題ありません|大丈夫です",
    "没问题|可以|好的",
    "괜찮습니다|문제없습니다",
];

const NO_OBJECTION: &[&str] = &[
    "no|not|any|without objection|objections|problem|problems",
    "nothing against",
    "keine|ohne einwand|einwände|bedenken|probleme",
    "nichts dagegen",
    "aucune|pas|sans d'objection|objection|objections|problème",
    "ninguna|sin objeción|objeciones|problema",
    "nenhuma|sem objeção|objeções|problema",
    "nessuna|senza obiezione|obiezioni|problema",
    "geen bezwaar|bezwaren|probleem",
    "bez zastrzeżeń|sprzeciwu",
    "異議ありません|異議なし",
    "没有异议|没意见|沒有異議",
    "이의_없습니다|이의없습니다",
];

fn is_doubtful(piece: &Piece) -> bool {
    matches!(&piece.what, What::Word(word) if is_doubt(word) || is_limit(word))
}

const ALLOW_SIGNS: [char; 4] = ['👍', '✅', '✔', '☑'];
const DENY_SIGNS: [char; 6] = ['👎', '❌', '✖', '🚫', '⛔', '🛑'];

fn sign(pieces: &[Piece], signs: &[char]) -> Option<usize> {
    matches!(pieces.first()?.what, What::Sign(sign) if signs.contains(&sign)).then_some(1)
}

fn longest<'a>(phrases: impl IntoIterator<Item = &'a Phrase>, pieces: &[Piece]) -> Option<usize> {
    phrases.into_iter().filter_map(|phrase| phrase.longest(pieces)).max()
}

/// Words in a row; each slot is one of several wordings and may be left out.
#[derive(Clone, Debug)]
struct Phrase(Vec<Slot>);

#[derive(Clone, Debug)]
struct Slot {
    optional: bool,
    wordings: Vec<Vec<String>>,
}

impl Phrase {
    /// Slots apart by blanks: `a|b` is one or the other, `_` joins the words of one wording, `?` before a slot says that
    /// it may be left out.
    fn pattern(pattern: &str) -> Self {
        let slot = |slot: &str| {
            let (optional, wordings) = slot.strip_prefix('?').map_or((false, slot), |rest| (true, rest));
            let wordings = wordings.split('|').map(|wording| wording.split('_').map(folded).collect()).collect();
            Slot { optional, wordings }
        };
        Self(pattern.split(' ').map(slot).collect())
    }

    fn plain(phrase: &str) -> Result<Self, PhraseError> {
        let word = |piece: &Piece| match &piece.what {
            What::Word(word) => Some(Slot { optional: false, wordings: vec![vec![word.clone()]] }),
            What::Sign(_) | What::Mark(_) => None,
        };
        let slots: Option<Vec<Slot>> = pieces(phrase).iter().map(word).collect();
        slots
            .filter(|slots| !slots.is_empty())
            .map(Self)
            .ok_or_else(|| PhraseError::NotWords { phrase: phrase.to_owned() })
    }

    /// How many pieces it takes at the beginning, at most; never none.
    fn longest(&self, pieces: &[Piece]) -> Option<usize> {
        let mut ends = vec![0];
        for slot in &self.0 {
            let mut reached = if slot.optional { ends.clone() } else { vec![] };
            for &end in &ends {
                let rest = &pieces[end..];
                reached.extend(slot.wordings.iter().filter(|words| starts(rest, words)).map(|words| end + words.len()));
            }
            reached.sort_unstable();
            reached.dedup();
            ends = reached;
        }
        ends.last().copied().filter(|end| *end > 0)
    }
}

fn starts(pieces: &[Piece], words: &[String]) -> bool {
    pieces.len() >= words.len()
        && pieces.iter().zip(words).all(|(piece, wanted)| matches!(&piece.what, What::Word(word) if word == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_takes_the_longest_it_can() {
        let phrase = Phrase::pattern("?please go_ahead|proceed ?please");
        let taken = |text: &str| phrase.longest(&pieces(text));
        assert_eq!(taken("go ahead please"), Some(3));
        assert_eq!(taken("please proceed now"), Some(2));
        assert_eq!(taken("go, ahead"), None);
    }

    #[test]
    fn no_phrase_both_approves_and_denies() {
        let phrases = Phrases::default();
        for language in LANGUAGES {
            for pattern in language.allow.iter().chain(language.closing).chain(language.greeting) {
                let words = pieces(&pattern.replace('?', "").replace('_', " ").replace('|', " . "));
                for from in 0..words.len() {
                    assert_eq!(phrases.denies(&words[from..=from]), None, "{}: {pattern}", language.name);
                }
            }
        }
    }

    #[test]
    fn the_configuration_adds_plain_phrases() {
        let own = |allow: &[&str], deny: &[&str]| {
            let owned = |phrases: &[&str]| phrases.iter().map(|&phrase| phrase.to_owned()).collect::<Vec<_>>();
            Phrases::with(&owned(allow), &owned(deny))
        };
        let phrases = own(&["Make it so"], &["belay that"]).expect("plain phrases");
        assert_eq!(phrases.allows(&pieces("make it so")), Some(3));
        assert_eq!(phrases.denies(&pieces("Belay that!")), Some(2));
        assert!(matches!(own(&["no way"], &[]), Err(PhraseError::Both { .. })));
        assert!(matches!(own(&[], &["approved"]), Err(PhraseError::Both { .. })));
        assert!(matches!(own(&["yes?"], &[]), Err(PhraseError::NotWords { .. })));
        assert!(matches!(own(&[""], &[]), Err(PhraseError::NotWords { .. })));
        assert!(matches!(own(&["ok"], &["OK"]), Err(PhraseError::Both { .. })));
        for unclear in ["later", "thanks", "Thank you", "hello", "only", "not yet", "morgen", "merci"] {
            assert!(matches!(own(&[unclear], &[]), Err(PhraseError::Unclear { .. })), "{unclear}");
        }
        assert!(matches!(own(&[], &["thanks"]), Err(PhraseError::Unclear { .. })));
        assert!(own(&["ok", "make it so", "run the tests"], &["later", "hold on"]).is_ok());
    }
}
