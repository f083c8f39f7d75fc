use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::cron_error::CronError;
use crate::cron_parse;
use crate::segment::Segment;

/// A cron expression, checked: it has a next instant.
///
/// Fields are minute, hour, day of month, month, day of week; a sixth in front is the second. Lists, ranges, steps
/// and names (`jan`, `mon`, in any case) are understood; day of month also takes `L`, `LW` and `15W`, day of week
/// `5L`, `5#3`, and 0 and 7 are both Sunday. `?` is `*` in either day field. When both day fields are given, a day
/// matches when either does; only a field that is wholly `*` or `?` is not given. `10/15` is `10-59/15`. A range that
/// runs backwards and a step larger than its field are refused, since people mean different things by them.
///
/// Where a clock change skips a local time, a fixed time fires at the first instant after the gap; where one comes
/// twice, it fires the first time only. An expression with `*` or `*/n` in minute or hour follows real time instead:
/// it fires whenever the local clock matches, as often as it does.
///
/// ```
/// use jiff::{Timestamp, tz::TimeZone};
/// use ow_schedule::Cron;
///
/// let cron = Cron::parse("30 2 * * *")?;
/// let zone = TimeZone::get("America/New_York")?;
/// let next = cron.next_after("2026-03-07T12:00:00Z".parse()?, &zone).map(|at| at.to_zoned(zone).to_string());
/// assert_eq!(next.as_deref(), Some("2026-03-08T03:00:00-04:00[America/New_York]"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cron {
    /// Bit `n` is second, minute, hour or month `n`.
    pub(crate) seconds: u64,
    pub(crate) minutes: u64,
    pub(crate) hours: u64,
    pub(crate) months: u64,
    pub(crate) month_days: MonthDays,
    pub(crate) week_days: WeekDays,
    /// `*` or `*/n` in minute or hour.
    pub(crate) follows_real_time: bool,
}

/// The day-of-month field.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct MonthDays {
    /// The field is `*` or `?`.
    pub(crate) any: bool,
    /// Bit `n` is day `n`.
    pub(crate) days: u64,
    /// Bit `n`: the weekday nearest to day `n`, in the same month.
    pub(crate) nearest: u64,
    pub(crate) last: bool,
    pub(crate) last_weekday: bool,
}

/// The day-of-week field; bit 0 is Sunday.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct WeekDays {
    /// The field is `*` or `?`.
    pub(crate) any: bool,
    pub(crate) days: u64,
    /// The first to fifth of a weekday in the month.
    pub(crate) nth: [u64; 5],
    pub(crate) last: u64,
}

impl Cron {
    /// Reads an expression of five or six fields, or a name such as `@daily`.
    ///
    /// # Errors
    ///
    /// [`CronError`] names the field and the value at fault; an expression that no date can match is refused too.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        cron_parse::parse(text)
    }

    /// Returns the first instant later than `after`; none within the years that can be written (up to 9999).
    ///
    /// It is a whole second.
    #[must_use]
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut segment = Segment::at(zone, after);
        let mut from = next_second(segment.local(after))?;
        loop {
            if !self.follows_real_time {
                from = from.max(segment.first_new_local());
            }
            let local = self.next_local(from)?;
            if let Some(at) = segment.instant(local) {
                return Some(at);
            }
            segment = segment.following(zone)?;
            from = segment.first_local();
            if let Some(gap) = segment.gap()
                && !self.follows_real_time
                && self.next_local(gap.start).is_some_and(|local| local < gap.end)
            {
                return segment.start();
            }
        }
    }

    /// Returns the first matching local time that is not before `from`, which has no fraction of a second.
    pub(crate) fn next_local(&self, from: DateTime) -> Option<DateTime> {
        if self.days_of(from.year(), from.month()) & day_bit(from.day()) != 0
            && let Some(time) = self.next_time(from.time())
        {
            return Some(from.date().to_datetime(time));
        }
        Some(self.next_date(from.date())?.to_datetime(self.next_time(Time::midnight())?))
    }

    /// Returns the days of a month that match, as bits; none if the month does not.
    pub(crate) fn days_of(&self, year: i16, month: i8) -> u64 {
        if self.months & (1 << month) == 0 {
            return 0;
        }
        let first = Date::constant(year, month, 1);
        let month = Month {
            length: u32::from(first.days_in_month().unsigned_abs()),
            first_weekday: u32::from(first.weekday().to_sunday_zero_offset().unsigned_abs()),
        };
        let matching = match (self.month_days.any, self.week_days.any) {
            (true, true) => u64::MAX,
            (true, false) => self.week_days.in_month(month),
            (false, true) => self.month_days.in_month(month),
            (false, false) => self.week_days.in_month(month) | self.month_days.in_month(month),
        };
        matching & month.all()
    }

    /// How many times of a matching day match.
    pub(crate) fn times_a_day(&self) -> u64 {
        u64::from(self.seconds.count_ones() * self.minutes.count_ones() * self.hours.count_ones())
    }

    fn next_date(&self, after: Date) -> Option<Date> {
        let (mut year, mut month) = (after.year(), after.month());
        let mut later = !0_u64 << after.day() << 1;
        loop {
            let days = self.days_of(year, month) & later;
            if days != 0 {
                let day = i8::try_from(days.trailing_zeros()).expect("a month has at most 31 days");
                return Some(Date::constant(year, month, day));
            }
            later = !0;
            (year, month) = if month == 12 { (year.checked_add(1)?, 1) } else { (year, month + 1) };
            if year > 9999 {
                return None;
            }
        }
    }

    fn next_time(&self, from: Time) -> Option<Time> {
        let (hour, minute, second) = (
            u32::from(from.hour().unsigned_abs()),
            u32::from(from.minute().unsigned_abs()),
            u32::from(from.second().unsigned_abs()),
        );
        let (first_minute, first_second) = (next_bit(self.minutes, 0)?, next_bit(self.seconds, 0)?);
        let found_hour = next_bit(self.hours, hour)?;
        if found_hour > hour {
            return Some(time(found_hour, first_minute, first_second));
        }
        let found_minute = next_bit(self.minutes, minute);
        let found_second = next_bit(self.seconds, second);
        if let (Some(found), Some(second)) = (found_minute, found_second)
            && found == minute
        {
            return Some(time(hour, minute, second));
        }
        match next_bit(self.minutes, minute + 1) {
            Some(minute) => Some(time(hour, minute, first_second)),
            None => Some(time(next_bit(self.hours, hour + 1)?, first_minute, first_second)),
        }
    }
}

