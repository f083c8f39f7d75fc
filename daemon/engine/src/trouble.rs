use std::time::Duration;

use ow_store::StoreError;
use tracing::error;

use crate::Stop;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// Tries to leave a run that is to be left.
const TRIES_TO_LEAVE: u32 = 3;

/// A store that does not do what a worker asks of it: the run tries again where it stands, ever more rarely.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    tries: u32,
    tries_to_leave: u32,
}

impl Trouble {
    /// Waits until another try is worth it.
    ///
    /// # Errors
    ///
    /// The error, where none is: another worker has the run, or it is to be left and even that failed too often.
    pub(crate) async fn outlast(&mut self, error: StoreError, stop: &Stop) -> Result<(), StoreError> {
        let Some(wait) = self.wait_after(&error, stop.reason().is_some()) else { return Err(error) };
        error!(error = &error as &dyn std::error::Error, ?wait, "the store fails this run; trying again");
        let is_left = stop.reason().is_some();
        tokio::select! {
            () = stop.token().cancelled(), if !is_left => {}
            () = tokio::time::sleep(wait) => {}
        }
        Ok(())
    }

    /// How long to wait after an error; none: it is of no use.
    fn wait_after(&mut self, error: &StoreError, is_left: bool) -> Option<Duration> {
        if matches!(error, StoreError::Fenced { .. }) {
            return None;
        }
        if is_left {
            self.tries_to_leave += 1;
            return (self.tries_to_leave <= TRIES_TO_LEAVE).then_some(FIRST_WAIT);
        }
        let wait = FIRST_WAIT.saturating_mul(1 << self.tries.min(6)).min(LONGEST_WAIT);
        self.tries += 1;
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use ow_model::SessionId;

    use super::*;

    fn failing() -> StoreError {
        StoreError::Damaged { file: "store".into(), why: "a page".into() }
    }

    #[test]
    fn a_run_is_tried_again_ever_more_rarely_for_as_long_as_the_store_fails_it() {
        let mut trouble = Trouble::default();
        let waits: Vec<u64> =
            (0..9).map(|_| trouble.wait_after(&failing(), false).expect("it is tried again").as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn a_run_that_is_to_be_left_or_that_another_has_is_not_tried_for_ever() {
        let mut trouble = Trouble::default();
        let session = SessionId::from_bytes([1; 10]);
        let other = StoreError::Fenced { session, expected: 1, found: 2 };
        assert_eq!(trouble.wait_after(&other, false), None);
        let tries = (0..10).filter(|_| trouble.wait_after(&failing(), true).is_some()).count();
        assert_eq!(tries, TRIES_TO_LEAVE as usize);
    }
}
