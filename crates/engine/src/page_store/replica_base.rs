//! What a replica reads its absent rows and leaves from: checkpoints of the server that it follows.
//!
//! *Leaves* come from the checkpoint that the replica has begun with, always, and are never evicted: an entry that a
//! snapshot of the replica needs may be gone in a later one, for the primary knows nothing of that snapshot.
//!
//! *Rows* come from the newest checkpoint that the replica has adopted ([`ReplicaBase::adopt`]). That is one at
//! whose CSN `S` every entry of the log below `S` is applied here. The rules:
//!
//! - A1 *It holds the rows that are absent.* An absent row has not changed since it was brought in last, or since the
//!   start, up to what is applied, so up to `S`; and it is in every checkpoint from the one by which it went on.
//! - A2 *What goes is in it.* [`crate::version`] lets go of a row with a single version, whose CSN is below `S`, and
//!   that `saved` tells of. As all entries below `S` are applied, such a version is what the checkpoint has. Whoever
//!   applies an entry notes the chunk, with the entry's CSN, before he installs anything ([`ReplicaBase::changes`]). A
//!   chunk that was noted below `S` alone is as the checkpoint has it: `saved` is what is there, and it is not CHANGED
//!   any more. Of others `saved` gains the rows that were written below `S`, and the chunk stays.
//! - A3 *Old snapshots.* A version that one needs beside the newest is in the chain, and two versions stay.
//! - A4 *The start's tail.* It was read up to `O`, and indexes are made of it until the start is through. A checkpoint
//!   below `O` is not adopted, nor any before the start is through; so all tails go with the first that is: its
//!   pages have what they say.
//! - A5 *Tables that it does not have* were dropped, or are newer than it. The ones have absent rows that nobody can
//!   read any more, which is told ([`FaultError::TooOld`]), the others have none. Nothing of either is evicted.
//! - A6 *Histories.* A checkpoint of an epoch that is not followed yet may be one of a server that has given up what is
//!   applied here (`--accept-data-loss`). The follower finds that out before it comes to that epoch.
//!
//! A replica may write the pages of its primary's checkpoints ([`crate::checkpoint`]). Then it has to know what the
//! record that it has adopted holds of each chunk, not only what of it may be evicted:
//!
//! - P1 *Unknown chunks.* If a chunk was changed at or above `S` when a checkpoint at `S` was adopted that this replica
//!   has not written, rows may have come and gone again of which it has nothing any more, and which the record has. Its
//!   note says so, until this replica has written the chunk in a checkpoint that was published. Of every other chunk
//!   `saved` is exactly what the record has: it was set when nothing had changed since (A2), or by what was written.
//! - P2 *Marks.* A chunk with a note has the mark CHANGED, as long as its note is at or above the adopted record's CSN.
//!   Who applies sets it before he installs, so a walk that clears it and finds nothing puts it back if the note is
//!   not below its own CSN ([`ReplicaBase::keep_mark`]).
//! - P3 *One at a time.* While chunks are walked no checkpoint is adopted; one that is met ends the walk. What was
//!   written stays WRITING until the next one is adopted: then it is told whether that is what was written.
//!
//! The primary removes what its newest checkpoint does not need, and waits for nobody. Whoever cannot read a row looks
//! for a newer checkpoint, adopts it, and reads again; if the log is not applied so far, he waits a while. The
//! record of the first checkpoint that was met too early is kept, and adopted when the log is applied so far,
//! whatever newer ones there are by then.
//!
//! Does not: read the manifest for each round (the follower does), or decide what is evicted.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;
use std::time::Duration;

use foldhash::fast::FixedState;
use logstead_checkpoint::{
    CheckpointError as PagesError, CheckpointRecord, ChunkSize, ObjectIdAllocator,
};
use logstead_home::{HomeError, LogHome, ObjectId};
use logstead_types::{Csn, DatabaseId, Epoch, IndexId, TableId};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::CheckpointRef;
use parking_lot::Mutex;

