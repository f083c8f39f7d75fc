//! What needs no owd: configuration, service, logs, doctor.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use expect_test::expect;
use serde_json::json;

use crate::program::{self, Owctl, Ran};

#[test]
fn the_configuration_is_shown_and_its_faults_are_told_by_line() {
    let owctl = Owctl::new();
    let folder = owctl.home().join(".config/owd");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("owd.toml"), "[scheduler]\nworkers = 4\n").unwrap();
    let home = owctl.home().to_owned();
    let run = |args: &[&str]| Owctl::new().with("HOME", &home).run(args);
    assert_eq!(run(&["config", "show", "--json"]).json()["scheduler"]["workers"], 4);
    fs::write(folder.join("owd.toml"), "[scheduler]\nworkrs = 4\n").unwrap();
    for command in ["show", "check"] {
        let ran = run(&["config", command]);
        assert!(ran.code == 2 && ran.stderr.contains("owd.toml:2"), "{ran:?}");
    }
}

/// Programs that write down how they were called, in the place of the system's.
fn recorded(home: &Path, programs: &[(&str, i32)]) -> String {
    let bin = home.join("bin");
    fs::create_dir_all(&bin).unwrap();
    for (name, code) in programs {
        let path = bin.join(name);
        program::script(&path, &format!("echo \"{name} $*\" >> {}\nexit {code}", home.join("calls").display()));
    }
    format!("{}:/usr/bin:/bin", bin.display())
}

