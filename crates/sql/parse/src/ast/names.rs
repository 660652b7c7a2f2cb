//! Names, types' names, roles, and options by name.

use super::{Expr, Location, NodeBox, Value};
use crate::lexer::{Category, Keyword};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::names::quote_identifier;
use logstead_types::SqlState;
use smallvec::SmallVec;
use std::fmt;

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

impl AnyName {
    /// A name that stands nowhere.
    pub fn of<N: Into<Name>>(names: impl IntoIterator<Item = N>) -> AnyName {
        AnyName {
            names: names.into_iter().map(Into::into).collect(),
            location: Location::UNKNOWN,
        }
    }
}

/// In quotes where they are needed.
impl fmt::Display for AnyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&names_shown(&self.names))
    }
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

impl FuncName {
    /// By a name.
    pub fn of<N: Into<Name>>(names: impl IntoIterator<Item = N>) -> FuncName {
        FuncName::Named(names.into_iter().map(Into::into).collect())
    }

    /// The name that it is called by, whatever qualifies it.
    pub fn called(&self) -> Option<&Name> {
        match self {
            FuncName::Named(names) => names.last(),
            FuncName::Stored { called, .. } => Some(called),
        }
    }
}

/// In quotes where they are needed; a number as texts have it that are stored.
impl fmt::Display for FuncName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FuncName::Named(names) => f.write_str(&names_shown(names)),
            FuncName::Stored { oid, called } => {
                let name = format!("{FUNCTION_MARK}{oid}:{called}");
                f.write_str(&names_shown(&[name.into()]))
            }
        }
    }
}

/// What the name of a function begins with that a stored text names by number.
pub(crate) const FUNCTION_MARK: char = '\u{3}';

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

impl RelationName {
    /// By a name, which a schema may qualify.
    pub fn of(schema: Option<&str>, name: &str) -> RelationName {
        RelationName::Named {
            catalog: None,
            schema: schema.map(Name::from),
            name: name.into(),
        }
    }
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

impl Alias {
    /// A name without columns, which stands nowhere.
    pub fn of(name: impl Into<Name>) -> Alias {
        Alias {
            name: name.into(),
            colnames: Vec::new(),
            location: Location::UNKNOWN,
        }
    }
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

/// As a text that is read as the same type: SQL's own names as such, others with quotes where they need them.
impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, behind) = match &self.name {
            TypeRef::Stored(oid) => (format!("\"\u{2}{oid}\""), ""),
            TypeRef::Named(names) => match names.as_slice() {
                [schema, name] if **schema == *"pg_catalog" => self.system_words(name).map_or_else(
                    || (format!("pg_catalog.{}", quote_identifier(name)), ""),
                    |(words, behind)| (words.to_owned(), behind),
                ),
                names => {
                    let quoted: Vec<_> = names.iter().map(|name| quote_identifier(name)).collect();
                    (quoted.join("."), "")
                }
            },
        };
        f.write_str(&name)?;
        if !self.typmods.is_empty() {
            let typmods: Vec<_> = self.typmods.iter().filter_map(modifier).collect();
            write!(f, "({})", typmods.join(","))?;
        }
        f.write_str(behind)?;
        for bound in &self.array_bounds {
            match bound {
                Some(bound) => write!(f, "[{bound}]")?,
                None => f.write_str("[]")?,
            }
        }
        Ok(())
    }
}

impl TypeName {
    /// The words of SQL that name a type of PostgreSQL's own: before its modifiers, and behind them.
    fn system_words(&self, name: &str) -> Option<(&'static str, &'static str)> {
        let is_bare = self.typmods.is_empty();
        Some(match name {
            "int2" => ("smallint", ""),
            "int4" => ("integer", ""),
            "int8" => ("bigint", ""),
            "float4" => ("real", ""),
            "float8" => ("double precision", ""),
            "bool" => ("boolean", ""),
            "numeric" => ("numeric", ""),
            "varbit" => ("bit varying", ""),
            "varchar" => ("character varying", ""),
            "time" => ("time", ""),
            "timetz" => ("time", " with time zone"),
            "timestamp" => ("timestamp", ""),
            "timestamptz" => ("timestamp", " with time zone"),
            // Without a length these would be of one character, or bit.
            "bpchar" if !is_bare => ("character", ""),
            "bit" if !is_bare => ("bit", ""),
            "interval" if is_bare => ("interval", ""),
            _ => return None,
        })
    }
}

