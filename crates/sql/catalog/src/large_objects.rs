//! Large objects in the catalog: where a database keeps them, and what shows whose they are.
//!
//! Owns: the two relations of a database that are named like system relations and have rows in the engine:
//! `pg_largeobject`, the pages, and `logstead_large_objects`, which objects there are. Their rows are written as those
//! of any table: transactions, the log, checkpoints, branches and backups know nothing of them. Owners, privileges and
//! comments are in the catalog's own books, with those of all other objects; `pg_largeobject_metadata` is a view of
//! both.
//!
//! Invariants:
//! - Every database has both relations from the beginning, and their storages have numbers that follow from the
//!   database's: nothing is stored about them.
//! - They begin and end with the database.

use super::view::{View, ViewObject, ViewSource};
use super::{Catalog, IndexColumn, IndexDef, Relation, RelationKind};
use logstead_sql_types::RelationId;
use logstead_types::{IndexId, TableId};
use std::sync::{Arc, OnceLock};

/// OID of `pg_largeobject`, which is also the class of large objects.
pub const PG_LARGEOBJECT: RelationId = RelationId::new(2613);
/// OID of `pg_largeobject_metadata`.
const METADATA: RelationId = RelationId::new(2995);
/// OID of `logstead_large_objects`.
pub(crate) const LARGE_OBJECTS: RelationId = RelationId::new(8613);
/// OID of `logstead_large_object_rights`.
const RIGHTS: RelationId = RelationId::new(8614);

/// OIDs of the indexes, PostgreSQL's.
const PAGES_INDEX: RelationId = RelationId::new(2683);
const METADATA_INDEX: RelationId = RelationId::new(2996);

/// Storages are numbered from here on by their databases. No OID is as high: see `CatalogStore::new_oid`.
const PAGES_STORAGE: u32 = 1 << 29;
const OBJECTS_STORAGE: u32 = 1 << 30;
const PAGES_KEYS: u32 = 1 << 31;
const OBJECTS_KEYS: u32 = (1 << 31) + (1 << 30);

/// What a view's query names its first and second source.
const METADATA_QUERY: &str = "SELECT o.oid, COALESCE(r.owner, '10'::pg_catalog.oid) AS lomowner, r.acl AS lomacl FROM \"\u{1}0\" o LEFT JOIN \"\u{1}1\" r ON r.oid = o.oid";

/// Is it a system relation with rows in the engine?
pub fn is_kept(relation: &Relation) -> bool {
    matches!(relation.kind, RelationKind::Virtual(table) if matches!(table.oid, PG_LARGEOBJECT | LARGE_OBJECTS))
}

/// The query behind a system relation, if it is a view of such ones.
pub fn view_of(relation: &Relation) -> Option<&'static Arc<View>> {
    static VIEW: OnceLock<Arc<View>> = OnceLock::new();
    if !matches!(relation.kind, RelationKind::Virtual(table) if table.oid == METADATA) {
        return None;
    }
    let source = |relation, name: &str, columns: &[&str]| ViewSource {
        object: ViewObject::Relation(relation),
        schema: "pg_catalog".to_owned(),
        name: name.to_owned(),
        columns: columns
            .iter()
            .map(|c| (*c).to_owned())
            .enumerate()
            .collect(),
        used: (0..columns.len()).collect(),
    };
    Some(VIEW.get_or_init(|| {
        let sources = vec![
            source(LARGE_OBJECTS, "logstead_large_objects", &["oid"]),
            source(
                RIGHTS,
                "logstead_large_object_rights",
                &["oid", "owner", "acl"],
            ),
        ];
        Arc::new(View::new(0, METADATA_QUERY.to_owned(), sources, None))
    }))
}

/// Gives a new catalog the relations of its database.
pub fn put(catalog: &mut Catalog) {
    let database = catalog.database;
    let all = [
        (
            PG_LARGEOBJECT,
            TableId(PAGES_STORAGE + database.get()),
            (PAGES_INDEX, "pg_largeobject_loid_pn_index"),
            IndexId(PAGES_KEYS + database.get()),
            2,
        ),
        (
            LARGE_OBJECTS,
            TableId(OBJECTS_STORAGE + database.get()),
            (METADATA_INDEX, "pg_largeobject_metadata_oid_index"),
            IndexId(OBJECTS_KEYS + database.get()),
            1,
        ),
    ];
    for (oid, storage, (index, name), keys, width) in all {
        let Some(RelationKind::Virtual(table)) = catalog.relations.get(&oid).map(|r| &r.kind)
        else {
            continue;
        };
        let mut relation = Relation::of_virtual(table);
        relation.storage = storage;
        for column in &mut relation.columns {
            column.not_null = true;
        }
        relation.indexes.push(Arc::new(IndexDef {
            oid: index,
            name: name.to_owned(),
            table: oid,
            storage: keys,
            unique: true,
            primary: false,
            nulls_not_distinct: false,
            deferrable: false,
            columns: (0..width).map(IndexColumn::of).collect(),
            include: Vec::new(),
            predicate: None,
            computed: Vec::new(),
            invalid: None,
        }));
        catalog.put_relation(Arc::new(relation));
    }
}
