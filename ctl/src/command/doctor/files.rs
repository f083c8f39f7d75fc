use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ow_config::{Account, FileFault, HOOKS_FOLDER};

use super::machine::{Machine, Space};
use super::{Check, State};
use crate::command::checked::{About, Checked};
use crate::command::status::bytes;
use crate::failure::Failure;

/// Below this owd may not be able to write what it must.
const LEAST_SPACE: u64 = 64 << 20;
const LITTLE_SPACE: u64 = 1 << 30;

pub(super) fn config(machine: &Machine) -> Check {
    const NAME: &str = "config";
    let file = machine.paths.config_file.display();
    match machine.config() {
        Ok(_) if machine.paths.config_file.exists() => Check::ok(NAME, format!("{file} is good")),
        Ok(_) => Check::ok(NAME, format!("{file} is not there: the defaults are in effect")),
        Err(error) => Check::fail(NAME, faults(&error.faults), "correct it, then `owctl reload`"),
    }
}

pub(super) fn tasks(machine: &Machine, asked: &Result<Checked, Failure>) -> Check {
    const NAME: &str = "task files";
    // Without a configuration the defaults cannot be told; that check says so.
    if machine.config().is_err() {
        return Check::ok(NAME, "not looked at: the configuration has faults");
    }
    let checked = match asked {
        Ok(checked) => checked,
        Err(why) => return Check::warn(NAME, why.message.clone(), why.hint.clone().unwrap_or_default()),
    };
    let faults: Vec<&str> = checked.faults(About::Tasks).collect();
    if !faults.is_empty() {
        return Check::fail(NAME, faults.join(" | "), "correct it; owd sees the change by itself");
    }
    // An `at` that has passed is no matter: what owd has of it is its own to tell.
    let doubts: Vec<&str> = checked.doubts(&[About::After]).collect();
    if !doubts.is_empty() {
        return Check::warn(NAME, doubts.join(" | "), "correct it; owd sees the change by itself");
    }
    Check::ok(NAME, format!("{} in {}", checked.tasks, machine.paths.tasks_dir.display()))
}

/// A hook before a call that cannot run refuses whatever it is asked about.
pub(super) fn hooks(machine: &Machine) -> Check {
    const NAME: &str = "hooks";
    let Ok(config) = machine.config() else { return Check::ok(NAME, "not looked at: the configuration has faults") };
    let folder = machine.paths.config_file.with_file_name(HOOKS_FOLDER);
    let broken: Vec<String> =
        config.hook.iter().filter_map(|hook| hook.program(&folder).err()).map(|fault| fault.to_string()).collect();
    if broken.is_empty() {
        return Check::ok(NAME, format!("{} configured, and their programs can run", config.hook.len()));
    }
    let remedy = "mend it, or take it out of owd.toml: until then it refuses the calls that it is asked about";
    Check::fail(NAME, broken.join(" | "), remedy)
}

