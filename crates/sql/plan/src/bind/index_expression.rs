//! The expressions of indexes, bound.
//!
//! Owns: [`BoundIndex`], what the planner compares conditions with, and the session that such expressions see: they are
//! immutable functions of the row, so that settings do not reach them ([`ImmutableContext`]).

pub use crate::immutable::{is_immutable, varies};
pub use crate::query::BoundIndex;

use crate::permissions::{NotExecuted, PermissionChecker, Permissions};
use crate::query::expr::Expr;
use crate::{Evaluate, PlanContext};
use logstead_sql_catalog::context::{
    AdvisoryLocking, CatalogContext, Context, PlannerOptions, ReplyDependencies, RoleContext,
    ServerContext, SessionObjects,
};
use logstead_sql_catalog::privileges::DetailVisibility;
use logstead_sql_catalog::role::BOOTSTRAP;
use logstead_sql_catalog::settings::PlannerSettings;
use logstead_sql_catalog::{Catalog, IndexColumn, IndexDef, IndexKey, Relation};
use logstead_sql_func::{
    CatalogFunctions, FunctionContext, RandomNumbers, Sequences, ServerFunctions, SessionActions,
    SessionInfo, Snapshots,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::datetime::{DateForm, DateOrder};
use logstead_sql_types::value::{
    Clock, DateTimeContext, ObjectNames, Oid, RegType, SettingValues, SqlType, oid, user,
};
use logstead_types::SqlState;
use std::sync::Arc;

/// Binds an index's expressions, to compare others with them: nothing of them is computed.
pub(crate) fn bind(
    relation: &Relation,
    index: &IndexDef,
    cx: &PlanContext<'_>,
) -> Result<BoundIndex> {
    // The statement's parameters are none of the index's.
    let own = PlanContext {
        param_types: &[],
        parameters_fixed: true,
        ..*cx
    };
    let read = |text: &str, what: &str| {
        super::bind_scalar_text(text, relation, &own, what)?.check(&mut NotExecuted)
    };
    let keys = index.columns.iter().map(|column| match &column.key {
        IndexKey::Column(position) => Ok(Expr::Column(*position, column.ty(relation))),
        IndexKey::Expression { text, .. } => read(text, "INDEX"),
    });
    Ok(BoundIndex {
        keys: keys.collect::<Result<_>>()?,
        predicate: match &index.predicate {
            Some(text) => Some(read(text, "PREDICATE")?),
            None => None,
        },
    })
}

/// What keys are made of, outside of any session: where rows hold what is computed for the index, that is read. All
/// other functions in it are built in, and everybody's.
pub fn bind_alone(
    relation: &Relation,
    index: &IndexDef,
    catalog: &Arc<Catalog>,
    evaluate: Evaluate,
) -> Result<BoundIndex> {
    let rows_of = |_: &Relation| 1_000.0;
    let cx = PlanContext {
        catalog,
        search_path: &[],
        param_types: &[],
        parameters_fixed: true,
        session: &ImmutableContext,
        variables: None,
        rows_of: &rows_of,
        evaluate,
    };
    let read = |text: &str, what: &str| {
        super::bind_scalar_text(text, relation, &cx, what)?.check(&mut BuiltInFunctions)
    };
    let key = |(at, column): (usize, &IndexColumn)| match (&column.key, index.computed_key(at)) {
        (IndexKey::Column(position), _) => Ok(Expr::Column(*position, column.ty(relation))),
        (IndexKey::Expression { ty, .. }, Some(position)) => Ok(Expr::Column(position, *ty)),
        (IndexKey::Expression { text, .. }, None) => read(text, "INDEX"),
    };
    user::with(&catalog.types, || {
        Ok(BoundIndex {
            keys: index
                .columns
                .iter()
                .enumerate()
                .map(key)
                .collect::<Result<_>>()?,
            predicate: match (&index.predicate, index.computed_predicate()) {
                (_, Some(position)) => Some(Expr::Column(position, SqlType::of(oid::BOOL))),
                (Some(text), None) => Some(read(text, "PREDICATE")?),
                (None, None) => None,
            },
        })
    })
}

/// The checker of what is computed where no role is known: everybody may.
struct BuiltInFunctions;

impl PermissionChecker for BuiltInFunctions {
    fn check(&mut self, permissions: &Permissions) -> Result<()> {
        match permissions.functions.is_empty() && permissions.relations.is_empty() {
            true => Ok(()),
            false => Err(SqlError::internal("keys of an index that take rights")),
        }
    }
}

/// The session that index expressions see: no clock, no settings but the defaults, no catalog.
pub struct ImmutableContext;

impl ImmutableContext {
    fn refused<T>() -> Result<T> {
        Err(SqlError::new(
            SqlState::INVALID_OBJECT_DEFINITION,
            "functions in index expression must be marked IMMUTABLE",
        ))
    }
}

impl Clock for ImmutableContext {
    fn transaction_time(&self) -> Result<i64> {
        ImmutableContext::refused()
    }
    fn statement_time(&self) -> Result<i64> {
        ImmutableContext::refused()
    }
    fn clock_time(&self) -> Result<i64> {
        ImmutableContext::refused()
    }
}

impl DateTimeContext for ImmutableContext {
    fn time_zone(&self) -> &jiff::tz::TimeZone {
        static UTC: jiff::tz::TimeZone = jiff::tz::TimeZone::UTC;
        &UTC
    }
    fn date_order(&self) -> DateOrder {
        DateOrder::Mdy
    }
    fn date_form(&self) -> DateForm {
        DateForm::Iso
    }
}

impl SettingValues for ImmutableContext {
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
}

/// Names in an index expression are whole: nothing is looked up by a path.
impl ObjectNames for ImmutableContext {
    fn search_path(&self) -> Vec<String> {
        Vec::new()
    }
    fn temporary_schema(&self) -> Option<String> {
        None
    }
    fn relation_by_name(&self, _: &str) -> Result<Option<Oid>> {
        Ok(None)
    }
    fn relation_name(&self, _: Oid) -> Option<String> {
        None
    }
    fn type_by_text(&self, text: &str) -> Result<Oid> {
        logstead_sql_catalog::type_name::type_by_text(text)
    }
    fn object_by_text(&self, _: RegType, _: &str) -> Result<Oid> {
        ImmutableContext::refused()
    }
    fn object_text(&self, _: RegType, _: Oid) -> Option<String> {
        None
    }
}

impl FunctionContext for ImmutableContext {
    fn random(&self) -> Result<&dyn RandomNumbers> {
        ImmutableContext::refused()
    }
    fn session_info(&self) -> Result<&dyn SessionInfo> {
        ImmutableContext::refused()
    }
    fn sequences(&self) -> Result<&dyn Sequences> {
        ImmutableContext::refused()
    }
    fn actions(&self) -> Result<&dyn SessionActions> {
        ImmutableContext::refused()
    }
    fn snapshots(&self) -> Result<&dyn Snapshots> {
        ImmutableContext::refused()
    }
    fn catalog_functions(&self) -> Result<&dyn CatalogFunctions> {
        ImmutableContext::refused()
    }
    fn server_functions(&self) -> Result<&dyn ServerFunctions> {
        ImmutableContext::refused()
    }
}

/// An index belongs to nobody: whoever may write the table may compute its keys, and is told all of its rows.
impl RoleContext for ImmutableContext {
    fn session_role(&self) -> Oid {
        BOOTSTRAP
    }
    fn current_role(&self) -> Oid {
        BOOTSTRAP
    }
    fn act_as(&self, _: Oid) -> Oid {
        0
    }
    fn told_of(&self, _: &Relation) -> DetailVisibility {
        DetailVisibility::All
    }
    fn row_security(&self) -> bool {
        true
    }
}

impl CatalogContext for ImmutableContext {
    fn present_catalog(&self) -> Option<Arc<Catalog>> {
        None
    }
    fn catalog_of(&self, _: Oid) -> Option<Arc<Catalog>> {
        None
    }
    fn routines_shown(&self, text: String) -> String {
        text
    }
}

impl PlannerOptions for ImmutableContext {
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
        Ok(())
    }
}

impl Context for ImmutableContext {
    fn reply_dependencies(&self) -> Result<&dyn ReplyDependencies> {
        ImmutableContext::refused()
    }
    fn advisory_locking(&self) -> Result<&dyn AdvisoryLocking> {
        ImmutableContext::refused()
    }
    fn session_objects(&self) -> Result<&dyn SessionObjects> {
        ImmutableContext::refused()
    }
    fn server(&self) -> Result<&dyn ServerContext> {
        ImmutableContext::refused()
    }
}

/// Type of an expression's values as an index stores them: a literal of no known type is text.
pub fn key_type(expr: &Expr) -> SqlType {
    match expr.ty() {
        ty if ty.oid == oid::UNKNOWN => SqlType::of(oid::TEXT),
        ty => ty,
    }
}
