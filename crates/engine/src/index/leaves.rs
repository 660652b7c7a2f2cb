//! An index's leaves in checkpoints and in memory: what is stored of them, what leaves memory, and how it comes back.
//!
//! For who takes checkpoints, in this order:
//! 1. [`Index::changed_leaves`] begins a walk, when the checkpoint's CSN was drawn: the entries of what is visible at
//!    that CSN are in the tree by then, and stay there, as the snapshot keeps their versions.
//! 2. [`ChangedLeaves::next`] gives a [`Tile`] at a time, under no lock and no guard: what begins within a tile's range
//!    is replaced by it in the directory. It can be called whenever there is room, for days.
//! 3. When the record that names all tiles is published, *and* loads find them there: [`ChangedLeaves::published`].
//!    What was written may be evicted from then on. A walk that is dropped has changed nothing: its leaves are given
//!    again.
//!
//! For who loads: [`Index::load_leaf`], with the key that a [`PageFault`](crate::PageFault) names.
//!
//! For who starts: [`Index::restored`], and [`Index::add_late`] for entries whose leaves are absent. Before a walk
//! begins, or it would pass over them, and whenever there is time: [`Index::first_late_leaf`] is loaded until there is
//! none.
//!
//! What is in a tile may be more than what any snapshot needs: entries of transactions that were rolled back since, or
//! of versions that are collected while their leaf is absent. They are surplus, and go when somebody meets them.

use std::sync::Arc;

use logstead_checkpoint::TileBoundaries;
use logstead_types::IndexId;

use super::{Index, KeyExtractor};
use crate::rows::TableRows;
use crate::tree::{
    AbsentLeaf, LeafEviction, LeafWalk, LoadError, ResidentLeaves, StoredLeaf, Tile, Tree,
};

/// A walk over the leaves of an index that are not as the newest checkpoint has them.
pub(crate) struct ChangedLeaves {
    index: Arc<Index>,
    walk: LeafWalk,
}

impl ChangedLeaves {
    /// The next one; nothing when all were looked at.
    pub(crate) fn next(&mut self) -> Option<Tile<'_>> {
        self.index.tree.next_changed(&mut self.walk)
    }

    /// The tiles it has given are what loads find from here on.
    ///
    /// # Panics
    /// If [`ChangedLeaves::next`] has not come to the end.
    pub(crate) fn published(self) {
        self.index.tree.published(&self.walk);
    }
}

impl Index {
    /// An index whose leaves are all in a checkpoint, and none in memory, nor where they begin. The
    /// checkpoint must be the one that loads read, and hold an entry of each row that is in it.
    pub(crate) fn restored(
        id: IndexId,
        unique: bool,
        extractor: Arc<dyn KeyExtractor>,
        rows: Arc<TableRows>,
    ) -> Index {
        let tree = Tree::restore(rows.memory(), extractor.is_divided());
        Index::with_tree(id, unique, extractor, rows, tree)
    }

    /// Keeps an entry that cannot conflict until its leaf, which is absent, is loaded. At a start, before anybody uses
    /// the index.
    pub(crate) fn add_late(&self, entry: &[u8]) {
        self.tree.add_late(entry);
    }

    /// Where the absent leaf begins that the first entry waits for that was kept; nothing if none is.
    pub(crate) fn first_late_leaf(&self) -> Option<Box<[u8]>> {
        self.tree.first_late_leaf().map(|AbsentLeaf { low }| low)
    }

    /// Where the first absent leaf begins that ends above `from`; nothing if all are there.
    pub(crate) fn next_absent_leaf(&self, from: &[u8]) -> Option<Box<[u8]>> {
        self.tree.next_absent(from).map(|AbsentLeaf { low }| low)
    }

    /// The leaves that are in memory, from left to right.
    pub(crate) fn resident_leaves(&self, tell: impl FnMut(ResidentLeaves)) {
        self.tree.resident_leaves(tell);
    }

    /// The leaf that covers `key` was brought in for nobody.
    pub(crate) fn forget_touched(&self, key: &[u8]) {
        self.tree.forget_touched(key);
    }

    /// Entries that are put in when their leaves are loaded.
    pub fn late_entry_count(&self) -> usize {
        self.tree.late_count()
    }

    /// Places of absent leaves that stand for several, of which is not known yet where they begin.
    pub fn absent_range_count(&self) -> usize {
        self.tree.range_count()
    }

    /// Begins a walk over what has changed. One at a time: it gives up the one before, if that was not published.
    pub(crate) fn changed_leaves(self: &Arc<Self>) -> ChangedLeaves {
        ChangedLeaves {
            walk: self.tree.begin_walk(),
            index: self.clone(),
        }
    }

    /// No leaf counts as stored any more: the next walk gives all of them. All are in memory.
    pub(crate) fn forget_published(&self) {
        self.tree.forget_published();
    }

    /// Brings in the leaf that begins at `low`, if it is absent and nobody else does. Then `read` is called, which
    /// takes the tile of that name from the newest published checkpoint as of its call (if a page is gone because a
    /// newer one was published, from that). If it stands for several, `divide` is called with where these end, and
    /// gives where some of their tiles begin. Blocks as long as they do; no lock is held meanwhile.
    pub(crate) fn load_leaf<E>(
        &self,
        low: &[u8],
        divide: impl FnOnce(Option<&[u8]>) -> Result<TileBoundaries, E>,
        read: impl FnOnce() -> Result<StoredLeaf, E>,
    ) -> Result<(), LoadError<E>> {
        self.tree.load_or_divide(low, divide, read)
    }

    /// The leaf that covers `key` is to be written by the next walk, changed or not. False if it is absent.
    pub(crate) fn mark_leaf_changed(&self, key: &[u8]) -> bool {
        self.tree.mark_changed(key)
    }

    /// Takes leaves out of memory that the newest checkpoint has as they are and that nobody has used since this last
    /// came by, until they take `bytes`, or the end of the index is reached; the next call goes on there.
    pub(crate) fn evict_leaves(&self, bytes: usize) -> LeafEviction {
        self.tree.evict(bytes)
    }

    /// Takes all leaves out of memory that the newest checkpoint has as they are, and says how many. For tests.
    pub fn evict_all_leaves(&self) -> usize {
        self.tree.evict_all().leaves
    }

    /// Leaves that are not in memory; what stands for several counts as one.
    pub fn absent_leaf_count(&self) -> usize {
        self.tree.absent_leaves()
    }

    /// Leaves in memory that the newest checkpoint does not have as they are. Looks at every leaf.
    pub fn changed_leaf_count(&self) -> usize {
        self.tree.changed_leaves()
    }
}
