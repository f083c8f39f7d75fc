//! What `to_toml` writes reads back as the same task.

use ow_model::{
    AfterEnd, CatchUp, EventDelivery, MailFilter, Mode, Need, OnError, Overlap, Retry, Span, Step, TaskSpec, Trigger,
    WatchKind, WhileParked, ZoneName,
};
use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use super::{Tools, defaults, now};
use crate::{parse_task, step_text, to_toml};

/// Text with everything that quoting must survive, and nothing that is a template or looks like a secret.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z \"'\\\\\n\r\t#=\\[\\]\u{7f}\u{1}é😀]{0,12}", "\\PC{0,8}"]
        .prop_map(|text: String| text.replace(['{', '}', '%', ':', '@'], "."))
}

fn line() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 \"'\\\\#é😀]{0,20}[a-z]"
}

fn span(from: u64) -> impl Strategy<Value = Span> {
    (from..1_000_000_u64).prop_map(|seconds| Span::from_millis(seconds * 1000))
}

fn path() -> impl Strategy<Value = std::path::PathBuf> {
    "/[a-z \"'\\\\é]{1,8}(/[a-z#]{1,8}){0,2}".prop_map(Into::into)
}

fn args() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", Number::from_f64).prop_map(Value::Number),
        text().prop_map(Value::String),
        Just(Value::String("{{ slot.date }} and {{ event.path | default(\"none\") }}".into())),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(text(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-z]{1,6}", value, 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()))
}

