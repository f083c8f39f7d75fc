//! More of each kind than the cases show: clients, languages, hiding places, machines and doubts.

use std::sync::LazyLock;

use jiff::Timestamp;
use ow_reply::{Context, Explained, Kind, Message, Pending, Phrases, Proof, State, explain, option};

static PHRASES: LazyLock<Phrases> = LazyLock::new(Phrases::default);

fn text(text: &str) -> Explained {
    of_kind(text, &Kind::Approval)
}

fn of_kind(text: &str, kind: &Kind) -> Explained {
    let context = Context {
        pending: &[],
        kind,
        approvers: &[],
        proof: Proof::Given,
        now: Timestamp::UNIX_EPOCH,
        phrases: &PHRASES,
    };
    explain(Message::TextOf { name: "Alex Meyer", text }, &context)
}

fn mail(mail: &str) -> Explained {
    let pending = ["aaaa1111bbbb", "cccc2222dddd"].map(|id| Pending {
        id: id.into(),
        kind: Kind::Approval,
        state: State::Pending,
    });
    let closed = Pending { id: "eeee3333ffff".into(), kind: Kind::Approval, state: State::Closed("expired".into()) };
    let context = Context {
        pending: &[pending.to_vec(), vec![closed]].concat(),
        kind: &Kind::Approval,
        approvers: &["alex@example.org".into()],
        proof: Proof::Relay("mx.example.net"),
        now: "2026-03-03T08:30:00Z".parse().expect("an instant"),
        phrases: &PHRASES,
    };
    explain(Message::Mail(mail.as_bytes()), &context)
}

const PROOF: &str = "Authentication-Results: mx.example.net; dmarc=pass header.from=example.org\n";
const FROM: &str = "From: Alex Meyer <alex@example.org>\nTo: agent@example.net\nDate: Tue, 3 Mar 2026 09:20:11 +0100\n";
const SUBJECT: &str = "Subject: Re: Approval needed [ow:aaaa1111bbbb]\n";

/// A proven mail with a subject that names an item, some headers and a body.
fn proven(headers: &str, body: &str) -> Explained {
    mail(&format!("{PROOF}{FROM}{SUBJECT}{headers}\n{body}"))
}

fn alternative(plain: &str, html: &str) -> Explained {
    proven(
        "MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=b\n",
        &format!(
            "--b\nContent-Type: text/plain; charset=utf-8\n\n{plain}\n--b\nContent-Type: text/html; charset=utf-8\n\n{html}\n--b--\n"
        ),
    )
}

fn html(html: &str) -> Explained {
    proven("MIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n", html)
}

/// A text of which nobody knows who wrote it, as in Slack.
fn unsigned(text: &str) -> Explained {
    let context = Context {
        pending: &[],
        kind: &Kind::Approval,
        approvers: &[],
        proof: Proof::Given,
        now: Timestamp::UNIX_EPOCH,
        phrases: &PHRASES,
    };
    explain(Message::Text(text), &context)
}

/// A plain mail of this sender.
fn mail_from(from: &str, body: &str) -> Explained {
    let context = Context {
        pending: &[Pending { id: "aaaa1111bbbb".into(), kind: Kind::Approval, state: State::Pending }],
        kind: &Kind::Approval,
        approvers: &[],
        proof: Proof::Given,
        now: Timestamp::UNIX_EPOCH,
        phrases: &PHRASES,
    };
    let head = "Content-Type: text/plain; charset=utf-8\n";
    explain(Message::Mail(format!("From: {from}\n{SUBJECT}{head}\n{body}\n").as_bytes()), &context)
}

#[track_caller]
fn all(decision: &str, found: impl Fn(&str) -> Explained, texts: &[&str]) {
    for text in texts {
        let found = found(text);
        assert_eq!(found.decision, decision, "{text:?}: {found:?}");
    }
}

#[test]
fn clear_approvals_in_many_words() {
    all(
        "approve",
        text,
        &[
            "approve",
            "APPROVE",
            "Approve!",
            "approved",
            "Yes",
            "yes.",
            "Yes, please",
            "yes please",
            "Yes, approved.",
            "Go ahead",
            "go ahead!",
            "Please go ahead.",
            "Please approve",
            "I approve",
            "I approve this.",
            "approve it",
            "Allow",
            "allowed",
            "allow once",
            "👍",
            "👍🏽",
            "✅",
            "👍👍",
            "Approve 👍",
            "approve, thanks",
            "Approved. Thanks!",
            "approve\n\nThanks,\nAlex",
            "Approve.\n\nKind regards,\nAlex Meyer",
            "approve\n\nBest\nAlex\nHead of Operations | Example GmbH\n+49 30 1234",
            "Hi,\n\napprove\n\nThanks",
            "Hello Agent,\nApproved.",
            "  approve  ",
            "\n\napprove\n\n",
            "approve\r\n",
            "*approve*",
            "**Approved**",
            "\u{feff}approve",
            "approve\u{200b}",
            "yes\u{a0}please",
            "approve\n\nSent from my iPhone",
            "approve\n-- \nAlex\nYes we can",
            "approve\n--\nAlex",
            "approve [ow:aaaa1111bbbb]",
            "approve\n\n[ow:aaaa1111bbbb]",
            "> Reply APPROVE or DENY\napprove",
            "lgtm",
            "LGTM!",
            "Permission granted",
            "agreed",
            "ja",
            "Ja, bitte",
            "genehmigt",
            "Genehmigt.\n\nViele Grüße\nAlex",
            "Freigegeben!",
            "einverstanden",
            "oui",
            "D’accord",
            "approuvé",
            "autorisé, merci",
            "approuve\u{301}",
            "sí",
            "Sí, adelante",
            "aprobado",
            "¡Aprobado!",
            "de acuerdo",
            "sim",
            "aprovado, obrigado",
            "autorizado",
            "sì",
            "approvato, grazie",
            "d'accordo",
            "ja, akkoord",
            "goedgekeurd",
            "akkoord",
            "tak",
            "zatwierdzam",
            "zgoda, dziękuję",
            "はい",
            "承認",
            "承認します。",
            "はい、承認します。",
            "許可します。よろしくお願いします。",
            "同意",
            "批准。",
            "同意，谢谢",
            "允许",
            "승인",
            "승인합니다.",
            "네, 승인합니다. 감사합니다.",
            "예",
        ],
    );
}

