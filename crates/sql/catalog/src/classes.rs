//! The system relations that stand for classes of objects: `classid` in `pg_depend` and `pg_description`, as
//! PostgreSQL's `catalog/pg_*.h` number them, objects of any class, and the schemas that every
//! database begins with.

use logstead_sql_types::value::Oid;
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId, RoleId, SchemaId, TypeId};

/// An object of any class: the part of PostgreSQL's `ObjectAddress` that names a whole object. The number of an object
/// whose class has a newtype is one by itself, so that nobody asks of a schema what belongs to a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CatalogObject {
    /// The system relation that it is a row of.
    pub class: RelationId,
    /// Its number there.
    pub oid: Oid,
}

impl CatalogObject {
    /// The relation, if it is one.
    pub fn relation(self) -> Option<RelationId> {
        (self.class == PG_CLASS).then(|| RelationId::new(self.oid))
    }
}

impl From<(RelationId, Oid)> for CatalogObject {
    fn from((class, oid): (RelationId, Oid)) -> CatalogObject {
        CatalogObject { class, oid }
    }
}

/// The objects of a class are rows of its system relation.
macro_rules! classes_of_objects {
    ($($number:ident => $class:ident),+ $(,)?) => {$(
        impl From<$number> for CatalogObject {
            fn from(object: $number) -> CatalogObject {
                CatalogObject {
                    class: $class,
                    oid: object.get(),
                }
            }
        }
    )+};
}

classes_of_objects! {
    DatabaseOid => PG_DATABASE,
    FunctionId => PG_PROC,
    RelationId => PG_CLASS,
    RoleId => PG_AUTHID,
    SchemaId => PG_NAMESPACE,
    TypeId => PG_TYPE,
}

/// OID of `pg_class`.
pub const PG_CLASS: RelationId = RelationId::new(1259);
/// OID of `pg_constraint`.
pub const PG_CONSTRAINT: RelationId = RelationId::new(2606);
/// OID of `pg_policy`.
pub const PG_POLICY: RelationId = RelationId::new(3256);
/// OID of `pg_trigger`.
pub const PG_TRIGGER: RelationId = RelationId::new(2620);
/// OID of `pg_proc`.
pub const PG_PROC: RelationId = RelationId::new(1255);
/// OID of `pg_rewrite`.
pub const PG_REWRITE: RelationId = RelationId::new(2618);
/// OID of `pg_attrdef`.
pub const PG_ATTRDEF: RelationId = RelationId::new(2604);
/// OID of `pg_namespace`.
pub const PG_NAMESPACE: RelationId = RelationId::new(2615);
/// OID of `pg_database`.
pub const PG_DATABASE: RelationId = RelationId::new(1262);
/// OID of `pg_opclass`.
pub const PG_OPCLASS: RelationId = RelationId::new(2616);
/// OID of `pg_operator`.
pub const PG_OPERATOR: RelationId = RelationId::new(2617);
/// OID of `pg_authid`.
pub const PG_AUTHID: RelationId = RelationId::new(1260);
/// OID of `pg_extension`.
pub const PG_EXTENSION: RelationId = RelationId::new(3079);
/// OID of `pg_type`.
pub const PG_TYPE: RelationId = RelationId::new(1247);

/// The schema `pg_catalog`, with the same number in every database as the others here.
pub const PG_CATALOG_NAMESPACE: SchemaId = SchemaId::new(11);
/// The schema `pg_toast`.
pub const PG_TOAST_NAMESPACE: SchemaId = SchemaId::new(99);
/// The schema `public`, which may be dropped; the others are always there.
pub const PG_PUBLIC_NAMESPACE: SchemaId = SchemaId::new(2_200);
/// The schema `information_schema`.
pub const INFORMATION_SCHEMA_NAMESPACE: SchemaId = SchemaId::new(13_000);

/// Is it a schema that stays in every database?
pub fn is_required_schema(schema: SchemaId) -> bool {
    matches!(
        schema,
        PG_CATALOG_NAMESPACE | PG_TOAST_NAMESPACE | INFORMATION_SCHEMA_NAMESPACE
    )
}
