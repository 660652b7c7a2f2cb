//! The stored catalog, read: from the rows of the catalog's own tables to what each database has.
//!
//! Owns: [`StoredCatalogRows`], everything stored, and [`LoadedCatalogs`], what it means. Who reads says where rows
//! come from: the engine at a start, or a checkpoint's pages.
//!
//! Invariants: all that is read is checked; what does not decode is an error (XX001), what nothing refers to is named
//! as such.
//!
//! Does not: make tables or indexes in an engine (`store` does), or change a row.

use super::change::{CatalogChange, is_shared_class};
use super::database::Databases;
use super::stored::{
    self, COUNTER, DATABASES, OBJECT_TABLES, ObjectRow, RELATIONS, RIGHTS, ROLES, SCHEMAS,
    SEQUENCES, STATISTICS, StoredRelation,
};
use super::{Catalog, Schema, SystemCatalog};
use crate::classes::{
    CatalogObject, PG_CLASS, PG_CONSTRAINT, PG_DATABASE, PG_EXTENSION, PG_NAMESPACE, PG_POLICY,
    PG_PROC, PG_PUBLIC_NAMESPACE, PG_TRIGGER, PG_TYPE,
};
use crate::extensions::extension_name;
use crate::role::Roles;
use crate::stored::SHARED;
use crate::stored::privileges::StoredPrivileges;
use crate::stored::roles::{SECRET_BYTES, StoredRole};
use logstead_engine::RowRef;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{FIRST_USER_OID, Oid, user};
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId, SchemaId, TypeId};
use logstead_types::{Rid, TableId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Rows of one of the catalog's own tables.
pub(super) type RowsByRid = BTreeMap<Rid, ObjectRow>;

/// Rows that nothing refers to any more.
pub(crate) type OrphanRows = Vec<(TableId, Rid)>;

/// What is called with each row of a table.
pub(crate) type RowVisitor<'a> = dyn FnMut(Rid, RowRef<'_>) -> Result<()> + 'a;

/// Everything stored.
pub struct StoredCatalogRows {
    objects: HashMap<TableId, Vec<(Rid, ObjectRow)>>,
    /// States of sequences: row, storage, last value, called.
    pub sequences: Vec<(Rid, TableId, i64, bool)>,
    /// The first OID that was never reserved.
    pub counter: Option<(Rid, Oid)>,
}

/// What is stored, by database.
pub struct LoadedCatalogs {
    /// By the database's OID.
    pub catalogs: HashMap<DatabaseOid, Catalog>,
    /// All databases.
    pub databases: Arc<Databases>,
    /// Rows of objects by (table, database, OID).
    pub rids: HashMap<(TableId, DatabaseOid, Oid), Rid>,
    /// Comments on what is not there.
    pub(crate) orphans: OrphanRows,
    /// What roles that are not there are asked is made from it; absent in a database of a build without roles.
    pub(crate) mock_secret: Option<[u8; SECRET_BYTES]>,
    /// Builds that know no owners refuse to open it.
    pub has_privileges: bool,
}

