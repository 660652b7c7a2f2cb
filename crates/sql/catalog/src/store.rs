//! The catalog in the engine: its own tables, loading them at start, the current snapshot of each database.
//!
//! Owns: [`CatalogStore`]: the object tables and their name indexes, OID allocation, the published snapshots, the
//! states of sequences. DDL writes objects through ordinary transactions (`ddl`); `publish` puts what they changed into
//! the snapshots.
//!
//! Invariants:
//! - A snapshot is published when its transaction is Precommitted and before its table locks are released, so whoever
//!   waited for the lock finds it. It carries that transaction's CSN: users add it to their dependencies (T10).
//! - An OID is given out only below a logged bound: none is used twice, whatever crashes.
//! - At start every storage that no relation refers to is dropped; every index comes from the checkpoint with the log
//!   behind it, or is built again from rows (`Engine::restore_index` says when). What is stored and no relation names
//!   is forgotten.

use super::CommitToken;
use super::change::CatalogChange;
use super::database_usage::DatabaseUsage;
use super::read::{LoadedCatalogs, OrphanRows, RowVisitor, StoredCatalogRows};
use super::replica_catalogs::CatalogVersions;
use super::replica_status::{ReplicaReport, ReplicaStatus};
use super::sequence::Sequences;
use super::stored::{
    self, COUNTER, DATABASES, NameKey, OBJECT_TABLES, ObjectKey, ObjectRow, ROLES, SCHEMAS,
    SEQUENCES,
};
use super::types_in_use::TypesInUse;
use super::{Catalog, RelationKind, RuntimeStatistics, SystemCatalog, Tariff};
use crate::autonomous_txn::autonomous;
use crate::classes::PG_PUBLIC_NAMESPACE;
use crate::role::scram::{SALT_BYTES, Verifier};
use crate::role::{BOOTSTRAP, Role, Roles};
use crate::storages::{StartupIndexes, build_index};
use crate::stored::SHARED;
use crate::stored::roles::SECRET_BYTES;
use crate::temporary::{FIRST_TEMPORARY_OID, TemporaryNumbers};
use logstead_engine::{
    CacheStats, CheckpointStats, ChunkCounts, CommitPath, Engine, FlushMode, HomeUsage, Isolation,
    PrewarmStats, RecoveryReport, ReplicaHoldReport, RestorePoint, RowBuilder, ScanCursor, Table,
    Txn, Worker, WriteError,
};
use logstead_sql_types::error::{Result, SqlError, load_error};
use logstead_sql_types::value::user::{MULTIRANGE_STEP, RANGE_BITS};
use logstead_sql_types::value::{FIRST_USER_OID, Oid};
use logstead_sql_types::{DatabaseOid, TypeId};
use logstead_types::{Csn, InstanceId, PartitionId, Rid, SqlState, TableId, WorkerId};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

/// First OID of user objects; numbers below belong to the system catalog.
const FIRST_OID: Oid = FIRST_USER_OID;
/// OIDs reserved by one log record.
const OID_BATCH: u32 = 1_024;
struct Oids {
    next: Oid,
    /// First OID that is not reserved in the log.
    limit: Oid,
    rid: Rid,
    /// CSN of the reservation.
    csn: Csn,
}

