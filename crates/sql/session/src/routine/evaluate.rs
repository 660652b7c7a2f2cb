//! Expressions and queries of a body: made into statements once, then run with the variables' values.

use super::{Activation, Session};
use crate::cached_plan::{CachedPlan, PermittedPlan, Statement};
use crate::client::{Client, LocalFuture};
use crate::limits::run_with_limits;
use crate::portal::CollectedRows;
use logstead_sql_catalog::context::PlannerOptions;
use logstead_sql_exec::{EvalContext, Execution, Progress, StatementContext, eval};
use logstead_sql_parse::plpgsql::tree::{Expr, Scope, VarNo};
use logstead_sql_plan::OutputColumn;
use logstead_sql_plan::bind::{Group, Variables};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use super::values::VariableKind;
use crate::capturing_client::CapturingClient;

/// Where a parameter's value comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    Variable(VarNo),
    Field(VarNo, usize),
    Table(usize),
}

/// A statement made of a piece of SQL.
pub(super) struct PreparedExpr {
    pub(super) statement: Rc<Statement>,
    sources: Vec<Source>,
    /// Variables whose types change, with those that it was made with.
    loose: Vec<(VarNo, SqlType)>,
    /// The tables that the body saw besides.
    tables: Vec<(Arc<str>, SqlType)>,
}

/// Rows of a query that has run to its end: its transaction and snapshot may go on.
pub(super) struct QueryRows {
    /// Where more of them come from; none for those of a statement that is not planned (EXPLAIN, SHOW), which are all
    /// here.
    source: Option<Box<RowSource>>,
    columns: Vec<OutputColumn>,
    ready: VecDeque<Vec<Datum>>,
    ended: bool,
}

/// A query that has run to its end.
struct RowSource {
    plan: PermittedPlan,
    execution: Execution,
    params: Vec<Datum>,
}

impl QueryRows {
    /// Rows that are all here.
    pub(super) fn of_utility(columns: Vec<OutputColumn>, rows: VecDeque<Vec<Datum>>) -> QueryRows {
        QueryRows {
            source: None,
            columns,
            ready: rows,
            ended: true,
        }
    }

    /// The plan that they are of, if they are of one.
    pub(super) fn plan(&self) -> Option<&PermittedPlan> {
        self.source.as_ref().map(|source| &source.plan)
    }
}

/// What came of a plan: its rows, and how many it gave or wrote.
type PlanRun = (PermittedPlan, VecDeque<Vec<Datum>>, u64);

/// Rows taken at once from those that are kept.
const ROWS_AT_ONCE: u64 = 256;

impl Activation {
    /// What a piece of SQL sees of the variables.
    fn variables(
        &self,
        scope: Scope,
        types: &UserTypes,
    ) -> (Variables, Vec<Source>, Vec<(VarNo, SqlType)>) {
        let body = &self.routine.body;
        let mut seen = Variables {
            types: Vec::new(),
            names: Vec::new(),
            groups: Vec::new(),
            tables: Vec::new(),
            conflict: body.conflict.unwrap_or(self.conflict),
        };
        let (mut sources, mut loose) = (Vec::new(), Vec::new());
        let mut block: Vec<(Arc<str>, usize)> = Vec::new();
        let mut records: Vec<usize> = Vec::new();
        let mut at = scope;
        while let Some(name) = at.and_then(|at| body.names.get(at)) {
            at = name.before;
            let Some(variable) = name.variable else {
                let label: Arc<str> = name.name.as_str().into();
                for record in records.drain(..) {
                    if let Some(group) = seen.groups.get_mut(record) {
                        group.block = Some(Arc::clone(&label));
                    }
                }
                let members = std::mem::take(&mut block);
                let known = seen.groups.iter().any(|group| group.name == label);
                if !label.is_empty() && !known {
                    seen.groups.push(Group {
                        block: None,
                        name: label,
                        members,
                        record: false,
                        unassigned: false,
                    });
                }
                continue;
            };
            let shown: Arc<str> = name.name.as_str().into();
            let is = self.types[variable];
            // A parameter has two names, for one value.
            let known = sources
                .iter()
                .position(|source| matches!(source, Source::Variable(other) if *other == variable));
            let number = known.unwrap_or(sources.len());
            if known.is_none() {
                sources.push(Source::Variable(variable));
                seen.types.push(is);
            }
            block.push((Arc::clone(&shown), number));
            let hidden = seen.names.iter().any(|(known, _)| *known == shown);
            if !hidden {
                seen.names.push((Arc::clone(&shown), number));
            }
            let kind = self.routine.kinds[variable];
            let changes = match kind {
                VariableKind::Record => true,
                VariableKind::Scalar(ty) => ty.oid == oid::UNKNOWN,
                VariableKind::Row(_) => false,
            };
            if changes {
                loose.push((variable, is));
            }
            if !matches!(kind, VariableKind::Scalar(_)) && !hidden {
                let shape = types.tuple_desc_of(is);
                let unassigned = shape.is_none();
                let mut members = Vec::new();
                for (field, (name, ty)) in shape.iter().flat_map(|shape| shape.iter()).enumerate() {
                    members.push((Arc::clone(name), sources.len()));
                    sources.push(Source::Field(variable, field));
                    seen.types.push(*ty);
                }
                records.push(seen.groups.len());
                seen.groups.push(Group {
                    block: None,
                    name: shown,
                    members,
                    record: true,
                    unassigned,
                });
            }
        }
        for (at, (name, ty, _)) in self.tables.iter().enumerate() {
            seen.tables.push((Arc::clone(name), sources.len()));
            sources.push(Source::Table(at));
            seen.types.push(*ty);
        }
        (seen, sources, loose)
    }

