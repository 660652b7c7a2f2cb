//! The catalog of a replica: read at its start, and again whenever the log has changed one of its tables.
//!
//! Owns: [`ReplicaCatalog`], which is told of each batch before that becomes visible, and the catalogs as they were
//! published, each with the snapshots that it is for ([`CatalogStore::catalog_seen`]).
//!
//! A primary's sessions hold table locks, which keep DDL away from plans that run. Here nobody waits for a reader.
//! Instead a catalog belongs to snapshots:
//! - A catalog is published *before* the batch that it is of becomes visible, for snapshots from the batch's CSN on. So
//!   whoever has a snapshot finds the very catalog that its data was written under, whatever came since; and whoever
//!   plans before it has a snapshot looks again afterwards.
//! - A storage or an index that no catalog names any more is *retired*: it stays, and indexes are kept up, until no
//!   snapshot is left that a catalog belongs to which names it, and for [`RETIRED_FOR`] beyond, for whoever plans
//!   without a snapshot just then.
//! - A storage that no catalog names *yet* may be named later: CREATE DATABASE copies rows first. It stays for
//!   [`UNNAMED_FOR`] after its newest record; if it is named after that, the replica begins again.
//!
//! Invariants:
//! - Catalogs are published in the order of CSNs, and the one for a snapshot in use is never forgotten.
//! - If a catalog cannot be read or made, no snapshot that would need it gets another one in its place.
//!
//! Does not: change anything that is stored. OIDs are not given out, and rows of objects are not remembered.

use super::change::{CatalogChange, is_shared_class, is_stored};
use super::read::{RowsByRid, StoredCatalogRows};
use super::replica_catalogs::CatalogVersion;
use super::replica_status::ReplicaStatus;
use super::store::{CatalogStore, each_row, into_store, read_rows};
use super::stored::{self, COMMENTS, COUNTER, OBJECT_TABLES, ObjectRow, SEQUENCES};
use super::{Catalog, RelationKind, SystemCatalog};
use crate::distribution::divide;
use crate::storages::{StartupIndexes, attach_index, fill_or_detach};
use crate::stored::SHARED;
use logstead_engine::{Engine, Isolation, ReplicaBatch, Txn, Worker};
use logstead_env::{Clock, Instant};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_sql_types::{DatabaseOid, RelationId};
use logstead_types::{Csn, IndexId, SqlState, TableId};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How long a retired storage stays when no snapshot needs it.
const RETIRED_FOR: Duration = Duration::from_secs(2);

/// How long a storage stays that nothing has ever named.
const UNNAMED_FOR: Duration = Duration::from_secs(600);

impl CatalogStore {
    /// Is it a replica's?
    #[inline]
    pub fn is_replica(&self) -> bool {
        self.replica.get().is_some()
    }

    /// What the replica tells of itself, if it is one.
    pub fn replica_status(&self) -> Option<&Arc<ReplicaStatus>> {
        self.replica.get()
    }

    fn replace_all(&self, catalogs: Vec<Arc<Catalog>>) {
        let mut all = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *all, catalogs);
        drop(all);
        // Behind the lock: they may be large.
        drop(before);
    }

    /// At a replica: the catalog of a database that belongs to a snapshot. An error says why there is none.
    pub fn catalog_seen(
        &self,
        database: DatabaseOid,
        snapshot: Csn,
    ) -> Result<Option<Arc<Catalog>>> {
        self.published.seen(database, snapshot)
    }

    /// The same for whoever has no snapshot yet.
    pub fn catalog_visible(&self, database: DatabaseOid) -> Result<Option<Arc<Catalog>>> {
        self.catalog_seen(database, self.engine().next_csn())
    }

    /// The one that belongs to the snapshot which a transaction reads with; the newest visible one, if it has none.
    pub fn catalog_read_by(
        &self,
        database: DatabaseOid,
        txn: Option<&mut Txn>,
    ) -> Result<Option<Arc<Catalog>>> {
        match txn.filter(|txn| txn.has_seen()) {
            Some(txn) => self.catalog_seen(database, txn.snapshot()),
            None => self.catalog_visible(database),
        }
    }

    /// At a replica: the number of a new object of a session that sees this catalog. Nothing is logged for it.
    pub fn temporary_oid(&self, catalog: &Catalog) -> Oid {
        self.temporary_numbers.oid(catalog)
    }

    /// The number of the storage of a new relation, or of a new storage, for which `oid` was given: that one, but for a
    /// replica, which is followed by no log.
    pub fn storage_for(&self, oid: Oid) -> TableId {
        match self.is_replica() {
            false => TableId(oid),
            true => self.temporary_numbers.storage(|storage| {
                self.engine().table(storage).is_some() || self.sequences().peek(storage).is_some()
            }),
        }
    }
}

