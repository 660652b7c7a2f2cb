//! The rules of a statement's tables.

use super::rule::{ForeignRule, UniqueRule};
use super::triggers::TableTriggers;
use crate::Check;
use crate::query::expr::Expr;
use logstead_sql_catalog::Relation;
use logstead_sql_types::RelationId;
use std::sync::Arc;

/// The rules of one table.
pub struct TableRules {
    /// The table.
    pub table: Arc<Relation>,
    /// Deferrable unique keys.
    pub unique: Vec<UniqueRule>,
    /// Foreign keys of the table.
    pub child: Vec<Arc<ForeignRule>>,
    /// Foreign keys that reference it.
    pub parent: Vec<Arc<ForeignRule>>,
    /// What rows changed by actions must fulfil.
    pub checks: Vec<Check>,
    /// Generated columns: (attribute position, value over the new full row).
    pub generated: Vec<(usize, Expr)>,
    /// What SET DEFAULT gives: (attribute position, value).
    pub defaults: Vec<(usize, Expr)>,
    /// Triggers.
    pub triggers: Option<Arc<TableTriggers>>,
    /// What the domains of columns ask: (attribute position, the column with its rules).
    pub domains: Vec<(usize, Expr)>,
}

/// The rules of the table a statement changes (the first) and of all tables that actions may change in turn.
pub struct RuleSet {
    /// Tables; the statement's own first.
    pub tables: Vec<TableRules>,
}

impl RuleSet {
    /// Which table of the set has this OID.
    pub fn position(&self, table: RelationId) -> Option<usize> {
        self.tables.iter().position(|t| t.table.oid == table)
    }
}
