//! `pg_catalog`: system relations computed from a catalog snapshot.
//!
//! Owns: the list of PostgreSQL 15's system tables and views with their columns, and the functions that give their
//! rows. Beside them stand views of Logstead's own (`commit`, `cost`, `checkpoints`).
//! Relations of features that do not exist here (publications, foreign tables ...) are there and empty: clients ask.
//!
//! Invariant: a row has exactly the columns of its list, each of its type or NULL (a test walks all of them).

/// The literal list of one schema's relations: `OID name = rows { column TYPE, ... }`.
macro_rules! virtual_tables {
    ($schema:literal; $($oid:literal $name:ident = $rows:path { $($column:ident $ty:ident,)* })*) => {
        &[$(logstead_sql_catalog::VirtualTable {
            oid: logstead_sql_types::RelationId::new($oid),
            schema: $schema,
            name: stringify!($name),
            columns: &[$((stringify!($column), logstead_sql_types::value::oid::$ty)),*],
            rows: $rows,
        }),*]
    };
}

pub(crate) use virtual_tables;

mod address;
mod cache;
pub mod calls;
mod catalog_views;
mod catalogs;
pub(crate) mod cells;
mod checkpoints;
mod commit;
mod constraints;
mod cost;
mod databases;
pub(crate) mod definitions;
pub(crate) mod describe;
mod extensions;
mod functions;
pub mod object_names;
mod operator_classes;
mod partitions;
mod pg_depend;
mod policies;
mod privileges;
mod relations;
mod replica;
pub(crate) mod roles;
pub(crate) mod routines;
mod search;
mod session_views;
mod statistics;
mod time_zones;
pub(crate) mod triggers;
mod types;
pub(crate) mod view_texts;
pub(crate) mod viewdef;
mod views;
mod workers;

pub(crate) use extensions::PLPGSQL;
pub(crate) use functions::{built_in_definition, signature};
pub(crate) use operator_classes::{operator_class, operator_class_name};
pub(crate) use relations::{attrdef_oid, standard_comments};
pub(crate) use views::plain_type_name;

use logstead_sql_catalog::classes::CatalogObject;
use logstead_sql_catalog::{SystemCatalog, VirtualContext, VirtualTable};
use logstead_sql_types::RoleId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use std::sync::OnceLock;

/// Owner of everything: the bootstrap superuser.
pub(crate) const OWNER: RoleId = logstead_sql_catalog::role::BOOTSTRAP;

/// The name of an object's owner.
pub(crate) fn owner_name(
    catalog: &logstead_sql_catalog::Catalog,
    object: impl Into<CatalogObject>,
) -> String {
    let owner = catalog.owner_of(object);
    let role = catalog.roles.get(owner);
    role.map_or_else(
        || format!("unknown (OID={owner})"),
        |role| role.name.clone(),
    )
}
/// Rows of a relation that has none.
pub(crate) fn none(_: &VirtualContext<'_>) -> Result<Vec<Vec<Datum>>> {
    Ok(Vec::new())
}

/// Every system relation of `pg_catalog` and `information_schema`.
pub fn tables() -> impl Iterator<Item = &'static VirtualTable> {
    catalogs::TABLES
        .iter()
        .chain(catalog_views::VIEWS)
        .chain(commit::VIEWS)
        .chain(cost::VIEWS)
        .chain(cache::VIEWS)
        .chain(workers::VIEWS)
        .chain(checkpoints::VIEWS)
        .chain(replica::VIEWS)
        .chain(super::information_schema::views())
}

/// What every database begins with.
pub fn system_catalog() -> &'static SystemCatalog {
    static SYSTEM: OnceLock<SystemCatalog> = OnceLock::new();
    SYSTEM.get_or_init(|| SystemCatalog::new(tables(), logstead_sql_exec::index_keys::extractor))
}
