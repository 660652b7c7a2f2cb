//! Databases: catalogs beside each other in one server.
//!
//! Every stored object but databases, roles and what is said of these belongs to one database: its row's key begins
//! with the database's OID. So each database has a [`Catalog`](super::Catalog) of its own, a session reads no other,
//! and nothing has to be filtered. All databases share the engine, the log, roles, and the list of databases itself
//! ([`Databases`]), which is in each catalog.
//!
//! Two databases are always there to make others from, as in PostgreSQL: `template0` and `template1`. What is in the
//! one that another is made from is in that one, too (`ddl::copy_database`).

use logstead_sql_types::{DatabaseOid, RoleId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The database that new ones are made from.
pub(crate) const TEMPLATE1: DatabaseOid = DatabaseOid::new(1);
/// The one that nobody connects to.
pub const TEMPLATE0: DatabaseOid = DatabaseOid::new(4);
/// Is it one of the two that are always there?
pub(crate) fn is_template(database: DatabaseOid) -> bool {
    matches!(database, TEMPLATE0 | TEMPLATE1)
}

/// What collations and character types of databases are unless they are told.
pub(crate) const LOCALE: &str = "C";

/// A database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    /// `pg_database.oid`.
    pub oid: DatabaseOid,
    /// Name.
    pub name: String,
    /// Whoever may make databases may make them from it.
    pub is_template: bool,
    /// Sessions may begin in it.
    pub allow_connections: bool,
    /// Sessions at a time; -1 is any number.
    pub connection_limit: i32,
    /// LC_COLLATE: a name of the order of bytes.
    pub collate: String,
    /// LC_CTYPE.
    pub ctype: String,
    /// Settings that sessions in it begin with, by role; none is all roles.
    pub settings: BTreeMap<Option<RoleId>, Vec<(String, String)>>,
}

impl Database {
    /// A database as CREATE DATABASE makes it without options.
    pub fn new(oid: DatabaseOid, name: impl Into<String>) -> Database {
        Database {
            oid,
            name: name.into(),
            is_template: false,
            allow_connections: true,
            connection_limit: -1,
            collate: LOCALE.to_owned(),
            ctype: LOCALE.to_owned(),
            settings: BTreeMap::new(),
        }
    }

    /// Those that are always there.
    pub fn templates() -> [Database; 2] {
        let template = |oid, name| Database {
            is_template: true,
            ..Database::new(oid, name)
        };
        [
            template(TEMPLATE1, "template1"),
            Database {
                allow_connections: false,
                ..template(TEMPLATE0, "template0")
            },
        ]
    }

    /// Does the server need it?
    pub fn is_required(&self) -> bool {
        is_template(self.oid)
    }
}

/// All databases of a server, by OID.
#[derive(Clone, Debug, Default)]
pub struct Databases(Vec<Arc<Database>>);

impl Databases {
    /// All of them, by OID.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Database>> {
        self.0.iter()
    }

    /// A database by OID.
    pub fn get(&self, oid: DatabaseOid) -> Option<&Arc<Database>> {
        let at = self.0.binary_search_by_key(&oid, |known| known.oid).ok()?;
        self.0.get(at)
    }

    /// A database by name.
    pub fn by_name(&self, name: &str) -> Option<&Arc<Database>> {
        self.0.iter().find(|known| known.name == name)
    }

    /// Adds or replaces one.
    pub fn put(&mut self, database: Arc<Database>) {
        match self
            .0
            .binary_search_by_key(&database.oid, |known| known.oid)
        {
            Ok(at) => self.0[at] = database,
            Err(at) => self.0.insert(at, database),
        }
    }

    /// Takes one out.
    pub fn remove(&mut self, oid: DatabaseOid) {
        self.0.retain(|known| known.oid != oid);
    }
}

impl FromIterator<Database> for Databases {
    fn from_iter<T: IntoIterator<Item = Database>>(all: T) -> Databases {
        let mut databases = Databases::default();
        for database in all {
            databases.put(Arc::new(database));
        }
        databases
    }
}
