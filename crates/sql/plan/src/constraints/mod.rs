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
pub use triggers::{Fire, Moment, TableTriggers};
