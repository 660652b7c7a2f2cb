//! Taking row locks and giving them back: the meeting's steps on real rows.

use std::sync::Arc;

use logstead_types::Rid;
use parking_lot::MutexGuard;

use crate::error::WriteError;
use crate::row_lock::exclusive_and_shared;
use crate::row_lock::exclusive_and_shared::LockedRow;
use crate::row_lock::{RowLock, Shard};
use crate::rows::AbsentRow;
use crate::stats::add;
use crate::table::Table;
use crate::tree::interleave::point;
use crate::txn::{Txn, VersionId, WriteTarget};
use crate::txn_id::TxnId;
use crate::version::{Chunk, Guard, SlotsAbsent, VersionKind};
use crate::wait_cause::{LockConflict, RowLockRequest};
use crate::write_set::RowChange;

/// Gives a shared lock back, or what was added to it.
pub(crate) fn unshare(table: &Table, rid: Rid, txn: TxnId, before: Option<RowLock>) {
    let mut shard = table.row_locks.shard(rid);
    if shard.set_back(rid, txn, before)
        && let Some((chunk, _)) = table.rows.slot(rid)
    {
        chunk.lower_shared();
    }
}

/// A row that a transaction is about to lock; see [`exclusive_and_shared`]. With the shard's mutex held nothing else is
/// locked: who looks at a table's indexes may wait for a shard.
struct Locking<'a, 'g> {
    txn: &'a mut Txn,
    table: &'a Arc<Table>,
    rid: Rid,
    lock: RowLock,
    chunk: &'a Chunk,
    slot: usize,
    /// The row as it was judged: neither lock is taken if it has another head by now.
    target: WriteTarget<'g>,
    /// What an exclusive lock installs.
    kind: VersionKind,
    row: &'a [u8],
    guard: &'g Guard,
}

impl<'a> LockedRow for Locking<'a, '_> {
    type Shard = MutexGuard<'a, Shard>;
    /// `None`: the row has another head; judge it again.
    type Refusal = Option<WriteError>;
    type Before = Option<RowLock>;

    #[inline]
    fn some_shared(&self) -> bool {
        self.chunk.some_shared()
    }

    fn raise(&self) {
        self.chunk.raise_shared();
    }

    fn lower(&self) {
        self.chunk.lower_shared();
    }

    fn shard(&self) -> Self::Shard {
        self.table.row_locks.shard(self.rid)
    }

    fn holder(&self, shard: &Self::Shard) -> Option<Self::Refusal> {
        let holder = shard.conflict(self.rid, self.txn.id(), self.lock)?;
        let row = RowLockRequest {
            table: self.table.clone(),
            rid: self.rid,
            lock: self.lock,
        };
        let blocker = LockConflict::row(row, holder.clone());
        Some(Some(WriteError::Blocked(blocker)))
    }

    #[inline]
    fn install(&mut self) -> Result<bool, Self::Refusal> {
        let Some(work) = &self.txn.work else {
            return Ok(false);
        };
        let target = &self.target;
        let lock = target.held.map_or(self.lock, |held| held.max(self.lock));
        let installed = self.chunk.install(
            self.slot,
            Some(target.head),
            &work.writer,
            self.kind,
            lock,
            self.txn.command,
            self.row,
            self.guard,
        );
        match installed {
            Ok(Some(_)) => {
                add(&self.txn.worker.counters().versions_installed, 1);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(SlotsAbsent) => {
                let absent = AbsentRow(self.rid).of(&self.table.rows);
                Err(Some(absent.into()))
            }
        }
    }

    fn uninstall(&mut self) {
        // A version without index entries, whatever it is.
        self.txn
            .undo(self.table, self.rid, RowChange::Lock, self.guard);
        self.table.row_locks.wake_first(self.rid);
    }

    fn look_at_head(&mut self) -> Result<bool, Self::Refusal> {
        let head = self.chunk.head(self.slot, self.guard);
        // What was looked at and is absent now is judged again, which tells.
        if head == Ok(Some(self.target.head)) {
            Ok(false)
        } else {
            Err(None)
        }
    }

    fn enter(&mut self, shard: &mut Self::Shard) -> (Option<RowLock>, bool) {
        match &self.txn.work {
            Some(work) => shard.enter(self.rid, work.writer.state(), self.lock),
            None => (Some(self.lock), false),
        }
    }
}

