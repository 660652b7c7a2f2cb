//! Waiting for row and table locks, and deadlocks.
//!
//! A wait parks the caller's waker at what it waits for, looks again (T13), and enters the wait-for graph; the one
//! whose wait closes a cycle is the victim. Only transactions that wait are in the graph, with the table locks they
//! hold, so taking a lock costs the graph nothing.
//!
//! Who waits for a row stands in its queue, and still does when it is woken to try again: it has the *turn* until it
//! has the row, or turns to something else (see `row_lock`). A transaction has one turn at most.
//!
//! An edge of the graph from one who waits for a row is what stands against it in the row at the moment of the search,
//! not what did when it was blocked: the row may have gone to another since, who woke nobody. No cycle is missed: edges
//! come up when somebody waits, who then searches, or when somebody takes a lock, who does not wait at that moment and
//! searches when he does. None is found that is not there: a transaction in the graph gives nothing back before it
//! has left it, which takes the graph's mutex.
//!
//! A wait may end early: the caller calls again what was blocked, and may be blocked again.

use crate::wait_cause::{LockConflict, RowLockRequest, WaitCause};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use logstead_types::Rid;

use crate::engine::EngineInner;
use crate::error::WriteError;
use crate::row_lock::{NextWaiter, RowLock};
use crate::table::Table;
use crate::txn::Txn;
use crate::version::Guard;

impl LockConflict {
    /// Waits until it is worth trying again. Dropping the future ends the wait.
    pub fn wait(self, txn: &mut Txn) -> LockWait<'_> {
        LockWait {
            cause: self.0,
            txn,
            parked: false,
        }
    }
}

/// A wait that can never end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The transactions wait for each other; this one is the victim and must roll back.
    #[error("deadlock detected")]
    Deadlock,
}

/// Future of [`LockConflict::wait`].
#[must_use = "a wait does nothing unless polled"]
pub struct LockWait<'t> {
    cause: WaitCause,
    txn: &'t mut Txn,
    /// Registered at the cause and in the graph.
    parked: bool,
}

impl LockWait<'_> {
    /// Takes the wait out of the graph and of what it waited for. The turn at a row, if any, stays.
    fn unpark(&mut self) {
        if !std::mem::take(&mut self.parked) {
            return;
        }
        let id = self.txn.id();
        match &self.cause {
            WaitCause::Row { .. } => {}
            WaitCause::Outcome { writer, .. } => writer.deregister(id),
            WaitCause::Table { table, .. } => table.locks.deregister(id),
        }
        self.txn.engine().waits.leave(id);
    }

    /// Registers at what is waited for. True if it is in the way no more.
    fn register(&mut self, cx: &Context<'_>) -> bool {
        let id = self.txn.id();
        match &self.cause {
            WaitCause::Row { row, holder } => {
                let again = self.txn.queue_for(row, cx.waker());
                holder.note_row(&row.table, row.rid);
                // What was in the way may have gone before it was told of us; another obstacle is one we are not noted
                // with.
                if !row.obstacles(id).contains(&holder.id()) {
                    row.table.row_locks.shard(row.rid).try_now(row.rid, id);
                    return true;
                }
                if again {
                    row.table.row_locks.pass_on(row.rid, id);
                }
                false
            }
            WaitCause::Outcome { writer, releases } => {
                writer.register(id, cx.waker());
                !writer.holds_since(*releases)
            }
            WaitCause::Table {
                table,
                lock,
                releases,
                ..
            } => {
                table.locks.register(id, *lock, cx.waker());
                !table.locks.holds_since(*releases)
            }
        }
    }
}

impl Future for LockWait<'_> {
    type Output = Result<(), WaitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let id = this.txn.id();
        if !this.parked {
            if !matches!(this.cause, WaitCause::Row { .. }) {
                this.txn.pass_turn();
            }
            this.parked = true;
            if this.register(cx) {
                this.unpark();
                return Poll::Ready(Ok(()));
            }
            let held = this.txn.held_tables();
            let engine: &EngineInner = this.txn.engine();
            if engine.waits.enter(id, this.cause.clone(), held) {
                this.unpark();
                this.txn.pass_turn();
                return Poll::Ready(Err(WaitError::Deadlock));
            }
            return Poll::Pending;
        }
        let over = match &this.cause {
            WaitCause::Row { row, .. } => {
                let mut shard = row.table.row_locks.shard(row.rid);
                shard.take_wake(row.rid, id, cx.waker())
            }
            WaitCause::Outcome { .. } | WaitCause::Table { .. } => this.register(cx),
        };
        if over {
            this.unpark();
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }
}

impl Drop for LockWait<'_> {
    fn drop(&mut self) {
        if self.parked {
            self.unpark();
            self.txn.pass_turn();
        }
    }
}

/// A transaction's place in the queue of a row.
pub(crate) struct RowQueueTurn {
    table: Arc<Table>,
    rid: Rid,
}

impl Txn {
    /// Enters the queue of a row, leaving any other. True if it was there already.
    fn queue_for(&mut self, row: &RowLockRequest, waker: &Waker) -> bool {
        if self
            .turn
            .as_ref()
            .is_some_and(|turn| !row.is(&turn.table, turn.rid))
        {
            self.pass_turn();
        }
        let id = self.id();
        let guard = Guard::pin();
        let head = row.table.rows.head(row.rid, &guard);
        // A row whose chunk is absent has no version of a transaction that runs.
        let has_version = matches!(head, Ok(Some(head)) if self.is_own(head));
        let mut shard = row.table.row_locks.shard(row.rid);
        let holds = has_version || shard.held(row.rid, id).is_some();
        let again = shard.enqueue(row.rid, id, row.lock, holds, waker);
        drop(shard);
        self.turn = Some(RowQueueTurn {
            table: row.table.clone(),
            rid: row.rid,
        });
        again
    }

    /// Gives up the place in a row's queue that a wait for the row has left to the transaction: the next one tries.
    /// Whoever does not try again after a wait, or after [`WriteError::Changed`](crate::WriteError::Changed), calls it;
    /// the beginning and the end of a statement do too.
    #[inline]
    pub fn pass_turn(&mut self) {
        if self.turn.is_some() {
            self.leave_queue(None);
        }
    }

    /// The transaction has tried a row: if it waited for it, its turn is over, unless it must wait on or look again.
    #[inline]
    pub(crate) fn turn_used(
        &mut self,
        table: &Arc<Table>,
        rid: Rid,
        outcome: &Result<(), WriteError>,
        lock: RowLock,
    ) {
        let Some(turn) = &self.turn else { return };
        if turn.rid != rid || !Arc::ptr_eq(&turn.table, table) {
            return self.leave_queue(None);
        }
        match outcome {
            Ok(()) => self.leave_queue(Some(lock)),
            Err(WriteError::Blocked(_) | WriteError::Changed | WriteError::Absent(_)) => {}
            Err(_) => self.leave_queue(None),
        }
    }

    #[cold]
    fn leave_queue(&mut self, taken: Option<RowLock>) {
        let Some(RowQueueTurn { table, rid }) = self.turn.take() else {
            return;
        };
        let next = table.row_locks.shard(rid).dequeue(rid, self.id(), taken);
        match (next, &self.work) {
            (NextWaiter::Empty, _) => {}
            (NextWaiter::Wake(waker), _) => waker.wake(),
            (NextWaiter::AtRelease, Some(work)) => work.writer.state().note_row(&table, rid),
            // Who has no state has taken no lock.
            (NextWaiter::AtRelease, None) => table.row_locks.wake_first(rid),
        }
    }
}
