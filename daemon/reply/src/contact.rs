//! The lines under a name. Each is known whole as part of a signature, or it is the person's own words.

use crate::doubt::{doubts, limits};
use crate::phrase::Phrases;
use crate::sign_off::{Signer, is_name};
use crate::titles::{is_company, is_department, is_honour, is_place, is_title};
use crate::words::{edged, folded, pieces};

/// What a part of such a line is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    Name,
    /// A degree or a pronoun.
    Honour,
    Title,
    Department,
    Company,
    Place,
    /// A street with its number, or a postcode with its place.
    Street,
    /// A number to call, an address to write to or to look at.
    Reach,
}

/// Whether the line is one of those that stand under a name, and nothing of it can be meant as a word to us: a number to
/// call, an address, a company, a title from the list. `named`: the sender's own name stood above.
pub(crate) fn is_contact(line: &str, named: bool, signer: &Signer<'_>, phrases: &Phrases) -> bool {
    const LONGEST: usize = 120;
    let line = edged(line);
    if line.is_empty()
        || line.chars().count() > LONGEST
        || line.contains(['?', '!', '…', '"', '“', '„', '«', '？', '！', '。'])
        || line.contains("..")
        || doubts(line)
        || limits(line)
    {
        return false;
    }
    let pieces = pieces(line);
    if (0..pieces.len()).any(|at| phrases.denies(&pieces[at..]).is_some() || phrases.allows(&pieces[at..]).is_some()) {
        return false;
    }
    let part = |text: &str| part_of(text, signer);
    let parts = match part(line) {
        Some(whole) => Some(vec![whole]),
        None => items(line).into_iter().map(part).collect(),
    };
    parts.is_some_and(|parts| {
        let has = |wanted: Part| parts.contains(&wanted);
        let named = named || has(Part::Name);
        !parts.is_empty()
            && parts.iter().all(|part| match part {
                Part::Name | Part::Company | Part::Reach => true,
                // Pronouns may stand alone.
                Part::Honour => has(Part::Name) || (named && line.contains('/')),
                Part::Title | Part::Street => named,
                Part::Department => named && (has(Part::Title) || has(Part::Company)),
                Part::Place => has(Part::Company) || (named && (has(Part::Title) || has(Part::Street))),
            })
    })
}

