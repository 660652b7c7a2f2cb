//! SET CONSTRAINTS, and ALTER TABLE ... ALTER CONSTRAINT.

use crate::lowered as ast;

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
