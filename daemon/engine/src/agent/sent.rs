//! What went to a provider, byte for byte, at a cost that grows with what is new.

use std::collections::HashMap;

use bytes::Bytes;
use jiff::Timestamp;
use ow_model::{BlobHash, BlobHasher, Fact, Position, Purpose, RecordedFact, Sent};

/// Folds the journal's [`Sent`] records back into whole requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentLog {
    last: Bytes,
    /// The hash of its first so many bytes: what the next shares with it is not hashed again.
    begun: (BlobHasher, usize),
    /// A request's new part is kept in a file of its own: what comes after it begins anew.
    is_broken: bool,
    /// The request whose record was made last, with its hash and the file that it is in.
    made: Option<(Bytes, BlobHash, Option<BlobHash>)>,
}

/// A longer new part is kept in a content-addressed file.
pub(crate) const LONGEST_INLINE: usize = 256 * 1024;

impl SentLog {
    pub(crate) fn of(journal: &[RecordedFact]) -> Self {
        let (mut log, mut last) = (Self::default(), vec![]);
        for recorded in journal {
            if let Fact::Asked { sent: Some(sent), .. }
            | Fact::Replied { sent: Some(sent), .. }
            | Fact::ModelFailed { sent: Some(sent), .. } = &recorded.fact
            {
                last = log.advance(last, sent).unwrap_or_default();
            }
        }
        log.last = last.into();
        log
    }

    /// Takes a record in; what the request was, if the journal still tells.
    fn fold(&mut self, sent: &Sent) -> Option<SentBody> {
        let before = std::mem::take(&mut self.last);
        let made = self.advance(before.into(), sent).map(Bytes::from);
        self.last = made.clone().unwrap_or_default();
        match &sent.middle {
            ow_model::SentMiddle::File(file) => Some(SentBody::File(*file)),
            ow_model::SentMiddle::Text(_) => made.filter(|body| BlobHash::of(body) == sent.hash).map(SentBody::Whole),
        }
    }

