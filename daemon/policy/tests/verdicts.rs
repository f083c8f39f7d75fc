//! Modes, rules, taint, holes and answers.

use std::path::{Path, PathBuf};

use ow_model::{
    Answer, BlobHash, BoundFile, Call, CallHash, Category, Mode, Position, Risk, Rule, RuleId, RuleScope, RuleTarget,
    TaskName, ToolName,
};
use ow_policy::path::{NoLinks, resolve};
use ow_policy::{
    Action, CommandForm, Facts, Hole, HolePlace, PathOp, Refusal, Settings, Situation, StepFacts, Verdict, authorize,
    authorize_answered, binding_of, check_binding, command, judge, never_permits, rule_for_call, rule_for_step,
};
use proptest::prelude::*;
use serde_json::json;

const MODES: [Mode; 4] = [Mode::Plan, Mode::Ask, Mode::Edit, Mode::Auto];

struct World {
    task: TaskName,
    mode: Mode,
    roots: Vec<PathBuf>,
    rules: Vec<Rule>,
    step: Option<StepFacts>,
    tainted: bool,
    denied: Vec<CallHash>,
    uncertain: Vec<CallHash>,
    task_http: Vec<String>,
    named_hosts: Vec<String>,
    always_tools: Vec<ToolName>,
    always_commands: Vec<Vec<String>>,
    settings: Settings,
    now: &'static str,
}

impl World {
    fn new(mode: Mode) -> Self {
        Self {
            task: "reports".parse().expect("a name"),
            mode,
            roots: vec!["/home/u/reports".into()],
            rules: vec![],
            step: None,
            tainted: false,
            denied: vec![],
            uncertain: vec![],
            task_http: vec![],
            named_hosts: vec![],
            always_tools: vec![],
            always_commands: vec![],
            settings: Settings {
                home: "/home/u".into(),
                protected: vec!["/home/u/.config/owd".into()],
                own_addresses: vec!["127.0.0.1:7700".parse().expect("an address")],
                safe_commands: true,
                ..Settings::default()
            },
            now: "2026-01-01T00:00:00Z",
        }
    }

    fn tainted(self) -> Self {
        Self { tainted: true, ..self }
    }

    fn with_rule(mut self, target: RuleTarget) -> Self {
        self.rules.push(rule(target));
        self
    }

    fn with_step(self, holes: Vec<Hole>) -> Self {
        Self { step: Some(StepFacts { step: 1, text: text(), holes }), ..self }
    }

    fn situation(&self) -> Situation<'_> {
        Situation {
            task: Some(&self.task),
            mode: self.mode,
            roots: &self.roots,
            run_folder: Some(Path::new("/data/runs/1")),
            rules: &self.rules,
            step: self.step.as_ref(),
            tainted: self.tainted,
            denied: &self.denied,
            uncertain: &self.uncertain,
            task_http: &self.task_http,
            named_hosts: &self.named_hosts,
            always_tools: &self.always_tools,
            always_commands: &self.always_commands,
            settings: &self.settings,
            now: self.now.parse().expect("an instant"),
        }
    }

    fn judge(&self, asked: &Asked) -> Verdict {
        judge(&asked.0, &asked.1, &self.situation())
    }

    fn word(&self, asked: &Asked) -> String {
        let verdict = self.judge(asked);
        format!("{}: {}", verdict.word(), verdict.rule())
    }
}

fn text() -> BlobHash {
    BlobHash::of(b"the step")
}

fn rule(target: RuleTarget) -> Rule {
    Rule {
        id: RuleId::from_bytes([7; 10]),
        scope: RuleScope::Task("reports".parse().expect("a name")),
        target,
        covers_outside: false,
        created_at: "2025-12-01T00:00:00Z".parse().expect("an instant"),
        created_by: "u".into(),
        expires_at: None,
        uses_left: None,
        used: 0,
    }
}

struct Asked(Call, Facts);

fn call(tool: &str, args: serde_json::Value) -> Call {
    Call { position: Position(0), tool: tool.parse().expect("a name"), args }
}

fn program(path: &str) -> BoundFile {
    BoundFile { path: path.into(), device: 1, inode: 2, hash: BlobHash::of(path.as_bytes()) }
}

fn command_of(form: CommandForm) -> Action {
    let cwd = PathBuf::from("/home/u/reports");
    let operands = command::operands(&form, &cwd, Path::new("/home/u"), &NoLinks);
    Action::Command {
        form,
        cwd,
        env_names: vec![],
        program: Some(program("/usr/bin/x")),
        parts: vec![],
        files: vec![],
        operands,
    }
}

fn argv(words: &[&str]) -> Asked {
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    let facts = Facts { risk: Risk::Exec, action: command_of(CommandForm::Argv(words.clone())) };
    Asked(call("shell", json!({ "argv": words })), facts)
}

fn line(line: &str) -> Asked {
    let facts = Facts { risk: Risk::Exec, action: command_of(CommandForm::Line(line.into())) };
    Asked(call("shell", json!({ "line": line })), facts)
}

fn path(op: PathOp, path: &str) -> Asked {
    let resolved =
        resolve(Path::new(path), Path::new("/home/u/reports"), Path::new("/home/u"), &NoLinks).expect("a path");
    let (tool, risk) = match op {
        PathOp::Read => ("read_file", Risk::Read),
        PathOp::Search => ("search_files", Risk::Read),
        PathOp::Write => ("write_file", Risk::WriteLocal),
    };
    Asked(
        call(tool, json!({ "path": path })),
        Facts { risk, action: Action::Paths { op, paths: vec![resolved], base: None } },
    )
}

fn http(method: &str, url: &str) -> Asked {
    let action = Action::Url {
        method: method.into(),
        url: url.parse().expect("a URL"),
        has_body: method == "POST",
        own_headers: false,
    };
    Asked(call("http_request", json!({ "method": method, "url": url })), Facts { risk: Risk::External, action })
}

fn fetch(url: &str) -> Asked {
    let Asked(_, facts) = http("GET", url);
    Asked(call("web_fetch", json!({ "url": url })), Facts { risk: Risk::Read, ..facts })
}

