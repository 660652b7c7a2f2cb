//! Transactions: snapshots, and what they read.
//!
//! Whether a row may be changed or locked as it was seen, is waited for, has changed meanwhile, or ends the transaction
//! with 40001 is decided by [`Txn::satisfies_update`] (PostgreSQL's HeapTupleSatisfiesUpdate).
//!
//! A version is visible if its writer's CSN is below the snapshot, or if this transaction wrote it in an earlier
//! command. A writer that has begun to commit but has no outcome yet is waited for, spinning (T4): it may have drawn
//! a CSN below the snapshot. One that is still running will draw one at or above it.
//!
//! Every version examined counts as read: the transaction depends on it, rejected rows and tombstones included (T1).

pub(crate) mod certify;
mod dependencies;
pub(crate) mod exported_snapshot;
pub(crate) mod fault_wait;
pub(crate) mod index_cursor;
mod instances;
pub(crate) mod lock_wait;
mod lookup;
pub(crate) mod precommit;
mod range_walk;
mod read;
pub(crate) mod read_ahead;
mod restarted;
pub(crate) mod row_lock;
pub(crate) mod savepoint;
mod scan;
pub(crate) mod write;
pub(crate) mod xid;

pub(crate) use dependencies::cover_chunk;
pub(crate) use restarted::is_of_users;
pub use scan::ScanCursor;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use logstead_commit::{CommitWait, DependencySet, PriorLockHolder};
use logstead_types::{Csn, Rid};
use smallvec::SmallVec;

use crate::engine::EngineInner;
use crate::error::WriteError;
use crate::memory::Charge;
use crate::partition::InstancesTouched;
use crate::row::RowRef;
use crate::row_lock::RowLock;
use crate::serializable::Ordinal;
use crate::table::Table;
use crate::table_lock::{TableLock, TableLockMask};
use crate::tree::interleave::point;
use crate::txn::certify::TrackedTxn;
use crate::txn::exported_snapshot::ExportedSnapshot;
use crate::txn::fault_wait::FaultLocation;
use crate::txn::lock_wait::RowQueueTurn;
use crate::txn::read_ahead::ReadAhead;
use crate::txn::savepoint::Savepoint;
use crate::txn::write::{ChangedKeys, TxnWrites};
use crate::txn::xid::Xid;
use crate::txn_id::TxnId;
use crate::version::{Guard, VersionKind, VersionRef, WriterStatus};
use crate::wait_cause::{LockConflict, RowLockRequest};
use crate::worker::{Worker, WorkerInner};

/// When a transaction takes its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// At each statement.
    ReadCommitted,
    /// At the first statement; a row changed since fails the transaction that wants to change it.
    RepeatableRead,
    /// As REPEATABLE READ; and those committed could have run one after the other. The commit of one that would break
    /// that fails with [`CommitError::Serialization`](crate::CommitError::Serialization). Tables with numbers below
    /// 16384, the system catalog, are left out.
    Serializable,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Committed: with its own CSN, or, if it changed nothing, the newest CSN it depends on.
    Committed(Csn),
    /// Rolled back, or back to a savepoint before.
    Aborted,
}

/// Which version of a row was read: hand it back to write the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VersionId(u64);

impl VersionId {
    /// The version with this CSN: there is one per row that others can see.
    #[inline]
    pub(crate) fn committed(csn: Csn) -> VersionId {
        VersionId(csn.0 << 1)
    }

    /// The transaction's own version, by the command that wrote it: there is one per row and command.
    #[inline]
    pub(crate) fn own(command: u32) -> VersionId {
        VersionId(u64::from(command) << 1 | 1)
    }

    /// Did the reading transaction write it itself?
    pub fn is_own(self) -> bool {
        self.0 & 1 == 1
    }

    /// As a number, to be carried with a row. Not negative.
    #[inline]
    pub fn token(self) -> i64 {
        (self.0 & (u64::MAX >> 1)).cast_signed()
    }

    /// Of such a number.
    pub fn of_token(token: i64) -> VersionId {
        VersionId(token.cast_unsigned() & (u64::MAX >> 1))
    }

    /// The same, which the running statement has written over.
    pub fn written_over(self) -> VersionId {
        VersionId(self.0 | WRITTEN_OVER)
    }

    /// Has the running statement written over it?
    pub fn is_written_over(self) -> bool {
        self.0 & WRITTEN_OVER != 0
    }

    /// By which CSN, or else by which command of the reading transaction, it was written.
    pub fn written_by(self) -> Result<Csn, u32> {
        let by = (self.0 & !WRITTEN_OVER) >> 1;
        match self.is_own() {
            false => Ok(Csn(by)),
            true => Err(u32::try_from(by).unwrap_or(u32::MAX)),
        }
    }
}

