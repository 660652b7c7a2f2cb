//! The transaction that a session has open, and where the session stands.
//!
//! Does not: begin, commit or roll back (`transaction`).

use crate::as_of_snapshot::AsOfSnapshot;
use crate::large_object_descriptors::Descriptors;
use logstead_engine::{SavepointId, Txn};
use logstead_sql_ddl::DdlState;
use logstead_sql_exec::after_triggers::{EventQueue, EventQueueMark};
use std::rc::Rc;

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockState {
    /// No block.
    None,
    /// Between BEGIN and COMMIT.
    Open,
    /// In a block, after an error.
    Failed,
}

/// An open transaction of the engine with what SQL adds.
pub(crate) struct OpenTransaction {
    pub(crate) txn: Txn,
    /// Catalog changes made by this transaction.
    pub(crate) ddl: DdlState,
    /// The engine's savepoints, one per entry of `Session::savepoints`.
    pub(crate) savepoints: Vec<(SavepointId, EventQueueMark)>,
    /// Constraints it has still to check.
    pub(crate) events: EventQueue,
    /// Large objects that it has opened.
    pub(crate) descriptors: Descriptors,
    /// The past that it reads; none is the present.
    pub(crate) as_of_snapshot: Option<Rc<AsOfSnapshot>>,
    /// It is that of one statement, which has named its past.
    pub(crate) is_of_clause: bool,
    /// At a replica: the view was taken by which the statement was planned that is about to run.
    pub(crate) has_view: bool,
}

/// A named savepoint.
pub(crate) struct Savepoint {
    pub(crate) name: String,
    /// How many storages the transaction had made.
    pub(crate) made: usize,
    pub(crate) read_only: bool,
}

impl OpenTransaction {
    /// Back to the savepoint in front of which `index` others stand; it stays.
    pub(crate) fn rollback_to(&mut self, index: usize) {
        if let Some((id, mark)) = self.savepoints.get(index).cloned() {
            self.savepoints.truncate(index + 1);
            self.txn.rollback_to(id);
            self.events.rollback_to(&mark);
            self.descriptors.rolled_back_to(index);
        }
    }
}
