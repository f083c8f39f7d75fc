use std::collections::BTreeSet;

use ow_test_support::{Receiver, Scratch, monotonic, until};
use serde_json::json;

use crate::figure::Figures;
use crate::http::Http;
use crate::idle::kib;
use crate::inbox::{ASKING, park};
use crate::load::within;
use crate::measurement::Scale;

/// At most so many notices meet a server that is down.
const TRIED: usize = 20;

/// Notices that waited for a server which was down, once it is up: how fast they go to one binding, and what is used.
pub(crate) fn measure(scale: Scale, figures: &mut Figures) {
    let port = Receiver::free_port();
    let scratch = Scratch::new();
    scratch.config(&format!(
        "[policy]\nsafe-commands = \"off\"\n[inboxes.default]\nwebhook = \"http://127.0.0.1:{port}/hook\"\n"
    ));
    let owd = scratch.start();
    let mut http = Http::connect(scratch.path());
    http.ok("PUT", "/v1/tasks/asking", &json!({ "definition": ASKING }));
    park(&mut http, 0, scale.parked);
    owd.stop();
    let owd = scratch.start();
    let before = kib(owd.pid(), "Rss:");
    // What waits is tried again by itself; a start need not wait for that.
    owd.stop();
    let server = Receiver::at(port);
    let owd = scratch.start();
    let begun = until("the first notice", || (!server.requests().is_empty()).then(monotonic));
    let first = server.requests().len();
    // The few that were tried before wait for their own next attempt, which is no matter of speed.
    let soon = scale.parked - scale.parked.min(TRIED);
    let ended = within("the notices", || (server.requests().len() >= soon).then(monotonic));
    let told = f64::from(u32::try_from(soon - first.min(soon)).expect("a count"));
    let rate = told / ended.saturating_sub(begun).as_secs_f64().max(1e-3);
    figures.value(format!("notices a second to one webhook, of {}", scale.parked), "1/s", rate, "");
    let all = within("all notices", || Some(server.requests()).filter(|all| all.len() >= scale.parked));
    let distinct: BTreeSet<&str> = all.iter().filter_map(|one| one.header("x-owd-delivery")).collect();
    assert_eq!((distinct.len(), all.len()), (scale.parked, scale.parked), "each notice comes once");
    let after = kib(owd.pid(), "Rss:");
    figures.value("memory before they go out", "KiB", before, "");
    figures.value("memory after", "KiB", after, "flat");
    owd.stop();
}
