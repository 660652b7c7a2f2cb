//! Garbage collection: versions, tombstones, index entries and rids that nobody needs any more.
//!
//! What a transaction superseded is looked at when its CSN is below the horizon and below all snapshots but single old
//! ones (T1). What such a single old snapshot still sees is set aside under that snapshot and looked at again when it
//! is gone. Rows that are updated often are pruned by their writers in passing.
//!
//! A step costs what it looks at, however much waits: rows that are released stay where they are, in order, until they
//! are looked at; none is held anew but for what a look has found. What waits is a bit in a word of 64 neighbours, so
//! neither a step nor a dropped table ever moves a large table of single rows.
//!
//! Owns: what waits. Does not: look at rows (`worker::collect`), or say which versions may go
//! ([`VisibilityBounds::droppable`]).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use logstead_types::{Csn, Rid, TableId};
use smallvec::SmallVec;

use crate::snapshots::VisibilityBounds;
use crate::table::Table;
use crate::version::VersionRef;
use crate::write_set::RowChange;
use crate::write_set::TxnBuffers;

/// A transaction's writes, to be cleaned up after.
struct Batch {
    csn: Csn,
    buffers: TxnBuffers,
    /// Writes looked at so far.
    done: usize,
}

/// A snapshot that is never in use: what is held under it is looked at in the next step.
pub(crate) const NEXT_STEP: u64 = 0;

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
    /// Takes a committed transaction's writes; gives its buffers back at once if there is nothing to do.
    #[must_use]
    pub(crate) fn add(&mut self, csn: Csn, mut buffers: TxnBuffers) -> Option<TxnBuffers> {
        buffers.log.clear();
        buffers
            .writes
            .retain(|w| matches!(w.what, RowChange::Update | RowChange::Delete));
        buffers.shrink_buffers();
        if buffers.writes.is_empty() {
            return Some(buffers);
        }
        self.batches.push_back(Batch {
            csn,
            buffers,
            done: 0,
        });
        None
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.held.is_empty() && self.released.is_empty()
    }

    pub(crate) fn absorb(&mut self, other: Garbage) {
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
    pub(crate) fn forget_dropped(&mut self, drops: u64) {
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
    pub(crate) fn next_released(&mut self) -> Option<(Arc<Table>, Rid)> {
        loop {
            let rows = self.released.front_mut()?;
            if let Some(rid) = rows.pop() {
                return Some((rows.table.clone(), rid));
            }
            self.released.pop_front();
        }
    }

    /// The next row that was written.
    pub(crate) fn next_written(
        &mut self,
        bounds: &VisibilityBounds,
        mut give_back: impl FnMut(TxnBuffers),
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
                give_back(batch.buffers);
            }
        }
    }

    /// Sets a row aside until `single` is not in use any more.
    pub(crate) fn hold(&mut self, single: u64, table: &Arc<Table>, rid: Rid) {
        if table.is_dropped() {
            return;
        }
        let tables = self.held.entry(single).or_default();
        let rows = tables.entry(table.id());
        rows.or_insert_with(|| Rows::new(table.clone())).add(rid);
    }

    /// Rows whose snapshot is gone are looked at again.
    pub(crate) fn release(&mut self, bounds: &VisibilityBounds) {
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

/// Versions unlinked in one step, still readable under the guard.
pub(crate) type UnlinkedVersions<'g> = SmallVec<[VersionRef<'g>; 8]>;

/// Single snapshots that each keep a version of a row: it is looked at again when one of them is gone. `NEXT_STEP` if
/// one must wait for time to pass.
pub(crate) type RetainingSnapshots = SmallVec<[u64; 4]>;