#[test]
fn clear_denials_in_many_words() {
    all(
        "deny",
        text,
        &[
            "deny",
            "Denied.",
            "DENY!",
            "no",
            "No.",
            "no!",
            "nope",
            "No, thanks",
            "no thanks",
            "reject",
            "rejected: too risky",
            "refuse",
            "decline",
            "disallow",
            "not approved",
            "Not approved.",
            "don't approve",
            "Don’t approve this!",
            "dont approve",
            "do not approve",
            "Do not approve it.",
            "do not ok",
            "don't",
            "no, don't approve",
            "No don't approve this",
            "I do not approve",
            "I don't approve this",
            "I can't approve this",
            "cannot approve",
            "not allowed",
            "not ok",
            "No way!",
            "no way, not allowed",
            "never",
            "absolutely not",
            "not authorized",
            "❌",
            "👎",
            "🚫",
            "deny 👎",
            "stop",
            "Stop!",
            "cancel",
            "please deny",
            "please don't",
            "deny - frozen",
            "deny – frozen",
            "deny — frozen",
            "deny (frozen this week)",
            "deny; frozen",
            "deny\nfrozen this week",
            "deny\n\nThanks\nAlex",
            "Hi,\n\ndeny. Too late.",
            "this is not approved",
            "it is not allowed",
            "that's not ok",
            "won't approve",
            "will not approve this.",
            "permission denied",
            "nein",
            "Nein, danke",
            "nicht genehmigt",
            "nicht freigeben",
            "abgelehnt",
            "Bitte nicht",
            "auf keinen Fall",
            "ich lehne das ab",
            "keine Freigabe",
            "non",
            "Non merci",
            "refusé",
            "pas d'accord",
            "non approuvé",
            "n'approuvez pas",
            "rechazado",
            "no aprobado",
            "no lo apruebo",
            "denegado",
            "não",
            "nao",
            "não aprovado",
            "rejeitado",
            "non approvato",
            "rifiutato",
            "non sono d'accordo",
            "nee",
            "niet akkoord",
            "niet goedgekeurd",
            "afgewezen",
            "nie",
            "nie zatwierdzam",
            "odrzucam",
            "nie zgadzam się",
            "いいえ",
            "却下します。",
            "承認しません",
            "拒否",
            "だめです。",
            "不同意",
            "拒绝，本周冻结",
            "不批准。",
            "不行",
            "거절합니다.",
            "아니요",
            "승인하지 않습니다",
            "승인 불가",
            "> Reply APPROVE or DENY\ndeny",
        ],
    );
}

#[test]
fn doubts_decide_nothing() {
    all(
        "none",
        text,
        &[
            "",
            " ",
            "\n\n",
            "ok",
            "okay",
            "fine",
            "sure",
            "k",
            "approve?",
            "approve ?",
            "Approve??",
            "approve...",
            "approve…",
            "yes?",
            "yes but",
            "yes, but only staging",
            "approve if tests pass",
            "approve tomorrow",
            "approve staging only",
            "approve, then deny",
            "approve deny",
            "deny approve",
            "approve/deny",
            "approve or deny?",
            "yes and no",
            "yes no",
            "no yes",
            "no problem",
            "No problem, go ahead",
            "no worries, approve",
            "no objections",
            "No idea.",
            "no preference",
            "not sure",
            "not yet",
            "approve? no",
            "deny?",
            "no?",
            "Should I approve?",
            "did you approve",
            "why?",
            "I would not say yes to that",
            "I would approve",
            "I might approve",
            "would approve",
            "approval",
            "approver",
            "approving",
            "disapproval",
            "unapprove this one please now",
            "yesterday it still worked",
            "nobody",
            "north-east node",
            "yes-man",
            "y",
            "n",
            "approve\nwait",
            "approve\n\nactually no",
            "approve\n\nWait until Monday",
            "approve\n\nThanks\n\nP.S. check with Bob first",
            "approve\n\nThanks,\nNot Yet",
            "approve\n\nKind regards\nAlex\n\nbut not on prod",
            "wait\napprove",
            "Sent from my iPhone",
            "Thanks",
            "Thanks, approve",
            "Alex",
            "approve all",
            "always approve",
            "approve always",
            "pre-approve",
            "re-approve",
            "approve 3",
            "approve #2",
            "approve https://evil.example",
            "approve the other one",
            "approve this and the other",
            "\"approve\"",
            "“approve”",
            "'approve'",
            "(approve)",
            "approve:",
            "approve: staging",
            "~~approve~~",
            "~approve~",
            "-approve",
            "- approve",
            "1. approve",
            "аpprove",
            "аpprоve",
            "ａｐｐｒｏｖｅ",
            "ap\u{200b}prove",
            "\u{202e}evorppa",
            "appro\u{301}ve",
            "o\u{212a}",
            "👍👎",
            "👍 👎",
            "✅❌",
            "👍?",
            "🤔",
            "👌",
            "🙏",
            "👍 but wait",
            "> approve",
            ">approve",
            "> > approve\n> yes",
            "On Tue, Mar 3, 2026 at 9:12 AM Agent <agent@example.net> wrote:\napprove",
            "nicht",
            "noch nicht",
            "ja, aber erst morgen",
            "ja?",
            "vielleicht",
            "oui mais",
            "oui, mais demain",
            "sí, pero no",
            "si aprobado",
            "sim, mas",
            "sì, ma",
            "ja, maar",
            "tak, ale",
            "承認してもいいですか",
            "承認しないと",
            "同意吗",
            "不是不同意",
            "승인할까요?",
            "承認します？",
            "No. Approve.",
            "no, go ahead",
            "No - yes",
            "No!\n\nApprove",
            "deny\n\nSorry, I mean:\napprove",
            "Yes, Bob said no",
            "no\u{0}",
            "approve\u{0}",
            "<b>approve</b>",
            "approve<br>",
            "APPROVEDENY",
            "no-approve",
            "non-approved",
            // Cut as a quote's introduction, a header block or a rule, these would leave a bare yes.
            "approve\n\nbut only the part you wrote:\n> staging",
            "Approve\n\nOnly what you said:\n> rm -rf build/",
            "approve\n\nExcept the one that Bob wrote:\n> rm x",
            "approve\n— but as I said, not the production one",
            "approve\n-- as I said, only staging",
            "Genehmigt\n– wie ich schrieb, nur Staging",
            "approve\n\nOn 2026-03-01 I wrote what must hold:\nonly staging",
            "Approve\nFrom: 9:00\nTo: 17:00\nDate: Monday, not before",
            "Approvato\nDa: lunedì\nA: venerdì\nData: dal 3 marzo",
            "Genehmigt\nVon: Montag\nAn: Freitag\nDatum: ab 3. März",
            "approve\n*From:* now on\n*To:* staging\n*Subject:* to review",
            "approve\n\nTo: staging only\nFrom: Monday\nDate: x",
            "approve\n\nreply above this line only if staging",
            "approve\nNO> production",
            "> Shall the backup of the production database be run tonight as planned?\napprove\n> -- \n> owd",
            "approve\n--\nbut not on production",
            // As a gateway's warning or a company's footer.
            "Warning: do not run this outside business hours\n\nApprove",
            "Caution: do not send to external customers, internal ones alone.\n\nApproved.",
            "Achtung: bitte nicht extern versenden, sonst gibt es Ärger damit.\n\nGenehmigt",
            "Attention : ne pas envoyer à l'extérieur de la société, merci\n\napprouvé",
            "Attenzione: non inviare a nessun indirizzo esterno, grazie mille\n\napprovato",
            "Let op: niet naar buiten sturen voordat ik het heb gezien\n\nakkoord",
            "Uwaga: nie wysyłać na zewnątrz przed poniedziałkiem proszę\n\nzatwierdzam",
            "approve\n\nThis email is confidential so send it to Bob alone",
            "approve\n\nThis message must not be sent to the privileged list",
            "oui\n\nCe message est confidentiel donc à Bob seul",
            "sí\n\nEste correo es confidencial así que a Bob y a nadie más",
            "ja\n\nDiese Nachricht ist vertraulich, daher an Bob allein senden",
            "sim\n\nEste email é confidencial, enviar ao Bob e a mais ninguém",
            "approvato\n\nQuesta email è riservata, mandala a Bob e basta",
            "akkoord\n\nDit bericht is vertrouwelijk, stuur het naar Bob",
            "tak\n\nTa wiadomość jest poufna, wyślij ją do Boba",
            "承認\n\nこのメールは機密なのでBobにだけ送ること",
            "批准\n\n此邮件涉及机密，请改发给张三",
            "승인\n\n이 메일은 기밀이므로 김과장에게 보내야 함",
            // As the line of a phone.
            "承認します\n確認してから送信",
            "承認\n月曜になってから送信",
            "同意\n从我的角度看不行",
            "批准\n发送自测试环境即可",
            "승인\n내일 회사에서 보냄",
            "genehmigt\nvon meinem Chef untersagt",
            "Genehmigt\ngesendet von Bob gestern schon",
            "approve\nsent by mistake",
            "yes\nsent by accounting yesterday",
            "approuvé\nenvoyé par erreur hier",
            "aprobado\nenviado por error ayer",
            "aprovado\nenviado pelo Bruno ontem",
            "approvato\ninviato da Marco ieri",
            "akkoord\nverzonden met fout",
            "zatwierdzam\nwysłane przez pomyłkę",
            // As a greeting, a signature or a name.
            "Hello wait please\napprove",
            "Hey hold on,\nyes",
            "Morning only\nApproved",
            "Hello not yet,\napprove",
            "Hallo bitte warten,\ngenehmigt",
            "Hola espera un momento,\naprobado",
            "Bonjour attendez svp,\napprouvé",
            "Ciao aspetta un attimo,\napprovato",
            "Hoi wacht even,\nakkoord",
            "Cześć czekaj chwilę,\nzatwierdzam",
            "Olá espere um pouco,\naprovado",
            "Hi staging only!\nApprove",
            "Approved, thanks\nStaging",
            "Approve\nThanks\nTomorrow Morning",
            "Approved, thanks\nFor Staging",
            "Approve\n\nThanks\nCondition: Staging",
            "Approve, thanks\nMax 3",
            "Approve, thanks\nDry Run",
            "Genehmigt, danke\nMontag Abend",
            "Oui, merci\nDemain Matin",
            "Sí, gracias\nMañana Temprano",
            "Zatwierdzam, dziękuję\nPoniedziałek",
            "承認\nよろしくお願いします\n株式会社Xは除く",
            "approve\n\nThanks\nSkip Tests",
            "approve\n\nThanks\nRevoke",
            "!approve",
            "! ja",
            "!承認",
            // A no that says yes.
            "No. please go ahead with it then",
            "no, it is fine to run it",
            "no, please do approve",
            "No, I have no objection.",
            "Nein.\nKeine Einwände.",
        ],
    );
}

