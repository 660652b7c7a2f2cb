//! Bound expressions: names resolved, types known, functions chosen. Made by `bind`, run by `exec::eval`.
//!
//! Invariant: every node knows its result type; an evaluated datum has that type or is NULL.
//!
//! While a statement is bound, [`Expr::Column`] holds a column identity (`query::range_table`).

pub use super::SubLink;
use crate::Plan;
use logstead_sql_func::Function;
use logstead_sql_types::TypeId;
use logstead_sql_types::value::{Datum, SqlType};
use std::sync::Arc;

/// First column identity; anything below is a position.
pub(crate) const COLUMN_BASE: usize = 1 << 32;

/// A column identity (see the module's doc).
pub(crate) type ColId = usize;

/// A typed expression over an input row, outer rows and parameters.
#[derive(Clone)]
pub enum Expr {
    /// A constant.
    Const(Datum, SqlType),
    /// Column `index` of the input row.
    Column(usize, SqlType),
    /// Column of an enclosing row: level 1 is the innermost row that parameterises this plan (the outer side of a
    /// lateral nested loop, or the row for which a subquery is evaluated), level 2 the next one out.
    Outer {
        /// How many rows out, from 1.
        level: usize,
        /// Column there.
        index: usize,
        /// Its type.
        ty: SqlType,
    },
    /// Statement parameter, counted from 0 ($1 is 0).
    Param(usize, SqlType),
    /// A function, operator or cast function.
    Call {
        /// What to call.
        function: &'static Function,
        /// Its arguments, already coerced; a variadic tail is spread.
        args: Vec<Expr>,
        /// Result type.
        ty: SqlType,
    },
    /// Cast through text: output of the operand, input of `ty`.
    CastViaText(Box<Expr>, SqlType),
    /// Applies `ty.typmod` to a value of `ty.oid`: length, precision.
    CoerceTypmod {
        /// Operand.
        arg: Box<Expr>,
        /// Target with modifier.
        ty: SqlType,
        /// An explicit cast truncates text silently, an assignment fails with 22001.
        explicit: bool,
    },
    /// A value of a domain's base type that has to fulfil the domain's rules; it stays what it is.
    Domain(Box<Expr>, Arc<DomainRules>),
    /// Same datum, other type name.
    Relabel(Box<Expr>, SqlType),
    /// Three-valued AND of two or more.
    And(Vec<Expr>),
    /// Three-valued OR of two or more.
    Or(Vec<Expr>),
    /// NOT.
    Not(Box<Expr>),
    /// IS \[NOT\] NULL.
    IsNull(Box<Expr>, bool),
    /// IS \[NOT\] TRUE / FALSE / UNKNOWN: `value` None is UNKNOWN; `negated` for NOT.
    IsBool {
        /// Operand.
        arg: Box<Expr>,
        /// Tested value.
        value: Option<bool>,
        /// NOT.
        negated: bool,
    },
    /// IS \[NOT\] DISTINCT FROM, over operands of one comparable type.
    IsDistinct {
        /// Left.
        left: Box<Expr>,
        /// Right.
        right: Box<Expr>,
        /// NOT.
        negated: bool,
    },
    /// Searched CASE (a simple CASE is bound to comparisons).
    Case {
        /// WHEN, THEN.
        arms: Vec<(Expr, Expr)>,
        /// ELSE.
        otherwise: Option<Box<Expr>>,
        /// Result type.
        ty: SqlType,
    },
    /// COALESCE.
    Coalesce(Vec<Expr>, SqlType),
    /// GREATEST (true) or LEAST (false), NULLs ignored.
    Extreme(bool, Vec<Expr>, SqlType),
    /// NULLIF(a, b) with the chosen equality.
    NullIf {
        /// First; the result.
        left: Box<Expr>,
        /// `left = right` as a bound call over the same operands.
        equal: Box<Expr>,
        /// Result type.
        ty: SqlType,
    },
    /// `left op ANY/ALL (array)`; also IN lists of constants. `op` takes (left, element).
    ArrayCompare {
        /// Left operand.
        left: Box<Expr>,
        /// Array operand.
        array: Box<Expr>,
        /// Operator function.
        op: &'static Function,
        /// ALL instead of ANY.
        all: bool,
    },
    /// x IN (list), items coerced to x's type; `op` is equality.
    InList {
        /// Left operand.
        left: Box<Expr>,
        /// Items.
        list: Vec<Expr>,
        /// Equality of (left, item).
        op: &'static Function,
        /// NOT IN.
        negated: bool,
    },
    /// ARRAY[...]; a record of these fields if its type is one.
    Array(Vec<Expr>, SqlType),
    /// `array[subscript]`.
    Subscript {
        /// Array.
        array: Box<Expr>,
        /// Subscript, int4.
        index: Box<Expr>,
        /// Element type.
        ty: SqlType,
    },
    /// A subquery.
    Subquery(Arc<Subquery>),
    /// A subquery that is bound and not planned. No plan has one.
    SubLink(Arc<SubLink>),
}

