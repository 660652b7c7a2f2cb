//! What is still to be undone behind the sessions of a worker: whole transactions, and parts of open ones.
//!
//! Invariants are those of `undo`, which says what comes here and when.
//!
//! Does not: run the undoing (`undo`).

use crate::advisory::DetachedLocks;
use crate::backend_status::BackendStatus;
use crate::context::SessionContext;
use crate::instance::Instance;
use crate::open_transaction::OpenTransaction;
use crate::signals::Signals;
use crate::unwind::unwind_step;
use logstead_engine::SavepointId;
use logstead_sql_catalog::Catalog;
use logstead_sql_types::value::user;
use std::cell::{Cell, Ref, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;

/// What a session knows of its last transaction, which is undone behind it.
pub(crate) struct PriorTransaction {
    pub(crate) over: Cell<bool>,
    pub(crate) told: Notify,
    /// Who only reads waits, too.
    pub(crate) excludes_readers: bool,
}

impl PriorTransaction {
    /// Ready when all of it is undone.
    pub(crate) async fn over(&self) {
        while !self.over.get() {
            self.told.notified().await;
        }
    }
}

/// A transaction that is being undone. Dropping it undoes the rest, and gives back what the transaction held.
pub(crate) struct AbortedTransaction {
    pub(crate) open: Option<OpenTransaction>,
    /// Keys of its rows are computed with the types of this one.
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) instance: Arc<Instance>,
    pub(crate) live: Arc<BackendStatus>,
    pub(crate) locks: DetachedLocks,
    pub(crate) prior: Rc<PriorTransaction>,
}

impl AbortedTransaction {
    fn writes(&self) -> usize {
        let open = self.open.as_ref();
        open.map_or(0, |open| open.txn.writes_to_undo(None))
    }

    /// Undoes some of it. True if there is more.
    fn step(&mut self, signals: &Signals) -> bool {
        user::enter(&self.catalog);
        let open = self.open.as_mut();
        open.is_some_and(|open| unwind_step(signals, &mut open.txn, None))
    }
}

impl Drop for AbortedTransaction {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            open.txn.abort();
        }
        self.live.undoes(None);
        self.locks.give_back(&self.instance.advisory);
        self.prior.over.set(true);
        self.prior.told.notify_waiters();
    }
}

/// An open transaction whose part behind the last savepoint is being undone.
pub(crate) struct AbortedSubtransaction {
    /// None when the session has taken it back.
    pub(crate) open: RefCell<Option<OpenTransaction>>,
    pub(crate) savepoint: SavepointId,
    /// How many savepoints stand in front of it.
    pub(crate) index: usize,
    /// It is undone no more.
    pub(crate) over: Cell<bool>,
    /// Keys of its rows are computed with the types of this one.
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) context: Rc<SessionContext>,
}

impl AbortedSubtransaction {
    /// It is undone no more. True the first time.
    pub(crate) fn ends(&self) -> bool {
        !self.over.replace(true)
    }

    /// The transaction.
    pub(crate) fn open(&self) -> Ref<'_, Option<OpenTransaction>> {
        self.open.borrow()
    }

    pub(crate) fn writes(&self) -> usize {
        let open = self.open();
        let open = open.as_ref();
        open.map_or(0, |open| open.txn.writes_to_undo(Some(self.savepoint)))
    }

    /// Undoes some of it, and gives back what it held when all is undone. True if there is more.
    fn step(&self, signals: &Signals) -> bool {
        user::enter(&self.catalog);
        let mut open = self.open.borrow_mut();
        let Some(open) = open.as_mut() else {
            return false;
        };
        if unwind_step(signals, &mut open.txn, Some(self.savepoint)) {
            return true;
        }
        open.rollback_to(self.index);
        self.context.unlock_advisory_since(self.index);
        self.context.live.holds(open.txn.tables_held());
        false
    }
}

/// What is being undone.
pub(crate) enum UndoJob {
    Transaction(Box<AbortedTransaction>),
    Subtransaction(Rc<AbortedSubtransaction>),
}

impl UndoJob {
    pub(crate) fn writes(&self) -> usize {
        match self {
            UndoJob::Transaction(transaction) => transaction.writes(),
            UndoJob::Subtransaction(part) => part.writes(),
        }
    }

    fn step(&mut self, signals: &Signals) -> bool {
        match self {
            UndoJob::Transaction(transaction) => transaction.step(signals),
            UndoJob::Subtransaction(part) => part.step(signals),
        }
    }

    /// It is undone no more. True unless its session has taken it back.
    pub(crate) fn ends(&self) -> bool {
        match self {
            UndoJob::Transaction(_) => true,
            UndoJob::Subtransaction(part) => part.ends(),
        }
    }
}

/// What is being undone behind the sessions of one worker: for each session one transaction, or one part, at most.
#[derive(Default)]
pub(crate) struct BackgroundUndo {
    /// What nobody has begun to undo.
    pub(crate) arrivals: RefCell<VecDeque<UndoJob>>,
    pub(crate) arrived: Notify,
    /// Somebody does it.
    pub(crate) runs: Cell<bool>,
    /// Transactions and parts, and the writes that are left of all.
    pub(crate) count: Cell<usize>,
    pub(crate) writes: Cell<usize>,
}

impl BackgroundUndo {
    pub(crate) fn push(&self, undoing: UndoJob) {
        self.count.set(self.count.get() + 1);
        self.writes.set(self.writes.get() + undoing.writes());
        self.arrivals.borrow_mut().push_back(undoing);
        self.arrived.notify_one();
    }

    /// One of them is over, with so many writes left.
    pub(crate) fn over(&self, writes: usize) {
        self.count.set(self.count.get().saturating_sub(1));
        self.undone(writes);
    }

    /// So many writes are not left any more.
    fn undone(&self, writes: usize) {
        self.writes.set(self.writes.get().saturating_sub(writes));
    }

    /// Undoes some writes. True if there are more.
    pub(crate) fn step(&self, undoing: &mut UndoJob, signals: &Signals) -> bool {
        let before = undoing.writes();
        // One write whose keys cannot be computed does not take the others' sessions with it: an entry of its may stay,
        // which is a hint that leads nowhere.
        let step = std::panic::AssertUnwindSafe(|| undoing.step(signals));
        let more = std::panic::catch_unwind(step).unwrap_or_else(|_panic| {
            tracing::error!("undoing a write panicked; the next one is undone");
            true
        });
        self.undone(before.saturating_sub(undoing.writes()));
        more
    }
}
