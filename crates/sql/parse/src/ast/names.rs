//! Names, types' names, roles, and options by name.

use super::{Deep, Expr, Location};
use smallvec::SmallVec;

/// A name, folded unless it was quoted.
pub type Name = Box<str>;

/// A name with the names that qualify it in front.
pub type Names = SmallVec<[Name; 2]>;

/// A name that may be qualified, of anything but a table in a query (`any_name`).
#[derive(Clone, Debug, PartialEq)]
pub struct AnyName {
    /// Its parts.
    pub names: Names,
    /// Where it begins.
    pub location: Location,
}

/// How a function is named.
#[derive(Clone, Debug, PartialEq)]
pub enum FuncName {
    /// By name.
    Named(Names),
    /// By number, in a stored text.
    Stored {
        /// Its OID.
        oid: u32,
        /// The name that it was called by, after which a column is called.
        called: Name,
    },
}

/// How a type is named.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeRef {
    /// By name; those that the grammar knows are in `pg_catalog`.
    Named(Names),
    /// By OID, in a stored text.
    Stored(u32),
}

/// How a relation is named.
#[derive(Clone, Debug, PartialEq)]
pub enum RelationName {
    /// By name.
    Named {
        /// The database.
        catalog: Option<Name>,
        /// The schema.
        schema: Option<Name>,
        /// The relation.
        name: Name,
    },
    /// By its place among the sources of a view, in a stored text.
    Source(u32),
}

/// What becomes of a relation at the end (`relpersistence`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Persistence {
    /// It stays.
    #[default]
    Permanent,
    /// UNLOGGED.
    Unlogged,
    /// TEMPORARY.
    Temporary,
}

/// A relation's name (`RangeVar`).
#[derive(Clone, Debug, PartialEq)]
pub struct RangeVar {
    /// Its name.
    pub name: RelationName,
    /// With its children: there is no ONLY.
    pub inh: bool,
    /// What is said where it is made.
    pub persistence: Persistence,
    /// What it is called here.
    pub alias: Option<Box<Alias>>,
    /// Where the name begins.
    pub location: Location,
}

/// Another name (`Alias`).
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// The name.
    pub name: Name,
    /// Names for the columns.
    pub colnames: Vec<Name>,
    /// Where it begins, or AS.
    pub location: Location,
}

/// A type (`TypeName`).
#[derive(Clone, Debug, PartialEq)]
pub struct TypeName {
    /// Its name.
    pub name: TypeRef,
    /// SETOF.
    pub setof: bool,
    /// `%TYPE`: the type of the column that the name names.
    pub pct_type: bool,
    /// What stands in parentheses. Of an interval: the mask of its fields, then the precision.
    pub typmods: Vec<Expr>,
    /// Dimensions; none where no length is said.
    pub array_bounds: Vec<Option<i32>>,
    /// Where it begins.
    pub location: Location,
}

/// Fields of intervals, as bits of the mask that is an interval's first modifier.
pub mod interval_fields {
    /// MONTH
    pub const MONTH: i32 = 1 << 1;
    /// YEAR
    pub const YEAR: i32 = 1 << 2;
    /// DAY
    pub const DAY: i32 = 1 << 3;
    /// HOUR
    pub const HOUR: i32 = 1 << 10;
    /// MINUTE
    pub const MINUTE: i32 = 1 << 11;
    /// SECOND
    pub const SECOND: i32 = 1 << 12;
    /// All: what stands where only a precision is said.
    pub const FULL_RANGE: i32 = 0x7fff;
}

/// Which role (`RoleSpecType`).
#[derive(Clone, Debug, PartialEq)]
pub enum RoleSpecKind {
    /// By name.
    Named(Name),
    /// CURRENT_ROLE
    CurrentRole,
    /// CURRENT_USER
    CurrentUser,
    /// SESSION_USER
    SessionUser,
    /// PUBLIC
    Public,
}

/// A role (`RoleSpec`).
#[derive(Clone, Debug, PartialEq)]
pub struct RoleSpec {
    /// Which.
    pub kind: RoleSpecKind,
    /// Where it is named.
    pub location: Location,
}

/// An operator (`any_operator`).
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorName {
    /// The schema, if OPERATOR() names one, or more names.
    pub schema: Names,
    /// Its characters.
    pub name: Name,
}

/// What an option does with what there is (`DefElemAction`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum DefElemAction {
    #[default]
    Unspecified,
    Set,
    Add,
    Drop,
}

/// An option (`DefElem`).
#[derive(Clone, Debug, PartialEq)]
pub struct DefElem {
    /// What stands in front of its name and a point.
    pub namespace: Option<Name>,
    /// Its name, PostgreSQL's where words are said instead.
    pub name: Name,
    /// Its value.
    pub arg: Option<DefArg>,
    /// SET, ADD or DROP in lists of foreign data's options.
    pub action: DefElemAction,
    /// Where it begins.
    pub location: Location,
}

/// The value of an option (`def_arg` and its like).
#[derive(Clone, Debug, PartialEq)]
pub enum DefArg {
    /// A type, and so any name.
    Type(Box<TypeName>),
    /// A literal, or a word that is one.
    String(Name),
    /// An integer.
    Integer(i32),
    /// Another number, as it was written.
    Float(Name),
    /// TRUE or FALSE, said by words of the statement.
    Boolean(bool),
    /// An operator.
    Operator(OperatorName),
    /// NONE
    None,
    /// `*`
    Star,
    /// A qualified name.
    Name(AnyName),
    /// Several values.
    List(Vec<DefArg>),
    /// Roles.
    Roles(Vec<RoleSpec>),
    /// An expression.
    Expr(Deep<Expr>),
    /// SET and RESET among the options of a function.
    Set(Box<super::VariableSetStmt>),
}

/// CASCADE or RESTRICT (`DropBehavior`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum DropBehavior {
    #[default]
    Restrict,
    Cascade,
}
