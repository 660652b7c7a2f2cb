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

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use foldhash::fast::FixedState;
use logstead_types::{Rid, TableId};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::engine::EngineInner;
use crate::error::WriteError;
use crate::row_lock::{Next, RowLock};
use crate::table::Table;
use crate::table_lock::{HeldLocks, TableLock};
use crate::txn::Txn;
use crate::txn_id::TxnId;
use crate::txn_state::TxnState;
use crate::version::{Guard, Stamp};

/// What a transaction waits for, as of when it was blocked.
#[derive(Clone)]
enum WaitCause {
    /// A row that others have locked; `holder` is one of them.
    Row {
        row: WantedRow,
        holder: Arc<TxnState>,
    },
    /// What becomes of another transaction's undecided version.
    Outcome {
        writer: Arc<TxnState>,
        releases: u64,
    },
    /// A table lock.
    Table {
        table: Arc<Table>,
        lock: TableLock,
        holder: Option<TxnId>,
        releases: u64,
    },
}

/// A row that somebody wants to lock.
#[derive(Clone)]
pub(crate) struct WantedRow {
    pub(crate) table: Arc<Table>,
    pub(crate) rid: Rid,
    pub(crate) lock: RowLock,
}

impl WantedRow {
    /// The transactions whose locks of the row stand against `txn` now.
    fn obstacles(&self, txn: TxnId) -> SmallVec<[TxnId; 4]> {
        let mut found = SmallVec::new();
        let guard = Guard::pin();
        // Nobody holds a row whose chunk is absent.
        if let Ok(Some(head)) = self.table.rows.head(self.rid, &guard)
            && let Stamp::Writer(state) = head.stamp()
            && state.id() != txn
            && state.is_unsettled()
            && self.lock.conflicts(head.lock())
        {
            found.push(state.id());
        }
        let shard = self.table.row_locks.shard(self.rid);
        found.extend(shard.conflicts(self.rid, txn, self.lock));
        found
    }

    fn is(&self, table: &Arc<Table>, rid: Rid) -> bool {
        self.rid == rid && Arc::ptr_eq(&self.table, table)
    }
}

/// Why an operation could not go on: another transaction holds what it needs.
#[derive(Clone)]
pub struct Blocker(WaitCause);

impl Blocker {
    pub(crate) fn row(row: WantedRow, holder: Arc<TxnState>) -> Blocker {
        Blocker(WaitCause::Row { row, holder })
    }

    pub(crate) fn outcome(writer: Arc<TxnState>) -> Blocker {
        let releases = writer.releases();
        Blocker(WaitCause::Outcome { writer, releases })
    }

    pub(crate) fn table(
        table: Arc<Table>,
        lock: TableLock,
        holder: Option<TxnId>,
        releases: u64,
    ) -> Blocker {
        Blocker(WaitCause::Table {
            table,
            lock,
            holder,
            releases,
        })
    }

    /// One transaction in the way, where one is known (NOWAIT and SKIP LOCKED need no more than that there is one).
    pub fn holder(&self) -> Option<TxnId> {
        match &self.0 {
            WaitCause::Row { holder, .. } => Some(holder.id()),
            WaitCause::Outcome { writer, .. } => Some(writer.id()),
            WaitCause::Table { holder, .. } => *holder,
        }
    }

    /// Is it a table lock that is in the way?
    pub fn is_table(&self) -> bool {
        matches!(self.0, WaitCause::Table { .. })
    }

    /// Waits until it is worth trying again. Dropping the future ends the wait.
    pub fn wait(self, txn: &mut Txn) -> LockWait<'_> {
        LockWait {
            cause: self.0,
            txn,
            parked: false,
        }
    }
}

impl fmt::Debug for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            WaitCause::Row { row, holder } => write!(
                f,
                "Blocker({:?} of row {} held by {:?})",
                row.lock,
                row.rid,
                holder.id()
            ),
            WaitCause::Outcome { writer, .. } => write!(f, "Blocker(outcome of {:?})", writer.id()),
            WaitCause::Table { table, lock, .. } => write!(f, "Blocker({lock:?} of {table:?})"),
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

/// Future of [`Blocker::wait`].
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
    fn queue_for(&mut self, row: &WantedRow, waker: &Waker) -> bool {
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
            (Next::Empty, _) => {}
            (Next::Wake(waker), _) => waker.wake(),
            (Next::AtRelease, Some(work)) => work.writer.state().note_row(&table, rid),
            // Who has no state has taken no lock.
            (Next::AtRelease, None) => table.row_locks.wake_first(rid),
        }
    }
}

