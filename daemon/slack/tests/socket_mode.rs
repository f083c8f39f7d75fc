//! Socket Mode against a local Slack: what was sent is stored once, whatever becomes of the sockets.

use std::sync::Arc;
use std::time::Duration;

use ow_clock::Clock;
use ow_secret::SecretValue;
use ow_slack::{Client, Intake, SocketMode, Standing};
use ow_store::{SqliteStore, Store};
use ow_test_support::{SLACK_BOT, Slack, until};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

struct Connected {
    slack: Slack,
    store: Arc<dyn Store>,
    standing: watch::Receiver<Standing>,
    stop: CancellationToken,
    running: Option<JoinHandle<()>>,
    runtime: Runtime,
    _folder: tempfile::TempDir,
}

fn connected(prepare: impl FnOnce(&Slack)) -> Connected {
    let slack = Slack::start();
    slack.user("UADA", "ada");
    slack.channel("C1", "general", &["UADA", SLACK_BOT]);
    prepare(&slack);
    let folder = tempfile::tempdir().expect("a folder");
    let store: Arc<dyn Store> = SqliteStore::open(folder.path()).expect("a store");
    let token = |text: &str| SecretValue::new(text.into());
    let url = slack.url().parse().expect("an address");
    let client = Client::new(Some(&url), token(slack.bot_token()), Some(token(slack.app_token()))).expect("a client");
    let runtime = Runtime::new().expect("a runtime");
    let (standing, seen) = watch::channel(Standing::default());
    let intake = Arc::new(Intake::new(Arc::clone(&store), SLACK_BOT.into()));
    let mode = SocketMode { client, intake, clock: Clock::system(), standing };
    let stop = CancellationToken::new();
    let running = runtime.handle().spawn(mode.run(stop.clone()));
    Connected { slack, store, standing: seen, stop, running: Some(running), runtime, _folder: folder }
}

impl Connected {
    /// The texts that were stored, in the order of their coming.
    fn stored(&self) -> Vec<String> {
        let waiting = self.runtime.block_on(self.store.taken_in("slack", 100)).expect("read");
        waiting.iter().map(|one| one.payload["text"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn wait_for(&self, count: usize) {
        until(&format!("{count} events are stored"), || (self.stored().len() >= count).then_some(()));
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running).expect("it ends by itself");
        }
    }
}

#[test]
fn what_is_sent_is_stored_and_then_acknowledged() {
    let here = connected(|_| {});
    here.slack.wait_for_connection();
    here.slack.pings();
    let ts = here.slack.says("C1", "UADA", "one");
    here.slack.wait_for_acknowledgements();
    assert_eq!(here.stored(), ["one"]);
    here.slack.edits("C1", &ts, "two");
    here.slack.deletes("C1", &ts);
    here.slack.wait_for_acknowledgements();
    assert_eq!(here.stored(), ["one"], "an edit is nothing new");
    assert!(here.standing.borrow().since.is_some());
}

#[test]
fn an_event_that_comes_again_is_stored_once() {
    let here = connected(|_| {});
    here.slack.wait_for_connection();
    let event = serde_json::json!({ "type": "app_mention", "user": "UADA", "channel": "C1", "ts": "1.1", "text": "x" });
    for _ in 0..3 {
        here.slack.sends(&event, Some("Ev1"));
    }
    here.slack.wait_for_acknowledgements();
    assert_eq!(here.stored(), ["x"]);
}

#[test]
fn the_old_socket_serves_until_the_new_one_is_ready() {
    let here = connected(|_| {});
    here.slack.wait_for_connection();
    here.slack.disconnects("warning");
    until("a second socket", || (here.slack.hellos() == 2).then_some(()));
    // Both are open: what Slack sends on either is taken.
    for number in 0..10 {
        here.slack.says("C1", "UADA", &format!("{number}"));
    }
    here.wait_for(10);
    here.slack.wait_for_acknowledgements();
    here.slack.disconnects("refresh_requested");
    until("another socket", || (here.slack.hellos() == 3).then_some(()));
    here.slack.closes_leaving();
    here.slack.says("C1", "UADA", "after");
    here.wait_for(11);
    here.slack.wait_for_acknowledgements();
    let mut stored = here.stored();
    stored.sort();
    stored.dedup();
    assert_eq!(stored.len(), 11);
    assert!(here.standing.borrow().trouble.is_none(), "{:?}", here.standing.borrow());
}

#[test]
fn a_refusal_to_open_a_second_socket_costs_nothing_while_the_first_lives() {
    let here = connected(|_| {});
    here.slack.wait_for_connection();
    here.slack.limits("apps.connections.open", 1);
    here.slack.disconnects("warning");
    until("it was asked twice", || (here.slack.calls("apps.connections.open").len() == 2).then_some(()));
    here.slack.says("C1", "UADA", "meanwhile");
    here.wait_for(1);
    until("a second socket", || (here.slack.hellos() == 2).then_some(()));
}

#[test]
fn a_socket_that_is_cut_is_replaced_and_nothing_is_lost() {
    let here = connected(|slack| slack.patience(Duration::from_millis(300)));
    here.slack.wait_for_connection();
    for number in 0..4 {
        here.slack.says("C1", "UADA", &format!("{number} before"));
        here.slack.cuts();
        here.slack.says("C1", "UADA", &format!("{number} after"));
        until("it is back", || (here.slack.hellos() > number + 1 && here.slack.connections() > 0).then_some(()));
    }
    here.wait_for(8);
    here.slack.wait_for_acknowledgements();
    let mut stored = here.stored();
    stored.sort();
    stored.dedup();
    assert_eq!(stored.len(), 8, "each once: {stored:?}");
}

#[test]
fn a_start_without_slack_goes_on_once_it_is_there() {
    let here = connected(|slack| slack.is_down(true));
    until("it was tried", || (!here.slack.calls("apps.connections.open").is_empty()).then_some(()));
    here.slack.says("C1", "UADA", "early");
    here.slack.is_down(false);
    here.wait_for(1);
    here.slack.wait_for_acknowledgements();
}
