//! CREATE and ALTER DOMAIN.

use crate::lowered as ast;

/// A CHECK of a domain.
#[derive(Clone, Debug)]
pub struct DomainCheckClause {
    /// CONSTRAINT name.
    pub name: Option<String>,
    /// The condition.
    pub condition: ast::Expr,
    /// NOT VALID.
    pub not_valid: bool,
}

/// CREATE DOMAIN.
#[derive(Clone, Debug)]
pub struct CreateDomain {
    /// Its name.
    pub name: ast::ObjectName,
    /// What it is made over.
    pub data_type: ast::DataType,
    /// COLLATE.
    pub collation: Option<ast::ObjectName>,
    /// DEFAULT.
    pub default: Option<ast::Expr>,
    /// NOT NULL.
    pub not_null: bool,
    /// CHECKs.
    pub checks: Vec<DomainCheckClause>,
}

/// What ALTER DOMAIN does.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum AlterDomain {
    Default(Option<ast::Expr>),
    NotNull(bool),
    Add(DomainCheckClause),
    Drop { if_exists: bool, name: String },
    RenameConstraint { from: String, to: String },
    Validate(String),
    Rename(String),
    SetSchema(String),
}
