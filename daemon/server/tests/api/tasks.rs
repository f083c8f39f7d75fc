use ow_engine::{PlannedStep, PlannedVerdict};
use ow_model::Trigger;
use ow_store::{Claim, Store};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::daemon::{Daemon, definition};

#[tokio::test]
async fn a_task_is_made_changed_shown_and_deleted() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let body = |change: Value| {
        let mut body = json!({ "definition": definition("reports").to_string() });
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        body
    };
    let made = client.put("/v1/tasks/reports", &body(json!({ "must_be_new": true }))).await.ok();
    assert_eq!(
        made,
        json!({ "name": "reports", "revision": 1, "change": "created", "next_due": "2026-03-29T07:00:00Z" })
    );
    assert_eq!(daemon.control.script().wakes, 1);
    client.put("/v1/tasks/reports", &body(json!({ "must_be_new": true }))).await.error(409, "conflict");
    assert_eq!(daemon.control.script().checked_against, [None, None], "a new task has nothing to be compared with");
    assert_eq!(client.put("/v1/tasks/reports", &body(json!({}))).await.ok()["change"], "unchanged");
    let mut changed = definition("reports");
    changed["title"] = json!("Morning report");
    let changed = json!({ "definition": changed.to_string(), "expect_revision": 1 });
    assert_eq!(client.put("/v1/tasks/reports", &changed).await.ok()["revision"], 2);
    client.put("/v1/tasks/reports", &changed).await.error(409, "conflict");

    let shown = client.get("/v1/tasks/reports").await.ok();
    assert_eq!((&shown["title"], &shown["triggers"]), (&json!("Morning report"), &json!(["cron 0 9 * * *"])));
    assert_eq!(shown["definition"], changed["definition"]);
    client.send("POST", "/v1/tasks/reports/pause", &[], "").await.done();
    let shown = client.get("/v1/tasks/reports").await.ok();
    assert_eq!(shown["state"], "paused");
    assert!(shown["paused_why"].as_str().unwrap().starts_with("paused by a person"));
    client.send("POST", "/v1/tasks/reports/resume", &[], "").await.done();

    let run = client.send("POST", "/v1/tasks/reports/run", &[], "").await.ok();
    assert_eq!(run["cause"]["text"], "by hand, anna");
    assert_eq!(client.get("/v1/tasks/reports").await.ok()["last_run"]["id"], run["id"]);
    daemon.store.take_runs(1, 1, true, daemon.now()).await.unwrap();
    client.delete("/v1/tasks/reports").await.done();
    let stopped = daemon.control.script().stopped;
    assert_eq!((stopped.len(), stopped[0].0.to_string()), (1, run["id"].as_str().unwrap().to_owned()));
    client.delete("/v1/tasks/reports").await.error(404, "not_found");
    // A new task of the same name is another one: the old one's runs are not its own.
    daemon.save("reports", |_| {}).await;
    assert_eq!(client.get("/v1/tasks/reports").await.ok()["last_run"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_add_a_task_of_one_name_one_is_refused() {
    let daemon = Daemon::start();
    for round in 0..10 {
        let name = format!("reports-{round}");
        let mut adding = JoinSet::new();
        for title in ["one", "other"] {
            let mut client = daemon.client().await;
            let mut body = definition(&name);
            body["title"] = json!(title);
            let (path, body) =
                (format!("/v1/tasks/{name}"), json!({ "definition": body.to_string(), "must_be_new": true }));
            adding.spawn(async move { client.put(&path, &body).await.status });
        }
        let mut statuses = adding.join_all().await;
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409]);
    }
}

#[tokio::test]
async fn a_task_that_a_file_made_is_changed_by_its_file_alone() {
    let daemon = Daemon::start();
    let spec = crate::daemon::spec("reports");
    daemon.store.save_task(&spec, ow_model::TaskSource::File, "", None, daemon.now()).await.unwrap();
    let mut client = daemon.client().await;
    let body = json!({ "definition": definition("reports").to_string() });
    let error = client.put("/v1/tasks/reports", &body).await.error(409, "conflict");
    assert!(error["message"].as_str().unwrap().contains("tasks.d"));
}