use crate::fault_error::FaultError;
use crate::memory::{Charge, footprint};
use crate::page_store::base::CheckpointBuffers;
use crate::page_store::page_base::{LeafRecord, PageBase};
use crate::page_store::{CheckpointError, NOT_RESTORED, NewestCheckpoint, PageOrder};
use crate::rows::TableRows;
use crate::stored_checkpoint::StoredCheckpoint;
use crate::version::{Chunk, Guard};

/// How long who needs a row waits, if not told otherwise, until the log is applied as far as the only checkpoint that
/// still has it.
const BEHIND_WAIT: Duration = Duration::from_secs(5);
/// How often he looks.
const BEHIND_AGAIN: Duration = Duration::from_millis(5);
/// How often the manifest is read again because what it named has gone meanwhile.
const NEWEST_TRIES: usize = 10;
/// So many chunks are looked at while nothing can be applied.
const CHUNKS_AT_ONCE: u64 = 1024;
/// What a note takes, with the room that a table of them leaves.
const NOTE_BYTES: usize = 2 * size_of::<((TableId, u64), ChunkNote)>();
const NO_CSN: u64 = u64::MAX;

/// The engine, as far as a replica's checkpoints need it.
pub(crate) trait ReplicaTables: Send + Sync {
    /// The rows of a table, if it is there.
    fn rows_of(&self, table: TableId) -> Option<Arc<TableRows>>;
    /// Those of all tables that are no session's own.
    fn all_rows(&self) -> Vec<Arc<TableRows>>;
    /// More may be evicted than before.
    fn has_adopted(&self);
}

/// What has come of looking for a newer checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adoption {
    /// Rows are read from it now.
    Adopted,
    /// There is none.
    Current,
    /// It holds more than is applied: everything below this CSN.
    Behind(Csn),
    /// It was taken while the replica opened, and will never do (A4).
    Unfit(Csn),
}

/// What is noted of a chunk.
#[derive(Clone, Copy)]
struct ChunkNote {
    /// The CSN of its newest change.
    newest: Csn,
    /// What the adopted record has of it is not known (P1).
    is_unknown: bool,
}

/// The chunks that were changed since the checkpoint that was adopted.
struct ChangedChunks {
    notes: HashMap<(TableId, u64), ChunkNote, FixedState>,
    charge: Charge,
}

/// The checkpoint that rows are read from.
struct AdoptedCheckpoint {
    /// Its record's object; nothing: there was none at the start.
    object: Option<ObjectId>,
    /// The objects with its pages.
    objects: Vec<ObjectId>,
    at: (Epoch, Csn),
    /// One was adopted since the start.
    is_later: bool,
    /// One that was met before the log was applied so far.
    pending: Option<(ObjectId, CheckpointRecord)>,
    /// Its record, once it is known here.
    record: Option<Arc<CheckpointRecord>>,
    /// By which clean leaves of indexes are told: nothing is, if there is none.
    tiles: Option<TilesRecord>,
}

/// What was written for the primary, until it is known what came of it. Dropping it: it was not published.
pub(crate) trait WrittenPages: Send {
    /// Is this record the one with what was written?
    fn is(&self, record: &CheckpointRecord) -> bool;
    /// It is the newest checkpoint, and read from.
    fn published(self: Box<Self>);
}

/// The record whose tiles are as the clean leaves here.
struct TilesRecord {
    object: ObjectId,
    leaves: LeafRecord,
}

/// What a checkpoint is begun with that this replica writes.
pub(crate) struct BegunWriting {
    pub(crate) pages: PageBase,
    /// The record whose tiles are named again, if that is another one.
    pub(crate) tiles: Option<ObjectId>,
    /// No leaf is to be counted as stored.
    pub(crate) is_all_of_indexes: bool,
    pub(crate) cancelled: Arc<AtomicBool>,
    pub(crate) turn: WritingTurn,
}

