//! XML.

use super::Expr;
use crate::ast::{Alias, Location, Name, TypeName, XmlExprOp, XmlOption, XmlStandalone};

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

impl XmlNamedArg {
    /// What it is called; a column is called by its name.
    pub fn name(&self) -> Option<&Name> {
        let own = || match &self.value {
            Expr::ColumnRef(column) => column.fields.last(),
            _ => None,
        };
        self.name.as_ref().or_else(own)
    }
}

/// What makes XML.
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

/// XMLSERIALIZE.
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

/// XMLTABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeTableFunc {
    /// LATERAL
    pub lateral: bool,
    /// The document.
    pub docexpr: Expr,
    /// The path of rows.
    pub rowexpr: Expr,
    /// XMLNAMESPACES; without a name for DEFAULT.
    pub namespaces: Vec<(Option<Name>, Expr)>,
    /// COLUMNS
    pub columns: Vec<RangeTableFuncCol>,
    /// What it is called.
    pub alias: Option<Box<Alias>>,
    /// Where it begins.
    pub location: Location,
}

/// A column of XMLTABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeTableFuncCol {
    /// Its name.
    pub colname: Name,
    /// Its type; none FOR ORDINALITY.
    pub type_name: Option<TypeName>,
    /// NOT NULL
    pub is_not_null: bool,
    /// PATH
    pub colexpr: Option<Expr>,
    /// DEFAULT
    pub coldefexpr: Option<Expr>,
    /// Where it begins.
    pub location: Location,
}
