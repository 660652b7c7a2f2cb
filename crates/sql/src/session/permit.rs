//! Who may do what.
//!
//! Owns: SET ROLE and SET SESSION AUTHORIZATION, and the question that is asked before anything runs: may the current role do this?
//!
//! Every object belongs to the bootstrap superuser, and privileges on objects are not granted: superusers may do everything, others what everybody may
//! (connect, look at the system catalogs, use functions), and what the predefined roles give to their members: pg_read_all_data,
//! pg_write_all_data, pg_checkpoint.
//!
//! Invariants:
//! - What is not known to be allowed is refused: a statement of a kind that is not named in [`Session::may_do`] needs a superuser.
//! - Roles are those of the present, whatever catalog a statement was planned with: who reads the past reads it as who it is now.
//! - A plan is good for one catalog, and so for one picture of all roles: to which role it was allowed is kept with it, and another has it asked again. So
//!   point statements pay for one comparison.

use super::Session;
use super::context::SessionContext;
use super::statement::CachedPlan;
use crate::catalog::{Catalog, Relation, RelationKind, calls};
use crate::error::{Result, SqlError};
use crate::func::Context;
use crate::parse::{Parsed, StatementKind, ViewCommand};
use crate::plan::{Command, Planned};
use crate::role::{CHECKPOINT, READ_ALL_DATA, READ_ALL_SETTINGS, Role, Roles, WRITE_ALL_DATA};
use crate::value::Oid;
use logstead_engine::Awaits;
use logstead_types::SqlState;
use sqlparser::ast;
use std::sync::Arc;

/// A privilege that a plan needs.
#[derive(Clone, Debug)]
pub(super) struct Need {
    /// Of the relation.
    name: String,
    kind: &'static str,
    write: bool,
}

impl Need {
    fn of(relation: &Relation, write: bool) -> Need {
        Need {
            name: relation.name.clone(),
            kind: kind(relation),
            write,
        }
    }

    fn denied(&self) -> SqlError {
        denied(format!("permission denied for {} {}", self.kind, self.name))
    }
}

/// As messages call it.
fn kind(relation: &Relation) -> &'static str {
    match relation.kind {
        RelationKind::Sequence(_) => "sequence",
        RelationKind::View(_) => "view",
        RelationKind::Materialized(..) => "materialized view",
        _ => "table",
    }
}

/// What a statement needs.
pub(super) fn needs(planned: &Planned) -> Vec<Need> {
    let mut needs = Vec::new();
    // What is only added tells nothing of what is there.
    let only_adds = planned.command == Command::Insert && planned.columns.is_empty();
    let lasting = |relation: &&Arc<Relation>| !relation.is_temporary();
    let written = planned.tables_written.iter().chain(&planned.tables_locked);
    for relation in written.filter(lasting) {
        needs.push(Need::of(relation, true));
        if !only_adds {
            needs.push(Need::of(relation, false));
        }
    }
    let read = planned.tables_read.iter().chain(&planned.others_read);
    needs.extend(read.filter(lasting).map(|r| Need::of(r, false)));
    needs
}

