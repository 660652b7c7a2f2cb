//! Reads of the past: `logstead.as_of`, and AS OF at the end of a statement.
//!
//! The setting names a point in time or a restore point. It is looked up once, when it is set (or before the first
//! statement, if the session began with it), and the session reads that very point until it is set anew: what retention
//! thins out, or somebody drops, meanwhile, is not taken away from it. Every transaction that begins while it is set
//! reads the past and is read-only. It takes effect for the next transaction, or for the one whose BEGIN has been said
//! and that has read nothing; later than that it is refused.
//!
//! Invariants:
//! - A transaction reads the past as a whole or the present as a whole: which, is kept with it from its begin on
//!   ([`OpenTransaction`](crate::open_transaction::OpenTransaction)).
//! - While the setting names a point that is not opened no statement gets a catalog ([`Session::catalog`]): nobody is
//!   given the present who has asked for the past.
//! - What is planned for the past is planned with its catalog, and finds its tables by that alone ([`Catalog::table`]).
//!
//! AS OF in a statement is the setting for that statement alone: the point is looked up when it is prepared, to plan it
//! with the point's catalog, and anew whenever it runs; it has a transaction of its own, which ends with it, so nothing
//! else reads that past ([`Session::as_of_clause`],
//! [`OpenTransaction::is_of_clause`](crate::open_transaction::OpenTransaction)). Where there is a transaction already
//! it is
//! refused, unless that reads the same point.
//!
//! The engine's transaction is READ COMMITTED whatever level SQL shows: what it reads never changes, so each level is
//! the strictest, and nothing of the present is kept for it.

use super::as_of_catalogs::AsOfCatalogs;
use super::cached_plan::{Statement, StatementDescription};
use super::client::Client;
use super::{BlockState, Session};
use crate::as_of_snapshot::{AS_OF, AsOfSnapshot, as_of_too_late};
use crate::limits::{StatementTimeouts, run_with_limits};
use logstead_engine::{AsOfDatabase, Isolation, RecoveryTarget};
use logstead_sql_exec::wait::{WaitReason, wait_for};
use logstead_sql_func as func;
use logstead_sql_parse::ast::Stmt;
use logstead_sql_parse::{AsOf, AsOfPoint};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::DateTimeContext;
use logstead_sql_types::value::{self, Datum, SqlType, datetime, oid};
use logstead_types::SqlState;
use std::rc::Rc;
use std::sync::Arc;

/// Who names a point.
#[derive(Clone, Copy)]
enum AsOfOrigin {
    Setting,
    /// AS OF; does it say that it names a time?
    Clause {
        is_time: bool,
    },
}

impl Session {
    /// The point that the open transaction reads, or that the next one will.
    pub(super) fn as_of_snapshot(&self) -> Option<&Rc<AsOfSnapshot>> {
        if self.as_of_clause.is_some() {
            return self.as_of_clause.as_ref();
        }
        match &self.open {
            Some(open) => open.as_of_snapshot.as_ref(),
            None => self.as_of_snapshot.as_ref(),
        }
    }

    /// Is what the setting names what the next transaction would read?
    pub(super) fn follows_as_of(&self) -> bool {
        if self.as_of_clause.is_some() {
            return true;
        }
        let settings = self.context.settings.borrow();
        let wanted = &settings.typed().as_of;
        match &self.as_of_snapshot {
            None => wanted.is_empty(),
            Some(as_of_snapshot) => as_of_snapshot.value == *wanted,
        }
    }

    /// Opens what the setting names, unless a transaction is open or it is opened already.
    pub(super) async fn follow_as_of(&mut self) -> Result<()> {
        if self.open.is_some() || self.follows_as_of() {
            return Ok(());
        }
        let wanted = Rc::clone(&self.context.settings.borrow().typed().as_of);
        let as_of_snapshot = match wanted.is_empty() {
            true => None,
            false => Some(self.open_as_of(&wanted).await?),
        };
        self.read(as_of_snapshot);
        Ok(())
    }

