//! EXECUTE and EXPLAIN.

use super::{Lower, Lowered};
use crate::ast::{DefArg, DefElem, ExecuteStmt, ExplainStmt, Location, Stmt};
use crate::lowered as library;
use crate::{CreateView, StatementKind, ViewCommand};
use logstead_sql_types::error::{Result, SqlError};

fn lowered(statement: library::Statement, kind: StatementKind) -> Lowered {
    Lowered {
        statement,
        kind,
        as_of: None,
    }
}

impl Lower<'_> {
    /// Lowers a statement that has another one, or an expression, in it.
    pub(super) fn utility(&self, stmt: &Stmt) -> Result<Lowered> {
        use StatementKind as K;
        match stmt {
            Stmt::Execute(execute) => Ok(lowered(self.execute(execute)?, K::Prepared)),
            Stmt::Explain(explain) => self.explain(explain),
            _ => Err(SqlError::internal("a statement of another kind")),
        }
    }

    /// What a statement in another one is as of.
    pub(super) fn as_of_stmt(&self, stmt: &Stmt) -> Option<crate::AsOf> {
        match stmt {
            Stmt::Select(query) => self.as_of(query),
            _ => None,
        }
    }

    /// Lowers EXECUTE.
    pub(super) fn execute(&self, execute: &ExecuteStmt) -> Result<library::Statement> {
        let name = self.ident(&execute.name, Location::UNKNOWN);
        Ok(library::Statement::Execute {
            name,
            parameters: self.exprs(&execute.params)?,
        })
    }

    fn explain(&self, explain: &ExplainStmt) -> Result<Lowered> {
        let statement = match &explain.query {
            Stmt::Select(query) => self.query_or_into(query)?.statement,
            Stmt::Insert(_) | Stmt::Update(_) | Stmt::Delete(_) | Stmt::Merge(_) => {
                self.preparable(&explain.query)?
            }
            Stmt::DeclareCursor(declare) => {
                library::Statement::Query(Box::new(self.query(&declare.query)?))
            }
            Stmt::Execute(execute) => self.execute(execute)?,
            other => {
                let made = self.statement(other)?;
                match (made.kind, made.statement) {
                    (StatementKind::TableOfExecute(_), _) => {
                        return Err(SqlError::unsupported("EXPLAIN of CREATE TABLE AS EXECUTE"));
                    }
                    (StatementKind::View(command), _) => match *command {
                        ViewCommand::Create(view) => materialized_view(view),
                        _ => return Err(SqlError::unsupported("EXPLAIN of this statement")),
                    },
                    // What is not in the tree has no plan here.
                    (_, library::Statement::Command) => {
                        return Err(SqlError::unsupported("EXPLAIN of this statement"));
                    }
                    (_, statement) => statement,
                }
            }
        };
        let options = explain.options.iter();
        let options = options.map(|option| self.explain_option(option));
        let statement = library::Statement::Explain {
            statement: Box::new(statement),
            options: options.collect(),
        };
        Ok(Lowered {
            statement,
            kind: StatementKind::Explain,
            as_of: self.as_of_stmt(&explain.query),
        })
    }

    fn explain_option(&self, option: &DefElem) -> library::UtilityOption {
        let arg = match &option.arg {
            Some(DefArg::Integer(number)) => Some(number.to_string()),
            Some(DefArg::Float(word) | DefArg::String(word)) => Some(word.to_string()),
            _ => None,
        };
        library::UtilityOption {
            name: self.ident(&option.name, option.location),
            arg,
        }
    }
}

/// CREATE MATERIALIZED VIEW as EXPLAIN has it.
fn materialized_view(view: CreateView) -> library::Statement {
    library::Statement::CreateMaterializedView {
        name: view.name,
        if_not_exists: view.if_not_exists,
        query: view.query,
    }
}
