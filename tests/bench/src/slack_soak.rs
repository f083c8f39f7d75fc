//! Slack in bad weather for some minutes: what people say and press there is decided once, and nothing is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use ow_test_support::{SLACK_BOT, Slack, monotonic};
use serde_json::{Value, json};

use crate::figure::Figures;
use crate::http::Http;
use crate::idle::kib;
use crate::load::within;
use crate::slack::{ASKING, home};

const CHANNEL: &str = "C1";
/// Between two looks at the world.
const TICK: Duration = Duration::from_millis(100);
/// Whoever sees no effect of an answer for so long gives it again.
const PATIENCE: Duration = Duration::from_secs(8);
/// Items that wait at the same time, at most.
const OPEN: usize = 20;
/// Methods that fail now and then.
const METHODS: [&str; 5] =
    ["chat.postMessage", "chat.update", "chat.postEphemeral", "apps.connections.open", "conversations.replies"];

/// What was done to one item.
#[derive(Default)]
struct Asked {
    /// The ts of its notice.
    notice: Option<String>,
    /// Whether it is allowed; both, where people disagree.
    answers: Vec<bool>,
    given: Duration,
    times: usize,
}

/// How often a method had been called when it was last told to fail.
type Refused = BTreeMap<&'static str, usize>;

/// The weather, the same for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// # Panics
///
/// When an answer was lost or counted twice.
pub(crate) fn measure(minutes: u64, figures: &mut Figures) {
    let slack = Slack::start();
    slack.user("UADA", "ada");
    slack.channel(CHANNEL, "ops", &["UADA", SLACK_BOT]);
    slack.patience(Duration::from_secs(2));
    let scratch = home(&slack, "http://127.0.0.1:9");
    let owd = scratch.start();
    slack.wait_for_connection();
    let mut http = Http::connect(scratch.path());
    http.ok("PUT", "/v1/tasks/asking", &json!({ "definition": ASKING }));
    let before = kib(owd.pid(), "Rss:");
    let end = monotonic() + Duration::from_secs(60 * minutes);
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let mut items: BTreeMap<String, Asked> = BTreeMap::new();
    let (mut events, mut storms, mut down_until, mut refused) = (0, 0, None, Refused::new());
    let mut next_storm = monotonic();
    while monotonic() < end {
        if chance.one_in(4) && events - decided(&mut http, events) < OPEN {
            let event = json!({ "task": "asking", "key": format!("soak-{events}"), "data": {} });
            http.ok("POST", "/v1/events", &json!({ "events": [event] }));
            events += 1;
        }
        look(&mut http, &slack, &mut items);
        people(&slack, &mut items, &mut chance);
        if down_until.is_some_and(|until| until <= monotonic()) {
            down_until = None;
            slack.is_down(false);
        }
        if down_until.is_none() && next_storm <= monotonic() {
            storms += usize::from(storm(&slack, &mut chance, &mut down_until, &mut refused));
            next_storm = monotonic() + Duration::from_millis(500 + chance.below(4_000));
        }
        std::thread::park_timeout(TICK);
    }
    slack.is_down(false);
    within("every item is decided", || {
        look(&mut http, &slack, &mut items);
        people(&slack, &mut items, &mut chance);
        (items.len() == events && decided(&mut http, events) == events).then_some(())
    });
    within("Slack's events are acknowledged", || (slack.unacknowledged() == 0).then_some(()));
    let twice = verify(&mut http, &slack, &items);
    let after = kib(owd.pid(), "Rss:");
    report(figures, &slack, &items, &[("storms", storms), ("notices that came twice", twice)]);
    figures.value("memory at the start of the soak", "KiB", before, "");
    figures.value("memory at its end", "KiB", after, "flat");
    owd.stop();
}

fn report(figures: &mut Figures, slack: &Slack, items: &BTreeMap<String, Asked>, more: &[(&str, usize)]) {
    let answers: usize = items.values().map(|item| item.times).sum();
    let refused: usize =
        METHODS.iter().map(|method| slack.calls(method).iter().filter(|call| call.status >= 400).count()).sum();
    let counts = [
        ("items decided, each once", items.len()),
        ("answers given in Slack", answers),
        ("sockets opened", slack.hellos()),
        ("calls that Slack refused with 429 or 5xx", refused),
    ];
    for (name, count) in counts.iter().chain(more) {
        figures.value(*name, "", f64::from(u32::try_from(*count).expect("a count")), "");
    }
}

/// Runs that have ended.
fn decided(http: &mut Http, events: usize) -> usize {
    let status = http.get("/v1/status");
    let count = |name: &str| status[name].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let open = count("runs_running") + count("runs_queued") + count("runs_parked") + count("events_waiting");
    events.saturating_sub(open)
}

