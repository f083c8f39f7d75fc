use std::time::Duration;

use tokio::time::Instant;

/// Tokens that come back evenly over a minute; as many at once as come back in one.
#[derive(Debug)]
pub(crate) struct Bucket {
    per_minute: u32,
    /// When the bucket will be full. Each token that is taken moves it on by its share of a minute.
    full_at: Instant,
}

const MINUTE: Duration = Duration::from_mins(1);

impl Bucket {
    pub(crate) fn full(per_minute: u32, now: Instant) -> Self {
        Self { per_minute: per_minute.max(1), full_at: now }
    }

    /// Another measure from now on; what was taken stays taken.
    pub(crate) fn resize(&mut self, per_minute: u32) {
        self.per_minute = per_minute.max(1);
    }

    /// Takes a token, or says after how long there is one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let full_at = self.full_at.max(now) + MINUTE / self.per_minute;
        match (full_at - now).checked_sub(MINUTE) {
            None | Some(Duration::ZERO) => {
                self.full_at = full_at;
                Ok(())
            }
            Some(wait) => Err(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minutes_worth_passes_at_once_and_then_one_at_a_time() {
        let start = Instant::now();
        let mut bucket = Bucket::full(60, start);
        for _ in 0..60 {
            assert_eq!(bucket.take(start), Ok(()));
        }
        assert_eq!(bucket.take(start), Err(Duration::from_secs(1)));
        assert_eq!(bucket.take(start), Err(Duration::from_secs(1)), "who is refused takes nothing");
        let next = start + Duration::from_secs(1);
        assert_eq!((bucket.take(next), bucket.take(next)), (Ok(()), Err(Duration::from_secs(1))));
        let later = start + Duration::from_hours(1);
        assert_eq!(
            (0..70).filter(|_| bucket.take(later).is_ok()).count(),
            60,
            "it does not grow beyond a minute's worth"
        );
        bucket.resize(6000);
        assert_eq!(bucket.take(later + Duration::from_millis(10)), Ok(()));
    }

    #[test]
    fn one_a_minute_is_one_a_minute() {
        let start = Instant::now();
        let mut bucket = Bucket::full(1, start);
        assert_eq!((bucket.take(start), bucket.take(start)), (Ok(()), Err(MINUTE)));
        assert_eq!(bucket.take(start + MINUTE), Ok(()));
    }
}