    fn read(&mut self, as_of_snapshot: Option<Rc<AsOfSnapshot>>) {
        let shown = as_of_snapshot
            .as_ref()
            .map(|as_of_snapshot| self.shown_point(&as_of_snapshot.past));
        *self.context.as_of_point.borrow_mut() = shown.unwrap_or_default();
        self.as_of_snapshot = as_of_snapshot;
    }

    /// SET logstead.as_of is about to be done: opens the point, and tells which it is.
    pub(super) async fn before_as_of(
        &mut self,
        value: &str,
        client: &mut dyn Client,
    ) -> Result<()> {
        if self.open.is_some() {
            return Err(as_of_too_late());
        }
        if value.is_empty() {
            return Ok(());
        }
        let as_of_snapshot = self.open_as_of(value).await?;
        let shown = self.shown_point(&as_of_snapshot.past);
        self.read(Some(as_of_snapshot));
        if self.context.settings.borrow().typed().notices {
            let message = format!("transactions read the database as of {shown}");
            let notice = SqlError::new(SqlState::SUCCESSFUL_COMPLETION, message);
            client.notice("NOTICE", notice.fields());
        }
        Ok(())
    }

    pub(super) async fn open_as_of(&mut self, value: &str) -> Result<Rc<AsOfSnapshot>> {
        let which = self.point(value, AsOfOrigin::Setting)?;
        self.open_point(&which, value, AsOfOrigin::Setting).await
    }

