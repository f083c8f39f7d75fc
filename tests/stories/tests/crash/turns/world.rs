use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use ow_stories::Door;
use ow_stories::model_config;
use ow_test_support::model_server::{ModelResponse, ModelServer};
use ow_test_support::{LIMIT, Owd, Scratch, id, monotonic, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::outside::Outside;
use super::script::{goal, reply};
use crate::world::{Effect, Fate, Said};

/// The outside world's counter: an effect is one line. It strikes its caller's caller down where a file says so.
const COUNT: &str = r#"echo "$1 $2" >> {work}/effects
if [ -e {work}/strike ]; then
    n=$(cat {work}/strike)
    if [ "$n" = 1 ]; then kill -9 $(cat {work}/pid); fi
    echo $((n - 1)) > {work}/strike
fi
"#;

/// When owd is struck down from outside, and who it is.
#[derive(Debug, Default)]
pub(crate) struct Strike {
    pid: AtomicU32,
    /// Requests to a model until the strike; below 1: none.
    asked: AtomicI64,
    /// Requests to the service until the strike.
    effects: AtomicI64,
    /// Microseconds from the last byte of the reply on; with 0 the request stays without one.
    after: AtomicU32,
}

impl Strike {
    fn now(&self) {
        if let Some(pid) = i32::try_from(self.pid.swap(0, Ordering::SeqCst)).ok().and_then(Pid::from_raw) {
            // It may be gone already.
            kill_process(pid, Signal::KILL).unwrap_or_default();
        }
    }

    pub(crate) fn at_request(&self, number: u64, after: Duration) {
        self.after.store(u32::try_from(after.as_micros()).expect("short"), Ordering::SeqCst);
        self.asked.store(i64::try_from(number).expect("small"), Ordering::SeqCst);
    }

    pub(crate) fn at_service(&self, number: u64) {
        self.effects.store(i64::try_from(number).expect("small"), Ordering::SeqCst);
    }

    pub(super) fn at_effect(&self) {
        if self.effects.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.now();
        }
    }
}

/// A home with agents, their model, and what is around them.
pub(crate) struct Agents {
    pub(crate) scratch: Scratch,
    pub(crate) said: Said,
    pub(crate) model: ModelServer,
    pub(crate) strike: Arc<Strike>,
    /// Messages that a chat has taken: session and name.
    pub(crate) messages: BTreeMap<String, BTreeSet<String>>,
    /// Effects that a person has said no to, or left unknown.
    pub(crate) denied: BTreeSet<Effect>,
    _outside: Outside,
}

