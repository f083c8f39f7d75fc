//! One item, all surfaces: whoever answers first decides, once, and everybody else is told who, when and what.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use jiff::{SignedDuration, Timestamp};
use ow_stories::{asking, executions, tcp_door};
use ow_test_support::{Owd, SLACK_BOT, Scratch, Slack, id, until};
use serde_json::Value;

const RELAY: &str = "mx.example.net";
const CHANNEL: &str = "C1";
const ADA: &str = "UADA";

/// A way to answer an item.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Surface {
    /// `owctl inbox`, over the Unix socket.
    Socket,
    /// The control API over TCP, as a page in a browser has it.
    Tcp,
    /// A mail that the relay lets through.
    Mail,
    /// A button of the notice in the channel, or, where the buttons have given way, a message there.
    Slack,
}

const SURFACES: [Surface; 4] = [Surface::Socket, Surface::Tcp, Surface::Mail, Surface::Slack];

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Decision {
    Approve,
    Deny,
}

impl Decision {
    const fn other(self) -> Self {
        match self {
            Self::Approve => Self::Deny,
            Self::Deny => Self::Approve,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }

    /// What a run ends as, what who is too late is told, and how the notice in the channel ends.
    const fn outcome(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Approve => ("succeeded", "already approved by ada", "Approved by ada"),
            Self::Deny => ("refused", "already denied by ada", "Denied by ada"),
        }
    }
}

/// How an answer was taken.
#[derive(Debug, Eq, PartialEq)]
enum Taken {
    Decided,
    /// It was told of a decision before it.
    Told(String),
}

/// A home in which ada may answer by all surfaces.
struct Home {
    scratch: Scratch,
    slack: Slack,
}

impl Home {
    fn new(more: &str) -> Self {
        let slack = Slack::start();
        slack.user(ADA, "ada");
        slack.channel(CHANNEL, "ops", &[ADA, SLACK_BOT]);
        let scratch = asking();
        let uid = fs::metadata(scratch.path()).expect("a home").uid();
        scratch.config(&format!(
            "[server]\ntcp = \"127.0.0.1:0\"\n[mail]\nauthserv-id = \"{RELAY}\"\n\
             [slack]\nbot-token = \"slack-bot-token\"\napp-token = \"slack-app-token\"\napi-url = \"{}\"\n\
             [inboxes.default]\nslack = [\"{CHANNEL}\"]\n\
             [people.ada]\nuids = [{uid}]\nmail = [\"ada@example.org\"]\nslack = [\"{ADA}\"]\n{more}",
            slack.url()
        ));
        let file = scratch.path().join("config/secrets.toml");
        let (bot, app) = (slack.bot_token(), slack.app_token());
        fs::write(&file, format!("slack_bot_token = \"{bot}\"\nslack_app_token = \"{app}\"\n")).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("for its owner alone");
        Self { scratch, slack }
    }

    fn start(&self) -> Owd {
        let owd = self.scratch.start();
        self.slack.wait_for_connection();
        owd
    }

    /// The notice of an item in the channel.
    fn notice(&self, item: &str) -> Value {
        self.slack.wait_for_message(CHANNEL, |message| {
            message["thread_ts"].is_null() && message["text"].as_str().is_some_and(|text| text.contains(item))
        })
    }

