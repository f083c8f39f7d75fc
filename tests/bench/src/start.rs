use ow_test_support::Scratch;

use crate::figure::Figures;
use crate::load::{self, FAR, timed};
use crate::measurement::Scale;

const STARTS: usize = 15;

/// From spawn to READY=1, with nothing, a tenth and all of the tasks stored.
pub(crate) fn measure(scale: Scale, figures: &mut Figures) {
    let mut stored = 0;
    let scratch = Scratch::new();
    let goals = ["5 ms", "8 ms with 10 000", ""];
    for (tasks, goal) in [0, scale.tasks / 10, scale.tasks].into_iter().zip(goals) {
        let owd = scratch.start();
        let prefix = format!("t{tasks}-");
        load::store_tasks(scratch.path(), &prefix, tasks - stored, FAR);
        stored = tasks;
        owd.stop();
        let mut times = vec![];
        for _ in 0..STARTS {
            let (owd, time) = timed(|| scratch.start());
            times.push(time);
            owd.stop();
        }
        figures.times(format!("start to ready, {tasks} tasks"), &times, goal);
    }
}

/// Whole processes of owctl.
pub(crate) fn measure_owctl(scale: Scale, figures: &mut Figures) {
    let scratch = Scratch::new();
    let owd = scratch.start();
    let mut times = vec![];
    for _ in 0..scale.rounds {
        let mut command = owd.owctl.command(&["status", "--json"]);
        let (answer, time) = timed(|| command.output().expect("owctl runs"));
        assert!(answer.status.success(), "{answer:?}");
        times.push(time);
    }
    figures.times("owctl status, whole process", &times, "<= 3 ms");
    owd.stop();
}
