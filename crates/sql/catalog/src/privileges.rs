//! Who owns what, and who was given which privilege on it.
//!
//! Owns: [`PrivilegeCatalog`], what a catalog snapshot knows of owners, privileges and default privileges, and
//! [`AclChecker`], which answers from it what a role may do. Only what differs from how objects are made is kept: an
//! object that is not in the book belongs to the bootstrap superuser and has what its kind has by default. So databases
//! of builds that knew no owners read the same.
//!
//! Invariants:
//! - What is not known to be allowed is refused.
//! - A superuser may do everything, whatever is in the book.
//!
//! Does not: change anything (`ddl::grant` and `ddl::owners` do), or say what a statement needs (`bind::access`,
//! `ddl::permissions`).

use super::database::is_template;
use super::temporary::is_temporary_schema;
use super::{Catalog, Relation, RelationKind};
use crate::classes::{
    CatalogObject, INFORMATION_SCHEMA_NAMESPACE, PG_CATALOG_NAMESPACE, PG_CLASS, PG_DATABASE,
    PG_NAMESPACE, PG_PROC, PG_PUBLIC_NAMESPACE,
};
use crate::role::acl::{ACL_ID_PUBLIC, Acl, AclItem, AclKind, AclMode, Members, privilege as p};
use crate::role::{
    BOOTSTRAP, DATABASE_OWNER, READ_ALL_DATA, READ_ALL_STATS, Roles, WRITE_ALL_DATA,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::persistent::PersistentMap;
use logstead_sql_types::value::Oid;
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId, RoleId, SchemaId};
use logstead_types::SqlState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// System relations that only superusers read: they tell of passwords, or of the server's machine and configuration.
const SECRET: [&str; 10] = [
    "pg_authid",
    "pg_backend_memory_contexts",
    "pg_config",
    "pg_file_settings",
    "pg_hba_file_rules",
    "pg_ident_file_mappings",
    "pg_replication_origin_status",
    "pg_shadow",
    "pg_shmem_allocations",
    "pg_statistic",
];
/// The same that are data: members of `pg_read_all_data` read them, too.
const CLOSED: [&str; 4] = [
    "pg_largeobject",
    "pg_statistic_ext_data",
    "pg_subscription",
    "pg_user_mapping",
];
/// Of these, what members of `pg_read_all_stats` read.
const STATISTICS: [&str; 2] = ["pg_backend_memory_contexts", "pg_shmem_allocations"];
/// A column of `pg_subscription`, which holds a password. Everybody reads the others.
const CONNECTION: &str = "subconninfo";

/// Functions that only superusers call.
const CLOSED_FUNCTIONS: [&str; 3] = ["lo_export", "lo_import", "pg_current_logfile"];

/// Is it a system relation that not everybody reads?
pub fn is_closed(relation: &Relation) -> bool {
    let closed = |name: &str| SECRET.contains(&name) || CLOSED.contains(&name);
    matches!(relation.kind, RelationKind::Virtual(table) if closed(table.name))
}

/// Is it one that no role reads for being one that reads all data?
fn is_secret(relation: &Relation) -> bool {
    matches!(relation.kind, RelationKind::Virtual(table) if SECRET.contains(&table.name))
}

/// Is it a built-in function that only superusers call?
pub fn is_closed_function(name: &str) -> bool {
    CLOSED_FUNCTIONS.contains(&name)
}

/// `pg_default_acl`: the class of default privileges' records.
pub const PG_DEFAULT_ACL: RelationId = RelationId::new(826);

/// Owner and privileges of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectPrivileges {
    /// Whose it is.
    pub owner: RoleId,
    /// What was granted; none is what its kind has by default.
    pub acl: Option<Acl>,
    /// Of a relation: what was granted on its columns, by position.
    pub columns: BTreeMap<usize, Acl>,
}

impl ObjectPrivileges {
    /// Does it say no more than that nothing was said?
    pub fn is_default(&self) -> bool {
        self.owner == BOOTSTRAP && self.acl.is_none() && self.columns.is_empty()
    }

    /// Is the role named as the owner or in a list?
    pub fn names(&self, role: RoleId) -> bool {
        self.owner == role || self.lists().any(|acl| acl.names(role))
    }

    /// All its lists.
    pub fn lists(&self) -> impl Iterator<Item = &Acl> {
        self.acl.iter().chain(self.columns.values())
    }
}

/// Which default privileges: of whom, in which schema (none is all), for which kind of object.
pub type DefaultAclKey = (RoleId, Option<SchemaId>, AclKind);

