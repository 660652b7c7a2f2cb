//! Functions and procedures of LANGUAGE sql that are run statement by statement: those that are more than one query,
//! that change something, or that call themselves.
//!
//! All statements are planned before the first one is run, so one that makes a table is not seen by those behind it.
//! What the last one gives is the result. All others of LANGUAGE sql stand in the place of their calls
//! (`bind::inline_function`).

use super::{CastCache, Frame, FrameBody, Session};
use crate::SessionContext;
use crate::cached_plan::{Statement, given_to};
use crate::client::{Client, LocalFuture};
use logstead_sql_catalog::Catalog;
use logstead_sql_catalog::routine::{Routine as Definition, RoutineBody};
use logstead_sql_exec::{EvalContext, PendingCall, eval};
use logstead_sql_parse::ast::Stmt;
use logstead_sql_plan::OutputColumn;
use logstead_sql_plan::bind::{Variables, assignment_cast, check_given, sql_variables};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid, record, user};
use logstead_types::SqlState;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// A body, ready to be run with arguments of certain types.
pub(crate) struct SqlBody {
    statements: Vec<Rc<Statement>>,
    casts: RefCell<CastCache>,
}

/// What the last statement gave.
struct Last {
    columns: Vec<OutputColumn>,
    rows: VecDeque<Vec<Datum>>,
    /// It is one that gives rows.
    gives: bool,
}

impl Session {
    /// A function's body, ready to be run.
    fn sql_body(&mut self, definition: &Arc<Definition>, types: &[SqlType]) -> Result<Rc<SqlBody>> {
        let catalog = self.catalog()?;
        let key = (definition.oid, types.to_vec());
        let current = |made_with: &Arc<Catalog>| Arc::ptr_eq(made_with, &catalog);
        if let Some((made_with, body)) = self.sql_functions.get(&key)
            && current(made_with)
        {
            return Ok(Rc::clone(body));
        }
        let RoutineBody::Text(text) = &definition.body;
        let parsed = self.worker.caches.borrow_mut().parse(text);
        let parsed = parsed.map_err(without_position)?;
        let plain: Vec<SqlType> = types
            .iter()
            .map(|ty| catalog.types.base_type(*ty))
            .collect();
        let variables: Rc<Variables> = Rc::new(sql_variables(definition, &plain));
        let mut statements = Vec::with_capacity(parsed.statements.len());
        for at in 0..parsed.statements.len() {
            let mut statement = Statement::new(Rc::clone(&parsed), Some(at), Vec::new());
            statement.variables = Some(Rc::clone(&variables));
            let statement = Rc::new(statement);
            self.worker.remember_statement(&statement);
            statements.push(statement);
        }
        let body = Rc::new(SqlBody {
            statements,
            casts: RefCell::default(),
        });
        self.sql_functions
            .retain(|_, (made_with, _)| current(made_with));
        self.sql_functions
            .insert(key, (Arc::clone(&catalog), Rc::clone(&body)));
        Ok(body)
    }

    /// Runs the statements; what came of the last one, at most so many rows (0: all).
    fn run_sql_body<'a>(
        &'a mut self,
        definition: &'a Arc<Definition>,
        body: &'a SqlBody,
        values: &'a [Datum],
        rows_max: u64,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Last>> {
        Box::pin(async move {
            let name = &definition.name;
            for statement in &body.statements {
                let planned = match statement.is_query() {
                    true => self
                        .plan(statement)
                        .and_then(|plan| self.refuse_in_stable(&plan)),
                    false => refuse(statement).and_then(|()| match statement.parsed() {
                        Some(parsed) => self.refuse_utility_in_stable(parsed),
                        None => Ok(()),
                    }),
                };
                planned.map_err(|error| {
                    in_body(error, definition, || {
                        format!("SQL function \"{name}\" during startup")
                    })
                })?;
            }
            let mut last = Last {
                columns: Vec::new(),
                rows: VecDeque::new(),
                gives: false,
            };
            let count = body.statements.len();
            let around = self.frames.len();
            self.frames.push(Frame {
                body: FrameBody::Sql(name.as_str().into()),
                line: 0,
                doing: "",
                sql: None,
            });
            for (number, statement) in (1..).zip(&body.statements) {
                let rows_max = if number == count { rows_max } else { 0 };
                if let Some(frame) = self.frames.last_mut() {
                    frame.line = number;
                }
                let ran = self.run_sql_statement(statement, values, rows_max, client);
                let ran = ran.await;
                if ran.is_err() {
                    self.frames.truncate(around);
                }
                last = ran.map_err(|error| {
                    in_body(error, definition, || {
                        format!("SQL function \"{name}\" statement {number}")
                    })
                })?;
            }
            self.frames.truncate(around);
            Ok(last)
        })
    }

