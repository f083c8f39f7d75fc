use crate::doubt::{doubts, hits, is_doubt, is_limit, limits};
use crate::languages::LANGUAGES;
use crate::phrase::Phrases;
use crate::words::{What, edged, folded, pieces};

/// A line longer than this was not put there by a phone.
const SENT_FROM_LENGTH: usize = 100;
const SENT_FROM_WORDS: usize = 12;

/// What such a line names: it is one only with a device or a program in it.
const DEVICES: &[&str] = &[
    "iphone",
    "ipad",
    "ipod",
    "android",
    "samsung",
    "galaxy",
    "huawei",
    "xiaomi",
    "redmi",
    "pixel",
    "oneplus",
    "motorola",
    "nokia",
    "xperia",
    "blackberry",
    "windows",
    "outlook",
    "yahoo",
    "gmail",
    "google",
    "aol",
    "proton",
    "tuta",
    "fairemail",
    "k-9",
    "k9",
    "thunderbird",
    "spark",
    "airmail",
    "bluemail",
    "mailbird",
    "mailspring",
    "canary",
    "macbook",
    "apple",
    "ios",
    "web.de",
    "gmx",
    "t-online",
    "telekom",
    "orange",
    "free mobile",
    "laposte",
    "libero",
    "onet",
    "interia",
    "foxmail",
    "qq",
    "163",
    "网易",
    "邮箱",
    "手机",
    "小米",
    "华为",
    "スマートフォン",
    "スマホ",
    "携帯",
    "docomo",
    "네이버",
    "카카오",
    "휴대폰",
    "스마트폰",
    "mobile device",
    "mobilgerät",
    "my mobile",
    "my phone",
    "my cell",
    "mobiltelefon",
    "handy",
    "smartphone",
    "tablet",
    "téléphone",
    "móvil",
    "celular",
    "teléfono",
    "telemóvel",
    "telefono",
    "cellulare",
    "telefoon",
    "mobiel",
    "telefonu",
    "on the go",
    "unterwegs",
    "fastmail",
    "zoho",
    "superhuman",
    "front",
    "hey.com",
    "mutt",
    "roundcube",
    "nextcloud",
];

/// Takes away what stands under `-- `, the line of a phone or program ("Sent from my …"), and what gateways put above and
/// below a mail, in one stretch of text.
pub(crate) fn without_signature<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let end = (0..lines.len()).find(|at| is_delimiter(&lines[*at..])).unwrap_or(lines.len());
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
    /// A warning speaks of mails, their senders and what is in them; a person's, of what is to be done.
    const OF_MAIL: &[&str] = &[
        "email",
        "e-mail",
        " mail",
        "message",
        "sender",
        "originated",
        "came from",
        "click",
        "link",
        "attachment",
        "organization",
        "organisation",
        "network",
        "recogni",
        "phishing",
        "domain",
        "nachricht",
        "absender",
        "klick",
        "anhäng",
        "anlagen",
        "unternehmen",
        "courriel",
        "expéditeur",
        "pièce",
        "liens",
        "cliqu",
        "provient",
        "correo",
        "mensaje",
        "remitente",
        "enlace",
        "adjunto",
        "organización",
        "haga clic",
        "mensagem",
        "remetente",
        "anexo",
        "organização",
        "clique",
        "messaggio",
        "mittente",
        "allegat",
        "organizzazione",
        "clicca",
        "bericht",
        "afzender",
        "bijlage",
        "organisatie",
        "klik",
        "afkomstig",
        "wiadomość",
        "nadawc",
        "załącznik",
        "organizacj",
        "pochodzi",
    ];
    let blank = lines.iter().take_while(|line| line.trim().is_empty()).count();
    let length = lines[blank..].iter().take_while(|line| !line.trim().is_empty()).count();
    let paragraph = folded(&lines[blank..blank + length].join(" "));
    let paragraph = paragraph.trim_start();
    let warns = OPENINGS.iter().any(|opening| paragraph.starts_with(opening))
        && OUTSIDE.iter().any(|word| paragraph.contains(word))
        && hits(paragraph, OF_MAIL) >= 3
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
    /// What such a footer speaks of; a person who is afraid for a secret says one of these, not several.
    const TELLING: &[&str] = &[
        // English.
        "confidential",
        "intended",
        "recipient",
        "privileged",
        "disclos",
        "copying",
        "distribut",
        "delet",
        "notify",
        "in error",
        "unauthori",
        "prohibited",
        "sender",
        "attachment",
        "addressee",
        "virus",
        "legally",
        "proprietary",
        // German.
        "vertraulich",
        "bestimmt",
        "adressat",
        "empfänger",
        "absender",
        "vernicht",
        "lösch",
        "irrtümlich",
        "unbefugt",
        "weitergabe",
        "anhäng",
        "anlagen",
        "gesetzlich",
        // French.
        "confidentiel",
        "destinataire",
        "expéditeur",
        "détrui",
        "par erreur",
        "pièces jointes",
        "divulg",
        "supprim",
        "interdit",
        // Spanish and Portuguese.
        "confidencia",
        "destinatari",
        "destinatári",
        "eliminar",
        "apagar",
        "remitente",
        "remetente",
        "prohibid",
        "proibid",
        "adjunto",
        "anexo",
        "por error",
        "por engano",
        "legal",
        // Italian.
        "riservat",
        "mittente",
        "cancell",
        "allegat",
        "vietat",
        "per errore",
        // Dutch.
        "vertrouwelijk",
        "geadresseerde",
        "ontvanger",
        "afzender",
        "verwijder",
        "bijlage",
        "bestemd",
        "vergissing",
        // Polish.
        "poufn",
        "adresat",
        "nadawc",
        "usun",
        "załącznik",
        "odbiorc",
        "omyłk",
        "zabronion",
        // Japanese, Chinese, Korean.
        "機密",
        "秘密",
        "受信",
        "宛先",
        "削除",
        "誤",
        "送信者",
        "開示",
        "複製",
        "添付",
        "机密",
        "保密",
        "收件人",
        "删除",
        "发件人",
        "误",
        "泄露",
        "复制",
        "附件",
        "披露",
        "기밀",
        "수신",
        "발신",
        "삭제",
        "착오",
        "잘못",
        "공개",
        "복사",
        "첨부",
    ];
    const SCANNER: &[&str] = &["avast", "avg.com", "virus-free", "virenfrei"];
    let begins = |at: usize| {
        let above = at.checked_sub(1).map_or("", |above| lines[above]);
        let apart = above.trim().is_empty() || above.trim().chars().all(|letter| "-_=*─".contains(letter));
        let text = folded(edged(lines[at]));
        let opens = OPENINGS.iter().any(|opening| text.starts_with(opening));
        opens && (apart || hits(&text, TELLING) >= 3)
    };
    let at = (1..lines.len()).find(|at| begins(*at))?;
    let footer = folded(&lines[at..].join(" "));
    let paragraphs = lines[at..].split(|line| line.trim().is_empty()).filter(|part| !part.is_empty()).count();
    let last = lines[at..].iter().rfind(|line| !line.trim().is_empty()).map_or(0, |line| line.chars().count());
    let told = hits(&footer, TELLING);
    let scanned = hits(&footer, SCANNER) > 0;
    // A short line at the end is a person's: nobody is warned of secrets in a few words.
    let tells = (told >= 3 || (told >= 2 && !doubts(&footer)) || scanned) && (paragraphs == 1 || last >= 40 || scanned);
    tells.then_some(at)
}

