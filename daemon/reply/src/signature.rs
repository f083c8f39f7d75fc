use crate::doubt::{doubts, is_doubt, is_limit};
use crate::gateway::{banner, disclaimer};
use crate::languages::LANGUAGES;
use crate::words::{edged, folded, hits};

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
            "Verzonden vanuit Outlook voor iOS",
            "发自 Outlook for Android",
            "从 Windows 版邮件发送",
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
}
