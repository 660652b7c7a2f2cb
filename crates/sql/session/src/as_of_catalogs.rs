//! The catalog as a restore point has it.
//!
//! It is read from the point's own tables, like that of the present at a start, and kept with the [`AsOfDatabase`]: so
//! it lives as long, and all who read the point share it, with the plans made for it. A catalog of the past says so
//! ([`Catalog::past`]), and where storages are looked for follows from that alone ([`Catalog::table`]).
//!
//! Indexes that the point does not have so that they can be used are not in it. Views of the running server (its
//! checkpoints, costs, restore points) show what is so now.

use logstead_engine::{
    AsOfDatabase, CacheStats, CheckpointStats, ChunkCounts, CommitPath, HomeUsage, PrewarmStats,
    RecoveryReport, ReplicaHoldReport, RestorePoint, RowRef, ScanCursor, Txn,
};
use logstead_sql_catalog::read::StoredCatalogRows;
use logstead_sql_catalog::stored::{COUNTER, OBJECT_TABLES, SEQUENCES};
use logstead_sql_catalog::{
    Catalog, CommitToken, IndexDef, Relation, ReplicaReport, RuntimeStatistics, Tariff,
};
use logstead_sql_ddl::pg_catalog::system_catalog;
use logstead_sql_exec::wait::{WaitReason, wait_for};
use logstead_sql_exec::{Cancel, index_keys};
use logstead_sql_types::DatabaseOid;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::{Rid, SqlState, TableId};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// The catalogs of all databases at one point.
pub(crate) struct AsOfCatalogs(Vec<Arc<Catalog>>);

/// A row and where it is.
type LocatedRow = (Rid, Vec<u8>);

impl AsOfCatalogs {
    /// Those of a past that is opened; read with `txn` unless they were before. `version` gives numbers to catalogs.
    pub(crate) async fn of(
        past: &Arc<AsOfDatabase>,
        txn: &mut Txn,
        cancel: &Cancel,
        now: Option<Arc<dyn RuntimeStatistics>>,
        version: impl Fn() -> u64,
    ) -> Result<Arc<AsOfCatalogs>> {
        let known = |note: Arc<dyn std::any::Any + Send + Sync>| {
            note.downcast::<AsOfCatalogs>()
                .map_err(|_| SqlError::internal("a past has another note"))
        };
        if let Some(note) = past.noted() {
            return known(note);
        }
        let mut found: HashMap<TableId, Vec<LocatedRow>> = HashMap::new();
        for id in OBJECT_TABLES.into_iter().chain([SEQUENCES, COUNTER]) {
            found.insert(id, all_rows(past, id, txn, cancel).await?);
        }
        let damaged = || SqlError::new(SqlState::DATA_CORRUPTED, "a row of the catalog is no row");
        let mut rows = StoredCatalogRows::read(|id, each| {
            for (rid, row) in found.get(&id).into_iter().flatten() {
                each(*rid, RowRef::parse(row).map_err(|_| damaged())?)?;
            }
            Ok(())
        })?;
        let read = rows.catalogs(system_catalog())?;
        let sequences = rows.sequences.iter();
        let live: Arc<dyn RuntimeStatistics> = Arc::new(AsOfStatistics {
            past: Arc::downgrade(past),
            now,
            sequences: sequences
                .map(|(_, storage, last, called)| (*storage, (*last, *called)))
                .collect(),
        });
        let catalogs = read.catalogs.into_values().map(|mut catalog| {
            catalog.notes.databases = Arc::clone(&read.databases);
            catalog.notes.live = Some(Arc::clone(&live));
            catalog.version = version();
            catalog.past = Some(Arc::downgrade(past));
            let whole = Arc::new(catalog.clone());
            for relation in whole.relations.values() {
                let usable = usable(past, relation, &whole)?;
                if usable.len() < relation.indexes.len() {
                    let mut with_those = Relation::clone(relation);
                    with_those.indexes = usable;
                    catalog.put_relation(Arc::new(with_those));
                }
            }
            Ok(Arc::new(catalog))
        });
        let catalogs = AsOfCatalogs(catalogs.collect::<Result<_>>()?);
        known(past.note(Arc::new(catalogs)))
    }