impl StoredCatalogRows {
    /// Reads all tables: `read` calls what it is given with each row of the table that it names.
    pub fn read(
        mut read: impl FnMut(TableId, &mut RowVisitor<'_>) -> Result<()>,
    ) -> Result<StoredCatalogRows> {
        let mut rows = StoredCatalogRows {
            objects: HashMap::new(),
            sequences: Vec::new(),
            counter: None,
        };
        for id in OBJECT_TABLES {
            let mut list = Vec::new();
            read(id, &mut |rid, row| {
                list.push((rid, ObjectRow::decode(row)?));
                Ok(())
            })?;
            rows.objects.insert(id, list);
        }
        read(SEQUENCES, &mut |rid, row| {
            let (storage, last, called) = stored::decode_sequence(row)?;
            rows.sequences.push((rid, storage, last, called));
            Ok(())
        })?;
        read(COUNTER, &mut |rid, row| {
            rows.counter = Some((rid, stored::decode_counter(row)?));
            Ok(())
        })?;
        Ok(rows)
    }

    /// Rows of objects that were read before, as far as they are `wanted`.
    pub(super) fn of_objects(
        known: &HashMap<TableId, RowsByRid>,
        wanted: impl Fn(&ObjectRow) -> bool,
    ) -> StoredCatalogRows {
        let of_table = |rows: &RowsByRid| {
            let rows = rows.iter().filter(|(_, row)| wanted(row));
            rows.map(|(rid, row)| (*rid, row.clone())).collect()
        };
        let tables = known.iter();
        StoredCatalogRows {
            objects: tables.map(|(id, rows)| (*id, of_table(rows))).collect(),
            sequences: Vec::new(),
            counter: None,
        }
    }

    /// Those of objects, to be kept.
    pub(super) fn by_rid(&self) -> HashMap<TableId, RowsByRid> {
        let of_table = |rows: &Vec<(Rid, ObjectRow)>| rows.iter().cloned().collect();
        let tables = self.objects.iter();
        tables.map(|(id, rows)| (*id, of_table(rows))).collect()
    }

    fn take(&mut self, table: TableId) -> Vec<(Rid, ObjectRow)> {
        self.objects.remove(&table).unwrap_or_default()
    }

    /// What the rows of objects say. They are taken.
    pub fn catalogs(&mut self, system: &SystemCatalog) -> Result<LoadedCatalogs> {
        let mut orphans = Vec::new();
        let mut rids = HashMap::new();
        let mut catalogs: HashMap<DatabaseOid, Catalog> = HashMap::new();
        let mut databases = Vec::new();
        for (rid, row) in self.take(DATABASES) {
            rids.insert((DATABASES, SHARED, row.oid), rid);
            let mut catalog = system.database(DatabaseOid::new(row.oid), row.key.name.clone());
            catalog.remove_schema(PG_PUBLIC_NAMESPACE);
            databases.push(stored::databases::decode(&row)?);
            catalogs.insert(DatabaseOid::new(row.oid), catalog);
        }
        let databases: Arc<Databases> = Arc::new(databases.into_iter().collect());
        for (rid, row) in self.take(SCHEMAS) {
            rids.insert((SCHEMAS, row.key.database, row.oid), rid);
            if let Some(catalog) = catalogs.get_mut(&row.key.database) {
                catalog.put_schema(Arc::new(Schema {
                    oid: SchemaId::new(row.oid),
                    name: row.key.name,
                }));
            }
        }
        // Indexes hang on tables: tables first, then indexes from the oldest on.
        let mut relations = self.take(RELATIONS);
        relations.sort_by_key(|(_, row)| row.oid);
        let mut indexes = Vec::new();
        for (rid, row) in &relations {
            rids.insert((RELATIONS, row.key.database, row.oid), *rid);
            let Some(catalog) = catalogs.get_mut(&row.key.database) else {
                continue;
            };
            if stored::triggers::is_trigger(row) {
                let trigger = stored::triggers::decode(row)?;
                CatalogChange::PutTrigger(Arc::new(trigger)).apply(catalog);
                continue;
            }
            if stored::types::is_type(row) {
                let mut ty = stored::types::decode(row)?;
                let schema = catalog.schemas.get(&ty.schema);
                ty.schema_name = schema.map(|s| s.name.clone()).unwrap_or_default();
                CatalogChange::PutType(Arc::new(ty)).apply(catalog);
                continue;
            }
            if stored::routines::is_routine(row) {
                let mut routine = stored::routines::decode(row)?;
                let schema = catalog.schemas.get(&routine.schema);
                routine.schema_name = schema.map(|s| s.name.clone()).unwrap_or_default();
                CatalogChange::PutRoutine(Arc::new(routine)).apply(catalog);
                continue;
            }
            match stored::decode_relation(row)? {
                StoredRelation::Relation(mut relation, options) => {
                    let schema = catalog.schemas.get(&relation.schema);
                    relation.schema_name = schema.map(|s| s.name.clone()).unwrap_or_default();
                    CatalogChange::Options(relation.oid, options).apply(catalog);
                    CatalogChange::PutRelation(Arc::from(relation)).apply(catalog);
                }
                StoredRelation::Index(index, options) => {
                    indexes.push((row.key.database, index, options))
                }
            }
        }
        for (database, index, options) in indexes {
            if let Some(catalog) = catalogs.get_mut(&database) {
                CatalogChange::Options(index.oid, options).apply(catalog);
                CatalogChange::PutIndex(Arc::new(index)).apply(catalog);
            }
        }
        // By database, made for the first comment on a constraint.
        let mut constraints: HashMap<DatabaseOid, HashSet<Oid>> = HashMap::new();
        let mut comments = self.take(stored::COMMENTS);
        // What is said of databases and roles was once kept with the database where it was said: what was said since
        // goes over it.
        comments.sort_by_key(|(_, row)| row.key.database == SHARED);
        for (rid, row) in comments {
            rids.insert((stored::COMMENTS, row.key.database, row.oid), rid);
            if is_shared_class(RelationId::new(row.key.namespace)) {
                match read_comment(&row) {
                    Some(((class, object, _), _))
                        if class == PG_DATABASE
                            && databases.get(DatabaseOid::new(object)).is_none() =>
                    {
                        orphans.push((stored::COMMENTS, rid));
                    }
                    Some((key, text)) => {
                        let comment = CatalogChange::Comment(key, Some(text));
                        catalogs.values_mut().for_each(|c| comment.apply(c));
                    }
                    None => {}
                }
                continue;
            }
            let catalog = catalogs.get_mut(&row.key.database);
            match (catalog, read_comment(&row)) {
                // A comment outlives its table or index in the log, nowhere else.
                (Some(catalog), Some(((class, object, _), _)))
                    if class == PG_CLASS && catalog.name_of(RelationId::new(object)).is_none() =>
                {
                    orphans.push((stored::COMMENTS, rid));
                }
                (Some(catalog), Some(((class, object, _), _)))
                    if class == PG_CONSTRAINT
                        && !constraints
                            .entry(row.key.database)
                            .or_insert_with(|| constraints_of(catalog))
                            .contains(&object) =>
                {
                    orphans.push((stored::COMMENTS, rid));
                }
                (Some(catalog), Some(((class, object, _), _)))
                    if class == PG_NAMESPACE
                        && object >= FIRST_USER_OID
                        && catalog.schemas.get(&SchemaId::new(object)).is_none() =>
                {
                    orphans.push((stored::COMMENTS, rid));
                }
                (Some(catalog), Some(((class, object, _), _)))
                    if class == PG_REWRITE && !has_rule(catalog, object) =>
                {
                    orphans.push((stored::COMMENTS, rid));
                }
                (Some(catalog), Some(((class, object, _), _)))
                    if class == PG_POLICY && !has_policy(catalog, object) =>
                {
                    orphans.push((stored::COMMENTS, rid));
                }
                (Some(catalog), Some(((class, object, _), _)))
                    if class == PG_TRIGGER && catalog.triggers.get(object).is_none() =>
                {
                    orphans.push((stored::COMMENTS, rid));
                }
                (Some(catalog), Some(((class, object, _), _)))
                    if class == PG_TYPE
                        && user::class(TypeId::new(object)).is_some()
                        && catalog.types.get(TypeId::new(object)).is_none() =>
                {
                    orphans.push((stored::COMMENTS, rid));
                }
                (Some(catalog), Some(((class, object, _), _)))
                    if class == PG_PROC
                        && object >= FIRST_USER_OID
                        && catalog.routines.get(FunctionId::new(object)).is_none() =>
                {
                    orphans.push((stored::COMMENTS, rid));
                }
                (Some(catalog), Some((key, text))) => {
                    CatalogChange::Comment(key, Some(text)).apply(catalog)
                }
                _ => {}
            }
        }
        let mut roles = Roles::default();
        let mut mock_secret = None;
        let mut has_privileges = false;
        for (rid, row) in self.take(ROLES) {
            match stored::roles::decode(&row)? {
                StoredRole::Role(role) => {
                    rids.insert((ROLES, SHARED, row.oid), rid);
                    roles.put(Arc::from(role));
                }
                StoredRole::Secret(secret) => mock_secret = Some(secret),
                StoredRole::HasPrivileges => has_privileges = true,
            }
        }
        for (rid, row) in self.take(RIGHTS) {
            let database = row.key.database;
            match stored::privileges::decode(&row)? {
                StoredPrivileges::Object(object, _)
                    if object.class == PG_DATABASE
                        && databases.get(DatabaseOid::new(object.oid)).is_none() =>
                {
                    orphans.push((RIGHTS, rid));
                }
                StoredPrivileges::Object(object, privileges) if object.class == PG_DATABASE => {
                    rids.insert((RIGHTS, SHARED, row.oid), rid);
                    let privileges = CatalogChange::Privileges(object, Arc::new(privileges));
                    catalogs.values_mut().for_each(|c| privileges.apply(c));
                }
                found => {
                    rids.insert((RIGHTS, database, row.oid), rid);
                    let Some(catalog) = catalogs.get_mut(&database) else {
                        continue;
                    };
                    match found {
                        // They outlive their object in the log, nowhere else.
                        StoredPrivileges::Object(object, _) if is_gone(object, catalog) => {
                            orphans.push((RIGHTS, rid));
                        }
                        StoredPrivileges::Object(object, privileges) => {
                            CatalogChange::Privileges(object, Arc::new(privileges)).apply(catalog);
                        }
                        StoredPrivileges::Default(key, acl) => {
                            CatalogChange::DefaultPrivileges(key, Some((row.oid, acl)))
                                .apply(catalog);
                        }
                    }
                }
            }
        }
        for (rid, row) in self.take(STATISTICS) {
            rids.insert((STATISTICS, row.key.database, row.oid), rid);
            let Some(catalog) = catalogs.get_mut(&row.key.database) else {
                continue;
            };
            let (table, found) = stored::statistics::decode(&row)?;
            // They outlive their table in the log, nowhere else.
            if catalog.relations.contains_key(&table) {
                CatalogChange::Statistics(table, Arc::new(found)).apply(catalog);
            } else {
                orphans.push((STATISTICS, rid));
            }
        }
        let roles = Arc::new(roles);
        for catalog in catalogs.values_mut() {
            catalog.roles = Arc::clone(&roles);
        }
        Ok(LoadedCatalogs {
            mock_secret,
            has_privileges,
            catalogs,
            databases,
            rids,
            orphans,
        })
    }
}

/// `pg_rewrite`: rules of views.
const PG_REWRITE: RelationId = RelationId::new(2618);

/// Are these the privileges of what is there no more?
fn is_gone(object: CatalogObject, catalog: &Catalog) -> bool {
    let oid = object.oid;
    match object.class {
        PG_CLASS => catalog.name_of(RelationId::new(oid)).is_none(),
        PG_PROC => catalog.routines.get(FunctionId::new(oid)).is_none(),
        PG_TYPE => catalog.types.get(TypeId::new(oid)).is_none(),
        PG_EXTENSION => extension_name(catalog, oid).is_none(),
        PG_NAMESPACE => !catalog.schemas.contains_key(&SchemaId::new(oid)),
        _ => false,
    }
}

fn has_rule(catalog: &Catalog, oid: Oid) -> bool {
    let mut views = catalog.relations.values().filter_map(|r| r.view());
    views.any(|view| view.rule == oid)
}

fn has_policy(catalog: &Catalog, oid: Oid) -> bool {
    let mut policies = catalog
        .relations
        .values()
        .flat_map(|r| &r.security.policies);
    policies.any(|policy| policy.oid == oid)
}

fn constraints_of(catalog: &Catalog) -> HashSet<Oid> {
    let relations = catalog.relations.values();
    let constraints = relations.flat_map(|relation| &relation.constraints);
    let own = constraints.map(|constraint| constraint.oid);
    let types = catalog.types.all().into_iter();
    let domains = types.filter_map(|ty| ty.domain());
    let checks = domains.flat_map(|domain| &domain.checks);
    own.chain(checks.map(|check| check.oid)).collect()
}

fn read_comment(row: &ObjectRow) -> Option<((RelationId, Oid, i32), Arc<str>)> {
    let (object, sub) = row.key.name.split_once('/')?;
    let text = std::str::from_utf8(row.definition.get(1..)?).ok()?;
    let class = RelationId::new(row.key.namespace);
    Some((
        (class, object.parse().ok()?, sub.parse().ok()?),
        Arc::from(text),
    ))
}
