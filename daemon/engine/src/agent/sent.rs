//! What went to a provider, byte for byte, at a cost that grows with what is new.

use std::collections::HashMap;

use bytes::Bytes;
use jiff::Timestamp;
use ow_model::{BlobHash, Fact, Position, Purpose, RecordedFact, Sent};

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
                let _body = log.fold(sent);
            }
        }
        log
    }

    /// Takes a record in; what the request was, if the journal still tells.
    fn fold(&mut self, sent: &Sent) -> Option<SentBody> {
        match &sent.middle {
            ow_model::SentMiddle::Text(middle) if !self.is_broken || sent.head + sent.tail == 0 => {
                let body = whole(&self.last, sent, middle.as_bytes());
                self.last = body.clone().unwrap_or_default();
                self.is_broken = false;
                body.filter(|body| BlobHash::of(body) == sent.hash).map(SentBody::Whole)
            }
            middle => {
                self.last = Bytes::new();
                self.is_broken = true;
                match middle {
                    ow_model::SentMiddle::File(file) => Some(SentBody::File(*file)),
                    ow_model::SentMiddle::Text(_) => None,
                }
            }
        }
    }

    /// The record of the next request, as its difference from the one before.
    pub(crate) fn next(&mut self, body: &Bytes) -> (Sent, Vec<u8>) {
        let before: &[u8] = &self.last;
        let mut head = common_head(before, body);
        let mut tail = common_tail(&before[head..], &body[head..]);
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

/// A request that went to a model and was answered, or failed.
#[derive(Clone, Debug, PartialEq)]
pub struct SentRequest {
    /// Counted from 1, in the journal's order.
    pub number: u32,
    /// When what came of it was on record.
    pub at: Timestamp,
    /// `provider:model` that was asked first.
    pub model: String,
    pub purpose: Purpose,
    /// The call for which a sub-agent sent it.
    pub sub_agent_of: Option<Position>,
    pub is_answered: bool,
    /// Of the whole body.
    pub hash: BlobHash,
    /// None: the records before it are damaged.
    pub body: Option<SentBody>,
}

/// The body of a request as it went over the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum SentBody {
    Whole(Bytes),
    /// It is in the content-addressed file of this hash.
    File(BlobHash),
}

/// The requests of a journal, sub-agents' as well, in their order. Those whose answer never came to be on record are not
/// among them.
pub fn sent_requests(journal: &[RecordedFact]) -> impl Iterator<Item = SentRequest> + '_ {
    // Each sub-agent's requests are told by their differences from one another.
    let mut logs: HashMap<Option<Position>, SentLog> = HashMap::new();
    let mut asked = (String::new(), Purpose::Turn);
    let mut number = 0;
    journal.iter().filter_map(move |RecordedFact { at, fact, .. }| {
        let (of, fact) = match fact {
            Fact::Delegated { position, fact } => (Some(*position), &**fact),
            fact => (None, fact),
        };
        let (sent, is_answered) = match fact {
            Fact::Asked { model, purpose, .. } => {
                asked = (model.clone(), *purpose);
                return None;
            }
            Fact::Replied { sent: Some(sent), .. } => (sent, true),
            Fact::ModelFailed { sent: Some(sent), .. } => (sent, false),
            _ => return None,
        };
        number += 1;
        let (model, purpose) = asked.clone();
        let body = logs.entry(of).or_default().fold(sent);
        Some(SentRequest { number, at: *at, model, purpose, sub_agent_of: of, is_answered, hash: sent.hash, body })
    })
}

/// A history of a thousand messages is compared in pieces: the machine compares a piece at a time.
const PIECE: usize = 256;

fn common_head(one: &[u8], other: &[u8]) -> usize {
    let pieces = one.chunks_exact(PIECE).zip(other.chunks_exact(PIECE));
    let at = pieces.take_while(|(one, other)| one == other).count() * PIECE;
    at + one[at..].iter().zip(&other[at..]).take_while(|(one, other)| one == other).count()
}

fn common_tail(one: &[u8], other: &[u8]) -> usize {
    let pieces = one.rchunks_exact(PIECE).zip(other.rchunks_exact(PIECE));
    let at = pieces.take_while(|(one, other)| one == other).count() * PIECE;
    let (one, other) = (&one[..one.len() - at], &other[..other.len() - at]);
    at + one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count()
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
        fn what_was_sent_comes_back_byte_for_byte(
            bodies in prop::collection::vec("[aäß{}🦀]{0,12}|[aä]{200,600}", 0..8)
        ) {
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
