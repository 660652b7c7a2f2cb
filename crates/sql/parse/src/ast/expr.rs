//! Expressions (`a_expr`, `b_expr`, `c_expr`).

use super::{
    FuncName, Location, Name, Names, NodeBox, OperatorName, SelectStmt, SortBy, TypeName, WindowDef,
};
use std::borrow::Cow;
use std::fmt;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A column, or what else a name may be.
    ColumnRef(Box<ColumnRef>),
    /// A parameter.
    ParamRef(ParamRef),
    /// A constant.
    Const(Const),
    /// A cast, by whichever words.
    TypeCast(NodeBox<TypeCast>),
    /// COLLATE
    CollateClause(NodeBox<CollateClause>),
    /// Operators, also with ANY and ALL; IS DISTINCT FROM; NULLIF.
    AExpr(NodeBox<AExpr>),
    /// LIKE, ILIKE, SIMILAR TO.
    Like(NodeBox<LikeExpr>),
    /// IN with a list.
    In(NodeBox<InExpr>),
    /// BETWEEN
    Between(NodeBox<BetweenExpr>),
    /// AND, OR, NOT.
    BoolExpr(NodeBox<BoolExpr>),
    /// IS NULL
    NullTest(NodeBox<NullTest>),
    /// IS TRUE and its like.
    BooleanTest(NodeBox<BooleanTest>),
    /// A call.
    FuncCall(NodeBox<FuncCall>),
    /// Fields and subscripts of a value.
    Indirection(NodeBox<AIndirection>),
    /// ARRAY[...]
    ArrayExpr(NodeBox<AArrayExpr>),
    /// ROW(...), or several values in parentheses.
    RowExpr(NodeBox<RowExpr>),
    /// CASE
    CaseExpr(NodeBox<CaseExpr>),
    /// COALESCE
    CoalesceExpr(NodeBox<CoalesceExpr>),
    /// GREATEST, LEAST.
    MinMaxExpr(NodeBox<MinMaxExpr>),
    /// CURRENT_DATE and its like.
    SqlValueFunction(SqlValueFunction),
    /// What XML's functions make.
    XmlExpr(NodeBox<XmlExpr>),
    /// XMLSERIALIZE
    XmlSerialize(NodeBox<XmlSerialize>),
    /// GROUPING(...)
    GroupingFunc(NodeBox<GroupingFunc>),
    /// A subquery.
    SubLink(NodeBox<SubLink>),
    /// CURRENT OF
    CurrentOf(Box<CurrentOfExpr>),
    /// DEFAULT in place of a value.
    SetToDefault(Location),
}

/// A constant's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL
    Null,
    /// An integer of 32 bits.
    Integer(i32),
    /// Any other number, as it was written.
    Float(Name),
    /// TRUE, FALSE.
    Boolean(bool),
    /// A literal.
    String(Name),
    /// `B'...'`
    Bits(Name),
    /// `X'...'`
    HexBits(Name),
}

impl Value {
    /// A number: an integer if it is one of 32 bits.
    pub fn number(digits: &str) -> Value {
        match digits.parse() {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::Float(digits.into()),
        }
    }

    /// The digits of a number, with its sign.
    pub fn digits(&self) -> Option<Cow<'_, str>> {
        match self {
            Value::Integer(number) => Some(number.to_string().into()),
            Value::Float(digits) => Some(Cow::Borrowed(digits)),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.into())
    }
}

/// As it is written.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Integer(number) => number.fmt(f),
            Value::Float(digits) => f.write_str(digits),
            Value::Boolean(value) => value.fmt(f),
            Value::String(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Value::Bits(digits) => write!(f, "B'{digits}'"),
            Value::HexBits(digits) => write!(f, "X'{digits}'"),
        }
    }
}

/// A constant (`A_Const`).
#[derive(Clone, Debug, PartialEq)]
pub struct Const {
    /// Its value.
    pub value: Value,
    /// Where it begins.
    pub location: Location,
}

/// `$n` (`ParamRef`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamRef {
    /// n.
    pub number: u32,
    /// Where it is.
    pub location: Location,
}

