//! Mail that no person wrote as an answer: from machines, about deliveries, to other people.

use crate::mail::Mail;

/// Why a mail decides nothing, whatever it says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unasked {
    AutoReply,
    Bounce,
    Receipt,
    Calendar,
    Forward,
    Reaction,
}

impl Unasked {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::AutoReply => "an automatic reply decides nothing",
            Self::Bounce => "a message about a delivery decides nothing: the notice did not arrive",
            Self::Receipt => "a receipt decides nothing",
            Self::Calendar => "an answer to an invitation decides nothing",
            Self::Forward => "a forward is no answer",
            Self::Reaction => "a reaction is no answer",
        }
    }
}

/// Subjects that programs begin their own mail with; in lower case.
const AUTOMATIC: &[&str] = &[
    "automatic reply",
    "auto reply",
    "auto-reply",
    "autoreply",
    "auto response",
    "auto-response",
    "autoresponse",
    "out of office",
    "out-of-office",
    "ooo:",
    "vacation reply",
    "automatische antwort",
    "autom. antwort",
    "automatische rückantwort",
    "abwesenheitsnotiz",
    "abwesenheit",
    "réponse automatique",
    "reponse automatique",
    "absence du bureau",
    "absent du bureau",
    "respuesta automática",
    "respuesta automatica",
    "fuera de la oficina",
    "resposta automática",
    "resposta automatica",
    "fora do escritório",
    "ausência temporária",
    "risposta automatica",
    "fuori sede",
    "fuori ufficio",
    "automatisch antwoord",
    "automatische reactie",
    "afwezig",
    "odpowiedź automatyczna",
    "autoodpowiedź",
    "poza biurem",
    "autosvar",
    "automatisk svar",
    "automatiskt svar",
    "automaattinen vastaus",
    "自動応答",
    "自動返信",
    "不在通知",
    "自动回复",
    "自動回覆",
    "自动答复",
    "자동 회신",
    "자동 응답",
    "부재중",
    "автоответ",
    "автоматический ответ",
];

const BOUNCED: &[&str] = &[
    "undelivered mail",
    "undeliverable",
    "mail delivery failed",
    "mail delivery failure",
    "delivery status notification",
    "returned mail",
    "failure notice",
    "delivery failure",
    "delivery has failed",
    "message delivery failed",
    "unzustellbar",
    "nicht zustellbar",
    "non remis",
    "échec de la remise",
    "no se puede entregar",
    "no entregable",
    "não entregue",
    "impossibile recapitare",
    "onbestelbaar",
    "niet afgeleverd",
    "nie można dostarczyć",
    "niedostarczalne",
    "配信不能",
    "配信できません",
    "无法投递",
    "退信",
    "배달되지 않음",
];

const RECEIPTS: &[&str] = &[
    "read:",
    "read receipt",
    "not read:",
    "delivered:",
    "gelesen:",
    "nicht gelesen:",
    "lesebestätigung",
    "lu :",
    "lu:",
    "non lu :",
    "leído:",
    "no leído:",
    "lida:",
    "não lida:",
    "letto:",
    "non letto:",
    "gelezen:",
    "niet gelezen:",
    "przeczytano:",
    "nie przeczytano:",
    "开封确认",
    "已读:",
    "已读：",
    "開封済み:",
    "開封済み：",
    "開封確認",
    "읽음:",
    "return receipt",
    "empfangsbestätigung",
    "accusé de réception",
    "accusé de lecture",
    "relayed:",
    "expanded:",
];

const CALENDAR: &[&str] = &[
    "accepted:",
    "declined:",
    "tentative:",
    "tentatively accepted:",
    "canceled:",
    "cancelled:",
    "new time proposed:",
    "zugesagt:",
    "abgelehnt:",
    "mit vorbehalt:",
    "mit vorbehalt angenommen:",
    "angenommen:",
    "abgesagt:",
    "accepté :",
    "accepté:",
    "refusé :",
    "refusé:",
    "provisoire :",
    "aceptado:",
    "aceptada:",
    "rechazado:",
    "rechazada:",
    "provisional:",
    "aceito:",
    "aceite:",
    "recusado:",
    "accettato:",
    "accettata:",
    "rifiutato:",
    "rifiutata:",
    "geaccepteerd:",
    "geweigerd:",
    "afgewezen:",
    "zaakceptowano:",
    "odrzucono:",
    "承諾:",
    "承諾済み:",
    "辞退:",
    "已接受:",
    "已接受：",
    "已拒绝:",
    "已拒绝：",
    "수락:",
    "거절:",
    "수락됨:",
    "거절됨:",
];

const FORWARD_PREFIXES: &[&str] = &[
    "fwd",
    "fw",
    "wg",
    "tr",
    "rv",
    "enc",
    "i",
    "doorst",
    "doorgestuurd",
    "weitergeleitet",
    "transféré",
    "reenviado",
    "encaminhada",
    "inoltrato",
    "przekazane",
    "recall",
    "pd",
    "vs",
    "vb",
    "vl",
    "转发",
    "轉寄",
    "轉發",
    "転送",
    "전달",
    "továbbítás",
    "πρθ",
    "wtr",
    "ilt",
    "i̇lt",
];

const REPLY_PREFIXES: &[&str] = &[
    "re", "aw", "ré", "réf", "rép", "res", "r", "rif", "antw", "sv", "odp", "vá", "ynt", "回复", "回覆", "答复",
    "答覆", "返信", "회신", "답장", "re^2", "antwort", "resp",
];