    fn sees(&self, tables: &[(Arc<str>, SqlType)]) -> bool {
        let own = self.tables.iter().map(|(name, ty, _)| (name, ty));
        own.eq(tables.iter().map(|(name, ty)| (name, ty)))
    }

    /// Parameters of a statement that is not planned as a whole: which of them it uses is not known.
    pub(super) fn all_params(&self, piece: &PreparedExpr) -> Vec<Datum> {
        self.params(piece, &vec![true; piece.sources.len()])
    }

    /// Values of a piece's parameters; those that it does not name are NULL.
    fn params(&self, piece: &PreparedExpr, used: &[bool]) -> Vec<Datum> {
        let mut params = Vec::with_capacity(piece.sources.len());
        for (at, source) in piece.sources.iter().enumerate() {
            params.push(match (used.get(at), source) {
                (Some(true), Source::Variable(variable)) => self.values[*variable].clone(),
                (Some(true), Source::Table(at)) => {
                    let table = self.tables.get(*at);
                    table.map_or(Datum::Null, |(_, _, rows)| rows.clone())
                }
                (Some(true), Source::Field(variable, field)) => match &self.values[*variable] {
                    Datum::Array(record) => {
                        record.items.get(*field).cloned().unwrap_or(Datum::Null)
                    }
                    _ => Datum::Null,
                },
                _ => Datum::Null,
            });
        }
        params
    }
}

/// What messages call a piece.
fn called(expr: &Expr) -> String {
    match (&expr.assignment, expr.statement) {
        (Some(whole), _) => format!("PL/pgSQL assignment \"{whole}\""),
        (None, true) => format!("SQL statement \"{}\"", expr.text),
        (None, false) => format!("SQL expression \"{}\"", expr.text),
    }
}

/// The length of what stands in front of an expression to make it a query.
const LEAD: usize = "SELECT ".len();

impl Session {
    /// The statement that a piece of SQL is, made anew where a record has other fields than it was made with.
    pub(super) fn piece(&mut self, act: &Activation, expr: &Expr) -> Result<Rc<PreparedExpr>> {
        if let Some(Some(piece)) = act.routine.pieces.borrow().get(expr.number)
            && piece
                .loose
                .iter()
                .all(|(variable, ty)| act.types[*variable] == *ty)
            && act.sees(&piece.tables)
        {
            return Ok(Rc::clone(piece));
        }
        let (variables, sources, loose) = act.variables(expr.scope, &self.context.types());
        let text = match expr.statement {
            true => expr.text.to_string(),
            false => format!("SELECT {}", expr.text),
        };
        let parsed = self.worker.caches.borrow_mut().parse(&text)?;
        let mut statement = Statement::new(parsed, Some(0), Vec::new());
        statement.variables = Some(Rc::new(variables));
        let statement = Rc::new(statement);
        self.worker.remember_statement(&statement);
        let piece = Rc::new(PreparedExpr {
            statement,
            sources,
            loose,
            tables: {
                let tables = act.tables.iter();
                tables
                    .map(|(name, ty, _)| (Arc::clone(name), *ty))
                    .collect()
            },
        });
        if let Some(kept) = act.routine.pieces.borrow_mut().get_mut(expr.number) {
            *kept = Some(Rc::clone(&piece));
        }
        Ok(piece)
    }

