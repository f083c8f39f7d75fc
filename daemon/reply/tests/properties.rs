//! Whatever surrounds an allow word, however it is quoted and encoded: what is no approval never becomes one.

use std::collections::HashSet;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use ow_reply::{Context, Decision, Explained, Kind, LANGUAGES, Message, Phrases, Proof, explain, read};
use proptest::prelude::*;
use proptest::sample::select;

const ALLOW: &[&str] = &[
    "approve",
    "Approved.",
    "YES",
    "yes, go ahead",
    "allow",
    "👍",
    "genehmigt",
    "oui",
    "sí",
    "aprovado",
    "approvato",
    "akkoord",
    "zatwierdzam",
    "承認します",
    "同意",
    "승인합니다",
    "I approve this",
    "lgtm",
];

/// Words that make of an approval something else, wherever they stand.
const SPOILS: &[&str] = &[
    "but",
    "only",
    "not",
    "don't",
    "wait",
    "if",
    "until",
    "no",
    "never",
    "maybe",
    "after",
    "except",
    "staging",
    "?",
    "nicht",
    "nur",
    "kein",
    "mais",
    "pas",
    "sauf",
    "pero",
    "sólo",
    "não",
    "mas",
    "non",
    "ma",
    "niet",
    "maar",
    "nie",
    "tylko",
    "deny",
    "❌",
    "hold",
    "…",
    "tomorrow",
    "ok",
    "~~",
    "не",
    "whatever",
    "dry-run",
    "3",
    "[x]",
    "/",
    "👎",
    "しない",
    "不",
    "않습니다",
];

const BETWEEN: &[&str] = &[" ", "\n", ", ", "\n\n", ". ", " - ", "\u{a0}", "\r\n", "\t", "! "];

const NOTICE: &str = "The run wants to run:\n\n    ./deploy.sh\n\nReply APPROVE to allow it once, or DENY to refuse.\nYes\n\n[ow:3f9c2a71b4de]";

static PHRASES: LazyLock<Phrases> = LazyLock::new(Phrases::default);

fn typed(text: &str) -> Decision {
    read(text, &Kind::Approval, &[], &PHRASES).decision
}

/// An allow phrase with something in it, before it or behind it.
fn spoiled() -> impl Strategy<Value = String> {
    let around = (select(SPOILS), select(BETWEEN), any::<bool>());
    let more = prop::collection::vec((select(ALLOW), select(BETWEEN)), 0..3);
    let end =
        select(&["", "\n\nThanks", "\n\nKind regards\nAlex", "\n-- \nAlex\nYes Ltd", "\n\nSent from my iPhone"][..]);
    (select(ALLOW), around, more, end).prop_map(|(allow, (spoil, between, before), more, end)| {
        let first = if before { format!("{spoil}{between}{allow}") } else { format!("{allow}{between}{spoil}") };
        let rest = more.iter().flat_map(|(allow, between)| [*between, *allow]).collect::<String>();
        format!("{first}{rest}{end}")
    })
}

fn quoted(style: usize, text: &str) -> String {
    let marked = format!("> {}\n", NOTICE.replace('\n', "\n> "));
    match style {
        0 => format!("{text}\n\nOn Tue, Mar 3, 2026 at 9:12 AM Agent <agent@example.net> wrote:\n\n{marked}"),
        1 => format!("{text}\n\nFrom: Agent <agent@example.net>\nSent: Tuesday\nTo: Alex\nSubject: x\n\n{NOTICE}\n"),
        2 => format!("On 3/3/26 09:12, Agent wrote:\n{marked}\n{text}\n"),
        3 => format!("{text}\n\n-----Original Message-----\n{NOTICE}\n"),
        4 => format!("Am 03.03.26 um 09:12 schrieb Agent:\n{marked}{text}\n{marked}"),
        5 => format!(
            "{text}\n\n________________________________\nVon: Agent\nGesendet: Dienstag\nAn: Alex\nBetreff: x\n\n{NOTICE}\n"
        ),
        _ => format!("{text}\n{marked}"),
    }
}

const STYLES: usize = 7;

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\n', "<br>\n")
}

fn quoted_printable(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'\n' => "\n".to_owned(),
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("={byte:02X}"),
        })
        .collect()
}

const HEAD: &str = "From: Alex Meyer <alex@example.org>\nSubject: Re: x [ow:3f9c2a71b4de]\nMIME-Version: 1.0\n";

/// A mail with `text` above, below or between quotes.
fn mail(style: usize, form: usize, text: &str) -> String {
    let plain = quoted(style % STYLES, text);
    let html = format!(
        "<html><body><div>{}</div><blockquote type=\"cite\">{}</blockquote></body></html>",
        escaped(text),
        escaped(NOTICE)
    );
    match form % 6 {
        0 => format!("{HEAD}Content-Type: text/plain; charset=utf-8\n\n{plain}"),
        1 => format!(
            "{HEAD}Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n{}\n",
            STANDARD.encode(plain)
        ),
        2 => format!(
            "{HEAD}Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n{}",
            quoted_printable(&plain)
        ),
        3 => format!("{HEAD}Content-Type: text/html; charset=utf-8\n\n{html}"),
        4 => format!(
            "{HEAD}Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain; charset=utf-8\n\n{plain}\n--b\nContent-Type: text/html; charset=utf-8\n\n{html}\n--b--\n"
        ),
        _ => format!("{HEAD}Content-Type: text/plain; charset=utf-8; format=flowed\n\n{plain}"),
    }
}

