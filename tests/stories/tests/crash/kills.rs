use std::thread;
use std::time::Duration;

use ow_test_support::{Fault, FaultAction, FaultCall, Owd, monotonic, until};
use rustix::process::Signal;

use crate::tally::{Chance, Tally, is_full, points, rounds};
use crate::world::{Fate, World};

pub(crate) fn fault(world: &World, call: FaultCall, action: FaultAction, number: u64) -> Fault {
    Fault { call, action, number, until: world.file("until"), count: world.file("calls") }
}

/// Runs the load to its end while the fault waits. A killed owd may not even have become ready.
fn under(world: &mut World, fault: &Fault) -> Option<Owd> {
    drop(std::fs::remove_file(&fault.count));
    let owd = world.scratch.try_start_with(|command| fault.apply(command))?;
    world.load();
    // In the full matrix the schedule has its part in every round.
    (world.quiet(usize::from(is_full())) == Fate::Lives).then_some(owd)
}

/// Starts owd as a person would after a crash, answers, stops it, and checks.
pub(crate) fn recover(name: &str, world: &mut World, tally: &mut Tally) {
    let owd = world.scratch.start();
    world.finish(owd);
    tally.check(name, world);
}

/// How many calls of a kind the load comes to.
fn calls(call: FaultCall) -> u64 {
    let mut world = World::new();
    let fault = fault(&world, call, FaultAction::KillAfter, 0);
    let owd = under(&mut world, &fault).expect("nothing kills it");
    owd.kill();
    fault.calls()
}

fn kill_at(call: FaultCall, action: FaultAction, number: u64, tally: &mut Tally) {
    let mut world = World::new();
    let fault = fault(&world, call, action, number);
    if let Some(alive) = under(&mut world, &fault) {
        // The load took fewer calls this time: facts that meet share one.
        alive.kill();
    }
    tally.kills += 1;
    let name = format!("{action:?} {call:?} {number}");
    if number.is_multiple_of(3) {
        // The life that recovers is killed too.
        let fault = self::fault(&world, call, action, 1 + number / 3 % 12);
        if let Some(alive) = under(&mut world, &fault) {
            alive.kill();
        }
        tally.kills += 1;
    }
    recover(&name, &mut world, tally);
}

#[test]
fn a_kill_at_any_sync_of_the_store_repeats_and_loses_nothing() {
    let last = calls(FaultCall::Sync);
    let sample = points(last, 4).into_iter().map(|number| (FaultAction::KillBefore, number));
    let sample = sample.chain(points(last, 4).into_iter().map(|number| (FaultAction::KillAfter, number)));
    let tally = rounds(sample, |(action, number), tally| kill_at(FaultCall::Sync, action, number, tally));
    tally.conclude(&format!("killed at syncs (of {last})"));
}

#[test]
fn a_loss_of_power_at_any_sync_of_the_store_repeats_and_loses_nothing() {
    let last = calls(FaultCall::Sync);
    let tally = rounds(points(last, 4), |number, tally| {
        kill_at(FaultCall::Sync, FaultAction::LosePower, number, tally);
    });
    tally.conclude(&format!("power lost at syncs (of {last})"));
}

#[test]
fn a_kill_in_the_middle_of_any_write_of_the_store_repeats_and_loses_nothing() {
    let last = calls(FaultCall::Write);
    let tally = rounds(points(last, 4), |number, tally| {
        kill_at(FaultCall::Write, FaultAction::Tear, number, tally);
    });
    tally.conclude(&format!("torn writes (of {last})"));
}

#[test]
fn a_kill_at_any_instant_repeats_and_loses_nothing() {
    let instants = if is_full() { 200 } else { 8 };
    let tally = rounds(0..instants, |number, tally| {
        let mut chance = Chance::of(number + 1);
        let mut world = World::new();
        // Every fourth time the life that recovers is killed too.
        for _ in 0..if number % 4 == 3 { 2 } else { 1 } {
            killed_after(&mut world, Duration::from_micros(chance.below(500_000)));
            tally.kills += 1;
        }
        recover(&format!("instant {number}"), &mut world, tally);
    });
    tally.conclude("killed at random instants");
}

/// Runs the load and kills owd so long after it was ready.
fn killed_after(world: &mut World, delay: Duration) {
    let owd = world.scratch.start();
    let at = monotonic() + delay;
    thread::scope(|scope| {
        scope.spawn(|| {
            until("the instant has come", || (monotonic() >= at).then_some(()));
            owd.signal(Signal::KILL);
        });
        world.load();
    });
    owd.kill();
}
