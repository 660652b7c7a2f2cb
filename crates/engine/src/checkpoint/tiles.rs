//! The second half of a checkpoint's walk: indexes, leaf by leaf.
//!
//! When all chunks were looked at, each index that was complete when the checkpoint's CSN S was drawn is walked from
//! left to right ([`crate::index::ChangedLeaves`]). Leaves that are not as the newest checkpoint has them become tiles;
//! the others are named as they are.
//!
//! Invariant: **the tiles of an index hold the entry of every row that the checkpoint holds and that has a key.** Let v
//! be a row's version that is visible at S.
//! - If v was written after the index was attached, its entry went in before its writer drew a CSN, hence before S was
//!   drawn, and before the walk. If v was there before, building the index has put its entry in before the index was
//!   complete ([`crate::index_build`]).
//! - The entry is not removed before the walk is over: whoever removes entries does so for versions that are unlinked,
//!   and the checkpoint's snapshot keeps v.
//! - What is in the tree from the walk's beginning to its end is in exactly one tile (`crate::tree::tiles`).
//!
//! An index that is dropped while the walk is under way is walked to its end: its drop has drawn no CSN below S, or it
//! would not have been in the list; so it may yet be taken back by a crash. One that is not in the list loses its
//! tiles; if the drop is lost, the index is built from rows.
//!
//! Tiles are divided by short fences ([`FENCE_BYTES_MAX`]). Leaves with a longer one count as changed for ever
//! (`crate::tree::tiles`), so all between two short fences are given by every walk, one after the other, and become one
//! tile.
//!
//! An index with entries that wait for a leaf that is damaged, or cannot be read, ([`Index::add_late`]) would have
//! tiles without these: the checkpoint says of it that its tiles are not to be used ([`NOT_RESTORED`]), and the next
//! start builds it from rows. So is the damage mended; it does not cost the checkpoint.
//!
//! So it is with an index of which a tile is to be written where a node of the pages' directory cannot be read
//! ([`logstead_checkpoint::Directory`]): its walk ends there, and nothing of it is published: the directory goes on
//! having all tiles of an earlier walk.
//!
//! No guard and no lock is held while a tile is written: the walk gives copies.

use crate::page_store::base::NOT_RESTORED;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use logstead_checkpoint::{FENCE_BYTES_MAX, IndexInfo, LeafWriter, PageChain, PageKey};
use logstead_types::{IndexId, TableId};

use super::take::Checkpoint;
use crate::fault_error::FaultError;
use crate::index::{ChangedLeaves, Index};
use crate::memory::{Charge, Memory, footprint};
use crate::page_store::CheckpointError;
use crate::table::Table;

/// Leaves that are put in one tile because the fences between them are long. If there are more, the index is stored,
/// but a start makes it anew from rows: what is loaded must fit between two fences.
const RUN_LEAVES_MAX: usize = 6;
/// An index of the checkpoint.
struct Indexed {
    table: TableId,
    index: Arc<Index>,
    /// Begun when its turn has come; kept until it is known what became of the checkpoint.
    walk: Option<ChangedLeaves>,
    /// What the record says of its keys.
    keys: u64,
    /// How many changes there were when its walk began.
    first: usize,
}

/// The indexes of a checkpoint, and how far their walk has come.
#[derive(Default)]
pub(super) struct TileWalk {
    /// By table and number.
    indexes: Vec<Indexed>,
    /// The next one to be walked, or walked on.
    at: usize,
    /// The next tile that is perhaps to be moved.
    moved: usize,
    writer: LeafWriter,
    /// For the directory.
    changes: Vec<(PageKey, Option<PageChain>)>,
    /// What they take, until the checkpoint is over: a large index that is stored for the first time has a change for
    /// each of its leaves.
    held: Option<Charge>,
    held_bytes: usize,
    /// What was written anew, once the walks are over and tiles are moved.
    written: Option<BTreeSet<PageKey>>,
}

