//! Row security: which rows of a table a role sees and may write.
//!
//! A policy's conditions are kept as a view's query is (`catalog::view`): `SELECT (condition) FROM` the policy's own
//! table, which is source 0. So tables and columns may be renamed, and what a condition names are its dependencies,
//! without code of its own.
//!
//! Invariant: the policies of a table change only under its ACCESS EXCLUSIVE lock, in the table's own row: who runs a
//! plan that was made with them holds the table.

use super::View;
use crate::role::acl::ACL_ID_PUBLIC;
use logstead_sql_parse::PolicyCommand;
use logstead_sql_types::value::Oid;
use logstead_sql_types::{RelationId, RoleId};
use std::sync::Arc;

/// Row security of a table.
#[derive(Clone, Debug, Default)]
pub struct RowSecurity {
    /// ENABLE ROW LEVEL SECURITY: the policies hold.
    pub enabled: bool,
    /// FORCE ROW LEVEL SECURITY: for the table's owner, too.
    pub forced: bool,
    /// The policies, oldest first.
    pub policies: Vec<Arc<Policy>>,
}

/// A policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// `pg_policy.oid`.
    pub oid: Oid,
    /// Its name, once in a table.
    pub name: String,
    /// What it is about.
    pub command: PolicyCommand,
    /// One permissive policy must let a row through; every restrictive one must.
    pub permissive: bool,
    /// For whom it holds; [`ACL_ID_PUBLIC`] is everybody.
    pub roles: Vec<RoleId>,
    /// USING: of rows that are there.
    pub using: Option<Arc<View>>,
    /// WITH CHECK: of rows that are written; without, USING is asked of them.
    pub check: Option<Arc<View>>,
}

impl RowSecurity {
    /// Is there nothing to be stored?
    pub fn is_none(&self) -> bool {
        !self.enabled && !self.forced && self.policies.is_empty()
    }

    /// A policy by its name.
    pub fn policy(&self, name: &str) -> Option<&Arc<Policy>> {
        self.policies.iter().find(|policy| policy.name == name)
    }
}

impl Policy {
    /// Its conditions.
    pub fn conditions(&self) -> impl Iterator<Item = &Arc<View>> {
        self.using.iter().chain(&self.check)
    }

    /// Is it about this command?
    pub fn is_about(&self, command: PolicyCommand) -> bool {
        self.command == PolicyCommand::All || self.command == command
    }

    /// Is it everybody's?
    pub fn is_everybodys(&self) -> bool {
        self.roles.contains(&ACL_ID_PUBLIC)
    }

    /// Does a condition read the relation, or (with a position) that column of it?
    pub fn reads(&self, relation: RelationId, column: Option<usize>) -> bool {
        self.conditions().any(|view| view.reads(relation, column))
    }
}