#[test]
fn a_denial_keeps_its_reason_and_a_doubt_its_words() {
    assert_eq!(text("Deny – erst ab Montag.").comment.as_deref(), Some("erst ab Montag."));
    assert_eq!(text("no: too risky\n\nThanks\nAlex").comment.as_deref(), Some("too risky"));
    assert_eq!(text("deny").comment, None);
    assert_eq!(text("hold off [ow:aaaa1111bbbb]").comment.as_deref(), Some("hold off"));
}

#[test]
fn questions_take_words_numbers_and_labels() {
    let regions = Kind::Question { options: vec!["eu-west".into(), "us-east".into()] };
    for (given, wanted) in [
        ("2", "us-east"),
        ("2.", "us-east"),
        ("#1", "eu-west"),
        ("option 2", "us-east"),
        ("Option 1", "eu-west"),
        ("２", "us-east"),
        ("US-EAST", "us-east"),
        ("us-east.", "us-east"),
        ("3", "3"),
        ("0", "0"),
        ("1 and 2", "1 and 2"),
        ("neither", "neither"),
        ("no", "no"),
        ("us-east\n\nThanks\nAlex", "us-east"),
        ("the second\n\nSent from my iPhone", "the second"),
        ("2 [ow:aaaa1111bbbb]", "us-east"),
        ("👍", "👍"),
        ("> Options\n2", "us-east"),
    ] {
        let found = of_kind(given, &regions);
        assert_eq!((found.decision, found.answer.as_deref()), ("answer", Some(wanted)), "{given}");
    }
    let numbers = Kind::Question { options: vec!["3".into(), "2".into()] };
    assert_eq!(of_kind("2", &numbers).answer.as_deref(), Some("2"));
    let sizes = Kind::Question { options: vec!["5".into(), "10".into(), "15".into()] };
    assert_eq!(of_kind("3", &sizes).answer.as_deref(), Some("3"), "among numbers it is no place");
    let options = ["2".to_owned(), "Later".to_owned()];
    for (text, expected) in
        [("2", Some("2")), ("later", Some("Later")), ("1", None), ("3", None), ("0", None), ("no", None)]
    {
        assert_eq!(option(text, &options).map(|(_, label)| &label[..]), expected, "{text}");
    }
    assert_eq!(option("1", &[]), None);
    let regions = ["eu-west".to_owned(), "us-east".to_owned()];
    assert_eq!(option("2) us-east", &regions).map(|(at, _)| at), Some(2));
    assert_eq!(option("1) us-east", &regions), None, "it contradicts itself");
    let free = Kind::Question { options: vec![] };
    assert_eq!(of_kind("Two lines:\n1. a\n2. b", &free).answer.as_deref(), Some("Two lines:\n1. a\n2. b"));
    assert_eq!(of_kind("Thanks", &free).answer.as_deref(), Some("Thanks"));
    assert_eq!(of_kind(" \n", &free).decision, "none");
    assert_eq!(of_kind("-- \nAlex", &free).decision, "none");
    assert_eq!(of_kind("yes", &Kind::Notification).decision, "none");
}