    fn answer(&self, owd: &Owd, surface: Surface, item: &str, decision: Decision) -> Taken {
        let word = decision.word();
        match surface {
            Surface::Socket => {
                let answer = owd.owctl.run(&["inbox", word, item]);
                match answer.code {
                    0 => Taken::Decided,
                    5 => Taken::Told(answer.stderr),
                    _ => panic!("{answer:?}"),
                }
            }
            Surface::Tcp => {
                let (path, body) = (format!("/v1/items/{item}/answer"), format!(r#"{{"answer":"{word}"}}"#));
                let reply = tcp_door(&self.scratch, owd).send("POST", &path, &[], &body);
                match reply.status {
                    200 => Taken::Decided,
                    409 => Taken::Told(reply.json()["error"]["message"].as_str().expect("a message").to_owned()),
                    _ => panic!("{reply:?}"),
                }
            }
            Surface::Mail => {
                let file = self.scratch.path().join("mail.eml");
                fs::write(&file, mail(item, word)).expect("a mail");
                let delivered = owd.owctl.json(&["inbox", "deliver", file.to_str().expect("a path")]);
                match delivered["outcome"].as_str() {
                    Some("done") => Taken::Decided,
                    Some("already-decided") => Taken::Told(delivered["told"].as_str().expect("a text").to_owned()),
                    _ => panic!("{delivered}"),
                }
            }
            Surface::Slack => self.answer_in_slack(owd, item, decision),
        }
    }

    fn answer_in_slack(&self, owd: &Owd, item: &str, decision: Decision) -> Taken {
        let is_open = || owd.items().iter().any(|open| id(open) == item);
        if is_open() {
            let notice = self.notice(item);
            let button = if decision == Decision::Approve { "once" } else { "deny" };
            self.slack.presses(CHANNEL, ADA, notice["ts"].as_str().expect("a ts"), button);
            until("the item is decided", || (!is_open()).then_some(()));
            return Taken::Decided;
        }
        let before = self.slack.ephemerals(CHANNEL, ADA).len();
        self.slack.says(CHANNEL, ADA, &format!("{} [ow:{item}]", decision.word()));
        let told = until("she is told, and nobody else", || {
            self.slack.ephemerals(CHANNEL, ADA).get(before).map(ToString::to_string)
        });
        Taken::Told(told)
    }

    /// Waits until a notice in the channel says how it ended, and offers nothing any more.
    fn settled(&self, notice: &Value, words: &str) {
        until(&format!("the notice says `{words}`"), || {
            let now = self.slack.message(CHANNEL, notice["ts"].as_str()?)?["blocks"].to_string();
            (now.contains(words) && !now.contains("\"actions\"")).then_some(())
        });
    }
}

#[expect(clippy::disallowed_methods, reason = "owd under test reads the same clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

fn mail(item: &str, text: &str) -> String {
    format!(
        "Authentication-Results: {RELAY}; dmarc=pass header.from=example.org\nFrom: Ada <ada@example.org>\n\
         To: owd@example.net\nSubject: Re: Approval needed [ow:{item}]\nMIME-Version: 1.0\n\
         Content-Type: text/plain; charset=utf-8\n\n{text}\n"
    )
}

/// All orders of two competing answers, each with a `kill -9` in between.
fn all_orders(decision: Decision) {
    let home = Home::new("");
    let mut owd = home.start();
    let (state, told, settled) = decision.outcome();
    let (mut approvals, mut notices) = (0, vec![]);
    for first in SURFACES {
        for second in SURFACES {
            let what = format!("{first:?} {decision:?}, then {second:?}");
            owd.owctl.ok(&["task", "run", "asking"]);
            let item = id(&owd.item());
            notices.push(home.notice(&item));
            // Else the kill might come in the middle of the approved call, and somebody would be asked what came of it.
            owd.owctl.ok(&["pause", "--all"]);
            assert_eq!(home.answer(&owd, first, &item, decision), Taken::Decided, "{what}");
            owd.kill();
            owd = home.start();
            match home.answer(&owd, second, &item, decision.other()) {
                Taken::Told(text) => {
                    assert!(text.contains(told), "{what}: {text}");
                    let day = now().strftime("%Y-%m-%d").to_string();
                    assert!(text.contains(&day), "{what}: it says when: {text}");
                }
                Taken::Decided => panic!("{what}: decided twice"),
            }
            owd.owctl.ok(&["resume", "--all"]);
            owd.run_in("asking", state);
            approvals += usize::from(decision == Decision::Approve);
            assert_eq!(executions(&home.scratch), approvals, "{what}");
            let shown = owd.owctl.json(&["inbox", "show", &item]);
            assert_eq!(shown["resolution"]["by"], "ada", "{what}: {shown}");
        }
    }
    for notice in notices {
        home.settled(&notice, settled);
    }
}

#[test]
fn of_two_answers_in_every_order_an_approval_that_came_first_stands() {
    all_orders(Decision::Approve);
}

#[test]
fn of_two_answers_in_every_order_a_denial_that_came_first_stands() {
    all_orders(Decision::Deny);
}

/// The report of 8 o'clock: the machine is off over its slot, the run that makes up for it is slow and runs into the next
/// slot, its summariser fails, and what it would send is approved in Slack.
#[test]
fn the_report_of_eight_o_clock_is_one_run_one_skip_and_one_message() {
    let home = Home::new("");
    let work = home.scratch.work();
    let allow = |name: &str, script: &str| {
        fs::write(work.join(name), script).expect("a script");
        format!("\"sh {}\"", work.join(name).display())
    };
    let slow = allow("slow.sh", &format!("until [ -e {} ]; do sleep 0.05; done\n", work.join("go").display()));
    let summarise = allow("summarise.sh", "echo the model is out of order >&2; exit 3\n");
    let config = home.scratch.path().join("config/owd.toml");
    let text = fs::read_to_string(&config).expect("a configuration");
    fs::write(&config, format!("{text}[policy]\nallow = [{slow}, {summarise}]\n")).expect("written");

    let eight = Timestamp::from_second(now().as_second() + 4).expect("a time");
    let next = eight + SignedDuration::from_secs(16);
    home.scratch.task(
        "report",
        &format!(
            "[[trigger]]\nat = \"{eight}\"\n[[trigger]]\nat = \"{next}\"\n\
             [[step]]\ntool = \"shell\"\nargs = {{ argv = [\"sh\", \"{{work}}/slow.sh\"] }}\n\
             [[step]]\ntool = \"shell\"\nargs = {{ argv = [\"sh\", \"{{work}}/summarise.sh\"] }}\non-error = \"continue\"\n\
             [[step]]\ntool = \"shell\"\nargs = {{ argv = [\"sh\", \"{{work}}/count.sh\"] }}\n"
        ),
    );
    home.start().kill();
    until("it is past eight", || (now() > eight).then_some(()));
    let owd = home.start();
    owd.run_in("report", "running");
    let skipped = || {
        let records = owd.owctl.json(&["why", "report"])["records"].as_array().expect("records").clone();
        records.into_iter().find(|record| record["disposition"] == "skipped")
    };
    let skip = until("the next slot is skipped", skipped);
    assert_eq!(skip["why"], "overlap", "{skip}");
    fs::write(work.join("go"), "").expect("the slow part may end");

    let item = id(&owd.item());
    let notice = home.notice(&item);
    assert_eq!(home.answer(&owd, Surface::Slack, &item, Decision::Approve), Taken::Decided);
    let run = owd.run_in("report", "succeeded");
    home.settled(&notice, "Approved by ada");

    assert_eq!(owd.runs("report").len(), 1, "one run");
    assert_eq!(executions(&home.scratch), 1);
    let why = owd.owctl.json(&["why", "report"]);
    let records = why["records"].as_array().expect("records");
    let became: Vec<(&str, Option<&str>)> = records
        .iter()
        .map(|record| (record["disposition"].as_str().unwrap_or_default(), record["run"].as_str()))
        .collect();
    assert_eq!(became, [("missed", Some(id(&run).as_str())), ("skipped", None)], "{why}");
    let told = owd.owctl.ok(&["why", "report", &eight.to_string()]);
    assert!(told.contains("as a catch-up run for the missed slot of") && told.contains("owd was down"), "{told}");
    let shown = owd.owctl.json(&["run", "show", &id(&run)]);
    assert!(shown["calls"][1].to_string().contains("the model is out of order"), "{shown}");
    let messages = home.slack.messages(CHANNEL);
    assert_eq!(messages.len(), 1, "one message: {messages:?}");
}
