//! The post: what the outbox holds arrives, each binding for itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use ow_clock::{Clock, ManualHand};
use ow_inbox::{Channel, Channels, Delivered, Fault, Post};
use ow_model::{InboxBinding, InboxName, ItemKind};
use ow_store::{Content, Delivery, NewItem, Route, Routing, SqliteStore, Store};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const PATIENCE: Duration = Duration::from_secs(20);

/// What a channel does with the next messages to a binding; then it takes them.
#[derive(Clone, Debug)]
enum Then {
    Fail(Fault),
    Hang,
    Panic,
}

struct Fake {
    then: Mutex<BTreeMap<InboxBinding, Vec<Then>>>,
    came: mpsc::UnboundedSender<(InboxBinding, String)>,
}

#[async_trait]
impl Channel for Fake {
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, Fault> {
        let Content::Notices(notices) = &delivery.content else { panic!("only notices are written here") };
        let then = {
            let mut then = self.then.lock().expect("no holder panics");
            then.get_mut(&delivery.binding).and_then(Vec::pop)
        };
        self.came.send((delivery.binding.clone(), notices[0].item.title.clone())).expect("somebody listens");
        match then {
            None => Ok(Delivered::default()),
            Some(Then::Fail(fault)) => Err(fault),
            Some(Then::Hang) => std::future::pending().await,
            Some(Then::Panic) => panic!("a fault in the channel"),
        }
    }
}

struct World {
    store: Arc<dyn Store>,
    hand: ManualHand,
    came: mpsc::UnboundedReceiver<(InboxBinding, String)>,
    stop: CancellationToken,
    post: JoinHandle<()>,
    channels: Arc<Channels>,
    fake: Arc<Fake>,
    _folder: tempfile::TempDir,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("an instant")
}

fn to(address: &str) -> InboxBinding {
    InboxBinding::new("fake", address)
}

impl World {
    fn start(bindings: &'static [&'static str], then: &[(&str, Then)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn Store> = SqliteStore::open(folder.path()).expect("a store");
        store.route_items(Some(Arc::new(|_, now| Routing {
            told: bindings.iter().map(|address| Route { binding: to(address), due_at: now, digest: false }).collect(),
            escalation: None,
        })));
        let (clock, hand) = Clock::manual(at(0));
        let (send, came) = mpsc::unbounded_channel();
        let mut by_binding: BTreeMap<InboxBinding, Vec<Then>> = BTreeMap::new();
        for (address, then) in then.iter().rev() {
            by_binding.entry(to(address)).or_default().push(then.clone());
        }
        let channels = Arc::new(Channels::default());
        let fake = Arc::new(Fake { then: Mutex::new(by_binding), came: send });
        channels.set("fake", Arc::clone(&fake) as Arc<dyn Channel>);
        let stop = CancellationToken::new();
        let post = Post::new(Arc::clone(&store), clock, Arc::clone(&channels));
        let post = TaskTracker::new().spawn(post.run(stop.clone()));
        Self { store, hand, came, stop, post, channels, fake, _folder: folder }
    }

    async fn items(&self) -> Vec<ow_model::ItemId> {
        let page = ow_store::PageRequest { after: None, limit: 10 };
        let rows = self.store.items(&ow_store::ItemFilter::default(), &page).await.expect("read").rows;
        rows.into_iter().map(|item| item.id).collect()
    }

    async fn tell(&self, title: &str, second: i64) {
        let item = NewItem {
            task: None,
            run: None,
            title: title.into(),
            kind: ItemKind::Notification { text: title.into() },
            expires_in: None,
            remind_after: None,
            inbox: InboxName::default(),
        };
        self.store.notify(&item, title, at(second)).await.expect("stored");
    }

