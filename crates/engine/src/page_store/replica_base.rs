//! What a replica reads its absent rows and leaves from: checkpoints of the server that it follows.
//!
//! *Leaves* come from the checkpoint that the replica has begun with, always, and are never evicted: an entry that a
//! snapshot of the replica needs may be gone in a later one, for the primary knows nothing of that snapshot.
//!
//! *Rows* come from the newest checkpoint that the replica has taken over ([`ReplicaBase::take_over`]). That is one at
//! whose CSN `S` every entry of the log below `S` is applied here. The rules:
//!
//! - A1 *It holds the rows that are absent.* An absent row has not changed since it was brought in last, or since the
//!   start, up to what is applied, so up to `S`; and it is in every checkpoint from the one by which it went on.
//! - A2 *What goes is in it.* [`crate::version`] lets go of a row with a single version, whose CSN is below `S`, and that
//!   `saved` tells of. As all entries below `S` are applied, such a version is what the checkpoint has. Whoever applies
//!   an entry notes the chunk, with the entry's CSN, before he installs anything ([`ReplicaBase::changes`]). A chunk
//!   that was noted below `S` alone is as the checkpoint has it: `saved` is what is there, and it is not CHANGED any
//!   more. Of others `saved` gains the rows that were written below `S`, and the chunk stays.
//! - A3 *Old snapshots.* A version that one needs beside the newest is in the chain, and two versions stay.
//! - A4 *The start's tail.* It was read up to `O`. A checkpoint below `O` is not taken over, so all tails go with the
//!   first that is: its pages have what they say.
//! - A5 *Tables that it does not have* were dropped, or are newer than it. The ones have absent rows that nobody can
//!   read any more, which is told ([`FaultError::TooOld`]), the others have none.
//!
//! The primary removes what its newest checkpoint does not need, and waits for nobody. Whoever cannot read a row looks
//! for a newer checkpoint, takes it over, and reads again; if the log is not applied so far, he waits a while.
//!
//! Does not: read the manifest for each round (the follower does), or decide what is evicted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use foldhash::fast::FixedState;
use logstead_checkpoint::{CheckpointRecord, ChunkSize};
use logstead_home::{HomeError, LogHome, ObjectId};
use logstead_types::{Csn, DatabaseId, Epoch, IndexId, TableId};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::CheckpointRef;
use parking_lot::Mutex;

use crate::fault_error::FaultError;
use crate::memory::{Charge, footprint};
use crate::page_store::{NOT_RESTORED, NewestCheckpoint};
use crate::rows::TableRows;
use crate::stored_checkpoint::StoredCheckpoint;
use crate::version::Guard;

/// How long who needs a row waits, if not told otherwise, until the log is applied as far as the only checkpoint that
/// still has it.
const BEHIND_WAIT: Duration = Duration::from_secs(5);
/// How often he looks.
const BEHIND_AGAIN: Duration = Duration::from_millis(5);
/// What a note takes, with the room that a table of them leaves.
const NOTE_BYTES: usize = 2 * size_of::<((TableId, u64), Csn)>();

/// The engine's tables, as far as a replica's checkpoints need them.
pub(crate) trait ReplicaTables: Send + Sync {
    /// The rows of a table, if it is there.
    fn rows_of(&self, table: TableId) -> Option<Arc<TableRows>>;
    /// Those of all tables.
    fn all_rows(&self) -> Vec<Arc<TableRows>>;
    /// More may be evicted than before.
    fn has_taken_over(&self);
}

/// What has come of looking for a newer checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeOver {
    /// Rows are read from it now.
    Taken,
    /// There is none.
    Current,
    /// It holds more than is applied: everything below this CSN.
    Behind(Csn),
}

/// The chunks that were changed since the checkpoint that was taken over, each with the CSN of its newest change.
struct ChangedChunks {
    newest: HashMap<(TableId, u64), Csn, FixedState>,
    charge: Charge,
}

/// The checkpoint that rows are read from.
struct TakenOver {
    /// Its record's object; nothing: there was none at the start.
    object: Option<ObjectId>,
    /// One was taken over since the start.
    is_later: bool,
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
    /// All entries below it are applied.
    applied: AtomicU64,
    changed: Mutex<ChangedChunks>,
    /// Held by who takes one over. Before `changed`.
    taken: Mutex<TakenOver>,
    tables: OnceLock<Box<dyn ReplicaTables>>,
    /// Somebody has found that a leaf is gone: there is a checkpoint that has everything below this CSN.
    pub(crate) superseded: OnceLock<Csn>,
    behind_wait_us: AtomicU64,
}

/// What a replica has opened with.
pub(crate) struct ReplicaStart {
    pub(crate) home: LogHome,
    pub(crate) database: DatabaseId,
    pub(crate) epoch: Epoch,
    /// The checkpoint, its record and where it is named.
    pub(crate) stored: StoredCheckpoint,
    pub(crate) record: Option<CheckpointRecord>,
    pub(crate) begin: Option<ObjectId>,
    /// All entries below are applied.
    pub(crate) next: Csn,
    /// Where notes are counted.
    pub(crate) charge: Charge,
}

impl ReplicaBase {
    pub(crate) fn new(start: ReplicaStart) -> ReplicaBase {
        ReplicaBase {
            home: start.home,
            database: start.database,
            epoch: start.epoch,
            record: start.record,
            begin: start.begin,
            leaves: Arc::new(NewestCheckpoint::new(start.stored.clone())),
            newest: Arc::new(NewestCheckpoint::new(start.stored)),
            opened: start.next,
            applied: AtomicU64::new(start.next.0),
            changed: Mutex::new(ChangedChunks {
                newest: HashMap::default(),
                charge: start.charge,
            }),
            taken: Mutex::new(TakenOver {
                object: start.begin,
                is_later: false,
            }),
            tables: OnceLock::new(),
            superseded: OnceLock::new(),
            behind_wait_us: AtomicU64::new(BEHIND_WAIT.as_micros() as u64),
        }
    }