/// A mark on the identity of a version; no CSN comes near it.
const WRITTEN_OVER: u64 = 1 << 62;

/// A visible row.
#[derive(Clone, Copy, Debug)]
pub struct Row<'g> {
    /// Its number.
    pub rid: Rid,
    /// Which version it is.
    pub version: VersionId,
    /// Its columns.
    pub bytes: RowRef<'g>,
}

/// A snapshot kept for a cursor that outlives its statement; see [`Txn::swap_view`].
pub struct CursorSnapshot {
    worker: Rc<WorkerInner>,
    snapshot: Csn,
    command: u32,
    /// Where a SERIALIZABLE transaction's reads through it are put.
    from: Ordinal,
}

impl Drop for CursorSnapshot {
    fn drop(&mut self) {
        self.worker.release_snapshot(self.snapshot);
    }
}

/// Commands have smaller numbers: one that has this writes nothing.
pub(crate) const COMMANDS_END: u32 = u32::MAX;

/// What a transaction holds of one table.
pub(crate) struct LockedTable {
    pub(crate) table: Arc<Table>,
    pub(crate) held: TableLockMask,
}

/// A transaction. Dropping it rolls it back.
pub struct Txn {
    pub(crate) worker: Rc<WorkerInner>,
    id: TxnId,
    isolation: Isolation,
    snapshot: Option<Csn>,
    /// Declared to change nothing.
    pub(crate) read_only: bool,
    /// SERIALIZABLE, from the snapshot on, unless that is safe.
    pub(crate) tracked: Option<Box<TrackedTxn>>,
    pub(crate) command: u32,
    /// Statements begun: those that were begun inside of others count, too.
    commands: u32,
    /// What it depends on.
    pub(crate) deps: DependencySet,
    /// What those did who had its locks before, and wrote nothing that it would meet under them.
    pub(crate) handed_over: CommitWait,
    /// What it is called by those who have asked.
    pub(crate) xid: Option<Xid>,
    /// Whose snapshot it uses; given up after its own use of it.
    pub(crate) imported: Option<Arc<ExportedSnapshot>>,
    /// When it began, if times are taken.
    pub(crate) began_at: u64,
    /// There from the first write or row lock on.
    pub(crate) work: Option<TxnWrites>,
    pub(crate) tables: SmallVec<[LockedTable; 4]>,
    /// A table whose strong lock was refused and is still intended.
    intent: Option<Arc<Table>>,
    pub(crate) hooks: Vec<Box<dyn FnOnce(Outcome)>>,
    pub(crate) savepoints: Vec<Savepoint>,
    pub(crate) savepoints_made: u32,
    /// Table locks taken since the first savepoint, by position in `tables`.
    pub(crate) tables_since: Vec<(usize, TableLock)>,
    /// Its place in the queue of a row that it waits for, or is to try now.
    pub(crate) turn: Option<RowQueueTurn>,
    pub(crate) ended: bool,
    /// What instances it has led to.
    touched: Cell<InstancesTouched>,
    /// It may use the memory budget's reserve.
    pub(crate) uses_reserve: bool,
    /// It has written more than what leads out of want: a home that is short of space refuses it.
    pub(crate) grows: Cell<bool>,
    /// Since when it asks for room in the log.
    pub(crate) room_request: logstead_wal::RoomRequest,
    /// Memory it has waited for, kept for its next write.
    pub(crate) granted: RefCell<Option<Charge>>,
    /// About what its writes take in memory until it ends: nothing of that is in a checkpoint before, so none of it can
    /// be evicted.
    pub(crate) held_bytes: Cell<u64>,
    /// How often it was given memory that it had waited for since its last write.
    pub(crate) grants: Cell<u32>,
    pub(crate) last_fault: Option<FaultLocation>,
    /// How often it wanted an empty slot that could not be read.
    pub(crate) unread_slots: Cell<u32>,
    /// What was read ahead for the index that it builds.
    pub(crate) ahead: Option<Box<ReadAhead>>,
}

/// The row whose version was seen.
#[inline]
fn row_of<'g>(rid: Rid, (version, id): (VersionRef<'g>, VersionId)) -> Row<'g> {
    Row {
        rid,
        version: id,
        bytes: RowRef::new(version.row()),
    }
}

/// While a chain was walked, a newer version may have been committed.
#[derive(Debug, PartialEq, Eq)]
struct Superseded;

