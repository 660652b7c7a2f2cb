//! COPY.

use super::{Lower, Lowered};
use crate::ast::{CopySource, CopyStmt, CopyTarget, DefArg, DefElem, Location};
use crate::lowered as library;
use crate::{CopyClauses, CopyOption, CopyValue, StatementKind};
use logstead_sql_types::error::{Result, SqlError};

impl Lower<'_> {
    /// Lowers COPY.
    pub(super) fn copy(&self, copy: &CopyStmt) -> Result<Lowered> {
        let (source, as_of) = match &copy.source {
            CopySource::Relation { relation, attlist } => {
                let columns = attlist.iter();
                let columns = columns.map(|name| self.ident(name, Location::UNKNOWN));
                let source = library::CopySource::Table {
                    table_name: self.relation_name(relation),
                    columns: columns.collect(),
                };
                (source, None)
            }
            CopySource::Query(stmt) => {
                let query = Box::new(self.query_of(stmt)?);
                (library::CopySource::Query(query), self.as_of_stmt(stmt))
            }
        };
        let target = match &copy.target {
            CopyTarget::Client if copy.is_from => library::CopyTarget::Stdin,
            CopyTarget::Client => library::CopyTarget::Stdout,
            CopyTarget::File(name) => library::CopyTarget::File {
                filename: name.to_string(),
            },
            CopyTarget::Program(command) => library::CopyTarget::Program {
                command: command.to_string(),
            },
        };
        let options = copy.options.iter().map(|option| self.copy_option(option));
        let clauses = CopyClauses {
            condition: self.opt_expr(copy.where_clause.as_ref())?.map(Box::new),
            options: options.collect::<Result<_>>()?,
        };
        Ok(Lowered {
            statement: library::Statement::Copy {
                source,
                to: !copy.is_from,
                target,
            },
            kind: StatementKind::Copy(Box::new(clauses)),
            as_of,
        })
    }

    fn copy_option(&self, option: &DefElem) -> Result<CopyOption> {
        let value = match &option.arg {
            None | Some(DefArg::Boolean(_)) => CopyValue::Nothing,
            Some(DefArg::String(text)) => CopyValue::Text(text.to_string()),
            Some(DefArg::Integer(number)) => CopyValue::Number(number.to_string()),
            Some(DefArg::Float(written)) => CopyValue::Number(written.to_string()),
            Some(DefArg::Star) => CopyValue::All,
            Some(DefArg::List(values)) => {
                let names = values.iter().map(|value| match value {
                    DefArg::String(name) => Ok(name.to_string()),
                    _ => Err(SqlError::internal("a name that is no text")),
                });
                CopyValue::Names(names.collect::<Result<_>>()?)
            }
            Some(_) => return Err(SqlError::internal("a value that COPY does not have")),
        };
        Ok(CopyOption {
            name: option.name.to_string(),
            value,
            position: self.error_position(option.location),
        })
    }
}