/// Whether a signature begins: under `-- ` by the standard. Many programs lose the blank; then what follows must not look
/// like a second thought.
fn is_delimiter(lines: &[&str]) -> bool {
    let Some((first, below)) = lines.split_first() else { return false };
    *first == "-- " || (matches!(first.trim_end(), "--" | "\u{200b}--") && !takes_back(below))
}

/// Whether the first of these lines, as a signature, would take something back.
pub(crate) fn takes_back(lines: &[&str]) -> bool {
    const READ: usize = 3;
    lines.iter().filter(|line| !line.trim().is_empty()).take(READ).any(|line| doubts(line))
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
    let words =
        words.strip_suffix("please excuse my brevity").map_or(words, |rest| rest.trim_end().trim_end_matches('.'));
    let words = words.split(", an at&t").next().unwrap_or(words);
    if words == "sent from yahoo mail. get the app" {
        return true;
    }
    let by_itself = LANGUAGES
        .iter()
        .flat_map(|language| language.sent_from)
        .any(|part| words.starts_with(part) || (!part.is_ascii() && words.ends_with(part)));
    // What follows a mark is the person's own.
    by_itself
        && hits(words, DEVICES) > 0
        && !words.contains([',', ';', ':', '!', '?', '.', '…', '，', '。', '、'])
        && words.split_whitespace().count() <= SENT_FROM_WORDS
        && !words.split_whitespace().skip(2).any(|word| is_doubt(word) || (is_limit(word) && !DEVICES.contains(&word)))
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
            "Diese Nachricht wurde von meinem Android-Gerät mit K-9 Mail gesendet.",
            "Sent from my Android device with K-9 Mail. Please excuse my brevity.",
            "Sent via the Samsung Galaxy S21, an AT&T 5G smartphone",
        ] {
            assert!(is_sent_from(line), "{line}");
        }
        for line in [
            "Sent from my iPhone, do not run it",
            "sent from me but not approved",
            "It was sent from here",
            "approve",
            "sent by accounting yesterday",
            "sent from staging only",
            "von meinem Chef untersagt",
            "envoyé par erreur hier",
            "enviado por error ayer",
            "inviato da Marco ieri",
            "wysłane przez pomyłkę",
            "確認してから送信",
            "从我的角度看不行",
            "발신은 회사에서 보냄",
        ] {
            assert!(!is_sent_from(line), "{line}");
        }
    }

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
