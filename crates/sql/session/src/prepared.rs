//! PREPARE, EXECUTE, DEALLOCATE. What clients prepare by messages is `extended`'s; when a plan is made anew is
//! decided in `cached_plan`.

use super::cached_plan::{ParsedText, Statement};
use super::client::Client;
use super::run::{CommandTag, RunOutcome};
use super::{Reply, Session};
use logstead_sql_catalog::deparse;
use logstead_sql_exec::{self as exec, Execution};
use logstead_sql_func as func;
use logstead_sql_parse::Parsed;
use logstead_sql_parse::ast::{self, ExecuteStmt, Expr, PrepareStmt, Stmt};
use logstead_sql_plan::Node;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeSpelling;
use logstead_sql_types::value::{self, Datum, SqlType};
use logstead_types::SqlState;
use std::rc::Rc;
use std::sync::Arc;

impl ParsedText {
    /// The statement that PREPARE prepares. It keeps its place in the text, so that error positions count as in the
    /// text sent.
    pub(super) fn of_prepare(
        text: &Rc<str>,
        outer: &Parsed,
        prepare: &PrepareStmt,
    ) -> Result<Rc<ParsedText>> {
        let inner = Parsed {
            statement: Arc::new(outer.statement.part(Stmt::clone(&prepare.query))),
            ..outer.clone()
        };
        Ok(ParsedText::new(Rc::clone(text), vec![inner]))
    }
}

impl Session {
    /// DEALLOCATE; of no name it is ALL.
    pub(super) fn deallocate(&mut self, name: Option<&str>) -> Result<Reply> {
        let mut statements = self.context.statements.borrow_mut();
        let Some(name) = name else {
            statements.retain(|name, _| name.is_empty());
            return Ok(Reply::tag("DEALLOCATE ALL"));
        };
        match statements.remove(name) {
            Some(_) => Ok(Reply::tag("DEALLOCATE")),
            None => Err(SqlError::new(
                SqlState::INVALID_SQL_STATEMENT_NAME,
                format!("prepared statement \"{name}\" does not exist"),
            )),
        }
    }

