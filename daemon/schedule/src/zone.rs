use std::path::Path;

use jiff::tz::TimeZone;
use ow_model::ZoneName;

use crate::ScheduleError;

/// Loads a zone by its name in the tz database: the system's, or the one built in where that has none.
///
/// # Errors
///
/// [`ScheduleError::Zone`] for a name that the database does not have; nothing is ever replaced by UTC.
pub fn zone(name: &ZoneName) -> Result<TimeZone, ScheduleError> {
    TimeZone::get(&name.0)
        .ok()
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
