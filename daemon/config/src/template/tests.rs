#![expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn context() -> Value {
    json!({
        "task": { "name": "reports" },
        "slot": { "date": "2026-11-30", "late_seconds": 3 },
        "run": { "id": "r", "folder": "/runs/r" },
        "event": {
            "path": "/in/a b.txt", "empty": "", "dash": "-rf", "names": ["x", "y"], "nested": { "deep": 1 },
            "braces": "{{ run.id }}", "none": null, "text": "no",
        },
        "steps": { "disks": { "stdout": "one\ntwo\n", "status": 0, "ok": true, "error": null } },
    })
}

fn value(text: &str) -> Value {
    render_args(&json!([text]), &context()).unwrap_or_else(|error| panic!("{text}: {error}")).args[0].clone()
}

fn fault(text: &str, expected: Expect) {
    let error = Template::parse(text).and_then(|_| render_args(&json!(text), &context()).map(drop));
    let error = error.expect_err(text);
    expected.assert_eq(&format!("{error}; {}", error.remedy()));
}

#[test]
fn a_template_that_is_the_whole_string_keeps_its_type() {
    for (text, expected) in [
        ("{{ steps.disks.status }}", json!(0)),
        ("{{ steps.disks.ok }}", json!(true)),
        ("{{ steps.disks.error }}", Value::Null),
        ("{{ event.names }}", json!(["x", "y"])),
        ("{{ event.nested }}", json!({ "deep": 1 })),
        ("{{ event.names | map(\"upper\") }}", json!(["X", "Y"])),
        ("{{ slot.late_seconds + 0.5 }}", json!(3.5)),
        ("{{ event.path }}", json!("/in/a b.txt")),
        ("{{ {\"a\": {\"b\": event.names[0]}} }}", json!({ "a": { "b": "x" } })),
        ("{{ \"}}\" }}", json!("}}")),
        ("{{ '{{' }}", json!("{{")),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn a_template_within_a_string_makes_a_string() {
    for (text, expected) in [
        ("", ""),
        ("no braces, {one} {#two#} ${#three} }}", "no braces, {one} {#two#} ${#three} }}"),
        ("a {{ slot.date }} b", "a 2026-11-30 b"),
        (" {{ steps.disks.status }}", " 0"),
        ("{{ steps.disks.status }}{{ steps.disks.ok }}", "0true"),
        ("x{{ event.names }}", "x[\"x\",\"y\"]"),
        ("<{{ steps.disks.error }}>", "<null>"),
        ("{{ event.path }}\n", "/in/a b.txt\n"),
        ("{{ steps.disks.stdout | lines | length }} lines", "2 lines"),
        ("{{ event.note | default(\"none\") }}.", "none."),
        ("{{ \"late\" if slot.late_seconds > 2 else \"on time\" }}!", "late!"),
        ("<{{ event.path }}>", "</in/a b.txt>"),
    ] {
        assert_eq!(value(text), json!(expected), "{text}");
    }
}

#[test]
fn a_value_is_never_a_template_itself() {
    assert_eq!(value("{{ event.braces }}"), json!("{{ run.id }}"));
    assert_eq!(value("x {{ event.braces }}"), json!("x {{ run.id }}"));
}

#[test]
fn one_element_stays_one_element_and_keys_stay_as_they_are() {
    let args = json!({ "argv": ["ls", "--", "{{ event.path }}", 3, true, null], "{{ slot.date }}": "{{ slot.date }}" });
    let rendered = render_args(&args, &context()).expect("all names are known");
    assert_eq!(
        rendered.args,
        json!({ "argv": ["ls", "--", "/in/a b.txt", 3, true, null], "{{ slot.date }}": "2026-11-30" })
    );
}

#[test]
fn every_use_of_a_value_from_outside_is_a_hole() {
    let args = json!({
        "argv": ["run", "{{ event.path }}", "--name={{ event.path | upper }}", "{{ event.empty }}{{ event.dash }}"],
        "a/b": { "~": "{{ slot.date }} {{ steps.disks.stdout | trim }}" },
        "plain": "{{ task.name }}/{{ run.id }}",
    });
    let rendered = render_args(&args, &context()).expect("all names are known");
    let holes: Vec<String> = rendered
        .holes
        .iter()
        .map(|hole| {
            let HoleUse { name, pointer, whole, leading, value } = hole;
            format!("{pointer} {name} whole={whole} leading={leading} {value:?}")
        })
        .collect();
    expect![[r#"
        /a~1b/~0 steps.disks.stdout whole=false leading=false "one\ntwo"
        /argv/1 event.path whole=true leading=true "/in/a b.txt"
        /argv/2 event.path whole=false leading=false "/IN/A B.TXT"
        /argv/3 event.empty whole=false leading=true ""
        /argv/3 event.dash whole=false leading=true "-rf""#]]
    .assert_eq(&holes.join("\n"));
    assert_eq!(holes_of(&args), ["steps.disks.stdout", "event.path", "event.empty", "event.dash"]);
}

#[test]
fn a_name_is_found_in_whatever_form_it_is_used() {
    for (text, expected) in [
        ("{{ event.path }}", "event.path"),
        ("{{ event . path }}", "event.path"),
        ("{{ event.path[1:] }}", "event.path"),
        ("{{ event[\"path\"] }}", "event"),
        ("{{ event | attr(\"path\") }}", "event"),
        ("{{ event.names.0 }}", "event.names"),
        ("{{ event.names[event.nested.deep] }}", "event.names event.nested.deep"),
        ("{{ \"a\" if event.path else steps.disks.stdout }}", "event.path steps.disks.stdout"),
        ("{{ slot.date | replace(\"2026\", event.dash) }}", "slot.date event.dash"),
        ("{{ slot.late_seconds | round(precision=steps.disks.status) }}", "slot.late_seconds steps.disks.status"),
        ("{{ [slot.date, {\"k\": event.dash}] }}", "slot.date event.dash"),
        ("{{ not event.path is defined }}", "event.path"),
        ("{{ slot.date in event.names }}", "slot.date event.names"),
        ("{{ slot.date is in event.names }}", "slot.date event.names"),
        ("{{ slot.date ~ event.dash }}", "slot.date event.dash"),
        ("{{ \"event.path\" ~ 'steps' }}", ""),
        ("{{ slot.event }}", "slot.event"),
        ("{{ \"\\\"\" ~ event.path }}", "event.path"),
        ("{{ 1.5e3 + event.nested.deep }}", "event.nested.deep"),
        ("{{-1 * slot.late_seconds }}", "!"),
    ] {
        let names = Template::parse(text).map(|template| template.names().collect::<Vec<_>>().join(" "));
        assert_eq!(names.unwrap_or_else(|_| "!".into()), expected, "{text}");
    }
}

#[test]
fn a_bad_template_says_what_to_write() {
    fault(
        "{{ slot.date",
        expect![[
            r#"template `{{ slot.date`: `{{` without its `}}`; close it with `}}`, or write `{{ "{{" }}` for the two braces themselves"#
        ]],
    );
    fault(
        "{{ \"a }}",
        expect![[
            r#"template `{{ "a }}`: `{{` without its `}}`; close it with `}}`, or write `{{ "{{" }}` for the two braces themselves"#
        ]],
    );
    fault(
        "{% for x in y %}",
        expect![[
            r#"template `{% for x in y %}`: `{%` begins a statement; only expressions in `{{ … }}` are known; use an expression, as `{{ a if b else c }}`, or the step's `if`; for the text itself write `{{ "{%" }}`"#
        ]],
    );
    fault(
        "{{- slot.date -}}",
        expect![
            "template `{{- slot.date -}}`: `{{-` and `-}}` are not known; leave the `-` out; use the filter `trim` for a value"
        ],
    );
    fault(
        "{{ }}",
        expect![[
            r#"template `{{ }}`: `` is no expression: it is empty; write an expression, as `{{ steps.disks.stdout | trim }}`; for literal braces write `{{ "{{" }}`"#
        ]],
    );
    fault(
        "{{ slot date }}",
        expect![
            "template `{{ slot date }}`: unknown name `date`; begin with `task`, `slot`, `run`, `event` or `steps`; put a text in quotes"
        ],
    );
    fault(
        "{{.Names}}",
        expect![[
            r#"template `{{.Names}}`: `.Names` is no expression: unexpected `.`; write an expression, as `{{ steps.disks.stdout | trim }}`; for literal braces write `{{ "{{" }}`"#
        ]],
    );
    fault("{{ slots.date }}", expect!["template `{{ slots.date }}`: unknown name `slots`; did you mean `slot`?"]);
    fault(
        "{{ steps.disks.stdout | tirm }}",
        expect!["template `{{ steps.disks.stdout | tirm }}`: unknown filter `tirm`; did you mean `trim`?"],
    );
    fault(
        "{{ slot.date is weekend }}",
        expect![
            "template `{{ slot.date is weekend }}`: unknown test `weekend`; use one of boolean, defined, divisibleby, endingwith, eq, equalto, even, false, float, ge, greaterthan, gt, in, int, integer, iterable, le, lessthan, lower, lt, mapping, ne, none, number, odd, sameas, sequence, startingwith, string, true, undefined, upper"
        ],
    );
    fault(
        "{{ debug() }}",
        expect![
            "template `{{ debug() }}`: `debug(…)`: nothing can be called; use a filter, as `{{ event.path | upper }}`"
        ],
    );
    fault(
        "{{ slot.date.upper() }}",
        expect![
            "template `{{ slot.date.upper() }}`: `upper(…)`: nothing can be called; use a filter, as `{{ event.path | upper }}`"
        ],
    );
    fault(
        "{{ range(10) }}",
        expect![
            "template `{{ range(10) }}`: `range(…)`: nothing can be called; use a filter, as `{{ event.path | upper }}`"
        ],
    );
    fault(
        "{{ event(1) }}",
        expect![
            "template `{{ event(1) }}`: `event(…)`: nothing can be called; use a filter, as `{{ event.path | upper }}`"
        ],
    );
    fault(
        "{{ self }}",
        expect![
            "template `{{ self }}`: unknown name `self`; begin with `task`, `slot`, `run`, `event` or `steps`; put a text in quotes"
        ],
    );
    fault(
        "{{ event.note }}",
        expect![[
            r#"template `{{ event.note }}`: `event.note` is undefined; check the name, or give a fallback, as `{{ event.note | default("") }}`"#
        ]],
    );
    fault(
        "a {{ event.note }} b",
        expect![[
            r#"template `a {{ event.note }} b`: `event.note` is undefined; check the name, or give a fallback, as `{{ event.note | default("") }}`"#
        ]],
    );
    fault(
        "{{ event.note.deeper }}",
        expect![[
            r#"template `{{ event.note.deeper }}`: `event.note.deeper` is undefined; check the name, or give a fallback, as `{{ event.note | default("") }}`"#
        ]],
    );
    fault(
        "{{ steps.other.stdout }}",
        expect![[
            r#"template `{{ steps.other.stdout }}`: `steps.other.stdout` is undefined; check the name, or give a fallback, as `{{ event.note | default("") }}`"#
        ]],
    );
    fault(
        "{{ event.path | int + 1 }}",
        expect![
            "template `{{ event.path | int + 1 }}`: `event.path | int + 1`: invalid float literal; correct the expression for the value it was given"
        ],
    );
    fault(
        "{{ 1 / 0 }}",
        expect![
            "template `{{ 1 / 0 }}`: `1 / 0`: unable to calculate 1 / 0; correct the expression for the value it was given"
        ],
    );
}

#[test]
fn rendering_is_bounded_in_work_and_output() {
    let long = "x".repeat(OUTPUT_LIMIT / 2);
    let context = json!({ "event": { "long": long, "names": ["a", "b", "c"] }, "slot": {} });
    for text in [
        "{{ \"x\" * 100000000 }}",
        "{{ [event.long] * 100 }}",
        "{{ [1] * 1000000000 }}",
        "{{ [[1] * 100000] * 100000 }}",
        "{{ event.long ~ event.long ~ event.long }}",
        "{{ event.long }}{{ event.long }}{{ event.long }}",
        "{{ \"%1000000000d\" | format(1) }}",
        "{{ event.long | replace(\"\", event.long) }}",
        "{{ event.long | indent(100000000) }}",
        "{{ 10 ** 1000000 }}",
    ] {
        let error = render_args(&json!([text]), &context).expect_err(text);
        assert!(
            matches!(
                error.fault,
                TemplateFault::Output { .. } | TemplateFault::Work { .. } | TemplateFault::Evaluation { .. }
            ),
            "{text}: {error}"
        );
    }
    let thrice = json!(["{{ event.long }}", "{{ event.long }}", "{{ event.long }}"]);
    assert!(render_args(&thrice, &context).is_err(), "the limit is for all arguments together");
    let nested = format!("{{{{ {}1{} }}}}", "[".repeat(5000), "]".repeat(5000));
    assert!(Template::parse(&nested).is_err());
}

#[test]
fn a_condition_is_true_or_false() {
    for (text, expected) in [
        ("steps.disks.status == 0", true),
        ("steps.disks.error is none", true),
        ("event.note is defined", false),
        ("event.names", true),
        ("event.nested.deep - 1", false),
        ("event.none", false),
        ("not steps.disks.ok", false),
        ("event.path is endingwith(\".txt\")", true),
        ("\"two\" in steps.disks.stdout", true),
        ("true", true),
    ] {
        assert_eq!(eval_condition(text, &context()), Ok(expected), "{text}");
    }
    for (text, expected) in [
        (
            "event.text",
            expect![[
                r#"template `event.text`: `event.text` is a text, and neither true nor false; compare it, as `steps.disks.stdout != ""`"#
            ]],
        ),
        (
            "event.note",
            expect![[
                r#"template `event.note`: `event.note` is undefined; check the name, or give a fallback, as `{{ event.note | default("") }}`"#
            ]],
        ),
        (
            "",
            expect![[
                r#"template ``: `` is no expression: it is empty; write an expression, as `{{ steps.disks.stdout | trim }}`; for literal braces write `{{ "{{" }}`"#
            ]],
        ),
        (
            "steps.disks.status = 0",
            expect![[
                r#"template `steps.disks.status = 0`: `steps.disks.status = 0` is no expression: unexpected input after expression; write an expression, as `{{ steps.disks.stdout | trim }}`; for literal braces write `{{ "{{" }}`"#
            ]],
        ),
    ] {
        let error = eval_condition(text, &context()).expect_err(text);
        expected.assert_eq(&format!("{error}; {}", error.remedy()));
    }
}

#[test]
fn a_preview_keeps_what_is_not_known_yet() {
    let known = json!({ "slot": { "date": "2026-11-30" }, "task": { "name": "t" } });
    let args =
        json!({ "path": "/r/{{ slot.date }}-{{event.name|upper}}.md", "content": "{{ steps.disks.stdout }}", "n": 3 });
    assert_eq!(
        preview_args(&args, &known),
        json!({ "path": "/r/2026-11-30-{{ event.name|upper }}.md", "content": "{{ steps.disks.stdout }}", "n": 3 })
    );
}

proptest! {
    #[test]
    fn text_without_braces_stays_as_it_is(text in "[^{]{0,60}") {
        prop_assert_eq!(value(&text), json!(text));
    }

    #[test]
    fn any_value_arrives_unchanged_in_one_element(text in any::<String>()) {
        let rendered = render_args(&json!(["{{ event.x }}", "a{{ event.x }}b"]), &json!({ "event": { "x": text.clone() } }))
            .expect("the name is known");
        prop_assert_eq!(rendered.args, json!([text.clone(), format!("a{text}b")]));
        prop_assert_eq!(rendered.holes.len(), 2);
    }

    #[test]
    fn no_text_makes_the_parser_panic_and_none_hides_a_name(
        before in "[a-z\"'(){}\\[\\]|~+.,: 0-9]{0,12}",
        after in "[a-z\"'(){}\\[\\]|~+.,: 0-9]{0,12}",
    ) {
        let marked = |value: &str| json!({ "event": { "x": value }, "slot": {}, "task": {}, "run": {}, "steps": {} });
        let args = json!(format!("{{{{ {before} event.x {after} }}}}"));
        let (Ok(one), Ok(two)) = (render_args(&args, &marked("1")), render_args(&args, &marked("2"))) else { return Ok(()) };
        // What the value from outside can change, it is named for.
        if one.args != two.args {
            prop_assert!(one.holes.iter().any(|hole| hole.name == "event.x"));
        }
    }
}
