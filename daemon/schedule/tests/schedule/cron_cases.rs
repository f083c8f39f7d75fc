//! The cases of other people's bugs, whatever zone the process is in.

use std::process::Command;

use jiff::tz::TimeZone;
use ow_model::ZoneName;
use ow_schedule::{Cron, system_zone, zone};
use serde_json::Value;

use crate::support::{at, cases, text};

/// Names the zone that the process was started in by `whatever_the_process_zone`.
const CHILD: &str = "OW_SCHEDULE_TEST_ZONE";

fn next(expr: &str, tz: &str, from: &str, count: usize) -> Vec<String> {
    let cron = Cron::parse(expr).unwrap_or_else(|error| panic!("`{expr}`: {error}"));
    let zone = zone(&ZoneName(tz.into())).expect("a zone");
    let mut last = at(from);
    let mut found = Vec::new();
    for _ in 0..count {
        last = cron.next_after(last, &zone).expect("a next instant");
        found.push(last.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string());
    }
    found
}

#[test]
fn the_next_instants_are_those_of_the_cases() {
    if let Ok(expected) = std::env::var(CHILD) {
        assert_eq!(system_zone().expect("a name").0, expected, "TZ must have reached the test");
    }
    for case in cases("cron-next.json")["cases"].as_array().expect("cases") {
        let expect = &case["expect"];
        let count = expect.as_array().expect("a list").len();
        let found = Value::from(next(text(case, "expr"), text(case, "tz"), text(case, "from"), count));
        assert_eq!(&found, expect, "{case}");
    }
}

#[test]
fn what_is_refused_is_that_of_the_cases_and_names_its_field() {
    let cases = cases("cron-invalid.json");
    for case in cases["expressions"].as_array().expect("cases") {
        let error = Cron::parse(text(case, "expr")).expect_err(text(case, "why")).to_string();
        assert!(!error.is_empty() && !error.ends_with('.'), "{error}");
    }
    for case in cases["zones"].as_array().expect("cases") {
        let found = zone(&ZoneName(text(case, "tz").into()));
        assert_eq!(found.is_ok(), text(case, "expect") == "ok", "{case}: {found:?}");
    }
}

