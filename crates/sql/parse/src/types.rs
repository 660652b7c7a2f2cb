//! CREATE, ALTER and DROP of types.

use super::domains::{AlterDomain, CreateDomain};
use crate::lowered as ast;

/// An attribute of a composite type.
#[derive(Clone, Debug)]
pub struct AttributeClause {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: ast::DataType,
    /// COLLATE.
    pub collation: Option<ast::ObjectName>,
}

/// What ALTER TYPE does with an attribute.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum AlterAttribute {
    Add(AttributeClause),
    Drop { if_exists: bool, name: String },
    Type(AttributeClause),
}

/// What CREATE TYPE ... AS RANGE says of a range.
#[derive(Clone, Debug)]
pub struct RangeClause {
    /// Which of its attributes.
    pub attribute: String,
    /// The type, or a name that has the form of one.
    pub value: ast::DataType,
    /// The same as a name.
    pub name: Option<ast::ObjectName>,
}

/// A statement about types.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TypeCommand {
    CreateEnum {
        name: ast::ObjectName,
        labels: Vec<String>,
    },
    CreateComposite {
        name: ast::ObjectName,
        attributes: Vec<AttributeClause>,
    },
    CreateRange {
        name: ast::ObjectName,
        clauses: Vec<RangeClause>,
    },
    AlterAttributes {
        name: ast::ObjectName,
        changes: Vec<AlterAttribute>,
    },
    RenameAttribute {
        name: ast::ObjectName,
        from: String,
        to: String,
    },
    AddValue {
        name: ast::ObjectName,
        if_not_exists: bool,
        label: String,
        /// The neighbour, and whether the new one comes before it.
        at: Option<(String, bool)>,
    },
    RenameValue {
        name: ast::ObjectName,
        from: String,
        to: String,
    },
    Rename {
        name: ast::ObjectName,
        new: String,
    },
    SetSchema {
        name: ast::ObjectName,
        schema: String,
    },
    CreateDomain(CreateDomain),
    AlterDomain {
        name: ast::ObjectName,
        alter: AlterDomain,
    },
    Drop {
        domain: bool,
        if_exists: bool,
        names: Vec<ast::ObjectName>,
        cascade: bool,
    },
}

impl TypeCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            TypeCommand::CreateEnum { .. }
            | TypeCommand::CreateComposite { .. }
            | TypeCommand::CreateRange { .. } => "CREATE TYPE",
            TypeCommand::Drop { domain: false, .. } => "DROP TYPE",
            TypeCommand::Drop { domain: true, .. } => "DROP DOMAIN",
            TypeCommand::CreateDomain(_) => "CREATE DOMAIN",
            TypeCommand::AlterDomain { .. } => "ALTER DOMAIN",
            _ => "ALTER TYPE",
        }
    }
}
