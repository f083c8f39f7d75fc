use ow_model::ZoneName;
use rusqlite::params;

use super::support::Directory;
use crate::Store;
use crate::conformance::support::{at, claim, cron, name, noon, save, spec};

/// Tasks of two zones in a store that was last compared with another tz database.
async fn planned_by_other_rules(place: &Directory) {
    {
        let store: std::sync::Arc<dyn Store> = place.store();
        store.begin_life("1", noon()).await.expect("begun");
        assert_eq!(store.compare_zones(noon()).await.expect("compared"), 0);
        for (task, zone) in [("paris", "Europe/Paris"), ("tokyo", "Asia/Tokyo")] {
            let mut job = spec(task, vec![cron("0 18 * * *")]);
            job.timezone = ZoneName(zone.into());
            save(&store, &job, noon()).await;
        }
        assert_eq!(store.compare_zones(noon()).await.expect("compared"), 0, "nothing has changed");
    }
    let wrong = at("2026-03-03T19:00:00Z").as_microsecond();
    let raw = place.raw();
    raw.execute("UPDATE tasks SET next_due = ?1, wake_at = ?1", params![wrong]).expect("changed");
    raw.execute("UPDATE meta SET value = 'other' WHERE key = 'zone:Europe/Paris'", []).expect("changed");
}

#[tokio::test]
async fn a_changed_tz_database_moves_what_is_next_and_nothing_else() {
    let place = Directory::new();
    planned_by_other_rules(&place).await;
    let store: std::sync::Arc<dyn Store> = place.store();
    store.begin_life("2", noon()).await.expect("begun");
    assert_eq!(store.compare_zones(noon()).await.expect("compared"), 1);
    assert_eq!(claim(&store, noon(), noon()).await.created, 0, "nothing fires for that");
    for (task, next) in [("paris", "2026-03-03T17:00:00Z"), ("tokyo", "2026-03-03T19:00:00Z")] {
        let row = store.task(&name(task)).await.expect("read").expect("saved");
        assert_eq!(row.next_due, Some(at(next)), "{task}");
    }
    assert_eq!(store.compare_zones(noon()).await.expect("compared"), 0, "it is known now");
}

#[tokio::test]
async fn a_store_that_never_compared_plans_all_its_tasks_anew() {
    let place = Directory::new();
    planned_by_other_rules(&place).await;
    place.raw().execute("DELETE FROM meta WHERE key LIKE 'zone%'", []).expect("changed");
    let store: std::sync::Arc<dyn Store> = place.store();
    store.begin_life("2", noon()).await.expect("begun");
    assert_eq!(store.compare_zones(noon()).await.expect("compared"), 2);
    claim(&store, noon(), noon()).await;
    let row = store.task(&name("tokyo")).await.expect("read").expect("saved");
    assert_eq!(row.next_due, Some(at("2026-03-04T09:00:00Z")));
}

#[tokio::test]
async fn a_zone_that_the_database_lost_keeps_its_tasks_as_they_are() {
    let place = Directory::new();
    planned_by_other_rules(&place).await;
    place.raw().execute("INSERT INTO meta (key, value) VALUES ('zone:Atlantis/Main', 'x')", []).expect("changed");
    let store: std::sync::Arc<dyn Store> = place.store();
    assert_eq!(store.compare_zones(noon()).await.expect("compared"), 1);
    assert_eq!(store.compare_zones(noon()).await.expect("compared"), 0);
}