#[test]
#[cfg(target_os = "linux")]
fn a_service_is_installed_and_removed_with_the_commands_of_systemd() {
    let home = tempfile::tempdir().unwrap();
    let path = recorded(home.path(), &[("systemctl", 0), ("loginctl", 1)]);
    let run = |args: &[&str]| Owctl::new().with("HOME", home.path()).with("PATH", &path).run(args);
    let owd = home.path().join("owd");
    program::copy("/bin/true", &owd);
    let ran = run(&["service", "install", "--owd", owd.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("owd stops when you log out"), "lingering failed: {ran:?}");
    let unit = home.path().join(".config/systemd/user/owd.service");
    assert!(fs::read_to_string(&unit).unwrap().contains(&format!("\nExecStart={}\n", owd.display())));
    let ran = run(&["service", "status", "--json"]);
    assert_eq!((&ran.json()["installed"], &ran.json()["active"]), (&json!(true), &json!(true)));
    let down = Owctl::new().with("HOME", home.path()).with("OWD_SOCKET", "/nonexistent").run(["status"]);
    assert!(down.stderr.contains("systemctl --user start owd"), "{down:?}");
    assert_eq!(run(&["service", "uninstall"]).code, 0);
    assert!(!unit.exists());
    let ran = run(&["service", "uninstall"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    expect![[r#"
        systemctl --user daemon-reload
        systemctl --user enable --now owd.service
        loginctl enable-linger
        systemctl --user is-enabled --quiet owd.service
        systemctl --user is-active --quiet owd.service
        systemctl --user disable --now owd.service
        systemctl --user daemon-reload
    "#]]
    .assert_eq(&fs::read_to_string(home.path().join("calls")).unwrap());
}

#[test]
#[cfg(target_os = "linux")]
fn a_service_that_the_manager_does_not_take_leaves_the_unit_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let path = recorded(home.path(), &[("systemctl", 1)]);
    let run = || {
        let owctl = Owctl::new().with("HOME", home.path()).with("PATH", &path);
        owctl.run(["service", "install", "--owd", "/bin/true"])
    };
    let unit = home.path().join(".config/systemd/user/owd.service");
    let ran = run();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(!unit.exists(), "{ran:?}");
    fs::write(&unit, "mine\n").unwrap();
    assert_eq!(run().code, 1);
    assert_eq!(fs::read_to_string(&unit).unwrap(), "mine\n");
}

#[test]
#[cfg(target_os = "linux")]
fn a_service_starts_owd_where_owctl_was_told_that_its_files_are() {
    let run = |with: &[(&str, &str)], args: &[&str]| {
        let owctl = with.iter().fold(Owctl::new(), |owctl, (name, value)| owctl.with(name, value));
        let install = ["service", "install", "--dry-run", "--owd", "/bin/true"];
        owctl.run(install.iter().chain(args))
    };
    for (with, args, line) in [
        (&[("OWD_HOME", "/srv/owd")][..], &[][..], "ExecStart=/bin/true --home /srv/owd\n"),
        (&[], &["--home", "/srv/my owd"], "ExecStart=/bin/true --home \"/srv/my owd\"\n"),
        (&[("OWD_SOCKET", "/run/x.sock")], &[], "ExecStart=/bin/true --socket /run/x.sock\n"),
    ] {
        let ran = run(with, args);
        assert!(ran.stdout.contains(line), "{ran:?}");
    }
    let ran = run(&[("OWD_HOME", "/srv/owd")], &["--system"]);
    assert!(ran.code == 2 && ran.stderr.contains("--home"), "{ran:?}");
    let ran = run(&[], &["--home", "here"]);
    assert!(ran.stdout.contains("--home /") && ran.stdout.contains("/here\n"), "it starts in another folder: {ran:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_dry_run_of_the_systems_service_changes_nothing() {
    let ran = Owctl::new().run(["service", "install", "--system", "--dry-run", "--owd", "/bin/true", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let steps = ran.json()["steps"].as_array().unwrap().clone();
    let kinds: Vec<&str> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["write", "run", "write", "run", "run"]);
    assert!(steps[2]["text"].as_str().unwrap().contains("ExecStart=/bin/true --system"));
    assert_eq!(steps[4]["argv"], json!(["systemctl", "enable", "--now", "owd.service"]));
}

#[test]
fn a_service_without_owd_is_not_installed() {
    let ran = Owctl::new().run(["service", "install", "--owd", "/no/such/owd"]);
    expect![[r#"
        exit 2
        --
        error: the program `owd` is not found
        next:  name it with --owd, or put it beside owctl
    "#]]
    .assert_eq(&ran.shown());
}

#[test]
fn the_log_of_an_owd_that_is_down_can_be_read() {
    let owctl = Owctl::new();
    let log = owctl.home().join(".local/state/owd/log/owd.log");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    fs::write(&log, "one\n{\"level\":\"ERROR\"}\nthree\u{1b}[2J\n").unwrap();
    let home = owctl.home().to_owned();
    let run = |args: &[&str]| Owctl::new().with("HOME", &home).run(args);
    assert_eq!(run(&["logs", "-n", "1"]).stdout, "three\\u{1b}[2J\n");
    assert_eq!(run(&["logs", "-n", "2", "--json"]).stdout, "{\"level\":\"ERROR\"}\n{\"line\":\"three\\u001b[2J\"}\n");
}

#[test]
fn doctor_names_what_is_broken_and_how_to_mend_it() {
    let owctl = Owctl::new();
    let data = owctl.home().join(".local/state/owd");
    fs::create_dir_all(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = owctl.run(["doctor", "--json"]);
    assert_eq!((ran.code, ran.json()["ok"].as_bool()), (1, Some(false)));
    let report = ran.json();
    let failing: Vec<&str> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["state"] == "fail")
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    assert_eq!(failing, ["daemon", "data folder"]);
    for check in report["checks"].as_array().unwrap() {
        let is_ok = check["state"] == "ok";
        assert!(check["message"].is_string() && (is_ok || check["remedy"].is_string()), "{check}");
    }
}

#[test]
fn a_restore_without_a_yes_or_a_folder_does_nothing() {
    let ran = Owctl::new().run(["restore", "/no/such/folder", "--yes", "--json"]);
    assert_eq!((ran.code, ran.json()["error"]["code"].as_str()), (2, Some("usage")));
    let owctl = Owctl::new();
    let folder = owctl.home().to_owned();
    let ran = owctl.run([Path::new("restore"), &folder]);
    assert!(ran.code == 2 && ran.stderr.contains("--yes"), "{ran:?}");
}

#[test]
fn a_restore_is_owds_own() {
    let home = tempfile::tempdir().unwrap();
    let path = recorded(home.path(), &[("owd", 0)]);
    let backup = home.path().join("backup");
    fs::create_dir(&backup).unwrap();
    let mut owctl = Owctl::new().with("HOME", home.path()).with("PATH", &path);
    // Beside owctl another owd may stand, so the program is run from a folder of its own.
    let own = home.path().join("owctl");
    program::copy(env!("CARGO_BIN_EXE_owctl"), &own);
    let environment: Vec<_> =
        owctl.command().get_envs().map(|(name, value)| (name.to_owned(), value.unwrap().to_owned())).collect();
    let mut command = std::process::Command::new(own);
    command
        .env_clear()
        .envs(environment)
        .arg("--home")
        .arg(home.path().join("h"))
        .arg("restore")
        .arg(&backup)
        .arg("--yes");
    let ran = Ran::of(&command.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    let calls = fs::read_to_string(home.path().join("calls")).unwrap();
    assert_eq!(calls, format!("owd --home {} restore {}\n", home.path().join("h").display(), backup.display()));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut owctl = Owctl::new();
    let line = format!("{} completions bash | head -1", env!("CARGO_BIN_EXE_owctl"));
    let environment: Vec<_> =
        owctl.command().get_envs().map(|(name, value)| (name.to_owned(), value.unwrap().to_owned())).collect();
    let ran = std::process::Command::new("sh").arg("-c").arg(line).env_clear().envs(environment).output().unwrap();
    let ran = Ran::of(&ran);
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (0, "_owctl() {\n", ""));
}