/// The stored catalog of all databases.
pub struct CatalogStore {
    engine: Engine,
    /// What databases begin with, and how keys of indexes are made.
    pub(super) system: &'static SystemCatalog,
    /// By the database's OID.
    pub(super) current: RwLock<Vec<Arc<Catalog>>>,
    pub(super) versions: AtomicU64,
    /// Rows of objects by (table, database, OID). An entry of a transaction that rolled back is never asked for again.
    pub(super) rids: Mutex<HashMap<(TableId, DatabaseOid, Oid), Rid>>,
    /// Who is in which database.
    pub in_use: Arc<DatabaseUsage>,
    sequences: Sequences,
    oids: Mutex<Oids>,
    tariff: RwLock<Arc<Tariff>>,
    recovery: OnceLock<Arc<RecoveryReport>>,
    pub(super) started_indexes: OnceLock<StartupIndexes>,
    pub(super) mock_secret: OnceLock<[u8; SECRET_BYTES]>,
    /// At a replica: what it tells of itself, and the catalogs that belong to snapshots.
    pub(super) replica: OnceLock<Arc<ReplicaStatus>>,
    pub(super) published: CatalogVersions,
    pub(super) temporary_numbers: TemporaryNumbers,
    /// The row that says so is there for good.
    has_privileges: AtomicBool,
    /// Which types temporary objects of sessions use.
    pub temporary_types: TypesInUse,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CatalogStore {
    /// Opens the catalog of `engine`, making that of an empty log first. To be called once, before the workers start.
    pub fn open(engine: &Engine, system: &'static SystemCatalog) -> Result<Arc<CatalogStore>> {
        let worker = engine.worker(WorkerId(0));
        let mut indexes = StartupIndexes::default();
        for id in OBJECT_TABLES {
            let table = engine.create_table(id);
            // Dropping and truncating tables must go on when the memory budget is used up.
            table.use_memory_reserve();
            table.stay_in_memory();
            engine.create_index(&table, stored::name_index(id), true, Arc::new(NameKey));
            build_index(&worker, &table, stored::name_index(id))?;
        }
        for id in [SEQUENCES, COUNTER] {
            let table = engine.create_table(id);
            table.use_memory_reserve();
            // A sequence is written in the middle of an expression, where nothing can wait.
            table.stay_in_memory();
        }
        let rows = read_rows(engine, &worker)?;
        let rows = if rows.counter.is_none() {
            bootstrap(engine, &worker)?;
            read_rows(engine, &worker)?
        } else {
            rows
        };
        let (store, orphans) = into_store(rows, engine, system)?;
        store.pass_over_storages();
        store.make_storages(&worker, &mut indexes)?;
        // Whatever the log has told of indexes is used.
        engine.finish_startup();
        let _was_told = store.started_indexes.set(indexes);
        store.delete(&worker, &orphans)?;
        store.reserve(&worker, &mut locked(&store.oids))?;
        store.make_roles(&worker)?;
        store.make_databases(&worker)?;
        worker.flush(FlushMode::Inline);
        Ok(store)
    }

    /// Sets what the log's homes cost; the built-in price list, and no lease, unless it is called.
    pub fn set_tariff(&self, tariff: Tariff) {
        *self.tariff.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tariff);
    }

    /// Says what the start has read, for `logstead_recovery`, to which comes what indexes needed. The first call
    /// counts.
    pub fn set_recovery(&self, mut report: RecoveryReport) {
        let (pages, bytes) = self.engine.start_reads();
        report.checkpoint_pages += pages;
        report.checkpoint_bytes += bytes;
        let _was_told = self.recovery.set(Arc::new(report));
    }

    /// Where its indexes have come from.
    pub fn started_indexes(&self) -> StartupIndexes {
        self.started_indexes.get().cloned().unwrap_or_default()
    }

    /// What databases begin with, and how keys of indexes are made.
    pub fn system(&self) -> &'static SystemCatalog {
        self.system
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Rises with every change of a catalog, and when what was made for one may go because its past was closed.
    pub fn version(&self) -> u64 {
        self.versions.load(Ordering::Acquire) + self.engine.closed_pasts()
    }

    /// The version of a catalog that is made beside the current ones.
    pub fn new_version(&self) -> u64 {
        self.versions.fetch_add(1, Ordering::Relaxed)
    }

