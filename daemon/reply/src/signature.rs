use crate::languages::LANGUAGES;
use crate::phrase::Phrases;
use crate::words::{What, edged, folded, pieces};

/// A line longer than this was not put there by a phone.
const SENT_FROM_LENGTH: usize = 100;
const SENT_FROM_WORDS: usize = 9;

/// Takes away what stands under `-- `, the line of a phone or program ("Sent from my …"), and what gateways put above and
/// below a mail, in one stretch of text.
pub(crate) fn without_signature<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let end = lines.iter().position(|line| is_delimiter(line)).unwrap_or(lines.len());
    let lines = &lines[banner(&lines[..end])..end];
    let end = disclaimer(lines).unwrap_or(lines.len());
    lines[..end].iter().copied().filter(|line| !is_sent_from(line)).collect()
}

/// Lines at the top in which a gateway warns of mail from outside.
fn banner(lines: &[&str]) -> usize {
    const OPENINGS: &[&str] = &[
        "caution:",
        "warning:",
        "external email",
        "external:",
        "[external",
        "*external",
        "this email originated",
        "this message originated",
        "this message came from",
        "achtung:",
        "diese e-mail",
        "attention :",
        "attention:",
        "precaución:",
        "atenção:",
        "attenzione:",
        "let op:",
        "uwaga:",
    ];
    const OUTSIDE: &[&str] = &[
        "outside",
        "external",
        "extern",
        "außerhalb",
        "ausserhalb",
        "extérieur",
        "externe",
        "fuera de",
        "externo",
        "fora da",
        "esterno",
        "esterna",
        "buiten",
        "spoza",
        "zewnętrz",
    ];
    let blank = lines.iter().take_while(|line| line.trim().is_empty()).count();
    let length = lines[blank..].iter().take_while(|line| !line.trim().is_empty()).count();
    let paragraph = folded(&lines[blank..blank + length].join(" "));
    let paragraph = paragraph.trim_start();
    let warns = OPENINGS.iter().any(|opening| paragraph.starts_with(opening))
        && OUTSIDE.iter().any(|word| paragraph.contains(word))
        && paragraph.chars().count() >= 40
        // Something of the person's own must follow.
        && lines[blank + length..].iter().any(|line| !line.trim().is_empty());
    if warns { blank + length } else { 0 }
}

/// Where a footer begins that a company or a virus scanner puts under every mail: a paragraph of its own.
fn disclaimer(lines: &[&str]) -> Option<usize> {
    const OPENINGS: &[&str] = &[
        "confidentiality notice",
        "confidentiality:",
        "confidential:",
        "disclaimer",
        "legal notice",
        "privileged and confidential",
        "this e-mail",
        "this email",
        "this message",
        "the information contained",
        "the information in this",
        "the contents of this",
        "the content of this",
        "notice:",
        "important notice",
        "diese e-mail",
        "diese nachricht",
        "der inhalt dieser",
        "vertraulichkeitshinweis",
        "ce message",
        "ce courriel",
        "cet e-mail",
        "este mensaje",
        "este correo",
        "aviso legal",
        "aviso de confidencialidad",
        "esta mensagem",
        "este e-mail",
        "este email",
        "questo messaggio",
        "questa e-mail",
        "questa email",
        "le informazioni contenute",
        "dit bericht",
        "deze e-mail",
        "de informatie in",
        "ta wiadomość",
        "niniejsza wiadomość",
        "treść tej wiadomości",
        "virus-free",
        "virenfrei",
        "本メール",
        "このメール",
        "本邮件",
        "此邮件",
        "이 메일",
        "본 메일",
    ];
    const TELLING: &[&str] = &[
        "confidential",
        "intended recipient",
        "intended only",
        "intended solely",
        "privileged",
        "virus",
        "vertraulich",
        "bestimmt",
        "confidentiel",
        "destinataire",
        "confidencial",
        "destinatario",
        "destinatário",
        "riservat",
        "vertrouwelijk",
        "geadresseerde",
        "poufn",
        "adresat",
        "avast",
        "avg.com",
        "機密",
        "秘密",
        "机密",
        "保密",
        "기밀",
    ];
    let begins = |at: usize| {
        let above = at.checked_sub(1).map_or("", |above| lines[above]);
        let apart = above.trim().is_empty() || above.trim().chars().all(|letter| "-_=*─".contains(letter));
        let text = folded(edged(lines[at]));
        apart && OPENINGS.iter().any(|opening| text.starts_with(opening))
    };
    let at = (1..lines.len()).find(|at| begins(*at))?;
    let footer = folded(&lines[at..].join(" "));
    let paragraphs = lines[at..].split(|line| line.trim().is_empty()).filter(|part| !part.is_empty()).count();
    let last = lines[at..].iter().rfind(|line| !line.trim().is_empty()).map_or(0, |line| line.chars().count());
    // A short line at the end is a person's: nobody is warned of secrets in a few words.
    let tells = TELLING.iter().any(|word| footer.contains(word))
        && (paragraphs == 1 || last >= 40 || footer.contains("avast") || footer.contains("avg.com"));
    tells.then_some(at)
}

