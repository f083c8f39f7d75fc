//! What help, manual and completions say.

use expect_test::expect;

use crate::program::Owctl;

#[test]
fn help_leads_from_the_whole_to_one_command() {
    expect![[r#"
        exit 0
        Talks to owd, the automation daemon: tasks, runs, the Inbox

        Usage: owctl [OPTIONS] <COMMAND>

        Commands:
          status       What owd is doing, and what you should know
          chat         Talk with an agent
          session      Chats: what was said, and what stands open
          task         Tasks: what is done when, with what rights
          run          Runs: what was done, what came of it
          inbox        The Inbox: what waits for your answer
          rule         Standing rules: what may run without asking
          tool         What tasks and agents can do
          why          Why a task ran at a time, or did not
          forecast     What will run when
          explain      What owd would do and why; needs no daemon
          audit        Who decided what about which call, and what came of it
          model        The models that agents can be given
          secret       Named secrets: keys, tokens and passwords that calls and models are given
          webhook      Webhooks: what senders outside deliver, and which tasks run on it
          hook-url     Print the address to enter at a webhook's sender
          events       Watch everything that happens, live
          logs         Show owd's log, wherever it goes
          pause        The kill switch: nothing starts, running calls are stopped, items stay
          resume       Let work start again after `pause --all`
          reload       Have owd read its configuration and task files again
          backup       Back the running store up into a new folder
          restore      Put a backup in the place of the store; owd must not be running
          config       The configuration file and the task files
          hook         Your own programs that are asked before a call and told after it
          trust        Hooks that workspaces bring: which of them may run
          doctor       Check that everything owd needs is in order
          service      Have the system start owd and keep it running
          completions  Print completions for a shell
          man          Print the manual page, or write those of all commands into a folder
          openapi      The OpenAPI document of the control API, as the running owd has it
          exit-codes   List the exit codes
          help         Print this message or the help of the given subcommand(s)

        Options:
              --json           Answer in JSON, errors too
              --socket <PATH>  The control socket of the owd that is meant [env: OWD_SOCKET]
              --home <DIR>     The one folder that holds all of owd's files [env: OWD_HOME]
              --system         Mean the system's owd (/run/owd) rather than your own
          -h, --help           Print help
          -V, --version        Print version

        Examples:
          owctl status                          what owd is doing
          owctl chat                            talk with an agent
          owctl inbox list                      what waits for you
          owctl inbox approve 7k2               let it run, once
          owctl task add reports.toml           a new task
          owctl why reports yesterday           why it ran, or did not
          owctl explain cron '0 9 * * mon-fri'  when that would fire; needs no daemon

        Ids may be shortened as long as they fit one thing only. `owctl help COMMAND` tells more,
        `owctl help exit-codes` lists the exit codes.
    "#]]
    .assert_eq(&Owctl::new().run(["--help"]).shown());
    expect![[r#"
        exit 0
        The Inbox: what waits for your answer

        Usage: owctl inbox [OPTIONS] <COMMAND>

        Commands:
          list      List what waits for you, newest first
          show      Show all of an item: what exactly would run, why it asks, what your answer is bound to,
                    where it was told of
          approve   Let the call run, once; agree to a plan, a folder or more budget; or acknowledge a
                    notification
          deny      Do not let the call run
          answer    Answer a question
          delegate  Hand an item on to another inbox: it is told of there, and its people may answer too
          watch     Watch the Inbox: what waits now, then each new item and each answer
          deliver   Hand owd a mail that may answer an item
          test      Send a test notice to wherever an inbox is told of, and say what each answered
          help      Print this message or the help of the given subcommand(s)

        Options:
              --json           Answer in JSON, errors too
              --socket <PATH>  The control socket of the owd that is meant [env: OWD_SOCKET]
              --home <DIR>     The one folder that holds all of owd's files [env: OWD_HOME]
              --system         Mean the system's owd (/run/owd) rather than your own
          -h, --help           Print help
    "#]]
    .assert_eq(&Owctl::new().run(["inbox", "--help"]).shown());
    expect![[r#"
        exit 0
        Let the call run, once; agree to a plan, a folder or more budget; or acknowledge a notification

        Usage: owctl inbox approve [OPTIONS] <ITEM>

        Arguments:
          <ITEM>  The item's id, a unique beginning of it, or its token `[ow:…]`

        Options:
              --for-task       Also store the rule that the item offers
              --json           Answer in JSON, errors too
              --socket <PATH>  The control socket of the owd that is meant [env: OWD_SOCKET]
              --tool           Also every call of this tool in this session
              --command        Also every call with exactly this command line in this session
              --home <DIR>     The one folder that holds all of owd's files [env: OWD_HOME]
              --edit           Edit the arguments first
              --system         Mean the system's owd (/run/owd) rather than your own
              --args <JSON>    Run with these arguments instead: a JSON object
          -h, --help           Print help

        Examples:
          owctl inbox approve 7k2
          owctl inbox approve '[ow:7k2m9q4r8t0v3x5z]'   the token, as pasted from a notice
          owctl inbox approve 7k2 --for-task            also from now on, exactly as offered
          owctl inbox approve 7k2 --tool                also every call of this tool in this session
          owctl inbox approve 7k2 --edit                with other arguments, in your editor
          owctl inbox approve 7k2 --args '{"argv":["df","-h"]}'

        The first answer counts. Edited arguments are judged again before they run.
    "#]]
    .assert_eq(&Owctl::new().run(["help", "inbox", "approve"]).shown());
}

#[test]
fn the_exit_codes_are_listed() {
    expect![[r#"
        exit 0
        Exit codes:
          0  done
          1  it failed; with `--wait` or `run watch`: the run did not succeed
          2  the command line, a value or a definition is wrong; nothing was changed
          3  owd is not running
          4  no such task, run, item or rule; or a prefix that fits several
          5  already answered, expired, withdrawn, or changed meanwhile
          6  owd of another version is running: restart it
          7  this user or process may not do that
          75  `inbox deliver`: not now, hand the mail over again
    "#]]
    .assert_eq(&Owctl::new().run(["exit-codes"]).shown());
    let ran = Owctl::new().run(["help", "exit-codes"]);
    assert!(ran.stdout.contains("3  owd is not running"), "{ran:?}");
}

#[test]
fn every_command_has_a_manual_page() {
    let owctl = Owctl::new();
    let folder = owctl.home().join("man1");
    let home = owctl.home().to_owned();
    let mut owctl = owctl;
    let ran = crate::program::Ran::of(&owctl.command().args(["man", "--out", "man1", "--json"]).output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    for page in
        ["owctl.1", "owctl-task-allow.1", "owctl-inbox-approve.1", "owctl-explain-cron.1", "owctl-service-install.1"]
    {
        let text = std::fs::read_to_string(folder.join(page)).unwrap();
        let title = format!(".TH {}", page.trim_end_matches(".1"));
        assert!(text.contains(&title), "{page} in {}", home.display());
    }
    assert!(ran.json()["written"].as_array().unwrap().len() > 50);
}

#[test]
fn completions_know_the_commands_of_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = Owctl::new().run(["completions", shell]);
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.contains("inbox") && ran.stdout.contains("for-task"), "{shell}");
    }
}

#[test]
fn the_version_is_told_in_json_too() {
    for args in [["--version", "--json"], ["--json", "--version"]] {
        let ran = Owctl::new().run(args);
        assert_eq!((ran.code, ran.json()["version"].as_str()), (0, Some(env!("CARGO_PKG_VERSION"))), "{ran:?}");
    }
    assert_eq!(Owctl::new().run(["--version"]).stdout, concat!("owctl ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_usage_shows_nothing_that_only_the_environment_says() {
    let plain = Owctl::new().run(["task", "show"]);
    assert!(plain.code == 2 && plain.stderr.contains("Usage: owctl task show <NAME>"), "{plain:?}");
    let set = Owctl::new().with("OWD_HOME", "/srv/owd").with("OWD_SOCKET", "/run/x.sock").run(["task", "show"]);
    assert_eq!((set.code, set.stderr), (2, plain.stderr));
}
