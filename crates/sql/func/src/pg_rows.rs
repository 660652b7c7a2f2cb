//! Rows of `pg_operator` and `pg_cast` as the tables of the registry write them.
//!
//! Does not: hold the rows (`table_*`) or find them (`registry`).

use crate::CastContext;
use logstead_sql_types::FunctionId;
use logstead_sql_types::value::Oid;

/// One row of `pg_operator`.
#[derive(Debug)]
pub struct Operator {
    /// `oid`
    pub oid: Oid,
    /// `oprname`
    pub name: &'static str,
    /// `oprleft`; 0 for prefix operators
    pub left: Oid,
    /// `oprright`
    pub right: Oid,
    /// `oprresult`
    pub result: Oid,
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
    pub source: Oid,
    /// `casttarget`
    pub target: Oid,
    /// `castfunc`
    pub function: Option<FunctionId>,
    /// `castcontext`
    pub context: CastContext,
    /// `castmethod` is `i`: through text
    pub via_text: bool,
}

pub(crate) const fn c(
    source: Oid,
    target: Oid,
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
    left: Oid,
    right: Oid,
    result: Oid,
    function: u32,
    commutator: Oid,
    negator: Oid,
) -> Operator {
    Operator {
        oid,
        name,
        left,
        right,
        result,
        function: FunctionId::new(function),
        commutator,
        negator,
    }
}
