//! What the next checkpoint is taken from: the newest that was published, and the means to publish another.
//!
//! Invariant: the directory is that of the newest checkpoint that is known to be published. Whoever brings chunks back,
//! or evicts them, has the same one ([`NewestCheckpoint`]), from the moment of publication on.

use crate::stored_checkpoint::StoredCheckpoint;
use crate::version::SlotSet;
use logstead_checkpoint::Holds;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use logstead_checkpoint::{
    CheckpointError as PagesError, CheckpointRecord, CompactionLimits, Directory, DirectoryUpdate,
    NewCheckpoint, ObjectId, ObjectIdAllocator, ObjectWriter, PageChain, PageKey, PageOwner,
    PinsError, Publisher, RecoveryPoint, RetainedRecord, Retention, StoredObjects,
};
use logstead_env::Instant;
use logstead_home::LogHome;
use logstead_types::{Csn, DatabaseId, Epoch, IndexId, TableId};
use logstead_wal::{LogFloor, ManifestWriter};
use parking_lot::Mutex;

use crate::page_store::replica_holds::HoldsDecision;
use crate::page_store::{CheckpointError, CheckpointReport, ReplicaHolds};
use crate::rows::TableRows;

/// See the module's documentation.
pub(crate) struct CheckpointBase {
    home: LogHome,
    database: DatabaseId,
    manifest_writer: Arc<ManifestWriter>,
    publisher: Publisher<Arc<ManifestWriter>>,
    directory: Directory,
    newest: Arc<NewestCheckpoint>,
    replica_holds: Arc<ReplicaHolds>,
    /// Of the last one, for the next.
    pub(crate) buffers: CheckpointBuffers,
    /// Tables, and indexes, that are gone and of whose pages some are still named, because a node of the directory
    /// could not be read.
    hidden: BTreeSet<PageOwner>,
    /// All that the directory has pages of was named by a checkpoint that this life has published, or was found and
    /// removed: an earlier life may have left some for the same reason.
    has_looked: bool,
}

/// The pages of tables and indexes that are gone.
#[derive(Default)]
pub(crate) struct DroppedPages {
    /// In no order.
    pub(crate) keys: Vec<PageKey>,
    /// Those of which some could not be found, to be looked for again.
    hidden: BTreeSet<PageOwner>,
    /// All were looked for.
    has_looked: bool,
    /// Why.
    pub(crate) damage: Option<PagesError>,
}

impl DroppedPages {
    /// Adds the pages of `other`. What is found is removed, the rest stays, until it can be found.
    fn add(
        &mut self,
        other: PageOwner,
        found: Result<(Vec<PageKey>, Option<PagesError>), PagesError>,
    ) -> Result<(), CheckpointError> {
        let why = match found {
            Ok((mut keys, why)) => {
                self.keys.append(&mut keys);
                why
            }
            Err(error) if error.is_unreadable() => Some(error),
            Err(error) => return Err(error.into()),
        };
        if let Some(why) = why {
            self.hidden.insert(other);
            self.damage.get_or_insert(why);
        }
        Ok(())
    }
}

/// The newest published checkpoint, for those who do not take any.
pub(crate) struct NewestCheckpoint {
    stored: Mutex<StoredCheckpoint>,
    /// A checkpoint of this life is published, and the log's tails that it has are gone: one that is still there is of
    /// a table that was dropped before.
    has_tails: AtomicBool,
}

impl NewestCheckpoint {
    pub(crate) fn new(stored: StoredCheckpoint) -> NewestCheckpoint {
        NewestCheckpoint {
            stored: Mutex::new(stored),
            has_tails: AtomicBool::new(false),
        }
    }

    /// It, as of now. Its objects may be removed as soon as a newer one is published.
    pub(crate) fn get(&self) -> StoredCheckpoint {
        self.stored.lock().clone()
    }

