use jiff::SignedDuration;
use ow_model::{Fact, Failure, RunState, SessionId, TurnOutcome};
use ow_store::Store;

use super::world::{Act, FLAVOURS, Life, World, name, task, words};

fn is_idle(life: &Life, chat: SessionId) -> bool {
    life.block_on(life.store.run(chat)).expect("a store").is_some_and(|run| run.state == RunState::Idle)
}

fn until_heard(life: &Life, chat: SessionId, count: usize) {
    life.until("it has heard what was said", async || {
        let facts = life.store.journal(chat).await.expect("a store");
        facts.iter().filter(|recorded| matches!(recorded.fact, Fact::Input { .. })).count() == count
    });
}

#[test]
fn a_chat_waits_for_no_task_and_no_task_for_a_chat() {
    for flavour in FLAVOURS {
        let mut world = World::of(flavour, "2026-03-03T08:59Z");
        (world.settings.workers, world.settings.chat_workers) = (1, 1);
        world.act("hung", Act::Hang);
        let life = world.live();
        life.save("hung", &task(""));
        life.block_on(life.store.run_now(&name("hung"), "ann", None, world.clock.now())).expect("a run");
        life.handle().wake();
        life.until("the only worker hangs", async || world.begun("hung") == 1);
        let (chat, _) = life.chat();
        life.say(chat, "hello");
        until_heard(&life, chat, 1);
        life.crash();

        let life = world.live();
        world.act("hung", Act::Succeed);
        let (stuck, its_task) = life.chat();
        world.act(&its_task, Act::Hang);
        life.say(stuck, "hang");
        life.until("the only place for chats is taken", async || world.begun(&its_task) == 1);
        let (waits, _) = life.chat();
        life.say(waits, "hello");
        life.save("job", &task(""));
        life.block_on(life.store.run_now(&name("job"), "ann", None, world.clock.now())).expect("a run");
        life.handle().wake();
        assert_eq!(words(&life.until_ended("job", 1)), ["succeeded"]);
        let state = life.block_on(life.store.run(waits)).expect("a store").expect("there").state;
        assert_eq!(state.word(), "queued");
        life.crash();
    }
}

#[test]
fn as_many_chats_as_there_are_places_are_at_work() {
    const CHATS: usize = 200;
    let mut world = World::new("2026-03-03T08:59Z");
    world.settings.chat_workers = CHATS;
    let life = world.live();
    let chats: Vec<_> = (0..CHATS).map(|_| life.chat()).collect();
    for (chat, its_task) in &chats {
        world.act(its_task, Act::Hold);
        life.say(*chat, "hello");
    }
    life.until("all are at work at the same time", async || world.most_at_once() == CHATS);
    life.stop();
}

#[test]
fn a_chat_whose_worker_panics_goes_on() {
    let world = World::new("2026-03-03T08:59Z");
    let life = world.live();
    let (chat, its_task) = life.chat();
    world.act(&its_task, Act::Panic);
    life.say(chat, "fall");
    until_heard(&life, chat, 1);
    life.until("its place is free", async || life.handle().running() == 0);
    assert!(is_idle(&life, chat), "what was said is not tried again by itself");
    let facts = life.block_on(life.store.journal(chat)).expect("a store");
    let ended = &facts.last().expect("there").fact;
    assert!(
        matches!(ended, Fact::TurnEnded { outcome: TurnOutcome::Failed { failure: Failure::Internal, .. } }),
        "{ended:?}"
    );
    world.act(&its_task, Act::Succeed);
    life.say(chat, "rise");
    until_heard(&life, chat, 2);
    life.stop();
}

#[test]
fn a_session_that_sleeps_wakes_at_its_time() {
    let world = World::new("2026-03-03T08:59Z");
    let life = world.live();
    let (chat, its_task) = life.chat();
    world.act(&its_task, Act::Sleep(SignedDuration::from_mins(5)));
    life.say(chat, "sleep");
    life.until("it sleeps", async || {
        let run = life.store.run(chat).await.expect("a store").expect("there");
        matches!(run.state, RunState::Queued { not_before: Some(_), .. })
    });
    world.act(&its_task, Act::Succeed);
    life.advance("2026-03-03T09:03Z");
    assert_eq!(world.begun(&its_task), 1);
    world.hand.set(super::world::at("2026-03-03T09:04Z"));
    life.until("it has been looked at", async || world.begun(&its_task) == 2);
    life.until("it is idle", async || {
        life.store.run(chat).await.expect("a store").is_some_and(|run| run.state == RunState::Idle)
    });
    life.stop();
}
