//! The merged stream of a task's instants: order, counting without walking, forecast.

use jiff::{SignedDuration, Timestamp};
use ow_model::{Span, TaskName, TaskSpec, Trigger};
use ow_schedule::{Schedule, check_edited_triggers, check_triggers, forecast};
use proptest::prelude::*;

use crate::support::{at, cron, every, seconds, task};

fn compiled(zone: &str, triggers: Vec<Trigger>) -> Schedule {
    Schedule::compile(&task(zone, triggers), at("2026-03-03T00:00:00Z")).expect("a schedule")
}

fn within(schedule: &Schedule, after: &str, until: &str) -> Vec<String> {
    schedule.occurrences(at(after), at(until)).map(|at| at.to_string()).collect()
}

#[test]
fn triggers_that_name_one_instant_are_one_occasion() {
    let triggers = vec![
        cron("0 */6 * * *"),
        cron("0 12 * * *"),
        every(Span::from_secs(4 * 3600)),
        Trigger::At(at("2026-03-03T12:00:00Z")),
        Trigger::At(at("2026-03-03T13:00:00Z")),
    ];
    let schedule = compiled("UTC", triggers);
    let expect = ["04", "06", "08", "12", "13", "16", "18", "20"].map(|hour| format!("2026-03-03T{hour}:00:00Z"));
    assert_eq!(within(&schedule, "2026-03-03T00:00:00Z", "2026-03-03T23:00:00Z"), expect);
    assert_eq!(schedule.count(at("2026-03-03T00:00:00Z"), at("2026-03-03T23:00:00Z")), 8);
}

#[test]
fn every_is_anchored_and_does_not_fire_at_its_anchor() {
    let anchor = Some(at("2026-03-04T01:30:00Z"));
    let schedule = compiled("UTC", vec![Trigger::Every { period: Span::from_secs(3600), anchor }]);
    let expect = ["2026-03-04T02:30:00Z", "2026-03-04T03:30:00Z"];
    assert_eq!(within(&schedule, "2026-01-01T00:00:00Z", "2026-03-04T04:00:00Z"), expect);
}

#[test]
fn ten_years_of_seconds_are_counted_without_walking() {
    let dense = vec![cron("* * * * * *"), every(Span::from_secs(7)), cron("*/5 * * * *")];
    let schedule = compiled("Europe/Paris", dense);
    // Walking these 315 million would not end while anyone looks.
    let (from, until) = (at("2026-03-03T00:00:00Z"), at("2036-03-03T00:00:00Z"));
    assert_eq!(schedule.count(from, until), until.duration_since(from).as_secs().unsigned_abs());
    assert_eq!(schedule.last_before(until), Some(until - seconds(1)));
}

#[test]
fn a_schedule_that_is_over_has_no_next_instant() {
    let schedule = compiled("UTC", vec![Trigger::At(at("2026-03-03T09:00:00Z"))]);
    assert_eq!(schedule.next_after(at("2026-03-03T09:00:00Z")), None);
    assert_eq!(schedule.last_before(at("2026-03-03T09:00:00Z")), None);
    assert_eq!(schedule.last_before(at("2027-03-03T09:00:00Z")), Some(at("2026-03-03T09:00:00Z")));
    assert!(compiled("UTC", vec![Trigger::Startup]).is_empty());
}

#[test]
fn a_task_that_could_not_run_as_written_is_refused() {
    let now = at("2026-03-03T12:00:00Z");
    let error = |spec: &TaskSpec| check_triggers(spec, now).expect_err("refused").to_string();
    let past = task("UTC", vec![Trigger::At(at("2026-03-03T09:00:00Z"))]);
    assert_eq!(
        error(&past),
        "`at` = 2026-03-03T09:00:00Z is in the past: it is 2026-03-03T12:00:00Z now; choose a later time"
    );
    assert!(check_edited_triggers(&past, Some(&past), now).is_ok(), "one that has fired may stay in the file");
    assert!(check_triggers(&task("UTC", vec![Trigger::At(at("2026-03-03T12:00:01Z"))]), now).is_ok());
    for zone in ["Mars/Phobos", "localtime", "posixrules"] {
        assert!(error(&task(zone, vec![])).starts_with(&format!("unknown time zone `{zone}`")));
    }
    assert!(error(&task("Etc/Unknown", vec![])).starts_with("unknown time zone"));
    assert!(error(&task("UTC", vec![cron("0 0 30 2 *")])).starts_with("cron expression `0 0 30 2 *`"));
    for period in [Span::default(), Span::from_millis(999), Span::from_millis(u64::MAX / 2)] {
        assert!(error(&task("UTC", vec![every(period)])).starts_with("`every` = "), "{period}");
    }
    let many = (1..=65).map(|minute| cron(&format!("{} {} * * *", minute % 60, minute / 60))).collect();
    assert!(error(&task("UTC", many)).starts_with("65 triggers of kind `cron` are too many"));
}

