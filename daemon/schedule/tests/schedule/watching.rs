//! When a watched file has settled: ext-18, ext-19, names from hell.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use ow_model::{Span, WatchKind};
use ow_schedule::watch::{Fingerprint, Glob, Hint, Settled, Settler, event_key};
use proptest::prelude::*;

use crate::support::{at, cases, seconds, text};

const ALL: [WatchKind; 3] = [WatchKind::Create, WatchKind::Change, WatchKind::Move];

fn state(inode: u64, size: u64) -> Fingerprint {
    Fingerprint { device: 1, inode, size, mtime_ns: i64::try_from(size).expect("small") * 7 }
}

fn start() -> Timestamp {
    at("2026-03-03T10:00:00Z")
}

fn after(second: f64) -> Timestamp {
    start() + SignedDuration::from_secs_f64(second)
}

fn watch(known: &[(&str, Fingerprint)]) -> Settler {
    Settler::new(Span::from_secs(2), ALL, known.iter().map(|(path, state)| (PathBuf::from(path), *state)))
}

fn told(settled: &[Settled]) -> Vec<(String, WatchKind)> {
    settled.iter().map(|settled| (settled.path.display().to_string(), settled.kind)).collect()
}

#[test]
fn an_atomic_save_fires_once_per_save_however_quickly_they_follow() {
    let cases = cases("extensions-secrets-watch.json");
    let case = cases["cases"].as_array().expect("cases").iter().find(|case| case["id"] == "ext-18").expect("ext-18");
    let triggers = usize::try_from(case["expect"]["triggers"].as_u64().expect("a number")).expect("small");
    for pause in [0.1, 1.9, 2.0, 60.0] {
        let mut settler = watch(&[("a.txt", state(1, 10))]);
        let (path, aside) = (Path::new("a.txt"), Path::new("a.txt~"));
        let mut fired = Vec::new();
        for (inode, moment) in [(2, 0.0), (3, pause)] {
            settler.observe(aside, Some(state(inode, 0)), Hint::Created, after(moment));
            settler.observe(aside, Some(state(inode, 12)), Hint::Written, after(moment));
            fired.extend(settler.settled(after(moment)));
            settler.observe(aside, None, Hint::Seen, after(moment + 0.01));
            settler.observe(path, Some(state(inode, 12)), Hint::MovedHere, after(moment + 0.01));
            fired.extend(settler.settled(after(moment + 0.01)));
        }
        fired.extend(settler.settled(after(pause + 1.9)));
        let before_rest = fired.len();
        fired.extend(settler.settled(after(pause + 2.5)));
        assert_eq!(fired.len(), triggers, "{pause}: {fired:?}");
        assert!(before_rest < triggers, "{pause}: the last save has to rest");
        assert!(fired.iter().all(|settled| settled.path == path && settled.kind == WatchKind::Change));
        assert_eq!(settler.next_wake(), None);
    }
}

#[test]
fn a_large_copy_fires_once_and_not_before_its_last_write_has_rested() {
    let cases = cases("extensions-secrets-watch.json");
    let case = cases["cases"].as_array().expect("cases").iter().find(|case| case["id"] == "ext-19").expect("ext-19");
    assert_eq!(text(&case["expect"], "not_before"), "last write plus quiet time");
    let mut settler = watch(&[]);
    let path = Path::new("big.iso");
    settler.observe(path, Some(state(1, 0)), Hint::Created, start());
    // 200 MB over 20 s; the watcher's hints come now and then, and owd looks whenever a span is over.
    for tenth in 1..=200_u32 {
        let now = after(f64::from(tenth) / 10.0);
        if tenth % 15 == 0 || tenth == 200 {
            settler.observe(path, Some(state(1, u64::from(tenth) * 1_000_000)), Hint::Written, now);
        }
        assert_eq!(settler.settled(now), [], "at {tenth}");
    }
    assert_eq!(settler.next_wake(), Some(after(22.0)));
    assert_eq!(settler.settled(after(21.999)), []);
    assert_eq!(told(&settler.settled(after(22.0))), [("big.iso".to_owned(), WatchKind::Create)]);
    assert_eq!(settler.settled(after(60.0)), []);
}

