//! A client that writes every reply as one line of text, so a test reads like the conversation it checks.

use logstead_engine::RowRef;
use logstead_sql_exec::{RowSink, StoredColumn};
use logstead_sql_plan::OutputColumn;
use logstead_sql_session::{Client, ConnectionLost, CopyInput, LocalFuture, SessionContext};
use logstead_sql_types::error::ErrorFields;
use logstead_sql_types::value::{Datum, OutputStyle, SqlType, text_io};
use logstead_sql_types::{Result, SqlError, TypeId};
use std::collections::VecDeque;
use std::rc::Rc;

#[derive(Default)]
pub(crate) struct Script {
    said: Vec<String>,
    types: Vec<SqlType>,
    pub(crate) input: VecDeque<&'static str>,
}

impl Script {
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }
}

impl RowSink for Script {
    fn row(&mut self, row: &[Datum]) -> Result<()> {
        let show = |(d, ty): (&Datum, &SqlType)| match d {
            Datum::Null => "-".to_owned(),
            d => text_io::message_text(d, *ty, &OutputStyle::UTC),
        };
        self.said.push(
            row.iter()
                .zip(&self.types)
                .map(show)
                .collect::<Vec<_>>()
                .join("|"),
        );
        Ok(())
    }

    fn stored_row(&mut self, row: RowRef<'_>, columns: &[StoredColumn]) -> Result<()> {
        let row = columns
            .iter()
            .map(|c| c.decode(row))
            .collect::<Result<Vec<_>>>()?;
        self.row(&row)
    }
}

impl Client for Script {
    fn open(&mut self, _context: Rc<SessionContext>) {}
    fn start_rows(&mut self, columns: &[OutputColumn], _formats: &[i16]) {
        self.types = columns.iter().map(|c| c.ty).collect();
    }
    fn row_description(&mut self, columns: &[OutputColumn], _formats: &[i16]) {
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        self.said.push(format!("columns {}", names.join(",")));
    }
    fn no_data(&mut self) {
        self.said.push("no data".to_owned());
    }
    fn parameter_description(&mut self, types: &[TypeId]) {
        self.said.push(format!("parameters {types:?}"));
    }
    fn portal_suspended(&mut self) {
        self.said.push("suspended".to_owned());
    }
    fn command_complete(&mut self, tag: &dyn std::fmt::Display) {
        self.said.push(tag.to_string());
    }
    fn empty_query(&mut self) {
        self.said.push("empty".to_owned());
    }
    fn error(&mut self, error: &SqlError) {
        let context = error
            .fields()
            .context
            .as_ref()
            .map(|c| format!(" [{c}]"))
            .unwrap_or_default();
        self.said.push(format!("ERROR {error}{context}"));
    }
    fn notice(&mut self, severity: &'static str, fields: &ErrorFields) {
        self.said
            .push(format!("{severity} {}: {}", fields.code, fields.message));
    }
    fn parameter_status(&mut self, name: &str, value: &str) {
        self.said.push(format!("{name} = {value}"));
    }
    fn copy_in(&mut self, columns: usize, _binary: bool) {
        self.said.push(format!("copy in {columns}"));
    }
    fn copy_input<'a>(&'a mut self, into: &'a mut Vec<u8>) -> LocalFuture<'a, Result<CopyInput>> {
        let next = match self.input.pop_front() {
            Some(text) => {
                into.extend_from_slice(text.as_bytes());
                CopyInput::Data
            }
            None => CopyInput::Done,
        };
        Box::pin(std::future::ready(Ok(next)))
    }
    fn copy_out(&mut self, columns: usize, _binary: bool) {
        self.said.push(format!("copy out {columns}"));
    }
    fn copy_out_data(&mut self, line: &[u8]) -> Result<(), SqlError> {
        self.said.push(String::from_utf8_lossy(line).into_owned());
        Ok(())
    }
    fn copy_out_done(&mut self) {
        self.said.push("copy done".to_owned());
    }
    fn flush(&mut self) -> LocalFuture<'_, Result<(), ConnectionLost>> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn discard(&mut self) {
        self.said.push("discarded".to_owned());
    }
}
