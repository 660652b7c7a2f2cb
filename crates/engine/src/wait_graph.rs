//! Who waits for whom for a lock of a row or a table. `WaitGraph::enter` finds deadlocks.
//!
//! Invariant: only transactions that wait are in the graph. No cycle is missed, and none is found that is not there
//! (`txn::lock_wait` says why).
//!
//! Does not: find circles through waits that are in no graph.

use crate::table_lock::{TableLock, TableLockMask};
use crate::txn_id::TxnId;
use crate::wait_cause::WaitCause;
use foldhash::fast::FixedState;
use logstead_types::TableId;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::HashMap;

type HeldTables = SmallVec<[(TableId, TableLockMask); 4]>;

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
    pub(crate) fn enter(&self, id: TxnId, cause: WaitCause, held: HeldTables) -> bool {
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

    pub(crate) fn leave(&self, id: TxnId) {
        self.nodes.lock().remove(&id);
    }

    /// How many wait for locks now.
    pub(crate) fn len(&self) -> usize {
        self.nodes.lock().len()
    }
}
