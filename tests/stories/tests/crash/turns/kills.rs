use std::fs;
use std::thread;
use std::time::Duration;

use ow_test_support::{Fault, FaultAction, FaultCall, Owd, monotonic, until};
use rustix::process::Signal;

use super::verdicts::check;
use super::world::Agents;
use crate::records::Records;
use crate::tally::{Chance, Tally, is_full, points, rounds};
use crate::world::Fate;

/// Runs the load to its end while the fault waits; owd, if it has lived.
pub(super) fn under(agents: &mut Agents, fault: Option<&Fault>) -> Option<Owd> {
    let owd = agents.scratch.try_start_with(|command| {
        if let Some(fault) = fault {
            drop(fs::remove_file(&fault.count));
            fault.apply(command);
        }
    })?;
    agents.is_led_by(&owd);
    agents.load();
    (agents.quiet() == Fate::Lives).then_some(owd)
}

fn fault(agents: &Agents, call: FaultCall, action: FaultAction, number: u64) -> Fault {
    let file = |name: &str| agents.scratch.path().join(name);
    Fault { call, action, number, until: file("until"), count: file("calls") }
}

fn calls(call: FaultCall) -> u64 {
    let mut agents = Agents::new();
    let fault = fault(&agents, call, FaultAction::KillAfter, 0);
    let owd = under(&mut agents, Some(&fault)).expect("nothing kills it");
    owd.kill();
    fault.calls()
}

/// Starts owd as a person would after a crash, answers, stops it, and checks.
fn recover(name: &str, agents: &mut Agents, tally: &mut Tally) {
    let owd = agents.scratch.start();
    agents.settle();
    owd.stop();
    let records = Records::read(&agents.scratch);
    tally.count(&records, &agents.said);
    tally.note(name, check(agents, &records), || {
        format!("{:?}\n{:?}\n{}", agents.said, records.effects, agents.scratch.stderr())
    });
}

fn kill_at(call: FaultCall, action: FaultAction, number: u64, tally: &mut Tally) {
    let mut agents = Agents::new();
    let at = fault(&agents, call, action, number);
    if let Some(alive) = under(&mut agents, Some(&at)) {
        alive.kill();
    }
    tally.kills += 1;
    if number.is_multiple_of(3) {
        // The life that recovers is killed too.
        let at = fault(&agents, call, action, 1 + number / 3 % 12);
        if let Some(alive) = under(&mut agents, Some(&at)) {
            alive.kill();
        }
        tally.kills += 1;
    }
    recover(&format!("{action:?} {call:?} {number}"), &mut agents, tally);
}

#[test]
fn a_turn_that_is_killed_at_any_sync_repeats_and_loses_nothing() {
    let last = calls(FaultCall::Sync);
    let actions = [(FaultAction::KillBefore, 2), (FaultAction::KillAfter, 3), (FaultAction::LosePower, 2)];
    let sample = actions
        .into_iter()
        .flat_map(|(action, sample)| points(last, sample).into_iter().map(move |number| (action, number)));
    let tally = rounds(sample, |(action, number), tally| kill_at(FaultCall::Sync, action, number, tally));
    tally.conclude(&format!("turns killed, or without power, at syncs (of {last})"));
}

#[test]
fn a_turn_that_is_killed_in_the_middle_of_any_write_repeats_and_loses_nothing() {
    let last = calls(FaultCall::Write);
    let tally = rounds(points(last, 2), |number, tally| kill_at(FaultCall::Write, FaultAction::Tear, number, tally));
    tally.conclude(&format!("turns in torn writes (of {last})"));
}

/// Who strikes owd down, and when.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// The model, when a request has come; after it has answered, if a time is given.
    Model(u64, Duration),
    /// A command, when its effect is there and its end is not told.
    Command(u64),
    /// A service, the same.
    Service(u64),
}

#[test]
fn a_turn_that_is_killed_between_a_call_and_its_result_repeats_and_loses_nothing() {
    let requests = {
        let mut agents = Agents::new();
        let owd = under(&mut agents, None).expect("it lives");
        owd.kill();
        agents.model.seen() as u64
    };
    let delays = if is_full() { vec![0, 100, 300, 1_000, 2_000, 4_000] } else { vec![0, 1_000] };
    let model = points(requests, 2)
        .into_iter()
        .flat_map(|number| delays.iter().map(move |delay| Blow::Model(number, Duration::from_micros(*delay))));
    let commands = points(9, 3).into_iter().map(Blow::Command);
    let services = points(2, 2).into_iter().map(Blow::Service);
    let blows: Vec<Blow> = model.chain(commands).chain(services).collect();
    let tally = rounds(blows, |blow, tally| {
        let mut agents = Agents::new();
        match blow {
            Blow::Model(number, after) => agents.strike.at_request(number, after),
            Blow::Command(number) => agents.strike_at_command(number),
            Blow::Service(number) => agents.strike.at_service(number),
        }
        if let Some(alive) = under(&mut agents, None) {
            alive.kill();
        }
        tally.kills += 1;
        recover(&format!("{blow:?}"), &mut agents, tally);
    });
    tally.conclude(&format!(
        "turns struck down by their model ({requests} requests), their commands and their services"
    ));
}

#[test]
fn a_turn_that_is_killed_at_any_instant_repeats_and_loses_nothing() {
    let instants = if is_full() { 200 } else { 4 };
    let tally = rounds(0..instants, |number, tally| {
        let mut chance = Chance::of(number + 1001);
        let mut agents = Agents::new();
        for _ in 0..if number % 4 == 3 { 2 } else { 1 } {
            let owd = agents.scratch.start();
            agents.is_led_by(&owd);
            let at = monotonic() + Duration::from_micros(chance.below(700_000));
            thread::scope(|scope| {
                scope.spawn(|| {
                    until("the instant has come", || (monotonic() >= at).then_some(()));
                    owd.signal(Signal::KILL);
                });
                agents.load();
            });
            owd.kill();
            tally.kills += 1;
        }
        recover(&format!("instant {number}"), &mut agents, tally);
    });
    tally.conclude("turns killed at random instants");
}
