//! Who may do what.
//!
//! Owns: SET ROLE and SET SESSION AUTHORIZATION, and the question that is asked before anything runs: may the current
//! role do this?
//!
//! What objects have is in the catalog (`catalog::privileges`); what a query does with them its plan tells
//! (`bind::access`); what DDL takes is asked where it runs (`ddl::permissions`). Here they are brought together with
//! the role of the session.
//!
//! Invariants:
//! - A utility statement that the catalog runs is asked about there (`ddl::permissions`, which refuses what it does not
//!   name). One that the session runs itself everybody may run, unless [`Session::may_do`] names it.
//! - Roles are those of the present, whatever catalog a statement was planned with: who reads the past reads it as who
//!   it is now.
//! - A plan is good for one catalog, and so for one picture of all roles: to which role it was allowed is kept with it,
//!   and another has it asked again. So point statements pay for one comparison.

use super::Session;
use super::cached_plan::{CachedPlan, Executable, PermittedPlan};
use super::context::SessionContext;
use crate::open_transaction::BlockState;
use logstead_engine::CommitWait;
use logstead_sql_catalog::context::RoleContext;
use logstead_sql_catalog::context::namespace::{LookupScope, NamespaceContext};
use logstead_sql_catalog::privileges::{self, PermissionInfo, denied, denied_relation};
use logstead_sql_catalog::role::acl::{AclMode, privilege};
use logstead_sql_catalog::role::{
    CHECKPOINT, EXECUTE_SERVER_PROGRAM, READ_ALL_SETTINGS, READ_SERVER_FILES, Role, Roles,
    WRITE_SERVER_FILES,
};
use logstead_sql_catalog::routine::Language;
use logstead_sql_catalog::{Catalog, Relation, RelationKind};
use logstead_sql_ddl::permissions::{
    RoleChecker, refuse_relations, refuse_routines, refuse_schemas,
};
use logstead_sql_ddl::pg_catalog::calls::{self, QualifiedName};
use logstead_sql_parse::Parsed;
use logstead_sql_parse::ast::{
    CopySource, CopyStmt, CopyTarget, Expr, LockMode, Name, RangeVar, Stmt,
};
use logstead_sql_plan::permissions::{FunctionUse, SchemaLookup};
use logstead_sql_plan::{PermissionChecker, Permissions};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::{RelationId, RoleId, SchemaId};
use logstead_types::SqlState;
use std::cell::Cell;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The checker of a session's current role, which runs what was bound with a catalog, of the present or of the past.
pub(super) struct SessionChecker<'a> {
    context: &'a SessionContext,
    catalog: &'a Catalog,
}

impl PermissionChecker for SessionChecker<'_> {
    fn check(&mut self, permissions: &Permissions) -> Result<()> {
        match permissions.is_empty() {
            true => Ok(()),
            false => self.context.must_have(permissions, self.catalog),
        }
    }
}

/// The same of a plan that is kept: the role that was last found to have what the plan takes is not asked again.
struct PlanChecker<'a> {
    session: SessionChecker<'a>,
    permitted: &'a Cell<Option<RoleId>>,
}

impl PermissionChecker for PlanChecker<'_> {
    fn check(&mut self, permissions: &Permissions) -> Result<()> {
        let role = self.session.context.current_role();
        // The roles of the past are none to go by, and those of the present change behind its plans.
        let lasts = self.session.catalog.past.is_none();
        if lasts && self.permitted.get() == Some(role) {
            return Ok(());
        }
        self.session.check(permissions)?;
        if lasts {
            self.permitted.set(Some(role));
        }
        Ok(())
    }
}

impl NamespaceContext for SessionContext {
    fn look_into(
        &self,
        catalog: &Catalog,
        schema: &str,
        role: Option<RoleId>,
    ) -> Result<Option<SchemaId>> {
        let Some(found) = catalog.schema(schema).map(|found| found.oid) else {
            return Ok(None);
        };
        let (roles, role) = (
            self.roles(catalog),
            role.unwrap_or_else(|| self.current_role()),
        );
        if roles.is_superuser(role) {
            return Ok(Some(found));
        }
        let now = match catalog.past {
            None => None,
            // What counts is what is granted now. Who may look into a schema that is gone is known of its tables.
            Some(_) => self.instance.store.current_by_oid(catalog.database),
        };
        let judging = now.as_deref().unwrap_or(catalog);
        if !judging.schemas.contains_key(&found) {
            return Ok(Some(found));
        }
        refuse_schemas(
            &[SchemaLookup::explicit(found)],
            judging,
            judging.acl_checker(&roles),
            role,
        )?;
        Ok(Some(found))
    }

    fn lookup_scope(&self) -> Option<&RefCell<LookupScope>> {
        Some(&self.lookup_scope)
    }
}

