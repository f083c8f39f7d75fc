use std::os::unix::fs::PermissionsExt;

use ow_model::CallErrorKind;
use ow_policy::{binding_of, check_binding};
use ow_secret::Secrets;
use ow_tool::{Limits, as_if_filled};
use serde_json::json;

use crate::support::{Bench, call};

#[tokio::test]
async fn a_program_gets_its_arguments_as_they_are() {
    let bench = Bench::new();
    let output = bench.output("shell", json!({ "argv": ["printf", "%s|", "a b", "$HOME", "; rm -rf /", "*"] })).await;
    assert_eq!(output["stdout"], "a b|$HOME|; rm -rf /|*|");
    assert_eq!((&output["status"], &output["stderr"], &output["signal"]), (&json!(0), &json!(""), &json!(null)));
}

#[tokio::test]
async fn a_command_line_runs_in_a_shell() {
    let bench = Bench::new();
    let output = bench.output("shell", json!({ "command": "echo a | tr a b && echo $((1 + 1))" })).await;
    assert_eq!(output["stdout"], "b\n2\n");
    let output = bench.output("shell", json!({ "command": "echo 'one  word'" })).await;
    assert_eq!(output["stdout"], "one  word\n");
}

#[tokio::test]
async fn a_status_other_than_zero_is_a_failure_with_its_output() {
    let bench = Bench::new();
    let result = bench.run("shell", json!({ "command": "echo out; echo err >&2; exit 3" })).await;
    let error = result.error.unwrap();
    assert_eq!((error.kind, error.message.as_str()), (CallErrorKind::Failed, "exit status 3"));
    assert_eq!(result.output, json!({ "stdout": "out\n", "stderr": "err\n", "status": 3, "signal": null }));
    let result = bench.run("shell", json!({ "command": "kill -9 $$" })).await;
    assert_eq!(result.output["signal"], 9);
    assert_eq!(result.error.unwrap().message, "ended by signal 9");
}

#[tokio::test]
async fn the_environment_holds_nothing_in_which_a_key_could_stand() {
    // `ANTHROPIC_API_KEY` and the like never reach the helper: it is itself started with the allowed names only.
    let bench = Bench::new();
    let output = bench.output("shell", json!({ "argv": ["env"], "env": { "MINE": "1" } })).await;
    let known =
        ["PATH", "HOME", "LANG", "TZ", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "MINE", "OWD_HELPER", "PWD"];
    for line in output["stdout"].as_str().unwrap().lines() {
        let name = line.split('=').next().unwrap();
        assert!(known.contains(&name) || name.starts_with("LC_"), "{line}");
    }
    assert!(output["stdout"].as_str().unwrap().contains("MINE=1"));
}

#[tokio::test]
async fn a_secret_is_named_in_the_call_and_taken_out_of_the_result() {
    let mut bench = Bench::new();
    bench.secrets = Secrets::from_pairs([("token", "s3cr3t-Value/1"), ("other", "never-named")]).unwrap();
    let args = json!({
        "command": "echo $TOKEN; printf %s \"$TOKEN\" | base64; cat; echo never-named >&2",
        "env": { "TOKEN": { "secret": "token" } },
        "stdin": { "secret": "token", "prefix": "in " },
    });
    let output = bench.output("shell", args).await;
    // The last letter of the base64 text also depends on what follows the value, so it stays.
    assert_eq!(output["stdout"], "[redacted]\n[redacted]E=\nin [redacted]");
    assert_eq!(output["stderr"], "[redacted]\n");
    let check = json!({
        "command": "test \"$TOKEN\" = 's3cr3t-Value/1'", "env": { "TOKEN": { "secret": "token" } }
    });
    bench.output("shell", check).await;
    let error = bench.error("shell", json!({ "argv": ["true"], "env": { "A": { "secret": "nope" } } })).await;
    assert!(error.message.contains("no secret `nope`"), "{error}");
}