    async fn open_point(
        &mut self,
        which: &RecoveryTarget,
        value: &str,
        asker: AsOfOrigin,
    ) -> Result<Rc<AsOfSnapshot>> {
        let engine = self.worker.instance.engine.clone();
        let past = engine.past(which);
        let past =
            past.ok_or_else(|| self.no_point(value, asker, "There is none that is old enough."))?;
        let signals = Arc::clone(&self.signals);
        // No lock is waited for.
        let limits = StatementTimeouts {
            lock_ms: 0,
            ..self.limits()
        };
        let store = Arc::clone(&self.worker.instance.store);
        let now = store.current_by_oid(self.database);
        let mut txn = self.worker.worker.begin(Isolation::ReadCommitted);
        let read = async {
            while let Err(absent) = past.opened() {
                wait_for(WaitReason::Absent(absent), &mut txn, signals.statement()).await?;
            }
            let live = now.and_then(|catalog| catalog.notes.live.clone());
            let version = || store.new_version();
            AsOfCatalogs::of(&past, &mut txn, signals.statement(), live, version).await
        };
        let catalogs = run_with_limits(&signals, limits, read).await?;
        let catalog = catalogs.database(self.database).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_CATALOG_NAME,
                format!("database \"{}\" did not exist", self.context.database),
            )
        })?;
        Ok(Rc::new(AsOfSnapshot {
            value: value.into(),
            catalog: Arc::clone(catalog),
            past,
        }))
    }

    /// The point that a clause names.
    async fn open_clause(
        &mut self,
        as_of: &AsOf,
        params: &[Datum],
        types: &[SqlType],
    ) -> Result<Rc<AsOfSnapshot>> {
        let asker = AsOfOrigin::Clause {
            is_time: as_of.is_time,
        };
        let text;
        let value = match &as_of.point {
            AsOfPoint::Text(value) => value,
            AsOfPoint::Parameter(at) => match params.get(*at) {
                Some(Datum::Text(value)) => {
                    text = value.to_string();
                    &text
                }
                Some(Datum::TimestampTz(micros)) => {
                    text = self.time(*micros);
                    return self
                        .open_point(&RecoveryTarget::At(*micros), &text, asker)
                        .await;
                }
                Some(datum @ (Datum::Timestamp(_) | Datum::Date(_))) => {
                    let mut out = Vec::new();
                    let ty = types.get(*at).copied().unwrap_or(SqlType::of(oid::TEXT));
                    let style = self.context.output_style();
                    value::text_io::output(datum, ty, &style, &mut out)?;
                    text = String::from_utf8_lossy(&out).into_owned();
                    &text
                }
                Some(Datum::Null) => {
                    return Err(SqlError::new(
                        SqlState::NULL_VALUE_NOT_ALLOWED,
                        "AS OF must not be null",
                    ));
                }
                Some(_) => {
                    return Err(SqlError::new(
                        SqlState::DATATYPE_MISMATCH,
                        "AS OF takes a time or the name of a restore point",
                    ));
                }
                None => {
                    return Err(SqlError::new(
                        SqlState::UNDEFINED_PARAMETER,
                        format!("there is no parameter ${}", *at + 1),
                    ));
                }
            },
        };
        let which = self.point(value, asker)?;
        self.open_point(&which, value, asker).await
    }

    /// What a statement takes and gives, as of the past that it names, if that can be known before it runs.
    pub(super) async fn describe_as_of(
        &mut self,
        statement: &Statement,
    ) -> Result<Rc<StatementDescription>> {
        let named = statement
            .as_of()
            .filter(|as_of| matches!(as_of.point, AsOfPoint::Text(_)));
        let Some(as_of) = named.cloned() else {
            return self.describe(statement);
        };
        let as_of_snapshot = self.open_clause(&as_of, &[], &[]).await;
        let as_of_snapshot = as_of_snapshot.map_err(|error| error.at(Some(as_of.position)))?;
        let before = self.as_of_clause.replace(as_of_snapshot);
        let description = self.describe(statement);
        self.as_of_clause = before;
        description
    }

    /// A statement is about to be planned and run: if it names a past it has a transaction of its own, which reads
    /// that.
    pub(super) async fn enter_as_of(
        &mut self,
        statement: &Statement,
        params: &[Datum],
    ) -> Result<()> {
        // PREPARE reads nothing: its clause is that of what it prepares.
        let reads = statement
            .parsed()
            .filter(|_| !matches!(statement.utility(), Some(Stmt::Prepare(_))));
        let Some(as_of) = reads.and_then(|parsed| parsed.as_of.clone()) else {
            return Ok(());
        };
        let description = statement.description.borrow().clone();
        let types =
            description.map_or_else(Vec::new, |description| description.param_types.clone());
        let as_of_snapshot = self.open_clause(&as_of, params, &types).await;
        let as_of_snapshot = as_of_snapshot.map_err(|error| error.at(Some(as_of.position)))?;
        if self.open.is_none() && !self.context.in_block.get() {
            let shown = self.shown_point(&as_of_snapshot.past);
            self.context.clause_point.replace(Some(shown));
            self.as_of_clause = Some(as_of_snapshot);
            return Ok(());
        }
        match self.as_of_snapshot() {
            Some(now) if Arc::ptr_eq(&now.past, &as_of_snapshot.past) => Ok(()),
            _ => Err(SqlError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "a statement with AS OF cannot run inside a transaction that does not read that point",
            )
            .hint("Run it by itself, or have the whole transaction read the past with SET LOCAL logstead.as_of.")
            .at(Some(as_of.position))),
        }
    }

    /// The clause of the statement before is not that of the next one.
    pub(super) fn forget_clause(&mut self) {
        self.as_of_clause = None;
        self.context.clause_point.take();
    }

    /// Is a transaction open that belongs to a statement with AS OF?
    pub(super) fn is_held_by_as_of(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_of_clause)
    }

    /// 25001: a statement with AS OF has rows left to give, and its transaction is its own.
    pub(super) fn refuse_beside_as_of(&self) -> Result<()> {
        match self.is_held_by_as_of() {
            false => Ok(()),
            true => Err(SqlError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "a statement with AS OF has not given all of its rows: nothing else runs in its transaction",
            )),
        }
    }

    /// What a value names: a restore point, if there is one of that name, else a point in time.
    fn point(&self, value: &str, asker: AsOfOrigin) -> Result<RecoveryTarget> {
        let names = match asker {
            AsOfOrigin::Setting => true,
            AsOfOrigin::Clause { is_time } => !is_time,
        };
        let points = self.worker.instance.engine.restore_points();
        let is_name = |name: &Option<String>| name.as_deref() == Some(value);
        if names && points.iter().any(|point| is_name(&point.name)) {
            return Ok(RecoveryTarget::Named(value.to_owned()));
        }
        if self.block == BlockState::None {
            // 'now' and its kin ask for it, and a transaction has not begun.
            let now = self.context.statement_time.get();
            self.context.transaction_time.set(now);
        }
        // '-10 s' is that long ago, where a statement says so.
        if !matches!(asker, AsOfOrigin::Setting)
            && value.trim_start().starts_with('-')
            && let Ok(ago) = datetime::parse_interval(value)
        {
            let now = self.context.statement_time.get();
            let zone = self.context.time_zone();
            return Ok(RecoveryTarget::At(func::add_to_timestamptz(
                now, &ago, zone,
            )?));
        }
        let time = datetime::parse_timestamptz(value, Some(&*self.context));
        let time = time.map_err(|_| {
            let why = "There is no restore point of that name, and it is no point in time.";
            self.no_point(value, asker, why)
        })?;
        Ok(RecoveryTarget::At(time))
    }

    fn no_point(&self, value: &str, asker: AsOfOrigin, why: &str) -> SqlError {
        let oldest = match self.worker.instance.engine.restore_points().first() {
            Some(oldest) => format!(
                "the oldest was taken at {}",
                self.time(oldest.taken_at_micros)
            ),
            None => "there is none yet".to_owned(),
        };
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            match asker {
                AsOfOrigin::Setting => format!("invalid value for parameter \"{AS_OF}\": \"{value}\""),
                AsOfOrigin::Clause { .. } => format!("invalid point in AS OF: \"{value}\""),
            },
        )
        .detail(format!("{why} Of all restore points {oldest}."))
        .hint("logstead_restore_points shows which there are; restore_point_retention and logstead_create_restore_point() keep more.")
    }

    fn time(&self, micros: i64) -> String {
        let ty = SqlType::of(oid::TIMESTAMPTZ);
        let style = self.context.output_style();
        value::text_io::message_text(&Datum::TimestampTz(micros), ty, &style)
    }

    fn shown_point(&self, past: &AsOfDatabase) -> String {
        let names: Vec<String> = past
            .names()
            .iter()
            .map(|name| format!(", restore point \"{name}\""))
            .collect();
        format!(
            "{} (CSN {}{})",
            self.time(past.taken_at_micros()),
            past.csn(),
            names.concat()
        )
    }

    /// The plan's tables have their indexes.
    pub(super) async fn load_indexes(&mut self, tables: &[logstead_types::TableId]) -> Result<()> {
        let Some(as_of_snapshot) = self.as_of_snapshot().cloned() else {
            return Ok(());
        };
        let limits = self.limits();
        let signals = Arc::clone(&self.signals);
        let open = self.transaction()?;
        let bring = async {
            for table in tables {
                while let Err(absent) = as_of_snapshot.past.indexed(*table) {
                    wait_for(
                        WaitReason::Absent(absent),
                        &mut open.txn,
                        signals.statement(),
                    )
                    .await?;
                }
            }
            Ok(())
        };
        run_with_limits(&signals, limits, bring).await
    }

    /// 25006 for what is no query and would do something to the present.
    pub(super) fn refuse_as_of_write(&self, what: &str) -> Result<()> {
        let wanted =
            self.as_of_snapshot().is_some() || (self.open.is_none() && !self.follows_as_of());
        if !wanted {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            format!("cannot execute {what} in a read-only transaction"),
        ))
    }

    /// Does the present block, or the next transaction, read the past?
    pub(super) fn reads_as_of(&self) -> bool {
        match &self.open {
            Some(open) => open.as_of_snapshot.is_some(),
            None if self.as_of_clause.is_some() => true,
            None => !self.context.settings.borrow().typed().as_of.is_empty(),
        }
    }

    /// Outside of a block?
    pub(super) fn is_idle(&self) -> bool {
        self.block == BlockState::None && self.open.is_none()
    }
}