/// What the day fields need to know of a month.
#[derive(Clone, Copy)]
struct Month {
    length: u32,
    /// The weekday of its first day, Sunday being 0.
    first_weekday: u32,
}

impl Month {
    /// Bits 1 to `length`.
    fn all(self) -> u64 {
        (1 << (self.length + 1)) - 2
    }

    fn weekday(self, day: u32) -> u32 {
        (self.first_weekday + day - 1) % 7
    }

    /// The working day nearest to `day` within the month.
    fn nearest_weekday(self, day: u32) -> u32 {
        match self.weekday(day) {
            6 if day > 1 => day - 1,
            6 => day + 2,
            0 if day < self.length => day + 1,
            0 => day - 2,
            _ => day,
        }
    }
}

impl MonthDays {
    fn in_month(self, month: Month) -> u64 {
        let mut days = self.days;
        for day in (1..=month.length).filter(|day| self.nearest & (1 << day) != 0) {
            days |= 1 << month.nearest_weekday(day);
        }
        if self.last {
            days |= 1 << month.length;
        }
        if self.last_weekday {
            days |= 1 << month.nearest_weekday_before_end();
        }
        days
    }
}

impl Month {
    fn nearest_weekday_before_end(self) -> u32 {
        match self.weekday(self.length) {
            6 => self.length - 1,
            0 => self.length - 2,
            _ => self.length,
        }
    }
}

impl WeekDays {
    fn in_month(self, month: Month) -> u64 {
        let mut days = 0;
        for day in 1..=month.length {
            let weekday = 1 << month.weekday(day);
            let nth = self.nth[(day as usize - 1) / 7];
            let last = if day + 7 > month.length { self.last } else { 0 };
            if (self.days | nth | last) & weekday != 0 {
                days |= 1 << day;
            }
        }
        days
    }
}

/// Returns the first whole second that is later than `local`.
pub(crate) fn next_second(local: DateTime) -> Option<DateTime> {
    whole_second(local).checked_add(1.second()).ok()
}

/// Drops the fraction of a second.
pub(crate) fn whole_second(local: DateTime) -> DateTime {
    local.with().subsec_nanosecond(0).build().expect("zero is a fraction of a second")
}

fn next_bit(set: u64, from: u32) -> Option<u32> {
    let rest = set & (!0_u64).checked_shl(from)?;
    (rest != 0).then(|| rest.trailing_zeros())
}

fn day_bit(day: i8) -> u64 {
    1 << day
}

fn time(hour: u32, minute: u32, second: u32) -> Time {
    let small = |value: u32| i8::try_from(value).expect("the fields hold at most 59");
    Time::constant(small(hour), small(minute), small(second), 0)
}