#[test]
fn quotes_in_many_languages_and_programs_are_cut() {
    for quote in [
        "On Tue, 3 Mar 2026 at 09:12, Agent <agent@example.net> wrote:\n\n> no",
        "On Mar 3, 2026, at 09:12, Agent <agent@example.net> wrote:\n\n> no",
        "On Tuesday, March 3, 2026 at 09:12:03 AM GMT+1, Agent <agent@example.net> wrote:\n\nno",
        "Agent <agent@example.net> wrote on 03/03/2026 09:12:03 AM:\n\n> no",
        "Agent wrote:\n> no",
        "On 2026-03-03 09:12, Agent wrote:\n> no",
        "> On Mar 3, 2026, at 09:12, Agent <agent@example.net> wrote:\n> \n> no",
        "Am Di., 3. März 2026 um 09:12 Uhr schrieb Agent <agent@example.net>:\n\n> no",
        "Am 03.03.2026 um 09:12 schrieb Agent:\n> no",
        "Le mar. 3 mars 2026 à 09:12, Agent <agent@example.net> a écrit :\n\n> no",
        "Le 03/03/2026 à 09:12, Agent a écrit :\n> no",
        "El mar, 3 mar 2026 a las 9:12, Agent (<agent@example.net>) escribió:\n\n> no",
        "Em ter., 3 de mar. de 2026 às 09:12, Agent <agent@example.net>\nescreveu:\n\n> no",
        "Il giorno mar 3 mar 2026 alle ore 09:12 Agent <agent@example.net> ha\nscritto:\n\n> no",
        "Op di 3 mrt 2026 om 09:12 schreef Agent <agent@example.net>:\n\n> no",
        "wt., 3 mar 2026 o 09:12 Agent <agent@example.net> napisał(a):\n\n> no",
        "W dniu 3.03.2026 o 09:12, Agent pisze:\n> no",
        "2026年3月3日(火) 9:12 Agent <agent@example.net>:\n\n> no",
        "2026/03/03 9:12、Agent <agent@example.net>のメール:\n\n> no",
        "Agent <agent@example.net> 于2026年3月3日周二 09:12写道：\n\n> no",
        "2026년 3월 3일 (화) 오전 9:12, Agent <agent@example.net>님이 작성:\n\n> no",
        "Den tis 3 mars 2026 kl 09:12 skrev Agent <agent@example.net>:\n\n> no",
        "-----Original Message-----\nFrom: Agent\nSent: Tuesday\nTo: Alex\nSubject: x\n\nno",
        "-----Ursprüngliche Nachricht-----\nVon: Agent\nGesendet: Dienstag\nAn: Alex\nBetreff: x\n\nno",
        "________________________________\nDe : Agent <agent@example.net>\nEnvoyé : mardi 3 mars 2026 09:12\nÀ : Alex\nObjet : x\n\nno",
        "De: Agent <agent@example.net>\nEnviado el: martes, 3 de marzo de 2026 9:12\nPara: Alex\nAsunto: x\n\nno",
        "De: Agent\nEnviada em: terça-feira, 3 de março de 2026\nPara: Alex\nAssunto: x\n\nno",
        "Da: Agent\nInviato: martedì 3 marzo 2026\nA: Alex\nOggetto: x\n\nno",
        "Van: Agent\nVerzonden: dinsdag 3 maart 2026\nAan: Alex\nOnderwerp: x\n\nno",
        "Od: Agent\nWysłane: wtorek, 3 marca 2026\nDo: Alex\nTemat: x\n\nno",
        "差出人: Agent\n送信日時: 2026年3月3日\n宛先: Alex\n件名: x\n\nno",
        "보낸 사람: Agent\n보낸 날짜: 2026년\n받는 사람: Alex\n제목: x\n\nno",
        "*From:* Agent <agent@example.net>\n*Sent:* Tuesday\n*To:* Alex\n*Subject:* x\n\nno",
        "---- On Tue, 03 Mar 2026 09:12:00 +0100 Agent <agent@example.net> wrote ----\n\nno",
        "Gesendet: Dienstag, 03. März 2026 um 09:12 Uhr\nVon: \"Agent\" <agent@example.net>\nAn: Alex\nBetreff: x\n\nno",
        "\u{202b}בתאריך יום ג׳, 3 במרץ 2026 ב-9:12 מאת Agent <agent@example.net>:\u{202c}\n\n> no",
        "03.03.2026, 09:12, \"Agent\" <agent@example.net>:\n\n> no",
        "-------- Original message --------\nFrom: Agent <agent@example.net>\nDate: 3/3/26 09:12 (GMT+01:00)\nTo: Alex\nSubject: x\n\nno",
        "------------------ 原始邮件 ------------------\n发件人: \"Agent\"\n发送时间: 2026\n\nno",
    ] {
        for gap in ["\n", "\n\n", "\n\nAlex\n\n", "\n\nSent from my iPhone\n\n", "\n\n-- \nAlex\n\n"] {
            let found = proven("Content-Type: text/plain; charset=utf-8\n", &format!("approve{gap}{quote}\n"));
            assert_eq!(found.decision, "approve", "{gap:?} {quote}: {found:?}");
        }
    }
}

#[test]
fn text_and_html_must_agree() {
    assert_eq!(alternative("approve", "<p>approve</p>").decision, "approve");
    assert_eq!(alternative("*approve*", "<b>approve</b>").decision, "approve");
    assert_eq!(alternative("approve", "<p>deny</p>").decision, "none");
    assert_eq!(alternative("approve", "<p>approve, but only staging</p>").decision, "none");
    assert_eq!(alternative("approve", "").decision, "none");
    assert_eq!(alternative("approve", "<p style='display:none'>approve</p>").decision, "none");
    assert_eq!(alternative("approve", "<p>please <span style='display:none'>x</span>wait</p>").decision, "none");
    assert_eq!(alternative("", "<p>approve</p>").decision, "approve");
    assert_eq!(alternative("deny", "<p>approve</p>").decision, "none");
    assert_eq!(alternative("approve deny", "<s>approve</s> deny").decision, "none");
}

/// What reads as a condition is one, though a mail program would have written it much like this.
#[test]
fn a_text_of_a_kind_that_is_not_read_keeps_a_yes_from_deciding() {
    let with = |kind: &str, second: &str| {
        proven(
            &format!("MIME-Version: 1.0\nContent-Type: {kind}; boundary=b\n"),
            &format!("--b\nContent-Type: text/plain\n\napprove\n--b\n{second}\n--b--\n"),
        )
    };
    for kind in ["multipart/mixed", "multipart/related"] {
        for second in ["text/enriched", "text/markdown", "text/x-note"] {
            let found = with(kind, &format!("Content-Type: {second}\n\nbut only staging"));
            assert_eq!(found.decision, "none", "{kind} {second}: {found:?}");
        }
    }
    let found = with("multipart/related", "Content-Type: image/png\nContent-ID: <a>\n\nx");
    assert_eq!(found.decision, "approve", "{found:?}");
}

#[test]
fn under_the_senders_name_stand_a_title_and_an_address_and_nothing_else() {
    let decided = |body: &str| proven("Content-Type: text/plain; charset=utf-8\n", body).decision;
    for signed in [
        "Alex",
        "\u{2014}\nAlex",
        "Thanks,\nAlex Meyer\nHead of Operations | Example GmbH\nTel. +49 30 1234567",
        "Alex\nSenior Engineer",
        "Alex\nExample Street 5, Berlin",
        "Kind regards,\n\nAlex Meyer\nHead of Operations | Example GmbH\nThis e-mail is confidential. If you are not the intended \
         recipient, delete it.",
        "Agent <agent@example.net>\n\u{4e8e}2026\u{5e74}3\u{6708}3\u{65e5}\u{5468}\u{4e8c} 09:12\u{5199}\u{9053}\u{ff1a}\n\n> q",
        "Quoting Agent <agent@example.net>:\n> q",
        "Original Message\nFrom: Agent <agent@example.net>\nSent: x\nTo: y\nSubject: z\n\nq",
        "-----Message d\u{2019}origine-----\nDe : Agent <agent@example.net>\nEnvoy\u{e9} : x\n\u{c0} : y\nObjet : z\n\nq",
    ] {
        assert_eq!(decided(&format!("approve\n\n{signed}\n")), "approve", "{signed}");
    }
    for more in [
        "Use The Staging Server",
        "Staging",
        "Dry Run",
        "Delete The Database",
        "Conditionally",
        "Monday",
        "Tomorrow",
        "Forget It",
    ] {
        for name in ["Thanks", "Thanks\nAlex", "Alex Meyer", "Danke", "Kind regards\n\nAlex"] {
            assert_eq!(decided(&format!("approve\n\n{name}\n{more}\n")), "none", "{name} {more}");
        }
    }
    let twice = "Subject: [ow:cccc2222dddd]\n";
    assert_eq!(proven(twice, "approve\n").decision, "none", "of two subjects nobody knows which was seen");
}

