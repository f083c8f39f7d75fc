use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use ow_stories::Door;
use ow_test_support::{Answer, LIMIT, Owd, Scratch, id, monotonic, until};
use serde_json::{Value, json};

use crate::records::Records;

/// The outside world's counter: an effect is one line.
const COUNT: &str = "echo \"$1 $2\" >> {work}/effects\n";

const EFFECTS: &str = r#"
mode = "edit"
roots = ["{work}"]
overlap = { allow = 20 }

[[step]]
tool = "shell"
args = { argv = ["sh", "{work}/count.sh", "{{ run.id }}", "one"] }

[[step]]
tool = "write_file"
args = { path = "{work}/notes/{{ run.id }}.md", content = "run {{ run.id }}\n" }

[[step]]
tool = "read_file"
args = { path = "{work}/notes/{{ run.id }}.md" }

[[step]]
tool = "list_dir"
args = { path = "{work}/notes" }

[[step]]
tool = "shell"
args = { argv = ["sh", "{work}/count.sh", "{{ run.id }}", "two"] }
"#;

/// `bash` is not what the policy allows: it asks.
const ASKS: &str = r#"
overlap = { allow = 20 }

[[step]]
tool = "shell"
args = { argv = ["bash", "{work}/count.sh", "{{ run.id }}", "asked"] }
"#;

/// Lives that an event may take to get its run.
const LIVES: usize = 3;

/// A task with one counted step, labelled with its name.
fn counting(name: &str, above: &str) -> String {
    let step = "[[step]]\ntool = \"shell\"\n";
    format!("{above}\n{step}args = {{ argv = [\"sh\", \"{{work}}/count.sh\", \"{{{{ run.id }}}}\", \"{name}\"] }}\n")
}

const EACH: &str = "overlap = { allow = 20 }\nevents = { each = 50 }\n";
const EVERY: &str = "[[trigger]]\nevery = \"1s\"\n";
const AFTER: &str = "[[trigger]]\nafter = \"effects\"\n";
const WATCH: &str = "[[trigger]]\nwatch = { path = \"{work}/in\", glob = \"*.txt\", settle = \"20ms\" }\n";

/// The counted steps of a task's run that has succeeded.
pub(crate) fn labels(task: &str) -> &[&str] {
    match task {
        "effects" => &["one", "two"],
        "asks" => &["asked"],
        "tick" => &["tick"],
        "later" => &["later"],
        "intake" => &["intake"],
        "posted" => &["posted"],
        _ => &["added"],
    }
}

/// A call of the outside world: the run and the label.
pub(crate) type Effect = (String, String);

/// What owd has said yes to, and what the person has said.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Tasks whose saving was acknowledged, with their text.
    pub(crate) tasks: BTreeMap<String, String>,
    /// Runs whose start was acknowledged.
    pub(crate) runs: BTreeSet<String>,
    /// Keys of accepted events.
    pub(crate) events: BTreeSet<String>,
    /// Files put into the watched folder, each once.
    pub(crate) files: BTreeSet<String>,
    /// Answers that were acknowledged: whether the item was approved.
    pub(crate) answers: BTreeMap<String, bool>,
    /// First runs of a call that a person has tried to allow, acknowledged or not.
    pub(crate) allowed: BTreeSet<Effect>,
    /// How often a person has tried to have a call of unknown outcome run again.
    pub(crate) again: BTreeMap<Effect, u64>,
    /// Items about a call of unknown outcome that were shown.
    pub(crate) asked: BTreeSet<String>,
    /// What was refused, as it was told.
    pub(crate) refusals: Vec<Answer>,
    pub(crate) questions: u64,
}

/// A home, the files around it, and what was said in it.
pub(crate) struct World {
    pub(crate) scratch: Scratch,
    pub(crate) said: Said,
    loads: u64,
    /// Whether owd has shown the watching task: files that are there before it are none of its work.
    is_watched: bool,
}

/// Whether owd lived to see it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fate {
    Lives,
    Dies,
}

