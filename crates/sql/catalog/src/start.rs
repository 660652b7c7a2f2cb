//! Tables and indexes as a start makes them of the catalog.
//!
//! Invariant: whether the server starts does not depend on what users have written. An index whose text cannot be
//! read is [invalid](IndexDef::invalid)
//! until it is made anew.

use super::change::{Change, is_stored};
use super::store::{CatalogStore, write_error};
use super::stored::{COUNTER, OBJECT_TABLES, SEQUENCES};
use super::{Catalog, IndexDef, large_objects};
use logstead_engine::{Engine, Isolation, KeyExtractor, RestoredIndex, Table, Worker, WriteError};
use logstead_sql_types::error::{Result, SqlError, load_error};
use logstead_types::{IndexId, SqlState, TableId};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

/// Where the indexes of tables have come from at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartupIndexes {
    /// From the checkpoint, with the log behind it.
    pub restored: usize,
    /// From all rows of their tables.
    pub built: usize,
    /// Those of them that the checkpoint has, but cannot be read there, and why.
    pub damaged: Vec<String>,
    /// Those that are not kept because what users have written for them cannot be read or computed, and why.
    pub invalid: Vec<String>,
}

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
                for index in &relation.indexes {
                    // Every database has those of large objects; most have no rows, and say nothing of the start.
                    let mut uncounted = StartupIndexes::default();
                    let empty = large_objects::is_kept(relation) && table.row_count_estimate() == 0;
                    let counted = if empty { &mut uncounted } else { &mut *indexes };
                    let brought = match self.system.index_keys(relation, index, &catalog) {
                        Ok(keys) => {
                            bring_index(self.engine(), worker, &table, index, keys, counted)?
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
                    invalid.push(Change::PutIndex(index));
                }
            }
            if !invalid.is_empty() {
                self.put_at_start(&catalog, &invalid);
            }
        }
        Ok(used)
    }

    /// Changes a snapshot before anybody has seen it.
    fn put_at_start(&self, catalog: &Arc<Catalog>, changes: &[Change]) {
        let changed = Arc::new(self.derive(catalog, changes));
        let mut all = self.current.write().unwrap_or_else(PoisonError::into_inner);
        for current in all.iter_mut().filter(|c| c.database == changed.database) {
            *current = Arc::clone(&changed);
        }
    }
}

/// Makes the engine's index of a definition; it starts empty.
pub fn attach_index(
    engine: &Engine,
    table: &Arc<Table>,
    index: &IndexDef,
    keys: Arc<dyn KeyExtractor>,
) {
    // A deferrable constraint checks when it is due: see `exec::events`, in a crate above.
    let unique = index.holds_keys_once();
    engine.create_index(table, index.storage, unique, keys);
}

/// Makes an index at start: as the checkpoint has it, with the log behind it, or from rows. The inner error is why it
/// cannot be kept.
fn bring_index(
    engine: &Engine,
    worker: &Worker,
    table: &Arc<Table>,
    index: &IndexDef,
    keys: Arc<dyn KeyExtractor>,
    indexes: &mut StartupIndexes,
) -> Result<Result<()>> {
    let (id, unique) = (index.storage, index.holds_keys_once());
    let restored = engine.restore_index(table, id, unique, keys.clone());
    match restored.map_err(|error| load_error(&error))? {
        RestoredIndex::Restored(_) => {
            indexes.restored += 1;
            return Ok(Ok(()));
        }
        RestoredIndex::NotStored => {}
        RestoredIndex::Damaged(why) => indexes.damaged.push(format!("index {id}: {why}")),
    }
    engine.create_index(table, id, unique, keys);
    let filled = fill_or_detach(engine, worker, table, index)?;
    if filled.is_ok() {
        indexes.built += 1;
    }
    Ok(filled)
}

/// Fills an index that was attached. The inner error is why it cannot be kept; it is detached then.
pub(super) fn fill_or_detach(
    engine: &Engine,
    worker: &Worker,
    table: &Arc<Table>,
    index: &IndexDef,
) -> Result<Result<()>> {
    let id = index.storage;
    match fill_index(worker, table, id)? {
        Ok(()) => Ok(Ok(())),
        // What users have written is computed otherwise than when the rows were written.
        Err(error) if !index.texts().is_empty() => {
            let why = match error {
                WriteError::NoKey { .. } => "its expression fails for a row",
                _ => "it has a key twice",
            };
            engine.drop_index(table, id);
            Ok(Err(SqlError::new(SqlState::DATA_CORRUPTED, why)))
        }
        Err(error) => Err(unfilled(id, &error)),
    }
}

/// Fills an index at start, when nobody else is there.
pub(super) fn build_index(worker: &Worker, table: &Arc<Table>, index: IndexId) -> Result<()> {
    fill_index(worker, table, index)?.map_err(|error| unfilled(index, &error))
}

/// The inner error tells of a row that the index refuses.
fn fill_index(
    worker: &Worker,
    table: &Arc<Table>,
    index: IndexId,
) -> Result<Result<(), WriteError>> {
    let found = table
        .index(index)
        .ok_or_else(|| SqlError::internal(format!("index {index} is missing")))?;
    let mut txn = worker.begin(Isolation::ReadCommitted);
    // What a server held before it stopped it can hold again.
    txn.use_memory_reserve();
    txn.begin_statement();
    let built = txn.build_index(table, &found);
    txn.abort();
    match built {
        Ok(()) => Ok(Ok(())),
        Err(refused @ (WriteError::Unique { .. } | WriteError::NoKey { .. })) => Ok(Err(refused)),
        Err(other) => Err(write_error(&other)),
    }
}

fn unfilled(index: IndexId, error: &WriteError) -> SqlError {
    match error {
        WriteError::Unique { .. } => SqlError::new(
            SqlState::DATA_CORRUPTED,
            format!("unique index {index} has a key twice"),
        ),
        other => write_error(other),
    }
}
