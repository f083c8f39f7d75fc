use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use ow_test_support::model_server::{ModelReply, ModelServer};
use ow_test_support::{SLACK_BOT, Scratch, Slack, until};
use serde_json::json;

use crate::figure::Figures;
use crate::http::Http;
use crate::load::{started_at, timed, wall};
use crate::measurement::Scale;

/// A task that asks before it tells when it ran.
pub(crate) const ASKING: &str = "overlap = { allow = 1000 }\nevents = { each = 1000 }\n\n[[step]]\ntool = \"shell\"\n\
    args = { argv = [\"date\", \"+%s%N\"] }\n";

/// A click to the start of the call that it allows, and a mention to the model's being asked: all that is owd's own, with
/// a Slack on loopback.
pub(crate) fn measure(scale: Scale, figures: &mut Figures) {
    let rounds = scale.rounds.min(50);
    let (slack, model) = (Slack::start(), ModelServer::start());
    slack.user("UADA", "ada");
    slack.channel("C1", "ops", &["UADA", SLACK_BOT]);
    model.answer(|_| ModelReply::text("Done.").into());
    let scratch = home(&slack, &model.url());
    let owd = scratch.start();
    slack.wait_for_connection();
    let mut http = Http::connect(scratch.path());
    http.ok("PUT", "/v1/tasks/asking", &json!({ "definition": ASKING }));
    let clicks: Vec<Duration> = (0..rounds)
        .map(|round| {
            let key = format!("click-{round}");
            http.ok("POST", "/v1/events", &json!({ "events": [{ "task": "asking", "key": key, "data": {} }] }));
            let item = until("it asks", || {
                let items = http.get("/v1/items?limit=1");
                items["rows"].as_array()?.first().cloned()
            });
            let id = item["id"].as_str().expect("an id").to_owned();
            let notice =
                slack.wait_for_message("C1", |message| message["text"].as_str().is_some_and(|text| text.contains(&id)));
            let began = wall();
            slack.presses("C1", "UADA", notice["ts"].as_str().expect("a ts"), "once");
            let run = format!("/v1/runs/{}", item["run"].as_str().expect("a run"));
            let started = until("the approved call has run", || started_at(&http.get(&run)));
            started.saturating_sub(began)
        })
        .collect();
    figures.times("a click in Slack to the tool's start", &clicks, "");
    let mentions: Vec<Duration> = (0..rounds)
        .map(|_| {
            let seen = model.seen();
            let asked = || {
                slack.says("C1", "UADA", &format!("<@{SLACK_BOT}> go"));
                until("the model is asked", || (model.seen() > seen).then_some(()));
            };
            timed(asked).1
        })
        .collect();
    figures.times("a mention in Slack to the model's being asked", &mentions, "");
    owd.stop();
}

/// A home whose default inbox is told of in the channel, with models at this address.
pub(crate) fn home(slack: &Slack, model: &str) -> Scratch {
    let scratch = Scratch::new();
    let uid = std::fs::metadata(scratch.path()).expect("a home").uid();
    scratch.config(&format!(
        "[policy]\nsafe-commands = \"off\"\n[agent]\nmodel = \"stub:small\"\n\
         [provider.stub]\nbase-url = \"{}\"\nwire = \"openai\"\n\
         [slack]\nbot-token = \"slack-bot-token\"\napp-token = \"slack-app-token\"\napi-url = \"{}\"\n\
         [inboxes.default]\nslack = [\"C1\"]\n\
         [people.ada]\nuids = [{uid}]\nslack = [\"UADA\"]\nstart-work = true\n",
        model,
        slack.url(),
    ));
    let file = scratch.path().join("config/secrets.toml");
    let secrets = format!("slack_bot_token = \"{}\"\nslack_app_token = \"{}\"\n", slack.bot_token(), slack.app_token());
    std::fs::write(&file, secrets).expect("written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("private");
    scratch
}