    /// The tails of all chunks that it has are gone.
    pub(crate) fn set_has_tails(&self) {
        self.has_tails.store(true, Ordering::SeqCst);
    }

    /// Is a tail that is found after this in no checkpoint, and never will be? Its table was dropped before the first
    /// checkpoint of this life.
    pub(crate) fn has_tails(&self) -> bool {
        self.has_tails.load(Ordering::SeqCst)
    }

    /// Where the chunks of these rows, and the leaves of their indexes, are read from: the newest as of now, or, if
    /// they are of the past, what they were made from. The one place that decides it.
    pub(crate) fn of(&self, rows: &TableRows) -> StoredCheckpoint {
        rows.past().cloned().unwrap_or_else(|| self.get())
    }

    /// Is that, of these rows, not what is to be read any more? Then its objects may be gone. Those of the past stay.
    pub(crate) fn is_after(&self, rows: &TableRows, stored: &StoredCheckpoint) -> bool {
        rows.past().is_none() && self.is_newer(stored)
    }

    fn is_newer(&self, stored: &StoredCheckpoint) -> bool {
        self.stored.lock().publication != stored.publication
    }

    /// From now on it is this one, which another server has published.
    pub(crate) fn replace(&self, record: &CheckpointRecord) {
        let mut tables: Vec<TableId> = record.tables.iter().map(|info| info.table).collect();
        tables.sort_unstable();
        let mut stored = self.stored.lock();
        *stored = StoredCheckpoint {
            publication: stored.publication + 1,
            csn: record.csn,
            directory: stored.directory.at(record.root),
            tables: Some(tables.into()),
        };
    }

    /// Another checkpoint of the same home; the nodes of directories are cached together.
    pub(crate) fn beside(&self, record: &CheckpointRecord) -> StoredCheckpoint {
        StoredCheckpoint {
            publication: u64::MAX,
            csn: record.csn,
            directory: self.stored.lock().directory.at(record.root),
            tables: None,
        }
    }
}

/// What is to be written anew though it has not changed, so that objects with little in them go.
#[derive(Default)]
pub(crate) struct CompactionPlan {
    objects: BTreeSet<ObjectId>,
    chunks: BTreeSet<(TableId, u64)>,
    tiles: Vec<PageKey>,
}

impl CompactionPlan {
    pub(crate) fn contains(&self, table: TableId, chunk: u64) -> bool {
        !self.chunks.is_empty() && self.chunks.contains(&(table, chunk))
    }

    /// Tiles of indexes that have bytes in the objects to be emptied, in order.
    pub(crate) fn tiles(&self) -> &[PageKey] {
        &self.tiles
    }

    /// Is there nothing to be emptied?
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects to be emptied.
    pub(crate) fn objects(&self) -> &BTreeSet<ObjectId> {
        &self.objects
    }
}

impl CheckpointBase {
    /// After recovery: of this server's epoch, with the directory that was loaded, if one was.
    pub(crate) fn open(
        home: LogHome,
        database: DatabaseId,
        epoch: Epoch,
        manifest_writer: ManifestWriter,
        directory: Option<Directory>,
    ) -> Result<CheckpointBase, logstead_checkpoint::CheckpointError> {
        let manifest_writer = Arc::new(manifest_writer);
        let newest = manifest_writer.manifest().checkpoint;
        let object_ids = Arc::new(ObjectIdAllocator::new(epoch));
        let mut publisher = Publisher::open(
            home.clone(),
            Arc::clone(&manifest_writer),
            database,
            object_ids,
            newest.as_ref(),
        )?;
        match publisher.reload_pins() {
            Ok(()) => {}
            // Of a newer server, what else it has written is not known here.
            Err(error @ PagesError::Pins(PinsError::Newer(_))) => return Err(error),
            // What is pinned stays: nothing is removed until they can be read. Whoever runs the server hears of it now,
            // not with a checkpoint that removes something.
            Err(error) => tracing::warn!(
                "restore points and branches cannot be looked up, nothing that a checkpoint leaves behind is removed until they can: {error}"
            ),
        }
        let directory = directory.unwrap_or_else(|| Directory::open(home.objects.clone(), None));
        let csn = publisher
            .newest()
            .map_or(Csn::ZERO, |newest| newest.record.csn);
        let stored = StoredCheckpoint {
            publication: 0,
            csn,
            directory: directory.clone(),
            tables: None,
        };
        let loaded = publisher
            .newest()
            .map(|newest| (newest.object, newest.record.csn));
        let replica_holds = ReplicaHolds::new(Arc::clone(publisher.holds()), loaded);
        Ok(CheckpointBase {
            newest: Arc::new(NewestCheckpoint::new(stored)),
            replica_holds: Arc::new(replica_holds),
            home,
            database,
            manifest_writer,
            publisher,
            directory,
            buffers: CheckpointBuffers::default(),
            hidden: BTreeSet::new(),
            has_looked: false,
        })
    }

