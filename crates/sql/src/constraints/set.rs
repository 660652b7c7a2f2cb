//! The rules of a statement's tables.

use super::rule::{ForeignRule, UniqueRule};
use super::triggers::TableTriggers;
use crate::catalog::Relation;
use crate::expr::Expr;
use crate::plan::Check;
use crate::value::Oid;
use std::sync::Arc;

/// The rules of one table.
pub struct TableRules {
    /// The table.
    pub table: Arc<Relation>,
    /// Deferrable unique keys.
    pub(crate) unique: Vec<UniqueRule>,
    /// Foreign keys of the table.
    pub(crate) child: Vec<Arc<ForeignRule>>,
    /// Foreign keys that reference it.
    pub(crate) parent: Vec<Arc<ForeignRule>>,
    /// What rows changed by actions must fulfil.
    pub(crate) checks: Vec<Check>,
    /// Generated columns: (attribute position, value over the new full row).
    pub(crate) generated: Vec<(usize, Expr)>,
    /// What SET DEFAULT gives: (attribute position, value).
    pub(crate) defaults: Vec<(usize, Expr)>,
    /// Triggers.
    pub triggers: Option<Arc<TableTriggers>>,
    /// What the domains of columns ask: (attribute position, the column with its rules).
    pub(crate) domains: Vec<(usize, Expr)>,
}

/// The rules of the table a statement changes (the first) and of all tables that actions may change in turn.
pub struct RuleSet {
    /// Tables; the statement's own first.
    pub tables: Vec<TableRules>,
}

impl RuleSet {
    /// Which table of the set has this OID.
    pub(crate) fn position(&self, table: Oid) -> Option<usize> {
        self.tables.iter().position(|t| t.table.oid == table)
    }
}
