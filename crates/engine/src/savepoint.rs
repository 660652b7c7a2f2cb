//! Savepoints: what was written after one is undone in reverse order, row and table locks included, and waiters are woken.
//! The DSN does not go back: what rolled-back work examined still counts as read (T1).

use crate::table_lock::Held;
use crate::txn::{HeldTable, Outcome, Txn};
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
            ..
        } = self.savepoints[at];
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
            let HeldTable { table, held } = &mut self.tables[at];
            let gone = Held::one(lock);
            *held = held.without(gone);
            table.locks.release(id, worker, gone);
        }
    }

    /// Undoes writes, newest first, until `writes` are left.
    pub(crate) fn undo_to(&mut self, writes: usize, log_bytes: usize) {
        loop {
            let Some(work) = &mut self.work else { return };
            if work.buffers.writes.len() <= writes {
                work.buffers.truncate_log(log_bytes);
                return;
            }
            let Some(write) = work.buffers.writes.pop() else {
                return;
            };
            let table = work.buffers.tables[write.table as usize].clone();
            // A guard per write: undoing a bulk load must not hold the collector back.
            let guard = Guard::pin();
            self.undo(&table, write.rid, write.what, &guard);
        }
    }
}