fn plain(risk: Risk) -> Asked {
    Asked(call("thing", json!({})), Facts { risk, action: Action::Plain })
}

/// A mail with these files.
fn enclosing(paths: &[&str]) -> Asked {
    let at = |path: &&str| {
        resolve(Path::new(path), Path::new("/home/u/reports"), Path::new("/home/u"), &NoLinks).expect("a path")
    };
    let paths: Vec<_> = paths.iter().map(at).collect();
    let file = |path: &ow_policy::ResolvedPath| BoundFile {
        path: path.resolved.clone(),
        device: 1,
        inode: 1,
        hash: BlobHash::of(b"content"),
    };
    let files = paths.iter().map(file).collect();
    Asked(
        call("send_mail", json!({ "to": "ada@example.org" })),
        Facts { risk: Risk::External, action: Action::Enclosed { paths, files } },
    )
}

fn hole(name: &str, at: HolePlace) -> Hole {
    Hole { name: name.into(), at }
}

fn words(asked: &Asked) -> [String; 4] {
    MODES.map(|mode| World::new(mode).word(asked))
}

#[test]
fn reads_inside_the_roots_pass_in_every_mode_and_secrets_ask() {
    for mode in MODES {
        let world = World::new(mode);
        assert_eq!(world.word(&path(PathOp::Read, "a.txt")), "allow: read: inside root");
        assert_eq!(world.word(&path(PathOp::Search, ".")), "allow: read: inside root");
        assert_eq!(world.word(&path(PathOp::Read, ".env")), "ask: ask: secret");
        assert_eq!(world.word(&path(PathOp::Read, "/etc/hosts")), "ask: ask: read outside roots");
        assert_eq!(world.word(&path(PathOp::Read, "~/.config/owd/key")), "deny: hard-block: owd's own files");
        assert_eq!(world.word(&plain(Risk::Read)), "allow: read");
    }
    let Verdict::Ask { category, .. } = World::new(Mode::Auto).judge(&path(PathOp::Read, ".env")) else {
        panic!("it asks")
    };
    assert_eq!(category, Category::Read);
}

#[test]
fn writes_pass_by_mode_inside_the_roots_alone() {
    assert_eq!(
        words(&path(PathOp::Write, "a.txt")),
        ["deny: mode plan", "ask: ask: write", "allow: mode edit: inside root", "allow: mode auto: inside root"]
    );
    for mode in [Mode::Ask, Mode::Edit, Mode::Auto] {
        assert_eq!(World::new(mode).word(&path(PathOp::Write, "../x")), "ask: ask: write outside roots");
        assert_eq!(World::new(mode).word(&path(PathOp::Write, ".git/hooks/x")), "ask: ask: runs later");
        assert_eq!(World::new(mode).word(&path(PathOp::Write, "/data/runs/1/x")), "allow: write: the run's own folder");
        assert_eq!(World::new(mode).word(&path(PathOp::Write, "/dev/sda")), "deny: hard-block: device");
    }
}

#[test]
fn the_strictest_of_several_paths_decides() {
    let Asked(call, facts) = path(PathOp::Write, "a.txt");
    let Action::Paths { mut paths, .. } = facts.action else { panic!("paths") };
    let outside = resolve(Path::new("/tmp/x"), Path::new("/"), Path::new("/"), &NoLinks).expect("a path");
    paths.push(outside);
    let facts = Facts { risk: Risk::WriteLocal, action: Action::Paths { op: PathOp::Write, paths, base: None } };
    assert_eq!(World::new(Mode::Auto).word(&Asked(call, facts)), "ask: ask: write outside roots");
}

#[test]
fn what_takes_files_along_asks_as_what_leaves_the_machine_and_no_rule_covers_a_file_from_elsewhere() {
    assert_eq!(
        words(&enclosing(&["a.pdf"])),
        ["deny: mode plan", "ask: ask: external", "ask: ask: external", "ask: ask: external"]
    );
    let world = || World::new(Mode::Auto);
    assert_eq!(world().word(&enclosing(&["a.pdf", "~/.config/owd/key"])), "deny: hard-block: owd's own files");
    for (path, asks) in [("/tmp/x", "ask: ask: read outside roots"), (".env", "ask: ask: secret")] {
        let asked = enclosing(&["a.pdf", path]);
        assert_eq!(world().word(&asked), asks);
        let Verdict::Ask { rule_offer, .. } = world().judge(&asked) else { panic!("it asks") };
        assert_eq!(rule_offer, None, "{path}");
        let rule = RuleTarget::Call { hash: asked.0.hash() };
        assert_eq!(world().with_rule(rule).word(&asked), asks, "what is at {path} may be anything later");
    }
    let asked = enclosing(&["a.pdf"]);
    let rule = RuleTarget::Call { hash: asked.0.hash() };
    assert!(world().with_rule(rule.clone()).word(&asked).starts_with("allow: rule"));
    assert_eq!(world().with_rule(rule).tainted().word(&asked), "ask: ask: external");
    let then = ow_policy::binding_of(&asked.1);
    let mut changed = then.clone();
    changed.files[0].hash = BlobHash::of(b"other content");
    assert!(ow_policy::check_binding(&then, &then).is_ok());
    assert!(ow_policy::check_binding(&then, &changed).is_err(), "what was approved is what goes");
}

#[test]
fn commands_pass_by_mode_auto_the_safe_list_or_an_entry() {
    assert_eq!(
        words(&argv(&["make", "install"])),
        ["deny: mode plan", "ask: ask: exec", "ask: ask: exec", "allow: mode auto: exec"]
    );
    for mode in MODES {
        assert_eq!(World::new(mode).word(&argv(&["git", "status"])), "allow: safe: git status");
        assert_eq!(World::new(mode).word(&line("df -h")), "allow: safe: df");
        assert_eq!(World::new(mode).word(&line("rm -rf /")), "deny: hard-block: rm of root");
    }
    let mut world = World::new(Mode::Ask);
    world.settings.allow = vec!["make".into(), "git status".into()];
    world.settings.safe_commands = false;
    assert_eq!(world.word(&argv(&["make", "install"])), "allow: allow: make");
    assert_eq!(world.word(&line("make && git status")), "allow: allow: make, git status");
    assert_eq!(world.word(&argv(&["df", "-h"])), "ask: ask: exec");
    world.settings.deny = vec!["make".into()];
    for mode in MODES {
        world.mode = mode;
        assert_eq!(world.word(&argv(&["make", "install"])), "deny: deny: make");
    }
}

