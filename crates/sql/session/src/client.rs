//! What a session says to its client, whatever the protocol's bytes look like.

use super::context::SessionContext;
use logstead_engine::RowRef;
use logstead_sql_exec::{RowSink, StoredColumn};
use logstead_sql_plan::OutputColumn;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{ErrorFields, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};
use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// A computed text column of a result.
pub(super) fn text_column(name: &str) -> OutputColumn {
    OutputColumn {
        domain: None,
        name: name.to_owned(),
        ty: SqlType::of(oid::TEXT),
        origin: None,
    }
}

/// A future of one worker's task.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The connection is gone: nobody is left to be told anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLost;

/// How COPY ... FROM STDIN's input goes on.
pub enum CopyInput {
    /// Bytes were appended, cut anywhere.
    Data,
    /// The end.
    Done,
    /// The client gives up, for this reason.
    Failed(String),
}

/// The client's side of a session. Replies are collected in order; they leave on [`Client::flush`] and at the end of a
/// request, when the session has found that what they tell is Committed.
///
/// Rows are given through [`RowSink`], in the format of the last `start_rows`.
pub trait Client: RowSink {
    /// The session's context, for values that print by it. Given once, when the session opens.
    fn open(&mut self, context: Rc<SessionContext>);
    /// Sets columns and formats (as in Bind: none, one for all, or one each) of the rows that follow.
    fn start_rows(&mut self, columns: &[OutputColumn], formats: &[i16]);
    /// Describes columns.
    fn row_description(&mut self, columns: &[OutputColumn], formats: &[i16]);
    /// There are no columns to describe.
    fn no_data(&mut self);
    /// Types of a statement's parameters.
    fn parameter_description(&mut self, types: &[TypeId]);
    /// A row limit was reached.
    fn portal_suspended(&mut self);
    /// A statement is done. The tag is written where it goes, not into a string.
    fn command_complete(&mut self, tag: &dyn Display);
    /// A statement was empty.
    fn empty_query(&mut self);
    /// Something failed.
    fn error(&mut self, error: &SqlError);
    /// Something to know: severity NOTICE, WARNING, INFO...
    fn notice(&mut self, severity: &'static str, fields: &ErrorFields);
    /// A reported setting changed.
    fn parameter_status(&mut self, name: &str, value: &str);
    /// COPY FROM STDIN begins.
    fn copy_in(&mut self, columns: usize, binary: bool);
    /// Appends the next piece of its input to `into`, waiting for it if need be, and whatever else has arrived behind
    /// it: a client that sends a message per row costs a wait per read, not per row.
    fn copy_input<'a>(
        &'a mut self,
        into: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<CopyInput, SqlError>>;
    /// COPY TO STDOUT begins.
    fn copy_out(&mut self, columns: usize, binary: bool);
    /// One line of its output; 53200 if there is no room for it.
    fn copy_out_data(&mut self, line: &[u8]) -> Result<(), SqlError>;
    /// COPY TO STDOUT ends.
    fn copy_out_done(&mut self);
    /// Sends what has been collected.
    fn flush(&mut self) -> LocalFuture<'_, Result<(), ConnectionLost>>;
    /// Throws away what has been collected and not sent: it must not be told.
    fn discard(&mut self);
    /// Where what has been collected so far ends.
    fn mark(&self) -> u64 {
        0
    }
    /// Throws away what has been collected since, if none of it has been sent.
    fn take_back(&mut self, _mark: u64) {}
}

/// The client of functions that are called for rows which another statement makes a session take. None is at hand: what
/// they say is buffered, to be sent later.
#[derive(Default)]
pub(super) struct BufferedNotices {
    pub(super) told: Vec<(&'static str, ErrorFields)>,
}

impl RowSink for BufferedNotices {
    fn row(&mut self, _row: &[Datum]) -> Result<(), SqlError> {
        Ok(())
    }

    fn stored_row(&mut self, _row: RowRef<'_>, _columns: &[StoredColumn]) -> Result<(), SqlError> {
        Ok(())
    }
}

impl Client for BufferedNotices {
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
        self.told.push((severity, fields.clone()));
    }

    fn parameter_status(&mut self, _name: &str, _value: &str) {}
    fn copy_in(&mut self, _columns: usize, _binary: bool) {}

    fn copy_input<'a>(
        &'a mut self,
        _into: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<CopyInput, SqlError>> {
        Box::pin(async { Err(SqlError::internal("COPY from nobody")) })
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
