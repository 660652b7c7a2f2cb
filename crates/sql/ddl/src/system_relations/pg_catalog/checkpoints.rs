//! Views of checkpoints: what the newest one is and what they have cost, and what the start has read.

use super::cells::row;
use logstead_engine::{PrewarmState, RestorePoint};
use logstead_sql_catalog::{VirtualContext, VirtualTable};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use std::time::Duration;

type Rows = Result<Vec<Vec<Datum>>>;

/// The views. No relation of PostgreSQL 15 has these OIDs.
pub(super) static VIEWS: &[VirtualTable] = virtual_tables! {
    "pg_catalog";
    12920 logstead_checkpoints = checkpoints {
        csn INT8, epoch INT8, taken_at TIMESTAMPTZ, chunks INT8, rows INT8, pages INT8, delta_pages INT8, nodes INT8, bytes INT8,
        objects INT8, objects_in_use INT8, live_bytes INT8, total_bytes INT8, objects_removed INT8, segments_removed INT8,
        sides_removed INT8, waiting_ms FLOAT8, walking_ms FLOAT8, directory_ms FLOAT8, publishing_ms FLOAT8, collecting_ms FLOAT8,
        published INT8, unchanged INT8, failed INT8, published_bytes INT8, last_error TEXT, last_collection_error TEXT,
        damaged_chunks INT8, last_damage TEXT, by_replica BOOL, page_services INT8, published_by_replicas INT8,
        replica_failures INT8, last_replica_error TEXT, replica_absences INT8,
    }
    12921 logstead_recovery = recovery {
        created BOOL, checkpoint_csn INT8, checkpoint_pages INT8, checkpoint_bytes INT8, chunks INT8,
        chunks_in_memory INT8, chunks_with_tails INT8, chunks_with_tails_at_start INT8, tail_bytes_at_start INT8, entries INT8, large_entries INT8, bytes INT8,
        blocks INT8, entries_in_checkpoint INT8, entries_dropped INT8, reading_ms FLOAT8, waited_for_lanes_ms FLOAT8,
        waited_for_tables_ms FLOAT8, finishing_ms FLOAT8, tails_ms FLOAT8, mark_ms FLOAT8, opening_ms FLOAT8,
        upgraded_bytes INT8, upgrading_ms FLOAT8, prewarm TEXT, chunks_to_prewarm INT8, chunks_prewarmed INT8, chunks_prewarm_skipped INT8,
    }
    12922 logstead_restore_points = restore_points {
        name TEXT, taken_at TIMESTAMPTZ, csn INT8, objects INT8, bytes INT8,
    }
};

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// `logstead_checkpoints`: one row. The newest one's figures are NULL until this server has published one; its CSN is
/// then that of the one that the start has loaded.
fn checkpoints(cx: &VirtualContext<'_>) -> Rows {
    let live = cx.catalog.notes.live.as_ref();
    let Some(stats) = live.and_then(|live| live.checkpoints()) else {
        return Ok(Vec::new());
    };
    let last = stats.last.as_ref();
    let took = last.map(|last| last.took);
    let csn = last.map(|last| last.csn).or(stats.loaded);
    Ok(vec![row![
        csn.map(|csn| count(csn.get())),
        last.map(|last| i64::from(last.epoch.get())),
        last.map_or(Datum::Null, |last| Datum::TimestampTz(last.taken_at_micros)),
        last.map(|last| count(last.chunks_looked_at)),
        last.map(|last| count(last.rows)),
        last.map(|last| count(last.pages)),
        last.map(|last| count(last.delta_pages)),
        last.map(|last| count(last.nodes)),
        last.map(|last| count(last.bytes)),
        last.map(|last| count(last.objects)),
        last.map(|last| count(last.objects_in_use)),
        last.map(|last| count(last.bytes_live)),
        last.map(|last| count(last.bytes_in_use)),
        last.map(|last| count(last.objects_removed)),
        last.map(|last| count(last.segments_removed)),
        last.map(|last| count(last.sides_removed)),
        took.map(|took| ms(took.waiting)),
        took.map(|took| ms(took.walking)),
        took.map(|took| ms(took.directory)),
        took.map(|took| ms(took.publishing)),
        took.map(|took| ms(took.collecting)),
        count(stats.published),
        count(stats.unchanged),
        count(stats.failed),
        count(stats.bytes),
        stats.last_error.as_deref(),
        last.and_then(|last| last.collection_failed.as_deref()),
        count(stats.damaged_chunks),
        stats.last_damage.as_deref(),
        last.map(|last| last.by_replica),
        count(stats.page_services),
        count(stats.by_replicas),
        count(stats.replica_failures),
        stats.last_replica_error.as_deref(),
        count(stats.replica_absences),
    ]])
}

/// `logstead_restore_points`: what can be gone back to, by CSN, a line for each name. Objects and bytes are NULL until
/// a record was read.
fn restore_points(cx: &VirtualContext<'_>) -> Rows {
    let live = cx.catalog.notes.live.as_ref();
    let points = live.and_then(|live| live.restore_points());
    let line = |point: RestorePoint| {
        row![
            point.name.as_deref(),
            Datum::TimestampTz(point.taken_at_micros),
            count(point.csn.get()),
            point.size.map(|(objects, _)| count(objects)),
            point.size.map(|(_, bytes)| count(bytes)),
        ]
    };
    Ok(points.into_iter().flatten().map(line).collect())
}

/// `logstead_recovery`: what the start has read, and how much of the tables is in memory now; one row.
fn recovery(cx: &VirtualContext<'_>) -> Rows {
    let live = cx.catalog.notes.live.as_ref();
    let Some(report) = live.and_then(|live| live.recovery()) else {
        return Ok(Vec::new());
    };
    let chunks = live.and_then(|live| live.chunks());
    let prewarm = live.and_then(|live| live.prewarm());
    let (prewarm_state, prewarm) = match prewarm {
        Some(prewarm) => match prewarm.state {
            PrewarmState::None => (None, None),
            PrewarmState::Loading => (Some("loading"), Some(prewarm)),
            PrewarmState::Ended => (Some("ended"), Some(prewarm)),
        },
        None => (None, None),
    };
    let took = &report.took;
    let blocks = report.lanes.iter();
    let blocks = blocks.map(|lane| lane.blocks.saturating_sub(lane.first_block));
    let checkpoint = Some(report.checkpoint.get()).filter(|csn| *csn > 0);
    Ok(vec![row![
        report.created,
        checkpoint.map(count),
        count(report.checkpoint_pages),
        count(report.checkpoint_bytes),
        chunks.map(|chunks| count(chunks.all)),
        chunks.map(|chunks| count(chunks.present)),
        chunks.map(|chunks| count(chunks.with_tails)),
        count(report.tails_kept),
        count(report.tail_bytes_kept),
        count(report.entries),
        count(report.sides),
        count(report.bytes),
        count(blocks.sum()),
        count(report.entries_in_checkpoint),
        count(report.entries_dropped),
        ms(took.reading),
        ms(took.waited_for_lanes),
        ms(took.waited_for_tables),
        ms(took.finishing),
        ms(took.tails),
        ms(took.mark),
        ms(took.opening),
        count(report.upgraded_bytes),
        ms(took.upgrading),
        prewarm_state,
        prewarm.map(|prewarm| count(prewarm.chunks_listed)),
        prewarm.map(|prewarm| count(prewarm.chunks_loaded)),
        prewarm.map(|prewarm| count(prewarm.chunks_skipped)),
    ]])
}
