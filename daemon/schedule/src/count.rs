use std::collections::HashMap;
use std::ops::Range;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::cron::{Cron, next_second, whole_second};
use crate::every::{Every, Phase, TICK};
use crate::segment::Segment;

const DAY_SECONDS: u32 = 86_400;

/// How many instants of `(after, until]` some expression has and no row of `every` has.
///
/// Goes through days and clock changes, not through instants: within a stretch of constant offset, all days on which
/// the same expressions match have the same times.
pub(crate) fn crons_without(
    crons: &[Cron],
    every: &[Every],
    zone: &TimeZone,
    after: Timestamp,
    until: Timestamp,
) -> u64 {
    if crons.is_empty() || after >= until {
        return 0;
    }
    let all = Mask::of(crons, |_| true);
    let real_time = Mask::of(crons, |cron| cron.follows_real_time);
    // Only what every row has on whole seconds can be an expression's instant too.
    let rows: Vec<Every> = every.iter().filter_map(|row| row.on_whole_seconds()).collect();
    let mut tally = Tally { crons, rows: &rows, times: HashMap::new(), taken: HashMap::new() };
    let mut total = 0;
    let mut segment = Segment::at(zone, after);
    let Some(mut from) = next_second(segment.local(after)) else { return 0 };
    loop {
        let end = match segment.end() {
            Some(end) if end <= until => segment.local(end),
            _ => match next_second(segment.local(until)) {
                Some(end) => end,
                None => return total,
            },
        };
        // What the clock shows a second time is new only to those that follow real time.
        let new = from.max(segment.first_new_local()).min(end.max(from));
        total += tally.count(segment, from..new, real_time);
        total += tally.count(segment, new..end, all);

        match segment.following(zone) {
            Some(following) if following.start().is_some_and(|start| start <= until) => segment = following,
            _ => return total,
        }
        from = segment.first_local();
        if let (Some(gap), Some(start)) = (segment.gap(), segment.start()) {
            let skipped = crons
                .iter()
                .filter(|cron| !cron.follows_real_time)
                .any(|cron| cron.next_local(gap.start).is_some_and(|local| local < gap.end));
            let named = || crons.iter().any(|cron| cron.next_local(gap.end) == Some(gap.end));
            if skipped && !named() && !every.iter().any(|every| every.contains(start)) {
                total += 1;
            }
        }
    }
}

/// A set of the task's expressions.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Mask(u64);

impl Mask {
    fn of(crons: &[Cron], holds: impl Fn(&Cron) -> bool) -> Self {
        let bits = crons.iter().enumerate().filter(|(_, cron)| holds(cron));
        Self(bits.fold(0, |mask, (index, _)| mask | 1 << index))
    }

    fn has(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }
}

struct Tally<'a> {
    crons: &'a [Cron],
    rows: &'a [Every],
    /// The times of a day on which exactly these expressions match.
    times: HashMap<Mask, Times>,
    /// How many of a day's times the rows have too, by where in the day each row stands.
    taken: HashMap<(Mask, Vec<Phase>), u64>,
}

