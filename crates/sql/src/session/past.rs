//! Reads of the past: `logstead.as_of`.
//!
//! The setting names a point in time or a restore point. It is looked up once, when it is set (or before the first statement, if the session began with it), and the session reads that very
//! point until it is set anew: what retention thins out, or somebody drops, meanwhile, is not taken away from it. Every transaction that begins while it is set reads the past and is read-only. It takes
//! effect for the next transaction, or for the one whose BEGIN has been said and that has read nothing; later than that it is refused.
//!
//! Invariants:
//! - A transaction reads the past as a whole or the present as a whole: which, is kept with it from its begin on ([`Open`](super::transaction::Open)).
//! - While the setting names a point that is not opened no statement gets a catalog ([`Session::catalog`]): nobody is given the present who has asked for the past.
//! - What is planned for the past is planned with its catalog, and finds its tables by that alone ([`Catalog::table`]).
//!
//! The engine's transaction is READ COMMITTED whatever level SQL shows: what it reads never changes, so each level is the strictest, and nothing of the present is kept for it.

use super::client::Client;
use super::run::{Limits, guarded};
use super::{Block, Session};
use crate::catalog::{Catalog, PastCatalogs};
use crate::error::{Result, SqlError};
use crate::exec::wait::{Obstacle, wait_for};
use crate::value::{self, Datum, SqlType, datetime, oid};
use logstead_engine::{Isolation, Past, Which};
use logstead_types::SqlState;
use std::rc::Rc;
use std::sync::Arc;

/// The setting.
pub(super) const AS_OF: &str = "logstead.as_of";
/// What it stands for, to be shown.
pub(super) const AS_OF_POINT: &str = "logstead.as_of_point";

/// The point that a session reads.
pub(super) struct Reading {
    /// The setting's value.
    value: Rc<str>,
    pub(super) past: Arc<Past>,
    pub(super) catalog: Arc<Catalog>,
}

/// 25001: the transaction reads what it reads.
pub(super) fn too_late() -> SqlError {
    SqlError::new(
        SqlState::ACTIVE_SQL_TRANSACTION,
        "logstead.as_of must be set before any query",
    )
}

/// A transaction that reads the past does not write.
pub(super) fn read_write() -> SqlError {
    SqlError::unsupported("transaction read-write mode while logstead.as_of is set")
}

/// Is it this setting?
pub(super) fn is_as_of(name: &str) -> bool {
    name.eq_ignore_ascii_case(AS_OF)
}

impl Session {
    /// The point that the open transaction reads, or that the next one will.
    pub(super) fn reading(&self) -> Option<&Rc<Reading>> {
        match &self.open {
            Some(open) => open.reading.as_ref(),
            None => self.reading.as_ref(),
        }
    }

    /// Is what the setting names what the next transaction would read?
    pub(super) fn follows_as_of(&self) -> bool {
        let settings = self.context.settings.borrow();
        let wanted = &settings.typed().as_of;
        match &self.reading {
            None => wanted.is_empty(),
            Some(reading) => reading.value == *wanted,
        }
    }

    /// Opens what the setting names, unless a transaction is open or it is opened already.
    pub(super) async fn follow_as_of(&mut self) -> Result<()> {
        if self.open.is_some() || self.follows_as_of() {
            return Ok(());
        }
        let wanted = Rc::clone(&self.context.settings.borrow().typed().as_of);
        let reading = match wanted.is_empty() {
            true => None,
            false => Some(self.open_past(&wanted).await?),
        };
        self.read(reading);
        Ok(())
    }

    fn read(&mut self, reading: Option<Rc<Reading>>) {
        let shown = reading
            .as_ref()
            .map(|reading| self.shown_point(&reading.past));
        *self.context.as_of_point.borrow_mut() = shown.unwrap_or_default();
        self.reading = reading;
    }

    /// SET logstead.as_of is about to be done: opens the point, and tells which it is.
    pub(super) async fn before_as_of(
        &mut self,
        value: &str,
        client: &mut dyn Client,
    ) -> Result<()> {
        if self.open.is_some() {
            return Err(too_late());
        }
        if value.is_empty() {
            return Ok(());
        }
        let reading = self.open_past(value).await?;
        let shown = self.shown_point(&reading.past);
        self.read(Some(reading));
        if self.context.settings.borrow().typed().notices {
            let message = format!("transactions read the database as of {shown}");
            let notice = SqlError::new(SqlState::SUCCESSFUL_COMPLETION, message);
            client.notice("NOTICE", notice.fields());
        }
        Ok(())
    }

