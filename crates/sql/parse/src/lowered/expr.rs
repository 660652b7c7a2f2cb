//! Expressions.

use super::{
    BinaryOperator, DataType, Ident, ObjectName, Query, TokenSpan, UnaryOperator, Value,
    ValueWithSpan,
};
use crate::ast::FrameExclusion;
use std::fmt;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Expr {
    /// A name, or a word that stands for a value.
    Identifier(Ident),
    /// A name with what qualifies it in front.
    CompoundIdentifier(Vec<Ident>),
    /// Fields and elements of a value.
    CompoundFieldAccess {
        root: Box<Expr>,
        access_chain: Vec<AccessExpr>,
    },
    IsFalse(Box<Expr>),
    IsNotFalse(Box<Expr>),
    IsTrue(Box<Expr>),
    IsNotTrue(Box<Expr>),
    IsNull(Box<Expr>),
    IsNotNull(Box<Expr>),
    IsUnknown(Box<Expr>),
    IsNotUnknown(Box<Expr>),
    IsDistinctFrom(Box<Expr>, Box<Expr>),
    IsNotDistinctFrom(Box<Expr>, Box<Expr>),
    IsNormalized {
        expr: Box<Expr>,
        form: Option<NormalizationForm>,
        negated: bool,
    },
    /// Of XML.
    IsDocument {
        expr: Box<Expr>,
        negated: bool,
    },
    InList {
        expr: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    InSubquery {
        expr: Box<Expr>,
        subquery: Box<Query>,
        negated: bool,
    },
    Between {
        expr: Box<Expr>,
        negated: bool,
        symmetric: bool,
        low: Box<Expr>,
        high: Box<Expr>,
    },
    BinaryOp {
        left: Box<Expr>,
        op: BinaryOperator,
        right: Box<Expr>,
    },
    Like {
        negated: bool,
        expr: Box<Expr>,
        pattern: Box<Expr>,
        escape_char: Option<Box<Expr>>,
    },
    ILike {
        negated: bool,
        expr: Box<Expr>,
        pattern: Box<Expr>,
        escape_char: Option<Box<Expr>>,
    },
    SimilarTo {
        negated: bool,
        expr: Box<Expr>,
        pattern: Box<Expr>,
        escape_char: Option<Box<Expr>>,
    },
    AnyOp {
        left: Box<Expr>,
        compare_op: BinaryOperator,
        right: Box<Expr>,
    },
    AllOp {
        left: Box<Expr>,
        compare_op: BinaryOperator,
        right: Box<Expr>,
    },
    UnaryOp {
        op: UnaryOperator,
        expr: Box<Expr>,
    },
    Cast {
        expr: Box<Expr>,
        data_type: DataType,
    },
    AtTimeZone {
        timestamp: Box<Expr>,
        time_zone: Box<Expr>,
    },
    Extract {
        field: Ident,
        expr: Box<Expr>,
    },
    Ceil(Box<Expr>),
    Floor(Box<Expr>),
    Position {
        expr: Box<Expr>,
        r#in: Box<Expr>,
    },
    Substring {
        expr: Box<Expr>,
        substring_from: Option<Box<Expr>>,
        substring_for: Option<Box<Expr>>,
        /// It is written with commas.
        special: bool,
        /// It is called SUBSTR.
        shorthand: bool,
    },
    Trim {
        expr: Box<Expr>,
        trim_where: Option<TrimWhereField>,
        trim_what: Option<Box<Expr>>,
        /// What is trimmed, where it is more than one value.
        trim_characters: Option<Vec<Expr>>,
    },
    Overlay {
        expr: Box<Expr>,
        overlay_what: Box<Expr>,
        overlay_from: Box<Expr>,
        overlay_for: Option<Box<Expr>>,
    },
    Collate {
        expr: Box<Expr>,
        collation: ObjectName,
    },
    /// In parentheses.
    Nested(Box<Expr>),
    Value(ValueWithSpan),
    Interval(Interval),
    Function(Function),
    Case {
        case_token: TokenSpan,
        end_token: TokenSpan,
        operand: Option<Box<Expr>>,
        conditions: Vec<CaseWhen>,
        else_result: Option<Box<Expr>>,
    },
    Exists {
        subquery: Box<Query>,
        negated: bool,
    },
    Subquery(Box<Query>),
    Tuple(Vec<Expr>),
    Array(Array),
    /// `row.*`
    QualifiedWildcard(ObjectName),
    /// The row that a cursor is at, which the condition of a change may be.
    CurrentOf(Ident),
}

impl Expr {
    /// A constant that stands nowhere.
    pub fn value(value: impl Into<ValueWithSpan>) -> Expr {
        Expr::Value(value.into())
    }

    /// A number, which may have a sign in front, and stands nowhere.
    pub fn number(digits: &str) -> Expr {
        match digits.strip_prefix('-') {
            Some(rest) => Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr: Box::new(Expr::value(Value::Number(rest.to_owned()))),
            },
            None => Expr::value(Value::Number(digits.to_owned())),
        }
    }
}

/// A field or an element of a value.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "what they are")]
pub enum AccessExpr {
    /// A field: a name, or what stands for one while a view is shown.
    Dot(Expr),
    /// All fields of a record.
    Star,
    Subscript(Subscript),
}

/// What stands in brackets.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "what they are")]
pub enum Subscript {
    Index {
        index: Expr,
    },
    Slice {
        lower_bound: Option<Expr>,
        upper_bound: Option<Expr>,
    },
}

