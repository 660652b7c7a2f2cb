//! EXPLAIN [ANALYZE].

use super::client::{Client, text_column};
use super::statement::{Parameters, Statement, given_to};
use super::{Reply, Session};
use logstead_engine::RowRef;
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::text::fold;
use logstead_sql_ddl::StatementParameters;
use logstead_sql_exec as exec;
use logstead_sql_exec::{Execution, Progress, RowSink, StoredColumn};
use logstead_sql_parse::lowered as ast;
use logstead_sql_parse::{Parsed, StatementKind};
use logstead_sql_plan::{ExplainOptions, ExplainTimes, OutputColumn, Plan, explain, explain_json};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;
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
        outer: &Statement,
        parsed: &Parsed,
        given: &[Datum],
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let text = &outer.text.text;
        let ast::Statement::Explain { statement, options } = &**parsed.statement else {
            return Err(SqlError::internal("EXPLAIN of nothing"));
        };
        let mut asked = ExplainState::of(options)?;
        let chosen = ExplainOptions {
            costs: asked.costs,
            verbose: asked.verbose,
            timing: asked.timing,
            stats: None,
            source_of: false,
        };
        let mut variables = None;
        let (inner, types, params) = match &**statement {
            ast::Statement::Execute { name, parameters } => {
                let prepared = self.find_statement(&fold(name))?;
                let description = self.describe(&prepared)?;
                let params = self.arguments(parameters, &description.param_types).await?;
                self.enter_as_of(&prepared, &params).await?;
                let types = description
                    .param_types
                    .iter()
                    .map(|ty| Some(ty.oid))
                    .collect();
                let parsed = prepared
                    .parsed()
                    .ok_or_else(|| SqlError::unsupported("EXPLAIN of nothing"))?;
                (Arc::clone(&parsed.statement), types, params)
            }
            other if given.is_empty() => (
                Arc::new(parsed.statement.part(other)?),
                Vec::new(),
                Vec::new(),
            ),
            other => {
                variables.clone_from(&outer.variables);
                let description = self.describe(outer)?;
                let types = description
                    .param_types
                    .iter()
                    .map(|ty| Some(ty.oid))
                    .collect();
                (
                    Arc::new(parsed.statement.part(other)?),
                    types,
                    given.to_vec(),
                )
            }
        };
        let (mut inner, mut source_of) = (inner, false);
        let whole = Arc::clone(&inner);
        if let Some(created) = created_by(&whole) {
            if self.named(created.name)?.is_some() {
                let database = self.catalog()?.database_name.clone();
                let (_, name) = logstead_sql_parse::schema_and_name(created.name, &database)?;
                if !created.if_not_exists {
                    return Err(logstead_sql_ddl::name_taken(&name));
                }
                let message = format!("relation \"{name}\" already exists, skipping");
                let notice = SqlError::new(SqlState::DUPLICATE_TABLE, message);
                client.notice("NOTICE", notice.fields());
                return Ok(no_plan(asked.json));
            }
            let query = Arc::new(ast::Statement::Query(Box::new(created.query.clone())).into());
            inner = match created.table {
                Some(table) if asked.analyze => {
                    let made = Parsed {
                        statement: Arc::clone(&whole),
                        kind: StatementKind::Ddl("CREATE TABLE AS"),
                        ..parsed.clone()
                    };
                    let given = StatementParameters {
                        types: &types,
                        values: &params,
                        variables: variables.as_ref(),
                    };
                    let made = self.create_empty(&made, table, text, given, client).await?;
                    // With WITH NO DATA nothing is run.
                    source_of = !table.no_data;
                    asked.analyze = source_of;
                    match made {
                        Ok(insert) if source_of => insert,
                        _ => query,
                    }
                }
                None if asked.analyze => {
                    return Err(SqlError::unsupported(
                        "EXPLAIN ANALYZE of a materialized view",
                    ));
                }
                _ => query,
            };
        }
        let chosen = ExplainOptions {
            source_of,
            ..chosen
        };
        if !matches!(logstead_sql_parse::kind_of(&inner), StatementKind::Query) {
            return Err(SqlError::unsupported(format!("EXPLAIN {}", inner.word())));
        }
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
        let reply = |plan: &Plan, options: &ExplainOptions<'_>, json, times| {
            reply(plan, options, json, times, &*context)
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
            Ok((!asked.analyze).then(|| reply(&plan, &chosen, asked.json, times)))
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
            Ok(reply(plan.prepared.plan(), &chosen, asked.json, times))
        })
    }
}

/// The query that is explained, if it is one: its parameters are those of the EXPLAIN.
pub(super) fn query_of(statement: &Statement, parsed: &Parsed) -> Option<Statement> {
    let ast::Statement::Explain {
        statement: inner, ..
    } = &**parsed.statement
    else {
        return None;
    };
    let kind = logstead_sql_parse::kind_of(inner);
    if !matches!(kind, StatementKind::Query) {
        return None;
    }
    let inner = parsed.statement.part(inner).ok()?;
    let text = Rc::clone(&statement.text.text);
    let mut query = Statement::once(text, Arc::new(inner), statement.declared.clone());
    query.takes_parameters = statement.takes_parameters;
    query.variables.clone_from(&statement.variables);
    Some(query)
}

/// What CREATE TABLE AS or CREATE MATERIALIZED VIEW makes.
struct CreateTarget<'s> {
    name: &'s ast::ObjectName,
    if_not_exists: bool,
    query: &'s ast::Query,
    /// None for a view.
    table: Option<&'s ast::CreateTable>,
}

fn created_by(statement: &ast::Statement) -> Option<CreateTarget<'_>> {
    match statement {
        ast::Statement::CreateTable(table) => Some(CreateTarget {
            name: &table.name,
            if_not_exists: table.if_not_exists,
            query: table.query.as_ref()?,
            table: Some(table),
        }),
        ast::Statement::CreateMaterializedView {
            name,
            if_not_exists,
            query,
        } => Some(CreateTarget {
            name,
            if_not_exists: *if_not_exists,
            query,
            table: None,
        }),
        _ => None,
    }
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
    fn of(options: &[ast::UtilityOption]) -> Result<ExplainState> {
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
            let name = option.name.value.to_lowercase();
            let argument = option.arg.as_ref().map(|arg| arg.to_lowercase());
            if name == "format" {
                asked.json = is_json(&argument.unwrap_or_default())?;
                continue;
            }
            let on = match argument.as_deref() {
                None => true,
                Some(word) => {
                    logstead_sql_catalog::settings::parse_bool(word).ok_or_else(|| {
                        SqlError::new(
                            SqlState::SYNTAX_ERROR,
                            format!("{name} requires a Boolean value"),
                        )
                    })?
                }
            };
            match name.as_str() {
                "analyze" | "analyse" => asked.analyze = on,
                "verbose" => asked.verbose = on,
                "costs" => asked.costs = on,
                "timing" => timing = Some(on),
                "summary" => asked.summary = Some(on),
                "wal" => wal = on,
                // Nothing more to say about these.
                "buffers" | "settings" => {}
                other => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("unrecognized EXPLAIN option \"{other}\""),
                    ));
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
pub(super) fn column(statement: &ast::Statement) -> OutputColumn {
    let json = match statement {
        ast::Statement::Explain { options, .. } => {
            ExplainState::of(options).is_ok_and(|asked| asked.json)
        }
        _ => false,
    };
    plan_column(json)
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
    session: &dyn Context,
) -> Reply {
    let lines = if json {
        vec![explain_json(plan, options, times)]
    } else {
        let mut lines = explain(plan, options);
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
