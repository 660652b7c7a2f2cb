//! SQL in a body: statements as they stand, statements that are computed, and where their rows go.

use super::{Activation, Session};
use crate::Reply;
use crate::cached_plan::Statement;
use crate::capturing_client::{CapturingClient, no_copy};
use crate::client::{Client, LocalFuture};
use logstead_sql_parse::ast::{CopyTarget, Stmt};
use logstead_sql_parse::plpgsql::tree::{Expr, Into};
use logstead_sql_plan::{Command, OutputColumn};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, oid};
use logstead_types::SqlState;
use std::collections::VecDeque;
use std::rc::Rc;

use super::evaluate::QueryRows;
use super::extra_checks::Level;

fn no_destination(command: Command) -> SqlError {
    let error = SqlError::new(
        SqlState::SYNTAX_ERROR,
        "query has no destination for result data",
    );
    match command {
        Command::Select => {
            error.hint("If you want to discard the results of a SELECT, use PERFORM instead.")
        }
        _ => error,
    }
}

/// What comes of a statement that is not planned.
pub(super) struct UtilityResult {
    columns: Vec<OutputColumn>,
    rows: Vec<Vec<Datum>>,
    /// Rows that CREATE TABLE AS wrote.
    count: u64,
}

/// The rows that a command tag counts.
fn written(tag: &str) -> u64 {
    let count = tag.strip_prefix("SELECT ");
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// A statement's rows, if it gives any, and how many it gave or wrote.
struct StatementResult {
    columns: Vec<OutputColumn>,
    rows: VecDeque<Vec<Datum>>,
    count: u64,
    /// Which planned statement it was.
    command: Option<Command>,
}

impl Session {
    /// Runs a statement of a body; its rows and their count.
    pub(super) async fn query(
        &mut self,
        act: &mut Activation,
        query: &Expr,
        rows_max: u64,
        client: &mut dyn Client,
    ) -> Result<(VecDeque<Vec<Datum>>, u64)> {
        let ran = self.run_piece(act, query, rows_max, client).await?;
        Ok((ran.rows, ran.count))
    }

    fn run_piece<'a>(
        &'a mut self,
        act: &'a mut Activation,
        query: &'a Expr,
        rows_max: u64,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<StatementResult>> {
        Box::pin(async move {
            let piece = self
                .piece(act, query)
                .map_err(|error| self.add_context(error, query))?;
            if piece.statement.is_query() {
                let (_, _) = self.planned(act, query)?;
                let ran = self.rows_of(act, &piece, rows_max, client).await;
                let (plan, rows, count) = ran.map_err(|error| self.add_context(error, query))?;
                return Ok(StatementResult {
                    columns: plan.columns.clone(),
                    rows,
                    count,
                    command: Some(plan.command),
                });
            }
            let statement = Rc::clone(&piece.statement);
            refuse_statement(&statement)?;
            let params = act.all_params(&piece);
            let ran = self.utility(&statement, &params, client).await;
            let ran = ran.map_err(|error| self.add_context(error, query))?;
            Ok(StatementResult {
                columns: ran.columns,
                rows: ran.rows.into(),
                count: ran.count,
                command: None,
            })
        })
    }

    /// A statement that is not planned.
    pub(super) fn utility<'a>(
        &'a mut self,
        statement: &'a Statement,
        params: &'a [Datum],
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<UtilityResult>> {
        Box::pin(async move {
            self.refuse_in_routine(statement)?;
            let memory = self.worker.instance.engine.memory();
            let mut quiet = CapturingClient::new(client, memory);
            // A statement may run a body: without a box the futures would be infinitely large.
            let run: LocalFuture<'_, Result<Reply>> =
                Box::pin(self.run_utility(statement, params, &[], &mut quiet));
            match run.await? {
                Reply::Tag(tag) => Ok(UtilityResult {
                    columns: Vec::new(),
                    rows: quiet.into_rows().into(),
                    count: written(&tag),
                }),
                Reply::Rows { columns, rows, .. } => Ok(UtilityResult {
                    columns,
                    rows,
                    count: 0,
                }),
            }
        })
    }

    /// A statement of a body that stands alone, with or without INTO.
    pub(super) fn sql_statement<'a>(
        &'a mut self,
        act: &'a mut Activation,
        query: &'a Expr,
        into: Option<&'a Into>,
        changes: bool,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some(into) = into else {
                let ran = self.run_piece(act, query, 0, client).await?;
                if !ran.columns.is_empty() || ran.command == Some(Command::Select) {
                    return Err(no_destination(ran.command.unwrap_or(Command::Select)));
                }
                act.row_count = ran.count;
                if ran.command.is_some() {
                    act.found(ran.count > 0);
                }
                return Ok(());
            };
            // Two tell that there is more than one.
            let looked_at = act.checks.too_many_rows;
            let rows_max = match into.strict || looked_at != Level::Off {
                true => 2,
                false => 1,
            };
            let ran = self.run_piece(act, query, rows_max, client).await?;
            if ran.columns.is_empty() {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "INTO used with a command that cannot return data",
                ));
            }
            act.row_count = ran.count;
            act.found(ran.count > 0);
            let only_one = into.strict || changes;
            if ran.rows.len() > 1 && !only_one && looked_at != Level::Off {
                let error = too_many_rows();
                match looked_at {
                    Level::Error => return Err(error),
                    _ => client.notice("WARNING", error.fields()),
                }
            }
            self.warn_of_assignment(act, into, &ran, client)?;
            self.take_row(act, into, &ran, only_one)
        })
    }

    /// Puts the first row where INTO says.
    fn take_row(
        &self,
        act: &mut Activation,
        into: &Into,
        ran: &StatementResult,
        only_one: bool,
    ) -> Result<()> {
        let row = ran.rows.front().map(Vec::as_slice);
        if row.is_none() && into.strict {
            return Err(SqlError::new(
                SqlState::new(b"P0002"),
                "query returned no rows",
            ));
        }
        if ran.rows.len() > 1 && only_one {
            return Err(too_many_rows());
        }
        self.assign_row(act, &into.targets, &ran.columns, row)
    }

    /// A WARNING where the columns do not fit the targets, if that is asked for.
    fn warn_of_assignment(
        &self,
        act: &Activation,
        into: &Into,
        ran: &StatementResult,
        client: &mut dyn Client,
    ) -> Result<()> {
        if act.checks.assignment != Level::Warning || ran.rows.is_empty() {
            return Ok(());
        }
        self.check_assignment(act, &into.targets, &ran.columns, Some(client))
    }

    /// CALL and DO in a body.
    pub(super) fn call_statement<'a>(
        &'a mut self,
        act: &'a mut Activation,
        statement: &'a Expr,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { self.call_in_body(act, statement, client).await })
    }

    /// The text that EXECUTE is to run.
    pub(super) async fn text_of(
        &mut self,
        act: &mut Activation,
        query: &Expr,
        client: &mut dyn Client,
    ) -> Result<String> {
        match self.value_as(act, query, oid::TEXT, client).await? {
            Datum::Text(text) => Ok(text.to_string()),
            _ => Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "query string argument of EXECUTE is null",
            )),
        }
    }

    /// Values and types of USING.
    pub(super) async fn using(
        &mut self,
        act: &mut Activation,
        params: &[Expr],
        client: &mut dyn Client,
    ) -> Result<(Vec<Datum>, Vec<Option<TypeId>>)> {
        let (mut values, mut types) = (Vec::new(), Vec::new());
        for param in params {
            let (value, ty) = self.value(act, param, client).await?;
            values.push(value);
            types.push(Some(match ty.oid {
                oid::UNKNOWN => oid::TEXT,
                known => known,
            }));
        }
        Ok((values, types))
    }

    /// EXECUTE.
    pub(super) fn execute_text<'a>(
        &'a mut self,
        act: &'a mut Activation,
        query: &'a Expr,
        into: Option<&'a Into>,
        params: &'a [Expr],
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let text = self.text_of(act, query, client).await?;
            let (values, types) = self.using(act, params, client).await?;
            let rows_max = match into {
                Some(into) if !into.strict => 1,
                Some(_) => 2,
                None => 0,
            };
            let parsed = self.worker.caches.borrow_mut().parse(&text);
            let parsed = parsed.map_err(|error| add_text_context(error, &text))?;
            for index in 0..parsed.statements.len() {
                let statement = Statement::new(Rc::clone(&parsed), Some(index), types.clone());
                refuse_computed(&statement)?;
            }
            self.atomic += 1;
            let ran = self
                .run_text_of(&text, &values, &types, rows_max, client)
                .await;
            self.atomic = self.atomic.saturating_sub(1);
            let ran = ran.map_err(|error| add_text_context(error, &text))?;
            act.row_count = ran.count;
            match into {
                Some(into) if ran.columns.is_empty() => {
                    let _ = into;
                    Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "INTO used with a command that cannot return data",
                    ))
                }
                Some(into) => {
                    self.warn_of_assignment(act, into, &ran, client)?;
                    self.take_row(act, into, &ran, into.strict)
                }
                None => Ok(()),
            }
        })
    }

    /// Runs the statements of a text that was computed; what came of the last one.
    fn run_text_of<'a>(
        &'a mut self,
        text: &'a str,
        values: &'a [Datum],
        types: &'a [Option<TypeId>],
        rows_max: u64,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<StatementResult>> {
        Box::pin(async move {
            let parsed = self.worker.caches.borrow_mut().parse(text)?;
            let mut last = StatementResult {
                columns: Vec::new(),
                rows: VecDeque::new(),
                count: 0,
                command: None,
            };
            for index in 0..parsed.statements.len() {
                let statement = Statement::new(Rc::clone(&parsed), Some(index), types.to_vec());
                if !statement.is_query() {
                    let ran = self.utility(&statement, values, client).await?;
                    last = StatementResult {
                        columns: ran.columns,
                        rows: ran.rows.into(),
                        count: ran.count,
                        command: None,
                    };
                    continue;
                }
                let plan = self.prepare_run(&statement).await?;
                if plan.param_types.len() > values.len() {
                    return Err(SqlError::new(
                        SqlState::UNDEFINED_PARAMETER,
                        format!("there is no parameter ${}", values.len() + 1),
                    ));
                }
                let (plan, rows, count) = self.run_plan(plan, values, rows_max, client).await?;
                last = StatementResult {
                    columns: plan.columns.clone(),
                    rows,
                    count,
                    command: Some(plan.command),
                };
            }
            Ok(last)
        })
    }

    /// The rows of a query, for a loop.
    pub(super) fn open_query<'a>(
        &'a mut self,
        act: &'a Activation,
        query: &'a Expr,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<QueryRows>> {
        Box::pin(async move {
            let piece = self
                .piece(act, query)
                .map_err(|error| self.add_context(error, query))?;
            if !piece.statement.is_query() {
                let params = act.all_params(&piece);
                let opened = self.open_utility(&piece.statement, &params, client).await;
                return opened.map_err(|error| match is_not_a_query(&error) {
                    true => error,
                    false => self.add_context(error, query),
                });
            }
            self.planned(act, query)?;
            let opened = async {
                let plan = self.prepare_run(&piece.statement).await?;
                if !plan.gives_rows() {
                    return Err(not_a_query_but(&piece.statement));
                }
                let params = Session::params_of(act, &piece, &plan);
                self.keep_rows(plan, params, client).await
            };
            let opened = opened.await;
            opened.map_err(|error| match is_not_a_query(&error) {
                true => error,
                false => self.add_context(error, query),
            })
        })
    }

    /// The rows of a statement that gives some although it is not planned: EXPLAIN, SHOW.
    fn open_utility<'a>(
        &'a mut self,
        statement: &'a Statement,
        params: &'a [Datum],
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<QueryRows>> {
        Box::pin(async move {
            if !matches!(
                statement.utility(),
                Some(Stmt::Explain(_) | Stmt::VariableShow(_))
            ) {
                return Err(not_a_query_but(statement));
            }
            let ran = self.utility(statement, params, client).await?;
            Ok(QueryRows::of_utility(ran.columns, ran.rows.into()))
        })
    }

    /// The same of one that is computed.
    pub(super) fn open_text<'a>(
        &'a mut self,
        act: &'a mut Activation,
        query: &'a Expr,
        params: &'a [Expr],
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<QueryRows>> {
        Box::pin(async move {
            let text = self.text_of(act, query, client).await?;
            let (values, types) = self.using(act, params, client).await?;
            let opened = async {
                let parsed = self.worker.caches.borrow_mut().parse(&text)?;
                if parsed.statements.len() != 1 {
                    return Err(many_queries());
                }
                let statement = Statement::new(parsed, Some(0), types);
                refuse_computed(&statement)?;
                if !statement.is_query() {
                    return self.open_utility(&statement, &values, client).await;
                }
                let plan = self.prepare_run(&statement).await?;
                if !plan.gives_rows() {
                    return Err(not_a_query_but(&statement));
                }
                if plan.param_types.len() > values.len() {
                    return Err(SqlError::new(
                        SqlState::UNDEFINED_PARAMETER,
                        format!("there is no parameter ${}", values.len() + 1),
                    ));
                }
                self.keep_rows(plan, values, client).await
            };
            opened.await.map_err(|error| match is_not_a_query(&error) {
                true => error,
                false => add_text_context(error, &text),
            })
        })
    }

    /// 25001 for what cannot be in a transaction that a routine is part of.
    fn refuse_in_routine(&self, statement: &Statement) -> Result<()> {
        self.refuse_in_block(statement, true).map_err(|error| {
            let text = &error.fields().message;
            let what = text
                .split_once(" cannot ")
                .map_or(text.as_str(), |(what, _)| what);
            SqlError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                format!("{what} cannot be executed from a function"),
            )
        })
    }
}

