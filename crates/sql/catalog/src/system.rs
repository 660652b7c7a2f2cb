//! What every database begins with, and what the catalog is given by the crates above it.
//!
//! Owns: [`SystemCatalog`]. The rows of system relations are computed, and keys of indexes made of rows, by those who
//! bind and evaluate expressions; the catalog only knows by which functions.

use super::{Catalog, IndexDef, Relation, Schema, VirtualTable, large_objects};
use crate::classes::{
    INFORMATION_SCHEMA_NAMESPACE, PG_CATALOG_NAMESPACE, PG_PUBLIC_NAMESPACE, PG_TOAST_NAMESPACE,
};
use logstead_engine::KeyExtractor;
use logstead_sql_types::DatabaseOid;
use logstead_sql_types::error::Result;
use std::sync::Arc;

/// Makes what extracts the keys of an index from rows of its table.
pub type KeyExtractorFactory =
    fn(&Relation, &Arc<IndexDef>, &Arc<Catalog>) -> Result<Arc<dyn KeyExtractor>>;

/// The system's relations, and how keys of indexes are made.
pub struct SystemCatalog {
    /// A database with nothing of anybody's in it.
    empty: Catalog,
    index_keys: KeyExtractorFactory,
}

impl SystemCatalog {
    /// With these relations: the schemas pg_catalog, pg_toast, public and information_schema are there, too.
    pub fn new(
        relations: impl IntoIterator<Item = &'static VirtualTable>,
        index_keys: KeyExtractorFactory,
    ) -> SystemCatalog {
        let mut empty = Catalog::bare(DatabaseOid::default(), "");
        for (oid, name) in [
            (PG_CATALOG_NAMESPACE, "pg_catalog"),
            // Nothing is ever in it; clients leave it out by its name.
            (PG_TOAST_NAMESPACE, "pg_toast"),
            (PG_PUBLIC_NAMESPACE, "public"),
            (INFORMATION_SCHEMA_NAMESPACE, "information_schema"),
        ] {
            let name = name.to_owned();
            empty.put_schema(Arc::new(Schema { oid, name }));
        }
        for table in relations {
            empty.put_relation(Arc::new(Relation::of_virtual(table)));
        }
        SystemCatalog { empty, index_keys }
    }

    /// The catalog of an empty database.
    pub fn database(&self, oid: DatabaseOid, name: impl Into<String>) -> Catalog {
        let mut catalog = Catalog {
            database: oid,
            database_name: name.into(),
            ..self.empty.clone()
        };
        large_objects::put(&mut catalog);
        catalog
    }

    /// What extracts the keys of an index.
    pub fn index_keys(
        &self,
        relation: &Relation,
        index: &Arc<IndexDef>,
        catalog: &Arc<Catalog>,
    ) -> Result<Arc<dyn KeyExtractor>> {
        (self.index_keys)(relation, index, catalog)
    }
}