/// Lines that begin with capitals and hold what contact lines hold, and that say something.
const SAID_BELOW: &[&str] = &[
    "Nah",
    "Retract",
    "Joking",
    "Reconsider",
    "Disregard",
    "Careful",
    "Pozd\u{11b}ji",
    "Plus Tard",
    "Waiting For Director",
    "Deadline 2026-12-01",
    "Cap At 100000",
    "Am 1.12.2026",
    "1.12.2026",
    "From 2026-12-01",
    "2026-12-01",
    "18:00",
    "18:00 - 20:00",
    "100,000",
    "100.000 EUR",
    "+100000",
    "50%",
    "Version 1.2.3456",
    "1.2.3456",
    "10.0.0.12",
    "Deploy To 10.0.0.12",
    "Broken https://ci.example.org/1",
    "https://ci.example.org/runs/1",
    "Tell bob@example.org",
    "See Slack | Discuss",
    "Leiter Fragen",
    "Nach Freigabe Durch Leiter",
    "Director Disagrees",
    "Head of Operations Disagrees",
    "Omit Finance Department",
    "Omit Acme Inc",
    "Pay To IBAN 12345678",
    "Scope Limited",
    "Berlin",
    "Bob",
];

#[test]
fn under_a_closing_a_line_that_is_not_known_whole_makes_it_no_approval() {
    for text in [
        "approve\n\nAda...",
        "approve Ada",
        "approve Ada, thanks",
        "You have my approval but",
        "approve, thanks and",
        "approve & Ada",
    ] {
        assert_eq!(mail_from("Ada Lovelace <ada@example.org>", text).decision, "none", "{text}");
    }
    for said in SAID_BELOW {
        for closing in [
            "approve, thanks\n\n",
            "Approve\nThanks\n",
            "Approve. Thanks!\n\n",
            "approve\n\nThanks,\nAda\n",
            "approve\n\nAda\n",
        ] {
            let text = format!("{closing}{said}");
            for found in [
                unsigned(&text),
                mail_from("Ada Lovelace <ada@example.org>", &text),
                mail_from("ops@example.org", &text),
                mail_from("Operations <finance-team@example.org>", &text),
            ] {
                assert_eq!(found.decision, "none", "{text:?}: {found:?}");
            }
        }
    }
}

#[test]
fn a_signature_of_known_parts_leaves_an_approval_one() {
    for body in [
        "Approved.\n\nBest regards,\nAda Lovelace\nHead of Operations\n+44 20 1234",
        "approve\n\nThanks,\nAda",
        "approve\n\nA. Lovelace",
        "approve\n\nAda Lovelace | CTO\n221B Baker Street, London",
        "approve\n\nThanks and regards,\nAda Lovelace\nshe/her",
        "That's approved. Vielen Dank und viele Gr\u{fc}\u{df}e, Ada",
        "You have my approval.\n\nWith kind regards,\nAda",
        "S\u{ed}, aprobado. \u{a1}Gracias!",
        "Approve, thanks Ada",
        "approve\n\nThanks\nada@example.org",
        "Genehmigt.\n\nMit freundlichen Gr\u{fc}\u{df}en\n\nAda Lovelace\nGesch\u{e4}ftsf\u{fc}hrerin\nExample GmbH | Berlin\nTel.: +49 30 1234567",
        "Approuv\u{e9}.\n\nCordialement,\nAda Lovelace\nDirectrice technique\nT\u{e9}l. : +33 1 23 45 67 89",
        "Aprobado.\n\nSaludos,\nAda Lovelace\nGerente de Operaciones\nM\u{f3}vil: +34 600 123 456",
        "yes\n\nAda Lovelace, PhD\nVP Engineering | Example Analytics Inc.\nM: +1 (555) 234-5678\nwww.example.org",
        "approve\n\nRegards,\nAda Lovelace (she/her)\nhttps://www.linkedin.com/in/ada-lovelace",
    ] {
        let found = mail_from("Ada Lovelace <ada@example.org>", body);
        assert_eq!(found.decision, "approve", "{body:?}: {found:?}");
    }
    all(
        "approve",
        unsigned,
        &["approve, thanks", "approve\n\nThanks!", "Approve\n\nThanks\n+49 30 1234567", "approve\n-- \nNah"],
    );
}

#[test]
fn only_the_closing_under_a_blank_line_or_with_a_comma_is_cut_from_an_answer() {
    let free = Kind::Question { options: vec![] };
    let answered = |body: &str| {
        let context = Context {
            pending: &[Pending { id: "aaaa1111bbbb".into(), kind: free.clone(), state: State::Pending }],
            kind: &free,
            approvers: &[],
            proof: Proof::Given,
            now: Timestamp::UNIX_EPOCH,
            phrases: &PHRASES,
        };
        let mail = format!("From: Ada <ada@example.org>\n{SUBJECT}\n{body}\n");
        explain(Message::Mail(mail.as_bytes()), &context).answer.unwrap_or_default()
    };
    for whole in [
        "Bob\nAda",
        "The list:\nBest\nWorst",
        "The list:\n\nBest\nWorst",
        "The owner is:\n\nAda",
        "Ada",
        "Thanks",
        "Best",
        "Grace\n\nBob\nAda",
    ] {
        assert_eq!(answered(whole), whole);
    }
    for (body, own) in [
        ("us-east\n\nThanks\nAda", "us-east"),
        ("us-east\nThanks,\nAda", "us-east"),
        ("us-east\r\n\r\nAda", "us-east"),
        ("Ada\n\nThanks,\nAda", "Ada"),
        ("Two:\na\nb\n\nBest regards,\nAda\n+44 20 1234567", "Two:\na\nb"),
    ] {
        assert_eq!(answered(body), own, "{body:?}");
    }
    assert_eq!(of_kind("us-east\n\nThanks\nGrace", &free).answer.as_deref(), Some("us-east\n\nThanks\nGrace"));
}

#[test]
fn an_option_is_named_letter_for_letter_first() {
    let options = ["a".to_owned(), "A".to_owned(), "b)".to_owned(), "b".to_owned()];
    for (text, at) in [("A", 2), ("a", 1), ("A.", 2), ("b", 4), ("b)", 3)] {
        assert_eq!(option(text, &options).map(|(at, _)| at), Some(at), "{text}");
    }
    let options = ["aB".to_owned(), "Ab".to_owned()];
    assert_eq!(option("AB", &options), None, "it may be either");
    assert_eq!(option("2", &options).map(|(at, _)| at), Some(2));
}

