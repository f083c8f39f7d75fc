//! The block of headers that programs of the Outlook kind put above what they quote, and their ruled lines.

use crate::attribution::{has_time, introduces};
use crate::doubt::{doubts, limits};

/// A block's labels stand within so many lines.
const BLOCK: usize = 9;

const FROM: &[&str] = &[
    "from",
    "von",
    "de",
    "da",
    "van",
    "od",
    "fra",
    "från",
    "lähettäjä",
    "от",
    "от кого",
    "отправитель",
    "kimden",
    "gönderen",
    "feladó",
    "odesílatel",
    "expéditeur",
    "remitente",
    "mittente",
    "afzender",
    "nadawca",
    "absender",
    "发件人",
    "寄件者",
    "寄件人",
    "差出人",
    "送信者",
    "送信元",
    "보낸 사람",
    "보낸사람",
    "발신",
];

/// Of the others, those that tell a time; some programs begin with it.
const TIME: &[&str] = &[
    "sent",
    "date",
    "gesendet",
    "gesendet am",
    "datum",
    "envoyé",
    "envoyé le",
    "date d'envoi",
    "enviado",
    "enviado el",
    "enviado em",
    "enviada em",
    "fecha",
    "data",
    "inviato",
    "data invio",
    "verzonden",
    "wysłano",
    "wysłane",
    "日期",
    "发送时间",
    "發送時間",
    "时间",
    "送信日時",
    "日時",
    "日付",
    "보낸 날짜",
    "날짜",
    "дата",
    "tarih",
];

const OTHER: &[&str] = &[
    "수신",
    "sent",
    "date",
    "to",
    "subject",
    "cc",
    "gesendet",
    "datum",
    "an",
    "betreff",
    "kopie",
    "gesendet am",
    "empfänger",
    "envoyé",
    "envoyé le",
    "date d'envoi",
    "à",
    "objet",
    "cci",
    "destinataire",
    "enviado",
    "enviado el",
    "enviado em",
    "enviada em",
    "fecha",
    "para",
    "asunto",
    "data",
    "assunto",
    "inviato",
    "data invio",
    "a",
    "oggetto",
    "verzonden",
    "aan",
    "onderwerp",
    "wysłano",
    "wysłane",
    "do",
    "dw",
    "temat",
    "sendt",
    "skickat",
    "dato",
    "til",
    "till",
    "emne",
    "ämne",
    "дата",
    "отправлено",
    "кому",
    "тема",
    "tarih",
    "kime",
    "konu",
    "发送时间",
    "發送時間",
    "日期",
    "时间",
    "收件人",
    "抄送",
    "副本",
    "主题",
    "主題",
    "主旨",
    "送信日時",
    "日時",
    "日付",
    "宛先",
    "件名",
    "보낸 날짜",
    "날짜",
    "받는 사람",
    "받는사람",
    "참조",
    "제목",
    "寄件日期",
    "reply-to",
    "importance",
    "attachments",
];

/// Of the others, those under which anything may stand.
const SUBJECT: &[&str] = &[
    "subject",
    "betreff",
    "objet",
    "asunto",
    "assunto",
    "oggetto",
    "onderwerp",
    "temat",
    "emne",
    "ämne",
    "тема",
    "konu",
    "主题",
    "主題",
    "主旨",
    "件名",
    "제목",
    "attachments",
];

const ORIGINAL: &[&str] = &[
    "original message",
    "original mail",
    "original email",
    "ursprüngliche nachricht",
    "originalnachricht",
    "original-nachricht",
    "original nachricht",
    "message d'origine",
    "message original",
    "message initial",
    "mensaje original",
    "mensagem original",
    "messaggio originale",
    "oorspronkelijk bericht",
    "origineel bericht",
    "wiadomość oryginalna",
    "oryginalna wiadomość",
    "originalmeddelande",
    "ursprungligt meddelande",
    "oprindelig meddelelse",
    "opprinnelig melding",
    "alkuperäinen viesti",
    "исходное сообщение",
    "原始邮件",
    "原始郵件",
    "原邮件",
    "回复的原邮件",
    "元のメッセージ",
    "원본 메시지",
    "원본 메일",
    "원본메일",
    "reply message",
    "original appointment",
    "ursprüngliche mail",
    "mail original",
    "邮件原件",
    "原始信息",
    "원본 이메일",
];

