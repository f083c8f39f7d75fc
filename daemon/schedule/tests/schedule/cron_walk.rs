//! Cron against a walk over every instant, for expressions, zones and years at random.

use std::collections::{BTreeSet, HashSet};

use croner::parser::CronParser;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use ow_schedule::Cron;
use proptest::prelude::*;

/// One field: its text and the values that the text stands for, found while it was made and not by reading it.
#[derive(Clone, Debug)]
struct Field {
    text: String,
    values: BTreeSet<i8>,
    star: bool,
}

impl Field {
    /// Exactly `*`.
    fn is_any(&self) -> bool {
        self.text == "*" || self.text == "?"
    }
}

fn star(least: i8, most: i8) -> Field {
    Field { text: "*".into(), values: (least..=most).collect(), star: true }
}

fn item(least: i8, most: i8) -> impl Strategy<Value = Field> {
    let value = least..=most;
    prop_oneof![
        3 => value.clone().prop_map(|value| Field { text: value.to_string(), values: [value].into(), star: false }),
        2 => (value.clone(), value.clone(), 1_u8..=7, any::<bool>()).prop_map(|(a, b, step, stepped)| {
            let (first, last) = (a.min(b), a.max(b));
            let step = if stepped { step } else { 1 };
            let text = if stepped { format!("{first}-{last}/{step}") } else { format!("{first}-{last}") };
            Field { text, values: (first..=last).step_by(step.into()).collect(), star: false }
        }),
        1 => (1_u8..=5).prop_map(move |step| Field {
            text: format!("*/{step}"),
            values: (least..=most).step_by(step.into()).collect(),
            star: true,
        }),
        1 => (value, 1_u8..=5).prop_map(move |(first, step)| Field {
            text: format!("{first}/{step}"),
            values: (first..=most).step_by(step.into()).collect(),
            star: false,
        }),
    ]
}

fn field(least: i8, most: i8) -> impl Strategy<Value = Field> {
    prop_oneof![
        2 => Just(star(least, most)),
        3 => prop::collection::vec(item(least, most), 1..=3).prop_map(|items| Field {
            text: items.iter().map(|item| item.text.as_str()).collect::<Vec<_>>().join(","),
            values: items.iter().flat_map(|item| item.values.iter().copied()).collect(),
            star: items.iter().any(|item| item.star),
        }),
    ]
}

/// A day rule that a set of values cannot express.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Special {
    Last,
    LastWeekday,
    Nearest(i8),
    Nth { weekday: i8, nth: i8 },
    LastOf { weekday: i8 },
}

impl Special {
    fn text(self) -> String {
        match self {
            Self::Last => "L".into(),
            Self::LastWeekday => "LW".into(),
            Self::Nearest(day) => format!("{day}W"),
            Self::Nth { weekday, nth } => format!("{weekday}#{nth}"),
            Self::LastOf { weekday } => format!("{weekday}L"),
        }
    }