/// Mode auto lets pass what stays on the machine.
#[test]
fn a_known_network_client_asks_in_mode_auto_unless_it_is_allowed_by_name() {
    let curl = argv(&["curl", "https://example.org"]);
    let mut world = World::new(Mode::Auto);
    for command in
        [&curl, &argv(&["git", "push"]), &line("make && scp a host:"), &argv(&["sh", "-c", "wget example.org"])]
    {
        let verdict = world.judge(command);
        assert_eq!((verdict.word(), verdict.rule()), ("ask", "ask: external"));
        assert!(matches!(verdict, Verdict::Ask { category: Category::External, .. }), "{verdict:?}");
    }
    world.always_tools = vec!["shell".parse().expect("a name")];
    assert_eq!(world.word(&curl), "ask: ask: external", "always the shell is no word on what leaves the machine");
    assert_eq!(world.word(&argv(&["make", "install"])), "allow: mode auto: exec");
    world.always_commands = vec![vec!["curl".into(), "https://example.org".into()]];
    assert_eq!(world.word(&curl), "allow: session: always this command");
    world.always_commands.clear();
    world.settings.allow = vec!["curl https://example.org".into()];
    assert_eq!(world.word(&curl), "allow: allow: curl https://example.org");
    world.settings.allow.clear();
    world.settings.deny = vec!["curl".into()];
    assert_eq!(world.word(&curl), "deny: deny: curl");
}

#[test]
fn shell_syntax_asks_in_mode_auto_too() {
    let world = World::new(Mode::Auto);
    for text in ["make > log", "make $X", "make *", "make &", "make \"", "(make)"] {
        assert_eq!(world.word(&line(text)), "ask: ask: shell syntax", "{text}");
    }
    assert_eq!(world.word(&line("make; make install")), "allow: mode auto: exec");
}

fn found_program(facts: &mut Facts) -> &mut Option<BoundFile> {
    match &mut facts.action {
        Action::Command { program, .. } => program,
        _ => panic!("a command"),
    }
}

#[test]
fn variables_and_planted_programs_void_an_entry() {
    let mut world = World::new(Mode::Ask);
    world.settings.allow = vec!["make".into()];
    let Asked(call, mut facts) = argv(&["make"]);
    let Action::Command { env_names, .. } = &mut facts.action else { panic!("a command") };
    env_names.push("LD_PRELOAD".into());
    let asked = Asked(call, facts.clone());
    assert_eq!(world.word(&asked), "ask: ask: exec");
    let Action::Command { env_names, .. } = &mut facts.action else { panic!("a command") };
    *env_names = vec!["LANG".into(), "LC_ALL".into()];
    let asked = Asked(asked.0, facts.clone());
    assert_eq!(world.word(&asked), "allow: allow: make");
    *found_program(&mut facts) = Some(program("/home/u/reports/bin/make"));
    assert_eq!(world.word(&Asked(asked.0, facts)), "ask: ask: exec");
}

#[test]
fn a_host_that_nobody_named_asks_for_get_too() {
    let mut world = World::new(Mode::Auto);
    assert_eq!(world.word(&http("GET", "https://a.example/")), "ask: ask: host");
    assert_eq!(world.word(&http("POST", "http://localhost:80/")), "deny: hard-block: address");
    assert_eq!(world.word(&http("GET", "http://169.254.169.254/")), "deny: hard-block: address");
    assert_eq!(world.word(&fetch("https://a.example/")), "allow: read: fetch");
    world.task_http = vec!["a.example".into()];
    world.settings.http_allow = vec!["*.b.example".into(), "127.0.0.1:7700".into(), "127.0.0.1:8080".into()];
    assert_eq!(world.word(&http("POST", "https://a.example/x")), "allow: task http-allow: a.example");
    assert_eq!(world.word(&http("GET", "https://x.b.example/")), "allow: http.allow: x.b.example");
    assert_eq!(world.word(&http("GET", "https://evilb.example/")), "ask: ask: host");
    assert_eq!(world.word(&http("POST", "http://127.0.0.1:8080/")), "allow: http.allow: 127.0.0.1");
    // owd's own door stays shut, whoever opens it.
    assert_eq!(world.word(&http("POST", "http://127.0.0.1:7700/v1/inbox")), "deny: hard-block: address");
    world.mode = Mode::Plan;
    assert_eq!(world.word(&http("GET", "https://a.example/")), "deny: mode plan");
}

#[test]
fn in_a_tainted_session_modes_entries_and_rules_cover_no_effect() {
    let mut world = World::new(Mode::Auto).tainted();
    world.settings.allow = vec!["make".into()];
    world.task_http = vec!["a.example".into()];
    assert_eq!(world.word(&argv(&["make"])), "ask: ask: outside content");
    assert_eq!(world.word(&argv(&["cp", "a", "b"])), "ask: ask: outside content");
    assert_eq!(world.word(&argv(&["git", "status"])), "allow: safe: git status");
    assert_eq!(world.word(&path(PathOp::Write, "a.txt")), "ask: ask: outside content");
    assert_eq!(world.word(&path(PathOp::Write, "/data/runs/1/a")), "allow: write: the run's own folder");
    assert_eq!(world.word(&http("POST", "https://a.example/")), "ask: ask: outside content");
    assert_eq!(world.word(&http("GET", "https://a.example/")), "allow: task http-allow: a.example");
    assert_eq!(world.word(&fetch("https://b.example/")), "ask: ask: host");
    let asked = argv(&["make"]);
    let mut world = world.with_rule(rule_for_call(&asked.0, &asked.1));
    assert_eq!(world.word(&asked), "ask: ask: outside content");
    world.rules[0].covers_outside = true;
    assert_eq!(world.judge(&asked), allowed_by_rule());
}

