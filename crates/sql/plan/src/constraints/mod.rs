//! Constraints that are checked after the row was written, and triggers: what a statement's plan has of them.
//!
//! Owns: the rules of a statement's tables ([`RuleSet`], made when the statement is planned): foreign keys in both
//! directions, unique keys that are deferrable, triggers. Does not check: the executor queues events for rows that it
//! has written and checks them when a statement ends, at SET CONSTRAINTS ... IMMEDIATE and before COMMIT draws its
//! CSN.

mod rule;
mod set;
mod triggers;

pub use rule::{ForeignRule, KeyParts, UniqueRule, bytes_of, key_types, values_of};
pub use set::{RuleSet, TableRules};
pub use triggers::{PlannedTrigger, TableTriggers, TriggerType};

use crate::{MergeAction, Node, Plan};
use std::sync::Arc;

/// Fires triggers, itself or in its WITH.
pub fn has_triggers(plan: &Plan) -> bool {
    let of = |rules: &Option<Arc<RuleSet>>| {
        let tables = rules.iter().flat_map(|rules| &rules.tables);
        tables.into_iter().any(|table| table.triggers.is_some())
    };
    let own = match &plan.node {
        Node::Insert(insert) => insert.table.view().is_some() || of(&insert.rules),
        Node::Update(update) => update.table.view().is_some() || of(&update.rules),
        Node::Delete(delete) => delete.table.view().is_some() || of(&delete.rules),
        Node::Merge(merge) => {
            let mut all = merge.matched.iter().chain(&merge.unmatched);
            all.any(|when| match &when.action {
                MergeAction::Nothing => false,
                MergeAction::Update(update) => of(&update.rules),
                MergeAction::Delete(rules) => of(rules),
                MergeAction::Insert(insert) => of(&insert.rules),
            })
        }
        _ => false,
    };
    own || crate::instrumentation::children(plan)
        .into_iter()
        .any(has_triggers)
}
