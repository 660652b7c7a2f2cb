//! `logstead_replica`: how far a replica has come, and why not further.

use super::cells::{Nil, row};
use logstead_sql_catalog::role::READ_ALL_STATS;
use logstead_sql_catalog::{StreamReport, VirtualContext, VirtualTable};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;

type Rows = Result<Vec<Vec<Datum>>>;

/// The view. No relation of PostgreSQL 15 has this OID.
pub(super) static VIEWS: &[VirtualTable] = virtual_tables! {
    "pg_catalog";
    12923 logstead_replica = replica {
        home TEXT, feed TEXT, state TEXT, epoch INT8, applied_csn INT8, visible_csn INT8, horizon_csn INT8, entries_waiting INT8,
        waits_for TEXT, entries INT8, bytes INT8, rounds INT8, catalog_changes INT8, restarts INT8, poll_pause_ms FLOAT8,
        last_round_at TIMESTAMPTZ, last_applied_at TIMESTAMPTZ, last_error TEXT, last_error_at TIMESTAMPTZ,
        lag_csns INT8, lag_bytes INT8, lag_ms FLOAT8, stream_error TEXT,
    }
};

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// One row at a replica, none at a primary.
fn replica(cx: &VirtualContext<'_>) -> Rows {
    let live = cx.catalog.notes.live.as_ref();
    let Some(report) = live.and_then(|live| live.replica()) else {
        return Ok(Vec::new());
    };
    let time = |at: Option<i64>| at.map_or(Datum::Null, Datum::TimestampTz);
    let error = report.last_error.as_ref();
    let waits_for = report.waits_for();
    let stream = report.stream.as_ref();
    let connected = stream.filter(|stream| stream.primary.is_some());
    let horizon = stream.map_or(report.horizon, |stream| stream.received.max(report.horizon));
    Ok(vec![row![
        report.home.as_str(),
        match stream.is_some_and(|stream| stream.is_in_use) {
            true => "stream",
            false => "home",
        },
        report.phase.name(),
        i64::from(report.epoch.get()),
        count(report.applied.get()),
        count(report.visible.get()),
        count(report.horizon.get()),
        count(report.entries_waiting as u64),
        waits_for.as_deref(),
        count(report.entries),
        count(report.bytes),
        count(report.rounds),
        count(report.catalog_changes),
        count(report.restarts),
        report.poll_pause_us as f64 / 1e3,
        time(report.last_round_at),
        time(report.last_applied_at),
        error.map(|(error, _)| error.as_str()),
        time(error.map(|(_, at)| *at)),
        count(horizon.get().saturating_sub(report.visible.get())),
        connected.map(|stream| count(stream.received_bytes.saturating_sub(stream.replayed_bytes))),
        connected.map(|stream| lag_ms(cx, stream)).transpose()?,
        stream.and_then(|stream| stream.last_error.as_deref()),
    ]])
}

/// For how long there has been something that snapshots do not see.
fn lag_ms(cx: &VirtualContext<'_>, stream: &StreamReport) -> Result<f64> {
    let now = cx.session.clock_time()?;
    let behind = stream.behind_since.map_or(0, |since| (now - since).max(0));
    Ok(behind as f64 / 1e3)
}

/// `pg_stat_wal_receiver`: the stream from the primary, while there is one. A log's places are CSNs.
pub(super) fn pg_stat_wal_receiver(cx: &VirtualContext<'_>) -> Rows {
    let live = cx.catalog.notes.live.as_ref();
    let Some(report) = live.and_then(|live| live.replica()) else {
        return Ok(Vec::new());
    };
    let Some(stream) = &report.stream else {
        return Ok(Vec::new());
    };
    let Some((host, port)) = &stream.primary else {
        return Ok(Vec::new());
    };
    let time = |at: Option<i64>| at.map_or(Datum::Null, Datum::TimestampTz);
    // As in PostgreSQL others see only that there is one.
    let acl_checker = cx.catalog.acl_checker(&cx.catalog.roles);
    let role = cx.session.current_role();
    let shows_all = acl_checker.members.has_privileges_of(role, READ_ALL_STATS);
    let timeline = i32::try_from(report.epoch.get()).unwrap_or(i32::MAX);
    let mut row = row![
        Nil,
        "streaming",
        Datum::Lsn(stream.start.get()),
        timeline,
        Datum::Lsn(stream.received.get()),
        Datum::Lsn(stream.received.get()),
        timeline,
        time(stream.last_sent_at),
        time(stream.last_received_at),
        Datum::Lsn(stream.received.get()),
        time(stream.last_news_at),
        Nil,
        host.as_str(),
        i32::from(*port),
        stream.conninfo.as_str(),
    ];
    if !shows_all {
        row.fill(Datum::Null);
    }
    Ok(vec![row])
}
