//! Expressions.

use super::{FuncCall, SelectStmt, XmlExpr, XmlSerialize};
use crate::ast::{
    AExprKind, BoolOp, BoolTestKind, ColumnRef, Const, CurrentOfExpr, FrameExclusion, FrameMode,
    LikeKind, Location, Name, Names, OperatorName, ParamRef, SortByDir, SortByNulls,
    SqlValueFunction, TypeName, Value,
};

/// An expression.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Expr {
    /// A column, or what else a name may be. With a star it is all columns of an item, in lists alone.
    ColumnRef(Box<ColumnRef>),
    /// DEFAULT in place of a value.
    SetToDefault(Location),
    /// CURRENT_DATE and its like.
    SqlValueFunction(SqlValueFunction),
    /// Fields and elements of a value.
    Indirection(Box<AIndirection>),
    /// AND, OR, NOT.
    BoolExpr(Box<BoolExpr>),
    /// Operators, also with ANY and ALL; IS DISTINCT FROM; NULLIF.
    AExpr(Box<AExpr>),
    /// IS NULL
    NullTest(Box<NullTest>),
    /// IS TRUE and its like.
    BooleanTest(Box<BooleanTest>),
    /// LIKE, ILIKE, SIMILAR TO.
    Like(Box<LikeExpr>),
    /// IN with a list.
    In(Box<InExpr>),
    /// BETWEEN
    Between(Box<BetweenExpr>),
    /// A cast, by whichever words.
    TypeCast(Box<TypeCast>),
    /// COLLATE
    CollateClause(Box<CollateClause>),
    /// A parameter.
    ParamRef(ParamRef),
    /// A constant.
    Const(Const),
    /// A call.
    FuncCall(Box<FuncCall>),
    /// CASE
    CaseExpr(Box<CaseExpr>),
    /// A subquery.
    SubLink(Box<SubLink>),
    /// ROW(...), or several values in parentheses.
    RowExpr(Box<RowExpr>),
    /// COALESCE
    CoalesceExpr(Box<CoalesceExpr>),
    /// GREATEST, LEAST.
    MinMaxExpr(Box<MinMaxExpr>),
    /// What XML's functions make, and IS DOCUMENT.
    XmlExpr(Box<XmlExpr>),
    /// XMLSERIALIZE
    XmlSerialize(Box<XmlSerialize>),
    /// GROUPING(...)
    GroupingFunc(Box<GroupingFunc>),
    /// ARRAY[...]
    ArrayExpr(Box<AArrayExpr>),
    /// The row that a cursor is at, which the condition of a change may be.
    CurrentOf(Box<CurrentOfExpr>),
}

/// An operator.
#[derive(Clone, Debug, PartialEq)]
pub struct AExpr {
    /// What it does.
    pub kind: AExprKind,
    /// Which.
    pub op: OperatorName,
    /// On its left; none of a prefix operator.
    pub lexpr: Option<Expr>,
    /// On its right.
    pub rexpr: Expr,
    /// Where the operator is.
    pub location: Location,
}

/// LIKE, ILIKE, SIMILAR TO.
#[derive(Clone, Debug, PartialEq)]
pub struct LikeExpr {
    /// Which of them.
    pub kind: LikeKind,
    /// NOT
    pub negated: bool,
    /// What is compared.
    pub expr: Expr,
    /// The pattern.
    pub pattern: Expr,
    /// ESCAPE
    pub escape: Option<Expr>,
    /// Where the word is, or NOT.
    pub location: Location,
}

/// IN with a list.
#[derive(Clone, Debug, PartialEq)]
pub struct InExpr {
    /// NOT
    pub negated: bool,
    /// What is looked for.
    pub expr: Expr,
    /// In what.
    pub list: Vec<Expr>,
    /// Where IN is, or NOT.
    pub location: Location,
}

/// BETWEEN.
#[derive(Clone, Debug, PartialEq)]
pub struct BetweenExpr {
    /// NOT
    pub negated: bool,
    /// SYMMETRIC
    pub symmetric: bool,
    /// What is compared.
    pub expr: Expr,
    /// The lower end.
    pub low: Expr,
    /// The upper end.
    pub high: Expr,
    /// Where BETWEEN is, or NOT.
    pub location: Location,
}

/// AND and OR of two and more, NOT of one.
#[derive(Clone, Debug, PartialEq)]
pub struct BoolExpr {
    /// Which.
    pub op: BoolOp,
    /// Of what.
    pub args: Vec<Expr>,
    /// Where the first of the words is.
    pub location: Location,
}

/// IS NULL, IS NOT NULL.
#[derive(Clone, Debug, PartialEq)]
pub struct NullTest {
    /// What is looked at.
    pub arg: Expr,
    /// IS NOT NULL
    pub negated: bool,
    /// Where IS is.
    pub location: Location,
}

