//! Tasks: saving, editing, allowing, moving.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use expect_test::expect;
use serde_json::{Value, json};

use crate::fake::{Fake, Reply};
use crate::program::{self, Owctl, Ran};

fn task(source: &str, definition: &str) -> Value {
    json!({
        "name": "reports", "title": null, "revision": 3, "source": source, "state": "active", "paused_why": null,
        "time_zone": "UTC", "triggers": ["cron 0 6 * * *"], "next_due": null, "failures_in_row": 0,
        "events_waiting": 0, "created_at": "2001-01-01T00:00:00Z", "updated_at": "2001-01-01T00:00:00Z",
        "definition": definition,
    })
}

fn saved(change: &str) -> Reply {
    Reply::json(&json!({ "name": "reports", "revision": 4, "change": change, "next_due": null }))
}

fn invalid() -> Reply {
    let body = json!({ "error": {
        "code": "invalid", "message": "the definition of reports has 1 fault", "request_id": "r-1",
        "details": ["line 1, column 1: crn: unknown key; did you mean `cron`?"],
    } });
    Reply::json(&body).with_status(422)
}

fn editor(home: &Path, script: &str) -> PathBuf {
    let path = home.join("editor");
    program::script(&path, script);
    path
}

#[test]
fn a_task_takes_its_name_from_the_file_or_the_flag() {
    for (args, name) in [(vec!["reports.toml"], "reports"), (vec!["reports.toml", "--name", "nightly"], "nightly")] {
        let fake = Fake::start().on(&format!("PUT /v1/tasks/{name}"), saved("created"));
        let owctl = Owctl::to(&fake);
        fs::write(owctl.home().join("reports.toml"), "title = 1").unwrap();
        let ran = owctl.run(["task", "add"].into_iter().chain(args));
        assert_eq!(ran.code, 0, "{ran:?}");
        let body = r#"{"definition":"title = 1","must_be_new":true,"expect_revision":null}"#;
        assert_eq!(fake.lines(), [format!("PUT /v1/tasks/{name} {body}")]);
    }
}