    pub(super) async fn open_past(&mut self, value: &str) -> Result<Rc<Reading>> {
        let which = self.point(value)?;
        let engine = self.worker.instance.engine.clone();
        let past = engine.past(&which);
        let past = past.ok_or_else(|| self.no_point(value, "There is none that is old enough."))?;
        let signals = Arc::clone(&self.signals);
        // No lock is waited for.
        let limits = Limits {
            lock_ms: 0,
            ..self.limits()
        };
        let store = Arc::clone(&self.worker.instance.store);
        let now = store.current_by_oid(self.database);
        let mut txn = self.worker.worker.begin(Isolation::ReadCommitted);
        let read = async {
            while let Err(absent) = past.opened() {
                wait_for(Obstacle::Absent(absent), &mut txn, signals.statement()).await?;
            }
            let live = now.and_then(|catalog| catalog.notes.live.clone());
            let version = || store.new_version();
            PastCatalogs::of(&past, &mut txn, signals.statement(), live, version).await
        };
        let catalogs = guarded(&signals, limits, read).await?;
        let catalog = catalogs.database(self.database).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_CATALOG_NAME,
                format!("database \"{}\" did not exist", self.context.database),
            )
        })?;
        Ok(Rc::new(Reading {
            value: value.into(),
            catalog: Arc::clone(catalog),
            past,
        }))
    }

    /// What a value names: a restore point, if there is one of that name, else a point in time.
    fn point(&self, value: &str) -> Result<Which> {
        let points = self.worker.instance.engine.restore_points();
        let is_name = |name: &Option<String>| name.as_deref() == Some(value);
        if points.iter().any(|point| is_name(&point.name)) {
            return Ok(Which::Named(value.to_owned()));
        }
        if self.block == Block::None {
            // 'now' and its kin ask for it, and a transaction has not begun.
            let now = self.context.statement_time.get();
            self.context.transaction_time.set(now);
        }
        let time = datetime::parse_timestamptz(value, Some(&*self.context));
        let time = time.map_err(|_| {
            let why = "There is no restore point of that name, and it is no point in time.";
            self.no_point(value, why)
        })?;
        Ok(Which::At(time))
    }

    fn no_point(&self, value: &str, why: &str) -> SqlError {
        let oldest = match self.worker.instance.engine.restore_points().first() {
            Some(oldest) => format!(
                "the oldest was taken at {}",
                self.time(oldest.taken_at_micros)
            ),
            None => "there is none yet".to_owned(),
        };
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"{AS_OF}\": \"{value}\""),
        )
        .detail(format!("{why} Of all restore points {oldest}."))
        .hint("logstead_restore_points shows which there are; restore_point_retention and logstead_create_restore_point() keep more.")
    }

    fn time(&self, micros: i64) -> String {
        let mut text = Vec::new();
        let ty = SqlType::of(oid::TIMESTAMPTZ);
        let style = self.context.output_style();
        value::text_io::output(&Datum::TimestampTz(micros), ty, &style, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    fn shown_point(&self, past: &Past) -> String {
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
    pub(super) async fn bring_indexes(&mut self, tables: &[logstead_types::TableId]) -> Result<()> {
        let Some(reading) = self.reading().cloned() else {
            return Ok(());
        };
        let limits = self.limits();
        let signals = Arc::clone(&self.signals);
        let open = self.transaction()?;
        let bring = async {
            for table in tables {
                while let Err(absent) = reading.past.indexed(*table) {
                    wait_for(Obstacle::Absent(absent), &mut open.txn, signals.statement()).await?;
                }
            }
            Ok(())
        };
        guarded(&signals, limits, bring).await
    }

    /// 25006 for what is no query and would do something to the present.
    pub(super) fn refuse_in_past(&self, what: &str) -> Result<()> {
        let wanted = self.reading().is_some() || (self.open.is_none() && !self.follows_as_of());
        if !wanted {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            format!("cannot execute {what} in a read-only transaction"),
        ))
    }

    /// Does the present block, or the next transaction, read the past?
    pub(super) fn reads_past(&self) -> bool {
        match &self.open {
            Some(open) => open.reading.is_some(),
            None => !self.context.settings.borrow().typed().as_of.is_empty(),
        }
    }

    /// Outside of a block?
    pub(super) fn is_idle(&self) -> bool {
        self.block == Block::None && self.open.is_none()
    }
}
