use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use ow_model::{NewEvent, PauseReason};
use ow_store::Store;
use serde_json::Value;
use tokio::time::Instant;

use super::world::{FLAVOURS, Life, World, name, task};
use crate::watch::{Entry, FolderWatcher, Hints, Unwatchable, entry, open_system_watcher};
use crate::{Warning, WarningKind};

const CASES: &str = include_str!("../../../../tests/cases/extensions-secrets-watch.json");

/// A present at which every file of the test has been there for long.
const LATER: &str = "2226-03-03T08:30Z";

fn watches(path: &Path, more: &str) -> String {
    task(&format!("events = \"each\"\n[[trigger]]\nwatch = {{ path = {path:?}, settle = \"60ms\"{more} }}"))
}

/// A world with a folder `in` and a task `job` that watches it.
fn watched(more: &str) -> (World, Life) {
    let world = World::new("2026-03-03T08:30Z");
    fs::create_dir(world.path("in")).expect("a folder");
    let life = world.live();
    life.save("job", &watches(&world.path("in"), more));
    looked(&life, "job");
    (world, life)
}

/// Waits until a task's watches have begun: what comes from now on fires.
fn looked(life: &Life, task: &str) {
    let row = life.row(task);
    life.until("the watch has looked", async || {
        let ow_model::Trigger::Watch { path, glob, .. } = &row.spec.triggers[0] else { panic!("a watch") };
        let watch = format!("{}\n{}", path.display(), glob.as_deref().unwrap_or_default());
        life.store.watch_seen(row.id, &watch).await.expect("a store").is_some()
    });
}

/// All events of a task's runs, oldest first.
fn events(life: &Life, task: &str) -> Vec<NewEvent> {
    let runs = life.runs(task);
    let events = runs.iter().map(|run| life.block_on(life.store.run_events(run.id)).expect("a store"));
    events.flatten().collect()
}

/// What changed, as `change name`.
fn changes(life: &Life, task: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let change =
        |event: NewEvent| format!("{} {}", text(&event.payload.data["change"]), text(&event.payload.data["name"]));
    events(life, task).into_iter().map(change).collect()
}

fn fires(life: &Life, task: &str, expected: &[&str]) {
    life.until_ended(task, expected.len());
    assert_eq!(changes(life, task), expected);
}

/// Lets everything that is under way settle: a marker file written last has fired.
fn settle(life: &Life, folder: &Path, task: &str, expected: &[&str]) {
    fs::write(folder.join("marker"), "").expect("a file");
    let with_marker: Vec<&str> = expected.iter().copied().chain(["create marker"]).collect();
    fires(life, task, &with_marker);
}

fn watch_warnings(life: &Life) -> Vec<Warning> {
    life.handle().warnings().into_iter().filter(|warning| warning.kind == WarningKind::Watch).collect()
}

fn case(id: &str) -> Value {
    let cases: Value = serde_json::from_str(CASES).expect("cases");
    let all = cases["cases"].as_array().expect("a list");
    all.iter().find(|case| case["id"] == id).unwrap_or_else(|| panic!("case {id}")).clone()
}

#[test]
fn a_new_file_a_changed_one_and_a_moved_one_fire() {
    for flavour in FLAVOURS {
        let world = World::of(flavour, "2026-03-03T08:30Z");
        fs::create_dir(world.path("in")).expect("a folder");
        let life = world.live();
        life.save("job", &watches(&world.path("in"), ""));
        looked(&life, "job");
        world.write("in/a.txt", "one");
        fires(&life, "job", &["create a.txt"]);
        world.write("in/a.txt", "one and two");
        fires(&life, "job", &["create a.txt", "change a.txt"]);
        fs::rename(world.path("in/a.txt"), world.path("in/b.txt")).expect("renamed");
        fires(&life, "job", &["create a.txt", "change a.txt", "move b.txt"]);
        let data = events(&life, "job").remove(1).payload.data;
        assert_eq!(data["path"], world.path("in/a.txt").to_str().expect("a path"));
        assert_eq!(data["size"], 11);
        life.stop();
    }
}