type HeldTables = SmallVec<[(TableId, HeldLocks); 4]>;

struct Node {
    cause: WaitCause,
    held: HeldTables,
}

/// A wait for a lock, as others see it.
#[derive(Clone, Debug)]
pub struct LockWaitInfo {
    /// Who waits.
    pub waiter: TxnId,
    /// The lock of a table that it waits for; none if it is a row that it waits for.
    pub table: Option<(TableId, TableLock)>,
    /// Who is in the way, as far as the engine knows: of those that hold a lock of the table that goes with others of
    /// its kind it knows only who waits, too.
    pub blockers: Vec<TxnId>,
}

/// Who waits for whom.
#[derive(Default)]
pub(crate) struct WaitGraph {
    nodes: Mutex<HashMap<TxnId, Node, FixedState>>,
}

impl WaitGraph {
    /// Adds a waiting transaction; true if that closes a cycle.
    fn enter(&self, id: TxnId, cause: WaitCause, held: HeldTables) -> bool {
        let mut nodes = self.nodes.lock();
        nodes.insert(id, Node { cause, held });
        let mut seen: SmallVec<[TxnId; 16]> = SmallVec::new();
        let mut open: SmallVec<[TxnId; 16]> = SmallVec::new();
        open.push(id);
        while let Some(at) = open.pop() {
            let Some(node) = nodes.get(&at) else { continue };
            for next in Self::waits_for(&nodes, at, &node.cause) {
                if next == id {
                    return true;
                }
                if !seen.contains(&next) {
                    seen.push(next);
                    open.push(next);
                }
            }
        }
        false
    }

    fn waits_for(
        nodes: &HashMap<TxnId, Node, FixedState>,
        id: TxnId,
        cause: &WaitCause,
    ) -> SmallVec<[TxnId; 4]> {
        // A wait that is over but not yet left waits for nobody. One for a table lock is over when its waiter was
        // woken, not when something was released: releases that only concern strong locks leave the others parked.
        let (table, lock) = match cause {
            WaitCause::Row { row, .. } => return row.obstacles(id),
            WaitCause::Outcome { writer, releases } => {
                let stands = writer.holds_since(*releases);
                return stands.then(|| writer.id()).into_iter().collect();
            }
            WaitCause::Table { table, .. } if !table.locks.is_waiting(id) => {
                return SmallVec::new();
            }
            WaitCause::Table { table, lock, .. } => (table.id(), *lock),
        };
        let weak = !lock.is_strong();
        let holds_some = nodes
            .get(&id)
            .is_some_and(|n| n.held.iter().any(|(t, held)| *t == table && held.any()));
        nodes
            .iter()
            .filter(|(other, node)| {
                let holds = node
                    .held
                    .iter()
                    .any(|(t, held)| *t == table && held.conflicts(lock));
                // Read and Write queue behind those who wait for a strong lock.
                let ahead = weak
                    && !holds_some
                    && matches!(&node.cause, WaitCause::Table { table: t, lock: l, .. }
                        if t.id() == table && l.is_strong() && l.conflicts(lock));
                **other != id && (holds || ahead)
            })
            .map(|(other, _)| *other)
            .collect()
    }

    /// All waits.
    pub(crate) fn all(&self) -> Vec<LockWaitInfo> {
        let nodes = self.nodes.lock();
        let all = nodes.iter().map(|(waiter, node)| {
            let mut blockers = Self::waits_for(&nodes, *waiter, &node.cause).to_vec();
            let table = match &node.cause {
                WaitCause::Table {
                    table,
                    lock,
                    holder,
                    ..
                } => {
                    // Who holds a strong lock is known; whoever waits still was not woken since.
                    let holder = holder.filter(|_| table.locks.is_waiting(*waiter));
                    blockers.extend(holder.filter(|holder| !blockers.contains(holder)));
                    Some((table.id(), *lock))
                }
                WaitCause::Row { .. } | WaitCause::Outcome { .. } => None,
            };
            LockWaitInfo {
                waiter: *waiter,
                table,
                blockers,
            }
        });
        all.collect()
    }

    fn leave(&self, id: TxnId) {
        self.nodes.lock().remove(&id);
    }

    /// How many wait for locks now.
    pub(crate) fn len(&self) -> usize {
        self.nodes.lock().len()
    }
}
