//! Statements about owners and privileges, as far as they are about large objects: these are rows, and no objects of the catalog's.

use super::super::Session;
use super::super::client::Client;
use super::no_object;
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::large_objects::PG_LARGEOBJECT;
use logstead_sql_catalog::role::BOOTSTRAP;
use logstead_sql_parse::{GrantOn, RightsCommand, RoleName};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Oid;

impl Session {
    /// Drops the objects that roles own, before DROP OWNED drops the rest.
    async fn drop_large_objects_of(
        &mut self,
        roles: &[Oid],
        client: &mut dyn Client,
    ) -> Result<()> {
        let catalog = self.catalog()?;
        let known = catalog.rights.objects.iter();
        let mut own: Vec<Oid> = known
            .filter(|((class, _), rights)| {
                *class == PG_LARGEOBJECT && roles.contains(&rights.owner)
            })
            .map(|((_, object), _)| *object)
            .collect();
        own.sort_unstable();
        for object in own {
            self.lo_unlink(object, client).await?;
        }
        Ok(())
    }

    /// 42704 unless these objects are there. They stay until the transaction ends.
    pub(crate) async fn look_for_large_objects(
        &mut self,
        objects: &[Oid],
        client: &mut dyn Client,
    ) -> Result<()> {
        for object in objects {
            if !self.hold_large_object(*object, client).await? {
                return Err(no_object(*object));
            }
        }
        Ok(())
    }

    /// What a statement about owners and privileges needs of large objects, which are no objects of the catalog's.
    pub(crate) async fn before_rights(
        &mut self,
        command: &RightsCommand,
        client: &mut dyn Client,
    ) -> Result<()> {
        match command {
            RightsCommand::Grant(grant) => match &grant.on {
                GrantOn::LargeObjects(objects) => {
                    self.look_for_large_objects(objects, client).await
                }
                _ => Ok(()),
            },
            RightsCommand::DropOwned { roles, .. } => {
                let catalog = self.catalog()?;
                let known = self.context.roles(&catalog);
                let mut found = Vec::new();
                for role in roles {
                    let role = match role {
                        RoleName::Name(name) => known.by_name(name).map(|role| role.oid),
                        RoleName::Session => Some(self.context.session_role()),
                        _ => Some(self.context.current_role()),
                    };
                    // Whoever may not drop all that these own is told so afterwards.
                    let asker = self.context.current_role();
                    found.extend(role.filter(|role| {
                        let judge = catalog.judge(&known);
                        *role != BOOTSTRAP && judge.members.has_privileges_of(asker, *role)
                    }));
                }
                self.drop_large_objects_of(&found, client).await
            }
            _ => Ok(()),
        }
    }
}