#[test]
fn an_address_is_no_name_to_sign_a_condition_with() {
    for (from, body) in [
        ("staging@example.org", "approve staging"),
        ("Dev Team <dev@example.org>", "approve\ndev"),
        ("test@example.org", "Yes, test"),
    ] {
        let address = from.trim_end_matches('>').rsplit('<').next().expect("one");
        let context = Context {
            pending: &[Pending { id: "aaaa1111bbbb".into(), kind: Kind::Approval, state: State::Pending }],
            kind: &Kind::Approval,
            approvers: &[address.into()],
            proof: Proof::Relay("mx.example.net"),
            now: "2026-03-03T08:30:00Z".parse().expect("an instant"),
            phrases: &PHRASES,
        };
        let headers = "To: agent@example.net\nDate: Tue, 3 Mar 2026 09:20:11 +0100\n";
        let mail = format!("{PROOF}From: {from}\n{headers}{SUBJECT}\n{body}\n");
        assert_eq!(explain(Message::Mail(mail.as_bytes()), &context).decision, "none", "{mail}");
    }
}

#[test]
fn hidden_and_struck_text_in_html() {
    all(
        "approve",
        html,
        &[
            "<div style='display:none'>do not</div><div>approve</div>",
            "<p>approve</p><img alt='deny' src='x'>",
            "<div dir='auto'>Approve</div><div class='gmail_signature'>No Such Ltd</div>",
            "<p>Approve<o:p></o:p></p><p>&nbsp;</p>",
            "<form><p>Approve</p><input type=hidden value='no'><textarea></textarea></form>",
        ],
    );
    all(
        "none",
        html,
        &[
            "<div style='display:none'>approve</div>",
            "<div style='display:none'>approve</div><p>please wait</p>",
            "<font color='#FFFFFF'>approve</font>",
            "<span style='font-size:0px'>approve</span> hm",
            "<del>approve</del>",
            "<span style='text-decoration: line-through'>approve</span>",
            "<style>.a{display:none}</style><p class='a'>approve</p>",
            "<!-- approve -->",
            "<title>approve</title>",
            "<blockquote type='cite'>approve</blockquote>",
            "<p>approve</p><blockquote style='margin:0 0 0 40px;border:none'>not on prod</blockquote>",
            "app<span style='display:none'>x</span>rove?",
            "<div style='white-space:pre-wrap'><s>approve</s></div>",
            "<pre><del>approve</del></pre>",
            "<p>approve <span style='background:teal;color:white'>not production</span></p>",
            "<p>approve</p><table><tr><td style='background:maroon;color:#fff'>NOT before Monday</td></tr></table>",
            "<p>approve</p><table><tr><td bgcolor='darkblue' style='color:white'>staging only</td></tr></table>",
            "<p>approve</p><div style='background:linear-gradient(#333,#000);color:white'>staging only</div>",
            "<p>approve</p><div style='background:#fff;background-image:url(x);color:white'>staging only</div>",
            "<style>/* .note{display:none} */</style><p>approve</p><p class='note'>staging only</p>",
            "<style>/* c */ @media print { .a{color:red} .note{display:none} }</style><p>approve</p><p class='note'>staging only</p>",
            "<p>approve</p><p style='display:none;display:block'>staging only</p>",
            "<style>.x{display:none}</style><p>approve</p><p class='x' style='display:block'>staging only</p>",
            "<p>approve</p><div id='Signature'><p>staging only</p></div>",
            "<p>approve</p><svg><text>staging only</text></svg>",
            "<p>approve</p><textarea>staging only</textarea>",
            "<textarea>approve</textarea>",
            "<p>approve</p><select><option>no</option></select>",
            "<p>approve</p><select><option>no<option>yes</select>",
            "<p>approve</p><select><optgroup label='no'></optgroup></select>",
            "<p>approve</p><input value='no'>",
            "<p>approve</p><input type=text placeholder='only staging'>",
            "<p>approve</p><input type=submit value='Cancel'>",
            "<p>approve <input type=checkbox></p>",
            "<p>approve</p><button>no</button>",
            "<p>approve</p><output>no</output>",
            "<p>approve</p><object>no</object>",
            "<p>approve</p><video>no</video>",
            "<p>approve</p><iframe>no</iframe>",
            "<button>approve</button>",
            "<select><option>approve</option></select>",
            "<xmp>approve</xmp>",
            "<style>*{display:none}</style><p>approve</p>",
            "<dialog>approve</dialog>",
            "<p style='filter:opacity(0)'>approve</p>",
        ],
    );
}

#[test]
fn text_in_a_quote_element_decides_nothing_by_itself() {
    let wrapped = |open: &str, close: &str, text: &str| format!("<div dir=ltr>{open}{text}{close}</div>");
    for (open, close) in [
        ("<div class=gmail_quote>", "</div>"),
        ("<div class='gmail_quote gmail_quote_container'><div>", "</div></div>"),
        ("<div class='gmail_quote'><blockquote>q</blockquote>", "</div>"),
        ("<div class=x_gmail_quote>", "</div>"),
        ("<span class=QuotedText>", "</span>"),
        ("<table id=original_citation><tr><td>", "</table>"),
        ("<blockquote style='margin:0 0 0 40px;border:none;padding:0'>", "</blockquote>"),
        ("<q>", "</q>"),
        ("<cite>", "</cite>"),
    ] {
        for text in ["approve", "yes, go ahead", "deny", "deny: too late"] {
            let body = wrapped(open, close, text);
            let found = html(&body);
            assert_eq!(found.decision, "none", "{body}: {}", found.why);
            // Its plain form says nothing new either.
            assert_eq!(alternative("> q", &body).decision, "none", "{body}");
        }
        // It is read where it limits what stands above.
        let limited = format!("approve{}", wrapped(open, close, "on staging only"));
        assert_eq!(html(&limited).decision, "none", "{limited}");
        assert_eq!(alternative("approve\n\non staging only", &limited).decision, "none", "{limited}");
        // Below the quote, where Gmail leaves the cursor, the plain form has no marks.
        let body = wrapped(open, close, "approve");
        assert_eq!(alternative("> q\n\napprove", &body).decision, "approve", "{body}");
    }
    let gmail = "<div>approve</div><div class=gmail_quote>On Tue, Mar 3, 2026 at 9:12 AM Agent &lt;<a>agent@example.net</a>&gt; wrote:<br>\
                 <blockquote class=gmail_quote>q</blockquote></div>";
    assert_eq!(html(gmail).decision, "approve");
}