impl TileWalk {
    /// The indexes that are complete now. Called before the checkpoint's CSN is drawn: what their making rests on,
    /// their numbers too, is below it.
    pub(super) fn of<'t>(tables: impl Iterator<Item = &'t Arc<Table>>) -> TileWalk {
        let mut indexes = Vec::new();
        for table in tables {
            let complete = table.indexes().into_iter().filter(|i| i.is_complete());
            indexes.extend(complete.map(|index| Indexed {
                table: table.id(),
                keys: index.keys(),
                index,
                walk: None,
                first: 0,
            }));
        }
        indexes.sort_unstable_by_key(|indexed| (indexed.table, indexed.index.id()));
        TileWalk {
            indexes,
            ..TileWalk::default()
        }
    }

    /// Leaves out what was dropped meanwhile. Called when the CSN was drawn, with the tables by number.
    pub(super) fn retain_attached(&mut self, tables: &[Arc<Table>]) {
        self.indexes.retain(|indexed| {
            let found = tables.binary_search_by_key(&indexed.table, |table| table.id());
            let kept = found
                .ok()
                .and_then(|at| tables[at].index(indexed.index.id()));
            kept.is_some_and(|kept| Arc::ptr_eq(&kept, &indexed.index))
        });
    }

    fn position(&self, table: TableId, index: IndexId) -> Option<usize> {
        let key = (table, index);
        self.indexes
            .binary_search_by_key(&key, |indexed| (indexed.table, indexed.index.id()))
            .ok()
    }

    /// Does the checkpoint have this index?
    pub(super) fn contains(&self, table: TableId, index: IndexId) -> bool {
        self.position(table, index).is_some()
    }

    /// For the record.
    pub(super) fn infos(&self) -> Vec<IndexInfo> {
        let info = |indexed: &Indexed| IndexInfo {
            table: indexed.table,
            index: indexed.index.id(),
            keys: indexed.keys,
        };
        self.indexes.iter().map(info).collect()
    }

    /// Which they are.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (TableId, IndexId)> {
        let indexes = self.indexes.iter();
        indexes.map(|indexed| (indexed.table, indexed.index.id()))
    }

    /// Nothing of any index is published, and what the directory has of them is of no use to a start.
    pub(super) fn give_up(&mut self) {
        for indexed in &mut self.indexes {
            (indexed.keys, indexed.walk) = (NOT_RESTORED, None);
        }
    }

    /// For the directory, in no order.
    pub(super) fn take_changes(&mut self) -> Vec<(PageKey, Option<PageChain>)> {
        std::mem::take(&mut self.changes)
    }

    /// Charges the changes from the `from`-th on.
    fn hold(&mut self, from: usize, memory: &'static Memory) {
        let new = self.changes.iter().skip(from).map(change_bytes);
        self.held_bytes += new.sum::<usize>();
        let held = self.held.get_or_insert_with(|| memory.charge());
        held.force(self.held_bytes);
    }

    /// Forgets the changes from the `from`-th on.
    fn drop_changes(&mut self, from: usize) {
        let dropped = self.changes.drain(from.min(self.changes.len())..);
        let bytes: usize = dropped.as_ref().iter().map(change_bytes).sum();
        drop(dropped);
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
        if let Some(held) = &mut self.held {
            held.force(self.held_bytes);
        }
    }

    /// Loads find the tiles from here on.
    pub(super) fn published(&mut self) {
        for walk in self.indexes.iter_mut().filter_map(|i| i.walk.take()) {
            walk.published();
        }
    }
}

/// What a change takes in memory, with its copy while the directory is made.
fn change_bytes((key, _): &(PageKey, Option<PageChain>)) -> usize {
    let fence = match key {
        PageKey::Leaf { low, .. } => footprint(low.len()),
        _ => 0,
    };
    2 * (size_of::<(PageKey, Option<PageChain>)>() + fence)
}

impl Checkpoint {
    /// Writes up to `budget` tiles. True if there are more.
    pub(super) fn walk_indexes(&mut self, budget: usize) -> Result<bool, CheckpointError> {
        let current = self
            .base
            .as_ref()
            .is_some_and(|base| base.is_current(self.csn));
        if current {
            // Nothing will be published.
            return Ok(false);
        }
        let mut written = 0;
        while self.tiles.at < self.tiles.indexes.len() {
            if written >= budget {
                return Ok(true);
            }
            self.unless_stopping()?;
            if self.write_tile()? {
                written += 1;
            } else {
                self.tiles.at += 1;
            }
        }
        while self.tiles.moved < self.moves.tiles().len() {
            if written >= budget {
                return Ok(true);
            }
            self.unless_stopping()?;
            written += usize::from(self.move_tile()?);
        }
        Ok(false)
    }

