//! Who signs: the sender's own name.

use std::sync::LazyLock;

use crate::doubt::{is_doubt, is_limit, is_unspaced};
use crate::phrase::Phrases;
use crate::titles::{is_honour, is_of_title};
use crate::words::{What, edged, folded, pieces};

static BUILT_IN: LazyLock<Phrases> = LazyLock::new(Phrases::default);

/// Whose signature may stand under a text; what is not known is empty, and then nobody's name does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Signer<'a> {
    /// The words of the name.
    pub(crate) names: &'a [String],
    /// Of the mail address.
    pub(crate) domain: &'a str,
    /// The words of the names to whom it is written, whom the sender may greet.
    pub(crate) writes_to: &'a [String],
}

impl Signer<'_> {
    /// Whether a word is of the name. Where names are written without blanks, a part of one is too.
    pub(crate) fn is_named(&self, word: &str) -> bool {
        let part = |name: &String| name.starts_with(word) || name.ends_with(word);
        let own = |word: &str| self.names.iter().any(|name| name == word);
        own(word)
            || (word.contains('-') && word.split('-').all(own))
            || (is_unspaced(word) && word.chars().count() > 1 && self.names.iter().any(part))
    }
}

/// Whether the line is nothing but the sender's own name.
pub(crate) fn is_name(line: &str, signer: &Signer<'_>) -> bool {
    let mut own = 0;
    for piece in pieces(line) {
        match &piece.what {
            What::Word(word) if signer.is_named(word) => own += 1,
            // An initial; a single letter of another script may be a whole word.
            What::Word(word)
                if word.chars().count() == 1 && line[piece.start..piece.end].chars().all(char::is_uppercase) => {}
            What::Word(word) if is_honour(word) => {}
            What::Mark('.' | ',' | '-') => {}
            What::Word(_) | What::Sign(_) | What::Mark(_) => return false,
        }
    }
    // Dots in a row hesitate.
    (1..=4).contains(&own) && !line.contains("..")
}

/// Whether the line may be the name of somebody who is not known: a few words that begin with capitals. Only where
/// nothing is decided by it.
pub(crate) fn looks_like_a_name(line: &str) -> bool {
    let line = edged(line);
    let capital = |word: &str| {
        word.starts_with(char::is_uppercase)
            && word.chars().all(|letter| letter.is_alphabetic() || "-.'’".contains(letter))
    };
    (1..=3).contains(&line.split_whitespace().count()) && line.split_whitespace().all(capital)
}

/// The words of a name or an address by which its owner signs; not those that could be a condition.
pub(crate) fn names_of(display: &str, address: &str) -> Vec<String> {
    /// What addresses are called that are nobody's.
    const ROLES: &str = "\
        admin agent alerts approval approvals billing bot build cancel careers contact cron deploy deployment \
        devops hello help helpdesk info infra jobs mail monitoring news noc office oncall ops orders owd \
        postmaster press region release releases reply root server service team web webmaster";
    let is_role = |word: &String| ROLES.split_whitespace().any(|role| role == word);
    called(display, address).into_iter().filter(|word| !is_role(word)).collect()
}

/// The words of a name or an address by which others call its owner; not those that could be a condition.
pub(crate) fn called(display: &str, address: &str) -> Vec<String> {
    let decides = |word: &str| {
        let pieces = pieces(word);
        BUILT_IN.denies(&pieces).is_some() || BUILT_IN.allows(&pieces).is_some()
    };
    let local = address.split('@').next().unwrap_or_default();
    let words = display.split(|letter: char| !letter.is_alphanumeric() && letter != '\'' && letter != '’');
    words
        .chain(local.split(|letter: char| !letter.is_alphanumeric()))
        .map(folded)
        .filter(|word| {
            word.chars().count() > 1
                && word.chars().all(|letter| letter.is_alphabetic() || letter == '\'')
                && !is_doubt(word)
                && !is_limit(word)
                && !is_of_title(word)
                && !decides(word)
        })
        .collect()
}
