//! EXPLAIN: the statement is planned, and run with ANALYZE. How a plan is shown is decided in `plan::explain`.

use super::cached_plan::{Parameters, Statement, given_to};
use super::client::{Client, text_column};
use super::{Reply, Session};
use logstead_engine::RowRef;
use logstead_sql_catalog::Catalog;
use logstead_sql_catalog::context::Context;
use logstead_sql_ddl::StatementParameters;
use logstead_sql_ddl::def_elem::{get_boolean, get_string};
use logstead_sql_exec as exec;
use logstead_sql_exec::{Execution, Progress, RowSink, StoredColumn};
use logstead_sql_parse::Parsed;
use logstead_sql_parse::ast::{
    CreateAsQuery, CreateTableAsStmt, DefElem, ExecuteStmt, ExplainStmt, SelectStmt, Stmt,
};
use logstead_sql_plan::{ExplainOptions, ExplainTimes, OutputColumn, Plan, explain, explain_json};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// Counts rows and forgets them.
struct DiscardRows;

impl RowSink for DiscardRows {
    fn row(&mut self, _row: &[Datum]) -> Result<()> {
        Ok(())
    }

    fn stored_row(&mut self, _row: RowRef<'_>, _columns: &[StoredColumn]) -> Result<()> {
        Ok(())
    }
}

impl Session {
    pub(super) async fn explain(
        &mut self,
        stmt: &ExplainStmt,
        outer: &Statement,
        parsed: &Parsed,
        given: &[Datum],
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let text = &outer.text.text;
        let mut asked = ExplainState::of(&stmt.options, text)?;
        let chosen = ExplainOptions {
            costs: asked.costs,
            verbose: asked.verbose,
            timing: asked.timing,
            stats: None,
            partitions: self.worker.instance.engine.instances().count() > 1,
            source_of: false,
        };
        let explained = explained(&stmt.query)?;
        let mut variables = None;
        let (mut types, mut params) = (Vec::new(), Vec::new());
        let own = match &explained {
            Explained::Execute(execute) => {
                let prepared = self.find_statement(&execute.name)?;
                let description = self.describe(&prepared)?;
                params = self
                    .arguments(&execute.params, &description.param_types)
                    .await?;
                self.enter_as_of(&prepared, &params).await?;
                types = types_of(&description.param_types);
                prepared
            }
            _ => {
                if !given.is_empty() {
                    variables.clone_from(&outer.variables);
                    types = types_of(&self.describe(outer)?.param_types);
                    params = given.to_vec();
                }
                Rc::new(part(&explained, outer, parsed)?)
            }
        };
        let text = &own.text.text;
        let tree = own.parsed().filter(|_| own.is_query());
        let tree = tree.ok_or_else(|| SqlError::unsupported("EXPLAIN of this statement"))?;
        let (mut inner, mut source_of) = (Arc::clone(&tree.statement), false);
        if let Explained::Create(create) = &explained {
            if self.create_as_exists(create, client)? {
                return Ok(no_plan(asked.json));
            }
            if asked.analyze && create.is_materialized_view {
                return Err(SqlError::unsupported(
                    "EXPLAIN ANALYZE of a materialized view",
                ));
            }
            if asked.analyze {
                let query = Arc::clone(&inner);
                let given = StatementParameters {
                    types: &types,
                    values: &params,
                    variables: variables.as_ref(),
                    query: Some((&query, text)),
                };
                let made = self
                    .create_empty(create, parsed, text, given, client)
                    .await?;
                // With WITH NO DATA nothing is run.
                source_of = !create.into.skip_data;
                asked.analyze = source_of;
                if let (Ok(insert), true) = (made, source_of) {
                    inner = insert;
                }
            }
        }
        let chosen = ExplainOptions {
            source_of,
            ..chosen
        };
        let clock = Arc::clone(&self.worker.instance.env.clock);
        let begun = clock.monotonic();
        let catalog = self.catalog()?;
        let path = self.context.path_in(&catalog);
        let parameters = Parameters {
            variables: variables.as_deref(),
            ..Parameters::of(&types)
        };
        let planned = self.plan_tree(&inner, text, parameters, &path, &catalog)?;
        let planning = clock.monotonic().since(begun);
        let planning_ms = planning.as_secs_f64() * 1e3;
        let context = Rc::clone(&self.context);
        let reply = |plan: &Plan, options: &ExplainOptions<'_>, times, catalog: &Catalog| {
            let types = context.lookup(catalog, &path).types();
            reply(plan, options, asked.json, times, (&*context, types))
        };
        let shown = logstead_sql_parse::on_enough_stack(planned.stack_bytes, || {
            let bound = planned.plan;
            let functions = &bound.permissions().functions;
            self.context.may_explain(functions, &catalog)?;
            let plan = bound.check(&mut self.context.checker(&catalog))?;
            if let Some(error) = logstead_sql_plan::failing(&plan) {
                return Err(error);
            }
            let times = ExplainTimes {
                planning_ms: (asked.summary == Some(true)).then_some(planning_ms),
                execution_ms: None,
            };
            Ok((!asked.analyze).then(|| reply(&plan, &chosen, times, &catalog)))
        })?;
        if let Some(shown) = shown {
            return Ok(shown);
        }
        // The plan is run as a statement of this transaction would be.
        let mut once = Statement::once(Rc::clone(text), inner, types);
        once.variables = variables;
        let plan = self.prepare_run(&once).await?;
        let params = given_to(&plan, &once, &params);
        self.settle_suspended().await?;
        let limits = self.limits();
        let signals = Arc::clone(&self.signals);
        let engine = self.worker.instance.engine.clone();
        let work_mem_bytes = self.context.settings.borrow().typed().work_mem_bytes;
        context.catalog.replace(Arc::clone(&plan.catalog));
        let mut execution = Execution::measured(Arc::clone(&plan.prepared));
        let begun = clock.monotonic();
        self.show_cursors();
        let open = self.transaction()?;
        open.begin_statement();
        if self.is_at_replica() {
            self.check_seen(&plan.catalog)?;
        }
        loop {
            let open = self.transaction()?;
            let mut cx = exec::StatementContext {
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
            let progress = crate::limits::run_with_limits(
                &signals,
                limits,
                execution.run(&mut cx, 0, &mut DiscardRows),
            )
            .await?;
            if context.sleep_us.get() > 0 {
                self.sleep_as_asked().await?;
            }
            if progress == Progress::Call {
                self.answer(&mut execution, &plan, client).await?;
            }
            if matches!(progress, Progress::Done { .. } | Progress::Suspended) {
                break;
            }
        }
        let running = clock.monotonic().since(begun);
        let stats = execution.stats();
        let shown = asked.summary != Some(false);
        let times = ExplainTimes {
            planning_ms: shown.then_some(planning_ms),
            execution_ms: shown.then_some(running.as_secs_f64() * 1e3),
        };
        let chosen = ExplainOptions {
            stats: Some(&stats),
            ..chosen
        };
        logstead_sql_parse::on_enough_stack(plan.prepared.stack_bytes(), || {
            Ok(reply(plan.prepared.plan(), &chosen, times, &plan.catalog))
        })
    }
}