    /// The current snapshot of a database.
    pub fn current(&self, database: &str) -> Option<Arc<Catalog>> {
        let all = self.current.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|c| c.database_name == database).cloned()
    }

    /// The current snapshots of all databases.
    pub fn catalogs(&self) -> Vec<Arc<Catalog>> {
        let all = self.current.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().cloned().collect()
    }

    /// The current snapshot of a database by OID.
    pub fn current_by_oid(&self, database: DatabaseOid) -> Option<Arc<Catalog>> {
        let all = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let at = all.binary_search_by_key(&database, |c| c.database).ok()?;
        all.get(at).cloned()
    }

    /// The states of sequences.
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// A snapshot with `changes` on top of `base`.
    pub fn derive(&self, base: &Catalog, changes: &[CatalogChange]) -> Catalog {
        let mut catalog = base.clone();
        changes.iter().for_each(|c| c.apply(&mut catalog));
        catalog.version = self.versions.fetch_add(1, Ordering::Relaxed);
        catalog
    }

    /// The roles as they are now.
    pub fn roles(&self) -> Arc<Roles> {
        let all = self.current.read().unwrap_or_else(PoisonError::into_inner);
        all.first()
            .map(|c| Arc::clone(&c.roles))
            .unwrap_or_default()
    }

    /// Is it stored, and by a transaction that has committed, that there are owners and privileges?
    pub fn has_privileges(&self) -> bool {
        self.has_privileges.load(Ordering::Relaxed)
    }

    /// It is.
    pub fn set_has_privileges(&self) {
        self.has_privileges.store(true, Ordering::Relaxed);
    }

    /// The CSN of the newest change of a catalog.
    pub fn newest_change(&self) -> Csn {
        let all = self.current.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|c| c.csn).max().unwrap_or_default()
    }

    /// What roles that are not there are asked is made from it. It outlives the server, as their questions must.
    pub fn mock_secret(&self) -> &[u8] {
        self.mock_secret.get().map_or(&[], |secret| secret)
    }

    /// Gives the bootstrap superuser a password, unless it has one. To be called before the workers start.
    pub fn set_first_password(&self, password: &str) -> Result<bool> {
        let worker = self.engine.worker(WorkerId(0));
        let roles = self.roles();
        let Some(role) = roles.get(BOOTSTRAP).filter(|role| role.password.is_none()) else {
            return Ok(false);
        };
        let mut salt = [0; SALT_BYTES];
        self.engine.env().random.fill(&mut salt);
        let mut role = Role::clone(role);
        // One that is a verifier already is taken as it is, as in CREATE ROLE.
        let verifier = Verifier::parse(password).unwrap_or_else(|| Verifier::of(password, salt));
        role.password = Some(verifier.to_string());
        let (table, rid) = (self.table(ROLES)?, self.rid(ROLES, SHARED, role.oid.get()));
        let row = stored::roles::encode(&role).encode(&mut RowBuilder::new());
        let csn = autonomous(&worker, |txn| {
            let rid = rid.ok_or(WriteError::Gone)?;
            let guard = txn.pin();
            let version = txn
                .read_newest(&table, rid, &guard)?
                .ok_or(WriteError::Gone)?
                .version;
            txn.update(&table, rid, version, &row)
        })?;
        worker.flush(FlushMode::Inline);
        self.publish(SHARED, &[CatalogChange::PutRole(Arc::new(role))], csn);
        Ok(true)
    }

    /// Stores what a new database, or one of a build without roles, lacks: the roles that are always there, and the
    /// secret.
    fn make_roles(&self, worker: &Worker) -> Result<()> {
        let table = self.table(ROLES)?;
        let mut missing: Vec<_> = Roles::default()
            .all()
            .into_iter()
            .filter(|role| self.rid(ROLES, SHARED, role.oid.get()).is_none())
            .map(|role| stored::roles::encode(role))
            .collect();
        let mut secret = [0; SECRET_BYTES];
        let has_secret = self.mock_secret.get().is_some();
        if !has_secret {
            self.engine.env().random.fill(&mut secret);
            missing.push(stored::roles::encode_secret(secret));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let mut rids = Vec::new();
        autonomous(worker, |txn| {
            rids.clear();
            for row in &missing {
                rids.push(txn.insert(&table, &row.encode(&mut RowBuilder::new()))?);
            }
            Ok(())
        })?;
        for (row, rid) in missing.iter().zip(rids) {
            self.remember(ROLES, SHARED, row.oid, rid);
        }
        if !has_secret {
            let _was_absent = self.mock_secret.set(secret);
        }
        Ok(())
    }

    /// Remembers where an object's row is.
    pub fn remember(&self, table: TableId, database: DatabaseOid, object: Oid, rid: Rid) {
        locked(&self.rids).insert((table, database, object), rid);
    }

    /// Where an object's row is.
    pub fn rid(&self, table: TableId, database: DatabaseOid, object: Oid) -> Option<Rid> {
        locked(&self.rids).get(&(table, database, object)).copied()
    }

    /// One of the catalog's own tables.
    pub fn table(&self, id: TableId) -> Result<Arc<Table>> {
        self.engine
            .table(id)
            .ok_or_else(|| SqlError::internal(format!("catalog table {id} is missing")))
    }

    /// A new OID, and the CSN of its reservation: the caller's transaction depends on it.
    pub fn new_oid(&self, worker: &Worker) -> Result<(Oid, Csn)> {
        let mut oids = locked(&self.oids);
        if oids.next >= oids.limit {
            self.reserve(worker, &mut oids)?;
        }
        let oid = oids.next;
        oids.next += 1;
        Ok((oid, oids.csn))
    }

    /// A new OID for a type and, the next, for the array over it; its lowest three bits say what kind of type it is.
    pub fn new_type_oid(&self, worker: &Worker, kind: u32) -> Result<(TypeId, Csn)> {
        let mut oids = locked(&self.oids);
        loop {
            let oid = oids.next + (kind.wrapping_sub(oids.next) & 7);
            if oid + 2 <= oids.limit {
                oids.next = oid + 2;
                return Ok((TypeId::new(oid), oids.csn));
            }
            self.reserve(worker, &mut oids)?;
        }
    }

    /// The same for a range, whose multirange has a number that follows from its own.
    pub fn new_range_oid(&self, worker: &Worker) -> Result<(TypeId, Csn)> {
        let mut oids = locked(&self.oids);
        loop {
            let oid = oids.next + (RANGE_BITS.wrapping_sub(oids.next) & (2 * MULTIRANGE_STEP - 1));
            let end = oid + MULTIRANGE_STEP + 2;
            if end <= oids.limit {
                oids.next = end;
                return Ok((TypeId::new(oid), oids.csn));
            }
            self.reserve(worker, &mut oids)?;
        }
    }

    /// Numbers of storages of which the log has rows are given to nobody, though nothing names them any more: their
    /// rows stay in the log until a checkpoint.
    fn pass_over_storages(&self) {
        let storages = self.engine.tables();
        let numbers = storages.iter().map(|table| table.id().0);
        let Some(highest) = numbers.filter(|number| *number < FIRST_TEMPORARY_OID).max() else {
            return;
        };
        let mut oids = locked(&self.oids);
        oids.limit = oids.limit.max(highest + 1);
        oids.next = oids.next.max(highest + 1);
    }

    fn reserve(&self, worker: &Worker, oids: &mut Oids) -> Result<()> {
        let limit = oids.limit.checked_add(OID_BATCH);
        let limit = limit
            .filter(|limit| *limit < FIRST_TEMPORARY_OID)
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::PROGRAM_LIMIT_EXCEEDED,
                    "all object identifiers have been used",
                )
            })?;
        let row = stored::encode_counter(&mut RowBuilder::new(), limit);
        let table = self.table(COUNTER)?;
        oids.csn = autonomous(worker, |txn| {
            let guard = txn.pin();
            let version = txn
                .read_newest(&table, oids.rid, &guard)?
                .ok_or(WriteError::Gone)?
                .version;
            txn.update(&table, oids.rid, version, &row)
        })?;
        oids.next = oids.next.max(oids.limit);
        oids.limit = limit;
        Ok(())
    }

    /// Deletes rows of the catalog's own tables at start.
    fn delete(&self, worker: &Worker, rows: &[(TableId, Rid)]) -> Result<()> {
        for chunk in rows.chunks(256) {
            autonomous(worker, |txn| {
                for (table, rid) in chunk {
                    let Some(table) = self.engine.table(*table) else {
                        continue;
                    };
                    let guard = txn.pin();
                    let version = txn
                        .read_newest(&table, *rid, &guard)?
                        .map(|row| row.version);
                    if let Some(version) = version {
                        txn.delete(&table, *rid, version)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// The rows of an empty log: two databases, each with `public`, and the counter.
fn bootstrap(engine: &Engine, worker: &Worker) -> Result<()> {
    let databases = [(5, "postgres"), (FIRST_OID, "logstead")];
    let mut builder = RowBuilder::new();
    let table = |id| {
        engine
            .table(id)
            .ok_or_else(|| SqlError::internal(format!("catalog table {id} is missing")))
    };
    let (database_table, schemas, counter) = (table(DATABASES)?, table(SCHEMAS)?, table(COUNTER)?);
    autonomous(worker, |txn| {
        for (oid, name) in databases {
            let key = ObjectKey {
                database: SHARED,
                namespace: 0,
                name: name.to_owned(),
            };
            txn.insert(
                &database_table,
                &ObjectRow {
                    key,
                    oid,
                    definition: vec![1],
                }
                .encode(&mut builder),
            )?;
            let key = ObjectKey {
                database: DatabaseOid::new(oid),
                namespace: 0,
                name: "public".to_owned(),
            };
            txn.insert(
                &schemas,
                &ObjectRow {
                    key,
                    oid: PG_PUBLIC_NAMESPACE.get(),
                    definition: vec![1],
                }
                .encode(&mut builder),
            )?;
        }
        txn.insert(
            &counter,
            &stored::encode_counter(&mut builder, FIRST_OID + 1),
        )?;
        Ok(())
    })?;
    Ok(())
}

/// The store, and the rows that nothing refers to any more.
pub(super) fn into_store(
    mut rows: StoredCatalogRows,
    engine: &Engine,
    system: &'static SystemCatalog,
) -> Result<(Arc<CatalogStore>, OrphanRows)> {
    let LoadedCatalogs {
        catalogs,
        databases,
        rids,
        mut orphans,
        mock_secret,
        has_privileges,
    } = rows.catalogs(system)?;
    let used: HashSet<TableId> = catalogs
        .values()
        .flat_map(|c| c.relations.values())
        .filter(|r| matches!(r.kind, RelationKind::Sequence(_)))
        .map(|r| r.storage)
        .collect();
    let states = rows.sequences.iter().filter(|s| !used.contains(&s.1));
    orphans.extend(states.map(|s| (SEQUENCES, s.0)));
    let (rid, next) = rows.counter.ok_or_else(|| {
        SqlError::new(
            SqlState::DATA_CORRUPTED,
            "the stored catalog is damaged: no OID counter",
        )
    })?;
    let store = Arc::new_cyclic(|weak: &Weak<CatalogStore>| {
        let live: Arc<dyn RuntimeStatistics> = Arc::new(StoreStatistics(Weak::clone(weak)));
        let mut current: Vec<_> = catalogs
            .into_values()
            .map(|mut catalog| {
                catalog.notes.databases = Arc::clone(&databases);
                catalog.notes.live = Some(Arc::clone(&live));
                Arc::new(catalog)
            })
            .collect();
        current.sort_by_key(|c| c.database);
        let sequences = Sequences::default();
        for (rid, storage, last, called) in rows.sequences.iter().filter(|s| used.contains(&s.1)) {
            sequences.load(*storage, *last, *called, *rid);
        }
        CatalogStore {
            engine: engine.clone(),
            system,
            current: RwLock::new(current),
            versions: AtomicU64::new(2),
            rids: Mutex::new(rids),
            in_use: Arc::default(),
            sequences,
            oids: Mutex::new(Oids {
                next: next.max(FIRST_OID + 1),
                limit: next,
                rid,
                csn: Csn::ZERO,
            }),
            tariff: RwLock::default(),
            recovery: OnceLock::new(),
            started_indexes: OnceLock::new(),
            replica: OnceLock::new(),
            published: CatalogVersions::default(),
            temporary_numbers: TemporaryNumbers::default(),
            mock_secret: mock_secret.map_or_else(OnceLock::new, OnceLock::from),
            has_privileges: AtomicBool::new(has_privileges),
            temporary_types: TypesInUse::default(),
        }
    });
    Ok((store, orphans))
}

/// All rows of the catalog's own tables, at the start.
pub(super) fn read_rows(engine: &Engine, worker: &Worker) -> Result<StoredCatalogRows> {
    let mut txn = worker.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let rows = StoredCatalogRows::read(|id, each| each_row(engine, &mut txn, id, each));
    txn.abort();
    rows
}

/// Name of a comment's row: object and column.
pub fn comment_name(object: Oid, sub: i32) -> String {
    format!("{object}/{sub}")
}

/// Calls `each` with all rows of one of them. Blocks on what is not in memory.
pub(super) fn each_row(
    engine: &Engine,
    txn: &mut Txn,
    table: TableId,
    each: &mut RowVisitor<'_>,
) -> Result<()> {
    let table = engine
        .table(table)
        .ok_or_else(|| SqlError::internal("a catalog table is missing"))?;
    let mut cursor = ScanCursor::new(&table);
    loop {
        let absent = {
            let guard = txn.pin();
            match txn.scan_next(&mut cursor, &guard) {
                Ok(Some(row)) => {
                    each(row.rid, row.bytes)?;
                    continue;
                }
                Ok(None) => return Ok(()),
                Err(absent) => absent,
            }
        };
        // It is the start, or a replica's own thread: nobody else is there.
        absent.load_here(txn).map_err(|error| load_error(&error))?;
    }
}

struct StoreStatistics(Weak<CatalogStore>);

impl RuntimeStatistics for StoreStatistics {
    fn sequence(&self, storage: TableId) -> Option<(i64, bool)> {
        self.0.upgrade()?.sequences.peek(storage)
    }

    fn table_rows(&self, storage: TableId) -> Option<u64> {
        Some(
            self.0
                .upgrade()?
                .engine
                .table(storage)?
                .row_count_estimate(),
        )
    }

    fn commit_path(&self) -> Option<Arc<CommitPath>> {
        Some(Arc::clone(self.0.upgrade()?.engine.commit_path()))
    }

    fn commit_token(&self) -> Option<CommitToken> {
        let store = self.0.upgrade()?;
        Some(CommitToken {
            database: store.engine.database(),
            next: store.engine.next_csn(),
        })
    }

    fn home_usage(&self) -> Option<Vec<HomeUsage>> {
        Some(self.0.upgrade()?.engine.home().status.usage())
    }

    fn cache(&self) -> Option<CacheStats> {
        let store = self.0.upgrade()?;
        let cache = store.engine.home().cache.as_ref()?;
        Some(cache.stats())
    }

    fn tariff(&self) -> Option<Arc<Tariff>> {
        let store = self.0.upgrade()?;
        let tariff = store.tariff.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&tariff))
    }

    fn checkpoints(&self) -> Option<CheckpointStats> {
        Some(self.0.upgrade()?.engine.checkpoint_stats())
    }

    fn replica_holds(&self) -> Option<Vec<ReplicaHoldReport>> {
        Some(self.0.upgrade()?.engine.replica_holds().report())
    }

    fn restore_points(&self) -> Option<Vec<RestorePoint>> {
        Some(self.0.upgrade()?.engine.restore_points())
    }

    fn recovery(&self) -> Option<Arc<RecoveryReport>> {
        self.0.upgrade()?.recovery.get().cloned()
    }

    fn instance_of(&self, partition: PartitionId) -> Option<InstanceId> {
        Some(self.0.upgrade()?.engine.instances().of_partition(partition))
    }

    fn chunks(&self) -> Option<ChunkCounts> {
        Some(self.0.upgrade()?.engine.chunk_counts())
    }

    fn prewarm(&self) -> Option<PrewarmStats> {
        Some(self.0.upgrade()?.engine.prewarm_stats())
    }

    fn replica(&self) -> Option<ReplicaReport> {
        let store = self.0.upgrade()?;
        Some(store.replica.get()?.report())
    }
}
