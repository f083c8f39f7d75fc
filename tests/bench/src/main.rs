//! Measures the real binaries as processes, from outside, and prints one table and JSON.
//!
//! `cargo run --release -p ow-bench` after `cargo build --release`; `--quick` takes smaller numbers, words name the
//! measurements to make. Nothing is asserted: a figure is printed with its spread, met or not.

mod agent;
mod figure;
mod http;
mod idle;
mod inbox;
mod lateness;
mod load;
mod notices;
mod size;
mod slack;
mod start;
mod stub;
mod throughput;
mod webhooks;

use std::process::ExitCode;

use figure::Figures;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) rounds: usize,
    pub(crate) tasks: usize,
    pub(crate) parked: usize,
    pub(crate) idle_seconds: u64,
}

type Measure = fn(Scale, &mut Figures);

const FULL: Scale = Scale { rounds: 200, tasks: 100_000, parked: 10_000, idle_seconds: 60 };
const QUICK: Scale = Scale { rounds: 30, tasks: 2_000, parked: 300, idle_seconds: 5 };

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let scale = if words.iter().any(|word| word == "--quick") { QUICK } else { FULL };
    let wanted: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.starts_with("--")).collect();
    let measurements: [(&str, Measure); 11] = [
        ("size", size::measure),
        ("start", start::measure),
        ("idle", idle::measure),
        ("lateness", lateness::measure),
        ("throughput", throughput::measure),
        ("webhooks", webhooks::measure),
        ("inbox", inbox::measure),
        ("slack", slack::measure),
        ("notices", notices::measure),
        ("owctl", start::measure_owctl),
        ("agent", agent::measure),
    ];
    let mut figures = Figures::default();
    for (name, measure) in measurements {
        if wanted.is_empty() || wanted.contains(&name) {
            eprintln!("measuring: {name}");
            measure(scale, &mut figures);
        }
    }
    figures.print();
    ExitCode::SUCCESS
}
