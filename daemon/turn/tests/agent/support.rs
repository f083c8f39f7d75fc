//! A world for one session: a scripted model, tools, a policy and a person; it does what the machine asks for.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use ow_model::{
    AgentSpec, Answer, AnswerBy, Answered, Budget, Call, CallErrorKind, CallResult, CatchUp, Cause, EventDelivery,
    Fact, Finish, Input, Intent, ItemId, ItemKind, Message, Mode, ModelFailure, Outcome, Overlap, Person, Position,
    Purpose, Reconciled, RecordedFact, Reply, ReplyCall, Resolution, Retry, Risk, Source, Span, Surface, TaskSpec,
    Usage, WhileParked, Why, ZoneName,
};
use ow_turn::{AgentEffect, AgentSetup, AgentTurn, Permission, Progress, ToolDecl, ToolKind, arguments_of};
use serde_json::{Value, json};

/// What the model does when it is asked.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Reply(Reply),
    Fail(ModelFailure, Option<&'static str>),
}

/// What the model was asked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) purpose: Purpose,
    pub(crate) with_tools: bool,
    pub(crate) instruction: Option<String>,
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) summary: Option<String>,
}

pub(crate) struct World {
    pub(crate) setup: Arc<AgentSetup>,
    pub(crate) turn: AgentTurn,
    pub(crate) journal: Vec<RecordedFact>,
    pub(crate) progress: Progress,
    pub(crate) script: VecDeque<Act>,
    /// What the model does when the script is at its end.
    pub(crate) then: Act,
    pub(crate) tool: Box<dyn FnMut(&Call) -> CallResult>,
    /// Tools whose calls ask.
    pub(crate) asks: Vec<&'static str>,
    /// Tools whose calls policy refuses.
    pub(crate) refuses: Vec<&'static str>,
    /// What the person answers, in order; none: nobody is there.
    pub(crate) answers: VecDeque<Answer>,
    pub(crate) asked: Vec<ItemKind>,
    pub(crate) parked: Vec<(Position, ItemId)>,
    pub(crate) executed: Vec<Call>,
    /// How many calls ran together, each time.
    pub(crate) together: Vec<usize>,
    pub(crate) requests: Vec<Request>,
    items: u8,
}

/// Where a session stands when the world can do nothing more.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rest {
    Ended(Outcome),
    Waits,
    Idle,
}

pub(crate) fn spec(agent: AgentSpec) -> TaskSpec {
    TaskSpec {
        name: "work".parse().expect("a name"),
        title: None,
        timezone: ZoneName("UTC".into()),
        triggers: vec![],
        steps: vec![],
        agent: Some(agent),
        mode: Mode::Ask,
        roots: vec![],
        catch_up: CatchUp::Once,
        overlap: Overlap::Skip,
        while_parked: WhileParked::Hold,
        events: EventDelivery::default(),
        start_deadline: None,
        jitter: Span::default(),
        timeout: Span::from_secs(3600),
        call_timeout: Span::from_secs(600),
        retry: Retry { attempts: 0, backoff: Span::from_secs(60) },
        auto_pause_after: 0,
        concurrency: None,
        needs: vec![],
        item_expiry: Span::from_secs(60),
        item_reminder: Span::from_secs(30),
        http_allow: vec![],
        inbox: ow_model::InboxName::default(),
    }
}

fn declared(name: &str, risk: Risk, gui: bool) -> ToolDecl {
    let schema = match name {
        "read_file" | "write_file" => json!({
            "type": "object",
            "properties": { "path": { "type": "string" }, "text": { "type": "string" }, "line": { "type": "integer" } },
            "required": ["path"],
            "additionalProperties": false,
        }),
        _ => json!({ "type": "object" }),
    };
    ToolDecl { name: name.parse().expect("a name"), schema, risk, gui, kind: ToolKind::Plain }
}

pub(crate) fn tools() -> Vec<ToolDecl> {
    let mut tools = vec![
        declared("read_file", Risk::Read, false),
        declared("grep", Risk::Read, false),
        declared("glob", Risk::Read, false),
        declared("job_status", Risk::Read, false),
        declared("web_search", Risk::Read, false),
        declared("web_fetch", Risk::Read, false),
        declared("screenshot", Risk::Read, true),
        declared("browser", Risk::Read, true),
        declared("write_file", Risk::WriteLocal, false),
        declared("shell", Risk::Exec, false),
        declared("send", Risk::External, false),
    ];
    for (name, kind) in [
        ("ask_user", ToolKind::AskUser),
        ("propose_plan", ToolKind::ProposePlan),
        ("request_directory", ToolKind::RequestDirectory),
        ("todo", ToolKind::Todo),
        ("sleep_until", ToolKind::SleepUntil),
        ("wake_on", ToolKind::WakeOn),
        ("sub_agent", ToolKind::SubAgent),
    ] {
        let schema = arguments_of(kind).expect("the turn performs it");
        tools.push(ToolDecl { schema, kind, ..declared(name, Risk::Read, false) });
    }
    tools
}