fn faults(faults: &[FileFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
}

pub(super) fn data_folder(machine: &Machine) -> Check {
    const NAME: &str = "data folder";
    let folder = &machine.paths.data_dir;
    let found = match fs::metadata(folder) {
        Ok(found) => found,
        Err(why) if why.kind() == ErrorKind::NotFound => {
            return Check::warn(
                NAME,
                format!("{} is not there yet", folder.display()),
                "it is made at the first start of owd",
            );
        }
        Err(why) => {
            let message = format!("{} cannot be looked at: {why}", folder.display());
            return Check::fail(NAME, message, "run this as the account that owd runs under");
        }
    };
    if !found.is_dir() {
        return Check::fail(NAME, format!("{} is no folder", folder.display()), "move it away; owd makes the folder");
    }
    if let Some(check) = foreign(NAME, folder, &found, machine) {
        return check;
    }
    private(NAME, folder, &found, 0o077, "700")
}

pub(super) fn socket(machine: &Machine) -> Check {
    const NAME: &str = "socket";
    let socket = &machine.paths.socket;
    let Ok(found) = fs::symlink_metadata(socket) else {
        return Check::warn(NAME, format!("{} is not there", socket.display()), "owd makes it when it starts");
    };
    let (forbidden, right) = match machine.account {
        Account::Person => (0o077, "600"),
        // Its group may speak to owd.
        Account::System => (0o007, "660"),
    };
    private(NAME, socket, &found, forbidden, right)
}

pub(super) fn key(machine: &Machine) -> Check {
    const NAME: &str = "key";
    let config = machine.config().ok();
    let file = config.as_ref().and_then(|config| config.server.key_file.clone());
    let listens = config.is_some_and(|config| config.server.tcp.is_some());
    secret_file(NAME, &file.unwrap_or_else(|| machine.paths.key_file.clone()), machine, || {
        if listens { "owd makes it when it starts".into() } else { "not needed: owd listens on its socket only".into() }
    })
}

pub(super) fn secrets(machine: &Machine, asked: &Result<Checked, Failure>) -> Check {
    const NAME: &str = "secrets";
    let file = machine.config().ok().and_then(|config| config.secrets.file);
    let check = secret_file(NAME, &file.unwrap_or_else(|| machine.paths.secrets_file.clone()), machine, || {
        "no secrets file".into()
    });
    let Ok(checked) = asked else { return check };
    let told = |found: Vec<&str>| (check.state == State::Ok && !found.is_empty()).then(|| found.join(" | "));
    if let Some(faults) = told(checked.faults(About::Secrets).collect()) {
        return Check::fail(NAME, faults, "correct it: until then owd does not start");
    }
    match told(checked.doubts(&[About::Secrets]).collect()) {
        Some(doubts) => Check::warn(NAME, doubts, "run this as the account that owd runs under"),
        None => check,
    }
}

fn secret_file(name: &'static str, file: &PathBuf, machine: &Machine, absent: impl FnOnce() -> String) -> Check {
    let Ok(found) = fs::metadata(file) else { return Check::ok(name, absent()) };
    if let Some(check) = foreign(name, file, &found, machine) {
        return check;
    }
    private(name, file, &found, 0o177, "600")
}

pub(super) fn disk(machine: &Machine) -> Check {
    const NAME: &str = "disk space";
    let folder = machine.paths.data_dir.display();
    let remedy = "free some space, or move the data folder: owd refuses what it cannot store";
    match (machine.space)(&machine.paths.data_dir) {
        Ok(Space { free, .. }) if free < LEAST_SPACE => {
            Check::fail(NAME, format!("only {} are free for {folder}", bytes(free)), remedy)
        }
        Ok(Space { free, total }) if free < LITTLE_SPACE && free < total / 10 => {
            Check::warn(NAME, format!("only {} are free for {folder}", bytes(free)), remedy)
        }
        Ok(Space { free, .. }) => Check::ok(NAME, format!("{} are free", bytes(free))),
        Err(why) => Check::warn(NAME, format!("cannot be told for {folder}: {why}"), "see `df`"),
    }
}

/// What another account owns, that account can change.
fn foreign(name: &'static str, path: &Path, found: &Metadata, machine: &Machine) -> Option<Check> {
    let owner = machine.owner.filter(|owner| *owner != found.uid())?;
    let message = format!("{} belongs to user {} and not to user {owner}", path.display(), found.uid());
    Some(Check::fail(name, message, format!("`sudo chown -R {owner} {}`", path.display())))
}

fn private(name: &'static str, path: &Path, found: &Metadata, forbidden: u32, right: &str) -> Check {
    let mode = found.permissions().mode() & 0o7777;
    if mode & forbidden == 0 {
        return Check::ok(name, format!("{} (mode {mode:03o})", path.display()));
    }
    let message = format!("{} has mode {mode:03o}: others may use it", path.display());
    Check::fail(name, message, format!("`chmod {right} {}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::checked::{Doubt, Fault};

    struct Broken {
        _folder: tempfile::TempDir,
        machine: Machine,
    }

    fn broken(how: impl FnOnce(&mut Machine)) -> Broken {
        let folder = tempfile::tempdir().unwrap();
        let mut machine = Machine::sound(folder.path());
        how(&mut machine);
        Broken { _folder: folder, machine }
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[track_caller]
    fn finds(check: fn(&Machine) -> Check, state: State, word: &str, how: impl FnOnce(&mut Machine)) {
        let sound = broken(|_| {});
        assert_eq!(check(&sound.machine).state, State::Ok, "sound: {:?}", check(&sound.machine));
        let broken = broken(how);
        let found = check(&broken.machine);
        assert_eq!(found.state, state, "{found:?}");
        assert!(found.message.contains(word), "{found:?}");
        assert!(found.remedy.is_some(), "{found:?}");
    }

    fn secrets_file(machine: &Machine) -> Check {
        secrets(machine, &Ok(found(&[], &[])))
    }

    #[test]
    fn a_faulty_configuration_is_named_with_its_line() {
        finds(config, State::Fail, "owd.toml:1", |machine| {
            fs::write(&machine.paths.config_file, "colour = 1\n").unwrap();
        });
    }

    fn found(faults: &[(About, &str)], doubts: &[(About, &str)]) -> Checked {
        let fault = |(about, message): &(About, &str)| Fault { about: *about, message: (*message).into() };
        let doubt = |(about, message): &(About, &str)| Doubt { about: *about, task: None, message: (*message).into() };
        Checked { tasks: 1, faults: faults.iter().map(fault).collect(), doubts: doubts.iter().map(doubt).collect() }
    }

    #[test]
    fn what_owd_would_refuse_or_doubt_is_named() {
        let Broken { machine, _folder } = &broken(|_| {});
        let fault = |about: About| Ok(found(&[(about, "x.toml: wrong")], &[]));
        let doubt = |about: About| Ok(found(&[], &[(about, "x.toml: odd")]));
        let of_tasks = |asked| tasks(machine, &asked).state;
        assert_eq!(of_tasks(Ok(found(&[], &[]))), State::Ok);
        assert_eq!(of_tasks(fault(About::Tasks)), State::Fail);
        assert_eq!(of_tasks(doubt(About::After)), State::Warn);
        assert_eq!(of_tasks(doubt(About::Past)), State::Ok, "owd may have it from before then");
        assert_eq!(of_tasks(fault(About::Secrets)), State::Ok);
        assert_eq!(of_tasks(Err(Failure::failed("no_owd", "no owd"))), State::Warn);
        let of_secrets = |asked| secrets(machine, &asked).state;
        assert_eq!(of_secrets(Ok(found(&[], &[]))), State::Ok);
        assert_eq!(of_secrets(fault(About::Secrets)), State::Fail);
        assert_eq!(of_secrets(doubt(About::Secrets)), State::Warn);
        assert_eq!(of_secrets(fault(About::Tasks)), State::Ok);
    }

    #[test]
    fn a_hook_that_cannot_run_is_named() {
        let hook = |machine: &mut Machine| {
            let text = "[[hook]]\nevent = \"pre-tool-use\"\ncommand = \"./guard\"\n";
            fs::write(&machine.paths.config_file, text).unwrap();
        };
        finds(hooks, State::Fail, "there is no file", hook);
        finds(hooks, State::Fail, "is not executable", |machine| {
            hook(machine);
            let folder = machine.paths.config_file.with_file_name(HOOKS_FOLDER);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("guard"), "#!/bin/sh\n").unwrap();
            chmod(&folder.join("guard"), 0o600);
        });
    }

    #[test]
    fn a_data_folder_that_is_none_is_named() {
        finds(data_folder, State::Fail, "is no folder", |machine| {
            fs::remove_dir_all(&machine.paths.data_dir).unwrap();
            fs::write(&machine.paths.data_dir, "a file").unwrap();
        });
        finds(data_folder, State::Fail, "cannot be looked at", |machine| {
            machine.paths.data_dir = machine.paths.config_file.join("data");
        });
    }

    #[test]
    fn a_key_and_secrets_of_another_account_are_named() {
        let other = |machine: &mut Machine| machine.owner = machine.owner.map(|uid| uid + 1);
        finds(key, State::Fail, "belongs to user", other);
        finds(secrets_file, State::Fail, "belongs to user", other);
    }

    #[test]
    fn a_file_system_that_does_not_tell_its_space_is_named() {
        finds(disk, State::Warn, "cannot be told", |machine| machine.space = |_| Err(ErrorKind::Unsupported.into()));
    }

    #[test]
    fn a_data_folder_that_others_may_read_is_named() {
        finds(data_folder, State::Fail, "755", |machine| chmod(&machine.paths.data_dir, 0o755));
    }

    #[test]
    fn a_data_folder_of_another_account_is_named() {
        finds(data_folder, State::Fail, "belongs to user", |machine| machine.owner = machine.owner.map(|uid| uid + 1));
    }

    #[test]
    fn a_missing_data_folder_is_no_failure_before_the_first_start() {
        finds(data_folder, State::Warn, "not there", |machine| fs::remove_dir_all(&machine.paths.data_dir).unwrap());
    }

    #[test]
    fn a_socket_that_others_may_use_is_named() {
        finds(socket, State::Fail, "666", |machine| chmod(&machine.paths.socket, 0o666));
        finds(socket, State::Warn, "not there", |machine| fs::remove_file(&machine.paths.socket).unwrap());
    }

    #[test]
    fn the_systems_socket_may_be_used_by_its_group() {
        let system = broken(|machine| {
            machine.account = Account::System;
            chmod(&machine.paths.socket, 0o660);
        });
        assert_eq!(socket(&system.machine).state, State::Ok);
    }

    #[test]
    fn a_readable_key_and_a_readable_secrets_file_are_named() {
        finds(key, State::Fail, "644", |machine| chmod(&machine.paths.key_file, 0o644));
        finds(secrets_file, State::Fail, "640", |machine| chmod(&machine.paths.secrets_file, 0o640));
    }

    #[test]
    fn the_secrets_file_that_the_configuration_names_is_the_one() {
        finds(secrets_file, State::Fail, "other.toml", |machine| {
            let other = machine.paths.config_dir.join("other.toml");
            fs::write(&other, "").unwrap();
            chmod(&other, 0o604);
            fs::write(&machine.paths.config_file, format!("[secrets]\nfile = {:?}\n", other.display().to_string()))
                .unwrap();
        });
    }

    #[test]
    fn a_full_disk_fails_and_a_nearly_full_one_warns() {
        finds(disk, State::Fail, "1.0 MiB", |machine| machine.space = |_| Ok(Space { free: 1 << 20, total: 1 << 40 }));
        finds(disk, State::Warn, "512.0 MiB", |machine| {
            machine.space = |_| Ok(Space { free: 512 << 20, total: 1 << 40 });
        });
        // A small file system that is hardly used is no cause to worry.
        let small = broken(|machine| machine.space = |_| Ok(Space { free: 512 << 20, total: 600 << 20 }));
        assert_eq!(disk(&small.machine).state, State::Ok);
    }
}