    /// Makes the request of this record out of the one before it. None: they do not fit, or it lies in a file.
    fn advance(&mut self, before: Vec<u8>, sent: &Sent) -> Option<Vec<u8>> {
        match &sent.middle {
            ow_model::SentMiddle::Text(middle) if !self.is_broken || sent.head + sent.tail == 0 => {
                self.is_broken = false;
                whole(before, sent, middle)
            }
            _ => {
                self.is_broken = true;
                None
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
            hash: self.hash(body, head),
            head: head as u64,
            tail: tail as u64,
            middle: ow_model::SentMiddle::Text(String::from_utf8_lossy(&middle).into_owned()),
        };
        self.last = body.clone();
        self.is_broken = false;
        self.made = Some((body.clone(), record.hash, None));
        (record, middle)
    }

    /// The record of the request whose record was made last, once more: nothing of it is kept twice.
    pub(crate) fn again(&self, body: &Bytes) -> Option<Sent> {
        let (made, hash, file) = self.made.as_ref()?;
        let (head, middle) = match file {
            Some(file) => (0, ow_model::SentMiddle::File(*file)),
            None => (body.len() as u64, ow_model::SentMiddle::Text(String::new())),
        };
        // What was put together is mostly what went out, and then it is the very same.
        let is_same = std::ptr::eq(&raw const made[..], &raw const body[..]) || made == body;
        is_same.then_some(Sent { hash: *hash, head, tail: 0, middle })
    }

    /// The hash of a request whose first `head` bytes are the last one's.
    fn hash(&mut self, body: &[u8], head: usize) -> BlobHash {
        let (mut hasher, mut upto) = std::mem::take(&mut self.begun);
        if upto > head {
            (hasher, upto) = Default::default();
        }
        hasher.update(&body[upto..head]);
        let mut whole = hasher.clone();
        whole.update(&body[head..]);
        self.begun = (hasher, head);
        whole.hash()
    }

    /// The next request begins anew: what this one held was kept in this file.
    pub(crate) fn break_off(&mut self, file: BlobHash) {
        self.last = Bytes::new();
        if let Some((_, _, kept)) = &mut self.made {
            *kept = Some(file);
        }
    }
}

/// A request that went to a model, or was about to when owd ended.
#[derive(Clone, Debug, PartialEq)]
pub struct SentRequest {
    /// Counted from 1, in the journal's order.
    pub number: u32,
    /// When what came of it was on record; when it was made, if nothing is.
    pub at: Timestamp,
    /// `provider:model` that was asked first.
    pub model: String,
    pub purpose: Purpose,
    /// The call for which a sub-agent sent it.
    pub sub_agent_of: Option<Position>,
    /// A reply is on record. Otherwise it failed, was cut off, or is under way.
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

/// The requests of a journal, sub-agents' as well, in their order. One that was cut off is told as it was made for the
/// first model of the list.
pub fn sent_requests(journal: &[RecordedFact]) -> impl Iterator<Item = SentRequest> + '_ {
    let mut told = Telling::default();
    // Behind the last fact: what is still open then is told as well.
    journal.iter().map(Some).chain([None]).flat_map(move |recorded| {
        match recorded {
            Some(recorded) => told.take(recorded),
            None => told.close(),
        }
        std::mem::take(&mut told.ready)
    })
}

/// Tells requests from facts.
#[derive(Default)]
struct Telling {
    /// Each sub-agent's requests are told by their differences from one another.
    logs: HashMap<Option<Position>, SentLog>,
    asked: HashMap<Option<Position>, (String, Purpose)>,
    /// Those of which nothing has come yet.
    open: HashMap<Option<Position>, SentRequest>,
    ready: Vec<SentRequest>,
    count: u32,
}

impl Telling {
    fn take(&mut self, RecordedFact { at, fact, .. }: &RecordedFact) {
        let (of, fact) = match fact {
            Fact::Delegated { position, fact } => (Some(*position), &**fact),
            fact => (None, fact),
        };
        match fact {
            Fact::Asked { model, purpose, sent, .. } => {
                self.cut_off(of);
                self.asked.insert(of, (model.clone(), *purpose));
                if let Some(sent) = sent {
                    let request = self.request(of, *at, sent, false);
                    self.open.insert(of, request);
                }
            }
            Fact::Replied { sent: Some(sent), .. } => self.outcome(of, *at, sent, true),
            Fact::ModelFailed { sent: Some(sent), .. } => self.outcome(of, *at, sent, false),
            // It never went out.
            Fact::ModelFailed { sent: None, .. } => drop(self.open.remove(&of)),
            Fact::TurnInterrupted { .. } | Fact::Resumed | Fact::TurnEnded { .. } | Fact::Ended { .. } => self.close(),
            _ => {}
        }
    }

    fn outcome(&mut self, of: Option<Position>, at: Timestamp, sent: &Sent, is_answered: bool) {
        let request = self.request(of, at, sent, is_answered);
        match self.open.remove(&of) {
            // Another model has taken over from the one that this was made for, or a parameter was left out.
            Some(made) if made.hash != request.hash => self.tell(made),
            _ => {}
        }
        self.tell(request);
    }

    fn request(&mut self, of: Option<Position>, at: Timestamp, sent: &Sent, is_answered: bool) -> SentRequest {
        let (model, purpose) = self.asked.get(&of).cloned().unwrap_or((String::new(), Purpose::Turn));
        let body = self.logs.entry(of).or_default().fold(sent);
        SentRequest { number: 0, at, model, purpose, sub_agent_of: of, is_answered, hash: sent.hash, body }
    }

    fn tell(&mut self, request: SentRequest) {
        self.count += 1;
        self.ready.push(SentRequest { number: self.count, ..request });
    }

    fn cut_off(&mut self, of: Option<Position>) {
        if let Some(open) = self.open.remove(&of) {
            self.tell(open);
        }
    }