/// What no catalog names any more.
struct RetiredStorage {
    table: TableId,
    /// Only this index of it.
    index: Option<IndexId>,
    /// Snapshots below this may need it.
    until: Csn,
    since: Instant,
}

/// Keeps a replica's catalogs as the log says. It is the thread's that follows the log.
pub struct ReplicaCatalog {
    store: Arc<CatalogStore>,
    worker: Worker,
    clock: Arc<dyn Clock>,
    /// Rows of the object tables as they were read last, by row number.
    rows: HashMap<TableId, RowsByRid>,
    /// Which storages the catalogs name, and which indexes of them.
    named: HashMap<TableId, BTreeSet<IndexId>>,
    /// Why indexes are not kept.
    invalid: HashMap<IndexId, SqlError>,
    retired: Vec<RetiredStorage>,
    /// Storages with rows that nothing names, and when the newest came.
    unnamed: HashMap<TableId, Instant>,
    /// Those of them that were given up.
    given_up: HashSet<TableId>,
    /// Sequences whose states are known.
    sequences: HashSet<TableId>,
}

/// How a replica's catalog begins.
pub enum ReplicaStart {
    /// With all that is stored.
    Ready(Arc<CatalogStore>, Box<ReplicaCatalog>),
    /// The primary has not yet stored any, as far as the log tells.
    Empty,
}

impl ReplicaCatalog {
    /// Opens the catalog of a replica's engine, before its first round. `worker` is the replica's own.
    pub fn open(
        engine: &Engine,
        worker: &Worker,
        system: &'static SystemCatalog,
        status: &Arc<ReplicaStatus>,
    ) -> Result<ReplicaStart> {
        let mut indexes = StartupIndexes::default();
        for id in OBJECT_TABLES.into_iter().chain([SEQUENCES, COUNTER]) {
            let table = engine.create_table(id);
            table.use_memory_reserve();
            table.stay_in_memory();
        }
        let rows = read_rows(engine, worker)?;
        if rows.counter.is_none() {
            return Ok(ReplicaStart::Empty);
        }
        let known = rows.by_rid();
        let next = engine.next_csn();
        // Nothing is deleted here.
        let (store, _) = into_store(rows, engine, system)?;
        let _is_told_once = store.replica.set(Arc::clone(status));
        store.bring_storages(worker, &mut indexes)?;
        engine.finish_startup();
        let _was_told = store.started_indexes.set(indexes);
        let catalogs = store.catalogs();
        store.published.put(CatalogVersion {
            from: next,
            catalogs: Ok(catalogs.clone()),
        });
        let mut replica = ReplicaCatalog {
            clock: Arc::clone(&engine.env().clock),
            worker: worker.clone(),
            rows: known,
            named: named_by(&catalogs),
            invalid: HashMap::new(),
            retired: Vec::new(),
            unnamed: HashMap::new(),
            given_up: HashSet::new(),
            sequences: sequences_of(&catalogs),
            store: Arc::clone(&store),
        };
        replica.note_invalid(&catalogs);
        let tables: BTreeSet<TableId> = engine.tables().iter().map(|table| table.id()).collect();
        replica.note_unnamed(&tables);
        Ok(ReplicaStart::Ready(store, Box::new(replica)))
    }

    fn note_invalid(&mut self, catalogs: &[Arc<Catalog>]) {
        let relations = catalogs.iter().flat_map(|c| c.relations.values());
        for index in relations.flat_map(|relation| &relation.indexes) {
            if let Some(why) = &index.invalid {
                let why = SqlError::new(SqlState::DATA_CORRUPTED, &**why);
                self.invalid.insert(index.storage, why);
            }
        }
    }

