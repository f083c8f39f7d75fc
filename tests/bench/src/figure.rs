use std::time::Duration;

use serde_json::{Value, json};

/// What was measured, in the order of measuring.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    unit: &'static str,
    /// Sorted.
    values: Vec<f64>,
    goal: &'static str,
}

impl Figures {
    /// Adds a series of times in milliseconds.
    pub(crate) fn times(&mut self, name: impl Into<String>, times: &[Duration], goal: &'static str) {
        self.series(name, "ms", times.iter().map(|time| time.as_secs_f64() * 1e3).collect(), goal);
    }

    pub(crate) fn value(&mut self, name: impl Into<String>, unit: &'static str, value: f64, goal: &'static str) {
        self.series(name, unit, vec![value], goal);
    }

    pub(crate) fn series(
        &mut self,
        name: impl Into<String>,
        unit: &'static str,
        mut values: Vec<f64>,
        goal: &'static str,
    ) {
        values.sort_by(f64::total_cmp);
        self.rows.push(Row { name: name.into(), unit, values, goal });
    }

    pub(crate) fn print(&self) {
        println!(
            "{:<52} {:>6} {:>11} {:>11} {:>11} {:>11}  {:<6} goal",
            "figure", "n", "min", "p50", "p99", "max", "unit"
        );
        for row in &self.rows {
            println!(
                "{:<52} {:>6} {:>11.3} {:>11.3} {:>11.3} {:>11.3}  {:<6} {}",
                row.name,
                row.values.len(),
                row.at(0.0),
                row.at(0.5),
                row.at(0.99),
                row.at(1.0),
                row.unit,
                row.goal
            );
        }
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        println!("{}", json!({ "figures": rows }));
    }
}

impl Row {
    /// The value at a share of the sorted series.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index of a short series"
    )]
    fn at(&self, share: f64) -> f64 {
        let index = (share * (self.values.len().saturating_sub(1)) as f64).round() as usize;
        self.values.get(index).copied().unwrap_or(f64::NAN)
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name, "unit": self.unit, "n": self.values.len(), "goal": self.goal,
            "min": self.at(0.0), "p50": self.at(0.5), "p99": self.at(0.99), "max": self.at(1.0),
        })
    }
}
