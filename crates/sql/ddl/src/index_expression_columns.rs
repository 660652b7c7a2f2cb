//! Indexes of which something is computed by functions that users have made
//! ([`catalog::index_expressions`](logstead_sql_catalog::index_expressions)).
//!
//! DDL cannot run such a function; a session can. So what such an index needs of rows that are there already is made in
//! three parts: the table, locked alone, gets the columns (here), the session computes them in all rows as an UPDATE
//! would (`session::fill_index_expressions`), and the index is built (here again). All of it is one statement.

use super::columns::COLUMNS_MAX;
use super::{DdlContext, table_rewrite};
use crate::default_operator_class::check_type;
use crate::relations;
use crate::{expressions, generated};
use logstead_sql_catalog::IndexKey;
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::{IndexDef, Relation, RelationKind, index_expressions};
use logstead_sql_parse as parse;
use logstead_sql_plan::bind::index_expression;
use logstead_sql_types::SchemaId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::{IndexId, SqlState};
use std::sync::Arc;

/// An index that is built when the rows of its table have what is computed for it.
#[derive(Clone, Debug)]
pub struct PendingIndexBuild {
    /// The index.
    pub index: IndexDef,
    /// The one whose place it takes: REINDEX.
    pub(crate) old: Option<Arc<IndexDef>>,
}

/// Gives the table what an index needs computed. The table is locked alone if anything is.
pub(super) async fn add_expression_columns(
    index: &mut IndexDef,
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<Relation>>> {
    index.computed = Vec::new();
    if !index.texts().into_iter().any(index_expressions::calls) {
        return Ok(None);
    }
    // As it is now: the same statement may have added columns for another index.
    let relation = &*relations::relation(cx, index.table)?;
    let mut changed = Relation::clone(relation);
    if !index_expressions::add_columns(&mut changed, index) {
        return Ok(None);
    }
    if matches!(relation.kind, RelationKind::Materialized(..)) {
        return Err(SqlError::unsupported(
            "an index on a materialized view that calls a function which a user has made",
        ));
    }
    if changed.columns.len() > COLUMNS_MAX {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("tables can have at most {COLUMNS_MAX} columns"),
        ));
    }
    changed.schema_version = relations::next_version(relation)?;
    cx.update_relation(changed).await.map(Some)
}

/// Is an index to wait until the rows of its table have their values?
pub(super) async fn must_wait_for_rows(
    relation: &Relation,
    cx: &mut DdlContext<'_>,
) -> Result<bool> {
    Ok(!table_rewrite::is_empty(cx, relation).await?)
}

/// What an index is made of has changed: nobody uses it until the statement's end, when it is made anew
/// ([`rebuild_stale`]), however many of its actions change that.
pub(super) async fn mark_stale(
    old: Arc<IndexDef>,
    schema: SchemaId,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    if cx.state.is_stale(old.oid) {
        return Ok(());
    }
    let mut waiting = IndexDef::clone(&old);
    waiting.computed = Vec::new();
    waiting.invalid = Some("what it is made of has changed".into());
    cx.state.mark_stale(old);
    cx.update_index(schema, waiting).await
}

/// Has the indexes that the statement has outdated computed and built anew, each in the place of the old one.
pub(super) async fn rebuild_stale(cx: &mut DdlContext<'_>) -> Result<()> {
    for old in cx.state.take_stale() {
        let relation = relations::relation(cx, old.table)?;
        let Some(waiting) = relation.indexes.iter().find(|i| i.oid == old.oid) else {
            continue;
        };
        let mut index = IndexDef::clone(waiting);
        index.invalid = None;
        reread(&mut index, &relation, cx)?;
        index.storage = IndexId(cx.new_oid()?);
        let relation = match add_expression_columns(&mut index, cx).await? {
            Some(prepared) => prepared,
            None => relation,
        };
        let pending_builds = PendingIndexBuild {
            index,
            old: Some(old),
        };
        if must_wait_for_rows(&relation, cx).await? {
            cx.state.defer_index_build(pending_builds);
        } else {
            put(pending_builds, cx).await?;
        }
    }
    Ok(())
}

/// Builds an index of which rows have all that is computed.
pub async fn build(pending_builds: PendingIndexBuild, cx: &mut DdlContext<'_>) -> Result<()> {
    let database = cx.catalog()?.database;
    cx.state.begin_statement(cx.txn, cx.store, database);
    put(pending_builds, cx).await
}

async fn put(pending_builds: PendingIndexBuild, cx: &mut DdlContext<'_>) -> Result<()> {
    let PendingIndexBuild { index, old } = pending_builds;
    let relation = relations::relation(cx, index.table)?;
    let index = Arc::new(index);
    cx.attach(&relation, &index).await?;
    let Some(old) = old else {
        cx.state.push(CatalogChange::PutIndex(index));
        return Ok(());
    };
    cx.update_index(relation.schema, IndexDef::clone(&index))
        .await?;
    let storage = cx.storage(&relation)?;
    cx.state.detached(storage, Arc::clone(&old));
    forget(&old, cx).await
}

/// Takes out of the table's definition what was computed for an index that is gone.
pub(super) async fn forget(index: &IndexDef, cx: &mut DdlContext<'_>) -> Result<()> {
    if index.computed.is_empty() {
        return Ok(());
    }
    let relation = relations::relation(cx, index.table)?;
    let mut changed = Relation::clone(&relation);
    index_expressions::forget_columns(&mut changed, index);
    // What has its place may have its columns too.
    for position in relation
        .indexes
        .iter()
        .flat_map(|i| i.computed.iter().flatten())
    {
        if let (Some(column), Some(kept)) = (
            changed.columns.get_mut(*position),
            relation.columns.get(*position),
        ) {
            column.clone_from(kept);
        }
    }
    changed.schema_version = relations::next_version(&relation)?;
    cx.update_relation(changed).await.map(drop)
}

/// Reads an index's expressions anew after a column's type has changed: they may mean something else now, or nothing.
pub(crate) fn reread(
    index: &mut IndexDef,
    relation: &Relation,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    // Its functions are chosen anew, by the types that there are now.
    let written = |text: &str| catalog.routines_shown(text, &[]);
    for column in &mut index.columns {
        let IndexKey::Expression { text, ty, .. } = &mut column.key else {
            continue;
        };
        let expr = parse::parse_expr(&written(text))?;
        let bound = expressions::bound(cx, &catalog, relation, &expr, "INDEX")?;
        let bound = cx.may_define(bound)?;
        if !generated::is_immutable(&bound) {
            return Err(not_immutable("expression"));
        }
        *ty = index_expression::key_type(&bound);
        check_type(*ty, cx)?;
        *text = expressions::stored_text(cx, &catalog, relation, &expr, "INDEX");
    }
    if let Some(text) = &mut index.predicate {
        let expr = parse::parse_expr(&written(text))?;
        let bound = expressions::bound(cx, &catalog, relation, &expr, "PREDICATE")?;
        let bound = cx.may_define(bound)?;
        if !generated::is_immutable(&bound) {
            return Err(not_immutable("predicate"));
        }
        *text = expressions::stored_text(cx, &catalog, relation, &expr, "PREDICATE");
    }
    Ok(())
}

pub(crate) fn not_immutable(what: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_OBJECT_DEFINITION,
        format!("functions in index {what} must be marked IMMUTABLE"),
    )
}
