//! Steps of garbage collection: what a worker's transactions have left is looked at, and goes when nobody needs it.
//!
//! Does not: keep what waits (`crate::garbage`).

use crate::garbage::{NEXT_STEP, RetainingSnapshots, UnlinkedVersions};
use crate::index::Index;
use crate::index_entries::drop_entries;
use crate::snapshots::VisibilityBounds;
use crate::stats::add;
use crate::table::Table;
use crate::version::{Guard, PruneLock, VersionKind, VersionRef, WriterStatus};
use crate::worker::WorkerInner;
use logstead_types::{Csn, Rid};
use smallvec::smallvec;
use std::sync::atomic::Ordering;

/// See [`Worker::collect_garbage`](crate::Worker::collect_garbage).
pub(crate) fn collect(worker: &WorkerInner, budget: usize) -> bool {
    worker.refresh_bounds();
    let bounds = worker.bounds().clone();
    if let Some(mut orphans) = worker.inner().orphans.try_lock() {
        for orphan in orphans.drain(..).filter(|o| !o.is_empty()) {
            worker.garbage.borrow_mut().absorb(orphan);
        }
    }
    let drops = worker.inner().drops.load(Ordering::SeqCst);
    worker.garbage.borrow_mut().forget_dropped(drops);
    let more = collect_rows(worker, &bounds, budget);
    // What was unlinked is to be freed even if this thread does nothing more.
    Guard::pin().flush();
    more
}

fn collect_rows(worker: &WorkerInner, bounds: &VisibilityBounds, budget: usize) -> bool {
    worker.garbage.borrow_mut().release(bounds);
    for turn in 0..budget {
        // By turns, so that neither waits for the other, however much of it there is.
        let next = {
            let mut garbage = worker.garbage.borrow_mut();
            let written_first = turn % 2 == 1;
            let mut look = |is_again| {
                let next = match is_again {
                    true => garbage.next_released(),
                    false => garbage.next_written(bounds, |buffers| worker.give_buffers(buffers)),
                };
                next.map(|(table, rid)| (table, rid, is_again))
            };
            look(!written_first).or_else(|| look(written_first))
        };
        let Some((table, rid, is_again)) = next else {
            return false;
        };
        add(&worker.counters().garbage_rows_examined, 1);
        // A guard per row: the collector's own pin must not hold back what it frees.
        let guard = Guard::pin();
        let kept_by = collect_row(worker, bounds, &table, rid, is_again, &guard);
        if !kept_by.is_empty() {
            add(&worker.counters().garbage_rows_held, kept_by.len() as u64);
            let mut garbage = worker.garbage.borrow_mut();
            for single in kept_by {
                garbage.hold(single, &table, rid);
            }
        }
    }
    true
}

/// The CSN of a version, if its writer has committed.
fn csn_of(version: VersionRef<'_>) -> Option<Csn> {
    match version.writer_status() {
        WriterStatus::Committed(csn) => Some(csn),
        WriterStatus::InProgress(state) => state.committed(),
    }
}

/// Unlinks what the bounds allow below the newest version. Tells whether some index key may be gone with it, and which
/// single snapshots kept something.
fn prune_chain<'g>(
    mut prune: PruneLock<'_>,
    slot: usize,
    bounds: &VisibilityBounds,
    guard: &'g Guard,
    dropped: &mut UnlinkedVersions<'g>,
) -> (bool, RetainingSnapshots) {
    let mut keys_changed = false;
    let mut kept_by = RetainingSnapshots::new();
    // The nearest newer committed version, which superseded the one looked at.
    let mut newer: Option<Csn> = None;
    prune.sweep(slot, guard, |version, may_go| {
        // Below a tombstone nothing keeps a key: entries go with the versions.
        keys_changed |= matches!(
            version.kind(),
            VersionKind::Tombstone | VersionKind::Row { keys_changed: true }
        );
        let Some(csn) = csn_of(version) else {
            return false;
        };
        if version.kind() == VersionKind::LockOnly {
            if may_go {
                dropped.push(version);
            }
            return true;
        }
        let Some(superseded_by) = newer.replace(csn) else {
            return false;
        };
        match bounds.droppable(csn, superseded_by) {
            Ok(()) => {
                if may_go {
                    dropped.push(version);
                }
                true
            }
            Err(single) => {
                // Each single sees one version of a row.
                let single = single.unwrap_or(NEXT_STEP);
                if !kept_by.contains(&single) {
                    kept_by.push(single);
                }
                false
            }
        }
    });
    (keys_changed, kept_by)
}

