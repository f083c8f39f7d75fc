use jiff::Timestamp;
use ow_protocol::{BackupView, PROTOCOL_VERSION, SlackView, StatusView, WarningView};
use ow_store::{BackupReport, Damage, StoreStats, WakeTimes};

use super::{instant, path};
use crate::control::{About, SlackAbout, Warning};

/// What a status is put together from.
pub(crate) struct Status {
    pub(crate) about: About,
    pub(crate) now: Timestamp,
    pub(crate) stats: StoreStats,
    pub(crate) wake: WakeTimes,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) damage: Vec<Damage>,
}

pub(crate) fn status_view(status: Status) -> StatusView {
    let Status { about, now, stats, wake, warnings, damage } = status;
    let About {
        version,
        pid,
        started_at,
        config_dir,
        data_dir,
        socket,
        tcp,
        listener,
        log,
        zone,
        workers,
        stopping,
        slack,
    } = about;
    let StoreStats {
        tasks,
        tasks_paused,
        runs_open: _,
        runs_parked,
        runs_queued,
        runs_running,
        runs_interrupted,
        sessions,
        items_pending,
        deliveries_waiting,
        deliveries_failed,
        events_waiting,
        addresses_refused,
        paused_all,
        format,
        epoch,
        bytes,
    } = stats;
    StatusView {
        version,
        protocol: PROTOCOL_VERSION,
        pid,
        started_at: instant(started_at),
        now: instant(now),
        time_zone: zone,
        state: if stopping { "stopping" } else { "running" }.into(),
        config_dir: path(&config_dir),
        data_dir: path(&data_dir),
        socket: path(&socket),
        tcp,
        listener: listener.map(|listener| listener.address.to_string()),
        slack: slack.map(slack_view),
        log,
        paused_all,
        tasks,
        tasks_paused,
        runs_running,
        runs_queued,
        runs_parked,
        runs_interrupted,
        sessions,
        items_pending,
        deliveries_waiting,
        deliveries_failed,
        events_waiting,
        addresses_refused,
        workers,
        next_wake: wake.earliest().map(instant),
        store_bytes: bytes,
        store_format: format,
        epoch,
        warnings: warnings.into_iter().map(warning_view).chain(damage.into_iter().map(damage_view)).collect(),
    }
}

fn slack_view(about: SlackAbout) -> SlackView {
    let SlackAbout { state, team, since, trouble } = about;
    let (last_error_at, last_error) = trouble.unzip();
    SlackView {
        state: state.into(),
        team,
        connected_since: since.map(instant),
        last_error,
        last_error_at: last_error_at.flatten().map(instant),
    }
}

fn warning_view(warning: Warning) -> WarningView {
    let Warning { kind, about, message, hint } = warning;
    WarningView { kind, about, message, hint }
}

fn damage_view(damage: Damage) -> WarningView {
    let Damage { table, key, why, found_at } = damage;
    WarningView {
        kind: "damage".into(),
        about: format!("{table} {key}"),
        message: format!("a record could not be read and was set aside at {found_at}: {why}"),
        hint: Some("the record is kept; `owctl restore` brings a backup back".into()),
    }
}

pub(crate) fn backup_view(report: BackupReport) -> BackupView {
    let BackupReport { into, bytes, blobs } = report;
    BackupView { into: path(&into), bytes, blobs }
}