/// A modifier of a type as it is written; none if it is no constant and no name.
pub fn modifier(typmod: &Expr) -> Option<String> {
    match typmod {
        Expr::Const(node) => match &node.value {
            Value::Integer(number) => Some(number.to_string()),
            Value::Float(text) | Value::String(text) => Some(text.to_string()),
            _ => None,
        },
        Expr::ColumnRef(column) if !column.star => match column.fields.as_slice() {
            [name] => Some(name.to_string()),
            _ => None,
        },
        _ => None,
    }
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

/// Would a name be folded, or read as a word of the grammar, without quotes?
fn needs_quotes(name: &str) -> bool {
    let mut bytes = name.bytes();
    let begins = bytes
        .next()
        .is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    let goes_on = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'$';
    !begins
        || !bytes.all(goes_on)
        || Keyword::of(name).is_some_and(|keyword| keyword.category() != Category::Unreserved)
}

/// A qualified name, in quotes where they are needed.
pub fn names_shown(names: &[Name]) -> String {
    let shown = names.iter().map(|name| match needs_quotes(name) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_string(),
    });
    shown.collect::<Vec<_>>().join(".")
}

/// What is said of a name in another database.
pub(crate) fn cross_database(names: &[Name]) -> SqlError {
    let message = format!(
        "cross-database references are not implemented: \"{}\"",
        names_shown(names)
    );
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
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

impl RangeVar {
    /// A relation by its name alone, which stands nowhere.
    pub fn named(name: &str) -> RangeVar {
        RangeVar {
            name: RelationName::of(None, name),
            inh: true,
            persistence: Persistence::Permanent,
            alias: None,
            location: Location::UNKNOWN,
        }
    }

    /// A relation by its parts, as many as there may be, which stands nowhere.
    pub fn of<N: AsRef<str>>(names: &[N]) -> Result<RangeVar> {
        let (catalog, schema, name) = match names {
            [name] => (None, None, name),
            [schema, name] => (None, Some(schema), name),
            [catalog, schema, name] => (Some(catalog), Some(schema), name),
            _ => {
                let names: Names = names.iter().map(|name| name.as_ref().into()).collect();
                return Err(cross_database(&names));
            }
        };
        Ok(RangeVar {
            name: RelationName::Named {
                catalog: catalog.map(|name| name.as_ref().into()),
                schema: schema.map(|name| name.as_ref().into()),
                name: name.as_ref().into(),
            },
            ..RangeVar::named("")
        })
    }

    /// The parts of its name; none of a source of a view.
    pub fn names(&self) -> Names {
        match &self.name {
            RelationName::Named {
                catalog,
                schema,
                name,
            } => {
                let qualifiers = [catalog, schema].into_iter().flatten();
                qualifiers.chain([name]).cloned().collect()
            }
            RelationName::Source(_) => Names::new(),
        }
    }

    /// Its name, if nothing qualifies it.
    pub fn bare_name(&self) -> Option<&Name> {
        match &self.name {
            RelationName::Named {
                catalog: None,
                schema: None,
                name,
            } => Some(name),
            _ => None,
        }
    }

    /// Its schema, if that is named, and its name; a database in front must be this one.
    pub fn schema_and_name(&self, database: &str) -> Result<(Option<&str>, &str)> {
        match &self.name {
            RelationName::Named {
                catalog,
                schema,
                name,
            } => match catalog {
                Some(catalog) if **catalog != *database => Err(cross_database(&self.names())),
                _ => Ok((schema.as_deref(), name)),
            },
            RelationName::Source(_) => Err(SqlError::internal("a source of a view without a view")),
        }
    }
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

impl OperatorName {
    /// An operator without a schema.
    pub fn of_sign(sign: &str) -> OperatorName {
        OperatorName {
            schema: Names::new(),
            name: sign.into(),
        }
    }

    /// Its characters, if no schema is named.
    pub fn sign(&self) -> Option<&str> {
        self.schema.is_empty().then_some(&*self.name)
    }
}

impl fmt::Display for OperatorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.schema.is_empty() {
            true => f.write_str(&self.name),
            false => write!(f, "OPERATOR({}.{})", self.schema.join("."), self.name),
        }
    }
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
///
/// Invariant: a password does not come into a log. What prints it for people leaves it out.
#[derive(Clone, PartialEq)]
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

impl fmt::Debug for DefElem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("DefElem");
        if let Some(namespace) = &self.namespace {
            shown.field("namespace", namespace);
        }
        shown.field("name", &self.name);
        match self.name.eq_ignore_ascii_case("password") {
            true => shown.finish_non_exhaustive(),
            false => shown
                .field("arg", &self.arg)
                .field("action", &self.action)
                .field("location", &self.location)
                .finish(),
        }
    }
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
    Expr(NodeBox<Expr>),
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

#[cfg(test)]
mod tests {
    use crate::parse;

    #[test]
    fn no_password_is_printed() {
        for text in [
            "CREATE ROLE r LOGIN PASSWORD 'hidden'",
            "ALTER USER r ENCRYPTED PASSWORD 'hidden'",
            "CREATE USER MAPPING FOR r SERVER s OPTIONS (user 'r', password 'hidden')",
        ] {
            let printed = format!("{:?}", parse(text));
            assert!(printed.contains("\"password\""), "{printed}");
            assert!(!printed.contains("hidden"), "{printed}");
        }
    }
}