    /// The engine is there. Once.
    pub(crate) fn set_tables(&self, tables: Box<dyn ReplicaTables>) {
        let is_first = self.tables.set(tables).is_ok();
        debug_assert!(is_first, "a replica has one engine");
    }

    /// See [`Engine::set_replica_wait`](crate::Engine::set_replica_wait).
    pub(crate) fn set_behind_wait(&self, most: Duration) {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        self.behind_wait_us.store(micros, Ordering::Relaxed);
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

    /// All entries below are applied.
    pub(crate) fn set_applied(&self, next: Csn) {
        self.applied.fetch_max(next.0, Ordering::SeqCst);
    }

    /// An entry with this CSN, which is not below any before, is about to change something in a chunk: called before
    /// it does (A2).
    pub(crate) fn changes(&self, rows: &TableRows, number: u64, csn: Csn) {
        let mut changed = self.changed.lock();
        changed.newest.insert((rows.table, number), csn);
        changed.settle();
        let first = number * crate::version::CHUNK_SLOTS as u64;
        let (chunk, _) = rows.slot_or_new(logstead_types::Rid(first));
        // Before the lock is given back: who takes a checkpoint over meanwhile clears the mark by the note before.
        chunk.set_changed();
    }

    /// Takes over the newest checkpoint at the home, if all that it holds is applied.
    ///
    /// # Errors
    /// The manifest or the checkpoint's record cannot be read.
    pub(crate) fn take_over_newest(&self) -> Result<TakeOver, FaultError> {
        let manifest = manifest_of(&self.home)
            .map_err(|error| FaultError::Unreachable(format!("the manifest: {error}")))?;
        match manifest.checkpoint {
            Some(at) => self.take_over(&at),
            None => Ok(TakeOver::Current),
        }
    }

    /// Takes over a checkpoint that the manifest names, if all that it holds is applied. Costs nothing if rows are read
    /// from it already, and otherwise in proportion to the chunks that were changed since the last one.
    ///
    /// # Errors
    /// Its record cannot be read: perhaps there is a newer one.
    pub(crate) fn take_over(&self, at: &CheckpointRef) -> Result<TakeOver, FaultError> {
        let mut taken = self.taken.lock();
        if taken.object == Some(at.object) || at.csn < self.newest.csn() {
            return Ok(TakeOver::Current);
        }
        // A4. One that was taken while the replica opened is followed by another one.
        if at.csn.0 > self.applied.load(Ordering::SeqCst) || at.csn < self.opened {
            return Ok(TakeOver::Behind(at.csn));
        }
        let Some(tables) = self.tables.get() else {
            return Ok(TakeOver::Behind(at.csn));
        };
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
            return Ok(TakeOver::Current);
        }
        self.newest.replace(&record);
        taken.object = Some(at.object);
        let mut changed = self.changed.lock();
        if !std::mem::replace(&mut taken.is_later, true) {
            for rows in tables.all_rows() {
                self.take_over_table(&rows, at.csn, &changed);
            }
            self.newest.set_has_tails();
        }
        changed.newest.retain(|(table, number), newest| {
            let Some(rows) = tables.rows_of(*table) else {
                return false;
            };
            let is_saved = *newest < at.csn;
            if let Some(chunk) = rows.chunk(*number) {
                chunk.take_over(at.csn, is_saved, &Guard::pin());
            }
            !is_saved
        });
        let left = changed.newest.len();
        changed.newest.shrink_to(left * 2);
        changed.settle();
        drop(changed);
        tables.has_taken_over();
        Ok(TakeOver::Taken)
    }

    /// The first checkpoint since the start has all that the start has read of a table.
    fn take_over_table(&self, rows: &TableRows, csn: Csn, changed: &ChangedChunks) {
        let mut from = 0;
        while let Some(number) = rows.tails.next(from) {
            rows.tails.written(number, || {});
            from = number + 1;
        }
        for number in 0..rows.chunk_end() {
            // Those are looked at next.
            if let Some(chunk) = rows.chunk(number)
                && !changed.newest.contains_key(&(rows.table, number))
            {
                chunk.take_over(csn, true, &Guard::pin());
            }
        }
    }

    /// Reads rows, and again from a newer checkpoint if they are gone because there is one. `may_wait`: until the log
    /// is applied so far, a while.
    ///
    /// # Errors
    /// That of `read`; [`FaultError::TooOld`] if what still has the rows is newer than what is applied.
    pub(crate) fn read_rows<T>(
        &self,
        may_wait: bool,
        mut read: impl FnMut() -> Result<T, FaultError>,
    ) -> Result<T, FaultError> {
        let mut waited = Duration::ZERO;
        loop {
            let before = self.newest.get().publication;
            let error = match read() {
                Err(error @ (FaultError::Damaged(_) | FaultError::Unreachable(_))) => error,
                done => return done,
            };
            loop {
                let found = self.take_over_newest();
                if self.newest.get().publication != before {
                    break;
                }
                let Ok(TakeOver::Behind(csn)) = found else {
                    return Err(error);
                };
                let most = Duration::from_micros(self.behind_wait_us.load(Ordering::Relaxed));
                if !may_wait || waited >= most {
                    return Err(FaultError::TooOld(csn));
                }
                logstead_env::sleep(BEHIND_AGAIN);
                waited += BEHIND_AGAIN;
            }
        }
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
            .force(footprint(self.newest.capacity() * NOTE_BYTES));
    }
}