impl World {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        let work = scratch.work();
        fs::write(work.join("count.sh"), COUNT.replace("{work}", &work.to_string_lossy())).expect("a script");
        for folder in ["notes", "in", "made"] {
            fs::create_dir_all(work.join(folder)).expect("a folder");
        }
        scratch.config(&format!("[policy]\nallow = [\"sh {}/count.sh\"]\n", work.display()));
        scratch.task("effects", EFFECTS);
        scratch.task("asks", ASKS);
        scratch.task("tick", &counting("tick", EVERY));
        scratch.task("later", &counting("later", &format!("{EACH}{AFTER}")));
        scratch.task("intake", &counting("intake", &format!("{EACH}{WATCH}")));
        scratch.task("posted", &counting("posted", EACH));
        Self { scratch, said: Said::default(), loads: 0, is_watched: false }
    }

    /// The scripted load. What fails was not acknowledged, and is not tried again.
    pub(crate) fn load(&mut self) {
        self.loads += 1;
        self.is_watched |= self.get("/v1/tasks/intake").is_some();
        self.drop_file(&format!("a{}.txt", self.loads));
        self.add_task("added");
        for task in ["effects", "asks", "asks", "added"] {
            self.run_task(task);
        }
        self.post(&["k1", "k2"]);
        self.answer_some();
        self.drop_file(&format!("b{}.txt", self.loads));
        // The same again is no second event.
        self.post(&["k1", "k3"]);
        for task in ["asks", "effects"] {
            self.run_task(task);
        }
        self.answer_some();
    }

    pub(crate) fn add_task(&mut self, name: &str) {
        let text = counting("added", "").replace("{work}", &self.scratch.work().to_string_lossy());
        let file = self.scratch.path().join(format!("{name}.toml"));
        fs::write(&file, &text).expect("a file");
        if self.acknowledged(&["task", "add", &file.to_string_lossy()]).is_some() {
            self.said.tasks.insert(name.into(), text);
        }
    }

    pub(crate) fn run_task(&mut self, task: &str) {
        if let Some(run) = self.acknowledged(&["task", "run", task]) {
            self.said.runs.insert(id(&run));
        }
    }

    /// Moves a finished file into the watched folder: work, whether owd is still there or not.
    pub(crate) fn drop_file(&mut self, name: &str) {
        let (made, there) = (self.scratch.work().join("made").join(name), self.scratch.work().join("in").join(name));
        fs::write(&made, name).expect("a file");
        fs::rename(made, &there).expect("the same disk");
        if self.is_watched {
            self.said.files.insert(there.to_string_lossy().into_owned());
        }
    }

    pub(crate) fn post(&mut self, keys: &[&str]) {
        let events: Vec<Value> =
            keys.iter().map(|key| json!({ "task": "posted", "key": key, "data": { "of": key } })).collect();
        let reply = self.door().try_send("POST", "/v1/events", &[], &json!({ "events": events }).to_string());
        if reply.is_some_and(|reply| reply.status == 200) {
            self.said.events.extend(keys.iter().map(|key| (*key).to_owned()));
        }
    }

    /// Answers what is pending but the last: that stays for the next life.
    fn answer_some(&mut self) {
        let mut pending = self.pending();
        pending.truncate(pending.len().saturating_sub(1).max(1));
        for item in pending {
            self.answer(&item);
        }
    }

    /// Answers one item as a person might: three in four first questions are allowed, and every second call of
    /// unknown outcome may run again.
    pub(crate) fn answer(&mut self, item: &Value) {
        let approval = &item["approval"];
        if !approval.is_object() {
            return;
        }
        let (item, effect) = (id(item), effect(item));
        self.said.questions += 1;
        let approve = if approval["category"] == "unknown-outcome" {
            self.said.asked.insert(item.clone());
            let approve = self.said.asked.len().is_multiple_of(2);
            if approve {
                *self.said.again.entry(effect).or_default() += 1;
            }
            approve
        } else {
            let approve = !self.said.questions.is_multiple_of(4);
            if approve {
                self.said.allowed.insert(effect);
            }
            approve
        };
        if self.acknowledged(&["inbox", if approve { "approve" } else { "deny" }, &item]).is_some() {
            self.said.answers.insert(item, approve);
        }
    }

    /// Answers all that is asked until every run has ended and every file and event has its run.
    pub(crate) fn settle(&mut self, owd: &Owd) {
        self.wait("tick is paused", |_| {
            let answer = owd.owctl.run(&["task", "pause", "tick"]);
            if answer.code == 0 { Ok(()) } else { Err(answer.stderr) }
        });
        self.wait("every run has ended", Self::settled);
    }

    /// Settles and stops owd. What came in while it stopped is work for the next life, which is given to it.
    pub(crate) fn finish(&mut self, owd: Owd) {
        self.settle(&owd);
        owd.stop();
        for _ in 0..LIVES {
            if !Records::read(&self.scratch).events.iter().any(|event| event.runs.is_empty()) {
                break;
            }
            let owd = self.scratch.start();
            self.settle(&owd);
            owd.stop();
        }
    }

    /// Answers what is asked; then whether there is nothing more to come, or what there is.
    fn settled(&mut self) -> Result<(), String> {
        for item in self.pending() {
            self.answer(&item);
        }
        let Some(status) = self.get("/v1/status") else {
            return Err("no answer".into());
        };
        let is_quiet = ["runs_running", "runs_queued", "runs_parked", "runs_interrupted", "events_waiting"]
            .iter()
            .all(|of| status[of] == 0);
        if is_quiet && self.intake_is_done() { Ok(()) } else { Err(status.to_string()) }
    }

    /// Waits for a condition; where it does not come true, what owd has said goes into the failure.
    fn wait(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Result<(), String>) {
        let began = monotonic();
        until(what, || match look(self) {
            Ok(()) => Some(()),
            Err(why) => {
                let waited = monotonic().saturating_sub(began);
                assert!(waited * 10 < LIMIT * 9, "waited for: {what}\n{why}\n{}", self.scratch.stderr());
                None
            }
        });
    }

    /// Waits until all that need not wait for a person is done, or owd is gone.
    pub(crate) fn quiet(&self, ticks: usize) -> Fate {
        let began = monotonic();
        until("the load is done", || {
            let Some(status) = self.get("/v1/status") else {
                return Some(Fate::Dies);
            };
            let is_quiet = ["runs_running", "runs_queued", "events_waiting"].iter().all(|of| status[of] == 0);
            let is_done = is_quiet && self.intake_is_done() && self.runs("tick") >= ticks;
            assert!(monotonic().saturating_sub(began) < LIMIT, "{status}");
            is_done.then_some(Fate::Lives)
        })
    }

    fn intake_is_done(&self) -> bool {
        self.runs("intake") >= self.said.files.len()
    }

    fn runs(&self, task: &str) -> usize {
        let page = self.get(&format!("/v1/runs?task={task}&limit=500"));
        page.and_then(|page| page["rows"].as_array().map(Vec::len)).unwrap_or_default()
    }

    pub(crate) fn pending(&self) -> Vec<Value> {
        let page = self.get("/v1/items?state=pending&limit=500");
        page.and_then(|page| page["rows"].as_array().cloned()).unwrap_or_default()
    }

    fn get(&self, path: &str) -> Option<Value> {
        let reply = self.door().try_send("GET", path, &[], "")?;
        (reply.status == 200).then(|| serde_json::from_str(&reply.body).ok()).flatten()
    }

    pub(crate) fn door(&self) -> Door {
        Door::Unix(self.scratch.path().join("owd.sock"))
    }

    /// Runs `owctl`; its answer, if it said yes.
    fn acknowledged(&mut self, args: &[&str]) -> Option<Value> {
        let mut all = args.to_vec();
        all.push("--json");
        let answer = self.scratch.owctl().run(&all);
        if answer.code == 0 {
            return Some(serde_json::from_str(&answer.stdout).expect("JSON"));
        }
        self.said.refusals.push(answer);
        None
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }
}

/// What an approval is about; calls that are not counted go by their tool.
fn effect(item: &Value) -> Effect {
    let approval = &item["approval"];
    let word = |at: usize| approval["arguments"]["argv"][at].as_str().map(str::to_owned);
    let run = word(2).or_else(|| item["run"].as_str().map(str::to_owned));
    (run.unwrap_or_default(), word(3).unwrap_or_else(|| approval["tool"].as_str().unwrap_or_default().into()))
}
