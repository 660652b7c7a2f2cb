//! The client of a session: what it is answered, in order, as messages of the protocol would tell it.

use super::table::Column;
use logstead_engine::RowRef;
use logstead_sql_exec::{RowSink, StoredColumn};
use logstead_sql_plan::OutputColumn;
use logstead_sql_session::{Client, ConnectionLost, CopyInput, LocalFuture, SessionContext};
use logstead_sql_types::error::ErrorFields;
use logstead_sql_types::value::stored::stored_text_output;
use logstead_sql_types::value::{Datum, SqlType, text_io};
use logstead_sql_types::{Result, SqlError, TypeId};
use std::cell::Cell;
use std::fmt::Display;
use std::rc::Rc;

/// A script that is read line by line: statements by psql, and data by COPY.
pub(crate) struct Script {
    text: String,
    at: Cell<usize>,
}

impl Script {
    pub(crate) fn new(text: String) -> Script {
        Script {
            text,
            at: Cell::new(0),
        }
    }

    /// The next line, without its end.
    pub(crate) fn next_line(&self) -> Option<&str> {
        let rest = &self.text[self.at.get()..];
        let line = rest.split_inclusive('\n').next()?;
        self.at.set(self.at.get() + line.len());
        Some(line.strip_suffix('\n').unwrap_or(line))
    }
}

/// A message of the server's.
pub(crate) enum Reply {
    Columns(Vec<Column>),
    Row(Vec<Option<String>>),
    Complete(String),
    Empty,
    Error(SqlError),
    Notice(&'static str, Box<ErrorFields>),
    CopyOutBegins,
    CopyData(String),
}

/// Collects replies.
pub(crate) struct Replies {
    script: Rc<Script>,
    context: Rc<SessionContext>,
    types: Vec<SqlType>,
    replies: Vec<Reply>,
    /// So many of them the client would have by now.
    sent: usize,
    copy_input: Option<Vec<u8>>,
}

impl Replies {
    pub(crate) fn new(script: Rc<Script>, context: Rc<SessionContext>) -> Replies {
        Replies {
            script,
            context,
            types: Vec::new(),
            replies: Vec::new(),
            sent: 0,
            copy_input: None,
        }
    }

    /// What was answered since the last call.
    pub(crate) fn take(&mut self) -> Vec<Reply> {
        self.sent = 0;
        std::mem::take(&mut self.replies)
    }

    fn push_row(&mut self, values: impl Iterator<Item = Result<Option<Vec<u8>>>>) -> Result<()> {
        let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
        let row: Result<Vec<_>> = values.map(|value| Ok(value?.map(text))).collect();
        self.replies.push(Reply::Row(row?));
        Ok(())
    }

    fn datum(&self, datum: &Datum, ty: SqlType) -> Result<Option<Vec<u8>>> {
        if matches!(datum, Datum::Null) {
            return Ok(None);
        }
        let mut out = Vec::new();
        text_io::output(datum, ty, &self.context.output_style(), &mut out)?;
        Ok(Some(out))
    }
}

impl RowSink for Replies {
    fn row(&mut self, row: &[Datum]) -> Result<()> {
        let values: Vec<_> = row
            .iter()
            .zip(&self.types)
            .map(|(datum, ty)| self.datum(datum, *ty))
            .collect();
        self.push_row(values.into_iter())
    }

    fn stored_row(&mut self, row: RowRef<'_>, columns: &[StoredColumn]) -> Result<()> {
        let value = |(column, ty): (&StoredColumn, &SqlType)| {
            if row.is_missing(column.position) {
                return self.datum(&column.missing, *ty);
            }
            let Some(stored) = row.column(column.position) else {
                return Ok(None);
            };
            let mut out = Vec::new();
            let style = self.context.output_style();
            stored_text_output(column.ty, stored, &style, &mut out)?;
            Ok(Some(out))
        };
        let values: Vec<_> = columns.iter().zip(&self.types).map(value).collect();
        self.push_row(values.into_iter())
    }
}

impl Client for Replies {
    fn open(&mut self, context: Rc<SessionContext>) {
        self.context = context;
    }

    fn start_rows(&mut self, columns: &[OutputColumn], _formats: &[i16]) {
        self.types = columns.iter().map(|column| column.ty).collect();
    }

    fn row_description(&mut self, columns: &[OutputColumn], _formats: &[i16]) {
        let column = |column: &OutputColumn| Column {
            name: column.name.to_string(),
            ty: column.ty.oid,
        };
        let columns = columns.iter().map(column).collect();
        self.replies.push(Reply::Columns(columns));
    }

    fn no_data(&mut self) {}
    fn parameter_description(&mut self, _types: &[TypeId]) {}
    fn portal_suspended(&mut self) {}

    fn command_complete(&mut self, tag: &dyn Display) {
        self.replies.push(Reply::Complete(tag.to_string()));
    }

    fn empty_query(&mut self) {
        self.replies.push(Reply::Empty);
    }

    fn error(&mut self, error: &SqlError) {
        self.replies.push(Reply::Error(error.clone()));
    }

    fn notice(&mut self, severity: &'static str, fields: &ErrorFields) {
        let fields = Box::new(fields.clone());
        self.replies.push(Reply::Notice(severity, fields));
    }

    fn parameter_status(&mut self, _name: &str, _value: &str) {}

    /// psql sends the data that follow in the script, up to a line of `\.`, and with that.
    fn copy_in(&mut self, _columns: usize, _binary: bool) {
        let mut data = String::new();
        while let Some(line) = self.script.next_line() {
            data.push_str(line);
            data.push('\n');
            if line == "\\." {
                break;
            }
        }
        self.copy_input = Some(data.into_bytes());
    }

    fn copy_input<'a>(&'a mut self, into: &'a mut Vec<u8>) -> LocalFuture<'a, Result<CopyInput>> {
        let input = match self.copy_input.take() {
            Some(data) => {
                into.extend_from_slice(&data);
                CopyInput::Data
            }
            None => CopyInput::Done,
        };
        Box::pin(std::future::ready(Ok(input)))
    }

    fn copy_out(&mut self, _columns: usize, _binary: bool) {
        self.replies.push(Reply::CopyOutBegins);
    }

    fn copy_out_data(&mut self, line: &[u8]) -> Result<()> {
        let line = String::from_utf8_lossy(line).into_owned();
        self.replies.push(Reply::CopyData(line));
        Ok(())
    }

    fn copy_out_done(&mut self) {}

    fn flush(&mut self) -> LocalFuture<'_, Result<(), ConnectionLost>> {
        self.sent = self.replies.len();
        Box::pin(std::future::ready(Ok(())))
    }

    fn discard(&mut self) {
        self.replies.truncate(self.sent);
    }

    fn mark(&self) -> u64 {
        self.replies.len() as u64
    }

    fn take_back(&mut self, mark: u64) {
        let mark = usize::try_from(mark).unwrap_or(usize::MAX);
        if mark >= self.sent && mark < self.replies.len() {
            let taken = self.replies.split_off(mark);
            let notices = taken
                .into_iter()
                .filter(|reply| matches!(reply, Reply::Notice(..)));
            self.replies.extend(notices);
        }
    }
}
