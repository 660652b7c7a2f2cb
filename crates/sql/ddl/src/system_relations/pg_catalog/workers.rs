//! The views of the workers, what has held one of them, and what it undoes behind its sessions; and of the instances
//! that they are divided among.

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
    12941 logstead_instances = instances {
        instance INT4, state TEXT, cores TEXT, workers INT8, lanes INT8, partitions INT8, pinned INT8,
        chunks_in_memory INT8, row_bytes INT8, sessions INT8,
        transactions_inside INT8, transactions_across INT8, foreign_accesses INT8, sessions_in INT8, sessions_out INT8,
        partitions_in INT8, partitions_out INT8, buffer_bytes INT8, checkpoint_chunks INT8, restarts INT8, takeover_ms FLOAT8,
        loaded_ms FLOAT8,
    }
};

/// `logstead_instances`: what each instance has, what its transactions look at, what moved in and out, and how its last
/// restart went.
fn instances(cx: &VirtualContext<'_>) -> Result<Vec<Vec<Datum>>> {
    let rows = cx.session.server()?.instances().into_iter().map(|of| {
        let cores: Vec<String> = of.cores.iter().map(usize::to_string).collect();
        row![
            of.instance,
            if of.is_restarting {
                "restarting"
            } else {
                "serving"
            },
            (!cores.is_empty()).then(|| cores.join(",")),
            count(of.workers),
            count(of.lanes),
            count(of.partitions),
            count(of.pinned),
            count(of.chunks_in_memory),
            count(of.row_bytes),
            count(of.sessions),
            count(of.transactions_inside),
            count(of.transactions_across),
            count(of.foreign_accesses),
            count(of.sessions_in),
            count(of.sessions_out),
            count(of.partitions_in),
            count(of.partitions_out),
            count(of.buffer_bytes),
            count(of.checkpoint_chunks),
            count(of.restarts),
            of.takeover.map(ms),
            of.loaded.map(ms),
        ]
    });
    Ok(rows.collect())
}

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

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
            count(held.held),
            ms(held.longest),
            last.map(|(at, ..)| Datum::TimestampTz(at)),
            last.map(|(_, pid, _)| pid),
            last.map(|(.., took)| ms(took)),
            held.query,
            count(held.undone),
            count(held.undone_writes),
        ]
    });
    Ok(rows.collect())
}
