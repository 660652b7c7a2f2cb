//! A [`Context`] where there is no session, or only a part of one.
//!
//! Owns: [`PartialContext`], by which somebody says what there is, and [`ContextAdapter`], which makes a [`Context`] of
//! it: for the expressions of indexes, for values that the catalog keeps as text, and for tests.
//!
//! Invariant: what is not there is an error that names it ([`PartialContext::absent`]). An object whose name nobody
//! knows has none, so that its number is printed; a setting that nobody has set is unknown.
//!
//! Dates are read and written in UTC, as ISO has them. Everything is run as the bootstrap superuser, as PostgreSQL does
//! where nobody has logged in.

use super::namespace::{LookupScope, NamespaceContext};
use super::{
    AdvisoryLocking, CatalogContext, Context, PlannerOptions, ReplyDependencies, RoleContext,
    ServerContext, SessionObjects,
};
use crate::privileges::DetailVisibility;
use crate::role::BOOTSTRAP;
use crate::settings::PlannerSettings;
use crate::{Catalog, IndexColumn, Relation};
use jiff::tz::TimeZone;
use logstead_sql_func::{
    CatalogFunctions, FunctionContext, RandomNumbers, Sequences, ServerFunctions, SessionActions,
    SessionInfo, Snapshots,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::datetime::{DateForm, DateOrder};
use logstead_sql_types::value::user::{TypeSpelling, UserTypes};
use logstead_sql_types::value::{
    Clock, DateTimeContext, ObjectNames, Oid, RegType, SettingValues, info, needs_session,
};
use logstead_sql_types::{DatabaseOid, RelationId, RoleId, SchemaId, TypeId};
use std::cell::RefCell;
use std::sync::Arc;

/// What there is of a session. Whoever implements it overrides what it has.
pub trait PartialContext {
    /// The error for what is not there.
    fn absent(&self, what: &str) -> SqlError {
        match needs_session::<std::convert::Infallible>(what) {
            Err(error) => error,
            Ok(never) => match never {},
        }
    }

    /// The clock.
    fn clock(&self) -> Result<&dyn Clock> {
        Err(self.absent("the clock"))
    }
    /// The users' types that texts name by number.
    fn types(&self) -> Option<&UserTypes> {
        None
    }
    /// See [`ObjectNames::search_path`].
    fn search_path(&self) -> Vec<String> {
        Vec::new()
    }
    /// See [`ObjectNames::relation_by_name`].
    fn relation_by_name(&self, _name: &str) -> Result<Option<RelationId>> {
        Err(self.absent("the name of a relation"))
    }
    /// See [`ObjectNames::relation_name`].
    fn relation_name(&self, _relation: RelationId) -> Option<String> {
        None
    }
    /// See [`ObjectNames::object_text`].
    fn object_text(&self, _ty: RegType, _object: Oid) -> Option<String> {
        None
    }

    /// See [`FunctionContext::random`].
    fn random(&self) -> Result<&dyn RandomNumbers> {
        Err(self.absent("random numbers"))
    }
    /// See [`FunctionContext::session_info`].
    fn session_info(&self) -> Result<&dyn SessionInfo> {
        Err(self.absent("who the session is"))
    }
    /// See [`FunctionContext::sequences`].
    fn sequences(&self) -> Result<&dyn Sequences> {
        Err(self.absent("sequences"))
    }
    /// See [`FunctionContext::actions`].
    fn actions(&self) -> Result<&dyn SessionActions> {
        Err(self.absent("actions"))
    }
    /// See [`FunctionContext::snapshots`].
    fn snapshots(&self) -> Result<&dyn Snapshots> {
        Err(self.absent("snapshots"))
    }
    /// See [`FunctionContext::catalog_functions`].
    fn catalog_functions(&self) -> Result<&dyn CatalogFunctions> {
        Err(self.absent("catalog functions"))
    }
    /// See [`FunctionContext::server_functions`].
    fn server_functions(&self) -> Result<&dyn ServerFunctions> {
        Err(self.absent("server functions"))
    }

    /// See [`PlannerOptions::interrupted`].
    fn interrupted(&self) -> Result<()> {
        Ok(())
    }

    /// See [`Context::reply_dependencies`].
    fn reply_dependencies(&self) -> Result<&dyn ReplyDependencies> {
        Err(self.absent("reply dependencies"))
    }
    /// See [`Context::advisory_locking`].
    fn advisory_locking(&self) -> Result<&dyn AdvisoryLocking> {
        Err(self.absent("advisory locking"))
    }
    /// See [`Context::session_objects`].
    fn session_objects(&self) -> Result<&dyn SessionObjects> {
        Err(self.absent("session objects"))
    }
    /// See [`Context::server`].
    fn server(&self) -> Result<&dyn ServerContext> {
        Err(self.absent("server"))
    }
}

/// A [`Context`] made of a partial one.
pub struct ContextAdapter<'p, P>(pub &'p P);

impl<P: PartialContext> Clock for ContextAdapter<'_, P> {
    fn transaction_time(&self) -> Result<i64> {
        self.0.clock()?.transaction_time()
    }
    fn statement_time(&self) -> Result<i64> {
        self.0.clock()?.statement_time()
    }
    fn clock_time(&self) -> Result<i64> {
        self.0.clock()?.clock_time()
    }
}

