//! Notices to where an inbox is bound: they arrive, once, whatever falls in between.

use std::collections::BTreeSet;
use std::fs;

use ow_stories::asking;
use ow_test_support::{Owd, Received, Receiver, Scratch, id, until};
use serde_json::Value;

fn bound(settings: &str) -> Scratch {
    let scratch = asking();
    scratch.config(settings);
    scratch
}

fn park(owd: &Owd) -> String {
    owd.owctl.ok(&["task", "run", "asking"]);
    id(&owd.item())
}

fn json(received: &Received) -> Value {
    serde_json::from_str(&received.body).unwrap_or_else(|error| panic!("{error}: {}", received.body))
}

#[test]
fn what_is_asked_arrives_with_the_line_that_answers_it_and_the_end_with_who_decided() {
    let server = Receiver::new();
    let scratch = bound(&format!(
        "[inboxes.default]\nntfy = \"{}\"\nwebhook = \"{}\"\nwebhook-secret = \"hook\"\n",
        server.url("/topic"),
        server.url("/hook")
    ));
    let owd = scratch.start_with(|command| {
        command.env("OWD_SECRET_HOOK", "a key of many letters");
    });
    let item = park(&owd);
    let asked = server.wait_for(2);
    let of = |path: &str| asked.iter().find(|request| request.path == path).cloned().expect("both are told");
    let plain = of("/topic");
    assert!(plain.body.contains(&format!("owctl inbox approve {item}")), "{}", plain.body);
    assert!(plain.header("title").is_some_and(|title| title.starts_with("asking")), "{plain:?}");
    let hook = of("/hook");
    let shown = &json(&hook)["notices"][0];
    assert_eq!((&shown["occasion"], &shown["item"]["id"]), (&Value::from("asked"), &Value::from(item.as_str())));
    assert!(shown["item"]["approval"]["arguments"].is_object(), "{shown}");
    assert!(hook.header("x-owd-signature").is_some_and(|value| value.starts_with("sha256=")), "{hook:?}");
    owd.owctl.ok(&["inbox", "deny", &item]);
    let end = server.wait_for(4);
    let said = end[2..].iter().find(|request| request.path == "/topic").expect("the end is told");
    assert!(said.body.starts_with("Denied by "), "{}", said.body);
    let rest: Vec<_> = server.requests().iter().map(|request| request.path.clone()).collect();
    assert_eq!(rest.len(), 4, "nothing twice: {rest:?}");
}

#[test]
fn a_server_that_is_down_gets_its_notice_once_it_is_up_and_nobody_waits_for_it() {
    let (port, well) = (Receiver::free_port(), Receiver::new());
    let scratch = bound(&format!(
        "[inboxes.default]\nntfy = \"http://127.0.0.1:{port}/down\"\nwebhook = \"{}\"\n",
        well.url("/well")
    ));
    let owd = scratch.start();
    let item = park(&owd);
    assert_eq!(well.wait_for(1).len(), 1);
    let tried = until("an attempt has failed", || {
        let status = owd.owctl.json(&["status"]);
        (status["deliveries_waiting"] == 1).then_some(status)
    });
    assert_eq!(tried["deliveries_failed"], 0);
    let late = Receiver::at(port);
    let told = late.wait_for(1);
    assert!(told[0].body.contains(&item), "{}", told[0].body);
    until("nothing waits", || (owd.owctl.json(&["status"])["deliveries_waiting"] == 0).then_some(()));
    assert_eq!((late.requests().len(), well.requests().len()), (1, 1));
}

#[test]
fn a_server_that_hangs_holds_up_no_other() {
    let (hanging, well) = (Receiver::new(), Receiver::new());
    hanging.answer(None);
    let scratch = bound(&format!(
        "[inboxes.default]\nntfy = \"{}\"\nwebhook = \"{}\"\n",
        hanging.url("/hangs"),
        well.url("/well")
    ));
    let owd = scratch.start();
    let item = park(&owd);
    hanging.wait_for(1);
    owd.owctl.ok(&["inbox", "deny", &item]);
    owd.run_in("asking", "refused");
    park(&owd);
    // Asked, the end, asked again.
    well.wait_for(3);
    owd.stop();
}

#[test]
fn a_notice_outlives_kill_9_between_the_question_and_its_delivery() {
    let port = Receiver::free_port();
    let scratch = bound(&format!("[inboxes.default]\nwebhook = \"http://127.0.0.1:{port}/hook\"\n"));
    let owd = scratch.start();
    let item = park(&owd);
    owd.kill();
    let server = Receiver::at(port);
    let owd = scratch.start();
    let told = server.wait_for(1);
    assert_eq!(json(&told[0])["notices"][0]["item"]["id"], item.as_str());
    server.answer(None);
    owd.owctl.ok(&["inbox", "deny", &item]);
    let under_way = server.wait_for(2);
    owd.kill();
    server.answer(Some(200));
    let _owd = scratch.start();
    let again = server.wait_for(3);
    let names: BTreeSet<_> = [&under_way[1], &again[2]].map(|request| request.header("x-owd-delivery")).into();
    assert_eq!(names.len(), 1, "what may have arrived is sent again under its name");
    assert_eq!(json(&again[2])["notices"][0]["occasion"], "settled");
}