const FORWARDED: &[&str] = &[
    "forwarded message",
    "forwarded by",
    "begin forwarded message",
    "weitergeleitete nachricht",
    "anfang der weitergeleiteten nachricht",
    "message transféré",
    "message transferé",
    "début du message réexpédié",
    "début du message transféré",
    "mensaje reenviado",
    "inicio del mensaje reenviado",
    "mensagem encaminhada",
    "mensagem reencaminhada",
    "início da mensagem encaminhada",
    "início da mensagem reencaminhada",
    "messaggio inoltrato",
    "inizio messaggio inoltrato",
    "doorgestuurd bericht",
    "begin doorgestuurd bericht",
    "przekazana wiadomość",
    "początek przekazywanej wiadomości",
    "wiadomość przekazana",
    "vidarebefordrat meddelande",
    "videresendt",
    "пересылаемое сообщение",
    "転送メッセージ",
    "転送されたメッセージ",
    "転送メール",
    "转发的邮件",
    "转发邮件",
    "已转发邮件",
    "轉寄的郵件",
    "轉寄郵件",
    "转发信息",
    "전달된 메시지",
    "전달된 메일",
    "forward-nachricht",
];

const REPLY_ABOVE: &[&str] = &["reply above this line", "type your reply above", "write above this line"];

/// Whether a quote begins at the first of `lines` with a block of headers.
pub(crate) fn is_header_block<'a>(lines: impl IntoIterator<Item = &'a str>) -> bool {
    let mut lines = lines.into_iter();
    let Some(begin) = lines.next() else { return false };
    let Some(first) = label(begin) else { return false };
    if !FROM.contains(&first.as_str()) && !TIME.contains(&first.as_str()) {
        return false;
    }
    let mut sender = None;
    let mut seen: Vec<String> = vec![];
    let rest = lines.filter(|line| !line.trim().is_empty()).take(BLOCK);
    for line in std::iter::once(begin).chain(rest) {
        let Some(label) = label(line) else { continue };
        let value = line.split_once([':', '：']).map_or("", |(_, value)| value.trim_matches(['*', ' ', '\u{a0}']));
        if FROM.contains(&label.as_str()) {
            sender.get_or_insert(value);
        } else if OTHER.contains(&label.as_str()) && !seen.contains(&label) {
            if !SUBJECT.contains(&label.as_str()) && doubts(value) {
                return false;
            }
            seen.push(label);
        }
    }
    // `From: 9:00` is no sender's name, and neither is `From: Monday`.
    let named = |name: &str| name.chars().any(char::is_alphabetic) && !limits(name) && !doubts(name) && !has_time(name);
    sender.is_some_and(named) && seen.len() >= 2
}

/// Whether the line says that the original follows: `-----Original Message-----`.
pub(crate) fn is_original_marker(line: &str) -> bool {
    let named = |inner: &str| ORIGINAL.contains(&inner);
    let introduced = |inner: &str| is_ruled_on_both_sides(line) && introduces(&format!("{inner}:"));
    ruled(line).is_some_and(|inner| named(&inner) || introduced(&inner)) || is_reply_marker(line)
}

/// Whether a bare `Original Message` stands above a block of headers.
pub(crate) fn is_headed_original<'a>(line: &str, below: impl IntoIterator<Item = &'a str>) -> bool {
    ORIGINAL.contains(&line.trim().trim_end_matches(':').to_lowercase().as_str()) && is_header_block(below)
}

/// `##- Please type your reply above this line -##`
fn is_reply_marker(line: &str) -> bool {
    let inner = line.trim().trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
    let bare = inner.strip_prefix("please ").unwrap_or(&inner);
    REPLY_ABOVE.contains(&bare)
        || (is_ruled_on_both_sides(line) && REPLY_ABOVE.iter().any(|marker| inner.contains(marker)))
}

