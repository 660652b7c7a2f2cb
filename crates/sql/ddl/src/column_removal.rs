//! Removing a column that nothing depends on any more, with what is its own: indexes, constraints, its sequence.
//!
//! Does not: look for what depends on it (`drop_dependents`).

use crate::relations;
use crate::relations::next_version;
use crate::{DdlContext, distribution, sequence};
use logstead_sql_catalog::text::columns_in;
use logstead_sql_catalog::{ConstraintKind, Relation};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;

/// Drops a column that nothing depends on any more.
pub(crate) async fn remove_column(
    table: RelationId,
    position: usize,
    cascade: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    // Foreign keys of the column itself go with it; those of others that need it were in the way.
    let own = |c: &logstead_sql_catalog::Constraint| {
        c.foreign()
            .is_some_and(|key| key.columns.contains(&position))
    };
    let table = &relations::relation(cx, table)?;
    let involved: Vec<_> = table
        .indexes
        .iter()
        .filter(|i| i.mentions(table).contains(&position))
        .cloned()
        .collect();
    for index in &involved {
        cx.delete_index(table, index).await?;
    }
    let table = relations::relation(cx, table.oid)?;
    let table = &distribution::without_column(&table, position, cx).await?;
    let mut changed = Relation::clone(table);
    changed.constraints.retain(|c| match &c.kind {
        ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index) => {
            !involved.iter().any(|i| i.oid == *index)
        }
        ConstraintKind::Check(text) => !columns_in(text, table).contains(&position),
        ConstraintKind::Foreign(_) => !own(c),
    });
    if let Some(owned) = table.columns.get(position).and_then(|c| c.sequence) {
        sequence::drop_owned(owned, Some((table.oid, position)), cascade, cx).await?;
    }
    super::relation_attributes::forget_column(table.oid, position, cx)?;
    if let Some(column) = changed.columns.get_mut(position) {
        column.name = logstead_sql_catalog::index_expressions::dropped_name(position);
        column.dropped = true;
        column.not_null = false;
        column.default = None;
        column.identity = None;
        column.generated = false;
        column.sequence = None;
        column.domain = None;
        column.missing = Datum::Null;
    }
    changed.schema_version = next_version(table)?;
    cx.update_relation(changed).await.map(drop)
}