/// How a text is normalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Unicode's own words")]
pub enum NormalizationForm {
    NFC,
    NFD,
    NFKC,
    NFKD,
}

impl fmt::Display for NormalizationForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NormalizationForm::NFC => "NFC",
            NormalizationForm::NFD => "NFD",
            NormalizationForm::NFKC => "NFKC",
            NormalizationForm::NFKD => "NFKD",
        })
    }
}

/// The ends of a text that TRIM speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TrimWhereField {
    Leading,
    Trailing,
}

/// INTERVAL, a literal, and what it is measured in.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// The literal.
    pub value: Box<Expr>,
    /// The first or the one field.
    pub leading_field: Option<DateTimeField>,
    /// Digits of a fraction, where there is one field or none.
    pub leading_precision: Option<u64>,
    /// The last field.
    pub last_field: Option<DateTimeField>,
    /// Digits of a fraction, behind the last field.
    pub fractional_seconds_precision: Option<u64>,
}

/// A field of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum DateTimeField {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

impl fmt::Display for DateTimeField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DateTimeField::Year => "YEAR",
            DateTimeField::Month => "MONTH",
            DateTimeField::Day => "DAY",
            DateTimeField::Hour => "HOUR",
            DateTimeField::Minute => "MINUTE",
            DateTimeField::Second => "SECOND",
        })
    }
}

/// An arm of CASE.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseWhen {
    /// WHEN.
    pub condition: Expr,
    /// THEN.
    pub result: Expr,
}

/// An array by its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The elements.
    pub elem: Vec<Expr>,
    /// ARRAY stands in front of them.
    pub named: bool,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The function's name.
    pub name: ObjectName,
    /// What it is given.
    pub args: FunctionArguments,
    /// FILTER.
    pub filter: Option<Box<Expr>>,
    /// OVER.
    pub over: Option<WindowType>,
    /// WITHIN GROUP.
    pub within_group: Vec<OrderByExpr>,
}

/// What a function is given.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionArguments {
    /// It is called without parentheses.
    None,
    /// The query of ARRAY.
    Subquery(Box<Query>),
    /// Arguments in parentheses.
    List(FunctionArgumentList),
}

/// Arguments in parentheses.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionArgumentList {
    /// DISTINCT.
    pub duplicate_treatment: Option<DuplicateTreatment>,
    /// The arguments.
    pub args: Vec<FunctionArg>,
    /// What stands behind them.
    pub clauses: Vec<FunctionArgumentClause>,
}

/// What an aggregate does with values that come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateTreatment {
    /// It takes each once.
    Distinct,
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionArg {
    /// One that has no name.
    Unnamed(FunctionArgExpr),
    /// `name => value`
    Named {
        /// Its name.
        name: Ident,
        /// Its value.
        arg: FunctionArgExpr,
    },
    /// VARIADIC and an array; where it stands.
    Variadic(Box<Expr>, TokenSpan),
}

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionArgExpr {
    /// Any value.
    Expr(Expr),
    /// `row.*`
    QualifiedWildcard(ObjectName),
    /// `*`
    Wildcard,
}

/// What stands behind the arguments of an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionArgumentClause {
    /// ORDER BY.
    OrderBy(Vec<OrderByExpr>),
}

/// OVER.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowType {
    /// A window that stands in parentheses.
    WindowSpec(WindowSpec),
    /// A window by its name.
    NamedWindow(Ident),
}

/// A window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSpec {
    /// The window that it begins with.
    pub window_name: Option<Ident>,
    /// PARTITION BY.
    pub partition_by: Vec<Expr>,
    /// ORDER BY.
    pub order_by: Vec<OrderByExpr>,
    /// Its frame.
    pub window_frame: Option<WindowFrame>,
}

/// The frame of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    /// What its bounds count.
    pub units: WindowFrameUnits,
    /// Where it begins.
    pub start_bound: WindowFrameBound,
    /// Where it ends.
    pub end_bound: Option<WindowFrameBound>,
    /// EXCLUDE.
    pub exclusion: FrameExclusion,
}

/// What the bounds of a frame count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum WindowFrameUnits {
    Rows,
    Range,
    Groups,
}

impl fmt::Display for WindowFrameUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WindowFrameUnits::Rows => "ROWS",
            WindowFrameUnits::Range => "RANGE",
            WindowFrameUnits::Groups => "GROUPS",
        })
    }
}

/// A bound of a frame. One without an offset is unbounded.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum WindowFrameBound {
    CurrentRow,
    Preceding(Option<Box<Expr>>),
    Following(Option<Box<Expr>>),
}

/// A key of sorting.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderByExpr {
    /// The key.
    pub expr: Expr,
    /// How it sorts.
    pub options: OrderByOptions,
}

/// How a key sorts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OrderByOptions {
    /// In which direction.
    pub sort: Option<OrderBySort>,
    /// NULLS FIRST, or LAST.
    pub nulls_first: Option<bool>,
}

/// The direction of sorting.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum OrderBySort {
    Asc,
    Desc,
    /// By an operator.
    Using(ObjectName),
}

impl Function {
    /// A call of a function without anything behind its name.
    pub fn of(name: ObjectName) -> Function {
        Function {
            name,
            args: FunctionArguments::None,
            filter: None,
            over: None,
            within_group: Vec::new(),
        }
    }
}

impl From<Vec<FunctionArg>> for FunctionArguments {
    fn from(args: Vec<FunctionArg>) -> FunctionArguments {
        FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        })
    }
}

impl From<Expr> for FunctionArg {
    fn from(value: Expr) -> FunctionArg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value))
    }
}
