//! The engine's tables and indexes that stand for relations: how a start makes an index, from the checkpoint or from
//! rows, and how the storages of a new database are made.
//!
//! Invariant: an index that is not restored is built from all rows of its table, or is not there.
//!
//! Does not: know which storages there are (`start`).

use crate::IndexDef;
use crate::SystemCatalog;
use crate::large_objects::is_kept;
use crate::write_errors::write_error;
use logstead_engine::{Engine, Isolation, KeyExtractor, RestoredIndex, Table, Worker, WriteError};
use logstead_sql_types::DatabaseOid;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::TableId;
use logstead_types::{IndexId, SqlState};
use std::sync::Arc;

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

/// Makes the engine's index of a definition; it starts empty.
pub fn attach_index(
    engine: &Engine,
    table: &Arc<Table>,
    index: &IndexDef,
    keys: Arc<dyn KeyExtractor>,
) {
    // A deferrable constraint checks when it is due: see `exec::after_triggers`, in a crate above.
    let unique = index.holds_keys_once();
    engine.create_index(table, index.storage, unique, keys);
}

/// Makes an index at start: as the checkpoint has it, with the log behind it, if it was `restored`, or from rows. The
/// inner error is why it cannot be kept.
pub(crate) fn bring_index(
    engine: &Engine,
    worker: &Worker,
    table: &Arc<Table>,
    index: &IndexDef,
    (keys, restored): (Arc<dyn KeyExtractor>, RestoredIndex),
    indexes: &mut StartupIndexes,
) -> Result<Result<()>> {
    let (id, unique) = (index.storage, index.holds_keys_once());
    match restored {
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
pub(crate) fn fill_or_detach(
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
pub(crate) fn build_index(worker: &Worker, table: &Arc<Table>, index: IndexId) -> Result<()> {
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

/// Makes the storages of a database that begins now, and gives their numbers. Those of databases that are stored are
/// made at the start, with all others.
pub fn make_large_object_storages(
    system: &SystemCatalog,
    engine: &Engine,
    worker: &Worker,
    database: DatabaseOid,
) -> Result<Vec<TableId>> {
    let begins = Arc::new(system.database(database, ""));
    let mut made = Vec::new();
    for relation in begins.relations.values().filter(|r| is_kept(r)) {
        let table = engine.create_table(relation.storage);
        made.push(relation.storage);
        for index in &relation.indexes {
            let keys = system.index_keys(relation, index, &begins)?;
            attach_index(engine, &table, index, keys);
            // There is nothing to be put in: it is whole from now on, for checkpoints too.
            build_index(worker, &table, index.storage)?;
        }
    }
    Ok(made)
}