#[test]
fn lost_hints_are_made_good_by_looking_again() {
    let mut settler = watch(&[]);
    let path = Path::new("a");
    settler.observe(path, Some(state(1, 5)), Hint::Created, start());
    assert_eq!(settler.due(after(2.0)), [path]);
    // It has grown meanwhile, and nobody said so.
    settler.observe(path, Some(state(1, 9)), Hint::Seen, after(2.0));
    assert_eq!(settler.settled(after(2.0)), []);
    assert_eq!(settler.settled(after(4.0)).len(), 1);
}

#[test]
fn a_write_that_leaves_no_trace_still_puts_the_end_off() {
    let mut settler = watch(&[]);
    let path = Path::new("a");
    settler.observe(path, Some(state(1, 5)), Hint::Written, start());
    settler.observe(path, Some(state(1, 5)), Hint::Written, after(1.5));
    settler.observe(path, Some(state(1, 5)), Hint::Seen, after(1.6));
    assert_eq!(settler.next_wake(), Some(after(3.5)));
}

#[test]
fn what_came_while_owd_was_down_fires_at_the_start() {
    let mut settler = watch(&[("same", state(1, 5)), ("changed", state(2, 5)), ("gone", state(3, 5))]);
    for (path, found) in [("same", state(1, 5)), ("changed", state(2, 6)), ("new", state(4, 5))] {
        settler.observe(Path::new(path), Some(found), Hint::Seen, start());
    }
    settler.observe(Path::new("gone"), None, Hint::Seen, start());
    let expect = [("changed".to_owned(), WatchKind::Change), ("new".to_owned(), WatchKind::Create)];
    assert_eq!(told(&settler.settled(after(2.0))), expect);
    let mut known: Vec<_> = settler.known().map(|(path, _)| path.display().to_string()).collect();
    known.sort();
    assert_eq!(known, ["changed", "new", "same"]);
}

#[test]
fn a_file_that_is_renamed_away_and_written_anew_has_changed_once() {
    let mut settler = watch(&[("a.txt", state(1, 10))]);
    let path = Path::new("a.txt");
    settler.observe(path, None, Hint::Seen, start());
    settler.observe(path, Some(state(2, 0)), Hint::Created, after(0.1));
    settler.observe(path, Some(state(2, 11)), Hint::Written, after(0.2));
    assert_eq!(told(&settler.settled(after(2.2))), [("a.txt".to_owned(), WatchKind::Change)]);
}

#[test]
fn a_file_that_goes_before_it_has_settled_is_nothing() {
    let mut settler = watch(&[]);
    settler.observe(Path::new("tmp"), Some(state(1, 1)), Hint::Created, start());
    settler.observe(Path::new("tmp"), None, Hint::Seen, after(1.0));
    assert_eq!(settler.settled(after(9.0)), []);
    assert_eq!(settler.next_wake(), None);
}

#[test]
fn only_what_the_watch_asks_for_fires_and_the_rest_is_known() {
    let on = |kinds: &[WatchKind]| {
        let known = [(PathBuf::from("old"), state(1, 1))];
        let mut settler = Settler::new(Span::from_secs(2), kinds.iter().copied(), known);
        settler.observe(Path::new("old"), Some(state(1, 2)), Hint::Written, start());
        settler.observe(Path::new("new"), Some(state(2, 2)), Hint::Created, start());
        settler.observe(Path::new("moved"), Some(state(3, 2)), Hint::MovedHere, start());
        settler.observe(Path::new("found"), Some(state(4, 2)), Hint::Seen, start());
        let settled = settler.settled(after(2.0));
        assert_eq!(settler.settled(after(9.0)), []);
        settled.into_iter().map(|settled| settled.path.display().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(on(&[WatchKind::Change]), ["old"]);
    assert_eq!(on(&[WatchKind::Create]), ["found", "moved", "new"], "a file is there that was not");
    assert_eq!(on(&[WatchKind::Move]), ["found", "moved"]);
    assert_eq!(on(&ALL), ["found", "moved", "new", "old"]);
}

#[test]
fn a_clock_that_is_set_back_does_not_put_the_end_off() {
    let mut settler = watch(&[]);
    settler.observe(Path::new("a"), Some(state(1, 1)), Hint::Created, start() + seconds(3600));
    settler.clock_set(start());
    assert_eq!(settler.next_wake(), Some(after(2.0)));
}

#[cfg(unix)]
#[test]
fn any_name_has_a_key_of_its_own_that_harms_nobody() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let names: [&[u8]; 7] =
        [b"; rm -rf ~", b"-o/etc/x", b"two\nlines", "\u{202e}txt.exe".as_bytes(), b"\xff\xfe", b"a:1:2", b"a%3A1:2"];
    let mut keys = Vec::new();
    for name in names {
        let key = event_key(Path::new(OsStr::from_bytes(name)), &state(1, 2)).0;
        assert!(key.bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
        keys.push(key);
    }
    assert_eq!(keys[0], "watch:;%20rm%20-rf%20~:1:1:2:14");
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), names.len());
}