impl World {
    pub(crate) fn task(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::of(AgentSpec { goal: Some("do it".into()), ..AgentSpec::default() }, 50, replies)
    }

    pub(crate) fn chat(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::of(AgentSpec::default(), 50, replies)
    }

    pub(crate) fn budget(budget: Budget, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::of(AgentSpec { goal: Some("do it".into()), budget, ..AgentSpec::default() }, 50, replies)
    }

    pub(crate) fn of(agent: AgentSpec, max_iterations: u32, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(spec(agent), max_iterations, replies)
    }

    pub(crate) fn with(spec: TaskSpec, max_iterations: u32, replies: impl IntoIterator<Item = Reply>) -> Self {
        let setup = AgentSetup::bare(Arc::new(spec), tools().into());
        Self::on(AgentSetup { max_iterations, ..setup }, replies)
    }

    /// A machine of exactly this setup.
    pub(crate) fn on(setup: AgentSetup, replies: impl IntoIterator<Item = Reply>) -> Self {
        let setup = Arc::new(setup);
        let progress = Progress { ran_for: Span::default(), window: 128_000, cap: 250_000, attended: false };
        let mut world = Self {
            turn: AgentTurn::new(Arc::clone(&setup)),
            setup,
            journal: vec![],
            progress,
            script: replies.into_iter().map(Act::Reply).collect(),
            then: Act::Reply(text("done")),
            tool: Box::new(|call| CallResult::ok(json!({ "text": format!("result of {}", call.position) }))),
            asks: vec![],
            refuses: vec![],
            answers: VecDeque::new(),
            asked: vec![],
            parked: vec![],
            executed: vec![],
            together: vec![],
            requests: vec![],
            items: 0,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        if !self.turn.has_started() {
            self.record(Fact::Started { cause: Cause::Schedule, context: json!({}) });
        }
        if self.setup.spec.agent.as_ref().is_some_and(|agent| agent.goal.is_some()) {
            self.say("do it", Source::Task);
        }
    }

    pub(crate) fn record(&mut self, fact: Fact) {
        let seq = u32::try_from(self.journal.len()).expect("short");
        let at = Timestamp::from_second(1_800_000_000 + i64::from(seq)).expect("in range");
        let recorded = RecordedFact { seq, at, fact };
        self.turn.apply(&recorded);
        self.journal.push(recorded);
    }

    pub(crate) fn say(&mut self, text: &str, source: Source) {
        let input = Input { text: text.into(), attachments: vec![], source };
        self.record(Fact::Input { number: None, input });
    }

    pub(crate) fn person(&mut self, text: &str) {
        self.say(text, Source::Person { person: Person("ann".into()) });
    }

    pub(crate) fn next(&self) -> AgentEffect {
        self.turn.next(&self.progress)
    }

    /// Forgets all but the first `facts` of the journal, as a crash would.
    pub(crate) fn crash(&mut self, facts: usize) {
        self.journal.truncate(facts);
        self.turn = replay(&self.setup, &self.journal);
    }

    /// Does what the machine asks for until it rests.
    pub(crate) fn run(&mut self) -> Rest {
        for _ in 0..2_000 {
            if let Some(rest) = self.step() {
                return rest;
            }
        }
        panic!("no rest after 2000 effects; the last: {:?}", self.next());
    }

    pub(crate) fn step(&mut self) -> Option<Rest> {
        match self.next() {
            AgentEffect::Start => self.start(),
            AgentEffect::Record(facts) => {
                assert!(!facts.is_empty(), "nothing to record");
                for fact in facts {
                    self.record(fact);
                }
            }
            AgentEffect::CallModel { purpose, reserved, with_tools, instruction, .. } => {
                self.call_model(purpose, reserved, with_tools, instruction);
            }
            AgentEffect::Admit { calls } => self.admit(calls),
            AgentEffect::Execute { calls } => {
                assert!(!calls.is_empty(), "nothing to run");
                self.together.push(calls.len());
                for (call, _) in &calls {
                    self.intend(call);
                }
                for (call, _) in calls {
                    self.finish(&call);
                }
            }
            AgentEffect::Reconcile { call, repeatable, .. } => {
                let found =
                    if repeatable { Reconciled::DidNotHappen } else { Reconciled::Unknown { why: "owd died".into() } };
                self.record(Fact::Reconciled { position: call.position, found });
            }
            AgentEffect::AskUncertain { call, .. } => self.park(call.position),
            AgentEffect::Ask { position, kind } => {
                self.asked.push(kind);
                self.park(position);
            }
            AgentEffect::Grant { position, path, writable, by } => {
                let how = if writable { "read and write" } else { "read" };
                let result = CallResult::ok(json!({ "text": format!("{by} granted {path}, to {how}") }));
                self.record(Fact::RootGranted { path: path.into(), writable });
                self.record(Fact::Done { position, result, took_ms: 0 });
            }
            AgentEffect::AskBudget { position, text } => {
                self.asked.push(ItemKind::Budget { text });
                self.park(position);
            }
            AgentEffect::Sleep { until, on, note, .. } => self.record(Fact::Slept { until, on, note }),
            AgentEffect::Delegate { call, goal } => {
                self.executed.push(call.clone());
                let result = CallResult::ok(json!({ "report": goal }));
                self.record(Fact::Done { position: call.position, result, took_ms: 1 });
            }
            AgentEffect::Wait { items } => {
                assert!(!items.is_empty(), "waits for nothing");
                assert!(items.iter().all(|item| self.parked.contains(item)), "waits for what was not asked");
                let Some(answer) = self.answers.pop_front() else { return Some(Rest::Waits) };
                self.answer(items[0].0, answer);
            }
            AgentEffect::AwaitInput => return Some(Rest::Idle),
            AgentEffect::End(outcome) => return Some(Rest::Ended(outcome)),
        }
        None
    }

    fn call_model(&mut self, purpose: Purpose, reserved: Usage, with_tools: bool, instruction: Option<String>) {
        let outgoing = self.turn.outgoing();
        let messages = self.turn.history()[outgoing.from..].to_vec();
        let summary = outgoing.summary.map(str::to_owned);
        if instruction.is_none() {
            check_request(&messages, summary.is_some());
        }
        self.requests.push(Request { purpose, with_tools, instruction, messages, summary });
        self.record(Fact::Asked { model: "stub:m".into(), purpose, reserved, sent: None });
        match self.script.pop_front().unwrap_or_else(|| self.then.clone()) {
            Act::Reply(reply) => self.record(Fact::Replied { reply, sent: None }),
            Act::Fail(kind, partial) => self.record(failed(kind, partial)),
        }
    }

    fn admit(&mut self, calls: Vec<(Call, Permission)>) {
        for (call, permission) in calls {
            let position = call.position;
            let repeatable = self.setup.tools.iter().any(|tool| tool.name == call.tool && tool.risk == Risk::Read);
            if self.refuses.iter().any(|tool| *tool == call.tool.as_str()) {
                self.record(Fact::Refused { position, rule: "deny rule 3".into() });
                continue;
            }
            match permission {
                Permission::Answer { resolution: Resolution { answer: Answer::Edited { args }, .. }, .. }
                    if args != call.args =>
                {
                    self.record(Fact::Edited { position, call: Call { args, ..call } });
                }
                Permission::Policy if self.asks.iter().any(|tool| *tool == call.tool.as_str()) => self.park(position),
                _ => self.record(Fact::Admitted { position, rule: "mode".into(), by_rule: None, repeatable }),
            }
        }
    }

    fn park(&mut self, position: Position) {
        self.items = self.items.checked_add(1).expect("few items");
        let item = ItemId::from_bytes([self.items; 10]);
        self.parked.push((position, item));
        self.record(Fact::Parked { position, item });
    }

    pub(crate) fn answer(&mut self, position: Position, answer: Answer) {
        let by = AnswerBy { person: Person("ann".into()), surface: Surface::Socket };
        self.answered(position, Answered::Resolved(Resolution { answer, by, at: Timestamp::UNIX_EPOCH }));
    }

    pub(crate) fn answered(&mut self, position: Position, answered: Answered) {
        let found = self.parked.iter().rev().find(|(parked, _)| *parked == position);
        let item = found.expect("it is parked").1;
        self.record(Fact::Answered { position, item, answered });
    }

    pub(crate) fn intend(&mut self, call: &Call) {
        let position = call.position;
        let repeatable = self.setup.tools.iter().any(|tool| tool.name == call.tool && tool.risk == Risk::Read);
        self.record(Fact::Allowed { position, rule: "mode".into(), by_rule: None });
        self.record(Fact::Intended { position, hash: call.hash(), repeatable, intent: Intent::default() });
    }

    pub(crate) fn finish(&mut self, call: &Call) {
        self.executed.push(call.clone());
        let result = (self.tool)(call);
        self.record(Fact::Done { position: call.position, result, took_ms: 1 });
    }

    /// The results in the history, by position.
    pub(crate) fn result(&self, position: u32) -> &str {
        let found = self.turn.history().iter().find_map(|message| match &**message {
            Message::Tool { position: at, text, .. } if at.0 == position => Some(text.as_str()),
            _ => None,
        });
        found.expect("the call has a result")
    }

    pub(crate) fn ran(&self) -> Vec<&str> {
        self.executed.iter().map(|call| call.tool.as_str()).collect()
    }

    /// How often owd spoke for this reason.
    pub(crate) fn spoke(&self, wanted: Why) -> usize {
        let is = |fact: &RecordedFact| matches!(&fact.fact, Fact::Input { input: Input { source: Source::Owd { why }, .. }, .. } if *why == wanted);
        self.journal.iter().filter(|fact| is(fact)).count()
    }
}

pub(crate) fn failed(kind: ModelFailure, partial: Option<&str>) -> Fact {
    Fact::ModelFailed { kind, message: "503 overloaded".into(), partial: partial.map(str::to_owned), sent: None }
}

pub(crate) fn replay(setup: &Arc<AgentSetup>, journal: &[RecordedFact]) -> AgentTurn {
    let mut turn = AgentTurn::new(Arc::clone(setup));
    for recorded in journal {
        turn.apply(recorded);
    }
    turn
}

pub(crate) fn text(text: &str) -> Reply {
    Reply {
        text: text.into(),
        reasoning: None,
        calls: vec![],
        finish: Finish::Stop,
        usage: None,
        model: "stub:m".into(),
        private: None,
    }
}

pub(crate) fn cut(words: &str) -> Reply {
    Reply { finish: Finish::Length, ..text(words) }
}

pub(crate) fn call(name: &str, args: &Value) -> ReplyCall {
    ReplyCall { id: None, name: name.into(), arguments: args.to_string() }
}

pub(crate) fn calls(calls: impl IntoIterator<Item = ReplyCall>) -> Reply {
    Reply { calls: calls.into_iter().collect(), finish: Finish::ToolCalls, ..text("") }
}

pub(crate) fn one(name: &str, args: &Value) -> Reply {
    calls([call(name, args)])
}

pub(crate) fn read(path: &str) -> ReplyCall {
    call("read_file", &json!({ "path": path }))
}

pub(crate) fn write(path: &str, words: &str) -> ReplyCall {
    call("write_file", &json!({ "path": path, "text": words }))
}

pub(crate) fn shell(command: &str) -> ReplyCall {
    call("shell", &json!({ "command": command }))
}

pub(crate) fn used(input: u64, output: u64, reply: Reply) -> Reply {
    Reply { usage: Some(Usage { input, cached: 0, output }), ..reply }
}

pub(crate) fn ok(words: &str) -> CallResult {
    CallResult::ok(json!({ "text": words }))
}

pub(crate) fn error(words: &str) -> CallResult {
    CallResult::failed(CallErrorKind::Failed, words)
}

/// P6: what every provider asks of a history.
pub(crate) fn check_request(messages: &[Arc<Message>], has_summary: bool) {
    check_pairs(messages);
    let sent: Vec<&Message> = messages
        .iter()
        .map(|message| &**message)
        .filter(|message| !matches!(message, Message::Notice { .. }))
        .collect();
    assert!(has_summary || matches!(sent.first(), Some(Message::User { .. })), "begins with the user: {sent:#?}");
    assert!(
        matches!(sent.last(), None | Some(Message::User { .. } | Message::Tool { .. })),
        "ends with the user or a result: {sent:#?}"
    );
}

/// Each call has exactly one result, in order, right behind its reply; each result its call.
pub(crate) fn check_pairs(messages: &[Arc<Message>]) {
    let mut due: VecDeque<Position> = VecDeque::new();
    let mut seen: Vec<Position> = vec![];
    for message in messages {
        match &**message {
            Message::Tool { position, .. } => {
                assert_eq!(due.pop_front(), Some(*position), "a result without its call: {messages:#?}");
            }
            Message::User { .. } => assert!(due.is_empty(), "a call without its result: {messages:#?}"),
            Message::Assistant { calls, text, .. } => {
                assert!(due.is_empty(), "a call without its result: {messages:#?}");
                assert!(!calls.is_empty() || !text.trim().is_empty(), "an empty reply is sent");
                due.extend(calls.iter().map(|call| call.position));
                for call in calls {
                    assert!(!seen.contains(&call.position), "an id is used twice");
                    seen.push(call.position);
                    assert!(call.args.is_object(), "arguments are an object");
                }
            }
            Message::Notice { .. } => {}
        }
    }
    assert!(due.is_empty(), "a call without its result: {messages:#?}");
}
