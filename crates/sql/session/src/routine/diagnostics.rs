//! GET DIAGNOSTICS.

use super::{Activation, Session};
use logstead_sql_parse::plpgsql::tree::{Diagnostic, Target};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;

impl Session {
    /// Where the body is, and those that it is run by.
    fn context_of_all(&self, act: &Activation) -> String {
        let mut text = act.context();
        for frame in self.frames.iter().rev().skip(1) {
            text.push('\n');
            text.push_str(&frame.context());
        }
        text
    }

    pub(super) fn diagnostics(
        &mut self,
        act: &mut Activation,
        stacked: bool,
        items: &[(Target, Diagnostic)],
    ) -> Result<()> {
        if stacked && act.errors.is_empty() {
            return Err(SqlError::new(
                SqlState::new(b"0Z002"),
                "GET STACKED DIAGNOSTICS cannot be used outside an exception handler",
            ));
        }
        for (target, item) in items {
            if *item == Diagnostic::RowCount {
                let count = i64::try_from(act.row_count).unwrap_or(i64::MAX);
                let ty = SqlType::of(oid::INT8);
                self.put(act, target, Vec::new(), Datum::Int8(count), ty)?;
                continue;
            }
            let text = match (item, act.errors.last()) {
                (Diagnostic::Context, _) => self.context_of_all(act),
                (_, None) => String::new(),
                (item, Some(error)) => {
                    use Diagnostic as D;
                    let fields = error.fields();
                    let known = match item {
                        D::ErrorContext => fields.context.as_ref(),
                        D::ErrorDetail => fields.detail.as_ref(),
                        D::ErrorHint => fields.hint.as_ref(),
                        D::ColumnName => fields.column.as_ref(),
                        D::ConstraintName => fields.constraint.as_ref(),
                        D::DatatypeName => fields.data_type.as_ref(),
                        D::TableName => fields.table.as_ref(),
                        D::SchemaName => fields.schema.as_ref(),
                        D::MessageText => Some(&fields.message),
                        D::ReturnedSqlstate | D::RowCount | D::Context => None,
                    };
                    match item {
                        D::ReturnedSqlstate => fields.code.as_str().to_owned(),
                        _ => known.cloned().unwrap_or_default(),
                    }
                }
            };
            let ty = SqlType::of(oid::TEXT);
            self.put(act, target, Vec::new(), Datum::text(text.as_str()), ty)?;
        }
        Ok(())
    }
}
