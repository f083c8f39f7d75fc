use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ow_config::{Account, FileFault, HOOKS_FOLDER};

use super::Check;
use super::machine::{Machine, Space};
use crate::command::config::read_tasks;
use crate::command::status::bytes;

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

pub(super) fn tasks(machine: &Machine) -> Check {
    const NAME: &str = "task files";
    // Without a configuration the defaults cannot be told; that check says so.
    let Ok(config) = machine.config() else { return Check::ok(NAME, "not looked at: the configuration has faults") };
    match read_tasks(&machine.paths.tasks_dir, &config.task_defaults(&machine.host), machine.now) {
        Ok(files) => {
            let found: Vec<FileFault> =
                files.iter().filter_map(|file| file.task.as_ref().err()).flatten().cloned().collect();
            if found.is_empty() {
                Check::ok(NAME, format!("{} in {}", files.len(), machine.paths.tasks_dir.display()))
            } else {
                Check::fail(NAME, faults(&found), "correct it; owd sees the change by itself")
            }
        }
        Err(fault) => Check::fail(NAME, fault.to_string(), "let the account that owd runs under read the folder"),
    }
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

pub(super) fn secrets(machine: &Machine) -> Check {
    let file = machine.config().ok().and_then(|config| config.secrets.file);
    secret_file("secrets", &file.unwrap_or_else(|| machine.paths.secrets_file.clone()), machine, || {
        "no secrets file".into()
    })
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
    use super::super::State;
    use super::*;

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

    #[test]
    fn a_faulty_configuration_is_named_with_its_line() {
        finds(config, State::Fail, "owd.toml:1", |machine| {
            fs::write(&machine.paths.config_file, "colour = 1\n").unwrap();
        });
    }

    #[test]
    fn a_faulty_task_file_is_named() {
        finds(tasks, State::Fail, "bad.toml", |machine| {
            fs::create_dir_all(&machine.paths.tasks_dir).unwrap();
            fs::write(machine.paths.tasks_dir.join("bad.toml"), "title = 3\n").unwrap();
        });
    }

    #[test]
    fn a_folder_of_tasks_that_cannot_be_read_is_named() {
        finds(tasks, State::Fail, "tasks.d", |machine| fs::write(&machine.paths.tasks_dir, "a file").unwrap());
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
        finds(secrets, State::Fail, "belongs to user", other);
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
        finds(secrets, State::Fail, "640", |machine| chmod(&machine.paths.secrets_file, 0o640));
    }

    #[test]
    fn the_secrets_file_that_the_configuration_names_is_the_one() {
        finds(secrets, State::Fail, "other.toml", |machine| {
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