fn too_many_rows() -> SqlError {
    SqlError::new(SqlState::new(b"P0003"), "query returned more than one row")
        .hint("Make sure the query returns a single row, or use LIMIT 1.")
}

/// 42P11 for a statement that gives no rows.
pub(super) fn not_a_query_but(statement: &Statement) -> SqlError {
    let tag = statement.parsed().map(|parsed| parsed.statement.tag());
    let message = format!("cannot open {} query as cursor", tag.unwrap_or_default());
    SqlError::new(SqlState::new(b"42P11"), message)
}

/// Says an error that a statement gives no rows?
pub(super) fn is_not_a_query(error: &SqlError) -> bool {
    error.code() == SqlState::new(b"42P11")
        && error.fields().message.starts_with("cannot open ")
        && error.fields().context.is_none()
}

/// What RETURN QUERY says of a statement that gives no rows.
pub(super) fn no_tuples(error: &SqlError) -> Option<SqlError> {
    let message = &error.fields().message;
    let command = message.strip_prefix("cannot open ");
    let command = command?.strip_suffix(" query as cursor")?;
    let tuples = format!("{command} query does not return tuples");
    is_not_a_query(error).then(|| SqlError::new(SqlState::SYNTAX_ERROR, tuples))
}

/// 42P11 for a text of several statements.
pub(super) fn many_queries() -> SqlError {
    SqlError::new(
        SqlState::new(b"42P11"),
        "cannot open multi-query plan as cursor",
    )
}