fn allowed_by_rule() -> Verdict {
    let id = RuleId::from_bytes([7; 10]);
    Verdict::Allow { rule: format!("rule {id}"), by_rule: Some(id) }
}

#[test]
fn a_rule_covers_exactly_its_target() {
    let pairs = [
        (argv(&["curl", "https://a.example/"]), argv(&["curl", "https://b.example/"])),
        (line("curl https://a.example/"), line("curl https://a.example/ -o x")),
        (line("rm build/*"), line("rm build/a")),
        (line("df > x"), line("df >  x")),
        (path(PathOp::Write, "/tmp/a"), path(PathOp::Write, "/tmp/b")),
        (http("POST", "https://a.example/x"), http("PUT", "https://a.example/x")),
        (http("POST", "https://a.example/x"), http("POST", "https://a.example:8443/x")),
        (http("POST", "https://a.example/x"), http("POST", "http://a.example/x")),
        (path(PathOp::Read, "/etc/hosts"), path(PathOp::Read, "/etc/fstab")),
    ];
    for (own, other) in pairs {
        let world = World::new(Mode::Ask).with_rule(rule_for_call(&own.0, &own.1));
        assert_eq!(world.judge(&own), allowed_by_rule(), "{:?}", own.0);
        assert_eq!(world.judge(&other).word(), "ask", "{:?}", other.0);
    }
    // The same argv elsewhere, or with a variable, is another call.
    let own = argv(&["make"]);
    let world = World::new(Mode::Ask).with_rule(rule_for_call(&own.0, &own.1));
    let mut moved = own.1.clone();
    let Action::Command { cwd, .. } = &mut moved.action else { panic!("a command") };
    *cwd = "/tmp".into();
    assert_eq!(world.judge(&Asked(own.0.clone(), moved)).word(), "ask");
    let mut loaded = own.1;
    let Action::Command { env_names, .. } = &mut loaded.action else { panic!("a command") };
    env_names.push("LD_PRELOAD".into());
    assert_eq!(world.judge(&Asked(own.0, loaded)).word(), "ask");
}

#[test]
fn a_rule_ends_by_time_and_by_use_and_stays_with_its_task() {
    let asked = argv(&["make"]);
    let fresh = || World::new(Mode::Ask).with_rule(rule_for_call(&asked.0, &asked.1));
    let mut world = fresh();
    world.rules[0].expires_at = Some("2026-01-01T00:00:00Z".parse().expect("an instant"));
    assert_eq!(world.judge(&asked).word(), "ask");
    world.now = "2025-12-31T23:59:59Z";
    assert_eq!(world.judge(&asked).word(), "allow");
    let mut world = fresh();
    world.rules[0].uses_left = Some(0);
    assert_eq!(world.judge(&asked).word(), "ask");
    world.rules[0].uses_left = Some(1);
    assert_eq!(world.judge(&asked).word(), "allow");
    let mut world = fresh();
    world.task = "other".parse().expect("a name");
    assert_eq!(world.judge(&asked).word(), "ask");
    world.rules[0].scope = RuleScope::Everywhere;
    assert_eq!(world.judge(&asked).word(), "allow");
    // No rule reaches past a deny or plan mode.
    world.settings.deny = vec!["make".into()];
    assert_eq!(world.judge(&asked).word(), "deny");
}

#[test]
fn a_step_rule_covers_its_text_and_program_and_the_holes_it_names() {
    let asked = argv(&["./report", "--", "x"]);
    let accepted = vec!["event.path".to_owned()];
    let target = rule_for_step(1, text(), Some(&asked.1), accepted);
    let world = World::new(Mode::Ask).with_rule(target).with_step(vec![hole("event.path", HolePlace::Argv(2))]);
    assert_eq!(world.judge(&asked), allowed_by_rule());
    // Holes are how outside text reaches a step, and these were accepted.
    assert_eq!(World { tainted: true, ..world }.judge(&asked), allowed_by_rule());
}

#[test]
fn a_step_rule_is_void_once_anything_changes() {
    let asked = argv(&["./report"]);
    let world = || World::new(Mode::Ask).with_rule(rule_for_step(1, text(), Some(&asked.1), vec![])).with_step(vec![]);
    assert_eq!(world().judge(&asked), allowed_by_rule());
    let step = |change: fn(&mut StepFacts)| {
        let mut world = world();
        change(world.step.as_mut().expect("a step"));
        world.judge(&asked).word()
    };
    assert_eq!(step(|step| step.text = BlobHash::of(b"edited")), "ask");
    assert_eq!(step(|step| step.step = 2), "ask");
    assert_eq!(step(|step| step.holes.push(hole("event.path", HolePlace::Stdin))), "ask");
    let mut facts = asked.1.clone();
    let Action::Command { program: found, .. } = &mut facts.action else { panic!("a command") };
    *found = Some(BoundFile { hash: BlobHash::of(b"upgraded"), ..program("/usr/bin/x") });
    assert_eq!(world().judge(&Asked(asked.0.clone(), facts)).word(), "ask");
    let mut facts = asked.1.clone();
    let Action::Command { parts, .. } = &mut facts.action else { panic!("a command") };
    parts.push(program("/usr/bin/part"));
    assert_eq!(world().judge(&Asked(asked.0.clone(), facts)).word(), "ask", "a part that the rule does not know");
    let mut world = world();
    world.rules[0].scope = RuleScope::Everywhere;
    assert_eq!(world.judge(&asked).word(), "ask", "a step's rule belongs to its task");
}