fn trigger() -> impl Strategy<Value = Trigger> {
    let instant = (0..2_000_000_000_i64).prop_map(|second| jiff::Timestamp::from_second(second).expect("in range"));
    let kinds = prop::sample::subsequence(vec![WatchKind::Create, WatchKind::Change, WatchKind::Move], 1..=3);
    prop_oneof![
        prop::sample::select(vec!["0 6 * * mon-fri", "@daily", "*/5 * * * *", "30 0 12 * * *"])
            .prop_map(|expression| Trigger::Cron(expression.into())),
        (span(1), prop::option::of(instant.clone())).prop_map(|(period, anchor)| Trigger::Every { period, anchor }),
        instant.prop_map(|at| Trigger::At(at + jiff::SignedDuration::from_secs(1_800_000_000))),
        (path(), prop::option::of("[a-z*?]{1,6}"), 0..3000_u64, kinds).prop_map(|(path, glob, settle, on)| {
            Trigger::Watch { path, glob, settle: Span::from_millis(settle), on }
        }),
        ("[a-z]{8}", prop::sample::select(vec![AfterEnd::Success, AfterEnd::Failure, AfterEnd::Any]))
            .prop_map(|(task, on)| Trigger::After { task: task.parse().expect("a well-formed name"), on }),
        Just(Trigger::Startup),
        (
            prop::collection::vec("U[A-Z0-9]{4}", 0..3),
            prop::option::of(prop::sample::select(vec!["event.text == 'go'", "'x' in event.text and event.mention"])),
        )
            .prop_map(|(from, when)| Trigger::Slack {
                channel: "C0123456789".into(),
                from,
                when: when.map(str::to_owned),
            }),
        (
            prop::sample::select(vec!["ci", "stripe"]),
            prop::option::of(prop::sample::select(vec![
                "event.name == \"push\"",
                "event.payload.n > 1 and 'it''s' in event.body"
            ])),
        )
            .prop_map(|(hook, when)| Trigger::Webhook {
                hook: hook.parse().expect("a well-formed name"),
                when: when.map(str::to_owned),
            }),
        (
            prop::collection::vec("[a-z]{1,8}@[a-z]{1,8}\\.example", 0..3),
            prop::option::of("[a-z *\"]{1,12}"),
            prop::option::of("[a-z.]{1,12}"),
            any::<bool>(),
        )
            .prop_map(|(from, subject, list, folder)| {
                let folder = folder.then(|| "Invoices".to_owned());
                Trigger::Mail(MailFilter { from, subject, list, folder })
            }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let conditions = vec!["event.count > 1", "slot.weekday == \"Monday\"", "event.note is defined and not event.done"];
    (
        prop::sample::select(vec!["write_file", "notify", "http_request"]),
        args(),
        prop::option::of(prop::sample::select(conditions)),
        prop::sample::select(vec![OnError::Stop, OnError::Continue]),
    )
        .prop_map(|(tool, args, condition, on_error)| Step {
            tool: tool.parse().expect("a well-formed name"),
            args,
            save_as: None,
            condition: condition.map(Into::into),
            on_error,
        })
}

fn rights() -> impl Strategy<Value = (Mode, CatchUp, Overlap, WhileParked, EventDelivery)> {
    let most = 1..1000_u32;
    (
        prop::sample::select(vec![Mode::Plan, Mode::Ask, Mode::Edit, Mode::Auto]),
        prop_oneof![Just(CatchUp::Once), Just(CatchUp::None), most.clone().prop_map(|max| CatchUp::All { max })],
        prop_oneof![
            Just(Overlap::Skip),
            Just(Overlap::Queue),
            Just(Overlap::CancelPrevious),
            most.clone().prop_map(|max| Overlap::Allow { max }),
        ],
        prop::sample::select(vec![WhileParked::Hold, WhileParked::Release, WhileParked::Supersede]),
        prop_oneof![
            most.clone().prop_map(|max| EventDelivery::Batch { max }),
            most.prop_map(|max| EventDelivery::Each { max }),
        ],
    )
}

fn task() -> impl Strategy<Value = TaskSpec> {
    let what = (
        prop::option::of(line()),
        prop::sample::select(vec!["UTC", "Europe/Paris", "America/Argentina/Buenos_Aires"]),
        prop::collection::vec(trigger(), 0..4),
        prop::collection::vec(step(), 1..4),
        prop::collection::btree_set(path(), 0..3),
    );
    let limits = (span(1), span(1), span(1), span(1), prop::option::of(span(1)), 0..1000_u64);
    let rest = (
        0..5_u32,
        span(1),
        0..50_u32,
        prop::option::of("[a-z]{1,8}"),
        any::<bool>(),
        prop::collection::vec("[a-z]{1,8}\\.[a-z]{2,3}(:8080)?", 0..3),
    );
    (what, rights(), limits, rest).prop_map(|(what, rights, limits, rest)| {
        let (title, timezone, mut triggers, mut steps, roots) = what;
        let (mode, catch_up, overlap, while_parked, events) = rights;
        let (timeout, call_timeout, item_expiry, item_reminder, start_deadline, jitter) = limits;
        let (attempts, backoff, auto_pause_after, concurrency, network, http_allow) = rest;
        let mut seen = vec![];
        triggers.retain(|trigger| {
            !seen.contains(trigger) && {
                seen.push(trigger.clone());
                true
            }
        });
        for (index, step) in steps.iter_mut().enumerate().skip(1) {
            step.save_as = Some(format!("result_{index}"));
        }
        TaskSpec {
            name: "reports".parse().expect("a well-formed name"),
            title,
            timezone: ZoneName(timezone.into()),
            triggers,
            steps,
            agent: None,
            mode,
            roots: roots.into_iter().collect(),
            catch_up,
            overlap,
            while_parked,
            events,
            start_deadline,
            jitter: Span::from_millis(jitter),
            timeout,
            call_timeout,
            retry: Retry { attempts, backoff },
            auto_pause_after,
            concurrency,
            needs: if network { vec![Need::Network] } else { vec![] },
            item_expiry,
            item_reminder,
            http_allow,
            inbox: ow_model::InboxName::default(),
        }
    })
}

proptest! {
    #[test]
    fn a_written_task_reads_back_and_its_steps_keep_their_hashes(spec in task()) {
        let written = to_toml(&spec);
        let read = parse_task(&spec.name, &written, None, &defaults(), &Tools, now());
        let read = read.map_err(|faults| TestCaseError::fail(format!("{written}\n{}", super::lines(&faults))))?;
        prop_assert_eq!(&read, &spec, "{}", written);
        for (left, right) in read.steps.iter().zip(&spec.steps) {
            prop_assert_eq!(step_text(left), step_text(right));
        }
    }

    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "[a-z=\\[\\]{}\"'#.\n 0-9%|é-]{0,200}") {
        let name = "any".parse().expect("a well-formed name");
        if let Err(faults) = parse_task(&name, &text, None, &defaults(), &Tools, now()) {
            prop_assert!(!faults.is_empty());
        }
    }

    #[test]
    fn a_task_with_one_changed_letter_is_read_or_refused_with_a_line(at in 0..400_usize, letter in "[a-z\"{}=\\[ ]") {
        let mut letters: Vec<char> = super::ISSUE.chars().collect();
        if let (Some(place), Some(letter)) = (letters.get_mut(at), letter.chars().next()) {
            *place = letter;
        }
        let text: String = letters.into_iter().collect();
        if let Err(faults) = super::read(&text) {
            for fault in faults {
                prop_assert!(fault.line > 0 && fault.column > 0 && !fault.remedy.is_empty(), "{fault}");
            }
        }
    }
}
