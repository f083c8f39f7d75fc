use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ow_test_support::{Dovecot, MailSink, Scratch, monotonic, until};
use serde_json::json;

use crate::figure::Figures;
use crate::http::Http;
use crate::idle::kib;
use crate::inbox::{ASKING, park};
use crate::load::within;
use crate::load::{started_at, timed, wait_parked, wall};
use crate::measurement::Scale;

const RELAY: &str = "mx.example.net";

/// Answers by mail to the start of what they allow, alone and beside many open items of which all were told by mail; how fast
/// they were; and the same with a mailbox that holds many mails.
pub(crate) fn measure(scale: Scale, figures: &mut Figures) {
    handed_over(scale, figures);
    full_mailbox(scale, figures);
}

/// A home whose items are told to ada by this server, and whose mail comes over a socket.
fn home(sink: &MailSink, incoming: &str) -> Scratch {
    let scratch = Scratch::new();
    let uid = std::fs::metadata(scratch.path()).expect("a home").uid();
    scratch.config(&format!(
        "[policy]\nsafe-commands = \"off\"\n[mail]\nauthserv-id = \"{RELAY}\"\nsignatures = false\nlmtp = \"{}\"\n{incoming}\
         [mail.out]\nserver = \"{}\"\nsecurity = \"none\"\nfrom = \"owd@example.net\"\n\
         [people.ada]\nuids = [{uid}]\nmail = [\"ada@example.org\"]\n[inboxes.default]\nmail = [\"ada@example.org\"]\n",
        socket(&scratch).display(),
        sink.address()
    ));
    scratch
}

fn socket(scratch: &Scratch) -> std::path::PathBuf {
    scratch.path().join("lmtp")
}

/// An approval, as the relay lets it through.
pub(crate) fn approval(item: &str, number: usize) -> String {
    format!(
        "Authentication-Results: {RELAY}; dmarc=pass header.from=example.org\r\nFrom: Ada <ada@example.org>\r\nTo: owd@example.net\r\n\
         Subject: Re: Approval needed [ow:{item}]\r\nMessage-ID: <{number}.{item}@mail.example.org>\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\r\napprove\r\n"
    )
}

/// One connection of a mail server of this machine.
struct Lmtp(BufReader<UnixStream>);

impl Lmtp {
    fn connect(path: &Path) -> Self {
        let stream = until("the socket is there", || UnixStream::connect(path).ok());
        let mut this = Self(BufReader::new(stream));
        this.answer();
        this.say("LHLO bench\r\n");
        this
    }

    fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("an answer");
            if line.as_bytes().get(3) != Some(&b'-') {
                return line;
            }
        }
    }

    fn say(&mut self, text: &str) -> String {
        self.0.get_mut().write_all(text.as_bytes()).expect("said");
        self.answer()
    }

    /// Hands a mail over; returns once it is handled.
    fn hand_over(&mut self, mail: &str) {
        self.say("MAIL FROM:<ada@example.org>\r\n");
        self.say("RCPT TO:<owd@example.net>\r\n");
        self.say("DATA\r\n");
        let answer = self.say(&format!("{mail}.\r\n"));
        assert!(answer.starts_with("250"), "{answer}");
    }
}

/// Parks one more run, and gives its item and run.
fn one_more(http: &mut Http, parked: usize, key: &str) -> (String, String) {
    http.ok("POST", "/v1/events", &json!({ "events": [{ "task": "asking", "key": key, "data": {} }] }));
    wait_parked(http, u64::try_from(parked).expect("a count") + 1);
    let newest = http.get("/v1/items?limit=1")["rows"][0].clone();
    let text = |key: &str| newest[key].as_str().expect("an item of a run").to_owned();
    (text("id"), text("run"))
}

fn answers(
    http: &mut Http,
    (label, parked): (&str, usize),
    scale: Scale,
    mut hand_over: impl FnMut(&str, usize),
) -> Vec<Duration> {
    (0..scale.rounds.min(100))
        .map(|round| {
            let (item, run) = one_more(http, parked, &format!("{label}-{round}"));
            let began = wall();
            hand_over(&approval(&item, round), round);
            let run = format!("/v1/runs/{run}");
            let started = until("the approved call has run", || started_at(&http.get(&run)));
            started.saturating_sub(began)
        })
        .collect()
}

fn handed_over(scale: Scale, figures: &mut Figures) {
    let sink = MailSink::start();
    let scratch = home(&sink, "");
    let owd = scratch.start();
    let mut http = Http::connect(scratch.path());
    http.ok("PUT", "/v1/tasks/asking", &json!({ "definition": ASKING }));
    let mut lmtp = Lmtp::connect(&socket(&scratch));
    let alone = answers(&mut http, ("alone", 0), scale, |mail, _| lmtp.hand_over(mail));
    figures.times("a mail handed over to the tool's start, alone", &alone, "");
    let before = kib(owd.pid(), "Rss:");
    let sent = sink.count();
    let began = monotonic();
    park(&mut http, 0, scale.parked);
    within("all notices", || (sink.count() >= sent + scale.parked).then_some(()));
    let took = monotonic().saturating_sub(began).as_secs_f64().max(1e-3);
    let told = f64::from(u32::try_from(scale.parked).expect("a count"));
    figures.value(format!("notices a second by SMTP, of {} as they are asked", scale.parked), "1/s", told / took, "");
    figures.value(format!("memory before {} open items with mail bound", scale.parked), "KiB", before, "");
    figures.value("memory after", "KiB", kib(owd.pid(), "Rss:"), "");
    let many = answers(&mut http, ("many", scale.parked), scale, |mail, _| lmtp.hand_over(mail));
    figures.times(format!("a mail handed over to the tool's start, {} open", scale.parked), &many, "");
    owd.stop();
}

fn full_mailbox(scale: Scale, figures: &mut Figures) {
    let Some(dovecot) = Dovecot::start() else { return };
    for number in 0..scale.parked {
        let mail = format!("From: eve@example.com\r\nSubject: mail {number}\r\n\r\nHello {number}\r\n");
        dovecot.put("owd", &format!("old{number}"), &mail);
    }
    let sink = MailSink::start();
    let incoming = format!(
        "[mail.in]\nserver = \"{}\"\nsecurity = \"none\"\nuser = \"owd\"\npassword = \"mail-password\"\n",
        dovecot.address()
    );
    let scratch = home(&sink, &incoming);
    let start = || {
        scratch.start_with(|command| {
            command.env("OWD_SECRET_MAIL_PASSWORD", "secret");
        })
    };
    let opened = |times: usize| (scratch.stderr().matches("the mailbox is open").count() >= times).then_some(());
    let (owd, first) = timed(|| {
        let owd = start();
        until("the mailbox is open", || opened(1));
        owd
    });
    figures.times(format!("start to a mailbox of {} open, first time", scale.parked), &[first], "");
    let mut http = Http::connect(scratch.path());
    http.ok("PUT", "/v1/tasks/asking", &json!({ "definition": ASKING }));
    let came =
        answers(&mut http, ("mailbox", 0), scale, |mail, round| dovecot.put("owd", &format!("new{round}"), mail));
    figures.times(format!("a mail put in a mailbox of {} to the tool's start", scale.parked), &came, "");
    owd.stop();
    let (owd, again) = timed(|| {
        let owd = start();
        until("the mailbox is open", || opened(2));
        owd
    });
    figures.times(format!("start to a mailbox of {} open, another time", scale.parked), &[again], "");
    owd.stop();
}
