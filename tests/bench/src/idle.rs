use std::fs;
use std::time::Duration;

use ow_test_support::{Scratch, monotonic, until};

use crate::figure::Figures;
use crate::measurement::Scale;

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

/// PSS of a process and of all below it, in KiB.
pub(crate) fn family(pid: u32) -> f64 {
    let own = try_kib(pid, "Pss:").unwrap_or(0.0);
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    let children: Vec<u32> =
        lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    own + children.into_iter().map(family).sum::<f64>()
}

/// A line of `smaps_rollup`, in KiB.
pub(crate) fn kib(pid: u32, name: &str) -> f64 {
    try_kib(pid, name).expect("it runs")
}

/// The same; none: the process has ended.
fn try_kib(pid: u32, name: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn seconds(count: u64) -> f64 {
    count as f64
}