/// 42501.
fn denied(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

fn may_use(needs: &[Need], roles: &Roles, role: Oid) -> Result<()> {
    if roles.is_superuser(role) {
        return Ok(());
    }
    for need in needs {
        let through = match need.write {
            true => WRITE_ALL_DATA,
            false => READ_ALL_DATA,
        };
        if !roles.has_privileges_of(role, through) {
            return Err(need.denied());
        }
    }
    Ok(())
}

impl SessionContext {
    /// The roles by which a statement is judged that is planned with `catalog`: with it, unless it is of the past.
    pub(super) fn roles(&self, catalog: &Catalog) -> Arc<Roles> {
        match catalog.past {
            None => Arc::clone(&catalog.roles),
            Some(_) => self.instance.store.roles(),
        }
    }

    pub(super) fn role_name(&self, role: Oid) -> String {
        let roles = self.roles(&self.catalog.borrow());
        match roles.get(role) {
            Some(role) => role.name.clone(),
            None => format!("unknown (OID={role})"),
        }
    }

    /// 42501 unless the current role has what is needed.
    pub(super) fn may_use(&self, needs: &[Need], catalog: &Catalog) -> Result<()> {
        may_use(needs, &self.roles(catalog), self.current_role())
    }

    /// The same for a plan that may have been asked for before.
    pub(super) fn may_run(&self, plan: &CachedPlan) -> Result<()> {
        let role = self.current_role();
        // The roles of the past are none to go by, and those of the present change behind its plans.
        let lasts = plan.catalog.past.is_none();
        if lasts && plan.permitted.get() == role {
            return Ok(());
        }
        may_use(&plan.needs, &self.roles(&plan.catalog), role)?;
        if lasts {
            plan.permitted.set(role);
        }
        Ok(())
    }

    /// nextval and setval.
    pub(super) fn may_use_sequence(&self, catalog: &Catalog, sequence: Oid) -> Result<()> {
        match catalog.relations.get(&sequence) {
            Some(relation) => self.may_use(&[Need::of(relation, true)], catalog),
            // Whoever looks for it says what is wrong.
            None => Ok(()),
        }
    }

    pub(super) fn superuser_only(&self, what: &str) -> Result<()> {
        let roles = self.roles(&self.catalog.borrow());
        match roles.is_superuser(self.current_role()) {
            true => Ok(()),
            false => Err(denied(format!("must be superuser to {what}"))),
        }
    }

    /// Is this a setting whose value is for superusers, and for members of pg_read_all_settings?
    pub(super) fn is_hidden(&self, setting: &str) -> bool {
        const SECRET: [&str; 6] = [
            "cache_directory",
            "data_directory",
            "home",
            "price_list",
            "ssl_cert_file",
            "ssl_key_file",
        ];
        SECRET.iter().any(|name| name.eq_ignore_ascii_case(setting)) && {
            let roles = self.roles(&self.catalog.borrow());
            !roles.has_privileges_of(self.current_role(), READ_ALL_SETTINGS)
        }
    }

    /// SET ROLE (no name, or "none", ends it) and SET SESSION AUTHORIZATION (no name goes back to who has connected).
    pub(super) fn set_identity(
        &self,
        setting: &str,
        name: Option<&str>,
        local: bool,
        roles: &Roles,
    ) -> Result<()> {
        let find = |name: &str| -> Result<Arc<Role>> {
            roles.by_name(name).cloned().ok_or_else(|| {
                SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("role \"{name}\" does not exist"),
                )
            })
        };
        let authenticated = self.authenticated;
        if setting.eq_ignore_ascii_case("role") {
            let session = self.session_role();
            let role = match name {
                None | Some("none") => None,
                Some(name) => Some(find(name)?),
            };
            if let Some(role) = &role
                && !roles.is_member(session, role.oid)
            {
                let name = &role.name;
                return Err(denied(format!("permission denied to set role \"{name}\"")));
            }
            let acts_as = role.as_ref().map_or(session, |role| role.oid);
            let superuser = roles.is_superuser(acts_as);
            self.settings
                .borrow_mut()
                .set_identity(None, role.as_deref(), superuser, local);
        } else {
            let session = match name {
                None | Some("default") => roles.get(authenticated).cloned(),
                Some(name) => Some(find(name)?),
            };
            let session = session.ok_or_else(|| denied("the role of this session is gone"))?;
            // Who has connected decides, not who the session has become.
            if session.oid != authenticated && !roles.is_superuser(authenticated) {
                return Err(denied("permission denied to set session authorization"));
            }
            self.settings
                .borrow_mut()
                .set_identity(Some(&session), None, session.superuser, local);
        }
        self.refresh_style();
        Ok(())
    }
}

impl Session {
    /// SET ROLE and SET SESSION AUTHORIZATION as statements.
    pub(super) fn set_identity(
        &mut self,
        setting: &str,
        name: Option<&str>,
        local: bool,
    ) -> Result<()> {
        let store = Arc::clone(&self.worker.instance.store);
        let roles = match self.has_private_catalog() {
            true => Arc::clone(&self.catalog()?.roles),
            false => store.roles(),
        };
        let synchronous = self.context.synchronous.get();
        self.owed
            .merge(&Awaits::floor(store.newest_change()), synchronous);
        self.context.set_identity(setting, name, local, &roles)
    }

