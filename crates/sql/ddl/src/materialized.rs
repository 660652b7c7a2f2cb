//! CREATE and REFRESH MATERIALIZED VIEW: a view's query, run into a storage of its own.
//!
//! REFRESH fills a new storage and puts it in place of the old one, as TRUNCATE does: readers see all of the old rows
//! or all of the new ones. CONCURRENTLY lets them read until the new rows are there; the change itself waits for those
//! who read just then.

use super::expressions::with_planner;
use super::storage_parameters::storage_options;
use super::{DdlContext, create_as, distribution, view};
use crate::relations::{exists, make_storage, no_relation};
use logstead_engine::TableLock;
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::temporary::is_temporary_schema;
use logstead_sql_catalog::{Relation, RelationKind, View};
use logstead_sql_parse::ast::{
    CreateAsQuery, CreateTableAsStmt, Persistence, RangeVar, RefreshMatViewStmt,
};
use logstead_sql_plan::Plan;
use logstead_sql_plan::bind;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

/// Runs CREATE MATERIALIZED VIEW. Gives the tag: SELECT and the rows, if it is filled.
pub(super) async fn create(stmt: &CreateTableAsStmt, cx: &mut DdlContext<'_>) -> Result<String> {
    let tag = "CREATE MATERIALIZED VIEW".to_owned();
    let into = &stmt.into;
    if into.rel.persistence == Persistence::Unlogged {
        let message = "materialized views cannot be unlogged";
        return Err(SqlError::unsupported_text(message));
    }
    let CreateAsQuery::Select(query) = &stmt.query else {
        return Err(SqlError::internal("a materialized view of no query"));
    };
    if let Some(into) = query.into_clause() {
        let message = "SELECT ... INTO is not allowed here";
        let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
        return Err(error.at(into.location.character(cx.text)));
    }
    let (schema, name) = cx.new_name_of(&into.rel)?;
    if exists(cx, &schema, &name, stmt.if_not_exists)? {
        return Ok(tag);
    }
    let mut options = storage_options(&into.options)?;
    if is_temporary_schema(&schema.name) {
        return Err(super::unsupported_all("temporary materialized views"));
    }
    let (bound, catalog) = view::bound_query(query, true, cx).await?;
    if bound.reads_temporary(&catalog) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "materialized views must not use temporary tables or views",
        ));
    }
    let present = cx.catalog()?;
    let columns = view::columns(
        &crate::choose_name::strings(&into.col_names),
        &bound.columns,
        "too many column names were specified",
        cx.lookup(&present),
    )?;
    for column in &columns {
        super::columns::check_column_name(&column.name)?;
    }
    let range = stmt.query_range;
    let (query, sources) =
        view::numbered(query, range, None, &bound, cx.text, cx.lookup(&catalog))?;
    let is_filled = !into.skip_data;
    let oid = RelationId::new(cx.new_oid()?);
    let made = View::new(cx.new_oid()?, query, sources, None);
    made.tree()?;
    let mut relation = Relation {
        oid,
        name,
        schema: schema.oid,
        schema_name: schema.name.clone(),
        kind: RelationKind::Materialized(Arc::new(made), is_filled),
        columns,
        indexes: Vec::new(),
        constraints: Vec::new(),
        storage: cx.store.storage_for(oid.get()),
        schema_version: 1,
        security: logstead_sql_catalog::RowSecurity::default(),
        distribution: Default::default(),
        shared_names: Default::default(),
    };
    let said = distribution::take(&mut options);
    relation.distribution = distribution::of_new(said.as_deref(), None, &relation, cx)?;
    make_storage(cx, &relation)?;
    if !options.is_empty() {
        cx.state.push(CatalogChange::Options(oid, options));
    }
    let relation = cx.create_relation(relation).await?;
    if !is_filled {
        return Ok(tag);
    }
    let (plan, catalog) = planned(&relation, cx).await?;
    let rows = create_as::fill(cx, plan, &[], &catalog, &relation).await?;
    Ok(format!("SELECT {rows}"))
}