/// A column (`ColumnRef`).
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnRef {
    /// Its name, and what qualifies it.
    pub fields: Names,
    /// `*` at the end.
    pub star: bool,
    /// Where it begins.
    pub location: Location,
}

/// A cast (`TypeCast`).
#[derive(Clone, Debug, PartialEq)]
pub struct TypeCast {
    /// What is cast.
    pub arg: Expr,
    /// To which type.
    pub type_name: TypeName,
    /// Where CAST, `::` or the type in front of a literal is.
    pub location: Location,
}

/// COLLATE (`CollateClause`).
#[derive(Clone, Debug, PartialEq)]
pub struct CollateClause {
    /// Of what.
    pub arg: Expr,
    /// By which collation.
    pub collname: Names,
    /// Where COLLATE is.
    pub location: Location,
}

/// What an operator does with its operands (`A_Expr_Kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AExprKind {
    /// An operator.
    Op,
    /// With ANY, SOME of an array.
    OpAny,
    /// With ALL of an array.
    OpAll,
    /// IS DISTINCT FROM
    Distinct,
    /// IS NOT DISTINCT FROM
    NotDistinct,
    /// NULLIF
    NullIf,
}

/// An operator (`A_Expr`).
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

/// Ways to compare with patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum LikeKind {
    Like,
    ILike,
    SimilarTo,
}

impl LikeKind {
    /// The operator that it is.
    pub fn operator(self, negated: bool) -> &'static str {
        match (self, negated) {
            (LikeKind::Like, false) => "~~",
            (LikeKind::Like, true) => "!~~",
            (LikeKind::ILike, false) => "~~*",
            (LikeKind::ILike, true) => "!~~*",
            (LikeKind::SimilarTo, false) => "~",
            (LikeKind::SimilarTo, true) => "!~",
        }
    }
}

/// LIKE, ILIKE, SIMILAR TO (`AEXPR_LIKE`, `AEXPR_ILIKE`, `AEXPR_SIMILAR`).
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

/// IN with a list (`AEXPR_IN`).
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

/// BETWEEN (`AEXPR_BETWEEN`, `AEXPR_BETWEEN_SYM` and their negations).
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

/// AND, OR, NOT (`BoolExprType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum BoolOp {
    And,
    Or,
    Not,
}

impl BoolOp {
    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            BoolOp::And => "AND",
            BoolOp::Or => "OR",
            BoolOp::Not => "NOT",
        }
    }
}

/// AND and OR of two and more, NOT of one (`BoolExpr`).
#[derive(Clone, Debug, PartialEq)]
pub struct BoolExpr {
    /// Which.
    pub op: BoolOp,
    /// Of what.
    pub args: Vec<Expr>,
    /// Where the first of the words is.
    pub location: Location,
}

/// IS NULL, IS NOT NULL (`NullTest`).
#[derive(Clone, Debug, PartialEq)]
pub struct NullTest {
    /// What is looked at.
    pub arg: Expr,
    /// IS NOT NULL
    pub negated: bool,
    /// Where IS is.
    pub location: Location,
}

/// What a boolean is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum BoolTestKind {
    True,
    False,
    Unknown,
}

impl BoolTestKind {
    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            BoolTestKind::True => "TRUE",
            BoolTestKind::False => "FALSE",
            BoolTestKind::Unknown => "UNKNOWN",
        }
    }
}

/// IS TRUE and its like (`BooleanTest`).
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

/// How a call is written (`CoercionForm`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuncFormat {
    /// `f(...)`
    ExplicitCall,
    /// By SQL's own words: `EXTRACT(... FROM ...)`, `AT TIME ZONE` and their like.
    SqlSyntax,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct FuncArg {
    /// The parameter that it is for (`NamedArgExpr`), and where the name is.
    pub name: Option<(Name, Location)>,
    /// Its value.
    pub value: Expr,
}

