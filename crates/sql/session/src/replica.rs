//! Sessions at a replica: what they refuse, and which catalog they plan with.
//!
//! Whatever a session does at a replica is read-only, by PostgreSQL's rules for a hot standby and in its words. What
//! writes rows or the catalog fails as in any read-only transaction; what would do something else to the server fails
//! "during recovery".
//!
//! **The catalog.** No table lock keeps DDL away from a statement here: the primary's is applied whoever reads. Instead
//! each snapshot has the catalog that its data was written under ([`CatalogStore::catalog_seen`]). A statement is
//! planned with the catalog of now; then it takes its snapshot, and if that has another catalog it is planned again
//! with that one ([`Session::prepare_run`]). The snapshot stays the statement's until it runs.
//!
//! Invariant: a plan runs only with a snapshot that its catalog belongs to ([`Session::check_seen`]).

use super::Session;
use crate::limits::{StatementTimeouts, run_with_limits};
use logstead_engine::{Isolation, Txn, Watermark};
use logstead_sql_catalog::write_errors::conflict_with_recovery;
use logstead_sql_catalog::{Catalog, CommitToken};
use logstead_sql_ddl as ddl;
use logstead_sql_parse::Parsed;
use logstead_sql_parse::ast::{
    IsolationLevel, LockMode, Stmt, TransactionMode, TransactionStmtKind,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::{DatabaseId, SqlState};
use std::sync::Arc;
use std::time::Duration;

fn wrong_token(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        .hint("Ask the primary of this database for SELECT logstead_commit_token().")
}

fn check_database(token: CommitToken, database: DatabaseId) -> Result<()> {
    match token.database == database {
        true => Ok(()),
        false => Err(wrong_token("the commit token is of another database")),
    }
}

fn not_reached() -> SqlError {
    let message = "timed out while waiting for the commits that logstead.read_after tells of";
    SqlError::new(SqlState::QUERY_CANCELED, message)
        .hint("logstead_replica tells how far the replica has come. logstead.read_after_timeout is how long a statement waits.")
}

/// 0A000: no transaction of a replica is certified against those of its primary.
fn no_serializable() -> SqlError {
    SqlError::unsupported_text("cannot use serializable mode in a hot standby")
}

impl Session {
    /// Does the server follow another one's log?
    #[inline]
    pub(super) fn is_at_replica(&self) -> bool {
        self.worker.instance.store.is_replica()
    }

    /// Before a plan is trusted: takes the snapshot that the statement is to run with, whose catalog is looked at next.
    pub(super) async fn take_view(&mut self) -> Result<()> {
        // What older portals have still to give is of before.
        self.settle_suspended().await?;
        let stable = self.stable > 0;
        let open = self.transaction()?;
        if stable && open.txn.has_seen() {
            return Ok(());
        }
        open.txn.begin_statement();
        open.txn.snapshot();
        open.has_view = true;
        Ok(())
    }

    /// Waits until snapshots, and the catalogs that belong to them, have all that `logstead.read_after` tells of. To be
    /// asked before a statement looks anything up: tables may be among it.
    #[inline]
    pub(super) async fn follow_token(&mut self) -> Result<()> {
        match self.is_at_replica() {
            // Few come here: the future of the others stays small.
            true => Box::pin(self.wait_for_commits()).await,
            false => Ok(()),
        }
    }

    async fn wait_for_commits(&mut self) -> Result<()> {
        // What a STABLE function reads is what the statement around it reads.
        if self.stable > 0 {
            return Ok(());
        }
        let (token, timeout_ms) = {
            let settings = self.context.settings.borrow();
            let typed = settings.typed();
            (typed.read_after, typed.read_after_timeout_ms)
        };
        let store = &self.worker.instance.store;
        let (Some(token), Some(status)) = (token, store.replica_status()) else {
            return Ok(());
        };
        check_database(token, self.worker.instance.engine.database())?;
        let visible = status.visible();
        let is_fixed = |txn: &Txn| txn.isolation() != Isolation::ReadCommitted && txn.has_seen();
        let open = self.open.as_mut().map(|open| &mut open.txn);
        if let Some(txn) = open.filter(|txn| is_fixed(txn)) {
            return match txn.snapshot() >= token.next {
                true => Ok(()),
                false => Err(SqlError::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "the transaction's snapshot lacks commits that logstead.read_after tells of",
                )
                .hint(
                    "Set it before the transaction's first query, or outside of the transaction.",
                )),
            };
        }
        if visible.get() >= token.next.get() {
            return Ok(());
        }
        let limits = StatementTimeouts {
            lock_ms: 0,
            ..self.limits()
        };
        let wait = Watermark::wait(visible, token.next.get());
        run_with_limits(&self.signals, limits, async {
            let reached = match timeout_ms {
                0 => wait.await,
                ms => tokio::time::timeout(Duration::from_millis(ms), wait)
                    .await
                    .map_err(|_elapsed| not_reached())?,
            };
            reached.map_err(|failed| SqlError::internal(failed.to_string()))
        })
        .await
    }

    /// A token that is set must be of this database, and at a primary tell of commits that there are.
    pub(super) fn check_commit_token(&self, token: &str) -> Result<()> {
        let Ok(token) = token.parse::<CommitToken>() else {
            return Ok(());
        };
        let engine = &self.worker.instance.engine;
        check_database(token, engine.database())?;
        match !self.is_at_replica() && engine.next_csn() < token.next {
            true => Err(wrong_token(
                "the commit token tells of commits that there are not",
            )),
            false => Ok(()),
        }
    }

    /// 40001 unless the snapshot that is read with is one that the catalog belongs to. Only a plan that was made ahead
    /// of its run may find another one.
    pub(super) fn check_seen(&mut self, catalog: &Arc<Catalog>) -> Result<()> {
        let database = self.database;
        let store = Arc::clone(&self.worker.instance.store);
        let open = self.transaction()?;
        let seen = store.catalog_seen(database, open.txn.snapshot())?;
        // What a session has for itself lies over it.
        if seen.is_some_and(|seen| seen.version == catalog.published_version()) {
            return Ok(());
        }
        Err(conflict_with_recovery())
    }

    /// 0A000 for modes of a transaction that a replica does not have.
    pub(super) fn refuse_modes_at_replica(&self, modes: &[TransactionMode]) -> Result<()> {
        for mode in modes {
            match mode {
                TransactionMode::ReadOnly(false, _) => {
                    self.refuse_read_write_at_replica()?;
                }
                TransactionMode::Isolation(IsolationLevel::Serializable, _) => {
                    self.refuse_serializable_at_replica()?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn refuse_read_write_at_replica(&self) -> Result<()> {
        match self.is_at_replica() {
            true => Err(SqlError::unsupported_text(
                "cannot set transaction read-write mode during recovery",
            )),
            false => Ok(()),
        }
    }

    pub(super) fn refuse_serializable_at_replica(&self) -> Result<()> {
        match self.is_at_replica() {
            true => Err(no_serializable().hint("You can use REPEATABLE READ instead.")),
            false => Ok(()),
        }
    }

    /// The same of a transaction that begins, whose level nobody has named.
    pub(super) fn refuse_default_serializable(&self, isolation: Isolation) -> Result<()> {
        if isolation != Isolation::Serializable || !self.is_at_replica() {
            return Ok(());
        }
        Err(no_serializable()
            .detail("\"default_transaction_isolation\" is set to \"serializable\".")
            .hint("You can use \"SET default_transaction_isolation = 'repeatable read'\" to change the default."))
    }

    /// Does the statement change objects that the session has for itself, and nothing else? Those of a replica's
    /// session are its own, though its transactions are read-only.
    pub(super) fn is_of_own_objects(&mut self, stmt: &Stmt) -> bool {
        // The past has none.
        if !self.is_at_replica() || self.reads_as_of() {
            return false;
        }
        let Ok(catalog) = self.catalog() else {
            return false;
        };
        let path = self.context.path_in(&catalog);
        ddl::is_of_own_objects(stmt, self.context.lookup(&catalog, &path))
    }

    /// 25006 for statements that a replica does not run though they are fit for a read-only transaction.
    pub(super) fn refuse_during_recovery(&mut self, parsed: &Parsed) -> Result<()> {
        if !self.is_at_replica() {
            return Ok(());
        }
        let stmt: &Stmt = &parsed.statement;
        let what = match stmt {
            Stmt::Lock(lock) => match lock.mode {
                LockMode::AccessShare | LockMode::RowShare | LockMode::RowExclusive => {
                    return Ok(());
                }
                _ => stmt.tag(),
            },
            Stmt::Transaction(transaction) => match transaction.kind {
                TransactionStmtKind::Prepare(_) => stmt.tag(),
                _ => return Ok(()),
            },
            Stmt::Copy(copy) if !copy.is_from => return Ok(()),
            Stmt::Copy(_) | Stmt::Vacuum(_) | Stmt::Cluster(_) | Stmt::Reindex(_)
                if self.is_of_own_objects(stmt) =>
            {
                return Ok(());
            }
            Stmt::Copy(_)
            | Stmt::Listen(_)
            | Stmt::Notify(_)
            | Stmt::CheckPoint
            | Stmt::Vacuum(_)
            | Stmt::Cluster(_)
            | Stmt::Reindex(_) => stmt.tag(),
            _ => return Ok(()),
        };
        Err(SqlError::during_recovery(what))
    }
}