/// Owners, privileges and default privileges of a database.
#[derive(Clone, Default)]
pub struct PrivilegeCatalog {
    /// By object.
    pub objects: PersistentMap<CatalogObject, Arc<ObjectPrivileges>>,
    /// The row's OID, and what objects made later have.
    pub defaults: BTreeMap<DefaultAclKey, (Oid, Acl)>,
}

impl Catalog {
    /// What is known of an object's privileges.
    pub fn privileges_of(
        &self,
        object: impl Into<CatalogObject>,
    ) -> Option<&Arc<ObjectPrivileges>> {
        self.privileges.objects.get(&object.into())
    }

    /// Who owns it.
    pub fn owner_of(&self, object: impl Into<CatalogObject>) -> RoleId {
        let object = object.into();
        match self.privileges_of(object) {
            Some(privileges) => privileges.owner,
            None if object == PG_PUBLIC_NAMESPACE.into() => DATABASE_OWNER,
            None => BOOTSTRAP,
        }
    }

    /// As whom something is done for a table, as what foreign keys do to its rows and what its indexes compute: as its
    /// owner. None for a temporary one, of which no owner is kept: as whoever the session acts as.
    pub fn table_acts_as(&self, table: RelationId) -> Option<RoleId> {
        let is_temporary = self
            .relations
            .get(&table)
            .is_some_and(|table| table.is_temporary());
        (!is_temporary).then(|| self.owner_of(table))
    }

    /// Who owns the database.
    pub(crate) fn database_owner(&self) -> RoleId {
        self.owner_of(self.database)
    }

    /// By whose privileges a view reads: its owner's; none if by those of who reads it.
    pub fn view_reader(&self, view: &Relation) -> Option<RoleId> {
        let options = self.notes.options.get(&view.oid);
        let invoker = options.is_some_and(|all| {
            all.iter().any(|option| {
                let (name, value) = option.split_once('=').unwrap_or((option, "true"));
                name == "security_invoker" && crate::options::boolean(value) == Some(true)
            })
        });
        // A temporary one is the session's, whoever that acts as.
        (!invoker && !view.is_temporary()).then(|| self.owner_of(view.oid))
    }

    /// What was granted on an object; none if nothing was, and it has what its kind has by default.
    pub fn acl_of(&self, object: impl Into<CatalogObject>) -> Option<Acl> {
        let object = object.into();
        if let Some(privileges) = self.privileges_of(object) {
            return privileges.acl.clone();
        }
        let everybody = |owner: RoleId, privileges: AclMode| AclItem {
            grantee: ACL_ID_PUBLIC,
            grantor: owner,
            privileges,
            grantable: 0,
        };
        // As initdb leaves them.
        match (object.class, object.oid) {
            (PG_NAMESPACE, schema) if is_usable_by_all(SchemaId::new(schema)) => {
                let owner = self.owner_of(object);
                let mut acl = Acl::default_for(AclKind::Schema, owner);
                acl.0.push(everybody(owner, p::USAGE));
                Some(acl)
            }
            (PG_DATABASE, database) if is_template(DatabaseOid::new(database)) => {
                let owner = self.owner_of(object);
                let mut acl = Acl(vec![everybody(owner, p::CONNECT)]);
                let usual = Acl::default_for(AclKind::Database, owner).0;
                acl.0.extend(
                    usual
                        .into_iter()
                        .filter(|item| item.grantee != ACL_ID_PUBLIC),
                );
                Some(acl)
            }
            (PG_CLASS, relation) => {
                let relation = self.relations.get(&RelationId::new(relation))?;
                let RelationKind::Virtual(table) = relation.kind else {
                    return None;
                };
                let owner = Acl::default_for(AclKind::Table, BOOTSTRAP);
                if !is_closed(relation) {
                    let mut acl = Acl(vec![everybody(BOOTSTRAP, p::SELECT)]);
                    acl.0.extend(owner.0);
                    return Some(acl);
                }
                let mut acl = owner;
                if STATISTICS.contains(&table.name) {
                    acl.0.push(AclItem {
                        grantee: READ_ALL_STATS,
                        ..everybody(BOOTSTRAP, p::SELECT)
                    });
                }
                Some(acl)
            }
            _ => None,
        }
    }

