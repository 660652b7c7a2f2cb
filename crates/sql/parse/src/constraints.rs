//! Constraint syntax that the grammar library lacks: SET CONSTRAINTS, ALTER TABLE ... ALTER CONSTRAINT, and the columns of
//! ON DELETE SET NULL (...).

use sqlparser::ast::{self};

/// SET CONSTRAINTS.
#[derive(Clone, Debug)]
pub struct SetConstraints {
    /// Which; `None` is ALL.
    pub names: Option<Vec<ast::ObjectName>>,
    /// DEFERRED, not IMMEDIATE.
    pub deferred: bool,
}

/// ALTER TABLE ... ALTER CONSTRAINT.
#[derive(Clone, Debug)]
pub struct AlterConstraint {
    /// IF EXISTS.
    pub if_exists: bool,
    /// Which table.
    pub table: ast::ObjectName,
    /// Which constraint.
    pub constraint: ast::Ident,
    /// DEFERRABLE and INITIALLY as written.
    pub characteristics: ast::ConstraintCharacteristics,
}

/// Ends each name in a list of columns that travels in one name: no name contains it.
pub const NAME_END: char = '\0';