#[test]
fn what_is_there_when_the_task_is_made_does_not_fire() {
    let world = World::new(LATER);
    world.write("in/old.txt", "old");
    let life = world.live();
    life.save("job", &watches(&world.path("in"), ""));
    looked(&life, "job");
    settle(&life, &world.path("in"), "job", &[]);
    world.write("in/old.txt", "not so old");
    fires(&life, "job", &["create marker", "change old.txt"]);
    life.stop();
}

/// Between the saving of a task and the first look lies a moment, and with a crash in it a long one.
#[test]
fn what_came_after_the_task_was_made_fires_also_if_the_first_look_came_later_still() {
    let world = World::new("2026-03-03T08:30Z");
    world.write("in/early.txt", "1");
    let life = world.live();
    life.save("job", &watches(&world.path("in"), ""));
    fires(&life, "job", &["create early.txt"]);
    life.stop();
}

/// Gives the real time, and waits until that is clearly later than a file's making.
fn later_than(made: &Path, beside: &Path) -> Timestamp {
    let time = |path: &Path| {
        fs::write(path, "").expect("a file");
        Timestamp::try_from(fs::metadata(path).expect("a file").modified().expect("a time")).expect("a time")
    };
    let made = fs::metadata(made).expect("a file").created().expect("a file system that keeps it");
    let made = Timestamp::try_from(made).expect("a time");
    loop {
        let now = time(beside);
        if now.duration_since(made).as_millis() > 30 {
            return now;
        }
    }
}

#[test]
fn what_is_written_between_the_making_of_a_task_and_the_first_look_has_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("in")).expect("a folder");
    let old = folder.path().join("in/old.txt");
    fs::write(&old, "1").expect("a file");
    let moved = folder.path().join("moved.txt");
    fs::write(&moved, "1").expect("a file");
    let now = later_than(&moved, &folder.path().join("clock"));
    fs::write(&old, "12").expect("a file");
    fs::write(folder.path().join("in/new.txt"), "1").expect("a file");
    fs::rename(&moved, folder.path().join("in/moved.txt")).expect("renamed");
    let world = World::new(&now.to_string());
    let life = world.live();
    life.save("job", &watches(&folder.path().join("in"), ""));
    life.until_ended("job", 3);
    let mut changes = changes(&life, "job");
    changes.sort();
    assert_eq!(changes, ["change old.txt", "create moved.txt", "create new.txt"]);
    life.stop();
}

#[test]
fn what_came_while_owd_was_down_fires_once_at_the_start() {
    let (world, life) = watched("");
    world.write("in/before.txt", "1");
    world.write("in/changed.txt", "1");
    life.until_ended("job", 2);
    life.stop();
    world.write("in/changed.txt", "22");
    world.write("in/new.txt", "1");
    for _ in 0..2 {
        let life = world.live();
        life.until_ended("job", 4);
        let mut seen = changes(&life, "job");
        seen.sort();
        assert_eq!(seen, ["change changed.txt", "create before.txt", "create changed.txt", "create new.txt"]);
        life.stop();
    }
    let life = world.live();
    world.write("in/last.txt", "1");
    assert_eq!(life.until_ended("job", 5).len(), 5);
    life.stop();
}

#[test]
fn an_event_is_not_lost_by_a_crash_and_does_not_fire_twice() {
    let (world, life) = watched("");
    world.write("in/a.txt", "1");
    life.crash();
    let life = world.live();
    life.until_ended("job", 1);
    life.crash();
    let life = world.live();
    settle(&life, &world.path("in"), "job", &["create a.txt"]);
    life.stop();
}

#[test]
fn every_save_by_rename_fires() {
    let case = case("ext-18");
    let (world, life) = watched("");
    let expected = usize::try_from(case["expect"]["triggers"].as_u64().expect("a count")).expect("small");
    world.write("in/a.txt", "first");
    life.until_ended("job", 1);
    for round in 1..=expected {
        let temporary = world.path("in/a.txt~");
        fs::write(&temporary, format!("save {round}")).expect("a file");
        fs::rename(&temporary, world.path("in/a.txt")).expect("renamed");
        life.until_ended("job", 1 + round);
    }
    settle(&life, &world.path("in"), "job", &["create a.txt", "change a.txt", "change a.txt"]);
    life.stop();
}