    /// That of one database, if it was there.
    pub(crate) fn database(&self, oid: DatabaseOid) -> Option<&Arc<Catalog>> {
        self.0.iter().find(|catalog| catalog.database == oid)
    }
}

/// The indexes of a relation that plans may use; from here on the past knows how they are made.
fn usable(
    past: &Arc<AsOfDatabase>,
    relation: &Relation,
    catalog: &Arc<Catalog>,
) -> Result<Vec<Arc<IndexDef>>> {
    let mut usable = Vec::new();
    for index in &relation.indexes {
        // One whose text cannot be read is not kept now either.
        let Ok(keys) = index_keys::extractor(relation, index, catalog) else {
            continue;
        };
        let unique = index.holds_keys_once();
        if past.define_index(relation.storage, index.storage, unique, keys) {
            usable.push(Arc::clone(index));
        }
    }
    Ok(usable)
}

async fn all_rows(
    past: &Arc<AsOfDatabase>,
    id: TableId,
    txn: &mut Txn,
    cancel: &Cancel,
) -> Result<Vec<LocatedRow>> {
    let mut rows = Vec::new();
    let Some(table) = past.table(id) else {
        return Ok(rows);
    };
    let mut cursor = ScanCursor::new(&table);
    loop {
        let absent = {
            let guard = txn.pin();
            match txn.scan_next(&mut cursor, &guard) {
                Ok(Some(row)) => {
                    rows.push((row.rid, row.bytes.bytes().to_vec()));
                    continue;
                }
                Ok(None) => return Ok(rows),
                Err(absent) => absent,
            }
        };
        wait_for(WaitReason::Absent(absent), txn, cancel).await?;
    }
}

/// What is so at the point, and for all else what is so now.
struct AsOfStatistics {
    past: Weak<AsOfDatabase>,
    now: Option<Arc<dyn RuntimeStatistics>>,
    sequences: HashMap<TableId, (i64, bool)>,
}

impl RuntimeStatistics for AsOfStatistics {
    fn sequence(&self, storage: TableId) -> Option<(i64, bool)> {
        self.sequences.get(&storage).copied()
    }

    fn table_rows(&self, storage: TableId) -> Option<u64> {
        Some(self.past.upgrade()?.table(storage)?.row_count_estimate())
    }

    fn commit_path(&self) -> Option<Arc<CommitPath>> {
        self.now.as_ref()?.commit_path()
    }

    fn home_usage(&self) -> Option<Vec<HomeUsage>> {
        self.now.as_ref()?.home_usage()
    }

    fn cache(&self) -> Option<CacheStats> {
        self.now.as_ref()?.cache()
    }

    fn tariff(&self) -> Option<Arc<Tariff>> {
        self.now.as_ref()?.tariff()
    }

    fn checkpoints(&self) -> Option<CheckpointStats> {
        self.now.as_ref()?.checkpoints()
    }

    fn replica_holds(&self) -> Option<Vec<ReplicaHoldReport>> {
        self.now.as_ref()?.replica_holds()
    }

    fn restore_points(&self) -> Option<Vec<RestorePoint>> {
        self.now.as_ref()?.restore_points()
    }

    fn recovery(&self) -> Option<Arc<RecoveryReport>> {
        self.now.as_ref()?.recovery()
    }

    fn chunks(&self) -> Option<ChunkCounts> {
        self.now.as_ref()?.chunks()
    }

    fn prewarm(&self) -> Option<PrewarmStats> {
        self.now.as_ref()?.prewarm()
    }

    fn commit_token(&self) -> Option<CommitToken> {
        self.now.as_ref()?.commit_token()
    }

    fn replica(&self) -> Option<ReplicaReport> {
        self.now.as_ref()?.replica()
    }
}