    /// By looking at the calendar day by day, as a person would.
    fn holds(self, local: DateTime) -> bool {
        let date = local.date();
        let weekday = |date: jiff::civil::Date| date.weekday().to_sunday_zero_offset();
        let works = |date: jiff::civil::Date| (1..=5).contains(&weekday(date));
        match self {
            Self::Last => date == date.last_of_month(),
            Self::LastWeekday => {
                let mut last = date.last_of_month();
                while !works(last) {
                    last = last.yesterday().expect("a day before");
                }
                date == last
            }
            Self::Nearest(day) => {
                let Ok(wanted) = date.with().day(day).build() else { return false };
                let near = [0, -1, 1, -2, 2].map(|days| wanted.checked_add(days.days()).expect("a day"));
                let found = near.into_iter().find(|near| works(*near) && near.month() == wanted.month());
                found == Some(date)
            }
            Self::Nth { weekday: wanted, nth } => weekday(date) == wanted && (date.day() - 1) / 7 + 1 == nth,
            Self::LastOf { weekday: wanted } => {
                weekday(date) == wanted && date.checked_add(7.days()).expect("a day").month() != date.month()
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Expression {
    second: Option<Field>,
    minute: Field,
    hour: Field,
    month_day: Field,
    month_special: Option<Special>,
    month: Field,
    week_day: Field,
    week_special: Option<Special>,
}

impl Expression {
    fn text(&self) -> String {
        let with = |field: &Field, special: Option<Special>| match special {
            Some(special) if field.is_any() => special.text(),
            Some(special) => format!("{},{}", field.text, special.text()),
            None => field.text.clone(),
        };
        let second = self.second.as_ref().map_or(String::new(), |second| format!("{} ", second.text));
        let (month_day, week_day) =
            (with(&self.month_day, self.month_special), with(&self.week_day, self.week_special));
        format!("{second}{} {} {month_day} {} {week_day}", self.minute.text, self.hour.text, self.month.text)
    }

    fn day_matches(&self, local: DateTime) -> bool {
        let given = |field: &Field, special: Option<Special>| special.is_some() || !field.is_any();
        let holds = |field: &Field, special: Option<Special>, value: i8| {
            (!field.is_any() && field.values.contains(&value)) || special.is_some_and(|special| special.holds(local))
        };
        let month_day = holds(&self.month_day, self.month_special, local.day());
        let week_day = holds(&self.week_day, self.week_special, local.weekday().to_sunday_zero_offset());
        self.month.values.contains(&local.month())
            && match (given(&self.month_day, self.month_special), given(&self.week_day, self.week_special)) {
                (false, false) => true,
                (true, false) => month_day,
                (false, true) => week_day,
                (true, true) => month_day || week_day,
            }
    }

    fn matches(&self, local: DateTime) -> bool {
        let second = self.second.as_ref().map_or(local.second() == 0, |second| second.values.contains(&local.second()));
        second
            && self.minute.values.contains(&local.minute())
            && self.hour.values.contains(&local.hour())
            && self.day_matches(local)
    }

    fn follows_real_time(&self) -> bool {
        self.minute.star || self.hour.star
    }
}

fn expression() -> impl Strategy<Value = Expression> {
    let month_special = prop_oneof![
        4 => Just(None),
        1 => Just(Some(Special::Last)),
        1 => Just(Some(Special::LastWeekday)),
        1 => (1_i8..=31).prop_map(|day| Some(Special::Nearest(day))),
    ];
    let week_special = prop_oneof![
        4 => Just(None),
        1 => (0_i8..=6, 1_i8..=5).prop_map(|(weekday, nth)| Some(Special::Nth { weekday, nth })),
        1 => (0_i8..=6).prop_map(|weekday| Some(Special::LastOf { weekday })),
    ];
    let days = (field(1, 31), month_special, field(1, 12), field(0, 6), week_special);
    (prop::option::weighted(0.3, field(0, 59)), field(0, 59), field(0, 23), days).prop_map(
        |(second, minute, hour, (month_day, month_special, month, week_day, week_special))| Expression {
            second,
            minute,
            hour,
            month_day,
            month_special,
            month,
            week_day,
            week_special,
        },
    )
}

/// Zones whose clocks change in every way that there is, and some that never do.
const ZONES: [&str; 16] = [
    "UTC",
    "Europe/Paris",
    "Europe/Dublin",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Havana",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Asia/Gaza",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Antarctica/Troll",
];

/// A zone and an instant, most often just before its clock changes.
fn place() -> impl Strategy<Value = (TimeZone, Timestamp)> {
    let zone = prop::sample::select(ZONES.to_vec()).prop_map(|name| TimeZone::get(name).expect("a zone"));
    // 1975 to 2037: later rules repeat, and offsets are whole minutes.
    (zone, 157_766_400_i64..2_114_380_800, prop_oneof![0_i64..18_000, 0_i64..100_000], prop::bool::weighted(0.8))
        .prop_map(|(zone, second, before, at_change)| {
            let instant = Timestamp::from_second(second).expect("an instant");
            let change = zone.following(instant).next().map(|change| change.timestamp());
            let instant = match change {
                Some(change) if at_change => change - SignedDuration::from_secs(before),
                _ => instant,
            };
            (zone, instant)
        })
}

/// All instants of `(after, until]` at which the expression fires, found by looking at each.
fn walk(expression: &Expression, zone: &TimeZone, after: Timestamp, until: Timestamp) -> Vec<Timestamp> {
    let step = SignedDuration::from_secs(if expression.second.is_some() { 1 } else { 60 });
    // From before any overlap of these zones, so that what the clock shows a second time is known to be that.
    let mut at = after - SignedDuration::from_hours(4);
    let fraction = at.as_second().rem_euclid(step.as_secs());
    at = Timestamp::from_second(at.as_second() - fraction).expect("an instant");
    let mut seen: HashSet<DateTime> = HashSet::new();
    let mut expected = zone.to_datetime(at);
    let mut fires = Vec::new();
    while at <= until {
        let local = zone.to_datetime(at);
        let fires_here = if expression.follows_real_time() {
            expression.matches(local)
        } else {
            let mut skipped = expected;
            let mut any = false;
            while skipped < local {
                any |= expression.matches(skipped);
                skipped = skipped.checked_add(step).expect("a local time");
            }
            any || (expression.matches(local) && !seen.contains(&local))
        };
        if fires_here && at > after {
            fires.push(at);
        }
        seen.insert(local);
        expected = local.checked_add(step).expect("a local time");
        at = at.checked_add(step).expect("an instant");
    }
    fires
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn it_fires_when_a_walk_over_all_instants_says(
        expression in expression(),
        (zone, after) in place(),
        days in 1_i64..6,
        offset in 0_i64..3600,
    ) {
        let text = expression.text();
        let Ok(cron) = Cron::parse(&text) else {
            // Only what no date can match is refused.
            prop_assert!(expression.week_day.is_any() && expression.week_special.is_none(), "`{text}` was refused");
            return Ok(());
        };
        let after = after - SignedDuration::from_secs(offset);
        let hours = if expression.second.is_some() { 6 } else { 24 * days };
        let until = after + SignedDuration::from_hours(hours);
        let expected = walk(&expression, &zone, after, until);
        let mut found = Vec::new();
        let mut last = after;
        while let Some(next) = cron.next_after(last, &zone).filter(|next| *next <= until) {
            prop_assert!(next > last);
            found.push(next);
            last = next;
        }
        prop_assert_eq!(found, expected, "`{}` in {:?} after {}", text, zone, after);
    }

    #[test]
    fn its_days_are_those_of_a_walk_over_all_days(expression in expression(), year in 1975_i16..2105) {
        let daily = Expression { minute: single(30), hour: single(12), second: None, ..expression };
        let text = daily.text();
        let Ok(cron) = Cron::parse(&text) else { return Ok(()) };
        let noon = jiff::civil::date(year, 1, 1).at(12, 30, 0, 0);
        let expected: Vec<DateTime> = (0..1500)
            .map(|day| noon.checked_add(day.days()).expect("a day"))
            .filter(|local| daily.day_matches(*local))
            .collect();
        let mut last = TimeZone::UTC.to_timestamp(noon).expect("an instant") - SignedDuration::from_secs(1);
        for local in expected {
            last = cron.next_after(last, &TimeZone::UTC).expect("a next instant");
            prop_assert_eq!(TimeZone::UTC.to_datetime(last), local, "`{}`", text);
        }
    }

    #[test]
    fn another_parser_reads_it_the_same(expression in expression(), second in 0_i64..4_000_000_000) {
        let text = expression.text();
        let (Ok(ours), Ok(theirs)) = (Cron::parse(&text), CronParser::new().parse(&text)) else { return Ok(()) };
        let mut last = Timestamp::from_second(second).expect("an instant").to_zoned(TimeZone::UTC);
        for _ in 0..5 {
            let found = ours.next_after(last.timestamp(), &TimeZone::UTC).expect("a next instant");
            last = theirs.find_next_occurrence(&last, false).expect("a next instant");
            prop_assert_eq!(found, last.timestamp(), "`{}`", text);
        }
    }

    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,40}|[-0-9*/,LW#? @a-z]{0,40}", second in -9_000_000_000_i64..9_000_000_000) {
        if let Ok(cron) = Cron::parse(&text) {
            let instant = Timestamp::from_second(second).expect("an instant");
            let next = cron.next_after(instant, &TimeZone::UTC);
            prop_assert!(next.is_some_and(|next| next > instant), "`{}`", text);
        }
    }
}

fn single(value: i8) -> Field {
    Field { text: value.to_string(), values: [value].into(), star: false }
}
