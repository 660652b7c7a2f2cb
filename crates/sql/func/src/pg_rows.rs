//! Rows of `pg_operator` and `pg_cast` as the tables of the registry write them.
//!
//! Does not: hold the rows (`table_*`) or find them (`registry`).

use crate::CastContext;
use logstead_sql_types::value::{Oid, oid};
use logstead_sql_types::{FunctionId, TypeId};

/// What a row of a table has as left type of a prefix operator.
pub(crate) const PREFIX: TypeId = oid::INVALID;

/// One row of `pg_operator`.
#[derive(Debug)]
pub struct Operator {
    /// `oid`
    pub oid: Oid,
    /// `oprname`
    pub name: &'static str,
    /// `oprleft`; none for prefix operators
    pub left: Option<TypeId>,
    /// `oprright`
    pub right: TypeId,
    /// `oprresult`
    pub result: TypeId,
    /// `oprcode`
    pub function: FunctionId,
    /// `oprcom`; 0 for none
    pub commutator: Oid,
    /// `oprnegate`; 0 for none
    pub negator: Oid,
}

/// One row of `pg_cast`.
#[derive(Debug)]
pub struct CastRow {
    /// `castsource`
    pub source: TypeId,
    /// `casttarget`
    pub target: TypeId,
    /// `castfunc`
    pub function: Option<FunctionId>,
    /// `castcontext`
    pub context: CastContext,
    /// `castmethod` is `i`: through text
    pub via_text: bool,
}

pub(crate) const fn c(
    source: TypeId,
    target: TypeId,
    function: u32,
    context: CastContext,
    via_text: bool,
) -> CastRow {
    CastRow {
        source,
        target,
        function: match function {
            0 => None,
            function => Some(FunctionId::new(function)),
        },
        context,
        via_text,
    }
}

#[allow(
    clippy::too_many_arguments,
    reason = "one call per row of a literal table"
)]
pub(crate) const fn o(
    oid: Oid,
    name: &'static str,
    left: TypeId,
    right: TypeId,
    result: TypeId,
    function: u32,
    commutator: Oid,
    negator: Oid,
) -> Operator {
    Operator {
        oid,
        name,
        left: match left {
            PREFIX => None,
            left => Some(left),
        },
        right,
        result,
        function: FunctionId::new(function),
        commutator,
        negator,
    }
}