    /// PREPARE.
    pub(super) async fn prepare(
        &mut self,
        stmt: &PrepareStmt,
        outer: &Statement,
        parsed: &Parsed,
    ) -> Result<Reply> {
        let text = &outer.text.text;
        let name = stmt.name.to_string();
        if self.context.statements.borrow().contains_key(&name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let catalog = self.catalog()?;
        let path = self.context.path_in(&catalog);
        let lookup = self.context.lookup(&catalog, &path);
        let types = stmt.argtypes.iter().map(|ty| {
            let found = logstead_sql_catalog::type_name::sql_type(ty, lookup);
            let found = found.map_err(|error| error.at(ty.location.character(text)))?;
            Ok(Some(found.oid))
        });
        let declared = types.collect::<Result<_>>()?;
        let text = ParsedText::of_prepare(text, parsed, stmt)?;
        let mut statement = Statement::new(text, Some(0), declared);
        statement.from_sql = true;
        statement.takes_parameters = true;
        self.describe_as_of(&statement).await?;
        self.keep_statement(name, statement);
        Ok(Reply::tag("PREPARE"))
    }

    /// The types of a prepared statement's parameters.
    pub(super) fn parameter_types(&mut self, statement: &Statement) -> Result<Vec<SqlType>> {
        Ok(self.describe(statement)?.param_types.clone())
    }

    /// EXECUTE.
    pub(super) async fn execute_prepared(
        &mut self,
        stmt: &ExecuteStmt,
        formats: &[i16],
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let statement = &*self.find_statement(&stmt.name)?;
        let types = self.parameter_types(statement)?;
        if stmt.params.len() == types.len() && !statement.is_query() {
            return Err(SqlError::unsupported(
                "EXECUTE of a statement that is no query",
            ));
        }
        let params = self.execute_arguments(stmt, &types).await?;
        self.enter_as_of(statement, &params).await?;
        let plan = self.prepare_run(statement).await?;
        let mark = client.mark();
        if plan.gives_rows() && self.in_simple_query {
            client.row_description(&plan.columns, formats);
        }
        client.start_rows(&plan.columns, formats);
        let mut execution = Execution::new(Arc::clone(&plan.prepared));
        let ran = self
            .run(&plan, &mut execution, &params, true, 0, client)
            .await;
        if ran.is_err() {
            // PostgreSQL gives the rows of an EXECUTE when it has them all.
            client.take_back(mark);
        }
        let rows = match ran? {
            RunOutcome::Done { rows } => rows,
            RunOutcome::Suspended => 0,
        };
        Ok(Reply::Tag(CommandTag(plan.command, rows).to_string()))
    }

    /// The values of EXECUTE's arguments. 42601 for too many or too few.
    pub(super) async fn execute_arguments(
        &mut self,
        stmt: &ExecuteStmt,
        types: &[SqlType],
    ) -> Result<Vec<Datum>> {
        if stmt.params.len() != types.len() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!(
                    "wrong number of parameters for prepared statement \"{}\"",
                    stmt.name
                ),
            )
            .detail(format!(
                "Expected {} parameters but got {}.",
                types.len(),
                stmt.params.len()
            )));
        }
        self.arguments(&stmt.params, types).await
    }

    /// Evaluates the arguments of EXECUTE, coerced to the parameters' types.
    pub(super) async fn arguments(
        &mut self,
        arguments: &[Expr],
        types: &[SqlType],
    ) -> Result<Vec<Datum>> {
        // They run before the transaction of the statement is open, and are as read-only as that.
        let modes = self.modes_for_statement()?;
        self.context.take_modes(&modes);
        self.see_types_of(types)?;
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, ty) in arguments.iter().zip(types) {
            values.push(self.argument(values.len() + 1, argument, *ty)?);
        }
        self.sleep_as_asked().await?;
        Ok(values)
    }

    fn argument(&mut self, number: usize, argument: &ast::Expr, ty: SqlType) -> Result<Datum> {
        // A domain's rules are asked where the parameter is used.
        let catalog = self.catalog()?;
        let ty = catalog.types.base_type(ty);
        // An untyped literal is read as the parameter's type.
        if let Some(text) = argument.literal() {
            return value::text_io::input(ty, text, Some(&*self.context));
        }
        if argument.is_null() {
            return Ok(Datum::Null);
        }
        let path = self.context.path_in(&catalog);
        let types = self.context.lookup(&catalog, &path).types();
        let shown = deparse::plain(argument, TypeSpelling::named(types));
        let text = format!("SELECT {shown}");
        let parsed = logstead_sql_parse::parse(&text)?;
        let Some(parsed) = parsed.first() else {
            return Err(SqlError::internal("an argument vanished"));
        };
        let planned = self.plan_ast(&parsed.statement, &text, &[], &path, &catalog)?;
        let plan = planned.plan.check(&mut self.context.checker(&catalog))?;
        let (exprs, from) = match (&plan.node, planned.columns.as_slice()) {
            (Node::Project { exprs, .. }, [column]) => (exprs.as_slice(), column.ty),
            (Node::Values(rows), [column]) if rows.len() == 1 => (rows[0].as_slice(), column.ty),
            _ => {
                return Err(SqlError::unsupported(format!(
                    "EXECUTE with the argument {shown}"
                )));
            }
        };
        let [expr] = exprs else {
            return Err(SqlError::internal("an argument has one value"));
        };
        let eval = exec::EvalContext {
            params: &[],
            session: &*self.context,
        };
        let datum = exec::eval(expr, &[], &eval)?;
        let Some(cast) = func::find_cast(from.oid, ty.oid, func::CastContext::Assignment) else {
            if from.oid == ty.oid {
                return logstead_sql_types::value::typmod::coerce_typmod(datum, ty, false);
            }
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "parameter ${number} of type {} cannot be coerced to the expected type {}",
                    types.format_type(from),
                    types.format_type(ty)
                ),
            )
            .hint("You will need to rewrite or cast the expression."));
        };
        func::apply_cast(cast, &datum, from, ty, false, Some(&*self.context))
    }
}