    /// A batch is about to become visible: publishes the catalogs that belong to it. True if there are new ones. After
    /// an error no snapshot that sees the batch gets a catalog.
    pub fn take(&mut self, batch: &ReplicaBatch<'_>) -> Result<bool> {
        self.note_unnamed(batch.tables);
        let objects: Vec<TableId> = OBJECT_TABLES
            .into_iter()
            .filter(|id| batch.tables.contains(id))
            .collect();
        if objects.is_empty() && !batch.tables.contains(&SEQUENCES) {
            return Ok(false);
        }
        let taken = self.reread(batch, &objects);
        if let Err(error) = &taken {
            self.store.published.put(CatalogVersion {
                from: batch.visible,
                catalogs: Err(error.clone()),
            });
        }
        taken
    }

    fn note_unnamed(&mut self, tables: &BTreeSet<TableId>) {
        let now = self.clock.monotonic();
        let own = |id: &TableId| OBJECT_TABLES.contains(id) || [SEQUENCES, COUNTER].contains(id);
        for id in tables.iter().filter(|id| !own(id)) {
            if !self.named.contains_key(id) && !self.is_retired(*id) {
                self.unnamed.insert(*id, now);
            }
        }
    }

    fn reread(&mut self, batch: &ReplicaBatch<'_>, objects: &[TableId]) -> Result<bool> {
        let mut txn = self.worker.begin(Isolation::RepeatableRead);
        if !txn.import_snapshot(batch.snapshot()) {
            return Err(SqlError::internal("a batch's snapshot cannot be read"));
        }
        let engine = self.store.engine().clone();
        let mut affected = AffectedDatabases::default();
        for id in objects {
            let now = read_objects(&engine, &mut txn, *id)?;
            let before = self.rows.get(id);
            affected.compare(*id, before, &now);
            self.rows.insert(*id, now);
        }
        let published = match affected.is_empty() {
            true => false,
            false => {
                self.publish(batch, &affected)?;
                true
            }
        };
        if published || batch.tables.contains(&SEQUENCES) {
            self.load_sequences(&engine, &mut txn)?;
        }
        Ok(published)
    }

    /// Makes the catalogs anew of which rows have changed; the others stay the very same.
    fn publish(&mut self, batch: &ReplicaBatch<'_>, affected: &AffectedDatabases) -> Result<()> {
        let store = Arc::clone(&self.store);
        let mut rows = StoredCatalogRows::of_objects(&self.rows, |row| affected.needs(row));
        let read = rows.catalogs(store.system())?;
        let before = store.catalogs();
        let live = before
            .first()
            .and_then(|catalog| catalog.notes.live.clone());
        let mut catalogs = Vec::new();
        for (database, mut catalog) in read.catalogs {
            let same = before.iter().find(|catalog| catalog.database == database);
            if let Some(same) = same.filter(|_| !affected.has(database)) {
                catalogs.push(Arc::clone(same));
                continue;
            }
            catalog.notes.databases = Arc::clone(&read.databases);
            catalog.notes.live.clone_from(&live);
            // Everything below is committed, and seen by whoever gets it.
            catalog.csn = Csn(batch.visible.get().saturating_sub(1));
            catalog.version = store.new_version();
            catalogs.push(self.with_storages(catalog)?);
        }
        catalogs.sort_by_key(|catalog| catalog.database);
        let named = named_by(&catalogs);
        self.retire(&named, batch);
        self.named = named;
        if read.has_privileges {
            store.set_has_privileges();
        }
        if let Some(secret) = read.mock_secret {
            let _was_known = store.mock_secret.set(secret);
        }
        // For snapshots first: who has one of them looks there alone.
        store.published.put(CatalogVersion {
            from: batch.visible,
            catalogs: Ok(catalogs.clone()),
        });
        store.replace_all(catalogs);
        Ok(())
    }

