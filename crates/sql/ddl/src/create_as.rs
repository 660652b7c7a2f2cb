//! CREATE TABLE AS: a table with the columns of a query, filled with its rows.

use super::columns::NewColumn;
use super::create_table::{create, on_commit, warn_of_global};
use super::expressions::with_planner;
use super::storage_parameters::storage_options;
use super::table_rewrite::encode_row;
use super::{DdlContext, StatementParameters};
use crate::relations::exists;
use logstead_engine::{RowBuilder, RowRef, TableLock};
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::{Column, Relation};
use logstead_sql_exec as exec;
use logstead_sql_exec::{Execution, Progress, RowSink, StatementContext, StoredColumn};
use logstead_sql_parse::ast::{CreateAsQuery, CreateTableAsStmt, Stmt};
use logstead_sql_plan::{self as plan, PlanContext};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError, too_deep};
use logstead_sql_types::interrupt::CancelChecker;
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;
use std::sync::Arc;

/// Rows taken from the query before they are stored.
const BATCH_ROWS: usize = 256;

#[derive(Default)]
struct Buffer(Vec<Vec<Datum>>);

impl RowSink for Buffer {
    fn row(&mut self, row: &[Datum]) -> Result<()> {
        self.0.push(row.to_vec());
        Ok(())
    }

    fn stored_row(&mut self, row: RowRef<'_>, columns: &[StoredColumn]) -> Result<()> {
        self.0.push(
            columns
                .iter()
                .map(|c| c.decode(row))
                .collect::<Result<_>>()?,
        );
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.0.len() >= BATCH_ROWS
    }
}

fn column(name: String, ty: SqlType, domain: Option<TypeId>) -> NewColumn {
    let ty = if ty.oid == oid::UNKNOWN {
        SqlType::of(oid::TEXT)
    } else {
        ty
    };
    let column = Column {
        name,
        ty,
        not_null: false,
        default: None,
        identity: None,
        generated: false,
        sequence: None,
        dropped: false,
        domain,
        missing: Datum::Null,
    };
    NewColumn {
        generated: None,
        attributes: Vec::new(),
        column,
        sequence: None,
        constraints: Vec::new(),
    }
}

/// Runs CREATE TABLE AS. Gives the tag: SELECT and the rows stored.
pub(super) async fn execute(stmt: &CreateTableAsStmt, cx: &mut DdlContext<'_>) -> Result<String> {
    let into = &stmt.into;
    let (schema, name) = cx.new_name_of(&into.rel)?;
    let on_commit = on_commit(into.on_commit, &schema)?;
    warn_of_global(into.global, &into.rel, cx);
    if exists(cx, &schema, &name, stmt.if_not_exists)? {
        return Ok("CREATE TABLE AS".to_owned());
    }
    let mut options = storage_options(&into.options)?;
    super::unlogged::of_new(into.rel.persistence, &schema, &mut options)?;
    let own;
    let (query, text): (&Stmt, _) = match (cx.given.query, &stmt.query) {
        (Some((tree, _)), _) if tree.stack_bytes() > 0 => return Err(too_deep()),
        (Some((tree, text)), _) => (&**tree, text),
        (None, CreateAsQuery::Select(query)) => {
            own = Stmt::Select(query.clone());
            (&own, cx.text)
        }
        (None, CreateAsQuery::Execute(_)) => {
            return Err(SqlError::internal("an EXECUTE without its query"));
        }
    };
    // The tables it reads are locked; one that changed while we waited is planned again.
    let (plan, params, outputs, catalog) = loop {
        let catalog = cx.catalog()?;
        let planned = with_planner(cx, &catalog, |plan| {
            let own = PlanContext {
                param_types: cx.given.types,
                variables: cx.given.variables.map(|variables| &**variables),
                ..*plan
            };
            plan::plan_statement(query, text, &own)
        })?;
        let plan::Planned { plan, columns, .. } = planned;
        let tables = plan.tables().clone();
        let params = values_of(plan.parameters(), &cx.given);
        let plan = cx.may_run(plan)?;
        for (relations, lock) in [
            (&tables.written, TableLock::RowExclusive),
            (&tables.locked, TableLock::RowShare),
            (&tables.read, TableLock::AccessShare),
        ] {
            for relation in relations {
                cx.lock_storage(relation.storage, lock).await?;
            }
        }
        // Nor may the rules change of a domain that its columns will have.
        for output in &columns {
            if let Some(domain) = output.domain_in(&catalog) {
                cx.lock_domain(domain).await?;
            }
        }
        cx.begin_view();
        if cx.catalog()?.version == catalog.version {
            break (plan, params, columns, catalog);
        }
    };
    if into.col_names.len() > outputs.len() {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "too many column names were specified",
        ));
    }
    let mut names = crate::choose_name::strings(&into.col_names).into_iter();
    let columns = outputs.iter().map(|output| {
        let name = names.next().unwrap_or_else(|| output.name.clone());
        column(name, output.ty, output.domain_in(&catalog))
    });
    let columns: Vec<NewColumn> = columns.collect();
    for NewColumn { column, .. } in &columns {
        super::columns::refuse_pseudo(&column.name, column.ty, cx.lookup(&catalog).types())?;
    }
    let relation = create(cx, &schema, &name, columns, Vec::new(), options).await?;
    if let Some(action) = on_commit {
        cx.state.push(CatalogChange::OnCommit(relation.oid, action));
    }
    if into.skip_data {
        return Ok("CREATE TABLE AS".to_owned());
    }
    cx.check_seen(&catalog)?;
    let rows = fill(cx, plan, &params, &catalog, &relation).await?;
    Ok(format!("SELECT {rows}"))
}