#[test]
fn a_greeting_names_who_is_known_and_no_other_word() {
    for word in [
        "Retract",
        "Abort",
        "Undo",
        "Rescind",
        "Veto",
        "Annuler",
        "Widerruf",
        "Rifiuto",
        "Friday",
        "Bob",
        "Retract Agent",
        "撤回",
    ] {
        for greeting in ["Hi", "Hello", "Hallo", "Bonjour", "Hola", "Dear", "Good morning", "你好", "こんにちは"]
        {
            let body = format!("{greeting} {word},\napprove");
            assert_eq!(text(&body).decision, "none", "{body}");
            assert_eq!(proven("", &body).decision, "none", "{body}");
            assert_eq!(text(&format!("{greeting} Bob,\ndeny")).decision, "deny");
        }
    }
    for greeting in ["Hi agent,", "Hello team!", "Hallo zusammen", "Hola a", "Good morning,"] {
        let body = format!("{greeting}\napprove");
        let expected = if greeting == "Hola a" { "none" } else { "approve" };
        assert_eq!(text(&body).decision, expected, "{body}");
    }
    // Whom the mail is for is greeted, unless the name would be a condition.
    let to = |name: &str, greeting: &str| {
        let head = format!(
            "{PROOF}{}{SUBJECT}",
            FROM.replace("To: agent", &format!("To: {name} <house")).replace(".net\n", ".net>\n")
        );
        mail(&format!("{head}\n{greeting}\napprove")).decision
    };
    assert_eq!(to("Jeeves Butler", "Dear Jeeves,"), "approve");
    assert_eq!(to("Jeeves Butler", "Hi House"), "approve");
    assert_eq!(to("Jeeves Butler", "Hi Bob"), "none");
    assert_eq!(to("Staging Robot", "Hi Staging"), "none");
}

#[test]
fn what_no_person_wrote_decides_nothing() {
    for headers in [
        "Auto-Submitted: auto-replied\n",
        "Auto-Submitted: auto-generated (x)\n",
        "auto-submitted: Auto-Replied; x=y\n",
        "Precedence: bulk\n",
        "Precedence: auto_reply\n",
        "Precedence: junk\n",
        "X-Autoreply: yes\n",
        "X-Autorespond: 1\n",
        "X-Autoresponder: x\n",
        "X-Auto-Reply: on\n",
        "X-Vacation: yes\n",
        "Return-Path: <>\n",
        "X-MS-Exchange-Inbox-Rules-Loop: a@b\n",
    ] {
        assert_eq!(proven(headers, "approve\n").decision, "none", "{headers}");
    }
    for headers in [
        "Auto-Submitted: no\n",
        "X-Auto-Response-Suppress: All\n",
        "Precedence: list\nList-Id: <x>\n",
        "Return-Path: <alex@example.org>\n",
        "Disposition-Notification-To: alex@example.org\n",
    ] {
        assert_eq!(proven(headers, "approve\n").decision, "approve", "{headers}");
    }
    for subject in [
        "Automatic reply: x",
        "Automatische Antwort: x",
        "Réponse automatique : x",
        "Respuesta automática: x",
        "Resposta automática: x",
        "Risposta automatica: x",
        "Automatisch antwoord: x",
        "Odpowiedź automatyczna: x",
        "自動応答: x",
        "自动回复: x",
        "자동 회신: x",
        "Out of Office: x",
        "Abwesenheitsnotiz: x",
        "Read: x",
        "Gelesen: x",
        "Lu : x",
        "Accepted: x",
        "Zugesagt: x",
        "Undeliverable: x",
        "Fwd: x",
        "FW: x",
        "WG: x",
        "TR: x",
        "RV: x",
        "ENC: x",
        "転送: x",
        "转发: x",
    ] {
        let found = mail(&format!("{PROOF}{FROM}Subject: {subject} [ow:aaaa1111bbbb]\n\napprove\n"));
        assert_eq!((found.decision, found.token.as_deref()), ("none", Some("aaaa1111bbbb")), "{subject}: {found:?}");
    }
    let receipt =
        "MIME-Version: 1.0\nContent-Type: multipart/report; report-type=disposition-notification; boundary=b\n";
    let body = "--b\nContent-Type: text/plain\n\napprove\n--b\nContent-Type: message/disposition-notification\n\nDisposition: x; displayed\n--b--\n";
    assert_eq!(proven(receipt, body).decision, "none");
    let calendar = "MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=b\n";
    let body = "--b\nContent-Type: text/plain\n\napprove\n--b\nContent-Type: text/calendar; method=REPLY\n\nBEGIN:VCALENDAR\n--b--\n";
    assert_eq!(proven(calendar, body).decision, "none");
    let reaction = "--b\nContent-Type: text/plain; charset=utf-8\n\n👍\n--b\nContent-Type: text/vnd.google.email-reaction+json\n\n{}\n--b--\n";
    assert_eq!(proven(calendar, reaction).decision, "none");
}

#[test]
fn files_and_attached_messages_do_not_count() {
    let head = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n";
    let part = |kind: &str, body: &str| format!("--b\nContent-Type: {kind}\n\n{body}\n");
    let plain = |body: &str| part("text/plain", body);
    let attached =
        "--b\nContent-Type: text/plain; name=a.txt\nContent-Disposition: attachment; filename=a.txt\n\napprove\n";
    let message = part("message/rfc822", "From: x@y\nSubject: [ow:cccc2222dddd]\n\napprove");
    assert_eq!(proven(head, &format!("{}{attached}--b--\n", plain("see the file"))).decision, "none");
    assert_eq!(proven(head, &format!("{}{attached}--b--\n", plain(""))).decision, "none");
    assert_eq!(proven(head, &format!("{}{message}--b--\n", plain(""))).decision, "none");
    let found = proven(head, &format!("{}{message}--b--\n", plain("approve")));
    assert_eq!((found.decision, found.token.as_deref()), ("approve", Some("aaaa1111bbbb")));
    assert_eq!(proven(head, &format!("{}{}--b--\n", plain("approve"), plain("wait"))).decision, "none");
}

#[test]
fn the_item_is_the_one_that_the_mail_names() {
    let named = |subject: &str, headers: &str, body: &str| {
        let found = mail(&format!("{PROOF}{FROM}Subject: {subject}\n{headers}\n{body}"));
        (found.decision, found.token)
    };
    let one = |id: &str| Some(id.to_owned());
    let (first, second) = ("aaaa1111bbbb", "cccc2222dddd");
    assert_eq!(named("Re: [ow:AAAA1111BBBB]", "", "approve\n"), ("approve", one(first)));
    assert_eq!(named("Re: [ocw:aaaa1111bbbb]", "", "approve\n"), ("approve", one(first)));
    assert_eq!(named("Re: long [ow:aaaa1111\n bbbb]", "", "approve\n"), ("approve", one(first)));
    assert_eq!(named("Re: x", "In-Reply-To: <ow.aaaa1111bbbb.1@host>\n", "approve\n"), ("approve", one(first)));
    assert_eq!(named("Re: [ow:aaaa1111bbbb] [ow:cccc2222dddd]", "", "approve\n"), ("none", None));
    assert_eq!(
        named("Re: 2 items", "", "approve [ow:cccc2222dddd]\n\n> [ow:aaaa1111bbbb]\n> [ow:cccc2222dddd]\n"),
        ("approve", one(second))
    );
    assert_eq!(named("Re: [ow:aaaa1111bbbb]", "", "approve [ow:cccc2222dddd]\n"), ("none", None));
    assert_eq!(named("Re: x", "", "deny [ow:aaaa1111bbbb]\ndeny [ow:cccc2222dddd]\n"), ("none", None));
    assert_eq!(
        named("Re: x", "", "approve\n\n> [ow:aaaa1111\n> bbbb]\n>> [ow:cccc2222dddd]\n"),
        ("approve", one(first))
    );
    assert_eq!(named("Re: x", "", "approve\n"), ("none", None));
    assert_eq!(named("Re: [ow:eeee3333ffff]", "", "approve\n"), ("none", one("eeee3333ffff")));
    assert_eq!(named("Re: [ow:000000000000]", "", "approve\n"), ("none", one("000000000000")));
    assert_eq!(named("Re: [ow:aaaa1111bbb]", "", "approve\n").0, "none");
}