    /// The catalog, once the storages and indexes are there that it names.
    fn with_storages(&mut self, catalog: Catalog) -> Result<Arc<Catalog>> {
        let engine = self.store.engine().clone();
        let mut catalog = Arc::new(catalog);
        let mut invalid = Vec::new();
        for relation in catalog.relations.values().filter(|r| is_stored(r)) {
            if self.given_up.contains(&relation.storage) {
                return Err(SqlError::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!(
                        "rows of relation \"{}\" came long before it did, and were given up",
                        relation.name
                    ),
                ));
            }
            self.unnamed.remove(&relation.storage);
            let table = engine.create_table(relation.storage);
            divide(&table, relation);
            for index in &relation.indexes {
                let known = self.invalid.get(&index.storage);
                if known.is_none() && table.index(index.storage).is_some() {
                    continue;
                }
                let why = match known {
                    Some(why) => why.clone(),
                    None => {
                        let keys = self.store.system().index_keys(relation, index, &catalog);
                        let brought = match keys {
                            Ok(keys) => {
                                attach_index(&engine, &table, index, keys);
                                fill_or_detach(&engine, &self.worker, &table, index)?
                            }
                            Err(why) => Err(why),
                        };
                        let Err(why) = brought else { continue };
                        self.invalid.insert(index.storage, why.clone());
                        why
                    }
                };
                let index = index.as_invalid(&why);
                if table.index(index.storage).is_none() {
                    let keys = self.store.system().index_keys(relation, &index, &catalog)?;
                    attach_index(&engine, &table, &index, keys);
                }
                invalid.push(CatalogChange::PutIndex(index));
            }
        }
        if !invalid.is_empty() {
            let changed = Arc::make_mut(&mut catalog);
            invalid.iter().for_each(|change| change.apply(changed));
        }
        Ok(catalog)
    }

    /// What was named and is not any more goes when nobody can ask for it.
    fn retire(&mut self, named: &HashMap<TableId, BTreeSet<IndexId>>, batch: &ReplicaBatch<'_>) {
        let since = self.clock.monotonic();
        let until = batch.visible;
        for (table, indexes) in &self.named {
            let now = named.get(table);
            let retired = |index| RetiredStorage {
                table: *table,
                index,
                until,
                since,
            };
            match now {
                None => self.retired.push(retired(None)),
                Some(now) => {
                    let gone = indexes.difference(now);
                    self.retired.extend(gone.map(|index| retired(Some(*index))));
                }
            }
        }
    }

    fn is_retired(&self, table: TableId) -> bool {
        let mut retired = self.retired.iter();
        retired.any(|retired| retired.table == table && retired.index.is_none())
    }

    /// Lets go of what no snapshot needs any more. To be called after each round.
    pub fn collect(&mut self) {
        let engine = self.store.engine().clone();
        let oldest = engine.oldest_snapshot();
        self.store.published.forget_before(oldest);
        if self.retired.is_empty() && self.unnamed.is_empty() {
            return;
        }
        let now = self.clock.monotonic();
        let given_up = &mut self.given_up;
        self.unnamed.retain(|table, since| {
            let stays = now.since(*since) < UNNAMED_FOR;
            if !stays {
                engine.drop_table(*table);
                given_up.insert(*table);
            }
            stays
        });
        let (named, invalid) = (&self.named, &mut self.invalid);
        self.retired.retain(|retired| {
            if retired.until > oldest || now.since(retired.since) < RETIRED_FOR {
                return true;
            }
            match retired.index {
                None => engine.drop_table(retired.table),
                Some(index) => {
                    invalid.remove(&index);
                    let named = named.get(&retired.table);
                    // It may have come back: a storage that is kept by two catalogs.
                    if !named.is_some_and(|indexes| indexes.contains(&index))
                        && let Some(table) = engine.table(retired.table)
                    {
                        engine.drop_index(&table, index);
                    }
                }
            }
            false
        });
    }

    /// States of sequences are not those of a snapshot, as in PostgreSQL.
    fn load_sequences(&mut self, engine: &Engine, txn: &mut Txn) -> Result<()> {
        let used = sequences_of(&self.store.catalogs());
        let sequences = self.store.sequences();
        for gone in self.sequences.difference(&used) {
            sequences.forget(*gone);
        }
        each_row(engine, txn, SEQUENCES, &mut |rid, row| {
            let (storage, last, called) = stored::decode_sequence(row)?;
            if used.contains(&storage) {
                sequences.load(storage, last, called, rid);
            }
            Ok(())
        })?;
        self.sequences = used;
        Ok(())
    }
}

fn sequences_of(catalogs: &[Arc<Catalog>]) -> HashSet<TableId> {
    let relations = catalogs.iter().flat_map(|c| c.relations.values());
    let sequences = relations.filter(|r| matches!(r.kind, RelationKind::Sequence(_)));
    sequences.map(|r| r.storage).collect()
}

