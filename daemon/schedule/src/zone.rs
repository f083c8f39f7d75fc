use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ow_model::ZoneName;

use crate::ScheduleError;

/// Loads a zone by its name in the tz database: the system's, or the one built in where that has none.
///
/// # Errors
///
/// [`ScheduleError::Zone`] for a name that the database does not have; nothing is ever replaced by UTC.
pub fn zone(name: &ZoneName) -> Result<TimeZone, ScheduleError> {
    // Files of the database that are no zones: what they say is another machine's affair.
    let is_name = !matches!(&*name.0.to_ascii_lowercase(), "localtime" | "posixrules");
    is_name
        .then(|| TimeZone::get(&name.0).ok())
        .flatten()
        .filter(|zone| !zone.is_unknown())
        .ok_or_else(|| ScheduleError::Zone { zone: name.0.escape_debug().to_string() })
}

/// Returns the name of the system's zone, so that a task keeps it when its clock changes; never a fixed offset.
///
/// A system that says nothing of a zone at all runs on UTC.
///
/// # Errors
///
/// [`ScheduleError::SystemZone`] if the system has rules without a name (`/etc/localtime` is a copy).
pub fn system_zone() -> Result<ZoneName, ScheduleError> {
    match TimeZone::try_system() {
        Ok(zone) if !zone.is_unknown() => {
            zone.iana_name().map(|name| ZoneName(name.into())).ok_or(ScheduleError::SystemZone)
        }
        _ if Path::new("/etc/localtime").exists() => Err(ScheduleError::SystemZone),
        _ => Ok(ZoneName("UTC".into())),
    }
}

/// Returns a fingerprint of a zone's rules: another one after an update of the tz database that moves any of its
/// clock changes from 2020 to 2100.
///
/// # Errors
///
/// As [`zone`].
pub fn zone_rules(name: &ZoneName) -> Result<String, ScheduleError> {
    const FROM: Timestamp = Timestamp::constant(1_577_836_800, 0);
    const UNTIL: Timestamp = Timestamp::constant(4_102_444_800, 0);

    let zone = zone(name)?;
    let mut hash = blake3::Hasher::new();
    hash.update(&zone.to_offset(FROM).seconds().to_le_bytes());
    for change in zone.following(FROM).take_while(|change| change.timestamp() < UNTIL) {
        hash.update(&change.timestamp().as_second().to_le_bytes());
        hash.update(&change.offset().seconds().to_le_bytes());
    }
    Ok(hash.finalize().to_hex()[..32].to_owned())
}
