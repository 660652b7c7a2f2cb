//! What the pages of the next checkpoint are put upon, whoever writes them: this server, or a replica for its primary.
//!
//! Two records matter:
//! - *The record in force*: what the manifest names. The next checkpoint's directory is made of its directory, and its
//!   rows are told by it and what was changed since.
//! - *The record of the leaves*: from which this process brings in absent leaves of indexes, and by which it knows
//!   which leaves have changed. It is the record in force, or an older one with all that it needs, if somebody else has
//!   written the one in force.
//!
//! Rule: **the tiles of an index in one record are those of one process.** A tile takes the place of all that begin
//! within it, which is right only where the other tiles are the leaves of the same tree; and a process keeps entries
//! that only snapshots of its own need. So where the two records are not the same, the tiles of the record in force are
//! left, and those of the record of the leaves are named again ([`PageBase::tile_changes`]). Rows have no such rule: a
//! row that is absent has one version, which is the same everywhere.
//!
//! Does not: publish, or remove anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use logstead_checkpoint::{
    CheckpointError as PagesError, CheckpointRecord, CompactionLimits, Directory, DirectoryUpdate,
    ObjectId, ObjectIdAllocator, ObjectUse, ObjectWriter, PageChain, PageKey, PageOwner,
    RewritePlan,
};
use logstead_home::LogHome;
use logstead_types::{Csn, Epoch, IndexId, TableId};

use super::base::{CheckpointBuffers, CompactionPlan, DirectoryChange, DroppedPages};
use crate::page_store::CheckpointError;

/// The record of the leaves, where that is not the record in force.
#[derive(Clone)]
pub(crate) struct LeafRecord {
    pub(crate) directory: Directory,
    /// Objects that exist, in which its tiles lie.
    pub(crate) objects: Vec<ObjectUse>,
}

/// See the module's documentation.
pub(crate) struct PageBase {
    pub(crate) home: LogHome,
    pub(crate) object_ids: Arc<ObjectIdAllocator>,
    /// The record in force; nothing: there is none.
    pub(crate) record: Option<Arc<CheckpointRecord>>,
    pub(crate) directory: Directory,
    /// Nothing: it is the record in force.
    pub(crate) leaves: Option<LeafRecord>,
    /// Of the last one, for the next.
    pub(crate) buffers: CheckpointBuffers,
    /// Tables, and indexes, that are gone and of whose pages some are still named, because a node of the directory
    /// could not be read.
    pub(crate) hidden: BTreeSet<PageOwner>,
    /// All that the directory has pages of was named by a checkpoint that this life has published, or was found and
    /// removed: an earlier life may have left some for the same reason.
    pub(crate) has_looked: bool,
}

impl PageBase {
    pub(crate) fn home(&self) -> LogHome {
        self.home.clone()
    }

    pub(crate) fn object_ids(&self) -> Arc<ObjectIdAllocator> {
        Arc::clone(&self.object_ids)
    }

    /// The primary's life.
    pub(crate) fn epoch(&self) -> Epoch {
        self.object_ids.epoch()
    }

    /// The CSN of the record in force; zero if there is none: every row is newer.
    pub(crate) fn csn(&self) -> Csn {
        self.record.as_ref().map_or(Csn::ZERO, |record| record.csn)
    }

    /// Where a chunk lies that is to be changed; perhaps below what can be read.
    pub(crate) fn chain_to_change(
        &self,
        key: &PageKey,
    ) -> Result<Option<PageChain>, CheckpointError> {
        Ok(self.directory.get_to_change(key)?)
    }

    /// Where something lies that is to be moved. Nothing, if that cannot be told now.
    pub(crate) fn chain_to_move(
        &self,
        key: &PageKey,
    ) -> Result<Option<PageChain>, CheckpointError> {
        match self.directory.get(key) {
            Err(error) if error.is_unreadable() => Ok(None),
            found => Ok(found?.filter(|chain| !chain.is_below())),
        }
    }

    /// What the next checkpoint had better write anew. Nothing while what lies in an object cannot be told, or while
    /// tiles of another record come in the place of those that there are.
    pub(crate) fn moves(&self) -> Result<CompactionPlan, CheckpointError> {
        if self.leaves.is_some() {
            return Ok(CompactionPlan::default());
        }
        let limits = CompactionLimits::default();
        match RewritePlan::of(self.record.as_deref(), &self.directory, &limits) {
            Err(error) if error.is_unreadable() => Ok(CompactionPlan::default()),
            found => Ok(CompactionPlan::new(found?)),
        }
    }