#[test]
fn a_channel_that_lacks_its_secret_delivers_once_that_is_mended() {
    use std::os::unix::fs::PermissionsExt;
    let way = |out: &str| {
        format!("[mail.out]\nfrom = \"owd@example.net\"\n{out}\n[inboxes.default]\nmail = [\"ada@example.org\"]\n")
    };
    let lacks = "server = \"127.0.0.1:1\"\nsecurity = \"none\"\nuser = \"owd\"\npassword = \"nobody_set_this\"";
    let scratch = bound(&way(lacks));
    let owd = scratch.start();
    let item = park(&owd);
    let tried = until("an attempt has failed", || {
        let shown = owd.owctl.json(&["inbox", "show", &item]);
        shown["deliveries"][0]["error"].is_string().then(|| shown["deliveries"][0].clone())
    });
    assert!(tried["error"].to_string().contains("there is no secret `nobody_set_this`"), "{tried}");
    assert_eq!(tried["state"], "waiting", "{tried}");
    let (program, sent) = (scratch.path().join("sendmail"), scratch.path().join("sent"));
    fs::write(&program, format!("#!/bin/sh\ncat >> {}\n", sent.display())).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    scratch.config(&way(&format!("sendmail = \"{}\"", program.display())));
    owd.owctl.ok(&["reload"]);
    let told = until("it is sent", || fs::read_to_string(&sent).ok().filter(|mail| mail.contains(&item)));
    assert!(told.contains("ada@example.org"), "{told}");
    until("nothing waits", || (owd.owctl.json(&["status"])["deliveries_waiting"] == 0).then_some(()));
}

#[test]
fn a_binding_that_refuses_for_good_is_told_of_in_the_inbox_and_not_by_itself() {
    let (gone, well) = (Receiver::new(), Receiver::new());
    gone.answer(Some(410));
    let scratch =
        bound(&format!("[inboxes.default]\nntfy = \"{}\"\nwebhook = \"{}\"\n", gone.url("/gone"), well.url("/well")));
    let owd = scratch.start();
    park(&owd);
    let failure = until("the failure is told", || owd.items().into_iter().find(|item| item["kind"] == "notification"));
    let place = format!("ntfy:{} cannot be reached", gone.url("/…"));
    assert_eq!(failure["title"], place, "whoever knows a topic may write there: it is not told on");
    assert!(!scratch.stderr().contains("/gone"), "nor logged");
    assert!(failure["text"].as_str().is_some_and(|text| text.contains("410 Gone")), "{failure}");
    well.wait_for(2);
    until("nothing waits", || (owd.owctl.json(&["status"])["deliveries_waiting"] == 0).then_some(()));
    assert_eq!((gone.requests().len(), well.requests().len()), (1, 2));
    assert_eq!(owd.owctl.json(&["status"])["deliveries_failed"], 1);
}

#[test]
fn a_notice_on_the_desktop_says_what_answers_it() {
    let scratch = bound("[inboxes.default]\ndesktop = true\n");
    // A desktop that writes down what it is to show.
    let (bin, shown) = (scratch.path().join("bin"), scratch.path().join("shown"));
    fs::create_dir(&bin).expect("a folder");
    let program = bin.join("notify-send");
    fs::write(
        &program,
        format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{0}.new' && mv '{0}.new' '{0}'\n", shown.display()),
    )
    .expect("a program");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).expect("it may run");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let owd = scratch.start_with(|command| {
        command.env("PATH", path);
    });
    let item = park(&owd);
    let said = until("the desktop has it", || fs::read_to_string(&shown).ok());
    assert!(said.contains(&format!("owctl inbox approve {item}")), "{said}");
}

#[test]
fn quiet_hours_hold_a_notice_back_and_show_when_it_comes() {
    let server = Receiver::new();
    let made = fs::metadata(asking().path()).and_then(|made| made.modified()).expect("the present");
    let now = jiff::Timestamp::try_from(made).expect("an instant").to_zoned(jiff::tz::TimeZone::UTC);
    let hour = |hours: i64| (&now + jiff::SignedDuration::from_hours(hours)).strftime("%H:00").to_string();
    let scratch = bound(&format!(
        "[inboxes.default]\nwebhook = \"{}\"\nquiet = \"{}-{}\"\ntimezone = \"UTC\"\n",
        server.url("/hook"),
        hour(0),
        hour(2)
    ));
    let owd = scratch.start();
    let item = park(&owd);
    let shown = owd.owctl.json(&["inbox", "show", &item]);
    let held = &shown["deliveries"][0];
    assert_eq!((&held["state"], &held["what"]), (&Value::from("waiting"), &Value::from("asked")), "{shown}");
    assert!(held["due_at"].as_str().is_some_and(|due| due.contains(&format!("T{}", hour(2)))), "{held}");
    assert!(owd.owctl.ok(&["inbox", "show", &item]).contains("Told of:\n  asked"), "a person sees it too");
    owd.owctl.ok(&["inbox", "deny", &item]);
    let shown = owd.owctl.json(&["inbox", "show", &item]);
    assert_eq!((&shown["deliveries"][0]["state"], shown["deliveries"][1].is_null()), (&Value::from("dropped"), true));
    assert_eq!(server.requests(), []);
}

