//! The view of the cache of stored objects on the local disk.

use super::cells::row;
use logstead_sql_catalog::{VirtualContext, VirtualTable};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;

/// The view. No relation of PostgreSQL 15 has this OID.
pub(super) static VIEWS: &[VirtualTable] = virtual_tables! {
    "pg_catalog";
    12930 logstead_cache = cache {
        directory TEXT, blocks INT8, used_bytes INT8, size_bytes INT8, hits INT8, misses INT8, joined INT8, damaged INT8, evicted INT8,
        written_bytes INT8, storing BOOL, last_error TEXT,
    }
};

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// `logstead_cache`: one row, none without a cache.
fn cache(cx: &VirtualContext<'_>) -> Result<Vec<Vec<Datum>>> {
    let live = cx.catalog.notes.live.as_ref();
    let rows = live.and_then(|live| live.cache()).map(|stats| {
        row![
            stats.directory.display().to_string().as_str(),
            count(stats.blocks),
            count(stats.used_bytes),
            count(stats.size_bytes),
            count(stats.hits),
            count(stats.misses),
            count(stats.joined),
            count(stats.damaged),
            count(stats.evicted),
            count(stats.written_bytes),
            stats.off.is_none(),
            stats.off.as_deref(),
        ]
    });
    Ok(rows.into_iter().collect())
}
