//! The client of a statement that another one runs: its rows are kept, what it has to say besides is passed on.

use crate::client::{Client, ConnectionLost, CopyInput, LocalFuture};
use crate::context::SessionContext;
use crate::portal::CollectedRows;
use logstead_engine::{Memory, RowRef};
use logstead_sql_exec::{RowSink, StoredColumn};
use logstead_sql_plan::OutputColumn;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{ErrorFields, Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;
use std::collections::VecDeque;
use std::fmt::Display;
use std::rc::Rc;

/// The client of a statement inside a body: its rows are kept, what it has to say besides is passed on.
pub(crate) struct CapturingClient<'c> {
    client: &'c mut dyn Client,
    rows: CollectedRows,
}

impl<'c> CapturingClient<'c> {
    pub(crate) fn new(client: &'c mut dyn Client, memory: &'static Memory) -> CapturingClient<'c> {
        CapturingClient {
            client,
            rows: CollectedRows::within(memory),
        }
    }

    pub(crate) fn into_rows(self) -> VecDeque<Vec<Datum>> {
        self.rows.into_rows()
    }
}

impl RowSink for CapturingClient<'_> {
    fn row(&mut self, row: &[Datum]) -> Result<()> {
        self.rows.row(row)
    }

    fn stored_row(&mut self, row: RowRef<'_>, columns: &[StoredColumn]) -> Result<()> {
        self.rows.stored_row(row, columns)
    }
}

impl Client for CapturingClient<'_> {
    fn open(&mut self, _context: Rc<SessionContext>) {}
    fn start_rows(&mut self, _columns: &[OutputColumn], _formats: &[i16]) {}
    fn row_description(&mut self, _columns: &[OutputColumn], _formats: &[i16]) {}
    fn no_data(&mut self) {}
    fn parameter_description(&mut self, _types: &[TypeId]) {}
    fn portal_suspended(&mut self) {}
    fn command_complete(&mut self, _tag: &dyn Display) {}
    fn empty_query(&mut self) {}
    fn error(&mut self, _error: &SqlError) {}

    fn notice(&mut self, severity: &'static str, fields: &ErrorFields) {
        self.client.notice(severity, fields);
    }

    fn parameter_status(&mut self, name: &str, value: &str) {
        self.client.parameter_status(name, value);
    }

    fn copy_in(&mut self, _columns: usize, _binary: bool) {}

    fn copy_input<'a>(
        &'a mut self,
        _into: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<CopyInput, SqlError>> {
        Box::pin(async { Err(no_copy()) })
    }

    fn copy_out(&mut self, _columns: usize, _binary: bool) {}
    fn copy_out_data(&mut self, _line: &[u8]) -> Result<(), SqlError> {
        Ok(())
    }
    fn copy_out_done(&mut self) {}

    fn flush(&mut self) -> LocalFuture<'_, Result<(), ConnectionLost>> {
        Box::pin(async { Ok(()) })
    }

    fn discard(&mut self) {}
}

pub(crate) fn no_copy() -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "cannot COPY to/from client in PL/pgSQL",
    )
}