/// Prunes a row that its writer is just updating, as far as the worker's cached bounds allow.
pub(crate) fn prune_in_line(worker: &WorkerInner, table: &Table, rid: Rid, guard: &Guard) {
    let Some((chunk, slot)) = table.rows.slot(rid) else {
        return;
    };
    // Busy with another row of the chunk: the next writer, or the collector, will see to this one.
    let Some(prune) = chunk.try_prune() else {
        return;
    };
    let mut dropped = UnlinkedVersions::new();
    let (keys_changed, _) = prune_chain(prune, slot, &worker.bounds(), guard, &mut dropped);
    drop_all(worker, table, rid, keys_changed, &dropped, guard);
}

fn drop_all(
    worker: &WorkerInner,
    table: &Table,
    rid: Rid,
    keys_changed: bool,
    dropped: &UnlinkedVersions<'_>,
    guard: &Guard,
) {
    if dropped.is_empty() {
        return;
    }
    add(&worker.counters().versions_collected, dropped.len() as u64);
    if keys_changed {
        let mut scratch = worker.scratch.borrow_mut();
        for gone in dropped {
            let touch = |index: &Index, key: &[u8]| worker.touch_entry(index, key);
            drop_entries(
                worker.instance,
                table,
                rid,
                *gone,
                &mut scratch,
                guard,
                touch,
            );
        }
    }
}

/// Cleans up one row. Tells what single snapshots kept something.
fn collect_row(
    worker: &WorkerInner,
    bounds: &VisibilityBounds,
    table: &Table,
    rid: Rid,
    is_again: bool,
    guard: &Guard,
) -> RetainingSnapshots {
    worker.touch_row(&table.rows, rid);
    let Some((chunk, slot)) = table.rows.slot(rid) else {
        return RetainingSnapshots::new();
    };
    // In an absent chunk there is nothing to collect: tombstones and second versions keep theirs in memory.
    let Ok(Some(head)) = chunk.peek(slot, guard) else {
        return RetainingSnapshots::new();
    };
    let mut buried_after = None;
    if head.kind() == VersionKind::Tombstone
        && let Some(csn) = csn_of(head)
    {
        match bounds.gone(csn) {
            Ok(()) => return bury(worker, table, rid, head, guard),
            Err(single) => buried_after = Some(single.unwrap_or(NEXT_STEP)),
        }
    }
    let mut dropped = UnlinkedVersions::new();
    let (keys_changed, mut kept_by) =
        prune_chain(chunk.prune_lock(), slot, bounds, guard, &mut dropped);
    drop_all(worker, table, rid, keys_changed, &dropped, guard);
    if let Some(single) = buried_after
        && !kept_by.contains(&single)
    {
        kept_by.push(single);
    }
    // Of a row that is looked at for the first time, what superseded a version that must wait comes later itself. Of
    // one that is looked at again it may have been.
    kept_by.retain(|single| is_again || *single != NEXT_STEP);
    kept_by
}

/// Takes a deleted row away: its chain, its index entries, then its rid is free.
fn bury(
    worker: &WorkerInner,
    table: &Table,
    rid: Rid,
    head: VersionRef<'_>,
    guard: &Guard,
) -> RetainingSnapshots {
    let Some((chunk, slot)) = table.rows.slot(rid) else {
        return RetainingSnapshots::new();
    };
    let mut chain = UnlinkedVersions::new();
    let taken = {
        let mut prune = chunk.prune_lock();
        let mut at = Some(head);
        while let Some(version) = at {
            chain.push(version);
            at = version.next(guard);
        }
        prune.take_all(slot, head, guard)
    };
    if !taken {
        // Its writer has not stamped it yet.
        return smallvec![NEXT_STEP];
    }
    drop_all(worker, table, rid, true, &chain, guard);
    table.rows.free_rid(rid);
    RetainingSnapshots::new()
}
