//! The extended query protocol: Parse, Describe, Close and Sync of a session.
//!
//! Owns: what a prepared statement promises of its parameters and columns before it has run. Bind and Execute are
//! `portal`'s.

use super::cached_plan::{Statement, StatementDescription};
use super::client::Client;
use super::{Session, create_as, cursor, explain};
use crate::open_transaction::BlockState;
use logstead_sql_parse::ast::Stmt;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::rc::Rc;

impl Session {
    /// Parse.
    pub async fn parse(
        &mut self,
        name: &str,
        text: &str,
        types: &[Option<TypeId>],
        client: &mut dyn Client,
    ) -> Result<()> {
        let conforming = self.conforming(text, client)?;
        let text = conforming.as_deref().unwrap_or(text);
        self.begin_statement();
        self.extended_goes_on()?;
        self.report_activity(text);
        // The unnamed statement is gone even if the new one does not parse.
        if name.is_empty() {
            self.context.statements.borrow_mut().remove("");
        } else if self.context.statements.borrow().contains_key(name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let parsed = self.worker.caches.borrow_mut().parse(text)?;
        self.tell_of_truncated(&parsed, client);
        let index = match parsed.statements.len() {
            0 => None,
            1 => Some(0),
            _ => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "cannot insert multiple commands into a prepared statement",
                ));
            }
        };
        let mut statement = Statement::new(parsed, index, types.to_vec());
        statement.takes_parameters = true;
        self.refuse_in_failed_block(&statement)?;
        self.refuse_beside_as_of()?;
        if statement.needs_catalog() {
            self.follow_as_of().await?;
            self.follow_token().await?;
        }
        self.describe_as_of(&statement).await?;
        self.keep_statement(name.to_owned(), statement);
        Ok(())
    }

    /// What the statement takes and gives; found out once, by planning it.
    pub(super) fn describe(&mut self, statement: &Statement) -> Result<Rc<StatementDescription>> {
        if let Some(description) = &*statement.description.borrow() {
            return Ok(Rc::clone(description));
        }
        let description = Rc::new(if statement.is_query() {
            let plan = self.plan(statement)?;
            StatementDescription {
                param_types: plan.param_types.clone(),
                columns: plan.columns.clone(),
                gives_rows: plan.gives_rows(),
                fails: plan.fails.clone(),
            }
        } else {
            self.utility_promise(statement)?
        });
        if matches!(statement.utility(), Some(Stmt::Fetch(_))) {
            // The cursor may be another one next time.
            return Ok(description);
        }
        *statement.description.borrow_mut() = Some(Rc::clone(&description));
        Ok(description)
    }

    fn utility_promise(&mut self, statement: &Statement) -> Result<StatementDescription> {
        let mut param_types = Vec::new();
        let inner = match (statement.utility(), statement.parsed()) {
            (Some(Stmt::DeclareCursor(declare)), Some(parsed)) => {
                cursor::DeclareCursor::of(declare, &statement.text.text)?;
                Some(cursor::query_of(statement, parsed, declare)?)
            }
            (Some(Stmt::Explain(explain)), Some(parsed)) => {
                explain::query_of(explain, statement, parsed)?
            }
            (Some(Stmt::CreateTableAs(create)), Some(parsed)) => {
                create_as::query_of(create, statement, parsed)?
            }
            _ => None,
        };
        if let Some(inner) = inner {
            param_types.clone_from(&self.plan(&inner)?.param_types);
        }
        if let Some(Stmt::Call(call)) = statement.utility() {
            param_types = self.bound_call(statement, call)?.param_types;
        }
        let columns = self.utility_columns(statement)?;
        Ok(StatementDescription {
            param_types,
            gives_rows: !columns.is_empty(),
            fails: None,
            columns,
        })
    }

    pub(super) fn find_statement(&self, name: &str) -> Result<Rc<Statement>> {
        let known = self.context.statements.borrow().get(name).cloned();
        known.ok_or_else(|| {
            let message = if name.is_empty() {
                "unnamed prepared statement does not exist".to_owned()
            } else {
                format!("prepared statement \"{name}\" does not exist")
            };
            SqlError::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    /// Describe of a statement.
    pub async fn describe_statement(&mut self, name: &str, client: &mut dyn Client) -> Result<()> {
        self.extended_goes_on()?;
        let statement = self.find_statement(name)?;
        self.refuse_in_failed_block(&statement)?;
        let description = self.describe(&statement)?;
        let types: Vec<TypeId> = description.param_types.iter().map(|ty| ty.oid).collect();
        client.parameter_description(&types);
        if !description.gives_rows {
            client.no_data();
        } else {
            client.row_description(&description.columns, &[]);
        }
        Ok(())
    }

    /// Close of a statement; unknown names are fine.
    pub fn close_statement(&mut self, name: &str) {
        self.context.statements.borrow_mut().remove(name);
    }

    /// Sync: ends the implicit transaction of a pipeline. Its error, if any, is answered here.
    pub async fn sync(&mut self, client: &mut dyn Client) -> Result<()> {
        self.extended_since = None;
        // The time of the statements before it is not this one's.
        self.signals.statement().set_deadline(None);
        if self.block == BlockState::None
            && let Err(error) = self.commit(client).await
        {
            if error.fields().fatal {
                return Err(error);
            }
            self.fail(error, client);
        }
        self.rest();
        Ok(())
    }
}