#[test]
fn what_comes_within_the_time_of_a_digest_is_one_message() {
    let server = Receiver::new();
    let scratch = bound(&format!("[inboxes.default]\nwebhook = \"{}\"\ndigest = \"5s\"\n", server.url("/hook")));
    let owd = scratch.start();
    for name in ["one", "two"] {
        scratch.task(name, ow_stories::ASKING);
    }
    owd.owctl.ok(&["reload"]);
    for name in ["one", "two"] {
        owd.owctl.ok(&["task", "run", name]);
    }
    until("both ask", || (owd.items().len() == 2).then_some(()));
    let told = server.wait_for(1);
    let items = json(&told[0])["notices"].as_array().map(Vec::len);
    assert_eq!(items, Some(2), "{}", told[0].body);
}

#[test]
fn what_stays_unanswered_is_reminded_of_and_comes_to_the_next_inbox_whose_people_may_answer() {
    let server = Receiver::new();
    let uid = std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").expect("this process"));
    let scratch = bound(&format!(
        "[inbox]\nreminder = \"2s\"\n[people.bob]\nuids = [{uid}]\ninboxes = [\"ops\"]\n[inboxes.default]\n\
         webhook = \"{}\"\nescalate = {{ after = \"4s\", to = \"ops\" }}\n[inboxes.ops]\nwebhook = \"{}\"\n",
        server.url("/default"),
        server.url("/ops")
    ));
    let owd = scratch.start();
    let item = park(&owd);
    let refused = owd.owctl.run(&["inbox", "deny", &item]);
    assert!(refused.stderr.contains("bob may not answer item"), "{}", refused.stderr);
    let told = until("it has come to ops", || {
        let told = server.requests();
        told.iter().any(|request| request.path == "/ops").then_some(told)
    });
    let occasions: Vec<String> = told
        .iter()
        .map(|request| format!("{} {}", request.path, json(request)["notices"][0]["occasion"].as_str().unwrap_or("?")))
        .collect();
    assert_eq!(occasions[0], "/default asked");
    assert!(occasions.contains(&"/default reminded".to_owned()), "{occasions:?}");
    assert!(occasions.contains(&"/ops escalated".to_owned()), "{occasions:?}");
    owd.owctl.ok(&["inbox", "deny", &item]);
    owd.run_in("asking", "refused");
}

#[test]
fn an_item_is_handed_on_by_who_may_answer_it_to_an_inbox_that_there_is() {
    let server = Receiver::new();
    let scratch = bound(&format!("[inboxes.ops]\nwebhook = \"{}\"\n", server.url("/ops")));
    let owd = scratch.start();
    let item = park(&owd);
    let unknown = owd.owctl.run(&["inbox", "delegate", &item, "opps"]);
    assert!(unknown.stderr.contains("there is no inbox `opps`"), "{}", unknown.stderr);
    let handed = owd.owctl.ok(&["inbox", "delegate", &item, "ops"]);
    assert!(handed.contains("default, ops"), "{handed}");
    let told = server.wait_for(1);
    assert_eq!(json(&told[0])["notices"][0]["occasion"], "delegated");
    owd.owctl.ok(&["inbox", "approve", &item]);
    owd.run_in("asking", "succeeded");
    let late = owd.owctl.run(&["inbox", "delegate", &item, "ops"]);
    assert!(late.stderr.contains("already approved by"), "{}", late.stderr);
}

#[test]
fn a_test_notice_says_what_each_binding_answered() {
    let (well, port) = (Receiver::new(), Receiver::free_port());
    let scratch = bound(&format!(
        "[inboxes.default]\nntfy = \"{}\"\nwebhook = \"http://127.0.0.1:{port}/\"\n[inboxes.bare]\n",
        well.url("/topic")
    ));
    let owd = scratch.start();
    let tried = owd.owctl.run(&["inbox", "test"]);
    assert_eq!(tried.code, 1, "one of them is down: {}{}", tried.stdout, tried.stderr);
    assert!(tried.stdout.contains(&format!("sent ntfy:{}", well.url("/…"))), "{}", tried.stdout);
    assert!(tried.stdout.contains("failed webhook:") && tried.stdout.contains("refused"), "{}", tried.stdout);
    assert_eq!(well.requests().len(), 1);
    assert!(owd.owctl.ok(&["inbox", "test", "bare"]).contains("told of nowhere"), "and says so where nothing is bound");
    assert_eq!(owd.items().len(), 0, "nothing is asked, and nothing kept");
    let checks = owd.owctl.run(&["doctor", "--json"]);
    assert!(checks.stdout.contains("inboxes.default.webhook: `127.0.0.1:"), "{}", checks.stdout);
}
