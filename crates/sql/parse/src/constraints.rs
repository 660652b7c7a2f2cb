//! ALTER TABLE ... ALTER CONSTRAINT.

use crate::lowered as ast;

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
