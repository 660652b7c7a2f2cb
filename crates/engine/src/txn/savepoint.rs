//! Savepoints: what was written after one is undone in reverse order, row and table locks included, and waiters are
//! woken. The DSN does not go back: what rolled-back work examined still counts as read (T1).

use crate::table_lock::TableLockMask;
use crate::txn::{LockedTable, Outcome, Txn};
use crate::version::Guard;

/// A savepoint of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SavepointId(u32);

/// Where the transaction was when the savepoint was made.
pub(crate) struct Savepoint {
    id: SavepointId,
    writes: usize,
    log_bytes: usize,
    hooks: usize,
    table_locks: usize,
    held_bytes: u64,
}

impl Txn {
    /// Makes a savepoint.
    pub fn savepoint(&mut self) -> SavepointId {
        self.savepoints_made += 1;
        let id = SavepointId(self.savepoints_made);
        let (writes, log_bytes) = self
            .work
            .as_ref()
            .map_or((0, 0), |w| (w.buffers.writes.len(), w.buffers.log_end()));
        self.savepoints.push(Savepoint {
            id,
            writes,
            log_bytes,
            hooks: self.hooks.len(),
            table_locks: self.tables_since.len(),
            held_bytes: self.held_bytes.get(),
        });
        id
    }

    /// Undoes everything after the savepoint, which stays. Later savepoints are gone. False if there
    /// is no such savepoint any more.
    pub fn rollback_to(&mut self, id: SavepointId) -> bool {
        let Ok(at) = self.savepoints.binary_search_by_key(&id, |s| s.id) else {
            return false;
        };
        self.savepoints.truncate(at + 1);
        let Savepoint {
            writes,
            log_bytes,
            hooks,
            table_locks,
            held_bytes,
            ..
        } = self.savepoints[at];
        self.held_bytes.set(held_bytes);
        self.pass_turn();
        self.give_up_intent();
        self.undo_to(writes, log_bytes);
        for hook in self.hooks.drain(hooks..).rev() {
            hook(Outcome::Aborted);
        }
        if let Some(work) = &self.work {
            work.writer.state().wake();
        }
        self.unlock_tables_to(table_locks);
        true
    }

    /// Begins to roll back, to a savepoint or altogether: undoes up to `budget` writes, newest first. True if there
    /// are more. Who has undone some can do nothing with the transaction but roll back so far, which undoes the rest:
    /// many writes need not be undone in one go.
    pub fn unwind(&mut self, to: Option<SavepointId>, budget: usize) -> bool {
        let Some(writes) = self.writes_before(to) else {
            return false;
        };
        // It wants nothing any more: nobody waits behind it while it undoes much.
        self.pass_turn();
        self.give_up_intent();
        for _ in 0..budget {
            if !self.undo_last(writes) {
                return false;
            }
        }
        true
    }

    /// Writes that a rollback, to a savepoint or altogether, has still to undo.
    pub fn writes_to_undo(&self, to: Option<SavepointId>) -> usize {
        let writes = self.work.as_ref().map_or(0, |w| w.buffers.writes.len());
        let stay = self.writes_before(to);
        stay.map_or(0, |stay| writes.saturating_sub(stay))
    }

    /// How many writes a rollback leaves; none if there is no such savepoint any more.
    fn writes_before(&self, to: Option<SavepointId>) -> Option<usize> {
        let Some(id) = to else {
            return Some(0);
        };
        let at = self.savepoints.binary_search_by_key(&id, |s| s.id).ok()?;
        Some(self.savepoints[at].writes)
    }

    /// Forgets the savepoint and later ones, keeping their work. False if there is no such savepoint any more.
    pub fn release(&mut self, id: SavepointId) -> bool {
        let Ok(at) = self.savepoints.binary_search_by_key(&id, |s| s.id) else {
            return false;
        };
        self.savepoints.truncate(at);
        true
    }

    /// Gives back the table locks taken since `count` were.
    fn unlock_tables_to(&mut self, count: usize) {
        let (id, worker) = (self.id(), self.worker.id);
        for (at, lock) in self.tables_since.drain(count..) {
            let LockedTable { table, held } = &mut self.tables[at];
            let gone = TableLockMask::one(lock);
            *held = held.without(gone);
            // Nothing that was done is handed over: it is not committed.
            table.locks.release(id, worker, gone, None);
        }
    }

    /// Undoes writes, newest first, until `writes` are left.
    pub(crate) fn undo_to(&mut self, writes: usize, log_bytes: usize) {
        while self.undo_last(writes) {}
        if let Some(work) = &mut self.work {
            work.buffers.truncate_log(log_bytes);
        }
    }

    /// Undoes the newest write, unless no more than `writes` are left.
    fn undo_last(&mut self, writes: usize) -> bool {
        let Some(work) = &mut self.work else {
            return false;
        };
        if work.buffers.writes.len() <= writes {
            return false;
        }
        let Some(write) = work.buffers.writes.pop() else {
            return false;
        };
        let table = work.buffers.tables[write.table as usize].clone();
        // A guard per write: undoing a bulk load must not hold the collector back.
        let guard = Guard::pin();
        self.undo(&table, write.rid, write.what, &guard);
        true
    }
}
