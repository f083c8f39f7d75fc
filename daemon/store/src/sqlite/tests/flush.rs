use ow_model::Outcome;

use super::support::Directory;
use crate::conformance::support::{ending, name, noon, save, spec, started, take};
use crate::{EndRequest, Store};

/// After a power loss its position in the stream would be another event's.
#[tokio::test]
async fn a_taken_run_is_told_of_with_the_next_flushed_fact() {
    let place = Directory::new();
    let store = place.store();
    let any: std::sync::Arc<dyn Store> = store.clone();
    save(&any, &spec("job", vec![]), noon()).await;
    store.run_now(&name("job"), "test", None, noon()).await.expect("queued");
    let told = *store.stream_head().borrow();
    let taken = take(&any, noon()).await.remove(0);
    assert_eq!(*store.stream_head().borrow(), told);
    assert_eq!(store.stream(told, 10).await.expect("read"), Some(vec![]), "and nobody finds it by looking");
    // Refused, so that nothing is written, nor flushed.
    store.append(taken.run.id, 7, &[started()], None, noon()).await.expect_err("fenced");
    assert_eq!(*store.stream_head().borrow(), told);
    let end = EndRequest { facts: vec![started()], ..ending(taken.run.id, 0, Outcome::Succeeded) };
    store.end_run(&end, noon()).await.expect("ended");
    let events = store.stream(told, 10).await.expect("read").expect("not pruned");
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["run.running", "run.ended"]);
}