impl Tally<'_> {
    /// Counts in local time, which in one segment is as good as instants.
    fn count(&mut self, segment: Segment, range: Range<DateTime>, active: Mask) -> u64 {
        if range.is_empty() || active.0 == 0 {
            return 0;
        }
        let (first, last) = (range.start.date(), range.end.date());
        let mut total = 0;
        let mut month = first.first_of_month();
        loop {
            let days: Vec<u64> = self
                .crons
                .iter()
                .enumerate()
                .map(|(index, cron)| if active.has(index) { cron.days_of(month.year(), month.month()) } else { 0 })
                .collect();
            let any = days.iter().fold(0, |any, days| any | days);
            for day in 1..=month.days_in_month() {
                let date = Date::constant(month.year(), month.month(), day);
                if any & (1 << day) != 0 && first <= date && date <= last {
                    let matching = (0..days.len()).filter(|index| days[*index] & (1 << day) != 0);
                    let mask = Mask(matching.fold(0, |mask, index| mask | 1 << index));
                    let from = if date == first { second_of_day(range.start) } else { 0 };
                    let to = if date == last { second_of_day(range.end) } else { DAY_SECONDS };
                    total += self.count_day(segment, date, from..to, mask);
                }
            }
            match month.checked_add(1.month()) {
                Ok(next) if next <= last => month = next,
                _ => return total,
            }
        }
    }

    fn count_day(&mut self, segment: Segment, date: Date, seconds: Range<u32>, mask: Mask) -> u64 {
        let crons = self.crons;
        let times = self.times.entry(mask).or_insert_with(|| Times::of(crons, mask));
        let whole = seconds == (0..DAY_SECONDS);
        let named = if whole { times.total } else { times.within(&seconds) };
        let Some(midnight) = segment.instant_of(date.to_datetime(Time::midnight())) else { return named };
        if self.rows.is_empty() || named == 0 {
            return named;
        }
        let rows = self.rows;
        let phases: Option<Vec<_>> = rows.iter().map(|row| row.phase(midnight)).collect();
        named
            - match phases.filter(|_| whole) {
                Some(phases) => {
                    *self.taken.entry((mask, phases)).or_insert_with(|| taken(rows, times, midnight, &seconds))
                }
                None => taken(rows, times, midnight, &seconds),
            }
    }
}

/// How many of these seconds are times of the expressions and in a row too.
fn taken(rows: &[Every], times: &Times, midnight: Timestamp, seconds: &Range<u32>) -> u64 {
    let mut found = Vec::new();
    for row in rows {
        let mut last = midnight.checked_sub(TICK).unwrap_or(midnight);
        while let Some(next) = row.next_after(last) {
            let second = next.duration_since(midnight).as_secs();
            match u32::try_from(second) {
                Ok(second) if second < seconds.end => {
                    if second >= seconds.start && times.has(second) {
                        found.push(second);
                    }
                }
                _ => break,
            }
            last = next;
        }
    }
    found.sort_unstable();
    found.dedup();
    found.len() as u64
}

/// A day's seconds, one bit each.
struct Times {
    bits: Vec<u64>,
    total: u64,
}

impl Times {
    fn of(crons: &[Cron], mask: Mask) -> Self {
        let mut bits = vec![0_u64; DAY_SECONDS as usize / 64];
        let chosen: Vec<&Cron> =
            crons.iter().enumerate().filter(|(index, _)| mask.has(*index)).map(|(_, cron)| cron).collect();
        for minute_of_day in 0..24 * 60 {
            let (hour, minute) = (minute_of_day / 60, minute_of_day % 60);
            let seconds = chosen
                .iter()
                .filter(|cron| cron.hours & (1 << hour) != 0 && cron.minutes & (1 << minute) != 0)
                .fold(0_u64, |seconds, cron| seconds | cron.seconds);
            let (word, shift) = (minute_of_day * 60 / 64, minute_of_day * 60 % 64);
            bits[word] |= seconds << shift;
            if shift > 4 {
                bits[word + 1] |= seconds >> (64 - shift);
            }
        }
        let total = match chosen[..] {
            [cron] => cron.times_a_day(),
            _ => bits.iter().map(|word| u64::from(word.count_ones())).sum(),
        };
        Self { bits, total }
    }

    fn has(&self, second: u32) -> bool {
        self.bits[second as usize / 64] & (1 << (second % 64)) != 0
    }

    fn within(&self, seconds: &Range<u32>) -> u64 {
        (seconds.start..seconds.end).filter(|second| self.has(*second)).count() as u64
    }
}

fn second_of_day(local: DateTime) -> u32 {
    let local = whole_second(local);
    let unsigned = |value: i8| u32::from(value.unsigned_abs());
    (unsigned(local.hour()) * 60 + unsigned(local.minute())) * 60 + unsigned(local.second())
}