    pub(super) fn unless_stopping(&self) -> Result<(), CheckpointError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(CheckpointError::Stopped);
        }
        let given_up = self.engine.inner().checkpoints.given_up();
        given_up.map_or(Ok(()), Err)
    }

    /// Writes the next leaf that has changed, with those that it cannot be divided from. False: there is none.
    fn write_tile(&mut self) -> Result<bool, CheckpointError> {
        let TileWalk {
            indexes,
            at,
            writer: pages,
            changes,
            ..
        } = &mut self.tiles;
        let Some(indexed) = indexes.get_mut(*at) else {
            return Ok(false);
        };
        let index = &indexed.index;
        if indexed.walk.is_none() {
            // A walk passes over what is absent.
            let inner = self.engine.inner();
            let (shared, checkpoints) = (&inner.pages, &inner.checkpoints);
            let reader = self.loads.get_or_insert_with(|| shared.reader());
            let go_on = || checkpoints.given_up().is_none();
            match shared.load_late_leaves(indexed.table, index, reader, go_on) {
                Ok(()) if go_on() => {}
                Ok(()) => return Err(checkpoints.given_up().unwrap_or(CheckpointError::Stopped)),
                Err(FaultError::Damaged(what) | FaultError::Unreachable(what)) => {
                    indexed.keys = NOT_RESTORED;
                    if index.is_damaged_for_the_first_time() {
                        tracing::error!(
                            "{what}: what is there alone of index {} cannot be read, and the log has added entries to it since; the next start builds that index from rows",
                            index.id()
                        );
                        inner.checkpoints.stats.lock().last_damage = Some(what);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        if indexed.walk.is_none() {
            indexed.first = changes.len();
        }
        let walk = indexed.walk.get_or_insert_with(|| index.changed_leaves());
        let Some(mut tile) = walk.next() else {
            return Ok(false);
        };
        let key = PageKey::Leaf {
            table: indexed.table,
            index: index.id(),
            low: tile.low.to_vec(),
        };
        pages.begin(key.clone(), self.csn)?;
        let mut leaves = 1;
        loop {
            for at in 0..tile.entries.len() {
                pages.entry(tile.entries.get(at))?;
            }
            self.report.entries += tile.entries.len() as u64;
            let Some(high) = tile.high.filter(|high| high.len() > FENCE_BYTES_MAX) else {
                break;
            };
            let high = high.to_vec();
            leaves += 1;
            match walk.next() {
                Some(next) if next.low == high => tile = next,
                _ => {
                    let gap = "leaves of an index with a gap between them";
                    return Err(logstead_checkpoint::CheckpointError::Misuse(gap).into());
                }
            }
        }
        if leaves > RUN_LEAVES_MAX {
            indexed.keys = NOT_RESTORED;
        }
        let writer = self.writer.as_mut().ok_or(CheckpointError::Busy)?;
        let chain = pages.finish(tile.high, writer)?;
        self.report.tiles += 1;
        let base = self.base.as_ref().ok_or(CheckpointError::Busy)?;
        let known = changes.len();
        match base.pages().replace_tile(key, tile.high, chain, changes) {
            Ok(()) => {}
            // Which tiles it takes the place of cannot be told. The index is not in this checkpoint then: its leaves
            // that have changed stay in memory, and are given by the next one's walk again, for this one is not
            // published.
            Err(error) if error.is_unreadable() => {
                indexed.keys = NOT_RESTORED;
                indexed.walk = None;
                if index.is_damaged_for_the_first_time() {
                    tracing::error!(
                        "{error}: index {} cannot be written while that cannot be read; if the server starts meanwhile it builds the index from rows",
                        index.id()
                    );
                    let stats = &self.engine.inner().checkpoints.stats;
                    stats.lock().last_damage = Some(error.to_string());
                }
                let first = indexed.first;
                self.tiles.drop_changes(first);
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        let memory = index.rows.memory();
        self.tiles.hold(known, memory);
        Ok(true)
    }

    /// Moves the next tile out of objects that are to go, unless it was written anew. What cannot be moved, because it
    /// is damaged or cannot be read now, stays where it is, and so does its object; if it is in memory it is written
    /// anew the next time.
    fn move_tile(&mut self) -> Result<bool, CheckpointError> {
        let at = self.tiles.moved;
        self.tiles.moved += 1;
        let changes = &self.tiles.changes;
        let written = self
            .tiles
            .written
            .get_or_insert_with(|| changes.iter().map(|(key, _)| key.clone()).collect());
        let Some(key) = self.moves.tiles().get(at).cloned() else {
            return Ok(false);
        };
        let PageKey::Leaf { table, index, low } = &key else {
            return Ok(false);
        };
        let position = self
            .tiles
            .indexes
            .binary_search_by_key(&(*table, *index), |indexed| {
                (indexed.table, indexed.index.id())
            });
        // The tiles of an index that is gone are not named any more.
        let Ok(position) = position else {
            return Ok(false);
        };
        if written.contains(&key) {
            return Ok(false);
        }
        let base = self.base.as_ref().ok_or(CheckpointError::Busy)?;
        let Some(chain) = base.pages().chain_to_move(&key)? else {
            return Ok(false);
        };
        match self.move_pages(&chain) {
            Ok(chain) => {
                let memory = self.tiles.indexes[position].index.rows.memory();
                let known = self.tiles.changes.len();
                self.tiles.changes.push((key, Some(chain)));
                self.tiles.hold(known, memory);
                Ok(true)
            }
            Err(_) => {
                self.tiles.indexes[position].index.mark_leaf_changed(low);
                Ok(false)
            }
        }
    }
}
