//! ANALYZE by itself: tables whose number of rows has changed much since they were last analyzed, or that never were.
//!
//! Owns: which tables are due, and what the server remembers of the times it has done them. One task of one worker asks now and then
//! ([`analyze_changed`]), and does the tables one after the other, each in a session and a transaction of its own, as a superuser would. A
//! long scan takes its turns with the worker's other sessions as any long statement does. Who waits for the table is not kept waiting: a lock
//! that is not free soon is given up, and the table is looked at again the next time.
//!
//! Does not: count changes that leave the number of rows as it is, as updates do. Nobody counts them while they are made, so that writing costs
//! nothing more.

use super::client::{Client, ConnectionLost, CopyInput, LocalFuture};
use super::context::SessionContext;
use super::instance::{Instance, WorkerSessions};
use super::{Session, StartupRequest};
use crate::catalog::{Catalog, Relation};
use crate::error::{Fields, Result, SqlError};
use crate::exec::{RowSink, StoredColumn};
use crate::plan::OutputColumn;
use crate::role::BOOTSTRAP;
use crate::value::{Datum, Oid};
use logstead_engine::RowRef;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// How long a table's lock is waited for.
const LOCK_MS: u32 = 100;

/// When tables were analyzed by themselves, by database and table: the last time and how often.
#[derive(Default)]
pub(super) struct Done(Mutex<HashMap<(Oid, Oid), (i64, i64)>>);

impl Done {
    fn note(&self, database: Oid, table: Oid, at: i64) {
        let mut done = self.0.lock();
        let (last, count) = done.entry((database, table)).or_insert((at, 0));
        (*last, *count) = (at, *count + 1);
    }

    /// The last time, and how often, of a table.
    pub(super) fn of(&self, database: Oid, table: Oid) -> Option<(i64, i64)> {
        self.0.lock().get(&(database, table)).copied()
    }
}

/// How many rows more or less a table has than when it was analyzed.
pub(crate) fn changed(catalog: &Catalog, table: &Relation) -> u64 {
    let live = catalog.notes.live.as_ref();
    let rows = live.and_then(|live| live.table_rows(table.storage));
    rows.unwrap_or(0)
        .abs_diff(known_rows(catalog, table) as u64)
}

/// Rows that a table had when it was analyzed; a table that was emptied since had none.
fn known_rows(catalog: &Catalog, table: &Relation) -> f64 {
    let known = catalog.statistics.get(&table.oid);
    let known = known.filter(|known| known.storage == table.storage);
    known.map_or(0.0, |known| known.rows)
}

/// The tables of a database that are due, by OID.
fn due(instance: &Instance, catalog: &Catalog) -> Vec<(Oid, String)> {
    let number = |name: &str, otherwise: f64| {
        let value = instance.settings.get(name);
        value.and_then(|v| v.parse().ok()).unwrap_or(otherwise)
    };
    let threshold = number("autovacuum_analyze_threshold", 50.0);
    let factor = number("autovacuum_analyze_scale_factor", 0.1);
    let is_due = |table: &Relation| {
        changed(catalog, table) as f64 > threshold + factor * known_rows(catalog, table)
    };
    let mut found: Vec<_> = catalog
        .relations
        .values()
        .filter(|table| table.has_rows() && !table.is_temporary() && is_due(table))
        .map(|table| {
            let name = format!("{}.{}", quoted(&table.schema_name), quoted(&table.name));
            (table.oid, name)
        })
        .collect();
    found.sort_unstable();
    found
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Analyzes what is due now. Errors end a table's turn and nothing else.
pub async fn analyze_changed(worker: &Rc<WorkerSessions>) {
    let instance = Arc::clone(&worker.instance);
    for catalog in instance.store.catalogs() {
        for (table, name) in due(&instance, &catalog) {
            if instance.is_stopping() {
                return;
            }
            let done = analyze(worker, &catalog.database_name, &name).await;
            match done {
                Ok(()) => {
                    let now = instance.env.clock.now_micros_since_2000();
                    instance.analyzed.note(catalog.database, table, now);
                    tracing::debug!("{name} of \"{}\" was analyzed", catalog.database_name);
                }
                Err(error) => tracing::debug!(
                    "{name} of \"{}\" was not analyzed: {error}",
                    catalog.database_name
                ),
            }
        }
    }
}

async fn analyze(worker: &Rc<WorkerSessions>, database: &str, table: &str) -> Result<()> {
    let roles = worker.instance.store.roles();
    let user = roles.get(BOOTSTRAP).map(|role| role.name.clone());
    let request = StartupRequest {
        user: user.unwrap_or_default(),
        role: Some(BOOTSTRAP),
        database: database.to_owned(),
        settings: vec![
            ("application_name".to_owned(), "autoanalyze".to_owned()),
            ("lock_timeout".to_owned(), LOCK_MS.to_string()),
            ("statement_timeout".to_owned(), "0".to_owned()),
        ],
        ..StartupRequest::default()
    };
    let mut session = Session::open(worker, request)?;
    let mut heard = Heard::default();
    session.begin_request();
    let ran = session
        .simple_query(&format!("ANALYZE {table}"), &mut heard)
        .await;
    let settled = match ran {
        Ok(()) => session.settle().await,
        Err(error) => Err(error),
    };
    session.end_request();
    let finished = session.finish().await;
    session.close();
    settled.and(finished)?;
    heard.error.map_or(Ok(()), Err)
}

/// The client that there is not: it keeps the error.
#[derive(Default)]
struct Heard {
    error: Option<SqlError>,
}

impl RowSink for Heard {
    fn row(&mut self, _row: &[Datum]) -> Result<()> {
        Ok(())
    }

    fn stored_row(&mut self, _row: RowRef<'_>, _columns: &[StoredColumn]) -> Result<()> {
        Ok(())
    }
}

impl Client for Heard {
    fn open(&mut self, _context: Rc<SessionContext>) {}
    fn start_rows(&mut self, _columns: &[OutputColumn], _formats: &[i16]) {}
    fn row_description(&mut self, _columns: &[OutputColumn], _formats: &[i16]) {}
    fn no_data(&mut self) {}
    fn parameter_description(&mut self, _types: &[u32]) {}
    fn portal_suspended(&mut self) {}
    fn command_complete(&mut self, _tag: &dyn std::fmt::Display) {}
    fn empty_query(&mut self) {}
    fn error(&mut self, error: &SqlError) {
        self.error = Some(error.clone());
    }
    fn notice(&mut self, _severity: &'static str, _fields: &Fields) {}
    fn parameter_status(&mut self, _name: &str, _value: &str) {}
    fn copy_in(&mut self, _columns: usize, _binary: bool) {}
    fn copy_input<'a>(
        &'a mut self,
        _into: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<CopyInput, SqlError>> {
        Box::pin(std::future::ready(Ok(CopyInput::Done)))
    }
    fn copy_out(&mut self, _columns: usize, _binary: bool) {}
    fn copy_out_data(&mut self, _line: &[u8]) {}
    fn copy_out_done(&mut self) {}
    fn flush(&mut self) -> LocalFuture<'_, Result<(), ConnectionLost>> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn discard(&mut self) {}
}