#[test]
fn a_new_task_leads_to_what_one_does_next() {
    let fake = Fake::start().on("PUT /v1/tasks/reports", saved("created"));
    let owctl = Owctl::to(&fake);
    fs::write(owctl.home().join("reports.toml"), "title = 1").unwrap();
    expect![[r#"
        exit 0
        reports is created; next: nothing is scheduled
        See what it would do: owctl task run --plan reports
        Let its steps run without asking: owctl task allow reports
    "#]]
    .assert_eq(&owctl.run(["task", "add", "reports.toml"]).shown());
}

#[test]
fn a_definition_without_a_name_is_asked_for_one() {
    let ran = Owctl::new().run(["task", "add", "-"]);
    expect![[r#"
        exit 2
        --
        error: the task has no name
        next:  give one with --name: lower-case letters, digits, `-`, `_`, `.`
    "#]]
    .assert_eq(&ran.shown());
    let ran = Owctl::new().run(["task", "add", "none.toml"]);
    expect![[r#"
        exit 2
        --
        error: cannot read none.toml: No such file or directory (os error 2)
        next:  name a task file, or `-` to read the definition from standard input
    "#]]
    .assert_eq(&ran.shown());
}

#[test]
fn the_faults_of_a_definition_are_all_shown() {
    let fake = Fake::start().on("PUT /v1/tasks/reports", invalid());
    let owctl = Owctl::to(&fake);
    fs::write(owctl.home().join("reports.toml"), "crn = 1").unwrap();
    expect![[r#"
        exit 2
        --
        error: the definition of reports has 1 fault
          line 1, column 1: crn: unknown key; did you mean `cron`?
        next:  correct what is named and try again
    "#]]
    .assert_eq(&owctl.run(["task", "add", "reports.toml"]).shown());
}

#[test]
fn an_edit_is_saved_over_the_revision_that_was_shown() {
    let fake = Fake::start()
        .on("GET /v1/tasks/reports", Reply::json(&task("store", "a = 1\n")))
        .on("PUT /v1/tasks/reports", saved("revised"));
    let owctl = Owctl::to(&fake);
    let editor = editor(owctl.home(), "echo 'a = 2' > \"$1\"");
    let ran = owctl.with("VISUAL", editor).run(["task", "edit", "reports"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let body = r#"{"definition":"a = 2\n","must_be_new":false,"expect_revision":3}"#;
    assert_eq!(fake.lines(), ["GET /v1/tasks/reports".to_owned(), format!("PUT /v1/tasks/reports {body}")]);
}

#[test]
fn an_edit_with_faults_is_not_lost() {
    let fake = Fake::start()
        .on("GET /v1/tasks/reports", Reply::json(&task("store", "a = 1\n")))
        .on("PUT /v1/tasks/reports", invalid());
    let mut owctl = Owctl::to(&fake);
    let editor = editor(owctl.home(), "echo 'crn = 2' > \"$1\"");
    let temporary = owctl.home().to_owned();
    owctl.command().env("EDITOR", editor).env("TMPDIR", &temporary).args(["task", "edit", "reports"]);
    let ran = Ran::of(&owctl.command().output().unwrap());
    assert_eq!(ran.code, 2, "{ran:?}");
    let kept = ran.stderr.rsplit_once(" in ").unwrap().1.trim();
    assert_eq!(fs::read_to_string(kept).unwrap(), "crn = 2\n");
    assert_eq!(fs::metadata(kept).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_edit_that_changes_nothing_saves_nothing_and_leaves_no_file() {
    let fake = Fake::start().on("GET /v1/tasks/reports", Reply::json(&task("store", "a = 1\n")));
    let mut owctl = Owctl::to(&fake);
    let temporary = owctl.home().join("tmp");
    fs::create_dir(&temporary).unwrap();
    owctl.command().env("EDITOR", "true").env("TMPDIR", &temporary).args(["task", "edit", "reports", "--json"]);
    let ran = Ran::of(&owctl.command().output().unwrap());
    assert_eq!(ran.json()["change"], "unchanged");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

fn status(config_dir: &Path, warnings: &Value) -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"), "protocol": 1, "pid": 1, "started_at": "", "now": "", "time_zone": "UTC",
        "state": "running", "config_dir": config_dir, "data_dir": "", "socket": "", "tcp": null, "log": "stderr",
        "paused_all": null, "tasks": 0, "tasks_paused": 0, "runs_running": 0, "runs_queued": 0, "runs_parked": 0,
        "items_pending": 0, "events_waiting": 0, "workers": 8, "next_wake": null, "store_bytes": 0,
        "store_format": 1, "epoch": 1, "warnings": warnings,
    })
}

#[test]
fn a_task_file_is_edited_in_its_place_and_its_faults_are_told() {
    let config = tempfile::tempdir().unwrap();
    let file = config.path().join("tasks.d/reports.toml");
    fs::create_dir(config.path().join("tasks.d")).unwrap();
    fs::write(&file, "a = 1\n").unwrap();
    let fault =
        json!([{ "kind": "task_file", "about": file, "message": "reports.toml:1:1: crn: unknown key", "hint": null }]);
    for (warnings, code) in [(json!([]), 0), (fault, 2)] {
        let fake = Fake::start()
            .on("GET /v1/tasks/reports", Reply::json(&task("file", "a = 1\n")))
            .on("GET /v1/status", Reply::json(&status(config.path(), &json!([]))))
            .on("POST /v1/reload", Reply::json(&status(config.path(), &warnings)));
        let owctl = Owctl::to(&fake);
        let editor = editor(owctl.home(), "echo 'crn = 2' > \"$1\"");
        let ran = owctl.with("EDITOR", editor).run(["task", "edit", "reports", "--json"]);
        assert_eq!(ran.code, code, "{ran:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "crn = 2\n");
        if code == 2 {
            assert_eq!(ran.json()["error"]["details"], json!(["reports.toml:1:1: crn: unknown key"]));
        }
    }
}

#[test]
fn a_task_file_out_of_reach_is_named() {
    let config = tempfile::tempdir().unwrap();
    let fake = Fake::start()
        .on("GET /v1/tasks/reports", Reply::json(&task("file", "")))
        .on("GET /v1/status", Reply::json(&status(config.path(), &json!([]))));
    let ran = Owctl::to(&fake).run(["task", "edit", "reports"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("tasks.d/reports.toml") && ran.stderr.contains("next:"), "{ran:?}");
}

fn preview() -> Value {
    let step = |step: u32, allowed: bool, refused: Option<&str>| {
        json!({
            "step": step, "tool": "shell", "text": "tool = \"shell\"\nargs = { argv = [\"df\", \"{{ event.path }}\"] }\n",
            "text_hash": format!("h{step}"), "program": "/usr/bin/df", "holes": ["event.path"], "allowed": allowed,
            "refused": refused,
        })
    };
    json!({ "task": "reports", "revision": 3, "steps": [step(0, false, None), step(1, true, None), step(2, false, Some("it runs a shell"))] })
}

fn rules() -> Reply {
    Reply::json(&json!({ "rows": [{
        "id": "9d", "task": "reports", "target": { "target": "step", "step": 0, "text_hash": "h0", "holes": ["event.path"] },
        "text": "step 1 of reports", "covers_outside": false, "created_at": "2001-01-01T00:00:00Z", "created_by": "ada",
        "expires_at": null, "uses_left": null, "used": 0,
    }] }))
}

#[test]
fn nothing_is_allowed_that_nobody_said_yes_to() {
    for extra in [vec![], vec!["--json"]] {
        let fake = Fake::start().on("GET /v1/tasks/reports/allow", Reply::json(&preview()));
        let ran = Owctl::to(&fake).run(["task", "allow", "reports"].into_iter().chain(extra));
        assert_eq!(ran.code, 2, "{ran:?}");
        assert_eq!(fake.lines(), ["GET /v1/tasks/reports/allow"]);
    }
}

#[test]
fn what_is_allowed_is_exactly_what_is_shown() {
    let fake = Fake::start()
        .on("GET /v1/tasks/reports/allow", Reply::json(&preview()))
        .on("POST /v1/tasks/reports/allow", rules());
    let ran = Owctl::to(&fake).run(["task", "allow", "reports", "--yes", "--expires", "30d", "--uses", "5"]);
    expect![[r#"
        exit 0
        reports, revision 3

        step 1: shell
          tool = "shell"
          args = { argv = ["df", "{{ event.path }}"] }
          program: /usr/bin/df
          takes any value of: event.path

        step 2: shell
          tool = "shell"
          args = { argv = ["df", "{{ event.path }}"] }
          program: /usr/bin/df
          takes any value of: event.path
          is allowed already

        step 3: shell
          tool = "shell"
          args = { argv = ["df", "{{ event.path }}"] }
          program: /usr/bin/df
          takes any value of: event.path
          cannot be allowed: it runs a shell
        allowed: step 1 of reports (rule 9d)
        Take it back with `owctl rule rm ID`.
    "#]]
    .assert_eq(&ran.shown());
    expect![[r#"POST /v1/tasks/reports/allow {"steps":[{"step":0,"text_hash":"h0","holes":["event.path"]}],"covers_outside":false,"expires_in_ms":2592000000,"uses":5}"#]].assert_eq(&fake.lines()[1]);
}

#[test]
fn one_step_is_counted_from_one_and_holes_are_accepted_by_name() {
    let fake = Fake::start()
        .on("GET /v1/tasks/reports/allow?step=0", Reply::json(&preview()))
        .on("POST /v1/tasks/reports/allow", rules());
    let ran = Owctl::to(&fake).run(["task", "allow", "reports", "1", "--yes", "--hole", "event.path"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = Owctl::to(&fake).run(["task", "allow", "reports", "1", "--yes", "--hole", "event.name"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_eq!(fake.lines().len(), 3);
}

#[test]
fn what_no_rule_can_cover_is_told() {
    let mut preview = preview();
    preview["steps"].as_array_mut().unwrap().remove(0);
    let fake = Fake::start().on("GET /v1/tasks/reports/allow", Reply::json(&preview));
    let ran = Owctl::to(&fake).run(["task", "allow", "reports", "--yes", "--json"]);
    assert_eq!(ran.json()["error"]["details"], json!(["step 3: it runs a shell"]));
}

#[test]
fn tasks_go_out_into_a_folder_and_in_again() {
    let list = json!({ "rows": [task("store", "")] });
    let fake = Fake::start()
        .on("GET /v1/tasks?limit=500", Reply::json(&list))
        .on("GET /v1/tasks/reports", Reply::json(&task("store", "a = 1\n")))
        .on("PUT /v1/tasks/reports", saved("created"));
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("tasks");
    let ran = Owctl::to(&fake).run(["task", "export", "--all", into.to_str().unwrap(), "--json"]);
    assert_eq!(ran.json()["files"], json!([into.join("reports.toml")]));
    assert_eq!(fs::read_to_string(into.join("reports.toml")).unwrap(), "a = 1\n");
    let again = Owctl::to(&fake).run(["task", "export", "--all", into.to_str().unwrap()]);
    assert_eq!(again.code, 1, "a file that is there is not replaced: {again:?}");
    fs::write(into.join("readme.md"), "no task").unwrap();
    let ran = Owctl::to(&fake).run(["task", "import", into.to_str().unwrap(), "--json"]);
    assert_eq!((ran.code, ran.json()["saved"][0]["name"].as_str()), (0, Some("reports")), "{ran:?}");
    let one = Owctl::to(&fake).run(["task", "export", "reports"]);
    assert_eq!(one.stdout, "a = 1\n");
}

#[test]
fn a_file_that_cannot_be_imported_keeps_no_other_from_it() {
    let fake = Fake::start().on("PUT /v1/tasks/bad", invalid()).on("PUT /v1/tasks/reports", saved("created"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.toml"), "crn = 1").unwrap();
    fs::write(folder.path().join("reports.toml"), "a = 1").unwrap();
    let ran = Owctl::to(&fake).run(["task", "import", folder.path().to_str().unwrap(), "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(fake.lines().len(), 2);
    let imported = ran.json();
    assert_eq!((imported["saved"][0]["name"].as_str(), rows(&imported["saved"])), (Some("reports"), 1), "{imported}");
    assert_eq!(rows(&imported["failed"]), 1, "{imported}");
    assert!(imported["failed"][0]["file"].as_str().unwrap().ends_with("bad.toml"), "{imported}");

    // One that cannot be read is one of them, too.
    let missing = folder.path().join("missing.toml");
    let fake = Fake::start().on("PUT /v1/tasks/reports", saved("created"));
    let good = folder.path().join("reports.toml");
    let ran = Owctl::to(&fake).run(["task", "import", missing.to_str().unwrap(), good.to_str().unwrap()]);
    assert_eq!((ran.code, fake.lines().len()), (1, 1), "{ran:?}");
    assert!(ran.stdout.contains("reports: created") && ran.stderr.contains("missing.toml"), "{ran:?}");
    assert!(ran.stderr.contains("1 of 2 files"), "{ran:?}");
}

fn rows(list: &serde_json::Value) -> usize {
    list.as_array().unwrap().len()
}

#[test]
fn a_pause_tells_what_holds_now() {
    let fake = Fake::start()
        .on("POST /v1/tasks/reports/pause", Reply::nothing().closing())
        .on("GET /v1/tasks/reports", Reply::json(&task("store", "")));
    let ran = Owctl::to(&fake).run(["task", "pause", "reports", "--json"]);
    assert_eq!((ran.code, ran.json()["name"].as_str()), (0, Some("reports")), "{ran:?}");
    assert_eq!(fake.lines(), ["POST /v1/tasks/reports/pause", "GET /v1/tasks/reports"]);
}

#[test]
fn a_plan_shows_what_would_ask() {
    let plan = json!({ "task": "reports", "revision": 3, "steps": [
        { "step": 0, "tool": "shell", "arguments": { "argv": ["df", "-h"] }, "holes": [], "verdict": "allow",
          "rule": "safe: df", "why": "it only reads" },
        { "step": 1, "tool": "write_file", "arguments": { "path": "/r/1.md", "content": "{{ steps.disks.stdout }}" },
          "holes": ["steps.disks.stdout"], "verdict": "ask", "rule": "ask: write-local", "why": "no rule covers it" },
    ] });
    let fake = Fake::start().on("POST /v1/tasks/reports/plan", Reply::json(&plan));
    expect![[r#"
        exit 0
        reports, revision 3: what a run would do now

        step 1 shell  allow
          argv: ["df","-h"]
          it only reads (safe: df)

        step 2 write_file  ask
          content: {{ steps.disks.stdout }}
          path: /r/1.md
          no rule covers it (ask: write-local)
          only a run knows: steps.disks.stdout

        1 of 2 steps would ask. To let them run without asking: owctl task allow reports
    "#]]
    .assert_eq(&Owctl::to(&fake).run(["task", "run", "--plan", "reports"]).shown());
}

#[test]
fn a_task_is_deleted_without_a_question_where_nobody_can_be_asked() {
    let fake = Fake::start()
        .on("GET /v1/tasks/reports", Reply::json(&task("store", "")))
        .on("DELETE /v1/tasks/reports", Reply::nothing());
    let ran = Owctl::to(&fake).run(["task", "rm", "reports", "--json"]);
    assert_eq!((ran.code, ran.json()), (0, json!({ "deleted": "reports" })));
}