/// Nothing is adopted until this is dropped (P3).
pub(crate) struct WritingTurn(Arc<ReplicaBase>);

impl Drop for WritingTurn {
    fn drop(&mut self) {
        self.0.writing.lock().take();
    }
}

/// What an engine that follows a log reads from. See the module's documentation.
pub(crate) struct ReplicaBase {
    home: LogHome,
    database: DatabaseId,
    /// The primary's life that was the newest when it opened.
    pub(crate) epoch: Epoch,
    /// The checkpoint that it began with, if there was one, and its object.
    record: Option<CheckpointRecord>,
    begin: Option<ObjectId>,
    /// That checkpoint, where leaves are read from.
    pub(crate) leaves: Arc<NewestCheckpoint>,
    /// The one where rows are read from.
    pub(crate) newest: Arc<NewestCheckpoint>,
    /// `O`.
    opened: Csn,
    /// Indexes are being made of what the start has read.
    starting: AtomicBool,
    /// All entries below it are applied.
    applied: AtomicU64,
    /// The epoch whose log is applied.
    followed: AtomicU32,
    changed: Mutex<ChangedChunks>,
    /// Held by who adopts one, while he reads its record too: nobody else waits for it but who needs one. Before
    /// `changed`.
    adopted: Mutex<AdoptedCheckpoint>,
    /// A checkpoint is being written here: set to end it. After `adopted`.
    writing: Mutex<Option<Arc<AtomicBool>>>,
    /// What was written, until it is known what came of it. After `adopted`, before `changed`.
    written: Mutex<Option<Box<dyn WrittenPages>>>,
    /// Checkpoints are written here.
    is_writer: AtomicBool,
    /// The CSN of the pending one, or [`NO_CSN`].
    pending: AtomicU64,
    tables: OnceLock<Box<dyn ReplicaTables>>,
    /// Who applies: it waits for nothing that it would have to apply.
    applier: Mutex<Option<ThreadId>>,
    /// Somebody has found that what the replica began with is gone: there is a checkpoint that has everything below
    /// this CSN.
    pub(crate) superseded: OnceLock<Csn>,
    behind_wait_us: AtomicU64,
    closing: AtomicBool,
    /// No leaf will be read any more.
    has_all_leaves: AtomicBool,
}

/// What a replica has opened with.
pub(crate) struct ReplicaStart {
    pub(crate) home: LogHome,
    pub(crate) database: DatabaseId,
    pub(crate) epoch: Epoch,
    /// The epoch up to whose log it was read.
    pub(crate) followed: Epoch,
    /// The checkpoint, its record and where it is named.
    pub(crate) stored: StoredCheckpoint,
    pub(crate) record: Option<CheckpointRecord>,
    pub(crate) begin: Option<ObjectId>,
    /// All entries below are applied.
    pub(crate) next: Csn,
    /// Where notes are counted.
    pub(crate) charge: Charge,
}

fn objects_of(record: &CheckpointRecord) -> Vec<ObjectId> {
    record.objects.iter().map(|info| info.object).collect()
}

