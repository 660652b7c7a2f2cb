//! CREATE DATABASE ... TEMPLATE: what is in the template goes over, catalog and rows.
//!
//! Objects keep their OIDs, which are unique within a database only: so what names another by its OID, in a definition
//! or in a row, goes over as it is. Storages are the engine's and get new numbers.
//!
//! Nobody is in the template meanwhile ([`CloseReason::Copy`]), so it stands at one moment of the log. Rows are written
//! by transactions of their own, each of a bounded size, into storages that nothing names; the statement's transaction,
//! which depends on all of them, stores what names these. So a crash before it has committed leaves storages that a
//! start drops, and memory holds no more than one such transaction's rows that cannot be evicted.
//!
//! Does not: change or look at rows. They are copied as they are stored.

use super::DdlContext;
use crate::table_rewrite::yield_once;
use logstead_engine::{Isolation, ScanCursor, Table, Txn};
use logstead_sql_catalog::change::{CatalogChange, is_shared_class, is_stored};
use logstead_sql_catalog::database::Database;
use logstead_sql_catalog::database_usage::CloseReason;
use logstead_sql_catalog::stored::{
    self, COMMENTS, ObjectRow, RELATIONS, RIGHTS, SCHEMAS, STATISTICS, StoredRelation,
};
use logstead_sql_catalog::write_errors::{commit_error, write_error};
use logstead_sql_catalog::{Catalog, IndexDef, Relation, RelationKind, large_objects};
use logstead_sql_exec::wait::{WaitReason, wait_for};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::{DatabaseOid, RelationId};
use logstead_types::{IndexId, TableId};
use std::collections::HashMap;
use std::sync::Arc;

/// Tables with rows of the objects of one database.
const OF_A_DATABASE: [TableId; 5] = [SCHEMAS, RELATIONS, COMMENTS, RIGHTS, STATISTICS];

/// A transaction that writes rows ends behind so many bytes: below the size at which its records would go to a segment
/// of their own.
const BATCH_BYTES: usize = 512 << 10;

/// Rows that are read between two yields.
const BATCH_ROWS: usize = 256;

/// What goes into a new database.
pub(super) struct DatabaseContents {
    rows: Vec<(TableId, ObjectRow)>,
    catalog: Catalog,
}

/// The new numbers of storages.
#[derive(Default)]
struct Storages {
    tables: HashMap<TableId, TableId>,
    indexes: HashMap<IndexId, IndexId>,
}

impl Storages {
    /// The relation with its new storages.
    fn relation(&self, old: &Relation) -> Relation {
        let mut new = old.clone();
        if let Some(storage) = self.tables.get(&old.storage) {
            new.storage = *storage;
        }
        let indexes = old.indexes.iter().map(|index| Arc::new(self.index(index)));
        new.indexes = indexes.collect();
        new
    }

    fn index(&self, old: &IndexDef) -> IndexDef {
        let mut new = old.clone();
        if let Some(storage) = self.indexes.get(&old.storage) {
            new.storage = *storage;
        }
        new
    }

    /// A row of an object, of the database `to`.
    fn row(&self, id: TableId, mut row: ObjectRow, to: DatabaseOid) -> Result<ObjectRow> {
        row.key.database = to;
        let named = id == RELATIONS
            && !stored::triggers::is_trigger(&row)
            && !stored::types::is_type(&row)
            && !stored::routines::is_routine(&row);
        if named {
            row.definition = match stored::decode_relation(&row)? {
                StoredRelation::Relation(relation, options) => {
                    stored::encode_relation(&self.relation(&relation), &options)
                }
                StoredRelation::Index(index, options) => {
                    stored::encode_index(&self.index(&index), &options)
                }
            };
        }
        Ok(row)
    }
}

/// Copies what is in the database `from`, which is closed, into storages that the new database `to` is going to name.
pub(super) async fn copy(
    from: &Arc<Catalog>,
    to: &Database,
    cx: &mut DdlContext<'_>,
) -> Result<DatabaseContents> {
    let mut relations: Vec<&Arc<Relation>> = from.relations.values().collect();
    relations.retain(|relation| !matches!(relation.kind, RelationKind::Virtual(_)));
    relations.sort_unstable_by_key(|relation| relation.oid);
    let mut storages = Storages::default();
    for relation in &relations {
        storages
            .tables
            .insert(relation.storage, TableId(cx.new_oid()?));
        for index in &relation.indexes {
            storages
                .indexes
                .insert(index.storage, IndexId(cx.new_oid()?));
        }
    }
    let mut rows = Vec::new();
    for id in OF_A_DATABASE {
        for row in cx.objects_of(id, from.database).await? {
            // Older builds have kept with a database what is said of what all share.
            if id == COMMENTS && is_shared_class(RelationId::new(row.key.namespace)) {
                continue;
            }
            rows.push((id, storages.row(id, row, to.oid)?));
        }
    }
    let mut catalog = Catalog::clone(from);
    catalog.database = to.oid;
    catalog.database_name.clone_from(&to.name);
    // Its large objects are its own.
    large_objects::put(&mut catalog);
    let mut made = Vec::new();
    for old in relations {
        let new = Arc::new(storages.relation(old));
        CatalogChange::PutRelation(Arc::clone(&new)).apply(&mut catalog);
        for index in &new.indexes {
            CatalogChange::PutIndex(Arc::clone(index)).apply(&mut catalog);
        }
        made.push((Arc::clone(old), new));
    }
    let catalog = Arc::new(catalog);
    let mut copier = Copier::default();
    for (old, new) in &made {
        if matches!(new.kind, RelationKind::Sequence(_)) {
            cx.copy_sequence(old, new)?;
        } else if is_stored(new) {
            crate::relations::make_storage(cx, new)?;
        }
        if new.has_rows() {
            copier.rows(old, new, cx).await?;
        }
    }
    copier.end(cx).await?;
    for (_, new) in &made {
        for index in &new.indexes {
            cx.attach_of(new, index, &catalog).await?;
        }
    }
    Ok(DatabaseContents {
        rows,
        catalog: Arc::unwrap_or_clone(catalog),
    })
}

