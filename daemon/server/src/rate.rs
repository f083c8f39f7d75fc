use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::limits::{RATE_LIMIT, RATE_TIME};

/// Counts the changing requests of each TCP client.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// For each client its latest requests, oldest first: at most [`RATE_LIMIT`], none older than [`RATE_TIME`]
    /// when it was last looked at.
    clients: Mutex<HashMap<IpAddr, VecDeque<Instant>>>,
}

impl Rate {
    /// Counts a request at `now`, or says after how long the next one will be admitted. A refused request does not count.
    pub(crate) fn admit(&self, client: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut clients = self.clients.lock().expect("nothing panics while holding it");
        clients.retain(|_, requests| {
            while requests.front().is_some_and(|at| now.duration_since(*at) >= RATE_TIME) {
                requests.pop_front();
            }
            !requests.is_empty()
        });
        let requests = clients.entry(client).or_default();
        match requests.front() {
            Some(oldest) if requests.len() >= RATE_LIMIT => Err(RATE_TIME.saturating_sub(now.duration_since(*oldest))),
            _ => {
                requests.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_changes_in_ten_seconds_pass_and_the_next_waits_for_the_oldest() {
        let (rate, start) = (Rate::default(), Instant::now());
        let client = IpAddr::from([127, 0, 0, 1]);
        for index in 0..30 {
            assert_eq!(rate.admit(client, start + Duration::from_millis(100 * index)), Ok(()));
        }
        let soon = start + Duration::from_secs(4);
        assert_eq!(rate.admit(client, soon), Err(Duration::from_secs(6)));
        assert_eq!(rate.admit(IpAddr::from([127, 0, 0, 2]), soon), Ok(()), "another client is not held up");
        assert_eq!(rate.admit(client, start + Duration::from_secs(10)), Ok(()), "the oldest is ten seconds old");
        assert!(rate.admit(client, start + Duration::from_secs(10)).is_err());
        assert_eq!(rate.admit(client, start + Duration::from_mins(1)), Ok(()));
        assert_eq!(rate.clients.lock().expect("unpoisoned").len(), 1, "clients of the past are forgotten");
    }
}
