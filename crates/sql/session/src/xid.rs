//! What functions and system columns tell of transactions by their ids.

use super::context::SessionContext;
use logstead_engine::{CommitWait, Txn, VersionId, XidStatus};
use logstead_sql_catalog::commit_error;
use logstead_sql_plan::bind::system_column::xid;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::snapshot::snapshot;
use logstead_types::{Csn, SqlState};
use std::pin::pin;

/// What PostgreSQL tells the age of an id that is no transaction's with.
const AGE_MAX: i32 = i32::MAX;

impl SessionContext {
    /// The id of the running transaction, which is given one if it has none.
    fn own_xid(&self) -> Result<u64> {
        if let Some(own) = self.xid.borrow().as_ref() {
            return Ok(own.number());
        }
        if self.instance.store.is_replica() {
            return Err(SqlError::during_recovery("pg_current_xact_id()"));
        }
        let assigned = logstead_fiber::wait(pin!(self.worker.assign_xid()));
        let assigned = assigned.ok_or_else(|| {
            // Nobody's statement, or one that ends.
            SqlError::new(
                SqlState::QUERY_CANCELED,
                "a transaction id cannot be waited for",
            )
        })?;
        let own = assigned.map_err(|error| commit_error(&error))?;
        let number = own.number();
        *self.xid.borrow_mut() = Some(own);
        Ok(number)
    }

    /// What is told rests on everything with a CSN below: it is told when that is durable (T1).
    fn depend_on_all_before(&self, end: u64) {
        if let Some(last) = end.checked_sub(1) {
            let all = CommitWait::floor(Csn(last));
            self.depends_on.borrow_mut().merge(&all);
        }
    }

    /// `pg_current_snapshot()`: which ids the statement's snapshot sees.
    pub(super) fn snapshot_of(&self, txn: &mut Txn) -> Result<Datum> {
        let seen = self.worker.engine().xid_snapshot(txn.snapshot());
        let seen = seen.ok_or_else(|| {
            SqlError::new(
                SqlState::SNAPSHOT_TOO_OLD,
                "which transactions ran when the snapshot was taken is not known any more",
            )
        })?;
        // Who is no more among those that run has ended, durably.
        self.depend_on_all_before(seen.end);
        let end = seen.end.cast_signed();
        let mut running = seen.running.into_iter().map(u64::cast_signed).peekable();
        let xmin = running.peek().copied().unwrap_or(end);
        Ok(snapshot(xmin, end, running))
    }

    /// The id of the transaction that has written a version of a row, by its token: `xmin`.
    pub(super) fn version_xmin(&self, token: i64) -> Result<Datum> {
        let by = VersionId::of_token(token).written_by();
        Ok(Datum::Oid(xid(match by {
            Ok(csn) => self.worker.engine().xid_of(csn),
            Err(_) => self.own_xid()?,
        })))
    }

    /// The id of the transaction that has written over it, of a version that the statement has: `xmax`.
    pub(super) fn version_xmax(&self, token: i64) -> Result<Datum> {
        Ok(Datum::Oid(
            match VersionId::of_token(token).is_written_over() {
                true => xid(self.own_xid()?),
                false => 0,
            },
        ))
    }

    /// Which command of the running transaction has written it; 0 of others: `cmin`.
    pub(super) fn version_cmin(token: i64) -> Datum {
        let by = VersionId::of_token(token).written_by();
        Datum::Oid(by.err().map_or(0, |command| command.saturating_sub(1)))
    }

    /// `pg_current_xact_id()`
    pub(super) fn current_xact_id(&self) -> Result<Datum> {
        Ok(Datum::Int8(self.own_xid()?.cast_signed()))
    }

    /// `pg_current_xact_id_if_assigned()`
    pub(super) fn current_xact_id_if_assigned(&self) -> Datum {
        let own = self.xid.borrow();
        own.as_ref()
            .map_or(Datum::Null, |own| Datum::Int8(own.number().cast_signed()))
    }

    /// `age(xid)`
    pub(super) fn xid_age(&self, of: u32) -> Datum {
        Datum::Int4(match of {
            // Those of catalogs are always seen.
            0..3 => AGE_MAX,
            of => xid(self.worker.engine().next_csn().get())
                .wrapping_sub(of)
                .cast_signed(),
        })
    }

    /// `pg_xact_status`
    pub(super) fn xact_status(&self, of: i64) -> Result<Datum> {
        let engine = self.worker.engine();
        Ok(match engine.xid_status(of.cast_unsigned()) {
            XidStatus::InProgress => Datum::text("in progress"),
            XidStatus::Committed => {
                self.depend_on_all_before(engine.next_csn().get());
                Datum::text("committed")
            }
            XidStatus::Aborted => Datum::text("aborted"),
            XidStatus::Forgotten => Datum::Null,
            XidStatus::Future => {
                let message = format!("transaction ID {of} is in the future");
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        })
    }
}
