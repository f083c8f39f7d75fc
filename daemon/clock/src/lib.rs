//! The present, and sleeping until an instant of it.
//!
//! [`Clock`] is the only way to the wall clock: the system's, or one that a test moves by hand. A sleep is
//! absolute, so it comes out right over suspends and a set clock, and it says why it ended ([`Wake`]). It
//! decides nothing: on each wake the owner asks the core what is due now. Nothing here ticks.
//!
//! ```
//! use ow_clock::Clock;
//!
//! let (clock, hand) = Clock::manual("2026-03-03T06:00:00Z".parse()?);
//! hand.set("2026-03-03T07:00:00Z".parse()?);
//! assert_eq!(clock.now().to_string(), "2026-03-03T07:00:00Z");
//! # Ok::<(), jiff::Error>(())
//! ```

mod clock;
mod manual;
#[cfg_attr(not(target_os = "linux"), path = "system_portable.rs")]
mod system;

pub use clock::{Clock, Wake};
pub use manual::ManualHand;