/// What a body does not run.
fn refuse_statement(statement: &Statement) -> Result<()> {
    match statement.utility() {
        Some(Stmt::Transaction(_)) => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "unsupported transaction command in PL/pgSQL",
        )),
        Some(Stmt::Copy(copy)) if copy.target == CopyTarget::Client => Err(no_copy()),
        _ => Ok(()),
    }
}

/// What EXECUTE does not run.
pub(super) fn refuse_computed(statement: &Statement) -> Result<()> {
    let refused = |what: &str| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what));
    match statement.utility() {
        Some(Stmt::Transaction(_)) => refused("EXECUTE of transaction commands is not implemented"),
        Some(Stmt::CreateTableAs(create)) if create.is_select_into => {
            refused("EXECUTE of SELECT ... INTO is not implemented").map_err(|error| {
                error.hint(
                "You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.",
            )
            })
        }
        _ => refuse_statement(statement),
    }
}

/// An error of a text that was computed: where in it, or that it happened there.
pub(super) fn add_text_context(mut error: SqlError, text: &str) -> SqlError {
    let fields = error.fields_mut();
    if fields.fatal {
        return error;
    }
    if let Some(position) = fields.position.take() {
        fields.inner_query = Some((position, text.to_owned()));
        return error;
    }
    error.context(format!("SQL statement \"{text}\""))
}