#[test]
fn a_hole_asks_in_every_mode_until_it_is_accepted_by_name() {
    for mode in [Mode::Ask, Mode::Edit, Mode::Auto] {
        let world = World::new(mode).with_step(vec![hole("event.path", HolePlace::Argv(1))]);
        let Verdict::Ask { rule_offer, .. } = world.judge(&argv(&["make", "x"])) else { panic!("it asks") };
        assert!(matches!(rule_offer, Some(RuleTarget::Step { step: 1, holes, .. }) if holes == ["event.path"]));
        let world = World::new(mode).with_step(vec![hole("steps.disks.stdout", HolePlace::Content)]);
        assert_eq!(world.judge(&path(PathOp::Write, "a.txt")).word(), "ask");
    }
    let world = World::new(Mode::Ask).with_step(vec![hole("event.path", HolePlace::Path)]);
    assert_eq!(world.judge(&path(PathOp::Read, "a.txt")).word(), "allow", "a read inside the roots has no effect");
    assert_eq!(world.judge(&path(PathOp::Read, "/etc/hosts")).word(), "ask");
}

#[test]
fn a_hole_never_becomes_an_option_or_part_of_a_command_line() {
    let out_of_place = [
        (argv(&["tar", "-x"]), HolePlace::Argv(1)),
        (argv(&["x", "y"]), HolePlace::Argv(0)),
        (argv(&["sh", "-c", "ls"]), HolePlace::Argv(2)),
        (argv(&["sudo", "sh", "-c", "ls"]), HolePlace::Argv(3)),
        (argv(&["env", "x"]), HolePlace::Argv(1)),
        (argv(&["python3", "-c", "x"]), HolePlace::Argv(2)),
        (argv(&["python3", "x.py"]), HolePlace::Argv(1)),
        (argv(&["ssh", "host", "uptime", "x"]), HolePlace::Argv(3)),
        (argv(&["eval", "x"]), HolePlace::Argv(1)),
        (argv(&["awk", "{print}"]), HolePlace::Argv(1)),
        (argv(&["xargs", "rm"]), HolePlace::Argv(1)),
        (argv(&["sh"]), HolePlace::Stdin),
        (argv(&["make"]), HolePlace::Env("LD_PRELOAD".into())),
        (argv(&["make"]), HolePlace::Other("/cwd".into())),
        (line("echo x"), HolePlace::CommandLine),
        (path(PathOp::Write, "/etc/x"), HolePlace::Path),
        (path(PathOp::Write, ".bashrc"), HolePlace::Path),
        (http("POST", "https://a.example/"), HolePlace::Url),
    ];
    for (asked, at) in out_of_place {
        let target = rule_for_step(1, text(), Some(&asked.1), vec!["event.x".into()]);
        let world = World::new(Mode::Ask).with_rule(target).with_step(vec![hole("event.x", at.clone())]);
        let Verdict::Ask { rule_offer, .. } = world.judge(&asked) else { panic!("{:?} {at:?} asks", asked.0) };
        assert_eq!(rule_offer, None, "{:?} {at:?}", asked.0);
    }
    let in_place = [
        (argv(&["tar", "tf", "--", "-x"]), HolePlace::Argv(3)),
        (argv(&["sh", "-c", "ls \"$1\"", "sh", "x"]), HolePlace::Argv(4)),
        (argv(&["sh", "job.sh", "x"]), HolePlace::Argv(2)),
        (argv(&["python3", "x.py", "y"]), HolePlace::Argv(2)),
        (argv(&["timeout", "5", "cp", "a", "b"]), HolePlace::Argv(3)),
        (argv(&["sort"]), HolePlace::Stdin),
        (line("cat > x"), HolePlace::Stdin),
        (argv(&["make"]), HolePlace::Env("LC_ALL".into())),
        (path(PathOp::Write, "a.txt"), HolePlace::Path),
        (path(PathOp::Write, "/etc/x"), HolePlace::Content),
        (http("POST", "https://a.example/"), HolePlace::Content),
    ];
    for (asked, at) in in_place {
        let target = rule_for_step(1, text(), Some(&asked.1), vec!["event.x".into()]);
        let world = World::new(Mode::Ask).with_rule(target).with_step(vec![hole("event.x", at.clone())]);
        let expected = if asked.0.args.get("line").is_some() { "ask" } else { "allow" };
        assert_eq!(world.judge(&asked).word(), expected, "{:?} {at:?}", asked.0);
    }
}

#[test]
fn a_denied_call_is_refused_without_a_second_question_and_an_uncertain_one_always_asks() {
    let asked = argv(&["make"]);
    let mut world = World::new(Mode::Auto).with_rule(rule_for_call(&asked.0, &asked.1));
    world.uncertain = vec![asked.0.hash()];
    let Verdict::Ask { category, rule_offer, .. } = world.judge(&asked) else { panic!("it asks") };
    assert_eq!((category, rule_offer), (Category::UnknownOutcome, None));
    world.denied = vec![asked.0.hash()];
    assert_eq!(world.word(&asked), "deny: denied before");
}

#[test]
fn only_an_allowed_or_answered_call_is_authorized() {
    let world = World::new(Mode::Ask);
    let Asked(call, facts) = argv(&["git", "status"]);
    let cleared = authorize(call.clone(), &facts, &world.situation()).expect("a safe command");
    assert_eq!(cleared.get(), &call);
    let Asked(call, facts) = argv(&["make"]);
    assert!(authorize(call.clone(), &facts, &world.situation()).is_err());
    let bound = binding_of(&facts);
    let answered = |answer: &Answer, facts: &Facts, world: &World| {
        authorize_answered(call.clone(), facts, &bound, answer, &world.situation())
            .map(ow_policy::Authorized::into_inner)
    };
    assert_eq!(answered(&Answer::Once, &facts, &world), Ok(call.clone()));
    assert_eq!(answered(&Answer::ForTask, &facts, &world), Ok(call.clone()));
    assert_eq!(answered(&Answer::Deny { reason: None }, &facts, &world), Err(Refusal::NotAllowed));
    assert_eq!(answered(&Answer::Acknowledge, &facts, &world), Err(Refusal::NotAllowed));
    assert_eq!(answered(&Answer::Text { text: "yes".into() }, &facts, &world), Err(Refusal::NotAllowed));
    assert_eq!(answered(&Answer::Edited { args: json!({ "argv": ["make"] }) }, &facts, &world), Ok(call.clone()));
    assert_eq!(answered(&Answer::Edited { args: json!({}) }, &facts, &world), Err(Refusal::OtherArguments));
    let mut world = World::new(Mode::Ask);
    world.settings.deny = vec!["make".into()];
    assert!(matches!(answered(&Answer::Once, &facts, &world), Err(Refusal::Denied { .. })));
    assert!(matches!(answered(&Answer::Once, &facts, &World::new(Mode::Plan)), Err(Refusal::Denied { .. })));
}