impl Agents {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        let work = scratch.work();
        let place = work.to_string_lossy().into_owned();
        fs::write(work.join("count.sh"), COUNT.replace("{work}", &place)).expect("a script");
        fs::write(work.join("seed.txt"), "a plum\n").expect("a file");
        fs::create_dir_all(work.join("notes")).expect("a folder");
        let strike: Arc<Strike> = Arc::default();
        let outside = Outside::start(work.join("effects"), Arc::clone(&strike));
        let model = ModelServer::start();
        let (url, striking) = (format!("http://{}", outside.authority()), Arc::clone(&strike));
        model.answer(move |request| {
            let response = ModelResponse::from(reply(request, &place, &url));
            if striking.asked.fetch_sub(1, Ordering::SeqCst) == 1 {
                let after = Duration::from_micros(striking.after.load(Ordering::SeqCst).into());
                if after.is_zero() {
                    striking.now();
                    return response;
                }
                let striking = Arc::clone(&striking);
                drop(thread::spawn(move || {
                    let at = monotonic() + after;
                    while monotonic() < at {
                        thread::park_timeout(at.saturating_sub(monotonic()));
                    }
                    striking.now();
                }));
            }
            response
        });
        let policy = format!(
            "
[policy]
allow = [\"sh {}/count.sh\"]
http-allow = [\"{}\"]
",
            work.display(),
            outside.authority()
        );
        scratch.config(&model_config(&model, &policy));
        for (script, mode) in [("works", "edit"), ("asks", "ask"), ("sleeps", "ask")] {
            let goal = goal(script, "{{ run.id }}");
            scratch.task(
                script,
                &format!("mode = \"{mode}\"\nroots = [\"{{work}}\"]\noverlap = {{ allow = 20 }}\ngoal = \"{goal}\"\n"),
            );
        }
        let (messages, denied) = (BTreeMap::new(), BTreeSet::new());
        Self { scratch, said: Said::default(), model, strike, messages, denied, _outside: outside }
    }

    /// Strikes must know whom to strike.
    pub(crate) fn is_led_by(&self, owd: &Owd) {
        self.strike.pid.store(owd.pid(), Ordering::SeqCst);
        fs::write(self.scratch.work().join("pid"), owd.pid().to_string()).expect("a file");
    }

    /// The n-th effect of a command from here on strikes owd down before its end is known.
    pub(crate) fn strike_at_command(&self, number: u64) {
        fs::write(self.scratch.work().join("strike"), number.to_string()).expect("a file");
    }

    /// The scripted load. What fails was not acknowledged, and is not tried again.
    pub(crate) fn load(&mut self) {
        for task in ["works", "asks", "sleeps"] {
            self.run_task(task);
        }
        let chat = self.open_chat();
        if let Some(chat) = &chat {
            self.say(chat, "first");
        }
        self.answer_some();
        for task in ["asks", "works"] {
            self.run_task(task);
        }
        if let Some(chat) = &chat {
            self.say(chat, "second");
        }
        self.answer_some();
    }

    pub(crate) fn run_task(&mut self, task: &str) {
        let answer = self.scratch.owctl().run(&["task", "run", task, "--json"]);
        if answer.code == 0 {
            self.said.runs.insert(id(&serde_json::from_str(&answer.stdout).expect("JSON")));
        } else {
            self.said.refusals.push(answer);
        }
    }

    fn open_chat(&mut self) -> Option<String> {
        let body = json!({ "roots": [self.scratch.work()], "title": "a chat" });
        let view = self.post("/v1/sessions", &body)?;
        let chat = id(&view);
        self.messages.entry(chat.clone()).or_default();
        Some(chat)
    }

    fn say(&mut self, chat: &str, name: &str) {
        let name = format!("{chat}-{name}");
        let body = json!({ "text": goal("talks", &name), "key": name });
        if self.post(&format!("/v1/sessions/{chat}/messages"), &body).is_some() {
            self.messages.entry(chat.to_owned()).or_default().insert(name);
        }
    }

    fn post(&self, path: &str, body: &Value) -> Option<Value> {
        let reply = self.door().try_send("POST", path, &[], &body.to_string())?;
        (reply.status < 300).then(|| serde_json::from_str(&reply.body).ok()).flatten()
    }

    fn get(&self, path: &str) -> Option<Value> {
        let reply = self.door().try_send("GET", path, &[], "")?;
        (reply.status == 200).then(|| serde_json::from_str(&reply.body).ok()).flatten()
    }

    fn door(&self) -> Door {
        Door::Unix(self.scratch.path().join("owd.sock"))
    }

    fn pending(&self) -> Vec<Value> {
        let page = self.get("/v1/items?state=pending&limit=500");
        page.and_then(|page| page["rows"].as_array().cloned()).unwrap_or_default()
    }

    /// Answers what is pending but the last: that stays for the next life.
    fn answer_some(&mut self) {
        let mut pending = self.pending();
        pending.truncate(pending.len().saturating_sub(1).max(1));
        for item in pending {
            self.answer(&item);
        }
    }

    /// Three in four first questions are allowed, and every second call of unknown outcome may run again.
    fn answer(&mut self, item: &Value) {
        let approval = &item["approval"];
        if !approval.is_object() {
            return;
        }
        let (item, effect) = (id(item), effect(item));
        let approve = if approval["category"] == "unknown-outcome" {
            self.said.asked.insert(item.clone());
            let approve = self.said.asked.len().is_multiple_of(2);
            if approve {
                *self.said.again.entry(effect.clone()).or_default() += 1;
            }
            approve
        } else {
            self.said.questions += 1;
            let approve = !self.said.questions.is_multiple_of(4);
            if approve {
                self.said.allowed.insert(effect.clone());
            }
            approve
        };
        if !approve {
            self.denied.insert(effect);
        }
        let answer = self.scratch.owctl().run(&["inbox", if approve { "approve" } else { "deny" }, &item, "--json"]);
        if answer.code == 0 {
            self.said.answers.insert(item, approve);
        } else {
            self.said.refusals.push(answer);
        }
    }

    /// Answers all that is asked until every run has ended and every chat has heard all and is idle.
    pub(crate) fn settle(&mut self) {
        let began = monotonic();
        until("every turn has ended", || {
            for item in self.pending() {
                self.answer(&item);
            }
            let status = self.get("/v1/status").unwrap_or_default();
            let is_quiet = ["runs_running", "runs_queued", "runs_parked"].iter().all(|of| status[of] == 0);
            let chats = self.get("/v1/sessions").unwrap_or_default();
            let rest = |chat: &Value| chat["state"] == "idle" && chat["waiting"] == 0;
            let is_idle = chats["rows"].as_array().is_some_and(|chats| chats.iter().all(rest));
            let waited = monotonic().saturating_sub(began);
            assert!(waited * 10 < LIMIT * 9, "{status}\n{chats}\n{}", self.scratch.stderr());
            (is_quiet && is_idle).then_some(())
        });
    }

    /// Waits until all that need not wait for a person or a time is done, or owd is gone.
    pub(crate) fn quiet(&self) -> Fate {
        until("the turns rest", || {
            let Some(status) = self.get("/v1/status") else { return Some(Fate::Dies) };
            let Some(chats) = self.get("/v1/sessions") else { return Some(Fate::Dies) };
            let is_quiet = ["runs_running", "runs_queued"].iter().all(|of| status[of] == 0);
            let rest = |chat: &Value| chat["state"] != "running" && chat["state"] != "queued";
            let is_idle = chats["rows"].as_array().is_some_and(|chats| chats.iter().all(rest));
            (is_quiet && is_idle).then_some(Fate::Lives)
        })
    }
}

/// What an approval is about: the name that its effect is counted under, and the label.
fn effect(item: &Value) -> Effect {
    let approval = &item["approval"];
    let arguments = &approval["arguments"];
    let words: Vec<&str> = match (arguments["argv"].as_array(), arguments["url"].as_str()) {
        (Some(argv), _) => argv.iter().skip(2).filter_map(Value::as_str).collect(),
        (_, Some(url)) => url.split('/').skip(3).collect(),
        _ => vec![],
    };
    let word = |at: usize, other: &Value| {
        words.get(at).map_or_else(|| other.as_str().unwrap_or_default().to_owned(), |word| (*word).to_owned())
    };
    (word(0, &item["run"]), word(1, &approval["tool"]))
}