#[test]
fn jitter_is_below_its_limit_and_depends_on_the_name_alone() {
    let jitter = |name: &str, limit: u64| {
        let mut spec = task("UTC", vec![cron("@daily")]);
        spec.name = name.parse().expect("a name");
        spec.jitter = Span::from_secs(limit);
        Schedule::compile(&spec, at("2026-03-03T00:00:00Z")).expect("a schedule").jitter()
    };
    assert_eq!(jitter("backup", 0), SignedDuration::ZERO);
    assert_eq!(jitter("backup", 600), jitter("backup", 600));
    let spread: Vec<_> = (0..50).map(|index| jitter(&format!("task{index}"), 600)).collect();
    assert!(spread.iter().all(|jitter| (SignedDuration::ZERO..seconds(600)).contains(jitter)));
    assert!(spread.iter().max() > Some(&seconds(300)) && spread.iter().min() < Some(&seconds(300)));
}

#[test]
fn a_forecast_is_in_the_order_of_due_times_across_tasks() {
    let (early, late): (TaskName, TaskName) = ("early".parse().expect("a name"), "late".parse().expect("a name"));
    let (hourly, daily) = (compiled("UTC", vec![cron("@hourly")]), compiled("UTC", vec![cron("0 2 * * *")]));
    let tasks = [(&late, &daily), (&early, &hourly)];
    let slots = forecast(tasks.into_iter(), at("2026-03-03T00:00:00Z"), at("2026-03-03T03:00:00Z"));
    let found: Vec<String> = slots.map(|slot| format!("{} {}", slot.due, slot.task)).collect();
    let expect = [
        "2026-03-03T01:00:00Z early",
        "2026-03-03T02:00:00Z early",
        "2026-03-03T02:00:00Z late",
        "2026-03-03T03:00:00Z early",
    ];
    assert_eq!(found, expect);
}

fn trigger() -> impl Strategy<Value = Trigger> {
    let minutes = ["*", "0", "*/7", "0,30", "15-20", "59"];
    let hours = ["*", "2", "*/3", "0-3", "1,2,23", "0"];
    let days = ["* * *", "* * 1-5", "1,15 * 5", "L * *", "* 3,11 0", "29 2 *"];
    let fields = (prop::sample::select(minutes.to_vec()), prop::sample::select(hours.to_vec()));
    prop_oneof![
        4 => (fields, prop::sample::select(days.to_vec()), prop::bool::weighted(0.2))
            .prop_map(|((minute, hour), days, seconds)| {
                Trigger::Cron(format!("{}{minute} {hour} {days}", if seconds { "*/20 " } else { "" }))
            }),
        2 => (prop::sample::select(vec![30_u64, 45, 60, 90, 420, 3600, 5400, 86_400]), -4000_i64..4000).prop_map(
            |(period, shift)| Trigger::Every {
                period: Span::from_secs(period),
                anchor: Some(at("2026-03-28T00:00:00Z") + seconds(shift * 15)),
            }
        ),
        1 => (0_i64..100_000).prop_map(|shift| Trigger::At(at("2026-03-28T00:00:00Z") + seconds(shift * 60))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn counting_and_looking_back_agree_with_walking(
        triggers in prop::collection::vec(trigger(), 1..5),
        zone in prop::sample::select(vec![
            "UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo",
        ]),
        year in prop::sample::select(vec![2011_i16, 2018, 2026]),
        start in 0_i64..366 * 86_400,
        length in 0_i64..20 * 86_400,
        limit in 1_usize..6,
    ) {
        let schedule = Schedule::compile(&task(zone, triggers), at("2026-03-03T00:00:00Z")).expect("a schedule");
        let new_year = jiff::civil::date(year, 1, 1).at(0, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).expect("a time");
        let after = new_year.timestamp() + seconds(start);
        let until = after + seconds(length);
        let walked: Vec<Timestamp> = schedule.occurrences(after, until).collect();
        prop_assert!(walked.is_sorted_by(|one, next| one < next));
        prop_assert_eq!(schedule.count(after, until), walked.len() as u64);
        let newest = schedule.newest(after, until, limit);
        prop_assert_eq!(&newest[..], &walked[walked.len().saturating_sub(limit)..]);
        if let [.., before, last] = walked[..] {
            prop_assert_eq!(schedule.last_before(last), Some(before));
            prop_assert_eq!(schedule.last_before(last + seconds(1)), schedule.newest(after, last + SignedDuration::from_nanos(999_999_999), 1).pop());
        }
        // Parts add up, wherever the cut is.
        let cut = after + seconds(length / 3);
        prop_assert_eq!(schedule.count(after, cut) + schedule.count(cut, until), walked.len() as u64);
    }
}
