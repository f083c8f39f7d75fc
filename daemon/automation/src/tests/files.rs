use std::os::unix::ffi::OsStringExt;

use ow_model::{PauseReason, TaskState};
use ow_store::Store;

use super::world::{Life, World, causes, name, task};
use crate::{Warning, WarningKind};

fn hourly(more: &str) -> String {
    task(&format!("{more}\n[[trigger]]\ncron = \"0 * * * *\""))
}

fn warnings(life: &Life) -> Vec<Warning> {
    life.handle().warnings().into_iter().filter(|warning| warning.kind == WarningKind::TaskFile).collect()
}

async fn revision(life: &Life, task: &str) -> u32 {
    life.store.task(&name(task)).await.expect("a store").map_or(0, |row| row.revision)
}

async fn state(life: &Life, task: &str) -> Option<TaskState> {
    life.store.task(&name(task)).await.expect("a store").map(|row| row.state)
}

#[test]
fn task_files_are_loaded_before_the_start_is_over() {
    let world = World::new("2026-03-03T08:30Z");
    world.write("tasks.d/reports.toml", &hourly(""));
    world.write("tasks.d/.reports.toml.swp", "no task");
    world.write("tasks.d/reports.toml~", "no task");
    let life = world.live();
    assert_eq!(life.row("reports").revision, 1);
    assert_eq!(warnings(&life), []);
    life.advance("2026-03-03T09:00Z");
    assert_eq!(causes(&life.until_ended("reports", 1)), ["schedule"]);
    life.stop();
    // Nothing changed: no revision is made of it.
    let life = world.live();
    assert_eq!(life.row("reports").revision, 1);
    life.stop();
}

#[test]
fn a_broken_file_is_named_and_changes_nothing_else() {
    let world = World::new("2026-03-03T08:30Z");
    world.write("tasks.d/reports.toml", &hourly(""));
    let life = world.live();
    world.write("tasks.d/reports.toml", &hourly("overlap = \"sometimes\""));
    world.write("tasks.d/other.toml", &hourly(""));
    life.until("the other is there", async || revision(&life, "other").await == 1);
    life.until("the broken one is named", async || !warnings(&life).is_empty());
    let warning = warnings(&life).remove(0);
    assert!(warning.about.ends_with("tasks.d/reports.toml"), "{warning:?}");
    assert!(warning.message.contains("reports.toml:2:"), "{warning:?}");
    assert!(warning.message.contains("sometimes"), "{warning:?}");
    life.advance("2026-03-03T09:00Z");
    assert_eq!(causes(&life.until_ended("reports", 1)), ["schedule"]);
    assert_eq!(life.row("reports").revision, 1);

    let faults = life.block_on(life.handle().reload_tasks());
    assert_eq!(faults, [warning.message]);
    world.write("tasks.d/reports.toml", &hourly("title = \"Reports\""));
    life.until("it is revised", async || revision(&life, "reports").await == 2);
    life.until("the warning is settled", async || warnings(&life).is_empty());
    life.stop();
}

#[test]
fn a_file_that_vanishes_pauses_its_task_and_one_that_comes_back_resumes_it() {
    let world = World::new("2026-03-03T08:30Z");
    world.write("tasks.d/reports.toml", &hourly(""));
    let life = world.live();
    std::fs::remove_file(world.path("tasks.d/reports.toml")).expect("removed");
    let gone =
        |state: &Option<TaskState>| matches!(state, Some(TaskState::Paused { reason: PauseReason::FileGone, .. }));
    life.until("it is paused", async || gone(&state(&life, "reports").await));
    life.stop();
    let life = world.live();
    assert!(gone(&life.block_on(state(&life, "reports"))));
    world.write("tasks.d/reports.toml", &hourly(""));
    life.until("it is active", async || state(&life, "reports").await == Some(TaskState::Active));
    life.stop();

    // Also over a stop.
    std::fs::remove_file(world.path("tasks.d/reports.toml")).expect("removed");
    let life = world.live();
    assert!(gone(&life.block_on(state(&life, "reports"))));
    life.stop();
}

#[test]
fn the_folder_of_task_files_may_come_later() {
    let world = World::new("2026-03-03T08:30Z");
    let life = world.live();
    assert_eq!(life.handle().warnings(), []);
    world.write("tasks.d/reports.toml", &hourly(""));
    life.until("it is loaded", async || revision(&life, "reports").await == 1);
    life.stop();
}

