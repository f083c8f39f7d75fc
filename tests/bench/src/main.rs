//! Measures the real binaries as processes, from outside, and prints one table and JSON.
//!
//! `cargo run --release -p ow-bench` after `cargo build --release`; `--help` lists the measurements. Nothing is asserted: a
//! figure is printed with its spread, met or not.

mod agent;
mod figure;
mod http;
mod idle;
mod inbox;
mod lateness;
mod load;
mod mail;
mod mail_soak;
mod measurement;
mod notices;
mod size;
mod slack;
mod slack_soak;
mod start;
mod stub;
mod throughput;
mod webhooks;

use clap::{Parser, ValueEnum};
use ow_test_support::monotonic;

use figure::Figures;
use measurement::{Measurement, Scale};

/// Measures owd and owctl as they were built, and prints a table and JSON on standard output, progress on standard error.
#[derive(Debug, Parser)]
#[command(name = "ow-bench")]
struct Arguments {
    /// Takes smaller numbers, for a first look.
    #[arg(long)]
    quick: bool,
    /// How long a soak lasts, in minutes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=600))]
    minutes: Option<u64>,
    /// What to measure; all of it if nothing is named.
    #[arg(value_name = "MEASUREMENT")]
    measurements: Vec<Measurement>,
}

fn main() {
    let Arguments { quick, minutes, measurements } = Arguments::parse();
    let scale = if quick { Scale::QUICK } else { Scale::FULL };
    let scale = Scale { minutes: minutes.unwrap_or(scale.minutes), ..scale };
    let wanted: Vec<Measurement> = Measurement::value_variants()
        .iter()
        .copied()
        .filter(|measurement| measurements.is_empty() || measurements.contains(measurement))
        .collect();
    let mut figures = Figures::default();
    for (index, measurement) in wanted.iter().enumerate() {
        eprintln!("[{}/{}] {}", index + 1, wanted.len(), measurement.name());
        let began = monotonic();
        measurement.take(scale, &mut figures);
        eprintln!("      took {:.1} s", monotonic().saturating_sub(began).as_secs_f64());
    }
    figures.print();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_measurement_measures_nothing_and_is_told_what_is_one() {
        let error = Arguments::try_parse_from(["ow-bench", "latency"]).expect_err("there is no such measurement");
        let text = error.to_string();
        assert!(text.contains("'latency'") && text.contains("lateness"), "{text}");
        assert!(Arguments::try_parse_from(["ow-bench", "--fast"]).is_err());
        assert!(Arguments::try_parse_from(["ow-bench", "--help"]).is_err());
    }

    #[test]
    fn measurements_are_named() {
        let Arguments { quick, minutes: _, measurements } =
            Arguments::try_parse_from(["ow-bench", "--quick", "size", "owctl"]).expect("both are measurements");
        assert!(quick);
        assert_eq!(measurements, [Measurement::Size, Measurement::Owctl]);
    }
}
