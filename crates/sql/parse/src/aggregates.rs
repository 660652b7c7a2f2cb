//! CREATE, ALTER and DROP AGGREGATE, and COMMENT ON it: what is not as of functions.

use super::routines::ArgClause;
use crate::lowered::{self as ast, ObjectName};

/// What a property of CREATE AGGREGATE says.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the kinds of values that there are")]
pub enum AggregateValue {
    /// Nothing: it is named alone.
    None,
    Function(ObjectName),
    /// A type, and whether it is a word or a text `ANY`.
    Type(ast::DataType),
    Any,
    /// A number, a word or a text as it stands.
    Text(String),
    /// An operator, with its schema.
    Operator(Option<String>, String),
}

/// CREATE AGGREGATE.
#[derive(Clone, Debug)]
pub struct CreateAggregate {
    /// OR REPLACE.
    pub or_replace: bool,
    /// Its name.
    pub name: ObjectName,
    /// Its arguments; none in the old form, which has them in a property.
    pub args: Option<Vec<ArgClause>>,
    /// How many of them stand before ORDER BY.
    pub direct: Option<usize>,
    /// Properties by name.
    pub properties: Vec<(String, AggregateValue)>,
}
