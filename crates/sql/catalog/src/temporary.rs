//! What is temporary: schemas of sessions by their names, and at a replica objects by their numbers.
//!
//! Invariants:
//! - An object is temporary if and only if its schema is ([`Relation::is_temporary`]): no other schema's name begins
//!   so, since the prefix is reserved.
//! - A replica gives its sessions' objects numbers that its primary gives to nobody, and their storages numbers that no
//!   log has (`TemporaryNumbers`). They come again when all have been given: an OID need only be another one than
//!   those that the same session sees, and a storage than those that there are.
//!
//! Does not: hold a session's objects (`temp_objects`), or know which types they use (`types_in_use`).

use super::{Catalog, Relation};
use logstead_engine::TEMPORARY_AT_REPLICAS;
use logstead_sql_types::value::Oid;
use logstead_sql_types::{FunctionId, RelationId, SchemaId};
use logstead_types::TableId;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// No object has this number or a higher one: those of the types of tables' rows are twice their table's.
const OIDS_END: Oid = 1 << 29;
/// Numbers of temporary objects at replicas.
const TEMPORARY_OIDS: Oid = 1 << 24;
/// The first of them: the counter of a log ends here.
pub(crate) const FIRST_TEMPORARY_OID: Oid = OIDS_END - TEMPORARY_OIDS;

/// What the names of temporary schemas begin with.
pub(crate) const PREFIX: &str = "pg_temp_";

/// By which name a session calls its own.
pub const ALIAS: &str = "pg_temp";

/// Is it the name of a session's temporary schema?
pub fn is_temporary_schema(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// What COMMIT does with a temporary table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCommit {
    /// Empties it.
    DeleteRows,
    /// Drops it.
    Drop,
}

impl Relation {
    /// Is it one session's own?
    pub fn is_temporary(&self) -> bool {
        is_temporary_schema(&self.schema_name)
    }
}

impl Catalog {
    /// The version of the published catalog that it is, or that a session's own objects were laid over.
    pub fn published_version(&self) -> u64 {
        self.base.unwrap_or(self.version)
    }

    /// Has an object this number, of those that a session can make for itself?
    fn has_number(&self, oid: Oid) -> bool {
        let relation = RelationId::new(oid);
        self.relations.contains_key(&relation)
            || self.index_tables.contains_key(&relation)
            || self.constraint_tables.contains_key(&oid)
            || self.schemas.contains_key(&SchemaId::new(oid))
            || self.routines.get(FunctionId::new(oid)).is_some()
            || self.triggers.all().iter().any(|trigger| trigger.oid == oid)
    }
}

/// Is it the number of a session's own object at a replica?
pub fn is_number_at_replica(oid: Oid) -> bool {
    (FIRST_TEMPORARY_OID..OIDS_END).contains(&oid)
}

/// The numbers that a replica gives to objects of its sessions.
#[derive(Default)]
pub(crate) struct TemporaryNumbers {
    oids: AtomicU64,
    storages: AtomicU32,
}

impl TemporaryNumbers {
    /// The number of a new object for a session that sees this catalog.
    pub(crate) fn oid(&self, catalog: &Catalog) -> Oid {
        loop {
            let given = self.oids.fetch_add(1, Ordering::Relaxed);
            let is_first_round = given < u64::from(TEMPORARY_OIDS);
            let oid = FIRST_TEMPORARY_OID + (given % u64::from(TEMPORARY_OIDS)) as Oid;
            if is_first_round || !catalog.has_number(oid) {
                return oid;
            }
        }
    }

    /// The number of a new storage.
    pub(crate) fn storage(&self, is_taken: impl Fn(TableId) -> bool) -> TableId {
        loop {
            let given = self.storages.fetch_add(1, Ordering::Relaxed);
            let storage = TableId(TEMPORARY_AT_REPLICAS.0 | given);
            if !is_taken(storage) {
                return storage;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;
    use crate::change::CatalogChange;
    use logstead_sql_types::DatabaseOid;
    use logstead_sql_types::value::user::{relation_of_row_type, row_type_of};
    use std::sync::Arc;

    /// Numbers come again after the last one, but for those that are in use, and no log has any of them.
    #[test]
    fn numbers_at_a_replica_come_again() {
        let mut catalog = Catalog::bare(DatabaseOid::new(5), "postgres");
        let numbers = TemporaryNumbers::default();
        assert_eq!(numbers.oid(&catalog), FIRST_TEMPORARY_OID);
        let schema = Schema {
            oid: SchemaId::new(FIRST_TEMPORARY_OID),
            name: format!("{PREFIX}1"),
        };
        CatalogChange::PutSchema(Arc::new(schema)).apply(&mut catalog);
        let last = u64::from(TEMPORARY_OIDS) - 1;
        numbers.oids.store(last, Ordering::Relaxed);
        assert_eq!(numbers.oid(&catalog), OIDS_END - 1);
        assert_eq!(numbers.oid(&catalog), FIRST_TEMPORARY_OID + 1);
        for oid in [FIRST_TEMPORARY_OID, OIDS_END - 1] {
            assert!(is_number_at_replica(oid));
            let relation = RelationId::new(oid);
            let row = row_type_of(relation);
            assert_eq!(row.and_then(relation_of_row_type), Some(relation));
        }
        assert!(!is_number_at_replica(FIRST_TEMPORARY_OID - 1) && !is_number_at_replica(OIDS_END));
        let first = TEMPORARY_AT_REPLICAS;
        assert_eq!(numbers.storage(|_| false), first);
        numbers.storages.store(u32::MAX, Ordering::Relaxed);
        assert_eq!(numbers.storage(|_| false), TableId(u32::MAX));
        assert_eq!(
            numbers.storage(|storage| storage == first),
            TableId(first.0 + 1)
        );
    }
}
