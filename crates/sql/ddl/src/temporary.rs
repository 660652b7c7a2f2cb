//! What happens to temporary objects at COMMIT, and DISCARD TEMP. When it is done, the session decides
//! (`session::temporary`).

use super::DdlContext;
use super::drop::empty;
use logstead_engine::TableLock;
use logstead_sql_catalog::temporary::OnCommit;
use logstead_sql_catalog::{Catalog, Relation, RelationKind};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::{FunctionId, RelationId};
use logstead_types::SqlState;
use std::sync::Arc;

/// The catalog's changes of this transaction begin: to be called before the others.
fn begin(cx: &mut DdlContext<'_>) -> Result<()> {
    let database = cx.catalog()?.database;
    cx.state.begin_statement(cx.txn, cx.store, database);
    Ok(())
}

/// Empties or drops the temporary tables that ask for it. A transaction that has left them empty pays nothing.
pub async fn at_commit(cx: &mut DdlContext<'_>) -> Result<()> {
    // A look makes the transaction depend on nothing.
    let database = cx.session.session_info()?.database();
    let catalog = cx.state.catalog(cx.store, database, cx.txn)?;
    refuse_references(&catalog)?;
    let mut due: Vec<(RelationId, OnCommit)> = Vec::new();
    for (oid, action) in &catalog.notes.on_commit {
        let Some(table) = catalog.relations.get(oid) else {
            continue;
        };
        let rows = cx.storage(table)?.row_count_estimate();
        if *action == OnCommit::Drop || rows > 0 {
            due.push((*oid, *action));
        }
    }
    if due.is_empty() {
        return Ok(());
    }
    due.sort_unstable_by_key(|(oid, _)| *oid);
    begin(cx)?;
    for (oid, action) in due {
        // One may have gone with another.
        let Some((table, _)) = cx.lock_table(oid, TableLock::AccessExclusive).await? else {
            continue;
        };
        match action {
            OnCommit::DeleteRows => empty(&table, cx).await?,
            OnCommit::Drop => {
                let target = crate::object_address::ObjectAddress::Relation(oid);
                super::drop_dependents::report_dependents(&[target], None, true, cx).await?;
                delete(&table, cx).await?;
            }
        }
    }
    Ok(())
}

/// 0A000 if a table is emptied and one that references it is not: its rows would point nowhere.
fn refuse_references(catalog: &Catalog) -> Result<()> {
    let emptied =
        |oid: RelationId| catalog.notes.on_commit.get(&oid) == Some(&OnCommit::DeleteRows);
    let mut all: Vec<RelationId> = catalog.notes.on_commit.keys().copied().collect();
    all.sort_unstable();
    for oid in all.into_iter().filter(|oid| emptied(*oid)) {
        let Some(parent) = catalog.relations.get(&oid) else {
            continue;
        };
        let mut children = catalog.references_to(oid).into_iter();
        if let Some((child, _)) = children.find(|(child, _)| !emptied(child.oid)) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "unsupported ON COMMIT and foreign key combination",
            )
            .detail(format!(
                "Table \"{}\" references \"{}\", but they do not have the same ON COMMIT setting.",
                child.name, parent.name
            )));
        }
    }
    Ok(())
}

/// Drops a temporary table with the sequences that it owns.
async fn delete(table: &Arc<Relation>, cx: &mut DdlContext<'_>) -> Result<()> {
    cx.delete_relation(table).await?;
    for owned in table.columns.iter().filter_map(|c| c.sequence) {
        let sequence = cx.catalog()?.relations.get(&owned).cloned();
        if let Some(sequence) = sequence {
            cx.delete_relation(&sequence).await?;
        }
    }
    Ok(())
}

/// DISCARD TEMP: drops all of them. Nothing that lasts depends on what is temporary, so all that is in the way goes
/// too.
pub async fn discard(cx: &mut DdlContext<'_>) -> Result<()> {
    let catalog = cx.catalog()?;
    let Some(schema) = catalog.temp.as_ref().map(|schema| schema.oid) else {
        return Ok(());
    };
    let all = catalog.dependent_relations(schema).into_iter();
    let all = all.filter(|r| r.is_temporary());
    let mut all: Vec<Arc<Relation>> = all.cloned().collect();
    let routines = catalog.dependent_routines(schema).into_iter();
    let routines: Vec<FunctionId> = routines
        .filter(|routine| routine.is_temporary())
        .map(|routine| routine.oid)
        .collect();
    if all.is_empty() && routines.is_empty() {
        return Ok(());
    }
    all.sort_unstable_by_key(|r| std::cmp::Reverse(r.oid));
    begin(cx)?;
    for routine in routines {
        super::routines::delete(routine, cx).await?;
    }
    for relation in all {
        if !matches!(relation.kind, RelationKind::Sequence(_)) {
            cx.lock_table(relation.oid, TableLock::AccessExclusive)
                .await?;
            cx.refuse_pending(relation.oid, "DISCARD TEMP")?;
        }
        cx.delete_relation(&relation).await?;
    }
    Ok(())
}
