//! The transaction of a session: blocks, savepoints, and what is told when.
//!
//! States: idle (a statement begins and ends its own transaction), in a block (BEGIN to COMMIT), in a failed block
//! (only ROLLBACK and its kin are heard). The engine's transaction begins with the first statement that needs one, so
//! that SET TRANSACTION can still choose its isolation level.

use super::client::Client;
use super::large_object_descriptors::Descriptors;
use super::transaction_modes::{TransactionModes, apply, deferrable};
use super::{Session, aborted};
use crate::limits::{StatementTimeouts, run_with_limits};
use crate::open_transaction::{BlockState, OpenTransaction, Savepoint};
use crate::worker_sessions::WaitingGuard;
use logstead_engine::{CommitError, CommitWait, Isolation};
use logstead_sql_catalog::{Catalog, dependency_failure};
use logstead_sql_ddl::DdlState;
use logstead_sql_exec::after_triggers::{EventQueue, EventQueueMark};
use logstead_sql_parse::ast::{TransactionMode, TransactionStmt, TransactionStmtKind};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user;
use logstead_types::SqlState;
use std::rc::Rc;
use std::sync::Arc;

impl Session {
    /// The engine's transaction, begun if there is none.
    pub(super) fn transaction(&mut self) -> Result<&mut OpenTransaction> {
        if self.open.is_none() {
            if self.subtransaction.is_some() {
                return Err(aborted());
            }
            if self.block == BlockState::None {
                self.modes = self.default_modes()?;
                let now = self.context.statement_time.get();
                self.context.transaction_time.set(now);
            }
            if !self.follows_as_of() {
                return Err(SqlError::internal("the past is not open"));
            }
            let is_of_clause = self.as_of_clause.is_some();
            let as_of_snapshot = self
                .as_of_clause
                .take()
                .or_else(|| self.as_of_snapshot.clone());
            let mut isolation = self.modes.isolation;
            self.refuse_default_serializable(isolation)?;
            if as_of_snapshot.is_some() {
                self.modes.read_only = true;
                isolation = Isolation::ReadCommitted;
            }
            self.context.take_modes(&self.modes);
            let mut txn = self.worker.worker.begin(isolation);
            self.context.live.begins(txn.id());
            // What this session has done or was told, and no crash may take back alone: a pipeline's later transactions
            // do not survive without the earlier ones, nor a sequence's value without its record.
            txn.depends_on_all(self.reply_dependencies.waits_for());
            txn.depends_on_all(self.reply_dependencies.unconfirmed());
            // Rolling back to a savepoint may make it read-write again.
            if self.modes.read_only && self.savepoints.iter().all(|s| s.read_only) {
                txn.declare_read_only();
            }
            let mut savepoints = Vec::new();
            // Savepoints made before the first statement.
            for _ in &self.savepoints {
                savepoints.push((txn.savepoint(), EventQueueMark::default()));
            }
            self.open = Some(OpenTransaction {
                txn,
                ddl: DdlState::of(&self.temporary, self.database),
                savepoints,
                events: EventQueue::default(),
                descriptors: Descriptors::default(),
                as_of_snapshot,
                is_of_clause,
                has_view: false,
            });
        }
        self.open
            .as_mut()
            .ok_or_else(|| SqlError::internal("no transaction"))
    }

    /// SERIALIZABLE READ ONLY DEFERRABLE waits here for its snapshot, before the first statement that needs one.
    pub(super) async fn wait_for_snapshot(&mut self) -> Result<()> {
        if !self.modes.deferrable {
            return Ok(());
        }
        // No lock is waited for.
        let limits = StatementTimeouts {
            lock_ms: 0,
            ..self.limits()
        };
        let signals = Arc::clone(&self.signals);
        let open = self.transaction()?;
        let wait = async {
            open.txn.safe_snapshot().await;
            Ok(())
        };
        run_with_limits(&signals, limits, wait).await
    }