fn is_ruled_on_both_sides(line: &str) -> bool {
    const RULE: usize = 3;
    let is_mark = |letter: &char| matches!(letter, '-' | '_' | '=' | '#' | '*' | '—' | '–' | '─' | '‐');
    let line = line.trim();
    line.chars().take_while(is_mark).count() >= RULE && line.chars().rev().take_while(is_mark).count() >= RULE
}

/// Whether the line says that a forwarded message follows.
pub(crate) fn is_forward_marker(line: &str) -> bool {
    let plain = line.trim().trim_matches(['*', '_']).to_lowercase();
    let named = |text: &str| FORWARDED.iter().any(|marker| text.starts_with(marker));
    ruled(line).is_some_and(|inner| named(&inner)) || (plain.ends_with([':', '：']) && named(&plain))
}

/// Whether the line is nothing but a rule, as stands above a block of headers.
pub(crate) fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.chars().count() >= 5 && line.chars().all(|letter| matches!(letter, '_' | '-' | '=' | '*' | '─' | '—' | '–'))
}

/// The text between two rules, in lower case.
fn ruled(line: &str) -> Option<String> {
    let line = line.trim().trim_matches(['*', ' ']);
    let line = line.replace("&nbsp;", " ").replace('’', "'");
    let inner = line.trim_matches(['-', '_', '=', ' ', '\u{a0}', '—', '–', '─', '‐']);
    let dashes = line.chars().take_while(|letter| matches!(letter, '-' | '_' | '=' | '—' | '–' | '─' | '‐')).count();
    (dashes >= 2 && !inner.is_empty()).then(|| inner.trim_end_matches(':').to_lowercase())
}

/// The word before the colon of a header line, in lower case.
fn label(line: &str) -> Option<String> {
    let (label, _) = line.split_once([':', '：'])?;
    let label = label
        .trim_matches(|letter: char| letter.is_whitespace() || matches!(letter, '*' | '_' | '\u{200b}' | '\u{feff}'));
    (label.chars().count() <= 20).then(|| label.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_blocks_in_many_languages_are_seen() {
        for block in [
            "From: Agent <a@b>\nSent: Tuesday\nTo: Alex\nSubject: x",
            "*From:* Agent\n*Date:* Tuesday\n*To:* Alex",
            "Von: Agent\nGesendet: Dienstag\nAn: Alex\nBetreff: x",
            "De : Agent\nEnvoyé : mardi\nÀ : Alex\nObjet : x",
            "De: Agent\nEnviado el: martes\nPara: Alex\nAsunto: x",
            "De: Agent\nEnviada em: terça\nPara: Alex\nAssunto: x",
            "Da: Agent\nInviato: martedì\nA: Alex\nOggetto: x",
            "Van: Agent\nVerzonden: dinsdag\nAan: Alex\nOnderwerp: x",
            "Od: Agent\nWysłano: wtorek\nDo: Alex\nTemat: x",
            "差出人: Agent\n送信日時: 2026年\n宛先: Alex\n件名: x",
            "发件人: Agent\n发送时间: 2026年\n收件人: Alex\n主题: x",
            "보낸 사람: Agent\n보낸 날짜: 2026년\n받는 사람: Alex\n제목: x",
        ] {
            assert!(is_header_block(block.lines()), "{block}");
        }
        assert!(!is_header_block("From: now on I say no\nreally".lines()));
    }

    #[test]
    fn markers_of_originals_and_forwards_are_seen() {
        for line in [
            "-----Original Message-----",
            "------------------ 原始邮件 ------------------",
            "-----Ursprüngliche Nachricht-----",
        ] {
            assert!(is_original_marker(line), "{line}");
        }
        for line in [
            "---------- Forwarded message ---------",
            "Begin forwarded message:",
            "-------- Weitergeleitete Nachricht --------",
        ] {
            assert!(is_forward_marker(line), "{line}");
        }
        assert!(!is_forward_marker("I got a forwarded message"));
    }
}