/// What kind of unasked mail this is, if it is one.
pub(crate) fn unasked(mail: &Mail) -> Option<Unasked> {
    let subject = mail.subject.trim().to_lowercase();
    let begins = |known: &[&str]| known.iter().any(|known| subject.starts_with(known));
    let report = mail.content_type.strip_prefix("multipart/report").map(|_| mail.report_type.as_str());
    if report.is_some_and(|kind| kind == "disposition-notification")
        || mail.has_part("message/disposition-notification")
    {
        return Some(Unasked::Receipt);
    }
    let by_daemon = mail.from_raw.iter().any(|from| {
        let from = from.to_ascii_lowercase();
        from.contains("mailer-daemon@") || from.contains("postmaster@")
    });
    if report.is_some() || mail.has_part("message/delivery-status") || by_daemon || begins(BOUNCED) {
        return Some(Unasked::Bounce);
    }
    if mail.invites || begins(CALENDAR) || mail.header_begins("content-class", "urn:content-classes:calendarmessage") {
        return Some(Unasked::Calendar);
    }
    if begins(RECEIPTS) {
        return Some(Unasked::Receipt);
    }
    if begins(AUTOMATIC) || by_machine(mail) {
        return Some(Unasked::AutoReply);
    }
    if mail.has_part("text/vnd.google.email-reaction+json") || mail.header("x-ms-reactions").is_some() {
        return Some(Unasked::Reaction);
    }
    (first_prefix(&subject) == Some(Prefix::Forward) || mail.forwards()).then_some(Unasked::Forward)
}

/// Whether a mail that [`by_machine`] takes for a program's is no answer to anything: a notice, an invoice, a list's digest.
pub(crate) fn is_news(mail: &Mail) -> bool {
    let subject = mail.subject.trim().to_lowercase();
    let automatic = AUTOMATIC.iter().any(|known| subject.starts_with(known));
    // Of what makes it a machine's, this alone says nothing of an answer.
    let mut without = mail.headers_named("auto-submitted").filter(|value| {
        let value = value.trim().to_ascii_lowercase();
        !matches!(value.split([';', '(', ' ']).next(), Some("no" | "auto-generated" | "auto-notified"))
    });
    !automatic && without.next().is_none() && !answers_by_machine(mail)
}

/// Whether headers say that a program answered. `X-Auto-Response-Suppress` and `Precedence: list` stand on mail of
/// people too and say nothing.
fn by_machine(mail: &Mail) -> bool {
    let submitted = mail.headers_named("auto-submitted").any(|value| {
        let value = value.trim().to_ascii_lowercase();
        value.split([';', '(', ' ']).next() != Some("no")
    });
    let bulk = mail.headers_named("precedence").any(|value| value.trim().eq_ignore_ascii_case("bulk"));
    submitted || bulk || answers_by_machine(mail)
}

/// The same of what stands on answers alone.
fn answers_by_machine(mail: &Mail) -> bool {
    let said = |name: &str| {
        let value = mail.header(name)?.trim().to_ascii_lowercase();
        Some(value.split([';', '(', ' ']).next().unwrap_or_default().to_owned())
    };
    let set =
        |name: &str| said(name).is_some_and(|value| !matches!(value.as_str(), "no" | "false" | "0" | "none" | ""));
    let precedence = mail
        .headers_named("precedence")
        .any(|value| matches!(value.trim().to_ascii_lowercase().as_str(), "junk" | "auto_reply" | "auto-reply"));
    let no_sender = mail.header("return-path").is_some_and(|path| path.trim() == "<>");
    precedence
        || no_sender
        || [
            "x-autoreply",
            "x-autoreply-from",
            "x-autorespond",
            "x-autoresponder",
            "x-auto-reply",
            "x-auto-reply-from",
            "x-autogenerated",
            "x-mail-autoreply",
            "x-mailer-autoreply",
            "x-vacation",
            "x-vacation-message",
            "x-fc-machinegenerated",
            "x-amazon-auto-reply",
            "x-autoresponse-type",
            "x-ms-exchange-inbox-rules-loop",
        ]
        .iter()
        .any(|name| set(name))
        || mail.headers_named("x-post-messageclass").any(|value| value.to_ascii_lowercase().contains("autorespon"))
        || mail.headers_named("delivered-to").any(|value| value.trim().eq_ignore_ascii_case("autoresponder"))
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Prefix {
    Reply,
    Forward,
}

/// The outermost prefix of a subject; tags of gateways before it ("[EXTERNAL]") do not count.
fn first_prefix(subject: &str) -> Option<Prefix> {
    let mut rest = subject.trim();
    while let Some((tag, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        if tag.starts_with("fwd:") || tag == "fwd" {
            return Some(Prefix::Forward);
        }
        rest = after.trim_start_matches([' ', ':', '-']);
    }
    // "external: re: …" comes from gateways too.
    for gateway in ["external:", "ext:", "extern:", "external email:", "caution:"] {
        rest = rest.strip_prefix(gateway).map_or(rest, str::trim_start);
    }
    let (prefix, _) = rest.split_once([':', '：'])?;
    let prefix = prefix.split(['[', '(']).next().unwrap_or_default().trim();
    if FORWARD_PREFIXES.contains(&prefix) {
        return Some(Prefix::Forward);
    }
    REPLY_PREFIXES.contains(&prefix).then_some(Prefix::Reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_prefix_tells_a_forward() {
        for subject in ["fwd: x", "fw: re: x", "wg: x", "[external] tr: x", "转发: x", "[fwd: x]", "weitergeleitet: x"]
        {
            assert_eq!(first_prefix(subject), Some(Prefix::Forward), "{subject}");
        }
        for subject in ["re: x", "aw: aw: re: [external] fwd: x", "[ext] re: fwd: x", "re[2]: x", "回复：x"] {
            assert_eq!(first_prefix(subject), Some(Prefix::Reply), "{subject}");
        }
        assert_eq!(first_prefix("approval needed: fwd"), None);
    }
}
