//! Waiting for row and table locks, and deadlocks.
//!
//! A wait parks the caller's waker at what it waits for, looks again (T13), and enters the wait-for graph; the one
//! whose wait closes a cycle is the victim. Only transactions that wait are in the graph, with the table locks they
//! hold, so taking a lock costs the graph nothing.
//!
//! A wait may end early: the caller calls again what was blocked, and may be blocked again.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use foldhash::fast::FixedState;
use logstead_types::TableId;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::engine::EngineInner;
use crate::state::{TxnId, TxnState};
use crate::table::Table;
use crate::table_lock::{Held, TableLock};
use crate::txn::Txn;

/// What a transaction waits for, as of when it was blocked.
#[derive(Clone)]
enum Cause {
    /// Another transaction's row lock or undecided version.
    Row {
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

impl Cause {
    fn stands(&self) -> bool {
        match self {
            Cause::Row { writer, releases } => writer.holds_since(*releases),
            Cause::Table {
                table, releases, ..
            } => table.locks.holds_since(*releases),
        }
    }
}

/// Why an operation could not go on: another transaction holds what it needs.
#[derive(Clone)]
pub struct Blocker(Cause);

impl Blocker {
    pub(crate) fn row(writer: Arc<TxnState>) -> Blocker {
        let releases = writer.releases();
        Blocker(Cause::Row { writer, releases })
    }

    pub(crate) fn table(
        table: Arc<Table>,
        lock: TableLock,
        holder: Option<TxnId>,
        releases: u64,
    ) -> Blocker {
        Blocker(Cause::Table {
            table,
            lock,
            holder,
            releases,
        })
    }

    /// The transaction in the way, where one is known (NOWAIT and SKIP LOCKED need no more than that there is one).
    pub fn holder(&self) -> Option<TxnId> {
        match &self.0 {
            Cause::Row { writer, .. } => Some(writer.id()),
            Cause::Table { holder, .. } => *holder,
        }
    }

    /// Is it a table lock that is in the way?
    pub fn is_table(&self) -> bool {
        matches!(self.0, Cause::Table { .. })
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
            Cause::Row { writer, .. } => write!(f, "Blocker(row of {:?})", writer.id()),
            Cause::Table { table, lock, .. } => write!(f, "Blocker({lock:?} of {table:?})"),
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
    cause: Cause,
    txn: &'t mut Txn,
    /// Registered at the cause and in the graph.
    parked: bool,
}

impl LockWait<'_> {
    fn leave(&mut self) {
        let id = self.txn.id();
        match &self.cause {
            Cause::Row { writer, .. } => writer.deregister(id),
            Cause::Table { table, .. } => table.locks.deregister(id),
        }
        if self.parked {
            self.parked = false;
            self.txn.engine().waits.leave(id);
        }
    }
}

impl Future for LockWait<'_> {
    type Output = Result<(), WaitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if !this.cause.stands() {
            this.leave();
            return Poll::Ready(Ok(()));
        }
        let id = this.txn.id();
        match &this.cause {
            Cause::Row { writer, .. } => writer.register(id, cx.waker()),
            Cause::Table { table, lock, .. } => table.locks.register(id, *lock, cx.waker()),
        }
        if !this.cause.stands() {
            this.leave();
            return Poll::Ready(Ok(()));
        }
        if !this.parked {
            this.parked = true;
            let held = this.txn.held_tables();
            let engine: &EngineInner = this.txn.engine();
            if engine.waits.enter(id, this.cause.clone(), held) {
                this.leave();
                return Poll::Ready(Err(WaitError::Deadlock));
            }
        }
        Poll::Pending
    }
}

impl Drop for LockWait<'_> {
    fn drop(&mut self) {
        if self.parked {
            self.leave();
        }
    }
}

type HeldTables = SmallVec<[(TableId, Held); 4]>;

struct Node {
    cause: Cause,
    held: HeldTables,
}

/// Who waits for whom.
#[derive(Default)]
pub(crate) struct WaitGraph {
    nodes: Mutex<HashMap<TxnId, Node, FixedState>>,
}

impl WaitGraph {
    /// Adds a waiting transaction; true if that closes a cycle.
    fn enter(&self, id: TxnId, cause: Cause, held: HeldTables) -> bool {
        let mut nodes = self.nodes.lock();
        nodes.insert(id, Node { cause, held });
        let mut seen: SmallVec<[TxnId; 16]> = SmallVec::new();
        let mut open: SmallVec<[TxnId; 16]> = SmallVec::new();
        open.push(id);
        while let Some(at) = open.pop() {
            let Some(node) = nodes.get(&at) else { continue };
            // A wait that is over but not yet left waits for nobody.
            if !node.cause.stands() {
                continue;
            }
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
        cause: &Cause,
    ) -> SmallVec<[TxnId; 4]> {
        let (table, lock) = match cause {
            Cause::Row { writer, .. } => return SmallVec::from_slice(&[writer.id()]),
            Cause::Table { table, lock, .. } => (table.id(), *lock),
        };
        let weak = lock < TableLock::Share;
        let holds_some = nodes
            .get(&id)
            .is_some_and(|n| n.held.iter().any(|(t, _)| *t == table));
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
                    && matches!(&node.cause, Cause::Table { table: t, lock: l, .. }
                        if t.id() == table && *l >= TableLock::Share && l.conflicts(lock));
                **other != id && (holds || ahead)
            })
            .map(|(other, _)| *other)
            .collect()
    }

    fn leave(&self, id: TxnId) {
        self.nodes.lock().remove(&id);
    }

    /// How many wait for locks now.
    pub(crate) fn len(&self) -> usize {
        self.nodes.lock().len()
    }
}