    /// The newest checkpoint, for others.
    pub(crate) fn shared(&self) -> Arc<NewestCheckpoint> {
        Arc::clone(&self.newest)
    }

    /// What is kept for replicas.
    pub(crate) fn replica_holds(&self) -> &Arc<ReplicaHolds> {
        &self.replica_holds
    }

    pub(crate) fn home(&self) -> LogHome {
        self.home.clone()
    }

    pub(crate) fn object_ids(&self) -> Arc<ObjectIdAllocator> {
        Arc::clone(self.publisher.object_ids())
    }

    /// This life of the server.
    pub(crate) fn epoch(&self) -> Epoch {
        self.publisher.object_ids().epoch()
    }

    /// The newest checkpoint's CSN; zero if there is none: every row is newer.
    pub(crate) fn csn(&self) -> Csn {
        let newest = self.publisher.newest();
        newest.map_or(Csn::ZERO, |newest| newest.record.csn)
    }

    /// Would a checkpoint at `csn` say nothing new?
    pub(crate) fn is_current(&self, csn: Csn) -> bool {
        let newest = self.publisher.newest().map(|newest| &newest.record);
        let same = newest.is_some_and(|record| (record.csn, record.epoch) == (csn, self.epoch()));
        same && self.publisher.has_recorded_pins()
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

    /// What the next checkpoint had better write anew. Nothing while what lies in an object cannot be told.
    pub(crate) fn moves(&self) -> Result<CompactionPlan, CheckpointError> {
        let found = self
            .publisher
            .to_rewrite(&self.directory, &CompactionLimits::default());
        let found = match found {
            Err(error) if error.is_unreadable() => return Ok(CompactionPlan::default()),
            found => found?,
        };
        let mut moves = CompactionPlan {
            objects: found.objects,
            ..CompactionPlan::default()
        };
        for key in found.keys {
            match key {
                PageKey::Rows { table, chunk } => {
                    moves.chunks.insert((table, chunk));
                }
                key => moves.tiles.push(key),
            }
        }
        Ok(moves)
    }

    /// The first checkpoint of a life makes room before it begins: one that an earlier life did not finish left objects
    /// behind. What fails is tried again after it.
    pub(crate) fn remove_orphans(&mut self) {
        if !self.publisher.has_listed() {
            // An error is told by the collection after the checkpoint, if it lasts.
            let _tried_again = self.publisher.collect();
        }
    }

    /// The pages of the newest checkpoint's tables and indexes but those that stay.
    pub(crate) fn pages_of_others(
        &self,
        stays: impl Fn(TableId) -> bool,
        index_stays: impl Fn(TableId, IndexId) -> bool,
    ) -> Result<DroppedPages, CheckpointError> {
        let record = self.publisher.newest().map(|newest| &newest.record);
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
        let mut others = DroppedPages {
            has_looked: self.has_looked,
            ..DroppedPages::default()
        };
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

    /// Appends what a new tile changes in the directory.
    pub(crate) fn replace_tile(
        &self,
        key: PageKey,
        high: Option<&[u8]>,
        chain: PageChain,
        changes: &mut Vec<(PageKey, Option<PageChain>)>,
    ) -> Result<(), PagesError> {
        self.directory.replace_tile(key, high, chain, changes)
    }

    /// What the start has loaded of an index, if its keys are made like that: nothing once this life has published a
    /// checkpoint of its own.
    pub(crate) fn stored_index(
        &self,
        table: TableId,
        index: IndexId,
        keys: u64,
    ) -> Option<StoredCheckpoint> {
        let record = &self.publisher.newest()?.record;
        let info = record.index(table, index)?;
        let is_usable = info.keys == keys && keys != NOT_RESTORED && record.epoch != self.epoch();
        is_usable.then(|| self.newest.get())
    }

    /// Makes the directory of the next checkpoint; it counts once that is published.
    pub(crate) fn make(
        &self,
        changes: &[(PageKey, Option<PageChain>)],
        moves: &CompactionPlan,
        csn: Csn,
        writer: &mut ObjectWriter<'_>,
    ) -> Result<DirectoryUpdate, CheckpointError> {
        let made = self.directory.apply(changes, &moves.objects, csn, writer)?;
        Ok(made)
    }

    /// Names what was stored as the newest checkpoint, now.
    pub(crate) fn publish(
        &mut self,
        now: Instant,
        new: NewCheckpoint,
        made: DirectoryUpdate,
        stored: StoredObjects,
        retention: &Retention,
        report: &mut CheckpointReport,
    ) -> Result<(), CheckpointError> {
        let written = stored.written().clone();
        let stay = retention.choose(&self.publisher.to_keep(), new.taken_at_micros);
        let keep = |record: &RetainedRecord| stay.contains(&record.object);
        let published = self.publisher.publish(new, &made, stored, keep)?;
        let (live, in_use) = published.record.bytes();
        report.objects = written.objects.len() as u64;
        report.bytes = written.bytes;
        report.objects_in_use = published.record.objects.len() as u64;
        report.bytes_in_use = in_use;
        report.bytes_live = live;
        report.taken_at_micros = published.record.taken_at_micros;
        let (csn, starts) = (published.record.csn, published.record.starts.clone());
        self.replica_holds
            .published(published.object, csn, starts, now);
        self.directory = made.directory;
        let mut newest = self.newest.stored.lock();
        *newest = StoredCheckpoint {
            publication: newest.publication + 1,
            csn: published.record.csn,
            directory: self.directory.clone(),
            tables: None,
        };
        Ok(())
    }

    /// Sees to it that there is a list of pins, of which the next checkpoint's record tells.
    pub(crate) fn begin_pins(&mut self) -> Result<(), logstead_checkpoint::CheckpointError> {
        self.publisher.begin_pins()
    }

    /// Reads the pins of restore points and branches.
    pub(crate) fn reload_pins(&mut self) -> Result<(), logstead_checkpoint::CheckpointError> {
        self.publisher.reload_pins()
    }

    /// Where pasts are read from.
    pub(crate) fn place(&self) -> RestorePointSource {
        RestorePointSource {
            home: self.home(),
            database: self.database,
            newest: self.shared(),
            holds: Arc::clone(self.publisher.holds()),
        }
    }

    /// What can be gone back to, by CSN, with objects and bytes.
    pub(super) fn points(&self) -> Vec<(RecoveryPoint, Option<(u64, u64)>)> {
        self.publisher.points()
    }

    /// Removes what only records before the newest named, and the log before its places, but for what is kept for
    /// replicas. What fails is tried again after the next one.
    pub(crate) fn collect(&mut self, now: Instant, report: &mut CheckpointReport) {
        let decided = self.decide_holds(now);
        self.remove(decided.floor.as_ref(), report);
    }

    /// The same where nothing has changed: only if something is kept for replicas no longer.
    pub(crate) fn collect_released(&mut self, now: Instant, report: &mut CheckpointReport) {
        let decided = self.decide_holds(now);
        if decided.has_released {
            self.remove(decided.floor.as_ref(), report);
        }
    }

    fn decide_holds(&self, now: Instant) -> HoldsDecision {
        let appends = &self.home.appends;
        let free_bytes = appends.free_bytes();
        let has_room = !appends.is_short_of_space()
            && free_bytes.is_none_or(|free| free >= REPLICA_ROOM_BYTES_MIN);
        self.replica_holds.decide(now, has_room)
    }

    /// The same without keeping anything for replicas: there is no room.
    pub(crate) fn collect_all(&mut self, now: Instant, report: &mut CheckpointReport) {
        let decided = self.replica_holds.decide(now, false);
        self.remove(decided.floor.as_ref(), report);
    }

    fn remove(&mut self, floor: Option<&LogFloor>, report: &mut CheckpointReport) {
        match self.publisher.collect() {
            Ok(collected) => report.objects_removed = collected.removed,
            Err(error) => report.collection_failed = Some(error.to_string()),
        }
        match self.manifest_writer.truncate(floor) {
            Ok(removed) => {
                report.segments_removed = removed.segments;
                report.sides_removed = removed.sides;
            }
            Err(error) => report.collection_failed = Some(error.to_string()),
        }
    }
}

/// A chunk that was written.
pub(crate) struct ChunkChange {
    /// Which of the tables.
    pub(crate) table: usize,
    pub(crate) chunk: u64,
    /// Its slots with a row; unknown of one that is absent, and has not changed.
    pub(crate) present: Option<SlotSet>,
    /// Slots of these that have one perhaps.
    pub(crate) doubtful: SlotSet,
    /// It was marked as changed.
    pub(crate) changed: bool,
    /// By the log behind the checkpoint before, of which it has, or had, a tail.
    pub(crate) by_tail: bool,
    /// Where it lies; nowhere, if it is empty.
    pub(crate) chain: Option<PageChain>,
}

/// A chain in the next directory, or none any more.
pub(crate) type DirectoryChange = (PageKey, Option<PageChain>);

/// What a checkpoint fills, in memory that the one before has used: what is fresh has to be cleared first, which took a
/// third of a checkpoint's time with pages of a few hundred bytes. Empty in between.
#[derive(Default)]
pub(crate) struct CheckpointBuffers {
    pub(crate) object: Vec<u8>,
    pub(crate) changes: Vec<ChunkChange>,
    pub(crate) named: Vec<DirectoryChange>,
}

/// Instead of the number for how keys are made: a start does not use the tiles.
pub(crate) const NOT_RESTORED: u64 = 0;

/// With less free room at the home nothing is kept for replicas.
const REPLICA_ROOM_BYTES_MIN: u64 = 1 << 30;

/// Where pasts are read from.
pub(crate) struct RestorePointSource {
    pub(crate) home: LogHome,
    pub(crate) database: DatabaseId,
    pub(crate) newest: Arc<NewestCheckpoint>,
    pub(crate) holds: Arc<Holds>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publications_of_one_csn_are_told_apart() {
        let home = LogHome::from(logstead_home::MemoryHome::new(1 << 20));
        let mut stored = StoredCheckpoint {
            publication: 0,
            csn: Csn(7),
            directory: Directory::open(home.objects, None),
            tables: None,
        };
        let newest = NewestCheckpoint::new(stored.clone());
        assert!(!newest.is_newer(&stored));
        stored.publication = 1;
        *newest.stored.lock() = stored.clone();
        assert!(!newest.is_newer(&stored));
        stored.publication = 0;
        assert!(newest.is_newer(&stored), "the same CSN, other objects");
    }
}
