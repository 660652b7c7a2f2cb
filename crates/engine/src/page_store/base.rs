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
    CheckpointError as PagesError, CheckpointPages, CheckpointRecord, Directory, DirectoryUpdate,
    NewCheckpoint, ObjectHold, ObjectId, ObjectIdAllocator, PageChain, PageKey, PageOwner,
    PinsError, PublishedCheckpoint, Publisher, RecoveryPoint, RetainedRecord, Retention,
    RewritePlan, StoredObjects, WrittenObjects,
};
use logstead_env::Instant;
use logstead_home::LogHome;
use logstead_types::{Csn, DatabaseId, Epoch, IndexId, TableId};
use logstead_wal::{LogFloor, ManifestWriter};
use parking_lot::Mutex;

use crate::page_store::page_base::{LeafRecord, PageBase};
use crate::page_store::replica_holds::HoldsDecision;
use crate::page_store::{CheckpointError, CheckpointReport, ReplicaHolds};
use crate::rows::TableRows;

/// See the module's documentation.
pub(crate) struct CheckpointBase {
    pub(crate) pages: PageBase,
    database: DatabaseId,
    manifest_writer: Arc<ManifestWriter>,
    publisher: Publisher<Arc<ManifestWriter>>,
    newest: Arc<NewestCheckpoint>,
    /// Where leaves are read from: the newest that this server has taken itself, or has loaded.
    leaves: Arc<NewestCheckpoint>,
    /// Keeps that one, where it is not the newest.
    leaves_hold: Option<ObjectHold>,
    replica_holds: Arc<ReplicaHolds>,
}

/// What a replica has written of a checkpoint.
pub(crate) struct ReplicaPages {
    pub(crate) pages: CheckpointPages,
    pub(crate) stored: StoredObjects,
    /// The record of which it names tiles again.
    pub(crate) tiles: Option<ObjectHold>,
}

/// The pages of tables and indexes that are gone.
#[derive(Default)]
pub(crate) struct DroppedPages {
    /// In no order.
    pub(crate) keys: Vec<PageKey>,
    /// Those of which some could not be found, to be looked for again.
    pub(crate) hidden: BTreeSet<PageOwner>,
    /// All were looked for.
    pub(crate) has_looked: bool,
    /// Why.
    pub(crate) damage: Option<PagesError>,
}

impl DroppedPages {
    pub(crate) fn new(has_looked: bool) -> DroppedPages {
        DroppedPages {
            has_looked,
            ..DroppedPages::default()
        }
    }

