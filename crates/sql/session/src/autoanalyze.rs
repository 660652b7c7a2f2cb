//! ANALYZE by itself: tables whose number of rows has changed much since they were last analyzed, or that never were.
//!
//! Owns: which tables are due, and what the server remembers of the times it has done them. One task of one worker asks
//! now and then ([`analyze_changed`]), and does the tables one after the other, each in a session and a transaction of
//! its own, as a superuser would. What it reads of a table is bounded, so that it holds the table's lock, which keeps
//! DDL out, for a second or so. Who waits for the table is not kept waiting: a lock that is not free soon is given up,
//! and the table is looked at again the next time.
//!
//! Does not: count changes that leave the number of rows as it is, as updates do. Nobody counts them while they are
//! made, so that writing costs nothing more.

use super::client::{Client, ConnectionLost, CopyInput, LocalFuture};
use super::context::SessionContext;
use super::instance::Instance;
use super::{Session, StartupRequest};
use crate::worker_sessions::WorkerSessions;
use logstead_engine::RowRef;
use logstead_sql_catalog::role::BOOTSTRAP;
use logstead_sql_catalog::{
    AutoanalyzeEntry, Catalog, Relation, known_rows, live_rows, rows_changed,
};
use logstead_sql_exec::{RowSink, StoredColumn};
use logstead_sql_plan::OutputColumn;
use logstead_sql_types::error::{ErrorFields, Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::{RelationId, TypeId};
use logstead_types::TableId;
use std::rc::Rc;
use std::sync::Arc;

/// How long a table's lock is waited for.
const LOCK_MS: u32 = 100;

/// A table that is due.
struct AnalyzeCandidate {
    table: RelationId,
    /// With its schema, in quotes.
    name: String,
    storage: TableId,
    rows: u64,
}

/// Tables looked at between two yields: others' statements go on meanwhile, however many tables there are.
const TABLES_PER_STEP: usize = 1_024;

/// The tables of a database that are due, by OID.
async fn due(instance: &Instance, catalog: &Catalog) -> Vec<AnalyzeCandidate> {
    let settings = instance.settings.now();
    let number = |name: &str, otherwise: f64| {
        let value = settings.get(name);
        value.and_then(|v| v.parse().ok()).unwrap_or(otherwise)
    };
    let threshold = number("autovacuum_analyze_threshold", 50.0);
    let factor = number("autovacuum_analyze_scale_factor", 0.1);
    let is_due = |table: &Relation| {
        let last = instance.analyzed.of(catalog.database, table.oid);
        rows_changed(catalog, table, last) as f64 > threshold + factor * known_rows(catalog, table)
    };
    let mut found = Vec::new();
    for (at, table) in catalog.relations.values().enumerate() {
        if at % TABLES_PER_STEP == TABLES_PER_STEP - 1 {
            tokio::task::yield_now().await;
        }
        if table.has_rows() && !table.is_temporary() && is_due(table) {
            found.push(AnalyzeCandidate {
                table: table.oid,
                name: format!("{}.{}", quoted(&table.schema_name), quoted(&table.name)),
                storage: table.storage,
                rows: live_rows(catalog, table),
            });
        }
    }
    found.sort_unstable_by_key(|due| due.table);
    found
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Analyzes what is due now. Errors end a table's turn and nothing else.
pub async fn analyze_changed(worker: &Rc<WorkerSessions>) {
    let instance = Arc::clone(&worker.instance);
    for catalog in instance.store.catalogs() {
        for due in due(&instance, &catalog).await {
            if instance.is_stopping() || instance.is_pausing() {
                return;
            }
            let name = &due.name;
            let done = analyze(worker, &catalog.database_name, name).await;
            match done {
                Ok(()) => {
                    let done = AutoanalyzeEntry {
                        at: instance.env.clock.now_micros_since_2000(),
                        count: 0,
                        storage: due.storage,
                        rows: due.rows,
                    };
                    instance.analyzed.note(catalog.database, due.table, done);
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
        own: true,
        settings: vec![
            ("application_name".to_owned(), "autoanalyze".to_owned()),
            ("lock_timeout".to_owned(), LOCK_MS.to_string()),
            ("statement_timeout".to_owned(), "0".to_owned()),
            // Whatever the database or the role has for others.
            (
                "default_transaction_isolation".to_owned(),
                "read committed".to_owned(),
            ),
            ("default_transaction_read_only".to_owned(), "off".to_owned()),
        ],
        ..StartupRequest::default()
    };
    let mut session = Session::open(worker, request)?;
    let mut heard = ErrorCollector::default();
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
struct ErrorCollector {
    error: Option<SqlError>,
}

impl RowSink for ErrorCollector {
    fn row(&mut self, _row: &[Datum]) -> Result<()> {
        Ok(())
    }

    fn stored_row(&mut self, _row: RowRef<'_>, _columns: &[StoredColumn]) -> Result<()> {
        Ok(())
    }
}

impl Client for ErrorCollector {
    fn open(&mut self, _context: Rc<SessionContext>) {}
    fn start_rows(&mut self, _columns: &[OutputColumn], _formats: &[i16]) {}
    fn row_description(&mut self, _columns: &[OutputColumn], _formats: &[i16]) {}
    fn no_data(&mut self) {}
    fn parameter_description(&mut self, _types: &[TypeId]) {}
    fn portal_suspended(&mut self) {}
    fn command_complete(&mut self, _tag: &dyn std::fmt::Display) {}
    fn empty_query(&mut self) {}
    fn error(&mut self, error: &SqlError) {
        self.error = Some(error.clone());
    }
    fn notice(&mut self, _severity: &'static str, _fields: &ErrorFields) {}
    fn parameter_status(&mut self, _name: &str, _value: &str) {}
    fn copy_in(&mut self, _columns: usize, _binary: bool) {}
    fn copy_input<'a>(
        &'a mut self,
        _into: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<CopyInput, SqlError>> {
        Box::pin(std::future::ready(Ok(CopyInput::Done)))
    }
    fn copy_out(&mut self, _columns: usize, _binary: bool) {}
    fn copy_out_data(&mut self, _line: &[u8]) -> Result<(), SqlError> {
        Ok(())
    }
    fn copy_out_done(&mut self) {}
    fn flush(&mut self) -> LocalFuture<'_, Result<(), ConnectionLost>> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn discard(&mut self) {}
}
