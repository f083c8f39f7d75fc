use std::sync::atomic::{AtomicBool, Ordering};

use jiff::SignedDuration;
use ow_model::{Answer, AnswerBy, Cause, Outcome, Person, RunState, Surface};
use ow_store::Store;

use super::world::{Act, FLAVOURS, Flavour, World, at, causes, fates, name, parked, task, words};

fn every_minute(more: &str) -> String {
    task(&format!("{more}\n[[trigger]]\ncron = \"* * * * *\""))
}

fn daily(more: &str) -> String {
    task(&format!("{more}\n[[trigger]]\ncron = \"0 9 * * *\""))
}

#[test]
fn a_run_that_hangs_delays_no_other_task() {
    for flavour in FLAVOURS {
        let mut world = World::of(flavour, "2026-03-03T08:59Z");
        world.settings.workers = 2;
        world.act("hung", Act::Hang);
        let life = world.live();
        life.save("hung", &daily(""));
        life.save("other", &every_minute(""));
        life.pass("2026-03-03T09:05Z", SignedDuration::from_mins(1));
        assert_eq!(causes(&life.until_ended("other", 6)), ["schedule"; 6]);
        assert_eq!(words(&life.runs("hung")), ["running"]);
        assert_eq!(life.handle().running(), 1);
        life.crash();
    }
}

#[test]
fn an_answered_run_finds_a_worker_when_all_others_are_busy() {
    for flavour in FLAVOURS {
        let mut world = World::of(flavour, "2026-03-03T08:59Z");
        world.settings.workers = 1;
        world.act("asks", Act::Ask);
        let life = world.live();
        life.save("asks", &daily(""));
        life.advance("2026-03-03T09:00Z");
        life.until("it is parked", async || {
            let runs = life.store.runs(&ow_store::RunFilter::default(), &page()).await.expect("a store");
            runs.rows.iter().any(|run| parked(run).is_some())
        });
        // A parked run holds no worker: the only one takes this one, and keeps it.
        world.act("hung", Act::Hang);
        life.save("hung", &task(""));
        life.block_on(life.store.run_now(&name("hung"), "ann", None, world.clock.now())).expect("a run");
        life.handle().wake();
        life.until("it hangs", async || world.begun("hung") == 1);

        let item = parked(&life.runs("asks")[0]).expect("parked");
        let by = AnswerBy { person: Person("ann".into()), surface: Surface::Socket };
        let answer = Answer::Text { text: "well".into() };
        life.block_on(life.store.resolve(item, &answer, &by, world.clock.now())).expect("resolved");
        life.handle().wake();
        assert_eq!(words(&life.until_ended("asks", 1)), ["succeeded"]);

        // A new run must wait, and no place that is kept is given to it.
        life.save("new", &task(""));
        life.block_on(life.store.run_now(&name("new"), "ann", None, world.clock.now())).expect("a run");
        life.handle().wake();
        life.until("all is handed out that can be", async || life.handle().running() == 1);
        assert_eq!(words(&life.runs("new")), ["queued"]);
        life.crash();
    }
}

#[test]
fn an_answer_that_nobody_hints_at_is_followed_by_a_free_worker() {
    for flavour in FLAVOURS {
        let mut world = World::of(flavour, "2026-03-03T08:59Z");
        world.settings.workers = 1;
        world.act("asks", Act::Ask);
        let life = world.live();
        life.save("asks", &daily(""));
        life.advance("2026-03-03T09:00Z");
        life.until("it is parked", async || {
            let runs = life.store.runs(&ow_store::RunFilter::default(), &page()).await.expect("a store");
            runs.rows.iter().any(|run| parked(run).is_some())
        });
        life.until("its worker is free", async || life.handle().running() == 0);
        let item = parked(&life.runs("asks")[0]).expect("parked");
        let by = AnswerBy { person: Person("ann".into()), surface: Surface::Socket };
        let answer = Answer::Text { text: "well".into() };
        life.block_on(life.store.resolve(item, &answer, &by, world.clock.now())).expect("resolved");
        assert_eq!(words(&life.until_ended("asks", 1)), ["succeeded"]);
        life.stop();
    }
}

fn page() -> ow_store::PageRequest {
    ow_store::PageRequest { after: None, limit: 100 }
}

