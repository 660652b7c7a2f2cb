//! What binding and planning read of the world.

use crate::query::expr::Expr;
use crate::variables::Variables;
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::{Catalog, Relation};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use std::sync::Arc;

/// What planning reads.
pub struct PlanContext<'a> {
    /// The catalog snapshot; the plan is good for its version only.
    pub catalog: &'a Arc<Catalog>,
    /// Schemas searched for unqualified names, as the setting has them.
    pub search_path: &'a [String],
    /// Parameter types the client declared; `None` (or beyond the end) is inferred.
    pub param_types: &'a [Option<TypeId>],
    /// There are no other parameters than those: whoever names one is told so.
    pub parameters_fixed: bool,
    /// The session: literals such as 'now'::timestamptz or 't'::regclass are read when the statement is planned.
    pub session: &'a dyn Context,
    /// The variables around the statement, if it stands in a procedure's body: its parameters are they.
    pub variables: Option<&'a Variables>,
    /// Estimated rows of a relation.
    pub rows_of: &'a dyn Fn(&Relation) -> f64,
    /// Computes an expression that reads no row: the executor does, as for PostgreSQL's `evaluate_expr`.
    pub evaluate: Evaluate,
}

impl<'a> PlanContext<'a> {
    /// What names are looked up with.
    pub fn lookup(&self) -> NameLookup<'a> {
        NameLookup {
            catalog: self.catalog,
            search_path: self.search_path,
            session: self.session,
        }
    }
}

/// The value of an expression that reads no row.
pub type Evaluate = fn(&Expr, &dyn Context) -> Result<Datum>;