/// IS TRUE and its like.
#[derive(Clone, Debug, PartialEq)]
pub struct BooleanTest {
    /// What is looked at.
    pub arg: Expr,
    /// What for.
    pub kind: BoolTestKind,
    /// IS NOT
    pub negated: bool,
    /// Where IS is.
    pub location: Location,
}

/// A cast.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeCast {
    /// What is cast.
    pub arg: Expr,
    /// To which type.
    pub type_name: TypeName,
    /// Where CAST or `::` is; nowhere of a type in front of a literal.
    pub location: Location,
}

/// COLLATE.
#[derive(Clone, Debug, PartialEq)]
pub struct CollateClause {
    /// Of what.
    pub arg: Expr,
    /// By which collation.
    pub collname: Names,
    /// Where COLLATE is.
    pub location: Location,
}

/// What a subquery is for.
#[derive(Clone, Debug, PartialEq)]
pub enum SubLinkKind {
    /// EXISTS
    Exists,
    /// `test op ALL (...)`
    All {
        /// The left side.
        test: Expr,
        /// The operator.
        op: OperatorName,
    },
    /// `test op ANY (...)`, and IN, which has no operator.
    Any {
        /// The left side.
        test: Expr,
        /// The operator.
        op: Option<OperatorName>,
    },
    /// NOT IN
    NotIn {
        /// The left side.
        test: Expr,
    },
    /// Its one value.
    Expr,
    /// ARRAY(...)
    Array,
}

impl SubLinkKind {
    /// What is compared with the subquery's rows.
    pub fn test(&self) -> Option<&Expr> {
        match self {
            SubLinkKind::All { test, .. }
            | SubLinkKind::Any { test, .. }
            | SubLinkKind::NotIn { test } => Some(test),
            SubLinkKind::Exists | SubLinkKind::Expr | SubLinkKind::Array => None,
        }
    }
}

/// A subquery.
#[derive(Clone, Debug, PartialEq)]
pub struct SubLink {
    /// What for.
    pub kind: SubLinkKind,
    /// The query.
    pub subselect: SelectStmt,
    /// Where the operator or the subquery begins.
    pub location: Location,
}

impl Expr {
    /// An operator between two operands, which stands nowhere.
    pub fn operator(lexpr: Expr, op: OperatorName, rexpr: Expr) -> Expr {
        Expr::compared(AExprKind::Op, lexpr, op, rexpr)
    }

    /// The same of an operator of any kind.
    pub fn compared(kind: AExprKind, lexpr: Expr, op: OperatorName, rexpr: Expr) -> Expr {
        Expr::AExpr(Box::new(AExpr {
            kind,
            op,
            lexpr: Some(lexpr),
            rexpr,
            location: Location::UNKNOWN,
        }))
    }

    /// AND, OR or NOT, which stands nowhere.
    pub fn bool_expr(op: BoolOp, args: Vec<Expr>) -> Expr {
        Expr::BoolExpr(Box::new(BoolExpr {
            op,
            args,
            location: Location::UNKNOWN,
        }))
    }

    /// IS NULL or IS NOT NULL, which stands nowhere.
    pub fn null_test(arg: Expr, negated: bool) -> Expr {
        Expr::NullTest(Box::new(NullTest {
            arg,
            negated,
            location: Location::UNKNOWN,
        }))
    }

    /// A cast, which stands nowhere.
    pub fn type_cast(arg: Expr, type_name: TypeName) -> Expr {
        Expr::TypeCast(Box::new(TypeCast {
            arg,
            type_name,
            location: Location::UNKNOWN,
        }))
    }

    /// The query whose one value it is.
    pub fn scalar_query(&self) -> Option<&SubLink> {
        match self {
            Expr::SubLink(node) if node.kind == SubLinkKind::Expr => Some(node),
            _ => None,
        }
    }

    /// ARRAY[...], which stands nowhere.
    pub fn array(elements: Vec<Expr>) -> Expr {
        Expr::ArrayExpr(Box::new(AArrayExpr {
            elements,
            location: Location::UNKNOWN,
        }))
    }

    /// A row of fields, which stands nowhere.
    pub fn row(args: Vec<Expr>) -> Expr {
        Expr::RowExpr(Box::new(RowExpr {
            args,
            is_explicit: true,
            location: Location::UNKNOWN,
        }))
    }

    /// A column, which stands nowhere.
    pub fn column_ref(fields: impl IntoIterator<Item = Name>) -> Expr {
        Expr::ColumnRef(Box::new(ColumnRef {
            fields: fields.into_iter().collect(),
            star: false,
            location: Location::UNKNOWN,
        }))
    }

    /// All columns of an item.
    pub fn all_columns(item: &str) -> Expr {
        Expr::ColumnRef(Box::new(ColumnRef {
            fields: [Name::from(item)].into_iter().collect(),
            star: true,
            location: Location::UNKNOWN,
        }))
    }

    /// The names of a column.
    pub fn column_names(&self) -> Option<&[Name]> {
        match self {
            Expr::ColumnRef(column) if !column.star => Some(&column.fields),
            _ => None,
        }
    }

