//! Statements of the catalog, as far as they are about large objects: these are rows, and no objects of the catalog's.

use super::super::Session;
use super::super::client::Client;
use super::no_object;
use logstead_sql_catalog::context::RoleContext;
use logstead_sql_catalog::large_objects::PG_LARGEOBJECT;
use logstead_sql_catalog::role::BOOTSTRAP;
use logstead_sql_ddl as ddl;
use logstead_sql_parse::ast::{RoleSpecKind, Stmt};
use logstead_sql_types::RoleId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Oid;

impl Session {
    /// Drops the objects that roles own, before DROP OWNED drops the rest.
    async fn drop_large_objects_of(
        &mut self,
        roles: &[RoleId],
        client: &mut dyn Client,
    ) -> Result<()> {
        let catalog = self.catalog()?;
        let known = catalog.privileges.objects.iter();
        let mut own: Vec<Oid> = known
            .filter(|(object, privileges)| {
                object.class == PG_LARGEOBJECT && roles.contains(&privileges.owner)
            })
            .map(|(object, _)| object.oid)
            .collect();
        own.sort_unstable();
        for object in own {
            self.lo_unlink(object, client).await?;
        }
        Ok(())
    }

    /// What a statement of the catalog needs of large objects. 42704 unless those that it names are there: they stay
    /// until the transaction ends. Those that DROP OWNED drops go first.
    pub(crate) async fn before_large_objects(
        &mut self,
        stmt: &Stmt,
        client: &mut dyn Client,
    ) -> Result<()> {
        for object in ddl::large_objects_named(stmt)? {
            if !self.hold_large_object(object, client).await? {
                return Err(no_object(object));
            }
        }
        let roles = ddl::drop_owned_roles(stmt);
        if roles.is_empty() {
            return Ok(());
        }
        let catalog = self.catalog()?;
        let known = self.context.roles(&catalog);
        let mut found = Vec::new();
        for role in roles {
            let role = match &role.kind {
                RoleSpecKind::Named(name) => known.by_name(name).map(|role| role.oid),
                RoleSpecKind::SessionUser => Some(self.context.session_role()),
                _ => Some(self.context.current_role()),
            };
            // Whoever may not drop all that these own is told so afterwards.
            let asker = self.context.current_role();
            found.extend(role.filter(|role| {
                let acl_checker = catalog.acl_checker(&known);
                *role != BOOTSTRAP && acl_checker.members.has_privileges_of(asker, *role)
            }));
        }
        self.drop_large_objects_of(&found, client).await
    }
}
