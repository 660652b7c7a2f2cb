//! Tables and indexes as a start makes them of the catalog.
//!
//! Invariant: whether the server starts does not depend on what users have written. An index whose text cannot be
//! read is [invalid](super::IndexDef::invalid)
//! until it is made anew.

use super::change::{CatalogChange, is_stored};
use super::store::CatalogStore;
use super::stored::{COUNTER, OBJECT_TABLES, SEQUENCES};
use super::{Catalog, Relation, large_objects};
use crate::distribution::divide;
use crate::storages::{StartupIndexes, attach_index, bring_index};
use logstead_engine::{KeyExtractor, RestoredIndex, Table, Worker};
use logstead_sql_types::error::{Result, load_error};
use logstead_types::TableId;
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

impl CatalogStore {
    /// Makes the storage of every table and builds its indexes; drops what nothing refers to.
    pub(super) fn make_storages(
        &self,
        worker: &Worker,
        indexes: &mut StartupIndexes,
    ) -> Result<()> {
        let used = self.bring_storages(worker, indexes)?;
        for table in self.engine().tables() {
            if !used.contains(&table.id()) {
                self.engine().drop_table(table.id());
            }
        }
        Ok(())
    }

    /// Makes the storage of every table and builds its indexes. Gives which storages are used.
    pub(super) fn bring_storages(
        &self,
        worker: &Worker,
        indexes: &mut StartupIndexes,
    ) -> Result<HashSet<TableId>> {
        let mut used: HashSet<TableId> = OBJECT_TABLES
            .into_iter()
            .chain([SEQUENCES, COUNTER])
            .collect();
        for catalog in self.catalogs() {
            let mut invalid = Vec::new();
            for relation in catalog.relations.values().filter(|r| is_stored(r)) {
                used.insert(relation.storage);
                let table = self.engine().create_table(relation.storage);
                divide(&table, relation);
                let keys_of = |index| self.system.index_keys(relation, index, &catalog);
                let keys: Vec<_> = relation.indexes.iter().map(keys_of).collect();
                let mut restored = self.restore_indexes(&table, relation, &keys)?.into_iter();
                for (index, keys) in relation.indexes.iter().zip(keys) {
                    // Every database has those of large objects; most have no rows, and say nothing of the start.
                    let mut uncounted = StartupIndexes::default();
                    let empty = large_objects::is_kept(relation) && table.row_count_estimate() == 0;
                    let counted = if empty { &mut uncounted } else { &mut *indexes };
                    let brought = match keys {
                        Ok(keys) => {
                            let restored = restored.next();
                            let restored = restored.unwrap_or(RestoredIndex::NotStored);
                            let engine = self.engine();
                            bring_index(engine, worker, &table, index, (keys, restored), counted)?
                        }
                        Err(why) => Err(why),
                    };
                    indexes.damaged.append(&mut uncounted.damaged);
                    let Err(why) = brought else {
                        continue;
                    };
                    let index = index.as_invalid(&why);
                    let keys = self.system.index_keys(relation, &index, &catalog)?;
                    attach_index(self.engine(), &table, &index, keys);
                    indexes.invalid.push(format!(
                        "index \"{}\" of table \"{}.{}\" in database \"{}\": {}",
                        index.name,
                        relation.schema_name,
                        relation.name,
                        catalog.database_name,
                        why.fields().message
                    ));
                    invalid.push(CatalogChange::PutIndex(index));
                }
            }
            if !invalid.is_empty() {
                self.put_at_start(&catalog, &invalid);
            }
        }
        Ok(used)
    }

    /// What has become of those indexes of a table whose keys can be made, in their order: together, so that the log is
    /// read once for all of them where it has to be.
    fn restore_indexes(
        &self,
        table: &Arc<Table>,
        relation: &Relation,
        keys: &[Result<Arc<dyn KeyExtractor>>],
    ) -> Result<Vec<RestoredIndex>> {
        let indexes = relation.indexes.iter().zip(keys);
        let wanted = indexes.filter_map(|(index, keys)| {
            let keys = keys.as_ref().ok()?;
            Some((index.storage, index.holds_keys_once(), Arc::clone(keys)))
        });
        let restored = self.engine().restore_indexes(table, wanted.collect());
        restored.map_err(|error| load_error(&error))
    }

    /// Changes a snapshot before anybody has seen it.
    fn put_at_start(&self, catalog: &Arc<Catalog>, changes: &[CatalogChange]) {
        let changed = Arc::new(self.derive(catalog, changes));
        let mut all = self.current.write().unwrap_or_else(PoisonError::into_inner);
        for current in all.iter_mut().filter(|c| c.database == changed.database) {
            *current = Arc::clone(&changed);
        }
    }
}