    /// The pages of the tables and indexes of the record in force but those that stay.
    pub(crate) fn pages_of_others(
        &self,
        stays: impl Fn(TableId) -> bool,
        index_stays: impl Fn(TableId, IndexId) -> bool,
    ) -> Result<DroppedPages, CheckpointError> {
        let record = self.record.as_ref();
        let tables = record.iter().flat_map(|record| &record.tables);
        let gone_tables = tables
            .filter(|info| !stays(info.table))
            .map(|info| (info.table, None));
        let indexes = record.iter().flat_map(|record| &record.indexes);
        let gone_indexes = indexes
            .filter(|info| !index_stays(info.table, info.index))
            .map(|info| (info.table, Some(info.index)));
        let mut gone: BTreeSet<PageOwner> = gone_tables
            .chain(gone_indexes)
            .chain(self.hidden.iter().copied())
            .collect();
        let mut others = DroppedPages::new(self.has_looked);
        if !self.has_looked {
            match self.directory.owners() {
                Ok((owners, why)) => {
                    gone.extend(owners.into_iter().filter(|other| match *other {
                        (table, None) => !stays(table),
                        (table, Some(index)) => !index_stays(table, index),
                    }));
                    others.has_looked = why.is_none();
                    others.damage = why;
                }
                Err(error) if error.is_unreadable() => others.damage = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        for other in gone {
            others.add(other, self.directory.keys_of(other))?;
        }
        Ok(others)
    }

    /// What was found of them is not named any more.
    pub(crate) fn others_are_gone(&mut self, others: DroppedPages) {
        self.hidden = others.hidden;
        self.has_looked = others.has_looked;
    }

    /// Is everything that the directory has pages of told by the record in force?
    pub(crate) fn is_all_known(&self) -> bool {
        self.has_looked && self.hidden.is_empty()
    }

    /// Appends what a new tile changes of the record of the leaves.
    pub(crate) fn replace_tile(
        &self,
        key: PageKey,
        high: Option<&[u8]>,
        chain: PageChain,
        changes: &mut Vec<DirectoryChange>,
    ) -> Result<(), PagesError> {
        let of_leaves = self.leaves.as_ref().map(|leaves| &leaves.directory);
        let directory = of_leaves.unwrap_or(&self.directory);
        directory.replace_tile(key, high, chain, changes)
    }

    /// What becomes of the directory of the record in force: of `indexes` it has what the record of the leaves has,
    /// with these changes.
    pub(crate) fn tile_changes(
        &self,
        indexes: impl Iterator<Item = (TableId, IndexId)>,
        changes: Vec<DirectoryChange>,
    ) -> Result<Vec<DirectoryChange>, CheckpointError> {
        let Some(leaves) = &self.leaves else {
            return Ok(changes);
        };
        let (mut wanted, mut present) = (BTreeMap::new(), BTreeMap::new());
        for (table, index) in indexes {
            for (directory, tiles) in [
                (&leaves.directory, &mut wanted),
                (&self.directory, &mut present),
            ] {
                for tile in directory.tiles(table, index, Vec::new()) {
                    let (low, chain) = tile?;
                    tiles.insert(PageKey::Leaf { table, index, low }, chain);
                }
            }
        }
        for (key, chain) in changes {
            match chain {
                Some(chain) => drop(wanted.insert(key, chain)),
                None => drop(wanted.remove(&key)),
            }
        }
        let is_as = |one: &PageChain, other: &PageChain| one.pages().eq(other.pages());
        let gone = present.keys().filter(|key| !wanted.contains_key(*key));
        let mut changes: Vec<DirectoryChange> = gone.map(|key| (key.clone(), None)).collect();
        for (key, chain) in wanted {
            if present.get(&key).is_none_or(|there| !is_as(there, &chain)) {
                changes.push((key, Some(chain)));
            }
        }
        Ok(changes)
    }

    /// Objects that exist, and that the record in force does not need perhaps.
    pub(crate) fn more_objects(&self) -> &[ObjectUse] {
        let leaves = self.leaves.as_ref();
        leaves.map_or(&[], |leaves| &leaves.objects)
    }

    /// Makes the directory of the next checkpoint; it counts once that is published.
    pub(crate) fn make(
        &self,
        changes: &[DirectoryChange],
        moves: &BTreeSet<ObjectId>,
        csn: Csn,
        writer: &mut ObjectWriter<'_>,
    ) -> Result<DirectoryUpdate, CheckpointError> {
        let made = self.directory.apply(changes, moves, csn, writer)?;
        Ok(made)
    }
}
