//! What the schedule promises: cron against the cases and a walk over instants, counting against walking, the planner
//! against random histories.

mod accounting;
mod cron_cases;
mod cron_walk;
mod gate;
mod overlap;
mod rules;
mod scenarios;
mod set_back;
mod stream;
mod support;
mod waiting;
mod watching;