#[test]
fn a_hundred_due_at_once_are_all_handed_out() {
    for flavour in FLAVOURS {
        let mut world = World::of(flavour, "2026-03-03T08:59Z");
        world.settings.workers = 100;
        let life = world.live();
        for index in 0..100 {
            let job = format!("job-{index}");
            world.act(&job, Act::Hold);
            life.save(&job, &daily(""));
        }
        world.hand.set(at("2026-03-03T09:00Z"));
        life.until("all run at the same time", async || world.most_at_once() == 100);
        assert_eq!(life.handle().running(), 100);
        world.release(100);
        life.until("all have ended", async || life.handle().running() == 0);
        assert_eq!(words(&life.runs("job-99")), ["succeeded"]);
        life.stop();
    }
}

#[test]
fn more_runs_than_workers_wait_and_all_have_their_turn() {
    let mut world = World::new("2026-03-03T08:59Z");
    world.settings.workers = 3;
    let life = world.live();
    for index in 0..20 {
        life.save(&format!("job-{index}"), &daily(""));
    }
    world.hand.set(at("2026-03-03T09:00Z"));
    for index in 0..20 {
        assert_eq!(words(&life.until_ended(&format!("job-{index}"), 1)), ["succeeded"]);
    }
    assert!(world.most_at_once() <= 3);
    life.stop();
}

#[test]
fn a_worker_that_panics_fails_its_run_and_nothing_else() {
    for flavour in FLAVOURS {
        let world = World::of(flavour, "2026-03-03T08:59Z");
        world.act("bad", Act::Panic);
        let life = world.live();
        life.save("bad", &every_minute(""));
        life.save("good", &every_minute(""));
        life.pass("2026-03-03T09:01Z", SignedDuration::from_mins(1));
        assert_eq!(words(&life.until_ended("bad", 2)), ["failed", "failed"]);
        assert_eq!(words(&life.until_ended("good", 2)), ["succeeded", "succeeded"]);
        life.stop();
    }
}

#[test]
fn a_clock_set_back_fires_nothing_twice() {
    for flavour in FLAVOURS {
        let world = World::of(flavour, "2026-03-03T08:59Z");
        let life = world.live();
        life.save("job", &every_minute(""));
        life.pass("2026-03-03T09:02Z", SignedDuration::from_mins(1));
        life.rest();
        world.hand.jump(at("2026-03-03T09:00:30Z"));
        life.until("the store knows", async || {
            let row = life.store.task(&name("job")).await.expect("a store").expect("a task");
            row.accounted_until <= world.clock.now()
        });
        life.pass("2026-03-03T09:03Z", SignedDuration::from_secs(30));
        let slots: Vec<_> = life.until_ended("job", 4).iter().map(|run| run.scheduled_for).collect();
        let expected = ["09:00Z", "09:01Z", "09:02Z", "09:03Z"].map(|slot| at(&format!("2026-03-03T{slot}")));
        assert_eq!(slots, expected);
        life.stop();
    }
}

#[test]
fn slots_that_a_suspend_or_a_jump_passed_over_are_caught_up_with_once() {
    for flavour in FLAVOURS {
        for resumed in [true, false] {
            let world = World::of(flavour, "2026-03-03T08:59Z");
            let life = world.live();
            life.save("job", &every_minute(""));
            life.advance("2026-03-03T09:00Z");
            life.rest();
            let later = at("2026-03-03T17:00:30Z");
            if resumed {
                world.hand.resume(later);
            } else {
                world.hand.jump(later);
            }
            let runs = life.until_ended("job", 2);
            assert!(matches!(runs[1].cause, Cause::CatchUp { count: 480, .. }), "{resumed} {:?}", runs[1].cause);
            life.advance("2026-03-03T17:01Z");
            assert_eq!(causes(&life.until_ended("job", 3)), ["schedule", "catchup", "schedule"]);
            life.stop();
        }
    }
}

#[test]
fn a_jump_is_seen_also_when_a_hint_wakes_the_timer_first() {
    for resumed in [true, false] {
        // On one thread both are there by the time that the timer gets to look.
        let world = World::of(Flavour::CurrentThread, "2026-03-03T08:59Z");
        let life = world.live();
        life.save("job", &every_minute(""));
        life.advance("2026-03-03T09:00Z");
        let later = at("2026-03-03T17:00:30Z");
        if resumed {
            world.hand.resume(later);
        } else {
            world.hand.jump(later);
        }
        life.handle().wake();
        let runs = life.until_ended("job", 2);
        assert!(matches!(runs[1].cause, Cause::CatchUp { count: 480, .. }), "{resumed} {:?}", runs[1].cause);
        life.stop();
    }
}