    /// Adds the pages of `other`. What is found is removed, the rest stays, until it can be found.
    pub(crate) fn add(
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

    /// From now on it is this one, which this server has published.
    fn set(&self, csn: Csn, directory: &Directory) {
        let mut newest = self.stored.lock();
        *newest = StoredCheckpoint {
            publication: newest.publication + 1,
            csn,
            directory: directory.clone(),
            tables: None,
        };
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
    pub(crate) fn new(plan: RewritePlan) -> CompactionPlan {
        let mut moves = CompactionPlan {
            objects: plan.objects,
            ..CompactionPlan::default()
        };
        for key in plan.keys {
            match key {
                PageKey::Rows { table, chunk } => {
                    moves.chunks.insert((table, chunk));
                }
                key => moves.tiles.push(key),
            }
        }
        moves
    }

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

fn note_written(written: &WrittenObjects, report: &mut CheckpointReport) {
    report.objects = written.objects.len() as u64;
    report.bytes = written.bytes;
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
        let record = publisher.newest().map(|newest| newest.record.clone());
        Ok(CheckpointBase {
            pages: PageBase {
                home,
                object_ids: Arc::clone(publisher.object_ids()),
                record: record.map(Arc::new),
                directory,
                leaves: None,
                buffers: CheckpointBuffers::default(),
                hidden: BTreeSet::new(),
                has_looked: false,
            },
            leaves: Arc::new(NewestCheckpoint::new(stored.clone())),
            leaves_hold: None,
            newest: Arc::new(NewestCheckpoint::new(stored)),
            replica_holds: Arc::new(replica_holds),
            database,
            manifest_writer,
            publisher,
        })
    }

    /// Where leaves are read from, for others.
    pub(crate) fn leaves(&self) -> Arc<NewestCheckpoint> {
        Arc::clone(&self.leaves)
    }

    /// The newest checkpoint, for others.
    pub(crate) fn shared(&self) -> Arc<NewestCheckpoint> {
        Arc::clone(&self.newest)
    }

    /// What is kept for replicas.
    pub(crate) fn replica_holds(&self) -> &Arc<ReplicaHolds> {
        &self.replica_holds
    }

    /// Would a checkpoint at `csn` say nothing new?
    pub(crate) fn is_current(&self, csn: Csn) -> bool {
        let newest = self.publisher.newest().map(|newest| &newest.record);
        let epoch = self.pages.epoch();
        let same = newest.is_some_and(|record| (record.csn, record.epoch) == (csn, epoch));
        same && self.publisher.has_recorded_pins()
    }

    /// The first checkpoint of a life makes room before it begins: one that an earlier life did not finish left objects
    /// behind. What fails is tried again after it.
    pub(crate) fn remove_orphans(&mut self) {
        if !self.publisher.has_listed() {
            // An error is told by the collection after the checkpoint, if it lasts.
            let _tried_again = self.publisher.collect();
        }
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
        let epoch = self.pages.epoch();
        let is_usable = info.keys == keys && keys != NOT_RESTORED && record.epoch != epoch;
        is_usable.then(|| self.newest.get())
    }

    /// Names what was stored as the newest checkpoint, now. `has_tiles`: it has the leaves of this process.
    pub(crate) fn publish(
        &mut self,
        now: Instant,
        new: NewCheckpoint,
        (made, has_tiles): (DirectoryUpdate, bool),
        stored: StoredObjects,
        retention: &Retention,
        report: &mut CheckpointReport,
    ) -> Result<(), CheckpointError> {
        note_written(stored.written(), report);
        let stay = retention.choose(&self.publisher.to_keep(), new.taken_at_micros);
        let keep = |record: &RetainedRecord| stay.contains(&record.object);
        let before = (!has_tiles).then(|| self.named()).flatten();
        let more = self.pages.more_objects();
        let published = self.publisher.publish(new, &made, more, stored, keep)?;
        let published = published.clone();
        self.published(now, published, made.directory, report);
        if has_tiles {
            self.leaves.set(self.pages.csn(), &self.pages.directory);
            (self.pages.leaves, self.leaves_hold) = (None, None);
        } else {
            self.keep_leaves(before);
        }
        Ok(())
    }

    /// Names what a replica has stored as the newest checkpoint.
    pub(crate) fn publish_of_replica(
        &mut self,
        now: Instant,
        new: NewCheckpoint,
        written: ReplicaPages,
        retention: &Retention,
        report: &mut CheckpointReport,
    ) -> Result<(), CheckpointError> {
        let stay = retention.choose(&self.publisher.to_keep(), new.taken_at_micros);
        let keep = |record: &RetainedRecord| stay.contains(&record.object);
        let before = self.named();
        if self.pages.leaves.is_none() && before.is_none() {
            // Absent leaves would be read from what somebody else has written.
            return Err(CheckpointError::Busy);
        }
        let directory = self.pages.directory.at(written.pages.root);
        let published = self
            .publisher
            .publish_pages(new, written.pages, written.stored, keep)?;
        let published = published.clone();
        self.published(now, published, directory, report);
        // Named again: whatever becomes of that record.
        drop(written.tiles);
        self.keep_leaves(before);
        Ok(())
    }

    /// The record in force, held: nothing of it goes.
    fn named(&self) -> Option<(ObjectHold, LeafRecord)> {
        let newest = self.publisher.newest()?;
        let hold = self.publisher.holds().hold_object(newest.object)?;
        let leaves = LeafRecord {
            directory: self.pages.directory.clone(),
            objects: newest.record.objects.clone(),
        };
        Some((hold, leaves))
    }

    /// Another record is in force than that of the leaves, which was the one `before`, or an older one.
    fn keep_leaves(&mut self, before: Option<(ObjectHold, LeafRecord)>) {
        if self.pages.leaves.is_none()
            && let Some((hold, leaves)) = before
        {
            (self.pages.leaves, self.leaves_hold) = (Some(leaves), Some(hold));
        }
    }

    fn published(
        &mut self,
        now: Instant,
        published: PublishedCheckpoint,
        directory: Directory,
        report: &mut CheckpointReport,
    ) {
        let record = &published.record;
        let (live, in_use) = record.bytes();
        report.objects_in_use = record.objects.len() as u64;
        report.bytes_in_use = in_use;
        report.bytes_live = live;
        report.taken_at_micros = record.taken_at_micros;
        self.replica_holds
            .published(published.object, record.csn, record.starts.clone(), now);
        self.newest.set(record.csn, &directory);
        self.pages.record = Some(Arc::new(published.record));
        self.pages.directory = directory;
    }

    /// May a replica write the next checkpoint? Not the first of a life, nor while something of the directory cannot be
    /// read; and not while what is kept for the leaves of this process takes too much.
    pub(crate) fn may_be_written_by_replica(&self) -> bool {
        let newest = self.publisher.newest();
        let is_own = newest.is_some_and(|newest| newest.record.epoch == self.pages.epoch());
        is_own && self.pages.is_all_known() && self.kept_for_leaves() <= self.kept_bytes_max()
    }

    /// Bytes of objects that only the record of the leaves needs.
    fn kept_for_leaves(&self) -> u64 {
        let record = self.pages.record.as_ref();
        let is_needed = |object| record.is_some_and(|record| record.object(object).is_some());
        let more = self.pages.more_objects().iter();
        more.filter(|used| !is_needed(used.object))
            .map(|used| used.size_bytes)
            .sum()
    }

    fn kept_bytes_max(&self) -> u64 {
        let live = self
            .pages
            .record
            .as_ref()
            .map_or(0, |record| record.bytes().0);
        (live / 2).max(KEPT_FOR_LEAVES_MIN)
    }

    /// The record in force, as an order for a replica names it.
    pub(crate) fn in_force(&self) -> Option<(ObjectId, u32)> {
        let newest = self.publisher.newest()?;
        Some((newest.object, newest.crc))
    }

    /// The records that are whole, the newest first. They stay so until the next collection.
    pub(crate) fn whole(&self) -> Vec<ObjectId> {
        self.publisher.holds().whole()
    }

    /// Keeps this record as long as that is held, if it is whole.
    pub(crate) fn hold(&self, record: ObjectId) -> Option<ObjectHold> {
        self.publisher.holds().hold_object(record)
    }

    /// The record that a replica has stored, which names what it has written.
    pub(crate) fn read_record(
        &self,
        object: ObjectId,
        crc: u32,
    ) -> Result<CheckpointRecord, CheckpointError> {
        let objects = self.pages.home.objects.as_ref();
        Ok(CheckpointRecord::read(objects, self.database, object, crc)?)
    }

    /// A replica was given numbers, and what it has stored with them is not published. `ended`: it stores nothing more.
    pub(crate) fn gave_up_replica(&mut self, ended: bool) {
        self.publisher.gave_up_replica(ended);
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
            home: self.pages.home(),
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
        let appends = &self.pages.home.appends;
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

/// So much is kept for the leaves of this process in any case, and otherwise half of what the newest checkpoint needs.
const KEPT_FOR_LEAVES_MIN: u64 = 256 << 20;

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