#[test]
fn saves_by_rename_fire_each_however_quickly_they_follow() {
    // The system's watcher may come to a file that is replaced already; this one is as quick as it can be.
    let hints: Arc<OnceLock<Arc<Hints>>> = Arc::default();
    let given = Arc::clone(&hints);
    let mut world = World::new(LATER);
    world.open_watcher = Arc::new(move |hints| {
        given.set(hints).expect("opened once");
        Ok(Box::new(Silent))
    });
    world.write("in/a.txt", "first");
    let life = world.live();
    life.save("job", &watches(&world.path("in"), ""));
    looked(&life, "job");
    for round in 1..=20 {
        fs::write(world.path("a.txt~"), format!("{round:0>round$}")).expect("a file");
        fs::rename(world.path("a.txt~"), world.path("in/a.txt")).expect("renamed");
        hints.get().expect("opened").moved(world.path("in/a.txt"), |path| match entry(path) {
            Entry::File(found) => Some(found),
            Entry::Folder | Entry::Nothing => panic!("a file"),
        });
    }
    fires(&life, "job", &["change a.txt"; 20]);
    let sizes: Vec<_> =
        events(&life, "job").into_iter().filter_map(|event| event.payload.data["size"].as_u64()).collect();
    assert_eq!(sizes, (1..=20).collect::<Vec<_>>());
    life.stop();
}