#[test]
fn a_clock_put_right_by_a_second_leaves_a_slot_on_time() {
    let world = World::new("2026-03-03T08:59Z");
    let life = world.live();
    life.save("job", &daily("catch-up = \"none\""));
    // The timer last looked at the clock a moment before it was put right.
    life.save("tick", &task("[[trigger]]\nat = \"2026-03-03T08:59:59Z\""));
    life.advance("2026-03-03T08:59:59Z");
    life.until_ended("tick", 1);
    life.rest();
    world.hand.jump(at("2026-03-03T09:00:00.5Z"));
    assert_eq!(causes(&life.until_ended("job", 1)), ["schedule"]);
    life.stop();
}

#[test]
fn the_kill_switch_stops_all_and_lets_all_go_on() {
    for flavour in FLAVOURS {
        let world = World::of(flavour, "2026-03-03T08:59Z");
        world.act("long", Act::Hold);
        let life = world.live();
        life.save("long", &daily(""));
        life.save("short", &every_minute(""));
        life.advance("2026-03-03T09:00Z");
        life.until("it runs", async || world.begun("long") == 1);
        life.until_ended("short", 1);

        life.block_on(life.handle().pause_all("ann")).expect("paused");
        life.until("nothing runs", async || life.handle().running() == 0);
        assert_eq!(words(&life.runs("long")), ["interrupted"]);
        life.pass("2026-03-03T09:03Z", SignedDuration::from_mins(1));
        assert_eq!(life.runs("short").len(), 1);

        world.act("long", Act::Succeed);
        life.block_on(life.handle().resume_all()).expect("resumed");
        assert_eq!(words(&life.until_ended("long", 1)), ["succeeded"]);
        assert_eq!(life.runs("long").len(), 1);
        life.advance("2026-03-03T09:04Z");
        let runs = life.until_ended("short", 2);
        // What fell due behind the switch is recorded, and not made up for.
        assert_eq!(runs[1].scheduled_for, at("2026-03-03T09:04Z"));
        let fates = fates(&life.slots("short"));
        assert!(fates.iter().any(|fate| fate.contains("paused: all")), "{fates:?}");
        life.stop();
    }
}

#[test]
fn the_kill_switch_outlives_a_restart() {
    let world = World::new("2026-03-03T08:59Z");
    let life = world.live();
    life.save("job", &every_minute(""));
    life.block_on(life.handle().pause_all("ann")).expect("paused");
    life.stop();
    let life = world.live();
    life.advance("2026-03-03T09:00Z");
    assert!(life.runs("job").is_empty());
    life.block_on(life.handle().resume_all()).expect("resumed");
    life.advance("2026-03-03T09:01Z");
    assert_eq!(causes(&life.until_ended("job", 1)), ["schedule"]);
    life.stop();
}

#[test]
fn a_run_is_cancelled_by_hand_by_a_newer_one_and_with_its_task() {
    for flavour in FLAVOURS {
        let world = World::of(flavour, "2026-03-03T08:59Z");
        for task in ["by-hand", "newer", "deleted"] {
            world.act(task, Act::Hold);
        }
        let life = world.live();
        life.save("by-hand", &daily(""));
        life.save("newer", &every_minute("overlap = \"cancel-previous\""));
        life.save("deleted", &daily(""));
        life.advance("2026-03-03T09:00Z");
        life.until("all run", async || life.handle().running() == 3);

        let run = life.runs("by-hand")[0].id;
        assert!(life.block_on(life.store.cancel_run(run, "ann said so", world.clock.now())).expect("a run"));
        life.block_on(life.handle().stop_run(run, "ann said so"));
        let ended = life.until_ended("by-hand", 1);
        let RunState::Ended(ended) = &ended[0].state else { panic!("ended") };
        assert_eq!(ended.outcome, Outcome::Cancelled { why: "ann said so".into() });

        world.hand.set(at("2026-03-03T09:01Z"));
        life.until_ended("newer", 1);
        life.until("the newer one runs", async || world.begun("newer") == 2);
        assert_eq!(words(&life.runs("newer")), ["cancelled", "running"]);

        let deleted = life.block_on(life.store.delete_task(&name("deleted"), world.clock.now())).expect("deleted");
        for run in deleted {
            life.block_on(life.handle().stop_run(run, "task deleted"));
        }
        life.until("only the newer one is left", async || life.handle().running() == 1);
        life.stop();
    }
}

#[test]
fn a_drain_lets_runs_end_and_interrupts_the_rest() {
    for flavour in FLAVOURS {
        let world = World::of(flavour, "2026-03-03T08:59Z");
        world.act("job", Act::Hold);
        let life = world.live();
        life.save("job", &daily(""));
        life.advance("2026-03-03T09:00Z");
        life.until("it runs", async || world.begun("job") == 1);
        life.stop();

        world.act("job", Act::Succeed);
        let life = world.live();
        let runs = life.until_ended("job", 1);
        assert_eq!((runs.len(), words(&runs)), (1, vec!["succeeded"]));
        life.stop();
    }
}

