use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

/// Hours of each day in which nothing is told.
#[derive(Clone, Debug)]
pub struct Hours {
    pub from: Time,
    /// Earlier than `from`: they go over midnight.
    pub until: Time,
    pub zone: TimeZone,
}

impl Hours {
    /// The first instant from `at` on that is not within these hours.
    ///
    /// An end that a change of the clocks skips is the first instant after it; one that comes twice is the first.
    #[must_use]
    pub fn end_after(&self, at: Timestamp) -> Timestamp {
        let Self { from, until, zone } = self;
        let local = at.to_zoned(zone.clone());
        let (day, time) = (local.date(), local.time());
        let (is_within, ends_tomorrow) = if from < until {
            (*from <= time && time < *until, false)
        } else {
            (time >= *from || time < *until, time >= *from)
        };
        if !is_within {
            return at;
        }
        let day = if ends_tomorrow { day.tomorrow().unwrap_or(day) } else { day };
        let end = day.to_datetime(*until).to_zoned(zone.clone()).map_or(at, |end| end.timestamp());
        // In the hour that comes twice, the end has been already.
        end.max(at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hours(from: &str, until: &str, zone: &str) -> Hours {
        Hours {
            from: from.parse().expect("a time"),
            until: until.parse().expect("a time"),
            zone: TimeZone::get(zone).expect("a zone"),
        }
    }

    #[test]
    fn what_falls_into_the_hours_comes_at_their_end() {
        for (from, until, zone, at, due) in [
            ("22:00", "07:00", "UTC", "2026-01-10T21:59:59Z", "2026-01-10T21:59:59Z"),
            ("22:00", "07:00", "UTC", "2026-01-10T22:00:00Z", "2026-01-11T07:00:00Z"),
            ("22:00", "07:00", "UTC", "2026-01-11T06:59:59Z", "2026-01-11T07:00:00Z"),
            ("22:00", "07:00", "UTC", "2026-01-11T07:00:00Z", "2026-01-11T07:00:00Z"),
            ("12:00", "13:30", "UTC", "2026-01-11T12:15:00Z", "2026-01-11T13:30:00Z"),
            ("12:00", "13:30", "UTC", "2026-01-11T14:15:00Z", "2026-01-11T14:15:00Z"),
            // A night an hour shorter, and one an hour longer.
            ("22:00", "07:00", "Europe/Paris", "2026-03-28T22:00:00Z", "2026-03-29T05:00:00Z"),
            ("22:00", "07:00", "Europe/Paris", "2026-10-24T21:00:00Z", "2026-10-25T06:00:00Z"),
            // The end is skipped: the first instant after the gap.
            ("22:00", "02:30", "Europe/Paris", "2026-03-28T23:00:00Z", "2026-03-29T01:30:00Z"),
            // The end comes twice: the first of the two, also seen from between them.
            ("22:00", "02:30", "Europe/Paris", "2026-10-24T23:00:00Z", "2026-10-25T00:30:00Z"),
            ("22:00", "02:30", "Europe/Paris", "2026-10-25T01:10:00Z", "2026-10-25T01:10:00Z"),
        ] {
            let at: Timestamp = at.parse().expect("an instant");
            assert_eq!(hours(from, until, zone).end_after(at).to_string(), due, "{from}-{until} {zone} {at}");
        }
    }

    proptest! {
        #[test]
        fn the_end_is_never_before_nor_a_day_away_and_is_itself_outside(
            from in 0_i8..24, until in 0_i8..24, minute in 0_i8..60, second in 1_700_000_000_i64..1_900_000_000,
            zone in prop::sample::select(vec!["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"]),
        ) {
            prop_assume!(from != until);
            let hours = Hours {
                from: Time::constant(from, minute, 0, 0),
                until: Time::constant(until, minute, 0, 0),
                zone: TimeZone::get(zone).expect("a zone"),
            };
            let at = Timestamp::from_second(second).expect("an instant");
            let end = hours.end_after(at);
            prop_assert!(end >= at);
            prop_assert!(end.duration_since(at).as_hours() <= 25);
            let again = hours.end_after(end);
            // An hour that comes twice, or was skipped, may lie at the end itself.
            prop_assert!(again.duration_since(end).as_hours() < 1);
        }
    }
}