    /// An error of a piece: of its text if it says where, else with the piece as its context.
    pub(super) fn add_context(&self, mut error: SqlError, expr: &Expr) -> SqlError {
        let fields = error.fields_mut();
        if fields.fatal {
            return error;
        }
        if let Some(position) = fields.position.take() {
            let (position, text) = match (&expr.assignment, expr.statement) {
                (Some(whole), _) => {
                    let before = whole.len().saturating_sub(expr.text.len());
                    let before = whole.get(..before).map_or(0, |text| text.chars().count());
                    (before + position.saturating_sub(LEAD), whole)
                }
                (None, true) => (position, &expr.text),
                (None, false) => (position.saturating_sub(LEAD), &expr.text),
            };
            fields.inner_query = Some((position.max(1), text.to_string()));
            return error;
        }
        error.context(called(expr))
    }

    /// A plan of a piece and its parameters.
    pub(super) fn planned(
        &mut self,
        act: &Activation,
        expr: &Expr,
    ) -> Result<(Rc<PreparedExpr>, Rc<CachedPlan>)> {
        let made = |session: &mut Session| {
            let piece = session.piece(act, expr)?;
            let plan = session.plan(&piece.statement)?;
            match &plan.fails {
                Some(error) => Err(error.clone()),
                None => Ok((piece, plan)),
            }
        };
        made(self).map_err(|error| self.add_context(error, expr))
    }

    /// The value of an expression.
    pub(super) async fn value(
        &mut self,
        act: &mut Activation,
        expr: &Expr,
        client: &mut dyn Client,
    ) -> Result<(Datum, SqlType)> {
        let (piece, plan) = self.planned(act, expr)?;
        if plan.is_simple
            && let Some(simple) = &self.context.may_run(&plan)?.simple
        {
            let params = act.params(&piece, &plan.params_used);
            let cx = EvalContext {
                params: &params,
                session: &*self.context,
            };
            let value = eval(simple, &[], &cx)?;
            if plan.columns.len() == 1 {
                self.serve_functions(client).await?;
                return Ok((value, simple.ty()));
            }
        }
        self.value_of_query(act, expr, &piece, &plan, client).await
    }