    /// 42501 unless the current role may run a statement that is no planned query.
    pub(super) fn may_do(&mut self, parsed: &Parsed) -> Result<()> {
        use StatementKind as K;
        if matches!(
            parsed.kind,
            // Its own affairs, and what is planned is asked for when it is run.
            K::Query
                | K::Transaction(_)
                | K::Setting
                | K::Prepared
                | K::Explain
                | K::Cursor
                | K::Declare(_)
                | K::Fetch(_)
                | K::Notify
                | K::SetConstraints(_)
                | K::Maintenance(_)
                | K::Unsupported(_)
                // It asks itself.
                | K::Role(_)
        ) {
            return Ok(());
        }
        let catalog = self.catalog()?;
        let roles = self.context.roles(&catalog);
        let role = self.context.current_role();
        if roles.is_superuser(role) {
            return Ok(());
        }
        let statement = &*parsed.statement;
        match (&parsed.kind, statement) {
            (K::Checkpoint, _) if roles.has_privileges_of(role, CHECKPOINT) => Ok(()),
            (K::Checkpoint, _) => Err(denied(
                "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT",
            )),
            (
                K::Copy,
                ast::Statement::Copy {
                    source: ast::CopySource::Table { table_name, .. },
                    to: false,
                    ..
                },
            ) => {
                let relation = self.find_relation(&catalog, table_name)?;
                may_use(&[Need::of(&relation, true)], &roles, role)
            }
            // It is run as a query.
            (K::Copy, ast::Statement::Copy { to: true, .. }) => Ok(()),
            (K::Lock, ast::Statement::Lock(lock)) => {
                for target in &lock.tables {
                    let relation = self.find_relation(&catalog, &target.name)?;
                    may_use(&[Need::of(&relation, true)], &roles, role)?;
                }
                Ok(())
            }
            _ if self.concerns_temporary(parsed, &catalog) => Ok(()),
            _ => Err(self.refusal(parsed, &catalog)),
        }
    }

    /// Why a role that is no superuser may not do this, as PostgreSQL says it.
    fn refusal(&self, parsed: &Parsed, catalog: &Catalog) -> SqlError {
        use ast::Statement as S;
        let schema = |name: &ast::ObjectName| {
            let (schema, _) = calls::name_parts(name).unwrap_or_default();
            let schema = schema.or_else(|| {
                let path = self.context.search_path();
                path.into_iter().next()
            });
            match schema {
                Some(schema) => denied(format!("permission denied for schema {schema}")),
                None => SqlError::new(
                    SqlState::INVALID_SCHEMA_NAME,
                    "no schema has been selected to create in",
                ),
            }
        };
        let owner = |name: &ast::ObjectName| match self.find_relation(catalog, name) {
            Ok(relation) => denied(format!(
                "must be owner of {} {}",
                kind(&relation),
                relation.name
            )),
            Err(error) => error,
        };
        if let StatementKind::View(command) = &parsed.kind {
            return match &**command {
                ViewCommand::Create(create) => schema(&create.name),
                ViewCommand::Alter(alter) => owner(&alter.alter.name),
                ViewCommand::Refresh { name, .. } => owner(name),
            };
        }
        match &*parsed.statement {
            S::CreateTable(table) => schema(&table.name),
            S::CreateSequence { name, .. } => schema(name),
            S::CreateIndex(index) => owner(&index.table_name),
            S::AlterTable(alter) => owner(&alter.name),
            S::Drop {
                object_type:
                    ast::ObjectType::Table
                    | ast::ObjectType::Sequence
                    | ast::ObjectType::View
                    | ast::ObjectType::MaterializedView,
                names,
                ..
            } if !names.is_empty() => owner(&names[0]),
            S::Drop {
                object_type: ast::ObjectType::Schema,
                names,
                ..
            } if !names.is_empty() => denied(format!("must be owner of schema {}", names[0])),
            S::Truncate(truncate) if !truncate.table_names.is_empty() => {
                match self.find_relation(catalog, &truncate.table_names[0].name) {
                    Ok(relation) => Need::of(&relation, true).denied(),
                    Err(error) => error,
                }
            }
            S::CreateSchema { .. } => denied(format!(
                "permission denied for database {}",
                catalog.database_name
            )),
            _ => denied("permission denied: only superusers may do this"),
        }
    }
}
