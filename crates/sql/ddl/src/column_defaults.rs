//! The defaults of columns that draw from a sequence.
//!
//! Does not: know whose a sequence is (`sequence`).

use crate::DdlContext;
use logstead_engine::TableLock;
use logstead_sql_catalog::{Catalog, Relation};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::Result;
use std::sync::Arc;

/// Columns whose default uses a sequence, but for `but`.
pub(crate) fn default_users(
    catalog: &Catalog,
    sequence: RelationId,
    but: Option<(RelationId, usize)>,
) -> Vec<(Arc<Relation>, usize)> {
    let constant = format!(
        "'{sequence}{}",
        logstead_sql_catalog::dependents_index::REGCLASS_END
    );
    let mut users = Vec::new();
    for table in catalog.dependent_relations(sequence) {
        for (position, column) in table.columns.iter().enumerate() {
            let uses = column
                .default
                .as_ref()
                .is_some_and(|d| d.contains(&constant));
            if uses && !column.dropped && but != Some((table.oid, position)) {
                users.push((Arc::clone(table), position));
            }
        }
    }
    users.sort_by_key(|(table, position)| (table.oid, *position));
    users
}

/// Takes a column's default away.
pub(crate) async fn drop_default(
    cx: &mut DdlContext<'_>,
    table: RelationId,
    position: usize,
) -> Result<()> {
    let Some((table, _)) = cx.lock_table(table, TableLock::AccessExclusive).await? else {
        return Ok(());
    };
    let mut changed = Relation::clone(&table);
    if let Some(column) = changed.columns.get_mut(position) {
        column.default = None;
        column.sequence = None;
    }
    cx.update_relation(changed).await.map(drop)
}
