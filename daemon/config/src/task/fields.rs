//! Fields that task files and the configuration share.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use ow_model::ZoneName;

use crate::document::{Document, Found, Place, Section};
use crate::suggest::nearest;

/// `timezone`: a name that the time zone database has, in the database's own spelling.
pub(crate) fn zone(section: &Section<'_, '_>) -> Option<ZoneName> {
    let Found { value, place } = section.text("timezone")?;
    if let Some(zone) = TimeZone::get(&value).ok().and_then(|zone| zone.iana_name().map(str::to_owned)) {
        return Some(ZoneName(zone));
    }
    let names: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    let folded = value.replace(' ', "_");
    let meant = nearest(&folded, names.iter().map(String::as_str))
        .or_else(|| names.iter().map(String::as_str).find(|name| city(name).eq_ignore_ascii_case(city(&folded))));
    let remedy = match meant {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => "write an IANA name, as \"Europe/Paris\" or \"UTC\"".into(),
    };
    section.document().fault(&place, "unknown time zone", remedy);
    None
}

fn city(zone: &str) -> &str {
    zone.rsplit('/').next().unwrap_or(zone)
}

/// A path with `~` expanded; a relative one is noted as a fault.
///
/// Dots are resolved in the text alone, and may not lead above the root.
pub(crate) fn absolute_path(document: &Document<'_>, place: &Place, text: &str, home: &Path) -> Option<PathBuf> {
    let path = match text.strip_prefix('~') {
        Some("") => home.to_path_buf(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        Some(_) => {
            document.fault(place, "another account's home", "write the path in full, or `~/…` for your own home");
            return None;
        }
        None => PathBuf::from(text),
    };
    if !path.is_absolute() {
        document.fault(place, "a relative path", "write the path in full, or begin it with `~/`");
        return None;
    }
    if text.contains('\0') {
        document.fault(place, "a path with a zero byte", "remove it");
        return None;
    }
    if path.components().any(|part| part == std::path::Component::ParentDir) {
        document.fault(place, "a path with `..`", "write the path that it leads to");
        return None;
    }
    Some(path.components().collect())
}

/// Folders, each named once; never the whole file system.
pub(crate) fn folders(
    section: &Section<'_, '_>,
    key: &'static str,
    instead_of_all: &'static str,
    home: &Path,
) -> Vec<PathBuf> {
    let mut folders = vec![];
    for Found { value, place } in section.texts(key).unwrap_or_default() {
        let Some(path) = absolute_path(section.document(), &place, &value, home) else { continue };
        if path == Path::new("/") {
            section.document().fault(&place, "the whole file system", instead_of_all);
        } else if folders.contains(&path) {
            section.document().fault(&place, "named twice", "remove one of them");
        } else {
            folders.push(path);
        }
    }
    folders
}

/// Hosts that may be reached without asking: `host`, `host:port`, `*.domain`.
pub(crate) fn http_hosts(section: &Section<'_, '_>, key: &'static str) -> Vec<String> {
    let mut hosts = vec![];
    for Found { value, place } in section.texts(key).unwrap_or_default() {
        if is_host_pattern(&value) {
            hosts.push(value.to_ascii_lowercase());
        } else {
            let remedy = "write `host`, `host:port` or `*.domain`, without scheme and path";
            section.document().fault(&place, "not a host", remedy);
        }
    }
    hosts
}

fn is_host_pattern(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            let port = rest.strip_prefix(':');
            if address.parse::<std::net::Ipv6Addr>().is_err() || (port.is_none() && !rest.is_empty()) {
                return false;
            }
            return port.is_none_or(is_port);
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let bare = host.strip_prefix("*.").unwrap_or(host);
    // `*.com` would name half the world.
    let wide = host.len() != bare.len() && !bare.contains('.');
    let label = |label: &str| {
        !label.is_empty() && label.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
    };
    !wide && bare.trim_end_matches('.').split('.').all(label) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|port| port != 0)
}