impl Txn {
    /// Locks a row in its version `base`, until the transaction ends or rolls back to a savepoint before. Not logged,
    /// and readers look through it. For [`RowLock::KeyShare`] the row may have changed since, if not its keys in unique
    /// indexes.
    pub fn lock_row(
        &mut self,
        table: &Arc<Table>,
        rid: Rid,
        base: VersionId,
        lock: RowLock,
    ) -> Result<(), WriteError> {
        self.holding(|txn| txn.lock_row_as(table, rid, base, lock))
    }

    fn lock_row_as(
        &mut self,
        table: &Arc<Table>,
        rid: Rid,
        base: VersionId,
        lock: RowLock,
    ) -> Result<(), WriteError> {
        self.start_work();
        self.admit(table, 0, 0)?;
        let guard = Guard::pin();
        let done = if lock.is_shared() {
            self.share_row(table, rid, base, lock, &guard)
        } else {
            self.lock_row_alone(table, rid, base, lock, &guard)
        };
        self.turn_used(table, rid, &done, lock);
        done
    }

    fn share_row(
        &mut self,
        table: &Arc<Table>,
        rid: Rid,
        base: VersionId,
        lock: RowLock,
        guard: &Guard,
    ) -> Result<(), WriteError> {
        let Some((chunk, slot)) = table.rows.slot(rid) else {
            return Err(WriteError::Gone);
        };
        loop {
            let target = self.satisfies_update(table, rid, base, lock, guard)?;
            if target.held.is_some() {
                // Every exclusive lock is stronger.
                return Ok(());
            }
            let shared = exclusive_and_shared::shared(&mut Locking {
                txn: &mut *self,
                table,
                rid,
                lock,
                chunk,
                slot,
                target,
                kind: VersionKind::LockOnly,
                row: &[],
                guard,
            });
            match shared {
                Err(None) => {}
                Err(Some(error)) => return Err(error),
                // What it shares already is as strong.
                Ok(Some(Some(before))) if before >= lock => return Ok(()),
                Ok(None) => return Ok(()),
                Ok(Some(before)) => {
                    self.note(table, rid, RowChange::Share { before, lock }, None);
                    self.inherit_row(table, rid, lock);
                    return Ok(());
                }
            }
        }
    }

    fn lock_row_alone(
        &mut self,
        table: &Arc<Table>,
        rid: Rid,
        base: VersionId,
        lock: RowLock,
        guard: &Guard,
    ) -> Result<(), WriteError> {
        loop {
            let target = self.satisfies_update(table, rid, base, lock, guard)?;
            if target.held.is_some_and(|held| held >= lock) {
                return Ok(());
            }
            if self.install_above(table, rid, &target, VersionKind::LockOnly, lock, &[], guard)? {
                self.note(table, rid, RowChange::Lock, None);
                return Ok(());
            }
        }
    }

    /// Installs a version, which locks the row with `lock`, above the one that was judged; false if another transaction
    /// was quicker.
    #[expect(clippy::too_many_arguments, reason = "what a version is made of")]
    pub(crate) fn install_above(
        &mut self,
        table: &Arc<Table>,
        rid: Rid,
        target: &WriteTarget<'_>,
        kind: VersionKind,
        lock: RowLock,
        row: &[u8],
        guard: &Guard,
    ) -> Result<bool, WriteError> {
        let Some((chunk, slot)) = table.rows.slot(rid) else {
            return Ok(false);
        };
        self.refuse_restarting(&table.rows, || table.rows.partition_of(rid))?;
        point();
        let installed = exclusive_and_shared::exclusive(&mut Locking {
            txn: self,
            table,
            rid,
            lock,
            chunk,
            slot,
            target: *target,
            kind,
            row,
            guard,
        });
        match installed {
            Ok(installed) => {
                if installed {
                    self.inherit_row(table, rid, lock);
                }
                Ok(installed)
            }
            Err(None) => Ok(false),
            Err(Some(error)) => Err(error),
        }
    }
}
