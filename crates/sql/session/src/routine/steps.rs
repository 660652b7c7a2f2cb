//! Statements, one after the other.

use super::{Activation, Flow, STATEMENTS_AT_ONCE, Session};
use crate::client::{Client, LocalFuture};
use logstead_sql_parse::plpgsql::tree::{Expr, PlpgsqlStatement, Statement, Target};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;

impl Session {
    /// Runs statements until one of them goes elsewhere.
    pub(super) fn statements<'a>(
        &'a mut self,
        act: &'a mut Activation,
        list: &'a [Statement],
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Flow>> {
        Box::pin(async move {
            let around = (act.line, act.doing);
            for statement in list {
                (act.line, act.doing) = (statement.line, statement.shown());
                if let Some(frame) = self.frames.last_mut() {
                    (frame.line, frame.doing) = (act.line, act.doing);
                    frame.sql = statement.sql();
                }
                act.worked += 1;
                if act.worked >= STATEMENTS_AT_ONCE {
                    act.worked = 0;
                    self.breathe().await?;
                }
                match self.step(act, statement, client).await? {
                    Flow::Next => {}
                    flow => return Ok(flow),
                }
            }
            (act.line, act.doing) = around;
            Ok(Flow::Next)
        })
    }

    async fn step(
        &mut self,
        act: &mut Activation,
        statement: &Statement,
        client: &mut dyn Client,
    ) -> Result<Flow> {
        match &statement.kind {
            PlpgsqlStatement::Null => {}
            PlpgsqlStatement::Assign(target, expr) => {
                self.assignment(act, target, expr, client).await?
            }
            PlpgsqlStatement::If(arms, otherwise) => {
                for (condition, body) in arms {
                    if self.holds(act, condition, client).await? == Some(true) {
                        return self.statements(act, body, client).await;
                    }
                }
                return self.statements(act, otherwise, client).await;
            }
            PlpgsqlStatement::Case {
                test,
                arms,
                otherwise,
            } => {
                if let Some((variable, tested)) = test {
                    let (value, ty) = self.value(act, tested, client).await?;
                    act.values[*variable] = value;
                    act.types[*variable] = ty;
                }
                for (condition, body) in arms {
                    if self.holds(act, condition, client).await? == Some(true) {
                        return self.statements(act, body, client).await;
                    }
                }
                let Some(otherwise) = otherwise else {
                    return Err(SqlError::new(SqlState::new(b"20000"), "case not found")
                        .hint("CASE statement is missing ELSE part."));
                };
                return self.statements(act, otherwise, client).await;
            }
            PlpgsqlStatement::Block(block) => return self.block(act, block, client).await,
            PlpgsqlStatement::Loop(label, body) => {
                return self.plain_loop(act, label, None, body, client).await;
            }
            PlpgsqlStatement::While(label, condition, body) => {
                return self
                    .plain_loop(act, label, Some(condition), body, client)
                    .await;
            }
            PlpgsqlStatement::For(looped) => return self.for_loop(act, looped, client).await,
            PlpgsqlStatement::Exit(exits, label, condition) => {
                if let Some(condition) = condition
                    && self.holds(act, condition, client).await? != Some(true)
                {
                    return Ok(Flow::Next);
                }
                return Ok(match exits {
                    true => Flow::Exit(label.clone()),
                    false => Flow::Continue(label.clone()),
                });
            }
            PlpgsqlStatement::Return(expr) => {
                if let Some(expr) = expr {
                    act.returned = Some(self.value(act, expr, client).await?);
                }
                return Ok(Flow::Return);
            }
            PlpgsqlStatement::ReturnNext(expr) => {
                self.return_next(act, expr.as_ref(), client).await?
            }
            PlpgsqlStatement::ReturnQuery(query) => {
                let rows = self.open_query(act, query, client).await;
                let rows = rows.map_err(|error| match super::sql::no_tuples(&error) {
                    Some(error) => self.add_context(error, query),
                    None => error,
                })?;
                let ran = self.return_rows(act, rows).await;
                ran.map_err(|error| self.add_context(error, query))?;
            }
            PlpgsqlStatement::ReturnExecute(query, params) => {
                let rows = self.open_text(act, query, params, client).await;
                let rows = rows.map_err(|error| super::sql::no_tuples(&error).unwrap_or(error))?;
                self.return_rows(act, rows).await?;
            }
            PlpgsqlStatement::Raise(raise) => self.raise(act, raise, client).await?,
            PlpgsqlStatement::Assert(..) if !self.checks_asserts() => {}
            PlpgsqlStatement::Assert(condition, message) => {
                self.assert(act, condition, message.as_ref(), client)
                    .await?
            }
            PlpgsqlStatement::Perform(query) => {
                let (_, count) = self.query(act, query, 0, client).await?;
                act.row_count = count;
                act.found(count > 0);
            }
            PlpgsqlStatement::Sql {
                query,
                into,
                changes,
            } => {
                self.sql_statement(act, query, into.as_ref(), *changes, client)
                    .await?
            }
            PlpgsqlStatement::Call(statement) => {
                self.call_statement(act, statement, client).await?
            }
            PlpgsqlStatement::Execute {
                query,
                into,
                params,
            } => {
                self.execute_text(act, query, into.as_ref(), params, client)
                    .await?
            }
            PlpgsqlStatement::Diagnostics(stacked, items) => {
                self.diagnostics(act, *stacked, items)?
            }
            PlpgsqlStatement::Open(cursor, opens) => {
                self.open_variable(act, *cursor, opens, client).await?
            }
            PlpgsqlStatement::Fetch(fetch) => self.fetch_into(act, fetch, client).await?,
            PlpgsqlStatement::Close(cursor) => self.close_variable(act, *cursor).await?,
            PlpgsqlStatement::Commit(chain) => {
                self.end_transaction(act, true, *chain, client).await?
            }
            PlpgsqlStatement::Rollback(chain) => {
                self.end_transaction(act, false, *chain, client).await?
            }
        }
        Ok(Flow::Next)
    }

