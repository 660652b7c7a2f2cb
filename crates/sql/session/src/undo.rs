//! Undoing much behind a session: who is cancelled, fails or rolls back has its answer at once, and may go on.
//!
//! Owns: what of a worker's sessions is still to be undone after their answers ([`BackgroundUndo`]), and what a session
//! knows of its own: of the last transaction that it has done with ([`PriorTransaction`]), and of the open one, if an
//! error has ended a part of it ([`AbortedSubtransaction`]). A transaction comes here when it ends as a whole (a
//! statement outside a block, ROLLBACK, a block that failed, a COMMIT that does not commit) and a few milliseconds were
//! not enough to undo it (`session::unwind`). So does the part behind the last savepoint of a block that failed.
//! ROLLBACK TO and the handlers of bodies go on with the transaction: their statement undoes what is to be undone,
//! unless it is asked to end.
//!
//! For all others both are a transaction that rolls back slowly: in progress, its locks of rows and tables held, its
//! storages there, its memory counted, until the last write is undone. So readers, who waits for its locks, the
//! collector, checkpoints and the certifier need to know nothing of this.
//!
//! What is given back, and when:
//! - At once: portals, cursors, exported snapshots, notifications, settings, savepoints, the transaction's id, which is
//!   that of an aborted one from then on. They guard nothing of what was written.
//! - With the end of the undoing, in this order: row locks and storages made, names and databases closed (hooks of the
//!   transaction), table locks, its advisory locks. What is in memory and in side segments is counted and kept until
//!   then. Of a part these are those since the savepoint.
//!
//! Invariants of a transaction:
//! - A session has one such transaction at most: it waits for its end before it writes, or locks rows or tables
//!   ([`Session::waits_for_prior`]); so the same name or key is free for it then. A transaction that ends all the same
//!   before the former one is undone in the session, as where nobody undoes behind sessions.
//! - Whatever the session runs waits if the prior transaction has advisory locks, which are the session's: for the
//!   search for deadlocks it would hold them and might wait for others; if the session has temporary objects, which its
//!   commits empty; if a table is locked so that nobody may read it, since the session's own lock is no other's; and if
//!   memory is scarce, for it may want what is about to be free.
//! - Undoing waits for nothing but its turn. So whoever waits for it, its own session too, waits for an end that comes:
//!   these waits are in no graph, and a search for circles does not go through a prior transaction.
//! - A session ends when its prior transaction is undone ([`Session::undo_all`]), unless the server stops. So whoever
//!   waits for sessions to be gone (DROP DATABASE, the end of its temporary tables) waits for that, too. A server that
//!   stops leaves the undoing as it stands when the last checkpoint is taken: it is a crash's
//!   ([`Session::leaves_undo_to_restart`]).
//! - The transaction never commits: it is not in the log, and a crash in the middle undoes the rest.
//!
//! Invariants of a part:
//! - Its block is failed, and its session has no open transaction meanwhile. Nothing runs in a failed block but what
//!   ends it or goes back to a savepoint, and each of these takes the transaction back first ([`Session::take_back`]),
//!   in whatever state: what was not undone yet is undone then, to the same savepoint or an earlier one. So nobody sees
//!   a part that is half undone, and nobody waits for its end but for its locks.
//! - It is undone in steps that are not interrupted: between two of them the session finds the transaction here.
//! - The session waits for nothing while its block is failed, so no circle of waits goes through it.
//!
//! Does not: write, or wait for memory or room in the log.

use super::Session;
use super::signals::Signals;
use super::unwind::UNWOUND_UNSEEN;
use crate::background_undo::{
    AbortedSubtransaction, AbortedTransaction, BackgroundUndo, PriorTransaction, UndoJob,
};
use crate::limits::{StatementTimeouts, run_with_limits};
use crate::open_transaction::OpenTransaction;
use crate::turns::in_turns;
use crate::worker_sessions::WorkerSessions;
use logstead_engine::TableLock;
use logstead_sql_parse::ast::Stmt;
use logstead_sql_types::error::Result;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::Notify;

/// Says that somebody undoes, while it lives.
struct UndoRunGuard<'u>(&'u Cell<bool>);

