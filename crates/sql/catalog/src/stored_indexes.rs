//! The indexes that a stored catalog names, without an engine: for who compares stored indexes with stored rows.

use super::change::is_stored;
use super::read::{RowVisitor, StoredCatalogRows};
use super::stored::{NameKey, OBJECT_TABLES, name_index};
use super::{Catalog, SystemCatalog};
use logstead_engine::StoredIndex;
use logstead_sql_types::error::Result;
use logstead_types::TableId;
use std::sync::Arc;

/// Every index of every database, and those of the catalog's own tables: how their keys are made, and what they are
/// called. `read` calls what it is given with each row of the table that it names, as of one moment.
pub fn stored_indexes(
    system: &SystemCatalog,
    read: impl FnMut(TableId, &mut RowVisitor<'_>) -> Result<()>,
) -> Result<Vec<StoredIndex>> {
    let catalogs = StoredCatalogRows::read(read)?.catalogs(system)?.catalogs;
    let mut indexes: Vec<_> = OBJECT_TABLES
        .into_iter()
        .map(|table| StoredIndex {
            table,
            index: name_index(table),
            unique: true,
            name: format!("names of the catalog's table {table}"),
            keys: Arc::new(NameKey),
        })
        .collect();
    for catalog in catalogs.into_values().map(Arc::new) {
        of_database(system, &catalog, &mut indexes)?;
    }
    indexes.sort_by_key(|index| (index.table, index.index));
    Ok(indexes)
}

fn of_database(
    system: &SystemCatalog,
    catalog: &Arc<Catalog>,
    indexes: &mut Vec<StoredIndex>,
) -> Result<()> {
    for relation in catalog.relations.values().filter(|r| is_stored(r)) {
        for index in &relation.indexes {
            // One whose text cannot be read has no keys: it is not kept, and no checkpoint has it.
            let keys = system
                .index_keys(relation, index, catalog)
                .or_else(|why| system.index_keys(relation, &index.as_invalid(&why), catalog))?;
            indexes.push(StoredIndex {
                table: relation.storage,
                index: index.storage,
                // What a deferrable constraint lets stand twice is checked before a commit: here is only what is
                // committed.
                unique: index.unique,
                name: format!(
                    "database \"{}\" table {}.{} index {}",
                    catalog.database_name, relation.schema_name, relation.name, index.name
                ),
                keys,
            });
        }
    }
    Ok(())
}