/// What is at the newest end of a row that is to be written.
#[derive(Clone, Copy)]
pub(crate) struct WriteTarget<'g> {
    /// The newest version, to install above.
    pub(crate) head: VersionRef<'g>,
    /// The newest row version that is committed or the transaction's own, which is the one the caller read (for
    /// [`RowLock::KeyShare`], or has the same keys).
    pub(crate) row: VersionRef<'g>,
    /// How this transaction has locked the row by versions of its own.
    pub(crate) held: Option<RowLock>,
}

impl Worker {
    /// Begins a transaction. Its snapshot is taken when it first needs one.
    #[inline]
    pub fn begin(&self, isolation: Isolation) -> Txn {
        Txn::new(self.0.clone(), isolation)
    }
}

impl Txn {
    #[inline]
    pub(crate) fn new(worker: Rc<WorkerInner>, isolation: Isolation) -> Txn {
        Txn {
            id: worker.next_txn_id(),
            isolation,
            snapshot: None,
            read_only: false,
            tracked: None,
            command: 1,
            commands: 1,
            deps: worker.inner().path.new_dependency_set(),
            handed_over: CommitWait::none(),
            xid: None,
            imported: None,
            began_at: worker.inner().path.now(),
            work: None,
            tables: SmallVec::new(),
            intent: None,
            hooks: Vec::new(),
            savepoints: Vec::new(),
            savepoints_made: 0,
            tables_since: Vec::new(),
            uses_reserve: false,
            grows: Cell::new(false),
            room_request: logstead_wal::RoomRequest::default(),
            granted: RefCell::default(),
            held_bytes: Cell::new(0),
            grants: Cell::new(0),
            last_fault: None,
            unread_slots: Cell::new(0),
            ahead: None,
            turn: None,
            ended: false,
            touched: Cell::default(),
            worker,
        }
    }

    /// Its number among those that run.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// Gives it the id that was assigned to it.
    pub fn set_xid(&mut self, xid: Xid) {
        self.xid = Some(xid);
    }

    /// Which version the running statement's writes make of rows.
    pub fn own_version(&self) -> VersionId {
        VersionId::own(self.command)
    }

    /// Its isolation level.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Lets the transaction use the memory budget's reserve: for work that frees memory, or that a start cannot do
    /// without.
    pub fn use_memory_reserve(&mut self) {
        self.uses_reserve = true;
    }

    pub(crate) fn engine(&self) -> &EngineInner {
        self.worker.inner()
    }

    /// Begins the next statement: it sees what earlier statements of the transaction wrote, not what itself writes. In
    /// READ COMMITTED it gets a new snapshot.
    #[inline]
    pub fn begin_statement(&mut self) {
        // At the end only reading goes on, which sees what all others wrote: see `Txn::holding`.
        self.commands = self.commands.saturating_add(1);
        self.command = self.commands;
        self.refresh_snapshot();
    }

    /// The statement goes on with what is committed by now, in READ COMMITTED; what it wrote, and what statements
    /// inside of it wrote, it still does not see.
    #[inline]
    pub fn refresh_snapshot(&mut self) {
        self.pass_turn();
        self.give_up_intent();
        if self.isolation == Isolation::ReadCommitted {
            self.drop_snapshot();
        }
    }

    /// Ends a statement: in READ COMMITTED its snapshot no longer keeps old versions alive while the session idles.
    pub fn end_statement(&mut self) {
        self.pass_turn();
        if self.isolation == Isolation::ReadCommitted {
            self.drop_snapshot();
        }
    }

    #[inline]
    pub(crate) fn drop_snapshot(&mut self) {
        if let Some(snapshot) = self.snapshot.take() {
            self.worker.release_snapshot(snapshot);
        }
    }

    /// The statement's snapshot, taken now if it has none yet: it sees every CSN below it.
    #[inline]
    pub fn snapshot(&mut self) -> Csn {
        match self.snapshot {
            Some(snapshot) => snapshot,
            None => {
                let snapshot = if self.isolation == Isolation::Serializable {
                    self.begin_tracked()
                } else {
                    self.worker.acquire_snapshot()
                };
                self.snapshot = Some(snapshot);
                snapshot
            }
        }
    }

    pub(crate) fn has_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// The snapshot, if it was taken.
    pub(crate) fn snapshot_if_any(&self) -> Option<Csn> {
        self.snapshot
    }

    /// Uses a snapshot that was taken for it.
    pub(crate) fn set_snapshot(&mut self, snapshot: Csn) {
        self.drop_snapshot();
        self.snapshot = Some(snapshot);
    }