    /// The same where it takes a snapshot.
    fn value_of_query<'a>(
        &'a mut self,
        act: &'a mut Activation,
        expr: &'a Expr,
        piece: &'a PreparedExpr,
        plan: &'a CachedPlan,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<(Datum, SqlType)>> {
        Box::pin(async move {
            let (columns, only_computes) = (plan.columns.len(), plan.only_computes);
            if columns != 1 {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("query \"{}\" returned {columns} columns", expr.text),
                ));
            }
            let ran = self.rows_of(act, piece, 2, client).await;
            // PostgreSQL does not tell of what is only computed as of a statement.
            let (plan, mut rows, _) = match only_computes {
                true => ran?,
                false => ran.map_err(|error| self.add_context(error, expr))?,
            };
            if rows.len() > 1 {
                return Err(SqlError::new(
                    SqlState::CARDINALITY_VIOLATION,
                    format!("query \"{}\" returned more than one row", expr.text),
                ));
            }
            let value = rows.pop_front().and_then(|row| row.into_iter().next());
            let ty = plan.columns.first().map(|column| column.ty);
            Ok((
                value.unwrap_or(Datum::Null),
                ty.unwrap_or(SqlType::of(oid::UNKNOWN)),
            ))
        })
    }

    /// The truth of a condition.
    pub(super) async fn holds(
        &mut self,
        act: &mut Activation,
        expr: &Expr,
        client: &mut dyn Client,
    ) -> Result<Option<bool>> {
        let (value, ty) = self.value(act, expr, client).await?;
        match self.cast(act, value, ty, SqlType::of(oid::BOOL))? {
            Datum::Bool(truth) => Ok(Some(truth)),
            _ => Ok(None),
        }
    }

    /// The value of an expression as one of a type.
    pub(super) async fn value_as(
        &mut self,
        act: &mut Activation,
        expr: &Expr,
        ty: TypeId,
        client: &mut dyn Client,
    ) -> Result<Datum> {
        let (value, from) = self.value(act, expr, client).await?;
        self.cast(act, value, from, SqlType::of(ty))
    }

    /// Runs a query of a body; its rows, at most so many (0: all), and how many it gave or wrote.
    pub(super) async fn rows_of(
        &mut self,
        act: &Activation,
        piece: &PreparedExpr,
        rows_max: u64,
        client: &mut dyn Client,
    ) -> Result<PlanRun> {
        let plan = self.prepare_run(&piece.statement).await?;
        let params = act.params(piece, &plan.params_used);
        self.run_plan(plan, &params, rows_max, client).await
    }

    /// Runs a plan; see [`Session::rows_of`].
    pub(super) fn run_plan<'a>(
        &'a mut self,
        plan: PermittedPlan,
        params: &'a [Datum],
        rows_max: u64,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<PlanRun>> {
        Box::pin(async move {
            let mut quiet = CapturingClient::new(client, self.worker.instance.engine.memory());
            let mut execution = Execution::new(Arc::clone(&plan.prepared));
            // By its key there is one row, or none.
            let rows_max = match plan.is_by_key() || plan.writes() {
                true => 0,
                false => rows_max,
            };
            let ran = self
                .run(&plan, &mut execution, params, true, rows_max, &mut quiet)
                .await?;
            let rows = quiet.into_rows();
            let count = match ran {
                crate::run::RunOutcome::Done { rows } => rows,
                crate::run::RunOutcome::Suspended => rows.len() as u64,
            };
            Ok((plan, rows, count))
        })
    }

    /// Runs a query to its end, keeping its rows, in a temporary file if they are many.
    pub(super) fn keep_rows<'a>(
        &'a mut self,
        plan: PermittedPlan,
        params: Vec<Datum>,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<QueryRows>> {
        Box::pin(async move {
            let mut execution = Execution::new(Arc::clone(&plan.prepared));
            let limits = self.limits();
            let work_mem_bytes = self.context.settings.borrow().typed().work_mem_bytes;
            let signals = Arc::clone(&self.signals);
            let context = Rc::clone(&self.context);
            let engine = self.worker.instance.engine.clone();
            context.catalog.replace(Arc::clone(&plan.catalog));
            logstead_sql_types::value::user::enter(&plan.catalog);
            context.sleep_us.set(0);
            self.begin_run(&plan.catalog).await?;
            loop {
                let open = self.transaction()?;
                let mut cx = StatementContext {
                    txn: &mut open.txn,
                    params: &params,
                    session: &*context,
                    catalog: &plan.catalog,
                    engine: &engine,
                    cancel: signals.statement(),
                    events: &mut open.events,
                    work_mem_bytes,
                    spill: Some(context.spill()),
                };
                let ahead = execution.materialize(&mut cx);
                let progress = run_with_limits(&signals, limits, ahead).await?;
                if progress != Progress::Call {
                    break;
                }
                self.answer(&mut execution, &plan, client).await?;
            }
            self.serve_functions(client).await?;
            Ok(QueryRows {
                columns: plan.columns.clone(),
                source: Some(Box::new(RowSource {
                    plan,
                    execution,
                    params,
                })),
                ready: VecDeque::new(),
                ended: false,
            })
        })
    }

    /// The next of the rows that are kept.
    pub(super) async fn next_row(&mut self, rows: &mut QueryRows) -> Result<Option<Vec<Datum>>> {
        if let Some(source) = &mut rows.source
            && rows.ready.is_empty()
            && !rows.ended
        {
            let limits = self.limits();
            let signals = Arc::clone(&self.signals);
            let context = Rc::clone(&self.context);
            let engine = self.worker.instance.engine.clone();
            let mut collected = CollectedRows::within(engine.memory());
            let open = self.transaction()?;
            let mut cx = StatementContext {
                txn: &mut open.txn,
                params: &source.params,
                session: &*context,
                catalog: &source.plan.catalog,
                engine: &engine,
                cancel: signals.statement(),
                events: &mut open.events,
                work_mem_bytes: context.work_mem_bytes(),
                spill: Some(context.spill()),
            };
            let run = source.execution.run(&mut cx, ROWS_AT_ONCE, &mut collected);
            let progress = run_with_limits(&signals, limits, run).await?;
            rows.ended = matches!(progress, Progress::Done { .. });
            if progress == Progress::Call {
                return Err(SqlError::internal("rows that are kept call nothing"));
            }
            rows.ready = collected.into_rows();
        }
        Ok(rows.ready.pop_front())
    }

    /// The columns of the rows that are kept.
    pub(super) fn columns_of(rows: &QueryRows) -> &[OutputColumn] {
        &rows.columns
    }

    /// Parameters of a piece that names these of them.
    pub(super) fn params_used_of(
        act: &Activation,
        piece: &PreparedExpr,
        used: &[bool],
    ) -> Vec<Datum> {
        act.params(piece, used)
    }

    /// Parameters of a plan of a piece.
    pub(super) fn params_of(
        act: &Activation,
        piece: &PreparedExpr,
        plan: &CachedPlan,
    ) -> Vec<Datum> {
        act.params(piece, &plan.params_used)
    }
}
