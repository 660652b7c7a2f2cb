//! The view of the workers: what has held one of them, and what it undoes behind its sessions.

use super::cells::row;
use logstead_sql_catalog::{VirtualContext, VirtualTable};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use std::time::Duration;

/// The view. No relation of PostgreSQL 15 has this OID.
pub(super) static VIEWS: &[VirtualTable] = virtual_tables! {
    "pg_catalog";
    12940 logstead_workers = workers {
        worker INT4, held INT8, longest_ms FLOAT8, last_at TIMESTAMPTZ, last_pid INT4, last_ms FLOAT8, last_query TEXT,
        undoing INT8, writes_to_undo INT8,
    }
};

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// `logstead_workers`: how often each worker was held for longer than a tenth of a second, and by what the last time;
/// and what it has still to undo.
fn workers(cx: &VirtualContext<'_>) -> Result<Vec<Vec<Datum>>> {
    let rows = cx.session.server()?.workers_held().into_iter().map(|held| {
        let last = held.last;
        row![
            held.worker,
            i64::try_from(held.held).unwrap_or(i64::MAX),
            ms(held.longest),
            last.map(|(at, ..)| Datum::TimestampTz(at)),
            last.map(|(_, pid, _)| pid),
            last.map(|(.., took)| ms(took)),
            held.query,
            i64::try_from(held.undone).unwrap_or(i64::MAX),
            i64::try_from(held.undone_writes).unwrap_or(i64::MAX),
        ]
    });
    Ok(rows.collect())
}