    /// The privileges of an object as they would be stored.
    pub fn stored_privileges(&self, object: impl Into<CatalogObject>) -> ObjectPrivileges {
        let object = object.into();
        match self.privileges_of(object) {
            Some(privileges) => ObjectPrivileges::clone(privileges),
            None => ObjectPrivileges {
                owner: self.owner_of(object),
                acl: self.acl_of(object),
                columns: BTreeMap::new(),
            },
        }
    }

    /// Checks access by the privileges of this catalog.
    pub fn acl_checker<'a>(&'a self, roles: &'a Roles) -> AclChecker<'a> {
        AclChecker {
            catalog: self,
            members: Members {
                roles,
                database_owner: self.database_owner(),
            },
        }
    }
}

/// Has initdb granted USAGE on the schema to everybody?
fn is_usable_by_all(schema: SchemaId) -> bool {
    matches!(
        schema,
        PG_PUBLIC_NAMESPACE | PG_CATALOG_NAMESPACE | INFORMATION_SCHEMA_NAMESPACE
    )
}

/// The kind of a relation's list.
pub fn kind_of(relation: &Relation) -> AclKind {
    match relation.kind {
        RelationKind::Sequence(_) => AclKind::Sequence,
        _ => AclKind::Table,
    }
}

/// As messages call a relation.
pub fn word_of(relation: &Relation) -> &'static str {
    match relation.kind {
        RelationKind::Sequence(_) => "sequence",
        RelationKind::View(_) => "view",
        RelationKind::Materialized(..) => "materialized view",
        RelationKind::Virtual(table) if table.is_view() => "view",
        RelationKind::Table | RelationKind::Virtual(_) => "table",
    }
}

/// 42501.
#[track_caller]
pub fn denied(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

/// 42501 for a relation.
#[track_caller]
pub fn denied_relation(relation: &Relation) -> SqlError {
    denied(format!(
        "permission denied for {} {}",
        word_of(relation),
        relation.name
    ))
}

/// What a statement does with one relation.
#[derive(Clone, Debug)]
pub struct PermissionInfo {
    /// The relation.
    pub relation: Arc<Relation>,
    /// Whose privileges count; none is the role that runs the statement.
    pub as_role: Option<RoleId>,
    /// Privileges, all of which it takes.
    pub wanted: AclMode,
    /// Columns read, added and changed, by position: privileges on all of these do instead of the same on the whole.
    pub selected: Vec<usize>,
    /// See there.
    pub inserted: Vec<usize>,
    /// See there.
    pub updated: Vec<usize>,
}

/// What errors may tell a role of the rows of a table.
pub enum DetailVisibility {
    /// All that they hold.
    All,
    /// What these columns hold, by position.
    Columns(Vec<usize>),
    /// Nothing: policies decide which rows it sees.
    Nothing,
}

impl DetailVisibility {
    /// May what a column holds be told?
    pub fn has(&self, position: usize) -> bool {
        match self {
            DetailVisibility::All => true,
            DetailVisibility::Columns(columns) => columns.contains(&position),
            DetailVisibility::Nothing => false,
        }
    }
}

/// Answers what roles may do.
#[derive(Clone, Copy)]
pub struct AclChecker<'a> {
    catalog: &'a Catalog,
    /// Who has whose privileges.
    pub members: Members<'a>,
}