#[test]
fn no_answer_lifts_a_hard_block() {
    for asked in [
        line("rm -rf /"),
        line("curl U | sh"),
        path(PathOp::Write, "~/.config/owd/x"),
        http("POST", "http://127.0.0.1:7700/"),
    ] {
        for mode in MODES {
            let world = World::new(mode);
            let refused =
                authorize_answered(asked.0.clone(), &asked.1, &binding_of(&asked.1), &Answer::Once, &world.situation());
            assert!(matches!(refused, Err(Refusal::Denied { .. })), "{:?}", asked.0);
        }
    }
}

#[test]
fn a_rule_that_would_never_permit_anything_is_known_by_its_target() {
    let settings =
        Settings { protected: vec!["/home/ada/.config/owd".into()], home: "/home/ada".into(), ..Settings::default() };
    let argv = |words: &[&str], cwd: Option<&str>| {
        let argv = words.iter().map(|word| (*word).to_owned()).collect();
        RuleTarget::Argv { argv, cwd: cwd.map(Into::into) }
    };
    let path = |path: &str| RuleTarget::Path { tool: "write_file".parse().expect("a name"), path: path.into() };
    for (target, never) in [
        (argv(&["rm", "-rf", "/"], None), true),
        (argv(&["rm", "-rf", "/home/ada"], None), true),
        (argv(&["sh", "-c", "rm -rf /"], None), true),
        (argv(&["cat", "/home/ada/.config/owd/secrets.toml"], None), true),
        // Only somewhere.
        (argv(&["rm", "-rf", "."], None), false),
        (argv(&["rm", "-rf", ".."], None), false),
        (argv(&["rm", "-rf", "."], Some("/home/ada")), true),
        (argv(&["rm", "-rf", "build"], Some("/home/ada/work")), false),
        (argv(&["git", "fetch"], None), false),
        (path("/home/ada/.config/owd/owd.toml"), true),
        (path("/dev/sda"), true),
        (path("/home/ada/work/report.md"), false),
        // A person may: it asks, and a rule covers it.
        (path("/home/ada/.env"), false),
    ] {
        let found = never_permits(&target, &settings);
        assert_eq!(found.is_some(), never, "{target:?}: {found:?}");
    }
}

#[test]
fn an_answer_holds_only_while_what_it_was_bound_to_stays() {
    let script = BoundFile { path: "/home/u/reports/job.sh".into(), device: 1, inode: 9, hash: BlobHash::of(b"A") };
    let bound_to = |files: Vec<BoundFile>, cwd: &str| {
        let Asked(_, mut facts) = argv(&["sh", "./job.sh"]);
        let Action::Command { files: found, cwd: place, .. } = &mut facts.action else { panic!("a command") };
        *found = files;
        *place = cwd.into();
        binding_of(&facts)
    };
    let bound = bound_to(vec![script.clone()], "/r");
    assert_eq!(check_binding(&bound, &bound_to(vec![script.clone()], "/r")), Ok(()));
    let changed = |files, cwd| check_binding(&bound, &bound_to(files, cwd)).expect_err("it changed");
    assert_eq!(
        changed(vec![BoundFile { hash: BlobHash::of(b"B"), ..script.clone() }], "/r"),
        "the content of /home/u/reports/job.sh"
    );
    assert_eq!(
        changed(vec![BoundFile { inode: 10, ..script.clone() }], "/r"),
        "/home/u/reports/job.sh was replaced by another file"
    );
    assert_eq!(changed(vec![], "/r"), "/home/u/reports/job.sh is gone or no longer what runs");
    assert_eq!(changed(vec![script.clone()], "/s"), "the working directory is /s, was /r");
    let more = vec![script, program("/home/u/reports/new")];
    assert_eq!(changed(more, "/r"), "/home/u/reports/new was not there");
    let write = |base: Option<&[u8]>| {
        let Asked(_, mut facts) = path(PathOp::Write, "a.txt");
        let Action::Paths { base: found, .. } = &mut facts.action else { panic!("paths") };
        *found = Some(("/home/u/reports/a.txt".into(), base.map(BlobHash::of)));
        binding_of(&facts)
    };
    assert_eq!(check_binding(&write(Some(b"A")), &write(Some(b"A"))), Ok(()));
    assert!(check_binding(&write(Some(b"A")), &write(Some(b"B"))).is_err());
    assert!(check_binding(&write(None), &write(Some(b"A"))).is_err());
}

#[test]
fn places_of_holes_are_told_from_pointers() {
    for (pointer, place) in [
        ("/argv/2", HolePlace::Argv(2)),
        ("/env/LANG", HolePlace::Env("LANG".into())),
        ("/content", HolePlace::Content),
        ("/path", HolePlace::Path),
        ("/url", HolePlace::Url),
        ("/line", HolePlace::CommandLine),
        ("/stdin", HolePlace::Stdin),
        ("/cwd", HolePlace::Other("/cwd".into())),
    ] {
        assert_eq!(HolePlace::of_pointer(pointer), place);
    }
}

fn any_asked() -> impl Strategy<Value = usize> {
    0_usize..12
}

fn sample(index: usize) -> Asked {
    match index {
        0 => argv(&["make"]),
        1 => line("make > x"),
        2 => line("make; id"),
        3 => path(PathOp::Write, "a.txt"),
        4 => path(PathOp::Write, "/etc/x"),
        5 => path(PathOp::Read, ".env"),
        6 => http("POST", "https://a.example/"),
        7 => http("GET", "https://b.example/"),
        8 => plain(Risk::Exec),
        9 => plain(Risk::External),
        10 => plain(Risk::WriteLocal),
        _ => argv(&["git", "status"]),
    }
}