#[test]
fn a_drain_gives_the_grace_period() {
    let mut world = World::new("2026-03-03T08:59Z");
    world.settings.grace = ow_model::Span::from_secs(60);
    world.act("job", Act::Hold);
    let life = world.live();
    life.save("job", &daily(""));
    life.advance("2026-03-03T09:00Z");
    life.until("it runs", async || world.begun("job") == 1);
    world.release(1);
    life.stop();
    let life = world.live();
    assert_eq!((words(&life.runs("job")), world.begun("job")), (vec!["succeeded"], 1));
    life.stop();
}

#[test]
fn nothing_begins_once_a_drain_has() {
    let world = World::new("2026-03-03T08:59Z");
    let life = world.live();
    life.save("job", &daily(""));
    life.stop();
    world.hand.set(at("2026-03-03T09:00Z"));
    assert_eq!(world.begun("job"), 0);
}

#[test]
fn tasks_follow_the_ends_that_they_ask_for() {
    let world = World::new("2026-03-03T08:59Z");
    let life = world.live();
    life.save("first", &task("[[trigger]]\ncron = \"0 9 * * *\""));
    life.save("then", &task("[[trigger]]\nafter = \"first\""));
    life.save("if-failed", &task("[[trigger]]\nafter = { task = \"first\", on = \"failure\" }"));
    life.advance("2026-03-03T09:00Z");
    assert_eq!(causes(&life.until_ended("then", 1)), ["event"]);
    assert!(life.runs("if-failed").is_empty());
    world.act("first", Act::Fail);
    life.pass("2026-03-04T09:00Z", SignedDuration::from_hours(12));
    assert_eq!(causes(&life.until_ended("if-failed", 1)), ["event"]);
    assert_eq!(life.runs("then").len(), 1);
    life.stop();
}

#[test]
fn a_run_that_needs_the_network_waits_for_it() {
    static UP: AtomicBool = AtomicBool::new(false);
    let mut world = World::new("2026-03-03T08:59Z");
    world.network = || UP.load(Ordering::SeqCst);
    let life = world.live();
    life.save("far", &daily("needs = [\"network\"]"));
    life.save("near", &daily(""));
    world.hand.set(at("2026-03-03T09:00Z"));
    life.until_ended("near", 1);
    life.until("the other waits", async || {
        let times = life.store.wake_times().await.expect("a store");
        times.ready && times.earliest().is_none_or(|at| at > world.clock.now()) && life.handle().running() == 0
    });
    assert_eq!(words(&life.runs("far")), ["queued"]);
    UP.store(true, Ordering::SeqCst);
    // Nobody tells owd; it looks by itself.
    life.until("the timer sleeps", async || world.hand.sleepers() > 0);
    world.hand.set(at("2026-03-03T09:01Z"));
    assert_eq!(words(&life.until_ended("far", 1)), ["succeeded"]);
    life.stop();
}

#[test]
fn retention_takes_a_pass_a_day_while_nothing_runs() {
    let world = World::new("2026-03-03T08:59Z");
    let life = world.live();
    life.save("job", &task("[[trigger]]\ncron = \"0 9 1 * *\""));
    life.advance("2026-04-01T09:00Z");
    let run = life.until_ended("job", 1)[0].id;
    life.advance("2026-05-01T08:59Z");
    life.advance("2026-05-01T09:00Z");
    life.until_ended("job", 2);
    assert!(life.block_on(life.store.run(run)).expect("a store").is_some());
    life.advance("2026-05-02T10:00Z");
    life.until("it is let go", async || life.store.run(run).await.expect("a store").is_none());
    life.stop();
}

#[test]
fn an_unanswered_item_expires_on_time() {
    let world = World::new("2026-03-03T08:59Z");
    world.act("asks", Act::Ask);
    let life = world.live();
    life.save("asks", &daily(""));
    life.advance("2026-03-03T09:00Z");
    life.until("it is parked", async || {
        let runs = life.store.runs(&ow_store::RunFilter::default(), &page()).await.expect("a store");
        runs.rows.iter().any(|run| parked(run).is_some())
    });
    life.advance("2026-03-03T10:00Z");
    life.until_ended("asks", 1);
    assert_eq!(world.begun("asks"), 2);
    life.stop();
}