#[tokio::test]
async fn tasks_page_by_name_and_are_filtered() {
    let daemon = Daemon::start();
    for name in ["mail-in", "mail-out", "reports", "backup", "cleanup"] {
        daemon.save(name, |_| {}).await;
    }
    let mut client = daemon.client().await;
    client.send("POST", "/v1/tasks/backup/pause", &[], "").await.done();
    let mut seen = vec![];
    let mut path = "/v1/tasks?limit=2".to_owned();
    loop {
        let page = client.get(&path).await.ok();
        seen.extend(page["rows"].as_array().unwrap().iter().map(|task| task["name"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(cursor) => path = format!("/v1/tasks?limit=2&after={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, ["backup", "cleanup", "mail-in", "mail-out", "reports"]);
    for (filter, count) in [("name=mail", 2), ("state=paused", 1), ("state=active", 4), ("state=active&name=mail", 2)] {
        assert_eq!(
            client.get(&format!("/v1/tasks?{filter}")).await.ok()["rows"].as_array().unwrap().len(),
            count,
            "{filter}"
        );
    }
}

#[tokio::test]
async fn a_plan_says_what_each_step_would_do() {
    let daemon = Daemon::start();
    daemon.save("reports", |_| {}).await;
    let planned =
        |step, verdict| PlannedStep { step, tool: "shell".parse().unwrap(), args: json!({}), holes: vec![], verdict };
    let deny = ow_policy::Verdict::Deny { rule: "hard block".into(), why: "it is owd's own".into() };
    let allow = ow_policy::Verdict::Allow { rule: "mode auto".into(), by_rule: None };
    daemon.control.change(|script| {
        script.plan = Ok(vec![
            planned(1, PlannedVerdict::Judged(allow)),
            planned(2, PlannedVerdict::Judged(deny)),
            planned(3, PlannedVerdict::Conditional { condition: "event.size > 3".into() }),
            planned(4, PlannedVerdict::Broken { why: "no such program".into() }),
        ]);
    });
    let mut client = daemon.client().await;
    let plan = client.send("POST", "/v1/tasks/reports/plan", &[], "").await.ok();
    let verdicts: Vec<_> =
        plan["steps"].as_array().unwrap().iter().map(|step| step["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["allow", "deny", "skip", "deny"]);
    assert_eq!(
        (&plan["steps"][1]["rule"], &plan["steps"][1]["why"]),
        (&json!("hard block"), &json!("it is owd's own"))
    );
    daemon.control.change(|script| script.plan = Err("its template fails".into()));
    client.post("/v1/tasks/reports/plan", &json!({ "payload": {} })).await.error(422, "invalid");
}

#[tokio::test]
async fn the_forecast_gives_all_tasks_slots_in_order_and_pages_within_an_instant() {
    let daemon = Daemon::start();
    daemon.save("nightly", |spec| spec.triggers = vec![Trigger::Cron("30 2 * * *".into())]).await;
    daemon.save("also-nightly", |spec| spec.triggers = vec![Trigger::Cron("30 2 * * *".into())]).await;
    daemon.save("once", |spec| spec.triggers = vec![Trigger::At("2026-03-29T12:00:00Z".parse().unwrap())]).await;
    daemon.save("watching", |spec| spec.triggers = vec![Trigger::Startup]).await;
    let mut client = daemon.client().await;
    client.send("POST", "/v1/tasks/nightly/pause", &[], "").await.done();
    let until = "until=2026-03-30T12:00:00Z";
    let all = client.get(&format!("/v1/forecast?{until}")).await.ok();
    let lines: Vec<_> = all["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{} {}", row["at"].as_str().unwrap(), row["task"].as_str().unwrap()))
        .collect();
    // In the night of 29 March the clocks of Paris jump from 02:00 to 03:00.
    assert_eq!(
        lines,
        [
            "2026-03-29T01:00:00Z also-nightly",
            "2026-03-29T01:00:00Z nightly",
            "2026-03-29T12:00:00Z once",
            "2026-03-30T00:30:00Z also-nightly",
            "2026-03-30T00:30:00Z nightly",
        ]
    );
    assert_eq!((&all["rows"][0]["held"], &all["next"]), (&Value::Null, &Value::Null));
    assert!(all["rows"][1]["held"].as_str().unwrap().starts_with("paused"));

    let mut paged = vec![];
    let mut path = format!("/v1/forecast?{until}&limit=1");
    loop {
        let page = client.get(&path).await.ok();
        assert_eq!(page["rows"].as_array().unwrap().len(), 1);
        paged.extend(page["rows"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(cursor) => path = format!("/v1/forecast?{until}&limit=1&after={cursor}"),
            None => break,
        }
    }
    assert_eq!(json!(paged), all["rows"]);
    let one = client.get(&format!("/v1/forecast?{until}&task=once")).await.ok();
    assert_eq!(one["rows"].as_array().unwrap().len(), 1);
    let endless = client.get("/v1/forecast?task=nightly&limit=500").await.ok();
    assert_eq!(endless["rows"].as_array().unwrap().len(), 500);
    client.send("POST", "/v1/pause", &[], "").await.done();
    assert_eq!(client.get(&format!("/v1/forecast?{until}")).await.ok()["rows"][0]["held"], "paused: all");
}

#[tokio::test]
async fn why_answers_from_the_slot_records() {
    let daemon = Daemon::start();
    let task = daemon.save("reports", |_| {}).await;
    let mut client = daemon.client().await;
    let why = client.get("/v1/tasks/reports/why").await.ok();
    assert_eq!(
        why["answer"],
        "Nothing was due since the task was made at 2026-03-28 13:00. Next at 2026-03-29 09:00. Times are of Europe/Paris."
    );
    // Down for three days: four slots are missed and become one run.
    daemon.control.advance(4 * 86_400 - 3600);
    let claim = Claim { now: daemon.now(), awake_since: daemon.now(), limit: 100 };
    assert_eq!(daemon.store.claim_due(&claim).await.unwrap().created, 1);
    let taken = daemon.store.take_runs(1, 1, true, daemon.now()).await.unwrap();
    let why = client.get("/v1/tasks/reports/why").await.ok();
    assert_eq!(
        why["answer"],
        "Ran at 2026-04-01 13:00 as a catch-up run for 4 missed slots, from 2026-03-29 09:00 to 2026-04-01 09:00, because owd was down; it is running. Next at 2026-04-02 09:00. Times are of Europe/Paris."
    );
    assert_eq!((&why["records"][0]["kind"], &why["records"][0]["count"]), (&json!("range"), &json!(4)));
    assert_eq!(why["records"][0]["run_state"], "running");

    // The next morning that run is still there.
    daemon.control.advance(86_400);
    let claim = Claim { now: daemon.now(), awake_since: "2026-04-01T00:00:00Z".parse().unwrap(), limit: 100 };
    daemon.store.claim_due(&claim).await.unwrap();
    for at in ["2026-04-02T09:00", "09:00", "2026-04-02T07:00:00Z", "2026-04-02T09:00:00%2B02:00"] {
        let why = client.get(&format!("/v1/tasks/reports/why?at={at}")).await.ok();
        let answer = why["answer"].as_str().unwrap();
        assert!(
            answer.starts_with(
                "The slot of 2026-04-02 09:00 was skipped: the run of 2026-04-01 09:00 was still running."
            ),
            "{at}: {answer}"
        );
    }
    let why = client.get("/v1/tasks/reports/why?at=10:17").await.ok();
    assert!(
        why["answer"]
            .as_str()
            .unwrap()
            .starts_with("Nothing was due at 2026-04-02 10:17; before that, the slot of 2026-04-02 09:00 was skipped"),
        "{why}"
    );
    assert_eq!(why["records"], json!([]));
    let why =
        client.get("/v1/tasks/reports/why?from=2026-03-29T00:00:00Z&until=2026-04-03T00:00:00Z&limit=1").await.ok();
    assert_eq!(why["records"].as_array().unwrap().len(), 1);
    client.get("/v1/tasks/reports/why?at=soon").await.error(400, "bad_request");
    client.get("/v1/tasks/reports/why?at=09:00&from=2026-03-29T00:00:00Z").await.error(400, "bad_request");
    drop((taken, task));
}