/// What EXPLAIN explains.
enum Explained<'s> {
    Execute(&'s ExecuteStmt),
    Change(&'s Stmt),
    Query(&'s SelectStmt),
    /// CREATE TABLE AS or CREATE MATERIALIZED VIEW, of a query.
    Create(Cow<'s, CreateTableAsStmt>),
}

fn explained(stmt: &Stmt) -> Result<Explained<'_>> {
    let create = |create| match create {
        Cow::Borrowed(CreateTableAsStmt {
            query: CreateAsQuery::Execute(_),
            ..
        }) => Err(SqlError::unsupported("EXPLAIN of CREATE TABLE AS EXECUTE")),
        create => Ok(Explained::Create(create)),
    };
    match stmt {
        Stmt::Execute(execute) => Ok(Explained::Execute(execute)),
        Stmt::Select(query) => match query.select_into() {
            Some(into) => create(Cow::Owned(into)),
            None => Ok(Explained::Query(query)),
        },
        Stmt::DeclareCursor(declare) => Ok(Explained::Query(&declare.query)),
        Stmt::Insert(_) | Stmt::Update(_) | Stmt::Delete(_) | Stmt::Merge(_) => {
            Ok(Explained::Change(stmt))
        }
        Stmt::CreateTableAs(made) => create(Cow::Borrowed(&**made)),
        _ => Err(SqlError::unsupported("EXPLAIN of this statement")),
    }
}

/// What is planned as a statement of its own.
fn part(explained: &Explained<'_>, outer: &Statement, parsed: &Parsed) -> Result<Statement> {
    let stmt = match explained {
        Explained::Change(stmt) => Stmt::clone(stmt),
        Explained::Query(query) => Stmt::Select(Box::new(SelectStmt::clone(query))),
        Explained::Create(create) => match &create.query {
            CreateAsQuery::Select(query) => Stmt::Select(query.clone()),
            CreateAsQuery::Execute(_) => return Err(SqlError::internal("an EXECUTE in EXPLAIN")),
        },
        Explained::Execute(_) => return Err(SqlError::internal("an EXECUTE in EXPLAIN")),
    };
    Ok(outer.part(parsed.statement.part(stmt)))
}

/// The query that is explained, if it is one: its parameters are those of the EXPLAIN.
pub(super) fn query_of(
    stmt: &ExplainStmt,
    outer: &Statement,
    parsed: &Parsed,
) -> Result<Option<Statement>> {
    match explained(&stmt.query)? {
        Explained::Execute(_) | Explained::Create(_) => Ok(None),
        explained => part(&explained, outer, parsed).map(Some),
    }
}

fn types_of(types: &[SqlType]) -> Vec<Option<TypeId>> {
    types.iter().map(|ty| Some(ty.oid)).collect()
}

/// The answer of an EXPLAIN that has no plan to show.
fn no_plan(json: bool) -> Reply {
    Reply::Rows {
        columns: vec![plan_column(json)],
        rows: Vec::new(),
        tag: "EXPLAIN".to_owned(),
    }
}

/// What the options of EXPLAIN ask for.
struct ExplainState {
    analyze: bool,
    verbose: bool,
    costs: bool,
    timing: bool,
    summary: Option<bool>,
    json: bool,
}

impl ExplainState {
    /// Reads the options of a statement of `text`.
    fn of(options: &[DefElem], text: &str) -> Result<ExplainState> {
        let mut asked = ExplainState {
            analyze: false,
            verbose: false,
            costs: true,
            timing: true,
            summary: None,
            json: false,
        };
        let (mut timing, mut wal) = (None, false);
        for option in options {
            match &*option.name {
                "analyze" | "analyse" => asked.analyze = get_boolean(option)?,
                "verbose" => asked.verbose = get_boolean(option)?,
                "costs" => asked.costs = get_boolean(option)?,
                "timing" => timing = Some(get_boolean(option)?),
                "summary" => asked.summary = Some(get_boolean(option)?),
                "wal" => wal = get_boolean(option)?,
                "format" => asked.json = is_json(&get_string(option)?)?,
                // Nothing more to say about these.
                "buffers" | "settings" => drop(get_boolean(option)?),
                other => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("unrecognized EXPLAIN option \"{other}\""),
                    )
                    .at(option.location.character(text)));
                }
            }
        }
        let alone = |option: &str| {
            SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("EXPLAIN option {option} requires ANALYZE"),
            )
        };
        if wal && !asked.analyze {
            return Err(alone("WAL"));
        }
        if timing == Some(true) && !asked.analyze {
            return Err(alone("TIMING"));
        }
        asked.timing = timing.unwrap_or(true);
        Ok(asked)
    }
}