/// The plan of a view's query; what it reads is locked.
async fn planned(
    relation: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<(Plan, Arc<logstead_sql_catalog::Catalog>)> {
    let view = relation
        .view()
        .cloned()
        .ok_or_else(|| SqlError::internal("a materialized view without a query"))?;
    loop {
        let catalog = cx.catalog()?;
        let bound = with_planner(cx, &catalog, |plan| bind::plan_view(relation, &view, plan))?;
        let reads = bound.tables().read.clone();
        let plan = cx.may_run(bound)?;
        for read in &reads {
            cx.lock_storage(read.storage, TableLock::AccessShare)
                .await?;
        }
        if cx.catalog()?.version == catalog.version {
            return Ok((plan, catalog));
        }
    }
}

/// Runs REFRESH MATERIALIZED VIEW.
pub(super) async fn refresh(stmt: &RefreshMatViewStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let name = &stmt.relation;
    let (concurrently, data) = (stmt.concurrent, !stmt.skip_data);
    if concurrently && !data {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "CONCURRENTLY and WITH NO DATA options cannot be used together",
        ));
    }
    let (oid, plain) = cx.named_relation(name)?;
    let is_one = |relation: &Arc<Relation>| matches!(relation.kind, RelationKind::Materialized(..));
    if !cx.catalog()?.relations.get(&oid).is_some_and(is_one) {
        return Err(not_materialized(&plain));
    }
    trust(oid, cx)?;
    // With CONCURRENTLY readers go on until the new rows take the place of the old. Two at a time would leave those of
    // the one that began first.
    let lock = match concurrently {
        true => TableLock::Exclusive,
        false => TableLock::AccessExclusive,
    };
    let Some((relation, _)) = cx.lock_table(oid, lock).await? else {
        return Err(no_relation(name));
    };
    // Whose it is may have changed during the wait.
    cx.must_own(&relation)?;
    trust(oid, cx)?;
    if concurrently {
        may_refresh_concurrently(&relation)?;
    }
    let target = now(oid, name, cx)?;
    let target = distribution::new_storage(&target, cx)?;
    let storage = target.storage;
    if data {
        let (plan, catalog) = planned(&now(oid, name, cx)?, cx).await?;
        create_as::fill(cx, plan, &[], &catalog, &target).await?;
    }
    let Some((now, _)) = cx.lock_table(oid, TableLock::AccessExclusive).await? else {
        return Err(no_relation(name));
    };
    let RelationKind::Materialized(view, _) = &now.kind else {
        return Err(not_materialized(&plain));
    };
    let mut changed = Relation::clone(&now);
    changed.storage = storage;
    changed.kind = RelationKind::Materialized(Arc::clone(view), data);
    for index in &changed.indexes {
        cx.attach(&changed, index).await?;
    }
    cx.state.unused(now.storage);
    cx.update_relation(changed).await.map(std::mem::drop)
}

/// Its query may ask who runs it. The owner's does what the owner may, and a superuser's what a superuser wrote.
fn trust(oid: RelationId, cx: &mut DdlContext<'_>) -> Result<()> {
    match cx.with_acl_checker(|acl_checker, role| acl_checker.owns_as(role, oid))? {
        true => Ok(()),
        false => Err(SqlError::unsupported(
            "REFRESH of a materialized view of another role that is no superuser",
        )
        .hint("SET ROLE to its owner first.")),
    }
}

/// Fails unless it has rows, and an index by which PostgreSQL would tell them apart.
fn may_refresh_concurrently(relation: &Relation) -> Result<()> {
    if matches!(relation.kind, RelationKind::Materialized(_, false)) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "CONCURRENTLY cannot be used when the materialized view is not populated",
        ));
    }
    let whole = |i: &Arc<logstead_sql_catalog::IndexDef>| {
        i.unique && i.predicate.is_none() && i.positions().is_some()
    };
    if relation.indexes.iter().any(whole) {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!(
            "cannot refresh materialized view \"{}.{}\" concurrently",
            relation.schema_name, relation.name
        ),
    )
    .hint("Create a unique index with no WHERE clause on one or more columns of the materialized view."))
}

fn now(oid: RelationId, name: &RangeVar, cx: &mut DdlContext<'_>) -> Result<Arc<Relation>> {
    let found = cx.catalog()?.relations.get(&oid).cloned();
    found.ok_or_else(|| no_relation(name))
}

fn not_materialized(name: &str) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("\"{name}\" is not a materialized view"),
    )
}