impl DatabaseContents {
    /// Stores what names the copied rows.
    pub(super) async fn store(self, cx: &mut DdlContext<'_>) -> Result<CatalogChange> {
        for (id, row) in &self.rows {
            if !cx.insert_row(*id, row).await? {
                return Err(SqlError::internal("a new database has an object already"));
            }
        }
        Ok(CatalogChange::FillDatabase(Arc::new(self.catalog)))
    }
}

/// Writes rows, in transactions of a bounded size.
#[derive(Default)]
struct Copier {
    batch: Option<Txn>,
    bytes: usize,
}

impl Copier {
    /// Copies the rows of a table.
    async fn rows(
        &mut self,
        old: &Relation,
        new: &Relation,
        cx: &mut DdlContext<'_>,
    ) -> Result<()> {
        let (source, target) = (cx.storage(old)?, cx.storage(new)?);
        let mut cursor = ScanCursor::new(&source);
        let mut read: Vec<Vec<u8>> = Vec::new();
        loop {
            cx.cancel.check()?;
            let mut absent = None;
            let mut done = false;
            {
                let guard = cx.txn.pin();
                let mut bytes = 0;
                while read.len() < BATCH_ROWS && bytes < BATCH_BYTES {
                    match cx.txn.scan_newest(&mut cursor, &guard) {
                        Ok(Some(row)) => {
                            bytes += row.bytes.bytes().len();
                            read.push(row.bytes.bytes().to_vec());
                        }
                        Ok(None) => {
                            done = true;
                            break;
                        }
                        Err(missing) => {
                            absent = Some(missing);
                            break;
                        }
                    }
                }
            }
            for row in read.drain(..) {
                self.insert(&target, &row, cx).await?;
            }
            if let Some(absent) = absent {
                cx.wait(absent).await?;
            }
            if done {
                return Ok(());
            }
            yield_once().await;
        }
    }

    async fn insert(
        &mut self,
        target: &Arc<Table>,
        row: &[u8],
        cx: &mut DdlContext<'_>,
    ) -> Result<()> {
        let worker = cx.worker;
        loop {
            let batch = self.batch.get_or_insert_with(|| {
                let mut txn = worker.begin(Isolation::ReadCommitted);
                txn.begin_statement();
                txn
            });
            match batch.insert(target, row) {
                Ok(_) => break,
                Err(error) => match WaitReason::of(error) {
                    Ok(obstacle) => wait_for(obstacle, batch, cx.cancel).await?,
                    Err(error) => return Err(write_error(&error)),
                },
            }
        }
        self.bytes += row.len();
        if self.bytes >= BATCH_BYTES {
            self.end(cx).await?;
        }
        Ok(())
    }

    /// Commits what was written; the statement's transaction depends on it.
    async fn end(&mut self, cx: &mut DdlContext<'_>) -> Result<()> {
        self.bytes = 0;
        let Some(mut batch) = self.batch.take() else {
            return Ok(());
        };
        // Without the reservation of the storages' numbers the rows would be in whatever storage has the number after
        // a crash.
        batch.depends_on_everything();
        let receipt = batch.precommit().await;
        let receipt = receipt.map_err(|error| commit_error(&error))?;
        if let Some(csn) = receipt.csn {
            cx.depends_on(csn);
        }
        Ok(())
    }
}

impl DdlContext<'_> {
    /// Makes the state of a copied sequence: it goes on where the other one stands.
    fn copy_sequence(&mut self, old: &Relation, new: &Relation) -> Result<()> {
        let all = self.store.sequences();
        let found = all
            .state(old.storage)
            .ok_or_else(|| SqlError::internal(format!("sequence \"{}\" has no state", old.name)))?;
        let (last, called, csn) = found;
        self.depends_on(csn);
        let engine = self.store.engine();
        let csn = all.create(engine, self.worker, new.storage, last, called)?;
        self.state.sequence_made(new.storage);
        self.depends_on(csn);
        Ok(())
    }

    /// Keeps everybody out of a database that is copied until the transaction ends, once nobody is in it. 55006 if they
    /// stay.
    pub(super) async fn close_template(&mut self, source: &Database) -> Result<()> {
        let own = source.oid == self.catalog()?.database;
        self.close_for(source, CloseReason::Copy { own }).await
    }
}
