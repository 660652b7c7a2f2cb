//! Writing owners and privileges.
//!
//! Every object's privileges are a row of their own, beside the object's: a GRANT takes no lock on what it is about.
//! Two transactions that change the privileges of one object meet at that row; the second fails, as in PostgreSQL,
//! instead of undoing the first.
//!
//! Invariant: no role that the privileges name is dropped meanwhile. Whoever writes privileges holds the table of
//! privileges for writing; DROP ROLE takes it alone, and so sees whatever names the role.

use super::DdlContext;
use logstead_engine::TableLock;
use logstead_sql_catalog::Catalog;
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::classes::{CatalogObject, PG_CLASS, PG_DATABASE, PG_PROC};
use logstead_sql_catalog::privileges::{AclChecker, DefaultAclKey, ObjectPrivileges};
use logstead_sql_catalog::role::BOOTSTRAP;
use logstead_sql_catalog::role::acl::{ACL_ID_PUBLIC, Acl, AclKind};
use logstead_sql_catalog::stored;
use logstead_sql_catalog::stored::SHARED;
use logstead_sql_catalog::stored::{ObjectKey, ObjectRow, RIGHTS, ROLES};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId, RoleId, SchemaId};
use logstead_types::SqlState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everybody sees the privileges of databases.
fn database_of(class: RelationId, catalog: &Catalog) -> DatabaseOid {
    match class {
        PG_DATABASE => SHARED,
        _ => catalog.database,
    }
}

