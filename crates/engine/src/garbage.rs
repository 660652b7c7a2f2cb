//! Garbage collection: versions, tombstones, index entries and rids that nobody needs any more.
//!
//! What a transaction superseded is looked at when its CSN is below the horizon and below all snapshots but single old
//! ones (T1). What such a single old snapshot still sees is set aside under that snapshot and looked at again when it
//! is gone. Rows that are updated often are pruned by their writers in passing.
//!
//! A step costs what it looks at, however much waits: rows that are released stay where they are, in order, until they
//! are looked at; none is held anew but for what a look has found. What waits is a bit in a word of 64 neighbours, so
//! neither a step nor a dropped table ever moves a large table of single rows.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use logstead_types::{Csn, Rid, TableId};
use smallvec::{SmallVec, smallvec};

use crate::snapshots::VisibilityBounds;
use crate::stats::add;
use crate::table::Table;
use crate::txn::precommit::Buffers;
use crate::txn::write::{RowChange, drop_entries};
use crate::version::{Guard, PruneLock, Stamp, VersionKind, VersionRef};
use crate::worker::WorkerInner;

/// A transaction's writes, to be cleaned up after.
struct Batch {
    csn: Csn,
    buffers: Buffers,
    /// Writes looked at so far.
    done: usize,
}

/// A snapshot that is never in use: what is held under it is looked at in the next step.
const NEXT_STEP: u64 = 0;

/// Rows of one table to look at again; a row that is updated often is there once.
struct Rows {
    table: Arc<Table>,
    /// A bit for each row, by the number of its word.
    words: BTreeMap<u64, u64>,
}

impl Rows {
    fn new(table: Arc<Table>) -> Rows {
        Rows {
            table,
            words: BTreeMap::new(),
        }
    }

    fn add(&mut self, rid: Rid) {
        let bits = u64::from(u64::BITS);
        *self.words.entry(rid.0 / bits).or_default() |= 1 << (rid.0 % bits);
    }

    /// Takes the first.
    fn pop(&mut self) -> Option<Rid> {
        let mut first = self.words.first_entry()?;
        let (bit, rest) = {
            let word = first.get_mut();
            let bit = u64::from(word.trailing_zeros());
            // No word is empty.
            *word &= *word - 1;
            (bit, *word)
        };
        let rid = Rid(first.key() * u64::from(u64::BITS) + bit);
        if rest == 0 {
            first.remove();
        }
        Some(rid)
    }

    fn absorb(&mut self, other: Rows) {
        for (number, word) in other.words {
            *self.words.entry(number).or_default() |= word;
        }
    }
}

/// Rows to look at again, by table.
type HeldRows = BTreeMap<TableId, Rows>;

/// A worker's garbage.
#[derive(Default)]
pub(crate) struct Garbage {
    /// In the order of commit.
    batches: VecDeque<Batch>,
    /// Rows of which an old snapshot still sees a version, by that snapshot.
    held: BTreeMap<u64, HeldRows>,
    /// Rows whose snapshot is gone, in the order in which they are looked at.
    released: VecDeque<Rows>,
    /// How many tables the engine had dropped when this was last cleared of theirs.
    drops_seen: u64,
}

impl Garbage {
    /// Takes a committed transaction's writes; its buffers go back to the worker at once if there is nothing to do.
    pub(crate) fn add(&mut self, csn: Csn, mut buffers: Buffers, worker: &WorkerInner) {
        buffers.log.clear();
        buffers
            .writes
            .retain(|w| matches!(w.what, RowChange::Update | RowChange::Delete));
        buffers.shrink_buffers();
        if buffers.writes.is_empty() {
            worker.give_buffers(buffers);
        } else {
            self.batches.push_back(Batch {
                csn,
                buffers,
                done: 0,
            });
        }
    }

    fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.held.is_empty() && self.released.is_empty()
    }

    fn absorb(&mut self, other: Garbage) {
        // Ordered by CSN again, which `ripe` relies on.
        self.batches.extend(other.batches);
        self.batches.make_contiguous().sort_by_key(|b| b.csn);
        for (single, tables) in other.held {
            let held = self.held.entry(single).or_default();
            for (id, rows) in tables {
                match held.entry(id) {
                    Entry::Vacant(place) => drop(place.insert(rows)),
                    Entry::Occupied(mut there) => there.get_mut().absorb(rows),
                }
            }
        }
        self.released.extend(other.released);
    }

    /// Lets go of dropped tables: no snapshot can reach their rows any more, and they go as a whole.
    fn forget_dropped(&mut self, drops: u64) {
        if std::mem::replace(&mut self.drops_seen, drops) == drops {
            return;
        }
        for tables in self.held.values_mut() {
            tables.retain(|_, rows| !rows.table.is_dropped());
        }
        self.released.retain(|rows| !rows.table.is_dropped());
        for batch in &mut self.batches {
            let tables = &mut batch.buffers.tables;
            if !tables.iter().any(|t| t.is_dropped()) {
                continue;
            }
            batch.buffers.writes.drain(..batch.done);
            batch.done = 0;
            // The numbers of the tables that stay move up.
            let mut kept = 0;
            let places: SmallVec<[Option<u32>; 8]> = tables
                .iter()
                .map(|table| {
                    (!table.is_dropped()).then(|| {
                        kept += 1;
                        kept - 1
                    })
                })
                .collect();
            tables.retain(|t| !t.is_dropped());
            batch.buffers.writes.retain_mut(|write| {
                let place = places.get(write.table as usize).copied().flatten();
                write.table = place.unwrap_or_default();
                place.is_some()
            });
        }
    }

    /// The next row whose snapshot is gone.
    fn next_released(&mut self) -> Option<(Arc<Table>, Rid)> {
        loop {
            let rows = self.released.front_mut()?;
            if let Some(rid) = rows.pop() {
                return Some((rows.table.clone(), rid));
            }
            self.released.pop_front();
        }
    }

    /// The next row that was written.
    fn next_written(
        &mut self,
        bounds: &VisibilityBounds,
        worker: &WorkerInner,
    ) -> Option<(Arc<Table>, Rid)> {
        loop {
            let batch = self.batches.front_mut().filter(|b| bounds.ripe(b.csn))?;
            if let Some(write) = batch.buffers.writes.get(batch.done) {
                batch.done += 1;
                return Some((
                    batch.buffers.tables[write.table as usize].clone(),
                    write.rid,
                ));
            }
            if let Some(batch) = self.batches.pop_front() {
                worker.give_buffers(batch.buffers);
            }
        }
    }

    /// Sets a row aside until `single` is not in use any more.
    fn hold(&mut self, single: u64, table: &Arc<Table>, rid: Rid) {
        if table.is_dropped() {
            return;
        }
        let tables = self.held.entry(single).or_default();
        let rows = tables.entry(table.id());
        rows.or_insert_with(|| Rows::new(table.clone())).add(rid);
    }

    /// Rows whose snapshot is gone are looked at again.
    fn release(&mut self, bounds: &VisibilityBounds) {
        let released = &mut self.released;
        self.held.retain(|single, tables| {
            let holds = bounds.holds(*single);
            if !holds {
                released.extend(std::mem::take(tables).into_values());
            }
            holds
        });
    }
}

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
                    false => garbage.next_written(bounds, worker),
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
    match version.stamp() {
        Stamp::Committed(csn) => Some(csn),
        Stamp::Writer(state) => state.committed(),
    }
}

/// Versions unlinked in one step, still readable under the guard.
type Dropped<'g> = SmallVec<[VersionRef<'g>; 8]>;

/// Single snapshots that each keep a version of a row: it is looked at again when one of them is gone. `NEXT_STEP` if
/// one must wait for time to pass.
type KeptBy = SmallVec<[u64; 4]>;

/// Unlinks what the bounds allow below the newest version. Tells whether some index key may be gone with it, and which
/// single snapshots kept something.
fn prune_chain<'g>(
    mut prune: PruneLock<'_>,
    slot: usize,
    bounds: &VisibilityBounds,
    guard: &'g Guard,
    dropped: &mut Dropped<'g>,
) -> (bool, KeptBy) {
    let mut keys_changed = false;
    let mut kept_by = KeptBy::new();
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
    let mut dropped = Dropped::new();
    let (keys_changed, _) = prune_chain(prune, slot, &worker.bounds(), guard, &mut dropped);
    drop_all(worker, table, rid, keys_changed, &dropped, guard);
}

fn drop_all(
    worker: &WorkerInner,
    table: &Table,
    rid: Rid,
    keys_changed: bool,
    dropped: &Dropped<'_>,
    guard: &Guard,
) {
    if dropped.is_empty() {
        return;
    }
    add(&worker.counters().versions_collected, dropped.len() as u64);
    if keys_changed {
        let mut scratch = worker.scratch.borrow_mut();
        for gone in dropped {
            drop_entries(table, rid, *gone, &mut scratch, guard);
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
) -> KeptBy {
    let Some((chunk, slot)) = table.rows.slot(rid) else {
        return KeptBy::new();
    };
    // In an absent chunk there is nothing to collect: tombstones and second versions keep theirs in memory.
    let Ok(Some(head)) = chunk.peek(slot, guard) else {
        return KeptBy::new();
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
    let mut dropped = Dropped::new();
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
) -> KeptBy {
    let Some((chunk, slot)) = table.rows.slot(rid) else {
        return KeptBy::new();
    };
    let mut chain = Dropped::new();
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
    KeptBy::new()
}
