use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ow_config::{Account, Config, ConfigError, Host, Paths};

use crate::context::Context;
use crate::failure::Failure;
use crate::place::{self, environment};

/// The places and facts that checks look at, so that a test can put others in their stead.
pub(super) struct Machine {
    pub(super) paths: Paths,
    pub(super) host: Host,
    pub(super) now: Timestamp,
    /// Who must own owd's files; none where that is another account's affair.
    pub(super) owner: Option<u32>,
    pub(super) account: Account,
    /// Free and all bytes of the file system below a path.
    pub(super) space: fn(&Path) -> io::Result<Space>,
    /// `/proc`.
    pub(super) kernel: PathBuf,
    /// Where a tz database may be, in the order of the search.
    pub(super) zoneinfo: Vec<PathBuf>,
    /// `/etc/localtime`.
    pub(super) localtime: PathBuf,
    pub(super) zone_is_set: bool,
    /// Exists where systemd manages the machine.
    pub(super) systemd: PathBuf,
    /// Units of owd, a person's first.
    pub(super) units: Vec<PathBuf>,
    /// Has a file for each account that lingers.
    pub(super) lingering: PathBuf,
    pub(super) user: Option<String>,
    pub(super) search_path: OsString,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Space {
    pub(super) free: u64,
    pub(super) total: u64,
}

impl Machine {
    pub(super) fn this(context: &Context) -> Result<Self, Failure> {
        let paths = context.paths()?;
        let is_system = paths == Paths::system();
        let text =
            |name: &str| environment(name).and_then(|value| value.into_string().ok()).filter(|text| !text.is_empty());
        let mut zoneinfo: Vec<PathBuf> = environment("TZDIR").map(PathBuf::from).into_iter().collect();
        zoneinfo.extend(["/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"].map(PathBuf::from));
        Ok(Self {
            host: Host::new(&environment),
            now: context.clock().now(),
            owner: (!is_system).then(|| rustix::process::getuid().as_raw()),
            account: if is_system { Account::System } else { Account::Person },
            paths,
            space,
            kernel: "/proc".into(),
            zoneinfo,
            localtime: "/etc/localtime".into(),
            zone_is_set: text("TZ").is_some(),
            systemd: "/run/systemd/system".into(),
            units: place::user_unit().into_iter().chain([PathBuf::from(place::SYSTEM_UNIT)]).collect(),
            lingering: "/var/lib/systemd/linger".into(),
            user: text("USER").or_else(|| text("LOGNAME")),
            search_path: environment("PATH").unwrap_or_default(),
        })
    }

    pub(super) fn config(&self) -> Result<Config, ConfigError> {
        Config::load_if_present(&self.paths.config_file, &self.host)
    }
}

fn space(path: &Path) -> io::Result<Space> {
    // What is not made yet will be made on the file system of its nearest folder.
    let there = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let found = rustix::fs::statvfs(there)?;
    Ok(Space { free: found.f_bavail * found.f_frsize, total: found.f_blocks * found.f_frsize })
}

#[cfg(test)]
impl Machine {
    /// A machine in good order below `folder`.
    pub(super) fn sound(folder: &Path) -> Self {
        use std::fs;
        use std::os::unix::fs::{MetadataExt, PermissionsExt};

        let make = |path: &Path, mode: u32| {
            fs::create_dir_all(path).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let file = |path: &Path, text: &[u8], mode: u32| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let paths = Paths::below(&folder.join("home"));
        make(&paths.data_dir, 0o700);
        file(&paths.config_file, b"", 0o644);
        file(&paths.key_file, b"k", 0o600);
        file(&paths.secrets_file, b"", 0o600);
        drop(std::os::unix::net::UnixListener::bind(&paths.socket).unwrap());
        fs::set_permissions(&paths.socket, fs::Permissions::from_mode(0o600)).unwrap();
        let limits = folder.join("proc/sys/fs/inotify");
        file(&limits.join("max_user_watches"), b"65536\n", 0o644);
        file(&limits.join("max_user_instances"), b"128\n", 0o644);
        let zone = fs::read("/usr/share/zoneinfo/Europe/Paris").unwrap();
        file(&folder.join("zoneinfo/Europe/Paris"), &zone, 0o644);
        std::os::unix::fs::symlink(folder.join("zoneinfo/Europe/Paris"), folder.join("localtime")).unwrap();
        make(&folder.join("systemd"), 0o755);
        file(&folder.join("units/owd.service"), b"", 0o644);
        file(&folder.join("linger/ada"), b"", 0o644);
        file(&folder.join("bin/tool"), b"#!/bin/sh\n", 0o755);
        Self {
            owner: Some(fs::metadata(folder).unwrap().uid()),
            paths,
            host: Host { home: folder.to_owned(), timezone: ow_model::ZoneName("UTC".into()) },
            now: "2999-01-01T00:00:00Z".parse().unwrap(),
            account: Account::Person,
            space: |_| Ok(Space { free: 50 << 30, total: 100 << 30 }),
            kernel: folder.join("proc"),
            zoneinfo: vec![folder.join("zoneinfo")],
            localtime: folder.join("localtime"),
            zone_is_set: false,
            systemd: folder.join("systemd"),
            units: vec![folder.join("units/owd.service"), folder.join("units/system/owd.service")],
            lingering: folder.join("linger"),
            user: Some("ada".into()),
            search_path: folder.join("bin").into_os_string(),
        }
    }
}