    async fn run_sql_statement(
        &mut self,
        statement: &Statement,
        values: &[Datum],
        rows_max: u64,
        client: &mut dyn Client,
    ) -> Result<Last> {
        if !statement.is_query() {
            match statement.utility() {
                // What it gives is not the function's.
                Some(Stmt::Call(call)) => drop(self.call(statement, call, values, client).await?),
                _ => drop(self.utility(statement, values, client).await?),
            }
            return Ok(Last {
                columns: Vec::new(),
                rows: VecDeque::new(),
                gives: false,
            });
        }
        let plan = self.prepare_run(statement).await?;
        let params = given_to(&plan, statement, values);
        let (plan, rows, _) = self.run_plan(plan, &params, rows_max, client).await?;
        Ok(Last {
            gives: plan.gives_rows(),
            columns: plan.columns.clone(),
            rows,
        })
    }

    /// Runs a function; its rows.
    pub(super) fn sql_function<'a>(
        &'a mut self,
        definition: &'a Arc<Definition>,
        call: &'a PendingCall,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<VecDeque<Vec<Datum>>>> {
        Box::pin(async move {
            self.enter_body().await?;
            let ran = self.rows_of_function(definition, call, client).await;
            self.routines = self.routines.saturating_sub(1);
            ran
        })
    }

    async fn rows_of_function(
        &mut self,
        definition: &Arc<Definition>,
        call: &PendingCall,
        client: &mut dyn Client,
    ) -> Result<VecDeque<Vec<Datum>>> {
        let body = self.sql_body(definition, &call.types)?;
        let callee = &call.callee;
        // A query that changes nothing is asked for no more rows than are wanted.
        let rows_max = u64::from(!callee.set);
        let last = self
            .run_sql_body(definition, &body, &call.args, rows_max, client)
            .await?;
        if callee.result.oid == oid::VOID {
            return Ok(match callee.set {
                true => VecDeque::new(),
                false => VecDeque::from([vec![Datum::Null]]),
            });
        }
        let given: Vec<SqlType> = last.columns.iter().map(|column| column.ty).collect();
        let startup = |error| {
            in_body(error, definition, || {
                format!("SQL function \"{}\" during startup", definition.name)
            })
        };
        if !last.gives {
            return Err(startup(no_result(definition, &self.context)));
        }
        let listed = match callee.row {
            true => callee.columns.as_slice(),
            false => &[],
        };
        let whole = self
            .context
            .with_types(|types| check_given(definition, &given, listed, types));
        let whole = whole.map_err(startup)?;
        let targets = self.targets(definition, call, &given, whole)?;
        let mut rows = VecDeque::with_capacity(last.rows.len());
        for row in last.rows {
            let row = self.given_row(&body, call, row, (&given, &targets), whole);
            let row = row.map_err(|error| {
                let (name, last) = (&definition.name, body.statements.len());
                in_body(error, definition, || {
                    format!("SQL function \"{name}\" statement {last}")
                })
            });
            rows.push_back(row?);
            if !callee.set {
                break;
            }
        }
        if rows.is_empty() && !callee.set {
            rows.push_back(vec![Datum::Null; callee.columns.len()]);
        }
        Ok(rows)
    }

    /// The types that the columns of the last statement come to.
    fn targets(
        &self,
        definition: &Definition,
        call: &PendingCall,
        given: &[SqlType],
        whole: bool,
    ) -> Result<Vec<SqlType>> {
        if whole {
            return Ok(given.to_vec());
        }
        let outputs = self
            .context
            .with_types(|types| definition.output_types(&call.types, types))?;
        let result = call.callee.result;
        Ok(if result.oid == oid::RECORD && outputs.is_empty() {
            // What the list of columns says is what is wanted.
            match call.callee.row {
                true => call.callee.columns.clone(),
                false => given.to_vec(),
            }
        } else if result.oid == oid::RECORD {
            outputs
        } else if user::is_composite(result.oid) {
            let shape = self.context.types().declared_shape(result.oid);
            let shape = shape.ok_or_else(|| SqlError::internal("a type without fields"))?;
            shape.iter().map(|(_, ty)| *ty).collect()
        } else {
            vec![match user::domain_in(definition.result) {
                Some(_) => SqlType::of(definition.result),
                None => result,
            }]
        })
    }

    /// A row of the last statement as one of the call.
    fn given_row(
        &self,
        body: &SqlBody,
        call: &PendingCall,
        row: Vec<Datum>,
        (given, targets): (&[SqlType], &[SqlType]),
        whole: bool,
    ) -> Result<Vec<Datum>> {
        let width = call.callee.columns.len();
        if whole {
            return Ok(match (call.callee.row, row.into_iter().next()) {
                (true, Some(Datum::Array(record))) => record.items.clone(),
                (true, _) => vec![Datum::Null; width],
                (false, value) => vec![value.unwrap_or(Datum::Null)],
            });
        }
        let mut fields = Vec::with_capacity(row.len());
        for ((value, from), to) in row.into_iter().zip(given).zip(targets) {
            fields.push(self.sql_cast(body, value, *from, *to)?);
        }
        let result = call.callee.result.oid;
        let is_record = result == oid::RECORD || user::is_composite(result);
        Ok(match is_record && !call.callee.row {
            true => vec![record::record(fields)],
            false => fields,
        })
    }

    fn sql_cast(&self, body: &SqlBody, value: Datum, from: SqlType, to: SqlType) -> Result<Datum> {
        let same = from.oid == to.oid && to.typmod < 0;
        if same || (value.is_null() && user::domain_in(to.oid).is_none()) {
            return Ok(value);
        }
        let known = body.casts.borrow().get(&(from, to)).cloned();
        let cast = match known {
            Some(cast) => cast,
            None => {
                let catalog = Arc::clone(&self.context.catalog.borrow());
                let cast = self.with_planning(&catalog, |cx| assignment_cast(from, to, cx))?;
                let cast = Rc::new(cast);
                body.casts.borrow_mut().insert((from, to), Rc::clone(&cast));
                cast
            }
        };
        let cx = EvalContext {
            params: &[],
            session: &*self.context,
        };
        let catalog = Arc::clone(&self.context.catalog.borrow());
        // Each time: the role may be another one now.
        let cast = cast.check_ref(&mut self.context.checker(&catalog))?;
        eval(cast, &[value], &cx)
    }

    /// Runs a procedure; the values of its OUT and INOUT parameters.
    pub(super) fn run_sql_procedure<'a>(
        &'a mut self,
        definition: &'a Arc<Definition>,
        types: &'a [SqlType],
        values: Vec<Datum>,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Vec<Datum>>> {
        Box::pin(async move {
            let body = self.sql_body(definition, types)?;
            self.enter_body().await?;
            self.atomic += 1;
            let ran = self
                .run_sql_body(definition, &body, &values, 1, client)
                .await;
            self.atomic = self.atomic.saturating_sub(1);
            self.routines = self.routines.saturating_sub(1);
            let last = ran?;
            let outputs = self
                .context
                .with_types(|known| definition.output_types(types, known))?;
            if outputs.is_empty() {
                return Ok(Vec::new());
            }
            if !last.gives {
                return Err(no_result(definition, &self.context));
            }
            let given: Vec<SqlType> = last.columns.iter().map(|column| column.ty).collect();
            self.context
                .with_types(|types| check_given(definition, &given, &[], types))?;
            let row = last.rows.into_iter().next();
            let row = row.unwrap_or_else(|| vec![Datum::Null; outputs.len()]);
            let mut fields = Vec::with_capacity(outputs.len());
            for ((value, from), to) in row.into_iter().zip(&given).zip(&outputs) {
                fields.push(self.sql_cast(&body, value, *from, *to)?);
            }
            Ok(fields)
        })
    }
}