#[test]
fn globs_match_names_as_a_shell_does() {
    let table: [(&str, &[&str], &[&str]); 12] = [
        ("*.txt", &["a.txt", "ü.txt", "a.b.txt"], &["a.txt~", "txt", ".hidden.txt", "a.TXT"]),
        ("*", &["a", "a b", "\n"], &[".a"]),
        (".*", &[".a", "."], &["a"]),
        ("?.txt", &["a.txt", "ü.txt"], &["ab.txt", ".txt"]),
        ("[a-c]?", &["ax", "c1"], &["dx", "a"]),
        ("[!a-c]x", &["dx", "üx"], &["ax"]),
        ("[]x]", &["]", "x"], &["y"]),
        ("[a-]", &["a", "-"], &["b"]),
        ("*.{jpg,jp{e,}g,png}", &["a.jpg", "b.jpeg", "c.png"], &["d.gif", "a."]),
        ("\\*.txt", &["*.txt"], &["a.txt"]),
        ("a*b*c", &["abc", "aXbYc", "abbcc"], &["ab", "acb"]),
        ("a{b}c", &["abc"], &["a{b}c"]),
    ];
    for (glob, matching, others) in table {
        let parsed = Glob::parse(glob).unwrap_or_else(|error| panic!("{error}"));
        for name in matching {
            assert!(parsed.matches(name.as_bytes()), "`{glob}` and `{name}`");
        }
        for name in others {
            assert!(!parsed.matches(name.as_bytes()), "`{glob}` and `{name}`");
        }
    }
    assert!(Glob::parse("*.txt").expect("a glob").matches(b"\xff\xfe.txt"));
    assert!(Glob::parse("??.txt").expect("a glob").matches(b"\xff\xfe.txt"));
    for (bad, error) in [
        ("", "glob `` must have 1 to 256 bytes"),
        ("a/b", "glob `a/b` holds a `/`; it is matched against file names alone"),
        ("[a", "glob `[a` does not close its `[`"),
        ("{a,b", "glob `{a,b` does not close its `{`"),
    ] {
        assert_eq!(Glob::parse(bad).expect_err(bad).to_string(), error);
    }
}

proptest! {
    #[test]
    fn no_pattern_and_no_name_take_long_or_panic(
        glob in "[-a*?\\[\\]{},!\\\\.ü]{1,40}",
        name in prop::collection::vec(prop_oneof![Just(b'a'), Just(b'.'), any::<u8>()], 0..60),
    ) {
        if let Ok(glob) = Glob::parse(&glob) {
            std::hint::black_box(glob.matches(&name));
        }
    }

    #[test]
    fn every_state_that_rests_fires_once_and_none_before_it_rested(
        looks in prop::collection::vec((0_u32..30, 0_u64..4, 0_usize..4), 1..40),
    ) {
        let path = Path::new("a");
        let hints = [Hint::Seen, Hint::Created, Hint::Written, Hint::MovedHere];
        let mut settler = watch(&[]);
        let (mut now, mut since, mut last) = (start(), start(), None);
        let mut fired: Vec<Fingerprint> = Vec::new();
        for (tenths, size, hint) in looks {
            now += SignedDuration::from_millis(i64::from(tenths) * 100);
            let found = (size > 0).then(|| state(1, size));
            if found != last {
                (since, last) = (now, found);
            }
            settler.observe(path, found, hints[hint], now);
            for settled in settler.settled(now) {
                prop_assert_ne!(Some(&settled.fingerprint), fired.last());
                fired.push(settled.fingerprint);
            }
            if settler.known().next().is_none() {
                // It was gone for good; what comes now is new, even if it is the same.
                fired.clear();
            }
        }
        for settled in settler.settled(now.max(since) + seconds(2)) {
            prop_assert_eq!(Some(settled.fingerprint), last);
            fired.push(settled.fingerprint);
        }
        prop_assert!(last.is_none() || fired.last() == last.as_ref());
        prop_assert_eq!(settler.next_wake(), None);
    }
}