proptest! {
    #[test]
    fn a_denied_call_never_runs_whatever_else_holds(index in any_asked(), mode in 0_usize..4, tainted: bool, outside: bool) {
        let asked = sample(index);
        let mut world = World::new(MODES[mode]).with_rule(RuleTarget::Call { hash: asked.0.hash() });
        world.rules[0].covers_outside = outside;
        world.tainted = tainted;
        world.denied = vec![asked.0.hash()];
        prop_assert_eq!(world.judge(&asked).word(), "deny");
    }

    #[test]
    fn taint_never_widens_what_runs(index in any_asked(), mode in 0_usize..4, ruled: bool) {
        let asked = sample(index);
        let world = World::new(MODES[mode]);
        let world = if ruled { world.with_rule(RuleTarget::Call { hash: asked.0.hash() }) } else { world };
        let clean = world.judge(&asked).word() == "allow";
        let tainted = World { tainted: true, ..world };
        let allowed = tainted.judge(&asked).word() == "allow";
        prop_assert!(clean || !allowed);
        let has_effect = asked.1.risk != Risk::Read && index != 11;
        prop_assert!(!(allowed && has_effect), "{:?}", asked.0);
    }

    #[test]
    fn nothing_with_side_effects_runs_in_mode_plan(index in any_asked()) {
        let asked = sample(index);
        let world = World::new(Mode::Plan).with_rule(RuleTarget::Call { hash: asked.0.hash() });
        if asked.1.risk != Risk::Read && index != 11 {
            prop_assert_eq!(world.judge(&asked).word(), "deny");
        }
    }
}

mod sessions {
    //! What a person says in a session: hosts that are named, "always", and classes of tools.

    use ow_model::SessionOffer;
    use ow_policy::{RiskOverride, session_offer, url::named_hosts};

    use super::*;

    fn always_tool(world: World, tool: &str) -> World {
        World { always_tools: vec![tool.parse().expect("a name")], ..world }
    }

    fn given(mut world: World, pattern: &str, risk: Risk) -> World {
        world.settings.tool_risk.push(RiskOverride { pattern: pattern.into(), risk });
        world
    }

    #[test]
    fn a_tainted_session_fetches_only_from_hosts_that_were_named() {
        let message = "Summarise https://docs.example.com/intro for me";
        let world = || World { named_hosts: named_hosts([message]), ..World::new(Mode::Auto).tainted() };
        assert_eq!(world().word(&fetch("https://docs.example.com/other")), "allow: read: fetch");
        assert_eq!(world().word(&fetch("https://collect.example/?q=secret")), "ask: ask: host");
        assert_eq!(world().word(&fetch("https://sub.docs.example.com/")), "ask: ask: host");
        assert_eq!(World::new(Mode::Ask).word(&fetch("https://anyone.example/")), "allow: read: fetch");
        assert_eq!(always_tool(world(), "web_fetch").word(&fetch("https://collect.example/")), "ask: ask: host");
    }

    #[test]
    fn a_host_that_is_only_mentioned_gets_no_more_than_a_question_for_a_page() {
        let world = || World { named_hosts: vec!["a.example".into()], ..World::new(Mode::Ask) };
        assert_eq!(world().word(&http("GET", "https://a.example/")), "allow: named by a person or the task: a.example");
        assert_eq!(world().word(&http("POST", "https://a.example/")), "ask: ask: host");
        let private = World { named_hosts: vec!["127.0.0.1:7700".into()], ..World::new(Mode::Auto) };
        assert_eq!(private.word(&fetch("http://127.0.0.1:7700/")), "deny: hard-block: address");
    }

    #[test]
    fn always_this_tool_covers_what_asks_for_its_class_alone() {
        let shell = || always_tool(World::new(Mode::Ask), "shell");
        assert_eq!(shell().word(&argv(&["make"])), "allow: session: always shell");
        assert_eq!(shell().word(&line("echo $(id)")), "ask: ask: shell syntax");
        assert_eq!(shell().word(&line("rm -rf /")).split(':').next(), Some("deny"));
        assert_eq!(shell().word(&http("GET", "https://a.example/")), "ask: ask: host");
        assert_eq!(shell().tainted().judge(&argv(&["make"])).word(), "ask");
        let write = || always_tool(World::new(Mode::Ask), "write_file");
        assert_eq!(write().word(&path(PathOp::Write, "a.txt")), "allow: session: always write_file");
        for place in [".env", "/etc/x", ".git/hooks/pre-commit"] {
            assert_eq!(write().judge(&path(PathOp::Write, place)).word(), "ask", "{place}");
        }
        assert_eq!(write().judge(&path(PathOp::Write, "~/.config/owd/x")).word(), "deny");
        assert_eq!(write().tainted().judge(&path(PathOp::Write, "a.txt")).word(), "ask");
        let mut plan = write();
        plan.mode = Mode::Plan;
        assert_eq!(plan.word(&path(PathOp::Write, "a.txt")), "deny: mode plan");
        for risk in [Risk::WriteLocal, Risk::Exec, Risk::External] {
            assert_eq!(always_tool(World::new(Mode::Ask), "thing").word(&plain(risk)), "allow: session: always thing");
        }
    }

