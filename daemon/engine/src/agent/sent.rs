//! What went to a provider, byte for byte, at a cost that grows with what is new.

use bytes::Bytes;
use ow_model::{BlobHash, Fact, RecordedFact, Sent};

/// Folds the journal's [`Sent`] records back into whole requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentLog {
    last: Bytes,
    /// A request's new part is kept in a file of its own: what comes after it begins anew.
    is_broken: bool,
}

/// A longer new part is kept in a content-addressed file.
pub(crate) const LONGEST_INLINE: usize = 256 * 1024;

impl SentLog {
    pub(crate) fn of(journal: &[RecordedFact]) -> Self {
        let mut log = Self::default();
        for recorded in journal {
            if let Fact::Replied { sent: Some(sent), .. } | Fact::ModelFailed { sent: Some(sent), .. } = &recorded.fact
            {
                log.fold(sent);
            }
        }
        log
    }

    fn fold(&mut self, sent: &Sent) {
        match &sent.middle {
            ow_model::SentMiddle::Text(middle) if !self.is_broken || sent.head + sent.tail == 0 => {
                self.last = whole(&self.last, sent, middle.as_bytes()).unwrap_or_default();
                self.is_broken = false;
            }
            _ => {
                self.last = Bytes::new();
                self.is_broken = true;
            }
        }
    }

    /// The record of the next request, as its difference from the one before.
    pub(crate) fn next(&mut self, body: &Bytes) -> (Sent, Vec<u8>) {
        let before: &[u8] = &self.last;
        let mut head = before.iter().zip(body.iter()).take_while(|(one, other)| one == other).count();
        let room = before.len().min(body.len()) - head;
        let mut tail =
            before.iter().rev().zip(body.iter().rev()).take(room).take_while(|(one, other)| one == other).count();
        // A body is UTF-8: the new part begins and ends between characters.
        while head > 0 && body.get(head).is_some_and(|byte| is_inside(*byte)) {
            head -= 1;
        }
        while tail > 0 && body.get(body.len() - tail).is_some_and(|byte| is_inside(*byte)) {
            tail -= 1;
        }
        let middle = body[head..body.len() - tail].to_vec();
        let record = Sent {
            hash: BlobHash::of(body),
            head: head as u64,
            tail: tail as u64,
            middle: ow_model::SentMiddle::Text(String::from_utf8_lossy(&middle).into_owned()),
        };
        self.last = body.clone();
        self.is_broken = false;
        (record, middle)
    }

    /// The next request begins anew: what this one held was kept elsewhere.
    pub(crate) fn break_off(&mut self) {
        self.last = Bytes::new();
    }
}

const fn is_inside(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// A request from the one before it and its new part; none if they do not fit.
pub(crate) fn whole(before: &[u8], sent: &Sent, middle: &[u8]) -> Option<Bytes> {
    let (head, tail) = (usize::try_from(sent.head).ok()?, usize::try_from(sent.tail).ok()?);
    let head = before.get(..head)?;
    let tail = before.get(before.len().checked_sub(tail)?..)?;
    Some([head, middle, tail].concat().into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_sent_comes_back_byte_for_byte(bodies in prop::collection::vec("[aäß{}🦀]{0,12}", 0..8)) {
            let (mut writer, mut before) = (SentLog::default(), Bytes::new());
            for body in bodies {
                let body = Bytes::from(body);
                let (record, middle) = writer.next(&body);
                prop_assert_eq!(&record.middle, &ow_model::SentMiddle::Text(String::from_utf8(middle.clone()).unwrap()));
                before = whole(&before, &record, &middle).expect("it fits");
                prop_assert_eq!(&before, &body);
                prop_assert_eq!(record.hash, BlobHash::of(&body));
            }
        }
    }
}