#[test]
fn only_a_proven_approver_answers() {
    let from = |proof: &str, from: &str| mail(&format!("{proof}{from}{SUBJECT}\napprove\n")).decision;
    assert_eq!(from(PROOF, FROM), "approve");
    for proof in [
        "",
        "Authentication-Results: mx.example.net; dmarc=fail header.from=example.org\n",
        "Authentication-Results: mx.example.net; spf=pass; dkim=pass header.d=example.org\n",
        "Authentication-Results: other.example; dmarc=pass header.from=example.org\n",
        "Authentication-Results: mx.example.net; dmarc=pass header.from=other.example\n",
        "ARC-Authentication-Results: i=1; mx.example.net; dmarc=pass header.from=example.org\n",
    ] {
        assert_eq!(from(proof, FROM), "none", "{proof}");
    }
    let forged_below = format!("Authentication-Results: mx.example.net; dmarc=fail header.from=example.org\n{PROOF}");
    assert_eq!(from(&forged_below, FROM), "none");
    let foreign_above = format!("Authentication-Results: other.example; dmarc=fail\n{PROOF}");
    assert_eq!(from(&foreign_above, FROM), "none");
    for sender in [
        "From: Eve <eve@example.org>\n",
        "From: alex@example.org, eve@example.org\n",
        "From: alex@example.org\nFrom: eve@example.org\n",
        "From: \"alex@example.org\" <eve@example.org>\n",
        "Reply-To: alex@example.org\n",
        "From: alex@example.org.bad.example\n",
        "From: =?utf-8?q?alex=40example.org?= <eve@bad.example>\n",
        "From: Alex <alex@ex\u{430}mple.org>\n",
    ] {
        assert_eq!(from(PROOF, sender), "none", "{sender}");
    }
    let later = "Authentication-Results: mx.example.net; dmarc=temperror header.from=example.org\n";
    assert!(mail(&format!("{later}{FROM}{SUBJECT}\napprove\n")).why.contains("try again"));
    assert_eq!(from(PROOF, "From: alex@example.org\nDate: Tue, 3 Mar 2037 09:20:11 +0100\n"), "none");
}

#[test]
fn what_gateways_put_around_a_mail_does_not_count() {
    let caution =
        "CAUTION: This email originated from outside of the organization. Do not click links or open attachments.\n\n";
    let footer = "\n\nThis e-mail and any attachments are confidential. If you are not the intended recipient, do not read it,\nand delete it.\n";
    let notice = "\n\n________________________________\nCONFIDENTIALITY NOTICE: This message is intended only for its recipient and is confidential.\n";
    for (text, decision) in [
        (format!("{caution}approve\n"), "approve"),
        (format!("approve\n\nKind regards\nAlex{footer}"), "approve"),
        (format!("approve{notice}"), "approve"),
        ("approve\n\nVirus-free. www.avast.com\n".into(), "approve"),
        (format!("deny: too late{footer}"), "deny"),
        (format!("{caution}please wait{footer}"), "none"),
        (format!("approve{footer}\nbut only staging\n"), "none"),
        ("approve\n\nThis message is about staging only\n".into(), "none"),
        ("caution: outside of working hours only, please ask first\n".into(), "none"),
        ("caution: approve nothing that comes from outside of the team, please\n\n".into(), "none"),
    ] {
        let found = proven("Content-Type: text/plain; charset=utf-8\n", &text);
        assert_eq!(found.decision, decision, "{text}: {found:?}");
    }
    assert_eq!(text(&format!("deny: too late{footer}")).comment.as_deref(), Some("too late"));
}

#[test]
fn old_charsets_and_broken_encodings_are_read_or_decide_nothing() {
    let raw = |headers: &str, body: &[u8]| {
        let mut mail = format!("{PROOF}{FROM}{SUBJECT}MIME-Version: 1.0\n{headers}\n").into_bytes();
        mail.extend(body);
        let context = Context {
            pending: &[],
            kind: &Kind::Approval,
            approvers: &[],
            proof: Proof::Given,
            now: Timestamp::UNIX_EPOCH,
            phrases: &PHRASES,
        };
        explain(Message::Mail(&mail), &context).decision
    };
    let plain =
        |charset: &str| format!("Content-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n");
    assert_eq!(raw(&plain("windows-1252"), b"don\x92t approve\n"), "deny");
    assert_eq!(raw(&plain("iso-8859-1"), b"best\xe4tigt\n"), "approve");
    assert_eq!(raw(&plain("shift_jis"), b"\x8f\xb3\x94F\x82\xb5\x82\xdc\x82\xb7\n"), "approve");
    assert_eq!(raw(&plain("gb18030"), b"\xcd\xac\xd2\xe2\n"), "approve");
    assert_eq!(raw(&plain("euc-kr"), b"\xbd\xc2\xc0\xce\n"), "approve");
    assert_eq!(raw(&plain("x-unknown"), b"approve\n"), "approve");
    assert_eq!(raw(&plain("x-unknown"), b"\xff\xfeapprove\n"), "none");
    assert_eq!(raw("", "don’t approve\n".as_bytes()), "deny");
    assert_eq!(raw("Content-Transfer-Encoding: quoted-printable\n", b"app=\nrove=20\n"), "approve");
    assert_eq!(raw("Content-Transfer-Encoding: base64\n", b"YXBwcm92ZQ==\n"), "approve");
    assert_eq!(raw("Content-Transfer-Encoding: base64\n", b"YXBw!!!\n"), "none");
    assert_eq!(raw("Content-Transfer-Encoding: x-odd\n", b"YXBwcm92ZQ==\n"), "none");
}

#[test]
fn a_mail_made_to_be_slow_is_read_like_any_other() {
    for unit in ["\n", ">\n\n", "> a\nb\n", "From: a\n", "On 3/3/26 a@b wrote\n", "[ow:", "<div>", "<", "&", "=?", "("]
    {
        let body = unit.repeat(40_000 / unit.len());
        assert_eq!(proven("", &body).decision, "none", "{unit:?}");
        assert_eq!(html(&body).decision, "none", "{unit:?}");
    }
}

#[test]
fn an_answer_too_long_to_be_read_whole_is_none() {
    let found = proven("", &format!("approve\n{}only staging\n", "\n".repeat(600_000)));
    assert_eq!(found.decision, "none", "{found:?}");
}

#[test]
fn flowed_text_is_put_together() {
    let flowed = |body: &str| proven("Content-Type: text/plain; format=flowed\n", body).decision;
    assert_eq!(flowed("go \nahead\n\n> q \n> q\n"), "approve");
    assert_eq!(flowed("do not \napprove\n"), "deny");
    assert_eq!(flowed("approve\n\n-- \nAlex\nNo Ltd\n"), "approve");
}
