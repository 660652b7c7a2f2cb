//! Which statements are lowered, and which are read as the grammar gives them.

use super::{Lower, Lowered};
use crate::ast::{CopySource, Stmt};
use crate::lowered as library;
use crate::{AsOf, StatementKind};
use logstead_sql_types::error::Result;
use std::sync::Arc;

impl Lower<'_> {
    /// Lowers a statement.
    pub(crate) fn statement(&self, stmt: &Stmt) -> Result<Lowered> {
        let statement = match stmt {
            Stmt::Select(query) => match query.select_into() {
                Some(create) => return Ok(self.utility(Stmt::CreateTableAs(Box::new(create)))),
                None => self.preparable(stmt)?,
            },
            Stmt::Insert(_) | Stmt::Update(_) | Stmt::Delete(_) | Stmt::Merge(_) => {
                self.preparable(stmt)?
            }
            Stmt::Return(result) => {
                library::Statement::Select(Box::new(self.select_of(&result.returnval)?))
            }
            // Who runs it reads the grammar's own tree.
            _ => return Ok(self.utility(stmt.clone())),
        };
        Ok(Lowered {
            statement,
            kind: StatementKind::Query,
            as_of: self.as_of_stmt(stmt),
        })
    }

    fn utility(&self, stmt: Stmt) -> Lowered {
        Lowered {
            statement: library::Statement::Utility,
            as_of: self.as_of_utility(&stmt),
            kind: StatementKind::Utility(Arc::new(stmt)),
        }
    }

    /// What a statement is as of that has a query.
    fn as_of_utility(&self, stmt: &Stmt) -> Option<AsOf> {
        match stmt {
            Stmt::Prepare(prepare) => self.as_of_stmt(&prepare.query),
            Stmt::Explain(explain) => self.as_of_stmt(&explain.query),
            Stmt::Copy(copy) => match &copy.source {
                CopySource::Query(query) => self.as_of_stmt(query),
                CopySource::Relation { .. } => None,
            },
            _ => None,
        }
    }

    fn as_of_stmt(&self, stmt: &Stmt) -> Option<AsOf> {
        match stmt {
            Stmt::Select(query) => self.as_of(query),
            _ => None,
        }
    }
}