/// Whether a format is JSON; 0A000 for those that are not made here.
fn is_json(format: &str) -> Result<bool> {
    match format.to_lowercase().as_str() {
        "text" => Ok(false),
        "json" => Ok(true),
        "xml" | "yaml" => Err(SqlError::unsupported(format!(
            "EXPLAIN with FORMAT {}",
            format.to_uppercase()
        ))),
        other => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("unrecognized value for EXPLAIN option \"format\": \"{other}\""),
        )),
    }
}

/// The column of EXPLAIN's result.
pub(super) fn column(stmt: &ExplainStmt) -> OutputColumn {
    plan_column(ExplainState::of(&stmt.options, "").is_ok_and(|asked| asked.json))
}

fn plan_column(json: bool) -> OutputColumn {
    OutputColumn {
        ty: SqlType::of(if json { oid::JSON } else { oid::TEXT }),
        ..text_column("QUERY PLAN")
    }
}

fn reply(
    plan: &Plan,
    options: &ExplainOptions<'_>,
    json: bool,
    times: ExplainTimes,
    (session, types): (&dyn Context, TypeLookup<'_>),
) -> Reply {
    let lines = if json {
        vec![explain_json(plan, options, times, types)]
    } else {
        let mut lines = explain(plan, options, types);
        let spent = [
            ("Planning", times.planning_ms),
            ("Execution", times.execution_ms),
        ];
        for (what, ms) in spent {
            lines.extend(ms.map(|ms| format!("{what} Time: {ms:.3} ms")));
        }
        lines
    };
    // Keys of indexes name functions by number.
    let lines = lines.into_iter().map(|line| session.routines_shown(line));
    let lines: Vec<String> = lines.collect();
    Reply::Rows {
        columns: vec![plan_column(json)],
        rows: lines
            .into_iter()
            .map(|line| vec![Datum::Text(line.into())])
            .collect(),
        tag: "EXPLAIN".to_owned(),
    }
}