    /// This transaction's own catalog if it changed it, else the committed one.
    pub(super) fn catalog(&mut self) -> Result<Arc<Catalog>> {
        if self.open.is_none() && !self.follows_as_of() {
            return Err(SqlError::internal("the past is not open"));
        }
        if let Some(as_of_snapshot) = self.as_of_snapshot() {
            let catalog = Arc::clone(&as_of_snapshot.catalog);
            user::search(&self.context.path_in(&catalog));
            user::enter(&catalog);
            return Ok(catalog);
        }
        let store = &self.worker.instance.store;
        let catalog = match &mut self.open {
            Some(open) if open.ddl.has_changes() => {
                open.ddl
                    .catalog(store, &self.context.database, &mut open.txn)?
            }
            open => {
                let current = match store.is_replica() {
                    true => {
                        let txn = open.as_mut().map(|open| &mut open.txn);
                        store.catalog_read_by(self.database, txn)?
                    }
                    false => store.current_by_oid(self.database),
                };
                let current = current.ok_or_else(|| {
                    SqlError::new(
                        SqlState::INVALID_CATALOG_NAME,
                        format!("database \"{}\" does not exist", self.context.database),
                    )
                    .fatal()
                })?;
                self.temporary.over(current)
            }
        };
        // Descriptions and errors ("does not exist") tell of it as results do (T10, T15).
        let synchronous = self.context.synchronous.get();
        self.reply_dependencies
            .merge(&CommitWait::of(catalog.csn), synchronous);
        user::search(&self.context.path_in(&catalog));
        user::enter(&catalog);
        Ok(catalog)
    }

    /// Does this session see a catalog that others do not?
    pub(super) fn has_private_catalog(&self) -> bool {
        !self.temporary.is_empty() || self.has_altered()
    }

