#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
#![expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]

use std::fmt::Write;

use expect_test::{Expect, expect};

use super::*;

fn find(account: Account, variables: &[(&str, &str)], flags: &PathFlags) -> Result<Paths, PathsError> {
    let environment = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
    Paths::for_user(account, &environment, flags)
}

fn check(account: Account, variables: &[(&str, &str)], flags: &PathFlags, expected: Expect) {
    let Paths { config_dir, config_file, tasks_dir, data_dir, socket, log_file, secrets_file, key_file } =
        find(account, variables, flags).expect("the places are known");
    let mut shown = String::new();
    for (name, path) in [
        ("config", config_dir),
        ("file", config_file),
        ("tasks", tasks_dir),
        ("data", data_dir),
        ("socket", socket),
        ("log", log_file),
        ("secrets", secrets_file),
        ("key", key_file),
    ] {
        writeln!(shown, "{name} {}", path.display()).expect("a string takes all text");
    }
    expected.assert_eq(&shown);
}

fn no_flags() -> PathFlags {
    PathFlags::default()
}

#[test]
fn a_person_s_files_are_in_the_xdg_folders() {
    check(
        Account::Person,
        &[("HOME", "/home/ada"), ("XDG_RUNTIME_DIR", "/run/user/1000")],
        &no_flags(),
        expect![[r#"
        config /home/ada/.config/owd
        file /home/ada/.config/owd/owd.toml
        tasks /home/ada/.config/owd/tasks.d
        data /home/ada/.local/state/owd
        socket /run/user/1000/owd/owd.sock
        log /home/ada/.local/state/owd/log/owd.log
        secrets /home/ada/.config/owd/secrets.toml
        key /home/ada/.local/state/owd/key
    "#]],
    );
    check(
        Account::Person,
        &[("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "/d"), ("XDG_STATE_HOME", "/s"), ("XDG_RUNTIME_DIR", "/r")],
        &no_flags(),
        expect![[r#"
            config /c/owd
            file /c/owd/owd.toml
            tasks /c/owd/tasks.d
            data /s/owd
            socket /r/owd/owd.sock
            log /s/owd/log/owd.log
            secrets /c/owd/secrets.toml
            key /s/owd/key
        "#]],
    );
}

#[test]
fn without_a_runtime_folder_the_socket_is_with_the_data() {
    let paths = find(Account::Person, &[("HOME", "/home/ada"), ("XDG_DATA_HOME", "/d")], &no_flags()).expect("known");
    assert_eq!(paths.socket, Path::new("/d/owd/owd.sock"));
}

#[test]
fn relative_xdg_folders_are_ignored() {
    let variables = [("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "conf"), ("XDG_RUNTIME_DIR", "run")];
    let paths = find(Account::Person, &variables, &no_flags()).expect("known");
    assert_eq!(paths.config_dir, Path::new("/home/ada/.config/owd"));
    assert_eq!(paths.socket, Path::new("/home/ada/.local/state/owd/owd.sock"));
}

#[test]
fn the_system_s_files_are_in_its_folders() {
    check(
        Account::System,
        &[("HOME", "/root"), ("XDG_RUNTIME_DIR", "/run/user/0")],
        &no_flags(),
        expect![[r#"
        config /etc/owd
        file /etc/owd/owd.toml
        tasks /etc/owd/tasks.d
        data /var/lib/owd
        socket /run/owd/owd.sock
        log /var/log/owd/owd.log
        secrets /etc/owd/secrets.toml
        key /var/lib/owd/key
    "#]],
    );
}

#[test]
fn one_folder_can_hold_everything() {
    check(
        Account::System,
        &[("OWD_HOME", "/x"), ("STATE_DIRECTORY", "/var/lib/owd")],
        &no_flags(),
        expect![[r#"
        config /x/config
        file /x/config/owd.toml
        tasks /x/config/tasks.d
        data /x/data
        socket /x/owd.sock
        log /x/log/owd.log
        secrets /x/config/secrets.toml
        key /x/data/key
    "#]],
    );
    let flags = PathFlags { home: Some("/y".into()), ..no_flags() };
    assert_eq!(find(Account::Person, &[("OWD_HOME", "/x")], &flags), Ok(Paths::below(Path::new("/y"))));
}

#[test]
fn a_unit_s_folders_are_systemd_s() {
    check(
        Account::System,
        &[
            ("STATE_DIRECTORY", "/var/lib/private/owd:/var/lib/private/owd-more"),
            ("CONFIGURATION_DIRECTORY", "/etc/owd"),
            ("RUNTIME_DIRECTORY", "/run/owd"),
            ("LOGS_DIRECTORY", "/var/log/owd"),
        ],
        &no_flags(),
        expect![[r#"
            config /etc/owd
            file /etc/owd/owd.toml
            tasks /etc/owd/tasks.d
            data /var/lib/private/owd
            socket /run/owd/owd.sock
            log /var/log/owd/owd.log
            secrets /etc/owd/secrets.toml
            key /var/lib/private/owd/key
        "#]],
    );
    check(
        Account::Person,
        &[("HOME", "/home/ada"), ("STATE_DIRECTORY", "/home/ada/.local/state/owd-two:/s/owd")],
        &no_flags(),
        expect![[r#"
            config /home/ada/.config/owd
            file /home/ada/.config/owd/owd.toml
            tasks /home/ada/.config/owd/tasks.d
            data /s/owd
            socket /s/owd/owd.sock
            log /s/owd/log/owd.log
            secrets /home/ada/.config/owd/secrets.toml
            key /s/owd/key
        "#]],
    );
}

#[test]
fn another_unit_s_folders_are_not_ours() {
    let variables =
        [("HOME", "/home/ada"), ("STATE_DIRECTORY", "/var/lib/editor"), ("RUNTIME_DIRECTORY", "/run/editor")];
    let paths = find(Account::Person, &variables, &no_flags()).expect("known");
    assert_eq!(paths, find(Account::Person, &[("HOME", "/home/ada")], &no_flags()).expect("known"));
}

#[test]
fn flags_win_and_take_along_what_lies_beside() {
    let flags = PathFlags {
        config_file: Some("/etc/mine/my.toml".into()),
        data_dir: Some("/data".into()),
        log_file: Some("/log/x".into()),
        ..no_flags()
    };
    check(
        Account::Person,
        &[("HOME", "/home/ada")],
        &flags,
        expect![[r#"
        config /etc/mine
        file /etc/mine/my.toml
        tasks /etc/mine/tasks.d
        data /data
        socket /data/owd.sock
        log /log/x
        secrets /etc/mine/secrets.toml
        key /data/key
    "#]],
    );
    let flags = PathFlags { socket: Some("/tmp/s".into()), ..no_flags() };
    assert_eq!(find(Account::System, &[], &flags).expect("known").socket, Path::new("/tmp/s"));
}

#[test]
fn a_relative_flag_is_made_absolute() {
    let flags = PathFlags { home: Some("scratch".into()), ..no_flags() };
    let paths = find(Account::Person, &[], &flags).expect("known");
    assert!(paths.data_dir.is_absolute() && paths.data_dir.ends_with("scratch/data"));
}

#[test]
fn what_cannot_be_told_says_what_to_set() {
    let long = format!("/{}", "x".repeat(120));
    for (variables, expected) in [
        (vec![], expect!["HOME is not set; set it, or name one folder for everything with OWD_HOME"]),
        (
            vec![("HOME", "relative")],
            expect!["HOME is not set; set it, or name one folder for everything with OWD_HOME"],
        ),
        (
            vec![("OWD_HOME", long.as_str())],
            expect![
                "the socket path `/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx/owd.sock` is 130 bytes long, and a Unix socket may have 107; choose a shorter one with --socket, or a shorter OWD_HOME"
            ],
        ),
    ] {
        let error = find(Account::Person, &variables, &no_flags()).expect_err("it cannot be told");
        expected.assert_eq(&error.to_string());
    }
}