impl AclChecker<'_> {
    /// Is it temporary? Then nobody but the session sees it, which may do everything with it.
    fn is_sessions(&self, object: CatalogObject) -> bool {
        match object.class {
            PG_CLASS => {
                let relation = self.catalog.relations.get(&RelationId::new(object.oid));
                relation.is_some_and(|relation| relation.is_temporary())
            }
            PG_PROC => {
                let routine = self.catalog.routines.get(FunctionId::new(object.oid));
                routine.is_some_and(|routine| routine.is_temporary())
            }
            PG_NAMESPACE => {
                let schema = self.catalog.schemas.get(&SchemaId::new(object.oid));
                schema.is_some_and(|schema| is_temporary_schema(&schema.name))
            }
            _ => false,
        }
    }

    /// Is what the object does, when it is run, the role's own doing or a superuser's?
    pub fn owns_as(&self, role: RoleId, object: impl Into<CatalogObject>) -> bool {
        let owner = self.catalog.owner_of(object);
        owner == role || self.catalog.roles.is_superuser(owner)
    }

    /// Does the role own the object, or have the privileges of who does?
    pub fn owns(&self, role: RoleId, object: impl Into<CatalogObject>) -> bool {
        let object = object.into();
        let owner = self.catalog.owner_of(object);
        self.is_sessions(object) || self.members.has_privileges_of(role, owner)
    }

    /// Do the policies of a table hold for the role? If so, whether it is the owner's, who is subject to them by FORCE
    /// alone.
    pub fn is_secured_for(&self, role: RoleId, relation: &Relation) -> Option<bool> {
        let security = &relation.security;
        if !security.enabled || self.members.bypasses_policies(role) {
            return None;
        }
        let owner = self.owns(role, relation.oid);
        (!owner || security.forced).then_some(owner)
    }

    /// What errors may tell a role of the rows of a table.
    pub fn detail_visibility(&self, role: RoleId, relation: &Relation) -> DetailVisibility {
        if self.is_secured_for(role, relation).is_some() {
            return DetailVisibility::Nothing;
        }
        if self.on_relation(role, relation, p::SELECT, 0).0 != 0 {
            return DetailVisibility::All;
        }
        let reads = |at: &usize| self.on_column(role, relation, *at, p::SELECT, 0).0 != 0;
        DetailVisibility::Columns((0..relation.columns.len()).filter(reads).collect())
    }

    /// 42501 unless the role owns a relation.
    pub fn must_own(&self, role: RoleId, relation: &Relation) -> Result<()> {
        match self.owns(role, relation.oid) {
            true => Ok(()),
            false => Err(denied(format!(
                "must be owner of {} {}",
                word_of(relation),
                relation.name
            ))),
        }
    }

    /// Which privileges, and grant options, a role has on an object that is no relation and no schema.
    pub fn on_object(
        &self,
        role: RoleId,
        (object, kind): (impl Into<CatalogObject>, AclKind),
        wanted: AclMode,
        grantable: AclMode,
    ) -> (AclMode, AclMode) {
        let object = object.into();
        if self.members.is_superuser(role) || self.is_sessions(object) {
            return (wanted, grantable);
        }
        let owner = self.catalog.owner_of(object);
        let acl = self.catalog.acl_of(object);
        let acl = acl.unwrap_or_else(|| Acl::default_for(kind, owner));
        acl.mask(role, owner, wanted, grantable, self.members)
    }

    /// The same of a relation.
    pub fn on_relation(
        &self,
        role: RoleId,
        relation: &Relation,
        wanted: AclMode,
        grantable: AclMode,
    ) -> (AclMode, AclMode) {
        let object = (relation.oid, kind_of(relation));
        let mut found = self.on_object(role, object, wanted, grantable);
        let secret = is_secret(relation);
        let data = [
            (READ_ALL_DATA, p::SELECT),
            (WRITE_ALL_DATA, p::INSERT | p::UPDATE | p::DELETE),
        ];
        for (through, privileges) in data {
            let more = wanted & privileges & !found.0;
            // Verifiers of passwords are nobody's data.
            if more != 0 && !secret && self.members.has_privileges_of(role, through) {
                found.0 |= more;
            }
        }
        found
    }

    /// The same of one column, by what was granted on it alone.
    pub fn on_column(
        &self,
        role: RoleId,
        relation: &Relation,
        position: usize,
        wanted: AclMode,
        grantable: AclMode,
    ) -> (AclMode, AclMode) {
        if self.members.is_superuser(role) {
            return (wanted, grantable);
        }
        if let RelationKind::Virtual(table) = relation.kind
            && table.name == "pg_subscription"
        {
            let open = relation.columns.get(position);
            return match open.is_some_and(|column| column.name != CONNECTION) {
                true => (wanted & p::SELECT, 0),
                false => (0, 0),
            };
        }
        let privileges = self.catalog.privileges_of(relation.oid);
        let acl = privileges.and_then(|privileges| privileges.columns.get(&position));
        let owner = self.catalog.owner_of(relation.oid);
        match acl {
            Some(acl) => acl.mask(role, owner, wanted, grantable, self.members),
            None => (0, 0),
        }
    }

    /// The same of a schema.
    pub fn on_schema(
        &self,
        role: RoleId,
        schema: SchemaId,
        wanted: AclMode,
        grantable: AclMode,
    ) -> (AclMode, AclMode) {
        let object = (schema, AclKind::Schema);
        let mut found = self.on_object(role, object, wanted, grantable);
        if wanted & p::USAGE & !found.0 != 0
            && [READ_ALL_DATA, WRITE_ALL_DATA]
                .iter()
                .any(|data| self.members.has_privileges_of(role, *data))
        {
            found.0 |= p::USAGE;
        }
        found
    }

    /// May it look up names in the schema?
    pub fn may_use_schema(&self, role: RoleId, schema: SchemaId) -> bool {
        self.on_schema(role, schema, p::USAGE, 0).0 != 0
    }

    /// May it make objects in the schema?
    pub fn may_create_in(&self, role: RoleId, schema: SchemaId) -> bool {
        self.on_schema(role, schema, p::CREATE, 0).0 != 0
    }

    /// Which privileges it has on this database.
    pub fn on_database(&self, role: RoleId, database: DatabaseOid, wanted: AclMode) -> AclMode {
        let object = (database, AclKind::Database);
        self.on_object(role, object, wanted, 0).0
    }

    /// On all of the columns, or with none named on any.
    fn on_columns(
        &self,
        role: RoleId,
        relation: &Relation,
        columns: &[usize],
        wanted: AclMode,
    ) -> bool {
        let has = |position: usize| self.on_column(role, relation, position, wanted, 0).0 == wanted;
        if columns.is_empty() {
            return (0..relation.columns.len())
                .filter(|at| relation.columns.get(*at).is_some_and(|c| !c.dropped))
                .any(has);
        }
        columns.iter().copied().all(has)
    }

    /// Has the role a privilege on a whole relation, or on each of the columns?
    pub fn has(
        &self,
        role: RoleId,
        relation: &Relation,
        wanted: AclMode,
        columns: &[usize],
    ) -> bool {
        self.on_relation(role, relation, wanted, 0).0 == wanted
            || self.on_columns(role, relation, columns, wanted)
    }

    /// May a foreign key of the role's reference the columns?
    pub fn may_reference(&self, role: RoleId, parent: &Relation, columns: &[usize]) -> bool {
        self.on_relation(role, parent, p::REFERENCES, 0).0 != 0
            || (!columns.is_empty() && self.on_columns(role, parent, columns, p::REFERENCES))
    }

    /// May `role` do what a statement does?
    pub fn allows(&self, role: RoleId, access: &PermissionInfo) -> bool {
        let role = access.as_role.unwrap_or(role);
        let relation = &*access.relation;
        let (has, _) = self.on_relation(role, relation, access.wanted, 0);
        let missing = access.wanted & !has;
        if missing == 0 {
            return true;
        }
        if missing & !(p::SELECT | p::INSERT | p::UPDATE) != 0 {
            return false;
        }
        [
            (p::SELECT, &access.selected),
            (p::INSERT, &access.inserted),
            (p::UPDATE, &access.updated),
        ]
        .into_iter()
        .filter(|(wanted, _)| missing & wanted != 0)
        .all(|(wanted, columns)| self.on_columns(role, relation, columns, wanted))
    }
}

