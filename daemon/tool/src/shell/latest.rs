//! The newest of what a command prints, for those who watch it. The whole of it is in the result.

use std::future::pending;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// So much of what a command prints is told at once; what stood before it is passed over.
const MOST: usize = 4096;
/// At least this passes from one piece to the next.
const EVERY: Duration = Duration::from_millis(100);

/// One stream's newest text. It is told from when somebody watches on, beginning with what was newest by then.
#[derive(Debug)]
pub(super) struct Latest {
    printed: mpsc::Sender<Vec<u8>>,
    /// Cancelled once somebody watches.
    watched: CancellationToken,
    waiting: Vec<u8>,
    /// When the next piece may be told.
    next: Instant,
}

impl Latest {
    pub(super) fn new(printed: mpsc::Sender<Vec<u8>>, watched: CancellationToken, now: Instant) -> Self {
        Self { printed, watched, waiting: vec![], next: now }
    }

    /// Takes in text without secrets, and tells it if it is time.
    pub(super) fn take(&mut self, clean: &[u8], now: Instant) {
        self.waiting.extend_from_slice(&clean[clean.len().saturating_sub(MOST)..]);
        let surplus = self.waiting.len().saturating_sub(MOST);
        if surplus > 0 || clean.len() > MOST {
            // From the beginning of a character on.
            let inside = self.waiting[surplus..].iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
            self.waiting.drain(..surplus + inside);
        }
        self.tell(now);
    }

    /// Waits until there is something to be told, and somebody to tell, and it is time.
    pub(super) async fn due(&self) {
        if whole(&self.waiting) == 0 {
            return pending().await;
        }
        self.watched.cancelled().await;
        sleep_until(self.next).await;
    }

    pub(super) fn tell(&mut self, now: Instant) {
        let whole = whole(&self.waiting);
        if whole == 0 || now < self.next || !self.watched.is_cancelled() {
            return;
        }
        self.next = now + EVERY;
        // Where owd is behind, a later piece says what is newest then.
        if self.printed.try_send(self.waiting[..whole].to_vec()).is_ok() {
            self.waiting.drain(..whole);
        }
    }
}

/// How much of these bytes does not end inside a character.
fn whole(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let length = match bytes[bytes.len() - back] {
            0x80..=0xBF => continue,
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xFF => 4,
            0..=0x7F => 1,
        };
        return if length > back { bytes.len() - back } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pieces: &mut mpsc::Receiver<Vec<u8>>) -> Option<String> {
        pieces.try_recv().ok().map(|piece| String::from_utf8(piece).expect("whole characters"))
    }

    fn watched() -> CancellationToken {
        let watched = CancellationToken::new();
        watched.cancel();
        watched
    }

    #[tokio::test]
    async fn the_newest_is_told_at_once_and_then_at_most_ten_times_a_second() {
        let (printed, mut pieces) = mpsc::channel(4);
        let now = Instant::now();
        let mut latest = Latest::new(printed, watched(), now);
        latest.take(b"one\n", now);
        assert_eq!(told(&mut pieces).as_deref(), Some("one\n"));
        latest.take(b"two\n", now);
        latest.take("thr\u{e9}".as_bytes().split_last().expect("bytes").1, now);
        assert_eq!(told(&mut pieces), None);
        latest.tell(now + EVERY);
        assert_eq!(told(&mut pieces).as_deref(), Some("two\nthr"));
        latest.tell(now + 2 * EVERY);
        assert_eq!(told(&mut pieces), None, "half a character waits for its other half");
        latest.take(&[0xa9], now + 2 * EVERY);
        assert_eq!(told(&mut pieces).as_deref(), Some("\u{e9}"));
    }

    #[tokio::test]
    async fn who_is_behind_is_told_the_newest_and_memory_is_bounded() {
        let (printed, mut pieces) = mpsc::channel(1);
        let mut now = Instant::now();
        let mut latest = Latest::new(printed, watched(), now);
        latest.take(b"first", now);
        for length in [3000, 1, 2047, 2048, 2049, 30_000] {
            now += EVERY;
            latest.take("\u{fc}".repeat(length).as_bytes(), now);
            assert!(latest.waiting.len() <= MOST);
        }
        assert_eq!(told(&mut pieces).as_deref(), Some("first"));
        latest.tell(now + EVERY);
        let newest = told(&mut pieces).expect("told");
        assert!(newest.len() > MOST - 3 && newest.chars().all(|letter| letter == '\u{fc}'));
    }

    #[tokio::test]
    async fn who_comes_late_is_told_what_was_newest_by_then() {
        let (printed, mut pieces) = mpsc::channel(4);
        let (watched, now) = (CancellationToken::new(), Instant::now());
        let mut latest = Latest::new(printed, watched.clone(), now);
        latest.take(b"listening\n", now);
        assert_eq!(told(&mut pieces), None);
        watched.cancel();
        latest.due().await;
        latest.tell(now);
        assert_eq!(told(&mut pieces).as_deref(), Some("listening\n"));
    }
}