#[test]
fn the_cases_hold_whatever_the_process_zone() {
    // The environment of a running process cannot be changed safely; another one is started in each zone.
    for tz in ["UTC", "Asia/Tokyo", "America/New_York"] {
        let this = std::env::current_exe().expect("the test's own program");
        let output = Command::new(this)
            .args(["--exact", "cron_cases::the_next_instants_are_those_of_the_cases"])
            .env("TZ", tz)
            .env(CHILD, tz)
            .output()
            .expect("the test starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "TZ={tz}: {said}");
    }
}

#[test]
fn an_error_names_the_field_the_value_and_the_remedy() {
    let table = [
        ("60 * * * *", "minute field: `60` is out of range; use 0-59"),
        ("* 24 * * *", "hour field: `24` is out of range; use 0-23"),
        ("* * 0 * *", "day-of-month field: `0` is out of range; use 1-31"),
        ("* * * 0 *", "month field: `0` is out of range; use 1-12"),
        ("* * * * 8", "day-of-week field: `8` is out of range; use 0-7"),
        ("60 * * * * *", "second field: `60` is out of range; use 0-59"),
        ("*/0 * * * *", "minute field: `*/0` needs a step of 1 to 60 after `/`"),
        (
            "*/90 * * * *",
            "minute field: `*/90` steps by more than the field has; use at most 60, or an `every` trigger",
        ),
        ("*/-5 * * * *", "minute field: `*/-5` needs a step of 1 to 60 after `/`"),
        ("5-1 * * * *", "minute field: `5-1` runs backwards; write it as two ranges: `5-59,0-1`"),
        ("0 0 * * 6-1", "day-of-week field: `6-1` runs backwards; write it as two ranges: `6-6,0-1`"),
        ("1,,2 * * * *", "minute field: `` is empty: there is a comma too many"),
        ("1, * * * *", "minute field: `` is empty: there is a comma too many"),
        ("0 0 * * 1#6", "day-of-week field: `1#6` must have 1 to 5 after `#`: `1#2` is the second Monday"),
        ("0 0 * * L", "day-of-week field: `l` needs a day: `5L` is the last Friday of the month"),
        (
            "0 0 * mon *",
            "month field: `mon` is not understood; use `*`, 1-12 or jan-dec, a list, a range or a step `*/3`",
        ),
        ("", "the cron expression is empty; write five fields, as in `0 9 * * mon-fri`"),
        (
            "* * * * * * *",
            "expected 5 fields (minute hour day-of-month month day-of-week) or 6 with the second first, found 7 in `* * * * * * *`",
        ),
        (
            "@every",
            "`@every` is not a schedule name; known are `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight` and `@hourly`",
        ),
        ("0 0 31 2,4,6,9,11 *", "`0 0 31 2,4,6,9,11 *` never comes: no month that it names has that day-of-month"),
    ];
    for (expr, error) in table {
        assert_eq!(Cron::parse(expr).expect_err(expr).to_string(), error, "`{expr}`");
    }
}

#[test]
fn what_is_not_a_schedule_is_refused_whatever_its_shape() {
    let long = "1,".repeat(1000) + "1 * * * *";
    let refused = [
        "   ",
        "@",
        "@reboot",
        "@DAYLY",
        "+5 * * * *",
        "-1 * * * *",
        "0x5 * * * *",
        "５ * * * *",
        "1-2-3 * * * *",
        "1/2/3 * * * *",
        "/5 * * * *",
        "*5 * * * *",
        "5* * * * *",
        "1- * * * *",
        "-5 * * * *",
        "*-5 * * * *",
        "? * * * *",
        "* ? * * *",
        "L * * * *",
        "* * * L *",
        "0 0 WL * *",
        "0 0 W15 * *",
        "0 0 1-5W * *",
        "0 0 32W * *",
        "0 0 L-3 * *",
        "0 0 ?,1 * *",
        "0 0 * * ?/2",
        "0 0 * * 8L",
        "0 0 * * 1#",
        "0 0 * * #1",
        "0 0 * * mon-fri#2",
        "0 0 * * monday",
        "0 0 1 january *",
        "0 0 * * +1",
        "0 0 31 4 ?",
        "0 0 31W 6 *",
        "0 0 30,31 feb *",
        "99999999999 * * * *",
        "0 9 * * 1\u{202e}",
        "0 9 * * \u{7f}",
        long.as_str(),
    ];
    for expr in refused {
        let error = Cron::parse(expr).expect_err(expr).to_string();
        assert!(!error.chars().any(|letter| letter.is_control() || letter == '\u{202e}'), "{error:?}");
    }
}

#[test]
fn both_spellings_mean_the_same() {
    let table = [
        ("@yearly", "0 0 1 1 *"),
        ("@ANNUALLY", "0 0 1 jan ?"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * sun"),
        ("@daily", "0 0 0 * * *"),
        ("@midnight", "@daily"),
        ("@hourly", "0 * * * *"),
        ("0 9 * * 7", "0 9 * * 0"),
        ("0 9 * * mon-sun", "0 9 * * 1-7"),
        ("0 9 * * MON-Fri", "0 9 ? * 1-5"),
        ("0 9 * * 7L", "0 9 * * sunl"),
        ("0 9 * * 7#2", "0 9 * * Sun#2"),
        ("0 9 * JAN-mar *", "0 9 * 1-3 *"),
        ("10/15 5 * * *", "10-59/15 5 * * *"),
        ("05 09 01 01 *", "5 9 1 1 *"),
        ("0\u{a0}9 * * *", "0 9 * * *"),
        ("0 0 15w * *", "0 0 15W * *"),
        ("0 0 lw * *", "0 0 LW * *"),
        ("0-59 5 * * *", "0-29,30-59 5 * * *"),
    ];
    for (one, other) in table {
        assert_eq!(Cron::parse(one), Cron::parse(other), "`{one}` and `{other}`");
        assert!(Cron::parse(one).is_ok(), "`{one}`");
    }
}

#[test]
fn the_days_and_the_clock_changes_that_others_get_wrong() {
    let table: [(&str, &str, &str, &[&str]); 26] = [
        // Days.
        ("0 0 LW * *", "UTC", "2026-01-01T00:00:00Z", &["2026-01-30T00:00:00+00:00", "2026-02-27T00:00:00+00:00"]),
        ("0 0 1W * *", "UTC", "2026-07-15T00:00:00Z", &["2026-08-03T00:00:00+00:00", "2026-09-01T00:00:00+00:00"]),
        ("0 0 31W * *", "UTC", "2026-01-01T12:00:00Z", &["2026-01-30T00:00:00+00:00", "2026-03-31T00:00:00+00:00"]),
        ("0 0 29W 2 *", "UTC", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00+00:00", "2032-02-27T00:00:00+00:00"]),
        ("0 0 * * 5#5", "UTC", "2026-01-01T00:00:00Z", &["2026-01-30T00:00:00+00:00", "2026-05-29T00:00:00+00:00"]),
        ("0 0 * 2 1#5", "UTC", "2026-01-01T00:00:00Z", &["2044-02-29T00:00:00+00:00", "2072-02-29T00:00:00+00:00"]),
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00+00:00"]),
        (
            "0 0 L,15 * mon#1",
            "UTC",
            "2026-02-20T00:00:00Z",
            &["2026-02-28T00:00:00+00:00", "2026-03-02T00:00:00+00:00"],
        ),
        ("0 9 */2 * 1", "UTC", "2026-03-01T10:00:00Z", &["2026-03-02T09:00:00+00:00", "2026-03-03T09:00:00+00:00"]),
        ("0 0 30 2 1", "UTC", "2026-01-30T00:00:00Z", &["2026-02-02T00:00:00+00:00"]),
        // A gap of half an hour: Lord Howe skips 02:00 to 02:30, and repeats 01:30 to 02:00.
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-02T16:00:00Z",
            &["2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"],
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04T00:00:00Z",
            &["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"],
        ),
        (
            "*/15 * * * *",
            "Australia/Lord_Howe",
            "2026-04-04T14:40:00Z",
            &[
                "2026-04-05T01:45:00+11:00",
                "2026-04-05T01:30:00+10:30",
                "2026-04-05T01:45:00+10:30",
                "2026-04-05T02:00:00+10:30",
            ],
        ),
        // A gap at midnight, and an overlap that shows the day before once more.
        (
            "0 0 * * *",
            "America/Sao_Paulo",
            "2018-11-03T12:00:00Z",
            &["2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"],
        ),
        (
            "@daily",
            "America/Sao_Paulo",
            "2018-02-17T12:00:00Z",
            &["2018-02-18T00:00:00-03:00", "2018-02-19T00:00:00-03:00"],
        ),
        (
            "30 23 * * *",
            "America/Sao_Paulo",
            "2018-02-17T12:00:00Z",
            &["2018-02-17T23:30:00-02:00", "2018-02-18T23:30:00-03:00"],
        ),
        (
            "30 23 * * sat",
            "America/Sao_Paulo",
            "2018-02-17T12:00:00Z",
            &["2018-02-17T23:30:00-02:00", "2018-02-24T23:30:00-03:00"],
        ),
        (
            "0 0 * * *",
            "Africa/Cairo",
            "2026-04-23T12:00:00Z",
            &["2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"],
        ),
        // Apia had no 30 December 2011: that day's run comes at the first instant after it.
        (
            "0 9 * * *",
            "Pacific/Apia",
            "2011-12-29T00:00:00Z",
            &["2011-12-29T09:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"],
        ),
        (
            "0 9 * * fri",
            "Pacific/Apia",
            "2011-12-24T00:00:00Z",
            &["2011-12-31T00:00:00+14:00", "2012-01-06T09:00:00+14:00"],
        ),
        ("0 */6 * * *", "Pacific/Apia", "2011-12-30T04:00:00Z", &["2011-12-31T00:00:00+14:00"]),
        // Several fixed times in one gap are one run; one that exists there as well is the same run.
        (
            "0,30 2 * * *",
            "America/New_York",
            "2026-03-08T05:00:00Z",
            &["2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"],
        ),
        (
            "0 2,3 * * *",
            "America/New_York",
            "2026-03-08T05:00:00Z",
            &["2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"],
        ),
        (
            "*/10 30 2 * * *",
            "America/New_York",
            "2026-03-08T05:00:00Z",
            &["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"],
        ),
        // Real time: what the clock skips is not made up for, what it shows twice comes twice.
        ("*/30 2 * * *", "America/New_York", "2026-03-08T05:00:00Z", &["2026-03-09T02:00:00-04:00"]),
        ("30 * * * *", "America/New_York", "2025-11-01T05:00:00Z", &["2025-11-01T01:30:00-04:00"]),
    ];
    for (expr, tz, from, expect) in table {
        assert_eq!(next(expr, tz, from, expect.len()), expect, "`{expr}` in {tz}");
    }
}

#[test]
fn the_end_of_time_is_an_answer() {
    let cron = Cron::parse("0 0 29 2 *").expect("an expression");
    assert_eq!(cron.next_after("9999-01-01T00:00:00Z".parse().expect("an instant"), &TimeZone::UTC), None);
    assert_eq!(cron.next_after(jiff::Timestamp::MAX, &TimeZone::UTC), None);
    assert!(cron.next_after(jiff::Timestamp::MIN, &TimeZone::UTC).is_some());
}