    /// What the current statement sees, kept for later.
    pub fn view(&mut self) -> CursorSnapshot {
        let snapshot = self.snapshot();
        self.worker.share_snapshot(snapshot);
        CursorSnapshot {
            worker: self.worker.clone(),
            snapshot,
            command: self.command,
            from: self.reads_from(),
        }
    }

    /// What a statement that begins now would see in READ COMMITTED, whatever the transaction's level: for checks that
    /// must not miss what was committed since. Statements before this one count as seen.
    pub fn latest_view(&mut self) -> CursorSnapshot {
        let (snapshot, from) = self.latest_snapshot();
        CursorSnapshot {
            snapshot,
            worker: self.worker.clone(),
            command: self.command,
            from,
        }
    }

    /// The statement whose view was taken goes on, after others that were run inside of it: it sees what it saw, and
    /// writes as itself again. What they wrote it neither sees nor writes over ([`WriteError::Overtaken`]).
    pub fn resume_view(&mut self, mut view: CursorSnapshot) {
        self.pass_turn();
        self.swap_view(&mut view);
    }

    /// Exchanges what the transaction sees with `view`. A cursor that outlives its statement swaps its view in before
    /// each fetch and out again after; while it is in, the transaction only reads.
    pub fn swap_view(&mut self, view: &mut CursorSnapshot) {
        let snapshot = self.snapshot();
        self.snapshot = Some(view.snapshot);
        view.snapshot = snapshot;
        std::mem::swap(&mut self.command, &mut view.command);
        view.from = self.read_from(view.from);
    }

    /// Keeps what is read from being freed. Never held across an await.
    #[inline]
    pub fn pin(&self) -> Guard {
        Guard::pin()
    }

    /// What instances its accesses so far have led to, as long as there is more than one.
    pub fn instances_touched(&self) -> InstancesTouched {
        self.touched.get()
    }

    /// Has it changed rows of tables that are not temporary?
    pub fn has_writes(&self) -> bool {
        self.work.as_ref().is_some_and(|w| w.buffers.log_end() > 0)
    }

    /// Calls `hook` when the transaction ends: when its changes have just become visible and its locks are still held,
    /// or after they were undone; also when they are undone by rolling back to an earlier savepoint.
    pub fn on_end(&mut self, hook: Box<dyn FnOnce(Outcome)>) {
        self.hooks.push(hook);
    }

    /// Is the version this transaction's own?
    #[inline]
    pub(crate) fn is_own(&self, version: VersionRef<'_>) -> bool {
        self.work.as_ref().is_some_and(|w| version.is_of(&w.writer))
    }

