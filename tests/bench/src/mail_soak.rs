use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ow_test_support::{Dovecot, MailSink, Proxy, Scratch, monotonic, rows, until};

use crate::figure::Figures;
use crate::idle::kib;
use crate::load::within;
use crate::mail::approval;
use crate::measurement::Scale;

/// Items that wait at a time.
const AT_ONCE: usize = 10;

/// A task that asks before it writes down which run it is.
const ASKING: &str = "overlap = { allow = 1000 }\n\n[[step]]\ntool = \"shell\"\n\
    args = { argv = [\"sh\", \"{work}/count.sh\", \"{{ run.id }}\"] }\n";

/// Items are asked by mail and answered by mail while the connections to both servers are cut at random.
///
/// # Panics
///
/// When an answer is lost, or applied twice: that is no figure.
pub(crate) fn measure(scale: Scale, figures: &mut Figures) {
    let Some(dovecot) = Dovecot::start() else { return };
    let sink = MailSink::start();
    let (reads, sends) = (Arc::new(Proxy::start(&dovecot.address())), Arc::new(Proxy::start(&sink.address())));
    let scratch = home(&reads, &sends);
    let owd = scratch.start_with(|command| {
        command.env("OWD_SECRET_MAIL_PASSWORD", "secret");
    });
    until("the mailbox is open", || scratch.stderr().contains("the mailbox is open").then_some(()));
    let over = Arc::new(AtomicBool::new(false));
    let cutter = cut_at_random(&over, [Arc::clone(&reads), Arc::clone(&sends)]);
    let before = kib(owd.pid(), "Rss:");
    let ends = monotonic() + Duration::from_mins(scale.minutes);
    let (mut asked, mut mails) = (0_usize, 0_usize);
    while monotonic() < ends {
        for _ in 0..AT_ONCE {
            owd.owctl.ok(&["task", "run", "asking"]);
        }
        asked += AT_ONCE;
        let items = within("all of them ask", || {
            Some(owd.items()).filter(|items| items.iter().filter(|item| item["kind"] == "approval").count() == AT_ONCE)
        });
        for item in items.iter().filter(|item| item["kind"] == "approval") {
            let id = item["id"].as_str().expect("an id");
            // A person who is not sure writes twice.
            for copy in 0..=mails % 2 {
                dovecot.put("owd", &format!("{mails}.{copy}"), &approval(id, copy));
            }
            mails += 1;
        }
        let counted = || std::fs::read_to_string(scratch.work().join("count")).unwrap_or_default();
        within("each has run", || (counted().lines().count() >= asked).then_some(()));
    }
    over.store(true, Ordering::Relaxed);
    let cuts = cutter.join().expect("the cutter ends");
    let notices = || -> BTreeMap<String, usize> {
        let mut told = BTreeMap::new();
        for mail in
            sink.taken().into_iter().filter(|mail| mail.message_id.starts_with("<ow.") && mail.subject.contains("[ow:"))
        {
            *told.entry(mail.message_id).or_default() += 1;
        }
        told
    };
    // Each answer is acknowledged in the end.
    let acknowledged = || {
        let mut told: Vec<String> = sink.taken().into_iter().map(|mail| mail.in_reply_to).collect();
        told.retain(|to| to.starts_with("<0."));
        told.sort();
        told.dedup();
        told.len()
    };
    within("each answer is acknowledged", || (acknowledged() >= asked).then_some(()));
    let ran = std::fs::read_to_string(scratch.work().join("count")).expect("they ran");
    let mut runs: Vec<&str> = ran.lines().collect();
    let applied = runs.len();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!((runs.len(), applied), (asked, asked), "each answer is applied once");
    let left: Vec<_> = rows(&owd.owctl.json(&["run", "list", "asking"]))
        .into_iter()
        .filter(|run| run["state"] != "succeeded")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let told = notices();
    let again: usize = told.values().map(|times| times - 1).sum();
    let count = |value: usize| f64::from(u32::try_from(value).expect("a count"));
    figures.value(format!("soak of {} min: answers applied, each once", scale.minutes), "", count(applied), "");
    figures.value("connections cut", "", count(cuts), "");
    figures.value("notices that arrived again, with the same Message-ID", "", count(again), "");
    figures.value("memory at the start", "KiB", before, "");
    figures.value("memory at the end", "KiB", kib(owd.pid(), "Rss:"), "flat");
    owd.stop();
}

fn home(reads: &Proxy, sends: &Proxy) -> Scratch {
    let scratch = Scratch::new();
    let uid = std::fs::metadata(scratch.path()).expect("a home").uid();
    scratch.config(&format!(
        "[policy]\nsafe-commands = \"off\"\n[mail]\nauthserv-id = \"mx.example.net\"\nsignatures = false\n\
         [mail.in]\nserver = \"{}\"\nsecurity = \"none\"\nuser = \"owd\"\npassword = \"mail-password\"\n\
         [mail.out]\nserver = \"{}\"\nsecurity = \"none\"\nfrom = \"owd@example.net\"\n\
         [people.ada]\nuids = [{uid}]\nmail = [\"ada@example.org\"]\n[inboxes.default]\nmail = [\"ada@example.org\"]\n",
        reads.address(),
        sends.address()
    ));
    let count = scratch.work().join("count");
    let script = format!("echo \"$1\" >> {}\n", count.display());
    std::fs::write(scratch.work().join("count.sh"), script).expect("a script");
    scratch.task("asking", ASKING);
    scratch
}

/// Cuts all connections of one of the proxies, every now and then, and says in the end how many those were.
fn cut_at_random(over: &Arc<AtomicBool>, proxies: [Arc<Proxy>; 2]) -> thread::JoinHandle<usize> {
    let over = Arc::clone(over);
    thread::spawn(move || {
        // The same each time, so that a fault that it finds can be found again.
        let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
        let mut cuts = 0;
        while !over.load(Ordering::Relaxed) {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            thread::park_timeout(Duration::from_millis(50 + (chance >> 33) % 1500));
            cuts += proxies[usize::from(chance >> 63 == 1)].cut();
        }
        cuts
    })
}
