//! Who signs: the sender's own name, and what stands under it.

use crate::doubt::{doubts, is_doubt, is_limit, limits};
use crate::phrase::Phrases;
use crate::words::{What, edged, folded, hits, pieces};

/// Whether the line is nothing but the sender's own name: `names` are its words.
pub(crate) fn is_name(line: &str, names: &[String]) -> bool {
    let mut own = 0;
    for piece in pieces(line) {
        match piece.what {
            What::Word(word) if names.contains(&word) => own += 1,
            // An initial.
            What::Word(word) if word.chars().count() == 1 => {}
            What::Mark('.' | ',' | '-') => {}
            What::Word(_) | What::Sign(_) | What::Mark(_) => return false,
        }
    }
    (1..=4).contains(&own)
}

/// Whether the line may be a person's name: a few words that begin with capitals, and neither doubt nor limit.
pub(crate) fn looks_like_a_name(line: &str) -> bool {
    let line = edged(line);
    let capital = |word: &str| {
        word.starts_with(char::is_uppercase)
            && word.chars().all(|letter| letter.is_alphabetic() || "-.'’".contains(letter))
    };
    (1..=3).contains(&line.split_whitespace().count())
        && line.split_whitespace().all(capital)
        && !doubts(line)
        && !limits(line)
}

/// Whether the line is one of those that stand under a name: a title, a company, a number, an address; it says nothing.
/// `named`: the sender's own name stood above.
pub(crate) fn is_contact(line: &str, named: bool, phrases: &Phrases) -> bool {
    const WORDS: usize = 8;
    const DIGITS: usize = 6;
    const SMALL: &[&str] = &[
        "of", "the", "and", "for", "at", "de", "la", "du", "des", "der", "die", "das", "und", "für", "von", "van",
        "den", "di", "del", "della", "e", "et", "y", "i", "da", "do", "dos", "en", "w", "z", "&", "|", "/", "·", "•",
        "tel", "phone", "mobile", "fax", "email", "e-mail", "mail", "web", "ext", "m", "t", "mob", "cell",
    ];
    const COMPANIES: &[&str] = &[
        "gmbh",
        "ag",
        "kg",
        "ohg",
        "ug",
        "ltd",
        "limited",
        "inc",
        "llc",
        "llp",
        "plc",
        "corp",
        "corporation",
        "company",
        "co",
        "sa",
        "s.a",
        "sas",
        "sarl",
        "srl",
        "s.r.l",
        "s.p.a",
        "spa",
        "sl",
        "s.l",
        "bv",
        "b.v",
        "nv",
        "n.v",
        "oy",
        "ab",
        "as",
        "sp",
        "lda",
        "ltda",
    ];
    const TITLES: &[&str] = &[
        "head of",
        "director",
        "manager",
        "engineer",
        "developer",
        "architect",
        "lead",
        "officer",
        "president",
        "assistant",
        "consultant",
        "analyst",
        "administrator",
        "founder",
        "partner",
        "professor",
        "dr.",
        "ph.d",
        "ceo",
        "cto",
        "cfo",
        "coo",
        "chief",
        "department",
        "division",
        "sales",
        "marketing",
        "finance",
        "operations",
        "support",
        "specialist",
        "designer",
        "scientist",
        "secretary",
        "university",
        "institute",
        "leiter",
        "entwickler",
        "geschäftsführ",
        "abteilung",
        "vorstand",
        "ingenieur",
        "direct",
        "responsable",
        "gérant",
        "ingénieur",
        "développeu",
        "gerente",
        "ingenier",
        "desarrollador",
        "engenheir",
        "desenvolvedor",
        "responsabile",
        "sviluppator",
        "ingegner",
        "hoofd",
        "ontwikkelaar",
        "kierownik",
        "dyrektor",
        "inżynier",
        "programista",
        "部",
        "課長",
        "経理",
        "工程师",
        "팀장",
        "부장",
    ];
    let line = edged(line);
    let count = line.split_whitespace().count();
    if count == 0 || count > WORDS || line.contains(['?', '!', '…', '"', '“', '„', '«', '？', '！', '。']) {
        return false;
    }
    let pieces = pieces(line);
    if (0..pieces.len()).any(|at| phrases.denies(&pieces[at..]).is_some() || phrases.allows(&pieces[at..]).is_some()) {
        return false;
    }
    if doubts(line) || limits(line) {
        return false;
    }
    let is_address =
        |word: &str| word.contains('@') || ["http", "www.", "<http"].iter().any(|begin| word.starts_with(begin));
    let is_number = |word: &str| word.chars().all(|letter| letter.is_ascii_digit() || "+()-./,".contains(letter));
    let asian = ["株式会社", "有限公司", "주식회사"].iter().any(|kind| {
        let bare = line.replace(' ', "");
        (bare.starts_with(kind) || bare.ends_with(kind)) && bare.chars().count() <= kind.chars().count() + 8
    });
    let looks = asian
        || line.split_whitespace().all(|word| {
            let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
            let capital = bare.starts_with(char::is_uppercase);
            let small = bare.is_empty() || SMALL.contains(&folded(bare).as_str());
            is_address(word) || is_number(word) || capital || small
        });
    let digits = line.bytes().filter(u8::is_ascii_digit).count();
    let company = |word: &str| {
        COMPANIES.contains(
            &folded(word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '.')).trim_end_matches('.'),
        )
    };
    let certain = asian
        || digits >= DIGITS
        || line.split_whitespace().any(|word| is_address(word) || company(word))
        || line.contains(" | ");
    let titled = hits(line, TITLES) > 0 || (digits > 0 && line.contains(','));
    looks && (certain || (named && titled))
}

/// The words of a name or an address by which its owner signs; not those that could be a condition.
pub(crate) fn names_of(display: &str, address: &str) -> Vec<String> {
    /// What addresses are called that are nobody's.
    const ROLES: &[&str] = &[
        "admin", "agent", "bot", "build", "cron", "deploy", "devops", "info", "it", "mail", "office", "ops", "owd",
        "sales", "service", "support", "team", "web",
    ];
    let local = address.split('@').next().unwrap_or_default();
    let words = display.split(|letter: char| !letter.is_alphanumeric() && letter != '\'' && letter != '’');
    words
        .chain(local.split(|letter: char| !letter.is_alphanumeric()))
        .map(folded)
        .filter(|word| {
            word.chars().count() > 1 && !is_doubt(word) && !is_limit(word) && !ROLES.contains(&word.as_str())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_thought_is_no_contact_line() {
        let phrases = Phrases::default();
        for line in [
            "Example GmbH | Berlin",
            "Tel. +49 30 1234-5",
            "https://example.org",
            "株式会社サンプル",
            "alex@example.org",
        ] {
            assert!(is_contact(line, false, &phrases), "{line}");
        }
        assert!(looks_like_a_name("Alex Meyer") && !looks_like_a_name("Skip Tests"));
        for line in ["Head of Operations", "Example Street 5, Berlin"] {
            assert!(is_contact(line, true, &phrases), "{line}");
            assert!(!is_contact(line, false, &phrases), "nobody has signed: {line}");
        }
        for line in [
            "Actually Wait",
            "only staging",
            "Not Yet",
            "Wait Until Monday",
            "P.S. look first",
            "Yes",
            "Denied",
            "Staging Only",
            "Hm?",
            "Staging",
            "For Staging",
            "Dry Run",
            "Max 3",
            "Montag Abend",
            "Condition: Staging",
            "株式会社Xは除く",
        ] {
            assert!(!is_contact(line, true, &phrases), "{line}");
        }
    }
}
