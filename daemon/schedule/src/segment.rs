use std::ops::Range;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

/// A stretch of time in which a zone's offset stays the same, so that local time is instants shifted.
///
/// Everything that clock changes do to a schedule happens where two of these meet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    offset: Offset,
    /// The clock change that begins it, and the offset that was in force before.
    begin: Option<(Timestamp, Offset)>,
    /// The first instant after it.
    end: Option<Timestamp>,
}

impl Segment {
    /// Returns the segment that holds `at`.
    pub(crate) fn at(zone: &TimeZone, at: Timestamp) -> Self {
        let tick = jiff::SignedDuration::from_nanos(1);
        let before = |start: Timestamp| start.checked_sub(tick).map_or(start, |instant| instant);
        let begin = at
            .checked_add(tick)
            .ok()
            .and_then(|inclusive| zone.preceding(inclusive).next())
            .map(|change| (change.timestamp(), zone.to_offset(before(change.timestamp()))));
        let end = zone.following(at).next().map(|change| change.timestamp());
        Self { offset: zone.to_offset(at), begin, end }
    }

    /// Returns the segment after this one.
    pub(crate) fn following(self, zone: &TimeZone) -> Option<Self> {
        let start = self.end?;
        let end = zone.following(start).next().map(|change| change.timestamp());
        Some(Self { offset: zone.to_offset(start), begin: Some((start, self.offset)), end })
    }

    pub(crate) fn start(self) -> Option<Timestamp> {
        self.begin.map(|(start, _)| start)
    }

    pub(crate) fn end(self) -> Option<Timestamp> {
        self.end
    }

    pub(crate) fn local(self, at: Timestamp) -> DateTime {
        self.offset.to_datetime(at)
    }

    /// Returns the instant at which the local clock shows `local` in this segment, if it does.
    ///
    /// Only the end is checked: callers look from the segment's start onwards.
    pub(crate) fn instant(self, local: DateTime) -> Option<Timestamp> {
        self.offset.to_timestamp(local).ok().filter(|at| self.end.is_none_or(|end| *at < end))
    }

    /// Returns the instant of a local time that is known to lie in this segment.
    pub(crate) fn instant_of(self, local: DateTime) -> Option<Timestamp> {
        self.offset.to_timestamp(local).ok()
    }

    pub(crate) fn first_local(self) -> DateTime {
        self.begin.map_or(DateTime::MIN, |(start, _)| self.offset.to_datetime(start))
    }

    /// Returns the first local time that the previous segment has not shown yet: later than the first after a clock
    /// was put back.
    pub(crate) fn first_new_local(self) -> DateTime {
        self.begin
            .map_or(DateTime::MIN, |(start, before)| self.offset.to_datetime(start).max(before.to_datetime(start)))
    }

    /// Returns the local times that the clock skipped at its beginning.
    pub(crate) fn gap(self) -> Option<Range<DateTime>> {
        let (start, before) = self.begin?;
        (before < self.offset).then(|| before.to_datetime(start)..self.offset.to_datetime(start))
    }
}
