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

    /// `txid_current` and its kin, and the system columns; nothing if it is another function.
    pub(super) fn xid_call(&self, name: &str, args: &[Datum]) -> Result<Option<Datum>> {
        let engine = self.worker.engine();
        let number = |xid: u64| Datum::Int8(xid.cast_signed());
        Ok(Some(match (name, args) {
            ("txid_current", _) => number(self.own_xid()?),
            ("txid_current_if_assigned", _) => {
                let own = self.xid.borrow();
                own.as_ref().map_or(Datum::Null, |own| number(own.number()))
            }
            ("xmin of a version", [Datum::Int8(token)]) => {
                Datum::Oid(xid(match VersionId::of_token(*token).written_by() {
                    Ok(csn) => engine.xid_of(csn),
                    Err(_) => self.own_xid()?,
                }))
            }
            ("xmax of a version", [Datum::Int8(token)]) => {
                match VersionId::of_token(*token).is_written_over() {
                    true => Datum::Oid(xid(self.own_xid()?)),
                    false => Datum::Oid(0),
                }
            }
            ("cmin of a version", [Datum::Int8(token)]) => {
                let by = VersionId::of_token(*token).written_by();
                Datum::Oid(by.err().map_or(0, |command| command.saturating_sub(1)))
            }
            ("age of a transaction", [Datum::Oid(of)]) => Datum::Int4(match of {
                // Those of catalogs are always seen.
                0..3 => AGE_MAX,
                of => xid(engine.next_csn().get()).wrapping_sub(*of).cast_signed(),
            }),
            ("status of a transaction", [Datum::Int8(of)]) => {
                match engine.xid_status(of.cast_unsigned()) {
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
                }
            }
            _ => return Ok(None),
        }))
    }
}