/// What stands between the bars, dots and commas of a line.
fn items(line: &str) -> Vec<&str> {
    let mut cuts = vec![];
    for (at, letter) in line.char_indices() {
        let end = at + letter.len_utf8();
        let (before, after) = (line[..at].ends_with(char::is_whitespace), line[end..].starts_with(char::is_whitespace));
        let cut = match letter {
            '|' | '·' | '•' | '｜' | '\t' | ')' => true,
            ',' | ';' => after,
            '-' | '–' | '—' | '/' | '(' => before,
            _ => false,
        };
        // `+49 (0)30` is one number.
        let inside = matches!(letter, '(' | ')' | '-' | '/' | '–') && is_phone(line);
        if cut && !inside {
            cuts.push((at, end));
        }
    }
    let mut from = 0;
    let mut found = vec![];
    for (at, end) in cuts {
        found.push(&line[from..at]);
        from = end;
    }
    found.push(&line[from..]);
    found.into_iter().map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn part_of(text: &str, signer: &Signer<'_>) -> Option<Part> {
    let honour = |text: &str| {
        text.split(|letter: char| letter.is_whitespace() || letter == '/').all(|word| is_honour(&folded(word)))
    };
    let parts: [(Part, bool); 8] = [
        (Part::Name, is_name(text, signer)),
        (Part::Reach, is_phone(text) || is_link(text, signer.domain) || is_address(text)),
        (Part::Honour, honour(text)),
        (Part::Title, is_title(text)),
        (Part::Department, is_department(text)),
        (Part::Company, is_company(text, signer.domain)),
        (Part::Place, is_place(text)),
        (Part::Street, is_street(text)),
    ];
    parts.into_iter().find_map(|(part, is_it)| is_it.then_some(part))
}

/// Whether it is a number to call and nothing else: with its country's code, or by its label.
fn is_phone(text: &str) -> bool {
    const DIGITS: std::ops::RangeInclusive<usize> = 7..=15;
    const LABELS: &[&str] = &[
        "tel",
        "telephone",
        "phone",
        "telefon",
        "telefono",
        "teléfono",
        "telefone",
        "téléphone",
        "tél",
        "telefoon",
        "fon",
        "fone",
        "mobile",
        "mobil",
        "mobiel",
        "mob",
        "cell",
        "cellular",
        "cellulare",
        "handy",
        "móvil",
        "movil",
        "celular",
        "telemóvel",
        "portable",
        "gsm",
        "kom",
        "komórka",
        "komórkowy",
        "fax",
        "telefax",
        "durchwahl",
        "whatsapp",
        "電話",
        "携帯",
        "电话",
        "手机",
        "電話番号",
        "전화",
        "휴대폰",
    ];
    /// These say that it is one only where it begins as one.
    const WEAK: &[&str] = &["t", "m", "p", "f", "o", "d", "c", "w", "h", "work", "office", "büro", "direct"];
    let text = text.trim();
    let start = text.find(|letter: char| letter.is_ascii_digit() || matches!(letter, '+' | '(')).unwrap_or(text.len());
    let (label, number) = text.split_at(start);
    let label: Vec<String> = label
        .split(|letter: char| letter.is_whitespace() || ".:：/".contains(letter))
        .map(folded)
        .filter(|word| !word.is_empty())
        .collect();
    let known = |word: &String| LABELS.contains(&word.as_str()) || WEAK.contains(&word.as_str());
    if label.len() > 2 || !label.iter().all(known) {
        return false;
    }
    let (number, extension) = without_extension(number);
    if !extension || !number.chars().all(|letter| letter.is_ascii_digit() || " +()-–./\u{a0}".contains(letter)) {
        return false;
    }
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let coded = number.starts_with('+');
    if number.matches('+').count() > usize::from(coded) {
        return false;
    }
    let begins = coded || number.starts_with(['0', '(']) || label.iter().any(|word| LABELS.contains(&word.as_str()));
    let bare = number.trim_start_matches('+');
    // No country's code begins so, and no number in North America.
    let unreal = digits.ends_with("00000") || (coded && ["0", "10", "11"].iter().any(|no| digits.starts_with(no)));
    begins && (coded || !label.is_empty()) && DIGITS.contains(&digits.len()) && !unreal && !dated(bare) && !is_ip(bare)
}

/// The number without an extension behind it; false: what stands behind it is none.
fn without_extension(number: &str) -> (&str, bool) {
    let Some(at) = number.find(char::is_alphabetic) else { return (number.trim(), true) };
    let (number, rest) = number.split_at(at);
    let digits = ["ext.", "ext", "extension", "x", "durchwahl", "dw", "app.", "int."].iter().find_map(|word| {
        rest.to_lowercase().strip_prefix(word).map(|rest| rest.trim_start_matches([':', '.', ' ']).to_owned())
    });
    let is_one = digits
        .is_some_and(|digits| (1..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()));
    (number.trim(), is_one)
}

/// Whether the numbers between marks are those of a day: `1.12.2026`, `2026-12-01`.
fn is_date(text: &str) -> bool {
    let groups: Option<Vec<u32>> =
        text.trim().split(['.', '-', '/', '–']).map(|group| group.trim().parse().ok()).collect();
    let Some(&[first, second, third]) = groups.as_deref() else { return false };
    let is_year = |year: u32| (1900..2200).contains(&year);
    let is_day = |one: u32, other: u32| (1..=12).contains(&one.min(other)) && (1..=31).contains(&one.max(other));
    (is_day(first, second) && (third < 100 || is_year(third))) || (is_year(first) && is_day(second, third))
}

/// Whether a number is a day, or has one in it, with blanks or without anything between its parts too.
fn dated(number: &str) -> bool {
    let parts = |text: &str| {
        let at = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
        format!("{}-{}-{}", at(0..4), at(4..6), at(6..8))
    };
    is_date(&number.replace(' ', "-"))
        || number.split(' ').any(|word| is_date(word) || (word.len() == 8 && is_date(&parts(word))))
}

fn is_ip(text: &str) -> bool {
    text.trim().parse::<std::net::IpAddr>().is_ok()
}

/// Whether it is an address on the web and nothing else, and one of a company or a person: no page that says something.
fn is_link(text: &str, domain: &str) -> bool {
    const LABELS: &[&str] = &[
        "web", "website", "webseite", "homepage", "site", "url", "internet", "linkedin", "github", "xing", "blog", "w",
        "sitio", "sito", "strona", "www",
    ];
    /// Where people and companies have a page below the first.
    const PROFILES: &[&str] = &[
        "linkedin.com",
        "xing.com",
        "github.com",
        "twitter.com",
        "x.com",
        "facebook.com",
        "instagram.com",
        "youtube.com",
        "mastodon.social",
        "bsky.app",
    ];
    let text = labelled(text, LABELS);
    let (text, twice) = match text.strip_suffix('>').and_then(|text| text.split_once('<')) {
        Some(("", inner)) => (inner, None),
        Some((shown, inner)) => (shown.trim(), Some(inner)),
        None => (text, None),
    };
    if twice.is_some_and(|target| !is_link(target, domain)) || text.contains(char::is_whitespace) {
        return false;
    }
    let lower = text.to_lowercase();
    let scheme = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"));
    let host_and_path = scheme.unwrap_or(&lower).trim_end_matches('/');
    let (host, path) = host_and_path.split_once('/').unwrap_or((host_and_path, ""));
    let bare = host.strip_prefix("www.").unwrap_or(host);
    let is_host = bare.contains('.')
        && bare.split('.').all(|label| {
            !label.is_empty()
                && label.chars().all(|letter| letter.is_alphanumeric() || letter == '-')
                && !label.chars().all(|letter| letter.is_ascii_digit())
        });
    let known = scheme.is_some() || host.len() > bare.len() || (!domain.is_empty() && bare == domain);
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let plain = |segment: &&str| segment.chars().all(|letter| letter.is_alphanumeric() || "-_.@".contains(letter));
    let language = |segment: &&str| segment.len() == 2 && segment.chars().all(char::is_alphabetic);
    let profile = PROFILES.iter().any(|site| bare == *site || bare.ends_with(&format!(".{site}")));
    let page = match segments.len() {
        0 => true,
        1 => language(&segments[0]) || (profile && plain(&segments[0])),
        2 => profile && matches!(segments[0], "in" | "company" | "profile" | "c" | "channel") && plain(&segments[1]),
        _ => false,
    };
    is_host && known && page
}

/// Whether it is a mail address and nothing else.
fn is_address(text: &str) -> bool {
    const LABELS: &[&str] =
        &["email", "e-mail", "mail", "e", "m", "courriel", "correo", "mél", "メール", "邮箱", "电子邮件", "이메일"];
    let text = labelled(text, LABELS);
    let (text, twice) = match text.strip_suffix('>').and_then(|text| text.split_once('<')) {
        Some(("", inner)) => (inner, None),
        Some((shown, inner)) => (shown.trim(), Some(inner)),
        None => (text, None),
    };
    if twice.is_some_and(|target| !is_address(target)) {
        return false;
    }
    let text = text.strip_prefix("mailto:").unwrap_or(text);
    text.split_once('@').is_some_and(|(local, domain)| {
        let plain = |text: &str, marks: &str| {
            !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || marks.contains(letter))
        };
        plain(local, "._+-") && plain(domain, ".-") && domain.contains('.')
    })
}