    /// The name of a column that nothing qualifies.
    pub fn bare_name(&self) -> Option<&Name> {
        match self.column_names()? {
            [name] => Some(name),
            _ => None,
        }
    }

    /// A constant that stands nowhere.
    pub fn value(value: Value) -> Expr {
        Expr::Const(Const {
            value,
            location: Location::UNKNOWN,
        })
    }

    /// The constant that it is.
    pub fn constant(&self) -> Option<&Value> {
        match self {
            Expr::Const(node) => Some(&node.value),
            _ => None,
        }
    }

    /// Is it NULL?
    pub fn is_null(&self) -> bool {
        self.constant() == Some(&Value::Null)
    }

    /// The text of a literal.
    pub fn literal(&self) -> Option<&str> {
        match self.constant()? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// An operator in front of its operand, which stands nowhere.
    pub fn prefix(sign: &str, rexpr: Expr) -> Expr {
        Expr::AExpr(Box::new(AExpr {
            kind: AExprKind::Op,
            op: OperatorName::of_sign(sign),
            lexpr: None,
            rexpr,
            location: Location::UNKNOWN,
        }))
    }

    /// A number, which may have a sign in front, and stands nowhere.
    pub fn number(digits: &str) -> Expr {
        Expr::value(Value::number(digits))
    }
}

/// A part of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Indirection {
    /// `.name`
    Field(Name),
    /// `.*`
    Star,
    /// `[i]`
    Index(Expr),
    /// `[i:j]`, each of which may be absent.
    Slice(Option<Expr>, Option<Expr>),
}

/// Parts of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct AIndirection {
    /// The value.
    pub arg: Expr,
    /// Which part, of which part.
    pub indirection: Vec<Indirection>,
    /// Where the first of them begins, if no name is in front of it.
    pub location: Location,
}

/// A branch of CASE.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseWhen {
    /// WHEN
    pub expr: Expr,
    /// THEN
    pub result: Expr,
    /// Where WHEN is.
    pub location: Location,
}

/// CASE.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseExpr {
    /// What the branches are compared with.
    pub arg: Option<Expr>,
    /// The branches.
    pub args: Vec<CaseWhen>,
    /// ELSE
    pub defresult: Option<Expr>,
    /// Where CASE is.
    pub location: Location,
    /// Where END is.
    pub end: Location,
}

/// ARRAY[...].
#[derive(Clone, Debug, PartialEq)]
pub struct AArrayExpr {
    /// Its elements.
    pub elements: Vec<Expr>,
    /// Where ARRAY is, or the bracket.
    pub location: Location,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowExpr {
    /// Its fields; `item.*` among them is as many as the item has columns.
    pub args: Vec<Expr>,
    /// With ROW.
    pub is_explicit: bool,
    /// Where it begins.
    pub location: Location,
}

/// COALESCE.
#[derive(Clone, Debug, PartialEq)]
pub struct CoalesceExpr {
    /// Of what.
    pub args: Vec<Expr>,
    /// Where it is.
    pub location: Location,
}

/// GREATEST, LEAST.
#[derive(Clone, Debug, PartialEq)]
pub struct MinMaxExpr {
    /// LEAST
    pub is_least: bool,
    /// Of what.
    pub args: Vec<Expr>,
    /// Where it is.
    pub location: Location,
}

impl MinMaxExpr {
    /// As it is written.
    pub fn word(&self) -> &'static str {
        if self.is_least { "LEAST" } else { "GREATEST" }
    }
}

/// GROUPING(...).
#[derive(Clone, Debug, PartialEq)]
pub struct GroupingFunc {
    /// Of what.
    pub args: Vec<Expr>,
    /// Where it begins.
    pub location: Location,
}

/// A window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowDef {
    /// Its name: of WINDOW's list, or of `OVER name`.
    pub name: Option<Name>,
    /// The window that it copies.
    pub refname: Option<Name>,
    /// PARTITION BY
    pub partition_clause: Vec<Expr>,
    /// ORDER BY
    pub order_clause: Vec<SortBy>,
    /// RANGE, ROWS, GROUPS
    pub frame: Option<WindowFrame>,
    /// Where it begins.
    pub location: Location,
}

/// An end of a frame.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

impl FrameBound {
    /// Its offset.
    pub fn offset_mut(&mut self) -> Option<&mut Expr> {
        match self {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
            _ => None,
        }
    }
}

/// A window's frame.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    /// How rows are counted.
    pub mode: FrameMode,
    /// Where it begins.
    pub start: FrameBound,
    /// BETWEEN was said, and this is where it ends; otherwise with the current row.
    pub end: Option<FrameBound>,
    /// EXCLUDE
    pub exclusion: FrameExclusion,
}

/// An item of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct SortBy {
    /// By what.
    pub node: Expr,
    /// In which direction.
    pub dir: SortByDir,
    /// Where NULLs go.
    pub nulls: SortByNulls,
    /// Where the operator of USING is.
    pub location: Location,
}