    /// Nothing will come of what is open any more.
    fn close(&mut self) {
        let mut open: Vec<SentRequest> = self.open.drain().map(|(_, request)| request).collect();
        open.sort_by_key(|request| request.at);
        for request in open {
            self.tell(request);
        }
    }
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

/// A request from the one before it, whose bytes it takes over, and its new part; none if they do not fit.
fn whole(before: Vec<u8>, sent: &Sent, middle: &str) -> Option<Vec<u8>> {
    let (head, tail) = (usize::try_from(sent.head).ok()?, usize::try_from(sent.tail).ok()?);
    let end = before.len().checked_sub(tail).filter(|end| head <= *end)?;
    let mut body = before;
    let tail = body.split_off(end);
    body.truncate(head);
    body.extend_from_slice(middle.as_bytes());
    body.extend_from_slice(&tail);
    Some(body)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use ow_model::{ModelFailure, Usage};

    use super::*;

    fn journal(facts: Vec<Fact>) -> Vec<RecordedFact> {
        let at = Timestamp::UNIX_EPOCH;
        (0..).zip(facts).map(|(seq, fact)| RecordedFact { seq, at, fact }).collect()
    }

    fn asked(sent: Option<Sent>) -> Fact {
        Fact::Asked { model: "a:b".into(), purpose: Purpose::Turn, reserved: Usage::default(), sent }
    }

    fn failed(sent: Option<Sent>) -> Fact {
        Fact::ModelFailed { kind: ModelFailure::Unavailable, message: String::new(), partial: None, sent }
    }

    fn told(facts: Vec<Fact>) -> Vec<String> {
        let text = |request: SentRequest| match request.body {
            Some(SentBody::Whole(body)) => format!("{} {}", request.number, String::from_utf8_lossy(&body)),
            other => format!("{} {other:?}", request.number),
        };
        sent_requests(&journal(facts)).map(text).collect()
    }

    #[test]
    fn a_request_of_which_nothing_came_is_told_once_and_the_next_builds_on_it() {
        let mut log = SentLog::default();
        let body = |text: &str| Bytes::from(text.to_owned());
        let one = log.next(&body("one")).0;
        let two = log.next(&body("one, two")).0;
        let same = log.again(&body("one, two")).expect("it is the last");
        assert_eq!(log.again(&body("one")), None);
        let interrupted = Fact::TurnInterrupted { by: "ada".into(), partial: None };
        assert_eq!(
            told(vec![asked(Some(one.clone())), interrupted, asked(Some(two.clone())), failed(Some(same.clone()))]),
            ["1 one", "2 one, two"]
        );
        assert_eq!(
            told(vec![asked(Some(one.clone())), Fact::Resumed, asked(Some(two.clone()))]),
            ["1 one", "2 one, two"]
        );
        assert_eq!(told(vec![asked(Some(one.clone())), failed(None)]), Vec::<String>::new(), "it never went out");
        let facts = journal(vec![asked(Some(one)), Fact::Resumed, asked(Some(two))]);
        let next = SentLog::of(&facts).next(&body("one, two, three")).0;
        assert_eq!(next.head, 8, "a worker that takes over goes on from what was sent last");
    }

    #[test]
    fn a_request_that_another_model_takes_over_is_told_as_both_had_it() {
        let mut log = SentLog::default();
        let first = log.next(&Bytes::from("for a")).0;
        let second = log.next(&Bytes::from("for b")).0;
        assert_eq!(told(vec![asked(Some(first)), failed(Some(second))]), ["1 for a", "2 for b"]);
    }

    proptest! {
        #[test]
        fn what_was_sent_comes_back_byte_for_byte(
            bodies in prop::collection::vec("[aäß{}🦀]{0,12}|[aä]{200,600}", 0..8)
        ) {
            let (mut writer, mut before, mut facts) = (SentLog::default(), vec![], vec![]);
            for body in bodies {
                let body = Bytes::from(body);
                let (record, middle) = writer.next(&body);
                prop_assert_eq!(&record.middle, &ow_model::SentMiddle::Text(String::from_utf8(middle.clone()).unwrap()));
                let middle = String::from_utf8(middle).expect("it begins and ends between characters");
                before = whole(before, &record, &middle).expect("it fits");
                prop_assert_eq!(&before, &body);
                prop_assert_eq!(record.hash, BlobHash::of(&body));
                facts.extend([asked(Some(record)), failed(writer.again(&body))]);
            }
            let next = Bytes::from("ä and more");
            let taken_over = SentLog::of(&journal(facts)).next(&next).0;
            prop_assert_eq!(taken_over, writer.next(&next).0, "a worker that takes over goes on as this one would");
        }
    }
}