/// What row security says of reading the past of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AsOfRowSecurity {
    /// The table has none, and had none then.
    None,
    /// The role is exempt from it.
    Exempt,
    /// The role is subject to policies that nobody can apply to the past.
    Subject,
}

/// What row security then, as `relation` had it, and of the present say of a role that reads the table's past.
pub fn as_of_row_security(
    relation: &Relation,
    role: RoleId,
    now: AclChecker<'_>,
) -> AsOfRowSecurity {
    let known = now.catalog.relations.get(&relation.oid);
    if !relation.security.enabled && !known.is_some_and(|known| known.security.enabled) {
        return AsOfRowSecurity::None;
    }
    let mut asked = Relation::clone(known.map_or(relation, |known| known));
    asked.security.enabled = true;
    asked.security.forced |= relation.security.forced;
    match now.is_secured_for(role, &asked) {
        None => AsOfRowSecurity::Exempt,
        Some(_) => AsOfRowSecurity::Subject,
    }
}

/// 0A000 for a role that policies keep from a table's past.
pub fn refuse_as_of(relation: &Relation) -> SqlError {
    SqlError::unsupported(format!(
        "reading the past of table \"{}\", which has row-level security,",
        relation.name
    ))
}

/// Which catalog's privileges count for what is planned with `planned`: those of the present, whatever is read. What is
/// there no more is its owner's then.
pub fn allow_as_of(
    access: &PermissionInfo,
    role: RoleId,
    then: AclChecker<'_>,
    now: AclChecker<'_>,
) -> bool {
    let as_role = access.as_role.unwrap_or(role);
    match now.catalog.relations.get(&access.relation.oid) {
        Some(relation) => {
            let access = PermissionInfo {
                relation: Arc::clone(relation),
                ..access.clone()
            };
            now.allows(role, &access)
        }
        None => then.owns(as_role, access.relation.oid),
    }
}