#[test]
fn a_task_of_the_store_is_not_taken_over_by_a_file() {
    let world = World::new("2026-03-03T08:30Z");
    let life = world.live();
    life.save("reports", &hourly("title = \"from the store\""));
    world.write("tasks.d/reports.toml", &hourly(""));
    let faults = life.block_on(life.handle().reload_tasks());
    assert!(faults.len() == 1 && faults[0].contains("owctl task add"), "{faults:?}");
    assert_eq!(life.row("reports").spec.title.as_deref(), Some("from the store"));
    life.stop();
}

#[test]
fn followers_that_change_places_are_loaded_in_any_order() {
    let world = World::new("2026-03-03T08:30Z");
    world.write("tasks.d/a.toml", &task("[[trigger]]\nafter = \"b\""));
    world.write("tasks.d/b.toml", &hourly(""));
    let life = world.live();
    world.write("tasks.d/a.toml", &hourly(""));
    world.write("tasks.d/b.toml", &task("[[trigger]]\nafter = \"a\""));
    assert_eq!(life.block_on(life.handle().reload_tasks()), Vec::<String>::new());
    world.write("tasks.d/a.toml", &task("[[trigger]]\nafter = \"b\""));
    let faults = life.block_on(life.handle().reload_tasks());
    assert!(faults.len() == 1 && faults[0].contains("a.toml") && faults[0].contains("circle"), "{faults:?}");
    assert_eq!(life.row("a").revision, 2);
    life.stop();
}

#[test]
fn a_task_that_starts_with_owd_starts_also_when_its_file_is_new() {
    let world = World::new("2026-03-03T08:30Z");
    world.write("tasks.d/hello.toml", &task("[[trigger]]\nstartup = true"));
    let life = world.live();
    assert_eq!(causes(&life.until_ended("hello", 1)), ["event"]);
    life.stop();
    let life = world.live();
    life.until_ended("hello", 2);
    life.rest();
    assert_eq!(life.runs("hello").len(), 2);
    life.stop();
}

#[test]
fn a_file_that_lost_its_startup_trigger_while_owd_was_down_starts_nothing() {
    let world = World::new("2026-03-03T08:30Z");
    world.write("tasks.d/hello.toml", &task("[[trigger]]\nstartup = true"));
    world.write("tasks.d/broken.toml", &task("[[trigger]]\nstartup = true"));
    let life = world.live();
    life.until_ended("hello", 1);
    life.until_ended("broken", 1);
    life.stop();
    world.write("tasks.d/hello.toml", &task("[[trigger]]\nevery = \"1d\""));
    world.write("tasks.d/broken.toml", "no task");
    let life = world.live();
    life.until_ended("broken", 2);
    life.rest();
    assert_eq!(life.runs("hello").len(), 1);
    assert_eq!(life.runs("broken").len(), 2, "what was loaded from it before goes on");
    life.stop();
}

#[test]
fn a_file_whose_one_time_has_come_stays_right() {
    let world = World::new("2026-03-03T08:30Z");
    world.write("tasks.d/once.toml", &task("[[trigger]]\nat = \"2026-03-03T09:00:00Z\""));
    let life = world.live();
    life.advance("2026-03-03T09:00Z");
    life.until_ended("once", 1);
    life.stop();
    let life = world.live();
    assert_eq!(warnings(&life), []);
    world.write("tasks.d/once.toml", &task("[[trigger]]\nat = \"2026-03-03T08:00:00Z\""));
    let faults = life.block_on(life.handle().reload_tasks());
    assert!(faults.len() == 1 && faults[0].contains("past"), "{faults:?}");
    life.stop();
}

#[test]
fn a_file_whose_name_is_no_task_name_is_named() {
    let world = World::new("2026-03-03T08:30Z");
    world.write("tasks.d/Bad Name.toml", &hourly(""));
    let folder = world.path("tasks.d");
    std::fs::write(folder.join(std::ffi::OsString::from_vec(b"\xff.toml".to_vec())), "x").expect("a file");
    world.write("tasks.d/empty.toml", "");
    std::fs::create_dir(folder.join("folder.toml")).expect("a folder");
    std::fs::write(folder.join("binary.toml"), [0xff, 0xfe]).expect("a file");
    world.write("tasks.d/good.toml", &hourly(""));
    let life = world.live();
    assert_eq!(warnings(&life).len(), 5, "{:?}", warnings(&life));
    assert_eq!(life.row("good").revision, 1);
    life.stop();
}