fn read_objects(engine: &Engine, txn: &mut Txn, id: TableId) -> Result<RowsByRid> {
    let mut now = RowsByRid::new();
    each_row(engine, txn, id, &mut |rid, row| {
        now.insert(rid, ObjectRow::decode(row)?);
        Ok(())
    })?;
    Ok(now)
}

/// Storages that catalogs name, and their indexes; those of the catalog's own tables are not among them.
fn named_by(catalogs: &[Arc<Catalog>]) -> HashMap<TableId, BTreeSet<IndexId>> {
    let relations = catalogs.iter().flat_map(|c| c.relations.values());
    let stored = relations.filter(|relation| is_stored(relation));
    stored
        .map(|relation| {
            let indexes = relation.indexes.iter().map(|index| index.storage);
            (relation.storage, indexes.collect())
        })
        .collect()
}

/// Databases of which a row has changed.
#[derive(Default)]
struct AffectedDatabases {
    all: bool,
    databases: HashSet<DatabaseOid>,
}

impl AffectedDatabases {
    fn is_empty(&self) -> bool {
        !self.all && self.databases.is_empty()
    }

    fn has(&self, database: DatabaseOid) -> bool {
        self.all || self.databases.contains(&database)
    }

    /// Is the row wanted to make the catalogs that are affected?
    fn needs(&self, row: &ObjectRow) -> bool {
        let (database, namespace) = (row.key.database, row.key.namespace);
        database == SHARED || is_shared_class(RelationId::new(namespace)) || self.has(database)
    }

    fn compare(&mut self, id: TableId, before: Option<&RowsByRid>, now: &RowsByRid) {
        let none = RowsByRid::new();
        let before = before.unwrap_or(&none);
        for (rid, row) in now {
            match before.get(rid) {
                Some(old) if old == row => {}
                old => {
                    self.add(id, row);
                    old.into_iter().for_each(|old| self.add(id, old));
                }
            }
        }
        for (rid, old) in before {
            if !now.contains_key(rid) {
                self.add(id, old);
            }
        }
    }

    fn add(&mut self, id: TableId, row: &ObjectRow) {
        // What is said of shared objects was once kept with a database.
        let class = RelationId::new(row.key.namespace);
        let is_shared = row.key.database == SHARED || id == COMMENTS && is_shared_class(class);
        match is_shared {
            true => self.all = true,
            false => drop(self.databases.insert(row.key.database)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stored::{ObjectKey, RELATIONS, ROLES};
    use super::*;
    use logstead_types::Rid;

    /// A changed row concerns its database, in its old and its new place; what all share concerns all.
    #[test]
    fn only_databases_with_changed_rows_are_affected() {
        let row = |database: DatabaseOid, oid: u32, definition: u8| ObjectRow {
            key: ObjectKey {
                database,
                namespace: 2200,
                name: format!("o{oid}"),
            },
            oid,
            definition: vec![definition],
        };
        let before: RowsByRid = [
            (Rid(1), row(DatabaseOid::new(5), 1, 0)),
            (Rid(2), row(DatabaseOid::new(6), 2, 0)),
        ]
        .into();
        let affected = |table, now: &RowsByRid| {
            let mut affected = AffectedDatabases::default();
            affected.compare(table, Some(&before), now);
            [5, 6, 7].map(|database| affected.has(DatabaseOid::new(database)))
        };
        assert_eq!(affected(RELATIONS, &before), [false; 3]);
        let mut now = before.clone();
        now.insert(Rid(2), row(DatabaseOid::new(6), 2, 1));
        assert_eq!(affected(RELATIONS, &now), [false, true, false]);
        now.remove(&Rid(1));
        assert_eq!(affected(RELATIONS, &now), [true, true, false]);
        // The number of a row that went was given to another one.
        let mut now = before.clone();
        now.insert(Rid(1), row(DatabaseOid::new(7), 1, 0));
        assert_eq!(affected(RELATIONS, &now), [true, false, true]);
        let mut now = before.clone();
        now.insert(Rid(3), row(SHARED, 3, 0));
        assert_eq!(affected(ROLES, &now), [true; 3]);
    }
}