#[tokio::test]
async fn input_is_fed_and_may_be_left_unread() {
    let bench = Bench::new();
    let large = "x".repeat(1_000_000);
    let output = bench.output("shell", json!({ "argv": ["wc", "-c"], "stdin": large })).await;
    assert_eq!(output["stdout"].as_str().unwrap().trim(), "1000000");
    bench.output("shell", json!({ "argv": ["true"], "stdin": "y".repeat(1_000_000) })).await;
    let output = bench.output("shell", json!({ "argv": ["cat"] })).await;
    assert_eq!(output["stdout"], "");
}

#[tokio::test]
async fn a_command_runs_in_the_folder_it_names() {
    let bench = Bench::new();
    std::fs::create_dir(bench.root().join("sub")).unwrap();
    let output = bench.output("shell", json!({ "argv": ["pwd", "-P"], "cwd": "sub" })).await;
    assert_eq!(output["stdout"].as_str().unwrap().trim(), bench.root().join("sub").to_str().unwrap());
    let error = bench.error("shell", json!({ "argv": ["pwd"], "cwd": "gone" })).await;
    assert!(error.message.contains("gone") && error.message.contains("does not exist"), "{error}");
}

#[tokio::test]
async fn out_of_time_ends_the_command_and_keeps_what_it_said() {
    let bench = Bench::new();
    let args = json!({ "command": "echo begun; trap '' TERM; while :; do sleep 0.05; done", "timeout": "300ms" });
    let result = bench.run("shell", args).await;
    let error = result.error.unwrap();
    assert_eq!(error.kind, CallErrorKind::TimedOut);
    assert!(error.message.contains("300ms"), "{error}");
    assert_eq!(result.output["stdout"], "begun\n");
}