/// What a domain asks of its values, with what the domains it is made over ask.
pub struct DomainRules {
    /// The domain, or the array over it.
    pub declared: TypeId,
    /// It is the array: every element has to fulfil the rules.
    pub each: bool,
    /// Base type of the values, of the array's if it is one.
    pub ty: SqlType,
    /// NOT NULL.
    pub not_null: bool,
    /// Of a row type: the rules of its columns, each with its place. It is a domain of none itself.
    pub fields: Vec<(usize, Arc<DomainRules>)>,
    /// Name and condition of each CHECK, over a row of the value alone, in the order in which they are asked.
    pub checks: Vec<(String, Expr)>,
    /// The domain as messages name it.
    pub shown: String,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
}

/// A subquery inside an expression.
#[derive(Clone)]
pub struct Subquery {
    /// The plan; its `Outer` level 1 is the row the expression is evaluated on.
    pub plan: Plan,
    /// What is asked of it.
    pub kind: SubqueryKind,
    /// True when the plan refers to no enclosing row (evaluated once per statement and kept).
    pub uncorrelated: bool,
    /// Result type of the expression.
    pub ty: SqlType,
    /// Not 0: copies with this number are one subquery, which is run once for a row.
    pub shared: usize,
    /// It stands for an expression, as the call of a function does: whoever groups by what is in it means its rows'
    /// own.
    pub call: bool,
}

/// What an expression asks of a subquery.
#[derive(Clone)]
pub enum SubqueryKind {
    /// Its single column of at most one row ("more than one row returned by a subquery used as an expression", 21000).
    Scalar,
    /// EXISTS.
    Exists,
    /// `left op ANY/ALL (subquery)`; IN is `= ANY`, NOT IN is `<> ALL`. `hashable` when op is equality of one type.
    Compare {
        /// Left operands, one per column of the subquery.
        left: Vec<Expr>,
        /// Operator per column, taking (left, column).
        ops: Vec<&'static Function>,
        /// Of rows that are compared by their order: equality per column. The first column that is not equal decides
        /// by its operator.
        equals: Vec<&'static Function>,
        /// ALL instead of ANY.
        all: bool,
        /// May be answered from a hash table of the subquery's rows.
        hashable: bool,
    },
    /// ARRAY(SELECT ...), element type.
    Array(TypeId),
}

impl SubqueryKind {
    /// What the subquery's rows are compared with: expressions over the row around it.
    pub fn operands(&self) -> &[Expr] {
        match self {
            SubqueryKind::Compare { left, .. } => left,
            _ => &[],
        }
    }

    pub(crate) fn operands_mut(&mut self) -> &mut [Expr] {
        match self {
            SubqueryKind::Compare { left, .. } => left,
            _ => &mut [],
        }
    }
}

impl Expr {
    /// The result type.
    pub fn ty(&self) -> SqlType {
        use logstead_sql_types::value::oid::BOOL;
        match self {
            Expr::Const(_, ty)
            | Expr::Column(_, ty)
            | Expr::Outer { ty, .. }
            | Expr::Param(_, ty)
            | Expr::Call { ty, .. }
            | Expr::CastViaText(_, ty)
            | Expr::CoerceTypmod { ty, .. }
            | Expr::Relabel(_, ty)
            | Expr::Case { ty, .. }
            | Expr::Coalesce(_, ty)
            | Expr::Extreme(_, _, ty)
            | Expr::NullIf { ty, .. }
            | Expr::Array(_, ty)
            | Expr::Subscript { ty, .. } => *ty,
            Expr::Domain(_, rules) => rules.ty,
            Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(..)
            | Expr::IsBool { .. }
            | Expr::IsDistinct { .. }
            | Expr::ArrayCompare { .. }
            | Expr::InList { .. } => SqlType::of(BOOL),
            Expr::Subquery(s) => s.ty,
            Expr::SubLink(s) => s.ty,
        }
    }
}

/// AND of conditions, flattened, without constants that change nothing.
pub fn and(conditions: Vec<Expr>) -> Option<Expr> {
    let mut flat = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match condition {
            Expr::And(inner) => flat.extend(inner),
            Expr::Const(Datum::Bool(true), _) => {}
            other => flat.push(other),
        }
    }
    match flat.len() {
        0 => None,
        1 => flat.pop(),
        _ => Some(Expr::And(flat)),
    }
}
