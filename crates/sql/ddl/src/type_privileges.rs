//! Who owns types and extensions, and who may use types.
//!
//! Owners and privileges of types are rows of privileges as those of other objects ([`super::privileges`]). The array
//! over a type has those of its elements, the type of a table's rows is its table's, and everybody uses both. An
//! extension belongs to who made it; what it brings is the bootstrap superuser's, as of PostgreSQL's trusted
//! extensions, which all those that there are here are.

use super::DdlContext;
use super::permissions::denied_schema;
use logstead_sql_catalog::classes::PG_EXTENSION;
use logstead_sql_catalog::privileges::{ObjectPrivileges, denied};
use logstead_sql_catalog::role::BOOTSTRAP;
use logstead_sql_catalog::role::acl::{AclKind, privilege as p};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Oid;
use logstead_sql_types::value::user::{self, UserType};
use logstead_sql_types::{RoleId, TypeId};
use std::collections::BTreeMap;

impl DdlContext<'_> {
    /// 42501 unless the type is the role's. `word` is what messages call it.
    pub(super) fn must_own_type(&mut self, ty: TypeId, word: &str) -> Result<()> {
        // Looks at the newest, which sets the scope that names are shown by.
        match self.with_acl_checker(|acl_checker, role| acl_checker.owns(role, ty))? {
            true => Ok(()),
            false => Err(denied(format!(
                "must be owner of {word} {}",
                self.format_type_bare(ty)?
            ))),
        }
    }

    /// The same, or its schema is the role's.
    pub(super) fn must_own_type_or_schema(&mut self, ty: &UserType) -> Result<()> {
        let schema = ty.schema;
        match self.with_acl_checker(|acl_checker, role| acl_checker.owns(role, schema))? {
            true => Ok(()),
            false => self.must_own_type(ty.oid, "type"),
        }
    }

    /// 42501 unless the role may use the types, none of which is an array.
    pub(super) fn must_use_types(&mut self, types: impl IntoIterator<Item = TypeId>) -> Result<()> {
        for ty in types {
            if user::relation_of_row_type(ty).is_some() {
                continue;
            }
            let object = (ty, AclKind::Type);
            if self.with_acl_checker(|acl_checker, role| {
                acl_checker.on_object(role, object, p::USAGE, 0).0
            })? == 0
            {
                let shown = self.format_type_bare(ty)?;
                return Err(denied(format!("permission denied for type {shown}")));
            }
        }
        Ok(())
    }

    /// 42501 unless the role may make extensions in this database.
    pub(super) fn must_create_extension(&mut self, name: &str) -> Result<()> {
        let database = self.catalog()?.database;
        match self.with_acl_checker(|acl_checker, role| {
            acl_checker.on_database(role, database, p::CREATE)
        })? {
            0 => Err(
                denied(format!("permission denied to create extension \"{name}\"")).hint(
                    "Must have CREATE privilege on current database to create this extension.",
                ),
            ),
            _ => Ok(()),
        }
    }

    /// 42501 unless the extension is the role's.
    pub(super) fn must_own_extension(&mut self, oid: Oid, name: &str) -> Result<()> {
        match self
            .with_acl_checker(|acl_checker, role| acl_checker.owns(role, (PG_EXTENSION, oid)))?
        {
            true => Ok(()),
            false => Err(denied(format!("must be owner of extension {name}"))),
        }
    }

    /// A new extension belongs to who makes it.
    pub(super) async fn own_extension(&mut self, oid: Oid) -> Result<()> {
        let owner = self.session.current_role();
        if owner == BOOTSTRAP {
            return Ok(());
        }
        let was = self.catalog()?.stored_privileges((PG_EXTENSION, oid));
        let privileges = ObjectPrivileges {
            owner,
            acl: None,
            columns: BTreeMap::new(),
        };
        self.store_privileges((PG_EXTENSION, oid), &was, privileges)
            .await
    }

    /// 42501 unless `owner` may be given the type by the role.
    pub(super) fn may_give_type(&mut self, ty: &UserType, owner: RoleId) -> Result<()> {
        if self.with_acl_checker(|acl_checker, role| acl_checker.members.is_superuser(role))? {
            return Ok(());
        }
        self.must_own_type(ty.oid, "type")?;
        super::owners::must_be_member(owner, self)?;
        match self.with_acl_checker(|acl_checker, _| acl_checker.may_create_in(owner, ty.schema))? {
            true => Ok(()),
            false => {
                let catalog = self.catalog()?;
                Err(denied_schema(ty.schema, &catalog))
            }
        }
    }
}