impl<'u> UndoRunGuard<'u> {
    fn new(undoer: &'u BackgroundUndo) -> UndoRunGuard<'u> {
        undoer.runs.set(true);
        UndoRunGuard(&undoer.runs)
    }
}

impl Drop for UndoRunGuard<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl WorkerSessions {
    /// Undoes behind the worker's sessions, for as long as the worker lives: a task of its own, which makes one for
    /// each transaction. Where there is none, sessions undo by themselves.
    pub async fn undo_in_background(self: Rc<Self>) {
        let _runs = UndoRunGuard::new(&self.undoer);
        loop {
            while let Some(undoing) = self.next_to_undo() {
                let work = Rc::clone(&self).undo_one(undoing);
                tokio::task::spawn_local(self.task(work));
            }
            self.undoer.arrived.notified().await;
        }
    }

    fn next_to_undo(&self) -> Option<UndoJob> {
        self.undoer.arrivals.borrow_mut().pop_front()
    }

    /// Undoes all of it, with a place of its own among the worker's long statements.
    async fn undo_one(self: Rc<Self>, mut undoing: UndoJob) {
        let signals = Signals::new(Arc::clone(&self.scheduler));
        signals.statement().set_long();
        {
            let work = pin!(async {
                while self.undoer.step(&mut undoing, &signals) {
                    self.show_undone();
                    tokio::task::yield_now().await;
                }
            });
            in_turns(&signals, work).await;
        }
        if undoing.ends() {
            self.undoer.over(undoing.writes());
        }
        {
            // Whoever waits for its locks would wait for ever.
            let _watch = logstead_env::abort_on_panic("ending a transaction that is undone");
            drop(undoing);
        }
        self.show_undone();
    }

    fn show_undone(&self) {
        let undoer = &self.undoer;
        self.watchdog
            .undoes(undoer.count.get(), undoer.writes.get());
    }
}

impl Session {
    /// May a transaction that ends now be undone behind the session?
    pub(super) fn undoes_in_background(&self) -> bool {
        let prior = self.prior.as_ref();
        self.worker.undoer.runs.get() && prior.is_none_or(|prior| prior.over.get())
    }

    /// Rolls back a transaction that the session has done with. What [`Session::unwind_all`] has left of it is undone
    /// behind the session.
    pub(super) fn undo(&mut self, mut open: OpenTransaction) {
        if open.txn.writes_to_undo(None) <= UNWOUND_UNSEEN || !self.undoes_in_background() {
            open.txn.abort();
            return;
        }
        // It wants nothing any more, and reads nothing.
        open.txn.unwind(None, 0);
        open.txn.end_statement();
        let pid = self.context.pid;
        let locks = self.context.advisory.borrow_mut().take_transaction(pid);
        let instance = Arc::clone(&self.worker.instance);
        let excludes_readers = !locks.is_empty()
            || !self.temporary.is_empty()
            || instance.engine.memory().is_scarce()
            || open
                .txn
                .tables_held()
                .any(|(_, held)| held.conflicts(TableLock::AccessShare));
        let prior = Rc::new(PriorTransaction {
            over: Cell::new(false),
            told: Notify::new(),
            excludes_readers,
        });
        let live = Arc::clone(&self.context.live);
        live.undoes(Some((open.txn.id(), open.txn.tables_held().collect())));
        self.prior = Some(Rc::clone(&prior));
        let aborted = AbortedTransaction {
            open: Some(open),
            catalog: Arc::clone(&self.context.catalog.borrow()),
            instance,
            live,
            locks,
            prior,
        };
        let undoing = UndoJob::Transaction(Box::new(aborted));
        self.worker.undoer.push(undoing);
        self.worker.show_undone();
    }

    /// After an error: rolls back to the last savepoint, in front of which `index` others stand. What
    /// [`Session::unwind`] has left is undone behind the session, until that takes the transaction back.
    pub(super) fn undo_since(&mut self, index: usize) {
        if self.subtransaction.is_some() {
            return;
        }
        let behind = self.undoes_in_background();
        let much = |open: &OpenTransaction| {
            let (savepoint, _) = open.savepoints.get(index)?;
            let writes = open.txn.writes_to_undo(Some(*savepoint));
            // Who reads the past writes nothing, and what its session reads next is its own to say.
            (writes > UNWOUND_UNSEEN && open.as_of_snapshot.is_none()).then_some(*savepoint)
        };
        let Some(savepoint) = self.open.as_ref().filter(|_| behind).and_then(much) else {
            self.undo_to(index);
            return;
        };
        // The session finds none to give up when it waits for its client.
        self.rest_snapshot();
        let Some(open) = self.open.take() else {
            return;
        };
        let part = Rc::new(AbortedSubtransaction {
            open: RefCell::new(Some(open)),
            savepoint,
            index,
            over: Cell::new(false),
            catalog: Arc::clone(&self.context.catalog.borrow()),
            context: Rc::clone(&self.context),
        });
        self.subtransaction = Some(Rc::clone(&part));
        self.worker.undoer.push(UndoJob::Subtransaction(part));
        self.worker.show_undone();
    }