#[tokio::test]
async fn a_flood_of_output_is_bounded_and_its_beginning_and_end_are_shown() {
    let mut bench = Bench::new();
    bench.limits = Limits { output_bytes: 1000, kept_bytes: 100_000, ..bench.limits };
    let args = json!({ "command": "echo first; head -c 1073741824 /dev/zero | tr '\\0' 'x'; echo last" });
    let (result, kept) = bench.whole("shell", args).await;
    assert_eq!(result.error, None);
    let stdout = result.output["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("first\nxxx") && stdout.ends_with("xxxlast\n") && stdout.len() < 1100);
    assert_eq!(result.output["cut"]["stdout"], 1_073_741_824_u64 + 11);
    let [(name, whole)] = kept.as_slice() else { panic!("{}", kept.len()) };
    assert!(name == "stdout" && whole.len() > 100_000 && whole.len() < 101_000);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_shown_as_far_as_they_are() {
    let bench = Bench::new();
    let output = bench.output("shell", json!({ "argv": ["printf", "a\\377b\\000c"] })).await;
    assert_eq!(output["stdout"], "a\u{fffd}b\0c");
}

#[tokio::test]
async fn what_others_wrote_is_outside_content() {
    let bench = Bench::new();
    assert!(!bench.run("shell", json!({ "argv": ["echo", "a"] })).await.outside);
    assert!(bench.run("shell", json!({ "command": "curl --version || true" })).await.outside);
}

#[tokio::test]
async fn each_bad_argument_is_named_with_its_value_and_a_remedy() {
    let bench = Bench::new();
    for (args, words) in [
        (json!({}), vec!["`argv` or `command`"]),
        (json!([]), vec!["table"]),
        (json!({ "argv": "df -h" }), vec!["`argv`", "df -h", "[\"df\", \"-h\"]"]),
        (json!({ "argv": [] }), vec!["`argv`", "program"]),
        (json!({ "argv": [""] }), vec!["`argv`", "program"]),
        (json!({ "argv": ["a", 1] }), vec!["`argv`", "1"]),
        (json!({ "argv": ["a", "b\u{0}"] }), vec!["`argv`", "zero"]),
        (json!({ "argv": ["a"], "command": "a" }), vec!["not both"]),
        (json!({ "argv": ["a"], "comand": "a" }), vec!["`comand`", "`command`"]),
        (json!({ "argv": ["a"], "timeout": "soon" }), vec!["`timeout`", "soon", "90s"]),
        (json!({ "argv": ["a"], "timeout": "0s" }), vec!["`timeout`", "0s"]),
        (json!({ "argv": ["a"], "env": ["A=1"] }), vec!["`env`", "table"]),
        (json!({ "argv": ["a"], "env": { "A=B": "1" } }), vec!["`env`", "A=B"]),
        (json!({ "argv": ["a"], "env": { "A": 1 } }), vec!["`env`", "`A`", "1"]),
        (json!({ "argv": ["a"], "env": { "A": { "secret": "b", "x": "" } } }), vec!["`env`", "`A`", "secret"]),
        (json!({ "argv": ["a"], "env": { "OWD_HELPER": "1" } }), vec!["OWD_HELPER"]),
        (json!({ "command": "a", "env": { "BASH_ENV": "x" } }), vec!["BASH_ENV", "argv"]),
        (json!({ "argv": ["a"], "stdin": 5 }), vec!["`stdin`", "5"]),
        (json!({ "argv": ["no-such-program-here"] }), vec!["no-such-program-here"]),
        (json!({ "argv": ["./missing"] }), vec!["./missing"]),
    ] {
        let error = bench.error("shell", args.clone()).await;
        for word in words {
            assert!(error.message.contains(word), "{args}: {error} lacks {word}");
        }
    }
}

#[tokio::test]
async fn a_program_that_is_no_program_fails_with_a_reason() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let path = bench.file("tool", "no interpreter line");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = bench.error("shell", json!({ "argv": ["./tool"] })).await;
    assert!(error.message.contains("cannot run") && error.message.contains("exec format"), "{error}");
}

#[test]
fn an_answer_is_bound_to_every_program_of_a_line() {
    let bench = Bench::new();
    let program = |name: &str, text: &str| {
        let path = bench.file(name, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    for name in ["bin/one", "bin/two", "three", "sub/four", "bin/five"] {
        program(name, "#!/bin/sh\n");
    }
    let path = format!("{}:/usr/bin:/bin", bench.root().join("bin").display());
    let call = call(
        "shell",
        json!({ "command": "one | two && ./three; cd sub; env ./four; sh -c five", "env": { "PATH": path } }),
    );
    let before = bench.facts(&call).unwrap();
    let bound = binding_of(&before);
    for name in ["bin/one", "bin/two", "three", "sub/four", "bin/five"] {
        let file = bound.files.iter().find(|file| file.path == bench.root().join(name));
        assert!(file.is_some(), "{name} is bound: {bound:?}");
        program(name, "#!/bin/sh\nrm -rf ~\n");
        let now = binding_of(&bench.facts(&call).unwrap());
        let changed = check_binding(&bound, &now).unwrap_err();
        assert!(changed.contains(name), "{changed}");
        program(name, "#!/bin/sh\n");
    }
}

#[test]
fn a_template_fits_wherever_what_fills_it_may_fit() {
    let bench = Bench::new();
    let check = |tool: &str, args: serde_json::Value| {
        let tool = bench.tool(tool);
        tool.check(&as_if_filled(tool.spec(), &args))
    };
    let whole = "{{ steps.plan.value }}";
    for (tool, args) in [
        ("shell", json!({ "argv": ["true"], "timeout": whole })),
        ("shell", json!({ "argv": ["true"], "timeout": "{{ steps.plan.seconds }}s" })),
        ("shell", json!({ "argv": whole })),
        ("shell", json!({ "argv": ["true"], "env": whole })),
        ("search_files", json!({ "text": "x", "limit": whole })),
        ("http_request", json!({ "url": whole, "method": whole, "timeout": whole })),
        ("http_request", json!({ "url": "https://{{ event.host }}/" })),
    ] {
        assert_eq!(check(tool, args.clone()), Ok(()), "{args}");
    }
    for (tool, args) in [
        ("shell", json!({ "argv": ["true"], "timeout": "soon" })),
        ("search_files", json!({ "text": "x", "limit": "{{ slot.date }} and more" })),
        ("shell", json!({ "argv": ["true"], "tiemout": whole })),
        ("http_request", json!({ "method": whole })),
        ("http_request", json!({ "url": "no address" })),
        ("http_request", json!({ "url": "https://a.example/", "method": "FETCH" })),
    ] {
        assert!(check(tool, args.clone()).is_err(), "{args}");
    }
}
