//! Extensions: which can be had, what they bring, and how one that was made is noted.

use super::Catalog;
use logstead_sql_types::TypeId;
use logstead_sql_types::value::{FIRST_EXTENSION_OID, FIRST_USER_OID, Oid, oid};

/// Stands for the column's number in the row that says that an extension was made.
pub const EXTENSION_ROW: i32 = -1;

/// An extension that can be had.
pub struct Extension {
    /// Its name, and that of its type.
    pub name: &'static str,
    /// The type, which is there where the extension is.
    pub ty: TypeId,
    /// The first OID of what else it brings.
    pub first: Oid,
    /// Of PostgreSQL's.
    pub version: &'static str,
    /// What `pg_available_extensions` says of it.
    pub comment: &'static str,
}

/// The extensions that can be had, by what their OIDs begin with.
pub static EXTENSIONS: [Extension; 2] = [
    Extension {
        name: "citext",
        ty: oid::CITEXT,
        first: 16_010,
        version: "1.6",
        comment: "data type for case-insensitive character strings",
    },
    Extension {
        name: "hstore",
        ty: oid::HSTORE,
        first: 16_100,
        version: "1.8",
        comment: "data type for storing sets of (key, value) pairs",
    },
];

/// OID of the extension that brings a type: above those that a dump takes for every database's own.
pub fn extension_of(ty: TypeId) -> Oid {
    FIRST_USER_OID + (ty.get() - FIRST_EXTENSION_OID)
}

/// The name of an extension that was made; `None` if there is none of that number.
pub fn extension_name(catalog: &Catalog, oid: Oid) -> Option<&str> {
    let made = catalog.types.extensions().iter().find(|e| e.oid == oid);
    let of_type = || {
        let found = EXTENSIONS.iter().find(|e| extension_of(e.ty) == oid)?;
        catalog.types.get(found.ty).map(|_| found.name)
    };
    made.map(|made| made.name.as_str()).or_else(of_type)
}
