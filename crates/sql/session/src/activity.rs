//! What each session is doing, for the others to see: `pg_stat_activity`, the statistics of statements and the log of
//! slow ones.
//!
//! Owns: when the part of a session changes that any thread may look at (`BackendStatus`): a statement begins, the
//! session waits for its client.
//!
//! A statement is over when the next one begins or when all there is to tell the client is durable and about to be
//! sent: so its time has the wait for the log in it, as a client sees it, and who has an answer finds the session at
//! rest. Of a long text the beginning is kept, in a buffer that is used again.

use super::Session;
use super::cached_plan::Statement;
use super::context::SessionContext;
use super::instance::Instance;
use super::statement_statistics::PgssEntry;
use crate::backend_status::BackendState;
use crate::cached_plan::ParsedText;
use logstead_engine::{LockWaitInfo, TxnId};
use logstead_sql_catalog::context::BackendActivity;
use logstead_sql_catalog::context::RoleContext;
use logstead_sql_catalog::role::{READ_ALL_STATS, Roles, SIGNAL_BACKEND};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Array, Datum, Inet, oid};
use logstead_sql_types::{DatabaseOid, RoleId};
use logstead_types::SqlState;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The statement that a session is at, until its time is known.
pub(super) struct RunningStatement {
    /// Microseconds since 2000-01-01 UTC.
    since: i64,
    text: Rc<ParsedText>,
    counted: Option<Arc<PgssEntry>>,
}

impl Instance {
    /// Everybody's row of `pg_stat_activity`, by process number.
    fn activity(&self, may_see: impl Fn(Option<RoleId>) -> bool) -> Vec<BackendActivity> {
        let waits: HashMap<TxnId, LockWaitInfo> = self.lock_waits();
        let mut rows = Vec::new();
        self.each_session(|pid, live, _| {
            let mut row = live.row(pid, &may_see);
            if row.state == Some(BackendState::Active.name()) {
                let (transaction, waits_for_prior) = {
                    let now = live.0.lock();
                    (now.transaction, now.waits_for_prior)
                };
                let waiting = transaction.and_then(|txn| waits.get(&txn));
                row.waits_for_lock = match waiting {
                    Some(waiting) if waiting.table.is_some() => Some("relation"),
                    Some(_) => Some("transactionid"),
                    None => waits_for_prior.then_some("transactionid"),
                };
            }
            rows.push(row);
        });
        for row in &mut rows {
            if row.state.is_some() && self.advisory.is_waiting(row.pid) {
                row.waits_for_lock = Some("advisory");
            }
        }
        rows.sort_by_key(|row| row.pid);
        rows
    }

    fn lock_waits(&self) -> HashMap<TxnId, LockWaitInfo> {
        let all = self.engine.lock_waits().into_iter();
        all.map(|waiting| (waiting.waiter, waiting)).collect()
    }

    /// The sessions that are in the way of one, each once. Not told of is who reads or writes a table for the first
    /// time of its transaction in a statement that is still running.
    pub(super) fn blocking(&self, pid: i32) -> Vec<i32> {
        self.in_the_way(pid, true)
    }