/// A call (`FuncCall`).
#[derive(Clone, Debug, PartialEq)]
pub struct FuncCall {
    /// Which function.
    pub funcname: FuncName,
    /// What it is given.
    pub args: Vec<FuncArg>,
    /// ORDER BY, also that of WITHIN GROUP.
    pub agg_order: Vec<SortBy>,
    /// FILTER
    pub agg_filter: Option<Expr>,
    /// OVER
    pub over: Option<Box<WindowDef>>,
    /// WITHIN GROUP
    pub agg_within_group: bool,
    /// `*`
    pub agg_star: bool,
    /// DISTINCT
    pub agg_distinct: bool,
    /// The last argument is VARIADIC.
    pub func_variadic: bool,
    /// How it is written.
    pub funcformat: FuncFormat,
    /// Where it begins.
    pub location: Location,
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

/// Parts of a value (`A_Indirection`).
#[derive(Clone, Debug, PartialEq)]
pub struct AIndirection {
    /// The value.
    pub arg: Expr,
    /// Which part, of which part.
    pub indirection: Vec<Indirection>,
    /// Where the first of them begins, if no name is in front of it.
    pub location: Location,
}

/// ARRAY[...] (`A_ArrayExpr`).
#[derive(Clone, Debug, PartialEq)]
pub struct AArrayExpr {
    /// Its elements.
    pub elements: Vec<Expr>,
    /// Where ARRAY is, or the bracket.
    pub location: Location,
}

/// A row (`RowExpr`).
#[derive(Clone, Debug, PartialEq)]
pub struct RowExpr {
    /// Its fields.
    pub args: Vec<Expr>,
    /// With ROW.
    pub is_explicit: bool,
    /// Where it begins.
    pub location: Location,
}

/// A branch of CASE (`CaseWhen`).
#[derive(Clone, Debug, PartialEq)]
pub struct CaseWhen {
    /// WHEN
    pub expr: Expr,
    /// THEN
    pub result: Expr,
    /// Where WHEN is.
    pub location: Location,
}

/// CASE (`CaseExpr`).
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

/// COALESCE (`CoalesceExpr`).
#[derive(Clone, Debug, PartialEq)]
pub struct CoalesceExpr {
    /// Of what.
    pub args: Vec<Expr>,
    /// Where it is.
    pub location: Location,
}

/// GREATEST, LEAST (`MinMaxExpr`).
#[derive(Clone, Debug, PartialEq)]
pub struct MinMaxExpr {
    /// LEAST
    pub is_least: bool,
    /// Of what.
    pub args: Vec<Expr>,
    /// Where it is.
    pub location: Location,
}

/// Functions that are called without parentheses (`SQLValueFunctionOp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum SqlValueFunctionOp {
    CurrentDate,
    CurrentTime,
    CurrentTimestamp,
    LocalTime,
    LocalTimestamp,
    CurrentRole,
    CurrentUser,
    User,
    SessionUser,
    CurrentCatalog,
    CurrentSchema,
}

impl SqlValueFunctionOp {
    /// As it is written, in lower case.
    pub fn word(self) -> &'static str {
        match self {
            SqlValueFunctionOp::CurrentDate => "current_date",
            SqlValueFunctionOp::CurrentTime => "current_time",
            SqlValueFunctionOp::CurrentTimestamp => "current_timestamp",
            SqlValueFunctionOp::LocalTime => "localtime",
            SqlValueFunctionOp::LocalTimestamp => "localtimestamp",
            SqlValueFunctionOp::CurrentRole => "current_role",
            SqlValueFunctionOp::CurrentUser => "current_user",
            SqlValueFunctionOp::User => "user",
            SqlValueFunctionOp::SessionUser => "session_user",
            SqlValueFunctionOp::CurrentCatalog => "current_catalog",
            SqlValueFunctionOp::CurrentSchema => "current_schema",
        }
    }
}

impl fmt::Display for SqlValueFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.op.word().to_ascii_uppercase())?;
        match self.typmod {
            Some(precision) => write!(f, "({precision})"),
            None => Ok(()),
        }
    }
}