fn explained(mail: &[u8]) -> Explained {
    let context = Context {
        pending: &[],
        kind: &Kind::Approval,
        approvers: &[],
        proof: Proof::Given,
        now: Timestamp::UNIX_EPOCH,
        phrases: &PHRASES,
    };
    explain(Message::Mail(mail), &context)
}

/// Every word of the grammar; whatever approves is made of these and of a name or a contact line under a closing.
static WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let all =
        LANGUAGES.iter().flat_map(|language| language.allow.iter().chain(language.greeting).chain(language.closing));
    all.flat_map(|pattern| pattern.split(|letter: char| " |_?".contains(letter)).map(str::to_lowercase)).collect()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_spoiled_approval_is_none(text in spoiled()) {
        prop_assert_ne!(typed(&text), Decision::Approve, "{:?}", text);
    }

    #[test]
    fn a_spoiled_approval_in_a_mail_is_none(text in spoiled(), style in 0..STYLES, form in 0..6_usize) {
        let mail = mail(style, form, &text);
        let found = explained(mail.as_bytes());
        prop_assert_ne!(found.decision, "approve", "{}", mail);
    }

    #[test]
    fn a_quote_alone_decides_nothing(style in 0..STYLES, form in 0..6_usize, blank in "[ \n\t]{0,4}") {
        let mail = mail(style, form, &blank);
        let found = explained(mail.as_bytes());
        prop_assert_eq!(found.decision, "none", "{}", mail);
    }

    #[test]
    fn a_plain_approval_is_one_in_every_dress(allow in select(ALLOW), style in 0..STYLES, form in 0..6_usize) {
        let mail = mail(style, form, allow);
        let found = explained(mail.as_bytes());
        prop_assert_eq!(found.decision, "approve", "{} {}", found.why, mail);
        prop_assert_eq!(found.token.as_deref(), Some("3f9c2a71b4de"));
    }

    #[test]
    fn random_text_approves_only_by_the_words_of_the_grammar(text in "\\PC{0,40}", allow in select(ALLOW), between in select(BETWEEN)) {
        let text = format!("{allow}{between}{text}");
        if typed(&text) == Decision::Approve {
            for word in text.to_lowercase().split(|letter: char| !letter.is_alphanumeric() && letter != '\'') {
                let silent = word.chars().all(|letter| !letter.is_alphanumeric());
                prop_assert!(silent || WORDS.contains(word), "{:?}: {}", text, word);
            }
        }
    }

    #[test]
    fn words_with_capitals_under_a_closing_never_sign(
        said in prop::collection::vec("[A-Z][a-z]{2,9}", 1..4),
        below in select(&["approve, thanks\n", "Approve\nThanks\n\n", "approve\n\nThanks,\nAlex\n", "yes\n\nAlex Meyer\n"][..]),
        more in select(&["", " 5", " 2026-12-01", " 100000", " 10.0.0.12", " https://example.org", " | Director", " x@example.org", ", Berlin"][..]),
        from in select(&["Alex Meyer <alex@example.org>", "ops@example.org", ""][..]),
    ) {
        let said = said.join(" ");
        let known = ["alex", "meyer", "thanks", "regards", "best", "cheers", "please", "director", "manager", "engineer"];
        prop_assume!(!known.iter().any(|word| said.to_lowercase().contains(word)));
        let text = format!("{below}{said}{more}");
        prop_assert_ne!(typed(&text), Decision::Approve, "{:?}", text);
        let mail = format!("From: {from}\nSubject: [ow:3f9c2a71b4de]\n\n{text}\n");
        prop_assert_ne!(explained(mail.as_bytes()).decision, "approve", "{}", mail);
    }

    #[test]
    fn letters_that_only_look_alike_approve_nothing(at in 0..7_usize, like in select(&['а', 'ρ', 'о', 'ν', 'е', 'ⅴ', 'ｐ', '\u{202e}', '\u{200b}', '\u{301}'][..])) {
        let mut letters: Vec<char> = "approve".chars().collect();
        if like == '\u{200b}' || like == '\u{202e}' || like == '\u{301}' {
            letters.insert(at.max(1), like);
        } else {
            letters[at] = like;
        }
        let text: String = letters.into_iter().collect();
        prop_assert_ne!(typed(&text), Decision::Approve, "{:?}", text);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), style in 0..STYLES, form in 0..6_usize, at in 0..2000_usize) {
        explained(&bytes);
        let mut mail = mail(style, form, "approve").into_bytes();
        let at = at % mail.len();
        mail.splice(at..(at + bytes.len() / 8).min(mail.len()), bytes.iter().copied().take(20));
        explained(&mail);
        mail.truncate(at);
        explained(&mail);
    }
}
