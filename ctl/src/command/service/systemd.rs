use std::path::{Path, PathBuf};

use ow_config::Account;

use super::Start;
use super::steps::{IfItFails, Plan, Standing, Step, succeeds};
use crate::failure::Failure;
use crate::place;

const USER_UNIT: &str = include_str!("../../../../contrib/systemd/user/owd.service");
const SYSTEM_UNIT: &str = include_str!("../../../../contrib/systemd/system/owd.service");
const SYSUSERS: &str = include_str!("../../../../contrib/systemd/system/owd.sysusers");
const SYSUSERS_FILE: &str = "/etc/sysusers.d/owd.conf";

pub(super) fn install(account: Account, start: &Start) -> Result<Plan, Failure> {
    let unit = unit_file(account)?;
    Ok(match account {
        Account::Person => Plan {
            steps: vec![
                Step::Write { path: unit, text: render(USER_UNIT, start)? },
                Step::run(&["systemctl", "--user", "daemon-reload"], IfItFails::TakeBack),
                Step::run(&["systemctl", "--user", "enable", "--now", "owd.service"], IfItFails::Stop),
                Step::run(
                    &["loginctl", "enable-linger"],
                    IfItFails::Tell(
                        "Lingering could not be turned on: owd stops when you log out. \
                         An administrator can turn it on: loginctl enable-linger USER",
                    ),
                ),
            ],
            afterwards: "owd is installed and runs. See it with `owctl status`.",
        },
        Account::System => Plan {
            steps: vec![
                Step::Write { path: SYSUSERS_FILE.into(), text: SYSUSERS.into() },
                Step::run(&["systemd-sysusers", SYSUSERS_FILE], IfItFails::TakeBack),
                Step::Write { path: unit, text: render(SYSTEM_UNIT, start)? },
                Step::run(&["systemctl", "daemon-reload"], IfItFails::TakeBack),
                Step::run(&["systemctl", "enable", "--now", "owd.service"], IfItFails::Stop),
            ],
            afterwards: "owd is installed and runs. Who is in the group `owd` may speak to it: `sudo usermod -aG owd NAME`.\n\
                         Name the folders in which tasks may write: `sudo systemctl edit owd`, ReadWritePaths=…",
        },
    })
}

pub(super) fn uninstall(account: Account) -> Result<Plan, Failure> {
    let unit = unit_file(account)?;
    if !unit.exists() {
        return Err(Failure::usage(format!(
            "{} is not installed: there is no {}",
            super::whose(account),
            unit.display()
        ))
        .hint("`owctl service status` tells how it stands; the system's needs --system"));
    }
    let mut systemctl = vec!["systemctl"];
    if account == Account::Person {
        systemctl.push("--user");
    }
    let disable = [&systemctl[..], &["disable", "--now", "owd.service"]].concat();
    let reload = [&systemctl[..], &["daemon-reload"]].concat();
    Ok(Plan {
        steps: vec![
            // It may be stopped or half installed already.
            Step::run(&disable, IfItFails::GoOn),
            Step::Remove { path: unit },
            Step::run(&reload, IfItFails::GoOn),
        ],
        afterwards: "owd is stopped and no longer a service. Its configuration and its data stay.",
    })
}

pub(super) fn standing(account: Account) -> Result<Standing, Failure> {
    let unit = unit_file(account)?;
    let ask = |word: &str| match account {
        Account::Person => succeeds(&["systemctl", "--user", word, "--quiet", "owd.service"]),
        Account::System => succeeds(&["systemctl", word, "--quiet", "owd.service"]),
    };
    let user = std::env::var_os("USER").or_else(|| std::env::var_os("LOGNAME"));
    let lingering = user.map(|user| Path::new("/var/lib/systemd/linger").join(user).exists());
    Ok(Standing {
        installed: unit.exists(),
        file: unit.display().to_string(),
        enabled: ask("is-enabled"),
        active: ask("is-active"),
        lingering: lingering.filter(|_| account == Account::Person),
    })
}

fn unit_file(account: Account) -> Result<PathBuf, Failure> {
    match account {
        Account::System => Ok(place::SYSTEM_UNIT.into()),
        Account::Person => place::user_unit()
            .ok_or_else(|| Failure::usage("HOME is not set, so there is no place for a unit").hint("set HOME")),
    }
}

fn render(unit: &str, Start { owd, places }: &Start) -> Result<String, Failure> {
    let mut line = quoted(owd)?;
    for (flag, place) in places {
        put!(line, " {flag} {}", quoted(place)?);
    }
    Ok(unit.replace("@OWD@", &line))
}

/// A program's path as a unit must write it.
///
/// Source: systemd.service(5), "Command lines", and systemd.unit(5), "Specifiers".
fn quoted(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().filter(|text| !text.chars().any(char::is_control));
    let text = text.ok_or_else(|| {
        Failure::usage(format!("the path {} cannot stand in a unit", path.display())).hint("move owd to a plain path")
    })?;
    let escaped = text.replace('%', "%%").replace('$', "$$").replace('\\', "\\\\").replace('"', "\\\"");
    Ok(if escaped.contains([' ', '\'', '"', '\\', ';']) { format!("\"{escaped}\"") } else { escaped })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stands_in_the_unit_as_one_word() {
        let cases = [
            ("/usr/bin/owd", "/usr/bin/owd"),
            ("/opt/my owd/owd", "\"/opt/my owd/owd\""),
            ("/opt/50%/owd", "/opt/50%%/owd"),
            ("/opt/$HOME/owd", "/opt/$$HOME/owd"),
        ];
        for (path, want) in cases {
            assert_eq!(quoted(Path::new(path)).as_deref(), Ok(want));
        }
        assert!(quoted(Path::new("/opt/\n/owd")).is_err());
    }

    #[test]
    fn both_units_name_the_program_in_one_place() {
        for unit in [USER_UNIT, SYSTEM_UNIT] {
            assert_eq!(unit.matches("@OWD@").count(), 1);
            let start = Start { owd: "/usr/bin/owd".into(), places: vec![("--home", "/srv/my owd".into())] };
            let rendered = render(unit, &start).unwrap();
            assert!(rendered.contains("\nExecStart=/usr/bin/owd --home \"/srv/my owd\""), "{rendered}");
            assert!(!rendered.contains("@OWD@"));
        }
    }

    #[test]
    fn systemd_itself_finds_no_fault_with_the_units() {
        if !succeeds(&["systemd-analyze", "--version"]) {
            return;
        }
        let owd = std::env::current_exe().unwrap();
        for (unit, manager) in [(USER_UNIT, "--user"), (SYSTEM_UNIT, "--system")] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("owd.service");
            std::fs::write(&file, render(unit, &Start { owd: owd.clone(), places: vec![] }).unwrap()).unwrap();
            let verified = std::process::Command::new("systemd-analyze")
                .args(["verify", "--man=no", "--recursive-errors=no", manager])
                .arg(&file)
                .env("XDG_RUNTIME_DIR", folder.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&verified.stderr);
            assert!(verified.status.success() && !said.contains("owd.service:"), "{manager}: {said}");
        }
    }
}