/// New items, and where they were told of.
fn look(http: &mut Http, slack: &Slack, items: &mut BTreeMap<String, Asked>) {
    for item in http.get("/v1/items?limit=100")["rows"].as_array().into_iter().flatten() {
        items.entry(item["id"].as_str().expect("an id").to_owned()).or_default();
    }
    if items.values().all(|item| item.notice.is_some()) {
        return;
    }
    for message in slack.messages(CHANNEL).iter().filter(|message| message["thread_ts"].is_null()) {
        let text = message["text"].as_str().unwrap_or_default();
        let Some((_, rest)) = text.split_once("[ow:") else { continue };
        let Some((id, _)) = rest.split_once(']') else { continue };
        if let Some(item) = items.get_mut(id).filter(|item| item.notice.is_none()) {
            item.notice = message["ts"].as_str().map(str::to_owned);
        }
    }
}

/// People answer what they were told of, and again where nothing comes of it.
fn people(slack: &Slack, items: &mut BTreeMap<String, Asked>, chance: &mut Chance) {
    let now = monotonic();
    for item in items.values_mut() {
        let Some(notice) = item.notice.clone() else { continue };
        if item.times > 0 && now.saturating_sub(item.given) < PATIENCE {
            continue;
        }
        let shown = slack.message(CHANNEL, &notice).unwrap_or_default();
        if !shown["blocks"].to_string().contains("\"actions\"") {
            continue;
        }
        if item.answers.is_empty() {
            item.answers = if chance.one_in(5) { vec![true, false] } else { vec![chance.one_in(2)] };
        }
        for allowed in item.answers.clone() {
            match (chance.one_in(2), allowed) {
                // As it was shown: the buttons may be gone by now.
                (true, true) => slack.presses_old(CHANNEL, "UADA", &shown, "once"),
                (true, false) => slack.presses_old(CHANNEL, "UADA", &shown, "deny"),
                (false, allowed) => {
                    slack.replies(CHANNEL, "UADA", &notice, if allowed { "approve" } else { "deny" });
                }
            }
            item.times += 1;
        }
        item.given = now;
    }
}

/// Something goes wrong: with the socket, or with a call.
fn storm(slack: &Slack, chance: &mut Chance, down_until: &mut Option<Duration>, refused: &mut Refused) -> bool {
    match chance.below(12) {
        0 | 1 => slack.cuts(),
        2 => slack.disconnects("refresh_requested"),
        3 => slack.disconnects("warning"),
        4 => {
            slack.is_down(true);
            *down_until = Some(monotonic() + Duration::from_millis(300 + chance.below(1_500)));
        }
        _ => {
            let method = METHODS[usize::try_from(chance.below(METHODS.len() as u64)).unwrap_or(0)];
            // One at a time: Slack's bad moments pass whether or not somebody calls in them.
            let calls = slack.calls(method).len();
            if refused.insert(method, calls) == Some(calls) {
                return false;
            }
            match chance.below(3) {
                0 => slack.limits(method, 1),
                1 => slack.fails(method, 500 + u16::try_from(chance.below(4)).unwrap_or(0)),
                _ if method == "chat.postMessage" => slack.loses_answer(method),
                _ => slack.fails(method, 503),
            }
        }
    }
    true
}

/// What each item became is what somebody said, its run agrees, and its notice shows it; how many notices came twice.
fn verify(http: &mut Http, slack: &Slack, items: &BTreeMap<String, Asked>) -> usize {
    for (id, asked) in items {
        let item = http.get(&format!("/v1/items/{id}"));
        let allowed = match item["resolution"]["answer"]["kind"].as_str() {
            Some("approve") => true,
            Some("deny") => false,
            other => panic!("{id} became {other:?}: {item}"),
        };
        assert!(asked.answers.contains(&allowed), "nobody said so of {id}: {item}");
        let run = http.get(&format!("/v1/runs/{}", item["run"].as_str().expect("a run")));
        let expected = if allowed { "succeeded" } else { "refused" };
        assert_eq!(run["state"], expected, "{id}");
        let notice = asked.notice.as_deref().expect("a notice");
        within("the notice shows it", || {
            let now: Value = slack.message(CHANNEL, notice).unwrap_or_default();
            (!now["blocks"].to_string().contains("\"actions\"")).then_some(())
        });
    }
    let notices = slack.messages(CHANNEL);
    let notices = notices.iter().filter(|message| message["bot_id"].is_string() && message["thread_ts"].is_null());
    notices.count().saturating_sub(items.len())
}
