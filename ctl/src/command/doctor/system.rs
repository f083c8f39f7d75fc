use std::fs;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Check;
use super::machine::Machine;

const LEAST_WATCHES: u64 = 8192;
const LEAST_INSTANCES: u64 = 64;

pub(super) fn watches(machine: &Machine) -> Check {
    const NAME: &str = "file watches";
    let limits = machine.kernel.join("sys/fs/inotify");
    let limit =
        |name: &str| fs::read_to_string(limits.join(name)).ok().and_then(|text| text.trim().parse::<u64>().ok());
    for (name, least) in [("max_user_watches", LEAST_WATCHES), ("max_user_instances", LEAST_INSTANCES)] {
        let Some(found) = limit(name) else {
            // Only Linux has these; elsewhere the system's own watcher knows no such limit.
            return Check::ok(NAME, "the system sets no limit that could be read");
        };
        if found < least {
            let message = format!("fs.inotify.{name} is {found}: tasks that watch large folders fall back to polling");
            return Check::warn(NAME, message, format!("`sudo sysctl fs.inotify.{name}={}`", least * 8));
        }
    }
    Check::ok(NAME, "the limits are high enough")
}

pub(super) fn zones(machine: &Machine) -> Check {
    const NAME: &str = "time zones";
    // Any zone will do whose rules are not empty.
    let found = machine.zoneinfo.iter().find(|folder| {
        fs::read(folder.join("Europe/Paris")).is_ok_and(|bytes| TimeZone::tzif("Europe/Paris", &bytes).is_ok())
    });
    match found {
        Some(folder) => Check::ok(NAME, format!("the database is in {}", folder.display())),
        None => Check::warn(
            NAME,
            "no time zone database is found: named zones cannot be used",
            "install the package tzdata, then restart owd",
        ),
    }
}

pub(super) fn local_zone(machine: &Machine) -> Check {
    const NAME: &str = "local zone";
    let in_config = || {
        machine.config().is_ok() && fs::read_to_string(&machine.paths.config_file).is_ok_and(|text| sets_zone(&text))
    };
    if machine.zone_is_set {
        return Check::ok(NAME, "named by TZ");
    }
    match fs::read_link(&machine.localtime) {
        Ok(target) if target.components().any(|part| part.as_os_str() == "zoneinfo") => {
            Check::ok(NAME, format!("{} leads to {}", machine.localtime.display(), target.display()))
        }
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Check::ok(NAME, "the system says nothing: UTC"),
        _ if in_config() => Check::ok(NAME, "named by the configuration"),
        _ => Check::warn(
            NAME,
            format!(
                "{} is a copy, so the system's zone has no name and clock changes cannot be told",
                machine.localtime.display()
            ),
            "set `timezone = \"Europe/Paris\"` (yours) in owd.toml, or `sudo timedatectl set-timezone …`",
        ),
    }
}

fn sets_zone(text: &str) -> bool {
    text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("timezone"))
}

pub(super) fn clock(machine: &Machine) -> Check {
    const NAME: &str = "clock";
    let built = Timestamp::constant(1_767_225_600, 0);
    if machine.now < built {
        let message = format!("it is {} by the clock, which cannot be", machine.now);
        return Check::fail(NAME, message, "set the clock, and let it be kept: `sudo timedatectl set-ntp true`");
    }
    match newest(&machine.paths.data_dir) {
        Some(written) if written > machine.now + jiff::SignedDuration::from_mins(5) => Check::warn(
            NAME,
            format!("owd wrote to its store at {written}, which is later than now: the clock was set back"),
            "see that the clock is right; owd computes what is due from the present time",
        ),
        _ => Check::ok(NAME, "plausible"),
    }
}

/// When anything in a folder was last written.
fn newest(folder: &Path) -> Option<Timestamp> {
    let times = fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok());
    times.filter_map(|time| Timestamp::try_from(time).ok()).max()
}

pub(super) fn service(machine: &Machine) -> Check {
    const NAME: &str = "service";
    if !machine.systemd.exists() {
        let message = "there is no systemd here: owd does not come back by itself after a reboot";
        let remedy = if cfg!(target_os = "macos") {
            "`owctl service install`"
        } else {
            "start it with the machine: `owd start --detach`"
        };
        return Check::warn(NAME, message, remedy);
    }
    let mut installed = machine.units.iter().enumerate().filter(|(_, unit)| unit.exists());
    match installed.next() {
        // The first is the person's own.
        Some((0, _)) => {
            let lingers = machine.user.as_ref().is_some_and(|user| machine.lingering.join(user).exists());
            if lingers {
                Check::ok(NAME, "installed; it runs also while you are logged out")
            } else {
                Check::warn(NAME, "installed, but owd stops when you log out", "`loginctl enable-linger`")
            }
        }
        Some((_, unit)) => Check::ok(NAME, format!("installed for the system: {}", unit.display())),
        None => Check::warn(
            NAME,
            "not installed: owd does not come back by itself after a reboot",
            "`owctl service install`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[track_caller]
    fn finds(check: fn(&Machine) -> Check, state: State, word: &str, how: impl FnOnce(&mut Machine)) {
        let folder = tempfile::tempdir().unwrap();
        let mut machine = Machine::sound(folder.path());
        assert_eq!(check(&machine).state, State::Ok, "sound: {:?}", check(&machine));
        how(&mut machine);
        let found = check(&machine);
        assert_eq!(found.state, state, "{found:?}");
        assert!(found.message.contains(word), "{found:?}");
        assert!(found.remedy.is_some(), "{found:?}");
    }

    #[test]
    fn too_few_watches_are_named() {
        finds(watches, State::Warn, "max_user_watches is 100", |machine| {
            fs::write(machine.kernel.join("sys/fs/inotify/max_user_watches"), "100\n").unwrap();
        });
        finds(watches, State::Warn, "max_user_instances is 2", |machine| {
            fs::write(machine.kernel.join("sys/fs/inotify/max_user_instances"), "2\n").unwrap();
        });
    }

    #[test]
    fn a_missing_or_damaged_zone_database_is_named() {
        finds(zones, State::Warn, "no time zone database", |machine| machine.zoneinfo.clear());
        finds(zones, State::Warn, "no time zone database", |machine| {
            fs::write(machine.zoneinfo[0].join("Europe/Paris"), "not a zone").unwrap();
        });
    }

    #[test]
    fn a_local_zone_without_a_name_is_named() {
        let copy = |machine: &mut Machine| {
            fs::remove_file(&machine.localtime).unwrap();
            fs::copy(machine.zoneinfo[0].join("Europe/Paris"), &machine.localtime).unwrap();
        };
        finds(local_zone, State::Warn, "is a copy", copy);
    }

    #[test]
    fn a_clock_before_this_program_is_named() {
        finds(clock, State::Fail, "1970", |machine| machine.now = Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn a_clock_that_was_set_back_is_named() {
        finds(clock, State::Warn, "set back", |machine| {
            fs::write(machine.paths.data_dir.join("store"), "").unwrap();
            let written = newest(&machine.paths.data_dir).unwrap();
            machine.now = written - jiff::SignedDuration::from_hours(1);
        });
    }

    #[test]
    fn a_service_that_ends_with_the_session_or_is_not_there_is_named() {
        finds(service, State::Warn, "log out", |machine| machine.user = Some("bob".into()));
        finds(service, State::Warn, "not installed", |machine| machine.units.clear());
        finds(service, State::Warn, "no systemd", |machine| fs::remove_dir(&machine.systemd).unwrap());
    }
}