    #[test]
    fn always_this_command_covers_its_exact_argv_and_no_other() {
        let world = || World { always_commands: vec![vec!["make".into(), "test".into()]], ..World::new(Mode::Ask) };
        assert_eq!(world().word(&argv(&["make", "test"])), "allow: session: always this command");
        for other in [&["make"][..], &["make", "test", "-n"], &["make", "test "], &["/usr/bin/make", "test"]] {
            assert_eq!(world().judge(&argv(other)).word(), "ask", "{other:?}");
        }
        assert_eq!(world().tainted().judge(&argv(&["make", "test"])).word(), "ask");
        let Asked(call, mut facts) = argv(&["make", "test"]);
        let Action::Command { env_names, .. } = &mut facts.action else { panic!("a command") };
        env_names.push("CC".into());
        assert_eq!(world().judge(&Asked(call, facts)).word(), "ask", "a variable can change what it means");
        let Asked(call, mut facts) = argv(&["make", "test"]);
        let Action::Command { cwd, .. } = &mut facts.action else { panic!("a command") };
        *cwd = "/srv/other".into();
        assert_eq!(world().judge(&Asked(call, facts)).word(), "ask", "outside of the session's folders");
        let mut denied = world();
        denied.settings.deny = vec!["make".into()];
        assert_eq!(denied.judge(&argv(&["make", "test"])).word(), "deny");
        let mut uncertain = world();
        uncertain.uncertain = vec![argv(&["make", "test"]).0.hash()];
        assert_eq!(uncertain.word(&argv(&["make", "test"])), "ask: ask: unknown outcome");
    }

    #[test]
    fn always_this_command_holds_for_a_line_as_it_was_written() {
        let allowed = ["sh".to_owned(), "-c".to_owned(), "touch q9".to_owned()].to_vec();
        let world = || World { always_commands: vec![allowed.clone()], ..World::new(Mode::Ask) };
        assert_eq!(world().word(&line("touch q9")), "allow: session: always this command");
        for other in ["touch q9; id", "touch q9 > x", "touch q8", "touch q9 && id"] {
            assert!(world().word(&line(other)).starts_with("ask"), "{other}");
        }
    }

    #[test]
    fn always_is_offered_only_where_it_would_hold() {
        let offer = |world: &World, asked: &Asked| session_offer(&asked.0, &asked.1, &world.situation());
        let world = World::new(Mode::Ask);
        let make = argv(&["make"]);
        let both = SessionOffer { tool: Some("shell".parse().expect("a name")), command: Some(vec!["make".into()]) };
        assert_eq!(offer(&world, &make), both);
        let tool = SessionOffer { tool: Some("write_file".parse().expect("a name")), command: None };
        assert_eq!(offer(&world, &path(PathOp::Write, "a.txt")), tool);
        for asked in [line("make > x; id"), path(PathOp::Write, ".env"), path(PathOp::Read, "/etc/hosts")] {
            assert_eq!(offer(&world, &asked), SessionOffer::default(), "{:?}", asked.0);
        }
        assert_eq!(offer(&World::new(Mode::Ask).tainted(), &make), SessionOffer::default());
        let uncertain = World { uncertain: vec![make.0.hash()], ..World::new(Mode::Ask) };
        assert_eq!(offer(&uncertain, &make), SessionOffer::default());
    }

    #[test]
    fn a_person_raises_and_lowers_a_tools_class() {
        let world = || World::new(Mode::Ask);
        assert_eq!(given(world(), "thing", Risk::Read).word(&plain(Risk::External)), "allow: read");
        assert_eq!(given(world(), "th*", Risk::Read).tainted().word(&plain(Risk::External)), "allow: read");
        assert_eq!(given(World::new(Mode::Plan), "thing", Risk::Read).word(&plain(Risk::External)), "allow: read");
        assert_eq!(
            given(World::new(Mode::Auto), "thing", Risk::External).word(&plain(Risk::Read)),
            "ask: ask: external"
        );
        assert_eq!(given(World::new(Mode::Plan), "thing", Risk::Exec).word(&plain(Risk::Read)), "deny: mode plan");
        let Verdict::Ask { category, .. } = given(world(), "thing", Risk::Exec).judge(&plain(Risk::Read)) else {
            panic!("it asks")
        };
        assert_eq!(category, Category::Exec);
        let read = path(PathOp::Read, "a.txt");
        assert_eq!(given(world(), "read_file", Risk::External).word(&read), "ask: ask: external");
        assert_eq!(given(World::new(Mode::Auto), "read_file", Risk::Exec).word(&read), "allow: read: inside root");
        assert_eq!(given(world(), "shell", Risk::External).word(&argv(&["ls"])), "ask: ask: external");
    }

    #[test]
    fn a_lowered_class_lifts_no_more_than_the_classs_own_question() {
        let world = |mode| given(World::new(mode), "*", Risk::Read);
        assert_eq!(world(Mode::Ask).word(&argv(&["make"])), "allow: tool-risk: read");
        assert_eq!(world(Mode::Ask).word(&path(PathOp::Write, "a.txt")), "allow: tool-risk: read");
        assert_eq!(world(Mode::Ask).word(&line("echo $(id)")), "ask: ask: shell syntax");
        assert_eq!(world(Mode::Ask).judge(&path(PathOp::Read, ".env")).word(), "ask");
        assert_eq!(world(Mode::Ask).judge(&line("rm -rf /")).word(), "deny");
        assert_eq!(world(Mode::Plan).word(&argv(&["make"])), "deny: mode plan");
        for asked in [argv(&["make"]), path(PathOp::Write, "a.txt"), http("POST", "https://a.example/")] {
            assert_eq!(world(Mode::Auto).tainted().judge(&asked).word(), "ask", "{:?}", asked.0);
        }
    }

    proptest! {
        #[test]
        fn nothing_said_in_a_session_lifts_a_denial_taint_or_an_unknown_outcome(
            index in any_asked(), mode in 0_usize..4, how in 0_u8..3
        ) {
            let asked = sample(index);
            let argv = asked.1.clone();
            let mut world = always_tool(World::new(MODES[mode]), asked.0.tool.as_str());
            if let Action::Command { form: CommandForm::Argv(argv), .. } = argv.action {
                world.always_commands = vec![argv];
            }
            let plain = World::new(MODES[mode]);
            let before = match how {
                0 => { world.tainted = true; World { tainted: true, ..plain }.judge(&asked) }
                1 => { world.denied = vec![asked.0.hash()]; World { denied: vec![asked.0.hash()], ..plain }.judge(&asked) }
                _ => { world.uncertain = vec![asked.0.hash()]; World { uncertain: vec![asked.0.hash()], ..plain }.judge(&asked) }
            };
            prop_assert_eq!(world.judge(&asked).word(), before.word());
        }
    }
}
