//! The present, and instants as a person reads and writes them: in their own zone, and relative.

use std::cell::OnceCell;
use std::path::{Component, Path};

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use ow_model::Span;

use crate::escape;
use crate::failure::Failure;

/// One present for a whole command, and the person's zone.
pub(crate) struct Clock {
    now: Timestamp,
    zone: OnceCell<TimeZone>,
}

/// What a person means by a time: an instant, or a whole day.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Asked {
    Instant(Timestamp),
    Day { day: Date, from: Timestamp, until: Timestamp },
}

/// Which way from now a bare span such as `2h` counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Toward {
    Past,
    Future,
}

impl Clock {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { now, zone: OnceCell::new() }
    }

    #[cfg(test)]
    pub(crate) fn fixed(now: &str, zone: TimeZone) -> Self {
        Self { now: now.parse().expect("a test's instant"), zone: OnceCell::from(zone) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    fn zone(&self) -> &TimeZone {
        self.zone.get_or_init(persons_zone)
    }

    /// An instant of the wire as `2026-03-08 03:00:00 (in 2 h)`; a text that is none is shown as it is.
    pub(crate) fn when(&self, text: &str) -> String {
        let Ok(at) = text.parse::<Timestamp>() else { return escape::line(text).into_owned() };
        format!("{} ({})", self.local_of(at), relative(at.duration_since(self.now)))
    }

    pub(crate) fn when_or(&self, text: Option<&str>, none: &str) -> String {
        text.map_or_else(|| none.to_owned(), |text| self.when(text))
    }

    /// The name of the person's zone; `local time` where the system does not tell one.
    pub(crate) fn zone_name(&self) -> &str {
        self.zone().iana_name().unwrap_or("local time")
    }

    /// Without the relative part.
    pub(crate) fn local(&self, text: &str) -> String {
        text.parse().map_or_else(|_| escape::line(text).into_owned(), |at| self.local_of(at))
    }

    pub(crate) fn local_of(&self, at: Timestamp) -> String {
        at.to_zoned(self.zone().clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// A sentence of owd's, with the instants in it as the person's own clock shows them.
    pub(crate) fn in_sentence(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(begin) = rest.find(|letter: char| letter.is_ascii_digit()) {
            let length = rest[begin..].find(|letter: char| !(letter.is_ascii_alphanumeric() || "-:.".contains(letter)));
            let end = length.map_or(rest.len(), |length| begin + length);
            // A full stop ends the sentence, not the instant.
            let word = rest[begin..end].trim_end_matches(['.', ':']);
            let end = begin + word.len();
            shown.push_str(&rest[..begin]);
            match word.parse::<Timestamp>() {
                Ok(at) if word.ends_with('Z') => shown.push_str(&self.local_of(at)),
                _ => shown.push_str(word),
            }
            rest = &rest[end..];
        }
        shown + rest
    }

    /// Reads a time as a person writes it.
    ///
    /// RFC 3339 with offset or zone, a local `2026-03-08 03:00`, a time of today `03:00`, a day (`2026-03-08`,
    /// `today`, `yesterday`, `tomorrow`), `now`, or a span from now (`2h`, `90m`).
    pub(crate) fn read(&self, text: &str, toward: Toward) -> Result<Asked, Failure> {
        let wrong = || {
            Failure::usage(format!("`{text}` is not a time")).hint(
                "write `2026-03-08T03:00:00Z`, `2026-03-08 03:00`, `03:00`, a day such as `2026-03-08` or `yesterday`, \
                 or a span from now such as `2h`",
            )
        };
        let trimmed = text.trim();
        let today = self.now.to_zoned(self.zone().clone()).date();
        let day = match trimmed {
            "now" => return Ok(Asked::Instant(self.now)),
            "today" => Some(today),
            "yesterday" => today.yesterday().ok(),
            "tomorrow" => today.tomorrow().ok(),
            _ => None,
        };
        if let Some(day) = day {
            return self.whole(day).ok_or_else(wrong);
        }
        if let Ok(at) = trimmed.parse::<Timestamp>() {
            return Ok(Asked::Instant(at));
        }
        if let Ok(zoned) = trimmed.parse::<jiff::Zoned>() {
            return Ok(Asked::Instant(zoned.timestamp()));
        }
        if let Ok(span) = trimmed.trim_end_matches(" ago").trim_start_matches('-').parse::<Span>() {
            let back = toward == Toward::Past || trimmed.ends_with("ago") || trimmed.starts_with('-');
            let signed = if back { -span.signed() } else { span.signed() };
            return self.now.checked_add(signed).map(Asked::Instant).map_err(|_| wrong());
        }
        if trimmed.contains(':') {
            let local = match trimmed.parse::<Time>() {
                Ok(time) if !trimmed.contains('-') => today.to_datetime(time),
                _ => trimmed.parse::<DateTime>().map_err(|_| wrong())?,
            };
            return self.at(local).map(Asked::Instant).ok_or_else(wrong);
        }
        trimmed.parse::<Date>().ok().and_then(|day| self.whole(day)).ok_or_else(wrong)
    }

    /// The instant meant; for a day its end or its beginning, whichever includes the day.
    pub(crate) fn read_instant(&self, text: &str, toward: Toward) -> Result<Timestamp, Failure> {
        Ok(match (self.read(text, toward)?, toward) {
            (Asked::Instant(at), _) => at,
            (Asked::Day { from, .. }, Toward::Past) => from,
            (Asked::Day { until, .. }, Toward::Future) => until,
        })
    }

    fn whole(&self, day: Date) -> Option<Asked> {
        let next = day.checked_add(1.day()).ok()?;
        Some(Asked::Day { day, from: self.at(day.into())?, until: self.at(next.into())? })
    }

    fn at(&self, local: DateTime) -> Option<Timestamp> {
        self.zone().to_timestamp(local).ok()
    }
}

/// How far an instant is, in one or two units: `in 2 h 5 min`, `3 days ago`, `now`.
pub(crate) fn relative(distance: SignedDuration) -> String {
    let seconds = distance.as_secs().unsigned_abs();
    let text = match seconds {
        0 => return "now".into(),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..36_000 if seconds % 3600 >= 60 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    };
    if distance.is_negative() { format!("{text} ago") } else { format!("in {text}") }
}

/// A span of milliseconds as `1 h 5 min`, `3.2 s`, `12 ms`.
pub(crate) fn span(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1000),
        _ => format!("{} h {} min", millis / 3_600_000, millis % 3_600_000 / 60_000),
    }
}

const ZONEINFO: &str = "/usr/share/zoneinfo";

/// The zone of `TZ`, else the system's.
///
/// Reads the one file that is needed: jiff's own way lists the whole database first, which takes longer than all
/// else that a command does. Where the file is not in the usual place, that way is taken all the same.
fn persons_zone() -> TimeZone {
    let named = match std::env::var("TZ") {
        Ok(name) if !name.is_empty() => Some(name.trim_start_matches(':').to_owned()),
        _ => std::fs::read_link("/etc/localtime")
            .ok()
            .and_then(|link| Some(link.to_str()?.split_once("/zoneinfo/")?.1.to_owned())),
    };
    named.and_then(|name| from_file(&name)).unwrap_or_else(TimeZone::system)
}

fn from_file(name: &str) -> Option<TimeZone> {
    let relative = Path::new(name);
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let bytes = std::fs::read(Path::new(ZONEINFO).join(relative)).ok()?;
    TimeZone::tzif(name, &bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        let zone = TimeZone::get("Europe/Paris").expect("the database has it");
        Clock::fixed("2026-03-08T12:00:00Z", zone)
    }

    #[test]
    fn instants_are_local_and_relative() {
        let clock = clock();
        assert_eq!(clock.when("2026-03-08T14:05:00Z"), "2026-03-08 15:05:00 (in 2 h 5 min)");
        assert_eq!(clock.when("2026-03-05T12:00:00Z"), "2026-03-05 13:00:00 (3 days ago)");
        assert_eq!(clock.when("2026-03-08T12:00:00Z"), "2026-03-08 13:00:00 (now)");
        assert_eq!(clock.when("watch:/tmp/a\u{1b}"), "watch:/tmp/a\\u{1b}");
    }

    #[test]
    fn a_person_writes_times_in_many_ways() {
        let clock = clock();
        let cases = [
            ("2026-03-08T03:00:00Z", "2026-03-08T03:00:00Z"),
            ("2026-03-08 03:00", "2026-03-08T02:00:00Z"),
            ("2026-03-08T03:00:30", "2026-03-08T02:00:30Z"),
            ("06:30", "2026-03-08T05:30:00Z"),
            ("2h", "2026-03-08T10:00:00Z"),
            ("90m ago", "2026-03-08T10:30:00Z"),
            ("now", "2026-03-08T12:00:00Z"),
        ];
        for (text, want) in cases {
            assert_eq!(clock.read(text, Toward::Past), Ok(Asked::Instant(want.parse().unwrap())), "{text}");
        }
        let day = |from: &str, until: &str| {
            let from: Timestamp = from.parse().unwrap();
            let day = from.to_zoned(clock.zone().clone()).date();
            Asked::Day { day, from, until: until.parse().unwrap() }
        };
        assert_eq!(clock.read("yesterday", Toward::Past), Ok(day("2026-03-06T23:00:00Z", "2026-03-07T23:00:00Z")));
        // The day of the clock change has 23 hours.
        assert_eq!(clock.read("2026-03-29", Toward::Past), Ok(day("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z")));
        assert_eq!(clock.read_instant("24h", Toward::Future), Ok("2026-03-09T12:00:00Z".parse().unwrap()));
        for bad in ["", "soon", "25:00", "2026-13-01", "3 fortnights"] {
            assert!(clock.read(bad, Toward::Past).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_zone_is_read_from_its_own_file_only() {
        assert_eq!(
            from_file("Asia/Tokyo").and_then(|zone| zone.iana_name().map(str::to_owned)).as_deref(),
            Some("Asia/Tokyo")
        );
        assert!(from_file("../../etc/passwd").is_none());
        assert!(from_file("/etc/localtime").is_none());
    }

    #[test]
    fn an_instant_in_a_sentence_is_shown_in_the_persons_zone() {
        let clock = Clock::fixed("2026-03-08T12:00:00Z", TimeZone::get("Europe/Paris").unwrap());
        for (told, shown) in [
            ("done by ada at 2026-03-08T09:51:38.141798624Z", "done by ada at 2026-03-08 10:51:38"),
            ("from 2026-03-08T09:00:00Z to 2026-03-08T10:00:00Z.", "from 2026-03-08 10:00:00 to 2026-03-08 11:00:00."),
            ("(2 times, the last at 2026-07-01T00:00:00Z)", "(2 times, the last at 2026-07-01 02:00:00)"),
            ("exit status 3 of 1.2.3 on 2026-03-08; 12:30 é9", "exit status 3 of 1.2.3 on 2026-03-08; 12:30 é9"),
        ] {
            assert_eq!(clock.in_sentence(told), shown);
        }
    }
}