impl<P: PartialContext> DateTimeContext for ContextAdapter<'_, P> {
    fn time_zone(&self) -> &TimeZone {
        static UTC: TimeZone = TimeZone::UTC;
        &UTC
    }
    fn date_order(&self) -> DateOrder {
        DateOrder::Mdy
    }
    fn date_form(&self) -> DateForm {
        DateForm::Iso
    }
}

impl<P: PartialContext> SettingValues for ContextAdapter<'_, P> {
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
}

impl<P: PartialContext> ObjectNames for ContextAdapter<'_, P> {
    fn search_path(&self) -> Vec<String> {
        self.0.search_path()
    }
    fn temporary_schema(&self) -> Option<String> {
        None
    }
    fn relation_by_name(&self, name: &str) -> Result<Option<RelationId>> {
        self.0.relation_by_name(name)
    }
    fn relation_name(&self, relation: RelationId) -> Option<String> {
        self.0.relation_name(relation)
    }
    fn type_by_text(&self, text: &str) -> Result<TypeId> {
        crate::type_name::kept_type_by_text(text, self.0.types())
    }
    fn type_text(&self, ty: TypeId, numbered: bool) -> Option<String> {
        let Some(types) = self.0.types() else {
            return info::built_in_text(ty);
        };
        let path = self.0.search_path();
        TypeSpelling::of(types.lookup(&path), numbered).type_text(ty)
    }
    fn object_by_text(&self, ty: RegType, _: &str) -> Result<Oid> {
        Err(self.0.absent(&format!("reading {}", ty.name())))
    }
    fn object_text(&self, ty: RegType, object: Oid) -> Option<String> {
        self.0.object_text(ty, object)
    }
}

impl<P: PartialContext> FunctionContext for ContextAdapter<'_, P> {
    fn random(&self) -> Result<&dyn RandomNumbers> {
        self.0.random()
    }
    fn session_info(&self) -> Result<&dyn SessionInfo> {
        self.0.session_info()
    }
    fn sequences(&self) -> Result<&dyn Sequences> {
        self.0.sequences()
    }
    fn actions(&self) -> Result<&dyn SessionActions> {
        self.0.actions()
    }
    fn snapshots(&self) -> Result<&dyn Snapshots> {
        self.0.snapshots()
    }
    fn catalog_functions(&self) -> Result<&dyn CatalogFunctions> {
        self.0.catalog_functions()
    }
    fn server_functions(&self) -> Result<&dyn ServerFunctions> {
        self.0.server_functions()
    }
}

impl<P: PartialContext> RoleContext for ContextAdapter<'_, P> {
    fn session_role(&self) -> RoleId {
        BOOTSTRAP
    }
    fn current_role(&self) -> RoleId {
        BOOTSTRAP
    }
    fn act_as(&self, _: Option<RoleId>) -> Option<RoleId> {
        None
    }
    fn detail_visibility(&self, _: &Relation) -> DetailVisibility {
        DetailVisibility::All
    }
    fn row_security(&self) -> bool {
        true
    }
}

impl<P: PartialContext> CatalogContext for ContextAdapter<'_, P> {
    fn present_catalog(&self) -> Option<Arc<Catalog>> {
        None
    }
    fn catalog_of(&self, _: DatabaseOid) -> Option<Arc<Catalog>> {
        None
    }
    fn routines_shown(&self, text: String) -> String {
        text
    }
    fn index_column_shown(&self, column: &IndexColumn, table: &Relation) -> String {
        let none = UserTypes::default();
        let types = self.0.types().unwrap_or(&none);
        column.spelled(table, true, types.lookup(&[]))
    }
}

impl<P: PartialContext> NamespaceContext for ContextAdapter<'_, P> {
    fn look_into(&self, _: &Catalog, _: &str, _: Option<RoleId>) -> Result<Option<SchemaId>> {
        Ok(None)
    }
    fn lookup_scope(&self) -> Option<&RefCell<LookupScope>> {
        None
    }
}

impl<P: PartialContext> PlannerOptions for ContextAdapter<'_, P> {
    fn scans(&self) -> PlannerSettings {
        PlannerSettings::default()
    }
    fn work_mem_bytes(&self) -> usize {
        4 << 20
    }
    fn hash_mem_multiplier(&self) -> f64 {
        1.0
    }
    fn plans_cursor(&self) -> bool {
        false
    }
    fn interrupted(&self) -> Result<()> {
        self.0.interrupted()
    }
}

impl<P: PartialContext> Context for ContextAdapter<'_, P> {
    fn reply_dependencies(&self) -> Result<&dyn ReplyDependencies> {
        self.0.reply_dependencies()
    }
    fn advisory_locking(&self) -> Result<&dyn AdvisoryLocking> {
        self.0.advisory_locking()
    }
    fn session_objects(&self) -> Result<&dyn SessionObjects> {
        self.0.session_objects()
    }
    fn server(&self) -> Result<&dyn ServerContext> {
        self.0.server()
    }
}