impl SessionContext {
    /// The roles by which a statement is checked that is planned with `catalog`: with it, unless it is of the past.
    pub(super) fn roles(&self, catalog: &Catalog) -> Arc<Roles> {
        match catalog.past {
            None => Arc::clone(&catalog.roles),
            Some(_) => self.instance.store.roles(),
        }
    }

    /// 0A000 if a plan shows what is in the body of somebody else's function with SECURITY DEFINER.
    pub(super) fn may_explain(&self, functions: &[FunctionUse], catalog: &Catalog) -> Result<()> {
        let (roles, role) = (self.roles(catalog), self.current_role());
        for used in functions {
            let routine = catalog.routines.get(used.function);
            let Some(routine) = routine.filter(|r| r.definer) else {
                continue;
            };
            let owner = catalog.owner_of(routine.oid);
            if routine.language == Language::Sql && !roles.is_member(role, owner) {
                return Err(SqlError::unsupported(format!(
                    "EXPLAIN of a call of function {}, which has SECURITY DEFINER and another owner",
                    routine.name
                )));
            }
        }
        Ok(())
    }

    pub(super) fn role_name(&self, role: RoleId) -> String {
        let roles = self.roles(&self.catalog.borrow());
        match roles.get(role) {
            Some(role) => role.name.clone(),
            None => format!("unknown (OID={role})"),
        }
    }

    /// From now on statements are run with the privileges of this role; what `as_role` is to be afterwards.
    pub(super) fn enter_role(&self, role: RoleId) -> Option<RoleId> {
        let before = self.as_role.get();
        if self.current_role() != role {
            self.act_as(Some(role));
        }
        before
    }

    /// From now on the current role is this one; none is the session's own.
    pub(super) fn act_as(&self, role: Option<RoleId>) {
        if self.as_role.replace(role) == role {
            return;
        }
        let superuser = role.map(|role| {
            let roles = self.roles(&self.catalog.borrow());
            roles.is_superuser(role)
        });
        self.settings.borrow_mut().act_as(superuser);
    }

    /// Who is asked whether the current role may run what was bound with the catalog.
    pub(super) fn checker<'a>(&'a self, catalog: &'a Catalog) -> SessionChecker<'a> {
        SessionChecker {
            context: self,
            catalog,
        }
    }

    /// 42501 unless the current role has the permissions.
    fn must_have(&self, permissions: &Permissions, catalog: &Catalog) -> Result<()> {
        let (roles, role) = (self.roles(catalog), self.current_role());
        if catalog.past.is_none() {
            let mut checker = RoleChecker {
                catalog,
                roles: &roles,
                role,
            };
            return checker.check(permissions);
        }
        // What counts is what is granted now.
        let now = self.instance.store.current_by_oid(catalog.database);
        let now = now.ok_or_else(|| denied("permission denied for a database that is gone"))?;
        let (then, acl_checker) = (catalog.acl_checker(&roles), now.acl_checker(&roles));
        // So it is with row security, which the plan may be older than. For superusers, too: a view of another's reads
        // as that one.
        let in_functions = permissions.relations_of_functions.iter();
        let subject = permissions
            .relations
            .iter()
            .chain(in_functions)
            .find(|access| {
                let role = access.as_role.unwrap_or(role);
                privileges::as_of_row_security(&access.relation, role, acl_checker)
                    == privileges::AsOfRowSecurity::Subject
            });
        if let Some(access) = subject {
            return Err(privileges::refuse_as_of(&access.relation));
        }
        let is_there = |lookup: &&SchemaLookup| now.schemas.contains_key(&lookup.schema);
        let there = permissions.schemas.iter().filter(is_there).cloned();
        let there: Vec<SchemaLookup> = there.collect();
        refuse_schemas(&there, catalog, acl_checker, role)?;
        let is_allowed =
            |access: &PermissionInfo| privileges::allow_as_of(access, role, then, acl_checker);
        refuse_relations(&permissions.relations, is_allowed)?;
        refuse_routines(&permissions.functions, &now, &roles, role)?;
        refuse_relations(&permissions.relations_of_functions, is_allowed)
    }

    /// The plan, if the current role may run it.
    pub(super) fn permitted(&self, plan: Rc<CachedPlan>) -> Result<PermittedPlan> {
        let prepared = Arc::clone(&self.may_run(&plan)?.prepared);
        Ok(PermittedPlan::new(plan, prepared))
    }