/// `-- ` by the standard; many programs lose the blank.
fn is_delimiter(line: &str) -> bool {
    matches!(line.trim_end(), "--" | "\u{200b}--")
}

/// Whether a program wrote this line to say where it runs.
fn is_sent_from(line: &str) -> bool {
    let line = edged(line);
    if line.is_empty() || line.chars().count() > SENT_FROM_LENGTH {
        return false;
    }
    let mut words = folded(line);
    // A link behind it is no words.
    if let Some(at) = words.find(['<', '(']).or_else(|| words.find("http")) {
        words.truncate(at);
    }
    let words = words.trim().trim_end_matches(['.', '。']);
    if words == "sent from yahoo mail. get the app" {
        return true;
    }
    let by_itself = LANGUAGES
        .iter()
        .flat_map(|language| language.sent_from)
        .any(|part| words.starts_with(part) || (!part.is_ascii() && words.ends_with(part)));
    // What follows a mark is the person's own.
    by_itself
        && !words.contains([',', ';', ':', '!', '?', '.', '…', '，', '。', '、'])
        && words.split_whitespace().count() <= SENT_FROM_WORDS
        && !words.split_whitespace().skip(2).any(is_doubt)
}

/// Whether a word takes something back, in any of the languages.
pub(crate) fn is_doubt(word: &str) -> bool {
    LANGUAGES.iter().any(|language| language.doubt.contains(&word))
}

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

/// Whether the line looks like a name, a title, a company, a number or an address, and says nothing.
pub(crate) fn is_contact(line: &str, phrases: &Phrases) -> bool {
    const WORDS: usize = 8;
    const SMALL: &[&str] = &[
        "of", "the", "and", "for", "at", "de", "la", "du", "des", "der", "die", "das", "und", "für", "von", "van",
        "den", "di", "del", "della", "e", "et", "y", "i", "da", "do", "dos", "en", "w", "z", "&", "|", "/", "·", "•",
        "tel", "phone", "mobile", "fax", "email", "e-mail", "mail", "web", "ext", "m", "t", "mob", "cell",
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
    line.split_whitespace().all(|word| {
        let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let lower = folded(bare);
        let said = is_doubt(&lower);
        let address =
            word.contains('@') || word.starts_with("http") || word.starts_with("www.") || word.starts_with("<http");
        let number = word.chars().all(|letter| letter.is_ascii_digit() || "+()-./,".contains(letter));
        let named = bare.starts_with(char::is_uppercase);
        let company = ["株式会社", "有限公司", "주식회사"].iter().any(|kind| bare.contains(kind));
        let small = bare.is_empty() || SMALL.contains(&lower.as_str());
        !said && (address || number || named || company || small)
    })
}

/// The words of a name or an address by which its owner signs.
pub(crate) fn names_of(display: &str, address: &str) -> Vec<String> {
    let local = address.split('@').next().unwrap_or_default();
    let words = display.split(|letter: char| !letter.is_alphanumeric() && letter != '\'' && letter != '’');
    words
        .chain(local.split(|letter: char| !letter.is_alphanumeric()))
        .map(folded)
        .filter(|word| word.chars().count() > 1 && !is_doubt(word))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_phone_writes_is_cut_and_what_a_person_adds_is_not() {
        for line in [
            "Sent from my iPhone",
            "Get Outlook for Android<https://aka.example/x>",
            "Von meinem iPhone gesendet",
            "Envoyé de mon iPhone",
            "Enviado desde mi iPhone",
            "Inviato da iPhone",
            "iPhoneから送信",
            "发自我的 iPhone",
            "나의 iPhone에서 보냄",
            "Sent with Proton Mail secure email.",
        ] {
            assert!(is_sent_from(line), "{line}");
        }
        for line in
            ["Sent from my iPhone, do not run it", "sent from me but not approved", "It was sent from here", "approve"]
        {
            assert!(!is_sent_from(line), "{line}");
        }
    }

    #[test]
    fn a_second_thought_is_no_contact_line() {
        let phrases = Phrases::default();
        for line in [
            "Head of Operations | Example GmbH",
            "Alex Meyer",
            "Tel. +49 30 1234-5",
            "https://example.org",
            "株式会社サンプル",
        ] {
            assert!(is_contact(line, &phrases), "{line}");
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
        ] {
            assert!(!is_contact(line, &phrases), "{line}");
        }
    }
}