    /// Finds the row's newest version and whether this transaction, which read `base`, may lock it with `want` as far
    /// as versions are concerned: shared locks are looked at when the lock is taken.
    pub(crate) fn satisfies_update<'g>(
        &mut self,
        table: &Arc<Table>,
        rid: Rid,
        base: VersionId,
        want: RowLock,
        guard: &'g Guard,
    ) -> Result<WriteTarget<'g>, WriteError> {
        self.simulate_absence(&table.rows, rid)
            .map_err(|chunk| chunk.of(&table.rows))?;
        self.touch_row(&table.rows, rid);
        'again: loop {
            let head = match table.rows.head(rid, guard) {
                Ok(Some(head)) => head,
                Ok(None) => return Err(self.lost(false)),
                Err(absent) => return Err(absent.of(&table.rows).into()),
            };
            let mut at = Some(head);
            let mut held = None;
            while let Some(version) = at {
                at = version.next(guard);
                let lock_only = version.kind() == VersionKind::LockOnly;
                let csn = match version.writer_status() {
                    WriterStatus::InProgress(_) if self.is_own(version) => {
                        // The newest of one's own tells for those below.
                        held.get_or_insert(version.lock());
                        if lock_only {
                            continue;
                        }
                        return if version.command() == self.command {
                            Err(WriteError::SelfModified)
                        } else if version.command() > self.command {
                            Err(WriteError::Overtaken)
                        } else if version.kind() == VersionKind::Tombstone {
                            Err(WriteError::Gone)
                        } else if base != VersionId::own(version.command()) {
                            Err(WriteError::Changed)
                        } else {
                            Ok(WriteTarget {
                                head,
                                row: version,
                                held,
                            })
                        };
                    }
                    WriterStatus::Committed(csn) => csn,
                    WriterStatus::InProgress(state) => match state.committed() {
                        Some(csn) => csn,
                        // An update in flight that keeps the keys: the version below is still the newest committed one.
                        None if !want.conflicts(head.lock()) => continue,
                        None => match version.writer() {
                            Some(writer) => {
                                // If it is not in the way any more the wait finds out.
                                let row = RowLockRequest {
                                    table: table.clone(),
                                    rid,
                                    lock: want,
                                };
                                return Err(WriteError::Blocked(LockConflict::row(row, writer)));
                            }
                            // It ended while we looked.
                            None => continue 'again,
                        },
                    },
                };
                if lock_only {
                    continue;
                }
                self.cover(csn, &table.rows, rid);
                let deleted = version.kind() == VersionKind::Tombstone;
                let newer = base != VersionId::committed(csn);
                if want == RowLock::KeyShare && !deleted {
                    if newer && !self.same_keys(table, base, version, guard) {
                        return Err(self.lost(false));
                    }
                } else if deleted
                    || newer
                    || (self.isolation != Isolation::ReadCommitted && csn >= self.snapshot())
                {
                    return Err(self.lost(deleted));
                }
                return Ok(WriteTarget {
                    head,
                    row: version,
                    held,
                });
            }
            return Err(WriteError::Gone);
        }
    }

    /// Does the version `base`, further down the chain, have the same keys in unique indexes as `newest`?
    fn same_keys(
        &self,
        table: &Table,
        base: VersionId,
        newest: VersionRef<'_>,
        guard: &Guard,
    ) -> bool {
        let mut at = newest.next(guard);
        while let Some(version) = at {
            at = version.next(guard);
            let csn = match version.writer_status() {
                WriterStatus::Committed(csn) => Some(csn),
                WriterStatus::InProgress(state) => state.committed(),
            };
            if version.kind() != VersionKind::LockOnly
                && csn.map(VersionId::committed) == Some(base)
            {
                let changed = table.with_indexes(self.worker.instance, |indexes| {
                    self.changed_keys(indexes, version.row(), newest.row())
                });
                return changed < ChangedKeys::InUniqueIndex;
            }
        }
        false
    }

    /// The error for a row that is not what was read.
    fn lost(&self, deleted: bool) -> WriteError {
        match (self.isolation == Isolation::ReadCommitted, deleted) {
            (true, true) => WriteError::Gone,
            (true, false) => WriteError::Changed,
            (false, true) => WriteError::SerializationDelete,
            (false, false) => WriteError::Serialization,
        }
    }

    /// Locks a table until the transaction ends or rolls back to a savepoint before. A lock that covers what is held
    /// already is an upgrade.
    #[inline]
    pub fn lock_table(&mut self, table: &Arc<Table>, lock: TableLock) -> Result<(), WriteError> {
        let id = self.id;
        let worker = self.worker.id;
        let at = match self
            .tables
            .iter()
            .position(|t| Arc::ptr_eq(&t.table, table))
        {
            Some(at) => at,
            None => {
                self.tables.push(LockedTable {
                    table: table.clone(),
                    held: TableLockMask::default(),
                });
                self.tables.len() - 1
            }
        };
        let held_before = self.tables[at].held;
        point();
        match table
            .locks
            .acquire(id, worker, lock, &mut self.tables[at].held)
        {
            Ok(()) => {
                if self.tables[at].held != held_before {
                    point();
                    if !self.savepoints.is_empty() {
                        self.tables_since.push((at, lock));
                    }
                    if let Some(csn) = table
                        .locks
                        .handed_over(lock, || self.engine().path.csns().get())
                    {
                        self.inherit(PriorLockHolder::UpTo(csn));
                    }
                }
                self.give_up_intent();
                Ok(())
            }
            Err(refused) => {
                if lock.is_strong() {
                    if self.intent.as_ref().is_some_and(|t| !Arc::ptr_eq(t, table)) {
                        self.give_up_intent();
                    }
                    self.intent = Some(table.clone());
                }
                Err(WriteError::Blocked(LockConflict::table(
                    table.clone(),
                    lock,
                    refused.holder,
                    refused.releases,
                )))
            }
        }
    }

    #[inline]
    pub(crate) fn give_up_intent(&mut self) {
        if let Some(table) = self.intent.take() {
            table.locks.give_up(self.id);
        }
    }

    /// The tables that it holds locks of, for others to see.
    pub fn tables_held(&self) -> impl Iterator<Item = (logstead_types::TableId, TableLockMask)> {
        let held = self.tables.iter().map(|t| (t.table.id(), t.held));
        held.filter(|(_, held)| held.any())
    }

    /// The table locks held, for the wait-for graph.
    pub(crate) fn held_tables(&self) -> SmallVec<[(logstead_types::TableId, TableLockMask); 4]> {
        self.tables.iter().map(|t| (t.table.id(), t.held)).collect()
    }
}

#[cfg(test)]
mod tests;