    /// Takes the transaction back whose part behind the last savepoint is undone behind the session, as far as it is.
    /// Whoever rolls back next undoes the rest.
    pub(super) fn take_back(&mut self) {
        if let Some(part) = self.subtransaction.take() {
            if part.ends() {
                self.worker.undoer.over(part.writes());
                self.worker.show_undone();
            }
            self.open = part.open.take();
        }
    }

    /// Undoes all that the session has not committed, in turns with the others: it is about to end. Where the server
    /// stops nobody waits for that: see `Session::leaves_undo_to_restart`.
    pub async fn undo_all(&mut self) {
        self.take_back();
        self.unwind_unless_left().await;
        if self.leaves_undo_to_restart() {
            self.rollback();
            return;
        }
        let Some(prior) = self.prior.take() else {
            return;
        };
        let mut over = pin!(prior.over());
        std::future::poll_fn(|cx| {
            if over.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            // Whoever stops the server wakes its sessions.
            self.signals.register(cx.waker());
            match self.leaves_undo_to_restart() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// Does the session end before all is undone that it has not committed? Where the server stops, and somebody goes
    /// on with it until the process ends. Then it is undone as after a crash: it is in no log, and of a checkpoint it
    /// has index entries at most, which lead nowhere. Who has temporary tables drops them, which is no affair of a
    /// crash.
    pub(super) fn leaves_undo_to_restart(&self) -> bool {
        let somebody = self.worker.undoer.runs.get();
        self.worker.instance.is_stopping() && somebody && self.temporary.is_empty()
    }

    /// Before a statement that is planned.
    pub(super) async fn waits_for_prior(
        &mut self,
        writes: bool,
        locks: impl Iterator<Item = TableLock>,
    ) -> Result<()> {
        let mut locks = locks;
        let reads = !writes && locks.all(|lock| lock == TableLock::AccessShare);
        self.follow_prior(reads).await
    }

    /// Before one that is not: those that write or lock by themselves wait, the others do where they run a planned one.
    pub(super) async fn utility_waits_for_prior(&mut self, stmt: &Stmt) -> Result<()> {
        let reads = match stmt {
            Stmt::Transaction(_) => return Ok(()),
            Stmt::VariableSet(_)
            | Stmt::VariableShow(_)
            | Stmt::Deallocate(_)
            | Stmt::ClosePortal(_)
            | Stmt::Fetch(_)
            | Stmt::Notify(_)
            | Stmt::Listen(_)
            | Stmt::Unlisten(_)
            | Stmt::CheckPoint
            | Stmt::Prepare(_)
            | Stmt::Execute(_)
            | Stmt::Explain(_)
            | Stmt::DeclareCursor(_)
            | Stmt::Do(_)
            | Stmt::Call(_) => true,
            Stmt::Copy(copy) => !copy.is_from,
            _ => false,
        };
        self.follow_prior(reads).await
    }

    /// Waits for the end of the prior transaction, unless who only reads need not.
    pub(super) async fn follow_prior(&mut self, reads: bool) -> Result<()> {
        let Some(prior) = self.prior.clone() else {
            return Ok(());
        };
        if reads && !prior.excludes_readers && !prior.over.get() {
            return Ok(());
        }
        if !prior.over.get() {
            // It is no lock of another's that is waited for.
            let limits = StatementTimeouts {
                lock_ms: 0,
                ..self.limits()
            };
            let signals = Arc::clone(&self.signals);
            let over = async {
                prior.over().await;
                Ok(())
            };
            // While it waits the worker has nothing of this session to do.
            let was_working = self.working.take().is_some();
            self.context.live.waits_for_prior(true);
            let waited = run_with_limits(&signals, limits, over).await;
            self.context.live.waits_for_prior(false);
            if was_working {
                self.begin_request();
            }
            waited?;
        }
        self.prior = None;
        Ok(())
    }
}
