use std::fs;
use std::time::Duration;

use ow_test_support::{Scratch, monotonic, until};

use crate::Scale;
use crate::figure::Figures;

/// What an owd with nothing to do costs.
pub(crate) fn measure(scale: Scale, figures: &mut Figures) {
    let scratch = Scratch::new();
    let owd = scratch.start();
    owd.owctl.ok(&["status"]);
    // What the start left to do is done before the idle time begins.
    wait(Duration::from_secs(12));
    let before = (switches(owd.pid()), ticks(owd.pid()));
    wait(Duration::from_secs(scale.idle_seconds));
    let minutes = seconds(scale.idle_seconds) / 60.0;
    let (switched, ticked) = (switches(owd.pid()) - before.0, ticks(owd.pid()) - before.1);
    figures.value("idle: context switches a minute", "1/min", seconds(switched) / minutes, "<= 1 wake-up");
    figures.value("idle: CPU a minute", "ms/min", seconds(ticked) * 10.0 / minutes, "");
    figures.value("idle: RSS", "MiB", kib(owd.pid(), "Rss:") / 1024.0, "");
    figures.value("idle: PSS", "MiB", kib(owd.pid(), "Pss:") / 1024.0, "<= 7 MiB");
    owd.stop();
}

fn wait(time: Duration) {
    let end = monotonic() + time;
    let mut left = time;
    while !left.is_zero() {
        // `until` gives up after its own limit, so a long wait is several.
        let part = monotonic() + left.min(Duration::from_secs(30));
        until("time has passed", || (monotonic() >= part).then_some(()));
        left = end.saturating_sub(monotonic());
    }
}

/// Voluntary and involuntary context switches of all threads.
fn switches(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("status")).ok())
        .flat_map(|status| {
            let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
            counts.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).collect::<Vec<_>>()
        })
        .sum()
}

/// User and system time in clock ticks of 10 ms.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a stat line").split_whitespace().collect();
    [11, 12].iter().filter_map(|index| fields.get(*index)?.parse::<u64>().ok()).sum()
}

/// A line of `smaps_rollup`, in KiB.
pub(crate) fn kib(pid: u32, name: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("it runs");
    let line = text.lines().find(|line| line.starts_with(name)).expect("the kernel tells it");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn seconds(count: u64) -> f64 {
    count as f64
}