fn without_position(mut error: SqlError) -> SqlError {
    error.fields_mut().position = None;
    error
}

/// An error of a body: where in its text it is, and of which function.
fn in_body(
    mut error: SqlError,
    definition: &Definition,
    context: impl FnOnce() -> String,
) -> SqlError {
    let RoutineBody::Text(text) = &definition.body;
    let fields = error.fields_mut();
    if fields.fatal {
        return error;
    }
    if let Some(position) = fields.position.take() {
        fields.inner_query = Some((position, text.clone()));
    }
    error.context(context())
}

/// 42P13 for a body that ends with something that gives nothing.
fn no_result(definition: &Definition, context: &SessionContext) -> SqlError {
    let ty = context.with_types(|types| types.format_type_bare(definition.result));
    SqlError::new(
        SqlState::new(b"42P13"),
        format!("return type mismatch in function declared to return {ty}"),
    )
    .detail("Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.")
}

/// 0A000 for what a function of LANGUAGE sql does not run.
fn refuse(statement: &Statement) -> Result<()> {
    let refused = |what: &str| {
        Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{what} is not allowed in an SQL function"),
        ))
    };
    match statement.utility() {
        Some(stmt @ Stmt::Transaction(_)) => refused(stmt.tag()),
        Some(Stmt::Copy(_)) => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot COPY to/from client in an SQL function",
        )),
        _ => Ok(()),
    }
}
