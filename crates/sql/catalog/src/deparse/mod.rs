//! Trees of queries and expressions as text, as PostgreSQL prints what it keeps (`ruleutils.c`).
//!
//! Works on trees whose types and names are explicit: prints, decides nothing.

mod expr;
mod normal_form;
mod plain;
mod precedence;
mod query;
mod sort;
mod special;
mod xml;

pub use expr::{normal, pretty, qualified};
use normal_form::bit_literal;
pub use normal_form::expr_to_sql;
use plain::arguments;
pub use plain::plain;
pub use query::definition;
use sort::sort_shown;