    /// Has the open transaction changed the catalog?
    pub(super) fn has_altered(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.ddl.has_changes())
    }

    /// Commits what is open and leaves the block. An error means that it was rolled back.
    pub(super) async fn commit(&mut self, client: &mut dyn Client) -> Result<()> {
        let announcement = match self.end_work(client).await {
            Ok(()) => self.announcement(),
            Err(error) => Err(error),
        };
        let announcement = match announcement {
            Ok(announcement) => announcement,
            Err(error) => {
                self.unwind_all().await;
                self.rollback();
                return Err(error);
            }
        };
        // A failed block does not commit.
        assert!(self.subtransaction.is_none());
        self.cursors.close_unheld();
        self.portals.clear();
        self.suspended = 0;
        self.savepoints.clear();
        self.block = BlockState::None;
        let Some(mut open) = self.open.take() else {
            self.context.settings.borrow_mut().commit();
            self.context.refresh_style();
            self.transaction_over(true);
            return Ok(());
        };
        let judged = self.settle_temporary(&mut open).await;
        open.txn.depends_on_all(&self.context.depends_on.take());
        open.txn
            .depends_on_all(self.reply_dependencies.unconfirmed());
        // SET LOCAL holds until the settings are told of the commit, below.
        let synchronous = self.context.synchronous.get();
        // Rows may have been told already, and are so whatever becomes of the commit.
        self.reply_dependencies
            .merge(&open.txn.commit_wait(), synchronous);
        if let Err(error) = judged {
            self.open = Some(open);
            self.unwind_all().await;
            self.abort_open();
            self.transaction_over(false);
            self.context.settings.borrow_mut().rollback();
            self.context.refresh_style();
            return Err(error);
        }
        if let Some(xid) = self.context.xid.take() {
            open.txn.set_xid(xid);
        }
        let worker = Rc::clone(&self.worker);
        let mut place = None;
        let receipt = match announcement {
            None => open.txn.precommit_or_stay().await,
            Some(announcement) => {
                // Places are taken in the order of CSNs.
                let turn = worker.instance.channels.turn().await;
                let receipt = open.txn.precommit_or_stay().await;
                if receipt.is_ok() {
                    place = Some(announcement.take_place(&worker.instance.channels, &turn));
                }
                receipt
            }
        };
        match receipt {
            Ok(receipt) => {
                self.follow_keys(&open.txn);
                self.reply_dependencies.committed(&receipt, synchronous);
                if let Some(csn) = receipt.csn {
                    self.context.advisory.borrow_mut().committed(csn);
                }
                self.transaction_over(true);
                if let Some(place) = place {
                    // Meanwhile the worker has nothing of this session to do but flush.
                    let was_working = self.working.take().is_some();
                    {
                        let _count = WaitingGuard::new(&worker);
                        let engine = &worker.instance.engine;
                        super::notify::deliver(place, engine, receipt.waits_for).await;
                    }
                    if was_working {
                        self.begin_request();
                    }
                }
                self.context.settings.borrow_mut().commit();
                self.context.refresh_style();
                Ok(())
            }
            Err(error) => {
                self.open = Some(open);
                self.unwind_all().await;
                self.abort_open();
                self.transaction_over(false);
                self.context.settings.borrow_mut().rollback();
                self.context.refresh_style();
                Err(commit_error(error))
            }
        }
    }

    /// What a session has of its transaction goes, or becomes the session's.
    pub(super) fn transaction_over(&mut self, committed: bool) {
        self.forget_clause();
        self.context.xid.take();
        self.context.exports.take();
        if committed {
            self.cursors.committed();
            self.listen_from_now();
        } else {
            self.cursors.rolled_back();
            self.context.pending_notifies.borrow_mut().rolled_back();
        }
        let locks = &self.worker.instance.advisory;
        let mut holdings = self.context.advisory.borrow_mut();
        holdings.end_transaction(locks, self.context.pid, None);
    }

    /// Cursors and notifications since the savepoint in front of which `index` others stand go. They guard nothing of
    /// what was written since.
    fn forget_since(&mut self, index: usize) {
        self.cursors.rolled_back_to(index);
        self.context
            .pending_notifies
            .borrow_mut()
            .rolled_back_to(index);
    }

    /// What COMMIT has still to check, before the transaction draws its CSN.
    ///
    /// Triggers that were put off write, and what holds cursors may, too: it is over when nothing is left.
    async fn end_work(&mut self, client: &mut dyn Client) -> Result<()> {
        let has_deferred = |session: &Session| {
            let open = session.open.as_ref();
            open.is_some_and(|open| open.events.has_deferred())
        };
        loop {
            while has_deferred(self) {
                let altered = self.has_altered();
                let catalog = self.catalog()?;
                self.check_deferred_constraints(&catalog, true, altered, client)
                    .await?;
            }
            self.hold_cursors().await?;
            if !has_deferred(self) {
                return Ok(());
            }
        }
    }

    /// Rolls everything back and leaves the block.
    pub(super) fn rollback(&mut self) {
        // Before what guards its changes is given back.
        self.abort_open();
        self.transaction_over(false);
        self.portals.clear();
        self.suspended = 0;
        self.savepoints.clear();
        self.block = BlockState::None;
        self.context.settings.borrow_mut().rollback();
        self.context.refresh_style();
    }

    fn abort_open(&mut self) {
        self.take_back();
        let synchronous = self.context.synchronous.get();
        // Values of sequences that were told stay told.
        self.reply_dependencies
            .merge(&self.context.depends_on.take(), synchronous);
        if let Some(open) = self.open.take() {
            // What an aborted transaction read may have been told in an error.
            self.reply_dependencies
                .merge(&open.txn.commit_wait(), synchronous);
            self.follow_keys(&open.txn);
            self.undo(open);
        }
    }

    /// A statement failed: ends its transaction, or the part since the last savepoint.
    pub(super) fn fail_transaction(&mut self) {
        if let Some(open) = &self.open {
            let synchronous = self.context.synchronous.get();
            self.reply_dependencies
                .merge(&open.txn.commit_wait(), synchronous);
            self.reply_dependencies
                .merge(&self.context.depends_on.borrow(), synchronous);
        }
        match self.block {
            BlockState::None => self.rollback(),
            BlockState::Open | BlockState::Failed => {
                let last = self.savepoints.len().checked_sub(1);
                self.fail_portals(last);
                match last {
                    None => {
                        self.abort_open();
                        self.transaction_over(false);
                    }
                    Some(last) => {
                        self.forget_since(last);
                        // The rest of the block survives behind the savepoint.
                        self.undo_since(last);
                    }
                }
                self.block = BlockState::Failed;
            }
        }
    }

    /// Rolls back to a savepoint, which stays, and gives back the locks taken since. [`Session::unwind`] has left
    /// little to undo.
    pub(super) fn undo_to(&mut self, index: usize) {
        if let Some(open) = &mut self.open {
            open.rollback_to(index);
        }
        self.context.unlock_advisory_since(index);
    }

    /// BEGIN and all its kin. Gives the command tag.
    pub(super) async fn control(
        &mut self,
        stmt: &TransactionStmt,
        client: &mut dyn Client,
    ) -> Result<&'static str> {
        let modes = stmt.options.as_slice();
        match &stmt.kind {
            kind @ (TransactionStmtKind::Begin | TransactionStmtKind::Start) => {
                self.refuse_read_write_in_past(modes)?;
                self.refuse_modes_at_replica(modes)?;
                if self.block == BlockState::None {
                    let mut chosen = self.default_modes()?;
                    apply(&mut chosen, modes)?;
                    self.check_modes(&chosen, deferrable(modes))?;
                    self.modes = chosen;
                    self.context.take_modes(&chosen);
                    if self.open.is_none() {
                        self.context
                            .transaction_time
                            .set(self.context.statement_time.get());
                    }
                    self.block = BlockState::Open;
                } else {
                    self.warn(
                        client,
                        SqlState::ACTIVE_SQL_TRANSACTION,
                        "there is already a transaction in progress",
                    );
                    self.set_modes(modes)?;
                }
                Ok(match kind {
                    TransactionStmtKind::Begin => "BEGIN",
                    _ => "START TRANSACTION",
                })
            }
            TransactionStmtKind::Commit { chain } => {
                let (block, modes) = (self.block, self.modes);
                if *chain && block == BlockState::None {
                    return Err(only_in_block("COMMIT AND CHAIN"));
                }
                let tag = match block {
                    BlockState::Failed => {
                        self.unwind_all().await;
                        self.rollback();
                        "ROLLBACK"
                    }
                    BlockState::None => {
                        self.warn(
                            client,
                            SqlState::NO_ACTIVE_SQL_TRANSACTION,
                            "there is no transaction in progress",
                        );
                        self.commit(client).await?;
                        "COMMIT"
                    }
                    BlockState::Open => {
                        self.commit(client).await?;
                        "COMMIT"
                    }
                };
                self.chain(*chain, modes);
                Ok(tag)
            }
            TransactionStmtKind::Rollback { chain } => {
                let (block, modes) = (self.block, self.modes);
                if block == BlockState::None {
                    if *chain {
                        return Err(only_in_block("ROLLBACK AND CHAIN"));
                    }
                    self.warn(
                        client,
                        SqlState::NO_ACTIVE_SQL_TRANSACTION,
                        "there is no transaction in progress",
                    );
                }
                self.unwind_all().await;
                self.rollback();
                self.chain(*chain, modes);
                Ok("ROLLBACK")
            }
            TransactionStmtKind::RollbackTo(name) => {
                if self.block == BlockState::None {
                    return Err(only_in_block("ROLLBACK TO SAVEPOINT"));
                }
                let index = self.find_savepoint(name)?;
                if self.block == BlockState::Open && self.suspended > 0 {
                    // What older portals have still to give is of before.
                    self.settle_suspended().await?;
                }
                self.roll_back_to(index).await?;
                self.block = BlockState::Open;
                Ok("ROLLBACK")
            }
            TransactionStmtKind::Savepoint(name) => {
                if self.block == BlockState::None {
                    return Err(only_in_block("SAVEPOINT"));
                }
                self.make_savepoint(name.to_string());
                Ok("SAVEPOINT")
            }
            TransactionStmtKind::Release(name) => {
                if self.block == BlockState::None {
                    return Err(only_in_block("RELEASE SAVEPOINT"));
                }
                let index = self.find_savepoint(name)?;
                self.release(index);
                Ok("RELEASE")
            }
            TransactionStmtKind::Prepare(_) => self.prepare_transaction(client).await,
            TransactionStmtKind::CommitPrepared(gid)
            | TransactionStmtKind::RollbackPrepared(gid) => Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("prepared transaction with identifier \"{gid}\" does not exist"),
            )),
        }
    }

    /// SET TRANSACTION, and of the session's transactions SET SESSION CHARACTERISTICS.
    pub(super) fn set_transaction(
        &mut self,
        session: bool,
        modes: &[TransactionMode],
        client: &mut dyn Client,
    ) -> Result<()> {
        if session {
            return self.set_session_characteristics(modes);
        }
        if self.warn_outside_block(client) {
            return Ok(());
        }
        self.refuse_read_write_in_past(modes)?;
        self.refuse_modes_at_replica(modes)?;
        self.set_modes(modes)
    }

    /// SET TRANSACTION SNAPSHOT.
    pub(super) fn set_transaction_snapshot(
        &mut self,
        name: &str,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.warn_outside_block(client);
        self.import_snapshot(name)
    }

    /// Is there no transaction that SET TRANSACTION could be of? The client is told so.
    fn warn_outside_block(&self, client: &mut dyn Client) -> bool {
        let outside = self.is_idle();
        if outside {
            self.warn(
                client,
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION can only be used in transaction blocks",
            );
        }
        outside
    }

    /// PREPARE TRANSACTION on a server that keeps none: the transaction ends all the same.
    async fn prepare_transaction(&mut self, client: &mut dyn Client) -> Result<&'static str> {
        let block = self.block;
        let is_temporary = block == BlockState::Open && self.has_used_temporary()?;
        if block == BlockState::None {
            self.warn(
                client,
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "there is no transaction in progress",
            );
        }
        self.unwind_all().await;
        self.rollback();
        if block != BlockState::Open {
            return Ok("ROLLBACK");
        }
        if is_temporary {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot PREPARE a transaction that has operated on temporary objects",
            ));
        }
        Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "prepared transactions are disabled",
        )
        .hint("Set max_prepared_transactions to a nonzero value."))
    }

    /// Has the transaction locked a temporary table, or changed a catalog in which there is a temporary schema?
    fn has_used_temporary(&mut self) -> Result<bool> {
        let catalog = self.catalog()?;
        let Some(open) = &self.open else {
            return Ok(false);
        };
        if catalog.temp.is_none() {
            return Ok(false);
        }
        let held = |relation: &&Arc<logstead_sql_catalog::Relation>| {
            let mut held = open.txn.tables_held();
            held.any(|(table, _)| table == relation.storage)
        };
        let mut temporary = catalog.relations.values().filter(|r| r.is_temporary());
        Ok(open.ddl.has_changes() || temporary.any(|relation| held(&relation)))
    }

    /// A savepoint; one without a name is nobody's but who made it.
    pub(super) fn make_savepoint(&mut self, name: String) {
        if let Some(open) = &mut self.open {
            let savepoint = open.txn.savepoint();
            open.savepoints.push((savepoint, open.events.mark()));
        }
        self.context.settings.borrow_mut().savepoint();
        self.savepoints.push(Savepoint {
            name,
            made: self.open.as_ref().map_or(0, |open| open.ddl.count_made()),
            read_only: self.modes.read_only,
        });
    }

    /// Back to the savepoint in front of which `index` others stand; it stays. The error is that of a request to end
    /// the statement, or of its time limit, while much is undone: the later savepoints are gone then, and what is left
    /// to undo is undone with what is rolled back next, be it to this savepoint or an earlier one.
    pub(super) async fn roll_back_to(&mut self, index: usize) -> Result<()> {
        self.take_back();
        self.leave_since(index);
        if self.routines == 0 {
            // ROLLBACK TO has the time limit that it restores.
            self.signals.statement().set_deadline(None);
            self.set_deadline(self.limits());
        }
        let savepoints = self.open.as_ref().map(|open| &open.savepoints);
        let savepoint = savepoints.and_then(|savepoints| savepoints.get(index));
        if let Some(to) = savepoint.map(|(savepoint, _)| *savepoint) {
            self.unwind_or_end(to).await?;
        }
        self.undo_to(index);
        Ok(())
    }

    /// An error leaves what stands behind that savepoint, which goes: what was written since is undone with what is
    /// around it.
    pub(super) fn give_up(&mut self, index: usize) {
        self.leave_since(index);
        self.release(index);
    }

    /// All that a rollback to a savepoint does but undo writes and give back what guards them.
    fn leave_since(&mut self, index: usize) {
        self.forget_since(index);
        self.savepoints.truncate(index + 1);
        if let Some(open) = &mut self.open {
            open.savepoints.truncate(index + 1);
        }
        self.restore_read_only(index);
        self.context.settings.borrow_mut().rollback_to(index);
        self.context.refresh_style();
        self.keep_portals(index);
    }

    /// That savepoint and all behind it go; what was done since stays.
    pub(super) fn release(&mut self, index: usize) {
        if let Some(open) = &mut self.open
            && let Some((id, _)) = open.savepoints.get(index).cloned()
        {
            open.savepoints.truncate(index);
            open.txn.release(id);
            open.descriptors.released(index);
        }
        self.cursors.released(index);
        self.context.advisory.borrow_mut().released(index);
        self.context.pending_notifies.borrow_mut().released(index);
        self.context.settings.borrow_mut().release(index);
        self.restore_read_only(index);
        self.savepoints.truncate(index);
        self.raise_portals(index);
    }

    pub(super) fn chain(&mut self, chain: bool, modes: TransactionModes) {
        if chain {
            self.modes = modes;
            self.block = BlockState::Open;
            self.context.take_modes(&modes);
            self.context
                .transaction_time
                .set(self.context.statement_time.get());
        }
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        self.savepoints
            .iter()
            .rposition(|s| s.name == name)
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::INVALID_SAVEPOINT_SPECIFICATION,
                    format!("savepoint \"{name}\" does not exist"),
                )
            })
    }

    /// A WARNING to the client.
    pub(super) fn warn(&self, client: &mut dyn Client, code: SqlState, message: &str) {
        if self.context.settings.borrow().typed().warnings {
            client.notice("WARNING", SqlError::new(code, message).fields());
        }
    }
}

/// 25P01: `what` needs a transaction block.
pub(super) fn only_in_block(what: &str) -> SqlError {
    SqlError::new(
        SqlState::NO_ACTIVE_SQL_TRANSACTION,
        format!("{what} can only be used in transaction blocks"),
    )
}

fn commit_error(error: CommitError) -> SqlError {
    match error {
        CommitError::DiskFull => SqlError::new(
            SqlState::DISK_FULL,
            "could not extend the log: no space left on device",
        )
        .hint("Check free disk space."),
        CommitError::OutOfMemory(error) => logstead_sql_types::error::out_of_memory(&error),
        CommitError::Serialization => dependency_failure(),
        CommitError::InstanceRestarted => logstead_sql_types::error::instance_restarted(),
        CommitError::UsedUp(what) => {
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, what.to_string())
        }
        CommitError::LogFailed(why) => SqlError::log_failed(&why),
        other => SqlError::new(SqlState::IO_ERROR, format!("could not commit: {other}")),
    }
}