/// A call without parentheses (`SQLValueFunction`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SqlValueFunction {
    /// Of which function.
    pub op: SqlValueFunctionOp,
    /// Its precision.
    pub typmod: Option<i32>,
    /// Where it is.
    pub location: Location,
}

/// What makes XML (`XmlExprOp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum XmlExprOp {
    XmlConcat,
    XmlElement,
    XmlForest,
    XmlParse,
    XmlPi,
    XmlRoot,
    IsDocument,
}

impl XmlExprOp {
    /// The name of a column that it makes.
    pub fn column_name(self) -> Option<&'static str> {
        match self {
            XmlExprOp::XmlConcat => Some("xmlconcat"),
            XmlExprOp::XmlElement => Some("xmlelement"),
            XmlExprOp::XmlForest => Some("xmlforest"),
            XmlExprOp::XmlParse => Some("xmlparse"),
            XmlExprOp::XmlPi => Some("xmlpi"),
            XmlExprOp::XmlRoot => Some("xmlroot"),
            XmlExprOp::IsDocument => None,
        }
    }
}

/// DOCUMENT or CONTENT (`XmlOptionType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum XmlOption {
    Document,
    Content,
}

impl XmlOption {
    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            XmlOption::Document => "DOCUMENT",
            XmlOption::Content => "CONTENT",
        }
    }
}

/// STANDALONE of XMLROOT (`XmlStandaloneType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum XmlStandalone {
    Yes,
    No,
    NoValue,
    Omitted,
}

impl XmlStandalone {
    /// As it is written, if it is.
    pub fn word(self) -> Option<&'static str> {
        match self {
            XmlStandalone::Yes => Some("YES"),
            XmlStandalone::No => Some("NO"),
            XmlStandalone::NoValue => Some("NO VALUE"),
            XmlStandalone::Omitted => None,
        }
    }
}

/// A value with a name of its own, of XMLFOREST and XMLATTRIBUTES.
#[derive(Clone, Debug, PartialEq)]
pub struct XmlNamedArg {
    /// AS
    pub name: Option<Name>,
    /// The value.
    pub value: Expr,
    /// Where it begins.
    pub location: Location,
}

/// What makes XML (`XmlExpr`).
#[derive(Clone, Debug, PartialEq)]
pub struct XmlExpr {
    /// How.
    pub op: XmlExprOp,
    /// NAME
    pub name: Option<Name>,
    /// Attributes, or the elements of XMLFOREST.
    pub named_args: Vec<XmlNamedArg>,
    /// The other arguments. XMLROOT has the value and the version, which is NULL where there is no value.
    pub args: Vec<Expr>,
    /// DOCUMENT, CONTENT
    pub xmloption: Option<XmlOption>,
    /// PRESERVE WHITESPACE
    pub preserve_whitespace: bool,
    /// STANDALONE
    pub standalone: Option<XmlStandalone>,
    /// Where it begins.
    pub location: Location,
}

/// XMLSERIALIZE (`XmlSerialize`).
#[derive(Clone, Debug, PartialEq)]
pub struct XmlSerialize {
    /// DOCUMENT, CONTENT
    pub xmloption: XmlOption,
    /// Of what.
    pub expr: Expr,
    /// AS
    pub type_name: TypeName,
    /// Where it begins.
    pub location: Location,
}

/// GROUPING(...) (`GroupingFunc`).
#[derive(Clone, Debug, PartialEq)]
pub struct GroupingFunc {
    /// Of what.
    pub args: Vec<Expr>,
    /// Where it begins.
    pub location: Location,
}

/// What a subquery is for (`SubLinkType`).
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

/// A subquery (`SubLink`).
#[derive(Clone, Debug, PartialEq)]
pub struct SubLink {
    /// What for.
    pub kind: SubLinkKind,
    /// The query.
    pub subselect: SelectStmt,
    /// Where the operator or the subquery begins.
    pub location: Location,
}

/// CURRENT OF (`CurrentOfExpr`).
#[derive(Clone, Debug, PartialEq)]
pub struct CurrentOfExpr {
    /// Which cursor.
    pub cursor_name: Name,
    /// Where CURRENT is.
    pub location: Location,
}