    /// What a plan runs, if the current role may run it.
    pub(super) fn may_run<'p>(&self, plan: &'p CachedPlan) -> Result<&'p Executable> {
        plan.executable.check_ref(&mut PlanChecker {
            session: self.checker(&plan.catalog),
            permitted: &plan.permitted,
        })
    }

    /// nextval, currval and setval: any of the privileges does.
    pub(super) fn may_use_sequence(
        &self,
        catalog: &Catalog,
        sequence: RelationId,
        wanted: AclMode,
    ) -> Result<()> {
        let (roles, role) = (self.roles(catalog), self.current_role());
        // Whoever looks for one that is not there says what is wrong.
        let Some(relation) = catalog.relations.get(&sequence) else {
            return Ok(());
        };
        if roles.is_superuser(role)
            || !matches!(relation.kind, RelationKind::Sequence(_))
            || catalog
                .acl_checker(&roles)
                .on_relation(role, relation, wanted, 0)
                .0
                != 0
        {
            return Ok(());
        }
        Err(denied_relation(relation))
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
        const SECRET: [&str; 9] = [
            "cache_directory",
            "data_directory",
            "home",
            "price_list",
            "primary_conninfo",
            "replica_of",
            "ssl_cert_file",
            "ssl_key_file",
            "temp_directory",
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
        // Who calls the function must be the one that the statement goes on as.
        if self.as_role.get().is_some() {
            return Err(denied(format!(
                "cannot set parameter \"{}\" within security-definer function",
                setting.to_ascii_lowercase()
            )));
        }
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
        self.reply_dependencies
            .merge(&CommitWait::floor(store.newest_change()), synchronous);
        self.context.set_identity(setting, name, local, &roles)
    }

    /// 42501 unless the current role may run a statement that is no planned query.
    pub(super) fn may_do(&mut self, parsed: &Parsed, text: &str) -> Result<()> {
        let Some(stmt) = parsed.utility() else {
            // What is planned is asked for when it is run.
            return Ok(());
        };
        match stmt {
            Stmt::Copy(copy) => self.may_copy(copy, text),
            Stmt::CheckPoint => {
                let catalog = self.catalog()?;
                let roles = self.context.roles(&catalog);
                let role = self.context.current_role();
                match roles.is_superuser(role) || roles.has_privileges_of(role, CHECKPOINT) {
                    true => Ok(()),
                    false => Err(denied(
                        "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT",
                    )),
                }
            }
            Stmt::Lock(lock) if self.block != BlockState::None => {
                let catalog = self.catalog()?;
                if self
                    .context
                    .roles(&catalog)
                    .is_superuser(self.context.current_role())
                {
                    return Ok(());
                }
                for target in &lock.relations {
                    self.lock_targets(&catalog, target, lock.mode)?;
                }
                Ok(())
            }
            // Its own affairs; statements of the catalog ask themselves: `ddl::permissions`. CALL asks for the
            // procedure,
            // and what runs in a body asks for itself; the languages are everybody's.
            _ => Ok(()),
        }
    }

    /// The same of COPY. To copy rows out is a query.
    fn may_copy(&mut self, copy: &CopyStmt, text: &str) -> Result<()> {
        let catalog = self.catalog()?;
        let roles = self.context.roles(&catalog);
        let role = self.context.current_role();
        if roles.is_superuser(role) {
            return Ok(());
        }
        match &copy.source {
            _ if copy.target != CopyTarget::Client => {
                may_copy_with(&copy.target, !copy.is_from, &roles, role)
            }
            CopySource::Relation { relation, attlist } if copy.is_from => {
                let relation = self.copy_target(&catalog, relation, attlist)?;
                match &copy.where_clause {
                    Some(condition) => self.may_judge(&catalog, &relation, condition, text),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// The relation that rows may be copied into. Asked again whenever the catalog has changed while a lock was waited
    /// for.
    pub(super) fn copy_target(
        &self,
        catalog: &Arc<Catalog>,
        name: &RangeVar,
        columns: &[Name],
    ) -> Result<Arc<Relation>> {
        let relation = self.named_relation(catalog, name)?;
        catalog.check_types_of_own(&relation)?;
        let all = relation.columns.iter().enumerate();
        let live = all.filter(|(_, column)| !column.dropped);
        let named = |name: &str| columns.iter().any(|c| **c == *name);
        let positions: Vec<usize> = live
            .filter(|(_, column)| columns.is_empty() || named(&column.name))
            .map(|(position, _)| position)
            .collect();
        let roles = self.context.roles(catalog);
        let role = self.context.current_role();
        let acl_checker = catalog.acl_checker(&roles);
        if !acl_checker.has(role, &relation, privilege::INSERT, &positions) {
            return Err(denied_relation(&relation));
        }
        match acl_checker.is_secured_for(role, &relation) {
            None => Ok(relation),
            Some(owner) if !self.context.row_security() => Err(
                logstead_sql_plan::bind::refused_by_row_security(&relation, owner),
            ),
            Some(_) => Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "COPY FROM not supported with row-level security",
            )
            .hint("Use INSERT statements instead.")),
        }
    }

    /// May the columns be read that the condition of a COPY names?
    fn may_judge(
        &self,
        catalog: &Arc<Catalog>,
        relation: &Arc<Relation>,
        condition: &Expr,
        text: &str,
    ) -> Result<()> {
        let bound = self.copy_condition(catalog, relation, condition, text)?;
        let all = relation.columns.iter().enumerate();
        let named = |at: usize| {
            logstead_sql_plan::walk::any(
                &bound,
                &|e| matches!(e, logstead_sql_plan::expr::Expr::Column(c, _) if *c == at),
            )
        };
        let read: Vec<usize> = all.map(|(at, _)| at).filter(|at| named(*at)).collect();
        self.must_read(catalog, relation, &read)
    }

    /// 42501 unless the columns may be read.
    pub(super) fn must_read(
        &self,
        catalog: &Arc<Catalog>,
        relation: &Relation,
        read: &[usize],
    ) -> Result<()> {
        let roles = self.context.roles(catalog);
        let role = self.context.current_role();
        let has = |at: &usize| {
            catalog.acl_checker(&roles).has(
                role,
                relation,
                privilege::SELECT,
                std::slice::from_ref(at),
            )
        };
        match read.iter().all(has) {
            true => Ok(()),
            false => Err(denied_relation(relation)),
        }
    }

    /// The relations that are locked in this mode where one is named: that one, and all that a view reads, as who the
    /// view reads them.
    pub(super) fn lock_targets(
        &self,
        catalog: &Arc<Catalog>,
        name: &RangeVar,
        mode: LockMode,
    ) -> Result<Vec<Arc<Relation>>> {
        use privilege as p;
        let wanted = match mode {
            LockMode::AccessShare => p::SELECT,
            LockMode::RowExclusive => p::INSERT | p::UPDATE | p::DELETE | p::TRUNCATE,
            _ => p::UPDATE | p::DELETE | p::TRUNCATE,
        };
        let roles = self.context.roles(catalog);
        let acl_checker = catalog.acl_checker(&roles);
        let own = self.context.current_role();
        let mut all: Vec<Arc<Relation>> = Vec::new();
        let mut left = vec![(self.named_relation(catalog, name)?, own)];
        while let Some((relation, role)) = left.pop() {
            if acl_checker.on_relation(role, &relation, wanted, 0).0 == 0 {
                return Err(denied_relation(&relation));
            }
            if all.iter().any(|known| known.oid == relation.oid) {
                continue;
            }
            if let Some(view) = relation.view() {
                let reader = catalog.view_reader(&relation).unwrap_or(own);
                // A relation without columns is one that a constant names.
                let read = view
                    .sources
                    .iter()
                    .filter(|source| !source.columns.is_empty());
                let below = read.filter_map(|source| catalog.relations.get(&source.relation()?));
                let below =
                    below.filter(|r| matches!(r.kind, RelationKind::Table | RelationKind::View(_)));
                left.extend(below.rev().map(|below| (Arc::clone(below), reader)));
            }
            all.push(relation);
        }
        Ok(all)
    }

    /// The relation of a name in a schema that may be used.
    fn named_relation(
        &self,
        catalog: &Arc<Catalog>,
        name: &impl QualifiedName,
    ) -> Result<Arc<Relation>> {
        let relation = self.find_relation(catalog, name)?;
        let roles = self.context.roles(catalog);
        let (schema, plain) = calls::name_parts(name)?;
        let unqualified = schema.is_none().then_some(plain);
        let lookup = SchemaLookup {
            schema: relation.schema,
            unqualified,
        };
        refuse_schemas(
            &[lookup],
            catalog,
            catalog.acl_checker(&roles),
            self.context.current_role(),
        )?;
        Ok(relation)
    }
}

/// 42501 unless the role may copy with a file or a program of the server's machine.
fn may_copy_with(target: &CopyTarget, to: bool, roles: &Roles, role: RoleId) -> Result<()> {
    let (through, name, what) = match (target, to) {
        (CopyTarget::Program(_), _) => (
            EXECUTE_SERVER_PROGRAM,
            "pg_execute_server_program",
            "to or from an external program",
        ),
        (_, true) => (WRITE_SERVER_FILES, "pg_write_server_files", "to a file"),
        (_, false) => (READ_SERVER_FILES, "pg_read_server_files", "from a file"),
    };
    if roles.has_privileges_of(role, through) {
        return Ok(());
    }
    let message = format!("must be superuser or have privileges of the {name} role to COPY {what}");
    Err(denied(message).hint(
        "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.",
    ))
}