/// What the plan's parameters are; of variables only those that it names.
fn values_of(
    parameters: &plan::permissions::ParameterUses,
    given: &StatementParameters<'_>,
) -> Vec<Datum> {
    let value = |at: usize| {
        let is_named = given.variables.is_none() || parameters.named.get(at) == Some(&true);
        let value = given.values.get(at).filter(|_| is_named);
        value.cloned().unwrap_or(Datum::Null)
    };
    (0..parameters.types.len()).map(value).collect()
}

/// What inserting a row costs, see [`CancelChecker`].
const ROW_STEPS: usize = 1_000;

pub(super) async fn fill(
    cx: &mut DdlContext<'_>,
    plan: plan::Plan,
    params: &[Datum],
    catalog: &Arc<logstead_sql_catalog::Catalog>,
    relation: &Relation,
) -> Result<u64> {
    let target = cx.storage(relation)?;
    let mut execution = Execution::new(Arc::new(exec::prepare(plan)));
    let mut builder = RowBuilder::new();
    let mut rows = 0;
    let mut pace = CancelChecker::default();
    loop {
        let mut buffer = Buffer::default();
        let engine = cx.store.engine().clone();
        let mut run = StatementContext {
            txn: cx.txn,
            params,
            session: cx.session,
            catalog,
            engine: &engine,
            cancel: cx.cancel,
            work_mem_bytes: cx.work_mem_bytes,
            spill: cx.spill,
            events: &mut *cx.events,
        };
        let progress = execution.run(&mut run, 0, &mut buffer).await?;
        for row in buffer.0 {
            encode_row(relation, &row, &mut builder);
            // Each run of the plan counts its work anew.
            pace.spent(ROW_STEPS + builder.finish().len())?;
            loop {
                match cx.txn.insert(&target, builder.finish()) {
                    Ok(_) => break,
                    Err(error) => cx.wait_after(error).await?,
                }
            }
            rows += 1;
        }
        match progress {
            Progress::Done { .. } => return Ok(rows),
            Progress::Call => {
                return Err(exec::no_calls(
                    "CREATE TABLE AS and REFRESH MATERIALIZED VIEW",
                ));
            }
            Progress::Suspended | Progress::Full { .. } => {}
        }
    }
}