#[test]
fn a_file_that_is_written_for_long_fires_once_after_its_last_write() {
    let case = case("ext-19");
    let world = World::new("2026-03-03T08:30Z");
    fs::create_dir(world.path("in")).expect("a folder");
    let life = world.live();
    life.save("job", &watches(&world.path("in"), "").replace("60ms", "2s"));
    looked(&life, "job");
    let mut file = File::create(world.path("in/large.bin")).expect("a file");
    let began = Instant::now();
    // The pause between writes stands for a slow disk; the whole takes longer than the settle time.
    while began.elapsed() < Duration::from_millis(2500) {
        file.write_all(&vec![7; 64 * 1024]).expect("written");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    drop(file);
    let last_write = Instant::now();
    assert!(life.runs("job").is_empty(), "fired while it was written");
    life.until_ended("job", 1);
    assert!(last_write.elapsed() >= Duration::from_millis(1900), "fired before it had settled");
    settle(&life, &world.path("in"), "job", &["create large.bin"]);
    assert_eq!(case["expect"]["triggers"], 1);
    life.stop();
}

/// A watcher whose hints the test gives.
struct Silent;

impl FolderWatcher for Silent {
    fn watch(&mut self, _folder: &Path) -> Result<(), Unwatchable> {
        Ok(())
    }

    fn unwatch(&mut self, _folder: &Path) {}
}

/// The system's watcher, but for a time in which it has no more watches to give.
struct Limited {
    inner: Box<dyn FolderWatcher>,
    exhausted: Arc<AtomicBool>,
}

impl FolderWatcher for Limited {
    fn watch(&mut self, folder: &Path) -> Result<(), Unwatchable> {
        if self.exhausted.load(Ordering::SeqCst) { Err(Unwatchable::Limit) } else { self.inner.watch(folder) }
    }

    fn unwatch(&mut self, folder: &Path) {
        self.inner.unwatch(folder);
    }
}

#[test]
fn at_the_systems_limit_folders_are_polled_with_a_warning() {
    let case = case("ext-23");
    assert_eq!(case["expect"]["fallback"], "polling, with a warning in status");
    let mut world = World::new("2026-03-03T08:30Z");
    fs::create_dir(world.path("in")).expect("a folder");
    let exhausted = Arc::new(AtomicBool::new(true));
    let shared = Arc::clone(&exhausted);
    world.open_watcher = Arc::new(move |hints| {
        let inner = open_system_watcher(hints)?;
        Ok(Box::new(Limited { inner, exhausted: Arc::clone(&shared) }))
    });
    let life = world.live();
    life.save("job", &watches(&world.path("in"), ""));
    looked(&life, "job");
    let of_folder = || {
        let all = watch_warnings(&life).into_iter();
        all.filter(|warning| warning.about.ends_with("/in")).collect::<Vec<Warning>>()
    };
    life.until("it is told", async || !of_folder().is_empty());
    let about = of_folder();
    assert!(about.len() == 1 && about[0].message.contains("every two seconds"), "{about:?}");
    assert!(about[0].hint.as_ref().is_some_and(|hint| hint.contains("max_user_watches")), "{about:?}");
    world.write("in/a.txt", "1");
    fires(&life, "job", &["create a.txt"]);
    exhausted.store(false, Ordering::SeqCst);
    life.until("the watcher serves again", async || watch_warnings(&life).is_empty());
    world.write("in/b.txt", "1");
    fires(&life, "job", &["create a.txt", "create b.txt"]);
    life.stop();
}

#[test]
fn without_any_watcher_folders_are_polled() {
    let mut world = World::new("2026-03-03T08:30Z");
    fs::create_dir(world.path("in")).expect("a folder");
    world.open_watcher = Arc::new(|_| Err(Unwatchable::Instances));
    let life = world.live();
    life.save("job", &watches(&world.path("in"), ""));
    looked(&life, "job");
    world.write("in/a.txt", "1");
    fires(&life, "job", &["create a.txt"]);
    assert!(watch_warnings(&life)[0].hint.as_ref().is_some_and(|hint| hint.contains("max_user_instances")));
    life.stop();
}

#[test]
fn a_folder_that_is_not_there_is_told_of_and_fires_once_it_appears() {
    let world = World::new("2026-03-03T08:30Z");
    let life = world.live();
    life.save("job", &watches(&world.path("in/deep"), ""));
    looked(&life, "job");
    life.until("it is told", async || !watch_warnings(&life).is_empty());
    let warning = watch_warnings(&life).remove(0);
    assert!(warning.about.ends_with("/in/deep") && warning.message.contains("`job`"), "{warning:?}");
    world.write("in/deep/a.txt", "1");
    fires(&life, "job", &["create a.txt"]);
    life.until("the warning is settled", async || watch_warnings(&life).is_empty());

    fs::remove_dir_all(world.path("in")).expect("removed");
    life.until("it is told again", async || !watch_warnings(&life).is_empty());
    world.write("in/deep/b.txt", "1");
    fires(&life, "job", &["create a.txt", "create b.txt"]);
    life.stop();
}

#[test]
fn names_do_no_harm() {
    let (world, life) = watched("");
    let mut names: Vec<OsString> =
        ["; rm -rf ~", "-o", "two\nlines", "\u{202e}gpj.exe", "{{ task.name }}", "$(reboot)", "a\u{7}b", "üñ 漢字"]
            .map(OsString::from)
            .to_vec();
    names.push(OsString::from_vec(b"not \xff utf-8 \xc3".to_vec()));
    for name in &names {
        fs::write(world.path("in").join(name), "1").expect("a file");
    }
    life.until_ended("job", names.len());
    let data: Vec<Value> = events(&life, "job").into_iter().map(|event| event.payload.data).collect();
    for name in &names {
        let shown = name.to_str().unwrap_or("not \\xff utf-8 \\xc3");
        let found = data.iter().find(|data| data["name"] == shown).unwrap_or_else(|| panic!("{shown} in {data:?}"));
        assert_eq!(found.get("path_hex").is_some(), name.to_str().is_none());
    }
    life.stop();
}

#[test]
fn a_glob_names_what_is_meant() {
    let (world, life) = watched(", glob = \"*.txt\"");
    world.write("in/a.md", "1");
    world.write("in/.hidden.txt", "1");
    world.write("in/sub/a.txt", "1");
    world.write("in/b.txt", "1");
    fires(&life, "job", &["create b.txt"]);
    world.write("in/c.txt", "1");
    fires(&life, "job", &["create b.txt", "create c.txt"]);
    life.stop();
}

#[test]
fn a_tree_is_watched_also_where_it_grows() {
    let (world, life) = watched(", glob = \"**/*.txt\"");
    world.write("in/one/two/a.txt", "1");
    fires(&life, "job", &["create a.txt"]);
    world.write("in/one/two/three/b.txt", "1");
    fires(&life, "job", &["create a.txt", "create b.txt"]);
    world.write("in/one/c.txt", "1");
    fires(&life, "job", &["create a.txt", "create b.txt", "create c.txt"]);
    fs::remove_dir_all(world.path("in/one")).expect("removed");
    world.write("in/one/c.txt", "again");
    life.until_ended("job", 4);
    life.stop();
}

#[test]
fn a_single_file_is_watched_over_atomic_saves() {
    let world = World::new(LATER);
    world.write("in/settings.toml", "one");
    let life = world.live();
    life.save("job", &watches(&world.path("in/settings.toml"), ""));
    looked(&life, "job");
    for round in 1..=3 {
        world.write("in/settings.new", &format!("round {round}"));
        fs::rename(world.path("in/settings.new"), world.path("in/settings.toml")).expect("renamed");
        life.until_ended("job", round);
    }
    assert_eq!(changes(&life, "job"), ["change settings.toml"; 3]);
    life.stop();
}

#[test]
fn kinds_that_are_not_asked_for_do_not_fire() {
    let (world, life) = watched(", on = [\"change\"]");
    world.write("in/a.txt", "1");
    life.until("it has settled", async || {
        let row = life.store.task(&name("job")).await.expect("a store").expect("a task");
        let watch = format!("{}\n", world.path("in").display());
        life.store.watch_seen(row.id, &watch).await.expect("a store").is_some_and(|seen| seen.len() == 1)
    });
    world.write("in/a.txt", "12");
    fires(&life, "job", &["change a.txt"]);
    life.stop();
}

#[test]
fn a_file_that_is_moved_in_is_a_new_one_to_who_asks_for_those() {
    for (on, expected) in [("[\"create\"]", "create a.txt"), ("[\"create\", \"move\"]", "move a.txt")] {
        let (world, life) = watched(&format!(", on = {on}"));
        world.write("a.txt", "1");
        fs::rename(world.path("a.txt"), world.path("in/a.txt")).expect("renamed");
        fires(&life, "job", &[expected]);
        world.write("b.txt", "another");
        fs::rename(world.path("b.txt"), world.path("in/a.txt")).expect("renamed");
        settle(&life, &world.path("in"), "job", &[expected]);
        life.stop();
    }
}

#[test]
fn events_of_a_paused_task_wait_for_it() {
    let (world, life) = watched("");
    life.block_on(life.store.pause_task(&name("job"), PauseReason::Person, world.clock.now())).expect("paused");
    world.write("in/a.txt", "1");
    let waiting = async || life.store.task(&name("job")).await.expect("a store").expect("a task").waiting;
    life.until("it waits", async || waiting().await == 1);
    life.stop();
    let life = world.live();
    life.block_on(life.store.resume_task(&name("job"), world.clock.now())).expect("resumed");
    life.handle().wake();
    fires(&life, "job", &["create a.txt"]);
    life.stop();
}

#[test]
fn two_tasks_share_a_folder_and_a_deleted_one_leaves_it_to_the_other() {
    let (world, life) = watched("");
    life.save("other", &watches(&world.path("in"), ""));
    looked(&life, "other");
    world.write("in/a.txt", "1");
    fires(&life, "job", &["create a.txt"]);
    fires(&life, "other", &["create a.txt"]);
    life.block_on(life.store.delete_task(&name("other"), world.clock.now())).expect("deleted");
    life.handle().wake();
    world.write("in/b.txt", "1");
    fires(&life, "job", &["create a.txt", "create b.txt"]);
    life.stop();
}

#[test]
fn a_folder_reached_by_two_names_is_watched_by_both() {
    let (world, life) = watched("");
    std::os::unix::fs::symlink(world.path("in"), world.path("alias")).expect("a link");
    life.save("other", &watches(&world.path("alias"), ""));
    looked(&life, "other");
    world.write("in/a.txt", "1");
    fires(&life, "job", &["create a.txt"]);
    fires(&life, "other", &["create a.txt"]);
    let path = events(&life, "other").remove(0).payload.data["path"].clone();
    assert_eq!(path, world.path("alias/a.txt").to_str().expect("a path"));
    life.stop();
}
