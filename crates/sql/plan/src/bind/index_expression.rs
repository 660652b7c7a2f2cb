//! The expressions of indexes, bound.
//!
//! Owns: [`BoundIndex`], what the planner compares conditions with, and the session that such expressions see: they are
//! immutable functions of the row, so that settings do not reach them ([`ImmutableContext`]).

pub use crate::immutable::{is_immutable, varies};
pub use crate::query::BoundIndex;

use crate::permissions::{NotExecuted, PermissionChecker, Permissions};
use crate::query::expr::Expr;
use crate::{Evaluate, PlanContext};
use logstead_sql_catalog::context::partial::{ContextAdapter, PartialContext};
use logstead_sql_catalog::{Catalog, IndexColumn, IndexDef, IndexKey, Relation};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{SqlType, oid, user};
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
        session: &ContextAdapter(&ImmutableContext {
            types: Some(&catalog.types),
        }),
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

/// The session that index expressions see: no clock, no settings but the defaults, no catalog. An index belongs to
/// nobody: whoever may write the table may compute its keys, and is told all of its rows.
#[derive(Default)]
pub struct ImmutableContext<'c> {
    /// The users' types that constants name.
    pub types: Option<&'c UserTypes>,
}

impl PartialContext for ImmutableContext<'_> {
    fn types(&self) -> Option<&UserTypes> {
        self.types
    }
    fn absent(&self, _: &str) -> SqlError {
        SqlError::new(
            SqlState::INVALID_OBJECT_DEFINITION,
            "functions in index expression must be marked IMMUTABLE",
        )
    }
    /// Names in an index expression are whole: nothing is looked up by a path.
    fn relation_by_name(&self, _: &str) -> Result<Option<RelationId>> {
        Ok(None)
    }
}

/// Type of an expression's values as an index stores them: a literal of no known type is text.
pub fn key_type(expr: &Expr) -> SqlType {
    match expr.ty() {
        ty if ty.oid == oid::UNKNOWN => SqlType::of(oid::TEXT),
        ty => ty,
    }
}