impl ReplicaBase {
    pub(crate) fn new(start: ReplicaStart) -> ReplicaBase {
        let begun = start.record.as_ref();
        ReplicaBase {
            adopted: Mutex::new(AdoptedCheckpoint {
                object: start.begin,
                objects: begun.map(objects_of).unwrap_or_default(),
                at: begun.map_or((Epoch(0), Csn::ZERO), |record| (record.epoch, record.csn)),
                is_later: false,
                pending: None,
                record: None,
                tiles: start.begin.zip(begun).map(|(object, record)| TilesRecord {
                    object,
                    leaves: LeafRecord {
                        directory: start.stored.directory.clone(),
                        objects: record.objects.clone(),
                    },
                }),
            }),
            writing: Mutex::default(),
            written: Mutex::default(),
            is_writer: AtomicBool::new(false),
            home: start.home,
            database: start.database,
            epoch: start.epoch,
            record: start.record,
            begin: start.begin,
            leaves: Arc::new(NewestCheckpoint::new(start.stored.clone())),
            newest: Arc::new(NewestCheckpoint::new(start.stored)),
            opened: start.next,
            starting: AtomicBool::new(true),
            applied: AtomicU64::new(start.next.0),
            followed: AtomicU32::new(start.followed.get()),
            changed: Mutex::new(ChangedChunks {
                notes: HashMap::default(),
                charge: start.charge,
            }),
            pending: AtomicU64::new(NO_CSN),
            tables: OnceLock::new(),
            applier: Mutex::new(None),
            superseded: OnceLock::new(),
            behind_wait_us: AtomicU64::new(BEHIND_WAIT.as_micros() as u64),
            closing: AtomicBool::new(false),
            has_all_leaves: AtomicBool::new(false),
        }
    }

    /// The engine is there. Once.
    pub(crate) fn set_tables(&self, tables: Box<dyn ReplicaTables>) {
        let is_first = self.tables.set(tables).is_ok();
        debug_assert!(is_first, "a replica has one engine");
    }

    /// All indexes are made (A4).
    pub(crate) fn finish_startup(&self) {
        self.starting.store(false, Ordering::SeqCst);
    }

    /// All leaves of the first checkpoint are in memory, where they stay.
    pub(crate) fn note_all_leaves(&self) {
        self.has_all_leaves.store(true, Ordering::SeqCst);
    }

    /// The records of the checkpoints that are read from, or will be when the log is applied so far. Nothing: one is
    /// being adopted just now.
    pub(crate) fn checkpoints_in_use(&self) -> Option<Vec<ObjectId>> {
        let adopted = self.adopted.try_lock()?;
        let begin = self
            .begin
            .filter(|_| !self.has_all_leaves.load(Ordering::SeqCst));
        let pending = adopted.pending.as_ref().map(|(object, _)| *object);
        let is_writer = self.is_writer.load(Ordering::Relaxed);
        let tiles = adopted.tiles.as_ref().filter(|_| is_writer);
        let mut in_use: Vec<ObjectId> = begin
            .into_iter()
            .chain(tiles.map(|tiles| tiles.object))
            .chain(adopted.object)
            .chain(pending)
            .collect();
        in_use.dedup();
        Some(in_use)
    }

    /// See [`Engine::set_replica_wait`](crate::Engine::set_replica_wait).
    pub(crate) fn set_behind_wait(&self, most: Duration) {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        self.behind_wait_us.store(micros, Ordering::Relaxed);
    }