/// Without its label, if there is one.
fn labelled<'a>(text: &'a str, labels: &[&str]) -> &'a str {
    let text = text.trim();
    let Some(end) = text.find([':', '：', ' ']) else { return text };
    if !labels.contains(&folded(text[..end].trim_end_matches('.')).as_str()) {
        return text;
    }
    text[end..].trim_start_matches([':', '：', ' ', '.'])
}

/// Whether it is a street with the number of a house, or a postcode with a place that is known.
fn is_street(text: &str) -> bool {
    const STREETS: &[&str] = &[
        "street",
        "st",
        "avenue",
        "ave",
        "boulevard",
        "blvd",
        "lane",
        "straße",
        "strasse",
        "str",
        "platz",
        "allee",
        "gasse",
        "rue",
        "calle",
        "avenida",
        "rua",
        "straat",
        "laan",
        "ulica",
        "ul",
    ];
    const GLUED: &[&str] = &["straße", "strasse", "str.", "platz", "allee", "gasse", "straat", "laan", "weg"];
    const SMALL: &[&str] = &["de", "la", "du", "des", "del", "da", "do", "l", "les"];
    let postcode = |word: &str| (4..=6).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((first, rest)) = text.split_once(' ')
        && (postcode(first)
            || first.split_once('-').is_some_and(|(country, code)| country.len() <= 2 && postcode(code)))
    {
        return is_place(rest.trim());
    }
    let number = |word: &str| {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        (1..=4).contains(&digits)
            && word.len() <= digits + 1
            && word[digits..].bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    let mut words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let numbers = words.iter().filter(|word| number(word)).count();
    let at_an_end = words.first().is_some_and(|word| number(word)) || words.last().is_some_and(|word| number(word));
    words.retain(|word| !number(word));
    let glued = |word: &str| {
        let word = folded(word);
        GLUED.iter().any(|end| word.strip_suffix(end).is_some_and(|begin| begin.chars().count() >= 3))
    };
    let street = |word: &str| STREETS.contains(&folded(word.trim_end_matches('.')).as_str());
    let named = |word: &str| {
        word.starts_with(char::is_uppercase) && word.chars().all(|letter| letter.is_alphabetic() || letter == '-')
    };
    let others: Vec<&str> =
        words.iter().copied().filter(|word| !street(word) && !SMALL.contains(&folded(word).as_str())).collect();
    // Of several names before it the first could be what is to be done there.
    let is_one = match others.as_slice() {
        [one] => (words.len() > 1 && words.iter().any(|word| street(word)) && named(one)) || glued(one),
        _ => false,
    };
    numbers == 1 && at_an_end && is_one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact(line: &str, named: bool) -> bool {
        let names = ["alex".to_owned(), "meyer".to_owned()];
        is_contact(
            line,
            named,
            &Signer { names: &names, domain: "example.org", ..Signer::default() },
            &Phrases::default(),
        )
    }

    #[test]
    fn a_second_thought_is_no_contact_line() {
        for line in [
            "Example GmbH | Berlin",
            "Tel. +49 30 1234-5",
            "https://example.org",
            "株式会社サンプル",
            "alex@example.org",
        ] {
            assert!(contact(line, false), "{line}");
        }
        for line in ["Head of Operations", "Example Street 5, Berlin"] {
            assert!(contact(line, true), "{line}");
            assert!(!contact(line, false), "nobody has signed: {line}");
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
            assert!(!contact(line, true), "{line}");
        }
    }

    #[test]
    fn each_part_of_a_contact_line_is_known() {
        for line in [
            "+49 30 1234",
            "+1 (555) 123-4567 ext. 12",
            "Mobile: 0171 1234567",
            "T +49 30 1234567 | M +49 171 1234567",
            "Tel.: 030/1234567, Fax: 030/1234568",
            "E-Mail: alex@example.org",
            "alex@example.org<mailto:alex@example.org>",
            "www.example.org<http://www.example.org/>",
            "example.org",
            "https://www.linkedin.com/in/alex-meyer",
            "Example Software Ltd",
            "Meyer & Söhne GmbH & Co. KG",
            "Acme, Inc.",
            "Senior Software Engineer",
            "Director, Finance",
            "Head of Finance and Operations | Acme Ltd | London",
            "Leiterin Vertrieb",
            "Softwareentwickler:in",
            "Directeur technique",
            "Gerente de Operaciones",
            "営業部 部長",
            "技术总监",
            "개발팀장",
            "Alex Meyer, PhD",
            "Alex Meyer (he/him) | CTO",
            "Beispielstraße 12",
            "12 rue de Rivoli",
            "10115 Berlin",
        ] {
            assert!(contact(line, true), "{line}");
        }
        for line in [
            "100,000",
            "100000",
            "+100 000",
            "+100 000 000",
            "+10%",
            "Tel 100000",
            "Tel 2026-12-01",
            "+1.12.2026",
            "Tel. 10.0.0.12",
            "Am 1.12.2026",
            "Version 1.2.3456",
            "2026-12-01",
            "10:00 - 12:00",
            "10.0.0.12",
            "http://10.0.0.12",
            "https://ci.example.org/1",
            "https://example.org/not-before-monday",
            "https://example.org/?dry=1",
            "Broken https://example.org",
            "db1.example.org",
            "Tell bob@example.org",
            "See Slack | Discuss",
            "Leiter Fragen",
            "Nach Freigabe Durch Leiter",
            "Director Disagrees",
            "Waiting For Director",
            "For Director",
            "Omit Finance Department",
            "Finance Department",
            "Omit Acme Inc",
            "Scope Limited",
            "Deploy To 10.0.0.12",
            "Pay To IBAN 12345678",
            "Berlin",
            "Omit Wall Street 5",
            "10115 Servers",
            "付给示例有限公司",
            "Alex 5",
            "her",
            "Dr.",
            "+2026 12 01",
            "+20 2026-12-01",
            "Phone 20260101",
            "Work 12345678",
            "Office 10000001",
            "Example GmbH...",
            "Alex n",
            "Alex 不",
        ] {
            assert!(!contact(line, true), "{line}");
        }
    }
}