    /// The next message that came to this binding.
    async fn came_to(&mut self, address: &str) -> String {
        let wait = async {
            loop {
                let (binding, title) = self.came.recv().await.expect("the post runs");
                if binding == to(address) {
                    return title;
                }
            }
        };
        timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("nothing came to {address}"))
    }

    /// Waits until so many deliveries wait, or are under way.
    async fn waiting(&self, count: u64) {
        let look = async {
            while self.store.stats().await.expect("read").deliveries_waiting != count {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("there are never {count} that wait"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_that_hangs_holds_up_no_other() {
    let mut world = World::start(&["slow", "well"], &[("slow", Then::Hang)]);
    for title in ["one", "two", "three"] {
        world.tell(title, 0).await;
    }
    for title in ["one", "two", "three"] {
        assert_eq!(world.came_to("well").await, title, "in the order in which they were written");
    }
    world.waiting(3).await;
    world.stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_that_fails_rests_and_is_tried_again_when_its_time_has_come() {
    let mut world = World::start(&["down"], &[("down", Then::Fail(Fault::later("refused")))]);
    world.tell("one", 0).await;
    world.tell("two", 0).await;
    assert_eq!(world.came_to("down").await, "one");
    world.waiting(2).await;
    world.hand.set(at(9));
    assert!(world.came.try_recv().is_err(), "it rests for ten seconds");
    world.hand.set(at(10));
    let mut came = [world.came_to("down").await, world.came_to("down").await];
    came.sort();
    assert_eq!(came, ["one", "two"]);
    world.waiting(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_in_a_channel_costs_its_message_a_life_and_no_other() {
    let mut world = World::start(&["broken"], &[("broken", Then::Panic)]);
    world.tell("one", 0).await;
    assert_eq!(world.came_to("broken").await, "one");
    world.tell("two", 0).await;
    assert_eq!(world.came_to("broken").await, "two");
    world.waiting(1).await;
    world.store.begin_life("next", at(0)).await.expect("begun");
    world.tell("three", 0).await;
    assert_eq!(world.came_to("broken").await, "one");
    assert_eq!(world.came_to("broken").await, "three");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_nothing_delivers_is_told_of_in_the_inbox() {
    let world = World::start(&["well"], &[]);
    world.store.route_items(Some(Arc::new(|_, now| Routing {
        told: vec![Route { binding: InboxBinding::new("pigeon", "loft"), due_at: now, digest: false }],
        escalation: None,
    })));
    world.tell("one", 0).await;
    let failed = async {
        while world.store.stats().await.expect("read").deliveries_failed == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, failed).await.expect("it is given up");
    let page = ow_store::PageRequest { after: None, limit: 10 };
    let items = world.store.items(&ow_store::ItemFilter::default(), &page).await.expect("read").rows;
    assert_eq!(items[0].title, "pigeon:loft cannot be reached");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_channel_cannot_take_yet_arrives_as_soon_as_that_is_mended() {
    let mut world = World::start(&["well"], &[]);
    world.channels.unusable("fake", "there is no secret `smtp_password`");
    world.tell("one", 0).await;
    let tried = async {
        loop {
            let item = world.items().await.remove(0);
            let told = world.store.deliveries(item).await.expect("read").remove(0);
            if told.error.as_deref() == Some("there is no secret `smtp_password`") {
                return told.state;
            }
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(timeout(PATIENCE, tried).await.expect("it is tried"), "waiting", "nothing is given up");
    // The clock stands still: it is not its time that has come.
    world.channels.set("fake", Arc::clone(&world.fake) as Arc<dyn Channel>);
    assert_eq!(world.came_to("well").await, "one");
    world.waiting(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_must_wait_for_long_holds_up_its_binding_for_an_hour() {
    let later = Fault::Later { after: Some(ow_model::Span::from_secs(1_000_000)), why: "busy".into() };
    let mut world = World::start(&["limited"], &[("limited", Then::Fail(later))]);
    world.tell("one", 0).await;
    assert_eq!(world.came_to("limited").await, "one");
    world.tell("two", 1).await;
    world.waiting(2).await;
    world.hand.set(at(3601));
    assert_eq!(world.came_to("limited").await, "two");
    world.waiting(1).await;
    world.hand.set(at(86_401));
    assert_eq!(world.came_to("limited").await, "one", "and it is tried again within a day");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_told_to_stop_waits_for_what_is_under_way_and_begins_nothing() {
    let mut world = World::start(&["well"], &[]);
    world.tell("one", 0).await;
    assert_eq!(world.came_to("well").await, "one");
    world.waiting(0).await;
    world.stop.cancel();
    timeout(PATIENCE, &mut world.post).await.expect("it ends").expect("well");
    world.tell("two", 0).await;
    world.waiting(1).await;
    assert!(world.came.try_recv().is_err());
}