    /// Nothing is applied any more: whoever waits for that gives up.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.end_writing();
        // It has the engine, which has this.
        drop(self.written.lock().take());
    }

    /// An index of the checkpoint that it began with, if its keys are made like that.
    pub(crate) fn stored_index(
        &self,
        table: TableId,
        index: IndexId,
        keys: u64,
    ) -> Option<StoredCheckpoint> {
        let info = self.record.as_ref()?.index(table, index)?;
        (info.keys == keys && keys != NOT_RESTORED).then(|| self.leaves.get())
    }

    /// This thread applies from now on.
    pub(crate) fn applies_here(&self) {
        *self.applier.lock() = Some(std::thread::current().id());
    }

    /// Is this the thread that applies?
    pub(crate) fn is_applier(&self) -> bool {
        *self.applier.lock() == Some(std::thread::current().id())
    }

    /// Is this the epoch whose log is applied?
    pub(crate) fn follows(&self, epoch: Epoch) -> bool {
        self.followed.load(Ordering::SeqCst) == epoch.get()
    }

    /// A round has come as far as this epoch's log, and nothing was given up that was applied.
    pub(crate) fn set_followed(&self, epoch: Epoch) {
        self.followed.store(epoch.get(), Ordering::SeqCst);
    }

    /// All entries below are applied.
    pub(crate) fn set_applied(&self, next: Csn) {
        self.applied.fetch_max(next.0, Ordering::SeqCst);
        if next.0 >= self.pending.load(Ordering::SeqCst)
            && let Some(mut adopted) = self.adopted.try_lock()
            && let Some((object, record)) = adopted
                .pending
                .take_if(|(_, record)| self.may_adopt(record.epoch, record.csn))
        {
            self.pending.store(NO_CSN, Ordering::SeqCst);
            self.read_from(&mut adopted, object, &record);
        }
    }

    /// An entry with this CSN, which is not below any before, is about to change something in a chunk: called before
    /// it does (A2).
    pub(crate) fn changes(&self, rows: &TableRows, number: u64, csn: Csn) {
        let mut changed = self.changed.lock();
        let note = changed.notes.entry((rows.table, number));
        note.and_modify(|note| note.newest = csn)
            .or_insert(ChunkNote {
                newest: csn,
                is_unknown: false,
            });
        changed.settle();
        let first = number * crate::version::CHUNK_SLOTS as u64;
        let (chunk, _) = rows.slot_or_new(logstead_types::Rid(first));
        // Before the lock is given back: who adopts a checkpoint meanwhile clears the mark by the note before.
        chunk.set_changed();
    }

    /// Is it not known what the adopted record has of a chunk (P1)?
    pub(crate) fn is_unknown(&self, table: TableId, number: u64) -> bool {
        let changed = self.changed.lock();
        let note = changed.notes.get(&(table, number));
        note.is_some_and(|note| note.is_unknown)
    }

    /// A checkpoint at `csn` has looked at a chunk, whose mark it has cleared before (P2).
    pub(crate) fn keep_mark(&self, rows: &TableRows, number: u64, chunk: &Chunk, csn: Csn) {
        let changed = self.changed.lock();
        let note = changed.notes.get(&(rows.table, number));
        if note.is_some_and(|note| note.newest >= csn) {
            chunk.set_changed();
        }
    }

    /// Checkpoints are written here from now on: what they are put upon is told to the primary.
    pub(crate) fn set_writer(&self) {
        self.is_writer.store(true, Ordering::Relaxed);
    }

    /// Begins to write what was ordered, if the record that the order names is the one that was adopted.
    pub(crate) fn begin_writing(
        self: &Arc<Self>,
        order: &PageOrder,
        home: LogHome,
        object_ids: Arc<ObjectIdAllocator>,
    ) -> Result<BegunWriting, CheckpointError> {
        let refused = |what| Err(CheckpointError::from(PagesError::Misuse(what)));
        if self.adopted.lock().object != Some(order.record.0) {
            self.adopt_newest()?;
        }
        let mut adopted = self.adopted.lock();
        if order.epoch.get() != self.followed.load(Ordering::SeqCst) {
            return refused("the order is of another life of the primary");
        }
        let record = adopted.record.clone();
        let record = record.filter(|_| adopted.object == Some(order.record.0));
        let Some(record) = record.filter(|record| record.epoch == order.epoch) else {
            return refused("another checkpoint is adopted than the one that is in force");
        };
        // Not published, or that record would have been adopted.
        drop(self.written.lock().take());
        let cancelled = Arc::new(AtomicBool::new(false));
        {
            let mut writing = self.writing.lock();
            if writing.is_some() {
                return refused("a checkpoint is being written");
            }
            *writing = Some(Arc::clone(&cancelled));
        }
        let turn = WritingTurn(Arc::clone(self));
        let in_force = adopted.object;
        let is_in_force = |tiles: &&TilesRecord| Some(tiles.object) == in_force;
        let is_all_of_indexes = match &adopted.tiles {
            Some(tiles) => !order.whole.contains(&tiles.object),
            None => true,
        };
        if is_all_of_indexes {
            // From here on no leaf is as any record has it.
            adopted.tiles = None;
        }
        let tiles = adopted.tiles.as_ref().filter(|tiles| !is_in_force(tiles));
        let directory = self.newest.get().directory;
        let leaves = match (is_all_of_indexes, tiles) {
            (true, _) => Some(LeafRecord {
                directory: directory.at(None),
                objects: Vec::new(),
            }),
            (false, tiles) => tiles.map(|tiles| tiles.leaves.clone()),
        };
        Ok(BegunWriting {
            tiles: tiles.map(|tiles| tiles.object),
            pages: PageBase {
                home,
                object_ids,
                record: Some(record),
                directory,
                leaves,
                buffers: CheckpointBuffers::default(),
                hidden: BTreeSet::new(),
                // The primary gives no order while something is hidden.
                has_looked: true,
            },
            is_all_of_indexes,
            cancelled,
            turn,
        })
    }

    /// It is stored. What comes of it shows when a checkpoint is adopted.
    pub(crate) fn written(&self, written: Box<dyn WrittenPages>) {
        let mut kept = self.written.lock();
        if !self.closing.load(Ordering::SeqCst) {
            *kept = Some(written);
        }
    }

    /// Ends what is being written, soon.
    pub(crate) fn end_writing(&self) {
        if let Some(cancelled) = &*self.writing.lock() {
            cancelled.store(true, Ordering::SeqCst);
        }
    }

    /// The same, and gives up what was written: it is not known that it was published.
    pub(crate) fn give_up_writing(&self) {
        self.end_writing();
        // While one is adopted it is asked for there.
        if let Some(_adopted) = self.adopted.try_lock() {
            drop(self.written.lock().take());
        }
    }

    /// Adopts the newest checkpoint at the home, if all that it holds is applied.
    ///
    /// # Errors
    /// The manifest, or the record of the checkpoint that it names, cannot be read ([`FaultError::Unreachable`]).
    pub(crate) fn adopt_newest(&self) -> Result<Adoption, FaultError> {
        let mut before: Option<(ObjectId, FaultError)> = None;
        for _ in 0..NEWEST_TRIES {
            let manifest = manifest_of(&self.home)
                .map_err(|error| FaultError::Unreachable(format!("the manifest: {error}")))?;
            let Some(at) = manifest.checkpoint else {
                return Ok(Adoption::Current);
            };
            if let Some((object, error)) = &before
                && *object == at.object
            {
                return Err(FaultError::Unreachable(error.to_string()));
            }
            match self.adopt(&at, true) {
                Ok(found) => return Ok(found),
                // It may have gone since the manifest was read, because there is a newer one.
                Err(error) => before = Some((at.object, error)),
            }
        }
        Err(FaultError::Unreachable(
            "the primary's checkpoints go before they are read".to_owned(),
        ))
    }

    /// Adopts a checkpoint that a manifest names, if all that it holds is applied; `is_fresh`: that manifest was
    /// read just now. Costs nothing if rows are read from it already, and otherwise in proportion to the chunks that
    /// were changed since the last one.
    ///
    /// # Errors
    /// Its record cannot be read: perhaps there is a newer one.
    pub(crate) fn adopt(&self, at: &CheckpointRef, is_fresh: bool) -> Result<Adoption, FaultError> {
        let mut adopted = self.adopted.lock();
        let is_newer = match (at.epoch, at.csn).cmp(&adopted.at) {
            std::cmp::Ordering::Greater => true,
            // Taken once more, with other objects.
            std::cmp::Ordering::Equal => is_fresh && adopted.object != Some(at.object),
            std::cmp::Ordering::Less => false,
        };
        if !is_newer {
            return Ok(Adoption::Current);
        }
        if at.csn < self.opened {
            return Ok(Adoption::Unfit(at.csn));
        }
        self.end_writing();
        let may_adopt = self.may_adopt(at.epoch, at.csn);
        if !may_adopt && adopted.pending.is_some() {
            return Ok(Adoption::Behind(at.csn));
        }
        let objects = self.home.objects.as_ref();
        let record = CheckpointRecord::read(objects, self.database, at.object, at.crc)?;
        if (record.csn, record.epoch) != (at.csn, at.epoch) {
            return Err(FaultError::Damaged(format!(
                "the record of the checkpoint at CSN {} is another checkpoint's",
                at.csn
            )));
        }
        if record.chunk_size != ChunkSize::default() {
            // Its keys stand for other rows: an older server writes.
            return Ok(Adoption::Unfit(at.csn));
        }
        if !may_adopt {
            self.pending.store(at.csn.0, Ordering::SeqCst);
            adopted.pending = Some((at.object, record));
            return Ok(Adoption::Behind(at.csn));
        }
        self.read_from(&mut adopted, at.object, &record);
        Ok(Adoption::Adopted)
    }

    /// Is all applied that a checkpoint holds (A1, A4, A6)?
    fn may_adopt(&self, epoch: Epoch, csn: Csn) -> bool {
        csn.0 <= self.applied.load(Ordering::SeqCst)
            && epoch.get() <= self.followed.load(Ordering::SeqCst)
            && self.writing.lock().is_none()
            && !self.starting.load(Ordering::SeqCst)
            && self.tables.get().is_some()
    }

    /// Rows are read from it from now on. All that it holds is applied.
    fn read_from(
        &self,
        adopted: &mut AdoptedCheckpoint,
        object: ObjectId,
        record: &CheckpointRecord,
    ) {
        let Some(tables) = self.tables.get() else {
            return;
        };
        let written = self.written.lock().take();
        // If it was something else, what was to be written has changed still.
        let written = written.filter(|written| written.is(record));
        self.newest.replace(record);
        adopted.record = Some(Arc::new(record.clone()));
        adopted.object = Some(object);
        adopted.objects = objects_of(record);
        adopted.at = (record.epoch, record.csn);
        let at = adopted.at;
        let is_older =
            |(_, pending): &mut (_, CheckpointRecord)| (pending.epoch, pending.csn) <= at;
        if adopted.pending.take_if(is_older).is_some() {
            self.pending.store(NO_CSN, Ordering::SeqCst);
        }
        let stored = self.newest.get();
        if !std::mem::replace(&mut adopted.is_later, true) {
            for rows in tables.all_rows() {
                if stored.has_table(rows.table) {
                    self.adopt_table(&rows, stored.csn);
                }
            }
            self.newest.set_has_tails();
        }
        let is_own = written.is_some();
        if let Some(written) = written {
            written.published();
            adopted.tiles = Some(TilesRecord {
                object,
                leaves: LeafRecord {
                    directory: stored.directory.clone(),
                    objects: record.objects.clone(),
                },
            });
        }
        let mut changed = self.changed.lock();
        changed.notes.retain(|(table, number), note| {
            let is_saved = note.newest < stored.csn;
            note.is_unknown = !is_own;
            if !is_own
                && let Some(rows) = tables.rows_of(*table)
                && stored.has_table(*table)
                && let Some(chunk) = rows.chunk(*number)
            {
                chunk.adopt(stored.csn, is_saved, &Guard::pin());
            }
            !is_saved
        });
        let left = changed.notes.len();
        changed.notes.shrink_to(left * 2);
        changed.settle();
        drop(changed);
        tables.has_adopted();
    }

    /// The first checkpoint since the start has all that the start has read of a table. Chunks that were changed since
    /// are looked at after this.
    fn adopt_table(&self, rows: &TableRows, csn: Csn) {
        let mut from = 0;
        while let Some(number) = rows.tails.next(from) {
            rows.tails.written(number, || {});
            from = number + 1;
        }
        let end = rows.chunk_end();
        let mut first = 0;
        while first < end {
            let next = end.min(first + CHUNKS_AT_ONCE);
            // Nothing is noted, so nothing is installed, while one of them is looked at.
            let changed = self.changed.lock();
            for number in first..next {
                if let Some(chunk) = rows.chunk(number)
                    && !changed.notes.contains_key(&(rows.table, number))
                {
                    chunk.adopt(csn, true, &Guard::pin());
                }
            }
            first = next;
        }
    }

    /// Reads rows, and again from a newer checkpoint if they are gone because there is one. Who does not apply waits a
    /// while until the log is applied so far.
    ///
    /// # Errors
    /// That of `read`; [`FaultError::TooOld`] if what still has the rows is newer than what is applied.
    pub(crate) fn read_rows<T>(
        &self,
        mut read: impl FnMut() -> Result<T, FaultError>,
    ) -> Result<T, FaultError> {
        loop {
            let before = self.newest.get().publication;
            match read() {
                Err(error @ (FaultError::Damaged(_) | FaultError::Unreachable(_))) => {
                    self.wait_for_newer(before, error)?;
                }
                done => return done,
            }
        }
    }

    /// Something of the checkpoint with this number cannot be read. Returns when rows are read from another one; an
    /// error if that is not so, or if it is not because of that.
    fn wait_for_newer(&self, before: u64, error: FaultError) -> Result<(), FaultError> {
        let has_come = || self.newest.get().publication != before;
        let found = self.adopt_newest();
        if has_come() {
            return Ok(());
        }
        let csn = match found? {
            Adoption::Adopted => return Ok(()),
            Adoption::Current => return Err(error),
            Adoption::Behind(_) | Adoption::Unfit(_) if !self.is_adopted_gone() => {
                return Err(error);
            }
            Adoption::Unfit(csn) => {
                let _was_found_before = self.superseded.set(csn);
                return Err(FaultError::TooOld(csn));
            }
            Adoption::Behind(csn) => csn,
        };
        let most = match self.is_applier() {
            true => Duration::ZERO,
            false => Duration::from_micros(self.behind_wait_us.load(Ordering::Relaxed)),
        };
        let mut waited = Duration::ZERO;
        while waited < most {
            if self.closing.load(Ordering::SeqCst) {
                return Err(FaultError::Closing);
            }
            logstead_env::sleep(BEHIND_AGAIN);
            waited += BEHIND_AGAIN;
            if has_come() {
                return Ok(());
            }
        }
        Err(FaultError::TooOld(csn))
    }

    /// Has the primary removed something of the checkpoint that rows are read from?
    fn is_adopted_gone(&self) -> bool {
        let named = {
            let adopted = self.adopted.lock();
            let objects = adopted.objects.iter().copied();
            objects.chain(adopted.object).collect::<Vec<_>>()
        };
        let Ok(listed) = self.home.objects.list_objects() else {
            return false;
        };
        let listed: HashSet<ObjectId> = listed.into_iter().map(|info| info.id).collect();
        named.iter().any(|object| !listed.contains(object))
    }

    /// A leaf cannot be read: is the checkpoint that the replica began with gone, because there is a newer one?
    pub(crate) fn explain(&self, error: FaultError) -> FaultError {
        if !matches!(error, FaultError::Damaged(_) | FaultError::Unreachable(_)) {
            return error;
        }
        let is_gone = self.begin.is_some_and(|begin| {
            let read = self.home.objects.read_object(begin, 0, &mut [0]);
            matches!(read, Err(HomeError::Missing(_)))
        });
        if !is_gone {
            return error;
        }
        let newest = manifest_of(&self.home).ok();
        let newest = newest.and_then(|manifest| manifest.checkpoint);
        match newest.filter(|newest| Some(newest.object) != self.begin) {
            Some(newest) => {
                let _was_found_before = self.superseded.set(newest.csn);
                FaultError::TooOld(newest.csn)
            }
            None => error,
        }
    }
}

impl ChangedChunks {
    /// Counts what the notes take.
    fn settle(&mut self) {
        self.charge
            .force(footprint(self.notes.capacity() * NOTE_BYTES));
    }
}