impl DdlContext<'_> {
    /// Asks `question` of the checker of access, by the catalog and the roles as the transaction sees them.
    pub(super) fn with_acl_checker<T>(
        &mut self,
        question: impl FnOnce(AclChecker<'_>, RoleId) -> T,
    ) -> Result<T> {
        let role = self.session.current_role();
        let catalog = self.catalog()?;
        Ok(question(catalog.acl_checker(&catalog.roles), role))
    }

    /// May write privileges that name the roles: they are there, and stay.
    pub(super) async fn lock_named_roles(&mut self, roles: &[RoleId]) -> Result<()> {
        self.lock_storage(RIGHTS, TableLock::RowExclusive).await?;
        let catalog = self.catalog()?;
        let gone = |role: &&RoleId| **role != ACL_ID_PUBLIC && catalog.roles.get(**role).is_none();
        match roles.iter().find(gone) {
            None => Ok(()),
            Some(role) => Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("role {role} was concurrently dropped"),
            )),
        }
    }

    /// Waits for whoever drops roles. Asked before privileges are read that are to be written: during the wait others
    /// may have changed them.
    pub(super) async fn lock_privileges(&mut self) -> Result<()> {
        self.lock_storage(RIGHTS, TableLock::RowExclusive).await?;
        self.mark_rights().await
    }

    /// Has builds that know no privileges refuse the database.
    async fn mark_rights(&mut self) -> Result<()> {
        if self.store.has_privileges() {
            return Ok(());
        }
        let row = stored::roles::encode_has_rights();
        if !self.insert_row(ROLES, &row).await? {
            self.store.set_has_privileges();
        }
        Ok(())
    }

    /// Replaces the row of a name: it must be as `old` says.
    async fn put_rights_row(
        &mut self,
        key: &ObjectKey,
        old: Option<Vec<u8>>,
        new: impl FnOnce(Oid) -> Option<ObjectRow>,
    ) -> Result<Oid> {
        let concurrent = || SqlError::internal("tuple concurrently updated");
        let database = key.database;
        let found = self.named_row(RIGHTS, key).await?;
        let Some((rid, found)) = found else {
            if old.is_some() {
                return Err(concurrent());
            }
            let oid = self.new_oid()?;
            if let Some(row) = new(oid)
                && !self.insert_row(RIGHTS, &row).await?
            {
                return Err(concurrent());
            }
            return Ok(oid);
        };
        if old.as_ref() != Some(&found.definition) {
            return Err(concurrent());
        }
        self.store.remember(RIGHTS, database, found.oid, rid);
        let row = new(found.oid);
        let expected = Some(found.definition.as_slice());
        self.change_row_from(RIGHTS, database, found.oid, row.as_ref(), expected)
            .await?;
        Ok(found.oid)
    }

    /// Stores an object's privileges, made from `was`: it fails if they have changed since.
    pub(super) async fn store_privileges(
        &mut self,
        object: impl Into<CatalogObject>,
        was: &ObjectPrivileges,
        privileges: ObjectPrivileges,
    ) -> Result<()> {
        let object = object.into();
        let catalog = self.catalog()?;
        let temporary = match object.class {
            PG_CLASS => { catalog.relations.get(&RelationId::new(object.oid)) }
                .is_some_and(|r| r.is_temporary()),
            PG_PROC => { catalog.routines.get(FunctionId::new(object.oid)) }
                .is_some_and(|r| r.is_temporary()),
            _ => false,
        };
        if temporary {
            return Err(SqlError::unsupported(
                "owners and privileges of temporary objects",
            ));
        }
        let mut named = vec![privileges.owner];
        for item in privileges.lists().flat_map(|acl| &acl.0) {
            named.extend([item.grantee, item.grantor]);
        }
        self.lock_named_roles(&named).await?;
        self.mark_rights().await?;
        let catalog = self.catalog()?;
        if catalog.stored_privileges(object) != *was {
            return Err(SqlError::internal("tuple concurrently updated"));
        }
        let database = database_of(object.class, &catalog);
        let row = |oid, privileges: &ObjectPrivileges| {
            stored::privileges::encode(database, object, oid, privileges)
        };
        let old = catalog.privileges_of(object);
        let old = old.map(|privileges| row(0, privileges).definition);
        let key = row(0, &privileges).key;
        self.put_rights_row(&key, old, |oid| Some(row(oid, &privileges)))
            .await?;
        self.state
            .push(CatalogChange::Privileges(object, Arc::new(privileges)));
        Ok(())
    }

    /// Takes the row of an object's privileges away, with the object.
    pub(super) async fn delete_privileges(
        &mut self,
        object: impl Into<CatalogObject>,
    ) -> Result<()> {
        let object = object.into();
        let catalog = self.catalog()?;
        let Some(privileges) = catalog.privileges_of(object) else {
            return Ok(());
        };
        let database = database_of(object.class, &catalog);
        let key = stored::privileges::encode(database, object, 0, privileges).key;
        // Whatever it says now.
        if let Some((rid, row)) = self.named_row(RIGHTS, &key).await? {
            self.store.remember(RIGHTS, database, row.oid, rid);
            self.change_row(RIGHTS, database, row.oid, None).await?;
        }
        Ok(())
    }

    /// Stores default privileges, or that there are none but the usual.
    pub(super) async fn store_default_privileges(
        &mut self,
        key: DefaultAclKey,
        acl: Option<Acl>,
    ) -> Result<()> {
        let mut named = vec![key.0];
        for item in acl.iter().flat_map(|acl| &acl.0) {
            named.extend([item.grantee, item.grantor]);
        }
        self.lock_named_roles(&named).await?;
        self.mark_rights().await?;
        let catalog = self.catalog()?;
        let row =
            |oid, acl: &Acl| stored::privileges::encode_default(catalog.database, key, oid, acl);
        let old = catalog.privileges.defaults.get(&key);
        let old = old.map(|(_, acl)| row(0, acl).definition);
        if old.is_none() && acl.is_none() {
            return Ok(());
        }
        let name = row(0, &Acl::default()).key;
        let new = |oid| acl.as_ref().map(|acl| row(oid, acl));
        let oid = self.put_rights_row(&name, old, new).await?;
        let acl = acl.map(|acl| (oid, acl));
        self.state.push(CatalogChange::DefaultPrivileges(key, acl));
        Ok(())
    }

    /// What a new object has, by the default privileges of its owner.
    fn new_acl(
        &mut self,
        owner: RoleId,
        schema: Option<SchemaId>,
        kind: AclKind,
    ) -> Result<Option<Acl>> {
        let catalog = self.catalog()?;
        let defaults = &catalog.privileges.defaults;
        if defaults.is_empty() {
            return Ok(None);
        }
        let of = |schema| defaults.get(&(owner, schema, kind)).map(|(_, acl)| acl);
        let (everywhere, here) = (of(None), schema.and_then(|schema| of(Some(schema))));
        if everywhere.is_none() && here.is_none() {
            return Ok(None);
        }
        let usual = Acl::default_for(kind, owner);
        let mut acl = everywhere.unwrap_or(&usual).clone();
        let acl_checker = catalog.acl_checker(&catalog.roles);
        for item in here.iter().flat_map(|acl| &acl.0) {
            let add = logstead_sql_catalog::role::acl::AclModification::Add;
            acl.change(*item, add, owner, false, acl_checker.members)?;
        }
        // As PostgreSQL has it, none left is as if nothing was said.
        let acl = Acl(acl.sorted());
        Ok((!acl.0.is_empty() && acl.0 != usual.sorted()).then_some(acl))
    }

    /// A new object belongs to who makes it, and has what the default privileges say.
    pub(super) async fn own_new(
        &mut self,
        object: impl Into<CatalogObject>,
        schema: SchemaId,
        kind: AclKind,
    ) -> Result<()> {
        let owner = self.session.current_role();
        self.own_new_as(owner, object, Some(schema), kind).await
    }

    /// The same for one that is made for another, and may be in no schema.
    pub(super) async fn own_new_as(
        &mut self,
        owner: RoleId,
        object: impl Into<CatalogObject>,
        schema: Option<SchemaId>,
        kind: AclKind,
    ) -> Result<()> {
        let object = object.into();
        let was = self.catalog()?.stored_privileges(object);
        let privileges = ObjectPrivileges {
            owner,
            acl: self.new_acl(owner, schema, kind)?,
            columns: BTreeMap::new(),
        };
        match privileges.owner == BOOTSTRAP && privileges.is_default() {
            true => Ok(()),
            false => self.store_privileges(object, &was, privileges).await,
        }
    }
}