    async fn assignment(
        &mut self,
        act: &mut Activation,
        target: &Target,
        expr: &Expr,
        client: &mut dyn Client,
    ) -> Result<()> {
        let mut subscripts = Vec::new();
        if let Target::Element(_, _, exprs) = target {
            for subscript in exprs {
                let value = self.value_as(act, subscript, oid::INT4, client).await?;
                subscripts.push(value);
            }
        }
        let (value, ty) = self.value(act, expr, client).await?;
        let put = self.put(act, target, subscripts, value, ty);
        // PostgreSQL looks a field up as it reads the assignment.
        put.map_err(|error| match error.code() {
            SqlState::UNDEFINED_COLUMN => self.add_context(error, expr),
            _ => error,
        })
    }

    fn assert<'a>(
        &'a mut self,
        act: &'a mut Activation,
        condition: &'a Expr,
        message: Option<&'a Expr>,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            if self.holds(act, condition, client).await? == Some(true) {
                return Ok(());
            }
            let mut text = None;
            if let Some(message) = message {
                let (value, ty) = self.value(act, message, client).await?;
                text = self.text_of_value(&value, ty);
            }
            let text = text.unwrap_or_else(|| "assertion failed".to_owned());
            Err(SqlError::new(SqlState::new(b"P0004"), text))
        })
    }

    /// The text of a value; none for NULL.
    pub(super) fn text_of_value(&self, value: &Datum, ty: SqlType) -> Option<String> {
        if value.is_null() {
            return None;
        }
        let style = self.context.output_style();
        Some(logstead_sql_types::value::text_io::message_text(
            value, ty, &style,
        ))
    }

    /// COMMIT and ROLLBACK.
    fn end_transaction<'a>(
        &'a mut self,
        act: &'a mut Activation,
        commits: bool,
        chain: bool,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let refused = |text: &str| SqlError::new(SqlState::new(b"2D000"), text);
            if act.atomic {
                return Err(refused("invalid transaction termination"));
            }
            if act.parts > 0 {
                return Err(refused(match commits {
                    true => "cannot commit while a subtransaction is active",
                    false => "cannot roll back while a subtransaction is active",
                }));
            }
            let modes = self.modes;
            // Loops around this have their rows already, and no table any more.
            self.in_use.clear();
            if commits {
                self.commit(client).await?;
            } else {
                self.unwind_all().await;
                self.rollback();
                // What is evaluated next asks nobody.
                self.follow_prior(true).await?;
            }
            if chain {
                self.modes = modes;
            }
            let open = self.transaction()?;
            open.txn.begin_statement();
            Ok(())
        })
    }
}