    /// The same; `undone` says whether those count whose prior transaction it is that is undone behind them: it waits
    /// for nobody, whatever they wait for.
    pub(super) fn in_the_way(&self, pid: i32, undone: bool) -> Vec<i32> {
        let mut transaction = None;
        self.each_session(|other, live, _| {
            if other == pid {
                transaction = live.0.lock().transaction;
            }
        });
        let mut found = self.advisory.blocking(pid);
        let waits = self.lock_waits();
        if let Some(waiting) = transaction.and_then(|txn| waits.get(&txn)) {
            self.each_session(|other, live, _| {
                let now = live.0.lock();
                let prior = now.prior.as_ref().filter(|_| undone);
                let mut own = now.transaction.into_iter().chain(prior.map(|f| f.0));
                let known = own.any(|txn| waiting.blockers.contains(&txn));
                let holds = waiting.table.is_some_and(|(table, lock)| {
                    let undone = prior.into_iter().flat_map(|(_, tables)| tables);
                    let mut held = now.tables.iter().chain(undone);
                    held.any(|(other, held)| *other == table && held.conflicts(lock))
                });
                if other != pid && (known || holds) {
                    found.push(other);
                }
            });
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl SessionContext {
    pub(super) fn activity_rows(&self) -> Vec<BackendActivity> {
        let roles = self.roles(&self.catalog.borrow());
        let me = self.current_role();
        let sees_all = roles.has_privileges_of(me, READ_ALL_STATS);
        self.instance
            .activity(|role| sees_all || role.is_some_and(|role| roles.has_privileges_of(me, role)))
    }

    /// `pg_blocking_pids`
    pub(super) fn blocking_pids(&self, pid: i32) -> Datum {
        let pids = self.instance.blocking(pid).into_iter().map(Datum::Int4);
        Datum::Array(Arc::new(Array {
            element: oid::INT4,
            lower: 1,
            shape: None,
            items: pids.collect(),
        }))
    }

    /// `pg_isolation_test_session_is_blocked`: by one of these.
    pub(super) fn is_blocked_by(&self, pid: i32, interesting: &Array) -> bool {
        let blocking = self.instance.blocking(pid);
        let is_in_the_way =
            |item: &Datum| matches!(item, Datum::Int4(pid) if blocking.contains(pid));
        interesting.items.iter().any(is_in_the_way)
    }

    /// The address of an end of the connection: `inet_client_addr` and its kin. A socket of the machine has none.
    pub(super) fn address_of(end: Option<SocketAddr>) -> Datum {
        end.map_or(Datum::Null, |end| {
            let address = end.ip().to_canonical().to_string();
            Inet::parse(&address, false).map_or(Datum::Null, Datum::inet)
        })
    }

    /// Its port.
    pub(super) fn port_of(end: Option<SocketAddr>) -> Datum {
        end.map_or(Datum::Null, |end| Datum::Int4(i32::from(end.port())))
    }

    /// `pg_cancel_backend` and `pg_terminate_backend`
    pub(super) fn signal_backend(&self, terminate: bool, args: &[Datum]) -> Result<Datum> {
        let Some(Datum::Int4(pid)) = args.first() else {
            return Err(SqlError::internal("a process number was expected"));
        };
        if matches!(args.get(1), Some(Datum::Int8(..0))) {
            return Err(SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "\"timeout\" must not be negative",
            ));
        }
        let roles = self.roles(&self.catalog.borrow());
        let mut found = None;
        self.instance.each_session(|other, live, signals| {
            if other == *pid {
                found = Some((live.role(), Arc::clone(signals)));
            }
        });
        let Some((role, signals)) = found else {
            self.warnings
                .borrow_mut()
                .push(format!("PID {pid} is not a PostgreSQL backend process"));
            return Ok(Datum::Bool(false));
        };
        may_signal(&roles, self.current_role(), role, terminate)?;
        if matches!(args.get(1), Some(Datum::Int8(timeout)) if *timeout != 0) {
            return Err(SqlError::unsupported("pg_terminate_backend with a timeout"));
        }
        if terminate {
            signals.terminate();
        } else {
            signals.cancel();
        }
        Ok(Datum::Bool(true))
    }

    /// Ends all sessions in a database, or none if the role may not end one of them.
    pub(super) fn end_sessions_in(&self, database: DatabaseOid) -> Result<()> {
        let mut found = Vec::new();
        self.instance.each_session(|_, live, signals| {
            if live.database() == database {
                found.push((live.role(), Arc::clone(signals)));
            }
        });
        let roles = self.roles(&self.catalog.borrow());
        for (role, _) in &found {
            may_signal(&roles, self.current_role(), *role, true)?;
        }
        for (_, signals) in found {
            signals.terminate();
        }
        Ok(())
    }
}

/// 42501 unless `me` may end a statement or session of `role`, which is not known of a session that begins.
fn may_signal(roles: &Roles, me: RoleId, role: Option<RoleId>, terminate: bool) -> Result<()> {
    let message = if role.is_some_and(|role| roles.is_superuser(role)) && !roles.is_superuser(me) {
        match terminate {
            true => "must be a superuser to terminate superuser process",
            false => "must be a superuser to cancel superuser query",
        }
    } else if role.is_some_and(|role| roles.has_privileges_of(me, role))
        || roles.has_privileges_of(me, SIGNAL_BACKEND)
    {
        return Ok(());
    } else {
        match terminate {
            true => {
                "must be a member of the role whose process is being terminated or member of pg_signal_backend"
            }
            false => {
                "must be a member of the role whose query is being canceled or member of pg_signal_backend"
            }
        }
    };
    Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
}

impl Session {
    /// A statement begins, at the time that the context knows.
    pub(super) fn report_activity(&mut self, text: &str) {
        let since = self.context.statement_time.get();
        self.account(since);
        let transaction_start = match self.in_transaction() {
            true => self.context.transaction_time.get(),
            false => since,
        };
        self.context.live.runs(text, since, transaction_start);
    }

    /// A statement of a text is about to run: its time is counted from here.
    pub(super) fn begin_timing(&mut self, statement: &Statement) {
        let since = self.context.statement_time.get();
        let tracked = self.context.settings.borrow().typed().track_statements;
        let counted = match tracked && statement.parsed().is_some() {
            true => Some(self.counted(statement)),
            false => None,
        };
        self.running = Some(RunningStatement {
            since,
            text: Rc::clone(&statement.text),
            counted,
        });
        self.context.rows.set(0);
    }

    /// What the session is about to tell its client is all there is to tell: its statement is over.
    pub fn waits_for_client(&mut self) {
        let state = match self.status() {
            b'T' => BackendState::InTransaction,
            b'E' => BackendState::Failed,
            _ => BackendState::Idle,
        };
        let now = self.context.wall_clock();
        self.account(now);
        let transaction_start =
            (state != BackendState::Idle).then(|| self.context.transaction_time.get());
        let undone = self.subtransaction.as_ref().map(|part| part.open());
        let open = undone.as_deref().map_or(self.open.as_ref(), Option::as_ref);
        let open = open.filter(|_| state != BackendState::Idle);
        let tables = open.into_iter().flat_map(|open| open.txn.tables_held());
        self.context
            .live
            .rests(state, now, transaction_start, tables);
    }

    /// The statement that was running, if there was one, is over.
    fn account(&mut self, now: i64) {
        let Some(running) = self.running.take() else {
            return;
        };
        let took_us = now.saturating_sub(running.since).max(0);
        if let Some(counted) = &running.counted {
            counted.add(took_us, self.context.rows.get());
        }
        let least_ms = self.context.settings.borrow().typed().log_min_duration_ms;
        if least_ms >= 0 && took_us >= least_ms.saturating_mul(1000) {
            tracing::info!(
                pid = self.context.pid,
                user = %self.context.user,
                database = %self.context.database,
                "duration: {}.{:03} ms  statement: {}",
                took_us / 1000,
                took_us % 1000,
                running.text.text
            );
        }
    }

    /// The statement failed: its time is none that counts.
    pub(super) fn forget_running(&mut self) {
        if let Some(running) = &mut self.running {
            running.counted = None;
        }
    }
}
