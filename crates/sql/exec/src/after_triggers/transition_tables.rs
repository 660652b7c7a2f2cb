//! Rows that AFTER triggers wait for.

use logstead_sql_catalog::trigger::TriggerEvent;
use logstead_sql_types::value::Datum;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The rows that a statement has changed of a table in one way, for triggers with REFERENCING. Complete when the first
/// of these is fired.
#[derive(Default)]
pub struct TransitionTables {
    rows: Mutex<TransitionRows>,
    closed: AtomicBool,
    /// The tables as values, once somebody has asked.
    pub values: OnceLock<[Datum; 2]>,
}

/// Encoded rows: as they were, and as they are.
#[derive(Default)]
pub struct TransitionRows {
    /// As they were.
    pub old: Vec<Box<[u8]>>,
    /// As they are.
    pub new: Vec<Box<[u8]>>,
}

impl TransitionTables {
    /// May rows still be added?
    pub(super) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Relaxed)
    }

    /// Adds a row.
    pub(crate) fn add(&self, old: Option<&[u8]>, new: Option<&[u8]>) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.old.extend(old.map(Box::from));
        rows.new.extend(new.map(Box::from));
    }

    /// The rows, to which none are added any more.
    pub fn close(&self) -> MutexGuard<'_, TransitionRows> {
        self.closed.store(true, Ordering::Relaxed);
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A row that was written, as AFTER triggers see it: encoded, since there may be many. A statement's trigger has
/// neither.
pub struct WrittenRow {
    /// What was done.
    pub event: TriggerEvent,
    /// As it was.
    pub old: Option<Box<[u8]>>,
    /// As it is.
    pub new: Option<Box<[u8]>>,
    /// Of a statement: how many actions have changed its table then.
    pub number: u64,
    /// For triggers with tables of rows.
    pub captured: Option<Arc<TransitionTables>>,
}
