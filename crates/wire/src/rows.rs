//! Rows as DataRow messages, straight into the output buffer.

use crate::encode;
use logstead_engine::RowRef;
use logstead_sql_exec::StoredColumn;
use logstead_sql_plan::OutputColumn;
use logstead_sql_session::SessionContext;
use logstead_sql_types::encoding::Encoding;
use logstead_sql_types::value::{self, Datum, OutputStyle, SqlType, oid};
use logstead_sql_types::{Result, SqlError};
use std::rc::Rc;

/// Types and formats of the rows being sent.
#[derive(Default)]
pub(crate) struct RowFormat {
    columns: Vec<(SqlType, bool)>,
    context: Option<Rc<SessionContext>>,
}

/// Is column `i` binary? `formats` as in Bind: none is all text, one is for all.
fn is_binary(formats: &[i16], i: usize) -> bool {
    match formats {
        [] => false,
        [all] => *all == 1,
        each => each.get(i) == Some(&1),
    }
}

/// Appends RowDescription.
pub(crate) fn describe(columns: &[OutputColumn], formats: &[i16], out: &mut Vec<u8>) {
    encode::row_description(
        out,
        columns.iter().enumerate().map(|(i, column)| encode::Field {
            name: &column.name,
            table: column.origin.map_or(0, |(table, _)| table.get()),
            attribute: column.origin.map_or(0, |(_, number)| number),
            ty: column.ty.oid.get(),
            length: value::info::by_oid(column.ty.oid).map_or(-1, |info| info.len),
            // Which record it is stays here.
            modifier: match column.ty.oid {
                oid::RECORD => -1,
                _ => column.ty.typmod,
            },
            binary: is_binary(formats, i),
        }),
    );
}

impl RowFormat {
    pub(crate) fn open(&mut self, context: Rc<SessionContext>) {
        self.context = Some(context);
    }

    /// What the client's texts are in.
    #[inline]
    pub(crate) fn encoding(&self) -> Encoding {
        match &self.context {
            Some(context) => context.client_encoding(),
            None => Encoding::UTF8,
        }
    }

    /// Types of the columns, and which of them are in binary form.
    pub(crate) fn columns(&self) -> &[(SqlType, bool)] {
        &self.columns
    }

    pub(crate) fn start(&mut self, columns: &[OutputColumn], formats: &[i16]) {
        self.columns.clear();
        self.columns.extend(
            columns
                .iter()
                .enumerate()
                .map(|(i, c)| (c.ty, is_binary(formats, i))),
        );
    }

    fn style(context: &Option<Rc<SessionContext>>) -> OutputStyle<'_> {
        match context {
            Some(context) => context.output_style(),
            None => OutputStyle::UTC,
        }
    }

    /// Appends a row; nothing of one that fails.
    pub(crate) fn row(&self, row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let added = self.add_row(row, out);
        if added.is_err() {
            out.truncate(start);
        }
        added
    }

    fn add_row(&self, row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
        let style = RowFormat::style(&self.context);
        let at = self.begin(out);
        for (datum, (ty, binary)) in row.iter().zip(&self.columns) {
            if matches!(datum, Datum::Null) {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            }
            let value_at = begin_value(out);
            if *binary {
                value::binary_io::binary_output(datum, *ty, out)?;
            } else {
                value::text_io::output(datum, *ty, &style, out)?;
            }
            end_value(out, value_at);
        }
        end_row(out, at)
    }

    /// Appends a row from its stored bytes; nothing of one that fails.
    pub(crate) fn stored_row(
        &self,
        row: RowRef<'_>,
        columns: &[StoredColumn],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        let added = self.add_stored_row(row, columns, out);
        if added.is_err() {
            out.truncate(start);
        }
        added
    }

    fn add_stored_row(
        &self,
        row: RowRef<'_>,
        columns: &[StoredColumn],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let style = RowFormat::style(&self.context);
        let at = self.begin(out);
        for (column, (ty, binary)) in columns.iter().zip(&self.columns) {
            if row.is_missing(column.position) {
                if matches!(column.missing, Datum::Null) {
                    out.extend_from_slice(&(-1i32).to_be_bytes());
                    continue;
                }
                let value_at = begin_value(out);
                if *binary {
                    value::binary_io::binary_output(&column.missing, *ty, out)?;
                } else {
                    value::text_io::output(&column.missing, *ty, &style, out)?;
                }
                end_value(out, value_at);
                continue;
            }
            let Some(stored) = row.column(column.position) else {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            };
            let value_at = begin_value(out);
            if *binary {
                value::stored::stored_binary_output(column.ty, stored, out)?;
            } else {
                value::stored::stored_text_output(column.ty, stored, &style, out)?;
            }
            end_value(out, value_at);
        }
        end_row(out, at)
    }

    fn begin(&self, out: &mut Vec<u8>) -> usize {
        let at = encode::begin(out, b'D');
        out.extend_from_slice(&(self.columns.len() as u16).to_be_bytes());
        at
    }
}

fn begin_value(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    at
}

fn end_value(out: &mut [u8], at: usize) {
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// A DataRow beyond 1 GiB would overflow clients' lengths: refused like an oversized value in PostgreSQL.
fn end_row(out: &mut Vec<u8>, at: usize) -> Result<()> {
    if out.len() - at > crate::decode::LARGE_BYTES_MAX {
        out.truncate(at - 1);
        return Err(SqlError::new(
            logstead_types::SqlState::PROGRAM_LIMIT_EXCEEDED,
            "a result row is longer than 1 GiB",
        ));
    }
    encode::end(out, at);
    Ok(())
}
